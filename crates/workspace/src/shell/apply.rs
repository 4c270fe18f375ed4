//! What a command has left in its layer is done to the workspace, as any tool of an attempt
//! would do it: what was there is written down before.
//!
//! All of it is worked out first. So what is too much is refused before anything changes.

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

use crate::error::{Code, ToolError};
use crate::tools::Workspace;
use crate::undo::Image;
use crate::write::temporary_name;

/// How many changes of one command are taken, and how many bytes they may hold: those that
/// come and those that go.
const CHANGES_MAX: usize = 20_000;
const BYTES_MAX: u64 = 512 << 20;

/// How deep directories may lie in each other.
const DEPTH_MAX: usize = 128;

/// One change of the workspace.
enum Change {
    Remove { flags: AtFlags },
    Make,
    SetMode(u32),
    Put { mode: u32, modified: (i64, i64) },
    Link { target: Vec<u8> },
}

/// What is to be done, in order.
struct Changes<'a> {
    root: &'a Path,
    upper: &'a Path,
    steps: Vec<(String, Change)>,
    bytes: u64,
    left_out: BTreeMap<String, &'static str>,
}

/// Does to the workspace what is in a layer. Answers with what was left out, and why.
pub(super) fn apply(
    workspace: &Workspace,
    upper: &Path,
) -> Result<BTreeMap<String, &'static str>, ToolError> {
    let root = workspace.jail.real();
    let left_out = BTreeMap::new();
    let mut changes = Changes { root, upper, steps: Vec::new(), bytes: 0, left_out };
    changes.directory("", false, 0)?;
    for (path, change) in &changes.steps {
        carry_out(workspace, upper, path, change)?;
    }
    Ok(changes.left_out)
}

fn refused(why: &str) -> ToolError {
    let message =
        format!("what the command did is not kept, and the workspace is as it was: {why}");
    ToolError::new(Code::NotUndoable, message)
        .advice("Have the command change less, or write elsewhere, such as to /tmp.")
}

fn system(error: &io::Error, path: &str) -> ToolError {
    ToolError::system(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
}

impl Changes<'_> {
    /// Looks through a directory of the layer. In one that is new, nothing was before.
    fn directory(&mut self, at: &str, is_new: bool, depth: usize) -> Result<(), ToolError> {
        if depth > DEPTH_MAX {
            return Err(refused("its directories lie too deep in each other"));
        }
        for (name, place) in names(&self.upper.join(at)).map_err(|error| system(&error, at))? {
            let path = if at.is_empty() { name } else { format!("{at}/{name}") };
            let look = place.symlink_metadata().map_err(|error| system(&error, &path))?;
            let was = self.root.join(&path).symlink_metadata().ok().filter(|_| !is_new);
            let (kind, mode) = (look.file_type(), look.mode() & 0o7777);
            if kind.is_char_device() && look.rdev() == 0 {
                // So the layer says that something is gone.
                self.remove(&path, was.as_ref(), depth)?;
            } else if kind.is_dir() {
                let mut opaque = Vec::with_capacity(1);
                let is_opaque = lgetxattr(
                    &place,
                    "user.overlay.opaque",
                    rustix::buffer::spare_capacity(&mut opaque),
                )
                .is_ok()
                    && opaque == b"y";
                let stays = was.as_ref().filter(|was| was.is_dir() && !is_opaque);
                if let Some(was) = stays {
                    let steps = self.steps.len();
                    self.directory(&path, false, depth + 1)?;
                    if self.steps.len() > steps {
                        open(&path, was)?;
                    }
                    if was.mode() & 0o7777 != mode {
                        self.add(path, Change::SetMode(mode), 0)?;
                    }
                } else if self.remove(&path, was.as_ref(), depth)? {
                    self.add(path.clone(), Change::Make, 0)?;
                    self.directory(&path, true, depth + 1)?;
                    self.add(path, Change::SetMode(mode), 0)?;
                } else if was.is_some_and(|was| was.is_dir()) {
                    self.directory(&path, false, depth + 1)?;
                }
            } else if kind.is_file() || kind.is_symlink() {
                self.put(path, &place, &look, was.as_ref(), depth)?;
            } else {
                self.left_out.insert(path, "is neither file, directory nor link");
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        path: String,
        place: &Path,
        look: &Metadata,
        was: Option<&Metadata>,
        depth: usize,
    ) -> Result<(), ToolError> {
        let seen = |look: &Metadata| (look.mode(), look.len(), look.mtime(), look.mtime_nsec());
        let is_file = look.is_file();
        if was.is_some_and(|was| is_file && seen(was) == seen(look)) {
            return Ok(());
        }
        let is_there = was.is_some_and(|was| was.is_file() || was.is_symlink());
        if !is_there && !self.remove(&path, was, depth)? {
            return Ok(());
        }
        let change = if is_file {
            Change::Put { mode: look.mode() & 0o7777, modified: (look.mtime(), look.mtime_nsec()) }
        } else {
            let target = fs::read_link(place).map_err(|error| system(&error, &path))?;
            Change::Link { target: target.into_os_string().into_vec() }
        };
        let gone = was.filter(|was| was.is_file()).map_or(0, Metadata::len);
        self.add(path, change, look.len().saturating_add(gone))
    }

    /// Takes away what was there, directories last; whether nothing is left.
    fn remove(
        &mut self,
        path: &str,
        was: Option<&Metadata>,
        depth: usize,
    ) -> Result<bool, ToolError> {
        let Some(was) = was else { return Ok(true) };
        if was.is_file() || was.is_symlink() {
            let change = Change::Remove { flags: AtFlags::empty() };
            self.add(path.to_owned(), change, was.len())?;
            return Ok(true);
        }
        if !was.is_dir() {
            self.left_out.insert(path.to_owned(), "could not be put back, so it stays");
            return Ok(false);
        }
        if depth > DEPTH_MAX {
            return Err(refused("the directories that it removed lie too deep in each other"));
        }
        open(path, was)?;
        let mut is_empty = true;
        for (name, place) in names(&self.root.join(path)).map_err(|error| system(&error, path))? {
            let look = place.symlink_metadata().map_err(|error| system(&error, path))?;
            is_empty &= self.remove(&format!("{path}/{name}"), Some(&look), depth + 1)?;
        }
        if is_empty {
            self.add(path.to_owned(), Change::Remove { flags: AtFlags::REMOVEDIR }, 0)?;
        }
        Ok(is_empty)
    }

    fn add(&mut self, path: String, change: Change, bytes: u64) -> Result<(), ToolError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.steps.push((path, change));
        if self.steps.len() > CHANGES_MAX {
            return Err(refused(&format!("it changed more than {CHANGES_MAX} files")));
        }
        if self.bytes > BYTES_MAX {
            return Err(refused(&format!("its changes hold more than {BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

/// Refuses to change what is in a directory that its owner may not write to: the command had
/// that changed for a while.
fn open(path: &str, was: &Metadata) -> Result<(), ToolError> {
    if was.mode() & 0o300 == 0o300 || getuid().is_root() {
        return Ok(());
    }
    Err(refused(&format!("`{path}` may not be written to")))
}

/// What is in a directory, by name.
fn names(directory: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string();
        // The log has no other names.
        names.insert(name.map_err(|_| Errno::ILSEQ)?, entry.path());
    }
    Ok(names)
}

/// Makes one change, after it is written down.
fn carry_out(
    workspace: &Workspace,
    upper: &Path,
    path: &str,
    change: &Change,
) -> Result<(), ToolError> {
    let failed = |errno| ToolError::system(errno, path);
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    let parent = workspace.jail.open_walked(Path::new(parent)).map_err(failed)?;
    let note = |becomes: &Image, temporary| workspace.note(path, becomes, temporary);
    match change {
        Change::Remove { flags } => {
            note(&Image::Missing, None)?;
            unlinkat(&parent, name, *flags).map_err(failed)
        }
        Change::Make => {
            note(&Image::Directory { mode: None }, None)?;
            mkdirat(&parent, name, Mode::RWXU).map_err(failed)
        }
        Change::SetMode(mode) => {
            note(&Image::Directory { mode: Some(*mode) }, None)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(&parent, name, flags, Mode::empty()).map_err(failed)?;
            fchmod(&opened, Mode::from_raw_mode(*mode)).map_err(failed)
        }
        Change::Link { target } => {
            let temporary = temporary_name();
            note(&Image::Link { target: target.clone() }, Some(&temporary))?;
            symlinkat(OsStr::from_bytes(target), &parent, &*temporary).map_err(failed)?;
            renameat(&parent, &*temporary, &parent, name).map_err(failed)
        }
        Change::Put { mode, modified } => {
            let io = |error: io::Error| system(&error, path);
            let place = upper.join(path);
            let digest = digest(&place).map_err(io)?;
            let temporary = temporary_name();
            let becomes = Image::File { digest, mode: Some(*mode), modified: None };
            note(&becomes, Some(&temporary))?;
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let private = Mode::RUSR | Mode::WUSR;
            let mut to = File::from(openat(&parent, &*temporary, flags, private).map_err(failed)?);
            let mut put = || {
                io::copy(&mut File::open(&place)?, &mut to)?;
                if let Ok(was) = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                    // Whoever may not give a file away keeps it, as with any editor.
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

fn digest(path: &Path) -> io::Result<Digest> {
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
