//! Tests of the paths in texts for the agent: relative to the workspace where they are inside it.

use std::fs;

use serde_json::json;

use crate::session_events::{send_events, session_started, stop_proposed};
use crate::support::CliWorld;

#[test]
fn a_required_file_is_named_relative_to_the_workspace() {
    let world = CliWorld::new("");
    let report = world.workspace().join("out/report.md");
    let definition = format!("version: 1\ncompletion: {{ files: [{}] }}\n", report.display());
    fs::write(world.workspace().join("jackline.yaml"), definition).unwrap();
    let verdict = &send_events(&world, "s1", &[session_started(), stop_proposed()])[1];
    assert_eq!(verdict["completion"]["missing"], json!(["out/report.md"]), "{verdict}");
    assert_eq!(verdict["violations"][0]["location"], "out/report.md", "{verdict}");
    let context = verdict["context"].as_str().unwrap();
    assert!(context.contains("The required file `out/report.md` is missing."), "{context}");
    // The file is found where the definition says.
    fs::create_dir(world.workspace().join("out")).unwrap();
    fs::write(report, "done").unwrap();
    let verdict = &send_events(&world, "s1", &[stop_proposed()])[0];
    assert_eq!(verdict["decision"], "allow", "{verdict}");
    world.verify_and_replay("s1");
}
