//! Reads settings files of agent clients: with a size limit, and through symbolic links.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::client_list::Client;
use crate::installation::InstallScope;
use crate::settings_text::SettingsError;

/// The largest file that we change.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// How many symbolic links are followed if the target file does not exist.
const LINKS_MAX: usize = 40;

/// A settings file and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// The real path of the file. We write there, so that a symbolic link stays a link.
    pub real_path: PathBuf,
    /// The content, if the file exists.
    pub bytes: Option<Vec<u8>>,
}

/// Reads a file that may be missing.
pub fn read_file(path: &Path) -> Result<SettingsFile, SettingsFileError> {
    let failed = |error| SettingsFileError::io(path, "read", error);
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(SettingsFile {
                real_path: follow_missing_links(path).map_err(failed)?,
                bytes: None,
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = fs::metadata(&target).map_err(failed)?;
    if !metadata.is_file() {
        return Err(SettingsFileError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = File::open(&target).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(SettingsFileError::TooLong { path: path.to_owned() });
    }
    Ok(SettingsFile { real_path: target, bytes: Some(bytes) })
}

/// Where a path leads if the last file does not exist.
fn follow_missing_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(resolve_parents(&path)),
        }
    }
    Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()))
}

/// The real path that a missing file will have once it is created.
fn resolve_parents(path: &Path) -> PathBuf {
    let real = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let resolved = real.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    resolved.unwrap_or_else(|| path.to_owned())
}

/// The text of a settings file; empty if the file is missing.
pub fn read_text(path: &Path) -> Result<String, SettingsFileError> {
    let file = read_file(path)?;
    file.text(path).map(ToOwned::to_owned)
}

impl SettingsFile {
    /// The text of the file; empty if it is missing.
    pub fn text(&self, path: &Path) -> Result<&str, SettingsFileError> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| SettingsFileError::Settings {
            path: path.to_owned(),
            source: SettingsError::NotUtf8,
        })
    }
}

/// All settings files of a client that apply in a project.
pub fn settings_files(project: &Path, client: &Client) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for scope in InstallScope::ALL {
        let Ok(path) = client.installation.settings_file(project, scope) else {
            continue;
        };
        // In the home directory of a user, the project settings are also the user settings.
        if !files.iter().any(|listed| is_same_file(listed, &path)) {
            files.push(path);
        }
    }
    files
}

/// Whether two paths lead to the same file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let target = |path: &Path| read_file(path).ok().map(|file| file.real_path);
    one == other || target(one).is_some_and(|one| Some(one) == target(other))
}

/// Which of these settings, or those of the administrator, disable all hooks.
pub fn disabled_hooks(client: &Client, files: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let disabled_by = |path: PathBuf| {
        let key = client.installation.disabling_key(&read_text(&path).ok()?)?;
        Some(format!("`{key}` is true in `{}`", path.display()))
    };
    files
        .into_iter()
        .chain(client.installation.administrator_settings())
        .filter_map(disabled_by)
        .collect()
}

/// Why settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFileError {
    /// There is a directory or a special file in place of a file.
    #[error("`{}` is not a file; move it away, then run this again", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is longer than any file that a person writes.
    #[error("`{}` is longer than 4 MiB, which is too long for settings; nothing was changed", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// The content of the settings is invalid.
    #[error("`{}` {source}; nothing was written", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The error in the content.
        source: SettingsError,
    },
    /// A file can't be read or written.
    #[error("can't {action} `{}`: {source}; {}", path.display(), remedy(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl SettingsFileError {
    /// An I/O error with the operation and the path.
    pub fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "make it writable, or install in another file: without a flag or with `--user`"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "the file was not changed; free some disk space, then run this again"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only; try `--user`",
        io::ErrorKind::NotADirectory => {
            "a part of the path is a file and not a directory; move the file away"
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "its symbolic links form a loop; fix them"
        }
        _ => "then run this again",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_dangling_link_leads_to_the_path_of_the_new_file() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        symlink("dots/real", &link).unwrap();
        let file = read_file(&link).unwrap();
        assert_eq!(
            (file.bytes, file.real_path.as_path()),
            (None, &*root.path().canonicalize().unwrap().join("dots/real"))
        );
    }

    #[test]
    fn files_that_can_not_be_settings_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        symlink("x", &path).unwrap();
        assert!(matches!(read_file(&path), Err(SettingsFileError::Io { .. })));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(read_file(&path), Err(SettingsFileError::NotAFile { .. })));
        fs::remove_dir(&path).unwrap();
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(read_file(&path), Err(SettingsFileError::TooLong { .. })));
    }
}
