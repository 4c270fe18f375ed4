//! Settings of agent clients as files: read with a limit, through links, and never half.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::installation::Scope;
use crate::list::Client;
use crate::settings_text::SettingsError;

/// How long a file may be that we change.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// How many symbolic links are followed to a file that is not there yet.
const LINKS_MAX: usize = 40;

/// A file as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// Where it really is: a symbolic link stays one.
    pub target: PathBuf,
    /// What is in it, if it is there.
    pub bytes: Option<Vec<u8>>,
}

/// Looks at a file that may not be there.
pub fn look(path: &Path) -> Result<SettingsFile, SettingsFileError> {
    let failed = |error| SettingsFileError::of(path, "read", error);
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(SettingsFile { target: follow(path).map_err(failed)?, bytes: None });
        }
        Err(error) => return Err(failed(error)),
    };
    let found = fs::metadata(&target).map_err(failed)?;
    if !found.is_file() {
        return Err(SettingsFileError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let file = File::open(&target).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(SettingsFileError::TooLong { path: path.to_owned() });
    }
    Ok(SettingsFile { target, bytes: Some(bytes) })
}

/// Where a path leads whose end is not there.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(settle(&path)),
        }
    }
    Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()))
}

/// The same path by its real directories, as it will be once it is there.
fn settle(path: &Path) -> PathBuf {
    let real = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let settled = real.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    settled.unwrap_or_else(|| path.to_owned())
}

/// The text of the settings at a place; absent ones are empty.
pub fn read(path: &Path) -> Result<String, SettingsFileError> {
    let file = look(path)?;
    file.text(path).map(ToOwned::to_owned)
}

impl SettingsFile {
    /// The text of the file; an absent one is empty.
    pub fn text(&self, path: &Path) -> Result<&str, SettingsFileError> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| SettingsFileError::Settings {
            path: path.to_owned(),
            source: SettingsError::NotText,
        })
    }
}

/// All settings of a client that apply in a project.
pub fn settings_files(project: &Path, client: &Client) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for scope in [Scope::Project, Scope::Local, Scope::User] {
        let Ok(path) = client.installation.settings_file(project, scope) else {
            continue;
        };
        // In a person's home the project's settings are the person's.
        if !files.iter().any(|known| is_same(known, &path)) {
            files.push(path);
        }
    }
    files
}

/// Whether two paths lead to one file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let target = |path: &Path| look(path).ok().map(|held| held.target);
    one == other || target(one).is_some_and(|one| Some(one) == target(other))
}

/// Which of these settings, or the owner's, switch all hooks off.
pub fn switched_off(client: &Client, files: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let says = |path: PathBuf| {
        let key = client.installation.silenced_by(&read(&path).ok()?)?;
        Some(format!("`{key}` is true in `{}`", path.display()))
    };
    files.into_iter().chain(client.installation.owner_settings()).filter_map(says).collect()
}

/// Why settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFileError {
    /// A directory, or something stranger, is where a file belongs.
    #[error("`{}` is not a file; move it away, then run this again", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
    },
    /// The file is longer than any that a person writes.
    #[error("`{}` is longer than 4 MiB; that can't be right, so it is left as it is", path.display())]
    TooLong {
        /// Where.
        path: PathBuf,
    },
    /// The settings are not what they have to be.
    #[error("`{}` {source}; nothing was written", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SettingsError,
    },
    /// A file can't be read or written.
    #[error("can't {action} `{}`: {source}; {}", path.display(), remedy(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was wanted.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SettingsFileError {
    /// An I/O error with the operation and the path.
    pub fn of(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "make it writable, or install for yourself alone with `--local` or `--user`"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "the file is as it was: free some space, then run this again"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only; try `--user`",
        io::ErrorKind::NotADirectory => "a file is where a directory belongs; move it away",
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "its symbolic links lead in a circle; mend them"
        }
        _ => "then run this again",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_nothing_is_filled_where_it_leads() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        symlink("dots/real", &link).unwrap();
        let held = look(&link).unwrap();
        assert_eq!(
            (held.bytes, held.target.as_path()),
            (None, &*root.path().canonicalize().unwrap().join("dots/real"))
        );
    }

    #[test]
    fn odd_files_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        symlink("x", &path).unwrap();
        assert!(matches!(look(&path), Err(SettingsFileError::Io { .. })));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(look(&path), Err(SettingsFileError::NotAFile { .. })));
        fs::remove_dir(&path).unwrap();
        File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(look(&path), Err(SettingsFileError::TooLong { .. })));
    }
}
