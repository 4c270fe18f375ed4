//! Finds what was recorded: files that end in `.jsonl` or `.jsonl.gz`, whatever
//! is named, and sessions by their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jackline_clients::{CLIENTS, Client};
use jackline_host::clock::now;

use crate::terminal::{here, sessions};

/// How deep directories are looked into.
const DEPTH_MAX: usize = 8;

/// How files end that are looked at where a directory is named.
const ENDINGS: [&str; 2] = [".jsonl", ".jsonl.gz"];

/// One file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Whether somebody meant this one, and not just what is below a directory.
    pub(super) named: bool,
}

/// A file that can't be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) path: PathBuf,
    pub(super) error: String,
    pub(super) named: bool,
}

/// What people call the clients whose transcripts can be read.
pub(super) fn readable_clients() -> String {
    let readable = CLIENTS.iter().filter(|client| client.transcripts.is_some());
    readable.map(|client| client.title).collect::<Vec<_>>().join(" or ")
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<File>,
    /// How many were not written to in the time that was asked for.
    pub(super) older: usize,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Where to look.
pub(super) enum Places {
    /// What a person named.
    Named(Vec<PathBuf>),
    /// Where a client keeps its transcripts. It need not be there.
    Own(&'static Client, PathBuf),
}

impl File {
    /// The name of the sub-agent whose transcript this is.
    pub(super) fn agent(&self) -> Option<&str> {
        self.path.file_stem()?.to_str().filter(|name| name.starts_with("agent-"))
    }

    /// What it is called, without what its ending says of its format.
    pub(super) fn stem(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
        if stem.is_empty() { "run".to_owned() } else { stem.to_owned() }
    }
}

impl Places {
    /// What to call them.
    pub(super) fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Named(paths) => paths,
            Self::Own(_, path) => std::slice::from_ref(path),
        }
    }
}

/// Looks at every place; `since` is how many milliseconds back.
pub(super) fn find(places: &Places, since: Option<u64>) -> Found {
    let mut found = Found::default();
    let oldest = since.map(|ms| now().wall.as_ms().saturating_sub_unsigned(ms));
    match places {
        Places::Own(_, place) if place.exists() => found.below(place, oldest, 0),
        Places::Own(..) => {}
        Places::Named(paths) => paths.iter().for_each(|place| found.named(place, oldest)),
    }
    // What is named twice, or named and below a directory, is there once.
    found
        .files
        .sort_by(|one, other| one.path.cmp(&other.path).then_with(|| other.named.cmp(&one.named)));
    found.files.dedup_by(|one, other| one.path == other.path);
    found
}

impl Found {
    fn named(&mut self, place: &Path, oldest: Option<i64>) {
        let error = match fs::metadata(place) {
            Ok(metadata) if metadata.is_dir() => return self.below(place, oldest, 0),
            Ok(metadata) => return self.take(place, &metadata, oldest, true),
            Err(error) => error,
        };
        let session = (error.kind() == std::io::ErrorKind::NotFound).then(|| session(place));
        match session {
            Some(Ok(journal)) => match fs::metadata(&journal) {
                Ok(metadata) => self.take(&journal, &metadata, oldest, true),
                Err(error) => self.unreadable(&journal, error.to_string(), true),
            },
            Some(Err(error)) => self.unreadable(place, error, true),
            None => self.unreadable(place, error.to_string(), true),
        }
    }

    fn below(&mut self, directory: &Path, oldest: Option<i64>, depth: usize) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(directory, error.to_string(), depth == 0),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            // Links to directories are not followed: they may lead in a circle.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            if is_directory && depth < DEPTH_MAX {
                self.below(&path, oldest, depth + 1);
            } else if ENDINGS.iter().any(|ending| name.to_string_lossy().ends_with(ending)) {
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.is_file() => {
                        self.take(&path, &metadata, oldest, false);
                    }
                    Ok(_) => {}
                    Err(error) => self.unreadable(&path, error.to_string(), false),
                }
            }
        }
    }

    fn take(&mut self, path: &Path, metadata: &fs::Metadata, oldest: Option<i64>, named: bool) {
        let written = metadata.modified().ok().and_then(|time| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_millis()).ok()
        });
        if let (Some(written), Some(oldest)) = (written, oldest)
            && written < oldest
        {
            self.older += 1;
            return;
        }
        self.files.push(File { path: path.to_owned(), bytes: metadata.len(), named });
    }

    fn unreadable(&mut self, path: &Path, error: String, named: bool) {
        self.unreadable.push(Unreadable { path: path.to_owned(), error, named });
    }
}

/// The journal of the session that a name means.
fn session(name: &Path) -> Result<PathBuf, String> {
    let none = || "there is no such file, and no session of that name".to_owned();
    let name = name.to_str().ok_or_else(none)?;
    let (_, sessions) = sessions().map_err(|_| none())?;
    match sessions.select(Some(name), &here()) {
        Ok(found) => found.file().ok_or_else(none),
        Err(jackline_runtime::SelectError::Unknown(_)) => Err(none()),
        Err(error) => Err(error.to_string()),
    }
}
