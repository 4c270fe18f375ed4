//! `jackline hook CLIENT`, for every client: a payload in, an answer out, whatever happens.
//!
//! A client takes a late answer, a crash and most exit codes for consent. So a second thread
//! answers when the first has not by the deadline, and exactly one of them speaks. A panic, in
//! the dialect or below, is caught here and nowhere else on this path (`door`); it becomes a
//! denial that says the guard is broken.

mod answering;
mod code_answer;
mod machine;
mod port;
mod session;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::dialect::{Dialect, HookCall, HookReply, REFUSAL_EXIT};
use crate::surroundings::Surroundings;

pub use answering::HookAnswer;
pub use machine::HookRuntime;
pub use port::{HookPort, ProcessPort};

/// What a sealed answer begins with: the installed command line hands on nothing else.
pub const SEAL: &str = "jackline:1:";

/// The longest payload that is read.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The stack of the thread that watches the deadline.
const WATCH_STACK_BYTES: usize = 64 << 10;

/// How often the thread that lost the race for the answer looks whether the process is over.
const LOSER_SLEEP: Duration = Duration::from_mins(1);

/// The reason where the answer can't be printed.
const UNHEARD: &str = "jackline, the guard, is broken, not the call: its answer can't be printed\n";

/// Answers one hook call of one client.
pub struct HookServer {
    /// How the client spells events and answers.
    pub dialect: &'static dyn Dialect,
    /// Where the runtime comes from.
    pub runtime: HookRuntime,
    /// Whether the command line of the hook hands on only sealed answers.
    pub sealed: bool,
    /// How long an answer may take; less than the client waits.
    pub deadline: Duration,
}

impl HookServer {
    /// Answers the hook call at a port, and gives the exit status.
    pub fn serve(&self, port: &Arc<dyn HookPort>) -> u8 {
        let watch = Arc::new(Watch::default());
        let at = surroundings(self.dialect);
        let answer = match self.watch_deadline(&watch, port, &at).and_then(|()| read(&**port)) {
            Ok(input) => self.answer(&input, &at, &mut |call| drop(watch.call.set(call.clone()))),
            Err(fault) => HookAnswer::broken(self.dialect, None, &at, &fault),
        };
        while !watch.may_speak() {
            // The other thread has spoken, and ends the process.
            std::thread::sleep(LOSER_SLEEP);
        }
        say(&**port, answer, self.sealed)
    }

    /// Answers a payload. `listen` is told which hook it is as soon as that is known.
    pub fn answer(
        &self,
        input: &[u8],
        at: &Surroundings,
        listen: &mut dyn FnMut(&HookCall),
    ) -> HookAnswer {
        let mut known = None;
        let answer = door(|| {
            let payload = match self.dialect.parse(input, at) {
                Ok(payload) => payload,
                Err(error) => {
                    return HookAnswer::broken(self.dialect, None, at, &error.to_string());
                }
            };
            known = Some(payload.call.clone());
            listen(&payload.call);
            answering::answer(self, payload, at)
        });
        let broken = || HookAnswer::broken(self.dialect, known.as_ref(), at, "an internal fault");
        answer.unwrap_or_else(broken)
    }

    /// Starts the thread that answers at the deadline. A gate that can hang is open.
    fn watch_deadline(
        &self,
        watch: &Arc<Watch>,
        port: &Arc<dyn HookPort>,
        at: &Surroundings,
    ) -> Result<(), String> {
        let (watch, port, at) = (Arc::clone(watch), Arc::clone(port), at.clone());
        let (dialect, sealed, deadline) = (self.dialect, self.sealed, self.deadline);
        let answer_in_time = move || {
            std::thread::sleep(deadline);
            if watch.may_speak() {
                let fault = format!("it found no answer within {} seconds", deadline.as_secs());
                let answer = HookAnswer::broken(dialect, watch.call.get(), &at, &fault);
                port.exit(say(&*port, answer, sealed));
            }
        };
        std::thread::Builder::new()
            .stack_size(WATCH_STACK_BYTES)
            .spawn(answer_in_time)
            .map(drop)
            .map_err(|error| format!("no thread can be started: {error}"))
    }
}

/// Does a part of the work; nothing comes of it where it panics. The only place of the hook path
/// that catches a panic.
fn door<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Where the hook runs, also for a dialect that can't tell.
fn surroundings(dialect: &dyn Dialect) -> Surroundings {
    door(|| dialect.surroundings()).unwrap_or_else(|| Surroundings::of_process(None, false))
}

fn read(port: &dyn HookPort) -> Result<Vec<u8>, String> {
    match port.read(INPUT_BYTES_MAX + 1) {
        Err(error) => Err(format!("standard input can't be read: {error}")),
        Ok(input) if input.len() as u64 > INPUT_BYTES_MAX => {
            Err(format!("what the client sent is longer than {INPUT_BYTES_MAX} bytes"))
        }
        Ok(input) => Ok(input),
    }
}

/// Prints an answer, does what could wait, and gives the exit status.
fn say(port: &dyn HookPort, answer: HookAnswer, sealed: bool) -> u8 {
    let HookReply { stdout, stderr, exit } = &answer.reply;
    let exit = *exit;
    let seal = if sealed && exit == 0 { SEAL } else { "" };
    // A client that has not heard the answer must not take the silence for one.
    let (stderr, exit) = match port.print(&format!("{seal}{stdout}")) {
        Ok(()) => (stderr.as_str(), exit),
        Err(_) => (UNHEARD, REFUSAL_EXIT),
    };
    // The exit status says it too, where this can't be heard either.
    port.complain(stderr);
    // The answer is out; a panic here must not change the exit status.
    door(|| answer.finish());
    exit
}

/// What the two threads know of each other.
#[derive(Default)]
struct Watch {
    spoken: AtomicBool,
    call: OnceLock<HookCall>,
}

impl Watch {
    /// Whether the caller is the one who speaks.
    fn may_speak(&self) -> bool {
        !self.spoken.swap(true, Ordering::SeqCst)
    }
}
