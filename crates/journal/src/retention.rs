//! Old sessions make room for new ones.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jackline_engine::Timestamp;

use crate::error::StoreError;
use crate::file::{FileStore, write_private};
use crate::reader::read_first;

/// How often a store is tidied at most.
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The workspace whose sessions are counted.
    pub workspace: String,
    /// Its sessions above this size make room, oldest first.
    pub bytes: u64,
    /// Payloads older than this are removed. Sessions go by their own definition.
    pub days: u32,
}

struct Kept {
    directory: PathBuf,
    modified: SystemTime,
    bytes: u64,
    days: u32,
    workspace: Option<String>,
}

/// Removes what is too old or too much; gives the directories that were removed.
pub(crate) fn prune(
    store: &FileStore,
    keep: &Retention,
    now: Timestamp,
) -> Result<Vec<PathBuf>, StoreError> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_ms().unsigned_abs());
    let stamp = store.home().join("pruned");
    if age(&stamp, now).is_some_and(|age| age < PRUNE_EVERY) {
        return Ok(Vec::new());
    }
    write_private(&stamp, b"")?;

    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for directory in store.directories()? {
        let Some(session) = look(directory) else { continue };
        if is_older(session.modified, now, session.days) {
            removed.extend(remove(&session));
        } else if session.workspace.as_deref() == Some(&keep.workspace) {
            kept.push(session);
        }
    }
    kept.sort_by_key(|session| session.modified);
    let mut bytes: u64 = kept.iter().map(|session| session.bytes).sum();
    // The newest stays, whatever its size: it is the one at work.
    kept.pop();
    for session in kept {
        if bytes <= keep.bytes {
            break;
        }
        bytes -= session.bytes;
        removed.extend(remove(&session));
    }
    prune_blobs(&store.home().join("blobs"), now, keep);
    Ok(removed)
}

fn look(directory: PathBuf) -> Option<Kept> {
    let journal = directory.join("journal.jsonl");
    let modified = journal.metadata().and_then(|metadata| metadata.modified()).ok()?;
    // A journal that can't be read is evidence, and stays.
    let opened = read_first(&journal).ok()??;
    // Outputs that were too long to be shown lie one deeper, and what files were two.
    let undo = fs::read_dir(directory.join("undo")).into_iter().flatten().flatten();
    let undo: u64 = undo.map(|entry| held(&entry.path())).sum();
    let bytes = held(&directory) + held(&directory.join("spill")) + undo;
    let days = opened.definition.lowered.journal.retain_days;
    Some(Kept { directory, modified, bytes, days, workspace: opened.place.workspace })
}

/// How much the files of a directory hold.
fn held(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| size(&metadata)).sum()
}

/// Removes a session that nobody holds or has open.
fn remove(session: &Kept) -> Option<PathBuf> {
    let journal = File::open(session.directory.join("journal.jsonl")).ok()?;
    journal.try_lock().ok()?;
    if let Ok(state) = File::open(session.directory.join("state")) {
        state.try_lock().ok()?;
    }
    fs::remove_dir_all(&session.directory).ok()?;
    Some(session.directory.clone())
}

fn prune_blobs(directory: &Path, now: SystemTime, keep: &Retention) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut blobs: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, size(&metadata), entry.path()))
        })
        .collect();
    blobs.sort();
    let mut bytes: u64 = blobs.iter().map(|(_, bytes, _)| bytes).sum();
    for (modified, size, path) in blobs {
        if is_older(modified, now, keep.days) || bytes > keep.bytes {
            bytes -= size;
            let _ = fs::remove_file(path);
        }
    }
}

/// What a file takes on disk; the state has holes.
fn size(metadata: &fs::Metadata) -> u64 {
    metadata.blocks() * 512
}

fn is_older(modified: SystemTime, now: SystemTime, days: u32) -> bool {
    let limit = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    now.duration_since(modified).is_ok_and(|age| age > limit)
}

fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    now.duration_since(path.metadata().ok()?.modified().ok()?).ok()
}
