//! Copies a project, so that an example run does not change the original.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of files in a copied project.
const FILES_MAX: usize = 10_000;

/// Copies a directory to a new directory for temporary files.
pub(super) fn copy_project(project: &Path, name: &str) -> io::Result<PathBuf> {
    let ms = jackline_host::clock::now().wall.as_ms();
    let copy = format!("{}{ms}-{}", name_start(name), std::process::id());
    let target = std::env::temp_dir().join(copy);
    let mut remaining = FILES_MAX;
    copy_directory(project, &target, &mut remaining)?;
    target.canonicalize()
}

/// Whether a workspace is a copy that this command made for a task.
pub(super) fn is_copy(workspace: &Path, name: &str) -> bool {
    let is_temporary = workspace.parent() == std::env::temp_dir().canonicalize().ok().as_deref();
    let file_name = workspace.file_name().map(|name| name.to_string_lossy().into_owned());
    is_temporary && file_name.is_some_and(|file_name| file_name.starts_with(&name_start(name)))
}

/// How the names of a task's copies start.
fn name_start(name: &str) -> String {
    let safe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    format!("jackline-{safe}-")
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
