//! Tests `loops`, and the keys of tools that may repeat.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use jackline_definition::load;
use jackline_engine::Mode::{self, Enforce, Observe};
use jackline_engine::ToolKind;
use jackline_engine::definition::{
    ChainLevels, CycleLevels, Definition, ErrorLevels, GradedLevels, LoopProfile, LoopSettings,
    LoopToolBudget, PollAllowance, SimilarCallLevels, StrictLevels,
};

use crate::{check, check_shapes};

fn loaded(source: &str) -> Definition {
    load(source.as_bytes(), "f").unwrap()
}

#[test]
fn every_key_of_loops_is_lowered() {
    let source = "\
loops:
  mode: observe
  profile: strict
  history: 16
  strict: { window: 6, threshold: 4, override_retries: 2 }
  graded: { soft: 2, hard: 4, infinite: 8 }
  cycle: { period_max: 4, repeats: 5 }
  chain: { calls_min: 3, calls_max: 9 }
  errors: { soft: 3, hard: 6 }
  similar: { changing_results: 4, same_subject: 7, same_subject_failing: 2, same_result: 3, among: 8 }
  wait: { max_calls: 5, within_seconds: 60 }
  tool_budget: { calls: 0, seconds: 30 }
  volatile: [/id, nonce]
  transparent: [think, fetch]
";
    assert_eq!(
        loaded(source).loops,
        LoopSettings {
            mode: Observe,
            profile: LoopProfile::Strict,
            history: 16,
            strict: StrictLevels { window: 6, threshold: 4, override_retries: 2 },
            graded: GradedLevels { soft: 2, hard: 4, infinite: 8 },
            cycle: CycleLevels { period_max: 4, repeats: 5 },
            chain: ChainLevels { calls_min: 3, calls_max: 9 },
            errors: ErrorLevels { soft: 3, hard: 6 },
            similar: SimilarCallLevels {
                changing_results: 4,
                same_subject: 7,
                same_subject_failing: 2,
                same_result: 3,
                among: 8,
            },
            wait: PollAllowance { until_changed: true, max_calls: 5, within_seconds: 60 },
            tool_budget: LoopToolBudget { calls: 0, seconds: 30 },
            volatile: vec!["/id".to_owned(), "/nonce".to_owned()],
            transparent: vec![ToolKind::Think, ToolKind::Fetch],
        }
    );
}

#[test]
fn the_repetition_keys_of_tools_are_lowered() {
    let definition = loaded(
        "tools: { a: { poll: {} }, b: { poll: { until_changed: false, max_calls: 5, within_seconds: 9 } }, c: { transparent: true }, d: { read_only: true } }",
    );
    let attributes: Vec<_> =
        definition.tools.iter().map(|tool| (tool.poll, tool.transparent, tool.read_only)).collect();
    let poll = |until_changed, max_calls, within_seconds| {
        Some(PollAllowance { until_changed, max_calls, within_seconds })
    };
    assert_eq!(
        attributes,
        [
            (poll(true, 60, 1800), false, false),
            (poll(false, 5, 9), false, false),
            (None, true, false),
            (None, false, true),
        ]
    );
}

#[test]
fn a_file_with_loops_enforces_them_by_default() {
    let mode = |source: &str| -> Mode { loaded(source).loops.mode };
    for (source, expected) in [
        ("", Observe),
        ("mode: enforce", Observe),
        ("loops: {}", Enforce),
        ("loops: {}\nmode: observe", Observe),
        ("mode: observe\nloops: { mode: enforce }", Enforce),
        ("loops: { mode: observe }", Observe),
        ("extends: coding-agent", Observe),
        ("extends: autonomous", Enforce),
        ("extends: autonomous\nmode: observe", Observe),
        ("extends: strict", Enforce),
    ] {
        assert_eq!(mode(source), expected, "{source}");
    }
    let profile = |source: &str| loaded(source).loops.profile;
    assert_eq!(profile("extends: autonomous"), LoopProfile::Graded);
    assert_eq!(profile("extends: strict"), LoopProfile::Strict);
}

#[test]
fn invalid_values_are_reported_with_their_positions() {
    check_shapes(&[
        (
            "loops: { history: 4 }",
            "f:1:19: `loops.history` can't be 4; use a whole number from 8 to 64",
        ),
        (
            "loops: { cycle: { period_max: 9 } }",
            "f:1:31: `loops.cycle.period_max` can't be 9; use a whole number from 2 to 8",
        ),
        (
            "loops: { profile: loose }",
            "f:1:19: `loops.profile` can't be `loose`; use one of `strict`, `graded`",
        ),
        (
            "loops: { transparent: [thinc] }",
            "f:1:24: a kind can't be `thinc`; did you mean `think`?",
        ),
        (
            "loops: { strict: { override_retries: 0 } }",
            "f:1:38: `loops.strict.override_retries` can't be 0; use a whole number from 1 to 100",
        ),
        ("loops: { grade: {} }", "f:1:10: unknown key `grade` in `loops`; did you mean `graded`?"),
        ("tools: { t: { poll: { max_calls: 0 } } }", "f:1:34: `poll.max_calls` can't be 0"),
        ("tools: { t: { poll: true } }", "f:1:21: `poll` must be a mapping, not a boolean"),
        (
            "tools: { t: { transparent: x } }",
            "f:1:28: `transparent` must be true or false, not text",
        ),
    ]);
    check(&[
        (
            "loops: { graded: { hard: 3 } }",
            "f:1:18: `loops.graded` is not in rising order: soft 3, hard 3, infinite 10; each number must be greater than the previous one",
        ),
        (
            "loops: { chain: { calls_min: 9, calls_max: 8 } }",
            "f:1:17: `loops.chain` is not in rising order: calls_min 9, calls_max 8; `calls_max` must be at least `calls_min`",
        ),
        (
            "loops: { errors: { soft: 9 } }",
            "f:1:18: `loops.errors` is not in rising order: soft 9, hard 8; `hard` must be greater than `soft`",
        ),
        (
            "loops: { strict: { threshold: 5 } }",
            "f:1:18: `loops.strict` needs 5 identical calls, but compares only 3; `window` must be at least `threshold`",
        ),
    ]);
}
