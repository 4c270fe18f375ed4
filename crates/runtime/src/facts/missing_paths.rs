//! A cache of paths that do not exist.
//!
//! The runtime checks the same few files at every event, and most workspaces have none of them. The
//! cache stores each missing path with the stamp of its directory: the device, the inode and the
//! change time (`ctime`). As long as the stamp is unchanged, no name was added to the directory.
//! Only setting the system clock can set the change time back.
//!
//! Change times are coarse: two changes shortly after each other can get the same time. So a stamp
//! is reliable only if the directory did not change shortly before the stamp was read. We measure
//! this against the start of the check. It is earlier than the moment when the stamp was read, so
//! the real distance is at least as long as the measured one.

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
    /// Whether a check was started before. A process that checks only once does not need the cache.
    was_used: Cell<bool>,
    /// Missing paths, each with the stamp of its directory when the path was missing.
    stamps: RefCell<BTreeMap<PathBuf, DirectoryStamp>>,
}

impl MissingPathCache {
    /// Begins a check. It reads the stamp of each directory only once. The first check of a process
    /// does not use the cache, and reports no path as missing.
    pub(crate) fn begin_check(&self) -> MissingPathCheck<'_> {
        let was_used_before = self.was_used.replace(true);
        MissingPathCheck {
            cache: self,
            can_use_cache: was_used_before,
            began: clock::now().wall,
            directories: Vec::new(),
        }
    }

    /// Caches that a path is missing, if the stamp of its directory is reliable. `began` is the
    /// start of the check; the stamp was read later.
    fn remember(&self, path: &Path, (directory, stamp): (&Path, DirectoryStamp), began: Timestamp) {
        let mut stamps = self.stamps.borrow_mut();
        // `is_reliable` takes the path of the directory to find its file system. Not every file
        // system updates the change time when a name is added.
        if stamps.len() < NAMES_MAX && stamp.is_reliable(directory, began) {
            stamps.insert(path.to_owned(), stamp);
        } else {
            // An earlier entry has an outdated stamp, so it would only take up space.
            stamps.remove(path);
        }
    }
}

/// The state of a directory during one check.
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
    /// The start of the check, which is before any stamp in `directories` was read.
    began: Timestamp,
    /// The directories that this check has looked at.
    directories: Vec<(PathBuf, DirectoryState)>,
}

impl MissingPathCheck<'_> {
    /// Whether a path certainly does not exist. A link exists, even if its target does not. Returns
    /// false if the path exists, or if this is not certain.
    ///
    /// This function and `directory` call each other. Each call goes up one directory, so the
    /// recursion ends at the latest at the root, which has no parent.
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
        let is_path_missing =
            fs::symlink_metadata(path).is_err_and(|error| is_missing(error.kind()));
        if is_path_missing {
            self.cache.remember(path, (directory, stamp), self.began);
        }
        is_path_missing
    }

    /// The state of a directory. It is read at most once in a check.
    fn directory(&mut self, directory: &Path) -> DirectoryState {
        if let Some((_, state)) = self.directories.iter().find(|(path, _)| path == directory) {
            return *state;
        }
        // A missing directory is cached like any other missing path, with the stamp of its parent.
        let is_cached = self.cache.stamps.borrow().contains_key(directory);
        let state = if is_cached && self.is_surely_missing(directory) {
            DirectoryState::Missing
        } else {
            match fs::metadata(directory) {
                Ok(metadata) => DirectoryState::Directory(DirectoryStamp::of(&metadata)),
                Err(error) if is_missing(error.kind()) => {
                    // The result is known. The call only caches that the directory is missing.
                    self.is_surely_missing(directory);
                    DirectoryState::Missing
                }
                Err(_) => DirectoryState::Unreadable,
            }
        };
        self.directories.push((directory.to_owned(), state));
        state
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use jackline_host::directory_stamp::SETTLED_MS;

    /// A cache that was used before, so that the next check uses it.
    fn used_cache() -> MissingPathCache {
        MissingPathCache { was_used: Cell::new(true), ..MissingPathCache::default() }
    }

    /// Whether a new check with this cache reports a path as missing.
    fn is_surely_missing(cache: &MissingPathCache, path: &Path) -> bool {
        cache.begin_check().is_surely_missing(path)
    }

    /// Waits until the stamps of all directories are reliable.
    fn wait_for_reliable_stamps() {
        std::thread::sleep(std::time::Duration::from_millis(SETTLED_MS + 20));
    }

    /// A directory whose stamp is reliable.
    fn old_root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        wait_for_reliable_stamps();
        root
    }

    #[test]
    fn a_new_file_is_seen_in_every_directory() {
        let root = old_root();
        let cache = used_cache();
        let at = |name: &str| root.path().join(name);
        let names = ["file", "directory/file", "a/b/c/d", "link"];
        for _ in 0..3 {
            assert!(names.iter().all(|name| is_surely_missing(&cache, &at(name))));
        }
        assert!(!cache.stamps.borrow().is_empty());
        wait_for_reliable_stamps();
        fs::write(at("file"), "").unwrap();
        assert!(!is_surely_missing(&cache, &at("file")));
        wait_for_reliable_stamps();
        fs::create_dir(at("directory")).unwrap();
        assert!(is_surely_missing(&cache, &at("directory/file")));
        wait_for_reliable_stamps();
        fs::write(at("directory/file"), "").unwrap();
        assert!(!is_surely_missing(&cache, &at("directory/file")));
        fs::create_dir_all(at("a/b/c")).unwrap();
        assert!(is_surely_missing(&cache, &at("a/b/c/d")));
        wait_for_reliable_stamps();
        symlink("nowhere", at("link")).unwrap();
        assert!(!is_surely_missing(&cache, &at("link")), "the target of a link may appear later");
        fs::remove_file(at("file")).unwrap();
        assert!(is_surely_missing(&cache, &at("file")));
    }

    #[test]
    fn a_replaced_directory_of_the_same_name_is_checked() {
        let root = tempfile::tempdir().unwrap();
        let cache = used_cache();
        for name in ["one", "two"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("two/file"), "").unwrap();
        let link = root.path().join("link");
        symlink("one", &link).unwrap();
        wait_for_reliable_stamps();
        assert!(is_surely_missing(&cache, &link.join("file")));
        assert_eq!(cache.stamps.borrow().len(), 1);
        fs::remove_file(&link).unwrap();
        symlink("two", &link).unwrap();
        assert!(!is_surely_missing(&cache, &link.join("file")));
    }

    #[test]
    fn a_directory_that_changed_just_now_is_not_cached() {
        let root = tempfile::tempdir().unwrap();
        let cache = MissingPathCache::default();
        assert!(
            !is_surely_missing(&cache, &root.path().join("file")),
            "the first check caches nothing"
        );
        assert!(is_surely_missing(&cache, &root.path().join("file")));
        assert!(cache.stamps.borrow().is_empty());
        wait_for_reliable_stamps();
        assert!(is_surely_missing(&cache, &root.path().join("file")));
        assert_eq!(cache.stamps.borrow().len(), 1);
    }

    #[test]
    fn an_unreadable_directory_never_counts_as_missing() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("loop");
        symlink("loop", &link).unwrap();
        assert!(!is_surely_missing(&used_cache(), &link.join("file")));
    }
}
