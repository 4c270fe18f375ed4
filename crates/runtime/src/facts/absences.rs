//! Names that were not there, in directories that nobody has changed since.
//!
//! At every event the same few files are looked for, and most workspaces have none of
//! them. The time at which a directory was changed says of all its names at once that
//! nothing came. Nobody can set that time back but who sets the clock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::Timestamp;

use super::links::is_missing;
use crate::clock;

/// How long a directory must have been left alone to be known by its time: file systems
/// tell two changes apart that are a few milliseconds from each other.
pub(crate) const SETTLED_MS: u64 = 1000;

/// How many names are remembered.
const NAMES_MAX: usize = 1024;

/// File systems that note the time when a name comes or goes: ext4, xfs, btrfs, tmpfs,
/// overlayfs, f2fs, zfs. FAT does not, and of others nobody knows.
#[cfg(target_os = "linux")]
const PUNCTUAL: [u64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// When a directory was changed last, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    which: (u64, u64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        let which = (found.dev(), found.ino());
        Self { which, changed: (found.ctime(), found.ctime_nsec()) }
    }

    fn changed_at(&self) -> Timestamp {
        Timestamp::from_ms(self.changed.0.saturating_mul(1000) + self.changed.1 / 1_000_000)
    }
}

/// What is remembered of names that were not there.
#[derive(Debug)]
pub(crate) struct Absences {
    settled_ms: u64,
    /// Whether somebody has looked before: who looks once has no use for what it learns.
    again: Cell<bool>,
    /// Each with the stamp of its directory.
    seen: RefCell<BTreeMap<PathBuf, Stamp>>,
}

impl Default for Absences {
    fn default() -> Self {
        Self { settled_ms: SETTLED_MS, again: Cell::new(false), seen: RefCell::default() }
    }
}

impl Absences {
    /// Begins to look: what is found of a directory counts for all that is asked now.
    pub(crate) fn look(&self) -> Absent<'_> {
        let again = self.again.replace(true);
        Absent { absences: self, again, directories: Vec::new() }
    }

    /// Remembers that a name is not in a directory that looked like this before.
    fn learn(&self, path: &Path, directory: &Path, stamp: Stamp) {
        let mut seen = self.seen.borrow_mut();
        let settled = stamp.changed_at().plus_ms(self.settled_ms) <= clock::now().wall;
        if settled && seen.len() < NAMES_MAX && is_punctual(directory) {
            seen.insert(path.to_owned(), stamp);
        } else {
            seen.remove(path);
        }
    }
}

/// What there is of a directory.
#[derive(Debug, Clone, Copy)]
enum Found {
    Directory(Stamp),
    Nothing,
    /// Nobody can tell.
    Unknown,
}

/// One look at several names.
pub(crate) struct Absent<'a> {
    absences: &'a Absences,
    again: bool,
    directories: Vec<(PathBuf, Found)>,
}

impl Absent<'_> {
    /// Whether a name is surely not there. A link is there, wherever it leads.
    pub(crate) fn lacks(&mut self, path: &Path) -> bool {
        let Some(directory) = path.parent().filter(|_| self.again) else { return false };
        let stamp = match self.directory(directory) {
            Found::Directory(stamp) => stamp,
            Found::Nothing => return true,
            Found::Unknown => return false,
        };
        if self.absences.seen.borrow().get(path) == Some(&stamp) {
            return true;
        }
        let absent = fs::symlink_metadata(path).is_err_and(|error| is_missing(error.kind()));
        if absent {
            self.absences.learn(path, directory, stamp);
        }
        absent
    }

    fn directory(&mut self, directory: &Path) -> Found {
        if let Some((_, found)) = self.directories.iter().find(|(path, _)| path == directory) {
            return *found;
        }
        // One that was not there itself is known by the one above it.
        let known = self.absences.seen.borrow().contains_key(directory);
        let found = if known && self.lacks(directory) {
            Found::Nothing
        } else {
            match fs::metadata(directory) {
                Ok(found) => Found::Directory(Stamp::of(&found)),
                Err(error) if is_missing(error.kind()) => {
                    self.lacks(directory);
                    Found::Nothing
                }
                Err(_) => Found::Unknown,
            }
        };
        self.directories.push((directory.to_owned(), found));
        found
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Somebody has looked before, and nothing is waited for.
    fn absences() -> Absences {
        Absences { settled_ms: 0, again: Cell::new(true), ..Absences::default() }
    }

    fn lacks(absences: &Absences, path: &Path) -> bool {
        absences.look().lacks(path)
    }

    /// Long enough for a file system to note another time.
    fn wait() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    #[test]
    fn what_comes_is_seen_wherever_it_comes() {
        let root = tempfile::tempdir().unwrap();
        let absences = absences();
        let at = |name: &str| root.path().join(name);
        let names = ["file", "directory/file", "a/b/c/d", "link"];
        for _ in 0..3 {
            assert!(names.iter().all(|name| lacks(&absences, &at(name))));
        }
        assert!(!absences.seen.borrow().is_empty());
        wait();
        fs::write(at("file"), "").unwrap();
        assert!(!lacks(&absences, &at("file")));
        wait();
        fs::create_dir(at("directory")).unwrap();
        assert!(lacks(&absences, &at("directory/file")));
        wait();
        fs::write(at("directory/file"), "").unwrap();
        assert!(!lacks(&absences, &at("directory/file")));
        fs::create_dir_all(at("a/b/c")).unwrap();
        assert!(lacks(&absences, &at("a/b/c/d")));
        wait();
        symlink("nowhere", at("link")).unwrap();
        assert!(!lacks(&absences, &at("link")), "it may lead somewhere tomorrow");
        fs::remove_file(at("file")).unwrap();
        assert!(lacks(&absences, &at("file")));
    }

    #[test]
    fn another_directory_of_the_same_name_is_looked_into() {
        let root = tempfile::tempdir().unwrap();
        let absences = absences();
        for name in ["one", "two"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("two/file"), "").unwrap();
        let link = root.path().join("link");
        symlink("one", &link).unwrap();
        assert!(lacks(&absences, &link.join("file")));
        fs::remove_file(&link).unwrap();
        symlink("two", &link).unwrap();
        assert!(!lacks(&absences, &link.join("file")));
    }

    #[test]
    fn what_was_changed_just_now_is_not_remembered() {
        let root = tempfile::tempdir().unwrap();
        let absences = Absences::default();
        assert!(!lacks(&absences, &root.path().join("file")), "the first look is no look");
        assert!(lacks(&absences, &root.path().join("file")));
        assert!(absences.seen.borrow().is_empty());
        std::thread::sleep(std::time::Duration::from_millis(SETTLED_MS + 20));
        assert!(lacks(&absences, &root.path().join("file")));
        assert_eq!(absences.seen.borrow().len(), 1);
    }

    #[test]
    fn a_directory_that_nobody_may_look_into_lacks_nothing_for_sure() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("loop");
        symlink("loop", &link).unwrap();
        assert!(!lacks(&absences(), &link.join("file")));
    }
}
