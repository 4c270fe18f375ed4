//! Runs `jackline hook CLIENT` for every client: reads a payload and always prints an answer.
//!
//! A client treats a late answer, a crash and most exit codes as consent. So a second thread
//! answers at the deadline if the first thread has not answered yet, and exactly one of them
//! prints. Only `catch_panic` catches panics on this path, in the dialect and below it. A panic
//! becomes a denial that says the guard is broken.

mod answer_steps;
mod code_answer;
mod hook_port;
mod hook_runtime;
mod hook_session;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::dialect::{Dialect, HookCall, HookReply, REFUSAL_EXIT};
use crate::hook_environment::HookEnvironment;

pub use answer_steps::HookAnswer;
pub use hook_port::{HookPort, ProcessPort};
pub use hook_runtime::HookRuntime;

/// A sealed answer begins with this. The installed command line passes on nothing else.
pub const SEAL: &str = "jackline:1:";

/// The longest payload that is read.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The stack of the thread that watches the deadline.
const DEADLINE_THREAD_STACK_BYTES: usize = 64 << 10;

/// How long the thread that must not answer sleeps until the process ends.
const WAIT_FOR_EXIT: Duration = Duration::from_mins(1);

/// The reason that the client gets if the answer can't be printed.
const CAN_NOT_PRINT: &str =
    "jackline, the guard, is broken, not the call: its answer can't be printed\n";

/// Answers one hook call of a client.
pub struct HookServer {
    /// The hook format of the client.
    pub dialect: &'static dyn Dialect,
    /// How to get the runtime.
    pub runtime: HookRuntime,
    /// Whether the command line of the hook passes on only sealed answers.
    pub sealed: bool,
    /// The role of the agent, if the command line of the hook names one.
    pub role: Option<String>,
    /// How long an answer may take. The client waits longer than this.
    pub deadline: Duration,
}

impl HookServer {
    /// Answers the hook call at a port, and returns the exit status.
    pub fn serve(&self, port: &Arc<dyn HookPort>) -> u8 {
        let watch = Arc::new(AnswerRace::default());
        let at = HookEnvironment { role: self.role.clone(), ..read_environment(self.dialect) };
        let answer = match self
            .start_deadline_thread(&watch, port, &at)
            .and_then(|()| read_payload(&**port))
        {
            Ok(input) => self.answer(&input, &at, &mut |call| drop(watch.call.set(call.clone()))),
            Err(fault) => HookAnswer::for_fault(self.dialect, None, &at, &fault),
        };
        while !watch.claim_answer() {
            // The other thread answers and ends the process.
            std::thread::sleep(WAIT_FOR_EXIT);
        }
        print_answer(&**port, answer, self.sealed)
    }

    /// Answers a payload. `listen` gets the hook call as soon as it is parsed.
    pub fn answer(
        &self,
        input: &[u8],
        at: &HookEnvironment,
        listen: &mut dyn FnMut(&HookCall),
    ) -> HookAnswer {
        let mut parsed_call = None;
        let answer = catch_panic(|| {
            let payload = match self.dialect.parse_payload(input, at) {
                Ok(payload) => payload,
                Err(error) => {
                    return HookAnswer::for_fault(self.dialect, None, at, &error.to_string());
                }
            };
            parsed_call = Some(payload.call.clone());
            listen(&payload.call);
            answer_steps::answer_payload(self, payload, at)
        });
        let broken =
            || HookAnswer::for_fault(self.dialect, parsed_call.as_ref(), at, "an internal fault");
        answer.unwrap_or_else(broken)
    }

    /// Starts the thread that answers at the deadline. Without it, a hook that hangs would let the
    /// call run.
    fn start_deadline_thread(
        &self,
        watch: &Arc<AnswerRace>,
        port: &Arc<dyn HookPort>,
        at: &HookEnvironment,
    ) -> Result<(), String> {
        let (watch, port, at) = (Arc::clone(watch), Arc::clone(port), at.clone());
        let (dialect, sealed, deadline) = (self.dialect, self.sealed, self.deadline);
        let answer_in_time = move || {
            std::thread::sleep(deadline);
            if watch.claim_answer() {
                let fault = format!("it found no answer within {} seconds", deadline.as_secs());
                let answer = HookAnswer::for_fault(dialect, watch.call.get(), &at, &fault);
                port.exit(print_answer(&*port, answer, sealed));
            }
        };
        std::thread::Builder::new()
            .stack_size(DEADLINE_THREAD_STACK_BYTES)
            .spawn(answer_in_time)
            .map(drop)
            .map_err(|error| format!("no thread can be started: {error}"))
    }
}

/// Runs a part of the work. Returns nothing if it panics. Nothing else on the hook path catches a
/// panic.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// The environment of the hook, with defaults if the dialect panics.
fn read_environment(dialect: &dyn Dialect) -> HookEnvironment {
    catch_panic(|| dialect.read_environment())
        .unwrap_or_else(|| HookEnvironment::of_process(None, false))
}

fn read_payload(port: &dyn HookPort) -> Result<Vec<u8>, String> {
    match port.read(INPUT_BYTES_MAX + 1) {
        Err(error) => Err(format!("standard input can't be read: {error}")),
        Ok(input) if input.len() as u64 > INPUT_BYTES_MAX => {
            Err(format!("the hook payload is longer than {INPUT_BYTES_MAX} bytes"))
        }
        Ok(input) => Ok(input),
    }
}

/// Prints an answer, does the deferred work, and returns the exit status.
fn print_answer(port: &dyn HookPort, answer: HookAnswer, sealed: bool) -> u8 {
    let HookReply { stdout, stderr, exit } = &answer.reply;
    let exit = *exit;
    let seal = if sealed && exit == 0 { SEAL } else { "" };
    // If the answer can't be printed, the client must not treat the empty output as consent.
    let (stderr, exit) = match port.print(&format!("{seal}{stdout}")) {
        Ok(()) => (stderr.as_str(), exit),
        Err(_) => (CAN_NOT_PRINT, REFUSAL_EXIT),
    };
    // The exit status reports the refusal even if this can't be printed.
    port.print_error(stderr);
    // The answer is printed. A panic here must not change the exit status.
    catch_panic(|| answer.run_deferred());
    exit
}

/// The state that the answering thread and the deadline thread share.
#[derive(Default)]
struct AnswerRace {
    is_answered: AtomicBool,
    call: OnceLock<HookCall>,
}

impl AnswerRace {
    /// Whether the caller must answer. True only for the first caller.
    fn claim_answer(&self) -> bool {
        !self.is_answered.swap(true, Ordering::SeqCst)
    }
}
