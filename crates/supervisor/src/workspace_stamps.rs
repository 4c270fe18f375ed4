//! Compares the files of a workspace with an earlier moment. This shows what a program changed whose
//! calls no guard sees.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use jackline_engine::event::{CHANGED_FILES_MAX, WorkspaceChanged};
use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

/// Directories whose files are not compared.
const SKIPPED: [&str; 11] = [
    ".git",
    ".jackline",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "target",
];

/// How many files are stamped at most.
const FILES_MAX: usize = 20_000;

/// The files with saved stamps, in the directory of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StampsFile {
    /// The stamps from the start of the run.
    RunStart,
    /// The stamps from before a program without hooks was started. The file exists until its
    /// changes are in the journal.
    WorkerStart,
}

impl StampsFile {
    fn name(self) -> &'static str {
        match self {
            Self::RunStart => "before.json",
            Self::WorkerStart => "before-worker.json",
        }
    }
}

/// The stamps of files: size and modification time.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkspaceStamps {
    files: BTreeMap<String, (u64, u128)>,
    cut: bool,
}

impl WorkspaceStamps {
    /// Stamps the files of a workspace.
    pub(crate) fn scan(workspace: &Path) -> Self {
        let mut looks = Self::default();
        looks.walk(workspace, workspace);
        looks
    }

    /// Saves the stamps for a process that resumes the run.
    pub(crate) fn save(&self, directory: &Path, file: StampsFile) -> std::io::Result<()> {
        write_private(&directory.join(file.name()), &serde_json::to_vec(self)?)
            .map_err(std::io::Error::other)
    }

    /// Reads saved stamps, if there are any.
    pub(crate) fn load(directory: &Path, file: StampsFile) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.join(file.name())).ok()?).ok()
    }

    /// Removes saved stamps.
    pub(crate) fn remove(directory: &Path, file: StampsFile) -> std::io::Result<()> {
        match fs::remove_file(directory.join(file.name())) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the workspace has too many files to compare all of them.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    fn walk(&mut self, root: &Path, directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            if self.files.len() >= FILES_MAX {
                self.cut = true;
                return;
            }
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == **skipped) {
                    self.walk(root, &entry.path());
                }
                continue;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let time = metadata.modified().ok();
            let time = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            self.files.insert(path, (metadata.len(), time.map_or(0, |time| time.as_nanos())));
        }
    }

    /// The event for the files that changed since these stamps; `None` if there is no change.
    pub(crate) fn changes_since(&self, workspace: &Path) -> Option<WorkspaceChanged> {
        let after = Self::scan(workspace);
        let mut files = self.changed(&after);
        let more = files.len() > CHANGED_FILES_MAX || self.cut || after.cut;
        files.truncate(CHANGED_FILES_MAX);
        (more || !files.is_empty()).then_some(WorkspaceChanged { files, more })
    }

    /// The files that differ.
    pub(crate) fn changed(&self, after: &Self) -> Vec<String> {
        let other = |(path, look): (&String, &(u64, u128)), than: &Self| {
            (than.files.get(path) != Some(look)).then(|| path.clone())
        };
        let mut changed: Vec<String> =
            after.files.iter().filter_map(|entry| other(entry, self)).collect();
        let gone = self.files.keys().filter(|path| !after.files.contains_key(*path));
        changed.extend(gone.cloned());
        changed.sort();
        changed
    }
}
