//! `jackline-sandbox`: reads lines of JSON, answers with lines of JSON, and can do nothing
//! else. The host starts it, and keeps it for many programs.

use std::io::{stdin, stdout};
use std::process::ExitCode;

use jackline_sandbox::{confine, confine_thread, serve};

/// Counts what programs hold, and ends the process where they go too far.
#[global_allocator]
static ALLOCATOR: monty_alloc::LimitedAllocator = monty_alloc::LimitedAllocator;

/// Deep trees are walked by recursion. Pages that nobody touches cost nothing.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    if confine().is_err() {
        return ExitCode::from(2);
    }
    let work = || {
        confine_thread()?;
        serve(stdin().lock(), stdout().lock())
    };
    let served = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    match served.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(_))) => ExitCode::FAILURE,
        Ok(Err(_)) | Err(_) => ExitCode::from(101),
    }
}
