//! Programs as artifacts of attempts: objected to, written again, run.

use std::cell::RefCell;

use jackline_attempt::{
    Ask, Budgets, Call, Generator, InternalOutcome, Parts, ProviderError, Restored, RollbackError,
    SnapshotError, Stage, Stages, Trace, Transaction,
};
use jackline_sandbox_host::{Program, programs};
use serde_json::json;

use crate::world::World;

struct Script {
    sources: Vec<&'static str>,
    asks: Vec<Ask>,
}

impl Generator for Script {
    type Artifact = Program;

    fn generate(&mut self, ask: &Ask) -> Result<Program, ProviderError> {
        self.asks.push(ask.clone());
        Ok(Program::new(self.sources.remove(0)))
    }
}

/// Remembers the context and gives it back.
struct Kept<'a>(&'a World, Option<serde_json::Map<String, serde_json::Value>>);

impl Transaction for Kept<'_> {
    fn begin(&mut self, _: u32) -> Result<u64, SnapshotError> {
        self.1 = Some(self.0.state.borrow().context.clone());
        Ok(0)
    }

    fn roll_back(&mut self, _: u32) -> Result<Restored, RollbackError> {
        self.0.state.borrow_mut().context = self.1.take().unwrap_or_default();
        Ok(Restored::default())
    }

    fn commit(&mut self, _: u32) -> Result<(), RollbackError> {
        Ok(())
    }
}

struct Heard;

impl Stages for Heard {
    fn reached(&mut self, _: u32, _: Stage) -> Result<(), String> {
        Ok(())
    }

    fn ended(&mut self) -> Option<jackline_attempt::Ended> {
        None
    }
}

fn play(world: &World, sources: Vec<&'static str>) -> (InternalOutcome, Trace, Vec<Ask>) {
    let (mut checker, mut runner) = programs(&world.workers, &world.state, world.limits, 0);
    let mut generator = Script { sources, asks: Vec::new() };
    let mut transaction = Kept(world, None);
    let stages = RefCell::new(Heard);
    let mut parts = Parts {
        generator: &mut generator,
        validator: &mut checker,
        executor: &mut runner,
        transaction: &mut transaction,
        stages: &mut *stages.borrow_mut(),
    };
    let call = Call { name: "films.find".to_owned(), budgets: Budgets::default() };
    let (outcome, trace) = call.run(&mut parts);
    (outcome, trace, generator.asks)
}

#[test]
fn what_is_objected_to_is_written_again_with_the_place_and_the_correction() {
    let world = World::new();
    let (outcome, trace, asks) = play(
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
    let world = World::new();
    let (outcome, trace, _) = play(
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
