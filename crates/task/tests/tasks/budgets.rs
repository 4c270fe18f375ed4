//! Budgets of 0, 1 and 2 in every lane, with exact counts of questions to the model.

use jackline_task::{Answer, ModelSpec, Script};
use serde_json::json;

use crate::world::{World, says, task};

/// What fails for ever, in which lane, and what the call ends with when the lane is off,
/// and when it is exhausted.
const LANES: [(&str, &str, &str, &str); 4] = [
    ("provider", "", "empty_answer", "empty_answer"),
    ("guardrail", "import os\nok(1)", "invalid_code", "guardrail_retry_exhausted"),
    ("execution", "1/0", "execution", "execution_retry_exhausted"),
    (
        "outcome",
        "error('low_utility', 'no', retriable=True)",
        "low_utility",
        "outcome_repair_retry_exhausted",
    ),
];

#[test]
fn each_lane_has_exactly_the_retries_that_it_is_given() {
    for (lane, answer, off, exhausted) in LANES {
        for budget in 0..=2 {
            let world = World::new(&format!("attempts: {{ {lane}: {budget} }}"));
            let mut task = task(&[]);
            task.model = ModelSpec::Script(Script { answers: vec![says(answer)], repeats: true });
            let done = world.run(&task);
            assert_eq!(done.asked(), budget + 1, "{lane} {budget}");
            let error_type = done.internal()["error_type"].clone();
            let expected = if budget == 0 { off } else { exhausted };
            assert_eq!(error_type, expected, "{lane} {budget}");
            let events = world.events(&done.report.session);
            let count = |name: &str| events.iter().filter(|it| *it == name).count();
            let attempts = if lane == "provider" { 1 } else { budget as usize + 1 };
            assert_eq!(count("attempt_started"), attempts, "{lane} {budget}");
            assert_eq!(count("attempt_ended"), attempts, "{lane} {budget}");
        }
    }
}

#[test]
fn exhaustion_has_the_shape_of_the_seeds_and_nothing_of_it_gets_out() {
    let world = World::new("attempts: { guardrail: 2 }");
    let mut task = task(&[]);
    let answers = vec![says("tool('read_file').run = 1\nok(1)")];
    task.model = ModelSpec::Script(Script { answers, repeats: true });
    let done = world.run(&task);
    let internal = done.internal();
    assert_eq!(internal["error_type"], "guardrail_retry_exhausted");
    assert_eq!(internal["error_message"], "Recoverable guardrail retries exhausted for films");
    assert_eq!(internal["retriable"], false);
    assert_eq!(internal["metadata"]["guardrail_recovery_attempts"], 2);
    assert_eq!(internal["metadata"]["last_violation_type"], "tool_registry_violation");
    assert_eq!(internal["metadata"]["last_violation_subtype"], "singleton_method_mutation");
    let public = json!({
        "status": "error",
        "error_type": "request_not_completed",
        "error_message": "This request couldn't be completed after multiple attempts.",
        "retriable": false,
        "normalized": true,
        "normalization_policy": "guardrail_exhaustion_boundary_v1",
    });
    assert_eq!(serde_json::to_value(&done.report.public).unwrap(), public);
    // The raw text, the subtype and what was told instead are in one line of the trace.
    let line = &world.trace(&done)[0];
    assert_eq!(line["guardrail_violation_subtype"], "singleton_method_mutation");
    assert_eq!(line["user_outcome_normalized"], true);
    assert_eq!(line["user_outcome_normalization_policy"], "guardrail_exhaustion_boundary_v1");
    assert_eq!(line["guardrail_violation_subtypes"], json!({ "singleton_method_mutation": 3 }));
    assert_eq!(line["outcome"]["metadata"], internal["metadata"]);
    assert_eq!(line["normalization"]["guardrail_recovery_attempts"], 2);
    for field in [
        "timestamp",
        "session",
        "call_id",
        "depth",
        "name",
        "model",
        "arguments",
        "code",
        "generation_attempt",
        "duration_ms",
        "outcome_status",
        "attempt_id",
        "attempt_stage",
        "validation_failure_type",
        "rollback_applied",
        "retry_feedback_injected",
        "guardrail_retry_exhausted",
        "execution_retry_attempts",
        "outcome_repair_attempts",
        "outcome_repair_triggered",
        "outcome_repair_retry_exhausted",
        "attempt_failures",
        "snapshot_ms",
        "rollback_ms",
        "latest_failure_stage",
    ] {
        assert!(!line[field].is_null(), "{field} in {line}");
    }
}

#[test]
fn a_model_that_is_silent_slow_or_gone_ends_the_call_within_its_budget() {
    for (answer, error_type) in [
        (says("  \n"), "empty_answer"),
        (Answer::Timeout, "timeout"),
        (Answer::Status(529), "provider"),
        (Answer::Status(429), "rate_limited"),
        (says("```\na\n```\n```\nb\n```"), "invalid_code"),
    ] {
        let world = World::new("");
        let mut task = task(&[]);
        task.model = ModelSpec::Script(Script { answers: vec![answer], repeats: true });
        let done = world.run(&task);
        assert_eq!(done.asked(), 2, "{error_type}");
        assert_eq!(done.internal()["error_type"], error_type);
        assert!(done.report.public.normalized);
    }
    let world = World::new("");
    let mut task = task(&[]);
    task.model = ModelSpec::Script(Script { answers: vec![Answer::Status(401)], repeats: true });
    let done = world.run(&task);
    assert_eq!(
        (done.asked(), done.internal()["error_type"].clone()),
        (1, json!("missing_credentials"))
    );
}

#[test]
fn the_ceiling_is_above_all_lanes() {
    let world = World::new("attempts: { guardrail: 9, ceiling: 3 }");
    let mut task = task(&[]);
    task.model = ModelSpec::Script(Script { answers: vec![says("import os")], repeats: true });
    assert_eq!(world.run(&task).asked(), 3);
}
