//! The thread that reads from both the client and the server process. A single thread has both at
//! hand, so no other thread must be woken for an answer.
//!
//! It blocks only on reads. Messages that a receiver does not accept stay in its outlet. If too
//! much is buffered there, the thread stops reading from the sender.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::answer_polling::AnswerPolling;
use super::bounded_lines::{LINE_BYTES_MAX, LineBuffer, LineRead};
use super::clock::now_ms;
use super::proxied_server::lock_ignoring_poison;
use super::proxy_shared::{BACKLOG_BYTES_MAX, ProxyShared};
use super::to_client;
use super::to_server::ToServer;

/// How many bytes are read at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// How long the client and the server must be silent before deferred work runs. A client that sends
/// its next request at once does not wait for that work, and there are fewer disk writes.
const QUIET_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// The number of decisions after which deferred work runs in any case.
const DEFERRED_DECISIONS_MAX: u32 = 32;

/// One side that sends lines.
struct PipeLines {
    /// `None` after the end of the input.
    pipe: Option<OwnedFd>,
    buffer: LineBuffer,
}

impl PipeLines {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe, buffer: LineBuffer::new(LINE_BYTES_MAX) }
    }

    /// Reads the available bytes and passes them on line by line. At the end of the input, passes
    /// on `LineRead::End`.
    fn read_available(&mut self, room: &mut [u8], mut each: impl FnMut(LineRead)) {
        let Some(pipe) = &self.pipe else { return };
        let read = match rustix::io::read(pipe, &mut *room) {
            Err(Errno::INTR | Errno::AGAIN) => return,
            read => read.unwrap_or(0),
        };
        let mut bytes = room.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            self.pipe = None;
            if let rest @ (LineRead::Line(_) | LineRead::TooLong { .. }) = self.buffer.finish() {
                each(rest);
            }
            return each(LineRead::End);
        }
        while !bytes.is_empty() {
            if let Some(line) = self.buffer.take_line(&mut bytes) {
                each(line);
            }
        }
    }
}

/// Which sides sent something.
#[derive(Debug, Default, Clone, Copy)]
struct ReadySides {
    client: bool,
    server: bool,
}

/// Reads from the client, and from the server if it uses a pipe.
pub(super) struct ProxyReader<'a> {
    shared: &'a ProxyShared,
    client: PipeLines,
    server: PipeLines,
    polling: AnswerPolling,
}

impl<'a> ProxyReader<'a> {
    pub(super) fn new(shared: &'a ProxyShared, client: OwnedFd, server: Option<OwnedFd>) -> Self {
        let (client, server) = (PipeLines::new(Some(client)), PipeLines::new(server));
        Self { shared, client, server, polling: AnswerPolling::default() }
    }

    /// Reads until both sides have closed.
    pub(super) fn run(mut self) {
        let mut room = vec![0; READ_BYTES_MAX];
        while self.client.pipe.is_some() || self.server.pipe.is_some() {
            let ready = self.poll_for_answer().unwrap_or_else(|| self.wait_for_input());
            let Self { shared, client, server, polling: attention } = &mut self;
            if ready.server {
                attention.note_answer();
                server.read_available(&mut room, |read| to_client::handle_read(shared, read));
            }
            if ready.client {
                let to_server = ToServer { shared };
                client.read_available(&mut room, |read| {
                    if to_server.handle_read(read) && server.pipe.is_some() {
                        attention.note_call();
                    }
                });
            }
        }
    }

    /// Polls for an answer that may come sooner than a thread could be woken.
    fn poll_for_answer(&mut self) -> Option<ReadySides> {
        while self.polling.should_poll() {
            let ready = self.wait_until_ready(Some(Timespec::default()));
            if ready.client || ready.server {
                return Some(ready);
            }
            // The process that answers may need this processor.
            std::thread::yield_now();
        }
        None
    }

    /// Waits for input, and runs deferred work in the meantime.
    fn wait_for_input(&self) -> ReadySides {
        let untidy = self.shared.deferred_decisions.load(Ordering::Relaxed);
        if untidy == 0 {
            return self.wait_until_ready(None);
        }
        if untidy < DEFERRED_DECISIONS_MAX {
            let ready = self.wait_until_ready(Some(QUIET_TIME));
            if ready.client || ready.server {
                return ready;
            }
        }
        self.shared.run_deferred();
        ReadySides::default()
    }

    /// Waits until a side sends something, or can accept buffered bytes.
    fn wait_until_ready(&self, wait: Option<Timespec>) -> ReadySides {
        let shared = self.shared;
        let backlog = lock_ignoring_poison(&shared.output).backlog();
        let to_server = shared.server.backlog();
        let room = backlog.as_ref().is_none_or(|backlog| backlog.bytes < BACKLOG_BYTES_MAX);
        let client = self.client.pipe.as_ref().filter(|_| room && to_server.is_none());
        let server = self.server.pipe.as_ref().filter(|_| room);
        let fds = [
            (Some(&shared.wake), PollFlags::IN),
            (client, PollFlags::IN),
            (server, PollFlags::IN),
            (backlog.as_ref().map(|backlog| &*backlog.pipe), PollFlags::OUT),
            (to_server.as_ref().map(|backlog| &*backlog.pipe), PollFlags::OUT),
        ];
        let poll_fds = fds.iter().filter_map(|(fd, flags)| Some(PollFd::new((*fd)?, *flags)));
        let mut poll_fds: Vec<PollFd<'_>> = poll_fds.collect();
        let until_ms =
            to_server.as_ref().map(|backlog| backlog.since_ms.saturating_add(shared.timeout_ms));
        let wait = wait.or_else(|| until_ms.map(time_until));
        // If polling fails, read from all sides; the read reports the error.
        let failed = poll(&mut poll_fds, wait.as_ref()).is_err_and(|error| error != Errno::INTR);
        let mut revents = poll_fds.iter().map(|fd| failed || !fd.revents().is_empty());
        let [woken, client, server, to_client, _] =
            fds.map(|(fd, _)| fd.is_some() && revents.next().unwrap_or_default());
        if woken {
            let _ = rustix::io::read(&shared.wake, &mut [0; 8]);
        }
        if to_client {
            shared.flush();
        }
        if to_server.is_some() {
            shared.server.flush(shared);
        }
        ReadySides { client, server }
    }
}

/// The time until then, plus one millisecond.
fn time_until(at_ms: u64) -> Timespec {
    let remaining = Duration::from_millis(at_ms.saturating_sub(now_ms()) + 1);
    Timespec::try_from(remaining).unwrap_or_default()
}
