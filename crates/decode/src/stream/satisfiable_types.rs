//! Finds the value types with which a schema can be satisfied at all.
//!
//! Some schemas forbid every value of a type: a string with a minimum length above its
//! maximum, an object that requires an impossible member. The check then refuses the
//! first byte of such a value, or the key or comma in front of it.

use super::schema_node::{ArrayRules, NEVER, NodeId, ObjectRules, SchemaNode, types};

/// Limit on the rounds. Only unrealistic schemas need more; they are not narrowed.
const ROUNDS_MAX: usize = 64;

/// Narrows the types of every node to those that some value has.
pub(super) fn narrow_types(nodes: &mut [SchemaNode]) {
    nodes
        .iter_mut()
        .filter_map(|node| node.object.as_mut())
        .for_each(|rules| rules.compute_required_values());
    // Start with no types and add those that are possible. So a schema that only an
    // infinite document could satisfy stays empty.
    let mut found = vec![0_u8; nodes.len()];
    for _ in 0..ROUNDS_MAX {
        let mut grown = false;
        // Most parts have higher ids than the whole, so going backwards takes few rounds.
        for (id, node) in nodes.iter().enumerate().rev() {
            let types = derive_types(node, &found);
            if let Some(own) = found.get_mut(id)
                && *own != types
            {
                *own = types;
                grown = true;
            }
        }
        if !grown {
            for (node, types) in nodes.iter_mut().zip(found) {
                node.types = types;
            }
            return;
        }
    }
}

fn derive_types(node: &SchemaNode, found: &[u8]) -> u8 {
    let of = |id: &NodeId| found.get(*id).copied().unwrap_or(types::ANY);
    let mut kinds = node.types;
    for id in &node.all_of {
        kinds &= of(id);
    }
    for list in node.any_of.iter().chain(&node.one_of) {
        kinds &= list.iter().fold(0, |sum, id| sum | of(id));
    }
    let some = |id: NodeId| of(&id) != 0;
    if node.text.max.is_some_and(|max| max < node.text.min) {
        kinds &= !types::STRING;
    }
    if node.object.as_ref().is_some_and(|rules| !is_object_satisfiable(rules, some)) {
        kinds &= !types::OBJECT;
    }
    if node.array.as_ref().is_some_and(|rules| !is_array_satisfiable(rules, some)) {
        kinds &= !types::ARRAY;
    }
    kinds
}

fn is_object_satisfiable(rules: &ObjectRules, some: impl Fn(NodeId) -> bool) -> bool {
    let most = rules.max.unwrap_or(u64::MAX);
    if most < rules.min || most < rules.required.len() as u64 {
        return false;
    }
    if rules.min > 0 && rules.additional == NEVER && rules.patterns.is_empty() {
        let usable = rules.properties.iter().filter(|(_, node)| some(*node)).count();
        if (usable as u64) < rules.min {
            return false;
        }
    }
    rules.required_values.iter().all(|node| some(*node))
}

fn is_array_satisfiable(rules: &ArrayRules, some: impl Fn(NodeId) -> bool) -> bool {
    if rules.max.is_some_and(|max| max < rules.min) {
        return false;
    }
    let named = rules.prefix.len() as u64;
    rules.prefix.iter().zip(0_u64..).all(|(node, index)| index >= rules.min || some(*node))
        && (rules.min <= named || some(rules.items))
}
