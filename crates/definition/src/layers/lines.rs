//! Lists the demands in force for people, one line each, with their layers.

use super::{Demand, DemandLine, DemandSubject, LayerJoin};

/// Collects the lines of all sections and sorts them for people.
pub(crate) struct DemandLines<'a> {
    join: &'a LayerJoin,
    lines: Vec<(u8, DemandLine)>,
}

impl<'a> DemandLines<'a> {
    pub(super) fn new(join: &'a LayerJoin) -> Self {
        Self { join, lines: Vec::new() }
    }

    /// Adds a key of the definition as a whole. These lines come first.
    pub(crate) fn add_general(&mut self, text: String, layer: usize) {
        self.lines.push((0, self.join.line(DemandSubject::Setting, text, layer)));
    }

    /// Adds a key of the definition as a whole if its value differs from the default.
    pub(crate) fn add_general_unless_default<T: Copy + PartialEq>(
        &mut self,
        default: T,
        demand: &Demand<T>,
        text: impl FnOnce(T) -> String,
    ) {
        if demand.value != default {
            self.add_general(text(demand.value), demand.layer);
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, subject: DemandSubject, text: String, layer: usize) {
        self.add_with_origin(subject, text, layer, |_| None);
    }

    /// Adds a demand if there is one.
    pub(crate) fn add_option<T>(
        &mut self,
        subject: DemandSubject,
        demand: Option<&Demand<T>>,
        text: impl FnOnce(&T) -> String,
    ) {
        if let Some(demand) = demand {
            self.add(subject, text(&demand.value), demand.layer);
        }
    }

    /// Adds a line with the origin of its demand. `origin` receives the file of the layer.
    pub(crate) fn add_with_origin(
        &mut self,
        subject: DemandSubject,
        text: String,
        layer: usize,
        origin: impl FnOnce(&str) -> Option<String>,
    ) {
        let mut line = self.join.line(subject, text, layer);
        line.origin = origin(&line.file);
        self.lines.push((subject_rank(subject), line));
    }

    /// Returns the sorted lines.
    pub(super) fn sorted(mut self) -> Vec<DemandLine> {
        self.lines.sort_by_key(|(rank, _)| *rank);
        self.lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Returns the rank of a subject in the list. Lines of equal rank keep the order of sections.
fn subject_rank(subject: DemandSubject) -> u8 {
    match subject {
        DemandSubject::Setting | DemandSubject::Limit => 1,
        DemandSubject::Protected => 2,
        DemandSubject::Tool => 3,
        DemandSubject::Policy => 4,
        DemandSubject::Completion => 5,
        DemandSubject::Feedback => 6,
        DemandSubject::Notify => 7,
        DemandSubject::Rule => 8,
    }
}
