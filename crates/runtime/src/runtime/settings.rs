//! What an adapter sets when it starts a runtime.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_engine::definition::SchemaText;
use jackline_engine::{Event, EventKind, SessionStarted, Timestamp};

use super::Runtime;
use crate::extensions::Extensions;
use crate::facts::FactSource;
use crate::notify::Notices;
use crate::verification::Verifications;

/// How a runtime works.
pub(super) struct Settings {
    /// The workspace of sessions that name none.
    directory: PathBuf,
    /// When the work of every session must be over.
    pub(super) deadline: Option<Timestamp>,
    pub(super) saving: Saving,
}

/// When the state of a session is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saving {
    /// Before the answer.
    AtOnce,
    /// By [`Runtime::finish`].
    Deferred,
}

impl Settings {
    pub(super) fn of(directory: PathBuf) -> Self {
        Self { directory, deadline: None, saving: Saving::AtOnce }
    }

    /// The workspace that an event names, or the one of this runtime.
    pub(super) fn workspace_of(&self, event: &Event) -> PathBuf {
        self.workspace_at(named_workspace(event))
    }

    pub(super) fn workspace_at(&self, named: Option<&str>) -> PathBuf {
        let path = self.directory.join(named.unwrap_or("."));
        path.canonicalize().unwrap_or(path)
    }
}

/// The workspace that an event names.
pub(crate) fn named_workspace(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::SessionStarted(SessionStarted { workspace, .. }) => workspace.as_deref(),
        _ => None,
    }
}

impl Runtime {
    /// For an adapter that can't run a call with other arguments than it was proposed with.
    #[must_use]
    pub fn keeping_arguments(mut self) -> Self {
        self.intake.keep_arguments();
        self
    }

    /// For an adapter that has the tools itself: there are no others, and this is what they
    /// take, unless the definition says so.
    #[must_use]
    pub fn with_tools(mut self, tools: BTreeMap<String, SchemaText>) -> Self {
        self.intake.set_tools(tools);
        self
    }

    /// For an adapter that has tools itself, and perhaps not only these: where unknown tools
    /// are denied and the definition lists none, these are known.
    #[must_use]
    pub fn knowing(mut self, tools: Vec<String>) -> Self {
        self.intake.set_known(tools);
        self
    }

    /// Adds policies and checkers written in Rust.
    #[must_use]
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.sources.custom = extensions;
        self
    }

    /// Takes facts about the world from another source than this machine.
    #[must_use]
    pub fn with_fact_source(mut self, source: impl FactSource + 'static) -> Self {
        self.sources.instead = Some(Box::new(source));
        self
    }

    /// Sets how long the sources of facts may take for one decision.
    #[must_use]
    pub fn with_fact_deadline_ms(mut self, limit_ms: u64) -> Self {
        self.sources.limit_ms = Some(limit_ms);
        self
    }

    /// Sets the program that runs verifications by command: given the words
    /// `verification` and a directory, it calls [`supervise`](crate::verification::supervise).
    #[must_use]
    pub fn with_verifier(mut self, program: PathBuf) -> Self {
        self.sources.machine.verifications = Verifications::by(program);
        self
    }

    /// Sets the program that sends notices: given the word `notify`, it calls
    /// [`deliver`](crate::deliver) on its standard input.
    #[must_use]
    pub fn with_notifier(mut self, program: PathBuf) -> Self {
        self.outbox.send_by(Notices::by(program));
        self
    }

    /// Sets when the work of every session must be over.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Option<Timestamp>) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Saves states in [`finish`](Self::finish), and not before the answer: for a process
    /// that calls it soon. Where such a process is killed, a journal that is cut down to the
    /// last saved state is not noticed.
    #[must_use]
    pub fn saving_late(mut self) -> Self {
        self.settings.saving = Saving::Deferred;
        self
    }

    /// Keeps faults for the next process, where every event is a process of its own.
    #[must_use]
    pub fn with_spool(mut self) -> Self {
        self.faults.spool();
        self
    }
}
