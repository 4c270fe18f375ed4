//! Runs deep recursion on a thread with enough stack.
//!
//! The validator recurses along schemas and values. The depth is bounded and known
//! before the call, so we can choose the size of the stack and need not rely on the
//! stack of the caller.

use std::thread;

/// The depth for which the stack of any thread is large enough.
const CALLER_STACK_LEVELS: usize = 40;

/// A generous bound for the stack of one level, and the stack for everything else.
const STACK_LEVEL_BYTES: usize = 24 * 1024;
const STACK_BASE_BYTES: usize = 1024 * 1024;

/// Runs `work` with enough stack for `levels` levels. `None` if no thread could be started.
pub(super) fn run_with_stack<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if levels <= CALLER_STACK_LEVELS {
        return Some(work());
    }
    let bytes = STACK_BASE_BYTES + levels * STACK_LEVEL_BYTES;
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(bytes).spawn_scoped(scope, work).ok()?;
        worker.join().ok()
    })
}
