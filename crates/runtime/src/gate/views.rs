//! What an adapter may know of its session without an event.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::event::Seen;
use jackline_engine::{Definition, Event, Summary, Timestamp};

use super::Gate;
use crate::runtime::{Bounds, Standing};

impl Gate {
    /// Where the session stands, with what others have written meanwhile.
    pub fn summary(&mut self) -> Option<Summary> {
        self.runtime.summary(&self.session)
    }

    /// The definition that the session is under, which a person may have changed.
    pub fn definition(&mut self) -> Option<Arc<Definition>> {
        self.runtime.definition_of(&self.session)
    }

    /// Whether the session may go on, as far as anything is known of it.
    pub fn standing(&mut self) -> Option<Standing> {
        self.runtime.standing(&self.session)
    }

    /// What a call that runs shows of files, if all of its result is shown.
    pub fn shows(&mut self, number: u64) -> Vec<Seen> {
        let call = self.calls.id(number);
        call.map_or_else(Vec::new, |call| self.runtime.shows(&self.session, &call))
    }

    /// Whether the session lacks a report on usage; `said` is when it was written down.
    pub fn lacks(&mut self, report: &Event, said: Option<Timestamp>) -> bool {
        self.runtime.lacks(report, said)
    }

    /// What the session allows of an output, as far as anything is known of it.
    pub fn bounds(&mut self) -> Option<Bounds> {
        self.runtime.bounds(&self.session)
    }

    /// Keeps an output whole, where only its owner can read it; or says why not.
    pub fn keep_output(&mut self, text: &str) -> Result<PathBuf, String> {
        self.runtime.keep_output(&self.session, text)
    }

    /// Where the session keeps what belongs to it, if it is kept anywhere.
    pub fn session_directory(&mut self) -> Option<PathBuf> {
        self.runtime.session_directory(&self.session)
    }

    /// Ends the work of a process that answers one event: what could not be written down is
    /// kept for the next process. `stopped`: the turn ends although no gate could look.
    pub fn close(self, stopped: bool) {
        let Self { runtime, session, .. } = self;
        runtime.close(&session, stopped);
    }
}
