//! What the product writes down while a scenario is played.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

use crate::place::Place;

/// How long each journal was when it was last looked at.
#[derive(Default)]
pub(crate) struct Journals {
    known: BTreeMap<PathBuf, u64>,
}

impl Journals {
    /// The events that were recorded in any journal since the last look.
    pub(crate) fn recorded(&mut self, place: &Place) -> Result<Vec<Value>, String> {
        let lines: Vec<Value> = self
            .grown(place)?
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("a journal holds what is not JSON: {error}"))?;
        Ok(lines.into_iter().filter(|line| text(line, "/record") == "event").collect())
    }

    /// Looks, and is not interested.
    pub(crate) fn skip(&mut self, place: &Place) -> Result<(), String> {
        self.grown(place).map(drop)
    }

    fn grown(&mut self, place: &Place) -> Result<String, String> {
        let mut added = String::new();
        let Ok(sessions) = fs::read_dir(place.home().join("sessions")) else {
            return Ok(added);
        };
        for session in sessions.flatten() {
            let path = session.path().join("journal.jsonl");
            let known = self.known.entry(path.clone()).or_default();
            let mut read = || {
                let mut file = fs::File::open(&path)?;
                file.seek(SeekFrom::Start(*known))?;
                file.read_to_string(&mut added)
            };
            let bytes = read().map_err(|e| format!("can't read `{}`: {e}", path.display()))?;
            *known += bytes as u64;
        }
        Ok(added)
    }
}

/// A text in a record; empty where there is none.
pub(crate) fn text<'a>(record: &'a Value, pointer: &str) -> &'a str {
    record.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
