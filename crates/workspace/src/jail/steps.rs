//! Resolving a path one component at a time, each of them held open.
//!
//! For kernels without `openat2`, for links with absolute targets, and for
//! writing, which needs the directory that a file is really in. `..` goes back to the
//! descriptor that we came from, so it can't climb over the root.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use super::{Jail, TRIES_MAX, kind};

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// How many directories are held open at once.
const DEPTH_MAX: usize = 256;

/// What to do where a directory on the way is missing.
pub(crate) enum Parents<'a> {
    Need,
    /// It is made, after this was told where.
    Make(&'a mut Making<'a>),
}

/// Is told of the directory in which one is about to be made, and its name.
pub(crate) type Making<'a> = dyn FnMut(BorrowedFd<'_>, &OsStr) -> Result<(), Errno> + 'a;

/// Where a path ends, links followed.
#[derive(Debug)]
pub(crate) struct Place {
    /// The directory it is in.
    pub(crate) parent: OwnedFd,
    /// Its name there; `.` for a directory that is `parent` itself.
    pub(crate) name: OsString,
    /// How it looks, if it is there. Never a link.
    pub(crate) look: Option<Stat>,
}

/// Opens what a path leads to.
pub(super) fn open(jail: &Jail, path: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..TRIES_MAX {
        let place = resolve(jail, path, Parents::Need)?;
        if place.look.is_none() {
            return Err(Errno::NOENT);
        }
        match openat(&place.parent, &place.name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // It became a link after we looked. It is resolved like any other.
            Err(Errno::LOOP | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::LOOP)
}

/// Goes to where a path ends.
pub(super) fn resolve(jail: &Jail, path: &OsStr, mut parents: Parents<'_>) -> Result<Place, Errno> {
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut todo = VecDeque::new();
    let (mut links, mut made) = (0, 0);
    ahead(&mut todo, Path::new(path));
    if todo.len() > DEPTH_MAX {
        // Before anything is made on the way.
        return Err(Errno::NAMETOOLONG);
    }
    while let Some(part) = todo.pop_front() {
        if part == "." {
            continue;
        }
        if part == ".." {
            held.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match held.last() {
            Some(at) => openat(at, &part, flags, Mode::empty()),
            None => openat(&jail.root, &part, flags, Mode::empty()),
        };
        let found = match found {
            Err(Errno::NOENT) if todo.is_empty() => {
                return Ok(Place { parent: top(held, jail)?, name: part, look: None });
            }
            // Removed again and again by somebody else, it is given up.
            Err(Errno::NOENT) if made < DEPTH_MAX => {
                let Parents::Make(making) = &mut parents else { return Err(Errno::NOENT) };
                let at = held.last().unwrap_or(&jail.root).as_fd();
                making(at, &part)?;
                let outcome = mkdirat(at, &part, Mode::from_raw_mode(0o777));
                outcome.or_else(|errno| if errno == Errno::EXIST { Ok(()) } else { Err(errno) })?;
                made += 1;
                todo.push_front(part);
                continue;
            }
            found => found?,
        };
        let look = fstat(&found)?;
        match kind(&look) {
            FileType::Symlink => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let target = OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes());
                let target = Path::new(&target);
                if target.has_root() {
                    let inside = jail.reroot(target).ok_or(Errno::XDEV)?;
                    held.clear();
                    ahead(&mut todo, inside);
                } else {
                    ahead(&mut todo, target);
                }
            }
            FileType::Directory if held.len() < DEPTH_MAX => held.push(found),
            FileType::Directory => return Err(Errno::NAMETOOLONG),
            _ if todo.is_empty() => {
                return Ok(Place { parent: top(held, jail)?, name: part, look: Some(look) });
            }
            _ => return Err(Errno::NOTDIR),
        }
    }
    let parent = top(held, jail)?;
    let look = fstat(&parent)?;
    Ok(Place { parent, name: ".".into(), look: Some(look) })
}

/// Puts the components of a path before what is still to go. A slash at the end is
/// a dot: what is before it must be a directory.
fn ahead(todo: &mut VecDeque<OsString>, path: &Path) {
    let path = path.as_os_str().as_bytes();
    if path.ends_with(b"/") {
        todo.push_front(".".into());
    }
    for part in path.split(|byte| *byte == b'/').rev().filter(|part| !part.is_empty()) {
        todo.push_front(OsStr::from_bytes(part).to_owned());
    }
}

fn top(mut held: Vec<OwnedFd>, jail: &Jail) -> Result<OwnedFd, Errno> {
    held.pop().map_or_else(|| rustix::io::fcntl_dupfd_cloexec(&jail.root, 0), Ok)
}
