//! The hook dialect of Claude Code.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jackline_engine::event::UsageReported;
use jackline_engine::id::RequestId;
use jackline_engine::{ActorId, SessionId, Timestamp, Verdict};
use jackline_runtime::surfaces::SurfaceProfile;
use serde_json::Value;

use super::hooks::ClaudeHook;
use super::surface::SURFACE;
use super::usage::{AnswerUsage, TranscriptOwner, uncounted_usage};
use super::{answer, settings_change, translate};
use crate::dialect::{
    AnswerTexts, ClientTools, Dialect, HookCall, HookPayload, HookReply, HookReport, PayloadError,
    UsageSource,
};
use crate::hook_environment::{HookEnvironment, read_variable};
use crate::payload::PayloadFields;

/// The client puts its start directory into this variable.
pub(super) const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// The tools of Claude Code, and those of MCP servers that the person connected to it.
const CLAUDE_TOOLS: ClientTools = ClientTools {
    names: &[
        "Agent",
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "CronCreate",
        "CronDelete",
        "CronList",
        "Edit",
        "EnterPlanMode",
        "EnterWorktree",
        "ExitPlanMode",
        "ExitWorktree",
        "Glob",
        "Grep",
        "KillShell",
        "LSP",
        "ListAgents",
        "ListMcpResourcesTool",
        "Monitor",
        "MultiEdit",
        "NotebookEdit",
        "NotebookRead",
        "PowerShell",
        "Read",
        "ReadMcpResourceTool",
        "ReportFindings",
        "ScheduleWakeup",
        "SendMessage",
        "Skill",
        "SlashCommand",
        "StructuredOutput",
        "Task",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
        "Workflow",
        "Write",
    ],
    prefixes: &["mcp__"],
};

/// Reads payloads of Claude Code and writes its answers.
pub struct ClaudeDialect;

impl Dialect for ClaudeDialect {
    fn surface(&self) -> &'static SurfaceProfile {
        &SURFACE
    }

    fn tools(&self) -> ClientTools {
        CLAUDE_TOOLS
    }

    fn read_environment(&self) -> HookEnvironment {
        let attended = is_attended(
            read_variable("CLAUDE_CODE_SESSION_ATTENDED").as_deref(),
            read_variable("CLAUDE_CODE_ENTRYPOINT").as_deref(),
        );
        HookEnvironment::of_process(read_variable(PROJECT_VARIABLE).map(PathBuf::from), attended)
    }

    fn parse_payload(
        &self,
        input: &[u8],
        at: &HookEnvironment,
    ) -> Result<HookPayload, PayloadError> {
        let mut fields = PayloadFields::parse(input)?;
        let Some(Value::String(name)) = fields.take_any("hook_event_name") else {
            return Err(PayloadError::Missing("hook_event_name"));
        };
        let hook = ClaudeHook::by_name(&name);
        let call = HookCall {
            hook: hook.name(),
            moment: hook.moment(),
            session: parse_session(&fields, at),
            stop_blocked: fields.flag("stop_hook_active"),
        };
        Ok(HookPayload { call, fields })
    }

    fn reject_settings(&self, payload: &HookPayload, at: &HookEnvironment) -> Option<String> {
        settings_change::reject_settings(&payload.fields, at)
    }

    fn translate_payload(
        &self,
        payload: HookPayload,
        at: &HookEnvironment,
    ) -> Result<HookReport, PayloadError> {
        translate::translate(payload, at)
    }

    fn render_verdict(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
        answer::render_verdict(ClaudeHook::of_call(call), verdict, texts)
    }

    fn render_block(&self, _: &HookCall, reason: &str) -> HookReply {
        answer::render_block(reason)
    }

    fn render_fault(&self, call: Option<&HookCall>, text: &str) -> HookReply {
        match call {
            Some(call) => answer::render_fault(ClaudeHook::of_call(call), call.stop_blocked, text),
            None => HookReply::refusal(text),
        }
    }
}

/// The session of the run that the client works for. Without a run, the session id in the payload
/// or the name of the client's transcript file.
fn parse_session(fields: &PayloadFields, at: &HookEnvironment) -> Option<SessionId> {
    if let Some(run) = &at.run {
        return Some(run.clone());
    }
    let text = |field: &str| fields.peek_text(field).filter(|text| !text.is_empty());
    let file = || Path::new(text("transcript_path")?).file_stem()?.to_str();
    SessionId::parse(text("session_id").or_else(file)?).ok()
}

/// Newer clients report whether a person is present. For older clients, every entry point except
/// `cli` is a program that drives the client.
fn is_attended(attended: Option<&OsStr>, entrypoint: Option<&OsStr>) -> bool {
    match attended {
        Some(flag) => flag == "1",
        None => entrypoint.is_some_and(|entrypoint| entrypoint == "cli"),
    }
}

/// A transcript of the client, as a source of token counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TranscriptUsageSource {
    path: PathBuf,
    owner: TranscriptOwner,
}

impl TranscriptUsageSource {
    /// Finds the transcript to read at this hook.
    ///
    /// We read it at hooks that come once after each model answer, when its calls are finished or
    /// it had none. The client writes late. So we read the rest of a turn before the next turn
    /// begins, at the start of a session (also after a compaction), and when the client exits.
    pub(super) fn of(
        hook: ClaudeHook,
        fields: &PayloadFields,
        transcript: Option<PathBuf>,
        sub_agent: Option<&ActorId>,
    ) -> Option<Self> {
        let reads_usage = matches!(
            hook,
            ClaudeHook::PostToolBatch
                | ClaudeHook::Stop
                | ClaudeHook::SubagentStop
                | ClaudeHook::SessionStart
                | ClaudeHook::UserPromptSubmit
                | ClaudeHook::SessionEnd
        );
        if !reads_usage {
            return None;
        }
        let Some(id) = sub_agent.map(ActorId::as_str) else {
            return Some(Self { path: transcript?, owner: TranscriptOwner::MainAgent });
        };
        let reported = fields.peek_text("agent_transcript_path").map(PathBuf::from);
        let is_plain_name = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        // Only `SubagentStop` reports the path of the transcript. The client stores it here.
        let default_path = || {
            let directory =
                transcript.filter(|_| is_plain_name)?.with_extension("").join("subagents");
            Some(directory.join(format!("agent-{id}.jsonl")))
        };
        Some(Self { path: reported.or_else(default_path)?, owner: TranscriptOwner::SubAgent })
    }
}

impl UsageSource for TranscriptUsageSource {
    fn uncounted_usage(
        &self,
        is_counted: &mut dyn FnMut(&UsageReported, Option<Timestamp>) -> bool,
    ) -> Vec<UsageReported> {
        let used =
            uncounted_usage(&self.path, self.owner, |used, at| is_counted(&usage_event(used), at));
        used.iter().map(usage_event).collect()
    }
}

/// Token counts of one model answer. An answer that is reported twice counts once: the request id
/// is the message id, or made from the numbers if the client gives no id.
fn usage_event(used: &AnswerUsage) -> UsageReported {
    let AnswerUsage { input, cache_read, cache_creation, output, unknown, .. } = *used;
    let numbers = || {
        if unknown {
            return "unread".to_owned();
        }
        format!("{input}-{cache_read}-{cache_creation}-{output}")
    };
    let request = used.request.as_ref().and_then(|id| RequestId::parse(id).ok());
    UsageReported {
        request: request.or_else(|| RequestId::parse(numbers()).ok()),
        model: used.short_model(),
        input,
        cache_read,
        cache_creation,
        output,
        unknown,
        ..UsageReported::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::HookMoment;

    #[test]
    fn a_payload_without_an_event_name_is_an_error_and_an_unknown_event_is_not() {
        let at = HookEnvironment::of_process(None, false);
        let parse = |text: &str| ClaudeDialect.parse_payload(text.as_bytes(), &at);
        for text in ["{}", r#"{"hook_event_name":null}"#, r#"{"hook_event_name":["Stop"]}"#] {
            assert_eq!(parse(text), Err(PayloadError::Missing("hook_event_name")));
        }
        let payload = parse(r#"{"hook_event_name":"Tomorrow"}"#).unwrap();
        assert_eq!((payload.call.moment, payload.call.hook), (HookMoment::Unrecognised, ""));
        for hook in ClaudeHook::ALL {
            let payload = parse(&format!(r#"{{"hook_event_name":"{}"}}"#, hook.name())).unwrap();
            assert_eq!(ClaudeHook::of_call(&payload.call), *hook);
        }
    }

    #[test]
    fn the_client_reports_whether_a_person_is_present() {
        let attended = |flag: Option<&str>, entrypoint: Option<&str>| {
            is_attended(flag.map(OsStr::new), entrypoint.map(OsStr::new))
        };
        assert!(attended(Some("1"), Some("sdk-cli")));
        assert!(!attended(Some("0"), Some("cli")));
        assert!(attended(None, Some("cli")));
        assert!(!attended(None, Some("sdk-cli")));
        assert!(!attended(None, None));
    }
}
