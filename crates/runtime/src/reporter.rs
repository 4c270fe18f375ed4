//! Whoever reports what happens in one session, and hears what is decided.

use std::sync::Arc;

use jackline_engine::{ActorId, CallId, Definition, Event, EventKind, SessionId, Summary, Verdict};
use serde_json::Value;

use crate::door::Outcome;
use crate::runtime::Runtime;

/// One session and the runtime that has it.
pub struct Reporter {
    runtime: Runtime,
    session: SessionId,
    calls: u64,
}

impl Reporter {
    /// Reports for a session.
    pub fn new(runtime: Runtime, session: SessionId) -> Self {
        Self { runtime, session, calls: 0 }
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The runtime, for what is no event.
    pub fn runtime(&mut self) -> &mut Runtime {
        &mut self.runtime
    }

    /// Reports what the agent itself did, or what was done for it.
    pub fn tell(&mut self, kind: EventKind) -> (Verdict, Outcome) {
        self.tell_with(kind, None)
    }

    /// The same, with something that is stored and never decided on.
    pub fn tell_with(&mut self, kind: EventKind, meta: Option<Value>) -> (Verdict, Outcome) {
        let session = self.session.clone();
        self.report(session, ActorId::main(), kind, meta)
    }

    /// The same in another session, for one who can't do so any more.
    pub fn tell_of(&mut self, session: &SessionId, kind: EventKind) -> (Verdict, Outcome) {
        self.report(session.clone(), ActorId::main(), kind, None)
    }

    /// Reports what somebody did for the agent who is not the agent itself.
    pub fn tell_as(&mut self, actor: ActorId, kind: EventKind) -> (Verdict, Outcome) {
        let session = self.session.clone();
        self.report(session, actor, kind, None)
    }

    fn report(
        &mut self,
        session: SessionId,
        actor: ActorId,
        kind: EventKind,
        meta: Option<Value>,
    ) -> (Verdict, Outcome) {
        let event = Event { session, id: None, at: None, actor, kind, meta };
        let answer = self.runtime.answer(event);
        let outcome = answer.outcome;
        (answer.into_verdict(), outcome)
    }

    /// A number that no call of the session has yet.
    pub fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Goes on with numbers after this one.
    pub fn calls_so_far(&mut self, calls: u64) {
        self.calls = self.calls.max(calls);
    }

    /// The id of a call by its number.
    pub fn call_id(number: u64) -> Option<CallId> {
        CallId::parse(format!("c{number}")).ok()
    }

    /// Where the session stands, with what others have written meanwhile.
    pub fn summary(&mut self) -> Option<Summary> {
        let session = self.session.clone();
        self.runtime.summary(&session)
    }

    /// The definition that the session is under, which a person may have changed.
    pub fn definition(&mut self) -> Option<Arc<Definition>> {
        let session = self.session.clone();
        self.runtime.definition_of(&session)
    }
}
