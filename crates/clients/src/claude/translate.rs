//! From the client's words to events.

use std::path::{Path, PathBuf};

use jackline_engine::wire::{WireError, parse_event};
use jackline_engine::{
    ActorId, Arguments, CallId, Called, Event, EventKind, SessionId, ToolFinished, ToolName,
    ToolProposed, observe,
};
use serde_json::{Map, Value, json};

use super::codes::Typed;
use super::output::Returned;
use super::payload::{Hook, Payload, PayloadError};
use super::results;
use super::surroundings::Surroundings;
use super::undo::Writes;
use super::usage::Whose;

/// How the client begins what it says to the agent by itself.
const HARNESS: [&str; 3] = ["<task-notification>", "<system-reminder>", "<teammate-message"];

/// Stands in for the id of a call that has none.
const NO_CALL: &str = "-";

/// Stands in for the id of a sub-agent that has none.
const NO_AGENT: &str = "subagent";

/// Modes of the client in which it asks a person.
const ASKING_MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// How a call of the agent is taken: by the client, or by nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The client asks the person who sits at it.
    Client,
    /// Nobody is asked; a person has to be told.
    Nobody,
}

/// A payload in our own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Translated {
    /// What happened, in the client's words.
    pub hook: Hook,
    /// The session it is about.
    pub session: SessionId,
    /// The event; some hooks tell nothing that we don't know from others.
    pub event: Option<Event>,
    /// Whether the client can ask a person about this call.
    pub asking: Asking,
    /// Whether a stop was blocked before in this turn.
    pub stop_blocked: bool,
    /// Where the client writes down what the model's last answer cost.
    pub costs: Option<(PathBuf, Whose)>,
    /// What a person typed, where it can be an answer.
    pub typed: Option<Typed>,
    /// Who acts.
    pub actor: ActorId,
    /// What a tool gave back, where the client takes something else instead.
    pub returned: Option<Returned>,
    /// The file that the call writes, where its tool is the client's own.
    pub writes: Option<Writes>,
}

/// Translates a payload. What a gate can't do without must be there.
pub fn translate(
    mut payload: Payload,
    surroundings: &Surroundings,
) -> Result<Translated, PayloadError> {
    let hook = payload.hook;
    let session = session_of(&payload, surroundings).ok_or(PayloadError::Missing("session_id"))?;
    payload.text("session_id");
    let transcript = payload.text("transcript_path").map(PathBuf::from);
    let sub_agent = payload.text("agent_id").or_else(|| {
        // Not the agent itself: its own stop would end the turn.
        let of_subagent = matches!(hook, Hook::SubagentStart | Hook::SubagentStop);
        of_subagent.then(|| NO_AGENT.to_owned())
    });
    let costs = costs(&payload, transcript, sub_agent.as_deref());
    let is_main = sub_agent.is_none();
    let mode = payload.text("permission_mode");
    let mut event = Map::new();
    event.insert("session".to_owned(), json!(session.as_str()));
    let actor = match sub_agent {
        Some(id) => {
            ActorId::parse(id).map_err(|source| WireError::Id { field: "agent_id", source })?
        }
        None => ActorId::main(),
    };
    event.insert("actor".to_owned(), json!(actor.as_str()));
    let tool = payload.peek("tool_name").unwrap_or_default().to_owned();
    let stop_blocked = payload.flag("stop_hook_active");
    let prompt = payload.peek("prompt").filter(|_| hook == Hook::UserPromptSubmit);
    let typed = prompt.and_then(Typed::parse);
    let returned = Returned::of(&payload);
    let writes = Writes::of(&payload);
    let told = tell(&mut payload, &mut event, surroundings)?;
    let called = payload.object("tool_input");
    let asks = surroundings.attended
        && is_main
        && mode.as_deref().is_some_and(|mode| ASKING_MODES.contains(&mode));
    let meta = payload.into_meta(mode.as_deref());
    let event = match told {
        Some(name) => {
            event.insert("event".to_owned(), json!(name));
            event.insert("meta".to_owned(), meta);
            Some(without_call(parse_event(Value::Object(event))?, tool, called))
        }
        None => None,
    };
    let asking = if asks { Asking::Client } else { Asking::Nobody };
    Ok(Translated {
        hook,
        session,
        event,
        asking,
        stop_blocked,
        costs,
        typed,
        actor,
        returned,
        writes,
    })
}

/// Where the answers of the model are written down, at the hooks that come once after
/// each: all calls of it are over, or there were none. The client writes late, so
/// what is left of a turn is looked for before the next one begins, before what
/// comes after a compaction is compared with it, and when the client leaves.
fn costs(
    payload: &Payload,
    transcript: Option<PathBuf>,
    sub_agent: Option<&str>,
) -> Option<(PathBuf, Whose)> {
    let looks = matches!(
        payload.hook,
        Hook::PostToolBatch
            | Hook::Stop
            | Hook::SubagentStop
            | Hook::SessionStart
            | Hook::UserPromptSubmit
            | Hook::SessionEnd
    );
    if !looks {
        return None;
    }
    let Some(id) = sub_agent else { return Some((transcript?, Whose::Main)) };
    let named = payload.peek("agent_transcript_path").map(PathBuf::from);
    let harmless = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    // Only the end of a sub-agent says where it is; the client keeps them here.
    let beside = || {
        let directory = transcript.filter(|_| harmless)?.with_extension("").join("subagents");
        Some(directory.join(format!("agent-{id}.jsonl")))
    };
    Some((named.or_else(beside)?, Whose::SubAgent))
}

/// The session: the run that the client works for, else by its id or by the file that the
/// client keeps of it.
pub(crate) fn session_of(payload: &Payload, surroundings: &Surroundings) -> Option<SessionId> {
    if let Some(run) = &surroundings.run {
        return Some(run.clone());
    }
    let text = |field: &str| payload.peek(field).filter(|text| !text.is_empty());
    let file = || Path::new(text("transcript_path")?).file_stem()?.to_str();
    SessionId::parse(text("session_id").or_else(file)?).ok()
}

/// Puts the fields of an event together and gives its name.
fn tell(
    payload: &mut Payload,
    event: &mut Map<String, Value>,
    surroundings: &Surroundings,
) -> Result<Option<&'static str>, PayloadError> {
    let cwd = payload.text("cwd");
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            event.insert(name.to_owned(), value);
        }
    };
    Ok(Some(match payload.hook {
        Hook::SessionStart => {
            let source = payload.text("source");
            if source.as_deref() == Some("compact") {
                return Ok(Some("compaction_finished"));
            }
            if surroundings.run.is_some() {
                return Ok(None);
            }
            let project = surroundings.project.as_ref().and_then(|path| path.to_str());
            set("workspace", project.map(|path| json!(path)).or_else(|| cwd.map(Value::from)));
            set("client", Some(json!("claude")));
            set("model", payload.text("model").map(Value::from));
            "session_started"
        }
        Hook::UserPromptSubmit => {
            let text = payload.text("prompt");
            let source = payload.text("source");
            let by_client = text.as_deref().is_some_and(|text| {
                let text = text.trim_start();
                HARNESS.iter().any(|beginning| text.starts_with(beginning))
            });
            let by_client = by_client || surroundings.run.is_some();
            let human = !by_client && source.is_none_or(|source| source == "user");
            set("source", Some(json!(if human { "human" } else { "harness" })));
            set("text", text.map(Value::from));
            "prompt_submitted"
        }
        Hook::PreToolUse => {
            let tool = payload.text("tool_name").ok_or(PayloadError::Missing("tool_name"))?;
            let args = payload.object("tool_input").ok_or(PayloadError::Missing("tool_input"))?;
            let call = payload.text("tool_use_id");
            // Hooks may be installed twice, and are then asked twice; the second
            // gets the answer of the first.
            set("id", call.as_ref().map(|call| json!(call)));
            set("call", Some(call.map_or(json!(NO_CALL), Value::from)));
            set("tool", Some(json!(tool)));
            set("args", Some(args));
            set("cwd", cwd.map(Value::from));
            "tool_proposed"
        }
        Hook::PostToolUse | Hook::PostToolUseFailure | Hook::PermissionDenied => {
            let call = payload.text("tool_use_id");
            let tool = payload.text("tool_name").unwrap_or_default();
            set("call", Some(call.map_or(json!(NO_CALL), Value::from)));
            finished(payload, &tool, event);
            "tool_finished"
        }
        // Whoever drives the run says when it ends, and asks whether it is done.
        Hook::Stop | Hook::SessionEnd if surroundings.run.is_some() => return Ok(None),
        Hook::Stop | Hook::SubagentStop => {
            let running = payload.list("background_tasks").len();
            // A sub-agent that stops is among the tasks that its own stop names.
            let running = if payload.hook == Hook::Stop { running } else { 0 };
            set("reason", Some(json!("end_turn")));
            set("output", payload.text("last_assistant_message").map(Value::from));
            set("background", Some(json!(running)));
            "stop_proposed"
        }
        Hook::SubagentStart => {
            set("source", Some(json!("harness")));
            "prompt_submitted"
        }
        Hook::SessionEnd => "session_ended",
        Hook::PostToolBatch
        | Hook::PreCompact
        | Hook::PostCompact
        | Hook::ConfigChange
        | Hook::Other => return Ok(None),
    }))
}

fn finished(payload: &mut Payload, tool: &str, event: &mut Map<String, Value>) {
    let status = match payload.hook {
        Hook::PostToolUse => "ok",
        Hook::PostToolUseFailure if !payload.flag("is_interrupt") => "error",
        _ => "cancelled",
    };
    event.insert("status".to_owned(), json!(status));
    if payload.hook == Hook::PostToolUse {
        if let Some(response) = payload.any("tool_response") {
            results::returned(tool, response, event);
        }
        return;
    }
    let said = payload.any("error").or_else(|| payload.any("reason")).and_then(results::text_of);
    if let Some(said) = said {
        if let Some(code) = results::exit_code(&said) {
            event.insert("exit_code".to_owned(), json!(code));
        }
        event.insert("result".to_owned(), json!(said));
    }
}

/// A client that gives its calls no ids is understood by what was called.
fn without_call(mut event: Event, tool: String, args: Option<Value>) -> Event {
    let nameless = |call: &Option<CallId>| call.as_ref().is_some_and(|id| id.as_str() == NO_CALL);
    let (session, actor) = (event.session.clone(), event.actor.clone());
    match &mut event.kind {
        EventKind::ToolProposed(ToolProposed { call, .. }) if nameless(call) => *call = None,
        EventKind::ToolFinished(ToolFinished { call, of, .. }) if nameless(call) => {
            if let (Ok(tool), Some(args)) = (ToolName::parse(tool), args) {
                let args = Arguments::Parsed(args);
                let kind = EventKind::ToolProposed(ToolProposed {
                    tool: tool.clone(),
                    args,
                    ..ToolProposed::default()
                });
                let proposed = Event { session, id: None, at: None, actor, kind, meta: None };
                *of = observe(&proposed).args.map(|args| Called { tool, args });
            }
            *call = None;
        }
        _ => {}
    }
    event
}
