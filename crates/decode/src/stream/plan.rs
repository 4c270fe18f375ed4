//! Which schemas hold for the same value, and how they hang together.

use super::node::{Node, NodeId};
use super::refusal::SchemaError;

/// How many schemas may hold for one value through one other.
const WIDTH_MAX: usize = 1_024;
/// The same for all schemas together.
const TOTAL_MAX: usize = 200_000;

/// A schema with those it consists of; what an entry consists of comes before it,
/// so the schema itself is the last.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) entries: Vec<Entry>,
}

/// One of the schemas, the others by their place among the entries.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) node: NodeId,
    pub(super) all: Vec<usize>,
    pub(super) any: Vec<Vec<usize>>,
    pub(super) one: Vec<Vec<usize>>,
}

pub(super) fn plans(nodes: &[Node]) -> Result<Vec<Plan>, SchemaError> {
    let mut total = 0;
    (0..nodes.len())
        .map(|id| {
            let mut planner = Planner { nodes, plan: Plan::default(), open: Vec::new() };
            planner.visit(id)?;
            total += planner.plan.entries.len();
            if total > TOTAL_MAX {
                return Err(SchemaError::TooLarge { what: "alternatives", max: TOTAL_MAX });
            }
            Ok(planner.plan)
        })
        .collect()
}

struct Planner<'n> {
    nodes: &'n [Node],
    plan: Plan,
    /// What is being visited, to notice that it is itself a part of it.
    open: Vec<NodeId>,
}

impl Planner<'_> {
    fn visit(&mut self, id: NodeId) -> Result<usize, SchemaError> {
        if let Some(known) = self.plan.entries.iter().position(|entry| entry.node == id) {
            return Ok(known);
        }
        if self.open.contains(&id) {
            return Err(SchemaError::Loop);
        }
        if self.open.len() + self.plan.entries.len() >= WIDTH_MAX {
            return Err(SchemaError::TooLarge {
                what: "alternatives for one value",
                max: WIDTH_MAX,
            });
        }
        self.open.push(id);
        let nodes = self.nodes;
        let mut entry = Entry { node: id, all: Vec::new(), any: Vec::new(), one: Vec::new() };
        if let Some(node) = nodes.get(id) {
            entry.all = self.visit_all(&node.all)?;
            for list in &node.any {
                entry.any.push(self.visit_all(list)?);
            }
            for list in &node.one {
                entry.one.push(self.visit_all(list)?);
            }
        }
        self.open.pop();
        self.plan.entries.push(entry);
        Ok(self.plan.entries.len() - 1)
    }

    fn visit_all(&mut self, ids: &[NodeId]) -> Result<Vec<usize>, SchemaError> {
        ids.iter().map(|id| self.visit(*id)).collect()
    }
}
