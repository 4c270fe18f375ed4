//! What people are told of a verdict: notices, reports, the safety log.

use jackline_engine::{Event, EventKind, Facts, FaultKind, Record, SessionId, Timestamp, Verdict};
use jackline_journal::Note;

use super::Runtime;
use crate::clock;
use crate::definitions::Resolved;
use crate::live::Live;
use crate::notify::{Happened, take_undelivered};
use crate::reports::{self, Told};

/// How often is looked for what could not be sent.
const UNDELIVERED_MS: u64 = 1000;

impl Runtime {
    /// Writes down what could not be sent to people. It is looked for now and then.
    pub(super) fn note_undelivered(&mut self, now_ms: u64) {
        if self.undelivered_at_ms.is_some_and(|at| now_ms < at + UNDELIVERED_MS) {
            return;
        }
        self.undelivered_at_ms = Some(now_ms);
        for reason in self.definitions.given_home().map(take_undelivered).unwrap_or_default() {
            self.note(Note::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Keeps what a person should know of a verdict.
    pub(super) fn notice(&mut self, live: &Live, event: &Event, verdict: &Verdict, at: Timestamp) {
        let definition = live.session.definition();
        if definition.notify.is_empty() {
            return;
        }
        let workspace = live.session.place().workspace.as_deref();
        let happened = Happened { session: &live.id, workspace, at };
        let stops = matches!(event.kind, EventKind::StopProposed(_));
        let paused = stops && live.session.summary().is_paused();
        if let Some(notice) = happened.notice(event, verdict, paused) {
            self.notices.add(definition, &notice);
        }
    }

    /// Keeps that the guard is broken, for those whom the definition of the
    /// workspace tells, or the last good one.
    pub(crate) fn notice_broken(&mut self, session: &SessionId, named: Option<&str>, reason: &str) {
        let workspace = self.directory.join(named.unwrap_or("."));
        let workspace = workspace.canonicalize().unwrap_or(workspace);
        let Ok(Resolved { definition, .. }) = self.definitions.resolve(&workspace) else { return };
        let shown = workspace.display().to_string();
        let at = clock::now().wall;
        let happened = Happened { session, workspace: Some(&shown), at };
        self.notices.add(&definition, &happened.broken(reason));
    }

    /// Writes and removes the reports for people that a verdict calls for. What
    /// can't be written is tried again with the next event.
    pub(super) fn report(
        &mut self,
        live: &Live,
        event: &Event,
        facts: &mut Facts,
        verdict: &Verdict,
    ) {
        let record = Record { seq: live.session.seq() + 1, event, facts, verdict };
        let Some((orders, summary)) = live.session.reports_after(&record) else { return };
        let at = event.at.unwrap_or(facts.now.wall);
        let changed = reports::changed(&orders, live);
        let told = Told { session: &live.id, at, event, verdict, summary: &summary, changed };
        let (done, failed) = reports::carry_out(&orders, &told, &self.world(live));
        facts.written.extend(done);
        self.warn_unwritten(&failed);
        for reason in failed {
            self.note(Note::Fault { kind: FaultKind::Report, reason });
        }
    }

    /// Says that a person finds no report, once for each reason: it is tried again at every
    /// event.
    fn warn_unwritten(&mut self, failed: &[String]) {
        for reason in failed.iter().filter(|reason| !self.unwritten.contains(*reason)) {
            let warning = format!(
                "a report for people can't be written, and is tried again with the next event: {reason}"
            );
            self.warnings.push(warning);
        }
        self.unwritten = failed.to_vec();
    }

    /// Adds to the safety log what a verdict says for it. The journal has it, so
    /// nothing hangs on whether that works.
    pub(super) fn log_safety(
        &mut self,
        live: &Live,
        event: &Event,
        facts: &Facts,
        verdict: &Verdict,
    ) {
        let record = Record { seq: live.session.seq(), event, facts, verdict };
        let Some(workspace) = live.workspace() else { return };
        let entries = reports::entries(&live.id, &record);
        if let Err(reason) = reports::add_to_safety_log(workspace, entries) {
            self.note(Note::Fault { kind: FaultKind::SafetyLog, reason });
        }
    }
}
