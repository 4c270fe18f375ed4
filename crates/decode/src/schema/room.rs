//! Stack for what recurses deep.
//!
//! The validator recurses along schemas and values. How deep is known beforehand
//! and bounded, so the stack can be made to fit, instead of hoping that the
//! caller's does.

use std::thread;

/// How deep a stack of any thread is good for.
const LEVELS_AT_HAND: usize = 40;

/// What one level may take, generously, and what there is besides.
const LEVEL_BYTES: usize = 24 * 1024;
const BASE_BYTES: usize = 1024 * 1024;

/// Runs `work` where it has stack for so many levels; `None` if there is no such place.
pub(super) fn with_room<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if levels <= LEVELS_AT_HAND {
        return Some(work());
    }
    let bytes = BASE_BYTES + levels * LEVEL_BYTES;
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(bytes).spawn_scoped(scope, work).ok()?;
        worker.join().ok()
    })
}
