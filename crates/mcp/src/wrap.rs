//! A proxy in front of an MCP server. Its client uses standard input and output.
//!
//! One thread, the reader, reads from the client and from the server process. Tool calls, their
//! results and lists of tools pass the gate with the guards, on the thread that read them, because
//! waking another thread takes longer than most decisions. All other messages are passed on
//! unchanged.
//!
//! The main thread enforces the timeouts and ends the server. It never blocks on a write, so
//! neither a client nor a server that stops reading can delay it.

mod answer_polling;
mod clock;
mod listed_tools;
mod lone_surrogates;
mod open_requests;
mod output_pipe;
mod proxied_server;
mod proxy_failure;
mod proxy_gate;
mod proxy_reader;
mod proxy_shared;
mod remote;
mod result_pages;
mod rpc_message;
mod server_process;
mod server_tools;
mod structured_fields;
mod to_client;
mod to_server;
mod tool_pins;
mod tool_result;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jackline_engine::CallStatus;
use jackline_runtime::Runtime;
use jackline_runtime::spill::Spill;
use jackline_runtime::surfaces::MCP_WRAP;
use rustix::event::{EventfdFlags, eventfd};

use self::clock::now_ms;
use self::open_requests::{OpenRequest, OpenRequestKind, OpenRequests, ServerGone};
use self::output_pipe::OutputPipe;
use self::proxied_server::{ProxiedServer, Watcher, lock_ignoring_poison};
use self::proxy_failure::ProxyFailure;
use self::proxy_gate::ProxyGate;
use self::proxy_reader::ProxyReader;
use self::proxy_shared::{ProxyJob, ProxyShared};
use self::remote::RemoteServer;
pub use self::remote::{AddressError, Encryption, ServerAddress};
use self::result_pages::ResultPages;
use self::rpc_message::render_cancelled;
use self::server_process::{ServerProcess, StartedProcess};
use self::server_tools::ServerTools;
use self::tool_pins::ToolPins;
use crate::bounded_lines;
use crate::mcp_session_gate::{McpSessionGate, McpSessionOpening};

/// How many jobs may wait for the main thread before senders block.
const JOBS_MAX: usize = 64;

/// How long the proxy waits for the second sign of a server's end after the first one. The signs
/// are the end of its output and the end of its process.
const END_SIGN_WAIT_MS: u64 = 500;

/// How long a server may run after the client has left.
const SERVER_EXIT_GRACE_MS: u64 = 2000;

/// How long the proxy waits at the end for a client that reads nothing.
const CLIENT_SILENCE_MS_MAX: u64 = 5_000;

/// How often the proxy then checks whether the client has read something.
const CLIENT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The configuration of the proxy.
pub struct ProxySetup {
    /// The server behind the proxy.
    pub server: ServerTarget,
    /// How long a request may wait for an answer or a progress message.
    pub timeout: Duration,
    /// The size above which a result is shown in pages (`io.output.max_bytes`).
    pub output_bytes_max: usize,
    /// The session to start.
    pub opening: McpSessionOpening,
    /// The directory of the session.
    pub session_directory: PathBuf,
    /// The state home.
    pub state_home: PathBuf,
}

/// How the server is reached.
pub enum ServerTarget {
    /// A command with arguments, which speaks on standard input and output.
    Command(Vec<String>),
    /// A server elsewhere, which speaks streamable HTTP.
    Url(ServerAddress),
}

/// The streams of the proxy.
pub struct ProxyStreams {
    /// The messages of the client.
    pub input: File,
    /// The messages to the client.
    pub output: File,
    /// Messages for people.
    pub errors: File,
    /// A stream that becomes readable when the proxy must end.
    pub stop: Box<dyn Read + Send>,
}

/// Why the proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server could not be started.
    #[error("can't start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("can't start a thread: {0}")]
    Thread(io::Error),
}

/// Runs the proxy until the client or the server leaves.
pub fn run_proxy(wrap: ProxySetup, runtime: Runtime, ends: ProxyStreams) -> Result<(), ProxyError> {
    let StartedServer { server, watchers: ears, output: says, identity: words } =
        start_server(wrap.server)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let wake = wake.map_err(|error| ProxyError::Thread(error.into()))?;
    let (jobs, todo) = sync_channel(JOBS_MAX);
    let ProxyStreams { input, output, errors, stop } = ends;
    let spill = Spill::new(wrap.session_directory.join("spill"));
    let announced_tools = Arc::new(AtomicBool::new(false));
    let desk = ProxyGate {
        front: McpSessionGate::new(runtime.with_surface(&MCP_WRAP), wrap.opening),
        tools: ServerTools::default(),
        announced_tools: Arc::clone(&announced_tools),
        pins: ToolPins::load(&wrap.state_home, &words),
        pages: ResultPages::new(spill, wrap.output_bytes_max),
    };
    let shared = Arc::new(ProxyShared {
        gate: Mutex::new(desk),
        open_requests: Mutex::new(OpenRequests::default()),
        announced_tools,
        jobs,
        server: Arc::clone(&server),
        timeout_ms: u64::try_from(wrap.timeout.as_millis()).unwrap_or(u64::MAX),
        output: Mutex::new(OutputPipe::new(output.into())),
        wake,
        errors: Mutex::new(OutputPipe::new(errors.into())),
        warning_count: AtomicU32::new(0),
        deferred_decisions: AtomicU32::new(0),
        protocol_version: Mutex::new(None),
    });
    if let Err(error) = start_threads(&shared, ears, (input.into(), says), stop) {
        server.end(&shared);
        return Err(ProxyError::Thread(error));
    }
    let proxy = ProxyMain {
        shared,
        server,
        is_output_closed: false,
        has_exited: false,
        gone_at_ms: None,
        leave_at_ms: None,
    };
    proxy.run(&todo);
    Ok(())
}

/// A started server.
struct StartedServer {
    server: Arc<dyn ProxiedServer>,
    /// The threads that watch the server.
    watchers: Vec<Watcher>,
    /// The output of the server, if it is a pipe.
    output: Option<OwnedFd>,
    /// The words that identify the server.
    identity: Vec<String>,
}

fn start_server(server: ServerTarget) -> Result<StartedServer, ProxyError> {
    match server {
        ServerTarget::Command(words) => {
            let program = words.first().cloned().unwrap_or_default();
            let StartedProcess { process, watchers: ears, output } =
                ServerProcess::start(&words)
                    .map_err(|source| ProxyError::Start { program, source })?;
            Ok(StartedServer {
                server: Arc::new(process),
                watchers: ears,
                output: Some(output),
                identity: words,
            })
        }
        ServerTarget::Url(address) => {
            let words = address.identity();
            let (server, ears) = RemoteServer::new(address);
            Ok(StartedServer { server, watchers: ears, output: None, identity: words })
        }
    }
}

fn start_threads(
    shared: &Arc<ProxyShared>,
    ears: Vec<Watcher>,
    (client, server): (OwnedFd, Option<OwnedFd>),
    mut stop: Box<dyn Read + Send>,
) -> io::Result<()> {
    let start = |work: Watcher| {
        let shared = Arc::clone(shared);
        let work = move || {
            let _alarm = PanicAlarm(Arc::clone(&shared));
            work(&shared);
        };
        std::thread::Builder::new().spawn(work).map(|_| ())
    };
    start(Box::new(move |shared| ProxyReader::new(shared, client, server).run()))?;
    ears.into_iter().try_for_each(start)?;
    start(Box::new(move |shared| {
        if stop.read(&mut [0]).is_ok_and(|read| read > 0) {
            shared.send(ProxyJob::Leave);
        }
    }))
}

/// Ends the proxy if one of its threads panics. Waiting requests get an error, and no message can
/// pass without the guards.
struct PanicAlarm(Arc<ProxyShared>);

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send(ProxyJob::Lost(
                "a thread of the proxy failed because of a bug in Jackline".to_owned(),
            ));
            self.0.send(ProxyJob::Leave);
        }
    }
}

/// The main thread, which enforces the timeouts.
struct ProxyMain {
    shared: Arc<ProxyShared>,
    server: Arc<dyn ProxiedServer>,
    /// Whether the server's output has ended.
    is_output_closed: bool,
    /// Whether the server's process has ended.
    has_exited: bool,
    /// When the server counts as gone even if one of the two signs is missing.
    gone_at_ms: Option<u64>,
    /// When the proxy stops waiting for the server after the client has left.
    leave_at_ms: Option<u64>,
}

impl ProxyMain {
    fn run(mut self, todo: &Receiver<ProxyJob>) {
        loop {
            let wake = [self.gone_at_ms, self.leave_at_ms].into_iter().flatten();
            let wake = wake
                .chain(lock_ignoring_poison(&self.shared.open_requests).next_deadline_ms())
                .min();
            // A request that is opened in the meantime has its full timeout, so check again after
            // that.
            let at = wake.unwrap_or_else(|| self.shared.new_deadline_ms());
            match todo.recv_timeout(Duration::from_millis(at.saturating_sub(now_ms()))) {
                Ok(job) => self.handle_job(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.enforce_deadlines();
            self.shared.run_deferred();
            let gone = lock_ignoring_poison(&self.shared.open_requests).gone().is_some();
            if self.leave_at_ms.is_some_and(|at| gone || at <= now_ms()) {
                break;
            }
        }
        if lock_ignoring_poison(&self.shared.open_requests).gone().is_none() {
            self.server.end(&self.shared);
            self.mark_server_gone("the client has disconnected".to_owned());
        }
        lock_ignoring_poison(&self.shared.gate).end();
        self.send_rest();
    }

    /// Sends the client the rest of its messages, as long as it keeps reading.
    fn send_rest(&self) {
        let takes = || {
            let backlog = lock_ignoring_poison(&self.shared.output).backlog();
            backlog.is_some_and(|backlog| now_ms() < backlog.since_ms + CLIENT_SILENCE_MS_MAX)
        };
        while takes() {
            std::thread::sleep(CLIENT_CHECK_INTERVAL);
            self.shared.flush();
        }
    }

    fn handle_job(&mut self, job: ProxyJob) {
        match job {
            ProxyJob::Answered(answered) => {
                let line = lock_ignoring_poison(&self.shared.gate)
                    .process_answers(&self.shared, &answered);
                self.shared.emit_at_once(line);
            }
            ProxyJob::Cancelled(open) => {
                lock_ignoring_poison(&self.shared.gate).finish_without_result(
                    &open,
                    CallStatus::Cancelled,
                    None,
                );
            }
            ProxyJob::Failed(open, failure) => self.fail_request(&open, &failure),
            ProxyJob::Lost(how)
                if lock_ignoring_poison(&self.shared.open_requests).gone().is_none() =>
            {
                self.server.end(&self.shared);
                self.mark_server_gone(how);
            }
            ProxyJob::Lost(_) => {}
            ProxyJob::OutputClosed => {
                self.is_output_closed = true;
                self.note_end_sign();
            }
            ProxyJob::ServerExited => {
                self.has_exited = true;
                self.note_end_sign();
            }
            ProxyJob::Leave => {
                self.server.close();
                self.leave_at_ms.get_or_insert_with(|| now_ms() + SERVER_EXIT_GRACE_MS);
            }
        }
    }

    /// Handles one of the two signs that the server ends. Its last messages may still arrive.
    fn note_end_sign(&mut self) {
        let wait = if self.is_output_closed && self.has_exited { 0 } else { END_SIGN_WAIT_MS };
        let at = now_ms() + wait;
        self.gone_at_ms = Some(self.gone_at_ms.map_or(at, |before| before.min(at)));
    }

    /// Enforces all deadlines that have passed.
    fn enforce_deadlines(&mut self) {
        let now = now_ms();
        if self.gone_at_ms.is_some_and(|at| at <= now) {
            self.gone_at_ms = None;
            if lock_ignoring_poison(&self.shared.open_requests).gone().is_none() {
                let how = self.server.end(&self.shared);
                self.mark_server_gone(how);
            }
        }
        let late = lock_ignoring_poison(&self.shared.open_requests).remove_late(now);
        for open in late {
            let seconds = self.shared.timeout_ms / 1000;
            self.fail_request(&open, &ProxyFailure::TimedOut { seconds });
            let reason = format!("no answer within {seconds} s");
            // The protocol forbids cancelling this request.
            let notice = (open.kind != OpenRequestKind::Initialize)
                .then(|| render_cancelled(&open.id, &reason));
            self.server.cancel_request(&open, notice.as_deref());
        }
    }

    /// Marks the server as gone. Waiting and later requests get an error.
    fn mark_server_gone(&mut self, how: String) {
        let gone = ServerGone { how, stderr: self.server.last_stderr() };
        let open = lock_ignoring_poison(&self.shared.open_requests).close_all(gone.clone());
        for open in open {
            self.fail_request(&open, &ProxyFailure::ServerGone(gone.clone()));
        }
    }

    /// Answers a request in place of the server.
    fn fail_request(&mut self, open: &OpenRequest, failure: &ProxyFailure) {
        lock_ignoring_poison(&self.shared.gate).finish_without_result(
            open,
            failure.status(),
            Some(failure.text()),
        );
        self.shared.emit_at_once(failure.answer_to(open).into_bytes());
    }
}
