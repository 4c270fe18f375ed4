//! Checks that must hold for any input of people and models.
//!
//! Each target makes an input from bytes and panics if a check fails. The fuzzer in `fuzz/` runs
//! the targets millions of times. The tests of this crate run them a few thousand times on the
//! stable toolchain. So the targets are a crate of the workspace, and not a part of `fuzz/`, which
//! needs a nightly toolchain.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a failed check panics")]

mod decode;
mod definition;
mod expression;
mod hook;
mod session;
mod shell;
mod wire;

use std::time::{Duration, Instant};

pub use decode::decode;
pub use definition::definition;
pub use expression::expression;
pub use hook::hook;
pub use session::session;
pub use shell::shell;
pub use wire::wire;

/// One kind of input, with its checks.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// The name, here and in `fuzz/`.
    pub name: &'static str,
    /// Panics if a check fails.
    pub check: fn(&[u8]),
    /// Longer inputs only take more time.
    pub input_bytes_max: usize,
}

/// Every target.
pub const TARGETS: [FuzzTarget; 7] = [
    FuzzTarget { name: "shell", check: shell, input_bytes_max: 4096 },
    FuzzTarget { name: "definition", check: definition, input_bytes_max: 8192 },
    FuzzTarget { name: "expression", check: expression, input_bytes_max: 1024 },
    FuzzTarget { name: "decode", check: decode, input_bytes_max: 1024 },
    FuzzTarget { name: "wire", check: wire, input_bytes_max: 4096 },
    FuzzTarget { name: "session", check: session, input_bytes_max: 120 },
    FuzzTarget { name: "hook", check: hook, input_bytes_max: 1024 },
];

/// The time limit for one input, for a build without optimisation on a busy machine. It finds
/// endless loops and not slow code.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Runs `body`, and panics if it takes too long three times.
#[expect(clippy::disallowed_methods, reason = "this only measures time")]
fn run_in_time<T>(mut body: impl FnMut() -> T) -> T {
    let mut tries = 0;
    loop {
        let start = Instant::now();
        let done = body();
        let elapsed = start.elapsed();
        if elapsed <= TIME_MAX {
            return done;
        }
        // A busy machine is unlikely to delay the same input three times.
        tries += 1;
        assert!(tries < 3, "one input took {elapsed:?}");
    }
}
