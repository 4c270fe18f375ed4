//! Copies a project, so that an example run does not change the original.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of files in a copied project.
const FILES_MAX: usize = 10_000;

/// Copies a directory to a new directory for temporary files.
pub(super) fn copy_project(project: &Path, name: &str) -> io::Result<PathBuf> {
    let safe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let ms = jackline_host::clock::now().wall.as_ms();
    let target = std::env::temp_dir().join(format!("jackline-{safe}-{ms}-{}", std::process::id()));
    let mut remaining = FILES_MAX;
    copy_directory(project, &target, &mut remaining)?;
    target.canonicalize()
}

fn copy_directory(from: &Path, to: &Path, remaining: &mut usize) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        *remaining = remaining
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(format!("it has more than {FILES_MAX} files")))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_directory(&path, &target, remaining)?;
        } else if kind.is_file() {
            fs::copy(&path, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &target)?;
        }
    }
    Ok(())
}
