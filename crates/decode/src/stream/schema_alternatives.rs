//! Tracks which schemas a document can still satisfy.
//!
//! Every open value has a list of the schemas that apply to it. If a byte rules out a
//! schema, this also rules out the schemas that require it, for the same value and for
//! the values around it, unless they have an alternative. If the root schema is ruled
//! out, the byte is refused. A schema is in the list of a value only once. So the
//! length of the list is bounded by the schema and not by the document.

use std::collections::BTreeSet;

use super::StreamSchema;
use super::evaluation_plan::EvaluationPlan;
use super::schema_node::{ALWAYS, NodeId, SchemaNode};

/// Why a schema is ruled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleOutCause {
    Type,
    Literal,
    LengthMin,
    LengthMax,
    Pattern,
    Number,
    Sign,
    Key,
    Property,
    PropertiesMin,
    PropertiesMax,
    Required,
    Item,
    ItemsMin,
    ItemsMax,
    OneOf,
}

/// The root schema is ruled out.
pub(super) struct SchemaRuledOut;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamValueShape {
    #[default]
    Scalar,
    /// A key of an object; it is checked like a string that has a schema.
    Key,
    Object,
    Array,
}

/// An open value.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueFrame {
    pub(super) shape: StreamValueShape,
    /// The keys it has, and the one whose value is being read.
    pub(super) keys: BTreeSet<String>,
    pub(super) key: String,
    /// How many finished members or items it has.
    pub(super) count: u64,
    active_schemas: Vec<ActiveSchema>,
    groups: Vec<SchemaGroup>,
    /// Pairs of a group here and the schema in the outer frame that requires it.
    links: Vec<(usize, usize)>,
    changed: bool,
}

/// A schema that applies to a value.
#[derive(Debug, Clone)]
pub(super) struct ActiveSchema {
    node: NodeId,
    is_possible: bool,
    /// The range of the node's literals that are still possible.
    pub(super) low: usize,
    pub(super) high: usize,
}

/// A required schema with all schemas that it consists of.
#[derive(Debug, Clone)]
struct SchemaGroup {
    node: NodeId,
    first_schema: usize,
    is_possible: bool,
}

#[derive(Debug, Clone)]
pub(super) struct SchemaAlternatives<'s> {
    schema: &'s StreamSchema,
    frames: Vec<ValueFrame>,
    /// How many values are open. The frame after them is prepared for the next value.
    depth: usize,
    /// The schemas that the current byte has ruled out, with the causes.
    pub(super) ruled_out: Vec<(NodeId, RuleOutCause)>,
    scratch: Vec<NodeId>,
}

impl<'s> SchemaAlternatives<'s> {
    pub(super) fn new(schema: &'s StreamSchema, root: NodeId) -> Self {
        let mut first = ValueFrame::default();
        if root != ALWAYS {
            first.add_schema(schema, root, None);
        }
        Self { schema, frames: vec![first], depth: 0, ruled_out: Vec::new(), scratch: Vec::new() }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn open_frames(&self) -> &[ValueFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    pub(super) fn top(&self) -> Option<&ValueFrame> {
        self.open_frames().last()
    }

    pub(super) fn top_mut(&mut self) -> Option<&mut ValueFrame> {
        self.frames.get_mut(..self.depth).and_then(<[ValueFrame]>::last_mut)
    }

    /// The types that the next value can still have, for error messages.
    pub(super) fn next_types(&self) -> Option<u8> {
        let frame = self.frames.get(self.depth)?;
        let roots = frame.groups.iter().filter(|group| group.is_possible);
        roots
            .filter_map(|group| self.schema.nodes.get(group.node))
            .map(|node| node.types)
            .reduce(|left, right| left | right)
    }

    /// Starts the prepared value.
    pub(super) fn enter_value(&mut self, shape: StreamValueShape) {
        self.depth += 1;
        if let Some(frame) = self.top_mut() {
            frame.shape = shape;
        }
    }

    /// Ends the current value and makes the final checks of its schemas.
    pub(super) fn leave_value(&mut self) -> Result<(), SchemaRuledOut> {
        let ended = self.depth.saturating_sub(1);
        self.propagate(ended, SettleMoment::End)?;
        self.depth = ended;
        Ok(())
    }

    /// Prepares the next member or item of the open value, with the schemas that apply to it.
    pub(super) fn prepare_part(
        &mut self,
        cause: RuleOutCause,
        mut parts: impl FnMut(&'s SchemaNode, &ValueFrame, &mut Vec<NodeId>),
    ) -> Result<(), SchemaRuledOut> {
        let schema = self.schema;
        if self.frames.len() == self.depth {
            self.frames.push(ValueFrame::default());
        }
        let (around, rest) = self.frames.split_at_mut(self.depth);
        let (Some(frame), Some(next)) = (around.last_mut(), rest.first_mut()) else {
            return Ok(());
        };
        next.clear();
        for at in 0..frame.active_schemas.len() {
            let Some(node) = frame.possible_node(at).and_then(|id| schema.nodes.get(id)) else {
                continue;
            };
            self.scratch.clear();
            parts(node, frame, &mut self.scratch);
            for part in &self.scratch {
                if schema.nodes.get(*part).is_some_and(|part| part.types == 0) {
                    frame.rule_out_with_cause(at, cause, &mut self.ruled_out);
                } else if *part != ALWAYS {
                    next.add_schema(schema, *part, Some(at));
                }
            }
        }
        self.propagate(self.depth.saturating_sub(1), SettleMoment::During)
    }

    /// Calls `judge` for every schema of the open value, and rules out the schemas for which
    /// it returns a cause.
    pub(super) fn rule_out_schemas(
        &mut self,
        mut judge: impl FnMut(
            &'s SchemaNode,
            &mut ActiveSchema,
            &ValueFacts<'_>,
        ) -> Option<RuleOutCause>,
    ) -> Result<(), SchemaRuledOut> {
        let schema = self.schema;
        let at = self.depth.saturating_sub(1);
        let (around, rest) = self.frames.split_at_mut(at);
        let Some(frame) = rest.first_mut() else { return Ok(()) };
        let facts = ValueFacts {
            count: frame.count,
            keys: &frame.keys,
            outer_keys: around
                .last()
                .filter(|_| frame.shape == StreamValueShape::Key)
                .map(|frame| &frame.keys),
        };
        for active in frame.active_schemas.iter_mut().filter(|active| active.is_possible) {
            let Some(node) = schema.nodes.get(active.node) else { continue };
            if let Some(cause) = judge(node, active, &facts) {
                active.is_possible = false;
                frame.changed = true;
                self.ruled_out.push((active.node, cause));
            }
        }
        self.propagate(at, SettleMoment::During)
    }

    /// Calls `visit` for every schema of the open value.
    pub(super) fn visit_schemas(&self, mut visit: impl FnMut(&'s SchemaNode)) {
        let active = self.top().map_or(&[] as &[_], |frame| &frame.active_schemas);
        active
            .iter()
            .filter(|active| active.is_possible)
            .filter_map(|active| self.schema.nodes.get(active.node))
            .for_each(&mut visit);
    }

    /// Rules out the schemas that require a ruled-out schema, from the inside outwards.
    fn propagate(&mut self, mut at: usize, moment: SettleMoment) -> Result<(), SchemaRuledOut> {
        let mut moment = moment;
        loop {
            let (around, rest) = self.frames.split_at_mut(at);
            let Some(frame) = rest.first_mut() else { return Ok(()) };
            if !frame.changed && moment == SettleMoment::During {
                return Ok(());
            }
            frame.changed = false;
            for index in 0..frame.groups.len() {
                if !frame.update_group(index, self.schema, moment, &mut self.ruled_out) {
                    continue;
                }
                let Some(outer) = around.last_mut() else { return Err(SchemaRuledOut) };
                for (group, demanding) in &frame.links {
                    if *group == index {
                        outer.rule_out(*demanding);
                    }
                }
            }
            let Some(outer) = at.checked_sub(1) else { return Ok(()) };
            (at, moment) = (outer, SettleMoment::During);
        }
    }
}

/// What a schema can see of the value to which it applies.
pub(super) struct ValueFacts<'f> {
    pub(super) count: u64,
    pub(super) keys: &'f BTreeSet<String>,
    /// While a key is being read: the keys of its object.
    pub(super) outer_keys: Option<&'f BTreeSet<String>>,
}

/// Whether a value is complete. Only then exactly one schema of a `oneOf` must be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettleMoment {
    During,
    End,
}

impl ValueFrame {
    fn clear(&mut self) {
        self.keys.clear();
        self.count = 0;
        self.active_schemas.clear();
        self.groups.clear();
        self.links.clear();
        self.changed = false;
    }

    fn add_schema(&mut self, schema: &StreamSchema, node: NodeId, demanding: Option<usize>) {
        let existing = self.groups.iter().position(|group| group.node == node);
        let group = existing.unwrap_or_else(|| {
            let first = self.active_schemas.len();
            self.groups.push(SchemaGroup { node, first_schema: first, is_possible: true });
            let entries = schema.plans.get(node).map_or(&[] as &[_], |plan| &plan.entries);
            self.active_schemas.extend(entries.iter().map(|entry| ActiveSchema {
                node: entry.node,
                is_possible: true,
                low: 0,
                high: usize::MAX,
            }));
            self.groups.len() - 1
        });
        self.links.extend(demanding.map(|demanding| (group, demanding)));
    }

    fn possible_node(&self, at: usize) -> Option<NodeId> {
        self.active_schemas.get(at).filter(|active| active.is_possible).map(|active| active.node)
    }

    fn rule_out_with_cause(
        &mut self,
        at: usize,
        cause: RuleOutCause,
        blame: &mut Vec<(NodeId, RuleOutCause)>,
    ) {
        if let Some(node) = self.possible_node(at) {
            blame.push((node, cause));
            self.rule_out(at);
        }
    }

    fn rule_out(&mut self, at: usize) {
        if let Some(active) = self.active_schemas.get_mut(at).filter(|active| active.is_possible) {
            active.is_possible = false;
            self.changed = true;
        }
    }

    /// Updates a group. Returns whether this has ruled it out.
    fn update_group(
        &mut self,
        index: usize,
        schema: &StreamSchema,
        moment: SettleMoment,
        blame: &mut Vec<(NodeId, RuleOutCause)>,
    ) -> bool {
        let Some(group) = self.groups.get_mut(index).filter(|group| group.is_possible) else {
            return false;
        };
        let Some(EvaluationPlan { entries }) = schema.plans.get(group.node) else { return false };
        let active = self.active_schemas.get_mut(group.first_schema..).unwrap_or_default();
        for (at, entry) in entries.iter().enumerate() {
            let alive = |part: &usize| active.get(*part).is_some_and(|part| part.is_possible);
            if !alive(&at) {
                continue;
            }
            let lost = !entry.all_of.iter().all(alive)
                || !entry.any_of.iter().chain(&entry.one_of).all(|list| list.iter().any(alive));
            let doubled = moment == SettleMoment::End
                && entry
                    .one_of
                    .iter()
                    .any(|list| list.iter().filter(|part| alive(part)).count() > 1);
            if doubled {
                blame.push((entry.node, RuleOutCause::OneOf));
            }
            if (lost || doubled)
                && let Some(active) = active.get_mut(at)
            {
                active.is_possible = false;
            }
        }
        let whole = entries.len().checked_sub(1).and_then(|last| active.get(last));
        if whole.is_none_or(|whole| whole.is_possible) {
            return false;
        }
        group.is_possible = false;
        active.iter_mut().take(entries.len()).for_each(|active| active.is_possible = false);
        true
    }
}
