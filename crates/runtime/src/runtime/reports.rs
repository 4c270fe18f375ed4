//! Reports a verdict to people: notifications, reports, the safety log.

use jackline_engine::session::InterpretedEvent;
use jackline_engine::{Event, EventKind, Facts, FaultKind, Record, Timestamp, Verdict};
use jackline_journal::JournalNote;

use super::decision::fact_context;
use super::{Runtime, RuntimeFault};
use crate::answer::AnswerSubject;
use crate::definitions::ResolvedDefinition;
use crate::live_session::LiveSession;
use crate::notify::NotificationContext;
use crate::reports::{self, ReportInput};
use jackline_host::clock;

impl Runtime {
    /// Notes which notifications could not be sent.
    pub(super) fn note_undelivered(&mut self, now_ms: u64) {
        for reason in self.outbox.take_failures(self.definitions.state_directory(), now_ms) {
            self.add_journal_note(JournalNote::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Queues the notification for a verdict.
    pub(super) fn notify(
        &mut self,
        live: &LiveSession,
        event: &Event,
        verdict: &Verdict,
        at: Timestamp,
    ) {
        let definition = live.session.definition();
        if definition.notify.is_empty() {
            return;
        }
        let workspace = live.session.location().workspace.as_deref();
        let happened = NotificationContext { session: &live.id, workspace, at };
        let stops = matches!(event.kind, EventKind::StopProposed(_));
        let paused = stops && live.session.summary().is_paused();
        if let Some(notice) = happened.for_verdict(event, verdict, paused) {
            self.outbox.queue_notification(definition, &notice);
        }
    }

    /// Queues a notification about the broken guard, for the receivers in the definition of the
    /// workspace or in the last good one.
    pub(crate) fn notify_broken(&mut self, about: &AnswerSubject, fault: &RuntimeFault) {
        let workspace = self.settings.workspace_at(about.workspace.as_deref());
        let Ok(ResolvedDefinition { definition, .. }) = self.definitions.resolve(&workspace) else {
            return;
        };
        let shown = workspace.display().to_string();
        let at = clock::now().wall;
        let happened = NotificationContext { session: &about.session, workspace: Some(&shown), at };
        self.outbox.queue_notification(&definition, &happened.for_broken_guard(&fault.to_string()));
    }

    /// Writes and removes the reports that a verdict orders. If this fails, the next event tries
    /// again.
    pub(super) fn write_reports(
        &mut self,
        live: &LiveSession,
        understood: &InterpretedEvent<'_>,
        facts: &mut Facts,
        verdict: &Verdict,
    ) {
        let event = understood.event();
        let record = Record { seq: live.session.seq() + 1, event, facts, verdict };
        let Some((orders, summary)) = live.session.report_changes_after(understood, &record) else {
            return;
        };
        let at = event.at.unwrap_or(facts.now.wall);
        let changed = reports::changed_files(&orders, self.sessions.store(), live);
        let input = ReportInput {
            session: &live.id,
            at,
            event,
            verdict,
            summary: &summary,
            changed_files: changed,
        };
        let scene = fact_context(&self.definitions, self.sessions.store(), live);
        let (done, failed) =
            reports::execute_orders(&orders, &input, &scene, &self.sources.machine);
        facts.written.extend(done);
        self.outbox.warn_unwritten(&failed);
        for reason in failed {
            self.add_journal_note(JournalNote::Fault { kind: FaultKind::Report, reason });
        }
    }

    /// Adds the safety events of a verdict to the safety log. The journal contains them too, so no
    /// decision depends on this.
    pub(super) fn log_safety(&mut self, live: &LiveSession, record: &Record<'_>) {
        let Some(workspace) = live.workspace() else { return };
        let entries = reports::safety_log_entries(&live.id, record);
        if let Err(reason) = reports::add_to_safety_log(workspace, entries) {
            self.add_journal_note(JournalNote::Fault { kind: FaultKind::SafetyLog, reason });
        }
    }
}
