//! What a line of the journal says.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::facts::ReloadFact;
use jackline_engine::{
    Definition, Digest, ENGINE_VERSION, Event, EventId, Facts, FaultKind, Place, Record, SEMANTICS,
    SessionId, Timestamp, Verdict, wire,
};

use crate::error::StoreError;

/// The version of the journal's lines.
const VERSION: u32 = 1;

/// A record ready to be sealed: a JSON object without its last brace.
#[derive(Debug, Clone)]
pub struct Body {
    /// The JSON so far.
    pub json: Vec<u8>,
    /// The number of the record.
    pub seq: u64,
    /// The id under which a resend is recognised.
    pub id: Option<EventId>,
}

/// Why a line can't be understood although its hash fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} can't be understood: {reason}")]
pub struct RecordError {
    /// The record, as far as it can be named.
    pub seq: String,
    /// What does not fit.
    pub reason: String,
}

/// The first record: what the session was opened with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// The session.
    pub session: SessionId,
    /// When it was opened.
    pub at: Timestamp,
    /// Where the agent works.
    pub place: Place,
    /// The guardrails in force.
    pub definition: OpenedDefinition,
}

/// The definition a session was opened with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedDefinition {
    /// The sha256 of its sources.
    pub checksum: Digest,
    /// What the engine runs on. The record names it, and the store keeps it.
    pub lowered: StoredDefinition,
}

/// An event and what was decided on it.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// Its number.
    pub seq: u64,
    /// The engine that decided.
    pub engine: String,
    /// What that engine's verdicts mean.
    pub semantics: u32,
    /// What happened.
    pub event: Event,
    /// What the decision rested on.
    pub facts: Facts,
    /// What was decided.
    pub verdict: Verdict,
    /// The exact bytes of the verdict.
    pub verdict_json: String,
    /// What else happened, never decided on.
    pub notes: Vec<Note>,
    /// The state after this record, on some records.
    pub snapshot: Option<Snapshot>,
}

/// The state of a session in its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// All of it.
    pub state: Vec<u8>,
    /// What the session runs under, where that is not what it was opened with.
    pub reloaded: Option<ReloadedDefinition>,
}

/// What a session runs under since a person put another definition in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadedDefinition {
    /// Where the agent works, with the files of that definition.
    pub place: Place,
    /// The definition.
    pub definition: OpenedDefinition,
}

impl EventRecord {
    /// The record as the engine folds it.
    pub fn as_record(&self) -> Record<'_> {
        Record { seq: self.seq, event: &self.event, facts: &self.facts, verdict: &self.verdict }
    }
}

/// Something worth knowing that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// A torn tail was removed.
    Repaired {
        /// How long it was.
        bytes: u64,
    },
    /// The guard could not answer, and denied.
    Fault {
        /// The kind of fault.
        kind: FaultKind,
        /// What happened.
        reason: String,
    },
    /// A line was no event, and was denied.
    Malformed {
        /// The line of the stream, from 1.
        line: u64,
        /// What was wrong with it.
        reason: String,
    },
    /// A protected file was given back as it was.
    GivenBack {
        /// The file.
        path: String,
        /// Where the changed version is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Digest>,
    },
    /// Tools of a server are described otherwise than before.
    ToolsChanged {
        /// Their names.
        tools: Vec<String>,
    },
    /// More notes were made than a record holds.
    Dropped {
        /// How many.
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
    opened: &'a Opened,
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
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reloaded: Option<&'a ReloadedDefinition>,
}

impl Body {
    /// The first record of a journal.
    pub fn opened(opened: &Opened) -> Self {
        let line = OpenedLine {
            v: VERSION,
            seq: 0,
            record: "opened",
            engine: ENGINE_VERSION,
            semantics: SEMANTICS,
            opened,
        };
        Self { json: without_brace(&line), seq: 0, id: None }
    }

    /// The record of an event. `verdict` is the JSON that adapters will show.
    pub fn event(
        seq: u64,
        event: &Event,
        facts: &Facts,
        verdict: &RawValue,
        notes: &[Note],
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
        Self { json: without_brace(&line), seq, id: event.id.clone() }
    }
}

fn without_brace(line: &impl Serialize) -> Vec<u8> {
    // Plain data with text keys has no way to fail to be JSON.
    let mut json = serde_json::to_vec(line).unwrap_or_default();
    json.pop();
    json
}

/// What marks a record that carries a snapshot, as bytes in its line.
pub(crate) const SNAPSHOT_MARK: &[u8] = br#","snapshot":""#;

/// The two kinds of lines.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// The first record.
    Opened(Box<Opened>),
    /// All others.
    Event(Box<EventRecord>),
}

impl Line {
    /// Loads the definitions that the record names, so that it can be folded into a session.
    pub fn load(
        &mut self,
        load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Opened(opened) => opened.definition.load(load),
            Self::Event(record) => record.load(load),
        }
    }
}

impl OpenedDefinition {
    /// Loads the definition where that has not been done.
    pub fn load(
        &mut self,
        load: impl FnMut(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<(), StoreError> {
        load_stored(&mut self.lowered, load)
    }
}

impl EventRecord {
    /// Loads the definition that the record puts in force, and that of its snapshot.
    pub fn load(
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
    notes: Vec<Note>,
    #[serde(default)]
    snapshot: Option<String>,
    #[serde(default)]
    reloaded: Option<ReloadedDefinition>,
    #[serde(default)]
    session: Option<SessionId>,
    #[serde(default)]
    at: Option<Timestamp>,
    #[serde(default)]
    place: Option<Place>,
    #[serde(default)]
    definition: Option<OpenedDefinition>,
}

/// Reads a line whose hash was checked.
pub fn parse_record(line: &[u8]) -> Result<Line, RecordError> {
    let seq = crate::chain::claimed_seq(line).map_or_else(|| "?".to_owned(), |n| n.to_string());
    let fail = |reason: String| RecordError { seq: seq.clone(), reason };
    // The hash fits, so the line is as it was written: by a version that writes another form.
    let foreign = |error: serde_json::Error| {
        fail(format!(
            "{error}; if another version of jackline wrote it, read it with that version: the \
             journal stays as it is"
        ))
    };
    let raw: RawLine<'_> = serde_json::from_slice(line).map_err(foreign)?;
    if raw.v > VERSION {
        return Err(fail(format!("it has version {}; update jackline", raw.v)));
    }
    let missing = |what: &str| fail(format!("`{what}` is missing"));
    match raw.record.as_str() {
        "opened" => Ok(Line::Opened(Box::new(Opened {
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
                let state = from_hex(&hex).ok_or_else(|| fail("a broken snapshot".to_owned()))?;
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
            Ok(Line::Event(Box::new(record)))
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
