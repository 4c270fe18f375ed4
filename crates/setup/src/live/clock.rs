//! Measures durations. No decision depends on them.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since an arbitrary moment in the past.
pub(crate) fn micros() -> u64 {
    let since = clock_gettime(ClockId::Monotonic);
    since.tv_sec.unsigned_abs() * 1_000_000 + since.tv_nsec.unsigned_abs() / 1000
}
