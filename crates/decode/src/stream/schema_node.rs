//! The compiled form of a schema: flat nodes with their relations.

use std::collections::BTreeSet;

use jsonschema::Validator;

use super::decimal_literal::DecimalLiteral;

/// The index of a node in a [`super::StreamSchema`].
pub(super) type NodeId = usize;

/// The node that allows every value.
pub(super) const ALWAYS: NodeId = 0;
/// The node that allows no value.
pub(super) const NEVER: NodeId = 1;

/// The types that the first byte of a value shows, one bit each.
pub(super) mod types {
    pub(in super::super) const NULL: u8 = 1;
    pub(in super::super) const TRUE: u8 = 2;
    pub(in super::super) const FALSE: u8 = 4;
    pub(in super::super) const NUMBER: u8 = 8;
    pub(in super::super) const STRING: u8 = 16;
    pub(in super::super) const ARRAY: u8 = 32;
    pub(in super::super) const OBJECT: u8 = 64;
    pub(in super::super) const ANY: u8 = 127;

    /// The names, in the order of messages.
    pub(in super::super) const NAMES: [(u8, &str); 7] = [
        (OBJECT, "an object"),
        (ARRAY, "an array"),
        (STRING, "a string"),
        (NUMBER, "a number"),
        (TRUE, "`true`"),
        (FALSE, "`false`"),
        (NULL, "`null`"),
    ];
}

/// One schema, with its rules grouped by value type.
#[derive(Debug)]
pub(super) struct SchemaNode {
    /// The types that a valid value can have.
    pub(super) types: u8,
    pub(super) text: TextRules,
    pub(super) number: NumberRules,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) array: Option<Box<ArrayRules>>,
    /// Schemas that the same value must satisfy too: `allOf`, `$ref`, and `enum` next to
    /// other keywords.
    pub(super) all_of: Vec<NodeId>,
    /// The value must satisfy at least one schema of each list.
    pub(super) any_of: Vec<Vec<NodeId>>,
    /// The value must satisfy exactly one schema of each list.
    pub(super) one_of: Vec<Vec<NodeId>>,
}

impl SchemaNode {
    pub(super) fn with_types(types: u8) -> Self {
        Self {
            types,
            text: TextRules::default(),
            number: NumberRules::default(),
            object: None,
            array: None,
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
        }
    }
}

/// The rules for a string.
#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<PatternRule>,
    /// The only allowed strings, sorted.
    pub(super) literals: Option<Vec<String>>,
}

/// A regular expression. The validator matches it, so that both checks agree.
#[derive(Debug)]
pub(super) struct PatternRule {
    pub(super) source: String,
    pub(super) check: Validator,
}

/// The rules for a number.
#[derive(Debug, Default)]
pub(super) struct NumberRules {
    /// All rules for the complete number, checked by the validator.
    pub(super) check: Option<NumberCheck>,
    /// The only allowed numbers.
    pub(super) literals: Option<Vec<DecimalLiteral>>,
    pub(super) sign: NumberSign,
}

#[derive(Debug)]
pub(super) struct NumberCheck {
    pub(super) validator: Validator,
    /// The rules as text, for error messages.
    pub(super) rules_text: String,
    /// A number without a point and an exponent always passes.
    pub(super) plain_integers_pass: bool,
}

/// The signs that a number can have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberSign {
    #[default]
    Either,
    Positive,
    Negative,
}

/// The rules for an object.
#[derive(Debug)]
pub(super) struct ObjectRules {
    /// Sorted by name.
    pub(super) properties: Vec<(String, NodeId)>,
    pub(super) patterns: Vec<(PatternRule, NodeId)>,
    pub(super) additional: NodeId,
    /// Schemas for every key: `propertyNames`, and the list of all keys if there is one.
    pub(super) key_schemas: Vec<NodeId>,
    /// The list of all keys, if no other key is allowed.
    pub(super) all_keys: Option<NodeId>,
    pub(super) required: Vec<String>,
    /// The schemas that the values of required keys must satisfy.
    pub(super) required_values: Vec<NodeId>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ObjectRules {
    /// Computes `required_values` from the required keys.
    pub(super) fn compute_required_values(&mut self) {
        let mut demanded = BTreeSet::new();
        for name in &self.required {
            self.visit_value_schemas(name, |node| {
                demanded.insert(node);
            });
        }
        self.required_values = demanded.into_iter().collect();
    }

    /// Calls `take` with each schema for the value of a key.
    pub(super) fn visit_value_schemas(&self, key: &str, mut take: impl FnMut(NodeId)) {
        let mut named = false;
        if let Ok(at) = self.properties.binary_search_by(|(name, _)| name.as_str().cmp(key))
            && let Some((_, node)) = self.properties.get(at)
        {
            named = true;
            take(*node);
        }
        if !self.patterns.is_empty() {
            let text = serde_json::Value::from(key);
            for (pattern, node) in &self.patterns {
                if pattern.check.is_valid(&text) {
                    named = true;
                    take(*node);
                }
            }
        }
        if !named {
            take(self.additional);
        }
    }
}

/// The rules for an array.
#[derive(Debug)]
pub(super) struct ArrayRules {
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ArrayRules {
    pub(super) fn item_schema(&self, index: u64) -> NodeId {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index))
            .copied()
            .unwrap_or(self.items)
    }
}
