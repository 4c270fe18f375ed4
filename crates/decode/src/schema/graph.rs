//! Which schemas apply to what, as far as cost goes.
//!
//! The validator has no budget of its own. So the schemas are laid out as a graph
//! once, and before a value is validated the graph is walked with it in counted steps:
//! as many as the validator would take that never gives up early. The walk knows
//! where schemas apply, not what they demand.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;
use super::layout::Layout;
use crate::limits::{NESTED_MAX, STEPS_MAX};

/// All schemas within one, by number; the first is the root.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) schemas: Vec<Applied>,
    pub(super) has_choices: bool,
}

/// What one schema applies.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Where it is in the root.
    pub(super) pointer: String,
    /// Applied to the same value.
    pub(super) same: Vec<usize>,
    /// Applied to the member of that name.
    pub(super) member: BTreeMap<String, usize>,
    /// Applied to any member.
    pub(super) members: Vec<usize>,
    /// Applied to any item.
    pub(super) items: Vec<usize>,
}

/// What it costs to validate a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Price {
    steps: usize,
    bytes: usize,
    pub(super) depth: usize,
}

impl Price {
    /// Whether to copy the value at every step would be too much.
    pub(super) fn is_much(self) -> bool {
        self.steps.saturating_mul(self.bytes) > 1 << 28
    }
}

/// The validation would take too many steps.
#[derive(Debug)]
pub(super) struct TooCostly;

impl Graph {
    pub(super) fn build(root: &Value) -> Result<Self, SchemaError> {
        let graph = Layout::lay_out(root)?;
        match graph.find_circle() {
            Some(pointer) => Err(SchemaError::Endless(pointer)),
            None => Ok(graph),
        }
    }

    /// Whether one of several schemas may be chosen.
    pub(super) fn has_choices(&self) -> bool {
        self.has_choices
    }

    /// How deep the schemas may lead into one another: no deeper than there are any.
    pub(super) fn depth(&self) -> usize {
        self.schemas.len()
    }

    /// Walks the schemas with a value.
    pub(super) fn price(&self, value: &Value) -> Result<Price, TooCostly> {
        let mut price = Price { bytes: size(value), ..Price::default() };
        // The schema, the value, and how deep that is.
        let mut open = vec![(0, value, 1)];
        while let Some((schema, value, depth)) = open.pop() {
            price.steps += 1;
            price.depth = price.depth.max(depth);
            if price.steps > STEPS_MAX || depth > NESTED_MAX {
                return Err(TooCostly);
            }
            let Some(applied) = self.schemas.get(schema) else { continue };
            open.extend(applied.same.iter().map(|next| (*next, value, depth + 1)));
            match value {
                Value::Object(map) if !applied.member.is_empty() || !applied.members.is_empty() => {
                    for (key, value) in map {
                        let own = applied.member.get(key);
                        let all = own.into_iter().chain(&applied.members);
                        open.extend(all.map(|next| (*next, value, depth + 1)));
                    }
                }
                Value::Array(items) => {
                    for item in items {
                        open.extend(applied.items.iter().map(|next| (*next, item, depth + 1)));
                    }
                }
                _ => {}
            }
        }
        Ok(price)
    }

    /// A schema that applies itself to the same value.
    fn find_circle(&self) -> Option<String> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.schemas.len()];
        for start in 0..self.schemas.len() {
            let mut open = vec![(start, false)];
            while let Some((at, left)) = open.pop() {
                let mark = marks.get_mut(at)?;
                if left {
                    *mark = Mark::Done;
                    continue;
                }
                if *mark != Mark::New {
                    continue;
                }
                *mark = Mark::Open;
                open.push((at, true));
                for next in &self.schemas.get(at)?.same {
                    match marks.get(*next) {
                        Some(Mark::Open) => return Some(self.schemas.get(*next)?.pointer.clone()),
                        Some(Mark::New) => open.push((*next, false)),
                        _ => {}
                    }
                }
            }
        }
        None
    }
}

/// Values and bytes of texts, roughly.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 16 + text.len(),
        Value::Array(items) => 16 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => {
            16 + map.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>()
        }
        _ => 16,
    }
}
