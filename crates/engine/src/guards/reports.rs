//! The reports for people, and the meaning of their removal.
//!
//! A paused session runs no calls, so a report that disappears then was removed by a person. That
//! resolves the pause. A report that disappears during a call is restored like the other protected
//! files. If the facts do not tell who removed it, the report is written again.

use alloc::format;
use alloc::string::String;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, control, protected};
use crate::event::EventKind;
use crate::facts::Facts;
use crate::state::{PauseCause, Phase, ReportFile, SessionState};
use crate::verdict::{ContextLevel, SafetyAction, SessionStop, StopDetail};

pub(crate) struct ReportGuard;

impl Guard for ReportGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(report) = removed_report(input.state, input.facts) else { return };
        let Some(action) = report.resolved_by() else { return };
        let details = [("action", action.as_str()), ("removed", report.path())];
        let taken = if is_resolved_by_removal(input) {
            SafetyAction::Resumed
        } else {
            SafetyAction::StillPaused
        };
        answers.safety.push(control::control_event(input, details, taken));
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        if let Some(watched) = &record.facts.watched {
            // A report that was replaced, for example by another session of the workspace, is no
            // longer ours. Its removal means nothing.
            let is_off = record.facts.is_off();
            let suspected = protected::may_agent_write(state);
            let is_ours = |report: &ReportFile| {
                let path = report.path();
                let Some(fact) = watched.get(path) else { return true };
                let is_protected = (suspected || state.protected_files.is_damaged(path)) && !is_off;
                let is_restored = is_protected && !fact.by_person;
                is_restored || !state.protected_files.differs(path, fact)
            };
            state.reports.written = state.reports.written.iter().copied().filter(is_ours).collect();
        }
        if !record.event.actor.is_main() {
            return;
        }
        let compacted = matches!(record.event.kind, EventKind::CompactionFinished(_));
        let level = record.verdict.context_gate.map(|gate| gate.level);
        let full = level.is_some_and(|level| level >= ContextLevel::Compact);
        if full && !state.reports.context_was_full {
            state.reports.needs_briefing = true;
        }
        if full {
            state.reports.context_was_full = true;
        } else if compacted || level.is_some_and(|level| level > ContextLevel::Unknown) {
            state.reports.context_was_full = false;
        }
    }
}

/// Returns the report of the pause if a person has removed it.
pub(crate) fn removed_report(state: &SessionState, facts: &Facts) -> Option<ReportFile> {
    let report = required_report(state).filter(|report| state.reports.written.contains(report))?;
    let path = report.path();
    let fact = facts.watched.as_ref()?.get(path)?;
    // A report that Jackline itself removed belonged to another session of the workspace.
    let removed = fact.sha256.is_none() && !fact.by_person && fact.unsure.is_none();
    let in_doubt = state.protected_files.is_damaged(path) || protected::may_agent_write(state);
    ((fact.removed_by_person || removed) && !in_doubt).then_some(report)
}

/// Returns whether a person has resolved everything that the session is paused for. A person's
/// pause on top of a blocker or checkpoint ends only by a command, not by the removal of a file.
pub(super) fn is_resolved_by_removal(input: GuardInput<'_>) -> bool {
    let action = removed_report(input.state, input.facts).and_then(ReportFile::resolved_by);
    let after = |action| input.state.paused.clone().and_then(|paused| paused.after_action(action));
    action.is_some_and(|action| after(action).is_none())
}

/// Returns why the removal of the report does not count, if it was removed.
pub(super) fn unsure_removal(input: GuardInput<'_>) -> Option<String> {
    let path = required_report(input.state)?.path();
    let why = input.facts.watched.as_ref()?.get(path)?.unsure.as_ref()?;
    Some(format!("the removal of `{path}` does not count, because {why}"))
}

/// Returns the report that must exist in the current state of a session.
pub(crate) fn required_report(state: &SessionState) -> Option<ReportFile> {
    if let Phase::Stopped(ending) = &state.phase {
        let is_loop = SessionStop::from(ending).detail == Some(StopDetail::Loop);
        return is_loop.then_some(ReportFile::Blocker);
    }
    let paused = state.paused.as_ref()?;
    match paused.beneath.as_deref().unwrap_or(paused).cause {
        cause if cause.is_stuck() => Some(ReportFile::Blocker),
        PauseCause::Checkpoint => Some(ReportFile::Checkpoint),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::definition::{Definition, Mode};
    use crate::digest::Digest;
    use crate::event::Event;
    use crate::facts::{ControlFiles, Now, WatchedFact};
    use crate::id::SessionId;
    use crate::session::{Record, Session};
    use crate::session_location::SessionLocation;
    use crate::state::SessionPhase;
    use crate::state::{PauseState, ReportChange, SessionSummary};
    use crate::time::Timestamp;
    use crate::verdict::ViolationType;
    use crate::verdict::{ContextGate, Decision, SafetyKind, Verdict};
    use crate::wire::parse_line;

    /// A session with its reports on a simulated disk.
    struct ReportWorld {
        session: Session,
        /// The files by path, with their file stamp and digest.
        files: BTreeMap<String, (u64, Digest)>,
        writes: u64,
        markers: ControlFiles,
        /// Whether Jackline made the changes itself, for another session.
        by_us: bool,
    }

    impl ReportWorld {
        fn new() -> Self {
            Self::with_definition(Definition::default())
        }

        fn with_definition(definition: Definition) -> Self {
            let workspace = Some("/project".to_string());
            let place = Arc::new(SessionLocation { workspace, ..SessionLocation::default() });
            let mut session = Session::new(Arc::new(definition), place);
            // A running session, so that the start event is not missing.
            session.state_mut().phase = Phase::Running;
            Self {
                session,
                files: BTreeMap::new(),
                writes: 0,
                markers: ControlFiles::default(),
                by_us: false,
            }
        }

        fn paused(cause: PauseCause) -> Self {
            let mut world = Self::new();
            let why = "the same call was repeated".to_string();
            world.session.state_mut().paused = Some(PauseState::by_guard(cause, why));
            world
        }

        fn put(&mut self, path: &str, text: &str) {
            self.writes += 1;
            self.files.insert(path.to_string(), (self.writes, Digest::of(text.as_bytes())));
        }

        fn fact(&self, path: &str) -> WatchedFact {
            let file = self.files.get(path);
            let stamp = file.map_or(0, |(stamp, _)| *stamp);
            let sha256 = file.map(|(_, sha256)| *sha256);
            WatchedFact { stamp, sha256, by_person: self.by_us, ..WatchedFact::default() }
        }

        /// Decides an event, carries out the orders, and applies the record, as the runtime does. A
        /// full disk rejects writes.
        fn send_to(&mut self, line: &str, disk: DiskState, gate: Option<ContextGate>) -> Verdict {
            let id = SessionId::parse("s").unwrap();
            let event: Event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let seq = self.session.seq() + 1;
            let at = Timestamp::from_ms(1000 * seq.cast_signed());
            let mut facts = Facts::at(Now::wall(at));
            facts.observed = crate::observe(&event);
            facts.control_files = self.markers.clone();
            for query in &self.session.needs(&event, &facts) {
                if let crate::facts::Query::Watched { files, .. } = query {
                    let seen = files.iter().filter(|it| self.fact(&it.path).stamp != it.stamp);
                    let seen = seen.map(|it| (it.path.clone(), self.fact(&it.path)));
                    facts.watched = Some(seen.collect());
                }
            }
            let mut verdict = self.session.decide(&event, &facts);
            verdict.context_gate = verdict.context_gate.or(gate);
            for (path, contents) in self.session.files_to_restore(&event, &facts) {
                self.writes += 1;
                match contents {
                    Some(contents) => drop(self.files.insert(path, (self.writes, contents))),
                    None => drop(self.files.remove(&path)),
                }
            }
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            let orders = self.session.event_interpreter().with_interpreted(&event, |understood| {
                self.session
                    .report_changes_after(understood, &record)
                    .map_or(vec![], |(orders, _)| orders)
            });
            for order in orders.into_iter().filter(|_| disk == DiskState::Fine) {
                let path = order.report().path();
                match order {
                    ReportChange::Write(_) => self.put(path, &format!("report {seq}")),
                    ReportChange::Remove(_) => drop(self.files.remove(path)),
                }
                facts.written.insert(path.to_string(), self.fact(path));
            }
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            self.session.apply(&record);
            verdict
        }

        fn send(&mut self, line: &str) -> Verdict {
            self.send_to(line, DiskState::Fine, None)
        }

        fn propose(&mut self, call: u32) -> Decision {
            let verdict = self.send(&format!(
                r#"{{"event":"tool_proposed","call":"c{call}","tool":"Bash","args":{{"command":"ls"}}}}"#
            ));
            verdict.decision
        }

        fn finish(&mut self, call: u32) -> Verdict {
            self.send(&format!(r#"{{"event":"tool_finished","call":"c{call}","status":"ok"}}"#))
        }

        fn control(&mut self, action: &str) -> Decision {
            self.send(&format!(r#"{{"event":"control","action":"{action}"}}"#)).decision
        }

        fn present_files(&self) -> Vec<&str> {
            self.files.keys().map(String::as_str).collect()
        }

        fn summary(&self) -> SessionSummary {
            self.session.summary()
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum DiskState {
        Fine,
        Full,
    }

    const BLOCKER: &str = ".jackline/BLOCKER_REPORT.md";
    const CHECKPOINT: &str = ".jackline/CHECKPOINT.md";
    const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

    #[test]
    fn each_cause_has_its_report_and_its_command() {
        for (cause, path, action) in [
            (PauseCause::Loop, Some(BLOCKER), "clear_blocker"),
            (PauseCause::NoProgress, Some(BLOCKER), "clear_blocker"),
            (PauseCause::Checkpoint, Some(CHECKPOINT), "acknowledge"),
            (PauseCause::Protected, None, "resume"),
        ] {
            let mut world = ReportWorld::paused(cause);
            assert_eq!(world.propose(1), Decision::Pause);
            assert_eq!(world.present_files(), Vec::from_iter(path), "{cause:?}");
            let reports = world.summary().reports;
            assert!(reports.iter().map(|report| report.path()).eq(path), "{cause:?}");
            assert_eq!(world.summary().paused_cause, Some(cause));
            let others = ["acknowledge", "clear_blocker"].into_iter().filter(|it| *it != action);
            for other in others {
                assert_eq!(world.control(other), Decision::Deny, "{cause:?} {other}");
            }
            assert_eq!(world.propose(2), Decision::Pause);
            assert_eq!(world.control(action), Decision::Allow);
            assert_eq!(world.present_files(), Vec::<&str>::new(), "the report is removed");
            assert_eq!(world.propose(3), Decision::Allow);
        }
    }

    #[test]
    fn resume_and_a_message_of_a_person_end_every_pause() {
        for line in [
            r#"{"event":"control","action":"resume"}"#,
            r#"{"event":"control","action":"reset"}"#,
            r#"{"event":"prompt_submitted","text":"go on"}"#,
        ] {
            let mut world = ReportWorld::paused(PauseCause::Loop);
            world.propose(1);
            assert_eq!(world.send(line).decision, Decision::Allow);
            assert_eq!(world.present_files(), Vec::<&str>::new());
            assert_eq!(world.propose(2), Decision::Allow);
        }
    }

    #[test]
    fn a_report_that_a_person_removed_is_resolved() {
        for (cause, path, action) in [
            (PauseCause::Loop, BLOCKER, "clear_blocker"),
            (PauseCause::Checkpoint, CHECKPOINT, "acknowledge"),
        ] {
            let mut world = ReportWorld::paused(cause);
            world.propose(1);
            world.files.remove(path);
            let verdict =
                world.send(r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{}}"#);
            assert_eq!(verdict.decision, Decision::Allow);
            let [safety] = &verdict.safety[..] else { panic!("expected one safety event") };
            assert_eq!(
                (safety.kind, &safety.action_taken),
                (SafetyKind::Control, &SafetyAction::Resumed)
            );
            assert_eq!(safety.details.get("action").and_then(|it| it.as_str()), Some(action));
            assert_eq!(world.summary().phase, SessionPhase::Running);
            assert_eq!(world.present_files(), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_report_that_disappears_during_a_call_is_restored() {
        let mut world = ReportWorld::new();
        assert_eq!(world.propose(1), Decision::Allow);
        let why = "the same call was repeated".to_string();
        world.session.state_mut().paused = Some(PauseState::by_guard(PauseCause::Loop, why));
        assert_eq!(world.propose(2), Decision::Pause);
        // The first call is still open.
        world.files.remove(BLOCKER);
        let verdict = world.finish(1);
        assert_eq!(verdict.decision, Decision::Pause);
        assert_eq!(world.present_files(), [BLOCKER]);
        assert_eq!(world.summary().paused_cause, Some(PauseCause::Loop), "the cause is unchanged");
        assert_eq!(world.propose(3), Decision::Pause);
        // Now no call is open.
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(4), Decision::Allow);
    }

    #[test]
    fn the_removal_of_a_replaced_report_means_nothing() {
        let mut world = ReportWorld::paused(PauseCause::Loop);
        world.propose(1);
        world.put(BLOCKER, "of another session");
        // The report is no longer ours, so it is written again.
        assert_eq!(world.propose(2), Decision::Pause);
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(3), Decision::Allow);
    }

    #[test]
    fn changes_by_another_session_resolve_nothing() {
        let mut world = ReportWorld::paused(PauseCause::Loop);
        world.propose(1);
        world.by_us = true;
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(2), Decision::Pause);
        assert_eq!(world.present_files(), [BLOCKER], "the report is written again");
        world.by_us = false;
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(3), Decision::Allow);
    }

    #[test]
    fn a_report_that_could_not_be_written_is_retried_and_resolves_nothing() {
        let mut world = ReportWorld::paused(PauseCause::NoProgress);
        let call = r#"{"event":"tool_proposed","call":"c1","tool":"Bash","args":{}}"#;
        for _ in 0..3 {
            assert_eq!(world.send_to(call, DiskState::Full, None).decision, Decision::Pause);
            assert_eq!((world.present_files().len(), world.summary().reports.len()), (0, 0));
        }
        assert_eq!(world.send(call).decision, Decision::Pause);
        assert_eq!(world.present_files(), [BLOCKER]);
    }

    #[test]
    fn a_full_context_gets_one_briefing_until_it_is_compacted() {
        let mut world = ReportWorld::new();
        let usage = r#"{"event":"usage_reported","input":1,"output":1}"#;
        let at = |level| Some(ContextGate { level, pct: Some(86), estimated: false });
        world.send_to(usage, DiskState::Fine, at(ContextLevel::Warn));
        assert_eq!(world.present_files(), Vec::<&str>::new());
        world.send_to(usage, DiskState::Full, at(ContextLevel::Block));
        world.send_to(usage, DiskState::Fine, at(ContextLevel::Block));
        assert_eq!(world.present_files(), [BRIEFING], "written after a failed write");
        let (first, _) = world.files[BRIEFING];
        world.send_to(usage, DiskState::Fine, at(ContextLevel::Block));
        assert_eq!(world.files[BRIEFING].0, first, "the briefing is written once");
        world.send(r#"{"event":"compaction_finished"}"#);
        world.send_to(usage, DiskState::Fine, at(ContextLevel::Compact));
        assert_ne!(world.files[BRIEFING].0, first, "and written again after a compaction");
        // No pause depends on the briefing.
        world.files.remove(BRIEFING);
        assert_eq!(world.propose(1), Decision::Allow);
        assert_eq!(world.present_files(), Vec::<&str>::new());
    }

    #[test]
    fn a_stop_for_a_loop_replaces_the_report_of_the_pause() {
        let mut definition = Definition::default();
        definition.loops.mode = Mode::Enforce;
        let mut world = ReportWorld::with_definition(definition);
        let why = "the same call was repeated".to_string();
        world.session.state_mut().paused = Some(PauseState::by_guard(PauseCause::Loop, why));
        let call = |n| {
            format!(
                r#"{{"event":"tool_proposed","call":"c{n}","tool":"Bash","args":{{"command":"ls"}}}}"#
            )
        };
        for n in 1..10 {
            assert_eq!(world.propose(n), Decision::Pause);
        }
        let (paused, _) = world.files[BLOCKER];
        let verdict = world.send_to(&call(10), DiskState::Full, None);
        assert_eq!(verdict.stop.unwrap().to_string(), "SYSTEM_ERROR{loop}");
        assert_eq!(world.files[BLOCKER].0, paused, "the disk was full");
        assert_eq!(world.propose(11), Decision::Stop);
        let (stopped, _) = world.files[BLOCKER];
        assert_ne!(stopped, paused, "the next event writes the report of the stop");
        world.propose(12);
        assert_eq!(world.files[BLOCKER].0, stopped, "the report is written once");
        world.control("reset");
        assert_eq!(world.present_files(), Vec::<&str>::new());
    }

    #[test]
    fn ending_a_paused_session_gives_the_stop_code_of_the_pause() {
        for (cause, code) in [
            (PauseCause::Loop, "SYSTEM_ERROR{loop}"),
            (PauseCause::NoProgress, "CAPPED{progress}"),
            (PauseCause::Checkpoint, "CAPPED{iterations}"),
            (PauseCause::Protected, "HUMAN_REQUESTED"),
        ] {
            let mut world = ReportWorld::paused(cause);
            let verdict = world.send(r#"{"event":"session_ended"}"#);
            assert_eq!(verdict.stop.unwrap().to_string(), code);
        }
    }

    #[test]
    fn unreadable_control_files_deny_calls_with_a_reason() {
        let mut world = ReportWorld::new();
        world.markers.fault = Some("`.jackline/STOP` can't be read: no".to_string());
        let call = r#"{"event":"tool_proposed","call":"c1","tool":"Bash","args":{}}"#;
        let verdict = world.send(call);
        assert_eq!(verdict.decision, Decision::Deny);
        let [violation] = &verdict.violations[..] else { panic!("expected one violation") };
        assert_eq!(violation.kind, ViolationType::GuardFault);
        assert!(violation.message.starts_with("the guard is broken, not the call"));
        // A stop stays allowed, because otherwise the agent could not end.
        assert_eq!(world.send(r#"{"event":"stop_proposed"}"#).decision, Decision::Allow);
    }

    #[test]
    fn the_list_of_last_actions_is_short_and_has_their_results() {
        let mut world = ReportWorld::new();
        let goal = format!(r#"{{"event":"prompt_submitted","text":"{}"}}"#, "g".repeat(900));
        world.send(&goal);
        world.send(r#"{"event":"prompt_submitted","text":"another"}"#);
        assert_eq!(world.summary().goal.unwrap().chars().count(), 500);
        for call in 0..20 {
            world.propose(call);
            world.finish(call);
        }
        world.send(r#"{"event":"control","action":"pause"}"#);
        world.propose(20);
        let actions = world.summary().last_actions;
        assert_eq!(actions.len(), 8);
        let last: Vec<&str> = actions.iter().rev().take(2).map(|it| it.ended.as_str()).collect();
        assert_eq!(last, ["pause", "ok"]);
        assert_eq!(actions[0].does, "ls");
    }
}
