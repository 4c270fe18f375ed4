//! Translates the payloads of Claude Code into events.

use std::path::PathBuf;

use jackline_engine::event::{CallReference, CompactionFinished, OutputProposed, PromptSource};
use jackline_engine::id::IdError;
use jackline_engine::json::canonical_digest;
use jackline_engine::wire::WireError;
use jackline_engine::{
    ActorId, Arguments, CallId, CallStatus, Event, EventId, EventKind, Payload, PromptSubmitted,
    SessionEnded, SessionStarted, StopProposed, ToolFinished, ToolName, ToolProposed,
};
use serde_json::Value;

use super::dialect::TranscriptUsageSource;
use super::file_tools::file_write;
use super::hooks::{ClaudeHook, IGNORED_FIELDS};
use super::output_page::ClaudeToolOutput;
use super::{CLIENT, CLIENT_ID, tool_results};
use crate::dialect::{AskRoute, HookPayload, HookReport, PayloadError, ToolOutput, UsageSource};
use crate::hook_environment::HookEnvironment;
use crate::payload::PayloadFields;
use crate::typed_code::TypedCode;

/// Prompts that the client itself sends to the agent begin with these.
const CLIENT_PREFIXES: [&str; 3] =
    ["<task-notification>", "<system-reminder>", "<teammate-message"];

/// The tool with which the agent hands over an output whose schema its caller demands.
const STRUCTURED_OUTPUT_TOOL: &str = "StructuredOutput";

/// The actor id of a sub-agent without an id.
const NO_AGENT_ID: &str = "subagent";

/// The permission modes in which the client asks a person.
const ASKING_MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// Translates a payload. It is an error if a field is missing that a gate needs.
pub(super) fn translate(
    payload: HookPayload,
    surroundings: &HookEnvironment,
) -> Result<HookReport, PayloadError> {
    let HookPayload { call, mut fields } = payload;
    let hook = ClaudeHook::of_call(&call);
    let session = call.session.ok_or(PayloadError::Missing("session_id"))?;
    fields.take_text("session_id");
    let transcript = fields.take_text("transcript_path").map(PathBuf::from);
    let sub_agent = sub_agent(hook, &mut fields)?;
    let usage = TranscriptUsageSource::of(hook, &fields, transcript, sub_agent.as_ref());
    let mode = fields.take_text("permission_mode");
    let asks = surroundings.has_person
        && sub_agent.is_none()
        && mode.as_deref().is_some_and(|mode| ASKING_MODES.contains(&mode));
    let prompt = fields.peek_text("prompt").filter(|_| hook == ClaudeHook::UserPromptSubmit);
    let actor = sub_agent.unwrap_or_else(ActorId::main);
    let mut report = HookReport {
        ask_route: if asks { AskRoute::AskInClient } else { AskRoute::ShowCommand },
        refused_calls: refused_calls(hook, &fields),
        usage_source: usage.map(|usage| Box::new(usage) as Box<dyn UsageSource>),
        typed_code: prompt.and_then(TypedCode::parse),
        tool_output: ClaudeToolOutput::of(hook, &fields)
            .map(|output| Box::new(output) as Box<dyn ToolOutput>),
        file_write: file_write(hook, &fields),
        ..HookReport::new(session.clone(), actor.clone())
    };
    let cwd = fields.take_text("cwd");
    let translated = translate_event(hook, &mut fields, (cwd, asks), surroundings)?;
    let Some((id, kind)) = translated else { return Ok(report) };
    // A finished call repeats its arguments here. They are a recognised field, so we take them out.
    fields.take_object("tool_input");
    let meta = fields.into_meta(hook.name(), mode.as_deref(), &IGNORED_FIELDS);
    report.events.push(Event { session, id, at: None, actor, kind, meta: Some(meta) });
    Ok(report)
}

/// The sub-agent that acts, or nothing for the main agent.
fn sub_agent(
    hook: ClaudeHook,
    fields: &mut PayloadFields,
) -> Result<Option<ActorId>, PayloadError> {
    let agent_id = fields.take_text("agent_id").or_else(|| {
        // This must not be the main agent: its stop would end the turn.
        let of_sub_agent = matches!(hook, ClaudeHook::SubagentStart | ClaudeHook::SubagentStop);
        of_sub_agent.then(|| NO_AGENT_ID.to_owned())
    });
    agent_id.map(|id| parse_id("agent_id", ActorId::parse(id))).transpose()
}

/// An event, and an id for events that the client may report twice.
type IdentifiedEvent = (Option<EventId>, EventKind);

fn translate_event(
    hook: ClaudeHook,
    fields: &mut PayloadFields,
    (cwd, asks_person): (Option<String>, bool),
    surroundings: &HookEnvironment,
) -> Result<Option<IdentifiedEvent>, PayloadError> {
    let kind: EventKind = match hook {
        ClaudeHook::SessionStart => {
            let source = fields.take_text("source");
            if source.as_deref() == Some("compact") {
                return Ok(Some((None, CompactionFinished::default().into())));
            }
            if surroundings.run.is_some() {
                return Ok(None);
            }
            let project = surroundings.project.as_ref().and_then(|path| path.to_str());
            SessionStarted {
                workspace: project.map(ToOwned::to_owned).or(cwd),
                client: Some(CLIENT_ID.to_owned()),
                model: fields.take_text("model"),
                role: surroundings.role.clone(),
                compact_command: CLIENT.compact_command.map(ToOwned::to_owned),
                ..SessionStarted::default()
            }
            .into()
        }
        ClaudeHook::UserPromptSubmit => translate_prompt(fields, surroundings).into(),
        ClaudeHook::PreToolUse if is_structured_output(fields) => {
            return translate_output(fields).map(Some);
        }
        ClaudeHook::PreToolUse => return translate_proposal(fields, cwd, asks_person).map(Some),
        // The output was decided on before the tool ran.
        ClaudeHook::PostToolUse | ClaudeHook::PostToolUseFailure | ClaudeHook::PermissionDenied
            if is_structured_output(fields) =>
        {
            return Ok(None);
        }
        ClaudeHook::PostToolUse | ClaudeHook::PostToolUseFailure | ClaudeHook::PermissionDenied => {
            translate_result(hook, fields)?.into()
        }
        // The supervisor reports the end of a run and asks whether the task is done.
        ClaudeHook::Stop | ClaudeHook::SessionEnd if surroundings.run.is_some() => return Ok(None),
        ClaudeHook::Stop | ClaudeHook::SubagentStop => translate_stop(hook, fields).into(),
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

/// The calls of a finished batch that a person refused in the client. No other hook reports them.
fn refused_calls(hook: ClaudeHook, fields: &PayloadFields) -> Vec<CallId> {
    if hook != ClaudeHook::PostToolBatch {
        return Vec::new();
    }
    let refused = fields.list("tool_calls").iter().filter(|call| {
        let response = call.get("tool_response").and_then(Value::as_str);
        response.is_some_and(tool_results::is_refusal_by_person)
    });
    refused.filter_map(|call| CallId::parse(call.get("tool_use_id")?.as_str()?).ok()).collect()
}

fn translate_prompt(fields: &mut PayloadFields, surroundings: &HookEnvironment) -> PromptSubmitted {
    let text = fields.take_text("prompt");
    let source = fields.take_text("source");
    let by_client = text.as_deref().is_some_and(|text| {
        let text = text.trim_start();
        CLIENT_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
    });
    let by_client = by_client || surroundings.run.is_some();
    let human = !by_client && source.is_none_or(|source| source == "user");
    let source = if human { PromptSource::Human } else { PromptSource::Harness };
    PromptSubmitted { source, text: text.map(Payload::Inline) }
}

fn translate_proposal(
    fields: &mut PayloadFields,
    cwd: Option<String>,
    asks_person: bool,
) -> Result<IdentifiedEvent, PayloadError> {
    let tool = fields.take_text("tool_name").ok_or(PayloadError::Missing("tool_name"))?;
    let args = fields.take_object("tool_input").ok_or(PayloadError::Missing("tool_input"))?;
    let call = fields.take_text("tool_use_id");
    // If our hooks are installed twice, the client calls us twice. The second call gets the answer
    // of the first.
    let id = call.as_ref().map(|call| parse_id("id", EventId::parse(call))).transpose()?;
    let proposed = ToolProposed {
        call: call.map(|call| parse_id("call", CallId::parse(call))).transpose()?,
        tool: parse_id("tool", ToolName::parse(tool))?,
        args: Arguments::Parsed(args),
        cwd,
        asks_person,
    };
    Ok((id, proposed.into()))
}

/// Whether the payload is about the tool with which the agent hands over its output.
fn is_structured_output(fields: &PayloadFields) -> bool {
    fields.peek_text("tool_name") == Some(STRUCTURED_OUTPUT_TOOL)
}

fn translate_output(fields: &mut PayloadFields) -> Result<IdentifiedEvent, PayloadError> {
    fields.take_text("tool_name");
    let output = fields.take_object("tool_input").ok_or(PayloadError::Missing("tool_input"))?;
    let call = fields.take_text("tool_use_id");
    let id = call.map(|call| parse_id("id", EventId::parse(call))).transpose()?;
    let text = Some(Payload::Inline(output.to_string()));
    Ok((id, OutputProposed { text, ..OutputProposed::default() }.into()))
}

fn translate_result(
    hook: ClaudeHook,
    fields: &mut PayloadFields,
) -> Result<ToolFinished, PayloadError> {
    let call = fields.take_text("tool_use_id");
    let tool = fields.take_text("tool_name").unwrap_or_default();
    let status = match hook {
        ClaudeHook::PostToolUse => CallStatus::Ok,
        ClaudeHook::PostToolUseFailure if !fields.flag("is_interrupt") => CallStatus::Error,
        _ => CallStatus::Cancelled,
    };
    let mut finished = ToolFinished { status, ..ToolFinished::default() };
    if hook == ClaudeHook::PostToolUse {
        if let Some(response) = fields.take_any("tool_response") {
            tool_results::add_result(&tool, response, &mut finished);
        }
    } else {
        let error = fields.take_any("error").or_else(|| fields.take_any("reason"));
        if let Some(text) = error.and_then(tool_results::result_text) {
            finished.exit_code = tool_results::parse_exit_code(&text);
            finished.result = Some(Payload::Inline(text));
        }
    }
    match call {
        Some(call) => finished.call = Some(parse_id("call", CallId::parse(call))?),
        None => finished.of = called_tool(tool, fields.take_object("tool_input")),
    }
    Ok(finished)
}

/// Identifies a call by its tool and arguments, for clients that give their calls no ids.
fn called_tool(tool: String, args: Option<Value>) -> Option<CallReference> {
    Some(CallReference { tool: ToolName::parse(tool).ok()?, args: canonical_digest(&args?) })
}

fn translate_stop(hook: ClaudeHook, fields: &mut PayloadFields) -> StopProposed {
    let running = fields.list("background_tasks").len();
    // The list of a sub-agent's stop contains that sub-agent itself.
    let running = if hook == ClaudeHook::Stop { running } else { 0 };
    StopProposed {
        reason: Some("end_turn".to_owned()),
        output: fields.take_text("last_assistant_message").map(Payload::Inline),
        background: running as u64,
    }
}

fn parse_id<T>(field: &'static str, parsed: Result<T, IdError>) -> Result<T, PayloadError> {
    parsed.map_err(|source| PayloadError::Event(WireError::Id { field, source }))
}
