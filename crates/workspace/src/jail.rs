//! The workspace directory, which no path can leave.
//!
//! The root is opened once and stays open. The kernel resolves every path beneath that descriptor,
//! and the tools use the resulting descriptor, never the name again. So a link that another process
//! swaps in the meantime can't redirect a tool.

mod resolve;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

use crate::error::{OpenError, ToolError, ToolErrorCode};
pub(crate) use resolve::{BeforeMakeDir, ResolvedPath};

/// An open workspace directory.
#[derive(Debug)]
pub(crate) struct Jail {
    root: OwnedFd,
    /// The absolute path of the root, as it was given and with links resolved.
    given_root: PathBuf,
    real: PathBuf,
}

/// A path relative to the root, without dot segments; `.` is the root.
///
/// Dot segments are removed before links are followed, as the engine does. So the file that a guard
/// judged and the file that a tool opens are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkspacePath(String);

/// Flags of every open: it must never block, and child processes must not inherit the descriptor.
const OPEN_FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The longest path that the kernel accepts.
const PATH_BYTES_MAX: usize = 4095;

/// How often an operation is repeated when another process changes the path at the same time.
const TRIES_MAX: usize = 16;

impl WorkspacePath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The parent directory, and the name in it.
    pub(crate) fn split(&self) -> (WorkspacePath, &str) {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => (WorkspacePath(parent.to_owned()), name),
            None => (WorkspacePath(".".to_owned()), &self.0),
        }
    }

    /// The path for a walk: empty for the root.
    pub(crate) fn as_path(&self) -> &Path {
        Path::new(if self.is_root() { "" } else { &self.0 })
    }
}

impl Jail {
    pub(crate) fn open(root: &Path) -> Result<Jail, OpenError> {
        let failed = |source| OpenError { path: root.display().to_string(), source };
        let named = std::path::absolute(root).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &named, flags, Mode::empty());
        let opened = opened.map_err(|errno| failed(errno.into()))?;
        let real = std::fs::canonicalize(&named).map_err(failed)?;
        // Paths are compared without dot segments, and `..` after a link would give a wrong result.
        let dotted = named.components().any(|part| part == Component::ParentDir);
        let named = if dotted { real.clone() } else { named };
        Ok(Jail { root: opened, given_root: named, real })
    }

    /// The real path of the workspace. It is used to find ignore files above the workspace, and as
    /// the working directory of commands. The tools open no workspace file by this path.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Converts a path to one inside the workspace, by its text only.
    pub(crate) fn to_workspace_path(&self, path: &str) -> Result<WorkspacePath, ToolError> {
        if path.is_empty() || path.contains('\0') {
            let why =
                if path.is_empty() { "empty" } else { "invalid because it contains a NUL byte" };
            return Err(ToolError::new(ToolErrorCode::InvalidPath, format!("the path is {why}")));
        }
        // A home directory is outside, as the guards also decide. A directory named `~` is `./~`.
        if path == "~" || path.starts_with("~/") {
            return Err(ToolError::outside_workspace(path));
        }
        let inside = if path.starts_with('/') {
            let parts = without_dot_segments(path.split('/'));
            strip_root_parts(&parts, &self.given_root)
                .or_else(|| strip_root_parts(&parts, &self.real))
        } else {
            let named = self.given_root.to_string_lossy();
            strip_root_parts(
                &without_dot_segments(named.split('/').chain(path.split('/'))),
                &self.given_root,
            )
        };
        let inside = inside.ok_or_else(|| ToolError::outside_workspace(path))?;
        if inside.len() > PATH_BYTES_MAX {
            return Err(ToolError::new(ToolErrorCode::InvalidPath, "the path is too long"));
        }
        Ok(WorkspacePath(inside))
    }

    /// Opens any kind of file. The open never blocks.
    pub(crate) fn open_any(
        &self,
        path: &WorkspacePath,
        flags: OFlags,
    ) -> Result<OwnedFd, ToolError> {
        self.open_beneath(path.as_str(), flags)
            .map_err(|errno| ToolError::from_errno(errno, path.as_str()))
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &WorkspacePath) -> Result<(File, Stat), ToolError> {
        let opened = self.open_any(path, OFlags::RDONLY)?;
        let stat = fstat(&opened).map_err(|errno| ToolError::from_errno(errno, path.as_str()))?;
        require_regular_file(&stat, path)?;
        Ok((File::from(opened), stat))
    }

    /// Opens a directory for listing.
    pub(crate) fn open_dir(&self, path: &WorkspacePath) -> Result<OwnedFd, ToolError> {
        self.open_any(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The real path of an open directory, relative to the root, as the start of a walk. Only the
    /// name is used: the walk opens it again, beneath the root and without links.
    pub(crate) fn real_relative_path(&self, dir: impl AsFd, path: &WorkspacePath) -> PathBuf {
        let name = |dir: BorrowedFd<'_>| {
            std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
        };
        let inside = name(dir.as_fd())
            .zip(name(self.root.as_fd()))
            .and_then(|(dir, root)| dir.strip_prefix(root).ok().map(Path::to_owned));
        inside.unwrap_or_else(|| path.as_path().to_owned())
    }

    /// Opens a directory that a walk found. The path may contain no link.
    pub(crate) fn open_without_links(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OPEN_FLAGS;
        match self.open_by_kernel(path.as_os_str(), flags, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.open_by_components(path, flags),
            opened => opened,
        }
    }

    /// Resolves the path of a file to be written: its open directory, and what exists there now.
    pub(crate) fn resolve_for_write(
        &self,
        path: &WorkspacePath,
        making: &mut BeforeMakeDir<'_>,
    ) -> Result<ResolvedPath, Errno> {
        resolve::resolve_path(
            self,
            OsStr::new(path.as_str()),
            resolve::MissingParents::Create(making),
        )
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        // An `O_PATH` handle never blocks and does not accept these flags.
        let handle = flags.contains(OFlags::PATH);
        let flags = flags | if handle { OFlags::CLOEXEC } else { OPEN_FLAGS };
        match self.open_by_kernel(OsStr::new(path), flags, ResolveFlags::empty()) {
            // Old kernels and strict containers have no `openat2`. It also refuses absolute links,
            // although they may lead into the workspace.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::XDEV) => {
                resolve::open_resolved(self, OsStr::new(path), flags)
            }
            opened => opened,
        }
    }

    fn open_by_kernel(
        &self,
        path: &OsStr,
        flags: OFlags,
        also: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | also;
        let mut tries = 0;
        loop {
            match openat2(&self.root, path, flags, Mode::empty(), how) {
                // Another process renamed something while the kernel resolved the path.
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
                opened => return opened,
            }
        }
    }

    /// Opens one component after another and follows no link.
    fn open_by_components(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW;
        let mut opened = openat(&self.root, ".", flags, Mode::empty())?;
        for part in path.iter().filter(|part| *part != ".") {
            if part == ".." {
                return Err(Errno::XDEV);
            }
            opened = openat(&opened, part, flags, Mode::empty())?;
        }
        Ok(opened)
    }

    /// The part of an absolute path below the root, if it is below it.
    fn strip_root<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.given_root).or_else(|_| path.strip_prefix(&self.real)).ok()
    }
}

/// Fails unless the file is a regular file.
pub(crate) fn require_regular_file(stat: &Stat, path: &WorkspacePath) -> Result<(), ToolError> {
    let path = path.as_str();
    let what = match file_type(stat) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => {
            let error =
                ToolError::new(ToolErrorCode::IsDirectory, format!("`{path}` is a directory"));
            return Err(error.with_path(path).with_advice("`list_dir` lists it."));
        }
        other => file_type_name(other),
    };
    let message = format!("`{path}` is a {what}, not a regular file");
    Err(ToolError::new(ToolErrorCode::NotRegular, message).with_path(path))
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names of file types in answers.
pub(crate) fn file_type_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Unknown => "unknown",
    }
}

fn without_dot_segments<'p>(parts: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let mut names = Vec::new();
    for part in parts {
        match part {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

/// The part of `parts` below `root`, if it is below it.
fn strip_root_parts(parts: &[&str], root: &Path) -> Option<String> {
    let mut rest = parts.iter();
    let mut above = root.as_os_str().as_bytes().split(|byte| *byte == b'/');
    let within = above
        .by_ref()
        .filter(|part| !part.is_empty())
        .all(|part| rest.next().is_some_and(|name| name.as_bytes() == part));
    if !within {
        return None;
    }
    let rest = rest.copied().collect::<Vec<_>>().join("/");
    Some(if rest.is_empty() { ".".to_owned() } else { rest })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// The inode that was opened, or the error.
    fn outcome(opened: Result<OwnedFd, Errno>) -> Result<u64, Errno> {
        opened.map(|opened| fstat(&opened).unwrap().st_ino)
    }

    #[test]
    fn opening_without_openat2_finds_the_same_files() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("work");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir(home.path().join("vault")).unwrap();
        fs::write(home.path().join("vault/secret"), "").unwrap();
        for file in ["x", "a/x", "a/b/x", "a/b/c/x"] {
            fs::write(root.join(file), "").unwrap();
        }
        let links = [
            ("up", ".."),
            ("out", "../vault"),
            ("file", "../vault/secret"),
            ("in", "a/b"),
            ("a/back", "../x"),
            ("a/b/zigzag", "../../a/../a/b/c"),
            ("a/over", "../../vault"),
            ("a/under", "../../work/x"),
            ("loop", "loop"),
            ("gone", "nothing"),
            ("dot", "."),
            ("slashed", "a/b/"),
        ];
        for (name, target) in links {
            symlink(target, root.join(name)).unwrap();
        }
        let jail = Jail::open(&root).unwrap();
        let ends =
            ["", "/x", "/c/x", "/..", "/../x", "/.", "/zigzag/x", "/secret", "/back", "/dot/x"];
        let starts = links.iter().map(|(name, _)| *name).chain([".", "x", "a", "a/b", "nothing"]);
        let mut tried = 0;
        for (start, end) in starts.flat_map(|start| ends.map(|end| (start, end))) {
            let path = format!("{start}{end}");
            let flags = OFlags::RDONLY | OPEN_FLAGS;
            let by_kernel = jail.open_by_kernel(OsStr::new(&path), flags, ResolveFlags::empty());
            let by_steps = resolve::open_resolved(&jail, OsStr::new(&path), flags);
            assert_eq!(outcome(by_kernel), outcome(by_steps), "{path}");
            let flags = flags | OFlags::DIRECTORY;
            let also = ResolveFlags::NO_SYMLINKS;
            if !path.contains("..") {
                let by_kernel = jail.open_by_kernel(OsStr::new(&path), flags, also).is_ok();
                let plainly = jail.open_by_components(Path::new(&path), flags).is_ok();
                assert_eq!(by_kernel, plainly, "{path}");
            }
            tried += 1;
        }
        assert!(tried >= 150);
    }

    #[test]
    fn an_absolute_link_is_followed_inside_only() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("work");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/x"), "").unwrap();
        symlink(root.join("a"), root.join("in")).unwrap();
        symlink(home.path(), root.join("out")).unwrap();
        symlink(root.join("a/../.."), root.join("climbs")).unwrap();
        let jail = Jail::open(&root).unwrap();
        assert!(jail.open_beneath("in/x", OFlags::RDONLY).is_ok());
        for path in ["out", "out/work/a/x", "climbs", "climbs/work"] {
            assert_eq!(jail.open_beneath(path, OFlags::RDONLY).unwrap_err(), Errno::XDEV, "{path}");
        }
    }
}
