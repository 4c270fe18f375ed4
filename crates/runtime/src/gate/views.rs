//! What an adapter can read about its session without sending an event.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::definition::IoLimits;
use jackline_engine::event::ShownLines;
use jackline_engine::output_page::PageLimits;
use jackline_engine::{CallId, Definition, Event, SessionSummary, Timestamp, ToolKind};

use super::Gate;
use crate::runtime::{OutputBounds, SessionRunState};

impl Gate {
    /// The current state of the session, with the records of other processes.
    pub fn summary(&mut self) -> Option<SessionSummary> {
        self.runtime.summary(&self.session)
    }

    /// The definition in force, which a person may have reloaded.
    pub fn definition(&mut self) -> Option<Arc<Definition>> {
        self.runtime.definition_of(&self.session)
    }

    /// Whether the session runs, is paused or is stopped, if it is known.
    pub fn session_run_state(&mut self) -> Option<SessionRunState> {
        self.runtime.session_run_state(&self.session)
    }

    /// Whether the client asks a person about this call now.
    pub fn is_asked_in_client(&mut self, call: &CallId) -> bool {
        self.runtime.is_asked_in_client(&self.session, call)
    }

    /// The parts of files that an open call shows, if its whole output is shown.
    pub fn shown_file_parts(&mut self, number: u64) -> Vec<ShownLines> {
        let call = self.calls.id(number);
        call.map_or_else(Vec::new, |call| self.runtime.shown_file_parts(&self.session, &call))
    }

    /// How much of the result of an open call is shown at once, and the first line that it shows.
    pub fn page_limits(&mut self, number: u64) -> (PageLimits, u64) {
        let call = self.calls.id(number);
        let limits = call.and_then(|call| self.runtime.page_limits(&self.session, &call));
        limits.unwrap_or_else(|| (PageLimits::of(ToolKind::Other, &IoLimits::default()), 1))
    }

    /// Whether the session has not counted a usage report yet; `reported_at` is the time of the
    /// report.
    pub fn lacks_usage_report(&mut self, report: &Event, reported_at: Option<Timestamp>) -> bool {
        self.runtime.lacks_usage_report(report, reported_at)
    }

    /// The output limits of the session, if it is known.
    pub fn output_bounds(&mut self) -> Option<OutputBounds> {
        self.runtime.output_bounds(&self.session)
    }

    /// Stores a whole output in a file that only its owner can read. Returns the path, or why this
    /// failed.
    pub fn store_output(&mut self, text: &str) -> Result<PathBuf, String> {
        self.runtime.store_output(&self.session, text)
    }

    /// The directory of the session, if its store has directories.
    pub fn session_directory(&mut self) -> Option<PathBuf> {
        self.runtime.session_directory(&self.session)
    }

    /// Ends the work of a process that answers one event. Notes that could not be recorded are
    /// stored for the next process. `stopped` says that the turn ended without a decision of a
    /// gate.
    pub fn close(self, stopped: bool) {
        let Self { runtime, session, .. } = self;
        runtime.close(&session, stopped);
    }
}
