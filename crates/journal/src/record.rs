//! The contents of a journal line.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::facts::ReloadFact;
use jackline_engine::{
    Definition, Digest, ENGINE_VERSION, Event, EventId, Facts, FaultKind, Record, SEMANTICS,
    SessionId, SessionLocation, Timestamp, Verdict, wire,
};

use crate::error::StoreError;

/// The version of the journal's lines.
const VERSION: u32 = 1;

/// A record before sealing: a JSON object without its last brace.
#[derive(Debug, Clone)]
pub struct RecordBody {
    /// The JSON without the last brace.
    pub json: Vec<u8>,
    /// The sequence number of the record.
    pub seq: u64,
    /// The event id, by which a resend is recognised.
    pub id: Option<EventId>,
}

/// Why a line with a valid hash can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can't parse record {seq}: {reason}")]
pub struct RecordError {
    /// The record number, if it is known.
    pub seq: String,
    /// The reason.
    pub reason: String,
}

/// The first record: the definition and location with which the session was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningRecord {
    /// The session.
    pub session: SessionId,
    /// The time of opening.
    pub at: Timestamp,
    /// The location of the session.
    pub place: SessionLocation,
    /// The definition in force.
    pub definition: OpenedDefinition,
}

/// The definition with which a session was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedDefinition {
    /// The SHA-256 of its source files.
    pub checksum: Digest,
    /// The definition for the engine. The record contains its digest, and the store contains its
    /// stored form.
    pub lowered: StoredDefinition,
}

/// An event and its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// The sequence number.
    pub seq: u64,
    /// The version of the engine that decided.
    pub engine: String,
    /// The semantics version of that engine's verdicts.
    pub semantics: u32,
    /// The event.
    pub event: Event,
    /// The facts on which the decision depends.
    pub facts: Facts,
    /// The verdict.
    pub verdict: Verdict,
    /// The exact JSON of the verdict.
    pub verdict_json: String,
    /// Additional notes, which no decision uses.
    pub notes: Vec<JournalNote>,
    /// The state after this record. Only some records have it.
    pub snapshot: Option<Snapshot>,
}

/// A saved session state inside the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The complete state.
    pub state: Vec<u8>,
    /// The reloaded definition, if it is not the one from the opening.
    pub reloaded: Option<ReloadedDefinition>,
}

/// The definition of a session after a person reloaded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadedDefinition {
    /// The location of the session, with the files of that definition.
    pub place: SessionLocation,
    /// The definition.
    pub definition: OpenedDefinition,
}

impl EventRecord {
    /// The record in the form that the engine applies.
    pub fn as_record(&self) -> Record<'_> {
        Record { seq: self.seq, event: &self.event, facts: &self.facts, verdict: &self.verdict }
    }
}

/// Information in a record that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum JournalNote {
    /// An incomplete record at the end was removed.
    Repaired {
        /// Its length.
        bytes: u64,
    },
    /// The guard could not answer, so it denied.
    Fault {
        /// The kind of fault.
        kind: FaultKind,
        /// The reason.
        reason: String,
    },
    /// A line was not a valid event, so it was denied.
    Malformed {
        /// The line number in the stream, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// A protected file was restored.
    GivenBack {
        /// The path of the file.
        path: String,
        /// The digest of the stored copy of the changed version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Digest>,
    },
    /// The descriptions of a server's tools have changed.
    ToolsChanged {
        /// The names of the tools.
        tools: Vec<String>,
    },
    /// There were more notes than a record can contain.
    Dropped {
        /// The number of dropped notes.
        count: u64,
    },
}

#[derive(Serialize)]
struct OpenedLine<'a> {
    v: u32,
    seq: u64,
    record: &'a str,
    engine: &'a str,
    semantics: u32,
    #[serde(flatten)]
    opened: &'a OpeningRecord,
}

#[derive(Serialize)]
struct EventLine<'a> {
    v: u32,
    seq: u64,
    record: &'a str,
    engine: &'a str,
    semantics: u32,
    event: &'a Event,
    facts: &'a Facts,
    verdict: &'a RawValue,
    #[serde(skip_serializing_if = "<[JournalNote]>::is_empty")]
    notes: &'a [JournalNote],
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reloaded: Option<&'a ReloadedDefinition>,
}

impl RecordBody {
    /// The first record of a journal.
    pub fn opened(opened: &OpeningRecord) -> Self {
        let line = OpenedLine {
            v: VERSION,
            seq: 0,
            record: "opened",
            engine: ENGINE_VERSION,
            semantics: SEMANTICS,
            opened,
        };
        Self { json: json_without_brace(&line), seq: 0, id: None }
    }

    /// The record of an event. `verdict` is the JSON that adapters show.
    pub fn event(
        seq: u64,
        event: &Event,
        facts: &Facts,
        verdict: &RawValue,
        notes: &[JournalNote],
        snapshot: Option<&Snapshot>,
    ) -> Self {
        let line = EventLine {
            v: VERSION,
            seq,
            record: "event",
            engine: ENGINE_VERSION,
            semantics: SEMANTICS,
            event,
            facts,
            verdict,
            notes,
            snapshot: snapshot.map(|snapshot| to_hex(&snapshot.state)),
            reloaded: snapshot.and_then(|snapshot| snapshot.reloaded.as_ref()),
        };
        Self { json: json_without_brace(&line), seq, id: event.id.clone() }
    }
}

fn json_without_brace(line: &impl Serialize) -> Vec<u8> {
    // Serializing plain data with text keys can't fail.
    let mut json = serde_json::to_vec(line).unwrap_or_default();
    json.pop();
    json
}

/// The bytes in the line of every record with a snapshot.
pub(crate) const SNAPSHOT_MARKER: &[u8] = br#","snapshot":""#;

/// The two kinds of journal lines.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalLine {
    /// The first record.
    Opened(Box<OpeningRecord>),
    /// All other records.
    Event(Box<EventRecord>),
}

impl JournalLine {
    /// Loads the definitions that the record refers to, so that the record can be applied to a
    /// session.
    pub fn load_definitions(
        &mut self,
        load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Opened(opened) => opened.definition.load(load),
            Self::Event(record) => record.load_definitions(load),
        }
    }
}

impl OpenedDefinition {
    /// Loads the definition if it is not loaded yet.
    pub fn load(
        &mut self,
        load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<(), StoreError> {
        load_stored(&mut self.lowered, load)
    }
}

impl EventRecord {
    /// Loads the reloaded definition in the record, and the one in its snapshot.
    pub fn load_definitions(
        &mut self,
        mut load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(ReloadFact::New(new)) = &mut self.facts.reload {
            load_stored(&mut new.lowered, &mut load)?;
        }
        let snapshot = self.snapshot.as_mut().and_then(|snapshot| snapshot.reloaded.as_mut());
        snapshot.map_or(Ok(()), |reloaded| reloaded.definition.load(load))
    }
}

fn load_stored(
    stored: &mut StoredDefinition,
    mut load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
) -> Result<(), StoreError> {
    if stored.definition().is_none() {
        let digest = stored.digest();
        *stored = StoredDefinition::with_digest(digest, load(&digest)?);
    }
    Ok(())
}

#[derive(Deserialize)]
struct RawLine<'a> {
    v: u32,
    seq: u64,
    record: String,
    engine: String,
    semantics: u32,
    #[serde(default, borrow)]
    event: Option<&'a RawValue>,
    #[serde(default, borrow)]
    facts: Option<&'a RawValue>,
    #[serde(default, borrow)]
    verdict: Option<&'a RawValue>,
    #[serde(default)]
    notes: Vec<JournalNote>,
    #[serde(default)]
    snapshot: Option<String>,
    #[serde(default)]
    reloaded: Option<ReloadedDefinition>,
    #[serde(default)]
    session: Option<SessionId>,
    #[serde(default)]
    at: Option<Timestamp>,
    #[serde(default)]
    place: Option<SessionLocation>,
    #[serde(default)]
    definition: Option<OpenedDefinition>,
}

/// Parses a line whose hash was checked.
pub fn parse_record(line: &[u8]) -> Result<JournalLine, RecordError> {
    let seq = crate::chain::parse_seq(line).map_or_else(|| "?".to_owned(), |n| n.to_string());
    let fail = |reason: String| RecordError { seq: seq.clone(), reason };
    // The hash is valid, so the line is unchanged. It may be from a version that writes another
    // format.
    let other_format = |error: serde_json::Error| {
        fail(format!(
            "{error}; if another version of jackline wrote this record, read it with that version; \
             the journal is unchanged"
        ))
    };
    let raw: RawLine<'_> = serde_json::from_slice(line).map_err(other_format)?;
    if raw.v > VERSION {
        return Err(fail(format!("it has version {}; update jackline", raw.v)));
    }
    let missing = |what: &str| fail(format!("`{what}` is missing"));
    match raw.record.as_str() {
        "opened" => Ok(JournalLine::Opened(Box::new(OpeningRecord {
            session: raw.session.ok_or_else(|| missing("session"))?,
            at: raw.at.ok_or_else(|| missing("at"))?,
            place: raw.place.ok_or_else(|| missing("place"))?,
            definition: raw.definition.ok_or_else(|| missing("definition"))?,
        }))),
        "event" => {
            let event = raw.event.ok_or_else(|| missing("event"))?;
            let event: Value =
                serde_json::from_str(event.get()).map_err(|e| fail(e.to_string()))?;
            let facts = raw.facts.ok_or_else(|| missing("facts"))?;
            let verdict = raw.verdict.ok_or_else(|| missing("verdict"))?;
            let snapshot = raw.snapshot.map(|hex| {
                let state = from_hex(&hex)
                    .ok_or_else(|| fail("the snapshot is not valid hexadecimal".to_owned()))?;
                Ok(Snapshot { state, reloaded: raw.reloaded })
            });
            let record = EventRecord {
                seq: raw.seq,
                engine: raw.engine,
                semantics: raw.semantics,
                event: wire::parse_recorded(event).map_err(|e| fail(e.to_string()))?,
                facts: serde_json::from_str(facts.get()).map_err(|e| fail(e.to_string()))?,
                verdict: serde_json::from_str(verdict.get()).map_err(|e| fail(e.to_string()))?,
                verdict_json: verdict.get().to_owned(),
                notes: raw.notes,
                snapshot: snapshot.transpose()?,
            };
            if record.as_record().lacks_definition() {
                return Err(fail("the definition that it puts in force is missing".to_owned()));
            }
            Ok(JournalLine::Event(Box::new(record)))
        }
        other => Err(fail(format!("`{other}` is not a kind of record; update jackline"))),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|n| u8::try_from(n).ok());
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
