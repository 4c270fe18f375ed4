//! Replaces and removes files of other people, always as a whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_clients::settings_file::SettingsFile;
use rustix::fs::{Access, access};

/// Whether a file may be replaced. If its owner made it read-only, it is left alone.
pub(crate) fn check_replaceable(file: &SettingsFile) -> io::Result<()> {
    if file.bytes.is_some() {
        access(&file.real_path, Access::WRITE_OK)?;
    }
    let existing = file.real_path.ancestors().skip(1).find(|directory| directory.exists());
    existing.map_or(Ok(()), |directory| Ok(access(directory, Access::WRITE_OK)?))
}

/// Replaces a file as a whole, and keeps its mode. At every moment the file is either the old one
/// or the new one.
pub(crate) fn replace_file(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = target.parent().unwrap_or(Path::new("/"));
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".jackline-{}", std::process::id()));
    let temporary = directory.join(name);
    let mode = fs::metadata(target).ok().map(|metadata| metadata.permissions().mode() & 0o7777);
    let written = write(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_directory(directory);
    Ok(())
}

fn write(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    // A killed process with the same id may have left this file.
    let _ = fs::remove_file(path);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode.unwrap_or(0o666)).open(path)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the entries of a directory durable, if the file system supports it.
fn sync_directory(directory: &Path) {
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
}

/// Creates the directories above a file. Returns them, the outermost first.
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

/// The missing directories above a file, the outermost first.
pub(crate) fn missing_directories(target: &Path) -> Vec<PathBuf> {
    let above = target.ancestors().skip(1).take_while(|directory| !directory.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes a file, and the directories that we created for it if they are empty.
pub(crate) fn remove_file(target: &Path, made: &[PathBuf]) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for directory in made.iter().rev() {
        let _ = fs::remove_dir(directory);
    }
    target.ancestors().skip(1).find(|directory| directory.exists()).map(sync_directory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use jackline_clients::settings_file::read_file;

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_link() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let file = read_file(&link).unwrap();
        assert_eq!(file.bytes.as_deref(), Some(&b"old"[..]));
        replace_file(&file.real_path, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&link).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_empty_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/c");
        let made = make_directories(&file).unwrap();
        assert_eq!(made.len(), 2);
        fs::write(root.path().join("a/other"), "").unwrap();
        remove_file(&file, &made).unwrap();
        assert!(root.path().join("a").exists() && !root.path().join("a/b").exists());
    }
}
