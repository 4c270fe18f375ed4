//! Guards that pause or stop a session stop its attempts.

use std::fs;

use jackline_task::AttemptEventKind;
use serde_json::json;

use crate::world::{FinishedTask, TaskWorld};

fn notifications(done: &FinishedTask) -> String {
    let each = done.events_seen.iter().filter_map(|told| match &told.kind {
        AttemptEventKind::Notification { text } => Some(text.as_str()),
        _ => None,
    });
    each.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_paused_workspace_makes_no_attempt_and_reports_the_reason() {
    let world = TaskWorld::new("");
    fs::create_dir(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline/PAUSE"), "").unwrap();
    let done = world.programs(&["ok(1)"]);
    assert_eq!(done.requests(), 0);
    assert!(done.report.public.normalized);
    assert!(notifications(&done).contains("PAUSE"), "{}", notifications(&done));
}

#[test]
fn a_budget_of_steps_ends_the_call_and_undoes_the_attempt() {
    let world = TaskWorld::new("limits: { steps: 1 }");
    let writes = "tool('write_file')(path='a.txt', content='x')\n\
                  tool('write_file')(path='b.txt', content='x')\nok(1)";
    let done = world.programs(&[writes, writes]);
    assert_eq!(done.internal()["error_type"], "cancelled", "{:?}", done.internal());
    assert_eq!(done.requests(), 1);
    assert!(world.files().is_empty());
}

#[test]
fn a_question_to_a_person_names_the_command() {
    let definition = r"
rules:
  - name: writes
    tool: write_file
    ask: Writing needs a person.
    examples: { ask: [{ path: x, content: y }] }
";
    let world = TaskWorld::new(definition);
    let done = world.programs(&["tool('write_file')(path='a.txt', content='x')\nok(1)", "ok(2)"]);
    assert_eq!(done.value(), Some(&json!(2)));
    assert!(notifications(&done).contains("`jackline allow jl-"), "{}", notifications(&done));
}

#[test]
fn a_cancelled_attempt_is_undone() {
    let world = TaskWorld::new("");
    let task = crate::world::task(&["tool('write_file')(path='a.txt', content='x')\n1/0", "ok(1)"]);
    let opening = world.options();
    let cancelled = std::sync::Arc::clone(&opening.cancelled);
    let report = jackline_task::run_task(&task, opening, &mut |told| {
        if matches!(told.kind, AttemptEventKind::Failed { .. }) {
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!(report.trace.lanes.asked, 1);
    assert!(world.files().is_empty());
    assert!(report.public.normalized);
}
