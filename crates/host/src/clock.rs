//! The only place that reads the clock.

use jackline_engine::{Now, Timestamp};

/// The current wall-clock time and the time since the machine started.
pub fn now() -> Now {
    #[expect(clippy::disallowed_methods, reason = "this is the lawful caller")]
    let wall = std::time::SystemTime::now();
    Now { wall: from_system(wall), boot_id: boot_id(), boot_ms: boot_ms() }
}

/// Milliseconds since the machine started.
pub fn boot_ms() -> u64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec.unsigned_abs() * 1000 + since.tv_nsec.unsigned_abs() / 1_000_000
}

/// A number that differs between starts of the machine.
pub fn boot_number() -> u64 {
    boot_id().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Converts a time of the file system.
pub fn from_system(time: std::time::SystemTime) -> Timestamp {
    let ms = |since: std::time::Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_ms(match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    })
}

fn boot_id() -> String {
    static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    // Without a boot id, elapsed time falls back to the wall clock.
    let read = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    BOOT.get_or_init(|| read().trim().to_owned()).clone()
}
