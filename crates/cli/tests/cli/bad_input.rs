//! Bad input for `jackline stdio`: each case gets a typed answer, nothing panics, and the stream
//! continues.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use jackline_engine::{Digest, SessionLocation};
use jackline_journal::{JournalNote, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{CliWorld, JACKLINE, StdioSession, run_with_input};

/// The state that the runtime stores next to a journal.
#[derive(Serialize, Deserialize)]
struct SavedSession {
    session: String,
    checksum: Digest,
    definition: Digest,
    is_reloaded: bool,
    place: SessionLocation,
    state: Vec<u8>,
}

const STOP: &str = r#"{"session":"s","event":"stop_proposed"}"#;

fn refused_line(line: u64, kind: &str, reason: &str) -> Value {
    json!({"v": 1, "decision": "deny", "enforced": true, "error": {"kind": kind,
        "reason": format!("line {line} is not an event: {reason}"), "line": line}})
}

fn tool_proposed(call: &str) -> String {
    format!(r#"{{"session":"s","event":"tool_proposed","call":"{call}","tool":"t","args":{{}}}}"#)
}

fn tool_finished(call: &str) -> String {
    format!(r#"{{"session":"s","event":"tool_finished","call":"{call}","status":"ok"}}"#)
}

/// Returns the subtype of the first violation of a verdict.
fn subtype(verdict: &Value) -> &str {
    verdict["violations"][0]["subtype"].as_str().unwrap_or("none")
}

#[test]
fn an_argument_of_50_mb_is_decided_and_stored_as_a_blob() {
    let world = CliWorld::new("");
    let content = "x".repeat(50_000_000);
    let line = format!(
        r#"{{"session":"s","event":"tool_proposed","call":"c","tool":"write_file","args":{{"path":"a","content":"{content}"}}}}"#
    );
    let run = world.stdio(&[&line]);
    assert_eq!(
        (run.code, run.json_lines()),
        (
            Some(0),
            vec![
                json!({"v": 1, "session": "s", "seq": 1, "step": 1, "call": "c", "decision": "allow"})
            ]
        )
    );
    assert!(fs::metadata(world.journal_path("s")).unwrap().len() < 10_000);
    let blob = world.home().join("blobs").join(Digest::of(content.as_bytes()).to_string());
    assert_eq!(fs::metadata(blob).unwrap().len(), 50_000_000);
    world.verify_and_replay("s");
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_stream_continues() {
    let world = CliWorld::new("");
    let limit = 64 << 20;
    let mut input = vec![b'x'; limit + 1];
    input.extend_from_slice(format!("\n{STOP}\n").as_bytes());
    let run = world.stdio_bytes(&input);
    let reason = format!("it has {} bytes; the limit is {limit}", limit + 1);
    assert_eq!(
        run.json_lines(),
        [
            refused_line(1, "too_long", &reason),
            json!({"v": 1, "session": "s", "seq": 1, "step": 0, "decision": "allow"})
        ]
    );
    assert_eq!(run.code, Some(2));
    world.verify_and_replay("s");
}

/// The call stays open, so the client can report a shorter result for it.
#[test]
fn a_result_that_is_too_long_leaves_its_call_open_and_uses_no_memory() {
    let world = CliWorld::new("");
    let limit = 64 << 20;
    let (head, tail) =
        (r#"{"session":"s","event":"tool_finished","call":"c1","status":"ok","result":""#, "\"}");
    let long = |bytes: usize| format!("{head}{}{tail}", "x".repeat(bytes));
    let (just_above, hundred) =
        (long(limit + 1 - head.len() - tail.len()), long(100_000_000 - head.len() - tail.len()));
    let lines = [
        &tool_proposed("c1"),
        &just_above,
        &hundred,
        &tool_finished("c1"),
        &tool_proposed("c2"),
        &tool_finished("c2"),
    ];
    let mut input: Vec<u8> = Vec::with_capacity(200_000_000);
    for line in lines {
        input.extend_from_slice(line.as_bytes());
        input.push(b'\n');
    }
    // The longest allowed line fits twice. A longer line is not buffered at all.
    let mut command = world.command("sh");
    command.args(["-c", "ulimit -v 400000; exec \"$0\" stdio --session s", JACKLINE]);
    let run = run_with_input(&mut command, &input);
    let reason = |bytes: usize| format!("it has {bytes} bytes; the limit is {limit}");
    let verdicts = run.json_lines();
    assert_eq!(verdicts[1], refused_line(2, "too_long", &reason(limit + 1)));
    assert_eq!(verdicts[2], refused_line(3, "too_long", &reason(100_000_000)));
    let expected = ["allow", "deny too_long", "deny too_long", "allow", "allow", "allow"];
    assert_eq!((run.decisions(), run.code), (expected.map(str::to_owned).to_vec(), Some(2)));
    let status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json", "s"]).stdout).unwrap();
    let summary = &status["summary"];
    assert_eq!((&summary["invocations"]["ok"], &summary["in_flight"]), (&json!(2), &json!([])));
    let notes: usize = world.records("s").iter().map(|record| record.notes.len()).sum();
    assert_eq!(notes, 2, "both lines are noted in the journal");
    assert!(fs::metadata(world.journal_path("s")).unwrap().len() < 10_000);
    world.verify_and_replay("s");
}

#[test]
fn invalid_events_are_refused_by_line_number_and_noted() {
    let world = CliWorld::new("");
    let mut input = Vec::new();
    let cases: [(&[u8], &str, &str); 10] = [
        (
            b"{\"event\":\"stop_proposed\",\"reason\":\"\xff\"}",
            "json",
            "not valid JSON: invalid unicode code point at column 36",
        ),
        (b"not json", "json", "not valid JSON: expected ident at column 2"),
        (b"[1]", "not_an_object", "an event must be a JSON object, not an array"),
        (b"{}", "missing", "`event` is missing"),
        (
            br#"{"event":"stop_proposed","event":"session_ended"}"#,
            "json",
            "not valid JSON: duplicate key `event` at column 32",
        ),
        (
            br#"{"event":"tool_proposed","call":"c","tool":"t","args":{"a":{"b":1,"b":2}}}"#,
            "json",
            "not valid JSON: duplicate key `b` at column 69",
        ),
        (
            br#"{"event":"stop_proposed","v":2}"#,
            "version",
            "wire version 2 is not supported; send version 1",
        ),
        (
            br#"{"event":"stop_propsed"}"#,
            "unknown_event",
            "unknown event `stop_propsed`; did you mean `stop_proposed`?",
        ),
        (
            br#"{"event":"stop_proposed","resaon":"x"}"#,
            "unknown_field",
            "unknown field `resaon`; did you mean `reason`?",
        ),
        (
            br#"{"event":"control","action":"stop"} trailing"#,
            "json",
            "not valid JSON: trailing characters at column 37",
        ),
    ];
    // Blank lines are not events and not errors, but they count as lines.
    let mut expected = Vec::new();
    for (number, (line, kind, reason)) in (1..).zip(&cases) {
        input.extend_from_slice(line);
        input.extend_from_slice(b"\n \r\n");
        expected.push(refused_line(number * 2 - 1, kind, reason));
    }
    input.extend_from_slice(STOP.as_bytes());
    expected.push(json!({"v": 1, "session": "s", "seq": 1, "step": 0, "decision": "allow"}));
    let run = world.stdio_bytes(&input);
    assert_eq!(run.json_lines(), expected);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), ""));
    let notes: Vec<JournalNote> = (1..)
        .zip(&cases)
        .map(|(number, (_, _, reason))| JournalNote::Malformed {
            line: number * 2 - 1,
            reason: (*reason).to_owned(),
        })
        .collect();
    assert_eq!(world.records("s")[0].notes, notes);
    world.verify_and_replay("s");
}

#[test]
fn an_empty_stream_is_valid() {
    let world = CliWorld::new("");
    for input in ["", "\n", "\n\n \n"] {
        let run = world.stdio_bytes(input.as_bytes());
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    }
    assert!(!world.home().exists());
}

#[test]
fn a_session_id_cannot_lead_out_of_the_sessions_directory() {
    let world = CliWorld::new("");
    let sessions = ["..", ".", "../../x", "/etc/x", "a/b", "a\0b", "\0", "~", "é", " "];
    for session in sessions {
        let line = json!({"session": session, "event": "session_started"}).to_string();
        assert_eq!(world.stdio(&[&line]).decisions(), ["allow"], "{session:?}");
        assert!(world.journal_path(session).is_file(), "{session:?}");
    }
    let tree = world.file_tree();
    let outside: Vec<&String> = tree
        .iter()
        .filter(|path| {
            ![
                "work",
                "work/jackline.yaml",
                "home",
                "home/sessions",
                "home/pruned",
                "home/definitions",
            ]
            .contains(&path.as_str())
        })
        .filter(|path| !path.starts_with("home/definitions/"))
        // The content of the definition is stored as a blob, so that it can be read again.
        .filter(|path| !path.starts_with("home/blobs"))
        .filter(|path| !path.starts_with("home/sessions/~"))
        .collect();
    assert_eq!(outside, [""; 0]);
    let directories = fs::read_dir(world.home().join("sessions")).unwrap().count();
    assert_eq!(directories, sessions.len());
    for session in sessions.iter().filter(|session| !session.contains('\0')) {
        world.verify_and_replay(session);
    }
}

#[test]
fn an_id_with_a_nul_is_refused_and_an_id_with_dots_is_accepted() {
    let world = CliWorld::new("");
    let with = |field: &str, value: &str| {
        let mut event =
            json!({"session": "s", "event": "tool_proposed", "call": "c", "tool": "t", "args": {}});
        event[field] = json!(value);
        event.to_string()
    };
    for field in ["call", "id", "actor", "tool"] {
        let run = world.stdio(&[&with(field, "a\0b")]);
        let reason = format!("`{field}` contains a control character");
        assert_eq!(run.json_lines(), [refused_line(1, "id", &reason)]);
        assert_eq!(world.stdio(&[&with(field, "")]).decisions(), ["deny id"]);
        assert_eq!(world.stdio(&[&with(field, &"x".repeat(257))]).decisions(), ["deny id"]);
    }
    assert_eq!(world.stdio(&[&with("session", "")]).decisions(), ["deny id"]);
    assert_eq!(world.stdio(&[&with("session", &"x".repeat(5000))]).decisions(), ["deny id"]);
    assert!(!world.home().exists(), "nothing was written");
    assert_eq!(world.stdio(&[&with("id", "../../..")]).decisions(), ["allow"]);
    world.verify_and_replay("s");
}

#[test]
fn a_duplicate_call_is_denied_until_the_first_call_finishes() {
    let world = CliWorld::new("");
    let run = world.stdio(&[
        tool_proposed("c"),
        tool_proposed("c"),
        tool_finished("c"),
        tool_proposed("c"),
    ]);
    assert_eq!(run.decisions(), ["allow", "deny", "allow", "allow"]);
    assert_eq!(subtype(&run.json_lines()[1]), "duplicate_call");
    assert_eq!(run.code, Some(0));
    world.verify_and_replay("s");
}

#[test]
fn events_out_of_order_are_answered_and_change_nothing() {
    let world = CliWorld::new("");
    let run = world.stdio(&[
        &tool_finished("c"),
        &tool_proposed("c"),
        &tool_finished("c"),
        &tool_finished("c"),
        r#"{"session":"s","event":"attempt_ended","attempt":"a","result":"commit"}"#,
        r#"{"session":"s","event":"control","action":"resume"}"#,
        r#"{"session":"s","event":"session_ended"}"#,
        &tool_proposed("d"),
        r#"{"session":"s","event":"session_started"}"#,
        &tool_proposed("d"),
    ]);
    let subtypes: Vec<String> = run.json_lines().iter().map(|v| subtype(v).to_owned()).collect();
    assert_eq!(
        subtypes,
        [
            "result_without_call",
            "none",
            "none",
            "result_without_call",
            "unknown_attempt",
            "no_effect",
            "none",
            "session_over",
            "none",
            "none"
        ]
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    world.verify_and_replay("s");
}

#[test]
fn a_clock_that_jumps_back_returns_no_used_time() {
    let world = CliWorld::new("limits: { wall_seconds: 60 }");
    let times = [
        "12:00:00", "12:00:59",
        // An hour back and then forward to the same time: no time is used.
        "11:00:00", "12:00:59", "12:01:00", // Used time stays used.
        "11:00:01",
    ];
    let lines: Vec<String> = times
        .iter()
        .enumerate()
        .map(|(n, time)| {
            format!(
                r#"{{"session":"s","event":"tool_proposed","call":"c{n}","tool":"t","args":{{}},"at":"2001-01-01T{time}Z"}}"#
            )
        })
        .collect();
    let run = world.stdio(&lines);
    assert_eq!(run.decisions(), ["allow", "allow", "allow", "allow", "stop", "stop"]);
    let status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json", "s"]).stdout).unwrap();
    assert_eq!(status["summary"]["elapsed_ms"], 60_000);
    world.verify_and_replay("s");
}

#[test]
fn a_pinned_definition_stays_in_force_after_its_file_is_removed() {
    let world = CliWorld::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let deploy = r#"{"session":"s","event":"tool_proposed","call":"c","tool":"deploy","args":{}}"#;
    assert_eq!(world.stdio(&[deploy]).decisions(), ["deny"]);
    fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
    fs::remove_dir_all(world.home().join("definitions")).unwrap();
    let prompt = r#"{"session":"s","event":"prompt_submitted"}"#;
    let run = world.stdio(&[prompt, deploy]);
    assert_eq!((run.decisions(), run.code), (vec!["allow".to_owned(), "deny".to_owned()], Some(0)));
    // The record states that the file is missing.
    let facts = serde_json::to_value(&world.records("s")[1].facts).unwrap();
    assert_eq!(facts["definition"], json!({"file": "missing"}));
    world.verify_and_replay("s");

    // A new session has no definition to use.
    let run = world.stdio(&[r#"{"session":"new","event":"session_started"}"#]);
    let reason = format!(
        "no `jackline.yaml` in `{}` or above it; create one, or pass a file with -d",
        world.workspace().display()
    );
    let verdict = &run.json_lines()[0];
    assert_eq!((run.decisions(), run.code), (vec!["deny definition".to_owned()], Some(3)));
    assert_eq!(
        verdict["violations"][0]["message"],
        format!("the guard is broken, not the call: {reason}")
    );
    assert!(!world.journal_path("new").exists());

    let run = world.jackline(&["stdio", "-d", "gone.yaml"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: definition `gone.yaml` not found; check the path after -d\n")
    );
}

#[test]
fn an_invalid_definition_denies_every_new_session_and_names_the_mistakes() {
    let world = CliWorld::new("toolz: {}\nlimits: { steps: x }\n");
    let run = world.stdio(&[STOP, STOP]);
    assert_eq!((run.decisions(), run.code), (vec!["deny definition".to_owned(); 2], Some(3)));
    let reason = run.json_lines()[0]["error"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(":1:1: unknown key `toolz`"), "{reason}");
    assert!(reason.contains(":2:18: `limits.steps` must be a whole number"), "{reason}");
}

/// Rewrites both slots of a saved state and their checksums.
fn rewrite_slots(world: &CliWorld, change: impl Fn(&mut [u8], &mut Vec<u8>)) {
    const HEADER: usize = 64;
    let path = world.session_directory("s").join("state");
    let mut file = fs::read(&path).unwrap();
    for at in [0, 256 * 1024] {
        let slot = &file[at..];
        let length = u32::from_le_bytes(slot[12..16].try_into().unwrap()) as usize;
        let mut header = slot[..HEADER].to_vec();
        let mut state = slot[HEADER + 32..HEADER + 32 + length].to_vec();
        change(&mut header, &mut state);
        header[12..16].copy_from_slice(&u32::try_from(state.len()).unwrap().to_le_bytes());
        let sum = Digest::of(&[header.as_slice(), &state].concat());
        let slot = [header.as_slice(), sum.as_bytes(), &state].concat();
        let end = (at + slot.len()).max(file.len());
        file.resize(end, 0);
        file[at..at + slot.len()].copy_from_slice(&slot);
    }
    fs::write(path, file).unwrap();
}

fn check_newer_format(world: &CliWorld, found: u32, supported: u32) {
    let before = fs::read(world.journal_path("s")).unwrap();
    let run = world.stdio(&[&tool_proposed("late")]);
    let reason = format!(
        "the guard is broken, not the call: the saved state has format {found}, but this jackline supports only formats up to {supported}"
    );
    assert_eq!(run.json_lines()[0]["violations"][0]["message"], reason);
    assert_eq!((run.decisions(), run.code), (vec!["deny newer_version".to_owned()], Some(3)));
    assert_eq!(fs::read(world.journal_path("s")).unwrap(), before, "nothing was written");
}

#[test]
fn a_state_file_of_a_newer_format_denies_every_call() {
    let world = CliWorld::new("");
    world.stdio(&[&tool_proposed("a"), &tool_proposed("b"), &tool_proposed("c")]);
    rewrite_slots(&world, |header, _| header[8] = 9);
    check_newer_format(&world, 9, 1);
    assert_eq!(world.jackline(&["status", "s"]).code, Some(3));
}

#[test]
fn an_engine_state_of_a_newer_format_denies_every_call() {
    const FORMAT: u8 = 11;
    let world = CliWorld::new("");
    world.stdio(&[&tool_proposed("a"), &tool_proposed("b"), &tool_proposed("c")]);
    rewrite_slots(&world, |_, bytes| {
        let mut saved: SavedSession = postcard::from_bytes(bytes).unwrap();
        // The format is the first byte of the state.
        assert_eq!(saved.state[0], FORMAT);
        saved.state[0] = FORMAT + 1;
        *bytes = postcard::to_allocvec(&saved).unwrap();
    });
    check_newer_format(&world, u32::from(FORMAT) + 1, u32::from(FORMAT));
}

/// A text that moves to a blob leaves a pointer. The pointer must not make the record too deep to
/// be parsed again.
#[test]
fn a_long_text_inside_deep_arguments_can_be_read_again() {
    let world = CliWorld::new("");
    for depth in [10, 120, 123, 124, 125, 126] {
        let deep = format!("{}\"{}\"{}", "[".repeat(depth), "x".repeat(70_000), "]".repeat(depth));
        let line = format!(
            r#"{{"session":"d{depth}","event":"tool_proposed","call":"c","tool":"t","args":{{"a":{deep}}}}}"#
        );
        let run = world.stdio(&[&line]);
        // A denial because of the depth is fine too. An unreadable record is not.
        if run.decisions() == ["allow"] {
            world.verify_and_replay(&format!("d{depth}"));
        }
    }
}

#[test]
fn a_reader_that_disconnects_early_ends_the_stream_quietly() {
    let world = CliWorld::new("");
    let mut child = world
        .command(JACKLINE)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The process may exit before it has read both lines.
    let _ = stdin.write_all(format!("{}\n{}\n", tool_proposed("a"), tool_proposed("b")).as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    // The first event was decided before the process could notice that the reader was gone.
    assert_eq!(world.records("s").len(), 1);
    world.verify_and_replay("s");
}

#[test]
fn a_resend_is_answered_with_the_same_bytes() {
    let world = CliWorld::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let line =
        r#"{"session":"s","id":"e1","event":"tool_proposed","call":"c","tool":"deploy","args":{}}"#;
    let first = world.stdio(&[line]);
    assert_eq!(world.stdio(&[line, line]).stdout, first.stdout.repeat(2));
    assert_eq!(world.records("s").len(), 1);
    world.verify_and_replay("s");
}

#[test]
fn a_relative_state_home_is_refused() {
    let world = CliWorld::new("");
    for command in ["stdio", "status", "log", "verify"] {
        let run =
            run_with_input(world.command(JACKLINE).env("JACKLINE_HOME", "state").arg(command), b"");
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(2), "error: `JACKLINE_HOME` must be an absolute path, not `state`\n"),
            "{command}"
        );
    }
    let run = run_with_input(world.command(JACKLINE).env_remove("JACKLINE_HOME").arg("stdio"), b"");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: no state home: set JACKLINE_HOME, XDG_STATE_HOME or HOME\n")
    );
}

#[test]
fn two_processes_on_one_session_take_turns() {
    let world = CliWorld::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let (mut one, mut other) = (StdioSession::start(&world), StdioSession::start(&world));
    let line = |event: &str| format!(r#"{{"session":"s",{event}}}"#);
    assert_eq!(one.send(&line(r#""event":"session_started""#))["seq"], 1);
    let denied =
        other.send(&line(r#""event":"tool_proposed","call":"1","tool":"deploy","args":{}"#));
    assert_eq!((&denied["seq"], &denied["decision"]), (&json!(2), &json!("deny")));
    // Each process knows what the other process was sent.
    one.send(&line(r#""event":"tool_proposed","call":"2","tool":"lint","args":{}"#));
    assert_eq!(other.send(&line(r#""event":"tool_finished","call":"2","status":"ok""#))["seq"], 4);
    let allowed =
        one.send(&line(r#""event":"tool_proposed","call":"3","tool":"deploy","args":{}"#));
    assert_eq!((&allowed["seq"], &allowed["decision"]), (&json!(5), &json!("allow")));
    let twice =
        other.send(&line(r#""event":"tool_proposed","call":"3","tool":"deploy","args":{}"#));
    assert_eq!(subtype(&twice), "duplicate_call");
    assert_eq!((one.finish(), other.finish()), (Some(0), Some(0)));
    world.verify_and_replay("s");
}

/// A journal of another version: the hash chain is valid, but the first record has another format.
#[test]
fn a_journal_of_another_version_is_reported_and_not_changed() {
    let world = CliWorld::new("limits: { steps: 9 }\n");
    let started = r#"{"session":"s","event":"session_started"}"#;
    assert_eq!(world.stdio(&[started]).decisions(), ["allow"]);
    let mut prev = Digest::ZERO;
    let mut journal = Vec::new();
    for line in fs::read_to_string(world.journal_path("s")).unwrap().lines() {
        let (body, _) = line.rsplit_once(r#","prev":""#).unwrap();
        let other = body.replace(r#""lowered":""#, r#""rules":""#);
        let (line, hash) = seal(other.as_bytes(), &prev);
        prev = hash;
        journal.extend(line);
    }
    fs::write(world.journal_path("s"), &journal).unwrap();
    fs::remove_file(world.session_directory("s").join("state")).unwrap();
    let advice = "if another version of jackline wrote this record, read it with that version; the \
                  journal is unchanged";
    for command in ["status", "log", "replay", "verify"] {
        let run = world.jackline(&[command, "s"]);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(advice), "{command}: {run:?}");
    }
    let denied = &world.stdio(&[STOP]).json_lines()[0];
    let reason = denied["error"]["reason"].as_str().unwrap();
    assert!(reason.contains(advice) && reason.contains("start a new session"), "{reason}");
    assert_eq!(fs::read(world.journal_path("s")).unwrap(), journal);
    let fresh = r#"{"session":"s2","event":"session_started"}"#;
    assert_eq!(world.stdio(&[fresh]).decisions(), ["allow"]);
}

#[test]
fn a_file_without_records_proves_nothing() {
    let world = CliWorld::new("");
    for text in ["", " \n\t\n"] {
        fs::write(world.workspace().join("x.json"), text).unwrap();
        for command in ["verify", "replay"] {
            let run = world.jackline(&[command, "x.json"]);
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
            assert!(run.stderr.contains("`x.json` has no records"), "{run:?}");
        }
    }
}
