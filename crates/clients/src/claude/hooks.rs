//! The hooks of Claude Code, and the fields of their payloads.

use crate::dialect::{HookCall, Moment};

/// Fields that are known and change no decision.
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
        /// What happened, in the client's words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ClaudeHook {
            $($(#[$doc])* $name,)*
            /// Something that we know nothing about.
            Other,
        }

        impl ClaudeHook {
            /// Every event that is known.
            pub const ALL: &'static [ClaudeHook] = &[$(ClaudeHook::$name,)*];

            /// The name in the client's words.
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
    /// A session begins, comes back, or goes on after a compaction.
    SessionStart,
    /// A person, or the client itself, says something to the agent.
    UserPromptSubmit,
    /// A tool is about to run. The gate.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// All calls of one answer of the model are over.
    PostToolBatch,
    /// The client itself refused a call.
    PermissionDenied,
    /// The agent wants to end its turn.
    Stop,
    /// A sub-agent begins.
    SubagentStart,
    /// A sub-agent wants to end.
    SubagentStop,
    /// The context is about to be compacted.
    PreCompact,
    /// The context was compacted.
    PostCompact,
    /// The session is over.
    SessionEnd,
    /// The settings have changed, and are about to be read again.
    ConfigChange,
}

impl ClaudeHook {
    /// The hook of a call.
    pub(super) fn of(call: &HookCall) -> Self {
        Self::named(call.hook)
    }

    /// The hook with this name.
    pub(super) fn named(name: &str) -> Self {
        Self::ALL.iter().copied().find(|hook| hook.name() == name).unwrap_or(Self::Other)
    }

    /// When it is called.
    pub(super) fn moment(self) -> Moment {
        match self {
            Self::PreToolUse => Moment::BeforeCall,
            Self::PostToolBatch => Moment::AfterCalls,
            Self::Stop => Moment::Stop,
            Self::ConfigChange => Moment::SettingsChange,
            Self::Other => Moment::Unknown,
            _ => Moment::Report,
        }
    }

    /// Whether an objection keeps something from happening here.
    pub(super) fn is_gate(self) -> bool {
        matches!(self, Self::PreToolUse | Self::UserPromptSubmit | Self::Stop | Self::SubagentStop)
    }
}
