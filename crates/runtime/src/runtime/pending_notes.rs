//! The notes that records contain in addition to events: faults, repairs, and notes that an earlier
//! process could not record.

use jackline_engine::bounds::REASON_GUARD_BROKEN;
use jackline_engine::{Event, EventKind, SessionId, StopProposed};
use jackline_journal::JournalNote;

use crate::redact::redact_text;
use crate::spool::{self, SpooledNotes};

/// The largest number of notes in one record.
const NOTES_MAX: usize = 16;

/// Notes that wait for the next record.
#[derive(Default)]
pub(super) struct PendingNotes {
    notes: Vec<JournalNote>,
    dropped: u64,
    /// Spool directories for notes that could not be journaled.
    spool_directories: Vec<spool::SpoolDirectory>,
    /// Notes of earlier processes for the session that was read last.
    spooled: SpooledNotes,
    /// That session.
    read_session: Option<SessionId>,
}

impl PendingNotes {
    /// Enables the spool, which stores notes for the next process.
    pub(super) fn enable_spool(&mut self) {
        self.spool_directories = spool::spool_directories();
    }

    pub(super) fn add(&mut self, mut note: JournalNote) {
        // Notes quote text from outside, which may contain secrets.
        if let JournalNote::Fault { reason, .. } | JournalNote::Malformed { reason, .. } = &mut note
            && let Some(redacted) = redact_text(reason)
        {
            *reason = redacted;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.dropped += 1;
        }
    }

    /// Notes a repair of the journal itself. It comes before other notes, and stays if the append
    /// fails.
    pub(super) fn add_repair(&mut self, bytes: u64) {
        self.notes.insert(0, JournalNote::Repaired { bytes });
    }

    /// Reads the notes that an earlier process could not record, for the next record. Returns
    /// whether the agent has stopped meanwhile without a decision of a gate. A usage report belongs
    /// to the turn before, so it does not trigger this.
    pub(super) fn read_spool(&mut self, event: &Event) -> bool {
        let is_known = self.read_session.as_ref() == Some(&event.session);
        if self.spool_directories.is_empty()
            || is_known
            || matches!(event.kind, EventKind::UsageReported(_))
        {
            return false;
        }
        self.read_session = Some(event.session.clone());
        self.spooled = SpooledNotes::read(&self.spool_directories, &event.session);
        self.spooled.stopped
    }

    /// Reads the spool again with the next event.
    pub(super) fn read_spool_again(&mut self) {
        self.read_session = None;
    }

    /// All notes for the next record.
    pub(super) fn all(&self) -> Vec<JournalNote> {
        let count = self.dropped + self.spooled.more_notes;
        let dropped = (count > 0).then_some(JournalNote::Dropped { count });
        self.spooled.notes.iter().chain(&self.notes).cloned().chain(dropped).collect()
    }

    /// Removes the notes, because a record contains them.
    pub(super) fn clear(&mut self) {
        self.notes.clear();
        self.dropped = 0;
        self.spooled.remove();
    }

    /// Writes the notes that no record contains to the spool.
    pub(super) fn write_spool(&mut self, session: &SessionId, stopped: bool) {
        let notes = std::mem::take(&mut self.notes);
        spool::write_spool(&self.spool_directories, Some(session), notes, stopped);
    }
}

/// A stop on which the guard could not decide. It ended its turn, but not as done.
pub(super) fn unanswered_stop(session: &SessionId) -> Event {
    let reason = Some(REASON_GUARD_BROKEN.to_owned());
    Event::new(session.clone(), StopProposed { reason, ..StopProposed::default() })
}
