//! Budgets 0, 1 and 2 in every lane, with exact counts of the requests to the generator.

use jackline_attempt::{AttemptBudgets, Lane};

use crate::world::{AttemptChanges, CallWorld, ScriptedArtifact, mutation, retriable};

fn failing(lane: Lane) -> ScriptedArtifact {
    match lane {
        Lane::Provider => ScriptedArtifact::Down("provider"),
        Lane::Guardrail => mutation(),
        Lane::Execution => ScriptedArtifact::Crash("execution", "RAW-CRASH".to_owned()),
        Lane::Outcome => retriable("fetch_failed"),
    }
}

fn with(lane: Lane, budget: u32, ceiling: u32) -> AttemptBudgets {
    let mut budgets = AttemptBudgets { ceiling, ..AttemptBudgets::default() };
    match lane {
        Lane::Provider => budgets.provider = budget,
        Lane::Guardrail => budgets.guardrail = budget,
        Lane::Execution => budgets.execution = budget,
        Lane::Outcome => budgets.outcome = budget,
    }
    budgets
}

#[test]
fn a_lane_asks_once_and_once_more_for_each_retry() {
    for lane in Lane::ALL {
        for budget in 0..=2 {
            let mut world = CallWorld::default();
            let (outcome, trace) = world.run_call(&with(lane, budget, 6), &[failing(lane)]);
            assert_eq!(world.asks.len(), 1 + budget as usize, "{lane:?} {budget}");
            assert_eq!(trace.lanes.of(lane).used, budget);
            assert!(!outcome.is_ok());
            assert_eq!(world.changes, AttemptChanges::default());
            let exhausted = trace.guardrail_retry_exhausted
                || trace.execution_retry_exhausted
                || trace.outcome_repair_retry_exhausted;
            assert_eq!(exhausted, budget > 0 && lane != Lane::Provider, "{lane:?} {budget}");
        }
    }
}

#[test]
fn a_lane_that_is_off_gives_the_original_back() {
    let error_of = |lane| {
        let (outcome, _) = CallWorld::default().run_call(&with(lane, 0, 6), &[failing(lane)]);
        outcome.error().unwrap().error_type.clone()
    };
    assert_eq!(error_of(Lane::Provider), "provider");
    assert_eq!(error_of(Lane::Guardrail), "tool_registry_violation");
    assert_eq!(error_of(Lane::Execution), "execution");
    assert_eq!(error_of(Lane::Outcome), "fetch_failed");
}

#[test]
fn the_ceiling_holds_whatever_the_lanes_have_left() {
    for ceiling in 1..5 {
        let mut world = CallWorld::default();
        world.run_call(&with(Lane::Guardrail, 100, ceiling), &[mutation()]);
        assert_eq!(world.asks.len(), ceiling as usize);
    }
}

#[test]
fn a_call_that_reaches_its_ceiling_has_not_used_up_the_lane() {
    for lane in [Lane::Guardrail, Lane::Execution, Lane::Outcome] {
        let mut world = CallWorld::default();
        let (outcome, trace) = world.run_call(&with(lane, 9, 2), &[failing(lane)]);
        assert_eq!(trace.lanes.of(lane).remaining, 8, "{lane:?}");
        assert!(!trace.guardrail_retry_exhausted && !trace.execution_retry_exhausted);
        assert!(!trace.outcome_repair_retry_exhausted);
        let message = &outcome.error().unwrap().error_message;
        assert!(message.starts_with("The ceiling of 2 requests is reached for "), "{message}");
        // The only feedback says that no retry follows the next attempt.
        let feedback = serde_json::to_string(&world.asks[1].feedback).unwrap();
        assert!(feedback.contains("_budget\":0"), "{feedback}");
    }
}
