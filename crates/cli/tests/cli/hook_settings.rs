//! The hook when the client's settings change: a running session keeps its guard.

use std::fs;

use jackline_clients::claude::settings::{PINNED, hooks_for, install};
use jackline_clients::hook_line::shell_word;
use serde_json::{Value, json};

use crate::hook_support::{RULES, hear, heard, payload, prepared};
use crate::support::{JACKLINE, World, feed};

const PROJECT: &str = ".claude/settings.json";
const LOCAL: &str = ".claude/settings.local.json";

fn write(world: &World, name: &str, text: &str) {
    fs::create_dir_all(world.work().join(".claude")).unwrap();
    fs::write(world.work().join(name), text).unwrap();
}

fn guarded() -> (World, String) {
    let world = World::new(RULES);
    let text = install("", &hooks_for(PINNED, &shell_word(JACKLINE))).unwrap();
    write(&world, PROJECT, &text);
    (world, text)
}

/// What the client hears when it asks about a file of its settings.
fn change(world: &World, source: &str, name: &str) -> Value {
    let beyond = json!({"source": source, "file_path": world.work().join(name)});
    hear(world, &payload(world, "ConfigChange", beyond))
}

fn check_blocked(said: &Value, name: &str) {
    let reason = said["reason"].as_str().unwrap_or_else(|| panic!("{said}"));
    assert_eq!(said, &json!({"decision": "block", "reason": reason, "systemMessage": reason}));
    for words in [name, "keeps the settings it has", "start a new session", "`jackline off --for"] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

#[test]
fn settings_without_the_guard_do_not_come_into_a_running_session() {
    let (world, text) = guarded();
    assert_eq!(change(&world, "project_settings", PROJECT), Value::Null);
    write(&world, LOCAL, r#"{"permissions": {"allow": ["Read"]}}"#);
    assert_eq!(change(&world, "local_settings", LOCAL), Value::Null);
    write(&world, LOCAL, r#"{"disableAllHooks": true}"#);
    check_blocked(&change(&world, "local_settings", LOCAL), LOCAL);
    // Whichever file the client asks about, it reads all of them.
    check_blocked(&change(&world, "project_settings", PROJECT), PROJECT);
    fs::remove_file(world.work().join(LOCAL)).unwrap();
    write(&world, PROJECT, "{}");
    check_blocked(&change(&world, "project_settings", PROJECT), PROJECT);
    fs::remove_file(world.work().join(PROJECT)).unwrap();
    check_blocked(&change(&world, "project_settings", PROJECT), PROJECT);
    write(&world, LOCAL, &text);
    assert_eq!(change(&world, "project_settings", PROJECT), Value::Null);
}

#[test]
fn the_settings_of_a_directory_above_do_not_count() {
    let (world, _) = guarded();
    let below = world.work().join("below");
    fs::create_dir(&below).unwrap();
    let mut hook = prepared(&world, JACKLINE, &["hook", "claude", "--sealed"]);
    hook.env("CLAUDE_PROJECT_DIR", &below);
    let input = payload(&world, "ConfigChange", json!({"source": "project_settings"}));
    let run = feed(&mut hook, input.to_string().as_bytes());
    let said = run.stdout.strip_prefix("jackline:1:").unwrap();
    check_blocked(&said.parse().unwrap(), "the settings");
}

#[test]
fn while_the_guard_is_off_settings_may_be_anything() {
    let (world, _) = guarded();
    write(&world, PROJECT, "{}");
    let off = world.jackline(&["off", "--for", "30m", "--why", "moving"]);
    assert_eq!(off.code, Some(0), "{off:?}");
    assert_eq!(change(&world, "project_settings", PROJECT), Value::Null);
}

#[test]
fn a_guard_that_can_write_nothing_still_looks_at_settings() {
    let (world, _) = guarded();
    fs::write(world.home(), "no directory").unwrap();
    assert_eq!(change(&world, "project_settings", PROJECT), Value::Null);
    write(&world, PROJECT, "{}");
    check_blocked(&change(&world, "project_settings", PROJECT), PROJECT);
    // Nobody can say which session it is, and nobody has to.
    let input = json!({"hook_event_name": "ConfigChange"}).to_string();
    let mut hook = prepared(&world, JACKLINE, &["hook", "claude"]);
    check_blocked(&heard(&feed(&mut hook, input.as_bytes())), "the settings");
}
