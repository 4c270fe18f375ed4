//! What is known of a session without an event.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::definition::{Io, Mode};
use jackline_engine::event::Seen;
use jackline_engine::summary::ReportFile;
use jackline_engine::{
    CallId, Definition, Event, Session, SessionId, SessionPhase, Summary, Timestamp,
};

use super::Runtime;
use crate::live::Live;
use crate::spill::Spill;

/// Whether a session may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Running,
    /// A person, or a guard, has paused it, and why.
    Paused(String),
    /// It is over, and how.
    Stopped(String),
}

impl Standing {
    fn of(summary: &Summary) -> Self {
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

/// What a session allows of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// How much.
    pub io: Io,
    /// Whether that holds now.
    pub enforced: bool,
    /// The workspace of the session.
    pub workspace: Option<PathBuf>,
}

impl Runtime {
    /// Whether a session may go on, as far as anything is known of it.
    pub fn standing(&mut self, id: &SessionId) -> Option<Standing> {
        self.summary(id).map(|summary| Standing::of(&summary))
    }

    /// Where a session stands, as far as anything is known of it.
    pub fn summary(&mut self, id: &SessionId) -> Option<Summary> {
        self.with(id, Session::summary)
    }

    /// The definition that a session is under.
    pub fn definition_of(&mut self, id: &SessionId) -> Option<Arc<Definition>> {
        self.with(id, |session| Arc::clone(session.definition()))
    }

    fn with<T>(&mut self, id: &SessionId, tell: impl FnOnce(&Session) -> T) -> Option<T> {
        if let Some(live) = self.sessions.open_mut(id) {
            // Others steer the same session; what can't be read now is read at the next gate.
            let _ = live.catch_up();
            return Some(tell(&live.session));
        }
        Some(tell(&self.sessions.look(id, &self.definitions)?.session))
    }

    fn at_hand(&mut self, id: &SessionId) -> Option<&Live> {
        self.sessions.at_hand(id, &self.definitions)
    }

    /// Whether a session lacks a report on usage; `said` is when it was written down.
    pub fn lacks(&mut self, report: &Event, said: Option<Timestamp>) -> bool {
        let live = self.at_hand(&report.session);
        live.is_some_and(|live| !live.session.has_counted(report, said))
    }

    /// What a session allows of an output, as far as anything is known of it.
    pub fn bounds(&mut self, id: &SessionId) -> Option<Bounds> {
        let live = self.at_hand(id)?;
        let definition = live.session.definition();
        let (io, mode) = (definition.io, definition.mode);
        let workspace = live.workspace().map(ToOwned::to_owned);
        let off = self.switch.now(workspace.as_deref()).is_some();
        Some(Bounds { io, enforced: mode == Mode::Enforce && !off, workspace })
    }

    /// Keeps an output whole, where only its person can read it; or says why not.
    pub fn keep_output(&mut self, id: &SessionId, text: &str) -> Result<PathBuf, String> {
        let live = self.at_hand(id);
        let directory = live.and_then(|live| live.log.directory()).ok_or("it has no directory")?;
        let mut spill = Spill::new(directory.join("spill"));
        spill.keep(text).map(|(_, path)| path).map_err(|error| error.to_string())
    }

    /// Where a session keeps what belongs to it, if it is kept anywhere.
    pub fn session_directory(&mut self, id: &SessionId) -> Option<PathBuf> {
        self.at_hand(id)?.log.directory().map(ToOwned::to_owned)
    }

    /// What an open call shows of files, if all of its result is shown.
    pub fn shows(&mut self, id: &SessionId, call: &CallId) -> Vec<Seen> {
        self.at_hand(id).map_or_else(Vec::new, |live| live.session.shows(call))
    }
}
