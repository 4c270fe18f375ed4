//! What the definition of a workspace is made of, as far as that is known
//! without parsing anything.

use std::io;
use std::path::{Path, PathBuf};

use jackline_definition::{Files, Layer};
use jackline_engine::Digest;

use super::DefinitionError;
use jackline_host::read_regular;

/// The largest file that is read at all; one that is merely too large for a
/// definition is complained about in its place.
const READ_BYTES_MAX: u64 = 16 << 20;

/// The files of the layers of one workspace.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// From the highest layer down.
    files: Vec<(Layer, PathBuf)>,
}

impl Found {
    /// Every layer that is there. A repository's file that is also another
    /// layer's speaks once.
    pub(crate) fn new(
        managed: Option<&Path>,
        user: Option<&Path>,
        repository: Option<PathBuf>,
    ) -> Self {
        let mut files: Vec<(Layer, PathBuf)> = Vec::new();
        files.extend(managed.map(|file| (Layer::Managed, file.to_owned())));
        // Whatever can't be looked at is there, and will be complained about.
        let user = user.filter(|file| file.try_exists().unwrap_or(true));
        files.extend(user.map(|file| (Layer::User, file.to_owned())));
        if let Some(file) = repository
            && !files.iter().any(|(_, known)| real(known) == real(&file))
        {
            files.push((Layer::Repository, file));
        }
        Self { files }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The repository's file, where it has one.
    pub(crate) fn repository(&self) -> Option<&Path> {
        let file = self.files.iter().find(|(layer, _)| *layer == Layer::Repository);
        file.map(|(_, file)| file.as_path())
    }

    /// All of them, the repository's first.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        self.files.iter().rev().map(|(_, file)| real(file)).collect()
    }

    /// Reads the layers. `extended` knows which files one of them extends.
    pub(crate) fn survey(
        &self,
        extended: impl Fn(&Digest) -> Option<Vec<PathBuf>>,
    ) -> Result<Survey, DefinitionError> {
        let read = |(layer, file): &(Layer, PathBuf)| {
            let bytes = read_file(file)
                .map_err(|source| DefinitionError::Unreadable { path: file.clone(), source })?;
            let path = real(file);
            let key = key(&path, &bytes);
            let contents = |path: PathBuf| read_file(&path).ok().map(|bytes| (path, bytes));
            let extended =
                extended(&key).and_then(|paths| paths.into_iter().map(contents).collect());
            Ok(Source { layer: *layer, file: file.clone(), path, key, bytes, extended })
        };
        self.files.iter().map(read).collect::<Result<_, _>>().map(|layers| Survey { layers })
    }
}

/// The contents of a definition's files.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    /// From the highest layer down.
    pub(crate) layers: Vec<Source>,
}

/// Files that others extend, with their contents.
pub(crate) type Extended = Vec<(PathBuf, Vec<u8>)>;

/// The contents of one layer.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) layer: Layer,
    /// As it was found, and as people know it.
    pub(crate) file: PathBuf,
    /// Where it really is.
    pub(crate) path: PathBuf,
    /// What tells it from every other file.
    pub(crate) key: Digest,
    pub(crate) bytes: Vec<u8>,
    /// What it extends, once that is known.
    pub(crate) extended: Option<Extended>,
}

impl Source {
    /// The checksum of the file and what it extends, which a person may trust.
    pub(crate) fn checksum(&self) -> Option<Digest> {
        self.extended.as_deref().map(|extended| checksum(&self.bytes, extended))
    }
}

impl Survey {
    /// The repository's layer.
    pub(crate) fn repository(&self) -> Option<&Source> {
        self.layers.iter().find(|source| source.layer == Layer::Repository)
    }

    /// The checksum of the whole, unless it is unknown what a layer extends.
    /// One plain file has its own, so that `sha256sum` agrees.
    pub(crate) fn checksum(&self, trusted: bool) -> Option<Digest> {
        let all = self.layers.iter().map(|source| source.extended.as_ref());
        let all: Vec<&Extended> = all.collect::<Option<_>>()?;
        if let ([only], false) = (self.layers.as_slice(), trusted)
            && only.layer == Layer::Repository
            && all.iter().all(|extended| extended.is_empty())
        {
            return Some(Digest::of(&only.bytes));
        }
        let mut bytes = b"jackline definition in layers\n".to_vec();
        for (layer, extended) in self.layers.iter().zip(all) {
            bytes.extend_from_slice(layer.layer.word().as_bytes());
            bytes.push(b'\n');
            add(&mut bytes, &layer.bytes);
            bytes.extend_from_slice(&(extended.len() as u64).to_le_bytes());
            extended.iter().for_each(|(_, source)| add(&mut bytes, source));
        }
        bytes.push(u8::from(trusted));
        Some(Digest::of(&bytes))
    }

    /// What tells these layers from all others, whatever they extend.
    pub(crate) fn key(&self) -> Digest {
        let mut bytes = Vec::new();
        self.layers.iter().for_each(|source| bytes.extend_from_slice(source.key.as_bytes()));
        Digest::of(&bytes)
    }

    /// Every file, the repository's first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.read().into_iter().map(|(path, _)| path).collect()
    }

    /// The same, with what was in them.
    pub(crate) fn read(&self) -> Vec<(PathBuf, &[u8])> {
        let mut files: Vec<(PathBuf, &[u8])> = Vec::new();
        for source in self.layers.iter().rev() {
            files.push((source.path.clone(), &source.bytes));
            let extended = source.extended.iter().flatten();
            files.extend(extended.map(|(path, bytes)| (real(path), bytes.as_slice())));
        }
        files
    }
}

/// The checksum of a file and what it extends. One plain file has its own.
pub(crate) fn checksum(source: &[u8], extended: &[(PathBuf, Vec<u8>)]) -> Digest {
    if extended.is_empty() {
        return Digest::of(source);
    }
    let mut bytes = b"jackline definition and what it extends\n".to_vec();
    add(&mut bytes, source);
    extended.iter().for_each(|(_, source)| add(&mut bytes, source));
    Digest::of(&bytes)
}

fn add(bytes: &mut Vec<u8>, source: &[u8]) {
    bytes.extend_from_slice(&(source.len() as u64).to_le_bytes());
    bytes.extend_from_slice(Digest::of(source).as_bytes());
}

/// What a file extends depends on what it says and where it lies.
fn key(path: &Path, source: &[u8]) -> Digest {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(Digest::of(source).as_bytes());
    Digest::of(&bytes)
}

/// A path without symbolic links, where there is something at it.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, READ_BYTES_MAX)
}

/// Reads what files extend, and remembers how it was.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) seen: Vec<(PathBuf, Option<Digest>)>,
}

impl Files for Reading {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let read = read_file(path);
        self.seen.push((path.to_owned(), read.as_ref().ok().map(|bytes| Digest::of(bytes))));
        read
    }
}

impl Reading {
    /// Whether all of it is as it was.
    pub(crate) fn is_current(&self) -> bool {
        let now = |path: &Path| read_file(path).ok().map(|bytes| Digest::of(&bytes));
        self.seen.iter().all(|(path, digest)| now(path) == *digest)
    }
}
