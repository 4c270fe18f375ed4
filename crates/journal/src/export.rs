//! The export of a session to one file: a summary of its steps, and the exact lines of its journal.
//!
//! The lines of the journal are JSON strings, so that a program that reformats the file does not
//! change the bytes that were hashed. The file also contains the definitions that records refer to,
//! so it can be replayed on any machine. [`crate::JournalView`] reads an export like a journal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

use jackline_engine::trajectory::TrajectoryStep;
use jackline_engine::{Digest, ENGINE_VERSION, SEMANTICS, SessionId};
use serde::{Deserialize, Serialize};

use crate::error::{IoContext as _, StoreError};

/// The version of the file format.
const VERSION: u32 = 2;

/// The value of `format` in every export.
const FORMAT: &str = "jackline-export";

/// How many bytes at the beginning of a file are checked.
const PREFIX_BYTES: usize = 1024;

/// The longest export that is read, because it is loaded into memory.
const EXPORT_BYTES_MAX: u64 = 1 << 30;

/// The export of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    format: String,
    version: u32,
    /// The engine that created the export.
    pub engine: String,
    /// The semantics version of that engine's verdicts.
    pub semantics: u32,
    /// The session.
    pub session_id: SessionId,
    /// The model, if it is known.
    pub model_version: Option<String>,
    /// The hash of the system prompt, if the client provides it.
    pub prompt_hash: Option<String>,
    /// The redactions that were made before the journal was written.
    pub redacted: RedactionSummary,
    /// The steps of the session.
    pub trajectory: Vec<TrajectoryStep>,
    /// The records of the journal, without newlines.
    pub journal: Vec<String>,
    /// The stored forms of the definitions that records refer to. The name sorts after `format`, so
    /// that a tool that sorts keys keeps `format` near the beginning of the file.
    #[serde(default)]
    pub stored_definitions: BTreeMap<Digest, String>,
}

/// The redactions in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionSummary {
    /// The number of places with a replaced secret.
    pub places: u64,
    /// An explanation for people.
    pub note: String,
}

/// Why a file is not a valid export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is truncated.
    #[error("it is truncated: {0}")]
    Truncated(String),
    /// It does not have the structure of an export.
    #[error("it is not a complete export: {0}")]
    Broken(String),
    /// A newer version of Jackline wrote it.
    #[error(
        "it has version {0}, but this jackline supports only versions up to {VERSION}; update jackline"
    )]
    Newer(u32),
    /// It does not fit into memory.
    #[error("it is larger than {} MB", EXPORT_BYTES_MAX >> 20)]
    TooLong,
}

/// The two fields that show whether the other fields can be parsed.
#[derive(Deserialize)]
struct ExportHeader {
    format: String,
    version: u32,
}

impl Export {
    /// An export with the fields that all exports share.
    pub fn new(
        session_id: SessionId,
        trajectory: Vec<TrajectoryStep>,
        journal: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            engine: ENGINE_VERSION.to_owned(),
            semantics: SEMANTICS,
            session_id,
            model_version: None,
            prompt_hash: None,
            redacted: RedactionSummary::of(&journal),
            trajectory,
            journal,
            stored_definitions: BTreeMap::new(),
        }
    }

    /// Whether a file with these first bytes claims to be an export. A journal record never begins
    /// like this.
    pub fn is_export(bytes: &[u8]) -> bool {
        let bytes = bytes.trim_ascii_start();
        let bytes = bytes.get(..PREFIX_BYTES).unwrap_or(bytes);
        let mark = FORMAT.as_bytes();
        bytes.starts_with(b"{")
            && !bytes.starts_with(br#"{"v":"#)
            && bytes.windows(mark.len()).any(|part| part == mark)
    }

    /// Parses an export.
    pub fn parse(bytes: &[u8]) -> Result<Self, ExportError> {
        let fail = |error: serde_json::Error| {
            let text = error.to_string();
            if error.is_eof() { ExportError::Truncated(text) } else { ExportError::Broken(text) }
        };
        let kind: ExportHeader = serde_json::from_slice(bytes).map_err(fail)?;
        if kind.format != FORMAT {
            return Err(ExportError::Broken(format!("`format` is not `{FORMAT}`")));
        }
        if kind.version > VERSION {
            return Err(ExportError::Newer(kind.version));
        }
        let export: Self = serde_json::from_slice(bytes).map_err(fail)?;
        if export.journal.is_empty() {
            return Err(ExportError::Broken("it contains no record".to_owned()));
        }
        Ok(export)
    }

    /// Reads an export up to the maximum size.
    pub fn read(source: &mut impl Read) -> io::Result<Result<Self, ExportError>> {
        let mut bytes = Vec::new();
        source.take(EXPORT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let fits = bytes.len() as u64 <= EXPORT_BYTES_MAX;
        Ok(if fits { Self::parse(&bytes) } else { Err(ExportError::TooLong) })
    }

    /// The text of the file, with one step or record per line, so that people can read it.
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
    // Serializing plain data with text keys can't fail.
    serde_json::to_string(value).unwrap_or_default()
}

impl RedactionSummary {
    /// Counts the replaced secrets in the lines of a journal.
    fn of(journal: &[String]) -> Self {
        let places = journal.iter().map(|line| line.matches("REDACTED").count() as u64).sum();
        let note = "secrets were replaced by REDACTED before they were hashed and written";
        Self { places, note: note.to_owned() }
    }
}

/// The export in a file, if the file claims to be one.
pub(crate) fn read_export(file: &File) -> Result<Option<Export>, StoreError> {
    let mut beginning = Vec::new();
    let mut source = file;
    source.take(PREFIX_BYTES as u64).read_to_end(&mut beginning).context("read the file")?;
    source.seek(SeekFrom::Start(0)).context("read the file")?;
    if !Export::is_export(&beginning) {
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
    fn a_rendered_export_is_parsed_in_any_formatting() {
        let text = export().render();
        assert!(Export::is_export(text.as_bytes()));
        assert_eq!(Export::parse(text.as_bytes()).unwrap(), export());
        assert_eq!(export().redacted.places, 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for other in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            assert!(Export::is_export(other.as_bytes()), "{other}");
            assert_eq!(Export::parse(other.as_bytes()).unwrap(), export());
        }
        assert_eq!(export().lines(), format!("{}\n", export().journal.join("\n")).into_bytes());
    }

    #[test]
    fn a_file_is_an_export_only_with_its_format_mark() {
        let text = export().render();
        for other in [
            "",
            "{}",
            "[\"jackline-export\"]",
            "jackline-export",
            "{\"v\":1,\"x\":\"jackline-export\"}",
        ] {
            assert!(!Export::is_export(other.as_bytes()), "{other}");
        }
        for end in 1..text.trim_end().len() {
            let cut = Export::parse(&text.as_bytes()[..end]).unwrap_err();
            assert!(matches!(cut, ExportError::Truncated(_)), "{end}: {cut}");
        }
        for (from, to) in [
            ("\"version\": 2", "\"version\": 3"),
            ("jackline-export", "something-else"),
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
