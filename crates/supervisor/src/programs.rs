//! Our own loop by programs: a model writes one, it is looked at, runs as one step, and is
//! undone where it fails.
//!
//! An iteration is one call in as many attempts as it may have. What the model wrote and was
//! told is kept in the conversation, as it is for calls of tools.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use jackline_attempt::{InternalOutcome, OutcomeError};
use jackline_model::{ErrorKind, ModelError, Reply, Tool};
use jackline_task::{
    ArtifactKind, ArtifactRequest, Author, Called, Calls, Ground, Held, ModelSpec, Task, What,
    hold, recover,
};
use serde_json::{Map, Value};

use crate::history::History;
use crate::own::{Ended, Own, Stopped, Turn, Whom, propose_stop, shown};
use crate::run::RunError;
use crate::run_front::RunFront;
use crate::spec::RunTask;
use crate::told::Told;

/// Told to a model whose program did not come to its end.
const UNDONE: &str =
    "Your last program did not come to its end, and everything that it did is undone.";

/// A model that writes programs, and what they run over.
pub(crate) struct Programs<'w> {
    calls: Calls<'w>,
    task: Task,
    /// Shows others that whoever makes these attempts is there.
    _held: Held,
    /// Whether the last one of an earlier process came to nothing.
    cut_off: bool,
    /// How the last of them ended, where it came to nothing.
    failed: Option<InternalOutcome>,
    /// How many of this process stay.
    kept: u64,
}

/// Has the model of the run write what a call wants, in the conversation of the run.
struct RunAuthor<'a, 'o, 'd, 'h, 'w> {
    own: &'a mut Own<'o>,
    front: &'a RefCell<&'d mut RunFront<'h>>,
    whom: &'a mut Whom<'w>,
    /// What came up instead of an answer.
    ended: Option<Ended>,
    /// Whether the conversation has to begin anew.
    full: bool,
}

impl<'w> Programs<'w> {
    /// Begins, or goes on: what processes that are gone have left is undone first.
    pub(crate) fn take_up(
        task: &RunTask,
        tools: &[Tool],
        (ground, root): (Ground<'w>, &Path),
        front: &mut RunFront<'_>,
        history: &History,
    ) -> Result<Self, RunError> {
        let gate = front.gate();
        // Held first: whoever else undoes what is left here is not done with it yet.
        let Some(held) = hold(&ground.store.directory(&ground.session))? else {
            let text = "another process is undoing it; try again in a moment".to_owned();
            return Err(RunError::Unfinished(text));
        };
        let recovery = recover(&ground.store, root, gate, Some(&held));
        if let Some(text) = recovery.unfinished() {
            return Err(RunError::Unfinished(text));
        }
        let mut ours = Vec::new();
        for recovered in recovery.done {
            let (attempt, session) = (recovered.attempt, recovered.session);
            let files = recovered.undone.restored.join(", ");
            let text = format!(
                "attempt {attempt} of session `{session}` was cut off, and is undone now: {files}"
            );
            front.say(&Told::Aside { text });
            if session == front.session().as_str() {
                ours.push(attempt);
            }
        }
        let calls = Calls::new(ground);
        let is_open = |it: &u32| !ours.contains(it);
        let open: Vec<u32> = history.open.iter().copied().filter(is_open).collect();
        let kept = calls.close(gate, &open);
        let last = history.attempts;
        let cut_off = last > 0 && history.kept != last && !kept.contains(&last);
        let task = Task {
            name: task.name.clone(),
            prompt: task.prompt.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            definition: None,
            model: ModelSpec::Inherited,
            context: Map::new(),
            delegates: BTreeMap::new(),
            artifact: ArtifactKind::Program,
        };
        Ok(Self { calls, task, _held: held, cut_off, failed: None, kept: 0 })
    }

    /// What a model is to know whose last program came to nothing with its process.
    pub(crate) fn cut_off(&self) -> Option<&'static str> {
        self.cut_off.then_some(UNDONE)
    }

    /// What every model is told that works so.
    pub(crate) fn system() -> &'static str {
        ArtifactKind::Program.instructions()
    }

    /// How the last program ended, where it came to nothing.
    pub(crate) fn take_failed(&mut self) -> Option<InternalOutcome> {
        self.failed.take()
    }

    /// How many programs of this process stay.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// Has programs written until one is good, or none is left, or something else comes up.
    pub(crate) fn iterate(
        &mut self,
        own: &mut Own<'_>,
        front: &mut RunFront<'_>,
        whom: &mut Whom<'_>,
    ) -> Ended {
        self.failed = None;
        let defined = front.definition().unwrap_or_else(|| Arc::clone(&own.defined));
        let before = calls_of(front);
        let gate = front.gate();
        let (called, ended, full) = {
            let front = RefCell::new(&mut *front);
            let author =
                RunAuthor { own: &mut *own, front: &front, whom, ended: None, full: false };
            let author = Rc::new(RefCell::new(author));
            let mut hear = |step: &jackline_task::Told| {
                let told = match &step.what {
                    What::Aside { text } => Told::Aside { text: text.clone() },
                    _ => Told::Program { step: step.clone() },
                };
                front.borrow_mut().say(&told);
            };
            let shared = Rc::clone(&author);
            let called = self.calls.call(&self.task, &defined, gate, shared, &mut hear);
            let mut author = author.borrow_mut();
            (called, author.ended.take(), author.full)
        };
        front.say_standing();
        if let Some(ended) = ended {
            return ended;
        }
        let InternalOutcome::Ok { value, .. } = &called.outcome else {
            return self.undone(own, front, called, full);
        };
        self.kept += 1;
        match propose_stop(front, &in_words(value)) {
            Stopped::As(counts_as) => Ended::done(counts_as, called.outcome),
            Stopped::Held => Ended::Held,
            Stopped::NotYet(text) => {
                let calls = calls_of(front).saturating_sub(before);
                let calls = u32::try_from(calls).unwrap_or(u32::MAX);
                after(own.tell(text), Ended::NotYet { calls })
            }
        }
    }

    /// What a call comes to of which nothing is left.
    fn undone(
        &mut self,
        own: &mut Own<'_>,
        front: &mut RunFront<'_>,
        called: Called,
        full: bool,
    ) -> Ended {
        if let Some(stuck) = called.stuck {
            let session = front.session();
            let text = format!(
                "a program is neither done nor undone: {stuck}; `jackline undo {session}` tries again"
            );
            front.say(&Told::Aside { text });
            return Ended::Held;
        }
        let is_held = called.held.is_some() || front.lookout.is_held() || front.fault().is_some();
        if is_held {
            return after(own.tell(UNDONE.to_owned()), Ended::Held);
        }
        let error = called.outcome.error().map(last_words).unwrap_or_default();
        self.failed = Some(called.outcome);
        let text = format!(
            "No program of yours did what was asked for, and everything that they did is undone. The last \
             one failed: {error}\n\nGo about it differently."
        );
        let ended = Ended::Exhausted { error: shown(&error), full };
        if full {
            // The conversation begins anew, and this has to be in it.
            front.add_text(text);
            return ended;
        }
        after(own.tell(text), ended)
    }
}

impl Author for RunAuthor<'_, '_, '_, '_, '_> {
    fn name(&self) -> String {
        self.whom.engine.model_name().to_owned()
    }

    fn write(&mut self, request: &ArtifactRequest) -> Result<Reply, ModelError> {
        if self.full {
            // The conversation begins anew, and why it is asked again has to be in it.
            if !request.news.is_empty() {
                self.front.borrow_mut().add_text(request.news.clone());
            }
            return Err(self.leave(Ended::Full, "the conversation is full"));
        }
        let mut front = self.front.borrow_mut();
        let front = &mut **front;
        // What the guards have to say is a part of it.
        if !request.news.is_empty()
            && let Err(error) = self.own.tell(request.news.clone())
        {
            return Err(self.leave(Ended::Lost(error), "what is said can't be written down"));
        }
        // The task is in the conversation.
        let system = format!("{}\n{}", request.system, request.means);
        match self.own.turn(front, self.whom, system, Vec::new()) {
            Ok(Turn { said, end, full, .. }) => {
                self.full = full;
                // The run reports the usage itself.
                Ok(Reply { said, end, usage: None, request: None })
            }
            Err(Ended::Failed(error)) => {
                let message = error.to_string();
                Err(self.leave(Ended::Failed(error), &message))
            }
            Err(Ended::Spent) => Err(self.leave(Ended::Spent, "its budget is used up")),
            Err(ended) => Err(self.leave(ended, "nothing goes on now")),
        }
    }
}

impl RunAuthor<'_, '_, '_, '_, '_> {
    /// Leaves the call for something that is not its matter.
    fn leave(&mut self, ended: Ended, message: &str) -> ModelError {
        self.ended = Some(ended);
        ModelError::new(ErrorKind::Cancelled, message)
    }
}

fn calls_of(front: &mut RunFront<'_>) -> u64 {
    front.summary().map_or(0, |summary| summary.invocations.proposed)
}

/// How it ended, unless what was to be kept of it could not be.
fn after(kept: std::io::Result<()>, ended: Ended) -> Ended {
    kept.map_or_else(Ended::Lost, |()| ended)
}

/// An answer as whoever checks it reads it.
fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// What was wrong last, where retries were used up because of it.
fn last_words(error: &OutcomeError) -> String {
    let told = ["last_violation_message", "last_error_message"];
    let last = told.iter().find_map(|key| error.metadata.get(*key)?.as_str());
    format!("{}: {}", error.error_type, last.unwrap_or(&error.error_message))
}
