//! Budgets of 0, 1 and 2 in every lane, with exact counts of requests to the model.

use jackline_task::{ScriptedAnswer, Task, TaskModel, TaskScript};
use serde_json::json;

use crate::world::{TaskWorld, task, text_answer, with_delegate};

/// For each lane: an answer that always fails, and the error type of the call if the lane is off or
/// exhausted.
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
fn each_lane_has_exactly_the_retries_of_its_budget() {
    for (lane, answer, off, exhausted) in LANES {
        for budget in 0..=2 {
            let world = TaskWorld::new(&format!("attempts: {{ {lane}: {budget} }}"));
            let mut task = task(&[]);
            task.model =
                TaskModel::Script(TaskScript { answers: vec![text_answer(answer)], repeats: true });
            let done = world.run(&task);
            assert_eq!(done.requests(), budget + 1, "{lane} {budget}");
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
fn the_outcome_of_an_exhausted_call_is_detailed_inside_and_general_outside() {
    let world = TaskWorld::new("attempts: { guardrail: 2 }");
    let mut task = task(&[]);
    let answers = vec![text_answer("tool('read_file').run = 1\nok(1)")];
    task.model = TaskModel::Script(TaskScript { answers, repeats: true });
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
        "guardrail_class": "recoverable_guardrail",
        "guardrail_subtype": "singleton_method_mutation",
        "guardrail_recovery_attempts": 2,
    });
    assert_eq!(serde_json::to_value(&done.report.public).unwrap(), public);
    // One line of the trace has the raw text, the subtype and the public replacement.
    let line = &world.trace(&done)[0];
    assert_eq!(line["guardrail_violation_subtype"], "singleton_method_mutation");
    assert_eq!(line["user_outcome_normalized"], true);
    assert_eq!(line["user_outcome_normalization_policy"], "guardrail_exhaustion_boundary_v1");
    assert_eq!(line["guardrail_violation_subtypes"], json!({ "singleton_method_mutation": 3 }));
    assert_eq!(line["outcome"]["metadata"], internal["metadata"]);
    assert_eq!(line["user_outcome"]["guardrail_recovery_attempts"], 2);
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
        (text_answer("  \n"), "empty_answer"),
        (ScriptedAnswer::Timeout, "timeout"),
        (ScriptedAnswer::Status(529), "provider"),
        (ScriptedAnswer::Status(429), "rate_limited"),
        (text_answer("```\na\n```\n```\nb\n```"), "invalid_code"),
    ] {
        let world = TaskWorld::new("");
        let mut task = task(&[]);
        task.model = TaskModel::Script(TaskScript { answers: vec![answer], repeats: true });
        let done = world.run(&task);
        assert_eq!(done.requests(), 2, "{error_type}");
        assert_eq!(done.internal()["error_type"], error_type);
        assert!(done.report.public.normalized);
    }
    let world = TaskWorld::new("");
    let mut task = task(&[]);
    task.model =
        TaskModel::Script(TaskScript { answers: vec![ScriptedAnswer::Status(401)], repeats: true });
    let done = world.run(&task);
    assert_eq!(
        (done.requests(), done.internal()["error_type"].clone()),
        (1, json!("missing_credentials"))
    );
}

/// A task whose program calls a delegate five times. Only the fourth call succeeds.
fn task_with_failing_delegate() -> Task {
    let calls = "for n in range(5):\n    delegate('helper', n=n)\nok(1)";
    let program = "ok(1) if arguments['n'] == 3 else error('low_utility', 'no', retriable=True)";
    let mut task = with_delegate(task(&[calls]), "helper", &[]);
    let answers = vec![text_answer(program)];
    let model = TaskModel::Script(TaskScript { answers, repeats: true });
    task.delegates.get_mut("helper").unwrap().task.model = model;
    task
}

#[test]
fn calls_that_use_all_their_retries_again_and_again_get_fewer_until_one_succeeds() {
    let helper = |definition: &str| {
        let world = TaskWorld::new(definition);
        let done = world.run(&task_with_failing_delegate());
        assert!(done.report.internal.is_ok(), "{:?}", done.internal());
        let trace = world.trace(&done);
        let calls = trace.iter().filter(|line| line["depth"] == 1);
        let facts = calls.map(|line| {
            let retries = line["lanes"]["outcome"]["budget"].clone();
            (line["under_pressure"].clone(), retries, line["generation_attempt"].clone())
        });
        facts.collect::<Vec<_>>()
    };
    let fact = |under_pressure: bool, retries: u32, requests: u32| {
        (json!(under_pressure), json!(retries), json!(requests))
    };
    assert_eq!(
        helper(""),
        [
            fact(false, 1, 2),
            fact(false, 1, 2),
            fact(true, 0, 1),
            fact(true, 0, 1),
            fact(false, 1, 2),
        ]
    );
    // The definition decides when pressure begins, and how many retries it leaves.
    assert_eq!(
        helper("attempts: { pressure_after: 1 }")[..2],
        [fact(false, 1, 2), fact(true, 0, 1)]
    );
    assert_eq!(
        helper("attempts: { outcome: 2, pressure_after: 1, pressure_retries: 1 }")[..2],
        [fact(false, 2, 3), fact(true, 1, 2)]
    );
}

#[test]
fn the_ceiling_is_above_all_lanes() {
    let world = TaskWorld::new("attempts: { guardrail: 9, ceiling: 3 }");
    let mut task = task(&[]);
    task.model =
        TaskModel::Script(TaskScript { answers: vec![text_answer("import os")], repeats: true });
    assert_eq!(world.run(&task).requests(), 3);
}
