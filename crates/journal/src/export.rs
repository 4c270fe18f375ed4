//! A session in one file: what it did in short, and its journal to the letter.
//!
//! The lines of the journal stand in it as texts, so that a program which sets the file anew
//! does not touch the bytes that were hashed. The definitions that records name stand in it, too,
//! so that it can be replayed anywhere. [`crate::JournalView`] reads an export like a journal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

use jackline_engine::trajectory::Step;
use jackline_engine::{Digest, ENGINE_VERSION, SEMANTICS, SessionId};
use serde::{Deserialize, Serialize};

use crate::error::{Context as _, StoreError};

/// The version of the file.
const VERSION: u32 = 2;

/// What every export says of itself.
const FORMAT: &str = "jackline-export";

/// How much of a file is looked at to see what it is.
const LOOK_BYTES: usize = 1024;

/// The longest export that is read; it is held in memory.
const BYTES_MAX: u64 = 1 << 30;

/// A session in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    format: String,
    version: u32,
    /// The engine that made it.
    pub engine: String,
    /// What that engine's verdicts mean.
    pub semantics: u32,
    /// The session.
    pub session_id: SessionId,
    /// The model, where anybody told.
    pub model_version: Option<String>,
    /// The hash of the system prompt, where the client shows it.
    pub prompt_hash: Option<String>,
    /// What was taken out before anything was written down.
    pub redacted: Redacted,
    /// What it did.
    pub trajectory: Vec<Step>,
    /// The journal, a record a line, without newlines.
    pub journal: Vec<String>,
    /// The stored forms of the definitions that records name. The name sorts behind `format`, so
    /// that a tool that sorts keys leaves the mark of an export at its beginning.
    #[serde(default)]
    pub stored_definitions: BTreeMap<Digest, String>,
}

/// What was taken out of a journal when it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redacted {
    /// In how many places something stands for a secret.
    pub places: u64,
    /// The same for people.
    pub note: String,
}

/// Why a file is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It ends too early.
    #[error("it is cut off: {0}")]
    Cut(String),
    /// It is not what an export looks like.
    #[error("it is no whole export: {0}")]
    Broken(String),
    /// A newer Jackline wrote it.
    #[error("it has version {0}, and this jackline knows up to {VERSION}; update jackline")]
    Newer(u32),
    /// It is too long to be held.
    #[error("it is longer than {} MB", BYTES_MAX >> 20)]
    TooLong,
}

/// The two fields that say whether the others can be understood.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

impl Export {
    /// What of an export is the same whatever it is of.
    pub fn new(session_id: SessionId, trajectory: Vec<Step>, journal: Vec<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            engine: ENGINE_VERSION.to_owned(),
            semantics: SEMANTICS,
            session_id,
            model_version: None,
            prompt_hash: None,
            redacted: Redacted::of(&journal),
            trajectory,
            journal,
            stored_definitions: BTreeMap::new(),
        }
    }

    /// Whether a file that begins so means to be an export. A record of a journal
    /// begins otherwise, whatever it is about.
    pub fn begins(bytes: &[u8]) -> bool {
        let bytes = bytes.trim_ascii_start();
        let bytes = bytes.get(..LOOK_BYTES).unwrap_or(bytes);
        let mark = FORMAT.as_bytes();
        bytes.starts_with(b"{")
            && !bytes.starts_with(br#"{"v":"#)
            && bytes.windows(mark.len()).any(|part| part == mark)
    }

    /// Reads one.
    pub fn parse(bytes: &[u8]) -> Result<Self, ExportError> {
        let fail = |error: serde_json::Error| {
            let text = error.to_string();
            if error.is_eof() { ExportError::Cut(text) } else { ExportError::Broken(text) }
        };
        let kind: Kind = serde_json::from_slice(bytes).map_err(fail)?;
        if kind.format != FORMAT {
            return Err(ExportError::Broken(format!("`format` is not `{FORMAT}`")));
        }
        if kind.version > VERSION {
            return Err(ExportError::Newer(kind.version));
        }
        let export: Self = serde_json::from_slice(bytes).map_err(fail)?;
        if export.journal.is_empty() {
            return Err(ExportError::Broken("there is no record in it".to_owned()));
        }
        Ok(export)
    }

    /// Reads one that is not longer than can be held.
    pub fn read(source: &mut impl Read) -> io::Result<Result<Self, ExportError>> {
        let mut bytes = Vec::new();
        source.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let fits = bytes.len() as u64 <= BYTES_MAX;
        Ok(if fits { Self::parse(&bytes) } else { Err(ExportError::TooLong) })
    }

    /// The text of the file: a step and a record a line, so that people can look at it.
    pub fn render(&self) -> String {
        let rows = |rows: Vec<String>| {
            let rows: Vec<String> = rows.iter().map(|row| format!("\n    {row}")).collect();
            format!("[{}\n  ]", rows.join(","))
        };
        let fields = [
            ("format", json(&self.format)),
            ("version", json(&self.version)),
            ("engine", json(&self.engine)),
            ("semantics", json(&self.semantics)),
            ("session_id", json(&self.session_id)),
            ("model_version", json(&self.model_version)),
            ("prompt_hash", json(&self.prompt_hash)),
            ("redacted", json(&self.redacted)),
            ("trajectory", rows(self.trajectory.iter().map(json).collect())),
            ("journal", rows(self.journal.iter().map(json).collect())),
            ("stored_definitions", json(&self.stored_definitions)),
        ];
        let fields = fields.map(|(name, value)| format!("  \"{name}\": {value}"));
        format!("{{\n{}\n}}\n", fields.join(",\n"))
    }

    /// The bytes of the journal.
    pub fn lines(&self) -> Vec<u8> {
        self.journal.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
    }
}

fn json(value: &impl Serialize) -> String {
    // Plain data with text keys has no way to fail to be JSON.
    serde_json::to_string(value).unwrap_or_default()
}

impl Redacted {
    /// Counts what stands for secrets in the lines of a journal.
    fn of(journal: &[String]) -> Self {
        let places = journal.iter().map(|line| line.matches("REDACTED").count() as u64).sum();
        let note = "secrets were replaced by REDACTED before they were hashed and written";
        Self { places, note: note.to_owned() }
    }
}

/// The export that a file holds, if it means to be one.
pub(crate) fn read(file: &File) -> Result<Option<Export>, StoreError> {
    let mut beginning = Vec::new();
    let mut source = file;
    source.take(LOOK_BYTES as u64).read_to_end(&mut beginning).context("read the file")?;
    source.seek(SeekFrom::Start(0)).context("read the file")?;
    if !Export::begins(&beginning) {
        return Ok(None);
    }
    let read = Export::read(&mut source).context("read the file")?;
    read.map(Some).map_err(|reason| StoreError::Export { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export() -> Export {
        let session = SessionId::parse("s").unwrap();
        let lines = ["{\"v\":1,\"a\":\"REDACTED-password\"}".to_owned(), "{\"v\":1}".to_owned()];
        Export::new(session, Vec::new(), lines.to_vec())
    }

    #[test]
    fn what_is_rendered_is_read_again_however_it_is_set() {
        let text = export().render();
        assert!(Export::begins(text.as_bytes()));
        assert_eq!(Export::parse(text.as_bytes()).unwrap(), export());
        assert_eq!(export().redacted.places, 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for other in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            assert!(Export::begins(other.as_bytes()), "{other}");
            assert_eq!(Export::parse(other.as_bytes()).unwrap(), export());
        }
        assert_eq!(export().lines(), format!("{}\n", export().journal.join("\n")).into_bytes());
    }

    #[test]
    fn a_file_is_an_export_only_if_it_says_so() {
        let text = export().render();
        for other in [
            "",
            "{}",
            "[\"jackline-export\"]",
            "jackline-export",
            "{\"v\":1,\"x\":\"jackline-export\"}",
        ] {
            assert!(!Export::begins(other.as_bytes()), "{other}");
        }
        for end in 1..text.trim_end().len() {
            let cut = Export::parse(&text.as_bytes()[..end]).unwrap_err();
            assert!(matches!(cut, ExportError::Cut(_)), "{end}: {cut}");
        }
        for (from, to) in [
            ("\"version\": 2", "\"version\": 3"),
            ("jackline-export", "somebody-else"),
            ("\"semantics\":", "\"semantik\":"),
            ("\"engine\":", "\"semantics\": 1, \"engine\":"),
            ("\"session_id\": \"s\"", "\"session_id\": 7"),
        ] {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text);
            let error = Export::parse(other.as_bytes()).unwrap_err();
            let newer = matches!(error, ExportError::Newer(3));
            assert!(newer || matches!(error, ExportError::Broken(_)), "{to}: {error}");
        }
    }
}
