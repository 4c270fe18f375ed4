//! How long a tool may look for something.

use std::io::{self, Read};

/// A moment after which nobody looks any further.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    until_ms: u64,
}

impl Deadline {
    pub(crate) fn after_ms(ms: u64) -> Deadline {
        Deadline { until_ms: boot_ms().saturating_add(ms) }
    }

    pub(crate) fn is_over(self) -> bool {
        boot_ms() >= self.until_ms
    }
}

/// Something to read that fails once the time is up: one file may take all of it.
pub(crate) struct Timed<R> {
    pub(crate) inner: R,
    pub(crate) deadline: Deadline,
    pub(crate) is_up: bool,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            self.is_up = true;
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}

/// Milliseconds that only ever go forward.
pub(crate) fn boot_ms() -> u64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec.unsigned_abs() * 1000 + since.tv_nsec.unsigned_abs() / 1_000_000
}
