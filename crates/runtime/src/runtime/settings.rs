//! The settings of a runtime that an adapter chooses.

use std::path::PathBuf;

use jackline_engine::{Event, EventKind, SessionStarted, Timestamp};

use super::Runtime;
use crate::adapter_tools::AdapterTools;
use crate::extensions::Extensions;
use crate::facts::FactSource;
use crate::notify::NotificationQueue;
use crate::surfaces::{SurfaceCapability, SurfaceProfile};
use crate::verification::VerificationRunner;

/// The settings of a runtime.
pub(super) struct Settings {
    /// The workspace of sessions that name none.
    directory: PathBuf,
    /// The time by which every session must end.
    pub(super) deadline: Option<Timestamp>,
    pub(super) saving: StateSaving,
    /// Whether the caller cuts a long result as the verdict says.
    pub(super) caller_shows_pages: bool,
    /// Whether this process works on its sessions for as long as it lives.
    pub(super) holds_sessions: bool,
}

/// When the state of a session is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateSaving {
    /// Before the answer.
    AtOnce,
    /// By [`Runtime::finish`].
    Deferred,
}

impl Settings {
    pub(super) fn of(directory: PathBuf) -> Self {
        Self {
            directory,
            deadline: None,
            saving: StateSaving::AtOnce,
            caller_shows_pages: false,
            holds_sessions: false,
        }
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
    /// Shows other processes that this process works on its sessions for as long as it lives. Use
    /// this in a process that answers many events.
    #[must_use]
    pub fn with_held_sessions(mut self) -> Self {
        self.settings.holds_sessions = true;
        self
    }

    /// Sets the adapter. If it can't replace the arguments of a call, they must be valid as they are.
    #[must_use]
    pub fn with_surface(mut self, surface: &SurfaceProfile) -> Self {
        if !surface.supports(SurfaceCapability::ReplaceArguments) {
            self.intake.keep_arguments();
        }
        self
    }

    /// Tells the runtime that its caller shows a result only after the verdict, and cuts a long one
    /// as [`Verdict::page`](jackline_engine::Verdict::page) says.
    #[must_use]
    pub fn with_result_pages(mut self) -> Self {
        self.settings.caller_shows_pages = true;
        self
    }

    /// Sets the tools that the adapter knows.
    #[must_use]
    pub fn with_tools(mut self, tools: AdapterTools) -> Self {
        self.set_tools(tools);
        self
    }

    /// Replaces the tools that the adapter knows.
    pub fn set_tools(&mut self, tools: AdapterTools) {
        self.intake.set_tools(tools);
    }

    /// Adds policies, checkers and feedback providers written in Rust.
    #[must_use]
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.sources.extensions = extensions;
        self
    }

    /// Gets facts from another source instead of this machine.
    #[must_use]
    pub fn with_fact_source(mut self, source: impl FactSource + 'static) -> Self {
        self.sources.replacement = Some(Box::new(source));
        self
    }

    /// Sets the time limit for all facts of one decision.
    #[must_use]
    pub fn with_fact_deadline_ms(mut self, limit_ms: u64) -> Self {
        self.sources.limit_ms = Some(limit_ms);
        self
    }

    /// Sets the program that runs verifications by command. With the arguments `verification` and a
    /// directory, it must call [`supervise`](crate::verification::supervise).
    #[must_use]
    pub fn with_verifier(mut self, program: PathBuf) -> Self {
        self.sources.machine.verifications = VerificationRunner::with_program(program);
        self
    }

    /// Sets the program that sends notifications. With the argument `notify`, it must call
    /// [`deliver`](crate::deliver) with its standard input.
    #[must_use]
    pub fn with_notifier(mut self, program: PathBuf) -> Self {
        self.outbox.send_by(NotificationQueue::with_program(program));
        self
    }

    /// Sets the time by which every session must end.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Option<Timestamp>) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Saves states in [`finish`](Self::finish) instead of before the answer, for a process that
    /// calls `finish` soon. If the process is killed before that, a journal that was truncated to
    /// the last saved state is not detected.
    #[must_use]
    pub fn with_deferred_saving(mut self) -> Self {
        self.settings.saving = StateSaving::Deferred;
        self
    }

    /// Stores faults for the next process. Use this if every event has its own process.
    #[must_use]
    pub fn with_spool(mut self) -> Self {
        self.faults.enable_spool();
        self
    }
}
