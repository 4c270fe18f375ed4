//! A proxy before an MCP server; its client speaks on standard input and output.
//!
//! One thread hears the client and the server that it has started (`reader`). Calls of tools,
//! their results and lists of tools go over the desk, where the guard is, by the thread that
//! heard of them: to wake somebody else takes longer than most decisions. Everything else is
//! written on as it is.
//!
//! This thread watches the time, and ends what has to end. It waits for nobody who reads, so
//! neither a server nor a client that does not can keep it from that.

mod attention;
mod clock;
mod desk;
mod errors;
mod fields;
mod ledger;
mod lossy;
mod message;
mod outlet;
mod pages;
mod pins;
mod process;
mod reader;
mod remote;
mod result;
mod server;
mod shared;
mod to_client;
mod to_server;
mod tools;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jackline_engine::Status;
use jackline_runtime::Runtime;
use jackline_runtime::spill::Spill;
use rustix::event::{EventfdFlags, eventfd};

use self::clock::now_ms;
use self::desk::Desk;
use self::errors::Failure;
use self::ledger::{Gone, Ledger, Open, What};
use self::message::cancelled;
use self::outlet::Outlet;
use self::pages::Pages;
use self::pins::Pins;
use self::process::{Process, Started};
use self::reader::Reader;
use self::remote::Remote;
pub use self::remote::{Address, AddressError, Encryption};
use self::server::{Ear, Server, lock};
use self::shared::{Job, Shared};
use self::tools::Tools;
use crate::lines;
use crate::mcp_front::{McpFront, Opening};

/// How many things may wait for the guard before whoever reads has to wait, too.
const JOBS_MAX: usize = 64;

/// How long is waited for the other sign of a server's end once there is one.
const LAST_WORDS_MS: u64 = 500;

/// How long a server may go on after the client has left.
const LEAVE_GRACE_MS: u64 = 2000;

/// How long a client that takes nothing is waited for at the end.
const REST_MS: u64 = 5_000;

/// How often is looked then whether it has taken something.
const REST_TICK: Duration = Duration::from_millis(5);

/// What is wrapped, and how.
pub struct Wrap {
    /// What the proxy stands before.
    pub server: Behind,
    /// How long a request may be without an answer, or a word of progress.
    pub timeout: Duration,
    /// How long a result may be before it comes in pages (`io.output.max_bytes`).
    pub output_bytes_max: usize,
    /// How the session begins.
    pub opening: Opening,
    /// The directory of the session.
    pub session_directory: PathBuf,
    /// The state home.
    pub state_home: PathBuf,
}

/// A server, by where it runs.
pub enum Behind {
    /// It is started by these words, and speaks on standard input and output.
    Command(Vec<String>),
    /// It runs elsewhere, and speaks streamable HTTP.
    Url(Address),
}

/// Who is at the other ends.
pub struct Ends {
    /// What the client says.
    pub input: File,
    /// What the client hears.
    pub output: File,
    /// What people may read.
    pub errors: File,
    /// Something that can be read from once the proxy is to end.
    pub stop: Box<dyn Read + Send>,
}

/// Why nothing is wrapped.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// There is no server.
    #[error("can't start `{program}`: {source}")]
    Start {
        /// What should have been started.
        program: String,
        /// Why it was not.
        source: io::Error,
    },
    /// There are no threads.
    #[error("can't start a thread: {0}")]
    Thread(io::Error),
}

/// Stands between a client and a server until one of them leaves.
pub fn run(wrap: Wrap, runtime: Runtime, ends: Ends) -> Result<(), WrapError> {
    let Begun { server, ears, says, words } = begin(wrap.server)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let wake = wake.map_err(|error| WrapError::Thread(error.into()))?;
    let (jobs, todo) = sync_channel(JOBS_MAX);
    let Ends { input, output, errors, stop } = ends;
    let spill = Spill::new(wrap.session_directory.join("spill"));
    let desk = Desk {
        // What the client sends is what the server gets.
        front: McpFront::new(runtime.keeping_arguments(), wrap.opening),
        tools: Tools::default(),
        pins: Pins::load(&wrap.state_home, &words),
        pages: Pages::new(spill, wrap.output_bytes_max),
    };
    let shared = Arc::new(Shared {
        desk: Mutex::new(desk),
        ledger: Mutex::new(Ledger::default()),
        jobs,
        server: Arc::clone(&server),
        timeout_ms: u64::try_from(wrap.timeout.as_millis()).unwrap_or(u64::MAX),
        output: Mutex::new(Outlet::new(output.into())),
        wake,
        errors: Mutex::new(Outlet::new(errors.into())),
        complaints: AtomicU32::new(0),
        untidy: AtomicU32::new(0),
        agreed: Mutex::new(None),
    });
    if let Err(error) = start_threads(&shared, ears, (input.into(), says), stop) {
        server.end(&shared);
        return Err(WrapError::Thread(error));
    }
    let proxy =
        Proxy { shared, server, silent: false, ended: false, gone_at_ms: None, leave_at_ms: None };
    proxy.run(&todo);
    Ok(())
}

/// A server at work.
struct Begun {
    server: Arc<dyn Server>,
    /// What hears of it.
    ears: Vec<Ear>,
    /// What it says, where it does so on a pipe.
    says: Option<OwnedFd>,
    /// What it is known by.
    words: Vec<String>,
}

fn begin(server: Behind) -> Result<Begun, WrapError> {
    match server {
        Behind::Command(words) => {
            let program = words.first().cloned().unwrap_or_default();
            let Started { process, ears, output } =
                Process::start(&words).map_err(|source| WrapError::Start { program, source })?;
            Ok(Begun { server: Arc::new(process), ears, says: Some(output), words })
        }
        Behind::Url(address) => {
            let words = address.words();
            let (server, ears) = Remote::new(address);
            Ok(Begun { server, ears, says: None, words })
        }
    }
}

fn start_threads(
    shared: &Arc<Shared>,
    ears: Vec<Ear>,
    (client, server): (OwnedFd, Option<OwnedFd>),
    mut stop: Box<dyn Read + Send>,
) -> io::Result<()> {
    let start = |work: Ear| {
        let shared = Arc::clone(shared);
        let work = move || {
            let _alarm = Alarm(Arc::clone(&shared));
            work(&shared);
        };
        std::thread::Builder::new().spawn(work).map(|_| ())
    };
    start(Box::new(move |shared| Reader::new(shared, client, server).run()))?;
    ears.into_iter().try_for_each(start)?;
    start(Box::new(move |shared| {
        if stop.read(&mut [0]).is_ok_and(|read| read > 0) {
            shared.send(Job::Leave);
        }
    }))
}

/// Ends the proxy where one of its threads has failed: whoever waits is told, and
/// nothing passes by a guard that nobody hears.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send(Job::Lost(
                "a part of the proxy failed, which is a fault of jackline".to_owned(),
            ));
            self.0.send(Job::Leave);
        }
    }
}

/// The thread that watches the time.
struct Proxy {
    shared: Arc<Shared>,
    server: Arc<dyn Server>,
    /// The server says nothing more.
    silent: bool,
    /// It has ended.
    ended: bool,
    /// When it counts as gone although one of the two is missing.
    gone_at_ms: Option<u64>,
    /// When it is not waited for any more, since the client has left.
    leave_at_ms: Option<u64>,
}

impl Proxy {
    fn run(mut self, todo: &Receiver<Job>) {
        loop {
            let wake = [self.gone_at_ms, self.leave_at_ms].into_iter().flatten();
            let wake = wake.chain(lock(&self.shared.ledger).next_until_ms()).min();
            // What is opened meanwhile has its whole time, so that is when to look again.
            let at = wake.unwrap_or_else(|| self.shared.until_ms());
            match todo.recv_timeout(Duration::from_millis(at.saturating_sub(now_ms()))) {
                Ok(job) => self.handle(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look();
            self.shared.tidy();
            let gone = lock(&self.shared.ledger).gone().is_some();
            if self.leave_at_ms.is_some_and(|at| gone || at <= now_ms()) {
                break;
            }
        }
        if lock(&self.shared.ledger).gone().is_none() {
            self.server.end(&self.shared);
            self.close("the client has left".to_owned());
        }
        lock(&self.shared.desk).end();
        self.say_the_rest();
    }

    /// Gives the client what it has not taken yet, as long as it takes some.
    fn say_the_rest(&self) {
        let takes = || {
            let backlog = lock(&self.shared.output).backlog();
            backlog.is_some_and(|backlog| now_ms() < backlog.since_ms + REST_MS)
        };
        while takes() {
            std::thread::sleep(REST_TICK);
            self.shared.flush();
        }
    }

    fn handle(&mut self, job: Job) {
        match job {
            Job::Answered(answered) => {
                let line = lock(&self.shared.desk).answered(&self.shared, &answered);
                self.shared.emit_at_once(line);
            }
            Job::Cancelled(open) => {
                lock(&self.shared.desk).over(&open, Status::Cancelled, None);
            }
            Job::Failed(open, failure) => self.fail(&open, &failure),
            Job::Lost(how) if lock(&self.shared.ledger).gone().is_none() => {
                self.server.end(&self.shared);
                self.close(how);
            }
            Job::Lost(_) => {}
            Job::Silent => {
                self.silent = true;
                self.going();
            }
            Job::Ended => {
                self.ended = true;
                self.going();
            }
            Job::Leave => {
                self.server.close();
                self.leave_at_ms.get_or_insert_with(|| now_ms() + LEAVE_GRACE_MS);
            }
        }
    }

    /// The server shows one of the two signs of its end; what it said last is still
    /// on its way.
    fn going(&mut self) {
        let wait = if self.silent && self.ended { 0 } else { LAST_WORDS_MS };
        let at = now_ms() + wait;
        self.gone_at_ms = Some(self.gone_at_ms.map_or(at, |before| before.min(at)));
    }

    /// Looks at what time it is.
    fn look(&mut self) {
        let now = now_ms();
        if self.gone_at_ms.is_some_and(|at| at <= now) {
            self.gone_at_ms = None;
            if lock(&self.shared.ledger).gone().is_none() {
                let how = self.server.end(&self.shared);
                self.close(how);
            }
        }
        let late = lock(&self.shared.ledger).take_late(now);
        for open in late {
            let seconds = self.shared.timeout_ms / 1000;
            self.fail(&open, &Failure::Late { seconds });
            let reason = format!("no answer within {seconds} s");
            // The one request that must not be taken back.
            let notice = (open.what != What::Initialize).then(|| cancelled(&open.id, &reason));
            self.server.take_back(&open, notice.as_deref());
        }
    }

    /// The server is gone: whoever waits is told, and whoever asks later.
    fn close(&mut self, how: String) {
        let gone = Gone { how, stderr: self.server.last_words() };
        let open = lock(&self.shared.ledger).close(gone.clone());
        for open in open {
            self.fail(&open, &Failure::Gone(gone.clone()));
        }
    }

    /// Answers a request in the server's stead.
    fn fail(&mut self, open: &Open, failure: &Failure) {
        lock(&self.shared.desk).over(open, failure.status(), Some(failure.text()));
        self.shared.emit_at_once(failure.answer_to(open).into_bytes());
    }
}
