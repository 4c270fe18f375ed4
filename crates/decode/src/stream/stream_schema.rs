//! A schema that is compiled once for the streaming check of many documents.

use serde_json::Value;

use super::StreamCheck;
use super::evaluation_plan::{EvaluationPlan, build_plans};
use super::keyword_rules::KeywordRules;
use super::listed_values;
use super::node_compiler::{CompiledNodes, add_node, compile_nodes};
use super::refusal::StreamSchemaError;
use super::satisfiable_types;
use super::schema_node::{NodeId, SchemaNode, types};

/// A schema, compiled once for the streaming check of many documents.
#[derive(Debug)]
pub struct StreamSchema {
    pub(super) nodes: Vec<SchemaNode>,
    pub(super) plans: Vec<EvaluationPlan>,
    pub(super) root: NodeId,
}

impl StreamSchema {
    /// Compiles a JSON Schema (2020-12). Fetches nothing.
    pub fn compile(schema: &Value) -> Result<Self, StreamSchemaError> {
        let CompiledNodes { nodes, root, listed_values: listed } = compile_nodes(schema)?;
        let plans = build_plans(&nodes)?;
        // Must come after `plans`: the validator would not return for a circular schema.
        KeywordRules::compile_validator(schema)?;
        let mut compiled = Self { nodes, plans, root };
        compiled.narrow_lists(&KeywordRules::new(schema), &listed)?;
        compiled.forbid_impossible_objects();
        satisfiable_types::narrow_types(&mut compiled.nodes);
        compiled.list_all_keys()?;
        compiled.rebuild_plans()?;
        Ok(compiled)
    }

    fn rebuild_plans(&mut self) -> Result<(), StreamSchemaError> {
        self.plans = build_plans(&self.nodes)?;
        Ok(())
    }

    /// Whether the schema of this node allows a value.
    fn allows(&self, node: NodeId, value: &Value) -> bool {
        let mut stream = StreamCheck::at_node(self, node);
        stream.feed(value.to_string().as_bytes()).and_then(|()| stream.finish()).is_ok()
    }

    /// Removes listed values that other keywords of the same schema forbid. Afterwards the
    /// list alone decides, and a prefix without a possible value is refused at once.
    fn narrow_lists(
        &mut self,
        leaves: &KeywordRules,
        listed: &[(NodeId, Vec<Value>)],
    ) -> Result<(), StreamSchemaError> {
        let mut narrowed = Vec::new();
        for (id, values) in listed {
            let values: Vec<Value> =
                values.iter().filter(|value| self.allows(*id, value)).cloned().collect();
            narrowed
                .push((*id, listed_values::listed_values_node(&values, &mut self.nodes, leaves)?));
        }
        for (id, node) in narrowed {
            if let Some(slot) = self.nodes.get_mut(id) {
                *slot = node;
            }
        }
        self.rebuild_plans()
    }

    /// Forbids objects for a schema whose `propertyNames` refuses a required key.
    fn forbid_impossible_objects(&mut self) {
        let refused: Vec<NodeId> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| {
                node.object.as_ref().is_some_and(|rules| {
                    let mut pairs = rules
                        .key_schemas
                        .iter()
                        .flat_map(|id| rules.required.iter().map(move |name| (*id, name)));
                    !pairs.all(|(id, name)| self.allows(id, &Value::from(name.as_str())))
                })
            })
            .map(|(id, _)| id)
            .collect();
        for id in refused {
            if let Some(node) = self.nodes.get_mut(id) {
                node.types &= !types::OBJECT;
            }
        }
    }

    /// For each schema that allows only certain keys, adds the list of all its keys.
    fn list_all_keys(&mut self) -> Result<(), StreamSchemaError> {
        let empty = |id: NodeId| self.nodes.get(id).is_some_and(|node| node.types == 0);
        let mut lists = Vec::new();
        for (id, node) in self.nodes.iter().enumerate() {
            let Some(rules) = &node.object else { continue };
            let named: Vec<&String> = if empty(rules.additional) && rules.patterns.is_empty() {
                rules.properties.iter().map(|(name, _)| name).collect()
            } else if let Some(names) =
                rules.key_schemas.iter().find_map(|id| self.listed_texts(*id))
            {
                names.iter().collect()
            } else {
                continue;
            };
            let usable = |name: &str| {
                let mut usable = true;
                rules.visit_value_schemas(name, |node| usable &= !empty(node));
                usable && rules.key_schemas.iter().all(|id| self.allows(*id, &Value::from(name)))
            };
            lists.push((id, named.into_iter().filter(|name| usable(name)).cloned().collect()));
        }
        for (id, names) in lists {
            let list = add_node(&mut self.nodes, listed_values::listed_texts_node(names))?;
            if let Some(rules) = self.nodes.get_mut(id).and_then(|node| node.object.as_mut()) {
                rules.all_keys = Some(list);
                rules.key_schemas.push(list);
            }
        }
        Ok(())
    }

    /// The strings that a schema lists, if it allows no other strings.
    fn listed_texts(&self, id: NodeId) -> Option<&[String]> {
        self.nodes.get(id)?.text.literals.as_deref()
    }
}
