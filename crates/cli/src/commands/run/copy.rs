//! A copy of a project, so that trying something out changes nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many files a project may have that is copied.
const FILES_MAX: usize = 10_000;

/// Copies a directory to a new one beneath the directory for temporary files.
pub(super) fn of(project: &Path, name: &str) -> io::Result<PathBuf> {
    let safe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let ms = jackline_host::clock::now().wall.as_ms();
    let target = std::env::temp_dir().join(format!("jackline-{safe}-{ms}-{}", std::process::id()));
    let mut left = FILES_MAX;
    copy(project, &target, &mut left)?;
    target.canonicalize()
}

fn copy(from: &Path, to: &Path, left: &mut usize) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        *left = left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(format!("it has more than {FILES_MAX} files")))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&path, &target, left)?;
        } else if kind.is_file() {
            fs::copy(&path, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &target)?;
        }
    }
    Ok(())
}
