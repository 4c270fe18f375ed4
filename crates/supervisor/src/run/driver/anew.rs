//! A conversation that begins anew, with what whoever works has to know.

use jackline_engine::event::CompactionFinished;
use jackline_engine::summary::Invocations;

use super::{Driver, Goes};
use crate::engines::Reason;
use crate::handover;
use crate::run::RunError;
use crate::told::Told;

/// How often in a row a model may fill its conversation of which nothing comes. One that
/// writes without an end would do so for ever.
const FILLED_MAX: u32 = 2;

/// Where the runtime writes what an agent has to know that begins anew.
const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

impl Driver<'_, '_> {
    /// Begins the conversation anew, with what an agent has to know.
    pub(super) fn begin_anew(&mut self) -> Result<(), RunError> {
        let summary = self.front.summary();
        let main = summary.as_ref().and_then(|summary| summary.context.first());
        let (used, pct) = (main.and_then(|it| it.used), main.and_then(|it| it.pct));
        self.take_over_text(None)?;
        let freed = used.map(|used| used.saturating_sub(self.own.conversation.tokens()));
        let answer =
            self.front.report(CompactionFinished { freed, ..CompactionFinished::default() });
        self.front.say(&Told::Restarted { pct });
        match answer.verdict.context {
            Some(text) => self.tell(text),
            None => Ok(()),
        }
    }

    /// A conversation that is full begins anew, or somebody else takes over, or nobody does.
    pub(super) fn refill(&mut self) -> Result<Goes, RunError> {
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
        self.front.say(&Told::Aside { text });
        self.fail();
        Ok(Goes::Over)
    }

    /// Whether a conversation that is full may begin anew once more.
    pub(super) fn may_fill(&mut self) -> bool {
        let done = self.done();
        let again = self.filled.1 == done;
        self.filled = (if again { self.filled.0 + 1 } else { 1 }, done);
        self.filled.0 <= FILLED_MAX
    }

    /// What has come of the work so far: calls that ran, or programs that stay.
    pub(super) fn done(&mut self) -> u64 {
        if let Some(programs) = &self.programs {
            return programs.kept();
        }
        self.front.summary().map_or(0, |summary| {
            let Invocations { proposed, denied, invalid_arguments, .. } = summary.invocations;
            proposed.saturating_sub(denied.saturating_add(invalid_arguments))
        })
    }

    /// A conversation for somebody who goes on with what others have begun.
    pub(super) fn take_over_text(&mut self, plan: Option<String>) -> Result<(), RunError> {
        let mut text = self.where_it_stands();
        for more in self.front.take_texts().into_iter().chain(plan) {
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
    pub(super) fn where_it_stands(&mut self) -> String {
        let Some(summary) = self.front.summary() else { return self.task.prompt.clone() };
        let briefing = std::fs::read_to_string(self.opening.workspace.join(BRIEFING)).ok();
        handover::text(&self.task.prompt, &summary, briefing.as_deref())
    }
}
