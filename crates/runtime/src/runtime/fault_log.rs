//! What goes into the journal besides events: faults, repairs, and what an earlier process
//! could not write down.

use jackline_engine::bounds::UNANSWERED;
use jackline_engine::{Event, EventKind, SessionId, StopProposed};
use jackline_journal::Note;

use crate::redact::redact_text;
use crate::spool::{self, Left};

/// How many notes one record carries.
const NOTES_MAX: usize = 16;

/// Notes that wait for a record.
#[derive(Default)]
pub(super) struct FaultLog {
    notes: Vec<Note>,
    dropped: u64,
    /// Spool directories for notes that could not be journaled.
    places: Vec<spool::Place>,
    /// What earlier processes left for the session that was asked about last.
    left: Left,
    /// That session.
    recalled: Option<SessionId>,
}

impl FaultLog {
    /// Keeps notes for the next process where they can't be journaled.
    pub(super) fn spool(&mut self) {
        self.places = spool::places();
    }

    pub(super) fn note(&mut self, mut note: Note) {
        // Notes quote what came from outside.
        if let Note::Fault { reason, .. } | Note::Malformed { reason, .. } = &mut note
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

    /// A repair of the journal itself. It stands before the others, and outlasts an append
    /// that fails.
    pub(super) fn note_repaired(&mut self, bytes: u64) {
        self.notes.insert(0, Note::Repaired { bytes });
    }

    /// Takes up what an earlier process could not write down; it goes into the next record.
    /// Says whether the agent has stopped meanwhile, and no gate looked. A report of usage
    /// belongs to the turn before, so it does not end that.
    pub(super) fn recall(&mut self, event: &Event) -> bool {
        let is_known = self.recalled.as_ref() == Some(&event.session);
        if self.places.is_empty() || is_known || matches!(event.kind, EventKind::UsageReported(_)) {
            return false;
        }
        self.recalled = Some(event.session.clone());
        self.left = Left::read(&self.places, &event.session);
        self.left.stopped
    }

    /// Takes up again what was left, with the next event.
    pub(super) fn recall_again(&mut self) {
        self.recalled = None;
    }

    /// All notes for the next record.
    pub(super) fn pending(&self) -> Vec<Note> {
        let count = self.dropped + self.left.more;
        let dropped = (count > 0).then_some(Note::Dropped { count });
        self.left.notes.iter().chain(&self.notes).cloned().chain(dropped).collect()
    }

    /// They are in the journal.
    pub(super) fn clear(&mut self) {
        self.notes.clear();
        self.dropped = 0;
        self.left.remove();
    }

    /// Puts what no record took into the spool.
    pub(super) fn keep_for_next_process(&mut self, session: &SessionId, stopped: bool) {
        let notes = std::mem::take(&mut self.notes);
        spool::keep(&self.places, Some(session), notes, stopped);
    }
}

/// A stop that the guard could not look at ended its turn, and not as done.
pub(super) fn unanswered_stop(session: &SessionId) -> Event {
    let reason = Some(UNANSWERED.to_owned());
    Event::new(session.clone(), StopProposed { reason, ..StopProposed::default() })
}
