//! Turns an event into a verdict.
//!
//! [`Runtime::answer`] is the whole protocol. It opens the session, redacts and decodes the event,
//! gathers facts without the session's lock, decides under the lock, makes the record durable, and
//! only then returns the answer. [`RuntimeAnswer::deferred`](crate::RuntimeAnswer) lists the work
//! that may wait until the answer is shown. [`Runtime::finish`] does that work.

mod decision;
mod intake;
mod opening;
mod outbox;
mod pending_notes;
mod record;
mod reports;
mod result_pages;
mod session_cache;
mod settings;
mod views;

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::facts::OutputFact;
use jackline_engine::{Event, FaultKind, SessionId, Verdict, wire, wire::WireError};
use jackline_journal::{JournalNote, Store, StoreError};
use serde_json::value::RawValue;

use crate::answer::{AnswerSubject, DeferredWork, RuntimeAnswer};
use crate::definitions::{DefinitionError, Definitions};
use crate::facts::{FactError, FactSources};
use intake::Intake;
use jackline_host::clock;
use jackline_host::off_switch::OffSwitch;
use outbox::Outbox;
use pending_notes::PendingNotes;
use session_cache::SessionCache;
use settings::Settings;

pub(crate) use settings::named_workspace;
pub use views::{OutputBounds, SessionRunState};

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeFault {
    /// The store can't write the record.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no definition to decide with.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// There are no facts to decide on.
    #[error(transparent)]
    Facts(#[from] FactError),
    /// Another event has this id already.
    #[error("event id `{0}` was already used for another event")]
    IdReused(String),
    /// The event has a form that could not be read back from a journal.
    #[error("invalid event: {0}")]
    InvalidEvent(#[from] WireError),
    /// Records are UTF-8 text, and they contain the path of the workspace.
    #[error("the path of the workspace `{}` is not valid UTF-8", .0.display())]
    Workspace(PathBuf),
    /// A bug in Jackline.
    #[error("an internal fault: {0}")]
    Panic(String),
}

/// An event, and the output that its adapter offers.
#[derive(Debug, Clone)]
pub struct EventRequest {
    /// The event.
    pub event: Event,
    /// A page that the adapter can show instead of the output in the event.
    pub offered_output: Option<OutputFact>,
}

impl From<Event> for EventRequest {
    fn from(event: Event) -> Self {
        Self { event, offered_output: None }
    }
}

/// A verdict as the journal stores it.
pub(crate) struct StoredVerdict {
    pub(crate) json: Box<RawValue>,
    /// The parsed form; `None` if the JSON was read from the journal.
    pub(crate) verdict: Option<Box<Verdict>>,
}

/// Runs the engine for many sessions.
///
/// ```
/// use jackline_engine::wire::parse_line;
/// use jackline_engine::{Definition, SessionId};
/// use jackline_host::HostAccess;
/// use jackline_journal::MemoryStore;
/// use jackline_runtime::{Definitions, Runtime};
///
/// let definitions = Definitions::made(Definition::default(), HostAccess::default())?;
/// let mut runtime = Runtime::new(MemoryStore::default(), definitions, std::env::temp_dir());
/// let line = br#"{"event":"tool_proposed","call":"c1","tool":"echo","args":{}}"#;
/// let answer = runtime.answer(parse_line(line, Some(&SessionId::parse("s1")?))?);
/// assert!(answer.json.contains(r#""decision":"allow""#));
/// // After the answer is shown: save states and send notifications.
/// runtime.finish(answer.deferred);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Runtime {
    settings: Settings,
    definitions: Definitions,
    switch: OffSwitch,
    sessions: SessionCache,
    intake: Intake,
    sources: FactSources,
    outbox: Outbox,
    faults: PendingNotes,
}

impl Runtime {
    /// A runtime with a store. `directory` is the workspace of sessions that name none.
    pub fn new(store: impl Store + 'static, definitions: Definitions, directory: PathBuf) -> Self {
        Self {
            settings: Settings::of(directory),
            switch: definitions.switch(),
            definitions,
            sessions: SessionCache::with_store(Arc::new(store)),
            intake: Intake::default(),
            sources: FactSources::default(),
            outbox: Outbox::default(),
            faults: PendingNotes::default(),
        }
    }

    /// Adds a note to the next record in the journal.
    pub fn add_journal_note(&mut self, note: JournalNote) {
        self.faults.add(note);
    }

    /// Answers an event. A panic propagates to the caller, who must deny; see
    /// [`answer_safely`](Self::answer_safely).
    pub fn answer(&mut self, request: impl Into<EventRequest>) -> RuntimeAnswer {
        let request = request.into();
        let about = AnswerSubject::from_event(&request.event);
        if self.faults.read_spool(&request.event) {
            // An earlier stop ended its turn without a decision of a gate, so the turn counts as
            // not done. If this stop can't be recorded, the current event is not recorded either,
            // so that the stop is not lost.
            let stop = EventRequest::from(pending_notes::unanswered_stop(&about.session));
            if let Err(fault) = self.handle(stop) {
                self.faults.read_spool_again();
                return self.answer_to(about, Err(fault));
            }
        }
        let handled = self.handle(request);
        self.answer_to(about, handled)
    }

    /// Decides on an event and makes the record durable.
    fn handle(&mut self, request: EventRequest) -> Result<StoredVerdict, RuntimeFault> {
        // Events may come from code instead of a line, and a journal must be able to read them
        // back.
        wire::check_bounds(&request.event)?;
        let session = request.event.session.clone();
        let (mut live, is_cached) = match self.sessions.take(&session) {
            Some(live) => (live, true),
            None => (self.open(&request.event)?, false),
        };
        // The definition decides how secrets are redacted, and a person may have reloaded it.
        let caught_up = if is_cached { live.catch_up() } else { Ok(()) };
        let decided = match caught_up {
            Ok(()) => self.handle_in(&mut live, request),
            Err(error) => Err(error.into()),
        };
        // After a fault, the session is read again from its journal. A session whose journal was
        // removed stays in memory and stays blocked. Otherwise it would start again with new
        // budgets because its files are missing.
        if matches!(decided, Ok(_) | Err(RuntimeFault::Store(StoreError::Removed))) {
            self.sessions.insert(session, live);
        }
        decided
    }

    /// Does the deferred work of answers: saves states, sends notifications, removes old sessions.
    pub fn finish(&mut self, deferred: DeferredWork) {
        for saved in self.sessions.save_deferred() {
            self.note_failed(saved);
        }
        self.send_notifications();
        if let Some(retention) = deferred.retention {
            let pruned = self.sessions.store().prune(&retention, clock::now().wall);
            self.note_failed(pruned.map(drop));
        }
    }

    /// Sends notifications. People wait for this part of [`finish`](Self::finish).
    pub fn send_notifications(&mut self) {
        if let Err(reason) = self.outbox.send(self.definitions.state_directory()) {
            self.add_journal_note(JournalNote::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Ends the work of a process that answers one event. Notes that could not be recorded are
    /// stored for the next process. `stopped` says that the agent's turn ended without a decision
    /// of a gate.
    pub fn close(mut self, session: &SessionId, stopped: bool) {
        self.faults.write_spool(session, stopped);
    }

    /// Notes an error of work that no answer waits for. If a state could not be saved, the next
    /// process rebuilds it from the journal.
    fn note_failed(&mut self, done: Result<(), StoreError>) {
        if let Err(error) = done {
            let (kind, reason) = (error.kind(), error.to_string());
            self.add_journal_note(JournalNote::Fault { kind, reason });
        }
    }

    /// Drops all sessions from memory; the journals contain them.
    pub(crate) fn forget_sessions(&mut self) {
        self.sessions.forget();
    }

    /// Whether a person has turned the guard off in a workspace, for events without a session.
    pub(crate) fn is_guard_off(&self, workspace: Option<&str>) -> bool {
        self.switch.current_period(Some(&self.settings.workspace_at(workspace))).is_some()
    }

    /// Takes the parts of an answer that accompany its verdict: warnings, notifications and
    /// deferred work.
    pub(crate) fn take_extras(
        &mut self,
    ) -> (Vec<String>, Vec<crate::PersonNotification>, DeferredWork) {
        let deferred = DeferredWork { retention: self.sessions.take_retention() };
        (self.outbox.take_warnings(), self.outbox.take_desktop(), deferred)
    }
}
