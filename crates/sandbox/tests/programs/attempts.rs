//! Programs as artifacts of attempts: they are refused, written again and run.

use std::cell::RefCell;

use jackline_attempt::{
    AttemptBudgets, AttemptCall, CallParts, CallTrace, GenerationRequest, Generator,
    InternalOutcome, ProviderError, RollbackError, RollbackResult, SnapshotError, Stage,
    StageObserver, Transaction,
};
use jackline_sandbox_host::{PythonProgram, checker_and_runner};
use serde_json::json;

use crate::world::SandboxWorld;

struct SourceGenerator {
    sources: Vec<&'static str>,
    asks: Vec<GenerationRequest>,
}

impl Generator for SourceGenerator {
    type Artifact = PythonProgram;

    fn generate(&mut self, ask: &GenerationRequest) -> Result<PythonProgram, ProviderError> {
        self.asks.push(ask.clone());
        Ok(PythonProgram::new(self.sources.remove(0)))
    }
}

/// Restores the context of the test host.
struct ContextTransaction<'a>(&'a SandboxWorld, Option<serde_json::Map<String, serde_json::Value>>);

impl Transaction for ContextTransaction<'_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        self.1 = Some(self.0.state.borrow().context.clone());
        Ok(0)
    }

    fn roll_back(&mut self, _: u32) -> Result<RollbackResult, RollbackError> {
        self.0.state.borrow_mut().context = self.1.take().unwrap_or_default();
        Ok(RollbackResult::default())
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        Ok(())
    }
}

struct NoStages;

impl StageObserver for NoStages {
    fn stage_reached(&mut self, _: u32, _: Stage) -> Result<(), String> {
        Ok(())
    }

    fn interruption(&mut self) -> Option<jackline_attempt::Interruption> {
        None
    }
}

fn run_call(
    world: &SandboxWorld,
    sources: Vec<&'static str>,
) -> (InternalOutcome, CallTrace, Vec<GenerationRequest>) {
    let (mut checker, mut runner) =
        checker_and_runner(&world.workers, &world.state, world.limits, 0);
    let mut generator = SourceGenerator { sources, asks: Vec::new() };
    let mut transaction = ContextTransaction(world, None);
    let stages = RefCell::new(NoStages);
    let mut parts = CallParts {
        generator: &mut generator,
        validator: &mut checker,
        executor: &mut runner,
        transaction: &mut transaction,
        stages: &mut *stages.borrow_mut(),
    };
    let call = AttemptCall { name: "films.find".to_owned(), budgets: AttemptBudgets::default() };
    let (outcome, trace) = call.run(&mut parts);
    (outcome, trace, generator.asks)
}

#[test]
fn a_refused_program_is_written_again_with_the_position_and_the_correction() {
    let world = SandboxWorld::new();
    let (outcome, trace, asks) = run_call(
        &world,
        vec![
            "context['n'] = 1\nadd = tool('add')\nadd.run = print\nok(1)",
            "context['n'] = context.get('n', 0) + 1\nok(tool('add')(a=1, b=2))",
        ],
    );
    assert_eq!(outcome, InternalOutcome::Ok { value: json!(3), sources: Vec::new() });
    assert_eq!(trace.guardrail_violation_subtype.as_deref(), Some("singleton_method_mutation"));
    let feedback = serde_json::to_string(&asks[1].feedback).unwrap();
    assert!(feedback.contains("3:1") && feedback.contains("never assign"), "{feedback}");
    assert_eq!(json!(world.state.borrow().context), json!({ "n": 1 }));
}

#[test]
fn each_lane_is_reached_by_a_program() {
    let world = SandboxWorld::new();
    let (outcome, trace, _) = run_call(
        &world,
        vec![
            "ok(tool('fetch')(url='u'))",
            "ok({1})",
            "error('low_utility', 'nothing there', retriable=True)",
            "ok(1)",
        ],
    );
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(trace.guardrail_violation_subtype.as_deref(), Some("missing_external_provenance"));
    assert_eq!(trace.guardrail_recovery_attempts, 1);
    assert_eq!(trace.execution_retry_attempts, 1);
    assert_eq!(trace.outcome_repair_attempts, 1);
}
