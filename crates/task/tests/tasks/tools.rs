//! Tools that programs generate: stored if the attempt succeeds, used again, and gated.

use std::fs;

use jackline_journal::JournalNote;
use jackline_task::registry::Registry;
use jackline_task::{ArtifactKind, Task};
use serde_json::json;

use crate::world::{TaskWorld, task};

const FORGES: &str = "\
forge('title', '''
page = tool('read_file')(path=arguments['path'])
ok(page['content'].split(':')[1].strip())
''', description='The title in a file.')
ok(tool('title')(path='dune.txt'))";

fn world() -> TaskWorld {
    let world = TaskWorld::new("");
    fs::write(world.work().join("dune.txt"), "title: Dune").unwrap();
    world
}

#[test]
fn good_calls_use_a_tool_again_without_violations() {
    let world = world();
    let done = world.programs(&[FORGES]);
    assert_eq!(done.value(), Some(&json!("Dune")), "{:?}", done.report.internal);
    assert_eq!(world.generated_tools(), ["title"]);
    for _ in 0..5 {
        let done = world.programs(&["ok(tool('title')(path='dune.txt'))"]);
        assert_eq!(done.value(), Some(&json!("Dune")), "{:?}", done.report.internal);
        assert_eq!((done.requests(), done.violations().len()), (1, 0));
        let refused = world
            .records(&done.report.session)
            .iter()
            .any(|record| record.verdict_json.contains("\"violations\""));
        assert!(!refused);
        assert_eq!(world.trace(&done)[0]["guardrail_violation_subtypes"], json!({}));
    }
    let tool = Registry::of_home(&world.home()).get("title").unwrap().unwrap();
    assert_eq!((tool.uses, tool.health.failed_pct()), (6, Some(0)));
}

#[test]
fn calls_of_and_by_a_generated_tool_are_proposed() {
    let world = world();
    let done = world.programs(&[FORGES]);
    let tools: Vec<String> = world
        .records(&done.report.session)
        .iter()
        .filter_map(|record| match &record.event.kind {
            jackline_engine::EventKind::ToolProposed(jackline_engine::ToolProposed {
                tool,
                ..
            }) => Some(tool.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(tools, ["title", "read_file"]);
}

#[test]
fn a_stored_tool_is_checked_and_undone_like_any_program() {
    let world = world();
    let forges = "forge('spoil', '''tool('write_file')(path='x.txt', content='x')\n\
                  1/0''', description='d')\nok(1)";
    assert!(world.programs(&[forges]).report.internal.is_ok());
    let done = world.programs(&["ok(tool('spoil')())", "ok('without')"]);
    assert_eq!(done.value(), Some(&json!("without")));
    assert!(!world.files().contains_key("x.txt"), "{:?}", world.files());
    let tool = Registry::of_home(&world.home()).get("spoil").unwrap().unwrap();
    assert_eq!((tool.uses, tool.health.failed_pct()), (1, Some(100)));
}

#[test]
fn a_degraded_tool_is_not_offered() {
    let world = TaskWorld::new("health: { window: 2, min_samples: 2 }\nattempts: { execution: 0 }");
    assert!(
        world.programs(&["forge('bad', '1/0', description='d')\nok(1)"]).report.internal.is_ok()
    );
    for _ in 0..2 {
        world.programs(&["tool('bad')()"]);
    }
    let done = world.programs(&["ok('bad' in context['tools'])"]);
    assert_eq!(done.value(), Some(&json!(false)));
}

#[test]
fn names_of_workspace_tools_are_reserved_and_recursion_is_limited() {
    let world = world();
    let done = world.programs(&["forge('read_file', 'ok(1)')\nok(1)", "ok(2)"]);
    assert_eq!(done.violations(), ["tool_denied 1:1"]);
    let again = "forge('again', '''ok(tool('again')())''', description='d')\nok(tool('again')())";
    let done = world.programs(&[again, "ok(3)"]);
    assert_eq!(done.value(), Some(&json!(3)), "{:?}", done.report.internal);
}

#[test]
fn an_invalid_tool_name_is_refused_and_recorded() {
    let world = TaskWorld::new("");
    let program = world.programs(&["name = 're\\x07ad'\ntool(name)()\nok(1)", "ok(2)"]);
    assert_eq!(program.value(), Some(&json!(2)), "{:?}", program.report.internal);
    assert_eq!(program.violations(), ["unknown_tool 2:1"]);
    let step = json!({ "name": "re\u{7}ad", "arguments": {} });
    let wrong = json!({ "action_type": "STOP", "tool_calls": [step] });
    let right = json!({ "action_type": "STOP", "tool_calls": [] });
    let texts = [wrong, right].map(|plan| plan.to_string());
    let task = task(&texts.each_ref().map(String::as_str));
    let plan = world.run(&Task { artifact: ArtifactKind::Plan, ..task });
    assert_eq!(plan.violations(), ["unknown_tool"], "{:?}", plan.report.internal);
    for done in [program, plan] {
        let records = world.records(&done.report.session);
        assert!(!records.iter().any(|record| record.event.kind.name() == "tool_proposed"));
        let notes: Vec<JournalNote> = records.into_iter().flat_map(|record| record.notes).collect();
        let reason = "the name of the tool contains a control character".to_owned();
        assert_eq!(notes, [JournalNote::Malformed { line: 1, reason }]);
    }
}
