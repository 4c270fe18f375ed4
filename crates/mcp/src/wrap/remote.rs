//! A server elsewhere, spoken to by streamable HTTP.
//!
//! Each line of the client is posted by a thread of its own, which then hears the
//! answer: one message, or a stream of them. Who asks may overtake who asks; but
//! nobody overtakes a line that takes no answer, as `notifications/initialized`.
//! Whoever posts can be called back: its connection is closed under it.

mod address;
mod flight;
mod listener;
mod mirror;
mod outgoing;
mod stream;
mod trouble;

pub use self::address::{Address, AddressError, Encryption};

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use ureq::{Agent, RequestBuilder};

use self::flight::Flight;
use self::mirror::Mirrors;
use self::outgoing::{Kind, Outgoing};
use super::errors::Failure;
use super::ledger::Open;
use super::lines::LINE_BYTES_MAX;
use super::message::Id;
use super::server::{Ear, Server, lock};
use super::shared::{Job, Shared};

/// How many requests may be under way at once.
const FLIGHTS_MAX: usize = 32;

/// How many may wait for that, and how long they may be together.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 2 * LINE_BYTES_MAX;

/// How long the end of a session may take.
const DELETE: Duration = Duration::from_secs(1);

/// A server at work, as far as that can be known.
pub(super) struct Remote {
    address: Address,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is to be posted, oldest first.
    waiting: VecDeque<Outgoing>,
    /// What is under way, by number.
    flying: BTreeMap<u64, Flying>,
    /// Who nobody overtakes.
    ordered: Option<u64>,
    /// Who has a connection and nothing to ask.
    free: Vec<Agent>,
    /// The name of the session, where the server has one.
    session: Option<String>,
    /// What headers repeat of calls.
    mirrors: Mirrors,
    /// How many were under way so far.
    count: u64,
    /// Nothing more will come.
    closing: bool,
    /// Nothing more is heard.
    ended: bool,
}

/// A request under way.
struct Flying {
    /// Who waits for an answer.
    asked: Vec<Id>,
    agent: Agent,
    /// Whether the end of the connection takes it back, without a message.
    stateless: bool,
    /// Whether it is heard until somebody has heard enough.
    listens: bool,
    /// Nobody wants to hear anything of it.
    called_back: bool,
}

impl Flying {
    fn call_back(&mut self) {
        self.called_back = true;
        self.agent.clone().shutdown();
    }
}

impl Remote {
    /// Nobody is asked before the client asks something.
    pub(super) fn new(address: Address) -> (Arc<Self>, Vec<Ear>) {
        let remote = Self { address, state: Mutex::default(), changed: Condvar::new() };
        let remote = Arc::new(remote);
        let dispatcher = Arc::clone(&remote);
        (remote, vec![Box::new(move |shared| dispatcher.dispatch(shared))])
    }

    /// Lets fly what waits, until nothing more will come.
    fn dispatch(self: &Arc<Self>, shared: &Arc<Shared>) {
        let mut state = lock(&self.state);
        while !state.ended {
            if let Some((number, outgoing)) = state.next(&self.address) {
                drop(state);
                self.let_fly(shared, number, outgoing);
                state = lock(&self.state);
            } else if state.is_done() {
                break;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(state);
        shared.send(Job::Silent);
        shared.send(Job::Ended);
    }

    fn let_fly(self: &Arc<Self>, shared: &Arc<Shared>, number: u64, outgoing: Outgoing) {
        let (remote, with) = (Arc::clone(self), Arc::clone(shared));
        let fly = move || Flight { remote: &remote, shared: &with, number }.fly(&outgoing);
        if let Err(error) = std::thread::Builder::new().spawn(fly) {
            let failure = self.unreached(&format!("there is no thread for it: {error}"));
            self.land(shared, number, Some(failure));
        }
    }

    /// A request is over. Whoever still waits for it is told why.
    fn land(&self, shared: &Shared, number: u64, failure: Option<Failure>) {
        let flying = {
            let mut state = self.lock();
            state.pass(number);
            state.flying.remove(&number)
        };
        let Some(flying) = flying.filter(|flying| !flying.called_back) else { return };
        let Some(failure) = failure else { return self.lock().free.push(flying.agent) };
        if flying.asked.is_empty() && !flying.listens {
            shared.complain(&failure.text());
        }
        flying.asked.iter().for_each(|id| shared.fail(id, failure.clone()));
    }

    /// A request with what is said in all of them.
    fn headed<B>(
        &self,
        mut request: RequestBuilder<B>,
        session: Option<&str>,
        version: Option<&str>,
    ) -> RequestBuilder<B> {
        for (name, value) in &self.address.headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        request
    }

    /// Tells the server that nobody needs the session any more. Many don't care.
    fn delete(&self, shared: &Shared, session: &str) {
        let agent = self.address.agent();
        let request = agent.delete(&self.address.uri);
        let request = request.config().timeout_global(Some(DELETE)).build();
        let agreed = lock(&shared.agreed).clone();
        let _ = self.headed(request, Some(session), agreed.as_deref()).call();
    }

    /// The state, to change it; who waits for that looks once it is let go.
    fn lock(&self) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        self.changed.notify_all();
        state
    }
}

impl Server for Remote {
    fn send(&self, shared: &Shared, line: Vec<u8>) {
        let mut outgoing = Outgoing::new(line);
        let mut state = self.lock();
        outgoing.mirror(&state.mirrors);
        if let Kind::Cancelled(id) = &outgoing.kind
            && (state.take_back(id) == Told::Already || outgoing.stateless.is_some())
        {
            return;
        }
        let Some(outgoing) = state.queue(outgoing) else { return };
        drop(state);
        if outgoing.asked.is_empty() {
            shared.complain("a message is dropped: too many are under way");
        }
        outgoing.asked.iter().for_each(|id| shared.fail(id, Failure::Busy));
    }

    fn take_back(&self, open: &Open, notice: Option<&str>) {
        let mut state = self.lock();
        if state.take_back(&open.id) == Told::ByMessage
            && let Some(notice) = notice
        {
            // Where there is no room for it the server goes without.
            let _ = state.queue(Outgoing::new(notice.as_bytes().to_vec()));
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.flying.values_mut().filter(|flying| flying.listens).for_each(Flying::call_back);
    }

    fn end(&self, shared: &Shared) -> String {
        let session = {
            let mut state = self.lock();
            state.ended = true;
            state.waiting.clear();
            state.flying.values_mut().for_each(Flying::call_back);
            state.session.take()
        };
        if let Some(session) = session {
            self.delete(shared, &session);
        }
        "the connection to it was closed".to_owned()
    }

    fn last_words(&self) -> Option<String> {
        None
    }

    fn listed(&self, shared: &Shared, tools: &[Value]) {
        let bad = self.lock().mirrors.listed(tools);
        for tool in bad {
            shared.complain(&format!(
                "the tool `{tool}` marks parameters for headers that can't be sent; it may not work"
            ));
        }
    }
}

/// How a server hears that a request was taken back.
#[derive(PartialEq, Eq)]
enum Told {
    /// By the end of the connection; or it has never heard of the request.
    Already,
    ByMessage,
}

impl State {
    /// Has a line wait; gives back what there is no room for.
    fn queue(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        let bytes: usize = self.waiting.iter().map(|waiting| waiting.body.len()).sum();
        let full = self.waiting.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX;
        if self.closing || full {
            return Some(outgoing);
        }
        self.waiting.push_back(outgoing);
        None
    }

    /// What may fly now.
    fn next(&mut self, address: &Address) -> Option<(u64, Outgoing)> {
        if self.ordered.is_some() || self.flying.len() >= FLIGHTS_MAX {
            return None;
        }
        let outgoing = self.waiting.pop_front()?;
        let number = self.enter(address, &outgoing);
        self.ordered = outgoing.is_ordered().then_some(number);
        Some((number, outgoing))
    }

    /// Something is under way from now on.
    fn enter(&mut self, address: &Address, outgoing: &Outgoing) -> u64 {
        self.count += 1;
        let flying = Flying {
            asked: outgoing.asked.clone(),
            agent: self.free.pop().unwrap_or_else(|| address.agent()),
            stateless: outgoing.stateless.is_some(),
            listens: outgoing.kind == Kind::Listen,
            called_back: false,
        };
        self.flying.insert(self.count, flying);
        self.count
    }

    /// Others may come behind this one.
    fn pass(&mut self, number: u64) {
        if self.ordered == Some(number) {
            self.ordered = None;
        }
    }

    /// Whether the client has left, and everything that it asked is answered.
    fn is_done(&self) -> bool {
        let heard = self.flying.values().all(|flying| flying.listens);
        self.closing && self.waiting.is_empty() && heard
    }

    /// Nobody waits for this request any more.
    fn take_back(&mut self, id: &Id) -> Told {
        let before = self.waiting.len();
        self.waiting.retain_mut(|outgoing| {
            let asks = outgoing.asked.contains(id);
            outgoing.asked.retain(|other| other != id);
            !(asks && outgoing.asked.is_empty())
        });
        let unsent = self.waiting.len() < before;
        let mut told = if unsent { Told::Already } else { Told::ByMessage };
        for flying in self.flying.values_mut().filter(|flying| flying.asked.contains(id)) {
            flying.asked.retain(|other| other != id);
            if flying.asked.is_empty() {
                flying.call_back();
            }
            if flying.stateless {
                told = Told::Already;
            }
        }
        told
    }
}
