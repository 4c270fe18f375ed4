//! An agent program has its turn: what it is told, and how often it is started again.

use jackline_model::ErrorKind;

use super::{Driver, TRIES, patience};
use crate::engines::EngineSpec;
use crate::evidence::Looks;
use crate::own::Ended;
use crate::run::RunError;
use crate::run_journal::RunJournal;
use crate::told::{Told, Waits};
use crate::transcript::transcript;
use crate::waiting::{Waited, sleep};
use crate::worker;

/// How often a program is started that ends in a way that nobody understands.
const STRANGE_TRIES: u32 = 3;

impl Driver<'_, '_> {
    /// The agent program that works, by its label; none where a model does.
    pub(super) fn worker(&self) -> Option<String> {
        let engine = self.chain.current().filter(|engine| engine.is_worker())?;
        Some(engine.label.clone())
    }

    /// Tells whoever works something by the supervisor.
    pub(super) fn tell(&mut self, text: String) -> Result<(), RunError> {
        if self.worker().is_some() {
            self.worker.tell(text.clone())?;
        }
        Ok(self.own.tell(text)?)
    }

    /// Has an agent program work. Where its provider does not answer, it is started again
    /// after a while, unless somebody else is there.
    pub(super) fn work(&mut self, engine: &EngineSpec) -> Result<Ended, RunError> {
        let taken_over = self.chain.taken_over();
        let mut failures = 0;
        if !engine.remembers() && self.before.is_none() {
            self.before = Some(Looks::of(&self.opening.workspace));
        }
        loop {
            if self.is_held() {
                return Ok(Ended::Held);
            }
            // A program without hooks asks no gate, so none would say so.
            if self.is_late() {
                return Ok(Ended::TimeIsUp);
            }
            if !self.chain.spend() {
                return Ok(Ended::Spent);
            }
            let prompt = self.prompt(engine)?;
            let (front, told) = (&mut self.front, &mut self.worker);
            let error = match worker::iterate(front, engine, self.opening, told, &prompt) {
                Some(Ended::Failed(error))
                    if error.kind.is_passing() && !taken_over.contains(&error.kind) =>
                {
                    error
                }
                Some(ended) => return Ok(ended),
                None => continue,
            };
            failures += 1;
            let strange = matches!(error.kind, ErrorKind::BadAnswer | ErrorKind::Timeout);
            let patience = patience(if strange { STRANGE_TRIES } else { TRIES }, taken_over);
            let pause = patience.pause(failures, error.retry_after);
            let Some(pause) = pause.filter(|_| failures < patience.tries_max) else {
                return Ok(Ended::Failed(error));
            };
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let waits = Waits::Model { why: error.to_string(), ms };
            self.front.say(&Told::Waiting { waits });
            match sleep(&mut self.front, pause) {
                Waited::TimeIsUp => return Ok(Ended::TimeIsUp),
                Waited::Cancelled => return Ok(Ended::Held),
                Waited::Changed => {}
            }
        }
    }

    /// Whether somebody holds the session, or ends it, before a program is started. The guards
    /// say that: what they pass must not end the program again and again.
    fn is_held(&mut self) -> bool {
        if !self.front.lookout.is_held() {
            return false;
        }
        self.knock();
        let summary = self.front.summary();
        let goes = summary.is_some_and(|it| it.stop.is_none() && !it.is_paused());
        !goes || self.front.lookout.is_over()
    }

    /// What an agent program is told now: what is new to it, and the task besides where it
    /// does not remember that.
    fn prompt(&mut self, engine: &EngineSpec) -> Result<String, RunError> {
        if let Some(text) = self.front.take_texts() {
            self.worker.tell(text)?;
        }
        if let Some(text) = self.worker.next(engine.remembers()) {
            return Ok(text);
        }
        let news = self.worker.news();
        Ok([self.where_it_stands()].into_iter().chain(news).collect::<Vec<_>>().join("\n"))
    }

    /// The last lines of what whoever works has done and said.
    pub(super) fn transcript(&self, lines_max: usize) -> String {
        if self.worker().is_none() {
            return self.own.conversation.transcript(lines_max);
        }
        let session = self.front.session().clone();
        let journal = RunJournal::new(self.opening.store.clone(), session);
        transcript(&journal, self.worker.said(), lines_max)
    }
}
