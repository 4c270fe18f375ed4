//! Guards that hold a session hold its attempts.

use std::fs;

use jackline_task::What;
use serde_json::json;

use crate::world::{Done, World};

fn asides(done: &Done) -> String {
    let each = done.told.iter().filter_map(|told| match &told.what {
        What::Aside { text } => Some(text.as_str()),
        _ => None,
    });
    each.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_paused_workspace_makes_no_attempt_and_says_why() {
    let world = World::new("");
    fs::create_dir(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline/PAUSE"), "").unwrap();
    let done = world.programs(&["ok(1)"]);
    assert_eq!(done.asked(), 0);
    assert!(done.report.public.normalized);
    assert!(asides(&done).contains("PAUSE"), "{}", asides(&done));
}

#[test]
fn a_budget_of_steps_ends_the_call_and_undoes_the_attempt() {
    let world = World::new("limits: { steps: 1 }");
    let writes = "tool('write_file')(path='a.txt', content='x')\n\
                  tool('write_file')(path='b.txt', content='x')\nok(1)";
    let done = world.programs(&[writes, writes]);
    assert_eq!(done.internal()["error_type"], "cancelled", "{:?}", done.internal());
    assert_eq!(done.asked(), 1);
    assert!(world.files().is_empty());
}

#[test]
fn a_person_who_has_to_say_is_told_how() {
    let definition = r"
rules:
  - name: writes
    tool: write_file
    ask: Writing needs a person.
    examples: { ask: [{ path: x, content: y }] }
";
    let world = World::new(definition);
    let done = world.programs(&["tool('write_file')(path='a.txt', content='x')\nok(1)", "ok(2)"]);
    assert_eq!(done.value(), Some(&json!(2)));
    assert!(asides(&done).contains("`jackline allow jl-"), "{}", asides(&done));
}

#[test]
fn what_is_cancelled_is_undone() {
    let world = World::new("");
    let task = crate::world::task(&["tool('write_file')(path='a.txt', content='x')\n1/0", "ok(1)"]);
    let opening = world.opening();
    let cancelled = std::sync::Arc::clone(&opening.cancelled);
    let report = jackline_task::run(&task, opening, &mut |told| {
        if matches!(told.what, What::Failed { .. }) {
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!(report.trace.lanes.asked, 1);
    assert!(world.files().is_empty());
    assert!(report.public.normalized);
}
