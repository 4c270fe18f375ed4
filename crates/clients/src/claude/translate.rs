//! From the payloads of Claude Code to events.

use std::path::PathBuf;

use jackline_engine::event::{Called, CompactionFinished, PromptSource};
use jackline_engine::id::IdError;
use jackline_engine::json::digest;
use jackline_engine::wire::WireError;
use jackline_engine::{
    ActorId, Arguments, CallId, Event, EventId, EventKind, Payload, PromptSubmitted, SessionEnded,
    SessionStarted, Status, StopProposed, ToolFinished, ToolName, ToolProposed,
};
use serde_json::Value;

use super::dialect::TranscriptUsage;
use super::hooks::{ClaudeHook, IGNORED_FIELDS};
use super::output::Returned;
use super::writes::file_write;
use super::{NAME, results};
use crate::dialect::{AskRoute, HookPayload, HookReport, Malformed, ToolOutput, UsageSource};
use crate::payload::PayloadFields;
use crate::surroundings::Surroundings;
use crate::typed_code::TypedCode;

/// How the client begins what it says to the agent by itself.
const HARNESS: [&str; 3] = ["<task-notification>", "<system-reminder>", "<teammate-message"];

/// Stands in for the id of a sub-agent that has none.
const NO_AGENT: &str = "subagent";

/// Modes of the client in which it asks a person.
const ASKING_MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// Translates a payload. What a gate can't do without must be there.
pub(super) fn translate(
    payload: HookPayload,
    surroundings: &Surroundings,
) -> Result<HookReport, Malformed> {
    let HookPayload { call, mut fields } = payload;
    let hook = ClaudeHook::of(&call);
    let session = call.session.ok_or(Malformed::Missing("session_id"))?;
    fields.text("session_id");
    let transcript = fields.text("transcript_path").map(PathBuf::from);
    let sub_agent = sub_agent(hook, &mut fields)?;
    let usage = TranscriptUsage::of(hook, &fields, transcript, sub_agent.as_ref());
    let mode = fields.text("permission_mode");
    let asks = surroundings.attended
        && sub_agent.is_none()
        && mode.as_deref().is_some_and(|mode| ASKING_MODES.contains(&mode));
    let prompt = fields.peek("prompt").filter(|_| hook == ClaudeHook::UserPromptSubmit);
    let actor = sub_agent.unwrap_or_else(ActorId::main);
    let mut report = HookReport {
        asking: if asks { AskRoute::Client } else { AskRoute::Command },
        usage: usage.map(|usage| Box::new(usage) as Box<dyn UsageSource>),
        typed: prompt.and_then(TypedCode::parse),
        output: Returned::of(hook, &fields).map(|output| Box::new(output) as Box<dyn ToolOutput>),
        writes: file_write(hook, &fields),
        ..HookReport::new(session.clone(), actor.clone())
    };
    let cwd = fields.text("cwd");
    let told = event(hook, &mut fields, cwd, surroundings)?;
    let Some((id, kind)) = told else { return Ok(report) };
    // The arguments of a call that is over stand beside its result, and are no unknown field.
    fields.object("tool_input");
    let meta = fields.into_meta(hook.name(), mode.as_deref(), &IGNORED_FIELDS);
    report.events.push(Event { session, id, at: None, actor, kind, meta: Some(meta) });
    Ok(report)
}

/// The sub-agent that acts; none where it is the main agent.
fn sub_agent(hook: ClaudeHook, fields: &mut PayloadFields) -> Result<Option<ActorId>, Malformed> {
    let named = fields.text("agent_id").or_else(|| {
        // Not the agent itself: its own stop would end the turn.
        let of_sub_agent = matches!(hook, ClaudeHook::SubagentStart | ClaudeHook::SubagentStop);
        of_sub_agent.then(|| NO_AGENT.to_owned())
    });
    named.map(|id| parse_id("agent_id", ActorId::parse(id))).transpose()
}

/// What happened, with the id by which the client may tell it twice.
type NamedKind = (Option<EventId>, EventKind);

fn event(
    hook: ClaudeHook,
    fields: &mut PayloadFields,
    cwd: Option<String>,
    surroundings: &Surroundings,
) -> Result<Option<NamedKind>, Malformed> {
    let kind: EventKind = match hook {
        ClaudeHook::SessionStart => {
            let source = fields.text("source");
            if source.as_deref() == Some("compact") {
                return Ok(Some((None, CompactionFinished::default().into())));
            }
            if surroundings.run.is_some() {
                return Ok(None);
            }
            let project = surroundings.project.as_ref().and_then(|path| path.to_str());
            SessionStarted {
                workspace: project.map(ToOwned::to_owned).or(cwd),
                client: Some(NAME.to_owned()),
                model: fields.text("model"),
                ..SessionStarted::default()
            }
            .into()
        }
        ClaudeHook::UserPromptSubmit => prompt(fields, surroundings).into(),
        ClaudeHook::PreToolUse => return proposed(fields, cwd).map(Some),
        ClaudeHook::PostToolUse | ClaudeHook::PostToolUseFailure | ClaudeHook::PermissionDenied => {
            finished(hook, fields)?.into()
        }
        // The supervisor of a run reports when it ends, and asks whether it is done.
        ClaudeHook::Stop | ClaudeHook::SessionEnd if surroundings.run.is_some() => return Ok(None),
        ClaudeHook::Stop | ClaudeHook::SubagentStop => stop(hook, fields).into(),
        ClaudeHook::SubagentStart => {
            PromptSubmitted { source: PromptSource::Harness, text: None }.into()
        }
        ClaudeHook::SessionEnd => SessionEnded::default().into(),
        ClaudeHook::PostToolBatch
        | ClaudeHook::PreCompact
        | ClaudeHook::PostCompact
        | ClaudeHook::ConfigChange
        | ClaudeHook::Other => return Ok(None),
    };
    Ok(Some((None, kind)))
}

fn prompt(fields: &mut PayloadFields, surroundings: &Surroundings) -> PromptSubmitted {
    let text = fields.text("prompt");
    let source = fields.text("source");
    let by_client = text.as_deref().is_some_and(|text| {
        let text = text.trim_start();
        HARNESS.iter().any(|beginning| text.starts_with(beginning))
    });
    let by_client = by_client || surroundings.run.is_some();
    let human = !by_client && source.is_none_or(|source| source == "user");
    let source = if human { PromptSource::Human } else { PromptSource::Harness };
    PromptSubmitted { source, text: text.map(Payload::Inline) }
}

fn proposed(fields: &mut PayloadFields, cwd: Option<String>) -> Result<NamedKind, Malformed> {
    let tool = fields.text("tool_name").ok_or(Malformed::Missing("tool_name"))?;
    let args = fields.object("tool_input").ok_or(Malformed::Missing("tool_input"))?;
    let call = fields.text("tool_use_id");
    // Hooks may be installed twice, and are then asked twice; the second gets the answer of the
    // first.
    let id = call.as_ref().map(|call| parse_id("id", EventId::parse(call))).transpose()?;
    let proposed = ToolProposed {
        call: call.map(|call| parse_id("call", CallId::parse(call))).transpose()?,
        tool: parse_id("tool", ToolName::parse(tool))?,
        args: Arguments::Parsed(args),
        cwd,
    };
    Ok((id, proposed.into()))
}

fn finished(hook: ClaudeHook, fields: &mut PayloadFields) -> Result<ToolFinished, Malformed> {
    let call = fields.text("tool_use_id");
    let tool = fields.text("tool_name").unwrap_or_default();
    let status = match hook {
        ClaudeHook::PostToolUse => Status::Ok,
        ClaudeHook::PostToolUseFailure if !fields.flag("is_interrupt") => Status::Error,
        _ => Status::Cancelled,
    };
    let mut finished = ToolFinished { status, ..ToolFinished::default() };
    if hook == ClaudeHook::PostToolUse {
        if let Some(response) = fields.any("tool_response") {
            results::returned(&tool, response, &mut finished);
        }
    } else {
        let error = fields.any("error").or_else(|| fields.any("reason"));
        if let Some(text) = error.and_then(results::text_of) {
            finished.exit_code = results::exit_code(&text);
            finished.result = Some(Payload::Inline(text));
        }
    }
    match call {
        Some(call) => finished.call = Some(parse_id("call", CallId::parse(call))?),
        None => finished.of = called(tool, fields.object("tool_input")),
    }
    Ok(finished)
}

/// What was called, for a client that gives its calls no ids.
fn called(tool: String, args: Option<Value>) -> Option<Called> {
    Some(Called { tool: ToolName::parse(tool).ok()?, args: digest(&args?) })
}

fn stop(hook: ClaudeHook, fields: &mut PayloadFields) -> StopProposed {
    let running = fields.list("background_tasks").len();
    // A sub-agent that stops is among the tasks that its own stop names.
    let running = if hook == ClaudeHook::Stop { running } else { 0 };
    StopProposed {
        reason: Some("end_turn".to_owned()),
        output: fields.text("last_assistant_message").map(Payload::Inline),
        background: running as u64,
    }
}

fn parse_id<T>(field: &'static str, parsed: Result<T, IdError>) -> Result<T, Malformed> {
    parsed.map_err(|source| Malformed::Event(WireError::Id { field, source }))
}
