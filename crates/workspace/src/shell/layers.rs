//! An overlay layer that receives the writes of a command, if the kernel supports it.
//!
//! The supervisor enters its own mount namespace and mounts an overlay on the workspace. So the
//! command changes nothing there. After it ended, a directory of the attempt contains its changes.

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

/// The prefix of the names of layer directories.
pub(crate) const LAYER_PREFIX: &str = "layer";

/// The directories of one overlay layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LayerPaths {
    /// Contains the files that the command wrote.
    pub(crate) upper: PathBuf,
    /// The work directory that the kernel needs.
    work: PathBuf,
}

/// A layer on disk. It is removed when it is dropped.
pub(crate) struct CommandLayer {
    pub(crate) paths: LayerPaths,
    directory: PathBuf,
}

impl CommandLayer {
    /// Creates a layer in a directory that does not exist yet.
    pub(crate) fn new(directory: PathBuf) -> io::Result<Self> {
        let layers = LayerPaths { upper: directory.join("upper"), work: directory.join("work") };
        fs::create_dir_all(&layers.upper)?;
        fs::create_dir_all(&layers.work)?;
        Ok(Self { paths: layers, directory })
    }
}

impl Drop for CommandLayer {
    fn drop(&mut self) {
        remove_tree(&self.directory);
    }
}

/// Removes the layers that a killed process left in a directory.
pub(crate) fn remove_stale_layers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(LAYER_PREFIX.as_bytes()) {
            remove_tree(&entry.path());
        }
    }
}

/// Removes a directory tree, even if a command changed its modes.
fn remove_tree(directory: &Path) {
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        } else {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(directory);
}

/// Mounts the layer on the current directory, for this process and the processes that it starts.
/// There must be a single thread. If it fails, the command must not be run here.
pub(super) fn mount_layer(layers: &LayerPaths) -> io::Result<()> {
    let root = std::env::current_dir()?;
    let mounts = fs::read("/proc/self/mountinfo")?;
    // File systems that are mounted inside the workspace would be invisible through the layer.
    if has_mounts_below(&mounts, &root) || layers.upper.starts_with(&root) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    enter_mount_namespace()?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let open = |path: &Path| -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, path, flags, Mode::empty())?)
    };
    let (lower, upper, work) = (open(&root)?, open(&layers.upper)?, open(&layers.work)?);
    // The options use descriptor numbers, because a path may contain the separators of options.
    let options = format!(
        "lowerdir=/proc/self/fd/{},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{},userxattr",
        lower.as_raw_fd(),
        upper.as_raw_fd(),
        work.as_raw_fd()
    );
    mount("overlay", &root, "overlay", MountFlags::empty(), &*CString::new(options)?)?;
    std::env::set_current_dir(&root)
}

/// Enters a new mount namespace; without privileges, also a new user namespace.
#[expect(deprecated, reason = "what makes it unsafe is a flag that is not used here")]
fn enter_mount_namespace() -> io::Result<()> {
    if rustix::thread::unshare(UnshareFlags::NEWNS).is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Whether something is mounted below a directory. `mountinfo` writes spaces in paths as `\040`.
fn has_mounts_below(mounts: &[u8], root: &Path) -> bool {
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
        assert!(has_mounts_below(mounts, Path::new("/home/dana/my work")));
        assert!(has_mounts_below(mounts, Path::new("/home")));
        for root in ["/home/dana/my", "/home/dana/my work/data", "/srv"] {
            assert!(!has_mounts_below(mounts, Path::new(root)), "{root}");
        }
    }
}
