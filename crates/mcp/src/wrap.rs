//! A proxy before an MCP server; its client speaks on standard input and output.
//!
//! One thread reads the client, others hear the server, and this one has the guard.
//! Whoever reads writes on at once, and only calls of tools, their results and lists of
//! tools come here; so a decision that takes long holds up the calls behind it, and
//! nothing in the other direction.
//!
//! This thread never writes to the server, but for what goes in without waiting. So
//! a server that does not read can't keep it from answering the client.

mod clock;
mod errors;
mod ledger;
mod lines;
mod message;
mod pages;
mod pins;
mod process;
mod remote;
mod result;
mod server;
mod shared;
mod to_client;
mod to_server;
mod tools;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jackline_engine::json::parse_strict;
use jackline_engine::{Arguments, PAGE_TURN, Payload, Status};
use jackline_runtime::Runtime;
use jackline_runtime::spill::Spill;
use serde_json::Value;

use self::clock::now_ms;
use self::errors::Failure;
use self::ledger::{Gone, Ledger, Open, What};
use self::message::{Line, Message, answer, cancelled, range_in};
use self::pages::{Pages, Turned};
use self::pins::Pins;
use self::process::Process;
use self::remote::Remote;
pub use self::remote::{Address, AddressError, Encryption};
use self::result::{ToolResult, add_text, refusal, said};
use self::server::{Ear, Server, lock};
use self::shared::{Answered, Job, Ruled, Shared, Want};
use self::to_server::ToServer;
use self::tools::Tools;
use crate::guard::{CameBack, Guard, Opening, Ruling, Wanted};

/// How many things may wait for the guard before whoever reads has to wait, too.
const JOBS_MAX: usize = 64;

/// How long is waited for the other sign of a server's end once there is one.
const LAST_WORDS_MS: u64 = 500;

/// How long a server may go on after the client has left.
const LEAVE_GRACE_MS: u64 = 2000;

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
    pub input: Box<dyn Read + Send>,
    /// What the client hears.
    pub output: Box<dyn Write + Send>,
    /// What people may read.
    pub errors: Box<dyn Write + Send>,
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
    let (server, ears, words) = begin(wrap.server)?;
    let (jobs, todo) = sync_channel(JOBS_MAX);
    let (rule, rulings) = channel();
    let Ends { input, output, errors, stop } = ends;
    let shared = Arc::new(Shared {
        ledger: Mutex::new(Ledger::default()),
        jobs,
        server: Arc::clone(&server),
        timeout_ms: u64::try_from(wrap.timeout.as_millis()).unwrap_or(u64::MAX),
        output: Mutex::new(output),
        errors: Mutex::new(errors),
        complaints: AtomicU32::new(0),
        agreed: Mutex::new(None),
    });
    if let Err(error) = start_threads(&shared, ears, (input, stop), rulings) {
        server.end(&shared);
        return Err(WrapError::Thread(error));
    }
    let spill = Spill::new(wrap.session_directory.join("spill"));
    let proxy = Proxy {
        shared,
        server,
        guard: Guard::new(runtime, wrap.opening),
        tools: Tools::default(),
        pins: Pins::load(&wrap.state_home, &words),
        pages: Pages::new(spill, wrap.output_bytes_max),
        rule,
        silent: false,
        ended: false,
        gone_at_ms: None,
        leave_at_ms: None,
    };
    proxy.run(&todo);
    Ok(())
}

/// A server, what hears it, and what it is known by.
type Begun = (Arc<dyn Server>, Vec<Ear>, Vec<String>);

fn begin(server: Behind) -> Result<Begun, WrapError> {
    match server {
        Behind::Command(words) => {
            let program = words.first().cloned().unwrap_or_default();
            let (process, ears) =
                Process::start(&words).map_err(|source| WrapError::Start { program, source })?;
            Ok((Arc::new(process), ears, words))
        }
        Behind::Url(address) => {
            let words = address.words();
            let (remote, ears) = Remote::new(address);
            Ok((remote, ears, words))
        }
    }
}

/// A stream that is read by a thread of its own.
type Input = Box<dyn Read + Send>;

fn start_threads(
    shared: &Arc<Shared>,
    ears: Vec<Ear>,
    (input, mut stop): (Input, Input),
    rulings: Receiver<Vec<Ruled>>,
) -> io::Result<()> {
    let start = |work: Ear| {
        let shared = Arc::clone(shared);
        std::thread::Builder::new().spawn(move || work(&shared)).map(|_| ())
    };
    start(Box::new(move |shared| ToServer { shared, rulings }.run(input)))?;
    ears.into_iter().try_for_each(start)?;
    start(Box::new(move |shared| {
        if stop.read(&mut [0]).is_ok_and(|read| read > 0) {
            shared.send(Job::Leave);
        }
    }))
}

/// The thread that has the guard.
struct Proxy {
    shared: Arc<Shared>,
    server: Arc<dyn Server>,
    guard: Guard,
    tools: Tools,
    pins: Pins,
    pages: Pages,
    rule: Sender<Vec<Ruled>>,
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
            let job = match wake {
                None => todo.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => todo.recv_timeout(Duration::from_millis(at.saturating_sub(now_ms()))),
            };
            match job {
                Ok(job) => self.handle(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look();
            for text in self.guard.tidy() {
                self.shared.say(&text);
            }
            let gone = lock(&self.shared.ledger).gone().is_some();
            if self.leave_at_ms.is_some_and(|at| gone || at <= now_ms()) {
                break;
            }
        }
        if lock(&self.shared.ledger).gone().is_none() {
            self.server.end(&self.shared);
            self.close("the client has left".to_owned());
        }
        self.guard.end();
        self.pages.remove();
    }

    fn handle(&mut self, job: Job) {
        match job {
            Job::Propose(wants) => {
                let ruled = wants.iter().map(|want| self.ruled(want)).collect();
                let _ = self.rule.send(ruled);
            }
            Job::Answered(answered) => self.answered(&answered),
            Job::Cancelled(open) | Job::Unsent(open) => self.over(&open, Status::Cancelled, None),
            Job::Failed(open, failure) => self.fail(&open, &failure),
            Job::Lost(how) if lock(&self.shared.ledger).gone().is_none() => {
                self.server.end(&self.shared);
                self.close(how);
            }
            Job::Opened | Job::Lost(_) => {}
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

    /// Rules on a call.
    fn ruled(&mut self, want: &Want) -> Ruled {
        let Want { open, tool, arguments } = want;
        if tool == PAGE_TURN {
            let text = format!("jackline: `{tool}` is no name for a tool of a server");
            return Ruled::Answer(refusal(open, &text));
        }
        let is_page = self.tools.is_page(tool);
        let tool = if is_page { PAGE_TURN } else { tool };
        let written = arguments.as_deref().unwrap_or("{}");
        let args = match parse_strict(written.as_bytes()) {
            Ok(args) if args.is_object() => Arguments::Parsed(args),
            // Nobody can say what the server would read; the guards do.
            _ => Arguments::Text(Payload::Inline(written.to_owned())),
        };
        let request = serde_json::from_str(open.id.json()).unwrap_or_default();
        match self.guard.propose(Wanted { request, tool, args }) {
            Ruling::Run(call) if is_page => Ruled::Answer(self.turn(open, call, written)),
            Ruling::Run(call) => Ruled::Run(call),
            Ruling::Refuse(refused) => Ruled::Answer(refusal(open, &refused.text)),
        }
    }

    /// Turns a page, which is a call like any other, but for the server.
    fn turn(&mut self, open: &Open, call: u64, arguments: &str) -> String {
        let arguments: Option<Value> = serde_json::from_str(arguments).ok();
        let Turned { mut result, said, status } = self.pages.turn(open, arguments.as_ref());
        if let Some(words) = self.guard.finish(came_back(call, status, Some(said), false)) {
            self.add(&mut result, words);
        }
        answer(&open.id, &result)
    }

    /// Adds what the guard says to a result, or keeps it for the next.
    fn add(&mut self, result: &mut String, words: String) {
        if !add_text(result, &words) {
            self.guard.owe(words);
        }
    }

    fn answered(&mut self, answered: &Answered) {
        let mut messages = Vec::new();
        for (range, open) in &answered.parts {
            let text = answered.text.get(range.clone()).unwrap_or_default();
            messages.push(match open {
                None => text.to_owned(),
                Some(open) => self.seen(open, text),
            });
        }
        let line = if answered.batch {
            format!("[{}]", messages.join(","))
        } else {
            // What is around the message is kept, too.
            let around = answered.parts.first().map(|(range, _)| range.clone()).unwrap_or_default();
            let before = answered.text.get(..around.start).unwrap_or_default();
            let after = answered.text.get(around.end..).unwrap_or_default();
            format!("{before}{}{after}", messages.concat())
        };
        self.shared.emit(line.into_bytes());
    }

    /// An answer as the client gets it.
    fn seen(&mut self, open: &Open, text: &str) -> String {
        let line = Line::parse(text);
        let message = line.as_ref().and_then(|line| line.messages.first());
        let Some((_, message)) = message else { return Failure::Unreadable.answer_to(open) };
        let Some(raw) = message.result else {
            return self.seen_error(open, message, text);
        };
        let mut result = raw.get().to_owned();
        let seen = match &open.what {
            What::List => self.listed(&mut result),
            What::Call { call, tool } => self.came_back(open, *call, tool, &mut result),
            What::Initialize | What::Other(_) => true,
        };
        if !seen {
            return Failure::Unreadable.answer_to(open);
        }
        let at = range_in(text, raw);
        let (before, after) = (text.get(..at.start), text.get(at.end..));
        [before.unwrap_or_default(), &result, after.unwrap_or_default()].concat()
    }

    /// An answer that says why there is no result.
    fn seen_error(&mut self, open: &Open, message: &Message<'_>, text: &str) -> String {
        let why = message.error.map(|raw| raw.get().to_owned());
        let is_error = why.is_some();
        self.over(open, Status::Error, why);
        if is_error { text.to_owned() } else { Failure::Unreadable.answer_to(open) }
    }

    /// Whether a list of tools is one; ours is added.
    fn listed(&mut self, result: &mut String) -> bool {
        let Some(seen) = self.tools.listed(result, &mut self.pins) else { return false };
        self.server.listed(&self.shared, &seen.tools);
        if let Err(error) = self.pins.save() {
            self.shared.say(&format!("how tools are described can't be kept: {error}"));
        }
        if !seen.changed.is_empty() {
            self.guard.tools_changed(seen.changed);
        }
        true
    }

    /// Whether a result is one; it is shortened, and what the guard says is added.
    fn came_back(&mut self, open: &Open, call: u64, tool: &str, result: &mut String) -> bool {
        let Some(parsed) = ToolResult::parse(result) else {
            self.over(open, Status::Error, None);
            return false;
        };
        let text = Some(said(&parsed, &parsed.items())).filter(|text| !text.is_empty());
        let (status, background) = (parsed.status(), parsed.is_background());
        let words = self.guard.finish(came_back(call, status, text, background));
        let insists = self.tools.is_structured(tool);
        if let Some(page) = self.pages.shorten(result, self.shared.links(open), insists) {
            *result = page;
        }
        if let Some(words) = words {
            self.add(result, words);
        }
        true
    }

    /// Answers a request in the server's stead.
    fn fail(&mut self, open: &Open, failure: &Failure) {
        self.over(open, failure.status(), Some(failure.text()));
        self.shared.emit(failure.answer_to(open).into_bytes());
    }

    /// Tells the guard of a call that came back without a result.
    fn over(&mut self, open: &Open, status: Status, text: Option<String>) {
        if let What::Call { call, .. } = open.what
            && let Some(words) = self.guard.finish(came_back(call, status, text, false))
        {
            self.guard.owe(words);
        }
    }
}

/// What a server says of a call; it has no exit status, and shows no files.
fn came_back(call: u64, status: Status, text: Option<String>, background: bool) -> CameBack {
    CameBack { call, status, text, exit_code: None, seen: Vec::new(), background }
}
