//! Keywords about strings and numbers, and the validator that has the last word.

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::node::{NumberCheck, NumberRules, Pattern, Sign, TextRules, types};
use super::refusal::SchemaError;

/// Makes rules in the dialect of one schema.
pub(super) struct Leaves {
    dialect: Option<Value>,
}

impl Leaves {
    pub(super) fn new(schema: &Value) -> Self {
        Self { dialect: schema.get("$schema").cloned() }
    }

    /// Up to draft 7 nothing beside a reference counts.
    pub(super) fn references_stand_alone(&self) -> bool {
        let name = self.dialect.as_ref().and_then(Value::as_str).unwrap_or("");
        name.contains("/draft-0")
    }

    /// Whether a whole schema is one, without fetching anything.
    pub(super) fn validator(schema: &Value) -> Result<Validator, SchemaError> {
        jsonschema::options()
            .build(schema)
            .map_err(|error| invalid(error.instance_path().as_str(), &error.to_string()))
    }

    fn of(&self, mut keywords: Map<String, Value>) -> Result<Validator, SchemaError> {
        if let Some(dialect) = &self.dialect {
            keywords.insert("$schema".to_owned(), dialect.clone());
        }
        Self::validator(&Value::Object(keywords))
    }

    pub(super) fn types(map: &Map<String, Value>) -> u8 {
        match map.get("type") {
            Some(Value::String(name)) => named(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).fold(0, |sum, name| sum | named(name))
            }
            _ => types::ANY,
        }
    }

    pub(super) fn text(&self, map: &Map<String, Value>) -> Result<TextRules, SchemaError> {
        Ok(TextRules {
            min: map.get("minLength").and_then(count).unwrap_or(0),
            max: map.get("maxLength").and_then(count),
            pattern: map
                .get("pattern")
                .and_then(Value::as_str)
                .map(|pattern| self.pattern(pattern))
                .transpose()?,
            literals: None,
        })
    }

    pub(super) fn pattern(&self, source: &str) -> Result<Pattern, SchemaError> {
        let keyword = [("pattern".to_owned(), Value::from(source))];
        Ok(Pattern { source: source.to_owned(), check: self.of(keyword.into_iter().collect())? })
    }

    pub(super) fn number(&self, map: &Map<String, Value>) -> Result<NumberRules, SchemaError> {
        const KEYS: [&str; 5] =
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let mut keywords: Map<String, Value> = KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone())))
            .collect();
        let plain_passes = keywords.is_empty();
        let mut says: Vec<String> =
            keywords.iter().map(|(key, value)| format!("{key} {value}")).collect();
        if let Some(kinds) = map.get("type")
            && lists(kinds, "integer")
            && !lists(kinds, "number")
        {
            keywords.insert("type".to_owned(), Value::from("integer"));
            says.insert(0, "an integer".to_owned());
        }
        if keywords.is_empty() {
            return Ok(NumberRules::default());
        }
        let sign = sign(&keywords);
        let says = says.join(", ");
        let check = NumberCheck { validator: self.of(keywords)?, says, plain_passes };
        Ok(NumberRules { check: Some(check), literals: None, sign })
    }

    /// The numbers of a list, as the validator compares them.
    pub(super) fn numbers(&self, numbers: Vec<Value>) -> Result<NumberCheck, SchemaError> {
        let says = "one of the listed numbers".to_owned();
        let keyword = [("enum".to_owned(), Value::from(numbers))];
        let validator = self.of(keyword.into_iter().collect())?;
        Ok(NumberCheck { validator, says, plain_passes: false })
    }
}

/// Which sign the bounds leave. Zero has both.
fn sign(keywords: &Map<String, Value>) -> Sign {
    let bound = |key: &str| keywords.get(key).and_then(Value::as_f64);
    if bound("minimum").is_some_and(|min| min > 0.0)
        || bound("exclusiveMinimum").is_some_and(|min| min >= 0.0)
    {
        Sign::Positive
    } else if bound("maximum").is_some_and(|max| max < 0.0)
        || bound("exclusiveMaximum").is_some_and(|max| max <= 0.0)
    {
        Sign::Negative
    } else {
        Sign::Either
    }
}

fn lists(kinds: &Value, name: &str) -> bool {
    kinds == name || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

fn named(name: &str) -> u8 {
    match name {
        "null" => types::NULL,
        "boolean" => types::TRUE | types::FALSE,
        "number" | "integer" => types::NUMBER,
        "string" => types::STRING,
        "array" => types::ARRAY,
        "object" => types::OBJECT,
        _ => 0,
    }
}

/// A count; `3.0` is one, too.
pub(super) fn count(value: &Value) -> Option<u64> {
    let text = value.as_number()?.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

pub(super) fn invalid(pointer: &str, reason: &str) -> SchemaError {
    SchemaError::Invalid { pointer: pointer.to_owned(), reason: reason.to_owned() }
}
