//! The supervisor's own agent loop: ask a model, run its calls under the guards, and repeat until
//! it wants to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jackline_attempt::InternalOutcome;
use jackline_decode::stream::Refusal;
use jackline_engine::event::UsageReported;
use jackline_engine::json::parse_strict;
use jackline_engine::verdict::{CompletionResult, ContextLevel};
use jackline_engine::{Arguments, CallStatus, Definition, FaultKind, Payload, StopProposed};
use jackline_model::{
    AnswerEnd, AssistantMessage, ConversationMessage, Model, ModelError, ModelErrorKind,
    ModelReply, ModelRequest, RetryPolicy, TokenUsage, ToolCallRequest, ToolCallResult,
    ToolDeclaration,
};
use jackline_runtime::{CallPermit, CallResult, CallRuling, ProposedCall, StopRuling};
use jackline_workspace::{ShownContent, ToolError, Workspace};
use serde_json::Value;

use crate::conversation::{BYTES_PER_TOKEN, Conversation};
use crate::engines::EngineSpec;
use crate::model_question::{ModelQuestion, QuestionOutcome, ask_model};
use crate::reply_listener::{CutReply, ToolSchemas, cut_text as told_of_cut};
use crate::run_event::{RunEvent, WaitReason};
use crate::run_front::RunFront;
use crate::undo_recorder::UndoRecorder;
use crate::waiting::{WaitEnd, time_left, wait_for_checks};

/// How many tokens one answer may have.
const OUTPUT_TOKENS_MAX: u32 = 16_000;

/// How many steps an iteration has if the definition sets no limit.
const STEPS_PER_ITERATION: u32 = 50;

/// The text for a model whose answer was cut off at the token limit.
const CUT_OFF_TEXT: &str = "Your answer was too long and was cut off, and none of its calls ran. Continue in smaller steps.";

/// The text for an agent that has used all steps of an iteration.
pub(crate) const CONTINUE_TEXT: &str = "Continue.";

/// How many characters of a text the events of a run show.
const PREVIEW_CHARS_MAX: usize = 300;

/// How an iteration ended.
pub(crate) enum IterationEnd {
    /// The agent may stop.
    Done {
        /// How the guards count the stop.
        counts_as: String,
        /// The last text of the agent, or the answer of its program.
        answer: Box<InternalOutcome>,
    },
    /// The agent wants to stop, and the guards refused it.
    StopRefused {
        /// Whether the conversation has to restart.
        full: bool,
    },
    /// All programs of the iteration failed and were undone.
    Exhausted {
        /// The error of the last one.
        error: String,
        /// Whether the conversation has to restart.
        full: bool,
    },
    /// The agent has used all steps of the iteration.
    StepsUsedUp,
    /// The conversation is full.
    ConversationFull,
    /// The session was paused or stopped.
    Interrupted,
    /// The model does not answer.
    ModelFailed(ModelError),
    /// The engine has used up its own budget.
    BudgetUsedUp,
    /// The time of the session is used up.
    OutOfTime,
    /// The conversation could not be saved.
    NotSaved(std::io::Error),
}

impl IterationEnd {
    /// The agent may stop, with this answer.
    pub(crate) fn done(counts_as: String, answer: InternalOutcome) -> Self {
        Self::Done { counts_as, answer: Box::new(answer) }
    }

    /// The agent may stop, and its last text is the answer.
    pub(crate) fn done_with_text(counts_as: String, words: &str) -> Self {
        let value = Value::from(words);
        Self::done(counts_as, InternalOutcome::Ok { value, sources: Vec::new() })
    }
}

/// The engine to ask, and the limits for it.
pub(crate) struct EngineCall<'a> {
    pub(crate) engine: &'a EngineSpec,
    pub(crate) patience: RetryPolicy,
    /// Counts a question. Returns whether the budget allows it.
    pub(crate) spend: &'a mut dyn FnMut() -> bool,
}

/// One answer of a model.
pub(crate) struct ModelTurn {
    pub(crate) reply: AssistantMessage,
    pub(crate) end: AnswerEnd,
    /// Whether the conversation has to restart.
    pub(crate) needs_restart: bool,
    /// Why the last call can't be valid, if the answer was cut there.
    pub(crate) refusal: Option<Refusal>,
}

/// A model, its conversation and its tools.
pub(crate) struct ModelLoop<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) conversation: Conversation,
    pub(crate) system_prompt: String,
    pub(crate) tools: Vec<ToolDeclaration>,
    /// The schemas for the arguments of the tools.
    pub(crate) schemas: Arc<ToolSchemas>,
    /// The definition that these schemas come from.
    pub(crate) definition: Arc<Definition>,
    /// Stores the old contents of files that calls write.
    pub(crate) undo_recorder: UndoRecorder,
    /// The model. `None` while a thread asks it.
    pub(crate) model: Option<Box<dyn Model>>,
}

impl ModelLoop<'_> {
    /// Works until the model wants to stop, or the iteration ends for another reason.
    pub(crate) fn run_iteration(
        &mut self,
        front: &mut RunFront<'_>,
        whom: &mut EngineCall<'_>,
    ) -> IterationEnd {
        let (mut calls, mut cut_off) = (0_u32, 0_u32);
        loop {
            if calls >= steps_max(&self.definition) {
                return IterationEnd::StepsUsedUp;
            }
            let (system, tools) = (self.system_prompt.clone(), self.tools.clone());
            let ModelTurn { reply: said, end, needs_restart: full, refusal } =
                match self.ask_once(front, whom, system, tools) {
                    Ok(turn) => turn,
                    Err(ended) => return ended,
                };
            if end == AnswerEnd::Length {
                cut_off += 1;
                if cut_off >= self.definition.run.cut_off_answers {
                    let message = format!("answers in a row cut off at the token limit: {cut_off}");
                    return IterationEnd::ModelFailed(ModelError::new(
                        ModelErrorKind::ContextLength,
                        message,
                    ));
                }
                if let Err(error) = self.answer_cut_reply(&said) {
                    return IterationEnd::NotSaved(error);
                }
                continue;
            }
            cut_off = 0;
            if said.calls.is_empty() {
                return self.propose_stop_of(front, &said, full);
            }
            let (results, held) = self.run_calls(front, &said.calls, refusal.as_ref());
            calls += u32::try_from(said.calls.len()).unwrap_or(u32::MAX);
            front.emit_budget_status();
            if let Err(error) = self.conversation.push(ConversationMessage::Results(results)) {
                return IterationEnd::NotSaved(error);
            }
            if held || front.stop_signals.should_stop() || front.fault().is_some() {
                return IterationEnd::Interrupted;
            }
            if full {
                return IterationEnd::ConversationFull;
            }
        }
    }

    /// The schemas in force. A person may have changed the definition or turned the guard off.
    fn schemas(&mut self, front: &RunFront<'_>) -> Arc<ToolSchemas> {
        if let Some(defined) = front.definition().filter(|it| !Arc::ptr_eq(it, &self.definition)) {
            self.schemas = Arc::new(ToolSchemas::for_tools(&defined, &self.tools));
            self.definition = defined;
        }
        let is_off = front.stop_signals.is_guard_off();
        if is_off { Arc::default() } else { Arc::clone(&self.schemas) }
    }

    /// Adds a text of the supervisor to the conversation.
    pub(crate) fn add_user_text(&mut self, text: String) -> std::io::Result<()> {
        self.conversation.push(ConversationMessage::User(text))
    }

    /// Asks the model once, reports the usage, and stores the answer.
    pub(crate) fn ask_once(
        &mut self,
        front: &mut RunFront<'_>,
        whom: &mut EngineCall<'_>,
        system: String,
        tools: Vec<ToolDeclaration>,
    ) -> Result<ModelTurn, IterationEnd> {
        if !(whom.spend)() {
            return Err(IterationEnd::BudgetUsedUp);
        }
        let offers = !tools.is_empty();
        let extra_tokens = request_tokens(&system, &tools);
        let (reply, refusal) = self.ask_engine(front, whom, system, tools)?;
        // A complete answer comes with its usage. The usage of an answer that was cut is estimated,
        // and counts all the same.
        let guess = refusal.as_ref().map(|_| self.estimate_usage(extra_tokens, &reply.message));
        // The smaller number is right if the model and the engine name different windows.
        let known = self.model.as_ref().and_then(|model| model.window());
        let window = [whom.engine.window, known].into_iter().flatten().min();
        let full = report_usage(front, whom.engine, &reply, guess, window);
        let ModelReply { message: mut said, end, .. } = reply;
        if !offers {
            // No tools were offered, so calls are ignored: they would never get a result.
            said.calls.clear();
        }
        if !said.text.trim().is_empty() {
            front.emit(&RunEvent::AgentText { text: preview(&said.text) });
        }
        self.conversation
            .push(ConversationMessage::Assistant(said.clone()))
            .map_err(IterationEnd::NotSaved)?;
        if end == AnswerEnd::Refusal && said.calls.is_empty() {
            let message = "the provider refused to answer";
            return Err(IterationEnd::ModelFailed(ModelError::new(
                ModelErrorKind::BadRequest,
                message,
            )));
        }
        Ok(ModelTurn { reply: said, end, needs_restart: full, refusal })
    }

    /// Asks the model. An answer that was cut ends with a call that can't be valid, and comes with
    /// the reason.
    fn ask_engine(
        &mut self,
        front: &mut RunFront<'_>,
        whom: &EngineCall<'_>,
        system: String,
        tools: Vec<ToolDeclaration>,
    ) -> Result<(ModelReply, Option<Refusal>), IterationEnd> {
        let (engine, patience) = (whom.engine, whom.patience);
        let Some(model) = self.model.take() else {
            let message = format!("model `{}` is not connected", engine.label);
            return Err(IterationEnd::ModelFailed(ModelError::new(
                ModelErrorKind::Network,
                message,
            )));
        };
        let schemas = self.schemas(front);
        front.emit(&RunEvent::Asking { model: engine.label.clone() });
        let request = ModelRequest {
            system,
            messages: self.conversation.messages().to_vec(),
            tools,
            output: None,
            output_tokens_max: OUTPUT_TOKENS_MAX,
        };
        let time_left = time_left(front);
        let question = ModelQuestion { request, schemas, patience, time_left };
        let lookout = front.stop_signals.clone();
        let mut waits = |pause: Duration, error: &ModelError| {
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let waits = WaitReason::Model { why: error.to_string(), ms };
            front.emit(&RunEvent::Waiting { waits });
        };
        let (model, asked) = ask_model(model, question, &lookout, &mut waits);
        self.model = model;
        match asked {
            QuestionOutcome::Reply(reply) => Ok((*reply, None)),
            QuestionOutcome::CutShort(cut) => {
                let CutReply { reply: said, refusal } = *cut;
                Ok((
                    ModelReply { message: said, end: AnswerEnd::Calls, usage: None, request: None },
                    Some(refusal),
                ))
            }
            QuestionOutcome::Failed(error) => Err(IterationEnd::ModelFailed(error)),
            QuestionOutcome::Abandoned => Err(IterationEnd::Interrupted),
        }
    }

    /// The estimated usage of an incomplete answer. `extra_tokens` are not in the
    /// conversation.
    fn estimate_usage(&self, extra_tokens: u64, said: &AssistantMessage) -> TokenUsage {
        let calls: usize = said.calls.iter().map(|it| it.name.len() + it.arguments.len()).sum();
        let output = (said.text.len() + calls) as u64 / BYTES_PER_TOKEN;
        TokenUsage {
            input: self.conversation.estimated_tokens() + extra_tokens,
            output,
            ..TokenUsage::default()
        }
    }

    /// Answers an answer that was cut off at the token limit: none of its calls runs.
    fn answer_cut_reply(&mut self, said: &AssistantMessage) -> std::io::Result<()> {
        if said.calls.is_empty() {
            return self.add_user_text(CUT_OFF_TEXT.to_owned());
        }
        let results =
            said.calls.iter().map(|call| refused_result(call, CUT_OFF_TEXT.to_owned())).collect();
        self.conversation.push(ConversationMessage::Results(results))
    }

    fn propose_stop_of(
        &mut self,
        front: &mut RunFront<'_>,
        said: &AssistantMessage,
        full: bool,
    ) -> IterationEnd {
        match propose_stop(front, &said.text) {
            StopOutcome::Allowed(counts_as) => IterationEnd::done_with_text(counts_as, &said.text),
            StopOutcome::Interrupted => IterationEnd::Interrupted,
            StopOutcome::Refused(text) => self.end_refused_stop(front, text, full),
        }
    }

    /// Ends an iteration whose stop was refused. A new conversation must have the reason, too.
    pub(crate) fn end_refused_stop(
        &mut self,
        front: &RunFront<'_>,
        text: String,
        full: bool,
    ) -> IterationEnd {
        if full {
            front.add_text(text);
        } else if let Err(error) = self.add_user_text(text) {
            return IterationEnd::NotSaved(error);
        }
        IterationEnd::StopRefused { full }
    }

    /// Runs the calls of one answer. Returns the results, and whether the session is paused or
    /// ended. If `refusal` is set, the last call is incomplete and is refused.
    fn run_calls(
        &mut self,
        front: &mut RunFront<'_>,
        calls: &[ToolCallRequest],
        refusal: Option<&Refusal>,
    ) -> (Vec<ToolCallResult>, bool) {
        let mut results = Vec::new();
        let mut held = false;
        for (number, call) in calls.iter().enumerate() {
            if held || front.stop_signals.should_stop() || front.fault().is_some() {
                held = true;
                let text = "jackline: not run, because the session is paused or ended".to_owned();
                results.push(refused_result(call, text));
                continue;
            }
            let refusal = refusal.filter(|_| number + 1 == calls.len());
            let (result, holds) = self.run_call(front, call, refusal);
            results.push(result);
            held = holds;
        }
        (results, held)
    }

    /// Runs one call. Returns its result, and whether the session is paused or ended.
    fn run_call(
        &mut self,
        front: &mut RunFront<'_>,
        call: &ToolCallRequest,
        refusal: Option<&Refusal>,
    ) -> (ToolCallResult, bool) {
        // Two parsers may read a text with a key twice differently, so the guards get the text.
        let parsed = parse_strict(call.arguments.as_bytes()).ok().filter(Value::is_object);
        let does = parsed.as_ref().map_or_else(|| call.arguments.clone(), call_summary);
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
                let decision = refusal.decision.as_str().to_owned();
                let text = refusal.text();
                let text = cut.map_or(text.clone(), |cut| format!("{text}\n\n{cut}"));
                let (why, does) = (Some(preview(&text)), preview(&does));
                let tool = call.name.clone();
                front.emit(&RunEvent::ToolCall {
                    tool,
                    does,
                    decision,
                    why,
                    status: None,
                    exit_code: None,
                    ms: 0,
                });
                return (refused_result(call, text), holds);
            }
        };
        let (decision, arguments) =
            (decision.as_str().to_owned(), args.or(parsed).unwrap_or_default());
        let began = start_instant();
        let (back, shows, is_error) = match cut {
            // An incomplete call never runs, even if the decoding layer could repair it.
            Some(cut) => failed_call(number, cut),
            None => self.run_tool(front, number, &call.name, &arguments),
        };
        let (status, exit_code) = (back.status, back.exit_code);
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answer = front.finish(back);
        let told = front.take_texts();
        let text = match &told {
            Some(told) => format!("{shows}\n\n{told}"),
            None => shows,
        };
        let why = told.map(|told| preview(&told));
        let (tool, does) = (call.name.clone(), preview(&does));
        front.emit(&RunEvent::ToolCall {
            tool,
            does,
            decision,
            why,
            status: Some(status),
            exit_code,
            ms,
        });
        let (id, name) = (call.id.clone(), call.name.clone());
        (ToolCallResult { call: id, name, text, is_error }, answer.blocks_session())
    }

    /// Runs a tool of the workspace. Returns the result for the guards and the text for the model.
    fn run_tool(
        &self,
        front: &RunFront<'_>,
        number: u64,
        name: &str,
        arguments: &Value,
    ) -> (CallResult, String, bool) {
        let offered: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        if !offered.contains(&name) {
            // Guards that only observe permit such a call.
            return failed_call(number, ToolError::unknown_tool(name, &offered).render_text());
        }
        let mut note = |reason: String| front.note_fault(FaultKind::Undo, reason);
        let call = || self.workspace.call(name, arguments);
        match self.undo_recorder.record_around(name, arguments, &mut note, call) {
            Ok(output) => {
                let status = output.status();
                let back = CallResult {
                    exit_code: output.structured.get("exit_code").and_then(Value::as_i64),
                    seen: output.shown_lines(ShownContent::of(name, arguments)),
                    text: Some(output.text.clone()),
                    ..CallResult::new(number, status)
                };
                (back, output.text, status != CallStatus::Ok)
            }
            Err(error) => failed_call(number, error.render_text()),
        }
    }
}

/// The result of a call that failed.
fn failed_call(number: u64, text: String) -> (CallResult, String, bool) {
    let back =
        CallResult { text: Some(text.clone()), ..CallResult::new(number, CallStatus::Error) };
    (back, text, true)
}

/// How many steps an iteration has.
fn steps_max(defined: &Definition) -> u32 {
    defined.progress.as_ref().map_or(STEPS_PER_ITERATION, |it| it.steps_per_iteration)
}

/// How a proposed stop ended.
pub(crate) enum StopOutcome {
    /// The agent may stop. The text says how the guards count the stop.
    Allowed(String),
    /// The agent may not stop yet. The text is the reason.
    Refused(String),
    /// The session is paused or ended.
    Interrupted,
}

/// Asks the guards whether the agent may stop. Waits for verification commands that are running.
pub(crate) fn propose_stop(front: &mut RunFront<'_>, said: &str) -> StopOutcome {
    loop {
        let was_held = front.stop_signals.should_pause();
        let output = (!said.is_empty()).then(|| Payload::Inline(said.to_owned()));
        let reason = Some("end_turn".to_owned());
        let ruling = front.propose_stop(StopProposed { reason, output, ..StopProposed::default() });
        if front.fault().is_some() {
            return StopOutcome::Interrupted;
        }
        match ruling {
            StopRuling::Blocked(_) => return StopOutcome::Interrupted,
            StopRuling::End(completion) => {
                return StopOutcome::Allowed(completion_text(completion.as_ref()));
            }
            StopRuling::Continue(text) => {
                front.emit(&RunEvent::Stopping { allowed: false, why: preview(&text) });
                return StopOutcome::Refused(text);
            }
            StopRuling::Wait(_) => {}
        }
        front.emit(&RunEvent::Waiting { waits: WaitReason::Verification {} });
        let waited = wait_for_checks(front, was_held);
        if waited != WaitEnd::Changed || front.stop_signals.should_stop() {
            return StopOutcome::Interrupted;
        }
    }
}

/// Reports the usage of an answer. Returns whether the conversation has to restart.
fn report_usage(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    reply: &ModelReply,
    guess: Option<TokenUsage>,
    window: Option<u64>,
) -> bool {
    let answer = front.report(usage_event(engine, reply, guess, window));
    answer.verdict.context_gate.is_some_and(|gate| gate.level >= ContextLevel::Compact)
}

/// The usage of an answer. If the provider did not report it, the estimate.
///
/// It has no request id: each answer is reported once, and the ids of servers are not unique. A
/// record with an id that was used before would replace the earlier one.
pub(crate) fn usage_event(
    engine: &EngineSpec,
    reply: &ModelReply,
    guess: Option<TokenUsage>,
    window: Option<u64>,
) -> UsageReported {
    let usage = reply.usage.or(guess).unwrap_or_default();
    UsageReported {
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

/// The estimated number of tokens that each request has besides the conversation.
fn request_tokens(system: &str, tools: &[ToolDeclaration]) -> u64 {
    let described = serde_json::to_vec(tools).map_or(0, |text| text.len());
    (system.len() + described) as u64 / BYTES_PER_TOKEN
}

fn refused_result(call: &ToolCallRequest, text: String) -> ToolCallResult {
    ToolCallResult { call: call.id.clone(), name: call.name.clone(), text, is_error: true }
}

/// A short description of a call: its command or its file.
fn call_summary(arguments: &Value) -> String {
    let said = ["command", "path", "pattern", "glob"];
    let found = said.iter().find_map(|key| arguments.get(key)?.as_str());
    found.map_or_else(|| arguments.to_string(), ToOwned::to_owned)
}

/// A text that says how the guards count a stop.
fn completion_text(completion: Option<&CompletionResult>) -> String {
    match completion {
        Some(CompletionResult::Complete) => "complete".to_owned(),
        Some(
            CompletionResult::Capped { feedback, .. }
            | CompletionResult::Incomplete { feedback, .. },
        ) => {
            format!("not done: {}", preview(feedback))
        }
        Some(CompletionResult::Bypassed { .. }) => {
            "not checked: a limit ends the session".to_owned()
        }
        Some(CompletionResult::Unverified { reason }) => {
            format!("not verified: {}", preview(reason))
        }
        None => "no completion check is configured".to_owned(),
    }
}

/// The first characters of a text, for the events of a run.
pub(crate) fn preview(text: &str) -> String {
    if text.chars().count() <= PREVIEW_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(PREVIEW_CHARS_MAX).chain(['…']).collect()
}

fn start_instant() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "only for the events of a run")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use jackline_model::LocalModelSpec;

    use super::*;
    use crate::engines::EngineKind;

    /// Ollama draws its ids from 999 numbers, and some servers always send the same one.
    #[test]
    fn an_id_of_a_server_does_not_replace_an_earlier_answer() {
        let engine = EngineSpec {
            label: "m".to_owned(),
            kind: EngineKind::Local(LocalModelSpec {
                path: "m.gguf".into(),
                window: None,
                timeout: Duration::from_secs(1),
            }),
            when: Vec::new(),
            budget: None,
            window: None,
        };
        let reply = ModelReply {
            message: AssistantMessage::default(),
            end: AnswerEnd::Turn,
            usage: Some(TokenUsage { input: 100, output: 10, ..TokenUsage::default() }),
            request: Some("chatcmpl-7".to_owned()),
        };
        let event = usage_event(&engine, &reply, None, None);
        assert_eq!((event.request, event.input, event.output), (None, 100, 10));
    }
}
