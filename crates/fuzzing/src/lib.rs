//! What must hold for any input that people and models can send.
//!
//! Each target takes bytes, makes an input of them and panics where something
//! that always holds does not: the fuzzer in `fuzz/` runs them by the million,
//! the tests of this crate a few thousand times on the stable toolchain. That
//! is why they are a crate of the workspace and not a part of `fuzz/`, which
//! only nightly builds.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what does not hold is told by panicking"
)]

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

/// One kind of input and what is checked with it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, here and in `fuzz/`.
    pub name: &'static str,
    /// Panics where something that always holds does not.
    pub check: fn(&[u8]),
    /// Longer inputs bring nothing but time.
    pub input_bytes_max: usize,
}

/// Every target.
pub const TARGETS: [Target; 7] = [
    Target { name: "shell", check: shell, input_bytes_max: 4096 },
    Target { name: "definition", check: definition, input_bytes_max: 8192 },
    Target { name: "expression", check: expression, input_bytes_max: 1024 },
    Target { name: "decode", check: decode, input_bytes_max: 1024 },
    Target { name: "wire", check: wire, input_bytes_max: 4096 },
    Target { name: "session", check: session, input_bytes_max: 120 },
    Target { name: "hook", check: hook, input_bytes_max: 1024 },
];

/// The longest that one input may take, in a build without optimisation and on
/// a busy machine; what does not end is meant, not what is slow.
const MOST: Duration = Duration::from_secs(5);

/// Runs `body`, and panics if it takes too long each time.
#[expect(clippy::disallowed_methods, reason = "this measures time, and decides nothing by it")]
fn in_time<T>(mut body: impl FnMut() -> T) -> T {
    let mut tries = 0;
    loop {
        let start = Instant::now();
        let done = body();
        let took = start.elapsed();
        if took <= MOST {
            return done;
        }
        // A machine that was busy elsewhere is not so three times in a row.
        tries += 1;
        assert!(tries < 3, "one input took {took:?}");
    }
}
