//! What a caller can read about a session without sending an event.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::definition::{IoLimits, Mode};
use jackline_engine::event::ShownLines;
use jackline_engine::output_page::PageLimits;
use jackline_engine::summary::ReportFile;
use jackline_engine::{
    CallId, Definition, Event, Session, SessionId, SessionPhase, SessionSummary, Timestamp,
};

use super::Runtime;
use crate::live_session::LiveSession;
use crate::spill::Spill;

/// Whether a session runs, is paused or is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRunState {
    /// It runs.
    Running,
    /// A person or a guard has paused it; with the reason.
    Paused(String),
    /// It has stopped; with the stop code.
    Stopped(String),
}

impl SessionRunState {
    fn of(summary: &SessionSummary) -> Self {
        match (summary.phase, &summary.stop) {
            (SessionPhase::Stopped, Some(stop)) => Self::Stopped(stop.to_string()),
            (SessionPhase::Paused, _) => {
                let why = summary.paused_why.clone();
                let why = why.unwrap_or_else(|| "no reason given".to_owned());
                let report = summary.reports.iter().find(|it| **it != ReportFile::Briefing);
                let read = report.map_or_else(String::new, |it| format!(" (see `{}`)", it.path()));
                Self::Paused(format!("{why}{read}"))
            }
            _ => Self::Running,
        }
    }
}

/// The output limits of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputBounds {
    /// The limits.
    pub io: IoLimits,
    /// Whether they are enforced now.
    pub enforced: bool,
    /// The workspace of the session.
    pub workspace: Option<PathBuf>,
}

impl Runtime {
    /// Whether a session runs, is paused or is stopped, if it is known.
    pub fn session_run_state(&mut self, id: &SessionId) -> Option<SessionRunState> {
        self.summary(id).map(|summary| SessionRunState::of(&summary))
    }

    /// The current state of a session, if it is known.
    pub fn summary(&mut self, id: &SessionId) -> Option<SessionSummary> {
        self.read_session(id, Session::summary)
    }

    /// The definition in force for a session.
    pub fn definition_of(&mut self, id: &SessionId) -> Option<Arc<Definition>> {
        self.read_session(id, |session| Arc::clone(session.definition()))
    }

    fn read_session<T>(&mut self, id: &SessionId, read: impl FnOnce(&Session) -> T) -> Option<T> {
        if let Some(live) = self.sessions.open_mut(id) {
            // Other processes may add records. If they can't be read now, the next event reads
            // them.
            let _ = live.catch_up();
            return Some(read(&live.session));
        }
        Some(read(&self.sessions.load(id, &self.definitions)?.session))
    }

    fn open_session(&mut self, id: &SessionId) -> Option<&LiveSession> {
        self.sessions.get_or_open(id, &self.definitions)
    }

    /// Whether a session has not counted a usage report yet; `reported_at` is the time of the
    /// report.
    pub fn lacks_usage_report(&mut self, report: &Event, reported_at: Option<Timestamp>) -> bool {
        let live = self.open_session(&report.session);
        live.is_some_and(|live| !live.session.has_counted(report, reported_at))
    }

    /// The output limits of a session, if it is known.
    pub fn output_bounds(&mut self, id: &SessionId) -> Option<OutputBounds> {
        let live = self.open_session(id)?;
        let definition = live.session.definition();
        let (io, mode) = (definition.io, definition.mode);
        let workspace = live.workspace().map(ToOwned::to_owned);
        let off = self.switch.current_period(workspace.as_deref()).is_some();
        Some(OutputBounds { io, enforced: mode == Mode::Enforce && !off, workspace })
    }

    /// Stores a whole output in a file that only its owner can read. Returns the path, or why this
    /// failed.
    pub fn store_output(&mut self, id: &SessionId, text: &str) -> Result<PathBuf, String> {
        let live = self.open_session(id);
        let directory =
            live.and_then(|live| live.log.directory()).ok_or("the session has no directory")?;
        let mut spill = Spill::new(directory.join("spill"));
        spill.store(text).map(|(_, path)| path).map_err(|error| error.to_string())
    }

    /// The directory of a session, if its store has directories.
    pub fn session_directory(&mut self, id: &SessionId) -> Option<PathBuf> {
        self.open_session(id)?.log.directory().map(ToOwned::to_owned)
    }

    /// How much of the result of an open call is shown at once, and the first line that it shows,
    /// if the session is known.
    pub fn page_limits(&mut self, id: &SessionId, call: &CallId) -> Option<(PageLimits, u64)> {
        self.open_session(id).map(|live| live.session.page_limits_of(call))
    }

    /// Whether the client asks a person about this call now.
    pub fn is_asked_in_client(&mut self, id: &SessionId, call: &CallId) -> bool {
        self.read_session(id, |session| session.is_asked_in_client(call)).unwrap_or(false)
    }

    /// The parts of files that an open call shows, if its whole output is shown.
    pub fn shown_file_parts(&mut self, id: &SessionId, call: &CallId) -> Vec<ShownLines> {
        self.open_session(id).map_or_else(Vec::new, |live| live.session.lines_shown_by(call))
    }
}
