//! The keys of a definition: those that are built, and those that are designed
//! and refused until their guard is.

/// The keys one mapping takes.
pub(crate) struct Keys {
    /// What the mapping is called in messages.
    pub(crate) of: &'static str,
    /// Keys that work.
    pub(crate) known: &'static [&'static str],
    /// Keys that are part of the design and not built yet.
    pub(crate) later: &'static [&'static str],
}

pub(crate) const ROOT: Keys = Keys {
    of: "the definition",
    known: &[
        "version",
        "name",
        "mode",
        "tools",
        "sections",
        "policies",
        "completion",
        "completion_cap",
        "limits",
        "feedback",
        "feedback_bytes_max",
        "deadline",
        "journal",
    ],
    later: &[
        "extends",
        "unknown_tools",
        "rules",
        "loops",
        "shell",
        "protected",
        "packs",
        "read_before_write",
        "progress",
        "dirty_bits",
        "iterations_extension",
        "context",
        "schema",
        "plan",
        "outputs",
        "io",
        "attempts",
        "health",
        "models",
        "advisor",
        "identity",
        "notify",
        "prices",
    ],
};

pub(crate) const TOOL: Keys = Keys {
    of: "a tool",
    known: &["kind", "aliases", "idempotent"],
    later: &[
        "path",
        "paths",
        "offset",
        "limit",
        "command",
        "commands",
        "schema",
        "output_schema",
        "poll",
        "roles",
    ],
};

pub(crate) const SECTION: Keys =
    Keys { of: "a section", known: &["name", "tools", "policies"], later: &[] };

pub(crate) const POLICY: Keys =
    Keys { of: "a policy", known: &["sequential_dependency"], later: &["read_before_write"] };

pub(crate) const NEED: Keys = Keys { of: "a prerequisite", known: &["tool", "fresh"], later: &[] };

pub(crate) const CHECKER: Keys = Keys {
    of: "a completion check",
    known: &["files", "all", "any"],
    later: &["command", "clean"],
};

pub(crate) const FILE: Keys = Keys {
    of: "a required file",
    known: &["path", "non_empty", "min_bytes", "json", "newer_than_start"],
    later: &[],
};

pub(crate) const CAP: Keys =
    Keys { of: "`completion_cap`", known: &["blocks", "same"], later: &[] };

pub(crate) const LIMITS: Keys = Keys {
    of: "`limits`",
    known: &["steps", "wall_seconds", "input_tokens", "output_tokens", "total_tokens"],
    later: &["cost_usd", "iterations", "tool_calls"],
};

pub(crate) const LIMIT: Keys = Keys { of: "a limit", known: &["max", "soft", "per"], later: &[] };

pub(crate) const JOURNAL: Keys =
    Keys { of: "`journal`", known: &["redact", "retain_days", "retain_bytes"], later: &[] };

pub(crate) const PROVIDER: Keys = Keys {
    of: "a feedback provider",
    known: &["deadline", "static", "every_n_calls", "every_n_seconds", "on_file_created"],
    later: &[],
};

pub(crate) const DEADLINE: Keys =
    Keys { of: "`deadline`", known: &["warning_threshold_seconds"], later: &[] };

pub(crate) const FILE_CREATED: Keys =
    Keys { of: "`on_file_created`", known: &["path", "since"], later: &[] };
