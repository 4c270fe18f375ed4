//! `write_file`, and the atomic replacement of files.

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

use crate::error::{ToolError, ToolErrorCode};
use crate::jail::{ResolvedPath, WorkspacePath, require_regular_file};
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::WRITE_FILE,
        description: "Writes a file and creates missing directories. An existing file is \
                      replaced completely; `edit_file` changes a part.",
        input_schema: schema(
            &["path", "content"],
            &[
                ("path", "string", "The file, relative to the workspace."),
                ("content", "string", "The complete new contents of the file."),
            ],
        ),
        read_only: false,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let path = args.text("path")?;
    let content = args.text("content")?;
    args.reject_unknown()?;
    let inside = workspace.jail.to_workspace_path(path)?;
    check_size(workspace, &inside, content.len())?;
    let place = workspace.resolve_for_write(&inside)?;
    let created = place.stat.is_none();
    replace_file(workspace, &place, &inside, content.as_bytes())?;
    let path = inside.as_str();
    let did = if created { "created" } else { "replaced" };
    Ok(ToolAnswer {
        text: format!("{did} `{path}`, {} bytes\n", content.len()),
        structured: json!({
            "path": path,
            "created": created,
            "bytes": content.len(),
            "lines": content.lines().count(),
        }),
    })
}

/// Refuses content that is larger than the limit.
pub(crate) fn check_size(
    workspace: &Workspace,
    path: &WorkspacePath,
    bytes: usize,
) -> Result<(), ToolError> {
    let max = workspace.limits.write_bytes_max;
    if bytes <= max {
        return Ok(());
    }
    let path = path.as_str();
    let message = format!("`{path}` would have {bytes} bytes; the limit is {max}");
    Err(ToolError::new(ToolErrorCode::TooLarge, message).with_path(path))
}

/// Replaces a file. The new contents are written to a temporary file, which is then renamed. So no
/// program sees a partial file, and neither a link nor another hard link of the old file is written
/// through.
pub(crate) fn replace_file(
    workspace: &Workspace,
    place: &ResolvedPath,
    path: &WorkspacePath,
    content: &[u8],
) -> Result<(), ToolError> {
    let failed = |errno| ToolError::from_errno(errno, path.as_str());
    if let Some(stat) = &place.stat {
        require_regular_file(stat, path)?;
        // A read-only file must not be replaced.
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&place.parent, &place.name, flags, Mode::empty()).map_err(failed)?;
        require_regular_file(&fstat(&opened).map_err(failed)?, path)?;
    }
    let temporary =
        TemporaryFile::new(place, |name| workspace.record_write(place, path, content, name))?;
    temporary.write_contents(place.stat.as_ref(), content).map_err(failed)?;
    if let Some(before) = &place.stat {
        let now = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW);
        if !now.is_ok_and(|now| is_same_file(before, &now)) {
            return Err(changed_meanwhile(path));
        }
    }
    match temporary.rename_into_place(place) {
        Err(Errno::EXIST) => Err(changed_meanwhile(path)),
        outcome => outcome.map_err(failed),
    }
}

/// Whether both are the same, unchanged file.
pub(crate) fn is_same_file(one: &Stat, other: &Stat) -> bool {
    let identity = |stat: &Stat| {
        let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_size, times)
    };
    identity(one) == identity(other)
}

pub(crate) fn changed_meanwhile(path: &WorkspacePath) -> ToolError {
    let path = path.as_str();
    let message = format!("`{path}` was changed by another program in the meantime");
    ToolError::new(ToolErrorCode::ChangedMeanwhile, message)
        .with_path(path)
        .with_advice("Read the file again first.")
}

/// A temporary file next to the file to be written. It is removed unless it was renamed.
struct TemporaryFile<'p> {
    place: &'p ResolvedPath,
    name: OsString,
    opened: OwnedFd,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file name that no other file of Jackline has.
pub(crate) fn temporary_name() -> String {
    format!(".jackline-{}-{}", std::process::id(), NEXT_NUMBER.fetch_add(1, Ordering::Relaxed))
}

impl<'p> TemporaryFile<'p> {
    /// Creates the file, after calling `touch` with its name.
    fn new(
        place: &'p ResolvedPath,
        touch: impl Fn(&str) -> Result<(), ToolError>,
    ) -> Result<TemporaryFile<'p>, ToolError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // While it has the contents of an existing file, it must not be readable for others.
        let mode = Mode::from_raw_mode(if place.stat.is_some() { 0o600 } else { 0o666 });
        loop {
            let name = temporary_name();
            touch(&name)?;
            let name = OsString::from(name);
            match openat(&place.parent, &name, flags, mode) {
                // A process with the same id left this file behind.
                Err(Errno::EXIST) => {}
                Ok(opened) => return Ok(TemporaryFile { place, name, opened }),
                Err(errno) => {
                    return Err(ToolError::from_errno(errno, &place.name.to_string_lossy()));
                }
            }
        }
    }

    fn write_contents(&self, before: Option<&Stat>, content: &[u8]) -> Result<(), Errno> {
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut file = File::from(self.opened.try_clone().map_err(io)?);
        file.write_all(content).map_err(io)?;
        if let Some(stat) = before {
            let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            // Without the right to change the owner, the file gets ours, as with any editor.
            let _ = fchown(&self.opened, Some(owner), Some(group));
            fchmod(&self.opened, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        }
        fdatasync(&self.opened)
    }

    fn rename_into_place(self, place: &ResolvedPath) -> Result<(), Errno> {
        let (dir, name) = (&place.parent, &place.name);
        if place.stat.is_some() {
            return renameat(dir, &self.name, dir, name);
        }
        match renameat_with(dir, &self.name, dir, name, RenameFlags::NOREPLACE) {
            // Not all file systems support this; then the last writer wins.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(dir, &self.name, dir, name),
            outcome => outcome,
        }
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        // After the rename, no file has this name.
        let _ = unlinkat(&self.place.parent, &self.name, AtFlags::empty());
    }
}
