//! Schemas: compiled once, within bounds, with nobody to fetch anything for them.

mod example;
mod graph;
mod layout;
mod mismatch;
mod room;

use std::collections::BTreeSet;

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::decoded::{Mismatch, Reason};
use crate::limits::{
    PATTERN_BYTES_MAX, PATTERNS_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_VALUES_MAX,
};
use graph::Graph;
pub(crate) use mismatch::{Found, bounded};

/// Why a schema can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is larger, deeper or has more patterns than anybody needs.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// It is not a schema, names something that is not in it, or has a pattern that
    /// can't be compiled.
    #[error("not a schema at `{path}`: {message}")]
    Invalid {
        /// The JSON pointer of the keyword.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// It applies to a value whatever it applies to that value, without end.
    #[error("the schema refers to itself without end at `{0}`")]
    Endless(String),
    /// The machine gave no stack to work on.
    #[error("no thread could be started for the schema")]
    NoRoom,
}

/// Whether `format` is a demand or a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// A text must have the format.
    Checked,
    /// As the standard has it: nobody looks.
    Ignored,
}

/// A compiled JSON Schema.
///
/// Draft 2020-12, or the draft that it names in `$schema`. It must be whole: a reference
/// to another document is an error, whoever holds that document.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: jsonschema::Validator,
    graph: Graph,
    /// Texts that the schema itself spells out, so that they are nobody's placeholder.
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
        Self::compile_with(schema, Formats::Checked)
    }

    /// Compiles a schema.
    pub fn compile_with(schema: &Value, formats: Formats) -> Result<Self, SchemaError> {
        let literals = check_size(schema)?;
        let graph = Graph::build(schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(10_000)
            .size_limit(2 * 1024 * 1024)
            .dfa_size_limit(2 * 1024 * 1024);
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(formats == Formats::Checked)
            .with_pattern_options(patterns);
        let validator = room::with_room(graph.depth(), || options.build(schema))
            .ok_or(SchemaError::NoRoom)?
            .map_err(|error| SchemaError::Invalid {
                path: error.instance_path().to_string(),
                message: mismatch::bounded(&error.to_string()),
            })?;
        let mut schema = Self { source: schema.clone(), validator, graph, literals, example: None };
        schema.example = example::build(&schema.source).filter(|value| schema.allows(value));
        Ok(schema)
    }

    /// The schema as it was given.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The smallest value that the schema allows, if one could be made.
    pub fn example(&self) -> Option<&Value> {
        self.example.as_ref()
    }

    /// Whether the schema allows a value. One that would take too many steps is not allowed.
    pub fn allows(&self, value: &Value) -> bool {
        let Ok(price) = self.graph.price(value) else { return false };
        room::with_room(price.depth, || self.validator.is_valid(value)).unwrap_or(false)
    }

    /// What is wrong with a value, all of it in order.
    pub(crate) fn check(&self, value: &Value) -> Result<(), (Reason, Vec<Found>)> {
        let whole = |expected: &str, got: &str| {
            let (expected, got) = (expected.to_owned(), got.to_owned());
            Found { mismatch: Mismatch { path: String::new(), expected, got }, wrapped: None }
        };
        let Ok(price) = self.graph.price(value) else {
            let error = whole("a smaller value", "one that takes too many steps to validate");
            return Err((Reason::TooCostly, vec![error]));
        };
        let errors = room::with_room(price.depth, || {
            if self.validator.is_valid(value) {
                return Vec::new();
            }
            if self.graph.has_choices() && price.is_much() {
                // To tell apart why each choice fails copies the value for each.
                return vec![whole(
                    "a value that the schema allows",
                    "another one, too large to say why",
                )];
            }
            mismatch::collect(self.validator.iter_errors(value))
        });
        match errors {
            Some(errors) if errors.is_empty() => Ok(()),
            Some(errors) => Err((Reason::Schema, errors)),
            None => {
                Err((Reason::TooCostly, vec![whole("a smaller value", "one that is too deep")]))
            }
        }
    }

    /// Whether the schema spells this text out.
    pub(crate) fn names(&self, text: &str) -> bool {
        self.literals.contains(text)
    }
}

/// Looks at how large a schema is before anything recurses into it. Returns the
/// texts in it that stand for themselves.
fn check_size(schema: &Value) -> Result<BTreeSet<String>, SchemaError> {
    let mut open = vec![(schema, 0, false)];
    let (mut values, mut bytes, mut patterns) = (0, 0, 0);
    let mut literals = BTreeSet::new();
    while let Some((value, depth, literal)) = open.pop() {
        values += 1;
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooLarge("it is nested too deep"));
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
