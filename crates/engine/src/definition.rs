//! The guardrails of one agent, checked and lowered: the form that the engine runs on.
//! Each guard owns its configuration. This module combines them and answers which policies govern a
//! tool. The `definition` crate makes a [`Definition`] from YAML.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::value_at;
use crate::tool::{PAGE_TURN_TOOL, ToolKind};

mod stored;

pub use stored::{StoredDefinition, StoredDefinitionError};

/// The argument keys that usually hold a command line.
const COMMAND_LINE_POINTERS: [&str; 3] = ["/command", "/cmd", "/script"];

pub use crate::attempt_limits::{AttemptBudgets, HealthLimits};
pub use crate::guards::completion::{CompletionCap, CompletionRequirement, RequiredFile};
pub use crate::guards::context::ContextThresholds;
pub use crate::guards::dirty::DirtyBits;
pub use crate::guards::feedback::{
    FeedbackContent, FeedbackProvider, FeedbackTrigger, FileTrigger,
};
pub use crate::guards::identity::{IdentitySettings, ROLE_DEFAULT, checksum_without_identity};
pub use crate::guards::limits::{
    BudgetLimit, LimitDimension, LimitKey, LimitPeriod, SessionLimits,
};
pub use crate::guards::loops::{
    ChainLevels, CycleLevels, ErrorLevels, GradedLevels, LOOP_PERIOD_MAX, LoopProfile,
    LoopSettings, LoopToolBudget, PollAllowance, SimilarCallLevels, StrictLevels,
    WINDOW_MAX as LOOPS_WINDOW_MAX,
};
pub use crate::guards::progress::ProgressSettings;
pub use crate::guards::rules::{Rule, RuleEffect, RuleOutcome, RuleScope, Rules};
pub use crate::guards::schema::{NamedOutput, RepairLimits, SchemaSettings, SchemaText};
pub use crate::guards::sequential_dependency::{
    Prerequisite, SequentialDependency, ToolDependency,
};
pub use crate::model_choice::{Advisor, ModelChoice, ModelKind, ModelOccasion, ModelProvider};
pub use crate::models::{LongPromptPrice, ModelPrice, ModelTables};
pub use crate::output_limits::{IoLimits, OutputLimits, ReadFileLimits, ShellOutputLimits};
pub use crate::run_limits::RunLimits;

/// The guardrails of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The name, in the form `namespace/key`.
    pub name: String,
    /// Whether verdicts are enforced. Rules have modes of their own.
    pub mode: Mode,
    /// The tools that the definition declares or governs.
    pub tools: Vec<DeclaredTool>,
    /// How tools are treated that the definition does not declare.
    pub unknown_tools: UnknownTools,
    /// How command lines are treated.
    pub shell: ShellSettings,
    /// Paths that can't be written, in addition to Jackline's own. They are canonical; a directory
    /// ends with a slash, and `*` matches any characters except a slash.
    pub protected: Vec<String>,
    /// Policies in the order in which they are checked.
    pub policies: Vec<Policy>,
    /// Rules in the order in which their violations are listed.
    pub rules: Rules,
    /// The conditions that must be true before the agent may stop.
    pub completion: Option<CompletionRequirement>,
    /// How often a stop may be blocked.
    pub completion_cap: CompletionCap,
    /// The budgets of the session.
    pub limits: SessionLimits,
    /// How repeated calls are handled.
    pub loops: LoopSettings,
    /// When iterations without progress pause the session; `None` means never.
    pub progress: Option<ProgressSettings>,
    /// Which commands count as tests, builds and documentation, in addition to the built-in ones.
    pub dirty_bits: DirtyBits,
    /// How a context that fills up is handled; `None` means not at all.
    pub context: Option<ContextThresholds>,
    /// Prices and context sizes of models, for the parts that need them.
    pub models: ModelTables,
    /// The schemas of what the agent writes, and how often the agent may try to satisfy them.
    pub schemas: SchemaSettings,
    /// How much of a tool's output is shown.
    #[serde(default)]
    pub io: IoLimits,
    /// How often a model's output is tried again. The engine does not read it.
    #[serde(default)]
    pub attempts: AttemptBudgets,
    /// When a generated tool counts as good. The engine does not read it.
    #[serde(default)]
    pub health: HealthLimits,
    /// How often a supervised run tries again.
    #[serde(default)]
    pub run: RunLimits,
    /// The models and agents of a supervised run, in the order in which they are tried.
    #[serde(default)]
    pub choices: Vec<ModelChoice>,
    /// The advisor that a stuck supervised run asks; `None` means no advisor.
    #[serde(default)]
    pub advisor: Option<Advisor>,
    /// Which agents may work under this definition; `None` means every agent.
    #[serde(default)]
    pub identity: Option<IdentitySettings>,
    /// The providers of soft guidance.
    pub feedback: Vec<FeedbackProvider>,
    /// How many bytes of feedback one round may add.
    pub feedback_bytes_max: u32,
    /// Who is notified of which occasions. The engine does not read it.
    pub notify: Vec<Notifier>,
    /// Settings of the journal. The engine does not read them.
    pub journal: JournalSettings,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            name: "local/agent".to_string(),
            mode: Mode::Enforce,
            tools: Vec::new(),
            unknown_tools: UnknownTools::Allow,
            shell: ShellSettings::default(),
            protected: Vec::new(),
            policies: Vec::new(),
            rules: Rules::default(),
            completion: None,
            completion_cap: CompletionCap::default(),
            limits: SessionLimits::default(),
            loops: LoopSettings::default(),
            progress: None,
            dirty_bits: DirtyBits::default(),
            context: None,
            models: ModelTables::default(),
            schemas: SchemaSettings::default(),
            io: IoLimits::default(),
            attempts: AttemptBudgets::default(),
            health: HealthLimits::default(),
            run: RunLimits::default(),
            choices: Vec::new(),
            advisor: None,
            identity: None,
            feedback: Vec::new(),
            feedback_bytes_max: 4096,
            notify: Vec::new(),
            journal: JournalSettings::default(),
        }
    }
}

/// Whether verdicts are enforced or only recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Verdicts are enforced.
    #[default]
    Enforce,
    /// Verdicts are recorded, and adapters let everything pass.
    Observe,
}

/// A tool that the definition declares or governs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own, or set by a layer")]
pub struct DeclaredTool {
    /// Its name in the definition.
    pub name: String,
    /// Its effect: read, write, run and so on.
    pub kind: ToolKind,
    /// The names by which clients call it.
    pub aliases: Vec<String>,
    /// Whether a second identical call changes nothing more.
    pub idempotent: bool,
    /// Where its arguments name files.
    pub paths: ToolPaths,
    /// The JSON pointer to the first line that it reads.
    pub offset: Option<String>,
    /// The JSON pointer to the number of lines that it reads.
    pub limit: Option<String>,
    /// The JSON pointer to its command line.
    pub command: Option<String>,
    /// Commands by which it is recognised in a command line, such as `make deploy`.
    pub commands: Vec<String>,
    /// Whether its commands are judged as if they were not recognised. A layer that is not trusted
    /// must not decide what its own commands hide or change.
    #[serde(default)]
    pub doubted: bool,
    /// The schema of its arguments.
    pub schema: Option<SchemaText>,
    /// The schema of its output.
    #[serde(default)]
    pub output_schema: Option<SchemaText>,
    /// The numbers of the sections it belongs to.
    pub sections: Vec<u16>,
    /// Whether the loop guard ignores it.
    pub transparent: bool,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// How long it may be polled for a result.
    pub poll: Option<PollAllowance>,
    /// The roles that may call it; `None` means every role.
    #[serde(default)]
    pub roles: Option<Vec<String>>,
}

impl DeclaredTool {
    /// A tool of which only the name is given.
    pub fn with_name(name: &str) -> Self {
        Self {
            name: name.to_string(),
            kind: ToolKind::well_known(name).unwrap_or(ToolKind::Other),
            aliases: Vec::new(),
            idempotent: true,
            paths: ToolPaths::default(),
            offset: None,
            limit: None,
            command: None,
            commands: Vec::new(),
            doubted: false,
            schema: None,
            output_schema: None,
            sections: Vec::new(),
            transparent: false,
            read_only: false,
            poll: None,
            roles: None,
        }
    }
}

/// JSON pointers to the files that a call names. Each leads to a text or a list of texts. If there
/// are none, the engine looks for the usual names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolPaths {
    /// Pointers to files that are read.
    pub read: Vec<String>,
    /// Pointers to files that are written, changed or removed.
    pub write: Vec<String>,
}

/// How tools are treated that the definition does not declare, from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownTools {
    /// They run.
    Allow,
    /// The tools of the agent's client run, and tools with a well-known name. Others are denied.
    Client,
    /// They are denied.
    Deny,
}

/// How command lines are treated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSettings {
    /// How an opaque command line is treated: Jackline cannot tell what it runs.
    pub opaque: OpaquePolicy,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self { opaque: OpaquePolicy::Allow }
    }
}

/// How an opaque command line is treated, from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpaquePolicy {
    /// The line runs.
    Allow,
    /// A person must confirm it.
    Ask,
    /// The line is denied.
    Deny,
}

/// One policy and the section that declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The number of the section; `None` for the top level.
    pub section: Option<u16>,
    /// What it demands.
    pub rule: PolicyRule,
}

/// The kinds of policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyRule {
    /// One tool needs another to have succeeded.
    SequentialDependency(SequentialDependency),
    /// An existing file must be read before it is overwritten.
    ReadBeforeWrite {
        /// Whether it must also be read before it is removed.
        deletes: bool,
    },
    /// A policy written in Rust and registered with the runtime.
    Custom {
        /// The name under which it is registered.
        name: String,
    },
}

/// One way to notify a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notifier {
    /// A command line that is run with the notification.
    pub command: Option<String>,
    /// An address to which the notification is posted.
    pub webhook: Option<String>,
    /// Whether the client shows it as a desktop notification, where it can.
    pub desktop: bool,
    /// The occasions on which the person is notified.
    pub on: Vec<Occasion>,
    /// Whether a person allowed the command to run and the address to be used.
    pub trusted: bool,
}

/// The occasions on which a person is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// A call waits for a confirmation.
    Ask,
    /// The session is paused.
    Pause,
    /// The session was ended, or a turn ended although the work is not done.
    Stop,
    /// The agent has finished.
    Done,
    /// Jackline can't decide because of a fault.
    GuardBroken,
}

impl Occasion {
    /// Every occasion with its word in definitions.
    pub const ALL: [(&str, Self); 5] = [
        ("ask", Self::Ask),
        ("pause", Self::Pause),
        ("stop", Self::Stop),
        ("done", Self::Done),
        ("guard_broken", Self::GuardBroken),
    ];

    /// The word of this occasion in definitions.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// Settings of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalSettings {
    /// Whether secrets are removed before a record is made.
    pub redact: Redact,
    /// Sessions older than this are removed.
    pub retain_days: u32,
    /// Above this size, the oldest sessions of a workspace are removed.
    pub retain_bytes: u64,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self { redact: Redact::BuiltIn, retain_days: 30, retain_bytes: 1 << 30 }
    }
}

/// Whether secrets are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redact {
    /// Text that looks like a secret is removed.
    BuiltIn,
    /// Nothing is removed.
    Off,
}

/// A tool as the guards use it: its declared name and its effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolvedTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: ToolKind,
    pub(crate) idempotent: bool,
    /// Its declaration in the definition, if there is one.
    pub(crate) declared: Option<&'a DeclaredTool>,
}

impl<'a> ResolvedTool<'a> {
    /// The JSON pointer to its command line, if it takes one. The definition's pointer comes first,
    /// then the first of the usual names that the arguments contain.
    pub(crate) fn command_line_pointer(self, args: &Value) -> &'a str {
        let declared = self.declared.and_then(|tool| tool.command.as_deref());
        let usual =
            || COMMAND_LINE_POINTERS.into_iter().find(|pointer| value_at(args, pointer).is_some());
        declared.or_else(usual).unwrap_or("/command")
    }

    /// A tool that the definition declares.
    pub(crate) fn declared(tool: &'a DeclaredTool) -> Self {
        let DeclaredTool { name, kind, idempotent, .. } = tool;
        Self { name, kind: *kind, idempotent: *idempotent, declared: Some(tool) }
    }
}

impl Definition {
    /// Finds a declared tool by its name or one of its aliases.
    pub fn declared_tool(&self, name: &str) -> Option<&DeclaredTool> {
        let is_it =
            |tool: &&DeclaredTool| tool.name == name || tool.aliases.iter().any(|it| it == name);
        self.tools.iter().find(is_it)
    }

    /// Resolves a tool by its name or one of its aliases. A tool that is not declared gets the
    /// defaults.
    pub(crate) fn resolve_tool<'a>(&'a self, name: &'a str) -> ResolvedTool<'a> {
        match self.declared_tool(name) {
            Some(tool) => ResolvedTool::declared(tool),
            None => ResolvedTool {
                name,
                kind: ToolKind::well_known(name).unwrap_or(ToolKind::Other),
                idempotent: true,
                declared: None,
            },
        }
    }

    /// How an agent runs a tool: by a command line if the definition recognises the tool in command
    /// lines, else by its name.
    pub(crate) fn runnable_name<'a>(&'a self, tool: &'a str) -> &'a str {
        let command = self.declared_tool(tool).and_then(|tool| tool.commands.first());
        command.map_or(tool, String::as_str)
    }

    /// Whether a call of this tool is accepted. `is_offered` says whether the adapter has the tool.
    pub fn accepts_tool(&self, name: &str, is_offered: bool) -> bool {
        let tool = self.resolve_tool(name);
        let is_accepted = match self.unknown_tools {
            UnknownTools::Allow => true,
            UnknownTools::Client => is_offered || ToolKind::well_known(name).is_some(),
            // Without a list of its own, the definition takes the list of the adapter.
            UnknownTools::Deny => is_offered && self.callable_tools().next().is_none(),
        };
        is_accepted
            || tool.declared.is_some()
            || name == PAGE_TURN_TOOL
            // Tools that are recognised in command lines need a tool that runs these lines.
            || (tool.kind == ToolKind::Exec
                && self.tools.iter().any(|tool| !tool.commands.is_empty()))
    }

    /// The declared tools that an agent calls by name, and that are not only recognised in command
    /// lines.
    pub fn callable_tools(&self) -> impl Iterator<Item = &str> {
        let callable = self.tools.iter().filter(|tool| tool.commands.is_empty());
        callable.map(|tool| tool.name.as_str())
    }

    /// The policies that govern a tool: first those of its sections, then the top-level ones.
    pub(crate) fn policies_for<'a>(
        &'a self,
        tool: ResolvedTool<'a>,
    ) -> impl Iterator<Item = (usize, &'a PolicyRule)> {
        self.policies
            .iter()
            .enumerate()
            .filter(move |(_, policy)| {
                policy.section.is_none_or(|section| {
                    tool.declared.is_some_and(|tool| tool.sections.contains(&section))
                })
            })
            .map(|(number, policy)| (number, &policy.rule))
    }
}
