//! Exit codes, which are an interface.

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Fine.
    Fine = 0,
    /// The answer is "no": a replay differs, a check fails.
    No = 1,
    /// Usage or bad input.
    Usage = 2,
    /// The guard itself is broken.
    Broken = 3,
}
