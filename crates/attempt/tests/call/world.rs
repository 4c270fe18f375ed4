//! A test setup with scripted parts, which records requests, stages and changes.

use std::collections::VecDeque;

use jackline_attempt::{
    ArtifactFault, ArtifactOutcome, AttemptBudgets, AttemptCall, AttemptViolation, CallParts,
    CallTrace, Executor, GenerationRequest, Generator, InternalOutcome, Interruption, OutcomeError,
    ProviderError, RollbackError, RollbackResult, SnapshotError, Stage, StageObserver, Subtype,
    Transaction, Validator,
};
use serde_json::{Value, json};

/// What the generator answers, in order. The last answer repeats.
#[derive(Debug, Clone)]
pub(crate) enum ScriptedArtifact {
    /// The generator returns an error.
    Down(&'static str),
    /// A program with a violation, which does not run.
    Bad(Subtype, String),
    /// A program that makes changes and has a violation afterwards.
    BadAfter(Subtype, String),
    /// A program that makes changes and then has a call refused.
    Refused(String),
    /// A program that makes changes and fails.
    Crash(&'static str, String),
    /// A program that makes changes and returns an error.
    Error(OutcomeError),
    /// A program that makes changes and passes on the outcome of a delegate.
    Child(InternalOutcome),
    /// A program that makes changes and succeeds.
    Good(Value),
}

/// Everything that an attempt can change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AttemptChanges {
    pub(crate) context: Vec<String>,
    pub(crate) tools: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct CallWorld {
    pub(crate) changes: AttemptChanges,
    pub(crate) before: Option<AttemptChanges>,
    pub(crate) stages: Vec<(u32, Stage)>,
    pub(crate) asks: Vec<GenerationRequest>,
    pub(crate) end_after: Option<usize>,
    pub(crate) fail_begin: bool,
    pub(crate) fail_roll_back: bool,
    pub(crate) fail_stage: Option<Stage>,
}

struct ScriptedGenerator<'a> {
    answers: VecDeque<ScriptedArtifact>,
    asks: &'a mut Vec<GenerationRequest>,
}

impl Generator for ScriptedGenerator<'_> {
    type Artifact = ScriptedArtifact;

    fn generate(&mut self, ask: &GenerationRequest) -> Result<ScriptedArtifact, ProviderError> {
        self.asks.push(ask.clone());
        let next = if self.answers.len() > 1 {
            self.answers.pop_front()
        } else {
            self.answers.front().cloned()
        };
        match next.unwrap_or(ScriptedArtifact::Down("provider")) {
            ScriptedArtifact::Down(error_type) => Err(ProviderError {
                error_type: error_type.to_owned(),
                message: "the provider says RAW-PROVIDER".to_owned(),
                retriable: true,
            }),
            answer => Ok(answer),
        }
    }
}

struct ScriptedValidator;

impl Validator<ScriptedArtifact> for ScriptedValidator {
    fn validate(&mut self, artifact: &ScriptedArtifact) -> Vec<AttemptViolation> {
        match artifact {
            ScriptedArtifact::Bad(subtype, message) => {
                vec![AttemptViolation::new(*subtype, message.as_str())]
            }
            _ => Vec::new(),
        }
    }

    fn judge(&mut self, artifact: &ScriptedArtifact, _: &ArtifactOutcome) -> Vec<AttemptViolation> {
        match artifact {
            ScriptedArtifact::BadAfter(subtype, message) => {
                vec![AttemptViolation::new(*subtype, message.as_str())]
            }
            _ => Vec::new(),
        }
    }
}

struct ScriptedExecutor<'a>(&'a std::cell::RefCell<AttemptChanges>);

impl Executor<ScriptedArtifact> for ScriptedExecutor<'_> {
    fn execute(&mut self, artifact: &ScriptedArtifact) -> Result<ArtifactOutcome, ArtifactFault> {
        let mut kept = self.0.borrow_mut();
        kept.context.push(format!("{artifact:?}"));
        kept.tools.push("forged".to_owned());
        match artifact.clone() {
            ScriptedArtifact::Good(value) => Ok(ArtifactOutcome::Ok { value, sources: Vec::new() }),
            ScriptedArtifact::BadAfter(..) => {
                Ok(ArtifactOutcome::Ok { value: json!(1), sources: Vec::new() })
            }
            ScriptedArtifact::Error(error) => Ok(ArtifactOutcome::Error(error)),
            ScriptedArtifact::Child(child) => Ok(ArtifactOutcome::Child(Box::new(child))),
            ScriptedArtifact::Refused(message) => {
                Err(ArtifactFault::Refused(vec![AttemptViolation::new(
                    Subtype::ToolDenied,
                    message,
                )]))
            }
            ScriptedArtifact::Crash(error_type, message) => {
                Err(ArtifactFault::Failed { error_type: error_type.to_owned(), message })
            }
            ScriptedArtifact::Down(_) | ScriptedArtifact::Bad(..) => {
                panic!("such a program never runs")
            }
        }
    }
}

struct SnapshotTransaction<'a> {
    kept: &'a std::cell::RefCell<AttemptChanges>,
    before: &'a mut Option<AttemptChanges>,
    fail_begin: bool,
    fail_roll_back: bool,
}

impl Transaction for SnapshotTransaction<'_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        if self.fail_begin {
            return Err(SnapshotError("RAW-SNAPSHOT".to_owned()));
        }
        assert!(
            self.before.replace(self.kept.borrow().clone()).is_none(),
            "the transaction was started twice"
        );
        Ok(1)
    }

    fn roll_back(&mut self, _: u32) -> Result<RollbackResult, RollbackError> {
        let before = self.before.take().unwrap();
        if self.fail_roll_back {
            return Err(RollbackError("a.txt is as the attempt left it".to_owned()));
        }
        *self.kept.borrow_mut() = before;
        Ok(RollbackResult { ms: 2, ..RollbackResult::default() })
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        self.before.take().unwrap();
        Ok(())
    }
}

struct StageLog<'a> {
    stages: &'a mut Vec<(u32, Stage)>,
    end_after: Option<usize>,
    fail_stage: Option<Stage>,
}

impl StageObserver for StageLog<'_> {
    fn stage_reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String> {
        if self.fail_stage == Some(stage) {
            return Err("RAW-DISK is full".to_owned());
        }
        self.stages.push((attempt, stage));
        Ok(())
    }

    fn interruption(&mut self) -> Option<Interruption> {
        let over = self.end_after.is_some_and(|after| self.stages.len() >= after);
        over.then_some(Interruption::Cancelled)
    }
}

impl CallWorld {
    /// Runs a call.
    pub(crate) fn run_call(
        &mut self,
        budgets: &AttemptBudgets,
        answers: &[ScriptedArtifact],
    ) -> (InternalOutcome, CallTrace) {
        let call =
            AttemptCall { name: "personal assistant.ask".to_owned(), budgets: budgets.clone() };
        let kept = std::cell::RefCell::new(self.changes.clone());
        let mut script =
            ScriptedGenerator { answers: answers.to_vec().into(), asks: &mut self.asks };
        let mut undo = SnapshotTransaction {
            kept: &kept,
            before: &mut self.before,
            fail_begin: self.fail_begin,
            fail_roll_back: self.fail_roll_back,
        };
        let mut hears = StageLog {
            stages: &mut self.stages,
            end_after: self.end_after,
            fail_stage: self.fail_stage,
        };
        let ended = call.run(&mut CallParts {
            generator: &mut script,
            validator: &mut ScriptedValidator,
            executor: &mut ScriptedExecutor(&kept),
            transaction: &mut undo,
            stages: &mut hears,
        });
        self.changes = kept.into_inner();
        ended
    }

    /// The names of the stages, without the attempt numbers.
    pub(crate) fn stage_names(&self) -> Vec<&'static str> {
        self.stages.iter().map(|(_, stage)| stage.as_str()).collect()
    }
}

pub(crate) fn mutation() -> ScriptedArtifact {
    let message = "Defining singleton methods on Agent instances is not supported";
    ScriptedArtifact::Bad(Subtype::SingletonMethodMutation, message.to_owned())
}

pub(crate) fn retriable(error_type: &str) -> ScriptedArtifact {
    ScriptedArtifact::Error(OutcomeError::new(error_type, "RAW-OUTCOME", true))
}
