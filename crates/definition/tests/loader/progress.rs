//! Tests the errors in `progress` and `dirty_bits`.

use crate::{check, check_shapes};

#[test]
fn numbers_that_would_pause_everything_are_refused() {
    check(&[
        (
            "progress: { max_consecutive_failures: 0 }",
            "f:1:39: `progress.max_consecutive_failures` can't be 0; remove `progress` instead",
        ),
        (
            "progress: { steps_per_iteration: 0 }",
            "f:1:34: `progress.steps_per_iteration` can't be 0; remove `progress` instead",
        ),
        ("progress: {}", "ok"),
        ("progress:", "ok"),
    ]);
    check_shapes(&[
        (
            "progress: { phases: [] }",
            "f:1:13: unknown key `phases` in `progress`; known keys: `max_consecutive_failures`, `exempt_phases`, `steps_per_iteration`",
        ),
        (
            "completion: { clean: { tests: x } }",
            "f:1:24: unknown key `tests` in `clean`; this mapping has no keys",
        ),
    ]);
}

#[test]
fn tests_are_command_words_and_documents_are_file_patterns() {
    check(&[
        (
            "dirty_bits: { tests: [pytest --fast] }",
            "f:1:23: `--fast` is an option; options are not matched here; to match options, write a condition on `argv` in `when`",
        ),
        (
            "dirty_bits: { builds: ['make | tail'] }",
            "f:1:24: `make | tail` is not a program with its subcommands; write it as words, such as `git push`",
        ),
        ("dirty_bits: { docs: [.] }", "f:1:22: `.` would make every file documentation"),
        (
            "dirty_bits: { docs: [../x] }",
            "f:1:22: `../x` leads out of the workspace; write it as `docs/**` or `*.rst`",
        ),
    ]);
}
