//! The acceptance criteria for calls.

use jackline_attempt::{
    AttemptBudgets, GenerationFeedback, InternalOutcome, OutcomeError, Subtype,
};
use serde_json::{Value, json};

use crate::world::{AttemptChanges, CallWorld, ScriptedArtifact, mutation, retriable};

fn good() -> ScriptedArtifact {
    ScriptedArtifact::Good(json!("done"))
}

#[test]
fn a_mutation_is_corrected_and_undone() {
    let mut world = CallWorld::default();
    let (outcome, trace) = world.run_call(&AttemptBudgets::default(), &[mutation(), good()]);
    assert!(outcome.is_ok());
    assert_eq!(world.changes.context.len(), 1, "{:?}", world.changes);
    let expected = [
        "started",
        "generated",
        "rolled_back",
        "started",
        "generated",
        "validated",
        "executed",
        "committed",
    ];
    assert_eq!(world.stage_names(), expected);
    let Some(GenerationFeedback::Guardrail { violations, remaining_guardrail_budget }) =
        &world.asks[1].feedback
    else {
        panic!("{:?}", world.asks[1])
    };
    assert_eq!(violations[0].subtype.as_str(), "singleton_method_mutation");
    assert_eq!(*remaining_guardrail_budget, 0);
    assert_eq!(world.asks[1].corrections.len(), 1);
    assert!(trace.rollback_applied && trace.retry_feedback_injected);
    assert_eq!(trace.guardrail_recovery_attempts, 1);
    assert_eq!(trace.attempt_failures[0].error_class, "singleton_method_mutation");
    assert!(!trace.guardrail_retry_exhausted);
}

#[test]
fn a_retriable_outcome_is_repaired() {
    let mut world = CallWorld::default();
    let (outcome, trace) =
        world.run_call(&AttemptBudgets::default(), &[retriable("fetch_failed"), good()]);
    assert!(outcome.is_ok());
    assert_eq!(world.changes.tools, ["forged"]);
    assert!(world.stage_names().contains(&"outcome_retry"));
    assert!(trace.outcome_repair_triggered);
    let feedback = serde_json::to_value(&world.asks[1].feedback).unwrap();
    assert_eq!(feedback["failure_class"], "intrinsic");
    assert_eq!(feedback["error_type"], "fetch_failed");
    assert_eq!(feedback["remaining_outcome_budget"], 0);
    assert!(feedback["required_correction"].is_string());
}

#[test]
fn a_terminal_violation_is_not_retried() {
    let mut world = CallWorld::default();
    let missing =
        ScriptedArtifact::Bad(Subtype::UnsupportedCapability, "no camera here".to_owned());
    let (outcome, trace) = world.run_call(&AttemptBudgets::default(), &[missing, good()]);
    let InternalOutcome::InternalError { error, retries, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((error.error_type.as_str(), retries), ("environment_violation", 0));
    assert_eq!(world.asks.len(), 1);
    assert!(trace.rollback_applied && !trace.guardrail_retry_exhausted);

    let mut world = CallWorld::default();
    let gentle = AttemptBudgets { terminal: Vec::new(), ..AttemptBudgets::default() };
    let missing =
        ScriptedArtifact::Bad(Subtype::UnsupportedCapability, "no camera here".to_owned());
    let (outcome, _) = world.run_call(&gentle, &[missing, good()]);
    assert!(outcome.is_ok(), "the definition decides which subtypes end a call");
}

#[test]
fn failures_of_every_kind_spend_their_own_budget() {
    let mut world = CallWorld::default();
    let crash = ScriptedArtifact::Crash("worker_crash", "it died".to_owned());
    let answers =
        [ScriptedArtifact::Down("timeout"), mutation(), retriable("low_utility"), crash, good()];
    let (outcome, trace) = world.run_call(&AttemptBudgets::default(), &answers);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(world.asks.len(), 5);
    for counter in
        [trace.lanes.provider, trace.lanes.guardrail, trace.lanes.execution, trace.lanes.outcome]
    {
        assert_eq!((counter.budget, counter.used, counter.remaining), (1, 1, 0));
    }
    assert_eq!(trace.attempt_id, 4, "asking the provider again is the same attempt");
    assert_eq!(world.asks[4].corrections.len(), 4, "earlier corrections stay listed");
    assert_eq!(world.changes.context.len(), 1);
}

#[test]
fn a_refused_call_is_a_violation() {
    let mut world = CallWorld::default();
    let refused = ScriptedArtifact::Refused("not in production".to_owned());
    let (outcome, trace) = world.run_call(&AttemptBudgets::default(), &[refused, good()]);
    assert!(outcome.is_ok());
    assert_eq!(trace.guardrail_violation_subtype.as_deref(), Some("tool_denied"));
    assert_eq!(world.changes.context.len(), 1);
}

#[test]
fn extrinsic_and_final_errors_are_returned_unchanged() {
    for error in [
        OutcomeError::new("rate_limited", "later", true),
        OutcomeError::new("not_found", "no such film", false),
    ] {
        let mut world = CallWorld::default();
        let (outcome, _) = world.run_call(
            &AttemptBudgets::default(),
            &[ScriptedArtifact::Error(error.clone()), good()],
        );
        assert_eq!(outcome, InternalOutcome::Error(error));
        assert_eq!(
            (world.asks.len(), &world.changes),
            (1, &AttemptChanges::default()),
            "all changes are undone"
        );
    }
}

#[test]
fn an_exhausted_call_has_the_documented_fields() {
    let two = AttemptBudgets { guardrail: 2, ..AttemptBudgets::default() };
    let (outcome, trace) = CallWorld::default().run_call(&two, &[mutation()]);
    let outcome_json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(outcome_json["status"], "error");
    assert_eq!(outcome_json["error_type"], "guardrail_retry_exhausted");
    let text = "Recoverable guardrail retries exhausted for personal assistant.ask";
    assert_eq!(outcome_json["error_message"], text);
    assert_eq!(outcome_json["retriable"], false);
    assert_eq!(outcome_json["metadata"]["guardrail_recovery_attempts"], 2);
    assert_eq!(outcome_json["metadata"]["last_violation_type"], "tool_registry_violation");
    assert!(trace.guardrail_retry_exhausted);

    let (outcome, _) =
        CallWorld::default().run_call(&AttemptBudgets::default(), &[retriable("fetch_failed")]);
    let outcome_json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(outcome_json["error_type"], "outcome_repair_retry_exhausted");
    let text = "Retriable outcome-error repairs exhausted for personal assistant.ask";
    assert_eq!(outcome_json["error_message"], text);
    assert_eq!(outcome_json["metadata"]["outcome_repair_attempts"], 1);
    assert_eq!(outcome_json["metadata"]["last_error_type"], "fetch_failed");

    let crash = ScriptedArtifact::Crash("timeout", "too slow".to_owned());
    let (outcome, trace) = CallWorld::default().run_call(&AttemptBudgets::default(), &[crash]);
    let outcome_json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(outcome_json["error_type"], "execution_retry_exhausted");
    assert_eq!(outcome_json["metadata"]["execution_retry_attempts"], 1);
    assert!(trace.execution_retry_exhausted);
}

#[test]
fn an_attempt_without_a_snapshot_does_not_start_and_a_failed_rollback_is_reported() {
    let mut world = CallWorld { fail_begin: true, ..CallWorld::default() };
    let (outcome, _) = world.run_call(&AttemptBudgets::default(), &[good()]);
    assert_eq!(outcome.error().unwrap().error_type, "snapshot_failed");
    assert_eq!(world.changes, AttemptChanges::default());

    let mut world = CallWorld { fail_roll_back: true, ..CallWorld::default() };
    let (outcome, _) =
        world.run_call(&AttemptBudgets::default(), &[retriable("low_utility"), good()]);
    let error = outcome.error().unwrap();
    assert_eq!(error.error_type, "rollback_failed");
    assert!(error.error_message.contains("a.txt"));
    assert_eq!(world.asks.len(), 1, "there is no retry");
}

#[test]
fn a_stage_that_can_not_be_recorded_ends_the_call() {
    use jackline_attempt::Stage;
    for stage in [Stage::Started, Stage::Generated, Stage::Validated, Stage::Executed] {
        let mut world = CallWorld { fail_stage: Some(stage), ..CallWorld::default() };
        let (outcome, _) = world.run_call(&AttemptBudgets::default(), &[good()]);
        assert_eq!(outcome.error().unwrap().error_type, "not_journalled", "{stage:?}");
        assert_eq!(world.changes, AttemptChanges::default(), "{stage:?}");
    }
}

#[test]
fn a_cancelled_call_is_undone_and_tries_no_more() {
    let mut world = CallWorld { end_after: Some(4), ..CallWorld::default() };
    let (outcome, _) =
        world.run_call(&AttemptBudgets::default(), &[retriable("low_utility"), good()]);
    assert_eq!(outcome.error().unwrap().error_type, "cancelled");
    assert_eq!((world.asks.len(), &world.changes), (1, &AttemptChanges::default()));
}

#[test]
fn an_artifact_that_ignores_the_cancellation_is_undone_as_well() {
    let mut world = CallWorld { end_after: Some(4), ..CallWorld::default() };
    let (outcome, _) = world.run_call(&AttemptBudgets::default(), &[good()]);
    assert_eq!(outcome.error().unwrap().error_type, "cancelled");
    assert_eq!((world.asks.len(), &world.changes), (1, &AttemptChanges::default()));
    assert_eq!(
        world.stage_names(),
        ["started", "generated", "validated", "executed", "rolled_back"]
    );
}

#[test]
fn good_calls_have_no_violations() {
    for source in ["google", "yahoo", "nyt"] {
        let mut world = CallWorld::default();
        let (outcome, trace) =
            world.run_call(&AttemptBudgets::default(), &[ScriptedArtifact::Good(json!(source))]);
        assert_eq!(outcome, InternalOutcome::Ok { value: json!(source), sources: Vec::new() });
        assert!(!trace.rollback_applied && trace.attempt_failures.is_empty());
        assert_eq!(trace.validation_failure_type, None::<Value>.map(|_| String::new()));
    }
}
