//! JSON Schemas: compiled once, within limits, and without fetching other documents.

mod example;
mod graph;
mod graph_builder;
mod mismatch;
mod stack_space;

use std::collections::BTreeSet;

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::limits::{
    PATTERN_BYTES_MAX, PATTERNS_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_VALUES_MAX,
};
use crate::outcome::{DecodeMismatch, InvalidReason};
use graph::SchemaGraph;
pub(crate) use mismatch::{ValidationMismatch, shorten_error_text};

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is too large, too deep or has too many patterns.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// The value is not a schema, refers to something that it does not contain, or has a
    /// pattern that does not compile.
    #[error("invalid schema at `{path}`: {message}")]
    Invalid {
        /// The JSON pointer of the keyword.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The schema applies itself to the same value again and again.
    #[error("the schema at `{0}` refers to itself without end")]
    Endless(String),
    /// The system could not start a thread with enough stack.
    #[error("could not start a thread to compile the schema")]
    NoThread,
}

/// Whether the keyword `format` is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatPolicy {
    /// A text must have the format.
    Checked,
    /// The keyword is ignored, which is the default of the standard.
    Ignored,
}

/// A compiled JSON Schema.
///
/// Draft 2020-12, or the draft that it names in `$schema`. The schema must be complete: a
/// reference to another document is always an error.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: jsonschema::Validator,
    graph: SchemaGraph,
    /// Texts that the schema lists as values, so that they never count as placeholders.
    literals: BTreeSet<String>,
    example: Option<Value>,
}

impl Schema {
    /// Compiles a schema, with formats checked.
    ///
    /// ```
    /// use jackline_decode::{Schema, SchemaError};
    /// use serde_json::json;
    ///
    /// assert!(Schema::compile(&json!({ "type": "object" })).is_ok());
    /// let endless = Schema::compile(&json!({ "$ref": "#" }));
    /// assert!(matches!(endless, Err(SchemaError::Endless(_))));
    /// ```
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::compile_with(schema, FormatPolicy::Checked)
    }

    /// Compiles a schema.
    pub fn compile_with(schema: &Value, formats: FormatPolicy) -> Result<Self, SchemaError> {
        let literals = check_size(schema)?;
        let graph = SchemaGraph::build(schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(10_000)
            .size_limit(2 * 1024 * 1024)
            .dfa_size_limit(2 * 1024 * 1024);
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(formats == FormatPolicy::Checked)
            .with_pattern_options(patterns);
        let validator = stack_space::run_with_stack(graph.depth_max(), || options.build(schema))
            .ok_or(SchemaError::NoThread)?
            .map_err(|error| SchemaError::Invalid {
                path: error.instance_path().to_string(),
                message: mismatch::shorten_error_text(&error.to_string()),
            })?;
        let mut schema = Self { source: schema.clone(), validator, graph, literals, example: None };
        schema.example =
            example::build_example(&schema.source).filter(|value| schema.allows(value));
        Ok(schema)
    }

    /// The source of the schema.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The smallest value that the schema allows, if we could build one.
    pub fn example(&self) -> Option<&Value> {
        self.example.as_ref()
    }

    /// Whether the schema allows a value. False if the validation would take too many steps.
    pub fn allows(&self, value: &Value) -> bool {
        let Ok(price) = self.graph.validation_cost(value) else { return false };
        stack_space::run_with_stack(price.depth, || self.validator.is_valid(value)).unwrap_or(false)
    }

    /// Checks a value. Returns all errors in a fixed order.
    pub(crate) fn check(
        &self,
        value: &Value,
    ) -> Result<(), (InvalidReason, Vec<ValidationMismatch>)> {
        let whole = |expected: &str, got: &str| {
            let (expected, got) = (expected.to_owned(), got.to_owned());
            ValidationMismatch {
                mismatch: DecodeMismatch { path: String::new(), expected, got },
                wrapped_pointer: None,
            }
        };
        let Ok(price) = self.graph.validation_cost(value) else {
            let error = whole("a smaller value", "a value that takes too many steps to validate");
            return Err((InvalidReason::TooCostly, vec![error]));
        };
        let errors = stack_space::run_with_stack(price.depth, || {
            if self.validator.is_valid(value) {
                return Vec::new();
            }
            if self.graph.has_choices() && price.is_high() {
                // To explain each failed alternative, the validator copies the value for each.
                return vec![whole(
                    "a value that the schema allows",
                    "a value that is too large for a detailed error",
                )];
            }
            mismatch::collect_mismatches(self.validator.iter_errors(value))
        });
        match errors {
            Some(errors) if errors.is_empty() => Ok(()),
            Some(errors) => Err((InvalidReason::Schema, errors)),
            None => Err((
                InvalidReason::TooCostly,
                vec![whole("a smaller value", "a value that is nested too deeply")],
            )),
        }
    }

    /// Whether the schema lists this text as a value.
    pub(crate) fn has_literal(&self, text: &str) -> bool {
        self.literals.contains(text)
    }
}

/// Checks the size of a schema before any recursion into it. Returns the texts that it
/// lists as values.
fn check_size(schema: &Value) -> Result<BTreeSet<String>, SchemaError> {
    let mut open = vec![(schema, 0, false)];
    let (mut values, mut bytes, mut patterns) = (0, 0, 0);
    let mut literals = BTreeSet::new();
    while let Some((value, depth, literal)) = open.pop() {
        values += 1;
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooLarge("it is nested too deeply"));
        }
        match value {
            Value::String(text) => {
                bytes += text.len();
                if literal {
                    literals.insert(text.clone());
                }
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1, literal))),
            Value::Object(map) => {
                for (key, value) in map {
                    bytes += key.len();
                    let literal = matches!(key.as_str(), "const" | "enum");
                    open.push((value, depth + 1, literal));
                    let lengths: Vec<usize> = match (key.as_str(), value) {
                        ("pattern", Value::String(pattern)) => vec![pattern.len()],
                        ("patternProperties", Value::Object(map)) => {
                            map.keys().map(String::len).collect()
                        }
                        _ => continue,
                    };
                    patterns += lengths.len();
                    if lengths.iter().any(|length| *length > PATTERN_BYTES_MAX) {
                        return Err(SchemaError::TooLarge("a pattern is too long"));
                    }
                }
            }
            _ => {}
        }
        if values > SCHEMA_VALUES_MAX || bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLarge("it has too many values or too much text"));
        }
        if patterns > PATTERNS_MAX {
            return Err(SchemaError::TooLarge("it has too many patterns"));
        }
    }
    Ok(literals)
}
