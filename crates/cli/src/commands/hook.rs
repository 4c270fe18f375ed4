//! `jackline hook CLIENT`: the client's JSON in, the client's JSON out.
//!
//! The client takes a late answer, a crash and most exit codes for consent. So
//! a second thread answers when the first has not by the deadline, and exactly
//! one of them speaks.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jackline_clients::claude::{self, Hook, Reply, Surroundings};
use jackline_runtime::{Definitions, Runtime};

use crate::args::HookArgs;
use crate::exit::Exit;
use crate::terminal::store;

/// The longest payload that is read.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// Before the answer of one who was believed; see the installer's command line.
const SEAL: &str = "jackline:1:";

/// The stack of the thread that watches the time.
const WATCH_STACK_BYTES: usize = 64 << 10;

pub(crate) fn run(args: &HookArgs) -> std::process::ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let watch = Arc::new(Watch::default());
    let seconds = args.deadline_seconds;
    let watching = Arc::clone(&watch);
    let sealed = args.sealed;
    let started = std::thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        if watching.speaks() {
            let reply = claude::timed_out(watching.heard(), seconds);
            print(&reply, sealed);
            std::process::exit(i32::from(reply.exit));
        }
    });
    let surroundings = Surroundings::of_process();
    let mut input = Vec::new();
    let answered = match io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut input) {
        // A gate without a deadline of its own can hang, and that opens it.
        _ if started.is_err() => Err("no thread can be started".to_owned()),
        Err(error) => Err(format!("standard input can't be read: {error}")),
        Ok(_) if input.len() as u64 > INPUT_BYTES_MAX => {
            Err(format!("what the client sent is longer than {INPUT_BYTES_MAX} bytes"))
        }
        Ok(_) => Ok(claude::answer(
            &input,
            &surroundings,
            |at| start(args, at),
            |hook, blocked| {
                watch.hear(hook, blocked);
            },
        )),
    };
    if !watch.speaks() {
        // The deadline has spoken; it ends the process.
        std::thread::sleep(Duration::from_secs(1));
        return 2.into();
    }
    let reply = match answered {
        Ok(answered) => {
            print(&answered.reply, args.sealed);
            if let Some(mut runtime) = answered.runtime {
                runtime.tidy();
            }
            answered.reply
        }
        Err(why) => {
            let reply = claude::unreadable(&why);
            print(&reply, args.sealed);
            reply
        }
    };
    reply.exit.into()
}

fn start(args: &HookArgs, surroundings: &Surroundings) -> Result<Runtime, String> {
    let store = store().map_err(|_: Exit| "there is no state home".to_owned())?;
    let definitions = Definitions::new(args.definition.clone(), Some(&store));
    let mut runtime = Runtime::new(Box::new(store), definitions, surroundings.workspace().clone());
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline);
    }
    Ok(runtime)
}

fn print(reply: &Reply, sealed: bool) {
    let seal = if sealed && reply.exit == 0 { SEAL } else { "" };
    // Whoever can't be reached takes it as they take a crash; nothing is left to do.
    let _ = io::stdout().lock().write_all(format!("{seal}{}", reply.stdout).as_bytes());
    let _ = io::stdout().lock().flush();
    if !reply.stderr.is_empty() {
        let _ = io::stderr().lock().write_all(reply.stderr.as_bytes());
    }
}

/// What the two threads know of each other.
#[derive(Default)]
struct Watch {
    spoken: AtomicBool,
    /// The hook's number and one, and whether a stop was blocked; 0 is nothing yet.
    heard: AtomicUsize,
}

impl Watch {
    /// Whether the caller is the one who speaks.
    fn speaks(&self) -> bool {
        !self.spoken.swap(true, Ordering::SeqCst)
    }

    fn hear(&self, hook: Hook, stop_blocked: bool) {
        self.heard.store((hook.number() + 1) * 2 + usize::from(stop_blocked), Ordering::SeqCst);
    }

    fn heard(&self) -> Option<(Hook, bool)> {
        let heard = self.heard.load(Ordering::SeqCst);
        (heard > 0).then(|| (Hook::numbered(heard / 2 - 1), heard % 2 == 1))
    }
}
