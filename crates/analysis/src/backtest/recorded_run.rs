//! Reads recorded runs of other agents: one JSON object per line, as in public data sets.
//!
//! ```json
//! {"id":"run-1","model":"m","user_breaks":[2],"steps":[
//!   {"turn":1,"tool":"bash","args":{"command":"ls"},"result":"a.txt","is_error":false}]}
//! ```
//!
//! Only `steps` and the `tool` of each step are required. Fields that are not listed here are
//! ignored. Consecutive steps with the same `turn` were called together. `user_breaks` are the
//! steps before which a person sent a message.

use std::borrow::Cow;
use std::fmt;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Arguments, CallId, CallStatus, Event, EventKind, Payload, PromptSubmitted, SessionId,
    SessionStarted, ToolFinished, ToolName, ToolProposed,
};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The tool name of a model answer that was not a valid call.
const FORMAT_ERROR: &str = "_format_error";

/// The client name of such runs in events.
const CLIENT: &str = "trajectory";

/// One recorded run.
#[derive(Debug)]
pub struct RecordedRun<'a> {
    id: SessionId,
    run: RecordedRunJson<'a>,
}

#[derive(Debug, Deserialize)]
struct RecordedRunJson<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    model: Option<Value>,
    #[serde(default)]
    user_breaks: Option<Vec<u64>>,
    #[serde(borrow)]
    steps: Vec<RecordedStep<'a>>,
}

#[derive(Debug, Deserialize)]
struct RecordedStep<'a> {
    /// Only used for comparison.
    #[serde(borrow, default)]
    turn: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Cow<'a, str>,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: ResultText,
    #[serde(default)]
    is_error: Option<bool>,
}

impl<'a> RecordedRun<'a> {
    /// Parses a line. `name` gives the id of a run without one.
    pub fn parse(line: &'a [u8], name: impl FnOnce() -> String) -> Result<Self, String> {
        // Check UTF-8 once for the whole line, and not for each text in it.
        let run = match std::str::from_utf8(line) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(line),
        };
        let run: RecordedRunJson<'_> = run.map_err(|error| {
            if error.is_data() && line.trim_ascii_start().first() != Some(&b'{') {
                return "a run must be an object with `steps`".to_owned();
            }
            short_error(&error)
        })?;
        let named = run.id.map(text_of_json).filter(|id| !id.is_empty());
        let id = SessionId::parse(named.unwrap_or_else(name))
            .map_err(|error| format!("`id` {error}"))?;
        Ok(Self { id, run })
    }

    /// The session id of the run.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The events in order. The calls of one turn are proposed together, before the first result.
    /// The events are appended to `events`.
    pub fn events(self, events: &mut Vec<Event>) -> Result<(), String> {
        let Self { id, run } = self;
        events.reserve(2 * run.steps.len() + 2);
        let actor = ActorId::main();
        let event = |kind| Event {
            session: id.clone(),
            id: None,
            at: None,
            actor: actor.clone(),
            kind,
            meta: None,
        };
        let model = run.model.as_ref().and_then(Value::as_str).map(ToOwned::to_owned);
        events.push(event(started(model)));
        let mut breaks = run.user_breaks.unwrap_or_default();
        breaks.sort_unstable();
        let mut open: Vec<EventKind> = Vec::new();
        let mut turn = None;
        for (number, step) in (0_u64..).zip(run.steps) {
            let is_user_break = breaks.binary_search(&number).is_ok();
            let now = step.turn.map(RawValue::get);
            if is_user_break || now.is_none() || now != turn {
                events.extend(open.drain(..).map(event));
            }
            turn = now;
            if is_user_break {
                let kind = EventKind::PromptSubmitted(PromptSubmitted {
                    source: PromptSource::Human,
                    ..PromptSubmitted::default()
                });
                events.push(event(kind));
            }
            let (proposed, finished) =
                step.events(number).map_err(|error| format!("step {number}: {error}"))?;
            events.push(event(proposed));
            open.push(finished);
        }
        events.extend(open.drain(..).map(event));
        Ok(())
    }
}

impl RecordedStep<'_> {
    fn events(self, number: u64) -> Result<(EventKind, EventKind), String> {
        let call = CallId::parse(number.to_string()).map_err(|error| error.to_string())?;
        let args = arguments(&self.tool, self.args);
        let tool =
            ToolName::parse(self.tool).map_err(|error| format!("the name of its tool {error}"))?;
        let call = Some(call);
        let proposed = EventKind::ToolProposed(ToolProposed {
            call: call.clone(),
            tool,
            args,
            ..ToolProposed::default()
        });
        let finished = EventKind::ToolFinished(ToolFinished {
            call,
            status: if self.is_error == Some(true) { CallStatus::Error } else { CallStatus::Ok },
            result: self.result.0.map(Payload::Inline),
            ..ToolFinished::default()
        });
        Ok((proposed, finished))
    }
}

fn started(model: Option<String>) -> EventKind {
    EventKind::SessionStarted(SessionStarted {
        client: Some(CLIENT.to_owned()),
        model,
        ..SessionStarted::default()
    })
}

/// Arguments that are not an object, or belong to an invalid call, become text.
fn arguments(tool: &str, args: Value) -> Arguments {
    let text = match args {
        Value::Null => return Arguments::Parsed(Value::Object(serde_json::Map::new())),
        Value::Object(mut fields) if tool == FORMAT_ERROR => match fields.get_mut("command") {
            Some(Value::String(text)) => std::mem::take(text),
            _ => Value::Object(fields).to_string(),
        },
        Value::Object(_) => return Arguments::Parsed(args),
        Value::String(text) => text,
        other => other.to_string(),
    };
    Arguments::Text(Payload::Inline(text))
}

/// A text, or other JSON as text. Results are most of the input, so their texts are read once.
#[derive(Debug, Default)]
struct ResultText(Option<String>);

impl<'de> Deserialize<'de> for ResultText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ResultTextVisitor)
    }
}

struct ResultTextVisitor;

impl<'de> Visitor<'de> for ResultTextVisitor {
    type Value = ResultText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a result")
    }

    fn visit_str<E>(self, text: &str) -> Result<ResultText, E> {
        Ok(ResultText(Some(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<ResultText, E> {
        Ok(ResultText(None))
    }

    fn visit_bool<E>(self, value: bool) -> Result<ResultText, E> {
        Ok(ResultText(Some(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ResultText, E> {
        Ok(ResultText(Some(value.to_string())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ResultText, E> {
        Ok(ResultText(Some(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ResultText, E> {
        Ok(ResultText(Some(Value::from(value).to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ResultText, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(items))?;
        Ok(ResultText(Some(value.to_string())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ResultText, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(ResultText(Some(value.to_string())))
    }
}

/// A text, or other JSON as text.
fn text_of_json(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// The error in a line, without the line number that serde counts, because there is only one line.
fn short_error(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " in column ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn events(run: &Value) -> Vec<Value> {
        let line = run.to_string();
        let run = RecordedRun::parse(line.as_bytes(), || "here".to_owned()).unwrap();
        let mut events = Vec::new();
        run.events(&mut events).unwrap();
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    /// The kinds of some events, and the calls they are about.
    fn order(run: &Value) -> Vec<String> {
        let describe = |event: &Value| {
            let kind = event["event"].as_str().unwrap().split('_').next_back().unwrap();
            format!("{kind} {}", event["call"].as_str().unwrap_or_default()).trim().to_owned()
        };
        events(run).iter().map(describe).collect()
    }

    #[test]
    fn a_step_is_a_call_and_its_result() {
        let step = json!({"turn": 1, "tool": "bash", "args": {"command": "ls"}, "result": "a\nb",
            "is_error": true, "unknown": 1});
        let run = json!({"id": "r", "model": "m", "success": true, "steps": [step]});
        assert_eq!(
            events(&run),
            [
                json!({"session": "r", "event": "session_started", "client": "trajectory", "model": "m"}),
                json!({"session": "r", "event": "tool_proposed", "call": "0", "tool": "bash",
                    "args": {"command": "ls"}}),
                json!({"session": "r", "event": "tool_finished", "call": "0", "status": "error",
                    "result": "a\nb"}),
            ]
        );
    }

    #[test]
    fn calls_of_one_turn_are_proposed_before_the_first_result() {
        let step = |turn: Value| json!({"turn": turn, "tool": "t"});
        let steps = [json!(1), json!(1), json!(2), Value::Null, Value::Null].map(step);
        assert_eq!(
            order(&json!({"steps": steps, "user_breaks": null})),
            [
                "started",
                "proposed 0",
                "proposed 1",
                "finished 0",
                "finished 1",
                "proposed 2",
                "finished 2",
                "proposed 3",
                "finished 3",
                "proposed 4",
                "finished 4"
            ]
        );
        // A message of a person separates the calls before it from those after it.
        assert_eq!(
            order(&json!({"steps": [step(json!(1)), step(json!(1))], "user_breaks": [1, 9]})),
            ["started", "proposed 0", "finished 0", "submitted", "proposed 1", "finished 1"]
        );
    }

    #[test]
    fn an_invalid_call_has_text_arguments() {
        let text = |args: Value| {
            let run = json!({"steps": [{"tool": "_format_error", "args": args}]});
            events(&run)[1]["args_text"].as_str().map(ToOwned::to_owned)
        };
        assert_eq!(text(json!({"command": "two ```"})).unwrap(), "two ```");
        assert_eq!(text(json!("two")).unwrap(), "two");
        assert_eq!(text(json!([1])).unwrap(), "[1]");
        assert_eq!(text(Value::Null), None);
    }

    #[test]
    fn results_may_be_any_json() {
        let result = |result: Value| {
            events(&json!({"steps": [{"tool": "t", "result": result}]}))[2]["result"].clone()
        };
        assert_eq!(result(json!({"a": [1]})), json!("{\"a\":[1]}"));
        assert_eq!(result(json!([null, 1.5])), json!("[null,1.5]"));
        assert_eq!(result(json!(7)), json!("7"));
        assert_eq!(result(json!(-7)), json!("-7"));
        assert_eq!(result(json!(0.5)), json!("0.5"));
        assert_eq!(result(json!(true)), json!("true"));
        assert_eq!(result(json!(" x ")), json!(" x "));
        assert_eq!(result(Value::Null), Value::Null);
    }

    #[test]
    fn a_run_without_an_id_gets_one() {
        for (id, name) in [("{}", "here"), ("{\"id\":null}", "here"), ("{\"id\":7}", "7")] {
            let mut run: Value = serde_json::from_str(id).unwrap();
            run["steps"] = json!([]);
            let line = run.to_string();
            assert_eq!(
                RecordedRun::parse(line.as_bytes(), || "here".to_owned()).unwrap().id().as_str(),
                name
            );
        }
    }

    #[test]
    fn errors_are_reported() {
        let error =
            |line: &str| RecordedRun::parse(line.as_bytes(), || "here".to_owned()).unwrap_err();
        assert_eq!(error("{\"id\":1}"), "missing field `steps` in column 8");
        assert_eq!(error("{\"steps\":[{}]}"), "missing field `tool` in column 12");
        assert!(error("{\"steps\":[").starts_with("EOF"));
        let run =
            RecordedRun::parse(b"{\"steps\":[{\"tool\":\"\"}]}", || "here".to_owned()).unwrap();
        assert_eq!(
            run.events(&mut Vec::new()).unwrap_err(),
            "step 0: the name of its tool must not be empty"
        );
    }
}
