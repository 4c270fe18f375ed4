//! The wire, version 1: one JSON object a line becomes one [`Event`].
//!
//! Strict on purpose: unknown fields, duplicate keys and wrong types are
//! errors that name the field, so that a slip of the pen in an adapter is
//! found on its first run and not in production.

mod bounds;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use crate::event::{
    Action, AdvisorAnswered, Arguments, AttemptEnded, AttemptResult, AttemptStage, AttemptStarted,
    Called, ChangeReason, CompactionFinished, Control, Elided, Event, EventKind, Failure,
    IterationEnded, ModelChanged, OutputProposed, Payload, PlanProposed, PromptSource,
    PromptSubmitted, ReportedStage, Seen, SessionEnded, SessionStarted, Status, StopProposed,
    Tests, ToolFinished, ToolProposed, UsageReported,
};
use crate::id::{ActorId, IdError, SessionId};
use crate::json::parse_strict;
use crate::nearest::nearest;
use crate::time::Timestamp;
use crate::verdict::FaultKind;

pub use bounds::check;

/// The version of the wire.
pub const VERSION: u64 = 1;

/// The longest text of a field that is no payload.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Why a line is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The line is not JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// The line is JSON, but no object.
    #[error("an event is a JSON object, not {0}")]
    NotAnObject(&'static str),
    /// The line speaks another version.
    #[error("wire version {0} is not spoken here; this is version {VERSION}")]
    Version(String),
    /// A field that must be there is not.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field holds something of another type, or a value out of range.
    #[error("`{field}` must be {expected}, not {got}")]
    Type {
        /// The field.
        field: String,
        /// What it takes.
        expected: String,
        /// What it holds.
        got: String,
    },
    /// A field that no event, or not this one, has.
    #[error("unknown field `{field}`{}", hint(.nearest.as_deref()))]
    Unknown {
        /// The field.
        field: String,
        /// The field that was probably meant.
        nearest: Option<String>,
    },
    /// An event that does not exist.
    #[error("unknown event `{event}`{}", hint(.nearest.as_deref()))]
    Event {
        /// The event.
        event: String,
        /// The event that was probably meant.
        nearest: Option<String>,
    },
    /// An id that can't be one.
    #[error("`{field}` {source}")]
    Id {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: IdError,
    },
    /// Two fields that exclude each other.
    #[error("give `{0}` or `{1}`, not both")]
    Both(&'static str, &'static str),
}

impl WireError {
    /// The kind of fault.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Json(_) => FaultKind::Json,
            Self::NotAnObject(_) => FaultKind::NotAnObject,
            Self::Version(_) => FaultKind::Version,
            Self::Missing(_) => FaultKind::Missing,
            Self::Type { .. } => FaultKind::Type,
            Self::Unknown { .. } => FaultKind::UnknownField,
            Self::Event { .. } => FaultKind::UnknownEvent,
            Self::Id { .. } => FaultKind::Id,
            Self::Both(..) => FaultKind::Conflict,
        }
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Parses a line from an adapter. `session` stands in where the line names none.
pub fn parse_line(line: &[u8], session: Option<&SessionId>) -> Result<Event, WireError> {
    // An event is one line, so only the column of a mistake says something.
    let value = parse_strict(line).map_err(|error| {
        WireError::Json(shorten(&error.to_string().replace(" at line 1", " at")))
    })?;
    parse_value(value, session, Source::Adapter)
}

/// Parses an event that an adapter has put together.
pub fn parse_event(value: Value) -> Result<Event, WireError> {
    parse_value(value, None, Source::Adapter)
}

/// Parses an event as the journal keeps it.
pub fn parse_recorded(value: Value) -> Result<Event, WireError> {
    parse_value(value, None, Source::Journal)
}

/// Whether a text may be an elided one.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Adapter,
    Journal,
}

fn parse_value(
    value: Value,
    session: Option<&SessionId>,
    source: Source,
) -> Result<Event, WireError> {
    let Value::Object(map) = value else { return Err(WireError::NotAnObject(type_name(&value))) };
    let mut fields = Fields { map, source, asked: Vec::new() };
    fields.version()?;
    let event = fields.required_text("event")?;
    let named = match fields.text("session")? {
        Some(text) => Some(
            SessionId::parse(text).map_err(|source| WireError::Id { field: "session", source })?,
        ),
        None => None,
    };
    let session = named.or_else(|| session.cloned()).ok_or(WireError::Missing("session"))?;
    let id = fields.id("id", crate::id::EventId::parse)?;
    let at = fields.time("at")?;
    let actor = fields.id("actor", ActorId::parse)?.unwrap_or_else(ActorId::main);
    let meta = fields.any("meta");
    let kind = match parse_kind(&event, &mut fields) {
        // A field that is missing may be there under a misspelt name.
        Err(WireError::Missing(missing)) => {
            let slip = fields.map.keys().find(|key| nearest(key, [missing]).is_some());
            return Err(slip.map_or(WireError::Missing(missing), |slip| WireError::Unknown {
                field: shorten(slip),
                nearest: Some(missing.to_owned()),
            }));
        }
        kind => kind?,
    };
    fields.finish()?;
    Ok(Event { session, id, at, actor, kind, meta })
}

/// The names of all events.
const EVENTS: [&str; 17] = [
    "session_started",
    "prompt_submitted",
    "tool_proposed",
    "tool_finished",
    "plan_proposed",
    "output_proposed",
    "usage_reported",
    "compaction_finished",
    "iteration_ended",
    "stop_proposed",
    "attempt_started",
    "attempt_stage",
    "attempt_ended",
    "advisor_answered",
    "model_changed",
    "control",
    "session_ended",
];

fn parse_kind(event: &str, fields: &mut Fields) -> Result<EventKind, WireError> {
    Ok(match event {
        "session_started" => EventKind::SessionStarted(SessionStarted {
            workspace: fields.text("workspace")?,
            client: fields.text("client")?,
            model: fields.text("model")?,
            prompt_hash: fields.text("prompt_hash")?,
            tools_hash: fields.text("tools_hash")?,
            parameters_hash: fields.text("parameters_hash")?,
            deadline: fields.time("deadline")?,
            parent: fields.session("parent")?,
            role: fields.text("role")?,
        }),
        "prompt_submitted" => EventKind::PromptSubmitted(PromptSubmitted {
            source: fields.word("source", PromptSource::ALL)?.unwrap_or(PromptSource::Human),
            text: fields.payload("text")?,
        }),
        "tool_proposed" => EventKind::ToolProposed(ToolProposed {
            call: fields.call()?,
            tool: fields
                .id("tool", crate::id::ToolName::parse)?
                .ok_or(WireError::Missing("tool"))?,
            args: fields.arguments()?,
            cwd: fields.text("cwd")?,
        }),
        "tool_finished" => EventKind::ToolFinished(ToolFinished {
            call: fields.call()?,
            of: fields.called()?,
            status: fields.word("status", Status::ALL)?.ok_or(WireError::Missing("status"))?,
            result: fields.payload("result")?,
            exit_code: fields.integer("exit_code")?,
            seen: fields.seen()?,
            background: fields.flag("background")?,
        }),
        "plan_proposed" => parse_plan(fields)?,
        "output_proposed" => EventKind::OutputProposed(OutputProposed {
            name: fields.text("name")?,
            text: fields.payload("text")?,
            truncated: fields.flag("truncated")?,
        }),
        "usage_reported" => parse_usage(fields)?,
        "compaction_finished" => EventKind::CompactionFinished(CompactionFinished {
            freed: fields.count("freed")?,
            summary: fields.payload("summary")?,
        }),
        "iteration_ended" => EventKind::IterationEnded(IterationEnded {
            phase: fields.text("phase")?,
            task: fields.text("task")?,
            tests: fields.tests()?,
            build: fields.text("build")?,
            files_changed: fields.count("files_changed")?,
            error: fields.payload("error")?,
        }),
        "stop_proposed" => EventKind::StopProposed(StopProposed {
            reason: fields.text("reason")?,
            output: fields.payload("output")?,
            background: fields.count("background")?.unwrap_or(0),
        }),
        "attempt_started" => {
            EventKind::AttemptStarted(AttemptStarted { attempt: fields.attempt()? })
        }
        "attempt_stage" => EventKind::AttemptStage(AttemptStage {
            attempt: fields.attempt()?,
            stage: ReportedStage::parse(&fields.required_text("stage")?),
        }),
        "attempt_ended" => EventKind::AttemptEnded(AttemptEnded {
            attempt: fields.attempt()?,
            result: fields
                .word("result", AttemptResult::ALL)?
                .ok_or(WireError::Missing("result"))?,
        }),
        "advisor_answered" => EventKind::AdvisorAnswered(AdvisorAnswered {
            model: fields.text("model")?,
            instruction: fields.payload("instruction")?,
            error: fields.payload("error")?,
        }),
        "model_changed" => EventKind::ModelChanged(ModelChanged {
            from: fields.text("from")?,
            to: fields.required_text("to")?,
            reason: ChangeReason::parse(&fields.required_text("reason")?),
        }),
        "control" => EventKind::Control(Control {
            action: fields.word("action", Action::ALL)?.ok_or(WireError::Missing("action"))?,
            by: fields.text("by")?,
            why: fields.text("why")?,
            call: fields.id("call", crate::id::CallId::parse)?,
            ask: fields.count("ask")?,
            seconds: fields.count("seconds")?,
            constraint: fields.text("constraint")?,
        }),
        "session_ended" => {
            EventKind::SessionEnded(SessionEnded { failure: fields.word("failure", Failure::ALL)? })
        }
        _ => {
            return Err(WireError::Event {
                event: shorten(event),
                nearest: nearest(event, EVENTS).map(ToOwned::to_owned),
            });
        }
    })
}

fn parse_plan(fields: &mut Fields) -> Result<EventKind, WireError> {
    let plan = fields.any("plan");
    let plan_text = fields.payload("plan_text")?;
    if plan.is_some() && plan_text.is_some() {
        return Err(WireError::Both("plan", "plan_text"));
    }
    Ok(EventKind::PlanProposed(PlanProposed { plan, plan_text }))
}

fn parse_usage(fields: &mut Fields) -> Result<EventKind, WireError> {
    let unknown = fields.flag("unknown")?;
    // What is unknown need not be there.
    let least = unknown.then_some(0);
    Ok(EventKind::UsageReported(UsageReported {
        request: fields.id("request", crate::id::RequestId::parse)?,
        model: fields.text("model")?,
        input: fields.count("input")?.or(least).ok_or(WireError::Missing("input"))?,
        cache_read: fields.count("cache_read")?.unwrap_or(0),
        cache_creation: fields.count("cache_creation")?.unwrap_or(0),
        output: fields.count("output")?.or(least).ok_or(WireError::Missing("output"))?,
        window: fields.count("window")?,
        cost_micros: fields.count("cost_micros")?,
        unknown,
    }))
}

/// An object whose fields are taken out one by one; what is left is unknown.
struct Fields {
    map: Map<String, Value>,
    source: Source,
    asked: Vec<&'static str>,
}

impl Fields {
    /// Takes a field; null and absent are the same.
    fn any(&mut self, field: &'static str) -> Option<Value> {
        self.asked.push(field);
        self.map.remove(field).filter(|value| !value.is_null())
    }

    fn version(&mut self) -> Result<(), WireError> {
        match self.any("v") {
            None => Ok(()),
            Some(Value::Number(n)) if n.as_u64() == Some(VERSION) => Ok(()),
            Some(Value::Number(n)) => Err(WireError::Version(n.to_string())),
            Some(Value::String(s)) if s != "1" => Err(WireError::Version(shorten(&s))),
            Some(other) => Err(wrong("v", "a number", &other)),
        }
    }

    /// A name, a reason, a path: long texts are payloads.
    fn text(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        match self.any(field) {
            None => Ok(None),
            Some(Value::String(text)) => {
                // What is in a journal was let in, and redaction may have added to it.
                if self.source == Source::Adapter {
                    bounds::text(field, &text)?;
                }
                Ok(Some(text))
            }
            Some(other) => Err(wrong(field, "a string", &other)),
        }
    }

    fn required_text(&mut self, field: &'static str) -> Result<String, WireError> {
        self.text(field)?.ok_or(WireError::Missing(field))
    }

    fn payload(&mut self, field: &'static str) -> Result<Option<Payload>, WireError> {
        let source = self.source;
        self.any(field).map(|value| parse_payload(field, value, source)).transpose()
    }

    fn id<T>(
        &mut self,
        field: &'static str,
        parse: impl Fn(String) -> Result<T, IdError>,
    ) -> Result<Option<T>, WireError> {
        self.text(field)?
            .map(|text| parse(text).map_err(|source| WireError::Id { field, source }))
            .transpose()
    }

    fn session(&mut self, field: &'static str) -> Result<Option<SessionId>, WireError> {
        self.id(field, SessionId::parse)
    }

    fn call(&mut self) -> Result<Option<crate::id::CallId>, WireError> {
        let call = self.id("call", crate::id::CallId::parse)?;
        // Clients without call ids reach the engine through their own adapter,
        // so their records have none; on the wire a call needs one.
        if call.is_none() && self.source == Source::Adapter {
            return Err(WireError::Missing("call"));
        }
        Ok(call)
    }

    fn called(&mut self) -> Result<Option<Called>, WireError> {
        if self.source == Source::Adapter {
            return Ok(None);
        }
        let malformed = |value: &Value| wrong("of", "a tool and a digest", value);
        self.any("of")
            .map(|value| serde_json::from_value(value.clone()).map_err(|_| malformed(&value)))
            .transpose()
    }

    fn attempt(&mut self) -> Result<crate::id::AttemptId, WireError> {
        self.id("attempt", crate::id::AttemptId::parse)?.ok_or(WireError::Missing("attempt"))
    }

    fn time(&mut self, field: &'static str) -> Result<Option<Timestamp>, WireError> {
        self.text(field)?
            .map(|text| {
                Timestamp::parse(&text).map_err(|_| WireError::Type {
                    field: field.to_owned(),
                    expected: crate::time::EXPECTED.to_owned(),
                    got: format!("`{}`", shorten(&text)),
                })
            })
            .transpose()
    }

    fn count(&mut self, field: &'static str) -> Result<Option<u64>, WireError> {
        self.any(field)
            .map(|value| {
                value.as_u64().ok_or_else(|| wrong(field, "a whole number from 0", &value))
            })
            .transpose()
    }

    fn integer(&mut self, field: &'static str) -> Result<Option<i64>, WireError> {
        self.any(field)
            .map(|value| value.as_i64().ok_or_else(|| wrong(field, "a whole number", &value)))
            .transpose()
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, WireError> {
        match self.any(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(field, "true or false", &other)),
        }
    }

    fn word<T: Copy>(
        &mut self,
        field: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, WireError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.map(Some).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            WireError::Type {
                field: field.to_owned(),
                expected: format!("one of {}", known.join(", ")),
                got: format!("`{}`", shorten(&text)),
            }
        })
    }

    fn arguments(&mut self) -> Result<Arguments, WireError> {
        let parsed = self.any("args");
        let text = self.payload("args_text")?;
        match (parsed, text) {
            (Some(_), Some(_)) => Err(WireError::Both("args", "args_text")),
            (Some(args @ Value::Object(_)), None) => Ok(Arguments::Parsed(args)),
            (Some(other), None) => Err(wrong("args", "an object", &other)),
            (None, Some(text)) => Ok(Arguments::Text(text)),
            (None, None) => Err(WireError::Missing("args")),
        }
    }

    fn seen(&mut self) -> Result<Vec<Seen>, WireError> {
        let Some(value) = self.any("seen") else { return Ok(Vec::new()) };
        let Value::Array(items) = value else { return Err(wrong("seen", "an array", &value)) };
        items
            .into_iter()
            .map(|item| {
                let mut fields = self.inner("seen", item)?;
                let seen = Seen {
                    path: fields.required_text("path")?,
                    from: fields.count("from")?.ok_or(WireError::Missing("from"))?,
                    to: fields.count("to")?.ok_or(WireError::Missing("to"))?,
                    of: fields.count("of")?,
                };
                fields.finish().map(|()| seen)
            })
            .collect()
    }

    fn tests(&mut self) -> Result<Option<Tests>, WireError> {
        let Some(value) = self.any("tests") else { return Ok(None) };
        let mut fields = self.inner("tests", value)?;
        let tests = Tests {
            failed: fields.count("failed")?.unwrap_or(0),
            passed: fields.count("passed")?.unwrap_or(0),
        };
        fields.finish().map(|()| Some(tests))
    }

    fn inner(&self, field: &'static str, value: Value) -> Result<Self, WireError> {
        match value {
            Value::Object(map) => Ok(Self { map, source: self.source, asked: Vec::new() }),
            other => Err(wrong(field, "an object", &other)),
        }
    }

    /// Complains about the first field that nobody asked for.
    fn finish(self) -> Result<(), WireError> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(field) => Err(WireError::Unknown {
                field: shorten(field),
                nearest: nearest(field, self.asked.iter().copied()).map(ToOwned::to_owned),
            }),
        }
    }
}

fn parse_payload(field: &str, value: Value, source: Source) -> Result<Payload, WireError> {
    match value {
        Value::String(text) => Ok(Payload::Inline(text)),
        Value::Object(mut map) if source == Source::Journal => map
            .remove("elided")
            .and_then(|elided| serde_json::from_value::<Elided>(elided).ok())
            .map(|elided| Payload::Elided { elided })
            .ok_or_else(|| wrong(field, "a string or an elided text", &Value::Object(map))),
        other => Err(wrong(field, "a string", &other)),
    }
}

fn wrong(field: &str, expected: &str, got: &Value) -> WireError {
    let got = match got {
        Value::Number(n) => n.to_string(),
        other => type_name(other).to_owned(),
    };
    WireError::Type { field: field.to_owned(), expected: expected.to_owned(), got }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// User text in an error stays short and printable.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        let session = SessionId::parse("s").unwrap();
        parse_line(line.as_bytes(), Some(&session)).unwrap_err().to_string()
    }

    #[test]
    fn a_slip_is_named_with_what_was_meant() {
        assert_eq!(
            error(r#"{"event":"tool_propsed"}"#),
            "unknown event `tool_propsed`; did you mean `tool_proposed`?"
        );
        assert_eq!(
            error(r#"{"event":"stop_proposed","reson":"x"}"#),
            "unknown field `reson`; did you mean `reason`?"
        );
        assert_eq!(
            error(r#"{"event":"tool_finished","call":"c","status":"okay"}"#),
            "`status` must be one of `ok`, `error`, `timeout`, `crashed`, `cancelled`, not `okay`"
        );
    }

    #[test]
    fn required_fields_are_required_and_null_is_absent() {
        assert_eq!(error(r#"{"event":"tool_proposed","tool":"t","args":{}}"#), "`call` is missing");
        assert_eq!(
            error(r#"{"event":"tool_proposed","call":"c","tool":"t"}"#),
            "`args` is missing"
        );
        assert_eq!(error(r#"{"event":null}"#), "`event` is missing");
        assert_eq!(error(r#"{"event":"usage_reported","output":1}"#), "`input` is missing");
        assert_eq!(error(r#"{"event":"model_changed","reason":"cost"}"#), "`to` is missing");
        assert_eq!(error(r#"{"event":"model_changed","to":"b"}"#), "`reason` is missing");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(
            error(r#"{"event":"usage_reported","input":-5,"output":1}"#),
            "`input` must be a whole number from 0, not -5"
        );
        assert_eq!(
            error(r#"{"event":"usage_reported","input":1.5,"output":1}"#),
            "`input` must be a whole number from 0, not 1.5"
        );
    }

    #[test]
    fn another_version_is_named() {
        assert_eq!(
            error(r#"{"v":2,"event":"session_ended"}"#),
            "wire version 2 is not spoken here; this is version 1"
        );
        assert_eq!(
            error(r#"{"v":"1.1","event":"session_ended"}"#),
            "wire version 1.1 is not spoken here; this is version 1"
        );
    }

    #[test]
    fn what_the_journal_keeps_reads_back_the_same() {
        let session = SessionId::parse("s").unwrap();
        let lines = [
            r#"{"event":"session_started","workspace":".","client":"stdio","deadline":"2026-01-31T12:00:00Z","parent":"p"}"#,
            r#"{"event":"tool_proposed","id":"e1","at":"2026-01-31T12:00:00Z","actor":"sub","call":"c","tool":"t","args":{"a":[1,{"b":null}]},"cwd":"x","meta":{"k":1}}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"t","args_text":"{\"a\""}"#,
            r#"{"event":"tool_finished","call":"c","status":"ok","result":"r","exit_code":-1,"seen":[{"path":"a","from":1,"to":2,"of":3}],"background":true}"#,
            r#"{"event":"usage_reported","request":"r","input":1,"cache_read":2,"output":3,"cost_micros":4}"#,
            r#"{"event":"iteration_ended","tests":{"failed":1,"passed":2},"build":"ok","files_changed":0}"#,
            r#"{"event":"attempt_ended","attempt":"a","result":"rollback"}"#,
            r#"{"event":"advisor_answered","model":"m","instruction":"read the log first"}"#,
            r#"{"event":"advisor_answered","error":"overloaded"}"#,
            r#"{"event":"model_changed","from":"a","to":"b","reason":"overload"}"#,
            r#"{"event":"control","action":"pause","by":"dana","why":"lunch"}"#,
            r#"{"event":"control","action":"grant","ask":7,"seconds":60}"#,
            r#"{"event":"session_ended"}"#,
        ];
        for line in lines {
            let event = parse_line(line.as_bytes(), Some(&session)).unwrap();
            let kept = serde_json::to_value(&event).unwrap();
            assert_eq!(parse_recorded(kept).unwrap(), event, "{line}");
        }
    }
}
