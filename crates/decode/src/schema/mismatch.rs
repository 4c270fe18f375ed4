//! Describes validation errors: the path, what was expected and what is there.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::limits::ERROR_BYTES_MAX;
use crate::outcome::DecodeMismatch;

/// How many errors of the validator are read.
const ERRORS_READ_MAX: usize = 1000;

/// One error, and whether its only cause is a document inside a string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValidationMismatch {
    pub(crate) mismatch: DecodeMismatch,
    /// The full pointer, if a string is where an object or array should be.
    pub(crate) wrapped_pointer: Option<String>,
}

/// The errors, in an order that depends only on the value and the schema.
pub(super) fn collect_mismatches<'e>(
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Vec<ValidationMismatch> {
    let mut found = Vec::new();
    for error in errors.take(ERRORS_READ_MAX) {
        describe_error(&error, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn describe_error(error: &ValidationError<'_>, found: &mut Vec<ValidationMismatch>) {
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && let Some(branch) = nearest_alternative(error, context)
    {
        return branch.iter().for_each(|error| describe_error(error, found));
    }
    let pointer = error.instance_path().to_string();
    let wrapped = is_document_in_string(error).then(|| pointer.clone());
    let mismatch = DecodeMismatch {
        path: shorten_error_text(&pointer),
        expected: shorten_error_text(&expected_text(error.kind(), error)),
        got: shorten_error_text(&actual_text(error)),
    };
    found.push(ValidationMismatch { mismatch, wrapped_pointer: wrapped });
}

/// The alternative that the value was probably meant for: the only one that fails only
/// deeper inside the value. `None` if that is not clear.
fn nearest_alternative<'c>(
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

fn is_document_in_string(error: &ValidationError<'_>) -> bool {
    let Kind::Type { kind } = error.kind() else { return false };
    let container = |kind: JsonType| matches!(kind, JsonType::Object | JsonType::Array);
    error.instance().is_string()
        && match kind {
            TypeKind::Single(kind) => container(*kind),
            TypeKind::Multiple(kinds) => kinds.iter().all(container),
        }
}

fn expected_text(kind: &Kind, error: &ValidationError<'_>) -> String {
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
        Kind::UniqueItems => "no duplicate items".to_owned(),
        Kind::Contains => "an item that matches `contains`".to_owned(),
        Kind::Pattern { pattern } => format!("a text that matches `{pattern}`"),
        Kind::Format { format } => format!("the format {format}"),
        Kind::AnyOf { context } => {
            format!("one of {} alternatives: {}", context.len(), expected_alternatives(context))
        }
        Kind::OneOfNotValid { context } => {
            format!(
                "exactly one of {} alternatives: {}",
                context.len(),
                expected_alternatives(context)
            )
        }
        Kind::OneOfMultipleValid { .. } => {
            "a value that matches exactly one alternative".to_owned()
        }
        Kind::Not { schema } => format!("a value that does not match {schema}"),
        Kind::FalseSchema => "no value".to_owned(),
        Kind::PropertyNames { error } => format!("a valid member name: {error}"),
        _ => format!("a value that satisfies `{}`", error.kind().keyword()),
    }
}

/// What each alternative expects, from its first error.
fn expected_alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let firsts = context.iter().filter_map(|branch| branch.first());
    let texts = firsts.map(|error| expected_of_alternative(error)).collect::<Vec<_>>();
    texts.join("; ")
}

fn expected_of_alternative(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "one of several alternatives".to_owned(),
        kind => expected_text(kind, error),
    }
}

fn actual_text(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().take(5).map(|name| quoted_name(name)).collect();
            names.join(", ")
        }
        Kind::Required { .. } => match error.instance().as_object() {
            Some(map) if map.is_empty() => "no members".to_owned(),
            Some(map) => {
                let names: Vec<_> = map.keys().take(8).map(|name| quoted_name(name)).collect();
                format!("only {}", names.join(", "))
            }
            None => describe_value(error.instance()),
        },
        _ => describe_value(error.instance()),
    }
}

fn quoted_name(name: &str) -> String {
    Value::String(name.chars().take(40).collect()).to_string()
}

/// The kind of a value, and the value itself where it is short.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => format!("boolean {truth}"),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(number) => format!("integer {number}"),
        Value::String(text) => format!("string {}", quoted_name(text)),
        Value::Array(items) => format!("array of length {}", items.len()),
        Value::Object(map) => format!("object with {} member(s)", map.len()),
    }
}

/// The text, shortened to the length limit of an error field.
pub(crate) fn shorten_error_text(text: &str) -> String {
    if text.len() <= ERROR_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = ERROR_BYTES_MAX - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}
