//! Finds recordings: named files, files that end in `.jsonl` or `.jsonl.gz` in named directories,
//! and sessions by their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jackline_clients::{CLIENTS, Client};
use jackline_host::clock::now;
use jackline_host::ensure_regular;

use crate::terminal::{current_directory, load_sessions};

/// The maximum depth of searched directories.
const DEPTH_MAX: usize = 8;

/// The endings of the files that a directory search finds.
const FILE_ENDINGS: [&str; 2] = [".jsonl", ".jsonl.gz"];

/// A file with recordings.
#[derive(Debug)]
pub(super) struct RecordedFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Whether the user named this file, and not only a directory that contains it.
    pub(super) named: bool,
}

/// A file that can't be read.
#[derive(Debug)]
pub(super) struct UnreadableFile {
    pub(super) path: PathBuf,
    pub(super) error: String,
    pub(super) named: bool,
}

/// The names of the clients with readable transcripts.
pub(super) fn readable_clients() -> String {
    let readable = CLIENTS.iter().filter(|client| client.transcripts.is_some());
    readable.map(|client| client.title).collect::<Vec<_>>().join(" or ")
}

/// The result of a search.
#[derive(Default)]
pub(super) struct RecordingSearch {
    pub(super) files: Vec<RecordedFile>,
    /// How many files were not modified within the requested time.
    pub(super) older: usize,
    pub(super) unreadable_files: Vec<UnreadableFile>,
}

/// The locations to search.
pub(super) enum SearchLocations {
    /// Paths that the user named.
    Named(Vec<PathBuf>),
    /// The directory in which a client stores its transcripts. It need not exist.
    Own(&'static Client, PathBuf),
}

impl RecordedFile {
    /// The name of the sub-agent, if this is its transcript.
    pub(super) fn agent(&self) -> Option<&str> {
        self.path.file_stem()?.to_str().filter(|name| name.starts_with("agent-"))
    }

    /// The file name without its ending.
    pub(super) fn stem(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
        if stem.is_empty() { "run".to_owned() } else { stem.to_owned() }
    }
}

impl SearchLocations {
    /// The searched paths.
    pub(super) fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Named(paths) => paths,
            Self::Own(_, path) => std::slice::from_ref(path),
        }
    }
}

/// Searches all locations for files that were modified in the last `since` milliseconds.
pub(super) fn find_recordings(places: &SearchLocations, since: Option<u64>) -> RecordingSearch {
    let mut found = RecordingSearch::default();
    let oldest = since.map(|ms| now().wall.as_ms().saturating_sub_unsigned(ms));
    match places {
        SearchLocations::Own(_, place) if place.exists() => {
            found.search_directory(place, oldest, 0);
        }
        SearchLocations::Own(..) => {}
        SearchLocations::Named(paths) => {
            paths.iter().for_each(|place| found.search_named(place, oldest));
        }
    }
    // A file that is named twice, or named and also in a named directory, is listed once.
    found
        .files
        .sort_by(|one, other| one.path.cmp(&other.path).then_with(|| other.named.cmp(&one.named)));
    found.files.dedup_by(|one, other| one.path == other.path);
    found
}

impl RecordingSearch {
    fn search_named(&mut self, place: &Path, oldest: Option<i64>) {
        let error = match fs::metadata(place) {
            Ok(metadata) if metadata.is_dir() => return self.search_directory(place, oldest, 0),
            Ok(metadata) => match ensure_regular(place) {
                Ok(()) => return self.add_file(place, &metadata, oldest, true),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let session =
            (error.kind() == std::io::ErrorKind::NotFound).then(|| journal_of_session(place));
        match session {
            Some(Ok(journal)) => match fs::metadata(&journal) {
                Ok(metadata) => self.add_file(&journal, &metadata, oldest, true),
                Err(error) => self.unreadable_files(&journal, error.to_string(), true),
            },
            Some(Err(error)) => self.unreadable_files(place, error, true),
            None => self.unreadable_files(place, error.to_string(), true),
        }
    }

    fn search_directory(&mut self, directory: &Path, oldest: Option<i64>, depth: usize) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable_files(directory, error.to_string(), depth == 0),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            // Links to directories are not followed, because they can form a cycle.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            if is_directory && depth < DEPTH_MAX {
                self.search_directory(&path, oldest, depth + 1);
            } else if FILE_ENDINGS.iter().any(|ending| name.to_string_lossy().ends_with(ending)) {
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.is_file() => {
                        self.add_file(&path, &metadata, oldest, false);
                    }
                    Ok(_) => {}
                    Err(error) => self.unreadable_files(&path, error.to_string(), false),
                }
            }
        }
    }

    fn add_file(&mut self, path: &Path, metadata: &fs::Metadata, oldest: Option<i64>, named: bool) {
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
        self.files.push(RecordedFile { path: path.to_owned(), bytes: metadata.len(), named });
    }

    fn unreadable_files(&mut self, path: &Path, error: String, named: bool) {
        self.unreadable_files.push(UnreadableFile { path: path.to_owned(), error, named });
    }
}

/// The journal of the session with a name.
fn journal_of_session(name: &Path) -> Result<PathBuf, String> {
    let not_found = || "no file and no session with this name".to_owned();
    let name = name.to_str().ok_or_else(not_found)?;
    let (_, sessions) = load_sessions().map_err(|_| not_found())?;
    match sessions.select(Some(name), &current_directory()) {
        Ok(found) => found.file().ok_or_else(not_found),
        Err(jackline_runtime::SelectError::Unknown(_)) => Err(not_found()),
        Err(error) => Err(error.to_string()),
    }
}
