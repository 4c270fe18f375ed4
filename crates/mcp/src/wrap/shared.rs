//! What the two directions have in common.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::now_ms;
use super::desk::Desk;
use super::errors::Failure;
use super::ledger::{Ledger, Open};
use super::message::Id;
use super::outlet::{Backlog, Outlet};
use super::pages::Links;
use super::server::{Server, lock};

/// From this version on, results may point to resources.
const LINKS_SINCE: &str = "2025-06-18";

/// After so many complaints nobody reads them.
const COMPLAINTS_MAX: u32 = 100;

/// So much may wait for the client; then who has more for it waits, too.
pub(super) const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// So much that is said to people waits for them.
const UNREAD_BYTES_MAX: usize = 64 << 10;

/// How often is looked then whether it has taken some.
const BACKLOG_TICK: Duration = Duration::from_millis(5);

/// How much of what was sent is shown in one.
const SHOWN_CHARS: usize = 200;

/// Something that happened, for the thread that watches the time.
pub(super) enum Job {
    /// The server answered, the guard has to see it, and was at work.
    Answered(Answered),
    /// The client does not wait for a call any more.
    Cancelled(Open),
    /// There is no answer of the server, or none that can be used.
    Failed(Open, Failure),
    /// The server is not to be talked to any more, for this reason.
    Lost(String),
    /// The server says nothing more.
    Silent,
    /// The server has ended.
    Ended,
    /// The client says nothing more, or the proxy is to end.
    Leave,
}

/// A call that the client asks for.
pub(super) struct Want {
    pub(super) open: Open,
    pub(super) tool: String,
    pub(super) arguments: Option<String>,
}

/// What becomes of it.
pub(super) enum Ruled {
    /// It is sent, under this number.
    Run(u64),
    /// It is answered with this.
    Answer(String),
}

/// A line of the server in which something concerns the guard.
pub(super) struct Answered {
    pub(super) text: String,
    /// Its messages by where they are in the text; who asked, where that concerns the guard.
    pub(super) parts: Vec<(std::ops::Range<usize>, Option<Open>)>,
    pub(super) batch: bool,
}

/// Everything that more than one thread touches.
pub(super) struct Shared {
    pub(super) desk: Mutex<Desk>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) jobs: SyncSender<Job>,
    pub(super) server: Arc<dyn Server>,
    pub(super) timeout_ms: u64,
    pub(super) output: Mutex<Outlet>,
    /// Can be read from once the client has not taken everything.
    pub(super) wake: OwnedFd,
    pub(super) errors: Mutex<Outlet>,
    pub(super) complaints: AtomicU32,
    /// How often something was decided since everything was tidied up.
    pub(super) untidy: AtomicU32,
    /// The version of the protocol that the two have agreed on.
    pub(super) agreed: Mutex<Option<String>>,
}

impl Shared {
    /// Gives a line to the client. Who has more for it than it takes waits.
    pub(super) fn emit(&self, line: Vec<u8>) {
        let is_much = |backlog: Backlog| backlog.bytes > BACKLOG_BYTES_MAX;
        while lock(&self.output).backlog().is_some_and(is_much) {
            std::thread::sleep(BACKLOG_TICK);
            self.flush();
        }
        self.emit_at_once(line);
    }

    /// The same for the thread that watches the time, which waits for nobody. What the
    /// client does not take at once the reader gives it.
    pub(super) fn emit_at_once(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut output = lock(&self.output);
        let written = output.push(&line);
        let left = output.backlog().is_some();
        drop(output);
        if left {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
        self.heard(&written);
    }

    /// Gives the client what it did not take before.
    pub(super) fn flush(&self) {
        let written = lock(&self.output).flush();
        self.heard(&written);
    }

    /// Whether the client hears anything any more.
    fn heard(&self, written: &io::Result<()>) {
        if written.is_err() {
            // Nobody is left to hear anything. Whoever takes jobs may be who writes, and
            // must not wait for itself; what comes next says it again.
            let _ = self.jobs.try_send(Job::Leave);
        }
    }

    /// Gives a line to the server.
    pub(super) fn forward(&self, line: Vec<u8>) {
        self.server.send(self, line);
    }

    /// A request has no answer, and who waits for it is told why.
    pub(super) fn fail(&self, id: &Id, failure: Failure) {
        let open = lock(&self.ledger).take(id);
        if let Some(open) = open {
            self.send(Job::Failed(open, failure));
        }
    }

    /// Does what may wait until nobody says anything.
    pub(super) fn tidy(&self) {
        self.untidy.store(0, Ordering::Relaxed);
        let aside = lock(&self.desk).front.run_deferred();
        aside.iter().for_each(|text| self.say(text));
    }

    /// Tells people what can't wait so long.
    pub(super) fn tell(&self) {
        self.untidy.fetch_add(1, Ordering::Relaxed);
        let aside = lock(&self.desk).front.urgent_notes();
        aside.iter().for_each(|text| self.say(text));
    }

    /// Gives something to the thread that watches the time.
    pub(super) fn send(&self, job: Job) {
        // Without it the process is at its end.
        let _ = self.jobs.send(job);
    }

    /// Says something to people, on standard error, as long as that helps.
    pub(super) fn complain(&self, text: &str) {
        let count = self.complaints.fetch_add(1, Ordering::Relaxed);
        if count < COMPLAINTS_MAX {
            self.say(text);
        } else if count == COMPLAINTS_MAX {
            self.say("and so on; nothing more is said of this kind");
        }
    }

    /// Says something to people. Where nobody reads it for long it is not kept: nobody waits
    /// for them.
    pub(super) fn say(&self, text: &str) {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut errors = lock(&self.errors);
        if errors.backlog().is_none_or(|backlog| backlog.bytes < UNREAD_BYTES_MAX) {
            let _ = errors.push(format!("jackline: {clean}\n").as_bytes());
        }
    }

    /// Passes on what the server says to people, as fast as they read it.
    pub(super) fn pass_on(&self, said: &[u8]) {
        let _ = lock(&self.errors).push(said);
        while lock(&self.errors).backlog().is_some() {
            std::thread::sleep(BACKLOG_TICK);
            let _ = lock(&self.errors).flush();
        }
    }

    /// When a request that is sent now has waited long enough.
    pub(super) fn until_ms(&self) -> u64 {
        now_ms().saturating_add(self.timeout_ms)
    }

    /// Whether the client of a request knows links.
    pub(super) fn links(&self, open: &Open) -> Links {
        let agreed = lock(&self.agreed);
        if open.stateless || agreed.as_deref().is_some_and(|version| version >= LINKS_SINCE) {
            Links::Known
        } else {
            Links::Unknown
        }
    }
}

/// What was sent, as far as it is shown to people.
pub(super) fn shown(bytes: &[u8]) -> String {
    let start = bytes.get(..bytes.len().min(4 * SHOWN_CHARS)).unwrap_or_default();
    String::from_utf8_lossy(start).chars().take(SHOWN_CHARS).collect()
}
