//! Directory timestamps as proof that no entry was added or removed since.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jackline_engine::Timestamp;

/// How old the last change of a directory must be for its time to be conclusive. A clock that ticks
/// 100 times a second, or less often, can give two changes the same time.
pub const SETTLED_MS: u64 = 50;

/// The same where the file system keeps (nearly) whole seconds.
const SETTLED_COARSE_MS: u64 = 2500;

/// File systems that update the directory time when an entry is added or removed: ext4, xfs, btrfs,
/// tmpfs, overlayfs, f2fs, zfs. FAT does not, and others are unknown.
#[cfg(target_os = "linux")]
const FINE_TIME_FILE_SYSTEMS: [u64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// The identity of a directory and the time of its last change.
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

    /// Whether any change of the directory after `before` gives it another stamp. `before` must be
    /// a time before the metadata were read.
    pub fn is_reliable(&self, directory: &Path, before: Timestamp) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let coarse = nanoseconds % 1_000_000 == 0;
        let alone_ms = if coarse { SETTLED_COARSE_MS } else { SETTLED_MS };
        let at = Timestamp::from_ms(seconds.saturating_mul(1000) + nanoseconds / 1_000_000);
        at.plus_ms(alone_ms) < before && has_fine_times(directory)
    }
}

#[cfg(target_os = "linux")]
fn has_fine_times(directory: &Path) -> bool {
    let kind = rustix::fs::statfs(directory).map(|found| found.f_type.cast_unsigned());
    kind.is_ok_and(|kind| FINE_TIME_FILE_SYSTEMS.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn has_fine_times(_: &Path) -> bool {
    false
}
