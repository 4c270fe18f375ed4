//! Tests of the `ConfigChange` hook: a running session keeps its guard when the settings change.

use std::fs;

use jackline_clients::claude::settings::{TESTED_VERSION, add_hooks, hooks_for};
use jackline_clients::hook_line::quote_shell_word;
use serde_json::{Value, json};

use crate::hook_support::{RULES, command_in_hook_environment, hook_answer, parse_answer, payload};
use crate::support::{CliWorld, JACKLINE, run_with_input};

const PROJECT: &str = ".claude/settings.json";
const LOCAL: &str = ".claude/settings.local.json";

fn write_settings(world: &CliWorld, name: &str, text: &str) {
    fs::create_dir_all(world.workspace().join(".claude")).unwrap();
    fs::write(world.workspace().join(name), text).unwrap();
}

fn guarded_world() -> (CliWorld, String) {
    let world = CliWorld::new(RULES);
    let text = add_hooks("", &hooks_for(TESTED_VERSION, &quote_shell_word(JACKLINE))).unwrap();
    write_settings(&world, PROJECT, &text);
    (world, text)
}

/// Returns the answer to a change of a settings file.
fn config_change(world: &CliWorld, source: &str, name: &str) -> Value {
    let extra = json!({"source": source, "file_path": world.workspace().join(name)});
    hook_answer(world, &payload(world, "ConfigChange", extra))
}

fn check_blocked(answer: &Value, name: &str) {
    let reason = answer["reason"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(answer, &json!({"decision": "block", "reason": reason, "systemMessage": reason}));
    for fragment in
        [name, "keeps its current settings", "start a new session", "`jackline off --for"]
    {
        assert!(reason.contains(fragment), "{fragment}: {reason}");
    }
}

#[test]
fn settings_without_the_guard_are_rejected_in_a_running_session() {
    let (world, text) = guarded_world();
    assert_eq!(config_change(&world, "project_settings", PROJECT), Value::Null);
    write_settings(&world, LOCAL, r#"{"permissions": {"allow": ["Read"]}}"#);
    assert_eq!(config_change(&world, "local_settings", LOCAL), Value::Null);
    write_settings(&world, LOCAL, r#"{"disableAllHooks": true}"#);
    check_blocked(&config_change(&world, "local_settings", LOCAL), LOCAL);
    // The hook reads all settings files, independent of the file that changed.
    check_blocked(&config_change(&world, "project_settings", PROJECT), PROJECT);
    fs::remove_file(world.workspace().join(LOCAL)).unwrap();
    write_settings(&world, PROJECT, "{}");
    check_blocked(&config_change(&world, "project_settings", PROJECT), PROJECT);
    fs::remove_file(world.workspace().join(PROJECT)).unwrap();
    check_blocked(&config_change(&world, "project_settings", PROJECT), PROJECT);
    write_settings(&world, LOCAL, &text);
    assert_eq!(config_change(&world, "project_settings", PROJECT), Value::Null);
}

#[test]
fn settings_of_a_parent_directory_do_not_count() {
    let (world, _) = guarded_world();
    let below = world.workspace().join("below");
    fs::create_dir(&below).unwrap();
    let mut hook = command_in_hook_environment(&world, JACKLINE, &["hook", "claude", "--sealed"]);
    hook.env("CLAUDE_PROJECT_DIR", &below);
    let input = payload(&world, "ConfigChange", json!({"source": "project_settings"}));
    let run = run_with_input(&mut hook, input.to_string().as_bytes());
    let answer = run.stdout.strip_prefix("jackline:1:").unwrap();
    check_blocked(&answer.parse().unwrap(), "the settings");
}

#[test]
fn settings_without_the_guard_are_accepted_while_the_guard_is_off() {
    let (world, _) = guarded_world();
    write_settings(&world, PROJECT, "{}");
    let off = world.jackline(&["off", "--for", "30m", "--why", "moving"]);
    assert_eq!(off.code, Some(0), "{off:?}");
    assert_eq!(config_change(&world, "project_settings", PROJECT), Value::Null);
}

#[test]
fn a_guard_without_a_state_home_still_checks_settings() {
    let (world, _) = guarded_world();
    fs::write(world.home(), "no directory").unwrap();
    assert_eq!(config_change(&world, "project_settings", PROJECT), Value::Null);
    write_settings(&world, PROJECT, "{}");
    check_blocked(&config_change(&world, "project_settings", PROJECT), PROJECT);
    // The check does not need a session id.
    let input = json!({"hook_event_name": "ConfigChange"}).to_string();
    let mut hook = command_in_hook_environment(&world, JACKLINE, &["hook", "claude"]);
    check_blocked(&parse_answer(&run_with_input(&mut hook, input.as_bytes())), "the settings");
}
