//! Finds transcripts: files that end in `.jsonl`, or whatever is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jackline_runtime::now;

/// How deep directories are looked into.
const DEPTH_MAX: usize = 8;

/// One transcript.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<File>,
    /// How many were not written to in the time that was asked for.
    pub(super) older: usize,
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

impl File {
    /// The name of the sub-agent whose transcript this is.
    pub(super) fn agent(&self) -> Option<&str> {
        self.path.file_stem()?.to_str().filter(|name| name.starts_with("agent-"))
    }
}

/// Looks at every place; `since` is how many milliseconds back.
pub(super) fn find(places: &[PathBuf], since: Option<u64>) -> Found {
    let mut found = Found::default();
    let oldest = since.map(|ms| now().wall.as_ms().saturating_sub_unsigned(ms));
    for place in places {
        match fs::metadata(place) {
            Ok(metadata) if metadata.is_dir() => found.below(place, oldest, 0),
            Ok(metadata) => found.take(place, &metadata, oldest),
            // Where the client would keep them need not be there.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && places.len() == 1 => {}
            Err(error) => found.unreadable.push((place.clone(), error.to_string())),
        }
    }
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found.files.dedup_by(|one, other| one.path == other.path);
    found
}

impl Found {
    fn below(&mut self, directory: &Path, oldest: Option<i64>, depth: usize) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push((directory.to_owned(), error.to_string()));
                return;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            // Links to directories are not followed: they may lead in a circle.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < DEPTH_MAX {
                self.below(&path, oldest, depth + 1);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.is_file() => self.take(&path, &metadata, oldest),
                    Ok(_) => {}
                    Err(error) => self.unreadable.push((path, error.to_string())),
                }
            }
        }
    }

    fn take(&mut self, path: &Path, metadata: &fs::Metadata, oldest: Option<i64>) {
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
        self.files.push(File { path: path.to_owned(), bytes: metadata.len() });
    }
}
