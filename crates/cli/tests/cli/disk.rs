//! Disks that are full, read-only or not there, and what is left on a good one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use jackline_engine::FaultKind;
use jackline_journal::Note;
use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

fn event(n: usize, id: bool, bytes: usize) -> String {
    let id = if id { format!(r#""id":"e{n}","#) } else { String::new() };
    let text = "x".repeat(bytes);
    format!(
        r#"{{"session":"s",{id}"event":"tool_proposed","call":"c{n}","tool":"t","args":{{"a":"{text}"}}}}"#
    )
}

/// Runs `jackline stdio` where no file may grow beyond some blocks of 512 bytes.
fn limited(world: &World, blocks: u32, lines: &[String]) -> Run {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} stdio");
    let input = lines.join("\n");
    feed(world.command("sh").args(["-c", &script]), input.as_bytes())
}

/// The verdicts that were decided are in the journal, with the same bytes and
/// in the same order; those that were not are nowhere.
fn check_recorded(world: &World, run: &Run) {
    let decided: Vec<&str> =
        run.stdout.lines().filter(|line| !line.contains(r#""error":{"#)).collect();
    let recorded: Vec<String> =
        world.records("s").iter().map(|record| record.verdict_json.clone()).collect();
    assert_eq!(recorded, decided);
}

#[test]
fn a_full_disk_denies_loses_nothing_and_recovers() {
    let world = World::new("");
    let lines: Vec<String> = (0..40).map(|n| event(n, false, 2000)).collect();
    let run = limited(&world, 64, &lines);
    assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""));
    let answers = run.answers();
    assert_eq!(answers.len(), lines.len());
    assert_eq!((answers[0].as_str(), answers[39].as_str()), ("allow", "deny store_full"));
    let denied: Vec<Value> =
        run.verdicts().into_iter().filter(|verdict| verdict["decision"] == "deny").collect();
    for verdict in &denied {
        assert_eq!(verdict["violations"][0]["type"], "guard_fault");
        let message = verdict["violations"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("the guard is broken, not the call: "), "{message}");
        assert_eq!(
            verdict["violations"][0]["correction"],
            "free some space, then send it again; a person can look with `jackline status`, or pass for a while with `jackline off \
             --for 30m --why …`"
        );
    }
    check_recorded(&world, &run);
    world.prove("s");

    // With room again the session goes on.
    let records = world.records("s").len();
    let run = world.stdio(&[&event(40, false, 2000)]);
    assert_eq!((run.answers(), run.code), (vec!["allow".to_owned()], Some(0)));
    assert_eq!(world.records("s").len(), records + 1);
    world.prove("s");
}

#[test]
fn the_first_record_with_room_again_says_that_there_was_none() {
    let world = World::new("");
    // One event too large for the disk between two that fit.
    let lines = [event(0, false, 10), event(1, false, 60_000), event(2, false, 10)];
    let run = limited(&world, 64, &lines);
    assert_eq!(run.answers(), ["allow", "deny store_full", "allow"]);
    check_recorded(&world, &run);
    let notes = &world.records("s")[1].notes;
    let full =
        |note: &Note| matches!(note, Note::Fault { kind, .. } if *kind == FaultKind::StoreFull);
    assert!(notes.iter().any(full), "{notes:?}");
    world.prove("s");
}

/// The tables beside the journal are caches: where they can't grow, that is no
/// reason to deny what the journal has already recorded as allowed.
/// Who wants to hold an agent is not told to open the guard.
#[test]
fn a_session_is_held_by_a_file_where_the_disk_is_full() {
    let world = World::new("");
    let lines: Vec<String> = (0..40).map(|n| event(n, false, 2000)).collect();
    limited(&world, 64, &lines);
    for (command, file) in [("stop", ".jackline/STOP"), ("pause", ".jackline/PAUSE")] {
        let why = "x".repeat(9000);
        let script = format!("trap '' XFSZ; ulimit -f 32; exec {JACKLINE} {command} s --why {why}");
        let run = feed(world.command("sh").args(["-c", &script]), b"");
        let advice = format!("; `touch {file}` in the workspace does it without a journal");
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.stderr.contains(&advice) && !run.stderr.contains("jackline off"), "{run:?}");
    }
}

#[test]
fn a_denial_for_a_full_disk_means_that_nothing_was_recorded() {
    let world = World::new("");
    let lines: Vec<String> = (0..12).map(|n| event(n, true, 10)).collect();
    let run = limited(&world, 24, &lines);
    check_recorded(&world, &run);
    world.prove("s");
}

#[test]
fn a_payload_that_finds_no_room_denies_its_event() {
    let world = World::new("");
    let run = limited(&world, 64, &[event(0, false, 200_000), event(1, false, 10)]);
    assert_eq!(run.answers(), ["deny store_full", "allow"]);
    check_recorded(&world, &run);
    let blobs = world.home().join("blobs");
    // The one that is there keeps what the definition holds.
    assert_eq!(fs::read_dir(blobs).unwrap().count(), 1, "half a payload was left");
    world.prove("s");
}

fn check_unusable(home: &Path, kinds: &[&str]) {
    let world = World::new("");
    let line = event(0, true, 10);
    let input = format!("{line}\n{line}\n");
    let run =
        feed(world.command(JACKLINE).env("JACKLINE_HOME", home).arg("stdio"), input.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (Some(3), ""), "{}", home.display());
    let verdicts = run.verdicts();
    assert_eq!(verdicts.len(), 2);
    for verdict in &verdicts {
        assert_eq!(verdict["decision"], "deny");
        assert_eq!(verdict["violations"][0]["type"], "guard_fault");
        let kind = verdict["error"]["kind"].as_str().unwrap();
        assert!(kinds.contains(&kind), "{kind}: {verdict}");
    }
    assert_eq!(world.tree(), ["work", "work/jackline.yaml"]);
}

#[test]
fn a_state_home_that_cannot_be_made_denies() {
    let other = World::new("");
    // Below a file there is no directory, not even for root.
    check_unusable(&other.work().join("jackline.yaml").join("home"), &["store"]);
    check_unusable(Path::new("/proc/jackline-nowhere"), &["store", "store_read_only"]);
}

/// Root may write where permissions say no, but nobody may write to sysfs.
#[test]
fn a_read_only_state_home_denies_and_is_named_as_such() {
    let sysfs = Path::new("/sys/kernel");
    assert!(sysfs.is_dir(), "this test needs a file system that nobody can write to");
    check_unusable(&sysfs.join("jackline-home"), &["store_read_only"]);
}

#[test]
fn what_is_written_is_private() {
    let world = World::new("");
    let run = feed(
        world.command("sh").args(["-c", &format!("umask 000; exec {JACKLINE} stdio")]),
        format!("{}\n{}\n", event(0, true, 100_000), event(1, true, 10)).as_bytes(),
    );
    assert_eq!(run.answers(), ["allow", "allow"]);
    let tree = world.tree();
    assert!(tree.iter().any(|path| path.starts_with("home/blobs/")), "{tree:?}");
    let open: Vec<String> = tree
        .iter()
        .filter(|path| path.starts_with("home"))
        .filter_map(|path| {
            let metadata = fs::metadata(world.root().join(path)).unwrap();
            let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
            let mode = metadata.permissions().mode() & 0o777;
            (mode != expected).then(|| format!("{path} has mode {mode:o}"))
        })
        .collect();
    assert_eq!(open, [""; 0]);
}

/// The definition, 178 KB, is stored once for all sessions: a session holds its calls and little else.
#[test]
fn a_session_of_100_calls_takes_at_most_140_kb() {
    let world = World::new("extends: [coding-agent]\n");
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
    assert_eq!(world.stdio(&lines).answers(), vec!["allow"; lines.len()]);
    let own = |entry: fs::DirEntry| {
        let metadata = entry.metadata().unwrap();
        if metadata.nlink() == 1 { metadata.blocks() * 512 } else { 0 }
    };
    let files = fs::read_dir(world.directory("s")).unwrap();
    let bytes: u64 = files.map(|entry| own(entry.unwrap())).sum();
    assert!(bytes <= 140_000, "{bytes} bytes");
}
