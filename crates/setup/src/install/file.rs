//! People's files: read with a limit, replaced as a whole, never half written.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_clients::settings_file::SettingsFile;
use rustix::fs::{Access, access};

/// Whether a file may be replaced. Who made theirs read-only meant it.
pub(crate) fn may_replace(held: &SettingsFile) -> io::Result<()> {
    if held.bytes.is_some() {
        access(&held.target, Access::WRITE_OK)?;
    }
    let there = held.target.ancestors().skip(1).find(|directory| directory.exists());
    there.map_or(Ok(()), |directory| Ok(access(directory, Access::WRITE_OK)?))
}

/// Replaces a file as a whole. It keeps its mode, and it is the old one or the
/// new one at every moment.
pub(crate) fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = target.parent().unwrap_or(Path::new("/"));
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".jackline-{}", std::process::id()));
    let temporary = directory.join(name);
    let mode = fs::metadata(target).ok().map(|found| found.permissions().mode() & 0o7777);
    let written = write(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync(directory);
    Ok(())
}

fn write(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    // One that a killed run of the same number left behind.
    let _ = fs::remove_file(path);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode.unwrap_or(0o666)).open(path)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes what a directory lists durable, where that can be had.
fn sync(directory: &Path) {
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
}

/// Makes the directories above a file; says which, the outermost first.
pub(crate) fn make_directories(target: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> = missing_directories(target);
    for directory in &missing {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(missing)
}

/// The directories above a file that are not there, the outermost first.
pub(crate) fn missing_directories(target: &Path) -> Vec<PathBuf> {
    let above = target.ancestors().skip(1).take_while(|directory| !directory.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes a file, and the directories that were made for it, where nothing
/// else came into them.
pub(crate) fn remove(target: &Path, made: &[PathBuf]) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for directory in made.iter().rev() {
        let _ = fs::remove_dir(directory);
    }
    target.ancestors().skip(1).find(|directory| directory.exists()).map(sync);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use jackline_clients::settings_file::look;

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_link() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let held = look(&link).unwrap();
        assert_eq!(held.bytes.as_deref(), Some(&b"old"[..]));
        replace(&held.target, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&link).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn directories_go_only_if_nothing_else_came_in() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/c");
        let made = make_directories(&file).unwrap();
        assert_eq!(made.len(), 2);
        fs::write(root.path().join("a/other"), "").unwrap();
        remove(&file, &made).unwrap();
        assert!(root.path().join("a").exists() && !root.path().join("a/b").exists());
    }
}
