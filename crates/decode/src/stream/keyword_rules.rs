//! Compiles the keywords for strings and numbers, with validators for complete values.

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::refusal::StreamSchemaError;
use super::schema_node::{NumberCheck, NumberRules, NumberSign, PatternRule, TextRules, types};

/// Builds rules in the dialect (`$schema`) of one schema.
pub(super) struct KeywordRules {
    dialect: Option<Value>,
}

impl KeywordRules {
    pub(super) fn new(schema: &Value) -> Self {
        Self { dialect: schema.get("$schema").cloned() }
    }

    /// Whether keywords next to a reference are ignored, as in the drafts up to 7.
    pub(super) fn ignores_siblings_of_references(&self) -> bool {
        let name = self.dialect.as_ref().and_then(Value::as_str).unwrap_or("");
        name.contains("/draft-0")
    }

    /// Compiles the validator of a schema, or reports why it is invalid. Fetches nothing.
    pub(super) fn compile_validator(schema: &Value) -> Result<Validator, StreamSchemaError> {
        jsonschema::options()
            .build(schema)
            .map_err(|error| invalid_schema(error.instance_path().as_str(), &error.to_string()))
    }

    fn compile_keywords(
        &self,
        mut keywords: Map<String, Value>,
    ) -> Result<Validator, StreamSchemaError> {
        if let Some(dialect) = &self.dialect {
            keywords.insert("$schema".to_owned(), dialect.clone());
        }
        Self::compile_validator(&Value::Object(keywords))
    }

    pub(super) fn type_mask(map: &Map<String, Value>) -> u8 {
        match map.get("type") {
            Some(Value::String(name)) => type_bit(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).fold(0, |sum, name| sum | type_bit(name))
            }
            _ => types::ANY,
        }
    }

    pub(super) fn text_rules(
        &self,
        map: &Map<String, Value>,
    ) -> Result<TextRules, StreamSchemaError> {
        Ok(TextRules {
            min: map.get("minLength").and_then(read_count).unwrap_or(0),
            max: map.get("maxLength").and_then(read_count),
            pattern: map
                .get("pattern")
                .and_then(Value::as_str)
                .map(|pattern| self.pattern_rule(pattern))
                .transpose()?,
            literals: None,
        })
    }

    pub(super) fn pattern_rule(&self, source: &str) -> Result<PatternRule, StreamSchemaError> {
        let keyword = [("pattern".to_owned(), Value::from(source))];
        Ok(PatternRule {
            source: source.to_owned(),
            check: self.compile_keywords(keyword.into_iter().collect())?,
        })
    }

    pub(super) fn number_rules(
        &self,
        map: &Map<String, Value>,
    ) -> Result<NumberRules, StreamSchemaError> {
        const KEYS: [&str; 5] =
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let mut keywords: Map<String, Value> = KEYS
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone())))
            .collect();
        let plain_passes = keywords.is_empty();
        let mut rules: Vec<String> =
            keywords.iter().map(|(key, value)| format!("{key} {value}")).collect();
        if let Some(kinds) = map.get("type")
            && contains_type(kinds, "integer")
            && !contains_type(kinds, "number")
        {
            keywords.insert("type".to_owned(), Value::from("integer"));
            rules.insert(0, "an integer".to_owned());
        }
        if keywords.is_empty() {
            return Ok(NumberRules::default());
        }
        let sign = allowed_sign(&keywords);
        let says = rules.join(", ");
        let check = NumberCheck {
            validator: self.compile_keywords(keywords)?,
            rules_text: says,
            plain_integers_pass: plain_passes,
        };
        Ok(NumberRules { check: Some(check), literals: None, sign })
    }

    /// A check for the numbers of a list, with the comparison of the validator.
    pub(super) fn listed_numbers_check(
        &self,
        numbers: Vec<Value>,
    ) -> Result<NumberCheck, StreamSchemaError> {
        let says = "one of the listed numbers".to_owned();
        let keyword = [("enum".to_owned(), Value::from(numbers))];
        let validator = self.compile_keywords(keyword.into_iter().collect())?;
        Ok(NumberCheck { validator, rules_text: says, plain_integers_pass: false })
    }
}

/// The signs that the bounds allow. Zero can have either sign.
fn allowed_sign(keywords: &Map<String, Value>) -> NumberSign {
    let bound = |key: &str| keywords.get(key).and_then(Value::as_f64);
    if bound("minimum").is_some_and(|min| min > 0.0)
        || bound("exclusiveMinimum").is_some_and(|min| min >= 0.0)
    {
        NumberSign::Positive
    } else if bound("maximum").is_some_and(|max| max < 0.0)
        || bound("exclusiveMaximum").is_some_and(|max| max <= 0.0)
    {
        NumberSign::Negative
    } else {
        NumberSign::Either
    }
}

fn contains_type(kinds: &Value, name: &str) -> bool {
    kinds == name || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

fn type_bit(name: &str) -> u8 {
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

/// Reads a count; `3.0` is valid too.
pub(super) fn read_count(value: &Value) -> Option<u64> {
    let text = value.as_number()?.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

pub(super) fn invalid_schema(pointer: &str, reason: &str) -> StreamSchemaError {
    StreamSchemaError::Invalid { pointer: pointer.to_owned(), reason: reason.to_owned() }
}
