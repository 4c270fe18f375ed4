//! Tests with full, read-only and missing disks, and of the files on a good disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use jackline_engine::FaultKind;
use jackline_journal::JournalNote;
use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

fn event(n: usize, id: bool, bytes: usize) -> String {
    let id = if id { format!(r#""id":"e{n}","#) } else { String::new() };
    let text = "x".repeat(bytes);
    format!(
        r#"{{"session":"s",{id}"event":"tool_proposed","call":"c{n}","tool":"t","args":{{"a":"{text}"}}}}"#
    )
}

/// Runs `jackline stdio` with a file size limit, in blocks of 512 bytes.
fn run_with_file_limit(world: &CliWorld, blocks: u32, lines: &[String]) -> CliOutput {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} stdio");
    let input = lines.join("\n");
    run_with_input(world.command("sh").args(["-c", &script]), input.as_bytes())
}

/// The journal contains exactly the verdicts that were decided, with the same bytes and in the same
/// order.
fn check_recorded(world: &CliWorld, run: &CliOutput) {
    let decided: Vec<&str> =
        run.stdout.lines().filter(|line| !line.contains(r#""error":{"#)).collect();
    let recorded: Vec<String> =
        world.records("s").iter().map(|record| record.verdict_json.clone()).collect();
    assert_eq!(recorded, decided);
}

#[test]
fn a_full_disk_denies_loses_nothing_and_recovers() {
    let world = CliWorld::new("");
    let lines: Vec<String> = (0..40).map(|n| event(n, false, 2000)).collect();
    let run = run_with_file_limit(&world, 64, &lines);
    assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""));
    let answers = run.decisions();
    assert_eq!(answers.len(), lines.len());
    assert_eq!((answers[0].as_str(), answers[39].as_str()), ("allow", "deny store_full"));
    let denied: Vec<Value> =
        run.json_lines().into_iter().filter(|verdict| verdict["decision"] == "deny").collect();
    for verdict in &denied {
        assert_eq!(verdict["violations"][0]["type"], "guard_fault");
        let message = verdict["violations"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("the guard is broken, not the call: "), "{message}");
        assert_eq!(
            verdict["violations"][0]["correction"],
            "free some space, then send the event again; a person can check with `jackline status`, or turn the guard off for a while with `jackline off \
             --for 30m --why …`"
        );
    }
    check_recorded(&world, &run);
    world.verify_and_replay("s");

    // With free space the session continues.
    let records = world.records("s").len();
    let run = world.stdio(&[&event(40, false, 2000)]);
    assert_eq!((run.decisions(), run.code), (vec!["allow".to_owned()], Some(0)));
    assert_eq!(world.records("s").len(), records + 1);
    world.verify_and_replay("s");
}

#[test]
fn the_next_record_notes_that_the_disk_was_full() {
    let world = CliWorld::new("");
    // One event too large for the disk between two that fit.
    let lines = [event(0, false, 10), event(1, false, 60_000), event(2, false, 10)];
    let run = run_with_file_limit(&world, 64, &lines);
    assert_eq!(run.decisions(), ["allow", "deny store_full", "allow"]);
    check_recorded(&world, &run);
    let notes = &world.records("s")[1].notes;
    let full = |note: &JournalNote| matches!(note, JournalNote::Fault { kind, .. } if *kind == FaultKind::StoreFull);
    assert!(notes.iter().any(full), "{notes:?}");
    world.verify_and_replay("s");
}

/// A command that pauses or stops an agent must not advise to turn the guard off.
#[test]
fn a_person_is_told_to_use_a_control_file_if_the_disk_is_full() {
    let world = CliWorld::new("");
    let lines: Vec<String> = (0..40).map(|n| event(n, false, 2000)).collect();
    run_with_file_limit(&world, 64, &lines);
    for (command, file) in [("stop", ".jackline/STOP"), ("pause", ".jackline/PAUSE")] {
        let why = "x".repeat(9000);
        let script = format!("trap '' XFSZ; ulimit -f 32; exec {JACKLINE} {command} s --why {why}");
        let run = run_with_input(world.command("sh").args(["-c", &script]), b"");
        let advice = format!("; `touch {file}` in the workspace has the same effect");
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.stderr.contains(&advice) && !run.stderr.contains("jackline off"), "{run:?}");
    }
}

/// The tables next to the journal are caches. If they cannot grow, an event that the journal
/// already recorded as allowed must not be denied.
#[test]
fn a_denial_for_a_full_disk_means_that_nothing_was_recorded() {
    let world = CliWorld::new("");
    let lines: Vec<String> = (0..12).map(|n| event(n, true, 10)).collect();
    let run = run_with_file_limit(&world, 24, &lines);
    check_recorded(&world, &run);
    world.verify_and_replay("s");
}

#[test]
fn an_event_whose_payload_does_not_fit_is_denied() {
    let world = CliWorld::new("");
    let run = run_with_file_limit(&world, 64, &[event(0, false, 200_000), event(1, false, 10)]);
    assert_eq!(run.decisions(), ["deny store_full", "allow"]);
    check_recorded(&world, &run);
    let blobs = world.home().join("blobs");
    // The one blob is the content of the definition.
    assert_eq!(fs::read_dir(blobs).unwrap().count(), 1, "no partial payload may remain");
    world.verify_and_replay("s");
}

fn check_unusable_home(home: &Path, kinds: &[&str]) {
    let world = CliWorld::new("");
    let line = event(0, true, 10);
    let input = format!("{line}\n{line}\n");
    let run = run_with_input(
        world.command(JACKLINE).env("JACKLINE_HOME", home).arg("stdio"),
        input.as_bytes(),
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""), "{}", home.display());
    let verdicts = run.json_lines();
    assert_eq!(verdicts.len(), 2);
    for verdict in &verdicts {
        assert_eq!(verdict["decision"], "deny");
        assert_eq!(verdict["violations"][0]["type"], "guard_fault");
        let kind = verdict["error"]["kind"].as_str().unwrap();
        assert!(kinds.contains(&kind), "{kind}: {verdict}");
    }
    assert_eq!(world.file_tree(), ["work", "work/jackline.yaml"]);
}

#[test]
fn a_state_home_that_cannot_be_created_denies_every_call() {
    let other = CliWorld::new("");
    // A directory cannot exist below a file, not even for root.
    check_unusable_home(&other.workspace().join("jackline.yaml").join("home"), &["store"]);
    check_unusable_home(Path::new("/proc/jackline-nowhere"), &["store", "store_read_only"]);
}

/// Root may ignore file permissions, but no process may write to sysfs.
#[test]
fn a_read_only_state_home_is_reported_as_read_only() {
    let sysfs = Path::new("/sys/kernel");
    assert!(sysfs.is_dir(), "this test needs a file system that no process can write to");
    check_unusable_home(&sysfs.join("jackline-home"), &["store_read_only"]);
}

#[test]
fn state_files_are_private() {
    let world = CliWorld::new("");
    let run = run_with_input(
        world.command("sh").args(["-c", &format!("umask 000; exec {JACKLINE} stdio")]),
        format!("{}\n{}\n", event(0, true, 100_000), event(1, true, 10)).as_bytes(),
    );
    assert_eq!(run.decisions(), ["allow", "allow"]);
    let tree = world.file_tree();
    assert!(tree.iter().any(|path| path.starts_with("home/blobs/")), "{tree:?}");
    let wrong_modes: Vec<String> = tree
        .iter()
        .filter(|path| path.starts_with("home"))
        .filter_map(|path| {
            let metadata = fs::metadata(world.root().join(path)).unwrap();
            let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
            let mode = metadata.permissions().mode() & 0o777;
            (mode != expected).then(|| format!("{path} has mode {mode:o}"))
        })
        .collect();
    assert_eq!(wrong_modes, [""; 0]);
}

/// The definition, 178 KB, is stored once for all sessions. A session stores little more than its
/// calls.
#[test]
fn a_session_of_100_calls_takes_at_most_140_kb() {
    let world = CliWorld::new("extends: [coding-agent]\n");
    let call = |n: usize| {
        let (id, line) = (format!("c{n}"), format!("git diff --stat src/part_{n}.rs"));
        let proposed = json!({"session": "s", "event": "tool_proposed", "call": id,
            "tool": "Bash", "args": {"command": line}});
        let finished = json!({"session": "s", "event": "tool_finished", "call": id,
            "status": "ok", "result": "three files changed"});
        [proposed.to_string(), finished.to_string()]
    };
    let lines: Vec<String> = (0..100).flat_map(call).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(world.stdio(&lines).decisions(), vec!["allow"; lines.len()]);
    let own = |entry: fs::DirEntry| {
        let metadata = entry.metadata().unwrap();
        if metadata.nlink() == 1 { metadata.blocks() * 512 } else { 0 }
    };
    let files = fs::read_dir(world.session_directory("s")).unwrap();
    let bytes: u64 = files.map(|entry| own(entry.unwrap())).sum();
    assert!(bytes <= 140_000, "{bytes} bytes");
}
