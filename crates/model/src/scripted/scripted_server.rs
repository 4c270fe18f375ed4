//! The HTTP server of the scripted model: on 127.0.0.1, with bounded threads and a bounded
//! lifetime.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::http_request::{
    HttpRequest, HttpRequestError, read_request, write_incomplete, write_response,
};
use super::provider_formats::{ScriptedApi, WireResponse};
use super::recorded_request::{RecordedRequest, RecordedRequestKind, RequestLog};
use super::script::{ModelScript, ModelScriptPlayer, ScriptStep};

/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 16;

/// How long a client may be silent within a request.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How many bytes of a refused request are read, so that the client receives the response.
const UNREAD_BYTES_MAX: u64 = 1 << 20;

/// How long the end waits for open connections to close.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A running scripted model. It ends when it is dropped, or after its lifetime.
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<ScriptServerState>,
    threads: Vec<JoinHandle<()>>,
}

struct ScriptServerState {
    player: ModelScriptPlayer,
    log: Mutex<RequestLog>,
    /// Makes the ids of answers unique.
    answers: AtomicU64,
    port: u16,
    connections: Mutex<ServerConnections>,
    changed: Condvar,
}

/// The open connections, and whether the server has ended.
#[derive(Default)]
struct ServerConnections {
    has_ended: bool,
    connections: BTreeMap<u64, TcpStream>,
    next: u64,
}

impl ScriptedModel {
    /// Starts the server on a free port of the loopback address.
    pub fn start(script: ModelScript, lifetime: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ScriptServerState {
            player: ModelScriptPlayer::new(script),
            log: Mutex::default(),
            answers: AtomicU64::new(0),
            port: address.port(),
            connections: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut model = Self { address, shared: Arc::clone(&shared), threads: Vec::new() };
        let accepting = Arc::clone(&shared);
        let accept = Builder::new().name("scripted model".to_owned());
        model.threads.push(accept.spawn(move || accepting.accept_connections(&listener))?);
        let watch = Builder::new().name("scripted model, its end".to_owned());
        model.threads.push(watch.spawn(move || shared.end_after(lifetime))?);
        Ok(model)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The stored requests, the oldest first.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock_ignoring_poison(&self.shared.log).requests()
    }

    /// The number of all requests, including dropped ones.
    pub fn count(&self) -> usize {
        lock_ignoring_poison(&self.shared.log).count()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptServerState {
    /// Accepts connections until the end.
    fn accept_connections(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if lock_ignoring_poison(&self.connections).has_ended {
                return;
            }
            match stream {
                Ok(stream) => self.serve_in_thread(stream),
                // No more descriptors can be opened for now.
                Err(_) => self.wait(Duration::from_millis(20)),
            }
        }
    }

    /// Serves a connection in its own thread.
    fn serve_in_thread(self: &Arc<Self>, stream: TcpStream) {
        // A connection beyond the limit is closed without a response, because no thread may serve
        // it.
        let Some(number) = self.open(&stream) else { return };
        let shared = Arc::clone(self);
        let serve = Builder::new().name("scripted model, a connection".to_owned());
        let started = serve.spawn(move || {
            let _ = shared.serve(&stream);
            let _ = stream.shutdown(Shutdown::Both);
            shared.close(number);
        });
        if started.is_err() {
            self.close(number);
        }
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        stream.set_nodelay(true)?;
        let refusal = match read_request(stream) {
            Ok(request) => return send_response(stream, &self.answer(request)),
            Err(HttpRequestError::Io(error)) => return Err(error),
            Err(HttpRequestError::TooLarge) => {
                WireResponse::json(413, &json!({ "error": "too large" }))
            }
            Err(error @ HttpRequestError::Malformed(_)) => {
                WireResponse::json(400, &json!({ "error": error.to_string() }))
            }
        };
        send_response(stream, &refusal)?;
        stream.shutdown(Shutdown::Write)?;
        // The client would lose the response if the connection closed with unread data.
        io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut io::sink())?;
        Ok(())
    }

    fn answer(&self, request: HttpRequest) -> WireResponse {
        let HttpRequest { method, path, body: bytes } = request;
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let path_only = path.split('?').next().unwrap_or_default().to_owned();
        let note = |kind, body| lock_ignoring_poison(&self.log).add(bytes.len(), path, kind, body);
        let wire = ScriptedApi::at_path(&path_only).filter(|_| method == "POST");
        match (method.as_str(), path_only.as_str(), wire) {
            ("POST", "/v1/messages/count_tokens", _) => {
                note(RecordedRequestKind::Count, body);
                WireResponse::json(200, &json!({ "input_tokens": 1000 }))
            }
            (_, _, Some(wire)) if wire != ScriptedApi::Messages || declares_tools(&body) => {
                let turn = self.player.next(&wire.opening(&body));
                note(
                    RecordedRequestKind::Main { part: turn.part, step: turn.number },
                    body.clone(),
                );
                self.wait(turn.step.delay);
                wire.reply(&turn.step, &path_only, &body, &self.next_id())
            }
            (_, _, Some(wire)) => {
                note(RecordedRequestKind::Side, body.clone());
                wire.reply(&ScriptStep::say("a side note"), &path_only, &body, &self.next_id())
            }
            ("GET", "/v1/models", _) => {
                WireResponse::json(200, &json!({ "data": [], "has_more": false }))
            }
            ("HEAD", ..) => {
                WireResponse::Complete { status: 200, content_type: "text/plain", body: Vec::new() }
            }
            _ => {
                note(RecordedRequestKind::Other, body);
                WireResponse::json(404, &json!({ "error": { "message": "not in the script" } }))
            }
        }
    }

    /// An id that differs from those of other answers and of other servers.
    fn next_id(&self) -> String {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        format!("{:05}{number:09}", self.port)
    }

    /// Registers a connection, so that it can be closed; `None` if there are too many.
    fn open(&self, stream: &TcpStream) -> Option<u64> {
        let stream = stream.try_clone().ok()?;
        let mut life = lock_ignoring_poison(&self.connections);
        if life.has_ended || life.connections.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = life.next;
        life.next += 1;
        life.connections.insert(number, stream);
        Some(number)
    }

    fn close(&self, number: u64) {
        lock_ignoring_poison(&self.connections).connections.remove(&number);
        self.changed.notify_all();
    }

    /// Waits for a while, or until the server ends.
    fn wait(&self, most: Duration) {
        if most.is_zero() {
            return;
        }
        let life = lock_ignoring_poison(&self.connections);
        drop(self.changed.wait_timeout_while(life, most, |life| !life.has_ended));
    }

    fn end_after(&self, lifetime: Duration) {
        self.wait(lifetime);
        self.end();
    }

    /// Closes all connections and accepts no new ones.
    fn end(&self) {
        let mut life = lock_ignoring_poison(&self.connections);
        life.has_ended = true;
        for stream in life.connections.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(life);
        self.changed.notify_all();
        // This connection wakes the accepting thread, which then sees that the server has ended.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let life = lock_ignoring_poison(&self.connections);
        drop(
            self.changed.wait_timeout_while(life, CLOSE_WAIT, |life| !life.connections.is_empty()),
        );
    }
}

fn send_response(mut stream: &TcpStream, reply: &WireResponse) -> io::Result<()> {
    match reply {
        WireResponse::Complete { status, content_type, body } => {
            write_response(stream, *status, content_type, body)
        }
        WireResponse::Incomplete { content_type, body } => {
            write_incomplete(stream, content_type, body)
        }
        // Wait until the client closes the connection or the timeout passes.
        WireResponse::Silence => stream.read(&mut [0]).map(drop),
    }
}

/// Anthropic's clients also send requests without tools, for titles and summaries.
fn declares_tools(body: &Value) -> bool {
    body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
}
