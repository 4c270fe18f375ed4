//! Tests the errors in `attempts`, `health` and `run`.

use crate::{check, check_shapes};

#[test]
fn numbers_have_bounds_and_subtypes_a_form() {
    check(&[
        ("attempts: {}", "ok"),
        ("attempts: { provider: 0, guardrail: 0, execution: 0, outcome: 0, ceiling: 1 }", "ok"),
        ("attempts: { terminal: [] }", "ok"),
        (
            "attempts: { terminal: [No Key] }",
            "f:1:24: `No Key` is not a subtype; use lower-case letters, digits and `_`, such as `missing_credentials`",
        ),
    ]);
    check_shapes(&[
        (
            "attempts: { ceiling: 0 }",
            "f:1:22: `attempts.ceiling` can't be 0; use a number from 1 to 100",
        ),
        (
            "attempts: { outcome: 101 }",
            "f:1:22: `attempts.outcome` can't be 101; use a number from 0 to 100",
        ),
        (
            "attempts: { retries: 1 }",
            "f:1:13: unknown key `retries` in `attempts`; known keys: `provider`, `guardrail`, `execution`, `outcome`, `ceiling`, `pressure_after`, `pressure_retries`, `terminal`",
        ),
    ]);
}

#[test]
fn the_numbers_of_health_fit_together() {
    check(&[
        ("health: {}", "ok"),
        ("health: { degrade_above_pct: 40, recover_below_pct: 40 }", "ok"),
        (
            "health: { window: 4 }",
            "f:1:9: `health.min_samples` is greater than `health.window`, so no tool would ever be rated",
        ),
        (
            "health: { recover_below_pct: 70 }",
            "f:1:9: `health.recover_below_pct` is greater than `health.degrade_above_pct`, so a tool could be degraded and durable",
        ),
    ]);
    check_shapes(&[
        ("health: { window: 0 }", "f:1:19: `health.window` can't be 0; use a number from 1 to 200"),
        (
            "health: { degrade_above_pct: 101 }",
            "f:1:30: `health.degrade_above_pct` can't be 101; use a number from 0 to 100",
        ),
    ]);
}

#[test]
fn the_numbers_of_run_have_bounds() {
    check(&[
        ("run: {}", "ok"),
        ("run: { failed_checks: 0, model_waits: 0, undone_iterations: 0 }", "ok"),
    ]);
    check_shapes(&[
        (
            "run: { model_tries: 0 }",
            "f:1:21: `run.model_tries` can't be 0; use a number from 1 to 1000",
        ),
        (
            "run: { advisor_tries: 1001 }",
            "f:1:23: `run.advisor_tries` can't be 1001; use a number from 1 to 1000",
        ),
        (
            "run: { tries: 1 }",
            "f:1:8: unknown key `tries` in `run`; known keys: `stops_without_work`, `failed_checks`, `undone_iterations`, `cut_off_answers`, `model_tries`, `program_starts`, `model_waits`, `advisor_tries`",
        ),
    ]);
}
