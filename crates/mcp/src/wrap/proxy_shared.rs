//! The state that both directions of the proxy share.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::now_ms;
use super::open_requests::{OpenRequest, OpenRequests};
use super::output_pipe::{Backlog, OutputPipe};
use super::proxied_server::{ProxiedServer, lock_ignoring_poison};
use super::proxy_failure::ProxyFailure;
use super::proxy_gate::ProxyGate;
use super::result_pages::LinkSupport;
use super::rpc_message::RpcId;

/// Since this version, results may contain resource links.
const LINKS_SINCE: &str = "2025-06-18";

/// The number of messages for people after which no more are written.
const WARNINGS_MAX: u32 = 100;

/// How many bytes may be buffered for the client before senders must wait.
pub(super) const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// How many bytes of messages for people may be buffered.
const STDERR_BACKLOG_BYTES_MAX: usize = 64 << 10;

/// How often a waiting sender checks whether the receiver accepts bytes again.
const BACKLOG_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// How many characters of received data a message for people shows.
const SHOWN_CHARS_MAX: usize = 200;

/// An event for the main thread, which enforces the timeouts.
pub(super) enum ProxyJob {
    /// The server answered, but the gate was locked.
    Answered(ServerAnswers),
    /// The client has cancelled a call.
    Cancelled(OpenRequest),
    /// A request failed without a usable answer.
    Failed(OpenRequest, ProxyFailure),
    /// The server must not be used any more, for this reason.
    Lost(String),
    /// The output of the server has ended.
    OutputClosed,
    /// The process of the server has ended.
    ServerExited,
    /// The client has disconnected, or the proxy must end.
    Leave,
}

/// A call that the client requests.
pub(super) struct RequestedCall {
    pub(super) open: OpenRequest,
    pub(super) tool: String,
    pub(super) arguments: Option<String>,
}

/// The decision about a call.
pub(super) enum CallDecision {
    /// The call is sent, with this number.
    Permit(u64),
    /// The call is answered with this line.
    Answer(String),
}

/// A line of the server with at least one message for the guards.
pub(super) struct ServerAnswers {
    pub(super) text: String,
    /// The positions of its messages, each with its request if the guards must see it.
    pub(super) parts: Vec<(std::ops::Range<usize>, Option<OpenRequest>)>,
    pub(super) batch: bool,
}

/// The state that several threads use.
pub(super) struct ProxyShared {
    pub(super) gate: Mutex<ProxyGate>,
    pub(super) open_requests: Mutex<OpenRequests>,
    /// Set if the server has announced another list of tools.
    pub(super) announced_tools: Arc<AtomicBool>,
    pub(super) jobs: SyncSender<ProxyJob>,
    pub(super) server: Arc<dyn ProxiedServer>,
    pub(super) timeout_ms: u64,
    pub(super) output: Mutex<OutputPipe>,
    /// Becomes readable when the client has not accepted all bytes.
    pub(super) wake: OwnedFd,
    pub(super) errors: Mutex<OutputPipe>,
    pub(super) warning_count: AtomicU32,
    /// How many decisions were made since the last deferred work.
    pub(super) deferred_decisions: AtomicU32,
    /// The negotiated protocol version.
    pub(super) protocol_version: Mutex<Option<String>>,
}

impl ProxyShared {
    /// Sends a line to the client. Blocks while too much is buffered for the client.
    pub(super) fn emit(&self, line: Vec<u8>) {
        let is_much = |backlog: Backlog| backlog.bytes > BACKLOG_BYTES_MAX;
        while lock_ignoring_poison(&self.output).backlog().is_some_and(is_much) {
            std::thread::sleep(BACKLOG_CHECK_INTERVAL);
            self.flush();
        }
        self.emit_at_once(line);
    }

    /// Sends a line without blocking, for the main thread. The reader sends what the client does
    /// not accept at once.
    pub(super) fn emit_at_once(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut output = lock_ignoring_poison(&self.output);
        let written = output.push(&line);
        let is_buffered = output.backlog().is_some();
        drop(output);
        if is_buffered {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
        self.check_write(&written);
    }

    /// Sends the client the buffered bytes.
    pub(super) fn flush(&self) {
        let written = lock_ignoring_poison(&self.output).flush();
        self.check_write(&written);
    }

    /// Ends the proxy if the client has disconnected.
    fn check_write(&self, written: &io::Result<()>) {
        if written.is_err() {
            // The writer may be the main thread, which must not block on its own queue. If the
            // queue is full, the next write fails again and repeats this.
            let _ = self.jobs.try_send(ProxyJob::Leave);
        }
    }

    /// Sends a line to the server.
    pub(super) fn forward(&self, line: Vec<u8>) {
        self.server.send(self, line);
    }

    /// Ends a request with an error.
    pub(super) fn fail(&self, id: &RpcId, failure: ProxyFailure) {
        let open = lock_ignoring_poison(&self.open_requests).remove(id);
        if let Some(open) = open {
            self.send(ProxyJob::Failed(open, failure));
        }
    }

    /// Runs the deferred work.
    pub(super) fn run_deferred(&self) {
        self.deferred_decisions.store(0, Ordering::Relaxed);
        let aside = lock_ignoring_poison(&self.gate).front.run_deferred();
        aside.iter().for_each(|text| self.write_message(text));
    }

    /// Writes the notifications that must not wait for deferred work.
    pub(super) fn write_urgent_notes(&self) {
        self.deferred_decisions.fetch_add(1, Ordering::Relaxed);
        let aside = lock_ignoring_poison(&self.gate).front.urgent_notes();
        aside.iter().for_each(|text| self.write_message(text));
    }

    /// Sends a job to the main thread.
    pub(super) fn send(&self, job: ProxyJob) {
        // This only fails when the process ends.
        let _ = self.jobs.send(job);
    }

    /// Writes a warning to standard error, up to a maximum number.
    pub(super) fn warn(&self, text: &str) {
        let count = self.warning_count.fetch_add(1, Ordering::Relaxed);
        if count < WARNINGS_MAX {
            self.write_message(text);
        } else if count == WARNINGS_MAX {
            self.write_message("further warnings of this kind are not shown");
        }
    }

    /// Writes a message to standard error. It is dropped if too much is buffered there, so that the
    /// proxy never blocks.
    pub(super) fn write_message(&self, text: &str) {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut errors = lock_ignoring_poison(&self.errors);
        if errors.backlog().is_none_or(|backlog| backlog.bytes < STDERR_BACKLOG_BYTES_MAX) {
            let _ = errors.push(format!("jackline: {clean}\n").as_bytes());
        }
    }

    /// Passes on the server's standard error, as fast as it is read.
    pub(super) fn write_server_stderr(&self, said: &[u8]) {
        let _ = lock_ignoring_poison(&self.errors).push(said);
        while lock_ignoring_poison(&self.errors).backlog().is_some() {
            std::thread::sleep(BACKLOG_CHECK_INTERVAL);
            let _ = lock_ignoring_poison(&self.errors).flush();
        }
    }

    /// The deadline of a request that is sent now.
    pub(super) fn new_deadline_ms(&self) -> u64 {
        now_ms().saturating_add(self.timeout_ms)
    }

    /// Whether the client of a request supports resource links.
    pub(super) fn link_support(&self, open: &OpenRequest) -> LinkSupport {
        let agreed = lock_ignoring_poison(&self.protocol_version);
        if open.stateless || agreed.as_deref().is_some_and(|version| version >= LINKS_SINCE) {
            LinkSupport::Supported
        } else {
            LinkSupport::Unsupported
        }
    }
}

/// A short form of received data for people.
pub(super) fn short_text(bytes: &[u8]) -> String {
    let start = bytes.get(..bytes.len().min(4 * SHOWN_CHARS_MAX)).unwrap_or_default();
    String::from_utf8_lossy(start).chars().take(SHOWN_CHARS_MAX).collect()
}
