//! Claude Code as a dialect of the hook server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use jackline_engine::event::UsageReported;
use jackline_engine::id::RequestId;
use jackline_engine::{ActorId, SessionId, Timestamp, Verdict};
use serde_json::Value;

use super::hooks::ClaudeHook;
use super::usage::{Usage, Whose, uncounted};
use super::{answer, reload, translate};
use crate::dialect::{
    Abilities, AnswerTexts, Dialect, HookCall, HookPayload, HookReply, HookReport, Malformed,
    UsageSource,
};
use crate::payload::PayloadFields;
use crate::surroundings::{Surroundings, variable};

/// Where the client says which directory it was started in.
pub(super) const PROJECT_VARIABLE: &str = "CLAUDE_PROJECT_DIR";

/// How Claude Code spells events and answers.
pub struct ClaudeDialect;

impl Dialect for ClaudeDialect {
    fn abilities(&self) -> Abilities {
        Abilities { blocks_stops: true, replaces_outputs: true }
    }

    fn surroundings(&self) -> Surroundings {
        let attended = is_attended(
            variable("CLAUDE_CODE_SESSION_ATTENDED").as_deref(),
            variable("CLAUDE_CODE_ENTRYPOINT").as_deref(),
        );
        Surroundings::of_process(variable(PROJECT_VARIABLE).map(PathBuf::from), attended)
    }

    fn parse(&self, input: &[u8], at: &Surroundings) -> Result<HookPayload, Malformed> {
        let mut fields = PayloadFields::parse(input)?;
        let Some(Value::String(name)) = fields.any("hook_event_name") else {
            return Err(Malformed::Missing("hook_event_name"));
        };
        let hook = ClaudeHook::named(&name);
        let call = HookCall {
            hook: hook.name(),
            moment: hook.moment(),
            session: session_of(&fields, at),
            stop_blocked: fields.flag("stop_hook_active"),
        };
        Ok(HookPayload { call, fields })
    }

    fn objection(&self, payload: &HookPayload, at: &Surroundings) -> Option<String> {
        reload::objection(&payload.fields, at)
    }

    fn translate(&self, payload: HookPayload, at: &Surroundings) -> Result<HookReport, Malformed> {
        translate::translate(payload, at)
    }

    fn render(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
        answer::render(ClaudeHook::of(call), verdict, texts)
    }

    fn hold(&self, _: &HookCall, reason: &str) -> HookReply {
        answer::hold(reason)
    }

    fn broken(&self, call: Option<&HookCall>, text: &str) -> HookReply {
        match call {
            Some(call) => answer::broken(ClaudeHook::of(call), call.stop_blocked, text),
            None => HookReply::refusal(text),
        }
    }
}

/// The session: the run that the client works for, else by its id or by the file that the
/// client keeps of it.
fn session_of(fields: &PayloadFields, at: &Surroundings) -> Option<SessionId> {
    if let Some(run) = &at.run {
        return Some(run.clone());
    }
    let text = |field: &str| fields.peek(field).filter(|text| !text.is_empty());
    let file = || Path::new(text("transcript_path")?).file_stem()?.to_str();
    SessionId::parse(text("session_id").or_else(file)?).ok()
}

/// Newer clients say it; of older ones every entry point but `cli` is a program
/// that drives the client.
fn is_attended(attended: Option<&OsStr>, entrypoint: Option<&OsStr>) -> bool {
    match attended {
        Some(said) => said == "1",
        None => entrypoint.is_some_and(|entrypoint| entrypoint == "cli"),
    }
}

/// A transcript, as a place where token counts stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TranscriptUsage {
    path: PathBuf,
    whose: Whose,
}

impl TranscriptUsage {
    /// The transcript of the answers that a hook may look for: at the hooks that come once after
    /// each, when all calls of it are over, or there were none. The client writes late, so what is
    /// left of a turn is looked for before the next one begins, before what comes after a
    /// compaction is compared with it, and when the client leaves.
    pub(super) fn of(
        hook: ClaudeHook,
        fields: &PayloadFields,
        transcript: Option<PathBuf>,
        sub_agent: Option<&ActorId>,
    ) -> Option<Self> {
        let looks = matches!(
            hook,
            ClaudeHook::PostToolBatch
                | ClaudeHook::Stop
                | ClaudeHook::SubagentStop
                | ClaudeHook::SessionStart
                | ClaudeHook::UserPromptSubmit
                | ClaudeHook::SessionEnd
        );
        if !looks {
            return None;
        }
        let Some(id) = sub_agent.map(ActorId::as_str) else {
            return Some(Self { path: transcript?, whose: Whose::Main });
        };
        let named = fields.peek("agent_transcript_path").map(PathBuf::from);
        let harmless = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        // Only the end of a sub-agent says where it is; the client keeps them here.
        let beside = || {
            let directory = transcript.filter(|_| harmless)?.with_extension("").join("subagents");
            Some(directory.join(format!("agent-{id}.jsonl")))
        };
        Some(Self { path: named.or_else(beside)?, whose: Whose::SubAgent })
    }
}

impl UsageSource for TranscriptUsage {
    fn uncounted(
        &self,
        is_counted: &mut dyn FnMut(&UsageReported, Option<Timestamp>) -> bool,
    ) -> Vec<UsageReported> {
        let used = uncounted(&self.path, self.whose, |used, at| is_counted(&report(used), at));
        used.iter().map(report).collect()
    }
}

/// What an answer of the model used. Told twice it counts once, by its message; where the client
/// gives none, by its numbers.
fn report(used: &Usage) -> UsageReported {
    let Usage { input, cache_read, cache_creation, output, unknown, .. } = *used;
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
    use crate::dialect::Moment;

    #[test]
    fn an_event_without_a_name_is_an_error_and_an_unknown_one_is_not() {
        let at = Surroundings::of_process(None, false);
        let parse = |text: &str| ClaudeDialect.parse(text.as_bytes(), &at);
        for text in ["{}", r#"{"hook_event_name":null}"#, r#"{"hook_event_name":["Stop"]}"#] {
            assert_eq!(parse(text), Err(Malformed::Missing("hook_event_name")));
        }
        let payload = parse(r#"{"hook_event_name":"Tomorrow"}"#).unwrap();
        assert_eq!((payload.call.moment, payload.call.hook), (Moment::Unknown, ""));
        for hook in ClaudeHook::ALL {
            let payload = parse(&format!(r#"{{"hook_event_name":"{}"}}"#, hook.name())).unwrap();
            assert_eq!(ClaudeHook::of(&payload.call), *hook);
        }
    }

    #[test]
    fn a_person_sits_at_a_client_that_says_so() {
        let of = |attended: Option<&str>, entrypoint: Option<&str>| {
            is_attended(attended.map(OsStr::new), entrypoint.map(OsStr::new))
        };
        assert!(of(Some("1"), Some("sdk-cli")));
        assert!(!of(Some("0"), Some("cli")));
        assert!(of(None, Some("cli")));
        assert!(!of(None, Some("sdk-cli")));
        assert!(!of(None, None));
    }
}
