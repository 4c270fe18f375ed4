//! Removes old sessions to make room for new ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jackline_engine::{Digest, SessionId, Timestamp};
use serde::Deserialize;

use crate::error::StoreError;
use crate::file_store::{FileStore, JOURNAL_FILE, journal_file, read_definition};
use crate::files::write_private;
use crate::session_entry::SessionEntry;

/// The shortest time between two runs.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);

/// How long an unused definition is stored.
const UNUSED_DEFINITION_AGE: Duration = Duration::from_hours(24);

/// The limits for stored data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The workspace whose sessions are counted.
    pub workspace: String,
    /// The total size above which its oldest sessions are removed.
    pub bytes: u64,
    /// Payloads older than this are removed. The age limit of a session is in its own definition.
    pub days: u32,
}

struct StoredSession {
    id: SessionId,
    directory: PathBuf,
    modified: SystemTime,
    bytes: u64,
    days: u32,
    workspace: Option<String>,
}

/// Removes old or excess data, and returns the removed sessions.
pub(crate) fn prune(
    store: &FileStore,
    keep: &Retention,
    now: Timestamp,
) -> Result<Vec<SessionId>, StoreError> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_ms().unsigned_abs());
    let stamp = store.home().join("pruned");
    if age(&stamp, now).is_some_and(|age| age < PRUNE_INTERVAL) {
        return Ok(Vec::new());
    }
    write_private(&stamp, b"")?;

    let mut removed = Vec::new();
    let mut remaining = Vec::new();
    let mut days = BTreeMap::new();
    for directory in store.directories()? {
        let Some(session) = read_session(directory, &mut days) else { continue };
        if is_older(session.modified, now, session.days) {
            removed.extend(remove_session(&session.directory).then(|| session.id.clone()));
        } else if session.workspace.as_deref() == Some(&keep.workspace) {
            remaining.push(session);
        }
    }
    remaining.sort_by_key(|session| session.modified);
    let mut bytes: u64 = remaining.iter().map(|session| session.bytes).sum();
    // The newest session stays, whatever its size, because it is in use.
    remaining.pop();
    for session in remaining {
        if bytes <= keep.bytes {
            break;
        }
        bytes -= session.bytes;
        removed.extend(remove_session(&session.directory).then(|| session.id.clone()));
    }
    prune_blobs(&store.home().join("blobs"), now, keep);
    prune_definitions(&store.home().join("definitions"), now);
    Ok(removed)
}

/// Reads the size and age limit of a session. `known` caches the age limit of each definition.
fn read_session(directory: PathBuf, known: &mut BTreeMap<Digest, u32>) -> Option<StoredSession> {
    let modified = journal_file(&directory).metadata().and_then(|it| it.modified()).ok()?;
    // A journal that can't be read is evidence, so it stays.
    let entry = SessionEntry::in_directory(directory.clone())?;
    let opened = entry.opening().ok()?;
    let bytes = session_bytes(&directory);
    let digest = opened.definition.lowered.digest();
    let days = match known.get(&digest) {
        Some(days) => *days,
        None => {
            let stored = read_definition(&directory, &digest).ok()??;
            let days = serde_json::from_slice::<RetainedDays>(&stored).ok()?.journal.retain_days;
            known.insert(digest, days);
            days
        }
    };
    let workspace = opened.place.workspace.clone();
    let id = opened.session.clone();
    Some(StoredSession { id, directory, modified, bytes, days, workspace })
}

/// The only value of a definition that is needed here.
#[derive(Deserialize)]
struct RetainedDays {
    journal: JournalDays,
}

#[derive(Deserialize)]
struct JournalDays {
    retain_days: u32,
}

/// The size of a session. Long outputs and earlier versions of files are in subdirectories.
pub(crate) fn session_bytes(directory: &Path) -> u64 {
    let undo = fs::read_dir(directory.join("undo")).into_iter().flatten().flatten();
    let undo: u64 = undo.map(|entry| directory_bytes(&entry.path())).sum();
    directory_bytes(directory) + directory_bytes(&directory.join("spill")) + undo
}

/// The size of the files in a directory.
fn directory_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|metadata| disk_bytes(&metadata))
        .sum()
}

/// Removes a session that no process has locked or open. Returns whether it did.
pub(crate) fn remove_session(directory: &Path) -> bool {
    let is_free = |name: &str| match File::open(directory.join(name)) {
        Ok(file) => file.try_lock().is_ok().then_some(file),
        Err(_) => None,
    };
    let Some(_journal) = is_free(JOURNAL_FILE) else { return false };
    let has_state = directory.join("state").exists();
    let state = if has_state { is_free("state") } else { None };
    (state.is_some() || !has_state) && fs::remove_dir_all(directory).is_ok()
}

/// Removes definitions that no journal refers to. Every session that uses a definition has a hard
/// link to its file. A new file stays, because a session may be about to link it.
fn prune_definitions(directory: &Path, now: SystemTime) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_definition = path.extension().is_some_and(|extension| extension == "json");
        let Ok(metadata) = entry.metadata() else { continue };
        let is_unused = metadata.nlink() == 1
            && age(&path, now).is_some_and(|age| age >= UNUSED_DEFINITION_AGE);
        if is_definition && is_unused {
            let _ = fs::remove_file(path);
        }
    }
}

fn prune_blobs(directory: &Path, now: SystemTime, keep: &Retention) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut blobs: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, disk_bytes(&metadata), entry.path()))
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

/// The size of a file on disk, because the state file has holes. A definition with several links
/// does not count.
fn disk_bytes(metadata: &fs::Metadata) -> u64 {
    if metadata.is_file() && metadata.nlink() > 1 { 0 } else { metadata.blocks() * 512 }
}

fn is_older(modified: SystemTime, now: SystemTime, days: u32) -> bool {
    let limit = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    now.duration_since(modified).is_ok_and(|age| age > limit)
}

fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    now.duration_since(path.metadata().ok()?.modified().ok()?).ok()
}
