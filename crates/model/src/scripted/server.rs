//! The server: bounded threads on 127.0.0.1, and an end in any case.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{HttpError, HttpRequest, read_request, write_half, write_response};
use super::requests::{Log, Request, RequestKind};
use super::script::{Player, Script, Step};
use super::wires::{Reply, Wire};

/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 16;

/// How long a client may be silent in the middle of a request.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How much is read of what nobody wants, so that the answer arrives.
const UNREAD_BYTES_MAX: u64 = 1 << 20;

/// How long is waited for a connection that is being cut.
const GRACE: Duration = Duration::from_secs(1);

/// A model at work. It ends when it is dropped, and after its lifetime.
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    player: Player,
    log: Mutex<Log>,
    /// Makes the ids of answers differ.
    answers: AtomicU64,
    port: u16,
    life: Mutex<Life>,
    changed: Condvar,
}

/// What is open, and whether it may stay so.
#[derive(Default)]
struct Life {
    is_over: bool,
    connections: BTreeMap<u64, TcpStream>,
    next: u64,
}

impl ScriptedModel {
    /// Starts to play on a free port of the loopback address.
    pub fn start(script: Script, lifetime: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            player: Player::new(script),
            log: Mutex::default(),
            answers: AtomicU64::new(0),
            port: address.port(),
            life: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut model = Self { address, shared: Arc::clone(&shared), threads: Vec::new() };
        let accepting = Arc::clone(&shared);
        let accept = Builder::new().name("scripted model".to_owned());
        model.threads.push(accept.spawn(move || accepting.accept(&listener))?);
        let watch = Builder::new().name("scripted model, its end".to_owned());
        model.threads.push(watch.spawn(move || shared.end_after(lifetime))?);
        Ok(model)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as clients take it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that are remembered, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.log).requests()
    }

    /// How many requests there were, remembered or not.
    pub fn count(&self) -> usize {
        lock(&self.shared.log).count()
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Takes connections until the end.
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if lock(&self.life).is_over {
                return;
            }
            match stream {
                Ok(stream) => self.serve_aside(stream),
                // Nothing more can be opened for now.
                Err(_) => self.wait(Duration::from_millis(20)),
            }
        }
    }

    /// Serves a connection in a thread of its own.
    fn serve_aside(self: &Arc<Self>, stream: TcpStream) {
        // One too many is turned away without a word: who can't be served can't be
        // listened to either.
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
            Ok(request) => return send(stream, &self.answer(request)),
            Err(HttpError::Io(error)) => return Err(error),
            Err(HttpError::TooLarge) => Reply::json(413, &json!({ "error": "too large" })),
            Err(error @ HttpError::Malformed(_)) => {
                Reply::json(400, &json!({ "error": error.to_string() }))
            }
        };
        send(stream, &refusal)?;
        stream.shutdown(Shutdown::Write)?;
        // An answer is lost where the connection ends with something unread.
        io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut io::sink())?;
        Ok(())
    }

    fn answer(&self, request: HttpRequest) -> Reply {
        let HttpRequest { method, path, body: bytes } = request;
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let place = path.split('?').next().unwrap_or_default().to_owned();
        let note = |kind, body| lock(&self.log).add(bytes.len(), path, kind, body);
        let wire = Wire::at(&place).filter(|_| method == "POST");
        match (method.as_str(), place.as_str(), wire) {
            ("POST", "/v1/messages/count_tokens", _) => {
                note(RequestKind::Count, body);
                Reply::json(200, &json!({ "input_tokens": 1000 }))
            }
            (_, _, Some(wire)) if wire != Wire::Messages || declares_tools(&body) => {
                let turn = self.player.next(&wire.opening(&body));
                note(RequestKind::Main { part: turn.part, step: turn.number }, body.clone());
                self.wait(turn.step.delay);
                wire.reply(&turn.step, &place, &body, &self.next_id())
            }
            (_, _, Some(wire)) => {
                note(RequestKind::Side, body.clone());
                wire.reply(&Step::say("a side note"), &place, &body, &self.next_id())
            }
            ("GET", "/v1/models", _) => Reply::json(200, &json!({ "data": [], "has_more": false })),
            ("HEAD", ..) => {
                Reply::Whole { status: 200, content_type: "text/plain", body: Vec::new() }
            }
            _ => {
                note(RequestKind::Other, body);
                Reply::json(404, &json!({ "error": { "message": "not in the script" } }))
            }
        }
    }

    /// Differs from the ids of other answers, and of other servers at work.
    fn next_id(&self) -> String {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        format!("{:05}{number:09}", self.port)
    }

    /// Remembers a connection, so that it can be cut; none if there are too many.
    fn open(&self, stream: &TcpStream) -> Option<u64> {
        let stream = stream.try_clone().ok()?;
        let mut life = lock(&self.life);
        if life.is_over || life.connections.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = life.next;
        life.next += 1;
        life.connections.insert(number, stream);
        Some(number)
    }

    fn close(&self, number: u64) {
        lock(&self.life).connections.remove(&number);
        self.changed.notify_all();
    }

    /// Waits for a while, or until the end.
    fn wait(&self, most: Duration) {
        if most.is_zero() {
            return;
        }
        let life = lock(&self.life);
        drop(self.changed.wait_timeout_while(life, most, |life| !life.is_over));
    }

    fn end_after(&self, lifetime: Duration) {
        self.wait(lifetime);
        self.end();
    }

    /// Ends everything that is open, and takes nothing new.
    fn end(&self) {
        let mut life = lock(&self.life);
        life.is_over = true;
        for stream in life.connections.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(life);
        self.changed.notify_all();
        // Whoever waits for the next connection gets one, and sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let life = lock(&self.life);
        drop(self.changed.wait_timeout_while(life, GRACE, |life| !life.connections.is_empty()));
    }
}

fn send(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    match reply {
        Reply::Whole { status, content_type, body } => {
            write_response(stream, *status, content_type, body)
        }
        Reply::Half { content_type, body } => write_half(stream, content_type, body),
        // Until the client has had enough, or the silence is too long.
        Reply::Silence => stream.read(&mut [0]).map(drop),
    }
}

/// Clients of Anthropic's ask without tools for titles and summaries, beside their work.
fn declares_tools(body: &Value) -> bool {
    body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
}
