//! How one agent client spells its hook payloads and the answers that it obeys.
//!
//! A dialect translates and never decides: a payload becomes typed events, a verdict becomes an
//! answer in the client's own words. The order of the steps around it, the deadline and the
//! handling of faults are the same for every client and stand in `hook_server`.

use jackline_engine::event::UsageReported;
use jackline_engine::facts::OutputFact;
use jackline_engine::wire::WireError;
use jackline_engine::{ActorId, Event, SessionId, Timestamp, Verdict};
use jackline_runtime::Bounds;
use serde_json::Value;

use crate::file_write::FileWrite;
use crate::payload::PayloadFields;
use crate::surroundings::Surroundings;
use crate::typed_code::TypedCode;

/// The exit status that every client takes for a refusal, whatever was printed.
pub(crate) const REFUSAL_EXIT: u8 = 2;

/// How one agent client spells events and answers.
///
/// The hook server calls the methods in the order in which they stand here. Each may panic: the
/// server then answers with a denial that says the guard is broken.
pub trait Dialect: Sync {
    /// What the client can do, so that the server need not ask which client it is.
    fn abilities(&self) -> Abilities;

    /// What the client tells this process through its environment.
    fn surroundings(&self) -> Surroundings;

    /// Reads a payload far enough to know which hook was called, and for which session.
    fn parse(&self, input: &[u8], at: &Surroundings) -> Result<HookPayload, Malformed>;

    /// Why the client must keep the settings that it has. Asked only at
    /// [`Moment::SettingsChange`].
    fn objection(&self, _payload: &HookPayload, _at: &Surroundings) -> Option<String> {
        None
    }

    /// Translates a payload into events, with everything else that it tells.
    fn translate(&self, payload: HookPayload, at: &Surroundings) -> Result<HookReport, Malformed>;

    /// The answer to a decision. An allowed call gets no approval, only no objection.
    fn render(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply;

    /// The answer that holds up what is about to happen, with a reason for agent and person.
    fn hold(&self, call: &HookCall, reason: &str) -> HookReply;

    /// The answer where the guard is broken: gates are shut, and a stop is blocked at most once.
    /// There is no call where the payload could not be read.
    fn broken(&self, call: Option<&HookCall>, text: &str) -> HookReply;
}

/// What a client can do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Its hooks can keep an agent from ending its turn.
    pub blocks_stops: bool,
    /// It takes another output in the place of a tool's.
    pub replaces_outputs: bool,
}

/// One call of a hook, as far as all clients have it in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// The client's own name of the hook; empty for one that this program does not know.
    pub hook: &'static str,
    /// What is about to happen, or has happened.
    pub moment: Moment,
    /// The session, where the client names it.
    pub session: Option<SessionId>,
    /// Whether a stop was blocked earlier in this turn.
    pub stop_blocked: bool,
}

/// When a client calls a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A tool is about to run. The gate.
    BeforeCall,
    /// All calls of one answer of the model are over. A paused or stopped session is held here.
    AfterCalls,
    /// The agent wants to end its turn.
    Stop,
    /// The client is about to read its settings again.
    SettingsChange,
    /// Anything else that the client reports.
    Report,
    /// A hook that is newer than this program, and therefore no gate.
    Unknown,
}

/// A payload whose hook is known and whose fields are still to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct HookPayload {
    /// Which hook was called.
    pub call: HookCall,
    /// The other fields.
    pub fields: PayloadFields,
}

/// A payload in our own words.
pub struct HookReport {
    /// The session that it is about.
    pub session: SessionId,
    /// Who acts.
    pub actor: ActorId,
    /// The events that it tells, in their order; none where it tells nothing new. The answer goes
    /// by the severest verdict.
    pub events: Vec<Event>,
    /// How a person can be asked about a call.
    pub asking: AskRoute,
    /// Where the client writes down the token counts of the model's answers.
    pub usage: Option<Box<dyn UsageSource>>,
    /// An approval code that a person typed.
    pub typed: Option<TypedCode>,
    /// What a tool returned, where the client takes something else in its place.
    pub output: Option<Box<dyn ToolOutput>>,
    /// The file that the call writes, where the tool is the client's own.
    pub writes: Option<FileWrite>,
}

impl HookReport {
    /// A report that holds nothing but the session yet.
    pub fn new(session: SessionId, actor: ActorId) -> Self {
        Self {
            session,
            actor,
            events: Vec::new(),
            asking: AskRoute::Command,
            usage: None,
            typed: None,
            output: None,
            writes: None,
        }
    }
}

/// How a person answers a question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskRoute {
    /// The client asks the person who sits at it.
    Client,
    /// The call is denied, and the person is told the command that allows it.
    Command,
}

/// A file in which a client keeps the token counts of its model's answers.
pub trait UsageSource {
    /// The records that are not counted yet, oldest first. `is_counted` is asked about the latest
    /// one first, with the time at which the client wrote it.
    fn uncounted(
        &self,
        is_counted: &mut dyn FnMut(&UsageReported, Option<Timestamp>) -> bool,
    ) -> Vec<UsageReported>;
}

/// What a tool returned, where the client takes something else in its place.
pub trait ToolOutput {
    /// Whether a definition could want another output: most outputs are short.
    fn may_differ(&self) -> bool;

    /// What to show in its place; nothing where there is no reason to. `keep` stores the whole
    /// text and gives its path.
    fn replace(
        self: Box<Self>,
        bounds: &Bounds,
        keep: &mut dyn FnMut(&str) -> KeptOutput,
    ) -> Option<ReplacedOutput>;
}

/// The path of an output that was stored as a whole, or why it was not; no path where nothing
/// will be changed.
pub type KeptOutput = Result<Option<String>, String>;

/// What the agent can be shown in the place of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplacedOutput {
    /// What the engine is told of it.
    pub fact: OutputFact,
    /// The replacement in the shape that the client takes for this tool.
    pub output: Value,
}

/// Texts that go with a verdict.
#[derive(Debug, Default)]
pub struct AnswerTexts {
    /// Shown to the person.
    pub person: Vec<String>,
    /// Shown to the agent, before the text of the verdict.
    pub agent: Option<String>,
    /// A notification for the person's terminal.
    pub terminal: Option<String>,
    /// Shown to the agent in the place of the tool's output.
    pub output: Option<Value>,
    /// How the person answers where the verdict is to ask.
    pub asking: AskRoute,
}

impl Default for AskRoute {
    /// The route that every client has.
    fn default() -> Self {
        Self::Command
    }
}

/// What the hook process prints, and how it ends.
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
    /// No objection.
    pub fn silence() -> Self {
        Self::default()
    }

    /// A refusal by exit status, for a payload that could not be read.
    pub fn refusal(text: &str) -> Self {
        Self { stdout: String::new(), stderr: format!("{text}\n"), exit: REFUSAL_EXIT }
    }

    /// A JSON object; an empty one is silence.
    pub fn json(map: serde_json::Map<String, Value>) -> Self {
        if map.is_empty() {
            return Self::silence();
        }
        Self { stdout: Value::Object(map).to_string(), ..Self::default() }
    }
}

/// Why a payload can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON.
    #[error("what the client sent is not JSON: {0}")]
    Json(String),
    /// It is JSON, and no object.
    #[error("what the client sent is no JSON object")]
    NotAnObject,
    /// A field is missing that a gate can't do without.
    #[error("what the client sent has no usable `{0}`")]
    Missing(&'static str),
    /// It can't be told as an event.
    #[error("what the client sent can't be told as an event: {0}")]
    Event(#[from] WireError),
}
