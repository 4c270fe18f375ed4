//! Lists, for each schema, the schemas that apply to the same value and their relations.

use super::refusal::StreamSchemaError;
use super::schema_node::{NodeId, SchemaNode};

/// How many schemas one schema may apply to one value.
const PLAN_ENTRIES_MAX: usize = 1_024;
/// How many entries the plans of all schemas may have together.
const ALL_PLAN_ENTRIES_MAX: usize = 200_000;

/// A schema and the schemas that it consists of. The parts of an entry come before it, so
/// the schema itself is the last entry.
#[derive(Debug, Default)]
pub(super) struct EvaluationPlan {
    pub(super) entries: Vec<PlanEntry>,
}

/// One of the schemas. It refers to other entries by index.
#[derive(Debug)]
pub(super) struct PlanEntry {
    pub(super) node: NodeId,
    pub(super) all_of: Vec<usize>,
    pub(super) any_of: Vec<Vec<usize>>,
    pub(super) one_of: Vec<Vec<usize>>,
}

pub(super) fn build_plans(nodes: &[SchemaNode]) -> Result<Vec<EvaluationPlan>, StreamSchemaError> {
    let mut total = 0;
    (0..nodes.len())
        .map(|id| {
            let mut planner =
                EvaluationPlanner { nodes, plan: EvaluationPlan::default(), visiting: Vec::new() };
            planner.visit(id)?;
            total += planner.plan.entries.len();
            if total > ALL_PLAN_ENTRIES_MAX {
                return Err(StreamSchemaError::TooLarge {
                    what: "alternatives",
                    max: ALL_PLAN_ENTRIES_MAX,
                });
            }
            Ok(planner.plan)
        })
        .collect()
}

struct EvaluationPlanner<'n> {
    nodes: &'n [SchemaNode],
    plan: EvaluationPlan,
    /// The schemas that are being visited, to find one that contains itself.
    visiting: Vec<NodeId>,
}

impl EvaluationPlanner<'_> {
    fn visit(&mut self, id: NodeId) -> Result<usize, StreamSchemaError> {
        if let Some(index) = self.plan.entries.iter().position(|entry| entry.node == id) {
            return Ok(index);
        }
        if self.visiting.contains(&id) {
            return Err(StreamSchemaError::SelfReference);
        }
        if self.visiting.len() + self.plan.entries.len() >= PLAN_ENTRIES_MAX {
            return Err(StreamSchemaError::TooLarge {
                what: "alternatives for one value",
                max: PLAN_ENTRIES_MAX,
            });
        }
        self.visiting.push(id);
        let nodes = self.nodes;
        let mut entry =
            PlanEntry { node: id, all_of: Vec::new(), any_of: Vec::new(), one_of: Vec::new() };
        if let Some(node) = nodes.get(id) {
            entry.all_of = self.visit_all(&node.all_of)?;
            for list in &node.any_of {
                entry.any_of.push(self.visit_all(list)?);
            }
            for list in &node.one_of {
                entry.one_of.push(self.visit_all(list)?);
            }
        }
        self.visiting.pop();
        self.plan.entries.push(entry);
        Ok(self.plan.entries.len() - 1)
    }

    fn visit_all(&mut self, ids: &[NodeId]) -> Result<Vec<usize>, StreamSchemaError> {
        ids.iter().map(|id| self.visit(*id)).collect()
    }
}
