//! Another definition for a session that runs. What the session remembers goes
//! on where the new one demands the same, and begins anew where it does not.
//! What was spent, done and seen stays.

use alloc::string::String;
use alloc::vec::Vec;

use crate::definition::{Definition, Policy, PolicyRule};
use crate::event::{Action, Control, EventKind};
use crate::facts::{Facts, NewDefinition, ReloadFact, Tracked};
use crate::guards::completion::verification;
use crate::guards::protected::watch_list;
use crate::guards::{feedback, limits};
use crate::place::Place;
use crate::session::{Record, initial_policies};
use crate::state::{PolicyState, ReportFile, State};
use crate::verdict::ViolationType;

impl Record<'_> {
    /// The definition that is in force from here on, where a person wanted another one and got
    /// it. It may still have to be loaded.
    pub fn reloads(&self) -> Option<&NewDefinition> {
        match &self.facts.reload {
            Some(ReloadFact::New(new)) if self.wants_reload() => Some(new),
            _ => None,
        }
    }

    /// Whether another definition is in force from here on, and nobody can say
    /// which: what comes after this record can't be decided.
    pub fn lacks_definition(&self) -> bool {
        self.wants_reload() && self.reloads().is_none()
    }

    /// Whether a person wanted another definition, and was not refused.
    fn wants_reload(&self) -> bool {
        let refusals = [ViolationType::Control, ViolationType::SessionOver];
        let mut objections = self.verdict.violations.iter();
        matches!(self.event.kind, EventKind::Control(Control { action: Action::Reload, .. }))
            && !objections.any(|found| refusals.contains(&found.kind))
    }
}

impl NewDefinition {
    /// Where a session works that runs under it.
    pub fn place(&self, before: &Place) -> Place {
        let definition = self.files.iter().map(|file| file.path.clone()).collect();
        Place { definition, ..before.clone() }
    }

    /// The files that are compared from then on, and were not before.
    pub(crate) fn newly_watched(&self, before: &Definition, place: &Place) -> Vec<Tracked> {
        let known = watch_list(place, before);
        let Some(lowered) = self.lowered.definition() else { return Vec::new() };
        let paths = watch_list(&self.place(place), lowered).into_iter();
        let new = paths.filter(|path| !known.contains(path));
        new.map(|path| Tracked { path, look: 0 }).collect()
    }
}

/// Has the state go on under another definition.
pub(crate) fn carry_over(
    state: &mut State,
    (from, place): (&Definition, &Place),
    (to, new): (&Definition, &NewDefinition),
    facts: &Facts,
) {
    carry_policies(state, from, to);
    carry_proofs(state, from, to);
    verification::carry_over(&mut state.runs, from, to);
    feedback::carry_over(state, from, to, facts);
    limits::carry_over(state, from, to);
    watch(state, &watch_list(&new.place(place), to), facts);
    state.reloaded = Some(new.checksum);
}

/// Which of the old ones each of the new ones goes on with: the first that is
/// the same and that no other goes on with.
pub(crate) fn same_as<T>(
    old: &[T],
    new: &[T],
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<Option<usize>> {
    let mut taken: Vec<usize> = Vec::new();
    let find = |one: &T| {
        let mut known = old.iter().enumerate();
        let (at, _) = known.find(|(at, it)| !taken.contains(at) && is_same(it, one))?;
        taken.push(at);
        Some(at)
    };
    new.iter().map(find).collect()
}

/// A policy that demands the same of the same tools knows what it knew, also
/// where an attempt that fails goes back to.
fn carry_policies(state: &mut State, from: &Definition, to: &Definition) {
    let is_same = |old: &Policy, new: &Policy| {
        old.rule == new.rule
            && section_of(from, old) == section_of(to, new)
            && needed_by(&new.rule).all(|tool| known_by(from, tool) == known_by(to, tool))
    };
    let same = same_as(&from.policies, &to.policies, is_same);
    let carried = |known: &[PolicyState]| -> Vec<PolicyState> {
        let fresh = initial_policies(to).into_iter();
        let old = same.iter().map(|at| at.and_then(|at| known.get(at)));
        fresh.zip(old).map(|(fresh, old)| old.cloned().unwrap_or(fresh)).collect()
    };
    state.policies = carried(&state.policies);
    for attempt in &mut state.attempts {
        attempt.policies = carried(&attempt.policies);
    }
    let number = |old: u16| {
        let at = same.iter().position(|at| *at == Some(usize::from(old)))?;
        u16::try_from(at).ok()
    };
    for call in state.in_flight.iter_mut() {
        let carried = core::mem::take(&mut call.carried).into_iter();
        call.carried = carried.filter_map(|(old, text)| Some((number(old)?, text))).collect();
    }
}

/// The tools of a policy's section, by name: the numbers of sections mean
/// nothing in another definition. None is the top level.
fn section_of<'a>(definition: &'a Definition, policy: &Policy) -> Option<Vec<&'a str>> {
    let section = policy.section?;
    let tools = definition.tools.iter().filter(|tool| tool.sections.contains(&section));
    let mut names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    Some(names)
}

/// The tools whose success a policy remembers.
fn needed_by(rule: &PolicyRule) -> impl Iterator<Item = &str> {
    let dependencies = match rule {
        PolicyRule::SequentialDependency(rule) => rule.dependencies.as_slice(),
        PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => &[],
    };
    dependencies.iter().flat_map(|dependency| &dependency.needs).map(|need| need.tool.as_str())
}

/// By what a tool is known, besides its name: other commands are another tool.
fn known_by<'a>(definition: &'a Definition, name: &str) -> Option<(&'a [String], &'a [String])> {
    let tool = definition.tools.iter().find(|tool| tool.name == name)?;
    Some((&tool.aliases, &tool.commands))
}

/// An open call proves a tool that is still known by the same commands.
fn carry_proofs(state: &mut State, from: &Definition, to: &Definition) {
    let number = |old: u16| {
        let name = &from.tools.get(usize::from(old))?.name;
        let at = to.tools.iter().position(|tool| tool.name == *name)?;
        u16::try_from(at).ok().filter(|_| known_by(from, name) == known_by(to, name))
    };
    for call in state.in_flight.iter_mut() {
        call.proves.retain_mut(|proof| number(proof.tool).map(|tool| proof.tool = tool).is_some());
    }
}

/// What was compared and is no longer protected is left alone; what is from now
/// on is taken as it is.
fn watch(state: &mut State, watched: &[String], facts: &Facts) {
    let is_report = |path: &str| ReportFile::ALL.iter().any(|report| report.path() == path);
    state.watched.retain(|path| is_report(path) || watched.iter().any(|known| known == path));
    for (path, fact) in facts.protects.iter().flatten() {
        state.watched.accept(path, fact);
    }
}
