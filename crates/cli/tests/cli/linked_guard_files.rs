//! Tests of settings and definitions that are symbolic links: the link and its target are protected.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::session_events::{
    send_event, send_events, session_started, shell_proposed, tool_finished, verdict_summary,
    violation_message,
};
use crate::support::CliWorld;

const SETTINGS: &str =
    r#"{"hooks": {"PreToolUse": [{"hooks": [{"command": "jackline hook claude"}]}]}}"#;

/// A workspace whose settings are a link to a file outside of it.
struct LinkedSettings {
    world: CliWorld,
    target: PathBuf,
}

impl LinkedSettings {
    fn open(mode: &str) -> Self {
        let world = CliWorld::new(&format!("version: 1\nmode: {mode}\n"));
        let target = world.root().join("dot/settings.json");
        fs::create_dir(world.root().join("dot")).unwrap();
        fs::write(&target, SETTINGS).unwrap();
        fs::create_dir(world.workspace().join(".claude")).unwrap();
        symlink(&target, world.workspace().join(".claude/settings.json")).unwrap();
        send_events(&world, "s", &[session_started()]);
        Self { world, target }
    }

    fn decision(&self, call: &str, line: &str) -> (String, bool) {
        let verdict = send_event(&self.world, "s", shell_proposed(call, line));
        (verdict["decision"].as_str().unwrap().to_owned(), verdict["enforced"] == true)
    }
}

#[test]
fn the_target_of_linked_settings_is_protected_in_both_modes() {
    for mode in ["enforce", "observe"] {
        let linked = LinkedSettings::open(mode);
        let (target, dot) = (linked.target.display(), linked.world.root().join("dot"));
        for (at, line) in [
            format!("echo {{}} > {target}"),
            format!("rm {target}"),
            format!("rm -rf {}", dot.display()),
            "rm .claude/settings.json".to_owned(),
            "echo {} > .claude/settings.json".to_owned(),
        ]
        .iter()
        .enumerate()
        {
            let decision = linked.decision(&format!("c{at}"), line);
            assert_eq!(decision, ("deny".to_owned(), true), "{mode}: {line}");
        }
    }
}

#[test]
fn a_linked_directory_of_settings_is_not_removed() {
    for mode in ["enforce", "observe"] {
        let world = CliWorld::new(&format!("version: 1\nmode: {mode}\n"));
        let dot = world.root().join("dot");
        fs::create_dir(&dot).unwrap();
        fs::write(dot.join("settings.json"), SETTINGS).unwrap();
        symlink(&dot, world.workspace().join(".claude")).unwrap();
        send_events(&world, "s", &[session_started()]);
        for (at, line) in ["rm .claude", "mv .claude x", "ln -sfn /tmp .claude"].iter().enumerate()
        {
            let verdict = send_event(&world, "s", shell_proposed(&format!("c{at}"), line));
            assert_eq!(verdict["enforced"], true, "{mode}: {line}: {verdict}");
            assert_eq!(verdict["decision"], "deny", "{mode}: {line}");
        }
    }
}

#[test]
fn the_target_of_linked_settings_is_restored() {
    let linked = LinkedSettings::open("enforce");
    assert_eq!(linked.decision("c", "./build.sh").0, "allow");
    fs::write(&linked.target, "{}").unwrap();
    let verdict = send_event(&linked.world, "s", tool_finished("c"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
    assert!(violation_message(&verdict).ends_with("the previous content is restored"));
    assert_eq!(fs::read_to_string(&linked.target).unwrap(), SETTINGS);
    let link = linked.world.workspace().join(".claude/settings.json");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    linked.world.verify_and_replay("s");
}

#[test]
fn a_new_link_is_not_followed_when_settings_are_restored() {
    let linked = LinkedSettings::open("enforce");
    assert_eq!(linked.decision("c", "./build.sh").0, "allow");
    let link = linked.world.workspace().join(".claude/settings.json");
    let other = linked.world.root().join("other");
    fs::write(&other, "{}").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    let verdict = send_event(&linked.world, "s", tool_finished("c"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
    assert_eq!(fs::read_to_string(&link).unwrap(), SETTINGS);
    assert_eq!(fs::read_to_string(&other).unwrap(), "{}");
}

#[test]
fn in_observe_mode_a_linked_definition_is_not_removed() {
    let world = CliWorld::new("version: 1\nmode: observe\n");
    let definition = world.workspace().join("jackline.yaml");
    fs::create_dir(world.workspace().join("cfg")).unwrap();
    fs::rename(&definition, world.workspace().join("cfg/j.yaml")).unwrap();
    symlink("cfg/j.yaml", &definition).unwrap();
    send_events(&world, "s", &[session_started()]);
    let lines = [
        "rm jackline.yaml",
        "echo 'version: 1' > jackline.yaml",
        "mv jackline.yaml x",
        "ln -sf other jackline.yaml",
        "rm cfg/j.yaml",
    ];
    for (at, line) in lines.iter().enumerate() {
        let verdict = send_event(&world, "s", shell_proposed(&format!("c{at}"), line));
        assert_eq!(verdict["decision"], "deny", "{line}");
        assert_eq!(verdict["enforced"], true, "{line}");
    }
    // A program that removes the link is reported.
    send_event(&world, "s", shell_proposed("d", "./build.sh"));
    fs::remove_file(&definition).unwrap();
    let verdict = send_event(&world, "s", tool_finished("d"));
    assert!(violation_message(&verdict).starts_with("`jackline.yaml` was removed"), "{verdict}");
}
