//! The validator's errors, as a path, what was expected and what is there.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::decoded::Mismatch;
use crate::limits::ERROR_BYTES_MAX;

/// Most errors that are looked at.
const LOOKED_AT_MAX: usize = 1000;

/// One error, and whether it is only that a document came as a string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) mismatch: Mismatch,
    /// The whole pointer, if a text is where an object or array should be.
    pub(crate) wrapped: Option<String>,
}

/// The errors in an order that hangs on nothing but the value and the schema.
pub(super) fn collect<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> Vec<Found> {
    let mut found = Vec::new();
    for error in errors.take(LOOKED_AT_MAX) {
        describe(&error, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn describe(error: &ValidationError<'_>, found: &mut Vec<Found>) {
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && let Some(branch) = nearest(error, context)
    {
        return branch.iter().for_each(|error| describe(error, found));
    }
    let pointer = error.instance_path().to_string();
    let wrapped = is_wrapped(error).then(|| pointer.clone());
    let mismatch = Mismatch {
        path: bounded(&pointer),
        expected: bounded(&expected(error.kind(), error)),
        got: bounded(&got(error)),
    };
    found.push(Found { mismatch, wrapped });
}

/// The one of several choices that was meant, if that can be seen: it alone fails
/// only further in.
fn nearest<'c>(
    error: &ValidationError<'_>,
    context: &'c [Vec<ValidationError<'static>>],
) -> Option<&'c [ValidationError<'static>]> {
    let here = error.instance_path().as_str().len();
    let mut deeper = context.iter().filter(|branch| {
        !branch.is_empty()
            && branch.iter().all(|error| {
                error.instance_path().as_str().len() > here
                    && !matches!(error.kind(), Kind::Constant { .. })
                    || matches!(error.kind(), Kind::Required { .. })
            })
    });
    let first = deeper.next()?;
    deeper.next().is_none().then_some(first.as_slice())
}

fn is_wrapped(error: &ValidationError<'_>) -> bool {
    let Kind::Type { kind } = error.kind() else { return false };
    let container = |kind: JsonType| matches!(kind, JsonType::Object | JsonType::Array);
    error.instance().is_string()
        && match kind {
            TypeKind::Single(kind) => container(*kind),
            TypeKind::Multiple(kinds) => kinds.iter().all(container),
        }
}

fn expected(kind: &Kind, error: &ValidationError<'_>) -> String {
    match kind {
        Kind::Type { kind: TypeKind::Single(kind) } => kind.to_string(),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
        }
        Kind::Required { property } => format!("the member {property}"),
        Kind::Enum { options } => format!("one of {options}"),
        Kind::Constant { expected_value } => expected_value.to_string(),
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            "no other members".to_owned()
        }
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "no other items".to_owned(),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} members"),
        Kind::MaxProperties { limit } => format!("at most {limit} members"),
        Kind::UniqueItems => "no item twice".to_owned(),
        Kind::Contains => "an item of the kind that `contains` asks for".to_owned(),
        Kind::Pattern { pattern } => format!("a text that matches `{pattern}`"),
        Kind::Format { format } => format!("the format {format}"),
        Kind::AnyOf { context } => {
            format!("one of {} alternatives: {}", context.len(), kinds(context))
        }
        Kind::OneOfNotValid { context } => {
            format!("exactly one of {} alternatives: {}", context.len(), kinds(context))
        }
        Kind::OneOfMultipleValid { .. } => "exactly one alternative that fits".to_owned(),
        Kind::Not { schema } => format!("anything but {schema}"),
        Kind::FalseSchema => "nothing".to_owned(),
        Kind::PropertyNames { error } => format!("another name for a member: {error}"),
        _ => format!("what `{}` asks for", error.kind().keyword()),
    }
}

/// What the alternatives ask for first.
fn kinds(context: &[Vec<ValidationError<'static>>]) -> String {
    let firsts = context.iter().filter_map(|branch| branch.first());
    let texts = firsts.map(|error| expected_of_alternative(error)).collect::<Vec<_>>();
    texts.join("; ")
}

fn expected_of_alternative(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "one of several".to_owned(),
        kind => expected(kind, error),
    }
}

fn got(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().take(5).map(|name| shown(name)).collect();
            names.join(", ")
        }
        Kind::Required { .. } => match error.instance().as_object() {
            Some(map) if map.is_empty() => "no members".to_owned(),
            Some(map) => {
                let names: Vec<_> = map.keys().take(8).map(|name| shown(name)).collect();
                format!("only {}", names.join(", "))
            }
            None => got_value(error.instance()),
        },
        _ => got_value(error.instance()),
    }
}

fn shown(name: &str) -> String {
    Value::String(name.chars().take(40).collect()).to_string()
}

/// The kind of a value, and itself where it is short.
fn got_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => format!("boolean {truth}"),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(number) => format!("integer {number}"),
        Value::String(text) => format!("string {}", shown(text)),
        Value::Array(items) => format!("array of {}", items.len()),
        Value::Object(map) => format!("object of {}", map.len()),
    }
}

/// As much of a text as an error may have.
pub(crate) fn bounded(text: &str) -> String {
    if text.len() <= ERROR_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = ERROR_BYTES_MAX - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}
