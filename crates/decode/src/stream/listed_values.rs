//! Builds nodes for the listed values of `enum` and `const`.

use serde_json::Value;

use super::decimal_literal::DecimalLiteral;
use super::keyword_rules::KeywordRules;
use super::node_compiler::add_node;
use super::refusal::StreamSchemaError;
use super::schema_node::{ArrayRules, NEVER, NodeId, ObjectRules, SchemaNode, types};

/// A node that allows exactly these values.
///
/// The caller must add the returned node to `nodes`, or put it in place of an existing node. This
/// function adds only the nodes below it. Each listed object or array becomes a node of its own, so
/// that the check can refuse a wrong key or item as soon as it arrives.
///
/// `keyword_rules` builds the check for listed numbers, in the dialect of the schema.
pub(super) fn listed_values_node(
    values: &[Value],
    nodes: &mut Vec<SchemaNode>,
    keyword_rules: &KeywordRules,
) -> Result<SchemaNode, StreamSchemaError> {
    // The node for all values except objects and arrays. With no type at all, it allows no value.
    let mut node = SchemaNode::with_types(0);
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    let mut decimals = Vec::new();
    let mut alternatives = Vec::new();
    for value in values {
        match value {
            // Each of these three types has only one value, so the type is the whole rule.
            Value::Null => node.types |= types::NULL,
            Value::Bool(true) => node.types |= types::TRUE,
            Value::Bool(false) => node.types |= types::FALSE,
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) => {
                decimals.push(DecimalLiteral::from_number(number));
                numbers.push(value.clone());
            }
            Value::Array(_) | Value::Object(_) => {
                let container = container_node(value, nodes, keyword_rules)?;
                alternatives.push(add_node(nodes, container)?);
            }
        }
    }
    if !texts.is_empty() {
        node.types |= types::STRING;
        node.text.literals = Some(sort_texts(texts));
    }
    if !numbers.is_empty() {
        node.types |= types::NUMBER;
        // The check decides about the complete number. The literals refuse a wrong digit earlier.
        node.number.check = Some(keyword_rules.listed_numbers_check(numbers)?);
        node.number.literals = Some(decimals);
    }
    if alternatives.is_empty() {
        return Ok(node);
    }
    // A node without types would be an alternative that no value satisfies.
    if node.types != 0 {
        alternatives.push(add_node(nodes, node)?);
    }
    // The node itself allows every type, because its alternatives restrict the value.
    let mut any_listed = SchemaNode::with_types(types::ANY);
    any_listed.any_of.push(alternatives);
    Ok(any_listed)
}

/// A node that allows exactly these strings. The caller must add it to the nodes.
pub(super) fn listed_texts_node(texts: Vec<String>) -> SchemaNode {
    let mut node = SchemaNode::with_types(types::STRING);
    node.text.literals = Some(sort_texts(texts));
    node
}

/// Sorts texts and removes duplicates, because the check compares a prefix with a sorted list.
fn sort_texts(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

/// Adds a node that allows exactly one value, and returns its id.
fn single_value_node(
    value: &Value,
    nodes: &mut Vec<SchemaNode>,
    keyword_rules: &KeywordRules,
) -> Result<NodeId, StreamSchemaError> {
    let node = listed_values_node(std::slice::from_ref(value), nodes, keyword_rules)?;
    add_node(nodes, node)
}

/// A node that allows exactly one array or object. The caller must add it to `nodes`. This function
/// adds a node for each item or member value.
fn container_node(
    value: &Value,
    nodes: &mut Vec<SchemaNode>,
    keyword_rules: &KeywordRules,
) -> Result<SchemaNode, StreamSchemaError> {
    // `value` is an array or an object, so one of the two branches sets the type.
    let mut container = SchemaNode::with_types(0);
    if let Value::Array(items) = value {
        container.types = types::ARRAY;
        let prefix: Vec<NodeId> = items
            .iter()
            .map(|item| single_value_node(item, nodes, keyword_rules))
            .collect::<Result<_, _>>()?;
        let count = prefix.len() as u64;
        container.array =
            Some(Box::new(ArrayRules { prefix, items: NEVER, min: count, max: Some(count) }));
    }
    if let Value::Object(map) = value {
        container.types = types::OBJECT;
        let mut properties = Vec::new();
        for (name, item) in map {
            properties.push((name.clone(), single_value_node(item, nodes, keyword_rules)?));
        }
        properties.sort_by(|left, right| left.0.cmp(&right.0));
        container.object = Some(Box::new(ObjectRules {
            required: properties.iter().map(|(name, _)| name.clone()).collect(),
            properties,
            patterns: Vec::new(),
            additional: NEVER,
            key_schemas: Vec::new(),
            all_keys: None,
            required_values: Vec::new(),
            min: 0,
            max: None,
        }));
    }
    Ok(container)
}
