//! Puts back what was at a path, in two steps: what takes time is done for all paths
//! before the first of them changes, so that it has to reach the disk only once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dev, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchmod, fchown, fdatasync,
    fstat, futimens, mkdirat, openat, renameat, statat, symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;

use super::image::{Image, look, remove_beside, split};
use super::points::Point;
use super::{UndoError, kept};
use crate::jail::Jail;
use crate::write::same;

/// What came of putting something back.
pub(super) enum Restored {
    /// It was there already.
    Already,
    /// It is there again.
    Now,
    /// Somebody else has put something there.
    Not,
}

/// So many files are waited for one by one. To do so with more takes longer than to have
/// everything on the disk that is on its way there, other people's files included.
const ALONE_MAX: usize = 32;

/// Files that the disk may not have yet.
#[derive(Default)]
pub(super) struct Unsynced {
    /// The first of them.
    files: Vec<File>,
    count: usize,
    /// The file systems that they are on.
    systems: BTreeMap<Dev, OwnedFd>,
}

impl Unsynced {
    fn add(&mut self, file: File, parent: OwnedFd) -> Result<(), Errno> {
        self.systems.entry(fstat(&file)?.st_dev).or_insert(parent);
        self.count += 1;
        if self.count <= ALONE_MAX {
            self.files.push(file);
        }
        Ok(())
    }

    /// Has all of it on the disk.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        if self.count <= ALONE_MAX {
            return self.files.iter().try_for_each(fdatasync);
        }
        self.systems.values().try_for_each(syncfs)
    }
}

/// Something that is to be put back.
pub(super) struct Back<'a> {
    jail: &'a Jail,
    point: &'a Point<'a>,
    /// What was there, where it is a file with a copy.
    copy: PathBuf,
    /// The name of a file beside it that holds it first.
    temporary: String,
    /// How the path looked when that file was written; none where it is not written yet.
    ready: Option<Stat>,
}

impl<'a> Back<'a> {
    pub(super) fn new(jail: &'a Jail, directory: &Path, point: &'a Point<'a>) -> Self {
        let copy = directory.join(point.copy.to_string());
        let temporary = format!(".jackline-undo-{}", point.copy);
        Self { jail, point, copy, temporary, ready: None }
    }

    /// Writes the file that is to be put there beside its place, and remembers on which
    /// file system. Where that can't be done yet, it is done when it is put there.
    pub(super) fn prepare(&mut self, unsynced: &mut Unsynced) {
        // Left by a rollback that was cut off.
        remove_beside(self.jail, self.point.path, &self.temporary);
        let Image::File { mode, modified, .. } = self.point.before else { return };
        let (parent, name) = split(self.point.path);
        let Ok(parent) = self.jail.open_walked(Path::new(parent)) else { return };
        let Ok(Some(true)) = look(self.jail, self.point.path).map(|now| self.is_ours(&now)) else {
            return;
        };
        let Ok(now) = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if let Ok(written) = self.write(&parent, Some(&now), *mode, *modified)
            && unsynced.add(written, parent).is_ok()
        {
            self.ready = Some(now);
        }
    }

    /// Whether what is there is what the attempt has made; nothing where it is as before.
    fn is_ours(&self, now: &Image) -> Option<bool> {
        let Point { before, becomes, .. } = self.point;
        (!now.is_like(before)).then(|| becomes.iter().any(|image| now.is_like(image)))
    }

    /// Puts back what was at the path, unless somebody else has put something there.
    pub(super) fn restore(self) -> Result<Restored, UndoError> {
        let path = self.point.path;
        let failed = |errno: Errno| kept("restoring", Path::new(path))(errno.into());
        let (parent, name) = split(path);
        let opened = self.jail.open_walked(Path::new(parent));
        if let (Some(then), Ok(parent)) = (&self.ready, &opened) {
            let now = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            if now.is_ok_and(|now| same(then, &now)) {
                renameat(parent, &self.temporary, parent, name).map_err(failed)?;
                return Ok(Restored::Now);
            }
            remove_beside(self.jail, path, &self.temporary);
        }
        let now = look(self.jail, path)?;
        match self.is_ours(&now) {
            None => return Ok(Restored::Already),
            Some(false) => return Ok(Restored::Not),
            Some(true) => {}
        }
        let parent = opened.map_err(failed)?;
        let before = self.point.before;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let (Image::Directory { .. }, Image::Directory { mode: Some(mode) }) = (&now, before) {
            let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
            fchmod(&opened, Mode::from_raw_mode(*mode)).map_err(failed)?;
            return Ok(Restored::Now);
        }
        let removed = match (&now, before) {
            // What is put over it replaces it at once.
            (Image::Missing, _) | (Image::File { .. } | Image::Link { .. }, Image::File { .. }) => {
                Ok(())
            }
            (Image::Directory { .. }, _) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
            _ => unlinkat(&parent, name, AtFlags::empty()),
        };
        match removed {
            // Somebody has put something into it.
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Restored::Not),
            removed => removed.map_err(failed)?,
        }
        match before {
            Image::Missing => {}
            Image::Link { target } => {
                symlinkat(OsStr::from_bytes(target), &parent, name).map_err(failed)?;
            }
            Image::Directory { mode } => {
                let mode = Mode::from_raw_mode(mode.unwrap_or(0o755));
                mkdirat(&parent, name, mode).map_err(failed)?;
                let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
                // What was made may have less than was asked for.
                fchmod(&opened, mode).map_err(failed)?;
            }
            Image::File { mode, modified, .. } => {
                let now = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
                let put = || {
                    fdatasync(&self.write(&parent, now.as_ref(), *mode, *modified)?)?;
                    io::Result::Ok(renameat(&parent, &self.temporary, &parent, name)?)
                };
                put().map_err(kept("restoring", Path::new(path)))?;
            }
        }
        Ok(Restored::Now)
    }

    /// Writes what was there beside its place, so that nobody sees half of it.
    fn write(
        &self,
        parent: &OwnedFd,
        now: Option<&Stat>,
        mode: Option<u32>,
        modified: Option<(i64, i64)>,
    ) -> io::Result<File> {
        let mut contents: Box<dyn io::Read> = match self.point.text {
            Some(text) => Box::new(text.as_bytes()),
            None => Box::new(File::open(&self.copy)?),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(parent, &self.temporary, flags, Mode::from_raw_mode(0o600))?;
        let mut to = File::from(opened);
        io::copy(&mut contents, &mut to)?;
        if let Some(now) = now {
            // Whoever may not give a file away keeps it, as with any editor.
            let _ = fchown(&to, Some(Uid::from_raw(now.st_uid)), Some(Gid::from_raw(now.st_gid)));
        }
        fchmod(&to, Mode::from_raw_mode(mode.unwrap_or(0o644)))?;
        if let Some((seconds, nanos)) = modified {
            let time = Timespec { tv_sec: seconds, tv_nsec: nanos };
            futimens(&to, &Timestamps { last_access: time, last_modification: time })?;
        }
        Ok(to)
    }
}

/// Makes a directory of the attempt one that can be written to, so that what is in it can go.
pub(super) fn open_up(jail: &Jail, point: &Point<'_>) {
    let is_made = |image: &&Image| matches!(image, Image::Directory { mode: None });
    if *point.before != Image::Missing || !point.becomes.iter().any(is_made) {
        return;
    }
    if let Ok(opened) = jail.open_walked(Path::new(point.path))
        && let Ok(look) = fstat(&opened)
        && look.st_mode & 0o300 != 0o300
    {
        let _ = fchmod(&opened, Mode::from_raw_mode(look.st_mode & 0o7777 | 0o700));
    }
}
