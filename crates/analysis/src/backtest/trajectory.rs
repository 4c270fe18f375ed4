//! Runs of other people's agents: one JSON object a line, as data sets hold them.
//!
//! ```json
//! {"id":"run-1","model":"m","user_breaks":[2],"steps":[
//!   {"turn":1,"tool":"bash","args":{"command":"ls"},"result":"a.txt","is_error":false}]}
//! ```
//!
//! Only `steps` and the `tool` of each must be there, and what is not listed
//! here is passed over. Steps of one `turn` that follow each other were called
//! together; `user_breaks` are the steps before which a person spoke.

use std::borrow::Cow;
use std::fmt;

use jackline_engine::event::PromptSource;
use jackline_engine::{
    ActorId, Arguments, CallId, Event, EventKind, Payload, PromptSubmitted, SessionId,
    SessionStarted, Status, ToolFinished, ToolName, ToolProposed,
};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a model said where it should have called a tool.
const FORMAT_ERROR: &str = "_format_error";

/// How such runs are called in events.
const CLIENT: &str = "trajectory";

/// One recorded run.
#[derive(Debug)]
pub struct Trajectory<'a> {
    id: SessionId,
    run: Run<'a>,
}

#[derive(Debug, Deserialize)]
struct Run<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    model: Option<Value>,
    #[serde(default)]
    user_breaks: Option<Vec<u64>>,
    #[serde(borrow)]
    steps: Vec<Step<'a>>,
}

#[derive(Debug, Deserialize)]
struct Step<'a> {
    /// Only compared.
    #[serde(borrow, default)]
    turn: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Cow<'a, str>,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: Said,
    #[serde(default)]
    is_error: Option<bool>,
}

impl<'a> Trajectory<'a> {
    /// Reads a line; `name` is for a run that has none.
    pub fn parse(line: &'a [u8], name: impl FnOnce() -> String) -> Result<Self, String> {
        // Whether it is UTF-8 is asked once of all of it, and not of each text in it.
        let run = match std::str::from_utf8(line) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(line),
        };
        let run: Run<'_> = run.map_err(|error| {
            if error.is_data() && line.trim_ascii_start().first() != Some(&b'{') {
                return "a run is an object with `steps`".to_owned();
            }
            brief(&error)
        })?;
        let named = run.id.map(said).filter(|id| !id.is_empty());
        let id = SessionId::parse(named.unwrap_or_else(name))
            .map_err(|error| format!("`id` {error}"))?;
        Ok(Self { id, run })
    }

    /// What the run is called.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// What happened, in its order: the calls of one turn are proposed together
    /// before any of them comes back. They are added to `events`.
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
            let spoke = breaks.binary_search(&number).is_ok();
            let now = step.turn.map(RawValue::get);
            if spoke || now.is_none() || now != turn {
                events.extend(open.drain(..).map(event));
            }
            turn = now;
            if spoke {
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

impl Step<'_> {
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
            status: if self.is_error == Some(true) { Status::Error } else { Status::Ok },
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

/// Arguments that were no object, or of no call at all, are text.
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

/// A text, or the JSON of something else. Results are most of what there is to
/// read, so their texts are read once.
#[derive(Debug, Default)]
struct Said(Option<String>);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SaidVisitor)
    }
}

struct SaidVisitor;

impl<'de> Visitor<'de> for SaidVisitor {
    type Value = Said;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a result")
    }

    fn visit_str<E>(self, text: &str) -> Result<Said, E> {
        Ok(Said(Some(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Said, E> {
        Ok(Said(None))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Said, E> {
        Ok(Said(Some(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Said, E> {
        Ok(Said(Some(value.to_string())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Said, E> {
        Ok(Said(Some(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Said, E> {
        Ok(Said(Some(Value::from(value).to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Said, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(items))?;
        Ok(Said(Some(value.to_string())))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Said, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(Said(Some(value.to_string())))
    }
}

/// A text, or the JSON of something else.
fn said(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// What is wrong with a line, without the number that serde counts: there is
/// only one.
fn brief(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " in column ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn events(run: &Value) -> Vec<Value> {
        let line = run.to_string();
        let run = Trajectory::parse(line.as_bytes(), || "here".to_owned()).unwrap();
        let mut events = Vec::new();
        run.events(&mut events).unwrap();
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    /// The kinds of some events, and the calls they are about.
    fn order(run: &Value) -> Vec<String> {
        let word = |event: &Value| {
            let kind = event["event"].as_str().unwrap().split('_').next_back().unwrap();
            format!("{kind} {}", event["call"].as_str().unwrap_or_default()).trim().to_owned()
        };
        events(run).iter().map(word).collect()
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
    fn calls_of_one_turn_are_proposed_before_the_first_comes_back() {
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
        // A person who spoke in between did so after what came before.
        assert_eq!(
            order(&json!({"steps": [step(json!(1)), step(json!(1))], "user_breaks": [1, 9]})),
            ["started", "proposed 0", "finished 0", "submitted", "proposed 1", "finished 1"]
        );
    }

    #[test]
    fn what_was_no_call_has_arguments_that_cannot_be_read() {
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
    fn results_may_be_of_any_kind() {
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
    fn a_run_without_a_name_is_given_one() {
        for (id, name) in [("{}", "here"), ("{\"id\":null}", "here"), ("{\"id\":7}", "7")] {
            let mut run: Value = serde_json::from_str(id).unwrap();
            run["steps"] = json!([]);
            let line = run.to_string();
            assert_eq!(
                Trajectory::parse(line.as_bytes(), || "here".to_owned()).unwrap().id().as_str(),
                name
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error =
            |line: &str| Trajectory::parse(line.as_bytes(), || "here".to_owned()).unwrap_err();
        assert_eq!(error("{\"id\":1}"), "missing field `steps` in column 8");
        assert_eq!(error("{\"steps\":[{}]}"), "missing field `tool` in column 12");
        assert!(error("{\"steps\":[").starts_with("EOF"));
        let run =
            Trajectory::parse(b"{\"steps\":[{\"tool\":\"\"}]}", || "here".to_owned()).unwrap();
        assert_eq!(
            run.events(&mut Vec::new()).unwrap_err(),
            "step 0: the name of its tool must not be empty"
        );
    }
}
