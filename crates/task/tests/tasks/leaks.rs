//! Internal text never reaches the public outcome, whatever fails.

use jackline_attempt::PublicStatus;
use proptest::prelude::*;

use crate::world::{TaskWorld, task, with_delegate};

/// A marker in internal texts, which no public outcome may contain.
const MARKER: &str = "RAW9f3cMARKER";

/// Ways to fail, each with the marker in an internal text.
fn failing() -> impl Strategy<Value = String> {
    let ways = [
        format!("import {MARKER}"),
        format!("raise ValueError('{MARKER}')"),
        format!("tool('{MARKER}')()"),
        format!("tool('read_file')(path='{MARKER}')"),
        format!("tool('write_file')(path='../{MARKER}', content='x')"),
        format!("error('guardrail_retry_exhausted', '{MARKER}', retriable=True)"),
        format!("error('rollback_failed', '{MARKER}')"),
        format!("{MARKER}("),
        format!("tool('read_file').{MARKER} = 1"),
        format!("forge('x', 'import {MARKER}')\nok(1)"),
        format!("context['{MARKER}'] = {{1}}\nok(1)"),
        "```\na\n```\n```\nb\n```".to_owned(),
        String::new(),
        "delegate('helper')".to_owned(),
        format!("print('{MARKER}')\n1/0"),
    ];
    prop::sample::select(ways.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_marker_is_never_public(
        parent in prop::collection::vec(failing(), 1..6),
        child in prop::collection::vec(failing(), 1..6),
        guardrail in 0..3_u32, execution in 0..3_u32, outcome in 0..3_u32,
    ) {
        let world = TaskWorld::new(&format!(
            "attempts: {{ guardrail: {guardrail}, execution: {execution}, outcome: {outcome} }}"
        ));
        let texts = |it: &[String]| it.iter().map(String::as_str).collect::<Vec<_>>().join("\u{0}");
        let (parent, child) = (texts(&parent), texts(&child));
        let split = |text: &str| text.split('\u{0}').map(ToOwned::to_owned).collect::<Vec<_>>();
        let (parent, child) = (split(&parent), split(&child));
        let parent: Vec<&str> = parent.iter().map(String::as_str).collect();
        let child: Vec<&str> = child.iter().map(String::as_str).collect();
        let done = world.run(&with_delegate(task(&parent), "helper", &child));
        prop_assert!(!done.public().contains(MARKER), "{}", done.public());
        prop_assert_eq!(done.report.public.status, PublicStatus::Error);
        prop_assert!(done.report.public.normalized);
        prop_assert!(world.files().is_empty());
        prop_assert!(world.generated_tools().is_empty());
    }
}
