//! A server elsewhere, reached by streamable HTTP.
//!
//! Each line of the client is posted by its own thread, which then reads the answer: one message,
//! or a stream of messages. Requests may overtake each other. But nothing may overtake a line
//! without an answer, such as `notifications/initialized`. A request can be cancelled by closing
//! its connection.

mod connection_failure;
mod event_stream;
mod outgoing_line;
mod param_headers;
mod posted_line;
mod server_address;
mod server_stream;

pub use self::server_address::{AddressError, Encryption, ServerAddress};

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use ureq::{Agent, RequestBuilder};

use self::outgoing_line::{OutgoingKind, OutgoingLine};
use self::param_headers::ParamHeaders;
use self::posted_line::PostedLine;
use super::bounded_lines::LINE_BYTES_MAX;
use super::open_requests::OpenRequest;
use super::proxied_server::{ProxiedServer, Watcher, lock_ignoring_poison};
use super::proxy_failure::ProxyFailure;
use super::proxy_shared::{ProxyJob, ProxyShared};
use super::rpc_message::RpcId;

/// How many requests may be open at once.
const POSTS_MAX: usize = 32;

/// How many requests may wait in the queue, and how large they may be together.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 2 * LINE_BYTES_MAX;

/// The timeout of the request that ends a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection to a server.
pub(super) struct RemoteServer {
    address: ServerAddress,
    state: Mutex<ConnectionState>,
    changed: Condvar,
}

#[derive(Default)]
struct ConnectionState {
    /// The requests to be posted, the oldest first.
    waiting: VecDeque<OutgoingLine>,
    /// The open requests, by number.
    open_posts: BTreeMap<u64, OpenPost>,
    /// The request that nothing may overtake.
    blocking_post: Option<u64>,
    /// Agents with an idle connection.
    idle_agents: Vec<Agent>,
    /// The session id, if the server has one.
    session: Option<String>,
    /// The call parameters that are repeated in headers.
    param_headers: ParamHeaders,
    /// How many requests were opened so far.
    count: u64,
    /// Whether the client sends nothing more.
    is_closing: bool,
    /// Whether the connection was closed.
    is_closed: bool,
}

/// An open request.
struct OpenPost {
    /// The ids that wait for an answer.
    waiting_ids: Vec<RpcId>,
    agent: Agent,
    /// Whether closing the connection cancels the request, without a message.
    stateless: bool,
    /// Whether the request listens until the client cancels it.
    is_listening: bool,
    /// Whether the request was cancelled.
    is_cancelled: bool,
}

impl OpenPost {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        self.agent.clone().shutdown();
    }
}

impl RemoteServer {
    /// Creates the connection. Nothing is sent before the client sends something.
    pub(super) fn new(address: ServerAddress) -> (Arc<Self>, Vec<Watcher>) {
        let remote = Self { address, state: Mutex::default(), changed: Condvar::new() };
        let remote = Arc::new(remote);
        let dispatcher = Arc::clone(&remote);
        (remote, vec![Box::new(move |shared| dispatcher.dispatch_queue(shared))])
    }

    /// Posts the waiting requests, until the client has left and all are answered.
    fn dispatch_queue(self: &Arc<Self>, shared: &Arc<ProxyShared>) {
        let mut state = lock_ignoring_poison(&self.state);
        while !state.is_closed {
            if let Some((number, outgoing)) = state.next_post(&self.address) {
                drop(state);
                self.start_post(shared, number, outgoing);
                state = lock_ignoring_poison(&self.state);
            } else if state.is_done() {
                break;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(state);
        shared.send(ProxyJob::OutputClosed);
        shared.send(ProxyJob::ServerExited);
    }

    fn start_post(
        self: &Arc<Self>,
        shared: &Arc<ProxyShared>,
        number: u64,
        outgoing: OutgoingLine,
    ) {
        let (remote, with) = (Arc::clone(self), Arc::clone(shared));
        let fly = move || PostedLine { remote: &remote, shared: &with, number }.run(&outgoing);
        if let Err(error) = std::thread::Builder::new().spawn(fly) {
            let failure = self.not_reached(&format!("can't start a thread: {error}"));
            self.finish_post(shared, number, Some(failure));
        }
    }

    /// Ends a request. The ids that still wait for an answer get an error.
    fn finish_post(&self, shared: &ProxyShared, number: u64, failure: Option<ProxyFailure>) {
        let flying = {
            let mut state = self.lock();
            state.unblock_after(number);
            state.open_posts.remove(&number)
        };
        let Some(flying) = flying.filter(|flying| !flying.is_cancelled) else { return };
        let Some(failure) = failure else { return self.lock().idle_agents.push(flying.agent) };
        if flying.waiting_ids.is_empty() && !flying.is_listening {
            shared.warn(&failure.text());
        }
        flying.waiting_ids.iter().for_each(|id| shared.fail(id, failure.clone()));
    }

    /// Adds the headers that every request has.
    fn with_headers<B>(
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

    /// Tells the server that the session has ended. Many servers ignore it.
    fn delete_session(&self, shared: &ProxyShared, session: &str) {
        let agent = self.address.agent();
        let request = agent.delete(&self.address.uri);
        let request = request.config().timeout_global(Some(DELETE_TIMEOUT)).build();
        let agreed = lock_ignoring_poison(&shared.protocol_version).clone();
        let _ = self.with_headers(request, Some(session), agreed.as_deref()).call();
    }

    /// Locks the state for a change, and wakes the thread that waits for changes.
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        let state = lock_ignoring_poison(&self.state);
        self.changed.notify_all();
        state
    }
}

impl ProxiedServer for RemoteServer {
    fn send(&self, shared: &ProxyShared, line: Vec<u8>) {
        let mut outgoing = OutgoingLine::new(line);
        let mut state = self.lock();
        outgoing.add_param_headers(&state.param_headers);
        if let OutgoingKind::Cancelled(id) = &outgoing.kind
            && (state.cancel_request(id) == CancelNotice::NotNeeded || outgoing.stateless.is_some())
        {
            return;
        }
        let Some(outgoing) = state.queue(outgoing) else { return };
        drop(state);
        if outgoing.waiting_ids.is_empty() {
            shared.warn("a message was dropped, because too many requests are open");
        }
        outgoing.waiting_ids.iter().for_each(|id| shared.fail(id, ProxyFailure::Busy));
    }

    fn cancel_request(&self, open: &OpenRequest, notice: Option<&str>) {
        let mut state = self.lock();
        if state.cancel_request(&open.id) == CancelNotice::ByMessage
            && let Some(notice) = notice
        {
            // If the queue is full, the server does not get the notification.
            let _ = state.queue(OutgoingLine::new(notice.as_bytes().to_vec()));
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_closing = true;
        state
            .open_posts
            .values_mut()
            .filter(|flying| flying.is_listening)
            .for_each(OpenPost::cancel);
    }

    fn end(&self, shared: &ProxyShared) -> String {
        let session = {
            let mut state = self.lock();
            state.is_closed = true;
            state.waiting.clear();
            state.open_posts.values_mut().for_each(OpenPost::cancel);
            state.session.take()
        };
        if let Some(session) = session {
            self.delete_session(shared, &session);
        }
        "the connection to the server was closed".to_owned()
    }

    fn last_stderr(&self) -> Option<String> {
        None
    }

    fn note_tools(&self, shared: &ProxyShared, tools: &[Value]) {
        let bad = self.lock().param_headers.read_tools(tools);
        for tool in bad {
            shared.warn(&format!(
                "the tool `{tool}` requires headers that can't be sent; its calls may fail"
            ));
        }
    }
}

/// How the server learns that a request was cancelled.
#[derive(PartialEq, Eq)]
enum CancelNotice {
    /// By the closed connection; or the request was never sent.
    NotNeeded,
    ByMessage,
}

impl ConnectionState {
    /// Queues a line. Returns it if the queue is full.
    fn queue(&mut self, outgoing: OutgoingLine) -> Option<OutgoingLine> {
        let bytes: usize = self.waiting.iter().map(|waiting| waiting.body.len()).sum();
        let full = self.waiting.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX;
        if self.is_closing || full {
            return Some(outgoing);
        }
        self.waiting.push_back(outgoing);
        None
    }

    /// The next request that may be posted.
    fn next_post(&mut self, address: &ServerAddress) -> Option<(u64, OutgoingLine)> {
        if self.blocking_post.is_some() || self.open_posts.len() >= POSTS_MAX {
            return None;
        }
        let outgoing = self.waiting.pop_front()?;
        let number = self.open_post(address, &outgoing);
        self.blocking_post = outgoing.is_ordered().then_some(number);
        Some((number, outgoing))
    }

    /// Registers an open request.
    fn open_post(&mut self, address: &ServerAddress, outgoing: &OutgoingLine) -> u64 {
        self.count += 1;
        let flying = OpenPost {
            waiting_ids: outgoing.waiting_ids.clone(),
            agent: self.idle_agents.pop().unwrap_or_else(|| address.agent()),
            stateless: outgoing.stateless.is_some(),
            is_listening: outgoing.kind == OutgoingKind::Listen,
            is_cancelled: false,
        };
        self.open_posts.insert(self.count, flying);
        self.count
    }

    /// Allows later requests to follow this one.
    fn unblock_after(&mut self, number: u64) {
        if self.blocking_post == Some(number) {
            self.blocking_post = None;
        }
    }

    /// Whether the client has left, and all its requests are answered.
    fn is_done(&self) -> bool {
        let only_listeners = self.open_posts.values().all(|flying| flying.is_listening);
        self.is_closing && self.waiting.is_empty() && only_listeners
    }

    /// Cancels a request.
    fn cancel_request(&mut self, id: &RpcId) -> CancelNotice {
        let before = self.waiting.len();
        self.waiting.retain_mut(|outgoing| {
            let asks = outgoing.waiting_ids.contains(id);
            outgoing.waiting_ids.retain(|other| other != id);
            !(asks && outgoing.waiting_ids.is_empty())
        });
        let unsent = self.waiting.len() < before;
        let mut notice = if unsent { CancelNotice::NotNeeded } else { CancelNotice::ByMessage };
        for flying in self.open_posts.values_mut().filter(|flying| flying.waiting_ids.contains(id))
        {
            flying.waiting_ids.retain(|other| other != id);
            if flying.waiting_ids.is_empty() {
                flying.cancel();
            }
            if flying.stateless {
                notice = CancelNotice::NotNeeded;
            }
        }
        notice
    }
}
