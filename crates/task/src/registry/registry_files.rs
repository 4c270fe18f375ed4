//! The entry files of a registry: one per tool, each replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_journal::{
    FileError, create_directory, lock_exclusive as hold, lock_shared as share, write_private,
};

use crate::registry::registry_change::{ChangeRecord, EntryUpdate};
use crate::registry::registry_error::RegistryError;
use crate::registry::stored_tool::{SOURCE_BYTES_MAX, StoredTool, check_name};

/// The maximum length of an entry: its source in the longest JSON form, and the rest.
const ENTRY_BYTES_MAX: u64 = (SOURCE_BYTES_MAX * 6 + (64 << 10)) as u64;

/// A tool, or the reason why its entry is broken.
pub(crate) type RegistryEntry = Result<StoredTool, String>;

#[derive(Debug)]
pub(crate) struct RegistryFiles {
    directory: PathBuf,
}

impl RegistryFiles {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The names of all entries, including broken ones.
    pub(crate) fn names(&self) -> Result<BTreeSet<String>, RegistryError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries.map_err(|error| io_error("read", &self.directory, error))?,
        };
        let name = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").map(ToOwned::to_owned)
        };
        let names = entries.flatten().filter_map(name);
        Ok(names.filter(|name| check_name(name).is_ok()).collect())
    }

    /// All entries.
    pub(crate) fn read_all(&self) -> Result<BTreeMap<String, RegistryEntry>, RegistryError> {
        let mut all = BTreeMap::new();
        for name in self.names()? {
            if let Some(entry) = self.read_entry(&name) {
                all.insert(name, entry);
            }
        }
        Ok(all)
    }

    /// One entry.
    pub(crate) fn read_entry(&self, name: &str) -> Option<RegistryEntry> {
        let path = self.path(name);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| {
            if file.metadata()?.is_file() {
                file.take(ENTRY_BYTES_MAX + 1).read_to_end(&mut bytes)
            } else {
                Err(io::Error::other("it is not a regular file"))
            }
        });
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // An entry that can't be read must not hide the others.
            Err(error) => Some(Err(error.to_string())),
            Ok(_) if bytes.len() as u64 > ENTRY_BYTES_MAX => Some(Err("it is too long".to_owned())),
            Ok(_) => Some(StoredTool::parse(name, &bytes)),
        }
    }

    /// Applies a change, as far as it is not applied already.
    pub(crate) fn apply(&self, line: &ChangeRecord) -> Result<(), RegistryError> {
        for name in line.change.names() {
            match line.apply_to(name, self.read_entry(name).as_ref()) {
                EntryUpdate::Replace(tool) => {
                    let bytes = serde_json::to_vec(&tool).map_err(|error| {
                        io_error("write", &self.path(name), io::Error::other(error))
                    })?;
                    write_private(&self.path(name), &bytes)?;
                }
                EntryUpdate::Remove => self.remove(name)?,
                EntryUpdate::Unchanged => {}
            }
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(|error| io_error("remove", &path, error))?;
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        Ok(synced.map_err(|error| io_error("sync", &self.directory, error))?)
    }

    /// Removes temporary files of a process that was killed while it wrote.
    pub(crate) fn remove_temporary_files(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with('.') {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

/// Locks a registry for writing.
pub(crate) fn lock_exclusive(directory: &Path) -> Result<File, RegistryError> {
    create_directory(directory)?;
    let path = directory.join("lock");
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let file = opened.map_err(|error| io_error("open", &path, error))?;
    hold(&file)?;
    Ok(file)
}

/// Locks a registry for reading, if it exists.
pub(crate) fn lock_shared(directory: &Path) -> Result<Option<File>, RegistryError> {
    let path = directory.join("lock");
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => {
            let file = file.map_err(|error| io_error("open", &path, error))?;
            share(&file)?;
            Ok(Some(file))
        }
    }
}

pub(crate) fn io_error(what: &'static str, path: &Path, source: io::Error) -> FileError {
    FileError { what, path: path.to_owned(), source }
}
