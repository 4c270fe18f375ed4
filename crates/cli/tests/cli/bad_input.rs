//! Every line of the issue's "Bad input": a clear typed answer, no panic, and
//! the stream goes on.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use jackline_engine::{Digest, Place};
use jackline_journal::{Note, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{JACKLINE, Talk, World, feed};

/// What the runtime saves beside a journal.
#[derive(Serialize, Deserialize)]
struct SavedSession {
    session: String,
    checksum: Digest,
    definition: Digest,
    is_reloaded: bool,
    place: Place,
    state: Vec<u8>,
}

const STOP: &str = r#"{"session":"s","event":"stop_proposed"}"#;

fn refused(line: u64, kind: &str, reason: &str) -> Value {
    json!({"v": 1, "decision": "deny", "enforced": true, "error": {"kind": kind,
        "reason": format!("line {line} is not an event: {reason}"), "line": line}})
}

fn propose(call: &str) -> String {
    format!(r#"{{"session":"s","event":"tool_proposed","call":"{call}","tool":"t","args":{{}}}}"#)
}

fn finish(call: &str) -> String {
    format!(r#"{{"session":"s","event":"tool_finished","call":"{call}","status":"ok"}}"#)
}

/// The first violation of a verdict, by its subtype.
fn subtype(verdict: &Value) -> &str {
    verdict["violations"][0]["subtype"].as_str().unwrap_or("none")
}

#[test]
fn an_argument_of_50_mb_is_decided_and_kept_beside_the_record() {
    let world = World::new("");
    let content = "x".repeat(50_000_000);
    let line = format!(
        r#"{{"session":"s","event":"tool_proposed","call":"c","tool":"write_file","args":{{"path":"a","content":"{content}"}}}}"#
    );
    let run = world.stdio(&[&line]);
    assert_eq!(
        (run.code, run.verdicts()),
        (
            Some(0),
            vec![
                json!({"v": 1, "session": "s", "seq": 1, "step": 1, "call": "c", "decision": "allow"})
            ]
        )
    );
    assert!(fs::metadata(world.journal("s")).unwrap().len() < 10_000);
    let blob = world.home().join("blobs").join(Digest::of(content.as_bytes()).to_string());
    assert_eq!(fs::metadata(blob).unwrap().len(), 50_000_000);
    world.prove("s");
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_stream_goes_on() {
    let world = World::new("");
    let limit = 64 << 20;
    let mut input = vec![b'x'; limit + 1];
    input.extend_from_slice(format!("\n{STOP}\n").as_bytes());
    let run = world.stdio_bytes(&input);
    let reason = format!("it has {} bytes; at most {limit} are read", limit + 1);
    assert_eq!(
        run.verdicts(),
        [
            refused(1, "too_long", &reason),
            json!({"v": 1, "session": "s", "seq": 1, "step": 0, "decision": "allow"})
        ]
    );
    assert_eq!(run.code, Some(2));
    world.prove("s");
}

/// Its call stays open, so whoever sent it says in fewer bytes what came back.
#[test]
fn a_result_that_is_too_long_leaves_its_call_open_and_takes_no_memory() {
    let world = World::new("");
    let limit = 64 << 20;
    let (head, tail) =
        (r#"{"session":"s","event":"tool_finished","call":"c1","status":"ok","result":""#, "\"}");
    let long = |bytes: usize| format!("{head}{}{tail}", "x".repeat(bytes));
    let (just_above, hundred) =
        (long(limit + 1 - head.len() - tail.len()), long(100_000_000 - head.len() - tail.len()));
    let lines =
        [&propose("c1"), &just_above, &hundred, &finish("c1"), &propose("c2"), &finish("c2")];
    let mut input: Vec<u8> = Vec::with_capacity(200_000_000);
    for line in lines {
        input.extend_from_slice(line.as_bytes());
        input.push(b'\n');
    }
    // The longest line that is read fits twice, and what is longer is not held at all.
    let mut command = world.command("sh");
    command.args(["-c", "ulimit -v 400000; exec \"$0\" stdio --session s", JACKLINE]);
    let run = feed(&mut command, &input);
    let reason = |bytes: usize| format!("it has {bytes} bytes; at most {limit} are read");
    let verdicts = run.verdicts();
    assert_eq!(verdicts[1], refused(2, "too_long", &reason(limit + 1)));
    assert_eq!(verdicts[2], refused(3, "too_long", &reason(100_000_000)));
    let expected = ["allow", "deny too_long", "deny too_long", "allow", "allow", "allow"];
    assert_eq!((run.answers(), run.code), (expected.map(str::to_owned).to_vec(), Some(2)));
    let status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json", "s"]).stdout).unwrap();
    let summary = &status["summary"];
    assert_eq!((&summary["invocations"]["ok"], &summary["in_flight"]), (&json!(2), &json!([])));
    let notes: usize = world.records("s").iter().map(|record| record.notes.len()).sum();
    assert_eq!(notes, 2, "both are written down");
    assert!(fs::metadata(world.journal("s")).unwrap().len() < 10_000);
    world.prove("s");
}

#[test]
fn lines_that_are_no_events_are_refused_by_number_and_noted() {
    let world = World::new("");
    let mut input = Vec::new();
    let cases: [(&[u8], &str, &str); 10] = [
        (
            b"{\"event\":\"stop_proposed\",\"reason\":\"\xff\"}",
            "json",
            "not valid JSON: invalid unicode code point at column 36",
        ),
        (b"not json", "json", "not valid JSON: expected ident at column 2"),
        (b"[1]", "not_an_object", "an event is a JSON object, not an array"),
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
            "wire version 2 is not spoken here; this is version 1",
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
    // Blank lines are no events and no mistakes, and yet they are lines.
    let mut expected = Vec::new();
    for (number, (line, kind, reason)) in (1..).zip(&cases) {
        input.extend_from_slice(line);
        input.extend_from_slice(b"\n \r\n");
        expected.push(refused(number * 2 - 1, kind, reason));
    }
    input.extend_from_slice(STOP.as_bytes());
    expected.push(json!({"v": 1, "session": "s", "seq": 1, "step": 0, "decision": "allow"}));
    let run = world.stdio_bytes(&input);
    assert_eq!(run.verdicts(), expected);
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), ""));
    let notes: Vec<Note> = (1..)
        .zip(&cases)
        .map(|(number, (_, _, reason))| Note::Malformed {
            line: number * 2 - 1,
            reason: (*reason).to_owned(),
        })
        .collect();
    assert_eq!(world.records("s")[0].notes, notes);
    world.prove("s");
}

#[test]
fn an_empty_stream_is_no_mistake() {
    let world = World::new("");
    for input in ["", "\n", "\n\n \n"] {
        let run = world.stdio_bytes(input.as_bytes());
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    }
    assert!(!world.home().exists());
}

#[test]
fn an_id_cannot_lead_out_of_the_sessions() {
    let world = World::new("");
    let sessions = ["..", ".", "../../x", "/etc/x", "a/b", "a\0b", "\0", "~", "é", " "];
    for session in sessions {
        let line = json!({"session": session, "event": "session_started"}).to_string();
        assert_eq!(world.stdio(&[&line]).answers(), ["allow"], "{session:?}");
        assert!(world.journal(session).is_file(), "{session:?}");
    }
    let tree = world.tree();
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
        // What the definition holds is kept, so that it can be given back.
        .filter(|path| !path.starts_with("home/blobs"))
        .filter(|path| !path.starts_with("home/sessions/~"))
        .collect();
    assert_eq!(outside, [""; 0]);
    let directories = fs::read_dir(world.home().join("sessions")).unwrap().count();
    assert_eq!(directories, sessions.len());
    for session in sessions.iter().filter(|session| !session.contains('\0')) {
        world.prove(session);
    }
}

#[test]
fn an_id_with_a_nul_is_refused_and_one_with_dots_is_a_name() {
    let world = World::new("");
    let with = |field: &str, value: &str| {
        let mut event =
            json!({"session": "s", "event": "tool_proposed", "call": "c", "tool": "t", "args": {}});
        event[field] = json!(value);
        event.to_string()
    };
    for field in ["call", "id", "actor", "tool"] {
        let run = world.stdio(&[&with(field, "a\0b")]);
        let reason = format!("`{field}` holds a control character");
        assert_eq!(run.verdicts(), [refused(1, "id", &reason)]);
        assert_eq!(world.stdio(&[&with(field, "")]).answers(), ["deny id"]);
        assert_eq!(world.stdio(&[&with(field, &"x".repeat(257))]).answers(), ["deny id"]);
    }
    assert_eq!(world.stdio(&[&with("session", "")]).answers(), ["deny id"]);
    assert_eq!(world.stdio(&[&with("session", &"x".repeat(5000))]).answers(), ["deny id"]);
    assert!(!world.home().exists(), "nothing was written");
    assert_eq!(world.stdio(&[&with("id", "../../..")]).answers(), ["allow"]);
    world.prove("s");
}

#[test]
fn a_duplicate_call_is_denied_until_the_first_comes_back() {
    let world = World::new("");
    let run = world.stdio(&[propose("c"), propose("c"), finish("c"), propose("c")]);
    assert_eq!(run.answers(), ["allow", "deny", "allow", "allow"]);
    assert_eq!(subtype(&run.verdicts()[1]), "duplicate_call");
    assert_eq!(run.code, Some(0));
    world.prove("s");
}

#[test]
fn events_out_of_order_are_answered_and_count_as_nothing() {
    let world = World::new("");
    let run = world.stdio(&[
        &finish("c"),
        &propose("c"),
        &finish("c"),
        &finish("c"),
        r#"{"session":"s","event":"attempt_ended","attempt":"a","result":"commit"}"#,
        r#"{"session":"s","event":"control","action":"resume"}"#,
        r#"{"session":"s","event":"session_ended"}"#,
        &propose("d"),
        r#"{"session":"s","event":"session_started"}"#,
        &propose("d"),
    ]);
    let subtypes: Vec<String> = run.verdicts().iter().map(|v| subtype(v).to_owned()).collect();
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
    world.prove("s");
}

#[test]
fn a_clock_that_jumps_back_takes_no_time_away() {
    let world = World::new("limits: { wall_seconds: 60 }");
    let times = [
        "12:00:00", "12:00:59",
        // An hour back, and forth to where it was: nothing passes.
        "11:00:00", "12:00:59", "12:01:00", // What is used up stays used up.
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
    assert_eq!(run.answers(), ["allow", "allow", "allow", "allow", "stop", "stop"]);
    let status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json", "s"]).stdout).unwrap();
    assert_eq!(status["summary"]["elapsed_ms"], 60_000);
    world.prove("s");
}

#[test]
fn a_definition_that_vanished_stays_in_force_where_it_is_pinned() {
    let world = World::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let deploy = r#"{"session":"s","event":"tool_proposed","call":"c","tool":"deploy","args":{}}"#;
    assert_eq!(world.stdio(&[deploy]).answers(), ["deny"]);
    fs::remove_file(world.work().join("jackline.yaml")).unwrap();
    fs::remove_dir_all(world.home().join("definitions")).unwrap();
    let prompt = r#"{"session":"s","event":"prompt_submitted"}"#;
    let run = world.stdio(&[prompt, deploy]);
    assert_eq!((run.answers(), run.code), (vec!["allow".to_owned(), "deny".to_owned()], Some(0)));
    // The record says that it is gone.
    let facts = serde_json::to_value(&world.records("s")[1].facts).unwrap();
    assert_eq!(facts["definition"], json!({"file": "missing"}));
    world.prove("s");

    // A new session has nothing to go by.
    let run = world.stdio(&[r#"{"session":"new","event":"session_started"}"#]);
    let reason = format!(
        "no `jackline.yaml` in `{}` or above it; write one, or name one with -d",
        world.work().display()
    );
    let verdict = &run.verdicts()[0];
    assert_eq!((run.answers(), run.code), (vec!["deny definition".to_owned()], Some(3)));
    assert_eq!(
        verdict["violations"][0]["message"],
        format!("the guard is broken, not the call: {reason}")
    );
    assert!(!world.journal("new").exists());

    let run = world.jackline(&["stdio", "-d", "gone.yaml"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: no definition `gone.yaml`; check the path after -d\n")
    );
}

#[test]
fn a_definition_that_is_wrong_denies_every_new_session_and_says_why() {
    let world = World::new("toolz: {}\nlimits: { steps: x }\n");
    let run = world.stdio(&[STOP, STOP]);
    assert_eq!((run.answers(), run.code), (vec!["deny definition".to_owned(); 2], Some(3)));
    let reason = run.verdicts()[0]["error"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(":1:1: unknown key `toolz`"), "{reason}");
    assert!(reason.contains(":2:18: `limits.steps` must be a whole number"), "{reason}");
}

/// Rewrites both slots of a saved state, with their checksums.
fn rewrite_slots(world: &World, change: impl Fn(&mut [u8], &mut Vec<u8>)) {
    const HEADER: usize = 64;
    let path = world.directory("s").join("state");
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

fn check_newer(world: &World, found: u32, known: u32) {
    let before = fs::read(world.journal("s")).unwrap();
    let run = world.stdio(&[&propose("late")]);
    let reason = format!(
        "the guard is broken, not the call: the saved state has format {found}, and this jackline knows up to {known}"
    );
    assert_eq!(run.verdicts()[0]["violations"][0]["message"], reason);
    assert_eq!((run.answers(), run.code), (vec!["deny newer_version".to_owned()], Some(3)));
    assert_eq!(fs::read(world.journal("s")).unwrap(), before, "nothing was written");
}

#[test]
fn a_state_file_of_a_newer_format_shuts_the_gate() {
    let world = World::new("");
    world.stdio(&[&propose("a"), &propose("b"), &propose("c")]);
    rewrite_slots(&world, |header, _| header[8] = 9);
    check_newer(&world, 9, 1);
    assert_eq!(world.jackline(&["status", "s"]).code, Some(3));
}

#[test]
fn an_engine_state_of_a_newer_format_shuts_the_gate() {
    let world = World::new("");
    world.stdio(&[&propose("a"), &propose("b"), &propose("c")]);
    rewrite_slots(&world, |_, bytes| {
        let mut saved: SavedSession = postcard::from_bytes(bytes).unwrap();
        // The format comes first, as a number in one byte.
        assert_eq!(saved.state[0], 9);
        saved.state[0] = 10;
        *bytes = postcard::to_allocvec(&saved).unwrap();
    });
    check_newer(&world, 10, 9);
}

/// What is moved to a blob leaves a pointer, and the pointer must not make the
/// record too deep to be read back.
#[test]
fn a_long_text_at_the_bottom_of_deep_arguments_is_read_back() {
    let world = World::new("");
    for depth in [10, 120, 123, 124, 125, 126] {
        let deep = format!("{}\"{}\"{}", "[".repeat(depth), "x".repeat(70_000), "]".repeat(depth));
        let line = format!(
            r#"{{"session":"d{depth}","event":"tool_proposed","call":"c","tool":"t","args":{{"a":{deep}}}}}"#
        );
        let run = world.stdio(&[&line]);
        // Too deep is an answer too; a record that nobody can read is none.
        if run.answers() == ["allow"] {
            world.prove(&format!("d{depth}"));
        }
    }
}

#[test]
fn a_reader_that_leaves_early_ends_the_stream_quietly() {
    let world = World::new("");
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
    // It may be gone before it has read them all.
    let _ = stdin.write_all(format!("{}\n{}\n", propose("a"), propose("b")).as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    // The first was decided before anybody could know.
    assert_eq!(world.records("s").len(), 1);
    world.prove("s");
}

#[test]
fn a_resend_is_answered_with_the_same_bytes() {
    let world = World::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let line =
        r#"{"session":"s","id":"e1","event":"tool_proposed","call":"c","tool":"deploy","args":{}}"#;
    let first = world.stdio(&[line]);
    assert_eq!(world.stdio(&[line, line]).stdout, first.stdout.repeat(2));
    assert_eq!(world.records("s").len(), 1);
    world.prove("s");
}

#[test]
fn a_state_home_that_depends_on_where_one_stands_is_refused() {
    let world = World::new("");
    for command in ["stdio", "status", "log", "verify"] {
        let run = feed(world.command(JACKLINE).env("JACKLINE_HOME", "state").arg(command), b"");
        assert_eq!(
            (run.code, run.stderr.as_str()),
            (Some(2), "error: `JACKLINE_HOME` must be an absolute path, not `state`\n"),
            "{command}"
        );
    }
    let run = feed(world.command(JACKLINE).env_remove("JACKLINE_HOME").arg("stdio"), b"");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(2), "error: no state home: set JACKLINE_HOME, XDG_STATE_HOME or HOME\n")
    );
}

#[test]
fn two_processes_on_one_session_take_turns() {
    let world = World::new("policies: [ sequential_dependency: { deploy: [lint] } ]");
    let (mut one, mut other) = (Talk::start(&world), Talk::start(&world));
    let line = |event: &str| format!(r#"{{"session":"s",{event}}}"#);
    assert_eq!(one.say(&line(r#""event":"session_started""#))["seq"], 1);
    let denied =
        other.say(&line(r#""event":"tool_proposed","call":"1","tool":"deploy","args":{}"#));
    assert_eq!((&denied["seq"], &denied["decision"]), (&json!(2), &json!("deny")));
    // What one was told, the other knows.
    one.say(&line(r#""event":"tool_proposed","call":"2","tool":"lint","args":{}"#));
    assert_eq!(other.say(&line(r#""event":"tool_finished","call":"2","status":"ok""#))["seq"], 4);
    let allowed = one.say(&line(r#""event":"tool_proposed","call":"3","tool":"deploy","args":{}"#));
    assert_eq!((&allowed["seq"], &allowed["decision"]), (&json!(5), &json!("allow")));
    let twice = other.say(&line(r#""event":"tool_proposed","call":"3","tool":"deploy","args":{}"#));
    assert_eq!(subtype(&twice), "duplicate_call");
    assert_eq!((one.end(), other.end()), (Some(0), Some(0)));
    world.prove("s");
}

/// A journal as another version wrote it: the chain holds, and the first record has another form.
#[test]
fn a_journal_of_another_version_is_named_as_that_and_stays_as_it_is() {
    let world = World::new("limits: { steps: 9 }\n");
    let started = r#"{"session":"s","event":"session_started"}"#;
    assert_eq!(world.stdio(&[started]).answers(), ["allow"]);
    let mut prev = Digest::ZERO;
    let mut journal = Vec::new();
    for line in fs::read_to_string(world.journal("s")).unwrap().lines() {
        let (body, _) = line.rsplit_once(r#","prev":""#).unwrap();
        let other = body.replace(r#""lowered":""#, r#""rules":""#);
        let (line, hash) = seal(other.as_bytes(), &prev);
        prev = hash;
        journal.extend(line);
    }
    fs::write(world.journal("s"), &journal).unwrap();
    fs::remove_file(world.directory("s").join("state")).unwrap();
    let advice = "if another version of jackline wrote it, read it with that version: the journal \
                  stays as it is";
    for command in ["status", "log", "replay", "verify"] {
        let run = world.jackline(&[command, "s"]);
        assert_ne!(run.code, Some(0), "{run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(advice), "{command}: {run:?}");
    }
    let denied = &world.stdio(&[STOP]).verdicts()[0];
    let reason = denied["error"]["reason"].as_str().unwrap();
    assert!(reason.contains(advice) && reason.contains("go on in a new session"), "{reason}");
    assert_eq!(fs::read(world.journal("s")).unwrap(), journal);
    let fresh = r#"{"session":"s2","event":"session_started"}"#;
    assert_eq!(world.stdio(&[fresh]).answers(), ["allow"]);
}
