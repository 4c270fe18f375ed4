//! Values that are listed one by one: `enum` and `const`.

use serde_json::Value;

use super::compile::add;
use super::decimal::Decimal;
use super::leaf::Leaves;
use super::node::{ArrayRules, NEVER, Node, NodeId, ObjectRules, types};
use super::refusal::SchemaError;

/// A node that allows exactly these values. Objects and arrays become schemas of
/// their own, so that a part of one decides as early as a part of any.
pub(super) fn node(
    values: &[Value],
    nodes: &mut Vec<Node>,
    leaves: &Leaves,
) -> Result<Node, SchemaError> {
    let mut node = Node::of(0);
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
                decimals.push(Decimal::of(number));
                numbers.push(value.clone());
            }
            Value::Array(_) | Value::Object(_) => {
                let part = structure(value, nodes, leaves)?;
                parts.push(add(nodes, part)?);
            }
        }
    }
    if !texts.is_empty() {
        node.types |= types::STRING;
        node.text.literals = Some(sorted(texts));
    }
    if !numbers.is_empty() {
        node.types |= types::NUMBER;
        node.number.check = Some(leaves.numbers(numbers)?);
        node.number.literals = Some(decimals);
    }
    if parts.is_empty() {
        return Ok(node);
    }
    if node.types != 0 {
        parts.push(add(nodes, node)?);
    }
    let mut either = Node::of(types::ANY);
    either.any.push(parts);
    Ok(either)
}

/// A node that allows exactly these strings.
pub(super) fn texts(texts: Vec<String>) -> Node {
    let mut node = Node::of(types::STRING);
    node.text.literals = Some(sorted(texts));
    node
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

fn one(value: &Value, nodes: &mut Vec<Node>, leaves: &Leaves) -> Result<NodeId, SchemaError> {
    let part = node(std::slice::from_ref(value), nodes, leaves)?;
    add(nodes, part)
}

fn structure(value: &Value, nodes: &mut Vec<Node>, leaves: &Leaves) -> Result<Node, SchemaError> {
    let mut made = Node::of(0);
    if let Value::Array(items) = value {
        made.types = types::ARRAY;
        let prefix: Vec<NodeId> =
            items.iter().map(|item| one(item, nodes, leaves)).collect::<Result<_, _>>()?;
        let count = prefix.len() as u64;
        made.array =
            Some(Box::new(ArrayRules { prefix, items: NEVER, min: count, max: Some(count) }));
    }
    if let Value::Object(map) = value {
        made.types = types::OBJECT;
        let mut properties = Vec::new();
        for (name, item) in map {
            properties.push((name.clone(), one(item, nodes, leaves)?));
        }
        properties.sort_by(|left, right| left.0.cmp(&right.0));
        made.object = Some(Box::new(ObjectRules {
            required: properties.iter().map(|(name, _)| name.clone()).collect(),
            properties,
            patterns: Vec::new(),
            additional: NEVER,
            names: Vec::new(),
            closed: None,
            demanded: Vec::new(),
            min: 0,
            max: None,
        }));
    }
    Ok(made)
}
