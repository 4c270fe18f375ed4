//! A cache of paths that do not exist.
//!
//! The runtime checks the same few files at every event, and most workspaces have none of them. As
//! long as the modification time of a directory is unchanged, no name was added to it. Only setting
//! the system clock can set this time back.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::Timestamp;

use super::links::is_missing;
use jackline_host::clock;
use jackline_host::directory_stamp::DirectoryStamp;

/// The largest number of cached paths.
const NAMES_MAX: usize = 1024;

/// The cache of missing paths.
#[derive(Debug, Default)]
pub(crate) struct MissingPathCache {
    /// Whether a check was done before. A process that checks only once does not need the cache.
    was_used: Cell<bool>,
    /// Missing paths, each with the stamp of its directory.
    stamps: RefCell<BTreeMap<PathBuf, DirectoryStamp>>,
}

impl MissingPathCache {
    /// Begins a check. The stamp of a directory is read once per check.
    pub(crate) fn begin_check(&self) -> MissingPathCheck<'_> {
        let again = self.was_used.replace(true);
        MissingPathCheck {
            cache: self,
            can_use_cache: again,
            began: clock::now().wall,
            directories: Vec::new(),
        }
    }

    /// Caches that a path is missing, if the directory was unchanged for long enough before the
    /// given time.
    fn remember(
        &self,
        path: &Path,
        (directory, stamp): (&Path, DirectoryStamp),
        before: Timestamp,
    ) {
        let mut seen = self.stamps.borrow_mut();
        if seen.len() < NAMES_MAX && stamp.is_reliable(directory, before) {
            seen.insert(path.to_owned(), stamp);
        } else {
            seen.remove(path);
        }
    }
}

/// The state of a directory.
#[derive(Debug, Clone, Copy)]
enum DirectoryState {
    Directory(DirectoryStamp),
    Missing,
    /// The state can't be read.
    Unreadable,
}

/// One check of several paths.
pub(crate) struct MissingPathCheck<'a> {
    cache: &'a MissingPathCache,
    can_use_cache: bool,
    began: Timestamp,
    directories: Vec<(PathBuf, DirectoryState)>,
}

impl MissingPathCheck<'_> {
    /// Whether a path certainly does not exist. A link exists, even if its target does not.
    pub(crate) fn is_surely_missing(&mut self, path: &Path) -> bool {
        let Some(directory) = path.parent().filter(|_| self.can_use_cache) else { return false };
        let stamp = match self.directory(directory) {
            DirectoryState::Directory(stamp) => stamp,
            DirectoryState::Missing => return true,
            DirectoryState::Unreadable => return false,
        };
        if self.cache.stamps.borrow().get(path) == Some(&stamp) {
            return true;
        }
        let absent = fs::symlink_metadata(path).is_err_and(|error| is_missing(error.kind()));
        if absent {
            self.cache.remember(path, (directory, stamp), self.began);
        }
        absent
    }

    fn directory(&mut self, directory: &Path) -> DirectoryState {
        if let Some((_, found)) = self.directories.iter().find(|(path, _)| path == directory) {
            return *found;
        }
        // A directory that was missing itself is cached with its parent.
        let is_cached = self.cache.stamps.borrow().contains_key(directory);
        let found = if is_cached && self.is_surely_missing(directory) {
            DirectoryState::Missing
        } else {
            match fs::metadata(directory) {
                Ok(found) => DirectoryState::Directory(DirectoryStamp::of(&found)),
                Err(error) if is_missing(error.kind()) => {
                    self.is_surely_missing(directory);
                    DirectoryState::Missing
                }
                Err(_) => DirectoryState::Unreadable,
            }
        };
        self.directories.push((directory.to_owned(), found));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use jackline_host::directory_stamp::SETTLED_MS;

    /// A cache that was used before.
    fn absences() -> MissingPathCache {
        MissingPathCache { was_used: Cell::new(true), ..MissingPathCache::default() }
    }

    fn lacks(absences: &MissingPathCache, path: &Path) -> bool {
        absences.begin_check().is_surely_missing(path)
    }

    /// Waits until the stamp of a directory is reliable.
    fn wait() {
        std::thread::sleep(std::time::Duration::from_millis(SETTLED_MS + 20));
    }

    /// A directory whose stamp is reliable.
    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        wait();
        root
    }

    #[test]
    fn a_new_file_is_seen_in_every_directory() {
        let root = root();
        let absences = absences();
        let at = |name: &str| root.path().join(name);
        let names = ["file", "directory/file", "a/b/c/d", "link"];
        for _ in 0..3 {
            assert!(names.iter().all(|name| lacks(&absences, &at(name))));
        }
        assert!(!absences.stamps.borrow().is_empty());
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
        assert!(!lacks(&absences, &at("link")), "the target of a link may appear later");
        fs::remove_file(at("file")).unwrap();
        assert!(lacks(&absences, &at("file")));
    }

    #[test]
    fn a_replaced_directory_of_the_same_name_is_checked() {
        let root = tempfile::tempdir().unwrap();
        let absences = absences();
        for name in ["one", "two"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("two/file"), "").unwrap();
        let link = root.path().join("link");
        symlink("one", &link).unwrap();
        wait();
        assert!(lacks(&absences, &link.join("file")));
        assert_eq!(absences.stamps.borrow().len(), 1);
        fs::remove_file(&link).unwrap();
        symlink("two", &link).unwrap();
        assert!(!lacks(&absences, &link.join("file")));
    }

    #[test]
    fn a_directory_that_changed_just_now_is_not_cached() {
        let root = tempfile::tempdir().unwrap();
        let absences = MissingPathCache::default();
        assert!(!lacks(&absences, &root.path().join("file")), "the first check caches nothing");
        assert!(lacks(&absences, &root.path().join("file")));
        assert!(absences.stamps.borrow().is_empty());
        wait();
        assert!(lacks(&absences, &root.path().join("file")));
        assert_eq!(absences.stamps.borrow().len(), 1);
    }

    #[test]
    fn an_unreadable_directory_never_counts_as_missing() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("loop");
        symlink("loop", &link).unwrap();
        assert!(!lacks(&absences(), &link.join("file")));
    }
}
