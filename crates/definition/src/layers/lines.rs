//! The demands in force, one line each, with their layers.

use super::{Demand, EffectiveLine, LayerJoin, Subject};

/// The lines that sections add, in the order in which they are listed for people.
pub(crate) struct EffectiveLines<'a> {
    join: &'a LayerJoin,
    lines: Vec<(u8, EffectiveLine)>,
}

impl<'a> EffectiveLines<'a> {
    pub(super) fn new(join: &'a LayerJoin) -> Self {
        Self { join, lines: Vec::new() }
    }

    /// Adds a key that belongs to the definition as a whole. These are listed first.
    pub(crate) fn general(&mut self, text: String, layer: usize) {
        self.lines.push((0, self.join.line(Subject::Setting, text, layer)));
    }

    /// Adds a general key, where its value differs from the default.
    pub(crate) fn general_unless<T: Copy + PartialEq>(
        &mut self,
        default: T,
        demand: &Demand<T>,
        text: impl FnOnce(T) -> String,
    ) {
        if demand.value != default {
            self.general(text(demand.value), demand.layer);
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, subject: Subject, text: String, layer: usize) {
        self.add_with_origin(subject, text, layer, |_| None);
    }

    /// Adds a demand, unless the layers leave it out.
    pub(crate) fn option<T>(
        &mut self,
        subject: Subject,
        demand: Option<&Demand<T>>,
        text: impl FnOnce(&T) -> String,
    ) {
        if let Some(demand) = demand {
            self.add(subject, text(&demand.value), demand.layer);
        }
    }

    /// Adds a line that knows what its demand came with; `origin` is given the file of the layer.
    pub(crate) fn add_with_origin(
        &mut self,
        subject: Subject,
        text: String,
        layer: usize,
        origin: impl FnOnce(&str) -> Option<String>,
    ) {
        let mut line = self.join.line(subject, text, layer);
        line.origin = origin(&line.file);
        self.lines.push((rank(subject), line));
    }

    /// The lines in their order.
    pub(super) fn sorted(mut self) -> Vec<EffectiveLine> {
        self.lines.sort_by_key(|(rank, _)| *rank);
        self.lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// The place of a subject in the list. Lines of one rank keep the order of their sections.
fn rank(subject: Subject) -> u8 {
    match subject {
        Subject::Setting | Subject::Limit => 1,
        Subject::Protected => 2,
        Subject::Tool => 3,
        Subject::Policy => 4,
        Subject::Completion => 5,
        Subject::Feedback => 6,
        Subject::Notify => 7,
        Subject::Rule => 8,
    }
}
