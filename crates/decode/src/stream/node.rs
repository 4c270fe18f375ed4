//! A schema as the machine wants it: flat, with what hangs together found beforehand.

use std::collections::BTreeSet;

use jsonschema::Validator;

use super::decimal::Decimal;

/// Which schema of a [`super::StreamSchema`].
pub(super) type NodeId = usize;

/// Allows everything.
pub(super) const ALWAYS: NodeId = 0;
/// Allows nothing.
pub(super) const NEVER: NodeId = 1;

/// What a value may begin as, one bit each.
pub(super) mod types {
    pub(in super::super) const NULL: u8 = 1;
    pub(in super::super) const TRUE: u8 = 2;
    pub(in super::super) const FALSE: u8 = 4;
    pub(in super::super) const NUMBER: u8 = 8;
    pub(in super::super) const STRING: u8 = 16;
    pub(in super::super) const ARRAY: u8 = 32;
    pub(in super::super) const OBJECT: u8 = 64;
    pub(in super::super) const ANY: u8 = 127;

    /// In the order in which people are told.
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

/// One schema. What it says of a kind of value is all in one place.
#[derive(Debug)]
pub(super) struct Node {
    /// As which kinds a value can be valid at all.
    pub(super) types: u8,
    pub(super) text: TextRules,
    pub(super) number: NumberRules,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) array: Option<Box<ArrayRules>>,
    /// Holds for the same value, too: `allOf`, `$ref`, and `enum` beside others.
    pub(super) all: Vec<NodeId>,
    /// Of each list one has to hold.
    pub(super) any: Vec<Vec<NodeId>>,
    /// Of each list exactly one has to hold.
    pub(super) one: Vec<Vec<NodeId>>,
}

impl Node {
    pub(super) fn of(types: u8) -> Self {
        Self {
            types,
            text: TextRules::default(),
            number: NumberRules::default(),
            object: None,
            array: None,
            all: Vec::new(),
            any: Vec::new(),
            one: Vec::new(),
        }
    }
}

/// What a string may be.
#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    /// Sorted; only these.
    pub(super) literals: Option<Vec<String>>,
}

/// A regular expression, matched by the validator so that both mean the same.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) source: String,
    pub(super) check: Validator,
}

/// What a number may be.
#[derive(Debug, Default)]
pub(super) struct NumberRules {
    /// Everything about the finished number, decided by the validator.
    pub(super) check: Option<NumberCheck>,
    /// Only these.
    pub(super) literals: Option<Vec<Decimal>>,
    pub(super) sign: Sign,
}

#[derive(Debug)]
pub(super) struct NumberCheck {
    pub(super) validator: Validator,
    /// In words, for whoever is refused.
    pub(super) says: String,
    /// A number without point and exponent passes without a look.
    pub(super) plain_passes: bool,
}

/// Which of the two a number can be at all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    #[default]
    Either,
    Positive,
    Negative,
}

/// What an object may be.
#[derive(Debug)]
pub(super) struct ObjectRules {
    /// Sorted by name.
    pub(super) properties: Vec<(String, NodeId)>,
    pub(super) patterns: Vec<(Pattern, NodeId)>,
    pub(super) additional: NodeId,
    /// What every key has to be: `propertyNames`, and the list of all keys where there is one.
    pub(super) names: Vec<NodeId>,
    /// The list of all keys, where no other is allowed.
    pub(super) closed: Option<NodeId>,
    pub(super) required: Vec<String>,
    /// What the values of required keys have to satisfy.
    pub(super) demanded: Vec<NodeId>,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ObjectRules {
    /// Works out what the values of required keys have to satisfy, once.
    pub(super) fn demand(&mut self) {
        let mut demanded = BTreeSet::new();
        for name in &self.required {
            self.children(name, |node| {
                demanded.insert(node);
            });
        }
        self.demanded = demanded.into_iter().collect();
    }

    /// The schemas for the value of this key.
    pub(super) fn children(&self, key: &str, mut take: impl FnMut(NodeId)) {
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

/// What an array may be.
#[derive(Debug)]
pub(super) struct ArrayRules {
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ArrayRules {
    pub(super) fn item(&self, index: u64) -> NodeId {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.prefix.get(index))
            .copied()
            .unwrap_or(self.items)
    }
}
