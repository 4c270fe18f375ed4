//! Opens a task file, and collects its errors.

use std::path::{Path, PathBuf};

use jackline_definition::Diagnostics;
use jackline_definition::yaml::YamlNode;
use jackline_definition::yaml_file_reader::{FILE_BYTES_MAX, YamlFileReader};
use jackline_host::read_regular;

use crate::task_spec::TASK_FILE;

/// Why a task can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file can't be read.
    #[error("can't read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Files contain mistakes.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Wrong(Vec<Diagnostics>),
}

/// A task file that was read.
pub struct TaskFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The directory that paths in it are relative to.
    pub directory: PathBuf,
    /// What the task is called in messages: the name of its directory or file.
    pub name: String,
    /// Collects errors.
    pub form: YamlFileReader,
    /// The tree of the text; `None` if it is not valid YAML.
    pub node: Option<YamlNode>,
}

impl TaskFile {
    /// Reads a task: a file, or a directory with a `task.yaml`.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let file = if path.is_dir() { path.join(TASK_FILE) } else { path.to_owned() };
        let source = read_file(&file)?;
        let directory = file.parent().unwrap_or(Path::new(".")).to_owned();
        let named = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = named.file_stem().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "task".to_owned());
        let mut form = YamlFileReader::for_file(&file);
        let node = form.parse(&source);
        Ok(Self { path: file, directory, name, form, node })
    }
}

/// Reads a file of a task, up to a maximum size.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    let bytes = read_regular(path, FILE_BYTES_MAX);
    bytes.map_err(|source| LoadError::Read { path: path.to_owned(), source })
}
