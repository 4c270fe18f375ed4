//! The acceptance list of the seeds.

use jackline_attempt::{Budgets, Feedback, InternalOutcome, OutcomeError, Subtype};
use serde_json::{Value, json};

use crate::world::{Answer, Kept, World, mutation, retriable};

fn good() -> Answer {
    Answer::Good(json!("done"))
}

#[test]
fn a_mutation_is_corrected_and_nothing_of_it_stays() {
    let mut world = World::default();
    let (outcome, trace) = world.play(&Budgets::default(), &[mutation(), good()]);
    assert!(outcome.is_ok());
    assert_eq!(world.kept.context.len(), 1, "{:?}", world.kept);
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
    assert_eq!(world.names(), expected);
    let Some(Feedback::Guardrail { violations, remaining_guardrail_budget }) =
        &world.asks[1].feedback
    else {
        panic!("{:?}", world.asks[1])
    };
    assert_eq!(violations[0].subtype.word(), "singleton_method_mutation");
    assert_eq!(*remaining_guardrail_budget, 0);
    assert_eq!(world.asks[1].corrections.len(), 1);
    assert!(trace.rollback_applied && trace.retry_feedback_injected);
    assert_eq!(trace.guardrail_recovery_attempts, 1);
    assert_eq!(trace.attempt_failures[0].error_class, "singleton_method_mutation");
    assert!(!trace.guardrail_retry_exhausted);
}

#[test]
fn a_retriable_outcome_is_repaired() {
    let mut world = World::default();
    let (outcome, trace) = world.play(&Budgets::default(), &[retriable("fetch_failed"), good()]);
    assert!(outcome.is_ok());
    assert_eq!(world.kept.tools, ["forged"]);
    assert!(world.names().contains(&"outcome_retry"));
    assert!(trace.outcome_repair_triggered);
    let feedback = serde_json::to_value(&world.asks[1].feedback).unwrap();
    assert_eq!(feedback["failure_class"], "intrinsic");
    assert_eq!(feedback["error_type"], "fetch_failed");
    assert_eq!(feedback["remaining_outcome_budget"], 0);
    assert!(feedback["required_correction"].is_string());
}

#[test]
fn what_nothing_can_help_is_not_retried() {
    let mut world = World::default();
    let missing = Answer::Bad(Subtype::UnsupportedCapability, "no camera here".to_owned());
    let (outcome, trace) = world.play(&Budgets::default(), &[missing, good()]);
    let InternalOutcome::Inside { error, retries, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((error.error_type.as_str(), retries), ("environment_violation", 0));
    assert_eq!(world.asks.len(), 1);
    assert!(trace.rollback_applied && !trace.guardrail_retry_exhausted);

    let mut world = World::default();
    let gentle = Budgets { terminal: Vec::new(), ..Budgets::default() };
    let missing = Answer::Bad(Subtype::UnsupportedCapability, "no camera here".to_owned());
    let (outcome, _) = world.play(&gentle, &[missing, good()]);
    assert!(outcome.is_ok(), "which ones end a call is a matter of the definition");
}

#[test]
fn failures_of_every_kind_spend_their_own_budget() {
    let mut world = World::default();
    let crash = Answer::Crash("worker_crash", "it died".to_owned());
    let answers = [Answer::Down("timeout"), mutation(), retriable("low_utility"), crash, good()];
    let (outcome, trace) = world.play(&Budgets::default(), &answers);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(world.asks.len(), 5);
    for counter in
        [trace.lanes.provider, trace.lanes.guardrail, trace.lanes.execution, trace.lanes.outcome]
    {
        assert_eq!((counter.budget, counter.used, counter.remaining), (1, 1, 0));
    }
    assert_eq!(trace.attempt_id, 4, "asking the provider again is the same attempt");
    assert_eq!(world.asks[4].corrections.len(), 4, "what was said before stays said");
    assert_eq!(world.kept.context.len(), 1);
}

#[test]
fn a_refused_call_is_an_objection() {
    let mut world = World::default();
    let refused = Answer::Refused("not in production".to_owned());
    let (outcome, trace) = world.play(&Budgets::default(), &[refused, good()]);
    assert!(outcome.is_ok());
    assert_eq!(trace.guardrail_violation_subtype.as_deref(), Some("tool_denied"));
    assert_eq!(world.kept.context.len(), 1);
}

#[test]
fn what_the_world_did_or_nobody_may_repeat_passes_as_it_is() {
    for error in [
        OutcomeError::new("rate_limited", "later", true),
        OutcomeError::new("not_found", "no such film", false),
    ] {
        let mut world = World::default();
        let (outcome, _) = world.play(&Budgets::default(), &[Answer::Error(error.clone()), good()]);
        assert_eq!(outcome, InternalOutcome::Error(error));
        assert_eq!((world.asks.len(), &world.kept), (1, &Kept::default()), "and leaves nothing");
    }
}

#[test]
fn exhaustion_has_the_shapes_of_the_seeds() {
    let two = Budgets { guardrail: 2, ..Budgets::default() };
    let (outcome, trace) = World::default().play(&two, &[mutation()]);
    let said = serde_json::to_value(&outcome).unwrap();
    assert_eq!(said["status"], "error");
    assert_eq!(said["error_type"], "guardrail_retry_exhausted");
    let text = "Recoverable guardrail retries exhausted for personal assistant.ask";
    assert_eq!(said["error_message"], text);
    assert_eq!(said["retriable"], false);
    assert_eq!(said["metadata"]["guardrail_recovery_attempts"], 2);
    assert_eq!(said["metadata"]["last_violation_type"], "tool_registry_violation");
    assert!(trace.guardrail_retry_exhausted);

    let (outcome, _) = World::default().play(&Budgets::default(), &[retriable("fetch_failed")]);
    let said = serde_json::to_value(&outcome).unwrap();
    assert_eq!(said["error_type"], "outcome_repair_retry_exhausted");
    let text = "Retriable outcome-error repairs exhausted for personal assistant.ask";
    assert_eq!(said["error_message"], text);
    assert_eq!(said["metadata"]["outcome_repair_attempts"], 1);
    assert_eq!(said["metadata"]["last_error_type"], "fetch_failed");

    let crash = Answer::Crash("timeout", "too slow".to_owned());
    let (outcome, trace) = World::default().play(&Budgets::default(), &[crash]);
    let said = serde_json::to_value(&outcome).unwrap();
    assert_eq!(said["error_type"], "execution_retry_exhausted");
    assert_eq!(said["metadata"]["execution_retry_attempts"], 1);
    assert!(trace.execution_retry_exhausted);
}

#[test]
fn what_cannot_be_undone_is_not_begun_and_what_was_not_undone_is_said() {
    let mut world = World { fail_begin: true, ..World::default() };
    let (outcome, _) = world.play(&Budgets::default(), &[good()]);
    assert_eq!(outcome.error().unwrap().error_type, "snapshot_failed");
    assert_eq!(world.kept, Kept::default());

    let mut world = World { fail_roll_back: true, ..World::default() };
    let (outcome, _) = world.play(&Budgets::default(), &[retriable("low_utility"), good()]);
    let error = outcome.error().unwrap();
    assert_eq!(error.error_type, "rollback_failed");
    assert!(error.error_message.contains("a.txt"));
    assert_eq!(world.asks.len(), 1, "nothing goes on");
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    use jackline_attempt::Stage;
    for stage in [Stage::Started, Stage::Generated, Stage::Validated, Stage::Executed] {
        let mut world = World { fail_stage: Some(stage), ..World::default() };
        let (outcome, _) = world.play(&Budgets::default(), &[good()]);
        assert_eq!(outcome.error().unwrap().error_type, "not_journalled", "{stage:?}");
        assert_eq!(world.kept, Kept::default(), "{stage:?}");
    }
}

#[test]
fn a_cancelled_call_is_undone_and_tries_no_more() {
    let mut world = World { end_after: Some(4), ..World::default() };
    let (outcome, _) = world.play(&Budgets::default(), &[retriable("low_utility"), good()]);
    assert_eq!(outcome.error().unwrap().error_type, "cancelled");
    assert_eq!((world.asks.len(), &world.kept), (1, &Kept::default()));
}

#[test]
fn an_artifact_that_took_no_notice_of_the_end_is_undone_as_well() {
    let mut world = World { end_after: Some(4), ..World::default() };
    let (outcome, _) = world.play(&Budgets::default(), &[good()]);
    assert_eq!(outcome.error().unwrap().error_type, "cancelled");
    assert_eq!((world.asks.len(), &world.kept), (1, &Kept::default()));
    assert_eq!(world.names(), ["started", "generated", "validated", "executed", "rolled_back"]);
}

#[test]
fn good_calls_trip_nothing() {
    for source in ["google", "yahoo", "nyt"] {
        let mut world = World::default();
        let (outcome, trace) = world.play(&Budgets::default(), &[Answer::Good(json!(source))]);
        assert_eq!(outcome, InternalOutcome::Ok { value: json!(source), sources: Vec::new() });
        assert!(!trace.rollback_applied && trace.attempt_failures.is_empty());
        assert_eq!(trace.validation_failure_type, None::<Value>.map(|_| String::new()));
    }
}
