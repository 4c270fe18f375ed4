//! The wire protocol, version 1: one JSON object per line becomes one [`Event`].
//!
//! Parsing is strict. Unknown fields, duplicate keys and wrong types are errors that name the
//! field, so that a typing error in an adapter is found in its first run and not in production.

mod bounds;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use crate::event::{
    AdvisorAnswered, Arguments, AttemptEnded, AttemptResult, AttemptStage, AttemptStarted,
    CallReference, CallStatus, ChangeReason, CompactionFinished, Control, ControlAction, Elided,
    Event, EventKind, IterationEnded, ModelChanged, OutputProposed, Payload, PlanProposed,
    PromptSource, PromptSubmitted, ReportedStage, ReportedTests, RunFailure, SessionEnded,
    SessionStarted, ShownLines, StopProposed, ToolFinished, ToolProposed, UsageReported,
    WorkspaceChanged,
};
use crate::id::{ActorId, IdError, SessionId};
use crate::json::parse_strict;
use crate::nearest::nearest_name;
use crate::time::Timestamp;
use crate::verdict::FaultKind;

pub use bounds::check_bounds;

/// The version of the wire protocol.
pub const WIRE_VERSION: u64 = 1;

/// The longest text of a field that is not a payload.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Why a line is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The line is not JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// The line is JSON, but no object.
    #[error("an event must be a JSON object, not {0}")]
    NotAnObject(&'static str),
    /// The line has an unsupported version.
    #[error("wire version {0} is not supported; send version {WIRE_VERSION}")]
    Version(String),
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has a value of another type or out of range.
    #[error("`{field}` must be {expected}, not {got}")]
    Type {
        /// The name of the field.
        field: String,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// A field that this event does not have.
    #[error("unknown field `{field}`{}", suggestion(.nearest.as_deref()))]
    Unknown {
        /// The name of the field.
        field: String,
        /// The field that was probably intended.
        nearest: Option<String>,
    },
    /// An event that does not exist.
    #[error("unknown event `{event}`{}", suggestion(.nearest.as_deref()))]
    Event {
        /// The name of the event.
        event: String,
        /// The event that was probably intended.
        nearest: Option<String>,
    },
    /// An invalid id.
    #[error("`{field}` {source}")]
    Id {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with the value.
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

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Parses a line from an adapter. `session` is the default if the line names no session.
pub fn parse_line(line: &[u8], session: Option<&SessionId>) -> Result<Event, WireError> {
    // An event is one line, so only the column of a mistake is useful.
    let value = parse_strict(line).map_err(|error| {
        WireError::Json(shorten_user_text(&error.to_string().replace(" at line 1", " at")))
    })?;
    parse_value(value, session, EventSource::Adapter)
}

/// Parses an event that an adapter has built.
pub fn parse_event(value: Value) -> Result<Event, WireError> {
    parse_value(value, None, EventSource::Adapter)
}

/// Parses an event in the form of the journal.
pub fn parse_recorded(value: Value) -> Result<Event, WireError> {
    parse_value(value, None, EventSource::Journal)
}

/// Where an event comes from. Only the journal may contain elided texts.
#[derive(Clone, Copy, PartialEq)]
enum EventSource {
    Adapter,
    Journal,
}

fn parse_value(
    value: Value,
    session: Option<&SessionId>,
    source: EventSource,
) -> Result<Event, WireError> {
    let Value::Object(map) = value else { return Err(WireError::NotAnObject(type_name(&value))) };
    let mut fields = EventFields { map, source, requested: Vec::new() };
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
    let meta = fields.take("meta");
    let kind = match parse_kind(&event, &mut fields) {
        // The missing field may be present under a misspelt name.
        Err(WireError::Missing(missing)) => {
            let misspelt = fields.map.keys().find(|key| nearest_name(key, [missing]).is_some());
            return Err(misspelt.map_or(WireError::Missing(missing), |misspelt| {
                WireError::Unknown {
                    field: shorten_user_text(misspelt),
                    nearest: Some(missing.to_owned()),
                }
            }));
        }
        kind => kind?,
    };
    fields.finish()?;
    Ok(Event { session, id, at, actor, kind, meta })
}

/// The names of all events.
const EVENT_NAMES: [&str; 18] = [
    "session_started",
    "prompt_submitted",
    "tool_proposed",
    "tool_finished",
    "plan_proposed",
    "output_proposed",
    "usage_reported",
    "compaction_finished",
    "iteration_ended",
    "workspace_changed",
    "stop_proposed",
    "attempt_started",
    "attempt_stage",
    "attempt_ended",
    "advisor_answered",
    "model_changed",
    "control",
    "session_ended",
];

fn parse_kind(event: &str, fields: &mut EventFields) -> Result<EventKind, WireError> {
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
            compact_command: fields.text("compact_command")?,
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
            asks_person: fields.flag("asks_person")?,
        }),
        "tool_finished" => parse_tool_finished(fields)?,
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
        "workspace_changed" => EventKind::WorkspaceChanged(WorkspaceChanged {
            files: fields.file_names()?,
            more: fields.flag("more")?,
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
            action: fields
                .word("action", ControlAction::ALL)?
                .ok_or(WireError::Missing("action"))?,
            by: fields.text("by")?,
            why: fields.text("why")?,
            call: fields.id("call", crate::id::CallId::parse)?,
            ask: fields.count("ask")?,
            seconds: fields.count("seconds")?,
            constraint: fields.text("constraint")?,
        }),
        "session_ended" => EventKind::SessionEnded(SessionEnded {
            failure: fields.word("failure", RunFailure::ALL)?,
        }),
        _ => {
            return Err(WireError::Event {
                event: shorten_user_text(event),
                nearest: nearest_name(event, EVENT_NAMES).map(ToOwned::to_owned),
            });
        }
    })
}

fn parse_tool_finished(fields: &mut EventFields) -> Result<EventKind, WireError> {
    Ok(EventKind::ToolFinished(ToolFinished {
        call: fields.call()?,
        of: fields.call_reference()?,
        status: fields.word("status", CallStatus::ALL)?.ok_or(WireError::Missing("status"))?,
        result: fields.payload("result")?,
        exit_code: fields.integer("exit_code")?,
        seen: fields.seen()?,
        background: fields.flag("background")?,
    }))
}

fn parse_plan(fields: &mut EventFields) -> Result<EventKind, WireError> {
    let plan = fields.take("plan");
    let plan_text = fields.payload("plan_text")?;
    if plan.is_some() && plan_text.is_some() {
        return Err(WireError::Both("plan", "plan_text"));
    }
    Ok(EventKind::PlanProposed(PlanProposed { plan, plan_text }))
}

fn parse_usage(fields: &mut EventFields) -> Result<EventKind, WireError> {
    let unknown = fields.flag("unknown")?;
    // Unknown counts may be omitted.
    let default = unknown.then_some(0);
    Ok(EventKind::UsageReported(UsageReported {
        request: fields.id("request", crate::id::RequestId::parse)?,
        model: fields.text("model")?,
        input: fields.count("input")?.or(default).ok_or(WireError::Missing("input"))?,
        cache_read: fields.count("cache_read")?.unwrap_or(0),
        cache_creation: fields.count("cache_creation")?.unwrap_or(0),
        output: fields.count("output")?.or(default).ok_or(WireError::Missing("output"))?,
        window: fields.count("window")?,
        cost_micros: fields.count("cost_micros")?,
        unknown,
    }))
}

/// An object whose fields are removed one by one. The fields that remain at the end are unknown.
struct EventFields {
    map: Map<String, Value>,
    source: EventSource,
    requested: Vec<&'static str>,
}

impl EventFields {
    /// Removes a field. A field with the value null counts as missing.
    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.requested.push(field);
        self.map.remove(field).filter(|value| !value.is_null())
    }

    fn version(&mut self) -> Result<(), WireError> {
        match self.take("v") {
            None => Ok(()),
            Some(Value::Number(n)) if n.as_u64() == Some(WIRE_VERSION) => Ok(()),
            Some(Value::Number(n)) => Err(WireError::Version(n.to_string())),
            Some(Value::String(s)) if s != "1" => Err(WireError::Version(shorten_user_text(&s))),
            Some(other) => Err(type_error("v", "a number", &other)),
        }
    }

    /// A short text: a name, a reason, a path. Long texts are payloads.
    fn text(&mut self, field: &'static str) -> Result<Option<String>, WireError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => {
                // A text in the journal was accepted before, and redaction may have made it longer.
                if self.source == EventSource::Adapter {
                    bounds::check_text_length(field, &text)?;
                }
                Ok(Some(text))
            }
            Some(other) => Err(type_error(field, "a string", &other)),
        }
    }

    fn required_text(&mut self, field: &'static str) -> Result<String, WireError> {
        self.text(field)?.ok_or(WireError::Missing(field))
    }

    fn payload(&mut self, field: &'static str) -> Result<Option<Payload>, WireError> {
        let source = self.source;
        self.take(field).map(|value| parse_payload(field, value, source)).transpose()
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
        // Clients without call ids use an adapter that is part of the runtime, so only their
        // records may have no call id. On the wire it is required.
        if call.is_none() && self.source == EventSource::Adapter {
            return Err(WireError::Missing("call"));
        }
        Ok(call)
    }

    fn call_reference(&mut self) -> Result<Option<CallReference>, WireError> {
        if self.source == EventSource::Adapter {
            return Ok(None);
        }
        let malformed = |value: &Value| type_error("of", "a tool and a digest", value);
        self.take("of")
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
                    expected: crate::time::EXPECTED_FORMAT.to_owned(),
                    got: format!("`{}`", shorten_user_text(&text)),
                })
            })
            .transpose()
    }

    fn count(&mut self, field: &'static str) -> Result<Option<u64>, WireError> {
        self.take(field)
            .map(|value| {
                value.as_u64().ok_or_else(|| type_error(field, "a whole number from 0", &value))
            })
            .transpose()
    }

    fn integer(&mut self, field: &'static str) -> Result<Option<i64>, WireError> {
        self.take(field)
            .map(|value| value.as_i64().ok_or_else(|| type_error(field, "a whole number", &value)))
            .transpose()
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, WireError> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(type_error(field, "true or false", &other)),
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
            let accepted: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            WireError::Type {
                field: field.to_owned(),
                expected: format!("one of {}", accepted.join(", ")),
                got: format!("`{}`", shorten_user_text(&text)),
            }
        })
    }

    fn arguments(&mut self) -> Result<Arguments, WireError> {
        let parsed = self.take("args");
        let text = self.payload("args_text")?;
        match (parsed, text) {
            (Some(_), Some(_)) => Err(WireError::Both("args", "args_text")),
            (Some(args @ Value::Object(_)), None) => Ok(Arguments::Parsed(args)),
            (Some(other), None) => Err(type_error("args", "an object", &other)),
            (None, Some(text)) => Ok(Arguments::Text(text)),
            (None, None) => Err(WireError::Missing("args")),
        }
    }

    fn seen(&mut self) -> Result<Vec<ShownLines>, WireError> {
        let Some(value) = self.take("seen") else { return Ok(Vec::new()) };
        let Value::Array(items) = value else { return Err(type_error("seen", "an array", &value)) };
        items
            .into_iter()
            .map(|item| {
                let mut fields = self.nested_fields("seen", item)?;
                let seen = ShownLines {
                    path: fields.required_text("path")?,
                    from: fields.count("from")?.ok_or(WireError::Missing("from"))?,
                    to: fields.count("to")?.ok_or(WireError::Missing("to"))?,
                    of: fields.count("of")?,
                };
                fields.finish().map(|()| seen)
            })
            .collect()
    }

    fn file_names(&mut self) -> Result<Vec<String>, WireError> {
        let Some(value) = self.take("files") else { return Ok(Vec::new()) };
        let Value::Array(items) = value else {
            return Err(type_error("files", "an array", &value));
        };
        let names: Vec<String> = items
            .into_iter()
            .map(|item| match item {
                Value::String(name) => Ok(name),
                other => Err(type_error("files", "an array of strings", &other)),
            })
            .collect::<Result<_, _>>()?;
        if self.source == EventSource::Adapter {
            bounds::check_changed_files(&names)?;
        }
        Ok(names)
    }

    fn tests(&mut self) -> Result<Option<ReportedTests>, WireError> {
        let Some(value) = self.take("tests") else { return Ok(None) };
        let mut fields = self.nested_fields("tests", value)?;
        let tests = ReportedTests {
            failed: fields.count("failed")?.unwrap_or(0),
            passed: fields.count("passed")?.unwrap_or(0),
        };
        fields.finish().map(|()| Some(tests))
    }

    fn nested_fields(&self, field: &'static str, value: Value) -> Result<Self, WireError> {
        match value {
            Value::Object(map) => Ok(Self { map, source: self.source, requested: Vec::new() }),
            other => Err(type_error(field, "an object", &other)),
        }
    }

    /// Returns an error for the first remaining field.
    fn finish(self) -> Result<(), WireError> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(field) => Err(WireError::Unknown {
                field: shorten_user_text(field),
                nearest: nearest_name(field, self.requested.iter().copied()).map(ToOwned::to_owned),
            }),
        }
    }
}

fn parse_payload(field: &str, value: Value, source: EventSource) -> Result<Payload, WireError> {
    match value {
        Value::String(text) => Ok(Payload::Inline(text)),
        Value::Object(mut map) if source == EventSource::Journal => map
            .remove("elided")
            .and_then(|elided| serde_json::from_value::<Elided>(elided).ok())
            .map(|elided| Payload::Elided { elided })
            .ok_or_else(|| type_error(field, "a string or an elided text", &Value::Object(map))),
        other => Err(type_error(field, "a string", &other)),
    }
}

fn type_error(field: &str, expected: &str, got: &Value) -> WireError {
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

/// Shortens user text for an error and removes control characters.
fn shorten_user_text(text: &str) -> String {
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
    fn a_typing_error_is_named_with_a_suggestion() {
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
    fn an_unsupported_version_is_an_error() {
        assert_eq!(
            error(r#"{"v":2,"event":"session_ended"}"#),
            "wire version 2 is not supported; send version 1"
        );
        assert_eq!(
            error(r#"{"v":"1.1","event":"session_ended"}"#),
            "wire version 1.1 is not supported; send version 1"
        );
    }

    #[test]
    fn a_recorded_event_can_be_parsed_again() {
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
            let recorded = serde_json::to_value(&event).unwrap();
            assert_eq!(parse_recorded(recorded).unwrap(), event, "{line}");
        }
    }
}
