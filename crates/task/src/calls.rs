//! Calls over a session that somebody has begun: what they are made of, and what stays from
//! one to the next.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use crate::registry::Registry;
use jackline_attempt::{InternalOutcome, Trace};
use jackline_engine::event::AttemptResult;
use jackline_engine::{Definition, SessionId};
use jackline_journal::FileStore;
use jackline_runtime::Gate;
use jackline_sandbox_host::{Ending, Limits, Workers};
use jackline_workspace::Workspace;
use jackline_workspace::undo::Left;
use serde_json::Map;

use crate::author::SharedAuthor;
use crate::call::Calling;
use crate::context::Contexts;
use crate::recover::left;
use crate::shared::Shared;
use crate::spec::Task;
use crate::task_front::TaskFront;
use crate::told::Told;

/// How many attempts may be open at once: so many the engine keeps, one a depth.
const DEPTHS: u32 = 4;

/// What calls are made over.
pub struct Ground<'w> {
    /// Where tools work.
    pub workspace: &'w Workspace,
    /// The store of the machine.
    pub store: FileStore,
    /// The session that has begun.
    pub session: SessionId,
    /// The definition, where a person or the task has named one.
    pub definition: Option<PathBuf>,
    /// Those who run programs.
    pub workers: Workers,
    /// Whether nothing may go on any more.
    pub ending: Ending,
    /// How many attempts the session has had.
    pub attempts: u32,
}

/// Makes calls over a session, one after the other.
pub struct Calls<'w> {
    ground: Ground<'w>,
    registry: Registry,
    /// The directory of the session in the state home.
    directory: PathBuf,
    /// What programs remember.
    contexts: RefCell<Contexts>,
    /// How many attempts and calls there were so far.
    attempts: Cell<u32>,
    made: Cell<u32>,
}

/// What a call came to.
#[derive(Debug)]
pub struct Called {
    /// How it ended, with everything.
    pub outcome: InternalOutcome,
    /// How it went, with everything.
    pub trace: Trace,
    /// Why nothing may go on, where the guards hold the session.
    pub held: Option<String>,
    /// Which file is in which state, where an attempt could not be undone.
    pub stuck: Option<String>,
}

/// Who does a call, and over what.
pub(crate) struct Over<'r> {
    pub(crate) front: TaskFront<'r>,
    pub(crate) task: &'r Task,
    pub(crate) author: SharedAuthor<'r>,
    /// What calls may spend.
    pub(crate) defined: &'r Definition,
    pub(crate) hear: &'r mut dyn FnMut(&Told),
}

impl<'w> Calls<'w> {
    /// Over a session whose directory is there.
    pub fn new(ground: Ground<'w>) -> Self {
        let registry = Registry::of_home(ground.store.home());
        let directory = ground.store.directory(&ground.session);
        // Each call has at least one attempt, so no name is given twice.
        let (attempts, made) = (Cell::new(ground.attempts), Cell::new(ground.attempts));
        Self { ground, registry, directory, contexts: RefCell::default(), attempts, made }
    }

    /// Makes a call with the author that the caller has. `hear` is told how it goes on.
    pub fn call<'r>(
        &'r self,
        task: &'r Task,
        defined: &'r Definition,
        gate: &'r RefCell<Gate>,
        author: SharedAuthor<'r>,
        hear: &'r mut dyn FnMut(&Told),
    ) -> Called {
        let front = TaskFront::new(gate, Some("the next program can make it"));
        self.make(Over { front, task, author, defined, hear }, |_, _| {})
    }

    /// The same for one who has more to tell the guards when it has ended.
    pub(crate) fn make<'r>(
        &'r self,
        over: Over<'r>,
        ended: impl FnOnce(&mut TaskFront<'r>, &InternalOutcome),
    ) -> Called {
        let Over { front, task, author, defined, hear } = over;
        let ground = &self.ground;
        let shared = Shared {
            front: RefCell::new(front),
            workspace: ground.workspace,
            registry: &self.registry,
            overlay: RefCell::new(self.registry.begin()),
            contexts: RefCell::new(self.contexts.take()),
            workers: ground.workers.clone(),
            limits: Limits { depth_max: DEPTHS - 1, ..Limits::default() },
            budgets: defined.attempts.clone(),
            health: defined.health,
            directory: self.directory.clone(),
            session: ground.session.to_string(),
            store: ground.store.clone(),
            definition: ground.definition.clone(),
            attempts: Cell::new(self.attempts.get()),
            calls: Cell::new(self.made.get()),
            uses: RefCell::default(),
            commands: RefCell::default(),
            stuck: RefCell::default(),
            ending: ground.ending.clone(),
            hear: RefCell::new(hear),
        };
        let calling = Calling::new(&shared, task, author, Map::new(), None);
        let (outcome, trace) = calling.run();
        ended(&mut shared.front.borrow_mut(), &outcome);
        calling.tell_asides();
        self.attempts.set(shared.attempts.get());
        self.made.set(shared.calls.get());
        self.contexts.replace(shared.contexts.take());
        let held = shared.front.borrow().held().map(ToOwned::to_owned);
        Called { outcome, trace, held, stuck: shared.stuck.take() }
    }

    /// Ends attempts in the session that an earlier process of it left open there; their
    /// files are done with. Gives which of them stay.
    pub fn close(&self, gate: &RefCell<Gate>, open: &[u32]) -> Vec<u32> {
        let mut front = TaskFront::new(gate, None);
        let mut kept = Vec::new();
        // They may lie within earlier ones.
        for number in open.iter().rev() {
            let log = self.directory.join("undo").join(number.to_string());
            let result = match left(&log) {
                Some(Left::Committed) => AttemptResult::Commit,
                Some(Left::Open | Left::RolledBack) | None => AttemptResult::Rollback,
            };
            if result == AttemptResult::Commit {
                kept.push(*number);
            }
            // A session that takes nothing any more says so with the next event.
            let _ = front.attempt_ended(*number, result);
        }
        kept
    }
}
