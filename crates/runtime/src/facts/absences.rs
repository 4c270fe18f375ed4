//! Names that were not there, in directories that nobody has changed since.
//!
//! At every event the same few files are looked for, and most workspaces have none of
//! them. The time at which a directory was changed says of all its names at once that
//! nothing came. Nobody can set that time back but who sets the clock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::Timestamp;

use super::links::is_missing;
use jackline_host::clock;
use jackline_host::stamp::DirectoryStamp;

/// How many names are remembered.
const NAMES_MAX: usize = 1024;

/// What is remembered of names that were not there.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    /// Whether somebody has looked before: who looks once has no use for what it learns.
    again: Cell<bool>,
    /// Each with the stamp of its directory.
    seen: RefCell<BTreeMap<PathBuf, DirectoryStamp>>,
}

impl Absences {
    /// Begins to look: what is found of a directory counts for all that is asked now.
    pub(crate) fn look(&self) -> Absent<'_> {
        let again = self.again.replace(true);
        Absent { absences: self, again, began: clock::now().wall, directories: Vec::new() }
    }

    /// Remembers that a name is not in a directory that looked like this, some time after
    /// another.
    fn learn(&self, path: &Path, (directory, stamp): (&Path, DirectoryStamp), before: Timestamp) {
        let mut seen = self.seen.borrow_mut();
        if seen.len() < NAMES_MAX && stamp.tells(directory, before) {
            seen.insert(path.to_owned(), stamp);
        } else {
            seen.remove(path);
        }
    }
}

/// What there is of a directory.
#[derive(Debug, Clone, Copy)]
enum Found {
    Directory(DirectoryStamp),
    Nothing,
    /// Nobody can tell.
    Unknown,
}

/// One look at several names.
pub(crate) struct Absent<'a> {
    absences: &'a Absences,
    again: bool,
    began: Timestamp,
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
            self.absences.learn(path, (directory, stamp), self.began);
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
                Ok(found) => Found::Directory(DirectoryStamp::of(&found)),
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use jackline_host::stamp::SETTLED_MS;

    /// Somebody has looked before.
    fn absences() -> Absences {
        Absences { again: Cell::new(true), ..Absences::default() }
    }

    fn lacks(absences: &Absences, path: &Path) -> bool {
        absences.look().lacks(path)
    }

    /// Long enough for a directory to be known by its time.
    fn wait() {
        std::thread::sleep(std::time::Duration::from_millis(SETTLED_MS + 20));
    }

    /// A directory that is known by its time.
    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        wait();
        root
    }

    #[test]
    fn what_comes_is_seen_wherever_it_comes() {
        let root = root();
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
        wait();
        assert!(lacks(&absences, &link.join("file")));
        assert_eq!(absences.seen.borrow().len(), 1);
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
        wait();
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
