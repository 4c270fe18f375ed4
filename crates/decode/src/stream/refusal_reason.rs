//! Describes what was expected instead of a refused byte.

use serde_json::Value;

use super::refusal::RefusalKind;
use super::schema_alternatives::{
    RuleOutCause, SchemaAlternatives, SchemaRuledOut, StreamValueShape,
};
use super::schema_node::{SchemaNode, types};
use super::{DEPTH_MAX, NUMBER_BYTES_MAX, StreamSchema};

/// How many names or values a message lists.
const LISTED_NAMES_MAX: usize = 8;

/// Why a byte is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum RefusalReason {
    Syntax(&'static str),
    /// No JSON value starts with this byte.
    Value,
    Utf8,
    Schema,
    DuplicateKey,
    TooDeep,
    NumberLength,
    NumberRange,
    Incomplete(&'static str),
}

impl From<SchemaRuledOut> for RefusalReason {
    fn from(_: SchemaRuledOut) -> Self {
        Self::Schema
    }
}

impl RefusalReason {
    pub(super) fn kind(self) -> RefusalKind {
        match self {
            Self::Syntax(_) | Self::Value => RefusalKind::Syntax,
            Self::Utf8 => RefusalKind::Utf8,
            Self::Schema => RefusalKind::Schema,
            Self::DuplicateKey => RefusalKind::DuplicateKey,
            Self::TooDeep => RefusalKind::TooDeep,
            Self::NumberLength | Self::NumberRange => RefusalKind::Number,
            Self::Incomplete(_) => RefusalKind::Incomplete,
        }
    }

    pub(super) fn expected_text(
        self,
        schema: &StreamSchema,
        alternatives: &SchemaAlternatives<'_>,
    ) -> String {
        match self {
            Self::Syntax(what) | Self::Incomplete(what) => what.to_owned(),
            Self::Value => type_names(alternatives.next_types().unwrap_or(types::ANY)),
            Self::Utf8 => "UTF-8".to_owned(),
            Self::Schema => describe_ruled_out(schema, alternatives),
            Self::DuplicateKey => "a key that the object does not have yet".to_owned(),
            Self::TooDeep => format!("at most {DEPTH_MAX} levels"),
            Self::NumberLength => format!("a number of at most {NUMBER_BYTES_MAX} bytes"),
            Self::NumberRange => "a number that a double can hold".to_owned(),
        }
    }
}

fn describe_ruled_out(schema: &StreamSchema, alternatives: &SchemaAlternatives<'_>) -> String {
    let mut phrases: Vec<String> = Vec::new();
    for (node, cause) in &alternatives.ruled_out {
        let Some(node) = schema.nodes.get(*node) else { continue };
        let phrase = describe_cause(schema, node, *cause, alternatives);
        if !phrases.contains(&phrase) && phrases.len() < LISTED_NAMES_MAX {
            phrases.push(phrase);
        }
    }
    if phrases.is_empty() {
        "nothing: no value is valid here".to_owned()
    } else {
        phrases.join(", or ")
    }
}

fn describe_cause(
    schema: &StreamSchema,
    node: &SchemaNode,
    cause: RuleOutCause,
    alternatives: &SchemaAlternatives<'_>,
) -> String {
    let object = node.object.as_deref();
    let array = node.array.as_deref();
    let is_key = alternatives.top().is_some_and(|frame| frame.shape == StreamValueShape::Key);
    let what = if is_key { "key" } else { "string" };
    match cause {
        RuleOutCause::Type if node.types == 0 => "nothing: no value is valid here".to_owned(),
        RuleOutCause::Type => type_names(node.types),
        RuleOutCause::Literal => describe_literals(node, alternatives, is_key),
        RuleOutCause::LengthMin => format!("a {what} of at least {} characters", node.text.min),
        RuleOutCause::LengthMax => {
            format!("a {what} of at most {} characters", limit_or_max(node.text.max))
        }
        RuleOutCause::Pattern => {
            let source = node.text.pattern.as_ref().map_or("", |pattern| &pattern.source);
            format!("a {what} that matches `{source}`")
        }
        RuleOutCause::Number => {
            let rules = node.number.check.as_ref().map_or("", |check| &check.rules_text);
            format!("a number that satisfies: {rules}")
        }
        RuleOutCause::Sign => "a number with the opposite sign".to_owned(),
        RuleOutCause::Key => {
            let closed =
                object.and_then(|rules| rules.all_keys).and_then(|id| schema.nodes.get(id));
            let all = closed.and_then(|node| node.text.literals.as_deref()).unwrap_or_default();
            format!("`}}`: the only keys are {}", list_names(all.iter().map(String::as_str)))
        }
        RuleOutCause::Property => "another key: no value is valid for this one".to_owned(),
        RuleOutCause::PropertiesMin => {
            format!("at least {} keys", object.map_or(0, |rules| rules.min))
        }
        RuleOutCause::PropertiesMax => {
            format!(
                "at most {} keys, including the required ones",
                limit_or_max(object.and_then(|rules| rules.max))
            )
        }
        RuleOutCause::Required => {
            let has = |name: &String| alternatives.top().is_some_and(|at| at.keys.contains(name));
            let required = object.map_or(&[] as &[String], |rules| &rules.required);
            let missing = required.iter().filter(|name| !has(name)).map(String::as_str);
            format!("the required {}", list_names(missing))
        }
        RuleOutCause::Item => "`]`: no item is valid here".to_owned(),
        RuleOutCause::ItemsMin => format!("at least {} items", array.map_or(0, |rules| rules.min)),
        RuleOutCause::ItemsMax => {
            format!("at most {} items", limit_or_max(array.and_then(|rules| rules.max)))
        }
        RuleOutCause::OneOf => "a value that matches exactly one alternative of `oneOf`".to_owned(),
    }
}

fn describe_literals(
    node: &SchemaNode,
    alternatives: &SchemaAlternatives<'_>,
    is_key: bool,
) -> String {
    let frames = alternatives.open_frames();
    let around = frames.len().checked_sub(2).and_then(|at| frames.get(at)).filter(|_| is_key);
    let free = |text: &&str| !around.is_some_and(|frame| frame.keys.contains(*text));
    let texts = node.text.literals.iter().flatten().map(String::as_str).filter(free);
    if is_key {
        return format!("a key, one of {}", list_names(texts));
    }
    let texts = texts.map(|text| Value::from(text).to_string());
    let numbers = node.number.literals.iter().flatten().map(|number| number.text.clone());
    let all: Vec<String> = texts.chain(numbers).collect();
    format!("one of {}", list_names(all.iter().map(String::as_str)))
}

fn list_names<'t>(names: impl Iterator<Item = &'t str>) -> String {
    let mut names: Vec<String> =
        names.take(LISTED_NAMES_MAX + 1).map(|name| format!("`{name}`")).collect();
    if let Some(last) = names.get_mut(LISTED_NAMES_MAX) {
        "…".clone_into(last);
    }
    names.join(", ")
}

fn type_names(mask: u8) -> String {
    let names: Vec<&str> =
        types::NAMES.iter().filter(|(kind, _)| mask & kind != 0).map(|(_, name)| *name).collect();
    names.join(" or ")
}

fn limit_or_max(max: Option<u64>) -> u64 {
    max.unwrap_or(u64::MAX)
}
