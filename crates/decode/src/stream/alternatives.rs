//! Which schemas a document can still satisfy.
//!
//! At every open value stand all schemas that hold for it. One that a byte rules
//! out takes with it what it is a part of, in the same value and in those
//! around it, unless there is an alternative. When the whole goes, the byte is
//! refused. A schema stands at a value once, whoever demands it, so their number
//! is bounded by the schema and not by the document.

use std::collections::BTreeSet;

use super::StreamSchema;
use super::node::{ALWAYS, Node, NodeId};
use super::plan::Plan;

/// Why a schema is ruled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
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

/// The whole schema is ruled out.
pub(super) struct RuledOut;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    #[default]
    Scalar,
    /// Of an object; it is read as a string that has a schema, too.
    Key,
    Object,
    Array,
}

/// An open value.
#[derive(Debug, Default, Clone)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// The keys it has, and the one whose value is being read.
    pub(super) keys: BTreeSet<String>,
    pub(super) key: String,
    /// How many finished members or items it has.
    pub(super) count: u64,
    standing: Vec<Standing>,
    groups: Vec<Group>,
    /// (group, what demands it in the frame around).
    links: Vec<(usize, usize)>,
    changed: bool,
}

/// A schema at a value.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    node: NodeId,
    alive: bool,
    /// Which of the node's literals are still possible, as a range.
    pub(super) low: usize,
    pub(super) high: usize,
}

/// A demanded schema with everything that it consists of.
#[derive(Debug, Clone)]
struct Group {
    node: NodeId,
    first: usize,
    alive: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Alternatives<'s> {
    schema: &'s StreamSchema,
    frames: Vec<Frame>,
    /// How many values are open. The frame behind them is prepared for the next one.
    depth: usize,
    /// What was ruled out by the current byte.
    pub(super) blame: Vec<(NodeId, Cause)>,
    scratch: Vec<NodeId>,
}

impl<'s> Alternatives<'s> {
    pub(super) fn new(schema: &'s StreamSchema, root: NodeId) -> Self {
        let mut first = Frame::default();
        if root != ALWAYS {
            first.add(schema, root, None);
        }
        Self { schema, frames: vec![first], depth: 0, blame: Vec::new(), scratch: Vec::new() }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn open(&self) -> &[Frame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    pub(super) fn top(&self) -> Option<&Frame> {
        self.open().last()
    }

    pub(super) fn top_mut(&mut self) -> Option<&mut Frame> {
        self.frames.get_mut(..self.depth).and_then(<[Frame]>::last_mut)
    }

    /// What can still be at the next value, to be told.
    pub(super) fn next_types(&self) -> Option<u8> {
        let frame = self.frames.get(self.depth)?;
        let roots = frame.groups.iter().filter(|group| group.alive);
        roots
            .filter_map(|group| self.schema.nodes.get(group.node))
            .map(|node| node.types)
            .reduce(|left, right| left | right)
    }

    /// The prepared value begins.
    pub(super) fn enter(&mut self, shape: Shape) {
        self.depth += 1;
        if let Some(frame) = self.top_mut() {
            frame.shape = shape;
        }
    }

    /// The value is complete; what it consists of has the last word.
    pub(super) fn leave(&mut self) -> Result<(), RuledOut> {
        let ended = self.depth.saturating_sub(1);
        self.settle(ended, Moment::End)?;
        self.depth = ended;
        Ok(())
    }

    /// Prepares the next part of the open value, from what its schemas demand.
    pub(super) fn prepare(
        &mut self,
        cause: Cause,
        mut parts: impl FnMut(&'s Node, &Frame, &mut Vec<NodeId>),
    ) -> Result<(), RuledOut> {
        let schema = self.schema;
        if self.frames.len() == self.depth {
            self.frames.push(Frame::default());
        }
        let (around, rest) = self.frames.split_at_mut(self.depth);
        let (Some(frame), Some(next)) = (around.last_mut(), rest.first_mut()) else {
            return Ok(());
        };
        next.clear();
        for at in 0..frame.standing.len() {
            let Some(node) = frame.alive(at).and_then(|id| schema.nodes.get(id)) else { continue };
            self.scratch.clear();
            parts(node, frame, &mut self.scratch);
            for part in &self.scratch {
                if schema.nodes.get(*part).is_some_and(|part| part.types == 0) {
                    frame.kill(at, cause, &mut self.blame);
                } else if *part != ALWAYS {
                    next.add(schema, *part, Some(at));
                }
            }
        }
        self.settle(self.depth.saturating_sub(1), Moment::During)
    }

    /// Asks every schema at the open value.
    pub(super) fn sift(
        &mut self,
        mut judge: impl FnMut(&'s Node, &mut Standing, &Facts<'_>) -> Option<Cause>,
    ) -> Result<(), RuledOut> {
        let schema = self.schema;
        let at = self.depth.saturating_sub(1);
        let (around, rest) = self.frames.split_at_mut(at);
        let Some(frame) = rest.first_mut() else { return Ok(()) };
        let facts = Facts {
            count: frame.count,
            keys: &frame.keys,
            around: around.last().filter(|_| frame.shape == Shape::Key).map(|frame| &frame.keys),
        };
        for standing in frame.standing.iter_mut().filter(|standing| standing.alive) {
            let Some(node) = schema.nodes.get(standing.node) else { continue };
            if let Some(cause) = judge(node, standing, &facts) {
                standing.alive = false;
                frame.changed = true;
                self.blame.push((standing.node, cause));
            }
        }
        self.settle(at, Moment::During)
    }

    /// Looks over the schemas of the open value without ruling any out.
    pub(super) fn survey(&self, mut look: impl FnMut(&'s Node)) {
        let standing = self.top().map_or(&[] as &[_], |frame| &frame.standing);
        standing
            .iter()
            .filter(|standing| standing.alive)
            .filter_map(|standing| self.schema.nodes.get(standing.node))
            .for_each(&mut look);
    }

    /// Carries what was ruled out to what it is a part of, outwards.
    fn settle(&mut self, mut at: usize, moment: Moment) -> Result<(), RuledOut> {
        let mut moment = moment;
        loop {
            let (around, rest) = self.frames.split_at_mut(at);
            let Some(frame) = rest.first_mut() else { return Ok(()) };
            if !frame.changed && moment == Moment::During {
                return Ok(());
            }
            frame.changed = false;
            for index in 0..frame.groups.len() {
                if !frame.settle_group(index, self.schema, moment, &mut self.blame) {
                    continue;
                }
                let Some(outer) = around.last_mut() else { return Err(RuledOut) };
                for (group, demanding) in &frame.links {
                    if *group == index {
                        outer.rule_out(*demanding);
                    }
                }
            }
            let Some(outer) = at.checked_sub(1) else { return Ok(()) };
            (at, moment) = (outer, Moment::During);
        }
    }
}

/// What a schema may know of the value it stands at.
pub(super) struct Facts<'f> {
    pub(super) count: u64,
    pub(super) keys: &'f BTreeSet<String>,
    /// The keys of the object around, for one that is being read.
    pub(super) around: Option<&'f BTreeSet<String>>,
}

/// At the end exactly one of `oneOf` has to be left; until then more may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    During,
    End,
}

impl Frame {
    fn clear(&mut self) {
        self.keys.clear();
        self.count = 0;
        self.standing.clear();
        self.groups.clear();
        self.links.clear();
        self.changed = false;
    }

    fn add(&mut self, schema: &StreamSchema, node: NodeId, demanding: Option<usize>) {
        let known = self.groups.iter().position(|group| group.node == node);
        let group = known.unwrap_or_else(|| {
            let first = self.standing.len();
            self.groups.push(Group { node, first, alive: true });
            let entries = schema.plans.get(node).map_or(&[] as &[_], |plan| &plan.entries);
            self.standing.extend(entries.iter().map(|entry| Standing {
                node: entry.node,
                alive: true,
                low: 0,
                high: usize::MAX,
            }));
            self.groups.len() - 1
        });
        self.links.extend(demanding.map(|demanding| (group, demanding)));
    }

    fn alive(&self, at: usize) -> Option<NodeId> {
        self.standing.get(at).filter(|standing| standing.alive).map(|standing| standing.node)
    }

    fn kill(&mut self, at: usize, cause: Cause, blame: &mut Vec<(NodeId, Cause)>) {
        if let Some(node) = self.alive(at) {
            blame.push((node, cause));
            self.rule_out(at);
        }
    }

    fn rule_out(&mut self, at: usize) {
        if let Some(standing) = self.standing.get_mut(at).filter(|standing| standing.alive) {
            standing.alive = false;
            self.changed = true;
        }
    }

    /// Whether the group is ruled out just now.
    fn settle_group(
        &mut self,
        index: usize,
        schema: &StreamSchema,
        moment: Moment,
        blame: &mut Vec<(NodeId, Cause)>,
    ) -> bool {
        let Some(group) = self.groups.get_mut(index).filter(|group| group.alive) else {
            return false;
        };
        let Some(Plan { entries }) = schema.plans.get(group.node) else { return false };
        let standing = self.standing.get_mut(group.first..).unwrap_or_default();
        for (at, entry) in entries.iter().enumerate() {
            let alive = |part: &usize| standing.get(*part).is_some_and(|part| part.alive);
            if !alive(&at) {
                continue;
            }
            let lost = !entry.all.iter().all(alive)
                || !entry.any.iter().chain(&entry.one).all(|list| list.iter().any(alive));
            let doubled = moment == Moment::End
                && entry.one.iter().any(|list| list.iter().filter(|part| alive(part)).count() > 1);
            if doubled {
                blame.push((entry.node, Cause::OneOf));
            }
            if (lost || doubled)
                && let Some(standing) = standing.get_mut(at)
            {
                standing.alive = false;
            }
        }
        let whole = entries.len().checked_sub(1).and_then(|last| standing.get(last));
        if whole.is_none_or(|whole| whole.alive) {
            return false;
        }
        group.alive = false;
        standing.iter_mut().take(entries.len()).for_each(|standing| standing.alive = false);
        true
    }
}
