//! `safety_log.json`: what the guards did about safety, for people.
//!
//! The file is a view; the journals are authoritative. It is read and replaced as a whole, so it is
//! always complete. The oldest events are removed first. An unreadable file is renamed, and a new
//! one begins with the next events.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use jackline_engine::SessionId;
use jackline_engine::verdict::SafetyEvent;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::create_people_directory;
use crate::restore;

/// The path of the file in a workspace.
pub const SAFETY_LOG: &str = ".jackline/safety_log.json";

/// The largest number of events.
const EVENTS_MAX: usize = 1000;

/// The largest file that is read.
const BYTES_MAX: u64 = 4 << 20;

/// How often, and how long each time, this waits for another session of the workspace. The total is
/// enough for dozens of sessions, because an event that is not added is missing from the log. Any
/// program can hold the lock, so the wait is bounded.
const LOCK_TRIES: u32 = 1000;
const LOCK_TRY_INTERVAL: Duration = Duration::from_millis(2);

/// An event and the record that contains it.
pub(crate) struct SafetyLogEntry<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) seq: u64,
    pub(crate) event: &'a SafetyEvent,
}

#[derive(Default, Serialize, Deserialize)]
struct SafetyLog {
    events: Vec<SafetyEvent>,
}

/// Adds events to the log.
pub(crate) fn add<'a>(
    workspace: &Path,
    entries: impl Iterator<Item = SafetyLogEntry<'a>>,
) -> Result<(), String> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    replace(workspace, entries).map_err(|error| format!("`{SAFETY_LOG}`: {error}"))
}

fn replace<'a>(
    workspace: &Path,
    entries: impl Iterator<Item = SafetyLogEntry<'a>>,
) -> io::Result<()> {
    let people = create_people_directory(workspace)?;
    let lock = File::open(&people)?;
    lock_directory(&lock)?;
    let path = workspace.join(SAFETY_LOG);
    let mut log = read(&path)?.unwrap_or_default();
    log.events.extend(entries.map(|SafetyLogEntry { session, seq, event }| {
        let mut event = event.clone();
        event.details.insert("session".to_owned(), json!(session));
        event.details.insert("record".to_owned(), json!(seq));
        event
    }));
    let passed = log.events.len().saturating_sub(EVENTS_MAX);
    log.events.drain(..passed);
    let mut text = serde_json::to_vec_pretty(&log)?;
    text.push(b'\n');
    restore::write(&path, &text, restore::PRIVATE_MODE)
}

fn lock_directory(directory: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_TRY_INTERVAL),
            taken => return Ok(taken?),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another program has locked `.jackline`"))
}

/// Reads the log. An invalid file is renamed, so its contents are not lost.
fn read(path: &Path) -> io::Result<Option<SafetyLog>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if found.is_file() && found.len() <= BYTES_MAX => {
            let read = fs::read(path)?;
            if let Ok(log) = serde_json::from_slice(&read) {
                return Ok(Some(log));
            }
        }
        Ok(_) => {}
    }
    restore::rename_aside(path)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use jackline_engine::Timestamp;
    use jackline_engine::verdict::{SafetyAction, SafetyKind};
    use serde_json::Value;

    use super::*;

    fn event(number: i64) -> SafetyEvent {
        SafetyEvent {
            timestamp: Timestamp::from_ms(number * 1000),
            kind: SafetyKind::Control,
            details: [("action".to_owned(), json!("pause"))].into(),
            action_taken: SafetyAction::Paused,
        }
    }

    fn put(root: &Path, events: &[SafetyEvent]) -> Result<(), String> {
        let session = SessionId::parse("s").unwrap();
        add(
            root,
            (1..).zip(events).map(|(seq, event)| SafetyLogEntry { session: &session, seq, event }),
        )
    }

    fn there(root: &Path) -> Value {
        serde_json::from_slice(&fs::read(root.join(SAFETY_LOG)).unwrap()).unwrap()
    }

    #[test]
    fn it_has_the_shape_that_people_know() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), &[]).unwrap();
        assert!(!root.path().join(".jackline").exists(), "without events there is no directory");
        put(root.path(), &[event(0)]).unwrap();
        let first = json!({
            "timestamp": "1970-01-01T00:00:00Z",
            "type": "CONTROL",
            "details": {"action": "pause", "session": "s", "record": 1},
            "action_taken": "paused",
        });
        assert_eq!(there(root.path()), json!({"events": [first]}));
        assert_eq!(fs::read_to_string(root.path().join(".jackline/.gitignore")).unwrap(), "*\n");
        put(root.path(), &[event(1)]).unwrap();
        assert_eq!(there(root.path())["events"][1]["timestamp"], "1970-01-01T00:00:01Z");
    }

    #[test]
    fn the_oldest_events_are_removed_first() {
        let root = tempfile::tempdir().unwrap();
        let many: Vec<SafetyEvent> = (0..1200).map(event).collect();
        put(root.path(), &many).unwrap();
        let events = there(root.path())["events"].as_array().unwrap().clone();
        assert_eq!((events.len(), &events[0]["timestamp"]), (1000, &json!("1970-01-01T00:03:20Z")));
    }

    #[test]
    fn an_invalid_log_is_renamed() {
        let root = tempfile::tempdir().unwrap();
        let people = root.path().join(".jackline");
        fs::create_dir(&people).unwrap();
        fs::write(root.path().join(SAFETY_LOG), "{\"events\": [").unwrap();
        put(root.path(), &[event(0)]).unwrap();
        assert_eq!(there(root.path())["events"].as_array().unwrap().len(), 1);
        let aside = people.join("safety_log.json.replaced-1");
        assert_eq!(fs::read_to_string(aside).unwrap(), "{\"events\": [");
        fs::remove_file(root.path().join(SAFETY_LOG)).unwrap();
        fs::create_dir(root.path().join(SAFETY_LOG)).unwrap();
        put(root.path(), &[event(0)]).unwrap();
        assert_eq!(there(root.path())["events"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_wait_for_the_lock_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), &[event(0)]).unwrap();
        let people = File::open(root.path().join(".jackline")).unwrap();
        flock(&people, FlockOperation::LockExclusive).unwrap();
        let message = put(root.path(), &[event(1)]).unwrap_err();
        assert_eq!(message, "`.jackline/safety_log.json`: another program has locked `.jackline`");
        drop(people);
        put(root.path(), &[event(1)]).unwrap();
        assert_eq!(there(root.path())["events"].as_array().unwrap().len(), 2);
    }

    /// Each session holds the lock while it writes a file. An unlucky session waits for all the
    /// others several times.
    #[test]
    fn sessions_that_write_at_once_lose_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..16).for_each(|n| put(root.path(), &[event(n)]).unwrap()));
            }
        });
        assert_eq!(there(root.path())["events"].as_array().unwrap().len(), 128);
    }

    #[test]
    fn an_impossible_path_is_reported() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".jackline"), "").unwrap();
        let message = put(root.path(), &[event(0)]).unwrap_err();
        assert_eq!(message, "`.jackline/safety_log.json`: `.jackline` is not a directory");
    }
}
