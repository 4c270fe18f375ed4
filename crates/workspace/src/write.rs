//! `write_file`, and how any file is replaced: completely or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fdatasync, fstat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::{Code, ToolError};
use crate::jail::{Inside, Place, regular};
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::WRITE_FILE,
        description: "Writes a file, and makes the directories it is in. What was there is \
                      replaced completely; `edit_file` changes a part.",
        input_schema: schema(
            &["path", "content"],
            &[
                ("path", "string", "The file, relative to the workspace."),
                ("content", "string", "Everything that the file is to hold."),
            ],
        ),
        read_only: false,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let path = args.text("path")?;
    let content = args.text("content")?;
    args.finish()?;
    let inside = workspace.jail.locate(path)?;
    small_enough(workspace, &inside, content.len())?;
    let place = workspace.place(&inside)?;
    let created = place.look.is_none();
    replace(workspace, &place, &inside, content.as_bytes())?;
    let path = inside.as_str();
    let did = if created { "created" } else { "replaced" };
    Ok(ToolOutput {
        text: format!("{did} `{path}`, {} bytes\n", content.len()),
        structured: json!({
            "path": path,
            "created": created,
            "bytes": content.len(),
            "lines": content.lines().count(),
        }),
    })
}

/// Refuses what is larger than a tool writes.
pub(crate) fn small_enough(
    workspace: &Workspace,
    path: &Inside,
    bytes: usize,
) -> Result<(), ToolError> {
    let max = workspace.limits.write_bytes_max;
    if bytes <= max {
        return Ok(());
    }
    let path = path.as_str();
    let message = format!("`{path}` would have {bytes} bytes; {max} is the most");
    Err(ToolError::new(Code::TooLarge, message).at(path))
}

/// Puts new contents in the place of what is there. They are written beside it and
/// renamed, so nobody sees half a file, and neither a link nor another name of
/// the old file is written through.
pub(crate) fn replace(
    workspace: &Workspace,
    place: &Place,
    path: &Inside,
    content: &[u8],
) -> Result<(), ToolError> {
    let failed = |errno| ToolError::system(errno, path.as_str());
    if let Some(look) = &place.look {
        regular(look, path)?;
        // A file that may not be written is not replaced either.
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&place.parent, &place.name, flags, Mode::empty()).map_err(failed)?;
        regular(&fstat(&opened).map_err(failed)?, path)?;
    }
    let temporary = Temporary::new(place, |name| workspace.touch(place, path, content, name))?;
    temporary.fill(place.look.as_ref(), content).map_err(failed)?;
    if let Some(before) = &place.look {
        let now = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW);
        if !now.is_ok_and(|now| same(before, &now)) {
            return Err(changed(path));
        }
    }
    match temporary.put(place) {
        Err(Errno::EXIST) => Err(changed(path)),
        outcome => outcome.map_err(failed),
    }
}

/// Whether this is the same file, untouched.
pub(crate) fn same(one: &Stat, other: &Stat) -> bool {
    let look = |look: &Stat| {
        let times = (look.st_mtime, look.st_mtime_nsec, look.st_ctime, look.st_ctime_nsec);
        (look.st_dev, look.st_ino, look.st_size, times)
    };
    look(one) == look(other)
}

pub(crate) fn changed(path: &Inside) -> ToolError {
    let path = path.as_str();
    let message = format!("`{path}` was changed by somebody else in the meantime");
    ToolError::new(Code::ChangedMeanwhile, message).at(path).advice("Read it again first.")
}

/// A file beside the one that is to be written; removed unless it is put in its place.
struct Temporary<'p> {
    place: &'p Place,
    name: OsString,
    opened: OwnedFd,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A name that no other file of ours has.
pub(crate) fn temporary_name() -> String {
    format!(".jackline-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

impl<'p> Temporary<'p> {
    /// Makes it, after `touch` was told its name.
    fn new(
        place: &'p Place,
        touch: impl Fn(&str) -> Result<(), ToolError>,
    ) -> Result<Temporary<'p>, ToolError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What replaces a file is nobody's to read until it has that file's mode.
        let mode = Mode::from_raw_mode(if place.look.is_some() { 0o600 } else { 0o666 });
        loop {
            let name = temporary_name();
            touch(&name)?;
            let name = OsString::from(name);
            match openat(&place.parent, &name, flags, mode) {
                // Left behind by a process of the same number.
                Err(Errno::EXIST) => {}
                Ok(opened) => return Ok(Temporary { place, name, opened }),
                Err(errno) => return Err(ToolError::system(errno, &place.name.to_string_lossy())),
            }
        }
    }

    fn fill(&self, before: Option<&Stat>, content: &[u8]) -> Result<(), Errno> {
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut file = File::from(self.opened.try_clone().map_err(io)?);
        file.write_all(content).map_err(io)?;
        if let Some(look) = before {
            let (owner, group) = (Uid::from_raw(look.st_uid), Gid::from_raw(look.st_gid));
            // Whoever may not give a file away keeps it, as with any editor.
            let _ = fchown(&self.opened, Some(owner), Some(group));
            fchmod(&self.opened, Mode::from_raw_mode(look.st_mode & 0o777))?;
        }
        fdatasync(&self.opened)
    }

    fn put(self, place: &Place) -> Result<(), Errno> {
        let (dir, name) = (&place.parent, &place.name);
        if place.look.is_some() {
            return renameat(dir, &self.name, dir, name);
        }
        match renameat_with(dir, &self.name, dir, name, RenameFlags::NOREPLACE) {
            // Not every file system can; then the last one wins.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(dir, &self.name, dir, name),
            outcome => outcome,
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After it was renamed there is nothing of this name.
        let _ = unlinkat(&self.place.parent, &self.name, AtFlags::empty());
    }
}
