//! Iteration after iteration, until the session is over or has to be left.

mod anew;
mod changing;
mod failing;
mod stuck;
mod working;

use std::collections::BTreeMap;
use std::time::Duration;

use jackline_attempt::InternalOutcome;
use jackline_engine::event::{Failure, IterationEnded, PromptSource};
use jackline_engine::verdict::Stop;
use jackline_engine::{Decision, Payload, SessionEnded, StopProposed, Summary};
use jackline_host::clock::now;
use jackline_model::{ErrorKind, Message, Model, Patience};

use super::reach::reach;
use super::{Opening, RunError};
use crate::engines::{Chain, EngineSpec, Reason};
use crate::evidence::{Looks, Unrecorded};
use crate::history::History;
use crate::own::{Ended, GO_ON, Own, Whom};
use crate::programs::Programs;
use crate::run_front::RunFront;
use crate::spec::RunTask;
use crate::told::Told;
use crate::waiting::time_left;
use crate::worker;

/// How often a model is asked that does not answer, where nobody else is there.
const TRIES: u32 = 8;

/// So many calls in a row of which nothing is left, too.
const EXHAUSTED_MAX: u32 = 3;

/// Whoever drives a session.
pub(super) struct Driver<'a, 'h> {
    task: &'a RunTask,
    opening: &'a Opening,
    front: RunFront<'h>,
    chain: Chain,
    own: Own<'a>,
    /// How the model acts, where not by calls of tools.
    programs: Option<Programs<'a>>,
    /// What an agent program is told next, and its conversation.
    worker: worker::Told,
    /// How the workspace looked before a program began of which nobody sees a call.
    before: Option<Looks>,
    /// Whether an iteration has begun that is not over.
    is_open: bool,
    refused_stops: u32,
    idle: u32,
    exhausted: u32,
    /// How often its conversation was full, and what had come of the work by then.
    filled: (u32, u64),
    advised: u32,
    /// How often in a row a model was waited for.
    waits: u32,
    left: Option<String>,
    stop: Option<Stop>,
    /// Scripts of those that do not work now: they go on where they were.
    scripts: BTreeMap<String, Box<dyn Model>>,
    /// How often models have answered before the supervisor was started again.
    answered: BTreeMap<String, usize>,
}

/// Whether it goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Over,
}

impl<'a, 'h> Driver<'a, 'h> {
    pub(super) fn new(
        task: &'a RunTask,
        opening: &'a Opening,
        front: RunFront<'h>,
        chain: Chain,
        (own, programs, worker): (Own<'a>, Option<Programs<'a>>, worker::Told),
        history: History,
    ) -> Self {
        Self {
            task,
            opening,
            front,
            chain,
            own,
            programs,
            worker,
            before: None,
            is_open: false,
            refused_stops: 0,
            idle: 0,
            exhausted: 0,
            filled: (0, 0),
            advised: history.advised,
            waits: history.waits,
            left: None,
            stop: None,
            scripts: BTreeMap::new(),
            answered: history.answered,
        }
    }

    /// Works until the session is over or left; gives the agent's last words.
    pub(super) fn drive(&mut self) -> Result<Option<InternalOutcome>, RunError> {
        self.take_up()?;
        loop {
            if let Some(fault) = self.front.fault() {
                return Err(RunError::broken(fault));
            }
            if self.front.lookout.is_cancelled() {
                self.leave("it was ended by a signal");
                return Ok(None);
            }
            let Some(summary) = self.front.summary() else {
                return Err(RunError::Guard("the session can't be read any more".to_owned()));
            };
            if let Some(stop) = summary.stop.clone() {
                self.stop = Some(stop);
                return Ok(None);
            }
            if self.front.lookout.is_gone() {
                self.lose_workspace();
                return Ok(None);
            }
            if summary.is_paused() {
                if self.unblock(&summary)? == Goes::Over {
                    return Ok(None);
                }
                continue;
            }
            // Nobody is asked or started then, so none has begun.
            if self.is_late() {
                self.time_is_up();
                return Ok(None);
            }
            self.come_back()?;
            self.front.say(&Told::Iteration { number: summary.progress.iteration_count + 1 });
            self.is_open = true;
            match self.iterate()? {
                Ended::Done { counts_as, answer } => {
                    self.front.say(&Told::Stopping { allowed: true, why: counts_as });
                    let paused = self.front.summary().is_some_and(|it| it.is_paused());
                    if paused {
                        continue;
                    }
                    self.finish(None);
                    return Ok(Some(*answer));
                }
                Ended::NotYet { calls } => {
                    self.refused_stops += 1;
                    self.idle = if calls == 0 { self.idle + 1 } else { 0 };
                    self.exhausted = 0;
                    self.end_iteration(None, None);
                    self.hand_over_if_stuck()?;
                }
                Ended::Exhausted { error, full } => {
                    if self.exhaust(error)? == Goes::Over {
                        return Ok(None);
                    }
                    if full {
                        self.begin_anew()?;
                    }
                }
                Ended::Steps => {
                    self.end_iteration(None, None);
                    self.own.tell(GO_ON.to_owned())?;
                }
                Ended::Full => {
                    if self.refill()? == Goes::Over {
                        return Ok(None);
                    }
                }
                Ended::Held if self.front.lookout.is_gone() => {}
                Ended::Held if self.is_late() => {
                    self.time_is_up();
                    return Ok(None);
                }
                Ended::Held => self.knock(),
                Ended::Failed(error) => {
                    if self.failed(&error)? == Goes::Over {
                        return Ok(None);
                    }
                }
                Ended::Spent => {
                    if !self.change(Reason::Cost)? {
                        let text = format!("`{}` has used up its budget", self.chain.label());
                        self.front.say(&Told::Aside { text });
                        self.fail();
                        return Ok(None);
                    }
                }
                Ended::TimeIsUp => {
                    self.time_is_up();
                    return Ok(None);
                }
                Ended::Lost(error) => return Err(RunError::Kept(error)),
            }
        }
    }

    /// Ends the session because nobody has approved its agent, before anybody is asked.
    pub(super) fn refuse(&mut self) -> Option<InternalOutcome> {
        let session = self.front.session();
        let text = format!(
            "no person has approved this agent; look at it with `jackline identity show {session}`, and let it \
             work with `jackline identity approve {session}`"
        );
        self.front.say(&Told::Aside { text });
        self.finish(None);
        None
    }

    /// How the last program ended, where it came to nothing.
    pub(super) fn failed_program(&mut self) -> Option<InternalOutcome> {
        self.programs.as_mut().and_then(Programs::take_failed)
    }

    /// How it ended, or why it was left. What is over leaves no check at work.
    pub(super) fn end(&mut self) -> (Option<Stop>, Option<String>) {
        if self.stop.is_some() {
            self.front.lookout.end_checks();
        }
        (self.stop.take(), self.left.take())
    }

    pub(super) fn summary(&mut self) -> Option<Summary> {
        self.front.summary()
    }

    /// What no record says of the run.
    pub(super) fn unrecorded(&self) -> Unrecorded {
        Unrecorded { is_open: self.is_open, is_uncounted: self.chain.is_uncounted() }
    }

    fn leave(&mut self, why: &str) {
        self.left = Some(why.to_owned());
    }

    /// Ends the session; `failure` is what kept it from going on.
    fn finish(&mut self, failure: Option<Failure>) {
        self.stop = self.front.report(SessionEnded { failure }).verdict.stop;
    }

    /// Begins the conversation, or goes on with it.
    fn take_up(&mut self) -> Result<(), RunError> {
        let worker = self.worker();
        if self.opening.resumed.is_none() {
            let more =
                self.front.take_texts().map_or_else(String::new, |more| format!("\n\n{more}"));
            let text = format!("{}{more}", self.task.prompt);
            if let Some(worker) = worker {
                self.worker.begin(&worker, text.clone())?;
            }
            return Ok(self.own.tell(text)?);
        }
        if let Some(worker) = worker {
            // What it is told next was written down before the process ended.
            let goes_on = self.worker.go_on(&worker)?;
            return if goes_on { Ok(()) } else { self.take_over_text(None) };
        }
        if self.own.conversation.is_empty() {
            return self.take_over_text(None);
        }
        let cut_off = match self.own.conversation.messages().last() {
            Some(Message::User(_)) => None,
            _ => {
                let undone = self.programs.as_ref().and_then(Programs::cut_off).unwrap_or_default();
                let text = format!("The work goes on after it was cut off. {undone}");
                Some(text.trim_end().to_owned())
            }
        };
        let told: Vec<String> = cut_off.into_iter().chain(self.front.take_texts()).collect();
        if told.is_empty() { Ok(()) } else { Ok(self.own.tell(told.join("\n\n"))?) }
    }

    fn iterate(&mut self) -> Result<Ended, RunError> {
        let Some(engine) = self.chain.current().cloned() else {
            return Err(RunError::Nobody(self.task.sensitive));
        };
        if engine.is_worker() {
            let ended = self.work(&engine)?;
            if !matches!(ended, Ended::Failed(_)) {
                self.waits = 0;
            }
            return Ok(ended);
        }
        if self.own.model.is_none() {
            self.own.model = self.scripts.remove(&engine.label);
        }
        if self.own.model.is_none() {
            let asked = self.answered.remove(engine.model_name()).unwrap_or(0);
            self.own.model = reach(&engine, asked)?;
        }
        let asked = self.chain.used();
        let patience = patience(TRIES, self.chain.taken_over());
        let (chain, front) = (&mut self.chain, &mut self.front);
        let mut whom = Whom { engine: &engine, patience, spend: &mut || chain.spend() };
        let ended = match &mut self.programs {
            Some(programs) => programs.iterate(&mut self.own, front, &mut whom),
            None => self.own.iterate(front, &mut whom),
        };
        // Only the last of several questions can have failed.
        if self.chain.used() > asked + 1 || !matches!(ended, Ended::Failed(_)) {
            self.waits = 0;
        }
        Ok(ended)
    }

    /// Ends an iteration; `error` is of what came to nothing, and left nothing behind.
    fn end_iteration(&mut self, error: Option<String>, files_changed: Option<u64>) {
        self.is_open = false;
        let before = self.before.take();
        let seen = before.and_then(|before| before.changed_since(&self.opening.workspace));
        let files_changed = files_changed.or(seen);
        let answer = self.front.report(IterationEnded {
            files_changed,
            error: error.map(Payload::Inline),
            ..IterationEnded::default()
        });
        self.front.keep_text(&answer);
        let summary = self.front.summary();
        let number = summary.as_ref().map_or(0, |summary| summary.progress.iteration_count);
        let failure = summary.and_then(|it| it.progress.last_failure).map(ToOwned::to_owned);
        self.front.say(&Told::IterationEnded { number, failure });
    }

    /// Programs that came to nothing: the guards count that, and so do we.
    fn exhaust(&mut self, error: String) -> Result<Goes, RunError> {
        self.exhausted += 1;
        self.end_iteration(Some(error), Some(0));
        let paused = self.front.summary().is_none_or(|summary| summary.is_paused());
        if self.exhausted <= EXHAUSTED_MAX || paused || self.change(Reason::Verification)? {
            return Ok(Goes::On);
        }
        let text = format!("no program of `{}` came to anything", self.chain.label());
        self.front.say(&Told::Aside { text });
        self.fail();
        Ok(Goes::Over)
    }

    /// Lets the guards look, where something outside may have changed.
    fn knock(&mut self) {
        let verdict = self.front.prompt(PromptSource::Harness, GO_ON).verdict;
        if verdict.is_enforced(Decision::Stop) {
            self.stop.clone_from(&verdict.stop);
        }
    }

    /// Ends the session because nobody can work.
    fn fail(&mut self) {
        let is_worker = self.chain.current().is_some_and(EngineSpec::is_worker);
        self.finish(Some(if is_worker { Failure::Worker } else { Failure::Model }));
    }

    /// Ends the session because there is nothing left to work in.
    fn lose_workspace(&mut self) {
        let place = self.opening.workspace.display();
        let text = format!(
            "the workspace `{place}` was deleted while the run was under way, so nothing can go on; bring it \
             back, and begin a new run"
        );
        self.front.say(&Told::Aside { text });
        self.finish(Some(Failure::Workspace));
    }

    /// Whether what the whole work may take is used up.
    fn is_late(&mut self) -> bool {
        time_left(&mut self.front).is_some_and(|left| left.is_zero())
    }

    /// Ends the session because its time is up.
    fn time_is_up(&mut self) -> Goes {
        let reason = Some("deadline".to_owned());
        self.front.propose_stop(StopProposed { reason, ..StopProposed::default() });
        self.finish(None);
        Goes::Over
    }
}

fn patience(tries: u32, left_at_once: &'static [ErrorKind]) -> Patience {
    Patience {
        tries_max: tries,
        left_at_once,
        pause_first: Duration::from_millis(500),
        pause_max: Duration::from_mins(1),
        retry_after_max: Duration::from_mins(2),
        seed: now().boot_ms,
    }
}
