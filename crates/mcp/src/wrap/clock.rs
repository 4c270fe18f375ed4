//! Time as the runtime tells it.

/// Milliseconds since the machine started.
pub(super) fn now_ms() -> u64 {
    jackline_runtime::now().boot_ms
}
