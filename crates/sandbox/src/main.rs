//! `jackline-sandbox`: reads JSON lines and answers with JSON lines. The host starts it, and uses
//! it for many programs.

use std::io::{stdin, stdout};
use std::process::ExitCode;

use jackline_sandbox::{confine, confine_thread, serve};

/// Counts the memory of programs, and ends the process at the limit.
#[global_allocator]
static ALLOCATOR: monty_alloc::LimitedAllocator = monty_alloc::LimitedAllocator;

/// Deep syntax trees need a deep stack. Unused pages cost no memory.
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
