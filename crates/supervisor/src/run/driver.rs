//! Drives the iterations of a session until it ends or is suspended.

mod agent_program;
mod conversation_restart;
mod engine_change;
mod model_failure;
mod paused_session;

use std::collections::BTreeMap;
use std::time::Duration;

use jackline_attempt::InternalOutcome;
use jackline_engine::definition::RunLimits;
use jackline_engine::event::{IterationEnded, PromptSource, RunFailure};
use jackline_engine::verdict::SessionStop;
use jackline_engine::{Decision, Payload, SessionEnded, SessionSummary, StopProposed};
use jackline_host::clock::now;
use jackline_model::{ConversationMessage, Model, ModelErrorKind, RetryPolicy};

use super::engine_connect::connect_engine;
use super::{RunError, RunOptions};
use crate::engines::{EngineChain, EngineChangeReason, EngineSpec};
use crate::evidence::UnrecordedFacts;
use crate::model_loop::{CONTINUE_TEXT, EngineCall, IterationEnd, ModelLoop};
use crate::program_loop::ProgramLoop;
use crate::run_event::RunEvent;
use crate::run_front::RunFront;
use crate::run_history::RunHistory;
use crate::run_task::RunTask;
use crate::waiting::time_left;
use crate::worker;

/// Drives a session.
pub(super) struct RunDriver<'a, 'h> {
    task: &'a RunTask,
    opening: &'a RunOptions,
    front: RunFront<'h>,
    chain: EngineChain,
    model_loop: ModelLoop<'a>,
    /// Runs programs, if the model acts by programs instead of tool calls.
    programs: Option<ProgramLoop<'a>>,
    /// The pending text and the conversation of an agent program.
    worker: worker::WorkerInbox,
    /// Whether an iteration was started and has not ended.
    has_open_iteration: bool,
    /// How many times in a row the conversation was full, and the amount of work done by then.
    full_conversations: (u32, u64),
    /// How many questions to an advisor were interrupted, so that the journal has no answer.
    interrupted_questions: u32,
    /// How many times in a row the run waited for a model.
    model_waits: u32,
    suspend_reason: Option<String>,
    /// Why the last model that failed did so.
    last_failure: Option<ModelErrorKind>,
    stop: Option<SessionStop>,
    /// Scripted models that do not work now. Each one continues where it was.
    scripts: BTreeMap<String, Box<dyn Model>>,
    /// How many answers each model gave before this process.
    answered: BTreeMap<String, usize>,
}

/// Whether the driver continues.
#[derive(PartialEq, Eq)]
enum DriverFlow {
    Continue,
    End,
}

impl<'a, 'h> RunDriver<'a, 'h> {
    pub(super) fn new(
        task: &'a RunTask,
        opening: &'a RunOptions,
        front: RunFront<'h>,
        chain: EngineChain,
        (own, programs, worker): (ModelLoop<'a>, Option<ProgramLoop<'a>>, worker::WorkerInbox),
        history: RunHistory,
    ) -> Self {
        Self {
            task,
            opening,
            front,
            chain,
            model_loop: own,
            programs,
            worker,
            has_open_iteration: false,
            full_conversations: (0, 0),
            interrupted_questions: history.interrupted_questions,
            model_waits: history.waits,
            suspend_reason: None,
            last_failure: None,
            stop: None,
            scripts: BTreeMap::new(),
            answered: history.answered,
        }
    }

    /// Works until the session ends or is suspended. Returns the answer of the agent.
    pub(super) fn drive(&mut self) -> Result<Option<InternalOutcome>, RunError> {
        self.start_or_resume_conversation()?;
        loop {
            if let Some(fault) = self.front.fault() {
                return Err(RunError::from_guard_fault(fault));
            }
            if self.front.stop_signals.is_cancelled() {
                self.suspend("it was interrupted by a signal");
                return Ok(None);
            }
            let Some(summary) = self.front.summary() else {
                return Err(RunError::GuardBroken("the session can no longer be read".to_owned()));
            };
            if let Some(stop) = summary.stop.clone() {
                self.stop = Some(stop);
                return Ok(None);
            }
            if self.front.stop_signals.is_workspace_gone() {
                self.end_without_workspace();
                return Ok(None);
            }
            if summary.is_paused() {
                if self.handle_pause(&summary)? == DriverFlow::End {
                    return Ok(None);
                }
                continue;
            }
            // No engine was asked yet, so no iteration has started.
            if self.is_late() {
                self.end_out_of_time();
                return Ok(None);
            }
            self.return_to_first_engine()?;
            self.front.emit(&RunEvent::Iteration { number: summary.progress.iteration_count + 1 });
            self.has_open_iteration = true;
            match self.iterate()? {
                IterationEnd::Done { counts_as, answer } => {
                    self.front.emit(&RunEvent::Stopping { allowed: true, why: counts_as });
                    let paused = self.front.summary().is_some_and(|it| it.is_paused());
                    if paused {
                        continue;
                    }
                    self.end_session(None);
                    return Ok(Some(*answer));
                }
                IterationEnd::StopRefused { full } => {
                    self.end_iteration(None, None);
                    let restarts = full && !self.is_paused();
                    if restarts && self.restart_or_change_engine()? == DriverFlow::End {
                        return Ok(None);
                    }
                }
                IterationEnd::Exhausted { error, full } => {
                    self.end_iteration(Some(error), Some(0));
                    if full && !self.is_paused() {
                        self.restart_conversation()?;
                    }
                }
                IterationEnd::StepsUsedUp => {
                    self.end_iteration(None, None);
                    self.model_loop.add_user_text(CONTINUE_TEXT.to_owned())?;
                }
                IterationEnd::ConversationFull => {
                    if self.restart_or_change_engine()? == DriverFlow::End {
                        return Ok(None);
                    }
                }
                IterationEnd::Interrupted if self.front.stop_signals.is_workspace_gone() => {}
                IterationEnd::Interrupted if self.is_late() => {
                    self.end_out_of_time();
                    return Ok(None);
                }
                IterationEnd::Interrupted => self.recheck_guards(),
                IterationEnd::ModelFailed(error) => {
                    self.last_failure = Some(error.kind);
                    if self.handle_model_error(&error)? == DriverFlow::End {
                        return Ok(None);
                    }
                }
                IterationEnd::BudgetUsedUp => {
                    if !self.change_engine(EngineChangeReason::Cost)? {
                        let text = format!("`{}` has used up its own budget", self.chain.label());
                        self.front.emit(&RunEvent::Notification { text });
                        self.end_without_engine();
                        return Ok(None);
                    }
                }
                IterationEnd::OutOfTime => {
                    self.end_out_of_time();
                    return Ok(None);
                }
                IterationEnd::NotSaved(error) => return Err(RunError::NotSaved(error)),
            }
        }
    }

    /// Ends the session before its first question, because no person has approved the agent.
    pub(super) fn end_unapproved(&mut self) -> Option<InternalOutcome> {
        let session = self.front.session();
        let text = format!(
            "no person has approved this agent; inspect it with `jackline identity show {session}`, then allow it \
             with `jackline identity approve {session}`"
        );
        self.front.emit(&RunEvent::Notification { text });
        self.end_session(None);
        None
    }

    /// Whether the session has ended.
    fn is_stopped(&mut self) -> bool {
        self.front.summary().is_some_and(|summary| summary.stop.is_some())
    }

    /// Whether the last model that failed may work later.
    pub(super) fn has_temporary_failure(&self) -> bool {
        self.last_failure.is_some_and(ModelErrorKind::is_temporary)
    }

    /// Whether the model acts by programs.
    pub(super) fn has_programs(&self) -> bool {
        self.programs.is_some()
    }

    /// How the last program ended, if it failed.
    pub(super) fn failed_program(&mut self) -> Option<InternalOutcome> {
        self.programs.as_mut().and_then(ProgramLoop::take_last_failure)
    }

    /// The stop code, or why the run was suspended. Ends the verifications of a session that has
    /// ended.
    pub(super) fn take_result(&mut self) -> (Option<SessionStop>, Option<String>) {
        if self.stop.is_some() {
            self.front.stop_signals.end_verifications();
        }
        (self.stop.take(), self.suspend_reason.take())
    }

    pub(super) fn summary(&mut self) -> Option<SessionSummary> {
        self.front.summary()
    }

    /// What the driver knows and the journal does not record.
    pub(super) fn unrecorded(&self) -> UnrecordedFacts {
        UnrecordedFacts {
            has_open_iteration: self.has_open_iteration,
            has_unreported_usage: self.chain.has_unreported_usage(),
        }
    }

    /// How often the run tries again, by the definition in force.
    fn run_limits(&self) -> RunLimits {
        self.front.definition().map(|definition| definition.run).unwrap_or_default()
    }

    fn suspend(&mut self, why: &str) {
        self.suspend_reason = Some(why.to_owned());
    }

    /// Ends the session; `failure` is the reason if the work could not continue.
    fn end_session(&mut self, failure: Option<RunFailure>) {
        self.stop = self.front.report(SessionEnded { failure }).verdict.stop;
    }

    /// Starts or resumes the conversation.
    fn start_or_resume_conversation(&mut self) -> Result<(), RunError> {
        let worker = self.worker_label();
        if self.opening.resumed.is_none() {
            let more =
                self.front.take_texts().map_or_else(String::new, |more| format!("\n\n{more}"));
            let text = format!("{}{more}", self.task.prompt);
            if let Some(worker) = worker {
                self.worker.start_over(&worker, text.clone())?;
            }
            return Ok(self.model_loop.add_user_text(text)?);
        }
        if let Some(worker) = worker {
            // The record of the worker already contains its next prompt.
            let goes_on = self.worker.resume(&worker)?;
            return if goes_on { Ok(()) } else { self.start_handover(None) };
        }
        if self.model_loop.conversation.is_empty() {
            return self.start_handover(None);
        }
        let cut_off = match self.model_loop.conversation.messages().last() {
            Some(ConversationMessage::User(_)) => None,
            _ => {
                let undone =
                    self.programs.as_ref().and_then(ProgramLoop::cut_off).unwrap_or_default();
                let text = format!("The work continues after an interruption. {undone}");
                Some(text.trim_end().to_owned())
            }
        };
        let told: Vec<String> = cut_off.into_iter().chain(self.front.take_texts()).collect();
        if told.is_empty() {
            Ok(())
        } else {
            Ok(self.model_loop.add_user_text(told.join("\n\n"))?)
        }
    }

    fn iterate(&mut self) -> Result<IterationEnd, RunError> {
        let Some(engine) = self.chain.current().cloned() else {
            return Err(RunError::NoEngine(self.task.sensitive));
        };
        if engine.is_worker() {
            let ended = self.run_agent_program(&engine)?;
            if !matches!(ended, IterationEnd::ModelFailed(_)) {
                self.model_waits = 0;
            }
            return Ok(ended);
        }
        if self.model_loop.model.is_none() {
            self.model_loop.model = self.scripts.remove(&engine.label);
        }
        if self.model_loop.model.is_none() {
            let asked = self.answered.remove(engine.model_name()).unwrap_or(0);
            self.model_loop.model = connect_engine(&engine, asked)?;
        }
        let asked = self.chain.questions_used();
        let patience = patience(self.run_limits().model_tries, self.chain.failures_with_fallback());
        let (chain, front) = (&mut self.chain, &mut self.front);
        let mut whom =
            EngineCall { engine: &engine, patience, spend: &mut || chain.spend_question() };
        let ended = match &mut self.programs {
            Some(programs) => programs.run_iteration(&mut self.model_loop, front, &mut whom),
            None => self.model_loop.run_iteration(front, &mut whom),
        };
        // Only the last of several questions can have failed.
        if self.chain.questions_used() > asked + 1 || !matches!(ended, IterationEnd::ModelFailed(_))
        {
            self.model_waits = 0;
        }
        Ok(ended)
    }

    /// Ends an iteration; `error` is set if all programs failed and were undone.
    fn end_iteration(&mut self, error: Option<String>, files_changed: Option<u64>) {
        self.has_open_iteration = false;
        let answer = self.front.report(IterationEnded {
            files_changed,
            error: error.map(Payload::Inline),
            ..IterationEnded::default()
        });
        self.front.keep_text(&answer);
        let summary = self.front.summary();
        let number = summary.as_ref().map_or(0, |summary| summary.progress.iteration_count);
        let failure = summary.and_then(|it| it.progress.last_failure).map(ToOwned::to_owned);
        self.front.emit(&RunEvent::IterationEnded { number, failure });
    }

    /// Whether the session is paused. If its conversation is full, it restarts after the next answer.
    fn is_paused(&self) -> bool {
        self.front.summary().is_none_or(|summary| summary.is_paused())
    }

    /// Sends a prompt event, so that the guards see changes from outside. A session that has ended
    /// gets no more prompts.
    fn recheck_guards(&mut self) {
        if self.is_stopped() {
            return;
        }
        let verdict = self.front.prompt(PromptSource::Harness, CONTINUE_TEXT).verdict;
        if verdict.is_enforced(Decision::Stop) {
            self.stop.clone_from(&verdict.stop);
        }
    }

    /// Ends the session because no engine can work.
    fn end_without_engine(&mut self) {
        let is_worker = self.chain.current().is_some_and(EngineSpec::is_worker);
        self.end_session(Some(if is_worker { RunFailure::Worker } else { RunFailure::Model }));
    }

    /// Ends the session because its workspace was deleted.
    fn end_without_workspace(&mut self) {
        let place = self.opening.workspace.display();
        let text = format!(
            "the workspace `{place}` was deleted while the run was active, so the run can't continue; restore the \
             directory, then start a new run"
        );
        self.front.emit(&RunEvent::Notification { text });
        self.end_session(Some(RunFailure::Workspace));
    }

    /// Whether the deadline or a hard limit on time is used up.
    fn is_late(&mut self) -> bool {
        time_left(&mut self.front).is_some_and(|left| left.is_zero())
    }

    /// Ends the session because its time is used up.
    fn end_out_of_time(&mut self) -> DriverFlow {
        let reason = Some("deadline".to_owned());
        self.front.propose_stop(StopProposed { reason, ..StopProposed::default() });
        self.end_session(None);
        DriverFlow::End
    }
}

fn patience(tries: u32, left_at_once: &'static [ModelErrorKind]) -> RetryPolicy {
    RetryPolicy {
        tries_max: tries,
        not_retried: left_at_once,
        pause_first: Duration::from_millis(500),
        pause_max: Duration::from_mins(1),
        retry_after_max: Duration::from_mins(2),
        seed: now().boot_ms,
    }
}
