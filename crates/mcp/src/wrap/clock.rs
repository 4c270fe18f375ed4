//! The clocks of the proxy.

/// Milliseconds since the machine started.
pub(super) fn now_ms() -> u64 {
    jackline_host::clock::now().boot_ms
}

/// Microseconds of a monotonic clock with an unspecified start.
pub(super) fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000
}
