//! Reads `.gitignore`, `.ignore` and git's exclude file of the directories on a path.
//!
//! The rules are those of ripgrep, with two differences. Ignore files are opened beneath the root
//! and without blocking, like all other files. The user's global ignore file is not read, so that
//! two machines give the same answer.

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

use super::{WalkDirectory, for_each_entry};
use crate::jail::{Jail, file_type};

/// How many bytes of an ignore file are read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The ignore files of a directory and of all directories above it.
pub(super) struct IgnoreFiles {
    above: Option<Arc<IgnoreFiles>>,
    /// In the order of precedence: `.ignore`, `.gitignore`, git's exclude file.
    files: [Option<Gitignore>; 3],
    /// Whether this is the top directory of a repository.
    is_repository: bool,
    /// The path of the workspace, for directories above it.
    outside: Option<PathBuf>,
}

const DOT_IGNORE: usize = 0;
const DOT_GITIGNORE: usize = 1;
const GIT_EXCLUDE: usize = 2;

impl IgnoreFiles {
    /// Loads the ignore files that apply to `start` itself.
    pub(super) fn above(jail: &Jail, start: &Path) -> Option<Arc<IgnoreFiles>> {
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
            let present = PresentIgnoreFiles {
                plain: true,
                git: true,
                repository: directory.join(".git").exists(),
            };
            ignores = load_ignore_files(
                opened.as_fd(),
                directory,
                &present,
                ignores.as_ref(),
                Some(real),
            );
        }
        let inside: Vec<&Path> = start.ancestors().skip(1).collect();
        for directory in inside.into_iter().rev() {
            let Ok(opened) = jail.open_without_links(directory) else { continue };
            let present = PresentIgnoreFiles::find_in(&opened);
            ignores =
                load_ignore_files(opened.as_fd(), directory, &present, ignores.as_ref(), None);
        }
        ignores
    }

    /// The ignore files that apply to the entries of a directory.
    pub(super) fn of(
        directory: &WalkDirectory,
        listed: &[(OsString, FileType)],
        above: Option<&Arc<IgnoreFiles>>,
    ) -> Option<Arc<IgnoreFiles>> {
        let has = |name: &str| {
            listed.binary_search_by(|(entry, _)| entry.as_os_str().cmp(OsStr::new(name))).is_ok()
        };
        let present = PresentIgnoreFiles {
            plain: has(".ignore"),
            git: has(".gitignore"),
            repository: has(".git"),
        };
        load_ignore_files(directory.opened.as_fd(), &directory.path, &present, above, None)
    }

    fn decide(&self, path: &Path, is_dir: bool) -> Option<IgnoreDecision> {
        let in_repository = self.chain().any(|ignores| ignores.is_repository);
        for which in [DOT_IGNORE, DOT_GITIGNORE, GIT_EXCLUDE] {
            if which != DOT_IGNORE && !in_repository {
                break;
            }
            for ignores in self.chain() {
                if let Some(decision) = ignores.decide_by_file(which, path, is_dir) {
                    return Some(decision);
                }
                // The files of an outer repository do not apply in an inner one.
                if which != DOT_IGNORE && ignores.is_repository {
                    break;
                }
            }
        }
        None
    }

    fn decide_by_file(&self, which: usize, path: &Path, is_dir: bool) -> Option<IgnoreDecision> {
        let file = self.files.get(which)?.as_ref()?;
        let matched = match &self.outside {
            Some(root) => file.matched(root.join(path), is_dir),
            None => file.matched(path, is_dir),
        };
        match matched {
            Match::None => None,
            Match::Ignore(_) => Some(IgnoreDecision::Skip),
            Match::Whitelist(_) => Some(IgnoreDecision::Show),
        }
    }

    fn chain(&self) -> impl Iterator<Item = &IgnoreFiles> {
        std::iter::successors(Some(self), |ignores| ignores.above.as_deref())
    }
}

enum IgnoreDecision {
    Skip,
    Show,
}

/// Whether a walk skips an entry.
pub(super) fn should_skip(
    ignores: Option<&IgnoreFiles>,
    path: &Path,
    name: &OsStr,
    is_dir: bool,
) -> bool {
    match ignores.and_then(|ignores| ignores.decide(path, is_dir)) {
        Some(IgnoreDecision::Skip) => true,
        Some(IgnoreDecision::Show) => false,
        None => name.as_bytes().starts_with(b"."),
    }
}

/// Which ignore files a directory contains.
struct PresentIgnoreFiles {
    plain: bool,
    git: bool,
    repository: bool,
}

impl PresentIgnoreFiles {
    fn find_in(directory: &OwnedFd) -> PresentIgnoreFiles {
        let mut present = PresentIgnoreFiles { plain: false, git: false, repository: false };
        let _ = for_each_entry(directory, |name, _| {
            match name.as_bytes() {
                b".ignore" => present.plain = true,
                b".gitignore" => present.git = true,
                b".git" => present.repository = true,
                _ => {}
            }
            true
        });
        present
    }
}

/// Loads the ignore files of a directory. Without any, the files of the parent apply.
fn load_ignore_files(
    opened: BorrowedFd<'_>,
    path: &Path,
    present: &PresentIgnoreFiles,
    above: Option<&Arc<IgnoreFiles>>,
    outside: Option<&Path>,
) -> Option<Arc<IgnoreFiles>> {
    if !(present.plain || present.git || present.repository) {
        return above.cloned();
    }
    let read =
        |wanted: bool, name: &str| wanted.then(|| parse_ignore_file(opened, name, path)).flatten();
    let files = [
        read(present.plain, ".ignore"),
        read(present.git, ".gitignore"),
        read(present.repository, ".git/info/exclude"),
    ];
    if files.iter().all(Option::is_none) && !present.repository {
        return above.cloned();
    }
    Some(Arc::new(IgnoreFiles {
        above: above.cloned(),
        files,
        is_repository: present.repository,
        outside: outside.map(Path::to_owned),
    }))
}

/// Parses an ignore file. Invalid lines are skipped.
fn parse_ignore_file(directory: BorrowedFd<'_>, name: &str, path: &Path) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // `.git` may be a link or a file; then there is no exclude file to read.
    let mut opened: Option<OwnedFd> = None;
    for part in name.split('/') {
        let next = match &opened {
            Some(at) => openat(at, part, flags, Mode::empty()),
            None => openat(directory, part, flags, Mode::empty()),
        };
        opened = Some(next.ok()?);
    }
    let opened = opened?;
    if file_type(&fstat(&opened).ok()?) != FileType::RegularFile {
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
