//! Builds nodes for listed values: `enum` and `const`.

use serde_json::Value;

use super::decimal_literal::DecimalLiteral;
use super::keyword_rules::KeywordRules;
use super::node_compiler::add_node;
use super::refusal::StreamSchemaError;
use super::schema_node::{ArrayRules, NEVER, NodeId, ObjectRules, SchemaNode, types};

/// A node that allows exactly these values. Listed objects and arrays become separate
/// schemas, so that the check can refuse a wrong part of them early.
pub(super) fn listed_values_node(
    values: &[Value],
    nodes: &mut Vec<SchemaNode>,
    leaves: &KeywordRules,
) -> Result<SchemaNode, StreamSchemaError> {
    let mut node = SchemaNode::with_types(0);
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    let mut decimals = Vec::new();
    let mut parts = Vec::new();
    for value in values {
        match value {
            Value::Null => node.types |= types::NULL,
            Value::Bool(true) => node.types |= types::TRUE,
            Value::Bool(false) => node.types |= types::FALSE,
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) => {
                decimals.push(DecimalLiteral::from_number(number));
                numbers.push(value.clone());
            }
            Value::Array(_) | Value::Object(_) => {
                let part = container_node(value, nodes, leaves)?;
                parts.push(add_node(nodes, part)?);
            }
        }
    }
    if !texts.is_empty() {
        node.types |= types::STRING;
        node.text.literals = Some(sort_texts(texts));
    }
    if !numbers.is_empty() {
        node.types |= types::NUMBER;
        node.number.check = Some(leaves.listed_numbers_check(numbers)?);
        node.number.literals = Some(decimals);
    }
    if parts.is_empty() {
        return Ok(node);
    }
    if node.types != 0 {
        parts.push(add_node(nodes, node)?);
    }
    let mut either = SchemaNode::with_types(types::ANY);
    either.any_of.push(parts);
    Ok(either)
}

/// A node that allows exactly these strings.
pub(super) fn listed_texts_node(texts: Vec<String>) -> SchemaNode {
    let mut node = SchemaNode::with_types(types::STRING);
    node.text.literals = Some(sort_texts(texts));
    node
}

fn sort_texts(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

fn single_value_node(
    value: &Value,
    nodes: &mut Vec<SchemaNode>,
    leaves: &KeywordRules,
) -> Result<NodeId, StreamSchemaError> {
    let part = listed_values_node(std::slice::from_ref(value), nodes, leaves)?;
    add_node(nodes, part)
}

fn container_node(
    value: &Value,
    nodes: &mut Vec<SchemaNode>,
    leaves: &KeywordRules,
) -> Result<SchemaNode, StreamSchemaError> {
    let mut made = SchemaNode::with_types(0);
    if let Value::Array(items) = value {
        made.types = types::ARRAY;
        let prefix: Vec<NodeId> = items
            .iter()
            .map(|item| single_value_node(item, nodes, leaves))
            .collect::<Result<_, _>>()?;
        let count = prefix.len() as u64;
        made.array =
            Some(Box::new(ArrayRules { prefix, items: NEVER, min: count, max: Some(count) }));
    }
    if let Value::Object(map) = value {
        made.types = types::OBJECT;
        let mut properties = Vec::new();
        for (name, item) in map {
            properties.push((name.clone(), single_value_node(item, nodes, leaves)?));
        }
        properties.sort_by(|left, right| left.0.cmp(&right.0));
        made.object = Some(Box::new(ObjectRules {
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
    Ok(made)
}
