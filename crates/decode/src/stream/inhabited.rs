//! As which kinds of value a schema can be satisfied at all.
//!
//! A string that must be longer than it may be, an object that requires what
//! nothing satisfies: no byte of such a value can be right, so its first one is
//! refused, or the key or comma that leads to it.

use super::node::{ArrayRules, NEVER, Node, NodeId, ObjectRules, types};

/// More rounds only for schemas that nobody writes; then what is left counts as satisfiable.
const ROUNDS_MAX: usize = 64;

/// Narrows the types of every node to those that some value has.
pub(super) fn narrow(nodes: &mut [Node]) {
    nodes.iter_mut().filter_map(|node| node.object.as_mut()).for_each(|rules| rules.demand());
    // What is derived grows from nothing, so a schema that only recursion could
    // satisfy stays empty: a document ends.
    let mut found = vec![0_u8; nodes.len()];
    for _ in 0..ROUNDS_MAX {
        let mut grown = false;
        // Parts come behind the whole, mostly, so backwards it takes few rounds.
        for (id, node) in nodes.iter().enumerate().rev() {
            let types = derive(node, &found);
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

fn derive(node: &Node, found: &[u8]) -> u8 {
    let of = |id: &NodeId| found.get(*id).copied().unwrap_or(types::ANY);
    let mut kinds = node.types;
    for id in &node.all {
        kinds &= of(id);
    }
    for list in node.any.iter().chain(&node.one) {
        kinds &= list.iter().fold(0, |sum, id| sum | of(id));
    }
    let some = |id: NodeId| of(&id) != 0;
    if node.text.max.is_some_and(|max| max < node.text.min) {
        kinds &= !types::STRING;
    }
    if node.object.as_ref().is_some_and(|rules| !object(rules, some)) {
        kinds &= !types::OBJECT;
    }
    if node.array.as_ref().is_some_and(|rules| !array(rules, some)) {
        kinds &= !types::ARRAY;
    }
    kinds
}

fn object(rules: &ObjectRules, some: impl Fn(NodeId) -> bool) -> bool {
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
    rules.demanded.iter().all(|node| some(*node))
}

fn array(rules: &ArrayRules, some: impl Fn(NodeId) -> bool) -> bool {
    if rules.max.is_some_and(|max| max < rules.min) {
        return false;
    }
    let named = rules.prefix.len() as u64;
    rules.prefix.iter().zip(0_u64..).all(|(node, index)| index >= rules.min || some(*node))
        && (rules.min <= named || some(rules.items))
}
