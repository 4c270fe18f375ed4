//! Tests of `jackline backtest` on recorded runs and on guarded sessions.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

const NO_CURL_RULE: &str = "rules: [{ name: no-curl, tool: exec, command: curl, deny: No., \
                   examples: { deny: [curl x] } }]";

/// A world with a definition that denies one program.
struct BacktestWorld {
    world: CliWorld,
}

impl BacktestWorld {
    fn new() -> Self {
        Self { world: CliWorld::new(NO_CURL_RULE) }
    }

    fn write_file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.world.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn backtest(&self, args: &[&str]) -> CliOutput {
        run_with_input(self.world.command(JACKLINE).arg("backtest").args(args), b"")
            .with_path_placeholders(&self.world)
    }

    /// Returns the JSON lines of a backtest that must succeed without warnings.
    fn json_output(&self, args: &[&str]) -> Vec<Value> {
        let run = self.backtest(&[args, &["--json"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        run.json_lines()
    }
}

fn run_step(turn: u32, command: &str) -> Value {
    json!({"turn": turn, "tool": "bash", "args": {"command": command}, "result": "x",
        "is_error": false})
}

/// A run of several shell commands, with one command per turn.
fn recorded_run(id: &str, commands: &[&str]) -> String {
    let steps: Vec<Value> =
        commands.iter().zip(1..).map(|(command, turn)| run_step(turn, command)).collect();
    let run = json!({"source": "test", "id": id, "model": "m", "success": true, "meta": {"a": [1]},
        "user_breaks": [], "steps": steps});
    format!("{run}\n")
}

/// Compresses with the `gzip` of the machine, which is independent of our own implementation.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(bytes).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

fn expected_line(id: &str, denied: &[u64]) -> Value {
    let rule = (!denied.is_empty()).then_some("no-curl");
    json!({"id": id, "soft": null, "hard": null, "rule": rule, "denied": denied, "asked": [],
        "stop": null, "undecidable": []})
}

fn two_runs() -> String {
    recorded_run("one", &["ls", "curl a", "curl b"]) + &recorded_run("two", &["ls"])
}

#[test]
fn the_output_has_one_line_per_run_for_every_file_name() {
    let bench = BacktestWorld::new();
    let expected = [expected_line("one", &[1, 2]), expected_line("two", &[])];
    bench.write_file("runs.jsonl", two_runs());
    bench.write_file("runs.jsonl.gz", gzip(two_runs().as_bytes()));
    bench.write_file("plain.gz", two_runs());
    bench.write_file("packed.txt", gzip(two_runs().as_bytes()));
    for name in ["runs.jsonl", "runs.jsonl.gz", "plain.gz", "packed.txt"] {
        assert_eq!(bench.json_output(&[name]), expected, "{name}");
    }
    let run = bench.backtest(&["runs.jsonl", "--json"]);
    assert_eq!(
        run.stdout.lines().next(),
        Some(
            "{\"id\":\"one\",\"soft\":null,\"hard\":null,\"rule\":\"no-curl\",\"denied\":[1,2],\
             \"asked\":[],\"stop\":null,\"undecidable\":[]}"
        )
    );
}

#[test]
fn the_output_follows_the_order_of_the_files() {
    let bench = BacktestWorld::new();
    let all: String =
        (0..3000).map(|n| recorded_run(&format!("r{n}"), &["ls", "curl x"])).collect();
    bench.write_file("b.jsonl.gz", gzip(all.as_bytes()));
    bench.write_file("a.jsonl", recorded_run("first", &["ls"]));
    let ids: Vec<String> = bench
        .json_output(&["b.jsonl.gz", "a.jsonl"])
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    let expected = std::iter::once("first".to_owned()).chain((0..3000).map(|n| format!("r{n}")));
    assert!(ids.into_iter().eq(expected));
}

#[test]
fn a_directory_may_contain_runs_journals_and_transcripts() {
    let bench = BacktestWorld::new();
    bench.write_file("past/a/runs.jsonl.gz", gzip(two_runs().as_bytes()));
    bench.write_file("past/notes.jsonl", "{\"note\":1}\n");
    bench.write_file("past/empty.jsonl", "");
    let call = json!({"type": "assistant", "sessionId": "mine", "message": {"id": "m", "content":
        [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "curl x"}}]}});
    bench.write_file("past/t.jsonl", format!("{call}\n"));
    record_session(&bench.world, "s1");
    let journal = fs::read(bench.world.journal_path("s1")).unwrap();
    bench.write_file("past/j.jsonl", journal);
    let expected = [
        expected_line("one", &[1, 2]),
        expected_line("two", &[]),
        expected_line("s1", &[0]),
        expected_line("mine", &[0]),
    ];
    assert_eq!(bench.json_output(&["past"]), expected);
}

/// A session with one allowed call and one denied call.
fn record_session(world: &CliWorld, id: &str) {
    let old = "rules: [{ name: no-rm, tool: exec, command: rm, deny: No., \
               examples: { deny: [rm x] } }]";
    fs::write(world.workspace().join("old.yaml"), old).unwrap();
    let lines = [
        json!({"event": "session_started", "workspace": world.workspace()}),
        json!({"event": "tool_proposed", "call": "c1", "tool": "bash", "args": {"command": "curl x"}}),
        json!({"event": "tool_finished", "call": "c1", "status": "ok", "result": "x"}),
        json!({"event": "tool_proposed", "call": "c2", "tool": "bash", "args": {"command": "rm x"}}),
    ];
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut command = world.person_command();
    command.args(["stdio", "--session", id, "-d", "old.yaml"]);
    let run = run_with_input(&mut command, lines.concat().as_bytes());
    assert_eq!(run.decisions(), ["allow", "allow", "allow", "deny"]);
}

#[test]
fn a_session_is_named_as_in_other_commands() {
    let bench = BacktestWorld::new();
    record_session(&bench.world, "s1-long-name");
    let journal = bench.world.journal_path("s1-long-name");
    let expected = [expected_line("s1-long-name", &[0])];
    for name in ["s1-long-name", "s1", journal.to_str().unwrap()] {
        assert_eq!(bench.json_output(&["-d", "jackline.yaml", name]), expected, "{name}");
    }
    let old = bench.json_output(&["-d", "old.yaml", "s1"]);
    assert_eq!((&old[0]["rule"], &old[0]["denied"]), (&json!("no-rm"), &json!([1])));

    record_session(&bench.world, "s1-other");
    let run = bench.backtest(&["s1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("several sessions begin with `s1`"), "{}", run.stderr);
}

#[test]
fn a_backtest_uses_the_facts_that_were_recorded() {
    let bench = BacktestWorld::new();
    let world = &bench.world;
    fs::write(world.workspace().join("there.txt"), "x\n").unwrap();
    let read = "policies: [ read_before_write: {} ]";
    fs::write(world.workspace().join("jackline.yaml"), format!("mode: observe\n{read}")).unwrap();
    let write = |call: &str, path: &str| {
        json!({"event": "tool_proposed", "call": call, "tool": "write_file",
            "args": {"path": path, "content": "y"}})
    };
    let started = json!({"event": "session_started", "workspace": world.workspace()});
    let lines: Vec<String> = [started, write("c1", "there.txt"), write("c2", "new.txt")]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    run_with_input(
        world.person_command().args(["stdio", "--session", "s"]),
        lines.concat().as_bytes(),
    );
    let lines = bench.json_output(&["s"]);
    assert_eq!(lines[0]["denied"], json!([0]));
    assert_eq!(lines[0]["undecidable"], json!([]));
    assert_eq!(lines[0]["rule"], json!("read_before_write"));
    // A fact that was not recorded then cannot be known now.
    let amend = json!({"event": "tool_proposed", "call": "c", "tool": "bash",
        "args": {"command": "git commit --amend --no-edit"}});
    run_with_input(
        world.person_command().args(["stdio", "--session", "t"]),
        format!("{amend}\n").as_bytes(),
    );
    fs::write(world.workspace().join("jackline.yaml"), "extends: [coding-agent]").unwrap();
    let lines = bench.json_output(&["t"]);
    assert_eq!(lines[0]["undecidable"], json!(["git/amend-protected"]));
    assert_eq!((&lines[0]["denied"], &lines[0]["asked"]), (&json!([]), &json!([])));
}

#[test]
fn a_broken_line_is_named_and_the_others_are_decided() {
    let bench = BacktestWorld::new();
    let broken = [
        recorded_run("one", &["ls"]),
        "{\"id\":\"cut\",\"steps\":[\n".to_owned(),
        "\n".to_owned(),
        "{\"id\":\"none\"}\n".to_owned(),
        "{\"steps\":[{\"tool\":\"a\\u0007b\"}]}\n".to_owned(),
        "\u{1b}[2J\n".to_owned(),
        recorded_run("two", &["curl x"]),
    ];
    bench.write_file("runs.jsonl", broken.concat());
    let output = bench.backtest(&["runs.jsonl", "--json"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(output.json_lines(), [expected_line("one", &[]), expected_line("two", &[0])]);
    let errors: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(errors.len(), 4, "{}", output.stderr);
    assert!(errors[0].starts_with("error: runs.jsonl:2: EOF"), "{}", errors[0]);
    assert_eq!(errors[1], "error: runs.jsonl:4: missing field `steps` in column 13");
    assert_eq!(
        errors[2],
        "error: runs.jsonl:5: step 0: the name of its tool contains a control character"
    );
    assert!(errors[3].starts_with("error: runs.jsonl:6: expected value"));

    // The report for people is printed too, after the errors.
    let output = bench.backtest(&["runs.jsonl"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.starts_with("decided on 2 sessions with 2 calls"), "{}", output.stdout);

    bench.write_file("many.jsonl", "{\"steps\":1}\n".repeat(50) + &recorded_run("one", &["ls"]));
    let output = bench.backtest(&["many.jsonl", "--json"]);
    assert!(output.stderr.ends_with("error: 30 more can't be read\n"), "{}", output.stderr);
}

#[test]
fn the_readable_part_of_a_truncated_file_is_decided() {
    let bench = BacktestWorld::new();
    let all: String =
        (0..2000).map(|n| recorded_run(&format!("r{n}"), &["ls", "curl x"])).collect();
    let packed = gzip(all.as_bytes());
    bench.write_file("cut.jsonl.gz", &packed[..packed.len() - 9]);
    let output = bench.backtest(&["cut.jsonl.gz", "--json"]);
    assert_eq!(output.code, Some(2));
    assert_eq!(
        output.stderr,
        "error: can't read `cut.jsonl.gz`: can't unpack it: it is truncated; the part before \
         the error was decided\n"
    );
    assert!(output.stdout.lines().count() > 1000, "{}", output.stdout.lines().count());
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0x55;
    bench.write_file("bad.jsonl.gz", damaged);
    let output = bench.backtest(&["bad.jsonl.gz", "--json"]);
    assert_eq!(output.code, Some(2));
    // The reason why decompression failed comes first.
    let first = "error: can't read `bad.jsonl.gz`: can't unpack it: ";
    assert!(output.stderr.starts_with(first), "{}", output.stderr);
}

#[test]
fn a_line_without_end_is_refused_and_not_buffered() {
    let bench = BacktestWorld::new();
    let path = bench.write_file("long.jsonl", recorded_run("one", &["ls"]));
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    // The file has a hole, so the line uses no disk space.
    file.set_len(path.metadata().unwrap().len() + (1 << 30)).unwrap();
    file.write_all(format!("\n{}", recorded_run("two", &["curl x"])).as_bytes()).unwrap();
    let mut command = Command::new("/bin/sh");
    command.current_dir(bench.world.workspace()).env("JACKLINE_HOME", bench.world.home());
    command.args(["-c", "ulimit -v 1000000; exec \"$0\" backtest long.jsonl --json", JACKLINE]);
    let output = run_with_input(&mut command, b"");
    assert_eq!(output.stderr, "error: long.jsonl:2: the line is longer than 64 MB\n");
    assert_eq!((output.code, output.json_lines().len()), (Some(2), 2));
}

#[test]
fn a_file_without_runs_is_named_with_the_reason() {
    let bench = BacktestWorld::new();
    bench.write_file("empty.jsonl", "");
    bench.write_file("blank.jsonl", "\n\n");
    bench.write_file("other.jsonl", "{\"note\":1}\n");
    for (name, why) in [
        ("empty.jsonl", "it is empty"),
        ("blank.jsonl", "it is empty"),
        ("other.jsonl", "unknown format: its lines are not runs"),
        ("no-such-file", "no file and no session with this name"),
        ("/dev/null", "it is a device; give the path of a regular file instead"),
    ] {
        let output = bench.backtest(&[name]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{name}");
        let error = format!("error: can't read `{name}`: {why}");
        assert!(output.stderr.starts_with(&error), "{}", output.stderr);
        assert!(output.stderr.contains("found no run to decide on in"), "{}", output.stderr);
    }
    // It is bad input even if another file can be read.
    bench.write_file("runs.jsonl", two_runs());
    let output = bench.backtest(&["runs.jsonl", "empty.jsonl", "--json"]);
    assert_eq!((output.code, output.json_lines().len()), (Some(2), 2));
}

#[test]
fn a_changed_record_is_skipped() {
    let bench = BacktestWorld::new();
    record_session(&bench.world, "s1");
    let text = fs::read_to_string(bench.world.journal_path("s1")).unwrap();
    bench.write_file("j.jsonl", text.replacen("curl x", "curl y", 1));
    let output = bench.backtest(&["j.jsonl", "--json"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("j.jsonl:3: the record was changed"), "{}", output.stderr);
    // Without its first record a journal cannot be decided at all.
    let (_, headless) = text.split_once('\n').unwrap();
    bench.write_file("j.jsonl", headless);
    let output = bench.backtest(&["j.jsonl", "--json"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    // A record that was incomplete when the machine stopped was never answered.
    bench.write_file("j.jsonl", text.trim_end());
    assert_eq!(bench.json_output(&["j.jsonl"]), [expected_line("s1", &[0])]);
}

#[test]
fn malformed_calls_are_not_denials_and_the_report_shows_the_totals() {
    let bench = BacktestWorld::new();
    let steps = [
        json!({"turn": 1, "tool": "_format_error", "args": {"command": "no ``` call"},
            "result": "Please", "is_error": true}),
        run_step(
            2,
            "curl -H 'Authorization: Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345' \u{1b}[2J",
        ),
    ];
    bench.write_file("runs.jsonl", format!("{}\n", json!({"id": "a\u{1b}b", "steps": steps})));
    let output = bench.backtest(&["runs.jsonl"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let (first, rest) = output.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("decided on 1 session with 2 calls in "), "{first}");
    assert!(first.ends_with("under `WORKSPACE/jackline.yaml`, as if enforced"));
    let expected = "
would have been denied            1 call      50.00 %, in 1 session
would have waited for you         0 calls     0.00 %, in 0 sessions
would have been stopped           0 sessions  0.00 %
would have been warned of a loop  0 sessions  0.00 %
would have been paused in a loop  0 sessions  0.00 %

no-curl  1 denied
";
    assert!(rest.contains(expected), "{rest}");
    assert!(!output.stdout.contains("ghp_") && !output.stdout.contains('\u{1b}'), "{rest:?}");
}

#[test]
fn a_limit_that_stops_the_run_is_reported() {
    let bench = BacktestWorld::new();
    bench.write_file("jackline.yaml", "limits: { steps: 2 }");
    bench.write_file("runs.jsonl", recorded_run("one", &["ls", "ls -a", "ls -b", "ls -c"]));
    let lines = bench.json_output(&["runs.jsonl"]);
    assert_eq!(lines[0]["stop"], json!("BUDGET_EXCEEDED{steps}"));
}

/// Runs with and without loops: the same call 2, 3, 5 and 10 times, cycles of two and three calls,
/// repeated denied calls, and a run that makes progress.
fn circling_runs() -> String {
    let same = |id: &str, count: usize| recorded_run(id, &vec!["ls a"; count]);
    let progress: Vec<String> = (0..12).map(|n| format!("cat {n}.txt")).collect();
    let progress: Vec<&str> = progress.iter().map(String::as_str).collect();
    [
        same("two", 2),
        same("three", 3),
        same("five", 5),
        same("ten", 10),
        recorded_run("by-two", &["ls a", "ls b"].repeat(3)),
        recorded_run("by-three", &["ls a", "ls b", "ls c"].repeat(3)),
        recorded_run("refused", &["curl x"; 5]),
        recorded_run("worked", &progress),
    ]
    .concat()
}

/// The result names the first call of each level, as if nothing had been stopped before it.
#[test]
fn loops_are_reported_with_the_call_that_reached_each_level() {
    let bench = BacktestWorld::new();
    bench.write_file("jackline.yaml", format!("{NO_CURL_RULE}\nloops: {{}}\n"));
    bench.write_file("runs.jsonl", circling_runs());
    bench.write_file("runs.jsonl.gz", gzip(circling_runs().as_bytes()));
    let line = |id: &str, soft: Value, hard: Value, rule: Value, denied: Value, stop: Value| {
        json!({"id": id, "soft": soft, "hard": hard, "rule": rule, "denied": denied, "asked": [],
            "stop": stop, "undecidable": []})
    };
    let (none, repeat, cycle) = (Value::Null, json!("loops/repeat"), json!("loops/cycle"));
    // Nine calls without a new result are reported before the third round ends.
    let stagnation = json!("loops/stagnation");
    // After the fifth call the session would have waited for a person.
    let denied_calls = json!([5, 6, 7, 8, 9]);
    let expected = [
        line("two", none.clone(), none.clone(), none.clone(), json!([]), none.clone()),
        line("three", json!(2), none.clone(), repeat.clone(), json!([]), none.clone()),
        line("five", json!(2), json!(4), repeat.clone(), json!([]), none.clone()),
        line("ten", json!(2), json!(4), repeat, denied_calls, json!("SYSTEM_ERROR{loop}")),
        line("by-two", json!(5), json!(5), cycle, json!([]), none.clone()),
        line("by-three", json!(7), json!(8), stagnation, json!([]), none.clone()),
        line("refused", json!(2), json!(4), json!("no-curl"), json!([0, 1, 2, 3, 4]), none.clone()),
        line("worked", none.clone(), none.clone(), none.clone(), json!([]), none),
    ];
    for name in ["runs.jsonl", "runs.jsonl.gz"] {
        assert_eq!(bench.json_output(&[name]), expected, "{name}");
    }
}

/// Plays a run as a guarded session and returns the decisions.
fn play_guarded(world: &CliWorld, definition: &str, run: &Value) -> Vec<String> {
    fs::write(world.workspace().join("then.yaml"), definition).unwrap();
    let started = json!({"event": "session_started", "workspace": world.workspace()});
    let calls = run["steps"].as_array().unwrap().iter().enumerate().map(|(number, step)| {
        let proposed = json!({"event": "tool_proposed", "call": number.to_string(),
            "tool": step["tool"], "args": step["args"]});
        let finished = json!({"event": "tool_finished", "call": number.to_string(),
            "status": "ok", "result": step["result"]});
        (proposed, finished)
    });
    let id = run["id"].as_str().unwrap();
    let mut answers = Vec::new();
    let send = |event: &Value| {
        let mut command = world.person_command();
        command.args(["stdio", "--session", id, "-d", "then.yaml"]);
        let output = run_with_input(&mut command, format!("{event}\n").as_bytes());
        output.decisions().concat()
    };
    send(&started);
    for (proposed, finished) in calls {
        let answer = send(&proposed);
        if answer == "allow" {
            send(&finished);
        }
        answers.push(answer);
    }
    answers
}

const STRICT_LOOPS: &str = "loops: { profile: strict }\n";

/// A recorded session gives the same result as a data set that describes the same run.
#[test]
fn a_session_is_decided_like_the_same_run() {
    let bench = BacktestWorld::new();
    let runs = circling_runs();
    bench.write_file("runs.jsonl", &runs);
    let runs: Vec<Value> = runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in &runs {
        let answers = play_guarded(&bench.world, "mode: observe\n", run);
        assert!(answers.iter().all(|answer| answer == "allow"), "{answers:?}");
    }
    for profile in ["loops: {}\n", STRICT_LOOPS] {
        bench.write_file("jackline.yaml", format!("{NO_CURL_RULE}\n{profile}"));
        let expected = bench.json_output(&["runs.jsonl"]);
        for (run, expected) in runs.iter().zip(expected) {
            let lines = bench.json_output(&[run["id"].as_str().unwrap()]);
            assert_eq!(lines, [expected], "{profile}");
        }
    }
}

/// What one definition paused or stopped says nothing about another definition.
#[test]
fn a_stopped_session_is_decided_again_from_its_start() {
    let bench = BacktestWorld::new();
    let calls = json!({"id": "s", "steps": vec![run_step(1, "ls a"); 6]});
    let answers = play_guarded(&bench.world, STRICT_LOOPS, &calls);
    assert_eq!(answers, ["allow", "allow", "allow", "stop", "stop", "stop"]);
    let result = |line: Value| (line["hard"].clone(), line["denied"].clone(), line["stop"].clone());
    let under = |bench: &BacktestWorld, definition: &str| {
        bench.write_file("jackline.yaml", definition);
        result(bench.json_output(&["s"]).remove(0))
    };
    assert_eq!(under(&bench, NO_CURL_RULE), (Value::Null, json!([]), Value::Null));
    let stop = json!("SYSTEM_ERROR{loop}");
    assert_eq!(under(&bench, STRICT_LOOPS), (json!(2), json!([3, 4, 5]), stop));
    // Three repetitions only cause a warning. The stopped calls did not run.
    assert_eq!(under(&bench, "loops: {}\n"), (Value::Null, json!([]), Value::Null));
}

/// A stop and a reset by a person are facts, whatever the definition is.
#[test]
fn actions_of_people_stay_in_effect() {
    let bench = BacktestWorld::new();
    let calls = |count| json!({"id": "s", "steps": vec![run_step(1, "ls a"); count]});
    let control = |action: &str| {
        let run = run_with_input(bench.world.person_command().args([action, "s"]), b"");
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    play_guarded(&bench.world, "mode: observe\n", &calls(1));
    control("stop");
    assert_eq!(play_guarded(&bench.world, "mode: observe\n", &calls(2)), ["stop", "stop"]);
    control("reset");
    play_guarded(&bench.world, "mode: observe\n", &calls(1));
    let lines = bench.json_output(&["s"]);
    assert_eq!(lines[0]["denied"], json!([1, 2]));
    assert_eq!(lines[0]["stop"], json!("HUMAN_REQUESTED"));
}

/// If the same definition pauses the session for the same reason, the actions of people count.
#[test]
fn an_identical_pause_lasts_until_a_person_resumes() {
    let bench = BacktestWorld::new();
    let definition = "loops: {}\n";
    let calls =
        |command: &str, count| json!({"id": "s", "steps": vec![run_step(1, command); count]});
    let answers = play_guarded(&bench.world, definition, &calls("ls a", 6));
    assert_eq!(answers[5], "pause", "{answers:?}");
    let run = run_with_input(bench.world.person_command().args(["resume", "s"]), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    // The agent was already warned, so the next calls run until the loop ends the session.
    let answers = play_guarded(&bench.world, definition, &calls("ls a", 3));
    assert_eq!(answers, ["allow", "allow", "allow"]);
    bench.write_file("jackline.yaml", definition);
    assert_eq!(bench.json_output(&["s"])[0]["denied"], json!([5]));
    // A stricter definition would have paused one call earlier.
    bench.write_file("jackline.yaml", "loops: { graded: { soft: 2, hard: 4, infinite: 20 } }\n");
    assert_eq!(bench.json_output(&["s"])[0]["denied"], json!([4, 5]));
}

#[test]
fn the_report_has_totals_the_most_frequent_rules_and_examples() {
    let bench = BacktestWorld::new();
    bench.write_file("jackline.yaml", format!("{NO_CURL_RULE}\nloops: {{}}\n"));
    bench.write_file("runs.jsonl.gz", gzip(circling_runs().as_bytes()));
    let run = bench.backtest(&["runs.jsonl.gz"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let (first, rest) = run.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("decided on 8 sessions with 52 calls in "), "{first}");
    assert_eq!(
        rest,
        "\
nothing was run or written

would have been denied            10 calls    19.23 %, in 2 sessions
would have waited for you         0 calls     0.00 %, in 0 sessions
would have been stopped           1 session   12.50 %
would have been warned of a loop  6 sessions  75.00 %
would have been paused in a loop  5 sessions  62.50 %

stopped
  ten  bash: call 9, stopped: loop

loops/repeat  4 warned of a loop, 3 paused in a loop
  three  bash: call 2
  five  bash: call 2
  five  bash: `bash(ls a)` returned the same result 5 times

loops  5 denied
  ten  bash: bash(ls a)
  ten  bash: bash(ls a)
  ten  bash: bash(ls a)

no-curl  5 denied
  refused  bash: curl x
  refused  bash: curl x
  refused  bash: curl x

loops/cycle  2 paused in a loop
  by-two  bash: the same sequence of calls ran 3 times; the last call is `bash(ls b)`
  by-three  bash: the same sequence of calls ran 3 times; the last call is `bash(ls c)`

loops/stagnation  1 warned of a loop
  by-three  bash: call 7
"
    );
}
