//! What a refused byte should have been, in words.

use serde_json::Value;

use super::alternatives::{Alternatives, Cause, RuledOut, Shape};
use super::node::{Node, types};
use super::refusal::RefusalKind;
use super::{DEPTH_MAX, NUMBER_BYTES_MAX, StreamSchema};

/// How many names or values are listed.
const LISTED_MAX: usize = 8;

/// Why a byte is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Why {
    Syntax(&'static str),
    /// No value begins so.
    Value,
    Utf8,
    Schema,
    Duplicate,
    Depth,
    NumberLength,
    NumberRange,
    Incomplete(&'static str),
}

impl From<RuledOut> for Why {
    fn from(_: RuledOut) -> Self {
        Self::Schema
    }
}

impl Why {
    pub(super) fn kind(self) -> RefusalKind {
        match self {
            Self::Syntax(_) | Self::Value => RefusalKind::Syntax,
            Self::Utf8 => RefusalKind::Utf8,
            Self::Schema => RefusalKind::Schema,
            Self::Duplicate => RefusalKind::DuplicateKey,
            Self::Depth => RefusalKind::TooDeep,
            Self::NumberLength | Self::NumberRange => RefusalKind::Number,
            Self::Incomplete(_) => RefusalKind::Incomplete,
        }
    }

    pub(super) fn expected(self, schema: &StreamSchema, alternatives: &Alternatives<'_>) -> String {
        match self {
            Self::Syntax(what) | Self::Incomplete(what) => what.to_owned(),
            Self::Value => kinds(alternatives.next_types().unwrap_or(types::ANY)),
            Self::Utf8 => "UTF-8".to_owned(),
            Self::Schema => blamed(schema, alternatives),
            Self::Duplicate => "a key that the object does not have yet".to_owned(),
            Self::Depth => format!("at most {DEPTH_MAX} levels"),
            Self::NumberLength => format!("a number of at most {NUMBER_BYTES_MAX} bytes"),
            Self::NumberRange => "a number that a double can hold".to_owned(),
        }
    }
}

fn blamed(schema: &StreamSchema, alternatives: &Alternatives<'_>) -> String {
    let mut phrases: Vec<String> = Vec::new();
    for (node, cause) in &alternatives.blame {
        let Some(node) = schema.nodes.get(*node) else { continue };
        let phrase = phrase(schema, node, *cause, alternatives);
        if !phrases.contains(&phrase) && phrases.len() < LISTED_MAX {
            phrases.push(phrase);
        }
    }
    if phrases.is_empty() {
        "nothing: no value is valid here".to_owned()
    } else {
        phrases.join(", or ")
    }
}

fn phrase(
    schema: &StreamSchema,
    node: &Node,
    cause: Cause,
    alternatives: &Alternatives<'_>,
) -> String {
    let object = node.object.as_deref();
    let array = node.array.as_deref();
    let is_key = alternatives.top().is_some_and(|frame| frame.shape == Shape::Key);
    let what = if is_key { "key" } else { "string" };
    match cause {
        Cause::Type if node.types == 0 => "nothing: no value is valid here".to_owned(),
        Cause::Type => kinds(node.types),
        Cause::Literal => literals(node, alternatives, is_key),
        Cause::LengthMin => format!("a {what} of at least {} characters", node.text.min),
        Cause::LengthMax => format!("a {what} of at most {} characters", most(node.text.max)),
        Cause::Pattern => {
            let source = node.text.pattern.as_ref().map_or("", |pattern| &pattern.source);
            format!("a {what} that matches `{source}`")
        }
        Cause::Number => {
            let says = node.number.check.as_ref().map_or("", |check| &check.says);
            format!("a number as demanded: {says}")
        }
        Cause::Sign => "a number of the other sign".to_owned(),
        Cause::Key => {
            let closed = object.and_then(|rules| rules.closed).and_then(|id| schema.nodes.get(id));
            let all = closed.and_then(|node| node.text.literals.as_deref()).unwrap_or_default();
            format!("`}}`: there are no other keys than {}", listed(all.iter().map(String::as_str)))
        }
        Cause::Property => "another key: this one can have no valid value".to_owned(),
        Cause::PropertiesMin => {
            format!("at least {} keys", object.map_or(0, |rules| rules.min))
        }
        Cause::PropertiesMax => {
            format!(
                "at most {} keys, required ones among them",
                most(object.and_then(|rules| rules.max))
            )
        }
        Cause::Required => {
            let has = |name: &String| alternatives.top().is_some_and(|at| at.keys.contains(name));
            let required = object.map_or(&[] as &[String], |rules| &rules.required);
            let missing = required.iter().filter(|name| !has(name)).map(String::as_str);
            format!("the required {}", listed(missing))
        }
        Cause::Item => "`]`: no item is valid here".to_owned(),
        Cause::ItemsMin => format!("at least {} items", array.map_or(0, |rules| rules.min)),
        Cause::ItemsMax => {
            format!("at most {} items", most(array.and_then(|rules| rules.max)))
        }
        Cause::OneOf => "a value that fits exactly one alternative of `oneOf`".to_owned(),
    }
}

fn literals(node: &Node, alternatives: &Alternatives<'_>, is_key: bool) -> String {
    let frames = alternatives.open();
    let around = frames.len().checked_sub(2).and_then(|at| frames.get(at)).filter(|_| is_key);
    let free = |text: &&str| !around.is_some_and(|frame| frame.keys.contains(*text));
    let texts = node.text.literals.iter().flatten().map(String::as_str).filter(free);
    if is_key {
        return format!("a key, one of {}", listed(texts));
    }
    let texts = texts.map(|text| Value::from(text).to_string());
    let numbers = node.number.literals.iter().flatten().map(|number| number.shown.clone());
    let all: Vec<String> = texts.chain(numbers).collect();
    format!("one of {}", listed(all.iter().map(String::as_str)))
}

fn listed<'t>(names: impl Iterator<Item = &'t str>) -> String {
    let mut names: Vec<String> =
        names.take(LISTED_MAX + 1).map(|name| format!("`{name}`")).collect();
    if let Some(last) = names.get_mut(LISTED_MAX) {
        "…".clone_into(last);
    }
    names.join(", ")
}

fn kinds(mask: u8) -> String {
    let names: Vec<&str> =
        types::NAMES.iter().filter(|(kind, _)| mask & kind != 0).map(|(_, name)| *name).collect();
    names.join(" or ")
}

fn most(max: Option<u64>) -> u64 {
    max.unwrap_or(u64::MAX)
}
