//! Replaces the definition of a running session. The session keeps its state where the new
//! definition demands the same, and starts from the initial state where it does not. Used budgets,
//! past calls and read files are never reset.

use alloc::string::String;
use alloc::vec::Vec;

use crate::definition::{Definition, Policy, PolicyRule};
use crate::event::{Control, ControlAction, EventKind};
use crate::facts::{Facts, NewDefinition, ReloadFact, TrackedFile};
use crate::guards::completion::verification;
use crate::guards::protected::watch_list;
use crate::guards::{feedback, limits};
use crate::session::{Record, initial_policies};
use crate::session_location::SessionLocation;
use crate::state::{PolicyState, ReportFile, SessionState};
use crate::verdict::ViolationType;

impl Record<'_> {
    /// The definition that is in force after this record, if a person reloaded it and the reload
    /// was accepted. It may still have to be loaded from the store.
    pub fn reloaded_definition(&self) -> Option<&NewDefinition> {
        match &self.facts.reload {
            Some(ReloadFact::New(new)) if self.wants_reload() => Some(new),
            _ => None,
        }
    }

    /// Whether the definition changes after this record, but the record does not contain the new
    /// one. Then the events after this record can't be decided.
    pub fn lacks_definition(&self) -> bool {
        self.wants_reload() && self.reloaded_definition().is_none()
    }

    /// Whether a person asked for a reload and it was not refused.
    fn wants_reload(&self) -> bool {
        let refusals = [ViolationType::Control, ViolationType::SessionOver];
        let mut violations = self.verdict.violations.iter();
        matches!(self.event.kind, EventKind::Control(Control { action: ControlAction::Reload, .. }))
            && !violations.any(|it| refusals.contains(&it.kind))
    }
}

impl NewDefinition {
    /// The location of a session that runs under this definition.
    pub fn location(&self, before: &SessionLocation) -> SessionLocation {
        let definition = self.files.iter().map(|file| file.path.clone()).collect();
        SessionLocation { definition, ..before.clone() }
    }

    /// The files that are protected under this definition and were not protected before.
    pub(crate) fn newly_protected(
        &self,
        before: &Definition,
        place: &SessionLocation,
    ) -> Vec<TrackedFile> {
        let known = watch_list(place, before);
        let Some(lowered) = self.lowered.definition() else { return Vec::new() };
        let paths = watch_list(&self.location(place), lowered).into_iter();
        let new = paths.filter(|path| !known.contains(path));
        new.map(|path| TrackedFile { path, stamp: 0 }).collect()
    }
}

/// Applies another definition to the state of a session.
pub(crate) fn carry_over_state(
    state: &mut SessionState,
    (from, place): (&Definition, &SessionLocation),
    (to, new): (&Definition, &NewDefinition),
    facts: &Facts,
) {
    carry_policies(state, from, to);
    carry_proofs(state, from, to);
    verification::carry_over(&mut state.runs, from, to);
    feedback::carry_over(state, from, to, facts);
    limits::carry_over(state, from, to);
    update_protected_files(state, &watch_list(&new.location(place), to), facts);
    state.reloaded = Some(new.checksum);
}

/// For each new item, the index of the old item that it continues: the first equal one that no
/// other new item continues.
pub(crate) fn match_unchanged<T>(
    old: &[T],
    new: &[T],
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<Option<usize>> {
    let mut taken: Vec<usize> = Vec::new();
    let find = |one: &T| {
        let mut candidates = old.iter().enumerate();
        let (at, _) = candidates.find(|(at, it)| !taken.contains(at) && is_same(it, one))?;
        taken.push(at);
        Some(at)
    };
    new.iter().map(find).collect()
}

/// A policy that demands the same of the same tools keeps its state. This includes the state to
/// which a failed attempt is restored.
fn carry_policies(state: &mut SessionState, from: &Definition, to: &Definition) {
    let is_same = |old: &Policy, new: &Policy| {
        old.rule == new.rule
            && section_of(from, old) == section_of(to, new)
            && tools_needed_by(&new.rule)
                .all(|tool| tool_identity(from, tool) == tool_identity(to, tool))
    };
    let same = match_unchanged(&from.policies, &to.policies, is_same);
    let carried = |states: &[PolicyState]| -> Vec<PolicyState> {
        let fresh = initial_policies(to).into_iter();
        let old = same.iter().map(|at| at.and_then(|at| states.get(at)));
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

/// The names of the tools in a policy's section. The numbers of sections are not comparable between
/// definitions. `None` is the top level.
fn section_of<'a>(definition: &'a Definition, policy: &Policy) -> Option<Vec<&'a str>> {
    let section = policy.section?;
    let tools = definition.tools.iter().filter(|tool| tool.sections.contains(&section));
    let mut names: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    Some(names)
}

/// The tools whose success a policy remembers.
fn tools_needed_by(rule: &PolicyRule) -> impl Iterator<Item = &str> {
    let dependencies = match rule {
        PolicyRule::SequentialDependency(rule) => rule.dependencies.as_slice(),
        PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => &[],
    };
    dependencies.iter().flat_map(|dependency| &dependency.needs).map(|need| need.tool.as_str())
}

/// The properties that identify a tool in addition to its name. A tool with other commands is
/// another tool.
fn tool_identity<'a>(
    definition: &'a Definition,
    name: &str,
) -> Option<(&'a [String], &'a [String])> {
    let tool = definition.tools.iter().find(|tool| tool.name == name)?;
    Some((&tool.aliases, &tool.commands))
}

/// Keeps the proofs of open calls for tools whose identity has not changed.
fn carry_proofs(state: &mut SessionState, from: &Definition, to: &Definition) {
    let number = |old: u16| {
        let name = &from.tools.get(usize::from(old))?.name;
        let at = to.tools.iter().position(|tool| tool.name == *name)?;
        u16::try_from(at).ok().filter(|_| tool_identity(from, name) == tool_identity(to, name))
    };
    for call in state.in_flight.iter_mut() {
        call.proofs.retain_mut(|proof| number(proof.tool).map(|tool| proof.tool = tool).is_some());
    }
}

/// Files that are no longer protected are not compared any more. Newly protected files are accepted
/// as they are.
fn update_protected_files(state: &mut SessionState, watched: &[String], facts: &Facts) {
    let is_report = |path: &str| ReportFile::ALL.iter().any(|report| report.path() == path);
    state
        .protected_files
        .retain(|path| is_report(path) || watched.iter().any(|protected| protected == path));
    for (path, fact) in facts.protects.iter().flatten() {
        state.protected_files.accept_current(path, fact);
    }
}
