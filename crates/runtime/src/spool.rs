//! Faults that were answered and could not be written down yet.
//!
//! Where every event is a process of its own, a denial because the guard is
//! broken would be forgotten with the process. So it is kept in a small file
//! beside the sessions, and journalled with the next event that can be.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::SessionId;
use jackline_journal::{Note, directory_name};
use serde::{Deserialize, Serialize};

use crate::home::state_home;
use crate::redact::redact_text;

/// How much of what could not be written down is kept for a session.
const SPOOL_BYTES_MAX: u64 = 16 << 10;

/// The file for faults of which nobody knows the session.
const NAMELESS: &str = "_";

/// One line of a spool.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Note>,
    /// Whether the agent stopped, and no gate could look.
    #[serde(default)]
    stopped: bool,
}

/// What an earlier process left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) notes: Vec<Note>,
    pub(crate) stopped: bool,
    /// The files it lay in, and how long they were.
    files: Vec<(PathBuf, u64)>,
}

impl Left {
    /// Reads what was left for a session. What can't be read is passed over.
    pub(crate) fn read(places: &[PathBuf], session: &SessionId) -> Self {
        let mut left = Self::default();
        for place in places {
            for name in [directory_name(session).as_str(), NAMELESS] {
                left.read_file(place.join("faults").join(name));
            }
        }
        left
    }

    fn read_file(&mut self, path: PathBuf) {
        let Ok(file) = fs::File::open(&path) else { return };
        let mut text = String::new();
        let Ok(bytes) = file.take(SPOOL_BYTES_MAX).read_to_string(&mut text) else { return };
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            self.notes.extend(line.fault);
            self.stopped |= line.stopped;
        }
        self.files.push((path, bytes as u64));
    }

    /// Forgets what has been journalled. A file that has grown meanwhile stays,
    /// and some of it is journalled twice: better than never.
    pub(crate) fn remove(&mut self) {
        for (path, bytes) in self.files.drain(..) {
            if path.metadata().is_ok_and(|found| found.len() == bytes) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Where they are kept.
pub(crate) fn places() -> Vec<PathBuf> {
    state_home().into_iter().collect()
}

/// Keeps a fault for the next process, where there is no runtime to do it.
pub fn keep_fault(session: Option<&SessionId>, kind: &str, reason: &str, stopped: bool) {
    let reason = redact_text(reason).unwrap_or_else(|| reason.to_owned());
    let fault = Note::Fault { kind: kind.to_owned(), reason };
    keep(&places(), session, vec![fault], stopped);
}

/// Keeps faults for the next process, in the first place that takes them.
pub(crate) fn keep(
    places: &[PathBuf],
    session: Option<&SessionId>,
    faults: Vec<Note>,
    stopped: bool,
) {
    let mut lines: Vec<Line> =
        faults.into_iter().map(|fault| Line { fault: Some(fault), stopped: false }).collect();
    if stopped {
        lines.push(Line { fault: None, stopped });
    }
    let text: String = lines
        .iter()
        .filter_map(|line| serde_json::to_string(line).ok())
        .fold(String::new(), |text, line| text + &line + "\n");
    let name = session.map_or_else(|| NAMELESS.to_owned(), directory_name);
    if !text.is_empty() {
        // A guard that is broken and can't say so anywhere has still denied.
        let _ = places.iter().any(|place| append(&place.join("faults"), &name, &text).is_ok());
    }
}

fn append(directory: &Path, name: &str, text: &str) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o600).open(directory.join(name))?;
    if file.metadata()?.len() < SPOOL_BYTES_MAX {
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}
