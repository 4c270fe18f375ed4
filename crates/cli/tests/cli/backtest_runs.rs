//! `jackline backtest` on recorded runs and on sessions that were guarded.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

const NEW: &str = "rules: [{ name: no-curl, tool: exec, command: curl, deny: No., \
                   examples: { deny: [curl x] } }]";

/// A world with a definition that says no to one program.
struct Bench {
    world: World,
}

impl Bench {
    fn new() -> Self {
        Self { world: World::new(NEW) }
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.world.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn backtest(&self, args: &[&str]) -> Run {
        feed(self.world.command(JACKLINE).arg("backtest").args(args), b"").anywhere(&self.world)
    }

    /// The lines for programs; everything must be fine.
    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let run = self.backtest(&[args, &["--json"]].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        run.verdicts()
    }
}

fn step(turn: u32, command: &str) -> Value {
    json!({"turn": turn, "tool": "bash", "args": {"command": command}, "result": "x",
        "is_error": false})
}

/// A run of some command lines, each a turn of its own.
fn run(id: &str, commands: &[&str]) -> String {
    let steps: Vec<Value> =
        commands.iter().zip(1..).map(|(command, turn)| step(turn, command)).collect();
    let run = json!({"source": "test", "id": id, "model": "m", "success": true, "meta": {"a": [1]},
        "user_breaks": [], "steps": steps});
    format!("{run}\n")
}

/// Packs with the machine's own gzip: another hand than ours.
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

fn line(id: &str, denied: &[u64]) -> Value {
    let rule = (!denied.is_empty()).then_some("no-curl");
    json!({"id": id, "soft": null, "hard": null, "rule": rule, "denied": denied, "asked": [],
        "stop": null, "undecidable": []})
}

fn runs() -> String {
    run("one", &["ls", "curl a", "curl b"]) + &run("two", &["ls"])
}

#[test]
fn a_line_a_run_whatever_the_file_is_called() {
    let bench = Bench::new();
    let expected = [line("one", &[1, 2]), line("two", &[])];
    bench.file("runs.jsonl", runs());
    bench.file("runs.jsonl.gz", gzip(runs().as_bytes()));
    bench.file("plain.gz", runs());
    bench.file("packed.txt", gzip(runs().as_bytes()));
    for name in ["runs.jsonl", "runs.jsonl.gz", "plain.gz", "packed.txt"] {
        assert_eq!(bench.lines(&[name]), expected, "{name}");
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
fn the_order_is_that_of_the_files_however_many_decide() {
    let bench = Bench::new();
    let all: String = (0..3000).map(|n| run(&format!("r{n}"), &["ls", "curl x"])).collect();
    bench.file("b.jsonl.gz", gzip(all.as_bytes()));
    bench.file("a.jsonl", run("first", &["ls"]));
    let ids: Vec<String> = bench
        .lines(&["b.jsonl.gz", "a.jsonl"])
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    let expected = std::iter::once("first".to_owned()).chain((0..3000).map(|n| format!("r{n}")));
    assert!(ids.into_iter().eq(expected));
}

#[test]
fn a_directory_holds_runs_journals_and_transcripts() {
    let bench = Bench::new();
    bench.file("past/a/runs.jsonl.gz", gzip(runs().as_bytes()));
    bench.file("past/notes.jsonl", "{\"note\":1}\n");
    bench.file("past/empty.jsonl", "");
    let call = json!({"type": "assistant", "sessionId": "mine", "message": {"id": "m", "content":
        [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "curl x"}}]}});
    bench.file("past/t.jsonl", format!("{call}\n"));
    session(&bench.world, "s1");
    let journal = fs::read(bench.world.journal("s1")).unwrap();
    bench.file("past/j.jsonl", journal);
    let expected = [line("one", &[1, 2]), line("two", &[]), line("s1", &[0]), line("mine", &[0])];
    assert_eq!(bench.lines(&["past"]), expected);
}

/// A session in which one call was let through, and one was not.
fn session(world: &World, id: &str) {
    let old = "rules: [{ name: no-rm, tool: exec, command: rm, deny: No., \
               examples: { deny: [rm x] } }]";
    fs::write(world.work().join("old.yaml"), old).unwrap();
    let lines = [
        json!({"event": "session_started", "workspace": world.work()}),
        json!({"event": "tool_proposed", "call": "c1", "tool": "bash", "args": {"command": "curl x"}}),
        json!({"event": "tool_finished", "call": "c1", "status": "ok", "result": "x"}),
        json!({"event": "tool_proposed", "call": "c2", "tool": "bash", "args": {"command": "rm x"}}),
    ];
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut command = world.person();
    command.args(["stdio", "--session", id, "-d", "old.yaml"]);
    let run = feed(&mut command, lines.concat().as_bytes());
    assert_eq!(run.answers(), ["allow", "allow", "allow", "deny"]);
}

#[test]
fn a_session_is_named_as_everywhere() {
    let bench = Bench::new();
    session(&bench.world, "s1-long-name");
    let journal = bench.world.journal("s1-long-name");
    let expected = [line("s1-long-name", &[0])];
    for name in ["s1-long-name", "s1", journal.to_str().unwrap()] {
        assert_eq!(bench.lines(&["-d", "jackline.yaml", name]), expected, "{name}");
    }
    let old = bench.lines(&["-d", "old.yaml", "s1"]);
    assert_eq!((&old[0]["rule"], &old[0]["denied"]), (&json!("no-rm"), &json!([1])));

    session(&bench.world, "s1-other");
    let run = bench.backtest(&["s1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("`s1` could be"), "{}", run.stderr);
}

#[test]
fn what_was_known_then_is_known_now() {
    let bench = Bench::new();
    let world = &bench.world;
    fs::write(world.work().join("there.txt"), "x\n").unwrap();
    let read = "policies: [ read_before_write: {} ]";
    fs::write(world.work().join("jackline.yaml"), format!("mode: observe\n{read}")).unwrap();
    let write = |call: &str, path: &str| {
        json!({"event": "tool_proposed", "call": call, "tool": "write_file",
            "args": {"path": path, "content": "y"}})
    };
    let started = json!({"event": "session_started", "workspace": world.work()});
    let lines: Vec<String> = [started, write("c1", "there.txt"), write("c2", "new.txt")]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    feed(world.person().args(["stdio", "--session", "s"]), lines.concat().as_bytes());
    let found = bench.lines(&["s"]);
    assert_eq!(found[0]["denied"], json!([0]));
    assert_eq!(found[0]["undecidable"], json!([]));
    assert_eq!(found[0]["rule"], json!("read_before_write"));
    // What nobody asked then can't be known now.
    let amend = json!({"event": "tool_proposed", "call": "c", "tool": "bash",
        "args": {"command": "git commit --amend --no-edit"}});
    feed(world.person().args(["stdio", "--session", "t"]), format!("{amend}\n").as_bytes());
    fs::write(world.work().join("jackline.yaml"), "extends: [coding-agent]").unwrap();
    let found = bench.lines(&["t"]);
    assert_eq!(found[0]["undecidable"], json!(["git/amend-protected"]));
    assert_eq!((&found[0]["denied"], &found[0]["asked"]), (&json!([]), &json!([])));
}

#[test]
fn a_broken_line_is_named_and_the_others_are_decided() {
    let bench = Bench::new();
    let broken = [
        run("one", &["ls"]),
        "{\"id\":\"cut\",\"steps\":[\n".to_owned(),
        "\n".to_owned(),
        "{\"id\":\"none\"}\n".to_owned(),
        "{\"steps\":[{\"tool\":\"a\\u0007b\"}]}\n".to_owned(),
        "\u{1b}[2J\n".to_owned(),
        run("two", &["curl x"]),
    ];
    bench.file("runs.jsonl", broken.concat());
    let found = bench.backtest(&["runs.jsonl", "--json"]);
    assert_eq!(found.code, Some(2));
    assert_eq!(found.verdicts(), [line("one", &[]), line("two", &[0])]);
    let complaints: Vec<&str> = found.stderr.lines().collect();
    assert_eq!(complaints.len(), 4, "{}", found.stderr);
    assert!(complaints[0].starts_with("error: runs.jsonl:2: EOF"), "{}", complaints[0]);
    assert_eq!(complaints[1], "error: runs.jsonl:4: missing field `steps` in column 13");
    assert_eq!(
        complaints[2],
        "error: runs.jsonl:5: step 0: the name of its tool holds a control character"
    );
    assert!(complaints[3].starts_with("error: runs.jsonl:6: expected value"));

    // The report for people comes all the same, after the complaints.
    let found = bench.backtest(&["runs.jsonl"]);
    assert_eq!(found.code, Some(2));
    assert!(found.stdout.starts_with("2 sessions and 2 calls"), "{}", found.stdout);

    bench.file("many.jsonl", "{\"steps\":1}\n".repeat(50) + &run("one", &["ls"]));
    let found = bench.backtest(&["many.jsonl", "--json"]);
    assert!(found.stderr.ends_with("error: 30 more can't be read\n"), "{}", found.stderr);
}

#[test]
fn a_file_that_is_cut_off_is_decided_as_far_as_it_goes() {
    let bench = Bench::new();
    let all: String = (0..2000).map(|n| run(&format!("r{n}"), &["ls", "curl x"])).collect();
    let packed = gzip(all.as_bytes());
    bench.file("cut.jsonl.gz", &packed[..packed.len() - 9]);
    let found = bench.backtest(&["cut.jsonl.gz", "--json"]);
    assert_eq!(found.code, Some(2));
    assert_eq!(
        found.stderr,
        "error: can't read `cut.jsonl.gz`: it can't be unpacked: it is cut off; what comes before \
         was decided\n"
    );
    assert!(found.stdout.lines().count() > 1000, "{}", found.stdout.lines().count());
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0x55;
    bench.file("bad.jsonl.gz", damaged);
    let found = bench.backtest(&["bad.jsonl.gz", "--json"]);
    assert_eq!(found.code, Some(2));
    // Why the lines after it are broken comes first.
    let first = "error: can't read `bad.jsonl.gz`: it can't be unpacked: ";
    assert!(found.stderr.starts_with(first), "{}", found.stderr);
}

#[test]
fn a_line_without_end_is_refused_and_not_held() {
    let bench = Bench::new();
    let path = bench.file("long.jsonl", run("one", &["ls"]));
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    // Not a byte of it is on the disk.
    file.set_len(path.metadata().unwrap().len() + (1 << 30)).unwrap();
    file.write_all(format!("\n{}", run("two", &["curl x"])).as_bytes()).unwrap();
    let mut command = Command::new("/bin/sh");
    command.current_dir(bench.world.work()).env("JACKLINE_HOME", bench.world.home());
    command.args(["-c", "ulimit -v 1000000; exec \"$0\" backtest long.jsonl --json", JACKLINE]);
    let found = feed(&mut command, b"");
    assert_eq!(found.stderr, "error: long.jsonl:2: it is longer than 64 MB\n");
    assert_eq!((found.code, found.verdicts().len()), (Some(2), 2));
}

#[test]
fn what_is_nothing_of_it_says_so() {
    let bench = Bench::new();
    bench.file("empty.jsonl", "");
    bench.file("blank.jsonl", "\n\n");
    bench.file("other.jsonl", "{\"note\":1}\n");
    for (name, why) in [
        ("empty.jsonl", "it is empty"),
        ("blank.jsonl", "it is empty"),
        ("other.jsonl", "its lines are neither runs"),
        ("nobody", "there is no such file, and no session of that name"),
        ("/dev/null", "it is no regular file"),
    ] {
        let found = bench.backtest(&[name]);
        assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""), "{name}");
        let complaint = format!("error: can't read `{name}`: {why}");
        assert!(found.stderr.starts_with(&complaint), "{}", found.stderr);
        assert!(found.stderr.contains("there is no run to decide again in"), "{}", found.stderr);
    }
    // Beside something that can be read, it is still bad input.
    bench.file("runs.jsonl", runs());
    let found = bench.backtest(&["runs.jsonl", "empty.jsonl", "--json"]);
    assert_eq!((found.code, found.verdicts().len()), (Some(2), 2));
}

#[test]
fn a_record_that_is_not_what_was_written_is_passed_over() {
    let bench = Bench::new();
    session(&bench.world, "s1");
    let text = fs::read_to_string(bench.world.journal("s1")).unwrap();
    bench.file("j.jsonl", text.replacen("curl x", "curl y", 1));
    let found = bench.backtest(&["j.jsonl", "--json"]);
    assert_eq!(found.code, Some(2));
    assert!(found.stderr.contains("j.jsonl:3: it is not what was written"), "{}", found.stderr);
    // Without its beginning nothing can be said at all.
    let (_, headless) = text.split_once('\n').unwrap();
    bench.file("j.jsonl", headless);
    let found = bench.backtest(&["j.jsonl", "--json"]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""));
    // A record that was being written when the machine stopped was never answered.
    bench.file("j.jsonl", text.trim_end());
    assert_eq!(bench.lines(&["j.jsonl"]), [line("s1", &[0])]);
}

#[test]
fn calls_that_were_none_are_no_denials_and_a_report_says_what_counts() {
    let bench = Bench::new();
    let steps = [
        json!({"turn": 1, "tool": "_format_error", "args": {"command": "no ``` call"},
            "result": "Please", "is_error": true}),
        step(
            2,
            "curl -H 'Authorization: Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345' \u{1b}[2J",
        ),
    ];
    bench.file("runs.jsonl", format!("{}\n", json!({"id": "a\u{1b}b", "steps": steps})));
    let found = bench.backtest(&["runs.jsonl"]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
    let (first, rest) = found.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("1 session and 2 calls in "), "{first}");
    assert!(first.ends_with("under `WORKSPACE/jackline.yaml`, as if it had been enforced"));
    let expected = "
would have been denied          1 call      50.00 %, in 1 session
would have waited for you       0 calls     0.00 %, in 0 sessions
would have been stopped         0 sessions  0.00 %
would have been told of a loop  0 sessions  0.00 %
would have been held in a loop  0 sessions  0.00 %

no-curl  1 denied
";
    assert!(rest.contains(expected), "{rest}");
    assert!(!found.stdout.contains("ghp_") && !found.stdout.contains('\u{1b}'), "{rest:?}");
}

#[test]
fn a_limit_that_stops_is_told() {
    let bench = Bench::new();
    bench.file("jackline.yaml", "limits: { steps: 2 }");
    bench.file("runs.jsonl", run("one", &["ls", "ls -a", "ls -b", "ls -c"]));
    let found = bench.lines(&["runs.jsonl"]);
    assert_eq!(found[0]["stop"], json!("BUDGET_EXCEEDED{steps}"));
}

/// Runs that go in circles: the same call 2, 3, 5 and 10 times, two and three calls in turn, a
/// refused one among them, and one that works.
fn circling() -> String {
    let same = |id: &str, count: usize| run(id, &vec!["ls a"; count]);
    let worked: Vec<String> = (0..12).map(|n| format!("cat {n}.txt")).collect();
    let worked: Vec<&str> = worked.iter().map(String::as_str).collect();
    [
        same("two", 2),
        same("three", 3),
        same("five", 5),
        same("ten", 10),
        run("by-two", &["ls a", "ls b"].repeat(3)),
        run("by-three", &["ls a", "ls b", "ls c"].repeat(3)),
        run("refused", &["curl x"; 5]),
        run("worked", &worked),
    ]
    .concat()
}

/// What is found is the first call of each level, had nothing been stopped before.
#[test]
fn loops_are_told_by_the_call_at_which_each_level_was_reached() {
    let bench = Bench::new();
    bench.file("jackline.yaml", format!("{NEW}\nloops: {{}}\n"));
    bench.file("runs.jsonl", circling());
    bench.file("runs.jsonl.gz", gzip(circling().as_bytes()));
    let line = |id: &str, soft: Value, hard: Value, rule: Value, denied: Value, stop: Value| {
        json!({"id": id, "soft": soft, "hard": hard, "rule": rule, "denied": denied, "asked": [],
            "stop": stop, "undecidable": []})
    };
    let (none, repeat, cycle) = (Value::Null, json!("loops/repeat"), json!("loops/cycle"));
    // Nine calls that bring nothing new are told of before the third round is over.
    let stagnation = json!("loops/stagnation");
    // After the fifth a person would have had to say something first.
    let held = json!([5, 6, 7, 8, 9]);
    let expected = [
        line("two", none.clone(), none.clone(), none.clone(), json!([]), none.clone()),
        line("three", json!(2), none.clone(), repeat.clone(), json!([]), none.clone()),
        line("five", json!(2), json!(4), repeat.clone(), json!([]), none.clone()),
        line("ten", json!(2), json!(4), repeat, held, json!("SYSTEM_ERROR{loop}")),
        line("by-two", json!(5), json!(5), cycle, json!([]), none.clone()),
        line("by-three", json!(7), json!(8), stagnation, json!([]), none.clone()),
        line("refused", json!(2), json!(4), json!("no-curl"), json!([0, 1, 2, 3, 4]), none.clone()),
        line("worked", none.clone(), none.clone(), none.clone(), json!([]), none),
    ];
    for name in ["runs.jsonl", "runs.jsonl.gz"] {
        assert_eq!(bench.lines(&[name]), expected, "{name}");
    }
}

/// Plays a run as a session that is guarded, and says what was answered to its calls.
fn guarded(world: &World, definition: &str, run: &Value) -> Vec<String> {
    fs::write(world.work().join("then.yaml"), definition).unwrap();
    let started = json!({"event": "session_started", "workspace": world.work()});
    let calls = run["steps"].as_array().unwrap().iter().enumerate().map(|(number, step)| {
        let proposed = json!({"event": "tool_proposed", "call": number.to_string(),
            "tool": step["tool"], "args": step["args"]});
        let finished = json!({"event": "tool_finished", "call": number.to_string(),
            "status": "ok", "result": step["result"]});
        (proposed, finished)
    });
    let id = run["id"].as_str().unwrap();
    let mut answers = Vec::new();
    let tell = |event: &Value| {
        let mut command = world.person();
        command.args(["stdio", "--session", id, "-d", "then.yaml"]);
        let told = feed(&mut command, format!("{event}\n").as_bytes());
        told.answers().concat()
    };
    tell(&started);
    for (proposed, finished) in calls {
        let answer = tell(&proposed);
        if answer == "allow" {
            tell(&finished);
        }
        answers.push(answer);
    }
    answers
}

const STRICT: &str = "loops: { profile: strict }\n";

/// What a session was is as good as what a data set tells of it.
#[test]
fn a_session_is_decided_as_the_same_run_is() {
    let bench = Bench::new();
    let runs = circling();
    bench.file("runs.jsonl", &runs);
    let runs: Vec<Value> = runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in &runs {
        let answers = guarded(&bench.world, "mode: observe\n", run);
        assert!(answers.iter().all(|answer| answer == "allow"), "{answers:?}");
    }
    for profile in ["loops: {}\n", STRICT] {
        bench.file("jackline.yaml", format!("{NEW}\n{profile}"));
        let expected = bench.lines(&["runs.jsonl"]);
        for (run, expected) in runs.iter().zip(expected) {
            let found = bench.lines(&[run["id"].as_str().unwrap()]);
            assert_eq!(found, [expected], "{profile}");
        }
    }
}

/// What a definition held or ended then is not what another one would have done.
#[test]
fn a_session_that_was_stopped_is_decided_anew() {
    let bench = Bench::new();
    let calls = json!({"id": "s", "steps": vec![step(1, "ls a"); 6]});
    let answers = guarded(&bench.world, STRICT, &calls);
    assert_eq!(answers, ["allow", "allow", "allow", "stop", "stop", "stop"]);
    let told =
        |found: Value| (found["hard"].clone(), found["denied"].clone(), found["stop"].clone());
    let under = |bench: &Bench, definition: &str| {
        bench.file("jackline.yaml", definition);
        told(bench.lines(&["s"]).remove(0))
    };
    assert_eq!(under(&bench, NEW), (Value::Null, json!([]), Value::Null));
    let stop = json!("SYSTEM_ERROR{loop}");
    assert_eq!(under(&bench, STRICT), (json!(2), json!([3, 4, 5]), stop));
    // It ran three times, which is worth a word; what was refused did not run.
    assert_eq!(under(&bench, "loops: {}\n"), (Value::Null, json!([]), Value::Null));
}

/// That a person ended it and opened it anew is what happened.
#[test]
fn what_people_did_stays_done() {
    let bench = Bench::new();
    let calls = |count| json!({"id": "s", "steps": vec![step(1, "ls a"); count]});
    let control = |word: &str| {
        let said = feed(bench.world.person().args([word, "s"]), b"");
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    guarded(&bench.world, "mode: observe\n", &calls(1));
    control("stop");
    assert_eq!(guarded(&bench.world, "mode: observe\n", &calls(2)), ["stop", "stop"]);
    control("reset");
    guarded(&bench.world, "mode: observe\n", &calls(1));
    let found = bench.lines(&["s"]);
    assert_eq!(found[0]["denied"], json!([1, 2]));
    assert_eq!(found[0]["stop"], json!("HUMAN_REQUESTED"));
}

/// Where the same definition holds the session for the same reason, what people said counts.
#[test]
fn a_hold_that_would_be_the_same_lasts_until_a_person_lifts_it() {
    let bench = Bench::new();
    let definition = "loops: {}\n";
    let calls = |command: &str, count| json!({"id": "s", "steps": vec![step(1, command); count]});
    let held = guarded(&bench.world, definition, &calls("ls a", 6));
    assert_eq!(held[5], "pause", "{held:?}");
    let said = feed(bench.world.person().args(["resume", "s"]), b"");
    assert_eq!(said.code, Some(0), "{said:?}");
    // It was told already, so that the next ones run: until the loop ends the session.
    let then = guarded(&bench.world, definition, &calls("ls a", 3));
    assert_eq!(then, ["allow", "allow", "allow"]);
    bench.file("jackline.yaml", definition);
    assert_eq!(bench.lines(&["s"])[0]["denied"], json!([5]));
    // A tighter one would have held it a call before.
    bench.file("jackline.yaml", "loops: { graded: { soft: 2, hard: 4, infinite: 20 } }\n");
    assert_eq!(bench.lines(&["s"])[0]["denied"], json!([4, 5]));
}

#[test]
fn the_report_has_totals_the_rules_that_spoke_most_and_examples() {
    let bench = Bench::new();
    bench.file("jackline.yaml", format!("{NEW}\nloops: {{}}\n"));
    bench.file("runs.jsonl.gz", gzip(circling().as_bytes()));
    let found = bench.backtest(&["runs.jsonl.gz"]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
    let (first, rest) = found.stdout.split_once('\n').unwrap();
    assert!(first.starts_with("8 sessions and 52 calls in "), "{first}");
    assert_eq!(
        rest,
        "\
nothing was run, and nothing was written

would have been denied          10 calls    19.23 %, in 2 sessions
would have waited for you       0 calls     0.00 %, in 0 sessions
would have been stopped         1 session   12.50 %
would have been told of a loop  6 sessions  75.00 %
would have been held in a loop  5 sessions  62.50 %

stopped
  ten  bash: call 9, SYSTEM_ERROR{loop}

loops/repeat  4 told of a loop, 3 held in a loop
  three  bash: call 2
  five  bash: call 2
  five  bash: `bash(ls a)` brought the same result 5 times

loops  5 denied
  ten  bash: bash(ls a)
  ten  bash: bash(ls a)
  ten  bash: bash(ls a)

no-curl  5 denied
  refused  bash: curl x
  refused  bash: curl x
  refused  bash: curl x

loops/cycle  2 held in a loop
  by-two  bash: the same calls were gone through 3 times, the last is `bash(ls b)`
  by-three  bash: the same calls were gone through 3 times, the last is `bash(ls c)`

loops/stagnation  1 told of a loop
  by-three  bash: call 7
"
    );
}
