//! Internal text stays internal: parents get it, callers of the task do not.

use serde_json::json;

use crate::world::{TaskWorld, task, with_delegate};

const PASSES_ON: &str = "delegate('helper', n=1)";

const BRANCHES: &str = "\
outcome = delegate('helper', n=1)
if outcome['status'] == 'error' and outcome['guardrail_subtype'] == 'forbidden_construct':
    ok({'way': 'another', 'type': outcome['error_type']})
else:
    ok({'way': 'usual'})";

#[test]
fn a_parent_sees_the_subtype_of_a_failed_delegate() {
    let world = TaskWorld::new("");
    let child = ["import os\nok(1)", "import os\nok(1)"];
    let done = world.run(&with_delegate(task(&[BRANCHES]), "helper", &child));
    let expected = json!({ "way": "another", "type": "guardrail_retry_exhausted" });
    assert_eq!(done.value(), Some(&expected), "{:?}", done.report.internal);
    let trace = world.trace(&done);
    assert_eq!(trace.len(), 2);
    let [child, parent] = [&trace[0], &trace[1]];
    assert_eq!((&child["depth"], &child["user_outcome_normalized"]), (&json!(1), &json!(false)));
    assert_eq!(child["parent_call_id"], parent["call_id"]);
    assert_eq!(child["outcome"]["guardrail_subtype"], "forbidden_construct");
    assert_eq!(parent["outcome_status"], "ok");
}

#[test]
fn a_failure_that_a_parent_passes_on_is_made_public() {
    let world = TaskWorld::new("");
    let child = ["import os\nok(1)", "import os\nok(1)"];
    let done = world.run(&with_delegate(task(&[PASSES_ON]), "helper", &child));
    assert!(done.report.public.normalized, "{}", done.public());
    let inside = done.internal()["error_message"].as_str().unwrap().to_owned();
    assert!(inside.contains("films.helper"), "{inside}");
    assert!(!done.public().contains("helper"), "{}", done.public());
    let trace = world.trace(&done);
    assert_eq!(trace[1]["user_outcome_normalized"], true);
    assert_eq!(trace[1]["outcome"]["guardrail_subtype"], "forbidden_construct");
}

#[test]
fn a_parent_must_not_repeat_internal_text_of_a_delegate() {
    let world = TaskWorld::new("");
    let child = ["import os\nok(1)", "import os\nok(1)"];
    let repeats = "outcome = delegate('helper')\nok(outcome['error_message'])";
    let done = world.run(&with_delegate(task(&[repeats, "ok('none')"]), "helper", &child));
    assert_eq!(done.value(), Some(&json!("none")));
    assert!(done.violations().contains(&"internal_text_leak 2:1".to_owned()));
}

/// Answers that show the violation that ended a delegate.
const SHOWN_VIOLATIONS: [&str; 4] = [
    "error('child_failed', outcome['metadata']['last_violation_message'])",
    "error(outcome['metadata']['last_violation_message'], 'no')",
    "ok({'why': str(outcome)})",
    "ok('x', sources=[{'uri': outcome['metadata']['last_violation_message']}])",
];

#[test]
fn a_parent_must_not_show_the_violation_of_a_delegate() {
    for shown in SHOWN_VIOLATIONS {
        let world = TaskWorld::new("");
        let child = ["import os\nok(1)", "import os\nok(1)"];
        let parent = format!("outcome = delegate('helper')\n{shown}");
        let done = world.run(&with_delegate(task(&[&parent, &parent]), "helper", &child));
        assert!(done.report.public.normalized, "{shown}: {}", done.public());
        assert_eq!(done.internal()["guardrail_subtype"], "internal_text_leak", "{shown}");
    }
    // The subtype is a word that a caller may know.
    let world = TaskWorld::new("");
    let child = ["import os\nok(1)", "import os\nok(1)"];
    let parent = "outcome = delegate('helper')\nok(outcome['metadata']['last_violation_subtype'])";
    let done = world.run(&with_delegate(task(&[parent]), "helper", &child));
    assert_eq!(done.value(), Some(&json!("forbidden_construct")));
}

const RULE: &str = r#"version: 1
name: films/find
rules:
  - name: keep-out
    tool: write_file
    when: 'args.path.startsWith("secret/")'
    deny: this directory belongs to the finance team alone
    instead: write the numbers to the public directory
    examples: { deny: [{ path: secret/x }], allow: [{ path: a }] }
"#;

/// Answers that show the text of a refused call.
const SHOWN_REFUSALS: [&str; 5] = [
    "error('denied', str(e0))",
    "ok('no: ' + str(e0))",
    "ok(str(e0)[:75])",
    "error('denied', str(e0).split(':', 1)[1].upper())",
    "ok({'why': ['write the numbers to the public directory']})",
];

#[test]
fn a_program_must_not_show_the_text_of_a_refused_call() {
    for shown in SHOWN_REFUSALS {
        let world = TaskWorld::new(RULE);
        let program = format!(
            "try:\n    tool('write_file')(path='secret/x', content='1')\nexcept PermissionError as e0:\n    {shown}"
        );
        let done = world.programs(&[&program, &program]);
        assert!(done.report.public.normalized, "{shown}: {}", done.public());
        assert_eq!(done.internal()["guardrail_subtype"], "internal_text_leak", "{shown}");
    }
    // A model that read the text in an earlier attempt must not show it either.
    let world = TaskWorld::new(RULE);
    let refused = "tool('write_file')(path='secret/x', content='1')";
    let told = "error('denied', 'this directory belongs to the finance team alone')";
    let done = world.programs(&[refused, told]);
    assert!(done.report.public.normalized, "{}", done.public());
    let own = "try:\n    tool('write_file')(path='secret/x', content='1')\nexcept PermissionError as e0:\n    error('denied', 'I may not write secret/x')";
    let done = TaskWorld::new(RULE).programs(&[own]);
    assert!(!done.report.public.normalized, "{}", done.public());
}

#[test]
fn another_subtype_changes_only_its_own_word() {
    let programs = [
        "import os",
        "tool('read_file').run = 1",
        "tool('nothing')()",
        "context['tools'][0]",
        "```\ndef f(:\n```",
    ];
    let public: Vec<String> = programs
        .iter()
        .map(|program| TaskWorld::new("").programs(&[program, program]))
        .map(|done| {
            assert_eq!(done.internal()["error_type"], "guardrail_retry_exhausted");
            let mut public = done.report.public;
            public.guardrail.as_mut().unwrap().subtype.clear();
            serde_json::to_string(&public).unwrap()
        })
        .collect();
    assert!(public.iter().all(|it| *it == public[0]), "{public:?}");
}

#[test]
fn changes_of_a_delegate_are_undone_with_its_parent() {
    let world = TaskWorld::new("");
    let parent = "delegate('helper')\nerror('low_utility', 'no', retriable=True)";
    let child = "tool('write_file')(path='child.txt', content='x')\n\
                 forge('made', 'ok(1)', description='d')\nok(1)";
    let task = with_delegate(task(&[parent, "ok(1)"]), "helper", &[child]);
    let done = world.run(&task);
    assert!(done.report.internal.is_ok());
    assert!(world.files().is_empty(), "{:?}", world.files());
    assert_eq!(world.generated_tools(), [] as [&str; 0]);

    let world = TaskWorld::new("");
    let failing = "tool('write_file')(path='child.txt', content='x')\n1/0";
    let good = "tool('write_file')(path='parent.txt', content='x')\n\
                outcome = delegate('helper')\nok(outcome['status'])";
    let done = world.run(&with_delegate(self::task(&[good]), "helper", &[failing, failing]));
    assert_eq!(done.value(), Some(&json!("error")));
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["parent.txt"]);
}
