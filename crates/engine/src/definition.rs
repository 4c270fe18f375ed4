//! The guardrails of one agent, checked and lowered: what the engine runs on.
//!
//! Guards own their configuration; this module puts it together and answers
//! which tool is governed by what. The `definition` crate makes one from YAML.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::at;
use crate::tool::Kind;

mod stored;

pub use stored::{StoredDefinition, StoredDefinitionError};

/// Where tools commonly take a command line.
const LINE_KEYS: [&str; 3] = ["/command", "/cmd", "/script"];

pub use crate::attempts::{Budgets, HealthLimits};
pub use crate::choice::{Advisor, ModelChoice, ModelKind, ModelOccasion, ModelProvider};
pub use crate::guards::completion::{Cap, Checker, RequiredFile};
pub use crate::guards::context::Context;
pub use crate::guards::dirty::DirtyBits;
pub use crate::guards::feedback::{FeedbackProvider, FileCreated, Speech, Trigger};
pub use crate::guards::identity::{Identity, without_identity};
pub use crate::guards::limits::{Dimension, Limit, LimitKey, Limits, Per};
pub use crate::guards::loops::{
    Cycle, Errors, Graded, Loops, Poll, Profile, Strict, WINDOW_MAX as LOOPS_WINDOW_MAX,
};
pub use crate::guards::progress::Progress;
pub use crate::guards::rules::{Effect, Rule, RuleScope, Rules};
pub use crate::guards::schema::{Attempts, Output, SchemaText, Schemas};
pub use crate::guards::sequential::{Dependency, Need, SequentialDependency};
pub use crate::io::{Io, OutputIo, ReadFileIo, ShellIo};
pub use crate::models::{LongPrice, Models, Price};

/// The guardrails of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// `namespace/key`.
    pub name: String,
    /// Whether verdicts hold; rules have modes of their own.
    pub mode: Mode,
    /// The tools that are declared or governed.
    pub tools: Vec<Tool>,
    /// What happens to tools that the definition does not know.
    pub unknown_tools: UnknownTools,
    /// How command lines are dealt with.
    pub shell: Shell,
    /// Paths that can't be written, besides the guard's own: canonical, a
    /// directory with a slash at its end, `*` for anything but a slash.
    pub protected: Vec<String>,
    /// Policies in the order they are consulted.
    pub policies: Vec<Policy>,
    /// Rules in the order in which their objections are listed.
    pub rules: Rules,
    /// What must be true before the agent may stop.
    pub completion: Option<Checker>,
    /// How often a stop may be blocked.
    pub completion_cap: Cap,
    /// Allowances.
    pub limits: Limits,
    /// What is done about repetition.
    pub loops: Loops,
    /// When iterations that bring nothing pause the session; never where it is left out.
    pub progress: Option<Progress>,
    /// What counts as a test, a build and documentation, besides what everybody knows.
    pub dirty_bits: DirtyBits,
    /// What is done about a context that fills up; none where nothing is.
    pub context: Option<Context>,
    /// What models cost and hold, where something asks for it.
    pub models: Models,
    /// How structured what the agent writes has to be, and how often it may try.
    pub schemas: Schemas,
    /// How much of what tools answer is shown.
    #[serde(default)]
    pub io: Io,
    /// How often what a model wrote is tried again; the engine does not look at it.
    #[serde(default)]
    pub attempts: Budgets,
    /// When a forged tool is good; the engine does not look at it.
    #[serde(default)]
    pub health: HealthLimits,
    /// Who does the work of a supervised run, in the order in which they are tried.
    #[serde(default)]
    pub choices: Vec<ModelChoice>,
    /// Who is asked where a supervised run is stuck; nobody where it is left out.
    #[serde(default)]
    pub advisor: Option<Advisor>,
    /// Who may work under it; everybody where it is left out.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// Soft guidance.
    pub feedback: Vec<FeedbackProvider>,
    /// How much feedback one round may bring.
    pub feedback_bytes_max: u32,
    /// Who is told of what; the engine does not look at it.
    pub notify: Vec<Notifier>,
    /// How the journal is kept; the engine does not look at it.
    pub journal: Journal,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            name: "local/agent".to_string(),
            mode: Mode::Enforce,
            tools: Vec::new(),
            unknown_tools: UnknownTools::Allow,
            shell: Shell::default(),
            protected: Vec::new(),
            policies: Vec::new(),
            rules: Rules::default(),
            completion: None,
            completion_cap: Cap::default(),
            limits: Limits::default(),
            loops: Loops::default(),
            progress: None,
            dirty_bits: DirtyBits::default(),
            context: None,
            models: Models::default(),
            schemas: Schemas::default(),
            io: Io::default(),
            attempts: Budgets::default(),
            health: HealthLimits::default(),
            choices: Vec::new(),
            advisor: None,
            identity: None,
            feedback: Vec::new(),
            feedback_bytes_max: 4096,
            notify: Vec::new(),
            journal: Journal::default(),
        }
    }
}

/// Whether verdicts hold or are only written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They hold.
    #[default]
    Enforce,
    /// They are written down, and adapters stay silent.
    Observe,
}

/// A tool that the definition knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own, or a layer's word")]
pub struct Tool {
    /// Its name in the definition.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// What clients call it.
    pub aliases: Vec<String>,
    /// Whether calling it twice is the same as calling it once.
    pub idempotent: bool,
    /// Where its arguments name files.
    pub paths: Paths,
    /// Where its arguments say from which line on it reads.
    pub offset: Option<String>,
    /// Where its arguments say how many lines it reads.
    pub limit: Option<String>,
    /// Where its arguments hold a command line.
    pub command: Option<String>,
    /// Commands by which it is recognised in a command line, such as `make deploy`.
    pub commands: Vec<String>,
    /// Whether its commands are looked at as if nobody knew them: who declares it
    /// has no say in what they hide and change.
    #[serde(default)]
    pub doubted: bool,
    /// What its arguments have to look like.
    pub schema: Option<SchemaText>,
    /// What it has to give back.
    #[serde(default)]
    pub output_schema: Option<SchemaText>,
    /// The sections it is in, by number.
    pub sections: Vec<u16>,
    /// Whether the loop guard passes it over.
    pub transparent: bool,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// How long it may be asked whether something has happened.
    pub poll: Option<Poll>,
    /// The roles that may call it; all may where nothing is said.
    #[serde(default)]
    pub roles: Option<Vec<String>>,
}

impl Tool {
    /// A tool of which nothing but the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_string(),
            kind: Kind::well_known(name).unwrap_or(Kind::Other),
            aliases: Vec::new(),
            idempotent: true,
            paths: Paths::default(),
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

/// JSON pointers to the files that a call names; each leads to a text or a
/// list of texts. Where there are none, the usual names are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// To files that are read.
    pub read: Vec<String>,
    /// To files that are written, changed or removed.
    pub write: Vec<String>,
}

/// What happens to tools that the definition does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownTools {
    /// They run.
    Allow,
    /// They don't.
    Deny,
}

/// How command lines are dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// What happens to a line that can't be understood as a whole.
    pub opaque: Opaque,
}

impl Default for Shell {
    fn default() -> Self {
        Self { opaque: Opaque::Allow }
    }
}

/// What happens to a line that can't be understood as a whole, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opaque {
    /// It runs.
    Allow,
    /// A person has to say.
    Ask,
    /// It does not run.
    Deny,
}

/// One policy instance and where it was declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The section, or none for the top level.
    pub section: Option<u16>,
    /// What it demands.
    pub rule: PolicyRule,
}

/// The policies there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyRule {
    /// One tool needs another to have succeeded.
    SequentialDependency(SequentialDependency),
    /// An existing file must be read before it is overwritten.
    ReadBeforeWrite {
        /// Whether it must be read before it is removed, too.
        deletes: bool,
    },
    /// A policy written in Rust and registered with the runtime.
    Custom {
        /// The name it is registered under.
        name: String,
    },
}

/// How a person is told that they are needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notifier {
    /// A command line that is run with the notice.
    pub command: Option<String>,
    /// An address that the notice is posted to.
    pub webhook: Option<String>,
    /// Whether the client shows it on the person's desktop, where it can.
    pub desktop: bool,
    /// What they are told of.
    pub on: Vec<Occasion>,
    /// Whether a person lets the command run and the address be posted to.
    pub trusted: bool,
}

/// What a person can be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// A call waits for them.
    Ask,
    /// The session is paused.
    Pause,
    /// The session was ended, or a turn ended and not as done.
    Stop,
    /// The agent has finished.
    Done,
    /// The guard can't answer.
    GuardBroken,
}

impl Occasion {
    /// All of them, with their words.
    pub const ALL: [(&str, Self); 5] = [
        ("ask", Self::Ask),
        ("pause", Self::Pause),
        ("stop", Self::Stop),
        ("done", Self::Done),
        ("guard_broken", Self::GuardBroken),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// How the journal is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Whether secrets are taken out before a record is made.
    pub redact: Redact,
    /// Sessions older than this are removed.
    pub retain_days: u32,
    /// The oldest sessions of a workspace are removed above this size.
    pub retain_bytes: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Self { redact: Redact::BuiltIn, retain_days: 30, retain_bytes: 1 << 30 }
    }
}

/// Whether secrets are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redact {
    /// What looks like a secret is.
    BuiltIn,
    /// Nothing is.
    Off,
}

/// A tool as the guards see it: its declared name and what it does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolved<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) idempotent: bool,
    /// What the definition says about it.
    pub(crate) declared: Option<&'a Tool>,
}

impl<'a> Resolved<'a> {
    /// Where its arguments hold a command line, if it takes one: where the
    /// definition says so, else under the first of the usual names.
    pub(crate) fn line_pointer(self, args: &Value) -> &'a str {
        let told = self.declared.and_then(|tool| tool.command.as_deref());
        let usual = || LINE_KEYS.into_iter().find(|pointer| at(args, pointer).is_some());
        told.or_else(usual).unwrap_or("/command")
    }

    /// A tool that the definition knows.
    pub(crate) fn declared(tool: &'a Tool) -> Self {
        let Tool { name, kind, idempotent, .. } = tool;
        Self { name, kind: *kind, idempotent: *idempotent, declared: Some(tool) }
    }
}

impl Definition {
    /// A tool that is declared, by its name or one of its aliases.
    pub fn declared(&self, name: &str) -> Option<&Tool> {
        let is_it = |tool: &&Tool| tool.name == name || tool.aliases.iter().any(|it| it == name);
        self.tools.iter().find(is_it)
    }

    /// A tool by its name or one of its aliases, as far as it is known.
    pub(crate) fn resolve<'a>(&'a self, name: &'a str) -> Resolved<'a> {
        match self.declared(name) {
            Some(tool) => Resolved::declared(tool),
            None => Resolved {
                name,
                kind: Kind::well_known(name).unwrap_or(Kind::Other),
                idempotent: true,
                declared: None,
            },
        }
    }

    /// The policies that govern a tool: those of its sections, then the top-level ones.
    pub(crate) fn governing<'a>(
        &'a self,
        tool: Resolved<'a>,
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
