//! The directory that nobody gets out of.
//!
//! The root is opened once and stays open. Every path is resolved by the kernel
//! beneath that descriptor, and what comes back is used, never its name again.
//! So a link that is swapped in the meantime leads nowhere else.

mod steps;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

use crate::error::{Code, OpenError, ToolError};
pub(crate) use steps::{Making, Place};

/// An open workspace.
#[derive(Debug)]
pub(crate) struct Jail {
    root: OwnedFd,
    /// Where the root is, as it was named and as it really is.
    named: PathBuf,
    real: PathBuf,
}

/// A path relative to the root, without dot segments; `.` is the root.
///
/// Dots are taken out before links are followed, as the engine does: what a guard
/// judged and what a tool opens must be the same file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inside(String);

/// Opening must never wait, and never hand a descriptor on.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// As long as the kernel takes a path.
const PATH_BYTES_MAX: usize = 4095;

/// How often something that moves under our feet is looked at again.
const TRIES_MAX: usize = 16;

impl Inside {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The directory it is in, and its name there.
    pub(crate) fn split(&self) -> (Inside, &str) {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => (Inside(parent.to_owned()), name),
            None => (Inside(".".to_owned()), &self.0),
        }
    }

    /// As a path to walk from: empty for the root.
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
        // Paths are compared without dots, and `..` behind a link is not what it seems.
        let dotted = named.components().any(|part| part == Component::ParentDir);
        let named = if dotted { real.clone() } else { named };
        Ok(Jail { root: opened, named, real })
    }

    /// Where the workspace really is: for ignore files above it, and for commands to work in.
    /// Nothing that is in it is opened by this.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Where a path leads by its text alone.
    pub(crate) fn locate(&self, path: &str) -> Result<Inside, ToolError> {
        if path.is_empty() || path.contains('\0') {
            let why = if path.is_empty() { "empty" } else { "not without a NUL byte" };
            return Err(ToolError::new(Code::InvalidPath, format!("the path is {why}")));
        }
        // A home is outside, for the guards too. A directory of that name is `./~`.
        if path == "~" || path.starts_with("~/") {
            return Err(ToolError::outside(path));
        }
        let inside = if path.starts_with('/') {
            let parts = collapse(path.split('/'));
            below(&parts, &self.named).or_else(|| below(&parts, &self.real))
        } else {
            let named = self.named.to_string_lossy();
            below(&collapse(named.split('/').chain(path.split('/'))), &self.named)
        };
        let inside = inside.ok_or_else(|| ToolError::outside(path))?;
        if inside.len() > PATH_BYTES_MAX {
            return Err(ToolError::new(Code::InvalidPath, "the path is too long"));
        }
        Ok(Inside(inside))
    }

    /// Opens what is there, whatever it is. It is never waited for.
    pub(crate) fn open_any(&self, path: &Inside, flags: OFlags) -> Result<OwnedFd, ToolError> {
        self.open_beneath(path.as_str(), flags)
            .map_err(|errno| ToolError::system(errno, path.as_str()))
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Inside) -> Result<(File, Stat), ToolError> {
        let opened = self.open_any(path, OFlags::RDONLY)?;
        let look = fstat(&opened).map_err(|errno| ToolError::system(errno, path.as_str()))?;
        regular(&look, path)?;
        Ok((File::from(opened), look))
    }

    /// Opens a directory for listing.
    pub(crate) fn open_dir(&self, path: &Inside) -> Result<OwnedFd, ToolError> {
        self.open_any(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Where an open directory really is, relative to the root, to begin a walk with.
    /// That is a name only: the walk opens it anew, beneath the root and without links.
    pub(crate) fn really(&self, dir: impl AsFd, path: &Inside) -> PathBuf {
        let name = |dir: BorrowedFd<'_>| {
            std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
        };
        let inside = name(dir.as_fd())
            .zip(name(self.root.as_fd()))
            .and_then(|(dir, root)| dir.strip_prefix(root).ok().map(Path::to_owned));
        inside.unwrap_or_else(|| path.as_path().to_owned())
    }

    /// Opens a directory that a walk came by: no link may be on the way.
    pub(crate) fn open_walked(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
        match self.by_kernel(path.as_os_str(), flags, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.open_plainly(path, flags),
            opened => opened,
        }
    }

    /// Where a file is to be put: its directory, open, and what is there now.
    pub(crate) fn place(&self, path: &Inside, making: &mut Making<'_>) -> Result<Place, Errno> {
        steps::resolve(self, OsStr::new(path.as_str()), steps::Parents::Make(making))
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        // A bare handle opens nothing, and takes no flags about waiting.
        let handle = flags.contains(OFlags::PATH);
        let flags = flags | if handle { OFlags::CLOEXEC } else { ALWAYS };
        match self.by_kernel(OsStr::new(path), flags, ResolveFlags::empty()) {
            // Old kernels and strict containers have no `openat2`. It also refuses
            // absolute links, which may well lead into the workspace.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::XDEV) => {
                steps::open(self, OsStr::new(path), flags)
            }
            opened => opened,
        }
    }

    fn by_kernel(&self, path: &OsStr, flags: OFlags, also: ResolveFlags) -> Result<OwnedFd, Errno> {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | also;
        let mut tries = 0;
        loop {
            match openat2(&self.root, path, flags, Mode::empty(), how) {
                // Something was renamed while the kernel looked.
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
                opened => return opened,
            }
        }
    }

    /// One component after the other, none of them a link.
    fn open_plainly(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
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

    /// The rest of an absolute path behind the root, if it is beneath.
    fn reroot<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.named).or_else(|_| path.strip_prefix(&self.real)).ok()
    }
}

/// Refuses whatever is no regular file.
pub(crate) fn regular(look: &Stat, path: &Inside) -> Result<(), ToolError> {
    let path = path.as_str();
    let what = match kind(look) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => {
            let error = ToolError::new(Code::IsDirectory, format!("`{path}` is a directory"));
            return Err(error.at(path).advice("`list_dir` shows what is in it."));
        }
        other => kind_name(other),
    };
    let message = format!("`{path}` is a {what}, not a regular file");
    Err(ToolError::new(Code::NotRegular, message).at(path))
}

pub(crate) fn kind(look: &Stat) -> FileType {
    FileType::from_raw_mode(look.st_mode)
}

/// The kinds of things in a directory, by the names that answers have.
pub(crate) fn kind_name(kind: FileType) -> &'static str {
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

fn collapse<'p>(parts: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let mut kept = Vec::new();
    for part in parts {
        match part {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            name => kept.push(name),
        }
    }
    kept
}

/// What is left of `parts` behind `root`.
fn below(parts: &[&str], root: &Path) -> Option<String> {
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

    /// What came of opening something: which file, or why not.
    fn outcome(opened: Result<OwnedFd, Errno>) -> Result<u64, Errno> {
        opened.map(|opened| fstat(&opened).unwrap().st_ino)
    }

    #[test]
    fn without_the_kernels_help_the_same_paths_lead_to_the_same_files() {
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
            let flags = OFlags::RDONLY | ALWAYS;
            let by_kernel = jail.by_kernel(OsStr::new(&path), flags, ResolveFlags::empty());
            let by_steps = steps::open(&jail, OsStr::new(&path), flags);
            assert_eq!(outcome(by_kernel), outcome(by_steps), "{path}");
            let flags = flags | OFlags::DIRECTORY;
            let also = ResolveFlags::NO_SYMLINKS;
            if !path.contains("..") {
                let by_kernel = jail.by_kernel(OsStr::new(&path), flags, also).is_ok();
                let plainly = jail.open_plainly(Path::new(&path), flags).is_ok();
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
