//! An event goes in, a verdict comes out.
//!
//! [`Runtime::answer`] is the whole protocol. It opens the session, redacts and decodes the
//! event, gathers facts without the session's lock, decides under the lock, makes the record
//! durable, and only then gives the answer. What may wait until the answer is out is named in
//! [`Answer::deferred`](crate::Answer) and done by [`Runtime::finish`].

mod decision;
mod fault_log;
mod intake;
mod opening;
mod outbox;
mod record;
mod reports;
mod session_cache;
mod settings;
mod views;

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::facts::OutputFact;
use jackline_engine::{Event, FaultKind, SessionId, Verdict, wire, wire::WireError};
use jackline_journal::{Note, Store, StoreError};
use serde_json::value::RawValue;

use crate::answer::{About, Answer, Deferred};
use crate::definitions::{DefinitionError, Definitions};
use crate::facts::{FactError, FactSources};
use fault_log::FaultLog;
use intake::Intake;
use jackline_host::clock;
use jackline_host::off::Switch;
use outbox::Outbox;
use session_cache::SessionCache;
use settings::Settings;

pub(crate) use settings::named_workspace;
pub use views::{Bounds, Standing};

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The store can't keep the record.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no definition to decide by.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// There are no facts to decide on.
    #[error(transparent)]
    Facts(#[from] FactError),
    /// The id of the event belongs to another one.
    #[error("event id `{0}` was used before, for another event")]
    IdReused(String),
    /// The event could not be read back from a journal.
    #[error("invalid event: {0}")]
    InvalidEvent(#[from] WireError),
    /// Records are text, and so are the paths in them.
    #[error("the workspace `{}` is not UTF-8", .0.display())]
    Workspace(PathBuf),
    /// A bug of ours.
    #[error("an internal fault: {0}")]
    Panic(String),
}

/// An event, and what its adapter can do about it.
#[derive(Debug, Clone)]
pub struct Request {
    /// What happened or is proposed.
    pub event: Event,
    /// What the adapter can show instead of the output that the event reports.
    pub offered_output: Option<OutputFact>,
}

impl From<Event> for Request {
    fn from(event: Event) -> Self {
        Self { event, offered_output: None }
    }
}

/// A verdict, as the journal keeps it.
pub(crate) struct StoredVerdict {
    pub(crate) json: Box<RawValue>,
    /// The same; none where it was read from the journal.
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
/// // When the answer is out, the rest is done: saving states, telling people.
/// runtime.finish(answer.deferred);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Runtime {
    settings: Settings,
    definitions: Definitions,
    switch: Switch,
    sessions: SessionCache,
    intake: Intake,
    sources: FactSources,
    outbox: Outbox,
    faults: FaultLog,
}

impl Runtime {
    /// A runtime on a store. `directory` is the workspace of sessions that name none.
    pub fn new(store: impl Store + 'static, definitions: Definitions, directory: PathBuf) -> Self {
        Self {
            settings: Settings::of(directory),
            switch: definitions.switch(),
            definitions,
            sessions: SessionCache::on(Arc::new(store)),
            intake: Intake::default(),
            sources: FactSources::default(),
            outbox: Outbox::default(),
            faults: FaultLog::default(),
        }
    }

    /// Has something written down with the next record.
    pub fn note(&mut self, note: Note) {
        self.faults.note(note);
    }

    /// Answers an event. A panic goes through to the caller, who has to deny; see
    /// [`answer_safely`](Self::answer_safely).
    pub fn answer(&mut self, request: impl Into<Request>) -> Answer {
        let request = request.into();
        let about = About::of(&request.event);
        if self.faults.recall(&request.event) {
            // A stop ended its turn while no gate could look, and the turn is not done. Where that
            // can't be written down, nothing else is, so that it is not forgotten.
            let stop = Request::from(fault_log::unanswered_stop(&about.session));
            if let Err(fault) = self.handle(stop) {
                self.faults.recall_again();
                return self.answer_to(about, Err(fault));
            }
        }
        let handled = self.handle(request);
        self.answer_to(about, handled)
    }

    /// Decides on an event and makes the record durable.
    fn handle(&mut self, request: Request) -> Result<StoredVerdict, Fault> {
        // Not every event comes as a line, and every one has to be read again.
        wire::check(&request.event)?;
        let session = request.event.session.clone();
        let (mut live, is_cached) = match self.sessions.take(&session) {
            Some(live) => (live, true),
            None => (self.open(&request.event)?, false),
        };
        // What becomes of secrets depends on the definition, which a person may have
        // reloaded since.
        let caught_up = if is_cached { live.catch_up() } else { Ok(()) };
        let decided = match caught_up {
            Ok(()) => self.handle_in(&mut live, request),
            Err(error) => Err(error.into()),
        };
        // After a fault the session is read again from its journal. A session whose journal
        // was removed stays in memory and stays shut: it must not start over with new budgets
        // because its files are gone.
        if matches!(decided, Ok(_) | Err(Fault::Store(StoreError::Removed))) {
            self.sessions.keep(session, live);
        }
        decided
    }

    /// Does the work that answers have left for later: saves states, sends notices, removes
    /// old sessions.
    pub fn finish(&mut self, deferred: Deferred) {
        for saved in self.sessions.save_late() {
            self.note_failed(saved);
        }
        self.send_notices();
        if let Some(retention) = deferred.retention {
            let pruned = self.sessions.store().prune(&retention, clock::now().wall);
            self.note_failed(pruned.map(drop));
        }
    }

    /// Sends notices: of all that [`finish`](Self::finish) does, people wait for this.
    pub fn send_notices(&mut self) {
        if let Err(reason) = self.outbox.send(self.definitions.given_home()) {
            self.note(Note::Fault { kind: FaultKind::Notify, reason });
        }
    }

    /// Ends the work of a process that answers one event: what could not be written down is
    /// kept for the next process. `stopped`: the agent's turn ends although no gate could look.
    pub fn close(mut self, session: &SessionId, stopped: bool) {
        self.faults.keep_for_next_process(session, stopped);
    }

    /// Writes down that something failed that no answer waits for. A state that could not be
    /// saved is in the journal; the next process reads it from there.
    fn note_failed(&mut self, done: Result<(), StoreError>) {
        if let Err(error) = done {
            let (kind, reason) = (error.kind(), error.to_string());
            self.note(Note::Fault { kind, reason });
        }
    }

    /// Forgets what is in memory; everything is in the journals.
    pub(crate) fn forget(&mut self) {
        self.sessions.forget();
    }

    /// Whether a person has switched the guard off in a workspace, for events
    /// that found no session.
    pub(crate) fn is_off(&self, workspace: Option<&str>) -> bool {
        self.switch.now(Some(&self.settings.workspace_at(workspace))).is_some()
    }

    /// Takes what an answer carries besides its verdict: warnings and notices for people, and
    /// work for later.
    pub(crate) fn take_extras(&mut self) -> (Vec<String>, Vec<crate::Notice>, Deferred) {
        let deferred = Deferred { retention: self.sessions.take_retention() };
        (self.outbox.take_warnings(), self.outbox.take_desktop(), deferred)
    }
}
