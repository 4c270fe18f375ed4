//! A world that a scripted generator works on: what it wrote, and what was undone.

use std::collections::VecDeque;

use jackline_attempt::{
    Ask, Budgets, Call, Ended, Executor, Fault, Generator, InternalOutcome, Outcome, OutcomeError,
    Parts, ProviderError, Restored, RollbackError, SnapshotError, Stage, Stages, Subtype, Trace,
    Transaction, Validator, Violation,
};
use serde_json::{Value, json};

/// What the generator answers with, one after the other; the last one for ever.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// It does not answer.
    Down(&'static str),
    /// A program that an objection keeps from running.
    Bad(Subtype, String),
    /// A program that writes, and is objected to afterwards.
    BadAfter(Subtype, String),
    /// A program that writes, and then wants a call that is refused.
    Refused(String),
    /// A program that writes, and fails.
    Crash(&'static str, String),
    /// A program that writes, and says that it did not succeed.
    Error(OutcomeError),
    /// A program that writes, and hands on what a delegate ended with.
    Child(InternalOutcome),
    /// A program that writes, and is done.
    Good(Value),
}

/// Everything that an attempt can change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) context: Vec<String>,
    pub(crate) tools: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) kept: Kept,
    pub(crate) before: Option<Kept>,
    pub(crate) stages: Vec<(u32, Stage)>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) end_after: Option<usize>,
    pub(crate) fail_begin: bool,
    pub(crate) fail_roll_back: bool,
    pub(crate) fail_stage: Option<Stage>,
}

struct Script<'a> {
    answers: VecDeque<Answer>,
    asks: &'a mut Vec<Ask>,
}

impl Generator for Script<'_> {
    type Artifact = Answer;

    fn generate(&mut self, ask: &Ask) -> Result<Answer, ProviderError> {
        self.asks.push(ask.clone());
        let next = if self.answers.len() > 1 {
            self.answers.pop_front()
        } else {
            self.answers.front().cloned()
        };
        match next.unwrap_or(Answer::Down("provider")) {
            Answer::Down(error_type) => Err(ProviderError {
                error_type: error_type.to_owned(),
                message: "the provider says RAW-PROVIDER".to_owned(),
                retriable: true,
            }),
            answer => Ok(answer),
        }
    }
}

struct Checks;

impl Validator<Answer> for Checks {
    fn validate(&mut self, artifact: &Answer) -> Vec<Violation> {
        match artifact {
            Answer::Bad(subtype, message) => vec![Violation::new(*subtype, message.as_str())],
            _ => Vec::new(),
        }
    }

    fn judge(&mut self, artifact: &Answer, _: &Outcome) -> Vec<Violation> {
        match artifact {
            Answer::BadAfter(subtype, message) => vec![Violation::new(*subtype, message.as_str())],
            _ => Vec::new(),
        }
    }
}

struct Run<'a>(&'a std::cell::RefCell<Kept>);

impl Executor<Answer> for Run<'_> {
    fn execute(&mut self, artifact: &Answer) -> Result<Outcome, Fault> {
        let mut kept = self.0.borrow_mut();
        kept.context.push(format!("{artifact:?}"));
        kept.tools.push("forged".to_owned());
        match artifact.clone() {
            Answer::Good(value) => Ok(Outcome::Ok { value, sources: Vec::new() }),
            Answer::BadAfter(..) => Ok(Outcome::Ok { value: json!(1), sources: Vec::new() }),
            Answer::Error(error) => Ok(Outcome::Error(error)),
            Answer::Child(child) => Ok(Outcome::Child(Box::new(child))),
            Answer::Refused(message) => {
                Err(Fault::Refused(vec![Violation::new(Subtype::ToolDenied, message)]))
            }
            Answer::Crash(error_type, message) => {
                Err(Fault::Failed { error_type: error_type.to_owned(), message })
            }
            Answer::Down(_) | Answer::Bad(..) => panic!("never run"),
        }
    }
}

struct Undo<'a> {
    kept: &'a std::cell::RefCell<Kept>,
    before: &'a mut Option<Kept>,
    fail_begin: bool,
    fail_roll_back: bool,
}

impl Transaction for Undo<'_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        if self.fail_begin {
            return Err(SnapshotError("RAW-SNAPSHOT".to_owned()));
        }
        assert!(self.before.replace(self.kept.borrow().clone()).is_none(), "begun twice");
        Ok(1)
    }

    fn roll_back(&mut self, _: u32) -> Result<Restored, RollbackError> {
        let before = self.before.take().unwrap();
        if self.fail_roll_back {
            return Err(RollbackError("a.txt is as the attempt left it".to_owned()));
        }
        *self.kept.borrow_mut() = before;
        Ok(Restored { ms: 2, ..Restored::default() })
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        self.before.take().unwrap();
        Ok(())
    }
}

struct Hears<'a> {
    stages: &'a mut Vec<(u32, Stage)>,
    end_after: Option<usize>,
    fail_stage: Option<Stage>,
}

impl Stages for Hears<'_> {
    fn reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String> {
        if self.fail_stage == Some(stage) {
            return Err("RAW-DISK is full".to_owned());
        }
        self.stages.push((attempt, stage));
        Ok(())
    }

    fn ended(&mut self) -> Option<Ended> {
        let over = self.end_after.is_some_and(|after| self.stages.len() >= after);
        over.then_some(Ended::Cancelled)
    }
}

impl World {
    /// Plays a call.
    pub(crate) fn play(
        &mut self,
        budgets: &Budgets,
        answers: &[Answer],
    ) -> (InternalOutcome, Trace) {
        let call = Call { name: "personal assistant.ask".to_owned(), budgets: budgets.clone() };
        let kept = std::cell::RefCell::new(self.kept.clone());
        let mut script = Script { answers: answers.to_vec().into(), asks: &mut self.asks };
        let mut undo = Undo {
            kept: &kept,
            before: &mut self.before,
            fail_begin: self.fail_begin,
            fail_roll_back: self.fail_roll_back,
        };
        let mut hears = Hears {
            stages: &mut self.stages,
            end_after: self.end_after,
            fail_stage: self.fail_stage,
        };
        let ended = call.run(&mut Parts {
            generator: &mut script,
            validator: &mut Checks,
            executor: &mut Run(&kept),
            transaction: &mut undo,
            stages: &mut hears,
        });
        self.kept = kept.into_inner();
        ended
    }

    /// The stages by their names, without the attempts.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.stages.iter().map(|(_, stage)| stage.word()).collect()
    }
}

pub(crate) fn mutation() -> Answer {
    let message = "Defining singleton methods on Agent instances is not supported";
    Answer::Bad(Subtype::SingletonMethodMutation, message.to_owned())
}

pub(crate) fn retriable(error_type: &str) -> Answer {
    Answer::Error(OutcomeError::new(error_type, "RAW-OUTCOME", true))
}
