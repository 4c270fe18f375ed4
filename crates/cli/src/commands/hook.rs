//! `jackline hook CLIENT`: the client's JSON in, the client's JSON out.
//!
//! The client takes a late answer, a crash and most exit codes for consent. So
//! a second thread answers when the first has not by the deadline, and exactly
//! one of them speaks.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use jackline_clients::claude::settings::SEAL;
use jackline_clients::claude::{self, Answered, Heard, Reply, Surroundings};
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime, boot_number, state_home};

use crate::args::HookArgs;

/// The longest payload that is read.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// What every client takes for a refusal.
const LAST_RESORT: u8 = 2;

/// Said where the answer can't be printed.
const UNHEARD: &str = "jackline, the guard, is broken, not the call: its answer can't be printed\n";

/// The stack of the thread that watches the time.
const WATCH_STACK_BYTES: usize = 64 << 10;

pub(crate) fn run(args: &HookArgs) -> ExitCode {
    // A backtrace is nothing that a model should read; the answer says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    let watch = Arc::new(Watch::default());
    let surroundings = Surroundings::of_process();
    let answered = match watch_over(&watch, args).and_then(|_| read()) {
        Ok(input) => {
            let listen = |heard| drop(watch.heard.set(heard));
            claude::answer(&input, &surroundings, |at| start(args, at), listen)
        }
        Err(why) => claude::unreadable(&surroundings, &why),
    };
    while !watch.speaks() {
        // The other thread has spoken, and ends the process.
        std::thread::sleep(Duration::from_mins(1));
    }
    say(answered, args.sealed).into()
}

/// Starts the thread that answers when it is time. A gate that can hang is open.
fn watch_over(watch: &Arc<Watch>, args: &HookArgs) -> Result<JoinHandle<()>, String> {
    let (watch, seconds, sealed) = (Arc::clone(watch), args.deadline_seconds, args.sealed);
    let answer_in_time = move || {
        std::thread::sleep(Duration::from_secs(seconds));
        if watch.speaks() {
            let (heard, surroundings) = (watch.heard.get().cloned(), Surroundings::of_process());
            std::process::exit(
                say(claude::timed_out(heard, &surroundings, seconds), sealed).into(),
            );
        }
    };
    std::thread::Builder::new()
        .stack_size(WATCH_STACK_BYTES)
        .spawn(answer_in_time)
        .map_err(|error| format!("no thread can be started: {error}"))
}

fn read() -> Result<Vec<u8>, String> {
    let mut input = Vec::new();
    match io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut input) {
        Err(error) => Err(format!("standard input can't be read: {error}")),
        Ok(bytes) if bytes as u64 > INPUT_BYTES_MAX => {
            Err(format!("what the client sent is longer than {INPUT_BYTES_MAX} bytes"))
        }
        Ok(_) => Ok(input),
    }
}

fn start(args: &HookArgs, surroundings: &Surroundings) -> Result<Runtime, String> {
    let home = state_home().map_err(|error| error.to_string())?;
    let store = FileStore::new(home, boot_number());
    let definitions = Definitions::new(args.definition.clone(), Some(&store));
    let workspace = surroundings.workspace().clone();
    let mut runtime = Runtime::new(Box::new(store), definitions, workspace).with_spool();
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    Ok(runtime)
}

/// Prints an answer, does what could wait, and gives the exit code.
fn say(answered: Answered, sealed: bool) -> u8 {
    let Reply { stdout, stderr, exit } = &answered.reply;
    let exit = *exit;
    let seal = if sealed && exit == 0 { SEAL } else { "" };
    let mut output = io::stdout().lock();
    let printed =
        output.write_all(format!("{seal}{stdout}").as_bytes()).and_then(|()| output.flush());
    // Who has not heard the answer must not take the silence for one.
    let (stderr, exit) = match printed {
        Ok(()) => (stderr.as_str(), exit),
        Err(_) => (UNHEARD, LAST_RESORT),
    };
    // The exit status says it too, where this can't be heard either.
    let _ = io::stderr().lock().write_all(stderr.as_bytes());
    answered.finish();
    exit
}

/// What the two threads know of each other.
#[derive(Default)]
struct Watch {
    spoken: AtomicBool,
    heard: OnceLock<Heard>,
}

impl Watch {
    /// Whether the caller is the one who speaks.
    fn speaks(&self) -> bool {
        !self.spoken.swap(true, Ordering::SeqCst)
    }
}
