//! Reads the journals that the product writes while a scenario is played.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

use crate::scenario_directories::ScenarioDirectories;

/// The length of each journal when it was last read.
#[derive(Default)]
pub(crate) struct JournalReader {
    offsets: BTreeMap<PathBuf, u64>,
}

impl JournalReader {
    /// The events that were recorded in any journal since the last read.
    pub(crate) fn recorded(&mut self, place: &ScenarioDirectories) -> Result<Vec<Value>, String> {
        let lines: Vec<Value> = self
            .read_new(place)?
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("a journal contains a line that is not JSON: {error}"))?;
        Ok(lines.into_iter().filter(|line| text_at(line, "/record") == "event").collect())
    }

    /// Skips the events since the last read.
    pub(crate) fn skip(&mut self, place: &ScenarioDirectories) -> Result<(), String> {
        self.read_new(place).map(drop)
    }

    fn read_new(&mut self, place: &ScenarioDirectories) -> Result<String, String> {
        let mut added = String::new();
        let Ok(sessions) = fs::read_dir(place.home().join("sessions")) else {
            return Ok(added);
        };
        for session in sessions.flatten() {
            let path = session.path().join("journal.jsonl");
            let offset = self.offsets.entry(path.clone()).or_default();
            let read = || {
                let mut file = fs::File::open(&path)?;
                file.seek(SeekFrom::Start(*offset))?;
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map(|_| bytes)
            };
            let mut bytes = match read() {
                Ok(bytes) => bytes,
                // A process that has just started creates the directory before the journal.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("can't read `{}`: {error}", path.display())),
            };
            // A process may be writing the last line now.
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            *offset += bytes.len() as u64;
            added.push_str(&String::from_utf8_lossy(&bytes));
        }
        Ok(added)
    }
}

/// A text in a record; empty if it is missing.
pub(crate) fn text_at<'a>(record: &'a Value, pointer: &str) -> &'a str {
    record.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
