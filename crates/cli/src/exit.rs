//! Exit codes. They are part of the public interface.

/// The result of a command, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitKind {
    /// The command succeeded.
    Success = 0,
    /// The command worked and its answer is "no": a replay differs, a check fails.
    No = 1,
    /// Wrong usage or invalid input.
    Usage = 2,
    /// The guard itself is broken.
    Broken = 3,
}
