//! Tests of protected files in a real workspace: when an answer is returned, the files have their
//! original content, whatever a call did to them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use jackline_engine::{Digest, FaultKind};
use jackline_journal::JournalNote;
use serde_json::{Value, json};

use crate::session_events::{
    human_prompt, send_event, send_events, session_started, shell_proposed, stop_proposed,
    tool_finished, tool_proposed, verdict_summaries, verdict_summary, violation_message,
};
use crate::support::CliWorld;

const DEFINITION: &str = "version: 1\n";
const SETTINGS: &str = r#"{ "hooks": {} }"#;

/// A workspace with a definition and client settings, in which an opaque call has just started.
struct ProtectedWorld {
    world: CliWorld,
}

impl ProtectedWorld {
    fn open() -> Self {
        let world = CliWorld::new(DEFINITION);
        fs::create_dir(world.workspace().join(".claude")).unwrap();
        fs::write(world.workspace().join(".claude/settings.json"), SETTINGS).unwrap();
        let workshop = Self { world };
        assert_eq!(
            verdict_summaries(&send_events(&workshop.world, "s", &[session_started()])),
            ["allow"]
        );
        workshop.start_opaque_call("c");
        workshop
    }

    fn start_opaque_call(&self, call: &str) {
        assert_eq!(
            verdict_summary(&send_event(&self.world, "s", shell_proposed(call, "./build.sh"))),
            "allow"
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.workspace().join(name)
    }

    fn text(&self, name: &str) -> String {
        assert!(fs::symlink_metadata(self.path(name)).unwrap().is_file());
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        self.path(name).metadata().unwrap().permissions().mode() & 0o7777
    }

    /// Returns whether the bytes are stored as a blob.
    fn has_blob(&self, bytes: &[u8]) -> bool {
        self.world.home().join("blobs").join(Digest::of(bytes).to_string()).exists()
    }

    /// Ends the call, and checks that the call is blamed for the change of a file.
    fn finish_blamed_call(&self, name: &str) -> Value {
        let verdict = send_event(&self.world, "s", tool_finished("c"));
        assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
        assert_eq!(
            violation_message(&verdict),
            format!(
                "`{name}` was changed while a call was running; the previous content is restored"
            )
        );
        assert_eq!(verdict["violations"][0]["location"], name);
        verdict
    }

    /// Returns the restored file of the last record, and the digest of the changed content if it
    /// was stored.
    fn restored_file(&self) -> (String, Option<Digest>) {
        match self.world.records("s").pop().unwrap().notes.as_slice() {
            [JournalNote::GivenBack { path, kept: stored }] => (path.clone(), *stored),
            other => panic!("{other:?}"),
        }
    }

    /// The session waits for a person and continues with the person. No change is blamed twice.
    fn check_session_continues(&self) {
        let verdicts = send_events(&self.world, "s", &[shell_proposed("d", "ls"), stop_proposed()]);
        assert_eq!(verdicts[0]["decision"], "pause");
        assert_eq!(verdicts[1]["completion"]["result"], "unverified");
        let verdicts = send_events(
            &self.world,
            "s",
            &[human_prompt(), shell_proposed("e", "ls"), tool_finished("e"), stop_proposed()],
        );
        assert_eq!(verdict_summaries(&verdicts), ["allow"; 4]);
        self.world.verify_and_replay("s");
    }
}

#[test]
fn a_changed_definition_is_restored_and_the_change_is_stored() {
    let workshop = ProtectedWorld::open();
    fs::write(workshop.path("jackline.yaml"), "mode: observe\n").unwrap();
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert!(workshop.has_blob(b"mode: observe\n"));
    let digest = Digest::of(b"mode: observe\n");
    assert_eq!(workshop.restored_file(), ("jackline.yaml".to_owned(), Some(digest)));
    let log = workshop.world.jackline(&["log", "s"]).stdout;
    let note =
        format!("`jackline.yaml` was restored; the changed contents are saved as blob {digest}");
    assert!(log.contains(&note), "{log}");
    workshop.check_session_continues();
}

#[test]
fn client_settings_are_restored_with_their_mode() {
    let workshop = ProtectedWorld::open();
    let settings = workshop.path(".claude/settings.json");
    fs::set_permissions(&settings, Permissions::from_mode(0o640)).unwrap();
    fs::write(&settings, "{}").unwrap();
    workshop.finish_blamed_call(".claude/settings.json");
    assert_eq!(workshop.text(".claude/settings.json"), SETTINGS);
    assert_eq!(workshop.mode(".claude/settings.json"), 0o640);
    assert!(workshop.has_blob(b"{}"));
    workshop.check_session_continues();
}

/// What a program does to a file during a call.
type FileChange = fn(&ProtectedWorld, &str);

/// `jackline init` installs in this file by default.
#[test]
fn local_settings_that_lose_the_guard_are_restored() {
    let name = ".claude/settings.local.json";
    let guarded = r#"{ "hooks": { "PreToolUse": [{ "command": "jackline hook claude" }],
        "Stop": [{ "command": "jackline hook claude" }] } }"#;
    let elsewhere = "elsewhere.json";
    let changes: [(&str, FileChange); 7] = [
        ("removed", |workshop, name| fs::remove_file(workshop.path(name)).unwrap()),
        ("emptied", |workshop, name| fs::write(workshop.path(name), "{}").unwrap()),
        ("hooks off", |workshop, name| {
            let text = r#"{ "hooks": "jackline", "disableAllHooks": true }"#;
            fs::write(workshop.path(name), text).unwrap();
        }),
        ("one hook removed", |workshop, name| {
            let text = r#"{ "hooks": { "Stop": [{ "command": "jackline hook claude" }] } }"#;
            fs::write(workshop.path(name), text).unwrap();
        }),
        ("one hook weakened", |workshop, name| {
            let text = workshop.text(name).replacen("jackline hook", "true jackline", 1);
            fs::write(workshop.path(name), text).unwrap();
        }),
        // The client ignores such a file.
        ("no JSON", |workshop, name| {
            let text = format!("{} // mine", workshop.text(name));
            fs::write(workshop.path(name), text).unwrap();
        }),
        ("linked to a copy", |workshop, name| {
            fs::rename(workshop.path(name), workshop.path("elsewhere.json")).unwrap();
            symlink(workshop.path("elsewhere.json"), workshop.path(name)).unwrap();
        }),
    ];
    for (change, make_change) in changes {
        let workshop = ProtectedWorld::open();
        send_event(&workshop.world, "s", tool_finished("c"));
        fs::write(workshop.path(name), guarded).unwrap();
        assert_eq!(
            verdict_summaries(&send_events(&workshop.world, "s", &[human_prompt()])),
            ["allow"]
        );
        workshop.start_opaque_call("c");
        make_change(&workshop, name);
        workshop.finish_blamed_call(name);
        assert_eq!(workshop.text(name), guarded, "{change}");
        let _ = fs::remove_file(workshop.path(elsewhere));
        workshop.check_session_continues();
    }
}

/// Claude Code writes "Yes, and don't ask again" into this file while the call waits.
#[test]
fn local_settings_with_a_choice_of_the_person_stay() {
    let name = ".claude/settings.local.json";
    let workshop = ProtectedWorld::open();
    for text in [
        r#"{ "permissions": { "allow": ["Bash(make)"] } }"#,
        r#"{ "hooks": { "Stop": [{ "command": "jackline hook claude" }] } }"#,
        r#"{"permissions":{"allow":["Read"]},"hooks":{"Stop":[{"command":"jackline hook claude"}]}}"#,
    ] {
        fs::write(workshop.path(name), text).unwrap();
        let verdict = send_event(&workshop.world, "s", tool_finished("c"));
        assert_eq!(verdict_summary(&verdict), "allow", "{text}");
        assert_eq!(workshop.text(name), text);
        workshop.start_opaque_call("c");
    }
    workshop.world.verify_and_replay("s");
}

/// A person installs and removes the guard with our own command while a call is running.
#[test]
fn what_init_writes_for_a_person_stays() {
    let name = ".claude/settings.local.json";
    let workshop = ProtectedWorld::open();
    let init = |more: &[&str]| {
        let mut command = workshop.world.person_command();
        command.env("HOME", workshop.world.root()).args(["init", "claude", "--yes", "--no-canary"]);
        let run = crate::support::run_with_input(command.args(more), b"");
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    init(&[]);
    assert_eq!(verdict_summary(&send_event(&workshop.world, "s", tool_finished("c"))), "allow");
    assert!(workshop.text(name).contains("hook claude"));
    workshop.start_opaque_call("c");
    init(&["--uninstall"]);
    assert_eq!(verdict_summary(&send_event(&workshop.world, "s", tool_finished("c"))), "allow");
    assert!(!workshop.path(name).exists());
}

#[test]
fn two_changed_files_are_both_restored() {
    let workshop = ProtectedWorld::open();
    fs::write(workshop.path("jackline.yaml"), "mode: observe\n").unwrap();
    fs::remove_dir_all(workshop.path(".claude")).unwrap();
    let verdict = send_event(&workshop.world, "s", tool_finished("c"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call changed_during_call");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert_eq!(workshop.text(".claude/settings.json"), SETTINGS);
    workshop.check_session_continues();
}

#[test]
fn a_deleted_definition_is_restored() {
    let workshop = ProtectedWorld::open();
    fs::remove_file(workshop.path("jackline.yaml")).unwrap();
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert_eq!(workshop.restored_file(), ("jackline.yaml".to_owned(), None));
    workshop.check_session_continues();
}

#[test]
fn a_link_is_replaced_and_its_target_is_not_changed() {
    let workshop = ProtectedWorld::open();
    let elsewhere = workshop.world.root().join("elsewhere.yaml");
    fs::write(&elsewhere, "mode: observe\n").unwrap();
    fs::remove_file(workshop.path("jackline.yaml")).unwrap();
    symlink(&elsewhere, workshop.path("jackline.yaml")).unwrap();
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mode: observe\n");
    assert!(workshop.has_blob(elsewhere.to_str().unwrap().as_bytes()));
    workshop.check_session_continues();
}

/// Even a link to a copy with the same content: its target could change later.
#[test]
fn a_link_to_a_copy_is_replaced_too() {
    let workshop = ProtectedWorld::open();
    fs::rename(workshop.path("jackline.yaml"), workshop.path("copy")).unwrap();
    symlink("copy", workshop.path("jackline.yaml")).unwrap();
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    workshop.check_session_continues();
}

#[test]
fn a_directory_is_moved_aside() {
    let workshop = ProtectedWorld::open();
    fs::remove_file(workshop.path("jackline.yaml")).unwrap();
    fs::create_dir(workshop.path("jackline.yaml")).unwrap();
    fs::write(workshop.path("jackline.yaml/work"), "of an hour").unwrap();
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert_eq!(workshop.text("jackline.yaml.replaced-1/work"), "of an hour");
    workshop.check_session_continues();
}

#[test]
fn a_pipe_does_not_block_the_restore() {
    let workshop = ProtectedWorld::open();
    fs::remove_file(workshop.path("jackline.yaml")).unwrap();
    assert!(Command::new("mkfifo").arg(workshop.path("jackline.yaml")).status().unwrap().success());
    workshop.finish_blamed_call("jackline.yaml");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    workshop.check_session_continues();
}

#[test]
fn settings_that_a_call_created_are_removed_and_stored() {
    let workshop = ProtectedWorld::open();
    fs::create_dir(workshop.path(".gemini")).unwrap();
    fs::write(workshop.path(".gemini/settings.json"), "new").unwrap();
    workshop.finish_blamed_call(".gemini/settings.json");
    assert!(!workshop.path(".gemini/settings.json").exists());
    assert!(workshop.has_blob(b"new"));
    workshop.check_session_continues();
}

#[test]
fn a_change_is_detected_at_the_next_event_of_any_kind() {
    for next in [shell_proposed("d", "ls"), stop_proposed(), human_prompt(), session_started()] {
        let workshop = ProtectedWorld::open();
        fs::write(workshop.path("jackline.yaml"), "mode: observe\n").unwrap();
        let verdict = send_event(&workshop.world, "s", next);
        assert!(verdict_summary(&verdict).contains("changed_during_call"), "{verdict}");
        assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
        workshop.world.verify_and_replay("s");
    }
}

#[test]
fn a_person_may_change_protected_files_between_calls() {
    let workshop = ProtectedWorld::open();
    send_event(&workshop.world, "s", tool_finished("c"));
    let change = |text: &str| fs::write(workshop.path(".claude/settings.json"), text).unwrap();
    change("{ \"theirs\": 1 }");
    fs::write(workshop.path("jackline.yaml"), "limits: { steps: 9 }\n").unwrap();
    assert_eq!(verdict_summaries(&send_events(&workshop.world, "s", &[human_prompt()])), ["allow"]);
    // From here on, the version of the person is the one that is restored.
    workshop.start_opaque_call("d");
    change("{}");
    let verdict = send_event(&workshop.world, "s", tool_finished("d"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
    assert_eq!(workshop.text(".claude/settings.json"), "{ \"theirs\": 1 }");
    assert_eq!(workshop.text("jackline.yaml"), "limits: { steps: 9 }\n");
    workshop.check_session_continues();
}

#[test]
fn a_change_during_a_read_is_a_change_by_a_person() {
    let world = CliWorld::new(DEFINITION);
    let read = json!({"file_path": "jackline.yaml"});
    send_events(&world, "s", &[session_started(), tool_proposed("r", "Read", &read)]);
    fs::write(world.workspace().join("jackline.yaml"), "limits: { steps: 9 }\n").unwrap();
    assert_eq!(verdict_summary(&send_event(&world, "s", tool_finished("r"))), "allow");
    assert_eq!(
        fs::read_to_string(world.workspace().join("jackline.yaml")).unwrap(),
        "limits: { steps: 9 }\n"
    );
    world.verify_and_replay("s");
}

/// Jackline does not write through a directory that became a link. The record states that the file
/// was not restored.
#[test]
fn a_file_that_cannot_be_restored_is_recorded() {
    let workshop = ProtectedWorld::open();
    let moved = workshop.world.root().join("moved");
    fs::rename(workshop.path(".claude"), &moved).unwrap();
    symlink(&moved, workshop.path(".claude")).unwrap();
    fs::write(moved.join("settings.json"), "{}").unwrap();
    let verdict = send_event(&workshop.world, "s", tool_finished("c"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
    assert_eq!(
        violation_message(&verdict),
        "`.claude/settings.json` was changed while a call was running; the previous content can't \
         be restored"
    );
    assert_eq!(fs::read_to_string(moved.join("settings.json")).unwrap(), "{}");
    match workshop.world.records("s").pop().unwrap().notes.as_slice() {
        [JournalNote::Fault { kind, reason }] => {
            assert_eq!(*kind, FaultKind::Protected);
            let link = workshop.path(".claude").display().to_string();
            assert_eq!(
                reason,
                &format!(
                    "can't restore `.claude/settings.json`: `{link}` is now a link to another \
                     path"
                )
            );
        }
        other => panic!("{other:?}"),
    }
    workshop.world.verify_and_replay("s");
}

/// A realistic case: a script that makes several changes at once.
#[test]
fn the_changes_of_a_script_are_reverted() {
    let workshop = ProtectedWorld::open();
    let script = "sed -i s/1/2/ jackline.yaml; rm -r .claude; ln -s /tmp .cursor; \
                  mkdir -p .gemini; echo {} > .gemini/settings.json";
    let status = workshop.world.command("sh").args(["-c", script]).status().unwrap();
    assert!(status.success());
    let verdict = send_event(&workshop.world, "s", tool_finished("c"));
    assert_eq!(verdict["violations"].as_array().unwrap().len(), 3, "{verdict}");
    assert_eq!(workshop.text("jackline.yaml"), DEFINITION);
    assert_eq!(workshop.text(".claude/settings.json"), SETTINGS);
    assert!(!workshop.path(".gemini/settings.json").exists());
    workshop.check_session_continues();
}
