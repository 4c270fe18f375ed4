//! A schema, made ready once for many documents.

use serde_json::Value;

use super::Stream;
use super::compile::{Compiled, add, compile};
use super::inhabited;
use super::leaf::Leaves;
use super::literal;
use super::node::{Node, NodeId, types};
use super::plan::{Plan, plans};
use super::refusal::SchemaError;

/// A schema, made ready once for many documents.
#[derive(Debug)]
pub struct StreamSchema {
    pub(super) nodes: Vec<Node>,
    pub(super) plans: Vec<Plan>,
    pub(super) root: NodeId,
}

impl StreamSchema {
    /// Makes a JSON Schema (2020-12) ready. Nothing is fetched.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let Compiled { nodes, root, listed } = compile(schema)?;
        let plans = plans(&nodes)?;
        // Only now: a schema that goes in circles would not come back from there.
        Leaves::validator(schema)?;
        let mut made = Self { nodes, plans, root };
        made.narrow_lists(&Leaves::new(schema), &listed)?;
        made.refuse_names();
        inhabited::narrow(&mut made.nodes);
        made.close_objects()?;
        made.replan()?;
        Ok(made)
    }

    fn replan(&mut self) -> Result<(), SchemaError> {
        self.plans = plans(&self.nodes)?;
        Ok(())
    }

    /// Whether this schema of ours allows a value.
    fn allows(&self, node: NodeId, value: &Value) -> bool {
        let mut stream = Stream::at(self, node);
        stream.feed(value.to_string().as_bytes()).and_then(|()| stream.finish()).is_ok()
    }

    /// Of listed values only those stay that satisfy what stands beside the list;
    /// then the list says it all, and no prefix outlives its last candidate.
    fn narrow_lists(
        &mut self,
        leaves: &Leaves,
        listed: &[(NodeId, Vec<Value>)],
    ) -> Result<(), SchemaError> {
        let mut narrowed = Vec::new();
        for (id, values) in listed {
            let values: Vec<Value> =
                values.iter().filter(|value| self.allows(*id, value)).cloned().collect();
            narrowed.push((*id, literal::node(&values, &mut self.nodes, leaves)?));
        }
        for (id, node) in narrowed {
            if let Some(place) = self.nodes.get_mut(id) {
                *place = node;
            }
        }
        self.replan()
    }

    /// An object can't have a required name that `propertyNames` refuses.
    fn refuse_names(&mut self) {
        let refused: Vec<NodeId> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| {
                node.object.as_ref().is_some_and(|rules| {
                    let mut pairs = rules
                        .names
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

    /// Where only so many keys can be there with a value, they become the list of all keys.
    fn close_objects(&mut self) -> Result<(), SchemaError> {
        let empty = |id: NodeId| self.nodes.get(id).is_some_and(|node| node.types == 0);
        let mut lists = Vec::new();
        for (id, node) in self.nodes.iter().enumerate() {
            let Some(rules) = &node.object else { continue };
            let named: Vec<&String> = if empty(rules.additional) && rules.patterns.is_empty() {
                rules.properties.iter().map(|(name, _)| name).collect()
            } else if let Some(names) = rules.names.iter().find_map(|id| self.texts(*id)) {
                names.iter().collect()
            } else {
                continue;
            };
            let usable = |name: &str| {
                let mut usable = true;
                rules.children(name, |node| usable &= !empty(node));
                usable && rules.names.iter().all(|id| self.allows(*id, &Value::from(name)))
            };
            lists.push((id, named.into_iter().filter(|name| usable(name)).cloned().collect()));
        }
        for (id, names) in lists {
            let list = add(&mut self.nodes, literal::texts(names))?;
            if let Some(rules) = self.nodes.get_mut(id).and_then(|node| node.object.as_mut()) {
                rules.closed = Some(list);
                rules.names.push(list);
            }
        }
        Ok(())
    }

    /// The strings that a schema lists, if it allows nothing else of a string.
    fn texts(&self, id: NodeId) -> Option<&[String]> {
        self.nodes.get(id)?.text.literals.as_deref()
    }
}
