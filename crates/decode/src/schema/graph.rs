//! Estimates the cost of a validation before it runs.
//!
//! The validator has no budget of its own. So each schema is turned into a graph once.
//! Before a validation, a walk over the graph and the value counts the steps that the
//! validator would take if it never stopped early. The walk knows where schemas apply,
//! but not what they require.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;
use super::graph_builder::GraphBuilder;
use crate::limits::{VALIDATION_DEPTH_MAX, VALIDATION_STEPS_MAX};

/// All subschemas of a schema, by number; the first is the root.
#[derive(Debug, Default)]
pub(super) struct SchemaGraph {
    pub(super) schemas: Vec<AppliedSchemas>,
    pub(super) has_choices: bool,
}

/// The subschemas that one schema applies to a value and to its parts.
#[derive(Debug, Default)]
pub(super) struct AppliedSchemas {
    /// The JSON pointer of the schema in the root.
    pub(super) pointer: String,
    /// Applied to the same value.
    pub(super) to_same_value: Vec<usize>,
    /// Applied to the member with this name.
    pub(super) to_named_member: BTreeMap<String, usize>,
    /// Applied to any member.
    pub(super) to_any_member: Vec<usize>,
    /// Applied to any item.
    pub(super) to_any_item: Vec<usize>,
}

/// The cost of validating a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValidationCost {
    steps: usize,
    bytes: usize,
    pub(super) depth: usize,
}

impl ValidationCost {
    /// Whether copying the value at every step would cost too much.
    pub(super) fn is_high(self) -> bool {
        self.steps.saturating_mul(self.bytes) > 1 << 28
    }
}

/// The validation would take too many steps.
#[derive(Debug)]
pub(super) struct TooCostly;

impl SchemaGraph {
    pub(super) fn build(root: &Value) -> Result<Self, SchemaError> {
        let graph = GraphBuilder::build_graph(root)?;
        match graph.find_cycle() {
            Some(pointer) => Err(SchemaError::Endless(pointer)),
            None => Ok(graph),
        }
    }

    /// Whether the schema contains `anyOf` or `oneOf`.
    pub(super) fn has_choices(&self) -> bool {
        self.has_choices
    }

    /// A bound on how deep the schemas nest: at most the number of schemas.
    pub(super) fn depth_max(&self) -> usize {
        self.schemas.len()
    }

    /// Counts the steps to validate a value.
    pub(super) fn validation_cost(&self, value: &Value) -> Result<ValidationCost, TooCostly> {
        let mut price =
            ValidationCost { bytes: approximate_size(value), ..ValidationCost::default() };
        // The schema, the value, and the depth.
        let mut open = vec![(0, value, 1)];
        while let Some((schema, value, depth)) = open.pop() {
            price.steps += 1;
            price.depth = price.depth.max(depth);
            if price.steps > VALIDATION_STEPS_MAX || depth > VALIDATION_DEPTH_MAX {
                return Err(TooCostly);
            }
            let Some(applied) = self.schemas.get(schema) else { continue };
            open.extend(applied.to_same_value.iter().map(|next| (*next, value, depth + 1)));
            match value {
                Value::Object(map)
                    if !applied.to_named_member.is_empty() || !applied.to_any_member.is_empty() =>
                {
                    for (key, value) in map {
                        let own = applied.to_named_member.get(key);
                        let all = own.into_iter().chain(&applied.to_any_member);
                        open.extend(all.map(|next| (*next, value, depth + 1)));
                    }
                }
                Value::Array(items) => {
                    for item in items {
                        open.extend(
                            applied.to_any_item.iter().map(|next| (*next, item, depth + 1)),
                        );
                    }
                }
                _ => {}
            }
        }
        Ok(price)
    }

    /// The pointer of a schema that applies itself to the same value, if there is one.
    fn find_cycle(&self) -> Option<String> {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            New,
            Open,
            Done,
        }
        let mut marks = vec![VisitState::New; self.schemas.len()];
        for start in 0..self.schemas.len() {
            let mut open = vec![(start, false)];
            while let Some((at, left)) = open.pop() {
                let mark = marks.get_mut(at)?;
                if left {
                    *mark = VisitState::Done;
                    continue;
                }
                if *mark != VisitState::New {
                    continue;
                }
                *mark = VisitState::Open;
                open.push((at, true));
                for next in &self.schemas.get(at)?.to_same_value {
                    match marks.get(*next) {
                        Some(VisitState::Open) => {
                            return Some(self.schemas.get(*next)?.pointer.clone());
                        }
                        Some(VisitState::New) => open.push((*next, false)),
                        _ => {}
                    }
                }
            }
        }
        None
    }
}

/// The approximate size of a value in memory.
fn approximate_size(value: &Value) -> usize {
    match value {
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => 16 + items.iter().map(approximate_size).sum::<usize>(),
        Value::Object(map) => {
            16 + map.iter().map(|(key, value)| key.len() + approximate_size(value)).sum::<usize>()
        }
        _ => 16,
    }
}
