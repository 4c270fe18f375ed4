//! Resolves a path one component at a time and keeps each directory open.
//!
//! This is used on kernels without `openat2`, for links with absolute targets, and for writing,
//! which needs the real parent directory. `..` returns to the descriptor that we came from, so it
//! can't go above the root.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use super::{Jail, TRIES_MAX, file_type};

/// The kernel follows the same number of links.
const LINKS_MAX: usize = 40;

/// How many directories may be open at once.
const DEPTH_MAX: usize = 256;

/// What to do if a directory on the path is missing.
pub(crate) enum MissingParents<'a> {
    Fail,
    /// Create it, after calling this function.
    Create(&'a mut BeforeMakeDir<'a>),
}

/// Called before a directory is created, with its open parent and its name.
pub(crate) type BeforeMakeDir<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr) -> Result<(), Errno> + 'a;

/// The result of resolving a path, with all links followed.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    /// The open parent directory.
    pub(crate) parent: OwnedFd,
    /// The name in the parent; `.` if the path is `parent` itself.
    pub(crate) name: OsString,
    /// The metadata of the file, if it exists. It is never a link.
    pub(crate) stat: Option<Stat>,
}

/// Opens the file that a path leads to.
pub(super) fn open_resolved(jail: &Jail, path: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..TRIES_MAX {
        let place = resolve_path(jail, path, MissingParents::Fail)?;
        if place.stat.is_none() {
            return Err(Errno::NOENT);
        }
        match openat(&place.parent, &place.name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // It became a link after the check. Resolve again.
            Err(Errno::LOOP | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::LOOP)
}

/// Resolves a path to its parent directory and name.
pub(super) fn resolve_path(
    jail: &Jail,
    path: &OsStr,
    mut parents: MissingParents<'_>,
) -> Result<ResolvedPath, Errno> {
    let mut opened_dirs: Vec<OwnedFd> = Vec::new();
    let mut todo = VecDeque::new();
    let (mut links, mut made) = (0, 0);
    push_components(&mut todo, Path::new(path));
    if todo.len() > DEPTH_MAX {
        // Fail before any directory is created.
        return Err(Errno::NAMETOOLONG);
    }
    while let Some(part) = todo.pop_front() {
        if part == "." {
            continue;
        }
        if part == ".." {
            opened_dirs.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match opened_dirs.last() {
            Some(at) => openat(at, &part, flags, Mode::empty()),
            None => openat(&jail.root, &part, flags, Mode::empty()),
        };
        let opened = match opened {
            Err(Errno::NOENT) if todo.is_empty() => {
                return Ok(ResolvedPath {
                    parent: last_dir(opened_dirs, jail)?,
                    name: part,
                    stat: None,
                });
            }
            // If another process removes the directories again and again, give up.
            Err(Errno::NOENT) if made < DEPTH_MAX => {
                let MissingParents::Create(making) = &mut parents else { return Err(Errno::NOENT) };
                let at = opened_dirs.last().unwrap_or(&jail.root).as_fd();
                making(at, &part)?;
                let outcome = mkdirat(at, &part, Mode::from_raw_mode(0o777));
                outcome.or_else(|errno| if errno == Errno::EXIST { Ok(()) } else { Err(errno) })?;
                made += 1;
                todo.push_front(part);
                continue;
            }
            opened => opened?,
        };
        let stat = fstat(&opened)?;
        match file_type(&stat) {
            FileType::Symlink => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let target = OsString::from_vec(readlinkat(&opened, "", Vec::new())?.into_bytes());
                let target = Path::new(&target);
                if target.has_root() {
                    let inside = jail.strip_root(target).ok_or(Errno::XDEV)?;
                    opened_dirs.clear();
                    push_components(&mut todo, inside);
                } else {
                    push_components(&mut todo, target);
                }
            }
            FileType::Directory if opened_dirs.len() < DEPTH_MAX => opened_dirs.push(opened),
            FileType::Directory => return Err(Errno::NAMETOOLONG),
            _ if todo.is_empty() => {
                return Ok(ResolvedPath {
                    parent: last_dir(opened_dirs, jail)?,
                    name: part,
                    stat: Some(stat),
                });
            }
            _ => return Err(Errno::NOTDIR),
        }
    }
    let parent = last_dir(opened_dirs, jail)?;
    let stat = fstat(&parent)?;
    Ok(ResolvedPath { parent, name: ".".into(), stat: Some(stat) })
}

/// Puts the components of a path in front of those that are left. A slash at the end becomes a dot,
/// so that the part before it must be a directory.
fn push_components(todo: &mut VecDeque<OsString>, path: &Path) {
    let path = path.as_os_str().as_bytes();
    if path.ends_with(b"/") {
        todo.push_front(".".into());
    }
    for part in path.split(|byte| *byte == b'/').rev().filter(|part| !part.is_empty()) {
        todo.push_front(OsStr::from_bytes(part).to_owned());
    }
}

fn last_dir(mut opened_dirs: Vec<OwnedFd>, jail: &Jail) -> Result<OwnedFd, Errno> {
    opened_dirs.pop().map_or_else(|| rustix::io::fcntl_dupfd_cloexec(&jail.root, 0), Ok)
}
