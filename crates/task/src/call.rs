//! One call: a task of whoever asked, or of a delegate, in as many attempts as it may have.

mod caller;
mod hearing;
mod plan;
mod undoing;
mod watched;
mod writer;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use jackline_attempt::{
    Call, Executor, Generator, InternalOutcome, Parts, Trace, Validator, egress,
};
use jackline_host::clock::now;
use jackline_sandbox_host::programs;
use serde_json::{Map, Value};

use crate::author::SharedAuthor;
use crate::call::caller::Caller;
use crate::call::hearing::Hearing;
use crate::call::plan::{PlanRunner, Rehearsal};
use crate::call::undoing::Undoing;
use crate::call::watched::Watched;
use crate::call::writer::{PlanWriter, ProgramWriter, Writer};
use crate::shared::Shared;
use crate::spec::{ArtifactKind, Task};
use crate::told::{Told, What};
use crate::trace::{self, Line};

/// A call under way. What runs it borrows this.
pub(crate) struct Calling<'s, 'r> {
    pub(crate) shared: &'s Shared<'r>,
    pub(crate) task: &'s Task,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) depth: u32,
    pub(crate) parent: Option<String>,
    pub(crate) author: SharedAuthor<'r>,
    /// Its own name in the session.
    pub(crate) id: String,
    /// Which attempt is under way.
    attempt: Cell<u32>,
    /// Its number in the session, while it is open there.
    open: Cell<Option<u32>>,
    /// What was written last.
    written: RefCell<String>,
    /// How often each objection was raised.
    subtypes: RefCell<BTreeMap<String, u32>>,
}

impl<'s, 'r> Calling<'s, 'r> {
    pub(crate) fn new(
        shared: &'s Shared<'r>,
        task: &'s Task,
        author: SharedAuthor<'r>,
        arguments: Map<String, Value>,
        below: Option<(&str, u32)>,
    ) -> Self {
        Self {
            shared,
            task,
            arguments,
            depth: below.map_or(0, |(_, depth)| depth),
            parent: below.map(|(parent, _)| parent.to_owned()),
            author,
            id: shared.next_call(),
            attempt: Cell::new(0),
            open: Cell::new(None),
            written: RefCell::default(),
            subtypes: RefCell::default(),
        }
    }

    /// Makes attempts until one is good or none is left, and writes the trace.
    pub(crate) fn run(&self) -> (InternalOutcome, Trace) {
        let started = now();
        let (outcome, mut trace) = match self.task.artifact {
            ArtifactKind::Program => self.run_programs(),
            ArtifactKind::Plan => self.run_plans(),
        };
        self.close();
        let normalization = (self.depth == 0).then(|| egress(&outcome).1).flatten();
        trace.told(normalization.as_ref());
        let latest = trace.attempt_failures.last();
        let line = Line {
            timestamp: started.wall,
            runtime: concat!("jackline/", env!("CARGO_PKG_VERSION")),
            session: &self.shared.session,
            call_id: &self.id,
            parent_call_id: self.parent.as_deref(),
            depth: self.depth,
            name: &self.task.name,
            model: self.author.borrow().name(),
            arguments: &self.arguments,
            code: &self.written.borrow(),
            generation_attempt: trace.lanes.asked,
            duration_ms: now().boot_ms.saturating_sub(started.boot_ms),
            outcome_status: if outcome.is_ok() { "ok" } else { "error" },
            outcome: &outcome,
            latest_failure_stage: latest.map(|it| it.stage),
            latest_failure_class: latest.map(|it| it.error_class.as_str()),
            latest_failure_message: latest.map(|it| it.error_message.as_str()),
            trace: &trace,
            guardrail_violation_subtypes: &self.subtypes.borrow(),
            normalization: normalization.as_ref(),
        };
        if let Err(error) = trace::append(&self.shared.directory, &line) {
            self.tell(What::Aside { text: format!("the trace can't be written: {error}") });
        }
        (outcome, trace)
    }

    fn run_programs(&self) -> (InternalOutcome, Trace) {
        let host = RefCell::new(Caller::new(self));
        let (checker, runner) =
            programs(&self.shared.workers, &host, self.shared.limits, self.depth);
        let mut writer = ProgramWriter(Writer { calling: self });
        self.attempts(&mut writer, checker, runner)
    }

    fn run_plans(&self) -> (InternalOutcome, Trace) {
        let mut writer = PlanWriter(Writer { calling: self });
        self.attempts(&mut writer, Rehearsal { calling: self }, PlanRunner { calling: self })
    }

    fn attempts<A>(
        &self,
        generator: &mut dyn Generator<Artifact = A>,
        validator: impl Validator<A>,
        executor: impl Executor<A>,
    ) -> (InternalOutcome, Trace) {
        let call = Call { name: self.task.name.clone(), budgets: self.shared.budgets.clone() };
        call.run(&mut Parts {
            generator,
            validator: &mut Watched { calling: self, inner: validator },
            executor: &mut Watched { calling: self, inner: executor },
            transaction: &mut Undoing::new(self),
            stages: &mut Hearing { calling: self },
        })
    }

    /// Ends the attempt in the session that came to nothing before it could be undone.
    fn close(&self) {
        if let Some(number) = self.open.take() {
            let result = jackline_engine::event::AttemptResult::Rollback;
            // The call has ended already, and says how.
            let _ = self.shared.front.borrow_mut().attempt_ended(number, result);
        }
        self.tell_asides();
    }

    pub(crate) fn tell_asides(&self) {
        let notes = self.shared.front.borrow_mut().run_deferred();
        notes.into_iter().for_each(|text| self.tell(What::Aside { text }));
    }

    pub(crate) fn tell(&self, what: What) {
        let told = Told {
            call: self.id.clone(),
            name: self.task.name.clone(),
            depth: self.depth,
            attempt: self.attempt.get(),
            what,
        };
        (self.shared.hear.borrow_mut())(&told);
    }

    fn context(&self) -> Map<String, Value> {
        self.shared.contexts.borrow().get(&self.task.name, &self.task.context)
    }
}
