//! The reports for people, and what it means that one is gone.
//!
//! While a session is paused no call runs, so a report that vanishes then was
//! removed by a person, and that settles it. One that vanishes while a call is
//! under way is given back with the other protected files. Where nobody can tell,
//! as the world says, it is written again.

use alloc::format;
use alloc::string::String;

use super::{Answers, Fold, Guard, Look, control, protected};
use crate::event::EventKind;
use crate::facts::Facts;
use crate::state::{PauseCause, Phase, ReportFile, State};
use crate::verdict::{ContextLevel, SafetyAction, Stop, StopDetail};

pub(crate) struct ReportGuard;

impl Guard for ReportGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(report) = settled(look.state, look.facts) else { return };
        let Some(action) = report.settled_by() else { return };
        let details = [("action", action.word()), ("removed", report.path())];
        let taken =
            if is_settled(look) { SafetyAction::Resumed } else { SafetyAction::StillPaused };
        answers.safety.push(control::safety(look, details, taken));
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        if let Some(seen) = &record.facts.watched {
            // One that somebody replaced, such as another session of the same
            // workspace, is not ours any more: that it goes then says nothing.
            let off = record.facts.is_off();
            let suspected = protected::is_suspected(state);
            let is_ours = |report: &ReportFile| {
                let path = report.path();
                let Some(fact) = seen.get(path) else { return true };
                let guarded = (suspected || state.watched.is_damaged(path)) && !off;
                let given_back = guarded && !fact.by_person;
                given_back || !state.watched.differs(path, fact)
            };
            state.reports.out = state.reports.out.iter().copied().filter(is_ours).collect();
        }
        if !record.event.actor.is_main() {
            return;
        }
        let compacted = matches!(record.event.kind, EventKind::CompactionFinished(_));
        let level = record.verdict.context_gate.map(|gate| gate.level);
        let full = level.is_some_and(|level| level >= ContextLevel::Compact);
        if full && !state.reports.full {
            state.reports.brief = true;
        }
        if full {
            state.reports.full = true;
        } else if compacted || level.is_some_and(|level| level > ContextLevel::Unknown) {
            state.reports.full = false;
        }
    }
}

/// The report that the session waits with, where a person has removed it.
pub(crate) fn settled(state: &State, facts: &Facts) -> Option<ReportFile> {
    let report = wanted(state).filter(|report| state.reports.out.contains(report))?;
    let path = report.path();
    let fact = facts.watched.as_ref()?.get(path)?;
    // What we removed ourselves was about another session of this workspace.
    let removed = fact.sha256.is_none() && !fact.by_person && fact.unsure.is_none();
    let in_doubt = state.watched.is_damaged(path) || protected::is_suspected(state);
    ((fact.settled || removed) && !in_doubt).then_some(report)
}

/// Whether a person has settled all that the session is paused for. A pause that somebody has
/// put over a blocker or a checkpoint is lifted by a word, and by no file.
pub(super) fn is_settled(look: Look<'_>) -> bool {
    let action = settled(look.state, look.facts).and_then(ReportFile::settled_by);
    let after = |action| look.state.paused.clone().and_then(|paused| paused.after(action));
    action.is_some_and(|action| after(action).is_none())
}

/// Why it says nothing that the report a session waits with is gone, where it is.
pub(super) fn unsure(look: Look<'_>) -> Option<String> {
    let path = wanted(look.state)?.path();
    let why = look.facts.watched.as_ref()?.get(path)?.unsure.as_ref()?;
    Some(format!("that `{path}` is gone does not count, because {why}"))
}

/// The report that has to be there as long as a session is as it is.
pub(crate) fn wanted(state: &State) -> Option<ReportFile> {
    if let Phase::Stopped(ending) = &state.phase {
        let looped = Stop::from(ending).detail == Some(StopDetail::Loop);
        return looped.then_some(ReportFile::Blocker);
    }
    let paused = state.paused.as_ref()?;
    match paused.over.as_deref().unwrap_or(paused).cause {
        PauseCause::Loop | PauseCause::NoProgress => Some(ReportFile::Blocker),
        PauseCause::Checkpoint => Some(ReportFile::Checkpoint),
        PauseCause::Person | PauseCause::Protected => None,
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
    use crate::definition::Definition;
    use crate::digest::Digest;
    use crate::event::Event;
    use crate::facts::{Markers, Now, WatchedFact};
    use crate::id::SessionId;
    use crate::place::Place;
    use crate::session::{Record, Session};
    use crate::state::SessionPhase;
    use crate::state::{Order, Paused, Summary};
    use crate::time::Timestamp;
    use crate::verdict::ViolationType;
    use crate::verdict::{ContextGate, Decision, SafetyKind, Verdict};
    use crate::wire::parse_line;

    /// A session, and the files that it is told of.
    struct World {
        session: Session,
        /// Its reports, by path, with how they look.
        files: BTreeMap<String, (u64, Digest)>,
        writes: u64,
        markers: Markers,
        /// Whether what changed is our own doing, for another session.
        by_us: bool,
    }

    impl World {
        fn new() -> Self {
            let workspace = Some("/project".to_string());
            let place = Arc::new(Place { workspace, ..Place::default() });
            let mut session = Session::new(Arc::new(Definition::default()), place);
            // The first event finds nothing to object to.
            session.state_mut().phase = Phase::Running;
            Self {
                session,
                files: BTreeMap::new(),
                writes: 0,
                markers: Markers::default(),
                by_us: false,
            }
        }

        fn paused(cause: PauseCause) -> Self {
            let mut world = Self::new();
            let why = "it goes in circles".to_string();
            world.session.state_mut().paused = Some(Paused::by_guard(cause, why));
            world
        }

        fn put(&mut self, path: &str, text: &str) {
            self.writes += 1;
            self.files.insert(path.to_string(), (self.writes, Digest::of(text.as_bytes())));
        }

        fn fact(&self, path: &str) -> WatchedFact {
            let found = self.files.get(path);
            let look = found.map_or(0, |(look, _)| *look);
            let sha256 = found.map(|(_, sha256)| *sha256);
            WatchedFact { look, sha256, by_person: self.by_us, ..WatchedFact::default() }
        }

        /// Decides, does what is called for, and folds, as the runtime does. What
        /// `write` says no to can't be written.
        fn send_to(&mut self, line: &str, disk: Disk, gate: Option<ContextGate>) -> Verdict {
            let id = SessionId::parse("s").unwrap();
            let event: Event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let seq = self.session.seq() + 1;
            let at = Timestamp::from_ms(1000 * seq.cast_signed());
            let mut facts = Facts::at(Now::wall(at));
            facts.observed = crate::observe(&event);
            facts.markers = self.markers.clone();
            for query in &self.session.needs(&event, &facts) {
                if let crate::facts::Query::Watched { files, .. } = query {
                    let seen = files.iter().filter(|it| self.fact(&it.path).look != it.look);
                    let seen = seen.map(|it| (it.path.clone(), self.fact(&it.path)));
                    facts.watched = Some(seen.collect());
                }
            }
            let mut verdict = self.session.decide(&event, &facts);
            verdict.context_gate = verdict.context_gate.or(gate);
            for (path, contents) in self.session.gives_back(&event, &facts) {
                self.writes += 1;
                match contents {
                    Some(contents) => drop(self.files.insert(path, (self.writes, contents))),
                    None => drop(self.files.remove(&path)),
                }
            }
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            let orders = self.session.ground().understand(&event, |understood| {
                self.session.reports_after(understood, &record).map_or(vec![], |(orders, _)| orders)
            });
            for order in orders.into_iter().filter(|_| disk == Disk::Fine) {
                let path = order.report().path();
                match order {
                    Order::Write(_) => self.put(path, &format!("report {seq}")),
                    Order::Remove(_) => drop(self.files.remove(path)),
                }
                facts.written.insert(path.to_string(), self.fact(path));
            }
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            self.session.apply(&record);
            verdict
        }

        fn send(&mut self, line: &str) -> Verdict {
            self.send_to(line, Disk::Fine, None)
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

        fn there(&self) -> Vec<&str> {
            self.files.keys().map(String::as_str).collect()
        }

        fn summary(&self) -> Summary {
            self.session.summary()
        }
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Disk {
        Fine,
        Full,
    }

    const BLOCKER: &str = ".jackline/BLOCKER_REPORT.md";
    const CHECKPOINT: &str = ".jackline/CHECKPOINT.md";
    const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

    #[test]
    fn each_cause_has_its_report_and_its_way_on() {
        for (cause, path, action) in [
            (PauseCause::Loop, Some(BLOCKER), "clear_blocker"),
            (PauseCause::NoProgress, Some(BLOCKER), "clear_blocker"),
            (PauseCause::Checkpoint, Some(CHECKPOINT), "acknowledge"),
            (PauseCause::Protected, None, "resume"),
        ] {
            let mut world = World::paused(cause);
            assert_eq!(world.propose(1), Decision::Pause);
            assert_eq!(world.there(), Vec::from_iter(path), "{cause:?}");
            let reports = world.summary().reports;
            assert!(reports.iter().map(|report| report.path()).eq(path), "{cause:?}");
            assert_eq!(world.summary().paused_cause, Some(cause));
            let others = ["acknowledge", "clear_blocker"].into_iter().filter(|it| *it != action);
            for other in others {
                assert_eq!(world.control(other), Decision::Deny, "{cause:?} {other}");
            }
            assert_eq!(world.propose(2), Decision::Pause);
            assert_eq!(world.control(action), Decision::Allow);
            assert_eq!(world.there(), Vec::<&str>::new(), "what it says is over");
            assert_eq!(world.propose(3), Decision::Allow);
        }
    }

    #[test]
    fn resume_and_a_persons_message_lift_every_pause() {
        for line in [
            r#"{"event":"control","action":"resume"}"#,
            r#"{"event":"control","action":"reset"}"#,
            r#"{"event":"prompt_submitted","text":"go on"}"#,
        ] {
            let mut world = World::paused(PauseCause::Loop);
            world.propose(1);
            assert_eq!(world.send(line).decision, Decision::Allow);
            assert_eq!(world.there(), Vec::<&str>::new());
            assert_eq!(world.propose(2), Decision::Allow);
        }
    }

    #[test]
    fn a_report_that_a_person_removed_is_settled() {
        for (cause, path, action) in [
            (PauseCause::Loop, BLOCKER, "clear_blocker"),
            (PauseCause::Checkpoint, CHECKPOINT, "acknowledge"),
        ] {
            let mut world = World::paused(cause);
            world.propose(1);
            world.files.remove(path);
            let verdict =
                world.send(r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{}}"#);
            assert_eq!(verdict.decision, Decision::Allow);
            let [safety] = &verdict.safety[..] else { panic!("one line") };
            assert_eq!(
                (safety.kind, &safety.action_taken),
                (SafetyKind::Control, &SafetyAction::Resumed)
            );
            assert_eq!(safety.details.get("action").and_then(|it| it.as_str()), Some(action));
            assert_eq!(world.summary().phase, SessionPhase::Running);
            assert_eq!(world.there(), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_report_that_vanishes_in_a_call_is_given_back() {
        let mut world = World::new();
        assert_eq!(world.propose(1), Decision::Allow);
        let why = "it goes in circles".to_string();
        world.session.state_mut().paused = Some(Paused::by_guard(PauseCause::Loop, why));
        assert_eq!(world.propose(2), Decision::Pause);
        // The first call is still at work.
        world.files.remove(BLOCKER);
        let verdict = world.finish(1);
        assert_eq!(verdict.decision, Decision::Pause);
        assert_eq!(world.there(), [BLOCKER]);
        assert_eq!(world.summary().paused_cause, Some(PauseCause::Loop), "it waits for the same");
        assert_eq!(world.propose(3), Decision::Pause);
        // Now nothing is at work.
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(4), Decision::Allow);
    }

    #[test]
    fn a_report_that_somebody_replaced_says_nothing_by_going() {
        let mut world = World::paused(PauseCause::Loop);
        world.propose(1);
        world.put(BLOCKER, "of another session");
        // It is not ours any more, so it is written again, as ours.
        assert_eq!(world.propose(2), Decision::Pause);
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(3), Decision::Allow);
    }

    #[test]
    fn what_another_session_wrote_or_removed_settles_nothing() {
        let mut world = World::paused(PauseCause::Loop);
        world.propose(1);
        world.by_us = true;
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(2), Decision::Pause);
        assert_eq!(world.there(), [BLOCKER], "and is written again");
        world.by_us = false;
        world.files.remove(BLOCKER);
        assert_eq!(world.propose(3), Decision::Allow);
    }

    #[test]
    fn one_that_could_not_be_written_is_written_later_and_settles_nothing() {
        let mut world = World::paused(PauseCause::NoProgress);
        let call = r#"{"event":"tool_proposed","call":"c1","tool":"Bash","args":{}}"#;
        for _ in 0..3 {
            assert_eq!(world.send_to(call, Disk::Full, None).decision, Decision::Pause);
            assert_eq!((world.there().len(), world.summary().reports.len()), (0, 0));
        }
        assert_eq!(world.send(call).decision, Decision::Pause);
        assert_eq!(world.there(), [BLOCKER]);
    }

    #[test]
    fn a_context_that_fills_up_is_briefed_once_until_it_is_compacted() {
        let mut world = World::new();
        let usage = r#"{"event":"usage_reported","input":1,"output":1}"#;
        let at = |level| Some(ContextGate { level, pct: Some(86), estimated: false });
        world.send_to(usage, Disk::Fine, at(ContextLevel::Warn));
        assert_eq!(world.there(), Vec::<&str>::new());
        world.send_to(usage, Disk::Full, at(ContextLevel::Block));
        world.send_to(usage, Disk::Fine, at(ContextLevel::Block));
        assert_eq!(world.there(), [BRIEFING], "also after a write that failed");
        let (first, _) = world.files[BRIEFING];
        world.send_to(usage, Disk::Fine, at(ContextLevel::Block));
        assert_eq!(world.files[BRIEFING].0, first, "once");
        world.send(r#"{"event":"compaction_finished"}"#);
        world.send_to(usage, Disk::Fine, at(ContextLevel::Compact));
        assert_ne!(world.files[BRIEFING].0, first, "and again after a compaction");
        // Nobody waits for it.
        world.files.remove(BRIEFING);
        assert_eq!(world.propose(1), Decision::Allow);
        assert_eq!(world.there(), Vec::<&str>::new());
    }

    #[test]
    fn leaving_while_a_guard_holds_ends_as_what_it_holds_for() {
        for (cause, code) in [
            (PauseCause::Loop, "SYSTEM_ERROR{loop}"),
            (PauseCause::NoProgress, "CAPPED{progress}"),
            (PauseCause::Checkpoint, "CAPPED{iterations}"),
            (PauseCause::Protected, "HUMAN_REQUESTED"),
        ] {
            let mut world = World::paused(cause);
            let verdict = world.send(r#"{"event":"session_ended"}"#);
            assert_eq!(verdict.stop.unwrap().to_string(), code);
        }
    }

    #[test]
    fn what_cannot_be_looked_at_shuts_the_gate_and_says_so() {
        let mut world = World::new();
        world.markers.fault = Some("`.jackline/STOP` can't be looked at: no".to_string());
        let call = r#"{"event":"tool_proposed","call":"c1","tool":"Bash","args":{}}"#;
        let verdict = world.send(call);
        assert_eq!(verdict.decision, Decision::Deny);
        let [violation] = &verdict.violations[..] else { panic!("one") };
        assert_eq!(violation.kind, ViolationType::GuardFault);
        assert!(violation.message.starts_with("the guard is broken, not the call"));
        // A stop is not held up: nobody could go on.
        assert_eq!(world.send(r#"{"event":"stop_proposed"}"#).decision, Decision::Allow);
    }

    #[test]
    fn the_trail_is_short_and_says_how_each_action_ended() {
        let mut world = World::new();
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
        let last: Vec<&str> = actions.iter().rev().take(2).map(|it| it.ended.word()).collect();
        assert_eq!(last, ["pause", "ok"]);
        assert_eq!(actions[0].does, "ls");
    }
}
