//! When a directory was changed last, as a sign that nothing came or went since.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jackline_engine::Timestamp;

/// How long a directory must have been left alone to be known by its time: a clock that
/// ticks a hundred times a second, or less, gives two changes the same one.
pub const SETTLED_MS: u64 = 50;

/// The same where the file system keeps whole seconds, or nearly so.
const SETTLED_COARSE_MS: u64 = 2500;

/// File systems that note the time when a name comes or goes: ext4, xfs, btrfs, tmpfs,
/// overlayfs, f2fs, zfs. FAT does not, and of others nobody knows.
#[cfg(target_os = "linux")]
const PUNCTUAL: [u64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// When a directory was changed last, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryStamp {
    which: (u64, u64),
    changed: (i64, i64),
}

impl DirectoryStamp {
    /// The stamp of a directory with these metadata.
    pub fn of(found: &Metadata) -> Self {
        let which = (found.dev(), found.ino());
        Self { which, changed: (found.ctime(), found.ctime_nsec()) }
    }

    /// Whether a change of the directory after a time that was before this look at it gives
    /// it another stamp.
    pub fn tells(&self, directory: &Path, before: Timestamp) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let coarse = nanoseconds % 1_000_000 == 0;
        let alone_ms = if coarse { SETTLED_COARSE_MS } else { SETTLED_MS };
        let at = Timestamp::from_ms(seconds.saturating_mul(1000) + nanoseconds / 1_000_000);
        at.plus_ms(alone_ms) < before && is_punctual(directory)
    }
}

#[cfg(target_os = "linux")]
fn is_punctual(directory: &Path) -> bool {
    let kind = rustix::fs::statfs(directory).map(|found| found.f_type.cast_unsigned());
    kind.is_ok_and(|kind| PUNCTUAL.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn is_punctual(_: &Path) -> bool {
    false
}
