//! What `.gitignore`, `.ignore` and git's own exclude file say, from the top down.
//!
//! As ripgrep reads them, with two differences: ignore files are opened in the jail
//! and without waiting, as anything else; and what a person ignores everywhere is
//! not read, so that two machines answer alike.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::{Directory, entries};
use crate::jail::{Jail, kind};

/// How much of an ignore file is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The ignore files of a directory, and of all above it.
pub(super) struct Ignores {
    above: Option<Arc<Ignores>>,
    /// In the order of their weight: `.ignore`, `.gitignore`, git's exclude file.
    files: [Option<Gitignore>; 3],
    /// Whether this is the top of a repository.
    repository: bool,
    /// Where the workspace is, for directories that are above it.
    outside: Option<PathBuf>,
}

const PLAIN: usize = 0;
const GIT: usize = 1;
const EXCLUDE: usize = 2;

impl Ignores {
    /// What holds for `start` before it is looked into.
    pub(super) fn above(jail: &Jail, start: &Path) -> Option<Arc<Ignores>> {
        let mut ignores = None;
        let real = jail.real();
        let mut outside: Vec<&Path> = Vec::new();
        for directory in real.ancestors().skip(1) {
            outside.push(directory);
            if directory.join(".git").exists() {
                break;
            }
        }
        for directory in outside.into_iter().rev() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(opened) = openat(CWD, directory, flags, Mode::empty()) else { continue };
            let found =
                Found { plain: true, git: true, repository: directory.join(".git").exists() };
            ignores = load(opened.as_fd(), directory, &found, ignores.as_ref(), Some(real));
        }
        let inside: Vec<&Path> = start.ancestors().skip(1).collect();
        for directory in inside.into_iter().rev() {
            let Ok(opened) = jail.open_walked(directory) else { continue };
            let found = Found::look(&opened);
            ignores = load(opened.as_fd(), directory, &found, ignores.as_ref(), None);
        }
        ignores
    }

    /// What holds in a directory.
    pub(super) fn of(
        directory: &Directory,
        listed: &[(OsString, FileType)],
        above: Option<&Arc<Ignores>>,
    ) -> Option<Arc<Ignores>> {
        let has = |name: &str| {
            listed.binary_search_by(|(entry, _)| entry.as_os_str().cmp(OsStr::new(name))).is_ok()
        };
        let found =
            Found { plain: has(".ignore"), git: has(".gitignore"), repository: has(".git") };
        load(directory.opened.as_fd(), &directory.path, &found, above, None)
    }

    fn says(&self, path: &Path, is_dir: bool) -> Option<Said> {
        let in_repository = self.chain().any(|ignores| ignores.repository);
        for which in [PLAIN, GIT, EXCLUDE] {
            if which != PLAIN && !in_repository {
                break;
            }
            for ignores in self.chain() {
                if let Some(said) = ignores.said(which, path, is_dir) {
                    return Some(said);
                }
                // A repository does not hear the one that it lies in.
                if which != PLAIN && ignores.repository {
                    break;
                }
            }
        }
        None
    }

    fn said(&self, which: usize, path: &Path, is_dir: bool) -> Option<Said> {
        let file = self.files.get(which)?.as_ref()?;
        let matched = match &self.outside {
            Some(root) => file.matched(root.join(path), is_dir),
            None => file.matched(path, is_dir),
        };
        match matched {
            Match::None => None,
            Match::Ignore(_) => Some(Said::Skip),
            Match::Whitelist(_) => Some(Said::Show),
        }
    }

    fn chain(&self) -> impl Iterator<Item = &Ignores> {
        std::iter::successors(Some(self), |ignores| ignores.above.as_deref())
    }
}

enum Said {
    Skip,
    Show,
}

/// Whether a walk passes something by.
pub(super) fn skips(ignores: Option<&Ignores>, path: &Path, name: &OsStr, is_dir: bool) -> bool {
    match ignores.and_then(|ignores| ignores.says(path, is_dir)) {
        Some(Said::Skip) => true,
        Some(Said::Show) => false,
        None => name.as_bytes().starts_with(b"."),
    }
}

/// Which files are there to be read.
struct Found {
    plain: bool,
    git: bool,
    repository: bool,
}

impl Found {
    fn look(directory: &OwnedFd) -> Found {
        let mut found = Found { plain: false, git: false, repository: false };
        let _ = entries(directory, |name, _| {
            match name.as_bytes() {
                b".ignore" => found.plain = true,
                b".gitignore" => found.git = true,
                b".git" => found.repository = true,
                _ => {}
            }
            true
        });
        found
    }
}

/// Reads the ignore files of a directory. Where there are none, what holds above holds.
fn load(
    opened: BorrowedFd<'_>,
    path: &Path,
    found: &Found,
    above: Option<&Arc<Ignores>>,
    outside: Option<&Path>,
) -> Option<Arc<Ignores>> {
    if !(found.plain || found.git || found.repository) {
        return above.cloned();
    }
    let read = |wanted: bool, name: &str| wanted.then(|| parse(opened, name, path)).flatten();
    let files = [
        read(found.plain, ".ignore"),
        read(found.git, ".gitignore"),
        read(found.repository, ".git/info/exclude"),
    ];
    if files.iter().all(Option::is_none) && !found.repository {
        return above.cloned();
    }
    Some(Arc::new(Ignores {
        above: above.cloned(),
        files,
        repository: found.repository,
        outside: outside.map(Path::to_owned),
    }))
}

/// An ignore file, as far as it can be read. A line that makes no sense is left out.
fn parse(directory: BorrowedFd<'_>, name: &str, path: &Path) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // `.git` may itself be a link or a file; then it has nothing for us.
    let mut opened: Option<OwnedFd> = None;
    for part in name.split('/') {
        let next = match &opened {
            Some(at) => openat(at, part, flags, Mode::empty()),
            None => openat(directory, part, flags, Mode::empty()),
        };
        opened = Some(next.ok()?);
    }
    let opened = opened?;
    if kind(&fstat(&opened).ok()?) != FileType::RegularFile {
        return None;
    }
    let mut text = Vec::new();
    File::from(opened).take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut builder = GitignoreBuilder::new(path);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|file| !file.is_empty())
}
