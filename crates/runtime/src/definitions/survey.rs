//! The files of a workspace's definition, as far as they are known without parsing.

use std::io;
use std::path::{Path, PathBuf};

use jackline_definition::{ExtendedFileReader, Layer};
use jackline_engine::Digest;

use super::DefinitionError;
use jackline_host::read_regular;

/// The largest file that is read at all. A file that is only too large for a definition gives a
/// better error when it is parsed.
const READ_BYTES_MAX: u64 = 16 << 20;

/// The paths of the layers of one workspace.
#[derive(Debug, Clone)]
pub(crate) struct LayerFilePaths {
    /// From the highest layer down.
    files: Vec<(Layer, PathBuf)>,
}

impl LayerFilePaths {
    /// Lists every layer that exists. A repository's file that is also another layer's file counts
    /// once.
    pub(crate) fn new(
        managed: Option<&Path>,
        user: Option<&Path>,
        repository: Option<PathBuf>,
    ) -> Self {
        let mut files: Vec<(Layer, PathBuf)> = Vec::new();
        files.extend(managed.map(|file| (Layer::Managed, file.to_owned())));
        // A file that can't be checked counts as present, so that reading it reports the error.
        let user = user.filter(|file| file.try_exists().unwrap_or(true));
        files.extend(user.map(|file| (Layer::User, file.to_owned())));
        if let Some(file) = repository
            && !files.iter().any(|(_, other)| real_path(other) == real_path(&file))
        {
            files.push((Layer::Repository, file));
        }
        Self { files }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The repository's file, if there is one.
    pub(crate) fn repository(&self) -> Option<&Path> {
        let file = self.files.iter().find(|(layer, _)| *layer == Layer::Repository);
        file.map(|(_, file)| file.as_path())
    }

    /// All files, the repository's first.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.files.iter().rev().map(|(_, file)| real_path(file)).collect()
    }

    /// Reads the layers. `extended` returns the files that a file extends, if they are known.
    pub(crate) fn read_layers(
        &self,
        extended: impl Fn(&Digest) -> Option<Vec<PathBuf>>,
    ) -> Result<LayerContents, DefinitionError> {
        let read = |(layer, file): &(Layer, PathBuf)| {
            let bytes = read_file(file)
                .map_err(|source| DefinitionError::Unreadable { path: file.clone(), source })?;
            let path = real_path(file);
            let key = file_key(&path, &bytes);
            let contents = |path: PathBuf| read_file(&path).ok().map(|bytes| (path, bytes));
            let extended =
                extended(&key).and_then(|paths| paths.into_iter().map(contents).collect());
            Ok(LayerFile { layer: *layer, file: file.clone(), path, key, bytes, extended })
        };
        self.files.iter().map(read).collect::<Result<_, _>>().map(|layers| LayerContents { layers })
    }
}

/// The contents of a definition's files.
#[derive(Debug, Clone)]
pub(crate) struct LayerContents {
    /// From the highest layer down.
    pub(crate) layers: Vec<LayerFile>,
}

/// Files that a layer extends, with their contents.
pub(crate) type ExtendedFiles = Vec<(PathBuf, Vec<u8>)>;

/// The contents of one layer.
#[derive(Debug, Clone)]
pub(crate) struct LayerFile {
    pub(crate) layer: Layer,
    /// The path as it was found, for messages.
    pub(crate) file: PathBuf,
    /// The path without symbolic links.
    pub(crate) path: PathBuf,
    /// A digest of path and contents, which identifies the file.
    pub(crate) key: Digest,
    pub(crate) bytes: Vec<u8>,
    /// The files that it extends, if they are known.
    pub(crate) extended: Option<ExtendedFiles>,
}

impl LayerFile {
    /// The checksum of the file and the files that it extends, which a person may trust.
    pub(crate) fn checksum(&self) -> Option<Digest> {
        self.extended.as_deref().map(|extended| checksum(&self.bytes, extended))
    }
}

impl LayerContents {
    /// The repository's layer.
    pub(crate) fn repository(&self) -> Option<&LayerFile> {
        self.layers.iter().find(|source| source.layer == Layer::Repository)
    }

    /// The checksum of all layers, unless it is unknown which files a layer extends. A single plain
    /// file has its own SHA-256, so that `sha256sum` gives the same value.
    pub(crate) fn checksum(&self, trusted: bool) -> Option<Digest> {
        let all = self.layers.iter().map(|source| source.extended.as_ref());
        let all: Vec<&ExtendedFiles> = all.collect::<Option<_>>()?;
        if let ([only], false) = (self.layers.as_slice(), trusted)
            && only.layer == Layer::Repository
            && all.iter().all(|extended| extended.is_empty())
        {
            return Some(Digest::of(&only.bytes));
        }
        let mut bytes = b"jackline definition in layers\n".to_vec();
        for (layer, extended) in self.layers.iter().zip(all) {
            bytes.extend_from_slice(layer.layer.as_str().as_bytes());
            bytes.push(b'\n');
            add_source(&mut bytes, &layer.bytes);
            bytes.extend_from_slice(&(extended.len() as u64).to_le_bytes());
            extended.iter().for_each(|(_, source)| add_source(&mut bytes, source));
        }
        bytes.push(u8::from(trusted));
        Some(Digest::of(&bytes))
    }

    /// A digest that identifies these layers, without the files that they extend.
    pub(crate) fn key(&self) -> Digest {
        let mut bytes = Vec::new();
        self.layers.iter().for_each(|source| bytes.extend_from_slice(source.key.as_bytes()));
        Digest::of(&bytes)
    }

    /// Every file, the repository's first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.read().into_iter().map(|(path, _)| path).collect()
    }

    /// Every file with its contents, the repository's first.
    pub(crate) fn read(&self) -> Vec<(PathBuf, &[u8])> {
        let mut files: Vec<(PathBuf, &[u8])> = Vec::new();
        for source in self.layers.iter().rev() {
            files.push((source.path.clone(), &source.bytes));
            let extended = source.extended.iter().flatten();
            files.extend(extended.map(|(path, bytes)| (real_path(path), bytes.as_slice())));
        }
        files
    }
}

/// The checksum of a file and the files that it extends. A file that extends none has its own
/// SHA-256.
pub(crate) fn checksum(source: &[u8], extended: &[(PathBuf, Vec<u8>)]) -> Digest {
    if extended.is_empty() {
        return Digest::of(source);
    }
    let mut bytes = b"jackline definition and what it extends\n".to_vec();
    add_source(&mut bytes, source);
    extended.iter().for_each(|(_, source)| add_source(&mut bytes, source));
    Digest::of(&bytes)
}

fn add_source(bytes: &mut Vec<u8>, source: &[u8]) {
    bytes.extend_from_slice(&(source.len() as u64).to_le_bytes());
    bytes.extend_from_slice(Digest::of(source).as_bytes());
}

/// The key of a file. Which files it extends depends on its contents and its path.
fn file_key(path: &Path, source: &[u8]) -> Digest {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(Digest::of(source).as_bytes());
    Digest::of(&bytes)
}

/// A path without symbolic links, if it exists.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, READ_BYTES_MAX)
}

/// Reads extended files, and records which contents it read.
#[derive(Debug, Default)]
pub(crate) struct RecordingReader {
    pub(crate) reads: Vec<(PathBuf, Option<Digest>)>,
}

impl ExtendedFileReader for RecordingReader {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let read = read_file(path);
        self.reads.push((path.to_owned(), read.as_ref().ok().map(|bytes| Digest::of(bytes))));
        read
    }
}

impl RecordingReader {
    /// Whether all files still have the recorded contents.
    pub(crate) fn is_current(&self) -> bool {
        let now = |path: &Path| read_file(path).ok().map(|bytes| Digest::of(&bytes));
        self.reads.iter().all(|(path, digest)| now(path) == *digest)
    }
}
