//! Time limits of the tools.

use std::io::{self, Read};

/// The time at which a search stops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchDeadline {
    until_ms: u64,
}

impl SearchDeadline {
    pub(crate) fn after_ms(ms: u64) -> SearchDeadline {
        SearchDeadline { until_ms: boot_ms().saturating_add(ms) }
    }

    pub(crate) fn has_passed(self) -> bool {
        boot_ms() >= self.until_ms
    }
}

/// A reader that fails after the deadline, because a single file could take all of the time.
pub(crate) struct TimedReader<R> {
    pub(crate) inner: R,
    pub(crate) deadline: SearchDeadline,
    pub(crate) is_timed_out: bool,
}

impl<R: Read> Read for TimedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.has_passed() {
            self.is_timed_out = true;
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}

/// Milliseconds of a clock that never goes back.
pub(crate) fn boot_ms() -> u64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec.unsigned_abs() * 1000 + since.tv_nsec.unsigned_abs() / 1_000_000
}
