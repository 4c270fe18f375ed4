//! Our own loop: a model is asked, what it wants called is decided on and done, and it is
//! asked again, until it wants to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jackline_attempt::InternalOutcome;
use jackline_decode::stream::Refusal;
use jackline_engine::event::UsageReported;
use jackline_engine::id::RequestId;
use jackline_engine::verdict::{Completion, ContextLevel};
use jackline_engine::{Arguments, Definition, FaultKind, Payload, Status, StopProposed};
use jackline_model::{
    Call, End, ErrorKind, Message, Model, ModelError, Patience, Reply, Request, Said, Tool,
    ToolResult, Usage,
};
use jackline_runtime::{CallPermit, CallResult, CallRuling, ProposedCall, StopRuling};
use jackline_workspace::{Shows, Workspace};
use serde_json::Value;

use crate::asking::{Asked, Question, ask};
use crate::conversation::{BYTES_PER_TOKEN, Conversation};
use crate::engines::EngineSpec;
use crate::listening::{Cut, Schemas, told as told_of_cut};
use crate::run_front::RunFront;
use crate::told::{Told, Waits};
use crate::undoing::Undoing;
use crate::waiting::{Waited, time_left, wait_for_checks};

/// How much a model may write at once.
const OUTPUT_TOKENS_MAX: u32 = 16_000;

/// How many steps an iteration has where the definition says nothing.
const STEPS_PER_ITERATION: u32 = 50;

/// How often in a row an answer may be cut off by its length.
const CUT_OFF_MAX: u32 = 3;

/// What a model is told whose answer was cut off.
const CUT_OFF: &str = "Your answer was cut off because it was too long, and nothing of it was called. Go on in smaller steps.";

/// Told to an agent that has taken all steps of an iteration.
pub(crate) const GO_ON: &str = "Go on.";

/// How much of what is said is shown to those who watch.
const SHOWN_CHARS_MAX: usize = 300;

/// How an iteration ended.
pub(crate) enum Ended {
    /// The agent may stop.
    Done {
        /// As what that counts.
        counts_as: String,
        /// Its last words, or what its program answered.
        answer: Box<InternalOutcome>,
    },
    /// It wants to stop, and may not yet.
    NotYet {
        /// How many calls it wanted before.
        calls: u32,
    },
    /// Its programs came to nothing, and are undone.
    Exhausted {
        /// How the last of them failed.
        error: String,
        /// Whether the conversation has to begin anew.
        full: bool,
    },
    /// It has taken as many steps as an iteration has.
    Steps,
    /// The conversation is full.
    Full,
    /// Somebody holds the session, or has ended it.
    Held,
    /// The model does not answer.
    Failed(ModelError),
    /// It was asked as often as its own budget allows.
    Spent,
    /// What the whole work may take is used up.
    TimeIsUp,
    /// What it was to keep could not be written down.
    Lost(std::io::Error),
}

impl Ended {
    /// It may stop, and this is the answer.
    pub(crate) fn done(counts_as: String, answer: InternalOutcome) -> Self {
        Self::Done { counts_as, answer: Box::new(answer) }
    }

    /// It may stop, and its last words are the answer.
    pub(crate) fn said(counts_as: String, words: &str) -> Self {
        let value = Value::from(words);
        Self::done(counts_as, InternalOutcome::Ok { value, sources: Vec::new() })
    }
}

/// Who is asked, and within what.
pub(crate) struct Whom<'a> {
    pub(crate) engine: &'a EngineSpec,
    pub(crate) patience: Patience,
    /// Counts a question; whether it may be put.
    pub(crate) spend: &'a mut dyn FnMut() -> bool,
}

/// What a model answered.
pub(crate) struct Turn {
    pub(crate) said: Said,
    pub(crate) end: End,
    /// Whether the conversation has to begin anew.
    pub(crate) full: bool,
    /// Why its last call can't be valid, where it was cut for that.
    pub(crate) refusal: Option<Refusal>,
}

/// A model, its conversation and the tools.
pub(crate) struct Own<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) conversation: Conversation,
    pub(crate) system: String,
    pub(crate) tools: Vec<Tool>,
    /// What the arguments of these have to look like, where somebody says so.
    pub(crate) schemas: Arc<Schemas>,
    /// The definition that says so.
    pub(crate) defined: Arc<Definition>,
    /// Keeps what files were that are written.
    pub(crate) undoing: Undoing,
    /// The model, while nobody asks it.
    pub(crate) model: Option<Box<dyn Model>>,
}

impl Own<'_> {
    /// Works until the model wants to stop, or something else comes up.
    pub(crate) fn iterate(&mut self, front: &mut RunFront<'_>, whom: &mut Whom<'_>) -> Ended {
        let (mut calls, mut cut_off) = (0_u32, 0_u32);
        loop {
            if calls >= steps_max(&self.defined) {
                return Ended::Steps;
            }
            let (system, tools) = (self.system.clone(), self.tools.clone());
            let Turn { said, end, full, refusal } = match self.turn(front, whom, system, tools) {
                Ok(turn) => turn,
                Err(ended) => return ended,
            };
            if end == End::Length {
                cut_off += 1;
                if cut_off >= CUT_OFF_MAX {
                    let message =
                        format!("{cut_off} answers in a row were cut off by their length");
                    return Ended::Failed(ModelError::new(ErrorKind::ContextLength, message));
                }
                if let Err(error) = self.cut(&said) {
                    return Ended::Lost(error);
                }
                continue;
            }
            cut_off = 0;
            if said.calls.is_empty() {
                return self.stop(front, &said, calls);
            }
            let (results, held) = self.call_all(front, &said.calls, refusal.as_ref());
            calls += u32::try_from(said.calls.len()).unwrap_or(u32::MAX);
            front.say_standing();
            if let Err(error) = self.conversation.push(Message::Results(results)) {
                return Ended::Lost(error);
            }
            if held || front.lookout.is_over() || front.fault().is_some() {
                return Ended::Held;
            }
            if full {
                return Ended::Full;
            }
        }
    }

    /// The schemas that hold now: a person may have changed the definition, or switched the
    /// guard off.
    fn schemas(&mut self, front: &RunFront<'_>) -> Arc<Schemas> {
        if let Some(defined) = front.definition().filter(|it| !Arc::ptr_eq(it, &self.defined)) {
            self.schemas = Arc::new(Schemas::of(&defined, &self.tools));
            self.defined = defined;
        }
        let is_off = front.lookout.is_off();
        if is_off { Arc::default() } else { Arc::clone(&self.schemas) }
    }

    /// Tells the model something by the supervisor.
    pub(crate) fn tell(&mut self, text: String) -> std::io::Result<()> {
        self.conversation.push(Message::User(text))
    }

    /// Asks the model once, tells what that cost, and keeps what it says.
    pub(crate) fn turn(
        &mut self,
        front: &mut RunFront<'_>,
        whom: &mut Whom<'_>,
        system: String,
        tools: Vec<Tool>,
    ) -> Result<Turn, Ended> {
        if !(whom.spend)() {
            return Err(Ended::Spent);
        }
        let offers = !tools.is_empty();
        let besides = size(&system, &tools);
        let (reply, refusal) = self.ask(front, whom, system, tools)?;
        // What an answer has cost is told at its end; of one that was cut it is guessed, and
        // counts all the same.
        let guess = refusal.as_ref().map(|_| self.guess(besides, &reply.said));
        // A model that knows how much it holds holds no more because somebody says so.
        let known = self.model.as_ref().and_then(|model| model.window());
        let window = [whom.engine.window, known].into_iter().flatten().min();
        let full = count(front, whom.engine, &reply, guess, window);
        let Reply { mut said, end, .. } = reply;
        if !offers {
            // What was not offered can't be called, so nothing would ever answer it.
            said.calls.clear();
        }
        if !said.text.trim().is_empty() {
            front.say(&Told::Said { text: shown(&said.text) });
        }
        self.conversation.push(Message::Assistant(said.clone())).map_err(Ended::Lost)?;
        if end == End::Refusal && said.calls.is_empty() {
            let message = "the provider did not want to answer";
            return Err(Ended::Failed(ModelError::new(ErrorKind::BadRequest, message)));
        }
        Ok(Turn { said, end, full, refusal })
    }

    /// Asks the model. An answer that was cut ends with a call that can't be valid; with it
    /// comes the byte that says so.
    fn ask(
        &mut self,
        front: &mut RunFront<'_>,
        whom: &Whom<'_>,
        system: String,
        tools: Vec<Tool>,
    ) -> Result<(Reply, Option<Refusal>), Ended> {
        let (engine, patience) = (whom.engine, whom.patience);
        let Some(model) = self.model.take() else {
            let message = format!("`{}` is not there", engine.label);
            return Err(Ended::Failed(ModelError::new(ErrorKind::Network, message)));
        };
        let schemas = self.schemas(front);
        front.say(&Told::Asking { model: engine.label.clone() });
        let request = Request {
            system,
            messages: self.conversation.messages().to_vec(),
            tools,
            output: None,
            output_tokens_max: OUTPUT_TOKENS_MAX,
        };
        let time_left = time_left(front);
        let question = Question { request, schemas, patience, time_left };
        let lookout = front.lookout.clone();
        let mut waits = |pause: Duration, error: &ModelError| {
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let waits = Waits::Model { why: error.to_string(), ms };
            front.say(&Told::Waiting { waits });
        };
        let (model, asked) = ask(model, question, &lookout, &mut waits);
        self.model = model;
        match asked {
            Asked::Reply(reply) => Ok((*reply, None)),
            Asked::Cut(cut) => {
                let Cut { said, refusal } = *cut;
                Ok((Reply { said, end: End::Calls, usage: None, request: None }, Some(refusal)))
            }
            Asked::Failed(error) => Err(Ended::Failed(error)),
            Asked::Over => Err(Ended::Held),
        }
    }

    /// What an answer has cost that came so far, roughly, besides the conversation.
    fn guess(&self, besides: u64, said: &Said) -> Usage {
        let calls: usize = said.calls.iter().map(|it| it.name.len() + it.arguments.len()).sum();
        let output = (said.text.len() + calls) as u64 / BYTES_PER_TOKEN;
        Usage { input: self.conversation.tokens() + besides, output, ..Usage::default() }
    }

    /// Answers an answer that was cut off: none of its calls is made.
    fn cut(&mut self, said: &Said) -> std::io::Result<()> {
        if said.calls.is_empty() {
            return self.tell(CUT_OFF.to_owned());
        }
        let results = said.calls.iter().map(|call| refused(call, CUT_OFF.to_owned())).collect();
        self.conversation.push(Message::Results(results))
    }

    fn stop(&mut self, front: &mut RunFront<'_>, said: &Said, calls: u32) -> Ended {
        match propose_stop(front, &said.text) {
            Stopped::As(counts_as) => Ended::said(counts_as, &said.text),
            Stopped::Held => Ended::Held,
            Stopped::NotYet(text) => match self.tell(text) {
                Ok(()) => Ended::NotYet { calls },
                Err(error) => Ended::Lost(error),
            },
        }
    }

    /// Makes the calls of one answer; whether somebody holds the session now.
    /// The last one may be none that can run, and is refused.
    fn call_all(
        &mut self,
        front: &mut RunFront<'_>,
        calls: &[Call],
        refusal: Option<&Refusal>,
    ) -> (Vec<ToolResult>, bool) {
        let mut results = Vec::new();
        let mut held = false;
        for (number, call) in calls.iter().enumerate() {
            if held || front.lookout.is_over() || front.fault().is_some() {
                held = true;
                let text = "jackline: not run, because nothing runs now".to_owned();
                results.push(refused(call, text));
                continue;
            }
            let refusal = refusal.filter(|_| number + 1 == calls.len());
            let (result, holds) = self.call(front, call, refusal);
            results.push(result);
            held = holds;
        }
        (results, held)
    }

    /// Makes one call; its result, and whether the session is paused or over now.
    fn call(
        &mut self,
        front: &mut RunFront<'_>,
        call: &Call,
        refusal: Option<&Refusal>,
    ) -> (ToolResult, bool) {
        let parsed = serde_json::from_str::<Value>(&call.arguments);
        let parsed = parsed.ok().filter(Value::is_object);
        let does = parsed.as_ref().map_or_else(|| call.arguments.clone(), does);
        let args = match parsed.clone() {
            Some(parsed) => Arguments::Parsed(parsed),
            None => Arguments::Text(Payload::Inline(call.arguments.clone())),
        };
        let ruling = front.propose(ProposedCall::new(&call.name, args));
        let holds = matches!(ruling, CallRuling::Stop(_));
        let cut = refusal.map(|refusal| told_of_cut(&call.name, refusal));
        let CallPermit { number, args, decision } = match ruling.permit() {
            Ok(permit) => permit,
            Err(refusal) => {
                let decision = refusal.decision.word().to_owned();
                let text = refusal.text();
                let text = cut.map_or(text.clone(), |cut| format!("{text}\n\n{cut}"));
                let (why, does) = (Some(shown(&text)), shown(&does));
                let tool = call.name.clone();
                front.say(&Told::Called {
                    tool,
                    does,
                    decision,
                    why,
                    status: None,
                    exit_code: None,
                    ms: 0,
                });
                return (refused(call, text), holds);
            }
        };
        let (decision, arguments) =
            (decision.word().to_owned(), args.or(parsed).unwrap_or_default());
        let began = started();
        let (back, shows, is_error) = match cut {
            // Half a call never runs, whatever could be made of it.
            Some(cut) => failed(number, cut),
            None => self.run(front, number, &call.name, &arguments),
        };
        let (status, exit_code) = (back.status, back.exit_code);
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answer = front.finish(back);
        let told = front.take_texts();
        let text = match &told {
            Some(told) => format!("{shows}\n\n{told}"),
            None => shows,
        };
        let why = told.map(|told| shown(&told));
        let (tool, does) = (call.name.clone(), shown(&does));
        front.say(&Told::Called { tool, does, decision, why, status: Some(status), exit_code, ms });
        let (id, name) = (call.id.clone(), call.name.clone());
        (ToolResult { call: id, name, text, is_error }, answer.holds_session())
    }

    /// Runs a tool of the workspace; what is told to the guards, and to the model.
    fn run(
        &self,
        front: &RunFront<'_>,
        number: u64,
        name: &str,
        arguments: &Value,
    ) -> (CallResult, String, bool) {
        let known = self.tools.iter().any(|tool| tool.name == name);
        // One that this task does not have is answered as one that nobody has.
        let name = if known { name } else { "" };
        let mut note = |reason: String| front.note_fault(FaultKind::Undo, reason);
        let call = || self.workspace.call(name, arguments);
        match self.undoing.around(name, arguments, &mut note, call) {
            Ok(output) => {
                let status = output.status();
                let back = CallResult {
                    exit_code: output.structured.get("exit_code").and_then(Value::as_i64),
                    seen: output.seen(Shows::of(name, arguments)),
                    text: Some(output.text.clone()),
                    ..CallResult::new(number, status)
                };
                (back, output.text, status != Status::Ok)
            }
            Err(error) => failed(number, error.text()),
        }
    }
}

/// A call that brought nothing but an error.
fn failed(number: u64, text: String) -> (CallResult, String, bool) {
    let back = CallResult { text: Some(text.clone()), ..CallResult::new(number, Status::Error) };
    (back, text, true)
}

/// How many steps an iteration has.
fn steps_max(defined: &Definition) -> u32 {
    defined.progress.as_ref().map_or(STEPS_PER_ITERATION, |it| it.steps_per_iteration)
}

/// What becomes of a stop.
pub(crate) enum Stopped {
    /// The agent may stop, and this is what it counts as.
    As(String),
    /// It may not yet, and is told why.
    NotYet(String),
    /// Nobody may do anything now.
    Held,
}

/// Asks whether the agent may stop. Where a check by command is at work, it is waited for.
pub(crate) fn propose_stop(front: &mut RunFront<'_>, said: &str) -> Stopped {
    loop {
        let was_held = front.lookout.is_held();
        let output = (!said.is_empty()).then(|| Payload::Inline(said.to_owned()));
        let reason = Some("end_turn".to_owned());
        let ruling = front.propose_stop(StopProposed { reason, output, ..StopProposed::default() });
        if front.fault().is_some() {
            return Stopped::Held;
        }
        match ruling {
            StopRuling::Hold(_) => return Stopped::Held,
            StopRuling::End(completion) => return Stopped::As(counts_as(completion.as_ref())),
            StopRuling::GoOn(text) => {
                front.say(&Told::Stopping { allowed: false, why: shown(&text) });
                return Stopped::NotYet(text);
            }
            StopRuling::Wait(_) => {}
        }
        front.say(&Told::Waiting { waits: Waits::Verification {} });
        let waited = wait_for_checks(front, was_held);
        if waited != Waited::Changed || front.lookout.is_over() {
            return Stopped::Held;
        }
    }
}

/// Tells what an answer cost; whether the conversation has to begin anew.
fn count(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    reply: &Reply,
    guess: Option<Usage>,
    window: Option<u64>,
) -> bool {
    let answer = front.report(cost_of(engine, reply, guess, window));
    answer.verdict.context_gate.is_some_and(|gate| gate.level >= ContextLevel::Compact)
}

/// What an answer cost; where nobody says so, what it must have cost by a guess.
pub(crate) fn cost_of(
    engine: &EngineSpec,
    reply: &Reply,
    guess: Option<Usage>,
    window: Option<u64>,
) -> UsageReported {
    let usage = reply.usage.or(guess).unwrap_or_default();
    let request = reply.request.as_deref().and_then(|id| RequestId::parse(id).ok());
    UsageReported {
        request,
        model: Some(engine.model_name().to_owned()),
        input: usage.input,
        cache_read: usage.cache_read,
        cache_creation: usage.cache_creation,
        output: usage.output,
        window,
        unknown: reply.usage.is_none(),
        ..UsageReported::default()
    }
}

/// How many tokens go with every question, roughly.
fn size(system: &str, tools: &[Tool]) -> u64 {
    let described = serde_json::to_vec(tools).map_or(0, |text| text.len());
    (system.len() + described) as u64 / BYTES_PER_TOKEN
}

fn refused(call: &Call, text: String) -> ToolResult {
    ToolResult { call: call.id.clone(), name: call.name.clone(), text, is_error: true }
}

/// What a call does, in a word: its command, or its file.
fn does(arguments: &Value) -> String {
    let said = ["command", "path", "pattern", "glob"];
    let found = said.iter().find_map(|key| arguments.get(key)?.as_str());
    found.map_or_else(|| arguments.to_string(), ToOwned::to_owned)
}

/// As what a stop that is allowed counts.
fn counts_as(completion: Option<&Completion>) -> String {
    match completion {
        Some(Completion::Complete) => "complete".to_owned(),
        Some(Completion::Capped { feedback, .. } | Completion::Incomplete { feedback, .. }) => {
            format!("not done: {}", shown(feedback))
        }
        Some(Completion::Bypassed { .. }) => "not checked: the work has to end".to_owned(),
        Some(Completion::Unverified { reason }) => format!("not verified: {}", shown(reason)),
        None => "nothing was demanded".to_owned(),
    }
}

/// A text for those who watch: its beginning.
pub(crate) fn shown(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}

fn started() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "only shown to those who watch")]
    Instant::now()
}
