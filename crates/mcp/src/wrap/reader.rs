//! The one thread that hears both, the client and the server that it has started: who is
//! heard by the same thread finds everything at hand, and nobody has to be woken first.
//!
//! It waits for nothing but words. What somebody does not take stays in their outlet; when
//! that is much, nobody is heard who could have more for them.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::attention::Attention;
use super::clock::now_ms;
use super::lines::{Coming, LINE_BYTES_MAX, Read};
use super::server::lock;
use super::shared::{BACKLOG_BYTES_MAX, Shared};
use super::to_client;
use super::to_server::ToServer;

/// How much is read at once.
const ROOM_BYTES: usize = 64 << 10;

/// So long nobody says anything before everything is tidied up: who asks again at once does
/// not wait for that, and the disk has less to do.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// At the latest after so many decisions.
const UNTIDY_MAX: u32 = 32;

/// Somebody who says lines.
struct Source {
    /// None once there is nothing more to hear.
    pipe: Option<OwnedFd>,
    coming: Coming,
}

impl Source {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe, coming: Coming::new(LINE_BYTES_MAX) }
    }

    /// Reads what is there, and gives it on line by line; at the end, that it is one.
    fn hear(&mut self, room: &mut [u8], mut each: impl FnMut(Read)) {
        let Some(pipe) = &self.pipe else { return };
        let read = match rustix::io::read(pipe, &mut *room) {
            Err(Errno::INTR | Errno::AGAIN) => return,
            read => read.unwrap_or(0),
        };
        let mut bytes = room.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            self.pipe = None;
            if let rest @ (Read::Line(_) | Read::TooLong { .. }) = self.coming.end() {
                each(rest);
            }
            return each(Read::End);
        }
        while !bytes.is_empty() {
            if let Some(line) = self.coming.take(&mut bytes) {
                each(line);
            }
        }
    }
}

/// Who has said something.
#[derive(Debug, Default, Clone, Copy)]
struct Said {
    client: bool,
    server: bool,
}

/// Hears the client, and the server if it speaks on a pipe.
pub(super) struct Reader<'a> {
    shared: &'a Shared,
    client: Source,
    server: Source,
    attention: Attention,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, client: OwnedFd, server: Option<OwnedFd>) -> Self {
        let (client, server) = (Source::new(Some(client)), Source::new(server));
        Self { shared, client, server, attention: Attention::default() }
    }

    /// Hears until both say nothing more.
    pub(super) fn run(mut self) {
        let mut room = vec![0; ROOM_BYTES];
        while self.client.pipe.is_some() || self.server.pipe.is_some() {
            let said = self.look_out().unwrap_or_else(|| self.rest());
            let Self { shared, client, server, attention } = &mut self;
            if said.server {
                attention.heard();
                server.hear(&mut room, |read| to_client::heard(shared, read));
            }
            if said.client {
                let to_server = ToServer { shared };
                client.hear(&mut room, |read| {
                    if to_server.heard(read) && server.pipe.is_some() {
                        attention.asked();
                    }
                });
            }
        }
    }

    /// Looks for an answer that comes sooner than anybody could be woken.
    fn look_out(&mut self) -> Option<Said> {
        while self.attention.lasts() {
            let said = self.look(Some(Timespec::default()));
            if said.client || said.server {
                return Some(said);
            }
            // Whoever shares this processor may be the one who answers.
            std::thread::yield_now();
        }
        None
    }

    /// Waits for as long as it takes, and tidies up meanwhile.
    fn rest(&self) -> Said {
        let untidy = self.shared.untidy.load(Ordering::Relaxed);
        if untidy == 0 {
            return self.look(None);
        }
        if untidy < UNTIDY_MAX {
            let said = self.look(Some(QUIET));
            if said.client || said.server {
                return said;
            }
        }
        self.shared.tidy();
        Said::default()
    }

    /// Waits until somebody says something, or takes again what is left for them.
    fn look(&self, wait: Option<Timespec>) -> Said {
        let shared = self.shared;
        let backlog = lock(&shared.output).backlog();
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
        let asked = fds.iter().filter_map(|(fd, flags)| Some(PollFd::new((*fd)?, *flags)));
        let mut asked: Vec<PollFd<'_>> = asked.collect();
        let until_ms =
            to_server.as_ref().map(|backlog| backlog.since_ms.saturating_add(shared.timeout_ms));
        let wait = wait.or_else(|| until_ms.map(left_until));
        // Whoever can't be looked at is heard, and says what is wrong.
        let failed = poll(&mut asked, wait.as_ref()).is_err_and(|error| error != Errno::INTR);
        let mut revents = asked.iter().map(|fd| failed || !fd.revents().is_empty());
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
        Said { client, server }
    }
}

/// How long it is until then, and a little more.
fn left_until(at_ms: u64) -> Timespec {
    let left = Duration::from_millis(at_ms.saturating_sub(now_ms()) + 1);
    Timespec::try_from(left).unwrap_or_default()
}
