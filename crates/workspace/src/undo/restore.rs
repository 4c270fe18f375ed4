//! Restores the previous state of paths in two steps. The slow part is done for all paths before
//! the first one changes, so that the disk is synced only once.

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

use super::path_image::{PathImage, read_image, remove_beside, split_parent};
use super::points::UndoPoint;
use super::{UndoError, storage_error};
use crate::jail::Jail;
use crate::write::is_same_file;

/// The result of restoring one path.
pub(super) enum RestoreOutcome {
    /// The previous state was already there.
    AlreadyRestored,
    /// The previous state was restored.
    Restored,
    /// Another program changed the path, so it was not restored.
    ChangedMeanwhile,
}

/// Up to this number, files are synced one by one. For more files it is faster to sync the whole
/// file system, which includes files of other programs.
const SYNC_SINGLY_MAX: usize = 32;

/// Files that may not be on disk yet.
#[derive(Default)]
pub(super) struct UnsyncedFiles {
    /// The first of these files.
    files: Vec<File>,
    count: usize,
    /// The file systems of the files.
    systems: BTreeMap<Dev, OwnedFd>,
}

impl UnsyncedFiles {
    fn add(&mut self, file: File, parent: OwnedFd) -> Result<(), Errno> {
        self.systems.entry(fstat(&file)?.st_dev).or_insert(parent);
        self.count += 1;
        if self.count <= SYNC_SINGLY_MAX {
            self.files.push(file);
        }
        Ok(())
    }

    /// Waits until all files are on disk.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        if self.count <= SYNC_SINGLY_MAX {
            return self.files.iter().try_for_each(fdatasync);
        }
        self.systems.values().try_for_each(syncfs)
    }
}

/// The restoring of one path.
pub(super) struct PathRestore<'a> {
    jail: &'a Jail,
    point: &'a UndoPoint<'a>,
    /// The copy of the previous file.
    copy: PathBuf,
    /// The name of the temporary file next to the path.
    temporary: String,
    /// The metadata of the path when the temporary file was written; `None` if it was not written
    /// yet.
    prepared_for: Option<Stat>,
}

impl<'a> PathRestore<'a> {
    pub(super) fn new(jail: &'a Jail, directory: &Path, point: &'a UndoPoint<'a>) -> Self {
        let copy = directory.join(point.copy.to_string());
        let temporary = format!(".jackline-undo-{}", point.copy);
        Self { jail, point, copy, temporary, prepared_for: None }
    }

    /// Writes the previous contents to the temporary file and remembers its file system. If this is
    /// not possible yet, `restore` does it.
    pub(super) fn prepare(&mut self, unsynced: &mut UnsyncedFiles) {
        // Remove the file of an interrupted rollback.
        remove_beside(self.jail, self.point.path, &self.temporary);
        let PathImage::File { mode, modified, .. } = self.point.before else { return };
        let (parent, name) = split_parent(self.point.path);
        let Ok(parent) = self.jail.open_without_links(Path::new(parent)) else { return };
        let Ok(Some(true)) =
            read_image(self.jail, self.point.path).map(|now| self.is_from_attempt(&now))
        else {
            return;
        };
        let Ok(now) = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if let Ok(written) = self.write_temporary(&parent, Some(&now), *mode, *modified)
            && unsynced.add(written, parent).is_ok()
        {
            self.prepared_for = Some(now);
        }
    }

    /// Whether the current state is one that the attempt created. Returns `None` if it is the
    /// previous state.
    fn is_from_attempt(&self, now: &PathImage) -> Option<bool> {
        let UndoPoint { before, becomes, .. } = self.point;
        (!now.is_same_as(before)).then(|| becomes.iter().any(|image| now.is_same_as(image)))
    }

    /// Restores the previous state of the path, unless another program changed the path.
    pub(super) fn restore(self) -> Result<RestoreOutcome, UndoError> {
        let path = self.point.path;
        let failed = |errno: Errno| storage_error("restoring", Path::new(path))(errno.into());
        let (parent, name) = split_parent(path);
        let opened = self.jail.open_without_links(Path::new(parent));
        if let (Some(then), Ok(parent)) = (&self.prepared_for, &opened) {
            let now = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
            if now.is_ok_and(|now| is_same_file(then, &now)) {
                renameat(parent, &self.temporary, parent, name).map_err(failed)?;
                return Ok(RestoreOutcome::Restored);
            }
            remove_beside(self.jail, path, &self.temporary);
        }
        let now = read_image(self.jail, path)?;
        match self.is_from_attempt(&now) {
            None => return Ok(RestoreOutcome::AlreadyRestored),
            Some(false) => return Ok(RestoreOutcome::ChangedMeanwhile),
            Some(true) => {}
        }
        let parent = opened.map_err(failed)?;
        let before = self.point.before;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let (PathImage::Directory { .. }, PathImage::Directory { mode: Some(mode) }) =
            (&now, before)
        {
            let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
            fchmod(&opened, Mode::from_raw_mode(*mode)).map_err(failed)?;
            return Ok(RestoreOutcome::Restored);
        }
        let removed = match (&now, before) {
            // The rename replaces it in one step.
            (PathImage::Missing, _)
            | (PathImage::File { .. } | PathImage::Link { .. }, PathImage::File { .. }) => Ok(()),
            (PathImage::Directory { .. }, _) => unlinkat(&parent, name, AtFlags::REMOVEDIR),
            _ => unlinkat(&parent, name, AtFlags::empty()),
        };
        match removed {
            // Another program put something into the directory.
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(RestoreOutcome::ChangedMeanwhile),
            removed => removed.map_err(failed)?,
        }
        match before {
            PathImage::Missing => {}
            PathImage::Link { target } => {
                symlinkat(OsStr::from_bytes(target), &parent, name).map_err(failed)?;
            }
            PathImage::Directory { mode } => {
                let mode = Mode::from_raw_mode(mode.unwrap_or(0o755));
                mkdirat(&parent, name, mode).map_err(failed)?;
                let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
                // The umask may have removed permissions.
                fchmod(&opened, mode).map_err(failed)?;
            }
            PathImage::File { mode, modified, .. } => {
                let now = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
                let put = || {
                    fdatasync(&self.write_temporary(&parent, now.as_ref(), *mode, *modified)?)?;
                    io::Result::Ok(renameat(&parent, &self.temporary, &parent, name)?)
                };
                put().map_err(storage_error("restoring", Path::new(path)))?;
            }
        }
        Ok(RestoreOutcome::Restored)
    }

    /// Writes the previous contents to the temporary file, so that no program sees a partial file.
    fn write_temporary(
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
            // Without the right to change the owner, the file gets ours, as with any editor.
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

/// Makes a directory that the attempt created writable, so that its entries can be removed.
pub(super) fn make_writable(jail: &Jail, point: &UndoPoint<'_>) {
    let is_made = |image: &&PathImage| matches!(image, PathImage::Directory { mode: None });
    if *point.before != PathImage::Missing || !point.becomes.iter().any(is_made) {
        return;
    }
    if let Ok(opened) = jail.open_without_links(Path::new(point.path))
        && let Ok(stat) = fstat(&opened)
        && stat.st_mode & 0o300 != 0o300
    {
        let _ = fchmod(&opened, Mode::from_raw_mode(stat.st_mode & 0o7777 | 0o700));
    }
}
