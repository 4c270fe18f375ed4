//! Tests of the commands for people: waiting questions, their answers, how to turn a broken guard
//! off, and who may run these commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use crate::support::{CliOutput, CliWorld, JACKLINE, RELEASED, run_with_input};

const ASK_RULES: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
  - { name: no-rm, command: rm, deny: Never., examples: { deny: [rm a] } }
";

fn bash_event(session: &str, call: &str, line: &str) -> String {
    format!(
        r#"{{"session":"{session}","event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
    )
}

/// Proposes a shell command and returns the decision. A decision that is not enforced is in
/// parentheses.
fn propose(world: &CliWorld, session: &str, call: &str, line: &str) -> String {
    let run = world.stdio(&[bash_event(session, call, line)]);
    let verdict = &run.json_lines()[0];
    let decision = verdict["decision"].as_str().unwrap();
    if verdict["enforced"] == Value::Bool(false) {
        format!("({decision})")
    } else {
        decision.to_owned()
    }
}

/// Returns the approval codes of the waiting questions, the latest first.
fn approval_codes(world: &CliWorld) -> Vec<String> {
    let run = world.jackline(&["pending", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let code = |line: Value| line["code"].as_str().unwrap().to_owned();
    run.json_lines().into_iter().map(code).collect()
}

fn assert_output(run: &CliOutput, code: i32, fragment: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(fragment),
        "expected {code} and `{fragment}`: {run:#?}"
    );
}

#[test]
fn a_question_is_allowed_once_by_its_code() {
    let world = CliWorld::new(ASK_RULES);
    assert_output(&world.jackline(&["pending"]), 0, "nothing waits for a person");
    assert_eq!(propose(&world, "s", "c1", "ship a"), "ask");
    assert_eq!(propose(&world, "s", "c2", "ship b"), "ask");
    let [b, a] = &approval_codes(&world)[..] else { panic!("expected two waiting questions") };
    assert_output(
        &world.jackline(&["pending"]),
        0,
        &format!("{a}  Bash `ship a`: A person decides."),
    );
    assert_output(
        &world.jackline(&["status"]),
        0,
        &format!("jackline allow {b}, or jackline refuse {b}"),
    );

    assert_output(
        &world.jackline(&["allow", &a.to_uppercase(), "--by", "dana"]),
        0,
        "allowed once: Bash `ship a`",
    );
    assert_eq!(approval_codes(&world), std::slice::from_ref(b));
    assert_eq!(propose(&world, "s", "c3", "ship a"), "allow");
    assert_eq!(propose(&world, "s", "c4", "ship a"), "ask", "the approval was for one call");
    assert_ne!(&approval_codes(&world)[0], a, "a new question has a new code");

    assert_output(&world.jackline(&["allow", b, "--for", "10m"]), 0, "allowed for 10 min");
    for call in ["c5", "c6"] {
        assert_eq!(propose(&world, "s", call, "ship b"), "allow");
    }
    let again = approval_codes(&world)[0].clone();
    assert_output(
        &world.jackline(&["refuse", &again, "--why", "not today"]),
        0,
        "refused in this session",
    );
    assert_eq!(propose(&world, "s", "c7", "ship a"), "deny");
    world.verify_and_replay("s");
}

#[test]
fn an_invalid_or_used_code_changes_nothing() {
    let world = CliWorld::new(ASK_RULES);
    propose(&world, "s", "c1", "ship a");
    let code = approval_codes(&world)[0].clone();
    let records = world.records("s").len();
    assert_output(
        &world.jackline(&["allow", "jl-000000"]),
        1,
        "no waiting question has the code `jl-000000`",
    );
    assert_output(
        &world.jackline(&["allow", "ship a"]),
        2,
        "is not a code; a code looks like `jl-",
    );
    assert_output(
        &world.jackline(&["allow", &code, "--for", "soon"]),
        2,
        "--for takes a time such as",
    );
    assert_eq!(world.records("s").len(), records);

    // The question was answered, or the session was reset: the code is no longer valid.
    assert_output(&world.jackline(&["refuse", &code]), 0, "refused");
    assert_output(&world.jackline(&["allow", &code]), 1, "it was answered or withdrawn");
    propose(&world, "s", "c2", "ship c");
    let code = approval_codes(&world)[0].clone();
    assert_output(&world.jackline(&["reset", "s"]), 0, "is open again");
    assert_output(&world.jackline(&["allow", &code]), 1, "it was answered or withdrawn");

    // A session without any activity for more than a day.
    propose(&world, "s", "c3", "ship d");
    let code = approval_codes(&world)[0].clone();
    let old = fs::File::options().append(true).open(world.journal_path("s")).unwrap();
    let day = std::time::Duration::from_hours(25);
    old.set_modified(old.metadata().unwrap().modified().unwrap() - day).unwrap();
    assert_output(&world.jackline(&["allow", &code]), 1, "older than a day");
    world.verify_and_replay("s");
}

#[test]
fn a_code_belongs_to_one_session() {
    let world = CliWorld::new(ASK_RULES);
    assert_eq!(propose(&world, "one", "c1", "ship a"), "ask");
    assert_eq!(propose(&world, "two", "c1", "ship a"), "ask");
    let [two, one] = &approval_codes(&world)[..] else { panic!("expected two waiting questions") };
    assert_ne!(one, two);
    assert_output(&world.jackline(&["allow", one]), 0, "allowed once");
    assert_eq!(
        propose(&world, "two", "c2", "ship a"),
        "ask",
        "an approval is valid in one session only"
    );
    assert_eq!(propose(&world, "one", "c2", "ship a"), "allow");
}

#[test]
fn a_person_controls_a_session() {
    let world = CliWorld::new("");
    propose(&world, "s", "c1", "ls");
    assert_output(
        &world.jackline(&["pause", "--by", "dana", "--why", "lunch"]),
        0,
        "session `s` is paused",
    );
    assert_eq!(propose(&world, "s", "c2", "ls"), "pause");
    assert_output(&world.jackline(&["status"]), 0, "dana: lunch");
    assert_output(&world.jackline(&["resume"]), 0, "session `s` continues");
    assert_output(&world.jackline(&["resume"]), 1, "the session is not paused");
    assert_eq!(propose(&world, "s", "c3", "ls"), "allow");
    assert_output(&world.jackline(&["stop", "s"]), 0, "session `s` is stopped");
    assert_eq!(propose(&world, "s", "c4", "ls"), "stop");
    assert_output(&world.jackline(&["pause", "s"]), 1, "this session has ended");
    assert_output(&world.jackline(&["reset", "s"]), 0, "session `s` is open again");
    assert_eq!(propose(&world, "s", "c5", "ls"), "allow");
    assert_output(&world.jackline(&["stop", "unknown"]), 2, "no session `unknown`");
    world.verify_and_replay("s");
}

#[test]
fn the_guard_is_turned_off_for_a_time_a_workspace_and_a_reason() {
    let world = CliWorld::new(ASK_RULES);
    assert_eq!(propose(&world, "s", "c1", "rm a"), "deny");
    assert_output(&world.jackline(&["off"]), 2, "--why");
    for invalid in ["0m", "25h", "soon", "-1m"] {
        let run = world.jackline(&["off", &format!("--for={invalid}"), "--why", "x"]);
        assert_output(&run, 2, "--for takes");
    }
    assert_output(
        &world.jackline(&["off", "--by", "dana", "--why", "a migration"]),
        0,
        "by dana: a migration",
    );
    assert_eq!(propose(&world, "s", "c2", "rm a"), "(deny)");
    assert_output(&world.jackline(&["status"]), 0, "guard off");
    assert_output(&world.jackline(&["log"]), 0, "the guard was off, by dana: a migration");
    assert_output(&world.jackline(&["on"]), 0, "the guard is on again");
    assert_output(&world.jackline(&["on"]), 0, "the guard is not off here");
    assert_eq!(propose(&world, "s", "c3", "rm a"), "deny");
    world.verify_and_replay("s");

    // In a directory without a session the error names the options.
    let run = run_with_input(
        world.person_command().current_dir(world.root()).args(["off", "--why", "x"]),
        b"",
    );
    assert_output(&run, 2, "pass --here or --everywhere");
    let run = run_with_input(
        world.person_command().current_dir(world.root()).args([
            "off",
            "--everywhere",
            "--why",
            "x",
        ]),
        b"",
    );
    assert_output(&run, 0, "the guard is off everywhere");
    assert_eq!(propose(&world, "s", "c4", "rm a"), "(deny)");
    assert_output(&world.jackline(&["on"]), 0, "it was off everywhere");
}

/// Sets a runtime directory for control files that no other test uses.
fn with_runtime_directory<'c>(command: &'c mut Command, world: &CliWorld) -> &'c mut Command {
    let runtime = world.root().join("runtime");
    let _ = fs::create_dir(&runtime);
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    command.env("XDG_RUNTIME_DIR", runtime)
}

/// With a broken state, `off` still works, and a call that was denied passes.
fn check_off_when_broken(world: &CliWorld, prepare: &dyn Fn(&mut Command)) {
    let run = |words: &[&str], input: &str| {
        let mut command = world.person_command();
        with_runtime_directory(&mut command, world);
        prepare(&mut command);
        run_with_input(command.args(words), input.as_bytes())
    };
    let line = bash_event("s", "c1", "rm a");
    let denied = run(&["stdio"], &line);
    assert_eq!(denied.code, Some(3), "{denied:?}");
    assert!(denied.stdout.contains("jackline off --for 30m --why"), "{denied:?}");
    let off = run(&["off", "--for", "5m", "--why", "it is broken"], "");
    assert_output(&off, 0, "it is broken");
    let passed = run(&["stdio"], &line);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let verdict = &passed.json_lines()[0];
    assert_eq!(
        (&verdict["decision"], &verdict["error"]),
        (&"allow".into(), &Value::Null),
        "{verdict}"
    );
    assert_output(&run(&["on"], ""), 0, "the guard is on again");
    assert_eq!(run(&["stdio"], &line).code, Some(3));
}

#[test]
fn off_works_with_a_state_home_that_cannot_be_created() {
    let world = CliWorld::new(ASK_RULES);
    let below_a_file = world.workspace().join("jackline.yaml").join("home");
    check_off_when_broken(&world, &|command| {
        command.env("JACKLINE_HOME", &below_a_file);
    });
}

/// No process may write to sysfs, not even one of root.
#[test]
fn off_works_with_a_read_only_state_home() {
    let world = CliWorld::new(ASK_RULES);
    check_off_when_broken(&world, &|command| {
        command.env("JACKLINE_HOME", "/sys/kernel/jackline-home");
    });
}

#[test]
fn off_works_with_an_invalid_journal() {
    let world = CliWorld::new(ASK_RULES);
    propose(&world, "s", "c0", "ls");
    fs::remove_file(world.session_directory("s").join("state")).unwrap();
    fs::write(world.journal_path("s"), "garbage\ngarbage\n").unwrap();
    check_off_when_broken(&world, &|_| {});
}

#[test]
fn off_works_without_any_state_home() {
    let world = CliWorld::new(ASK_RULES);
    let mut command = world.person_command();
    with_runtime_directory(&mut command, &world).env_remove("JACKLINE_HOME");
    let run = run_with_input(command.args(["off", "--why", "nothing is set"]), b"");
    assert_output(&run, 0, "nothing is set");
    let mut command = world.person_command();
    with_runtime_directory(&mut command, &world).env_remove("JACKLINE_HOME");
    assert_output(&run_with_input(command.arg("on"), b""), 0, "the guard is on again");
}

/// A script: a call that is denied, `jackline off`, and the same call again.
fn full_disk_script() -> String {
    let line = bash_event("s", "c1", "rm a");
    format!(
        "echo '{line}' | {JACKLINE} stdio; {JACKLINE} off --why full --here; \
         echo '{line}' | {JACKLINE} stdio"
    )
}

/// The call was denied because nothing could be written. `jackline off` works anyway.
fn check_off_on_full_disk(run: &CliOutput) {
    assert_output(run, 0, "the guard is off");
    assert!(run.stdout.contains(r#""type":"guard_fault""#), "{run:?}");
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["decision"], "allow", "{run:?}");
}

/// A file size limit of zero: no file can grow by a single byte.
#[test]
fn off_works_when_no_byte_can_be_written() {
    let world = CliWorld::new(ASK_RULES);
    fs::create_dir(world.home()).unwrap();
    let script = format!("ulimit -f 0; trap '' XFSZ; {}", full_disk_script());
    let mut command = world.command("sh");
    check_off_on_full_disk(&run_with_input(
        with_runtime_directory(&mut command, &world).args(["-c", &script]),
        b"",
    ));
    assert_eq!(propose(&world, "s", "c2", "rm a"), "(deny)");
}

/// A full file system, if this machine allows the test to mount one.
#[test]
fn off_works_on_a_full_file_system() {
    let world = CliWorld::new(ASK_RULES);
    let home = world.home();
    fs::create_dir(&home).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k,mode=700 none {home} || exit 77; \
         cat /dev/zero > {home}/filler 2>/dev/null; {}",
        full_disk_script(),
        home = home.display(),
    );
    let mut command = world.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]);
    let run = run_with_input(
        with_runtime_directory(&mut command, &world).args(["sh", "-c", &script]),
        b"",
    );
    if run.code == Some(77) || run.stderr.contains("unshare") {
        eprintln!(
            "SKIPPED: this machine does not allow the test to mount a file system ({}); \
             `off_works_when_no_byte_can_be_written` tests the same with a file size limit",
            run.stderr.trim(),
        );
        assert_eq!(run.stdout, "", "the script must not have started");
        return;
    }
    check_off_on_full_disk(&run);
}

/// Runs a script in a shell that has the name of an agent.
fn run_as_agent(world: &CliWorld, name: &str, script: &str) -> CliOutput {
    let agent = world.root().join(name);
    fs::copy("/bin/sh", &agent).unwrap();
    let mut command = world.command(agent.to_str().unwrap());
    with_runtime_directory(&mut command, world);
    run_with_input(command.args(["-c", &format!("{script}; exit $?")]), b"")
}

#[test]
fn an_agent_cannot_answer_in_place_of_a_person() {
    let world = CliWorld::new(ASK_RULES);
    propose(&world, "s", "c1", "ship a");
    let code = approval_codes(&world)[0].clone();
    let records = world.records("s").len();
    for (name, script) in [
        ("claude", format!("{RELEASED} allow {code}")),
        ("codex", format!("{RELEASED} allow {code}")),
        ("gemini", format!("{RELEASED} reset s")),
        ("claude", format!("{RELEASED} reload s")),
        ("opencode", format!("{RELEASED} resume s")),
        ("claude", format!("{RELEASED} off --why mine")),
        ("claude", format!("{RELEASED} trust --yes")),
        ("claude", format!("{RELEASED} identity approve s")),
        ("claude", format!("{RELEASED} identity revoke 0123456789")),
        ("claude", format!("sh -c 'sh -c \"{RELEASED} off --why mine; exit \\$?\"; exit $?'")),
        ("claude", format!("env -i {RELEASED} off --why mine")),
        ("claude", format!("setsid --wait {RELEASED} off --why mine")),
    ] {
        let run = run_as_agent(&world, name, &script);
        assert_output(&run, 1, &format!("the agent `{name}` (process "));
        assert_output(&run, 1, "run it in a terminal window that you opened before");
    }
    assert_eq!(world.records("s").len(), records, "nothing may be recorded");
    assert_eq!(propose(&world, "s", "c2", "rm a"), "deny", "the guard is on");

    // An agent may make the guard stricter.
    assert_output(&run_as_agent(&world, "claude", &format!("{RELEASED} pause s")), 0, "is paused");
    assert_output(&run_as_agent(&world, "claude", &format!("{RELEASED} stop s")), 0, "is stopped");
    assert_output(
        &run_as_agent(&world, "claude", &format!("{RELEASED} pending")),
        0,
        "nothing waits",
    );
}

#[test]
fn an_agent_cannot_send_control_events_of_a_person() {
    let world = CliWorld::new(ASK_RULES);
    propose(&world, "s", "c1", "ship a");
    let control =
        |action: &str| format!(r#"{{"session":"s","event":"control","action":"{action}"}}"#);
    let lines = ["grant", "reload", "pause"].map(control).join("' '");
    let script = format!("printf '%s\\n' '{lines}' | {RELEASED} stdio");
    let run = run_as_agent(&world, "claude", &script);
    let refused = "deny opening_control";
    assert_eq!(run.decisions(), [refused, refused, "allow"], "{run:?}");
    assert_eq!(propose(&world, "s", "c2", "ship a"), "pause");
    assert_output(
        &world.jackline(&["log"]),
        0,
        "only a person may send `control`, but the agent `claude`",
    );
}

/// Environment variables that an agent sets, which all its child processes inherit.
#[test]
fn environment_variables_identify_an_agent() {
    let world = CliWorld::new(ASK_RULES);
    for marker in ["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID", "OPENCODE", "QWEN_CODE"] {
        let run = run_with_input(
            world.command(RELEASED).env(marker, "1").args(["off", "--why", "x"]),
            b"",
        );
        assert_output(&run, 1, &format!("has {marker} set"));
    }
    let script = format!("env -u CLAUDECODE {RELEASED} off --why x; exit $?");
    let run = run_with_input(world.command("sh").env("CLAUDECODE", "1").args(["-c", &script]), b"");
    assert_output(&run, 1, "`sh` (process ");
    // A terminal that the agent created is not a terminal of a person.
    let script = format!("script -qec '{RELEASED} off --why x' /dev/null");
    let run = run_as_agent(&world, "claude", &script);
    assert_output(&run, 1, "the agent `claude` (process ");
}

/// A process without an ancestor counts as started by the agent that runs at the same time. `sleep`
/// keeps the agent running until the answer is there.
#[test]
fn a_process_cannot_detach_from_a_running_agent() {
    let world = CliWorld::new(ASK_RULES);
    let (home, output) = (world.home(), world.root().join("output"));
    let off = format!("{RELEASED} off --why mine");
    for start in [
        format!("setsid --fork {off}"),
        format!("sh -c '({off} &)'"),
        format!("setsid --fork script -qec '{off}' /dev/null"),
    ] {
        let _ = fs::remove_file(&output);
        let script = format!(
            "env -i JACKLINE_HOME={} {start} < /dev/null > {output} 2>&1; \
             n=0; until grep -q 'opened before' {output} || test $n = 200; do sleep 0.05; n=$((n + 1)); done; cat {output}",
            home.display(),
            output = output.display(),
        );
        let run = run_as_agent(&world, "claude", &script);
        assert!(run.stdout.contains("only a person may run `jackline off`"), "{start}: {run:?}");
    }
    assert_eq!(propose(&world, "s", "c1", "rm a"), "deny", "the guard is on");
}

/// A text that is too long for a record would make the journal unreadable, so it is refused.
#[test]
fn a_text_that_is_too_long_for_a_record_is_refused() {
    let world = CliWorld::new(ASK_RULES);
    propose(&world, "s", "c1", "ship a");
    let code = approval_codes(&world)[0].clone();
    let records = world.records("s").len();
    let long = "x".repeat(20_000);
    for (args, option) in [
        (vec!["pause", "s", "--why", &long], "--why"),
        (vec!["stop", "s", "--by", &long], "--by"),
        (vec!["reset", "s", "--why", &long], "--why"),
        (vec!["skip-tests", "s", "--yes", "--why", &long], "--why"),
        (vec!["constraint", "expire", &long, "s"], "the id of a constraint"),
        (vec!["off", "--why", &long], "--why"),
        (vec!["off", "--why", "x", "--by", &long], "--by"),
        (vec!["allow", &code, "--why", &long], "--why"),
        (vec!["refuse", &code, "--why", &long], "--why"),
    ] {
        let error = format!("{option} takes at most 16384 bytes, not 20000");
        assert_output(&world.jackline(&args), 2, &error);
    }
    assert_eq!(world.records("s").len(), records);
    assert_eq!(propose(&world, "s", "c2", "rm a"), "deny", "the guard is on");
    let longest = "x".repeat(16_384);
    assert_output(&world.jackline(&["pause", "s", "--why", &longest]), 0, "is paused");
    for command in ["log", "show", "replay", "verify"] {
        let run = world.jackline(&[command, "s"]);
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
    world.verify_and_replay("s");
}
