//! The interface that every agent client implements: how it writes hook payloads, and which answers
//! it accepts.
//!
//! A dialect translates and never decides: it turns a payload into typed events, and a verdict into
//! an answer in the client's format. `hook_server` does everything that is the same for all
//! clients: the order of the calls, the deadline and the handling of faults.

use jackline_engine::event::UsageReported;
use jackline_engine::facts::OutputFact;
use jackline_engine::wire::WireError;
use jackline_engine::{ActorId, CallId, Event, SessionId, Timestamp, Verdict};
use jackline_runtime::surfaces::SurfaceProfile;
use jackline_runtime::{AdapterTools, OutputBounds};
use serde_json::Value;

use crate::file_write::FileWrite;
use crate::hook_environment::HookEnvironment;
use crate::payload::PayloadFields;
use crate::typed_code::TypedCode;

/// Every client treats this exit status as a refusal, whatever the hook printed.
pub(crate) const REFUSAL_EXIT: u8 = 2;

/// The hook format of one agent client.
///
/// The hook server calls the methods in the order in which they are listed here. Any of them may
/// panic: the server then denies the call and reports that the guard is broken.
pub trait Dialect: Sync {
    /// What the client supports, so that the server does not depend on which client it is.
    fn surface(&self) -> &'static SurfaceProfile;

    /// The tools of the client, so that declaring one more tool does not make them unknown.
    fn tools(&self) -> ClientTools;

    /// Reads the environment that the client sets for its hooks.
    fn read_environment(&self) -> HookEnvironment;

    /// Parses a payload far enough to learn which hook was called for which session.
    fn parse_payload(
        &self,
        input: &[u8],
        at: &HookEnvironment,
    ) -> Result<HookPayload, PayloadError>;

    /// Why the client must not load its new settings. Called only at
    /// [`HookMoment::SettingsChange`].
    fn reject_settings(&self, _payload: &HookPayload, _at: &HookEnvironment) -> Option<String> {
        None
    }

    /// Translates a payload into events and the other data in it.
    fn translate_payload(
        &self,
        payload: HookPayload,
        at: &HookEnvironment,
    ) -> Result<HookReport, PayloadError>;

    /// The answer to a verdict. It never approves an allowed call, because an approval would skip
    /// the client's own questions.
    fn render_verdict(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply;

    /// The answer that blocks the action in progress, with a reason for the agent and the person.
    fn render_block(&self, call: &HookCall, reason: &str) -> HookReply;

    /// The answer if the guard is broken: gates stay closed, and a stop is blocked at most once.
    /// `call` is missing if the payload could not be read.
    fn render_fault(&self, call: Option<&HookCall>, text: &str) -> HookReply;
}

/// The tools that a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTools {
    /// The names of its own tools.
    pub names: &'static [&'static str],
    /// The beginnings of the names of other tools, such as those of MCP servers.
    pub prefixes: &'static [&'static str],
}

impl ClientTools {
    /// The tools for the guards. The client may have others, for example in a newer version.
    pub fn known(self) -> AdapterTools {
        let names = self.names.iter().map(|name| (*name).to_owned());
        AdapterTools::partial(names).with_prefixes(self.prefixes.iter().copied())
    }
}

/// One call of a hook, with the fields that all clients have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// The client's name of the hook; empty for a hook that this version does not recognise.
    pub hook: &'static str,
    /// When the client called the hook.
    pub moment: HookMoment,
    /// The session, if the payload names it.
    pub session: Option<SessionId>,
    /// Whether a stop was blocked earlier in this turn.
    pub stop_blocked: bool,
}

/// When a client calls a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMoment {
    /// A tool is about to run. This is the gate.
    BeforeCall,
    /// All tool calls of one model answer have finished. A paused or stopped session is blocked
    /// here.
    AfterCalls,
    /// The agent wants to end its turn.
    Stop,
    /// The client is about to reload its settings.
    SettingsChange,
    /// Anything else that the client reports.
    Other,
    /// A hook of a newer client. It can't block anything.
    Unrecognised,
}

/// A payload whose hook is identified and whose other fields are not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct HookPayload {
    /// Which hook was called.
    pub call: HookCall,
    /// The other fields.
    pub fields: PayloadFields,
}

/// A translated payload.
pub struct HookReport {
    /// The session of the payload.
    pub session: SessionId,
    /// The agent that acts.
    pub actor: ActorId,
    /// The events in their order, or none if nothing new happened. The most severe verdict decides
    /// the answer.
    pub events: Vec<Event>,
    /// How a person can be asked about a call.
    pub ask_route: AskRoute,
    /// Calls of a finished batch that a person refused in the client. They did not run.
    pub refused_calls: Vec<CallId>,
    /// The file in which the client writes token counts.
    pub usage_source: Option<Box<dyn UsageSource>>,
    /// An approval code that a person typed.
    pub typed_code: Option<TypedCode>,
    /// The output of a tool, if the client accepts a replacement for it.
    pub tool_output: Option<Box<dyn ToolOutput>>,
    /// The file that the call writes, if the tool is one of the client's own.
    pub file_write: Option<FileWrite>,
}

impl HookReport {
    /// A report with a session and an actor, and nothing else yet.
    pub fn new(session: SessionId, actor: ActorId) -> Self {
        Self {
            session,
            actor,
            events: Vec::new(),
            ask_route: AskRoute::ShowCommand,
            refused_calls: Vec::new(),
            usage_source: None,
            typed_code: None,
            tool_output: None,
            file_write: None,
        }
    }
}

/// How a person answers a question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskRoute {
    /// The client asks the person who uses it.
    AskInClient,
    /// The call is denied, and the person gets a command that allows it.
    ShowCommand,
}

/// A file in which a client writes the token counts of model answers.
pub trait UsageSource {
    /// The records that are not counted yet, oldest first. It calls `is_counted` for the latest one
    /// first, with the time at which the client wrote it.
    fn uncounted_usage(
        &self,
        is_counted: &mut dyn FnMut(&UsageReported, Option<Timestamp>) -> bool,
    ) -> Vec<UsageReported>;
}

/// The output of a tool, if the client accepts a replacement for it.
pub trait ToolOutput {
    /// Whether a definition could require a replacement. Most outputs are too short for that.
    fn may_need_replacement(&self) -> bool;

    /// The replacement, or nothing if none is needed. `keep` stores the whole text and returns its
    /// path.
    fn replace(
        self: Box<Self>,
        bounds: &OutputBounds,
        keep: &mut dyn FnMut(&str) -> StoredOutput,
    ) -> Option<ReplacedOutput>;
}

/// The path of a stored output, or why it could not be stored. No path if the output will not be
/// changed.
pub type StoredOutput = Result<Option<String>, String>;

/// A replacement for the output of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplacedOutput {
    /// The facts about the output, for the engine.
    pub fact: OutputFact,
    /// The replacement in the format that the client accepts for this tool.
    pub output: Value,
}

/// Texts that go with a verdict.
#[derive(Debug, Default)]
pub struct AnswerTexts {
    /// Messages for the person.
    pub person: Vec<String>,
    /// A message for the agent, before the text of the verdict.
    pub agent: Option<String>,
    /// A notification for the person's terminal.
    pub terminal: Option<String>,
    /// The replacement for the output of the tool.
    pub replaced_output: Option<Value>,
    /// How the person can answer if the verdict is `ask`.
    pub ask_route: AskRoute,
}

impl Default for AskRoute {
    /// The route that works with every client.
    fn default() -> Self {
        Self::ShowCommand
    }
}

/// What the hook process prints, and its exit status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// At most one JSON object.
    pub stdout: String,
    /// The reason of a refusal by exit status.
    pub stderr: String,
    /// The exit status.
    pub exit: u8,
}

impl HookReply {
    /// An empty answer: the guard does not object.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A refusal by exit status, for a payload that could not be read.
    pub fn refusal(text: &str) -> Self {
        Self { stdout: String::new(), stderr: format!("{text}\n"), exit: REFUSAL_EXIT }
    }

    /// A JSON object, or an empty answer for an empty map.
    pub fn from_map(map: serde_json::Map<String, Value>) -> Self {
        if map.is_empty() {
            return Self::empty();
        }
        Self { stdout: Value::Object(map).to_string(), ..Self::default() }
    }
}

/// Why a payload is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It is not JSON.
    #[error("the hook payload is not JSON: {0}")]
    Json(String),
    /// It is JSON, but not an object.
    #[error("the hook payload is not a JSON object")]
    NotAnObject,
    /// A field that a gate needs is missing or has the wrong type.
    #[error("the hook payload has no valid `{0}`")]
    Missing(&'static str),
    /// Its fields do not make a valid event.
    #[error("the hook payload is not a valid event: {0}")]
    Event(#[from] WireError),
}
