//! A layer over the workspace that takes what a command writes, where the kernel has one.
//!
//! The supervisor gets a view of the file systems of its own, in which an overlay lies over
//! the workspace. So the command changes nothing there; what it would have
//! changed lies in a directory of the attempt when it has ended.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

/// What the names of layers begin with.
pub(crate) const LAYER: &str = "layer";

/// The directories of a layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Layers {
    /// What a command has written.
    pub(crate) upper: PathBuf,
    /// For the kernel.
    work: PathBuf,
}

/// A layer on the disk, as long as it is needed.
pub(crate) struct Laid {
    pub(crate) layers: Layers,
    directory: PathBuf,
}

impl Laid {
    /// Makes one in a directory that is not there yet.
    pub(crate) fn new(directory: PathBuf) -> io::Result<Self> {
        let layers = Layers { upper: directory.join("upper"), work: directory.join("work") };
        fs::create_dir_all(&layers.upper)?;
        fs::create_dir_all(&layers.work)?;
        Ok(Self { layers, directory })
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        clear(&self.directory);
    }
}

/// Removes what a process has left in a directory that was killed.
pub(crate) fn clear_left(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(LAYER.as_bytes()) {
            clear(&entry.path());
        }
    }
}

/// Removes a directory with everything, whatever modes a command has left there.
fn clear(directory: &Path) {
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clear(&entry.path());
        } else {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(directory);
}

/// Lays it over the directory that this process is in, for this process and all that it
/// starts. There may be only one thread. Where that fails, nothing is to be run here.
pub(super) fn enter(layers: &Layers) -> io::Result<()> {
    let root = std::env::current_dir()?;
    let mounts = fs::read("/proc/self/mountinfo")?;
    // What is mounted in the workspace would not be seen through the layer.
    if has_mounts(&mounts, &root) || layers.upper.starts_with(&root) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    unshare()?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let open = |path: &Path| -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, path, flags, Mode::empty())?)
    };
    let (lower, upper, work) = (open(&root)?, open(&layers.upper)?, open(&layers.work)?);
    // By their numbers, because a path may hold what separates options.
    let options = format!(
        "lowerdir=/proc/self/fd/{},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{},userxattr",
        lower.as_raw_fd(),
        upper.as_raw_fd(),
        work.as_raw_fd()
    );
    mount("overlay", &root, "overlay", MountFlags::empty(), &*CString::new(options)?)?;
    std::env::set_current_dir(&root)
}

/// Takes a view of the file systems of our own; as nobody in particular, if need be.
#[expect(deprecated, reason = "what makes it unsafe is a flag that is not used here")]
fn unshare() -> io::Result<()> {
    if rustix::thread::unshare(UnshareFlags::NEWNS).is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Whether something is mounted below a directory. Blanks in a path are written as `\040`.
fn has_mounts(mounts: &[u8], root: &Path) -> bool {
    let root: Vec<u8> = root
        .as_os_str()
        .as_bytes()
        .iter()
        .flat_map(|byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            byte => vec![*byte],
        })
        .collect();
    mounts.split(|byte| *byte == b'\n').any(|line| {
        let place = line.split(|byte| *byte == b' ').nth(4).unwrap_or_default();
        place.strip_prefix(&*root).is_some_and(|rest| rest.first() == Some(&b'/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_in_the_workspace_is_found_and_others_are_not() {
        let mounts = b"1 2 0:1 / / rw - a b\n1 2 0:1 / /home/dana/my\\040work/data rw - a b\n";
        assert!(has_mounts(mounts, Path::new("/home/dana/my work")));
        assert!(has_mounts(mounts, Path::new("/home")));
        for root in ["/home/dana/my", "/home/dana/my work/data", "/srv"] {
            assert!(!has_mounts(mounts, Path::new(root)), "{root}");
        }
    }
}
