//! Applies the changes in a command's overlay layer to the workspace, recorded in the undo log like
//! the changes of any other tool.
//!
//! All changes are collected first. So a command that changed too much is refused before the
//! workspace changes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, fdatasync, futimens,
    lgetxattr, mkdirat, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::getuid;

use crate::error::{ToolError, ToolErrorCode};
use crate::tools::Workspace;
use crate::undo::PathImage;
use crate::write::temporary_name;

/// How many changes of one command are accepted, and how many bytes the written and the replaced
/// files may have together.
const CHANGES_MAX: usize = 20_000;
const CHANGED_BYTES_MAX: u64 = 512 << 20;

/// How deep directories may be nested.
const DEPTH_MAX: usize = 128;

/// One change of a workspace path.
enum LayerChange {
    Remove { flags: AtFlags },
    MakeDirectory,
    SetMode(u32),
    PutFile { mode: u32, modified: (i64, i64) },
    PutLink { target: Vec<u8> },
}

/// The changes to make, in order.
struct LayerChanges<'a> {
    root: &'a Path,
    upper: &'a Path,
    changes: Vec<(String, LayerChange)>,
    bytes: u64,
    left_out: BTreeMap<String, &'static str>,
}

/// Applies the changes of a layer to the workspace. Returns the paths that were left out, with the
/// reasons.
pub(super) fn apply_layer(
    workspace: &Workspace,
    upper: &Path,
) -> Result<BTreeMap<String, &'static str>, ToolError> {
    let root = workspace.jail.real();
    let left_out = BTreeMap::new();
    let mut changes = LayerChanges { root, upper, changes: Vec::new(), bytes: 0, left_out };
    changes.collect_directory("", false, 0)?;
    for (path, change) in &changes.changes {
        make_change(workspace, upper, path, change)?;
    }
    Ok(changes.left_out)
}

fn changes_refused(why: &str) -> ToolError {
    let message =
        format!("the changes of the command were dropped, and the workspace is unchanged: {why}");
    ToolError::new(ToolErrorCode::NotUndoable, message)
        .with_advice("Run a command that changes less, or let it write elsewhere, such as to /tmp.")
}

fn io_tool_error(error: &io::Error, path: &str) -> ToolError {
    ToolError::from_errno(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
}

impl LayerChanges<'_> {
    /// Collects the changes in a directory of the layer. `is_new` means that the workspace has no
    /// such directory.
    fn collect_directory(&mut self, at: &str, is_new: bool, depth: usize) -> Result<(), ToolError> {
        if depth > DEPTH_MAX {
            return Err(changes_refused("it nested directories too deep"));
        }
        for (name, place) in
            sorted_entries(&self.upper.join(at)).map_err(|error| io_tool_error(&error, at))?
        {
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            let metadata =
                place.symlink_metadata().map_err(|error| io_tool_error(&error, &path))?;
            let was = self.root.join(&path).symlink_metadata().ok().filter(|_| !is_new);
            let (kind, mode) = (metadata.file_type(), metadata.mode() & 0o7777);
            if kind.is_char_device() && metadata.rdev() == 0 {
                // A character device with number 0 marks a removed file.
                self.collect_removal(&path, was.as_ref(), depth)?;
            } else if kind.is_dir() {
                let mut opaque = Vec::with_capacity(1);
                let is_opaque = lgetxattr(
                    &place,
                    "user.overlay.opaque",
                    rustix::buffer::spare_capacity(&mut opaque),
                )
                .is_ok()
                    && opaque == b"y";
                let kept_directory = was.as_ref().filter(|was| was.is_dir() && !is_opaque);
                if let Some(was) = kept_directory {
                    let steps = self.changes.len();
                    self.collect_directory(&path, false, depth + 1)?;
                    if self.changes.len() > steps {
                        require_writable(&path, was)?;
                    }
                    if was.mode() & 0o7777 != mode {
                        self.add(path, LayerChange::SetMode(mode), 0)?;
                    }
                } else if self.collect_removal(&path, was.as_ref(), depth)? {
                    self.add(path.clone(), LayerChange::MakeDirectory, 0)?;
                    self.collect_directory(&path, true, depth + 1)?;
                    self.add(path, LayerChange::SetMode(mode), 0)?;
                } else if was.is_some_and(|was| was.is_dir()) {
                    self.collect_directory(&path, false, depth + 1)?;
                }
            } else if kind.is_file() || kind.is_symlink() {
                self.collect_file(path, &place, &metadata, was.as_ref(), depth)?;
            } else {
                self.left_out.insert(path, "is not a file, directory or link");
            }
        }
        Ok(())
    }

    fn collect_file(
        &mut self,
        path: String,
        place: &Path,
        metadata: &Metadata,
        was: Option<&Metadata>,
        depth: usize,
    ) -> Result<(), ToolError> {
        let signature = |metadata: &Metadata| {
            (metadata.mode(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
        };
        let is_file = metadata.is_file();
        if was.is_some_and(|was| is_file && signature(was) == signature(metadata)) {
            return Ok(());
        }
        let is_there = was.is_some_and(|was| was.is_file() || was.is_symlink());
        if !is_there && !self.collect_removal(&path, was, depth)? {
            return Ok(());
        }
        let change = if is_file {
            LayerChange::PutFile {
                mode: metadata.mode() & 0o7777,
                modified: (metadata.mtime(), metadata.mtime_nsec()),
            }
        } else {
            let target = fs::read_link(place).map_err(|error| io_tool_error(&error, &path))?;
            LayerChange::PutLink { target: target.into_os_string().into_vec() }
        };
        let gone = was.filter(|was| was.is_file()).map_or(0, Metadata::len);
        self.add(path, change, metadata.len().saturating_add(gone))
    }

    /// Removes what the workspace has at a path, directories last. Returns whether nothing is left.
    fn collect_removal(
        &mut self,
        path: &str,
        was: Option<&Metadata>,
        depth: usize,
    ) -> Result<bool, ToolError> {
        let Some(was) = was else { return Ok(true) };
        if was.is_file() || was.is_symlink() {
            let change = LayerChange::Remove { flags: AtFlags::empty() };
            self.add(path.to_owned(), change, was.len())?;
            return Ok(true);
        }
        if !was.is_dir() {
            self.left_out
                .insert(path.to_owned(), "could not be restored later, so it was not removed");
            return Ok(false);
        }
        if depth > DEPTH_MAX {
            return Err(changes_refused("it removed directories that are nested too deep"));
        }
        require_writable(path, was)?;
        let mut is_empty = true;
        for (name, place) in
            sorted_entries(&self.root.join(path)).map_err(|error| io_tool_error(&error, path))?
        {
            let metadata = place.symlink_metadata().map_err(|error| io_tool_error(&error, path))?;
            is_empty &=
                self.collect_removal(&format!("{path}/{name}"), Some(&metadata), depth + 1)?;
        }
        if is_empty {
            self.add(path.to_owned(), LayerChange::Remove { flags: AtFlags::REMOVEDIR }, 0)?;
        }
        Ok(is_empty)
    }

    fn add(&mut self, path: String, change: LayerChange, bytes: u64) -> Result<(), ToolError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.changes.push((path, change));
        if self.changes.len() > CHANGES_MAX {
            return Err(changes_refused(&format!("it changed more than {CHANGES_MAX} files")));
        }
        if self.bytes > CHANGED_BYTES_MAX {
            return Err(changes_refused(&format!(
                "its changes have more than {CHANGED_BYTES_MAX} bytes"
            )));
        }
        Ok(())
    }
}

/// Refuses changes in a directory that its owner may not write to. The command had changed its mode
/// temporarily.
fn require_writable(path: &str, was: &Metadata) -> Result<(), ToolError> {
    if was.mode() & 0o300 == 0o300 || getuid().is_root() {
        return Ok(());
    }
    Err(changes_refused(&format!("`{path}` is not writable")))
}

/// The entries of a directory, sorted by name.
fn sorted_entries(directory: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string();
        // The undo log supports only UTF-8 names.
        names.insert(name.map_err(|_| Errno::ILSEQ)?, entry.path());
    }
    Ok(names)
}

/// Makes one change, after recording it in the undo log.
fn make_change(
    workspace: &Workspace,
    upper: &Path,
    path: &str,
    change: &LayerChange,
) -> Result<(), ToolError> {
    let failed = |errno| ToolError::from_errno(errno, path);
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parent = workspace.jail.open_without_links(Path::new(parent)).map_err(failed)?;
    let note = |becomes: &PathImage, temporary| workspace.record_change(path, becomes, temporary);
    match change {
        LayerChange::Remove { flags } => {
            note(&PathImage::Missing, None)?;
            unlinkat(&parent, name, *flags).map_err(failed)
        }
        LayerChange::MakeDirectory => {
            note(&PathImage::Directory { mode: None }, None)?;
            mkdirat(&parent, name, Mode::RWXU).map_err(failed)
        }
        LayerChange::SetMode(mode) => {
            note(&PathImage::Directory { mode: Some(*mode) }, None)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
            fchmod(&opened, Mode::from_raw_mode(*mode)).map_err(failed)
        }
        LayerChange::PutLink { target } => {
            let temporary = temporary_name();
            note(&PathImage::Link { target: target.clone() }, Some(&temporary))?;
            symlinkat(OsStr::from_bytes(target), &parent, &*temporary).map_err(failed)?;
            renameat(&parent, &*temporary, &parent, name).map_err(failed)
        }
        LayerChange::PutFile { mode, modified } => {
            let io = |error: io::Error| io_tool_error(&error, path);
            let place = upper.join(path);
            let digest = file_digest(&place).map_err(io)?;
            let temporary = temporary_name();
            let becomes = PathImage::File { digest, mode: Some(*mode), modified: None };
            note(&becomes, Some(&temporary))?;
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let private = Mode::RUSR | Mode::WUSR;
            let mut to = File::from(openat(&parent, &*temporary, flags, private).map_err(failed)?);
            let mut put = || {
                io::copy(&mut File::open(&place)?, &mut to)?;
                if let Ok(was) = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                    // Without the right to change the owner, the file gets ours, as with any
                    // editor.
                    let (user, group) = (Uid::from_raw(was.st_uid), Gid::from_raw(was.st_gid));
                    let _ = fchown(&to, Some(user), Some(group));
                }
                fchmod(&to, Mode::from_raw_mode(*mode))?;
                let time = Timespec { tv_sec: modified.0, tv_nsec: modified.1 };
                futimens(&to, &Timestamps { last_access: time, last_modification: time })?;
                fdatasync(&to)?;
                io::Result::Ok(renameat(&parent, &*temporary, &parent, name)?)
            };
            put().map_err(|error| {
                let _ = unlinkat(&parent, &*temporary, AtFlags::empty());
                io(error)
            })
        }
    }
}

fn file_digest(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = Digest::hasher();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
