//! Outputs of which an adapter can show something else.

use std::path::PathBuf;

use jackline_engine::definition::{Io, Mode};
use jackline_engine::{CallId, OutputFact, Seen, SessionId};

use super::Runtime;
use crate::spill::Spill;

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
    /// What a session allows of an output, as far as anything is known of it.
    pub fn bounds(&mut self, id: &SessionId) -> Option<Bounds> {
        let live = self.at_hand(id)?;
        let definition = live.session.definition();
        let (io, mode) = (definition.io, definition.mode);
        let workspace = live.workspace().map(ToOwned::to_owned);
        let off = self.switch.now(workspace.as_deref()).is_some();
        Some(Bounds { io, enforced: mode == Mode::Enforce && !off, workspace })
    }

    /// Keeps an output whole, where nobody else reads it; or says why not.
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

    /// Says what can be shown instead of the output of the next event.
    pub fn offer(&mut self, output: OutputFact) {
        self.offered = Some(output);
    }
}
