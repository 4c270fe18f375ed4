//! The hooks of Claude Code, and the fields of their payloads.

use crate::dialect::{HookCall, HookMoment};

/// Payload fields that we recognise and that affect no decision.
pub(super) const IGNORED_FIELDS: [&str; 15] = [
    "prompt_id",
    "effort",
    "duration_ms",
    "session_crons",
    "permission_suggestions",
    "session_title",
    "agent_type",
    "agent_transcript_path",
    "is_interrupt",
    "stop_hook_active",
    "background_tasks",
    "mcp_server",
    "context_tokens",
    "trigger",
    "custom_instructions",
];

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An event at which the client calls a hook.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ClaudeHook {
            $($(#[$doc])* $name,)*
            /// An event that this version does not recognise.
            Other,
        }

        impl ClaudeHook {
            /// Every event that this version recognises.
            pub const ALL: &'static [ClaudeHook] = &[$(ClaudeHook::$name,)*];

            /// The client's name of the event; empty for `Other`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Other => "",
                }
            }
        }
    };
}

hooks! {
    /// A session starts, is resumed, or continues after a compaction.
    SessionStart,
    /// A person or the client itself sends a prompt to the agent.
    UserPromptSubmit,
    /// A tool is about to run. This is the gate.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// All tool calls of one model answer have finished.
    PostToolBatch,
    /// The client itself refused a call.
    PermissionDenied,
    /// The agent wants to end its turn.
    Stop,
    /// A sub-agent starts.
    SubagentStart,
    /// A sub-agent wants to end.
    SubagentStop,
    /// The context is about to be compacted.
    PreCompact,
    /// The context was compacted.
    PostCompact,
    /// The session has ended.
    SessionEnd,
    /// The settings have changed, and the client is about to reload them.
    ConfigChange,
}

impl ClaudeHook {
    /// The hook that was called.
    pub(super) fn of_call(call: &HookCall) -> Self {
        Self::by_name(call.hook)
    }

    /// The hook with this name, or `Other`.
    pub(super) fn by_name(name: &str) -> Self {
        Self::ALL.iter().copied().find(|hook| hook.name() == name).unwrap_or(Self::Other)
    }

    /// When the client calls this hook.
    pub(super) fn moment(self) -> HookMoment {
        match self {
            Self::PreToolUse => HookMoment::BeforeCall,
            Self::PostToolBatch => HookMoment::AfterCalls,
            Self::Stop => HookMoment::Stop,
            Self::ConfigChange => HookMoment::SettingsChange,
            Self::Other => HookMoment::Unrecognised,
            _ => HookMoment::Other,
        }
    }

    /// Whether an answer at this hook can block an action.
    pub(super) fn is_gate(self) -> bool {
        matches!(self, Self::PreToolUse | Self::UserPromptSubmit | Self::Stop | Self::SubagentStop)
    }
}
