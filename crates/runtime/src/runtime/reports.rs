//! What people are told of a verdict: notices, reports, the safety log.

use jackline_engine::session::Understood;
use jackline_engine::{Event, EventKind, Facts, FaultKind, Record, Timestamp, Verdict};
use jackline_journal::Note;

use super::decision::scene;
use super::{Fault, Runtime};
use crate::answer::About;
use crate::definitions::Resolved;
use crate::live::Live;
use crate::notify::Happened;
use crate::reports::{self, Told};
use jackline_host::clock;

impl Runtime {
    /// Writes down which notices could not be sent to people.
    pub(super) fn note_undelivered(&mut self, now_ms: u64) {
        for reason in self.outbox.undelivered(self.definitions.given_home(), now_ms) {
            self.note(Note::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Keeps what a person should know of a verdict.
    pub(super) fn notify(&mut self, live: &Live, event: &Event, verdict: &Verdict, at: Timestamp) {
        let definition = live.session.definition();
        if definition.notify.is_empty() {
            return;
        }
        let workspace = live.session.place().workspace.as_deref();
        let happened = Happened { session: &live.id, workspace, at };
        let stops = matches!(event.kind, EventKind::StopProposed(_));
        let paused = stops && live.session.summary().is_paused();
        if let Some(notice) = happened.notice(event, verdict, paused) {
            self.outbox.notify(definition, &notice);
        }
    }

    /// Keeps that the guard is broken, for those whom the definition of the
    /// workspace tells, or the last good one.
    pub(crate) fn notify_broken(&mut self, about: &About, fault: &Fault) {
        let workspace = self.settings.workspace_at(about.workspace.as_deref());
        let Ok(Resolved { definition, .. }) = self.definitions.resolve(&workspace) else { return };
        let shown = workspace.display().to_string();
        let at = clock::now().wall;
        let happened = Happened { session: &about.session, workspace: Some(&shown), at };
        self.outbox.notify(&definition, &happened.broken(&fault.to_string()));
    }

    /// Writes and removes the reports for people that a verdict calls for. What
    /// can't be written is tried again with the next event.
    pub(super) fn report(
        &mut self,
        live: &Live,
        understood: &Understood<'_>,
        facts: &mut Facts,
        verdict: &Verdict,
    ) {
        let event = understood.event();
        let record = Record { seq: live.session.seq() + 1, event, facts, verdict };
        let Some((orders, summary)) = live.session.reports_after(understood, &record) else {
            return;
        };
        let at = event.at.unwrap_or(facts.now.wall);
        let changed = reports::changed(&orders, self.sessions.store(), live);
        let told = Told { session: &live.id, at, event, verdict, summary: &summary, changed };
        let scene = scene(&self.definitions, self.sessions.store(), live);
        let (done, failed) = reports::carry_out(&orders, &told, &scene, &self.sources.machine);
        facts.written.extend(done);
        self.outbox.warn_unwritten(&failed);
        for reason in failed {
            self.note(Note::Fault { kind: FaultKind::Report, reason });
        }
    }

    /// Adds to the safety log what a verdict says for it. The journal has it, so
    /// no decision depends on whether that works.
    pub(super) fn log_safety(&mut self, live: &Live, record: &Record<'_>) {
        let Some(workspace) = live.workspace() else { return };
        let entries = reports::entries(&live.id, record);
        if let Err(reason) = reports::add_to_safety_log(workspace, entries) {
            self.note(Note::Fault { kind: FaultKind::SafetyLog, reason });
        }
    }
}
