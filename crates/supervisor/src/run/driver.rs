//! Iteration after iteration, until the session is over or has to be left.

mod working;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jackline_attempt::InternalOutcome;
use jackline_engine::definition::ModelChoice;
use jackline_engine::{
    ActorId, Decision, EventKind, Failure, Invocations, Payload, PromptSource, Stop, Summary,
};
use jackline_model::{ErrorKind, Message, Model, ModelError, Patience, Request};
use jackline_runtime::now;

use super::reach::{reach, worded};
use super::{Opening, RunError};
use crate::advisor;
use crate::asking::{Asked, Question, ask};
use crate::desk::{Desk, why};
use crate::engines::{Chain, EngineKind, EngineSpec, Reason};
use crate::handover;
use crate::history::History;
use crate::own::{Ended, GO_ON, Own, Whom, cost_of, shown};
use crate::programs::Programs;
use crate::spec::RunTask;
use crate::told::{Told, Waits};
use crate::waiting::{Waited, rest, sleep, time_left, wait};
use crate::worker;

/// How often a model is asked that does not answer, where nobody else is there.
const TRIES: u32 = 8;

/// So many stops in a row that are refused count as another engine's turn.
const REFUSED_STOPS_MAX: u32 = 3;

/// So many calls in a row of which nothing is left, too.
const EXHAUSTED_MAX: u32 = 3;

/// So many iterations without a call, too.
const IDLE_MAX: u32 = 3;

/// How often in a row a model may fill its conversation of which nothing comes. One that
/// writes without an end would do so for ever.
const FILLED_MAX: u32 = 2;

/// How much an advisor may write, and how often one is asked that does not answer.
const ADVICE_TOKENS_MAX: u32 = 2000;
const ADVICE_TRIES: u32 = 2;

/// Who an advisor is in records.
const ADVISOR: &str = "advisor";

/// How often in a row a model is waited for whose limits are used up.
const WAITS_MAX: u32 = 20;

/// Why an agent program is no advisor.
const NO_ADVISOR: &str = "an agent program works, and gives no advice";

/// Where the runtime writes what an agent has to know that begins anew.
const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

/// Whoever drives a session.
pub(super) struct Driver<'a, 'h> {
    task: &'a RunTask,
    opening: &'a Opening,
    desk: Desk<'h>,
    chain: Chain,
    own: Own<'a>,
    /// How the model acts, where not by calls of tools.
    programs: Option<Programs<'a>>,
    /// What an agent program is told next, and its conversation.
    worker: worker::Told,
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
        desk: Desk<'h>,
        chain: Chain,
        (own, programs, worker): (Own<'a>, Option<Programs<'a>>, worker::Told),
        history: History,
    ) -> Self {
        Self {
            task,
            opening,
            desk,
            chain,
            own,
            programs,
            worker,
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
            if let Some(broken) = self.desk.broken() {
                return Err(RunError::Guard(broken.to_owned()));
            }
            if self.desk.lookout.is_cancelled() {
                self.leave("it was ended by a signal");
                return Ok(None);
            }
            let Some(summary) = self.desk.summary() else {
                return Err(RunError::Guard("the session can't be read any more".to_owned()));
            };
            if let Some(stop) = summary.stop.clone() {
                self.stop = Some(stop);
                return Ok(None);
            }
            if self.desk.lookout.is_gone() {
                self.lose_workspace();
                return Ok(None);
            }
            if summary.phase == "paused" {
                if self.unblock(&summary)? == Goes::Over {
                    return Ok(None);
                }
                continue;
            }
            self.come_back()?;
            self.desk.say(&Told::Iteration { number: summary.progress.iteration_count + 1 });
            let ended = self.iterate()?;
            match ended {
                Ended::Done { counts_as, answer } => {
                    self.desk.say(&Told::Stopping { allowed: true, why: counts_as });
                    let paused = self.desk.summary().is_some_and(|it| it.phase == "paused");
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
                Ended::Held if self.desk.lookout.is_gone() => {}
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
                        self.desk.say(&Told::Aside { text });
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
        let session = self.desk.session();
        let text = format!(
            "no person has approved this agent; look at it with `jackline identity show {session}`, and let it \
             work with `jackline identity approve {session}`"
        );
        self.desk.say(&Told::Aside { text });
        self.finish(None);
        None
    }

    /// How the last program ended, where it came to nothing.
    pub(super) fn failed_program(&mut self) -> Option<InternalOutcome> {
        self.programs.as_mut().and_then(Programs::take_failed)
    }

    /// How it ended, or why it was left.
    pub(super) fn end(&mut self) -> (Option<Stop>, Option<String>) {
        (self.stop.take(), self.left.take())
    }

    pub(super) fn summary(&mut self) -> Option<Summary> {
        self.desk.summary()
    }

    fn leave(&mut self, why: &str) {
        self.left = Some(why.to_owned());
    }

    /// Ends the session; `failure` is what kept it from going on.
    fn finish(&mut self, failure: Option<Failure>) {
        let verdict = self.desk.tell(EventKind::SessionEnded { failure });
        self.stop = verdict.stop;
    }

    /// Begins the conversation, or goes on with it.
    fn take_up(&mut self) -> Result<(), RunError> {
        let worker = self.worker();
        if self.opening.resumed.is_none() {
            let owed = self.desk.take_owed().map_or_else(String::new, |owed| format!("\n\n{owed}"));
            let text = format!("{}{owed}", self.task.prompt);
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
        let told: Vec<String> = cut_off.into_iter().chain(self.desk.take_owed()).collect();
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
        let (chain, desk) = (&mut self.chain, &mut self.desk);
        let mut whom = Whom { engine: &engine, patience, spend: &mut || chain.spend() };
        let ended = match &mut self.programs {
            Some(programs) => programs.iterate(&mut self.own, desk, &mut whom),
            None => self.own.iterate(desk, &mut whom),
        };
        // Only the last of several questions can have failed.
        if self.chain.used() > asked + 1 || !matches!(ended, Ended::Failed(_)) {
            self.waits = 0;
        }
        Ok(ended)
    }

    /// Ends an iteration; `error` is of what came to nothing, and left nothing behind.
    fn end_iteration(&mut self, error: Option<String>, files_changed: Option<u64>) {
        let verdict = self.desk.tell(EventKind::IterationEnded {
            phase: None,
            task: None,
            tests: None,
            build: None,
            files_changed,
            error: error.map(Payload::Inline),
        });
        self.desk.owe(&verdict);
        let summary = self.desk.summary();
        let number = summary.as_ref().map_or(0, |summary| summary.progress.iteration_count);
        let failure = summary.and_then(|it| it.progress.last_failure).map(ToOwned::to_owned);
        self.desk.say(&Told::IterationEnded { number, failure });
    }

    /// Programs that came to nothing: the guards count that, and so do we.
    fn exhaust(&mut self, error: String) -> Result<Goes, RunError> {
        self.exhausted += 1;
        self.end_iteration(Some(error), Some(0));
        let paused = self.desk.summary().is_none_or(|summary| summary.phase == "paused");
        if self.exhausted <= EXHAUSTED_MAX || paused || self.change(Reason::Verification)? {
            return Ok(Goes::On);
        }
        let text = format!("no program of `{}` came to anything", self.chain.label());
        self.desk.say(&Told::Aside { text });
        self.fail();
        Ok(Goes::Over)
    }

    /// Lets the guards look, where something outside may have changed.
    fn knock(&mut self) {
        let verdict = self.desk.prompt(PromptSource::Harness, GO_ON);
        if verdict.is_enforced(Decision::Stop) {
            self.stop.clone_from(&verdict.stop);
        }
    }

    /// A session that is paused: an advisor, the next engine, and only then a person.
    fn unblock(&mut self, summary: &Summary) -> Result<Goes, RunError> {
        let is_stuck = matches!(summary.paused_cause, Some("loop" | "no_progress"));
        self.exhausted = 0;
        if is_stuck && (self.advise(summary)? || self.change(Reason::Blocked)?) {
            return Ok(Goes::On);
        }
        let why = summary.paused_why.clone().unwrap_or_else(|| "no reason given".to_owned());
        let how = how_to_go_on(summary);
        if !self.opening.waits {
            self.leave(&format!("it waits for a person: {why}; first {how}"));
            return Ok(Goes::Over);
        }
        self.desk.say(&Told::Waiting { waits: Waits::Person { why, how } });
        match wait(&mut self.desk, &self.opening.workspace, summary) {
            Waited::Changed if self.desk.lookout.is_gone() => Ok(Goes::On),
            Waited::Changed => {
                self.knock();
                let goes = self.desk.summary().is_some_and(|it| it.phase != "paused");
                if goes {
                    self.desk.say(&Told::GoesOn {});
                    let owed = self.desk.take_owed().unwrap_or_default();
                    let text = format!("A person has looked at it, and lets you go on.\n\n{owed}");
                    self.tell(text)?;
                }
                Ok(Goes::On)
            }
            Waited::TimeIsUp => Ok(self.time_is_up()),
            Waited::Cancelled => {
                self.leave("it was ended by a signal while it waited for a person");
                Ok(Goes::Over)
            }
        }
    }

    /// Asks an advisor, where there is one; whether the agent goes on with what it says.
    fn advise(&mut self, summary: &Summary) -> Result<bool, RunError> {
        let Some(settings) = self.desk.definition().and_then(|it| it.advisor.clone()) else {
            return Ok(false);
        };
        if self.advised >= settings.budget || self.is_late() {
            return Ok(false);
        }
        let deadlock = summary.paused_why.clone().unwrap_or_default();
        let lines = usize::try_from(settings.transcript_lines).unwrap_or(usize::MAX);
        let transcript = self.transcript(lines);
        let (system, text) = advisor::question(&deadlock, &self.task.prompt, &transcript);
        let request = Request {
            system,
            messages: vec![Message::User(text)],
            output_tokens_max: ADVICE_TOKENS_MAX,
            ..Request::default()
        };
        for choice in &settings.models {
            self.advised += 1;
            let Some((instruction, error)) = self.ask_advisor(choice, &request) else {
                return Ok(true);
            };
            let model = choice.label();
            let told = Told::Advised { model: model.clone(), instruction: instruction.clone() };
            self.desk.say(&told);
            let verdict = self.desk.tell(EventKind::AdvisorAnswered {
                model: Some(model),
                instruction: instruction.map(Payload::Inline),
                error: error.map(Payload::Inline),
            });
            let lifted = self.desk.summary().is_some_and(|it| it.phase != "paused");
            if lifted {
                let text = why(&verdict);
                self.tell(text)?;
                return Ok(true);
            }
            if self.advised >= settings.budget {
                break;
            }
        }
        Ok(false)
    }

    /// What an advisor says, or why it says nothing; none where nobody waits for it any more.
    /// One that can't be asked at all is one that does not answer.
    fn ask_advisor(
        &mut self,
        choice: &ModelChoice,
        request: &Request,
    ) -> Option<(Option<String>, Option<String>)> {
        let reached = EngineSpec::of(choice, &self.task.scripts).and_then(|engine| {
            let engine = engine.beneath(&self.opening.kept.started_in);
            let model = reach(&engine, 0)?;
            Ok((engine, model))
        });
        let (engine, model) = match reached {
            Ok((engine, Some(model))) => (engine, model),
            Ok((_, None)) => return Some((None, Some(NO_ADVISOR.to_owned()))),
            Err(error) => return Some((None, Some(error.to_string()))),
        };
        let (request, schemas) = (request.clone(), Arc::default());
        let (patience, time_left) = (patience(ADVICE_TRIES, &[]), time_left(&mut self.desk));
        let question = Question { request, schemas, patience, time_left };
        let lookout = self.desk.lookout.clone();
        let (_, asked) = ask(model, question, &lookout, &mut |_, _| {});
        match asked {
            Asked::Over => None,
            Asked::Reply(reply) => {
                if let Ok(advisor) = ActorId::parse(ADVISOR) {
                    self.desk.tell_as(advisor, cost_of(&engine, &reply, None, engine.window));
                }
                let text = reply.said.text.trim();
                let text: String = text.chars().take(advisor::INSTRUCTION_CHARS_MAX).collect();
                Some((Some(text).filter(|text| !text.is_empty()), None))
            }
            Asked::Failed(error) => Some((None, Some(worded(&engine, &error)))),
            Asked::Cut(cut) => Some((None, Some(cut.refusal.to_string()))),
        }
    }

    /// Lets the next engine take over; whether there is one, and the guards let it.
    fn change(&mut self, reason: Reason) -> Result<bool, RunError> {
        match self.chain.next(reason) {
            Some(next) => self.change_to(next, reason),
            None => Ok(false),
        }
    }

    /// Has another engine work, where the guards let it. Nobody has moved before they say so.
    fn change_to(&mut self, next: usize, reason: Reason) -> Result<bool, RunError> {
        let (from, to) = (self.chain.label(), self.chain.label_of(next));
        let word = reason.word().to_owned();
        let verdict = self.desk.tell(EventKind::ModelChanged {
            from: Some(from.clone()),
            to: to.clone(),
            reason: word.clone(),
        });
        if verdict.is_enforced(Decision::Deny) {
            return Ok(false);
        }
        let plays = self.chain.current().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
        if let Some(model) = self.own.model.take().filter(|_| plays) {
            self.scripts.insert(from.clone(), model);
        }
        self.chain.change(next, now().boot_ms);
        self.desk.say(&Told::Changed { from: from.clone(), to, reason: word });
        self.desk.owe(&verdict);
        self.changed(&from, reason)?;
        Ok(true)
    }

    /// Has whoever works now know what it needs.
    fn changed(&mut self, from: &str, reason: Reason) -> Result<(), RunError> {
        let word = reason.word().to_owned();
        let was_worker = self.chain.is_worker(from);
        self.own.model = None;
        (self.refused_stops, self.idle, self.exhausted) = (0, 0, 0);
        let plan = reason.wants_plan().then(|| handover::plan(&word));
        // What an agent program was told and did is not in our conversation, and it knows
        // nothing of ours.
        if was_worker || self.worker().is_some() {
            return self.take_over_text(plan);
        }
        match plan {
            Some(plan) => Ok(self.own.tell(plan)?),
            None => Ok(()),
        }
    }

    /// The first engine is tried again after a while.
    fn come_back(&mut self) -> Result<(), RunError> {
        if let Some(first) = self.chain.returns(now().boot_ms) {
            self.change_to(first, Reason::Return)?;
        }
        Ok(())
    }

    fn hand_over_if_stuck(&mut self) -> Result<(), RunError> {
        if self.idle >= IDLE_MAX {
            self.change(Reason::StopEvents)?;
        } else if self.refused_stops > REFUSED_STOPS_MAX {
            self.change(Reason::Verification)?;
        }
        Ok(())
    }

    /// Begins the conversation anew, with what an agent has to know.
    fn begin_anew(&mut self) -> Result<(), RunError> {
        let summary = self.desk.summary();
        let main = summary.as_ref().and_then(|summary| summary.context.first());
        let (used, pct) = (main.and_then(|it| it.used), main.and_then(|it| it.pct));
        self.take_over_text(None)?;
        let freed = used.map(|used| used.saturating_sub(self.own.conversation.tokens()));
        let verdict = self.desk.tell(EventKind::CompactionFinished { freed, summary: None });
        self.desk.say(&Told::Restarted { pct });
        match verdict.context {
            Some(text) => self.tell(text),
            None => Ok(()),
        }
    }

    /// A conversation that is full begins anew, or somebody else takes over, or nobody does.
    fn refill(&mut self) -> Result<Goes, RunError> {
        if self.may_fill() {
            self.begin_anew()?;
            return Ok(Goes::On);
        }
        if self.change(Reason::Context)? {
            self.filled.0 = 0;
            return Ok(Goes::On);
        }
        let label = self.chain.label();
        let text =
            format!("`{label}` fills one conversation after the other, and nothing comes of it");
        self.desk.say(&Told::Aside { text });
        self.fail();
        Ok(Goes::Over)
    }

    /// Whether a conversation that is full may begin anew once more.
    fn may_fill(&mut self) -> bool {
        let done = self.done();
        let again = self.filled.1 == done;
        self.filled = (if again { self.filled.0 + 1 } else { 1 }, done);
        self.filled.0 <= FILLED_MAX
    }

    /// What has come of the work so far: calls that ran, or programs that stay.
    fn done(&mut self) -> u64 {
        if let Some(programs) = &self.programs {
            return programs.kept();
        }
        self.desk.summary().map_or(0, |summary| {
            let Invocations { proposed, denied, invalid_arguments, .. } = summary.invocations;
            proposed.saturating_sub(denied.saturating_add(invalid_arguments))
        })
    }

    /// A conversation for somebody who goes on with what others have begun.
    fn take_over_text(&mut self, plan: Option<String>) -> Result<(), RunError> {
        let mut text = self.where_it_stands();
        for more in self.desk.take_owed().into_iter().chain(plan) {
            text.push('\n');
            text.push_str(&more);
        }
        if let Some(worker) = self.worker() {
            self.worker.begin(&worker, text.clone())?;
        }
        self.own.conversation.begin_anew(text)?;
        Ok(())
    }

    /// The task, and how far it is.
    fn where_it_stands(&mut self) -> String {
        let Some(summary) = self.desk.summary() else { return self.task.prompt.clone() };
        let briefing = std::fs::read_to_string(self.opening.workspace.join(BRIEFING)).ok();
        handover::text(&self.task.prompt, &summary, briefing.as_deref())
    }

    /// A model that does not answer: another, some time, or the end.
    fn failed(&mut self, error: &ModelError) -> Result<Goes, RunError> {
        if error.kind == ErrorKind::Cancelled {
            return Ok(Goes::On);
        }
        let why = self.chain.current().map(|engine| worded(engine, error)).unwrap_or_default();
        self.desk.say(&Told::Aside { text: shown(&format!("{}: {why}", self.chain.label())) });
        let too_long = error.kind == ErrorKind::ContextLength;
        if too_long && !self.own.conversation.is_fresh() && self.may_fill() {
            self.begin_anew()?;
            return Ok(Goes::On);
        }
        if let Some(wanted) = error.retry_after {
            self.chain.rest(now().boot_ms.saturating_add(in_ms(wanted)));
        }
        if self.change(if too_long { Reason::Context } else { Reason::Failed(error.kind) })? {
            return Ok(Goes::On);
        }
        Ok(match self.next_pause(error) {
            Some(pause) if self.waits < WAITS_MAX => self.wait_out(error, pause),
            _ => {
                self.fail();
                Goes::Over
            }
        })
    }

    /// How long until somebody answers again: whoever has used up what it may, or the first,
    /// where it has said so when it was left. None where waiting is of no use.
    fn next_pause(&mut self, error: &ModelError) -> Option<Duration> {
        let is_limit = matches!(error.kind, ErrorKind::PlanLimit | ErrorKind::RateLimit);
        let own = is_limit.then(|| rest(error.retry_after, self.waits));
        let first = self.chain.first_rests().map(|until| {
            let left = Duration::from_millis(until.saturating_sub(now().boot_ms));
            rest(Some(left), self.waits)
        });
        if let Some(first) = first.filter(|first| own.is_none_or(|own| *first <= own)) {
            self.chain.want_first_at(now().boot_ms.saturating_add(in_ms(first)));
            return Some(first);
        }
        own
    }

    /// Waits for a model, where everybody can see it: those who watch, and those who read the
    /// journal.
    fn wait_out(&mut self, error: &ModelError, pause: Duration) -> Goes {
        self.waits += 1;
        let (label, reason) = (self.chain.label(), error.kind.as_str().to_owned());
        self.desk.tell(EventKind::ModelChanged { from: Some(label.clone()), to: label, reason });
        let waits = Waits::Model { why: error.to_string(), ms: in_ms(pause) };
        self.desk.say(&Told::Waiting { waits });
        match sleep(&mut self.desk, pause) {
            Waited::Changed => Goes::On,
            Waited::Cancelled => {
                self.leave("it was ended by a signal while it waited for a model");
                Goes::Over
            }
            Waited::TimeIsUp => self.time_is_up(),
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
        self.desk.say(&Told::Aside { text });
        self.finish(Some(Failure::Workspace));
    }

    /// Whether what the whole work may take is used up.
    fn is_late(&mut self) -> bool {
        time_left(&mut self.desk).is_some_and(|left| left.is_zero())
    }

    /// Ends the session because its time is up.
    fn time_is_up(&mut self) -> Goes {
        let reason = Some("deadline".to_owned());
        self.desk.tell(EventKind::StopProposed { reason, output: None, background: 0 });
        self.finish(None);
        Goes::Over
    }
}

fn in_ms(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
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

/// What a person can do about a session that waits.
fn how_to_go_on(summary: &Summary) -> String {
    let verb = match summary.paused_cause {
        Some("loop" | "no_progress") => "jackline clear",
        Some("checkpoint") => "jackline ack",
        _ if summary.paused_by_file => return "remove .jackline/PAUSE".to_owned(),
        _ => "jackline resume",
    };
    match summary.reports.first() {
        Some(report) => format!("read {report}, then `{verb}`, or `jackline stop`"),
        None => format!("`{verb}`, or `jackline stop`"),
    }
}
