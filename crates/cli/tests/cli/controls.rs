//! A person's controls through the binary: what waits, the answer, the way out
//! when the guard is broken, and who may use them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use crate::support::{JACKLINE, Run, World, feed};

const ASKS: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
  - { name: no-rm, command: rm, deny: Never., examples: { deny: [rm a] } }
";

fn bash(session: &str, call: &str, line: &str) -> String {
    format!(
        r#"{{"session":"{session}","event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
    )
}

/// Proposes a command line and gives the decision; what only would be decided
/// is in brackets.
fn propose(world: &World, session: &str, call: &str, line: &str) -> String {
    let run = world.stdio(&[bash(session, call, line)]);
    let verdict = &run.verdicts()[0];
    let decision = verdict["decision"].as_str().unwrap();
    if verdict["enforced"] == Value::Bool(false) {
        format!("({decision})")
    } else {
        decision.to_owned()
    }
}

/// The codes of what waits, the latest first.
fn codes(world: &World) -> Vec<String> {
    let run = world.jackline(&["pending", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let code = |line: Value| line["code"].as_str().unwrap().to_owned();
    run.verdicts().into_iter().map(code).collect()
}

fn ends(run: &Run, code: i32, said: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(said),
        "expected {code} and `{said}`: {run:#?}"
    );
}

#[test]
fn what_was_asked_is_allowed_once_by_its_code() {
    let world = World::new(ASKS);
    ends(&world.jackline(&["pending"]), 0, "nothing waits for a person");
    assert_eq!(propose(&world, "s", "c1", "ship a"), "ask");
    assert_eq!(propose(&world, "s", "c2", "ship b"), "ask");
    let [b, a] = &codes(&world)[..] else { panic!("two wait") };
    ends(&world.jackline(&["pending"]), 0, &format!("{a}  Bash `ship a`: A person decides."));
    ends(&world.jackline(&["status"]), 0, &format!("jackline allow {b}, or jackline refuse {b}"));

    ends(
        &world.jackline(&["allow", &a.to_uppercase(), "--by", "dana"]),
        0,
        "may pass once: Bash `ship a`",
    );
    assert_eq!(codes(&world), std::slice::from_ref(b));
    assert_eq!(propose(&world, "s", "c3", "ship a"), "allow");
    assert_eq!(propose(&world, "s", "c4", "ship a"), "ask", "once is once");
    assert_ne!(&codes(&world)[0], a, "it is another question");

    ends(&world.jackline(&["allow", b, "--for", "10m"]), 0, "may pass for 10 min");
    for call in ["c5", "c6"] {
        assert_eq!(propose(&world, "s", call, "ship b"), "allow");
    }
    let again = codes(&world)[0].clone();
    ends(&world.jackline(&["refuse", &again, "--why", "not today"]), 0, "refused in this session");
    assert_eq!(propose(&world, "s", "c7", "ship a"), "deny");
    world.prove("s");
}

#[test]
fn a_code_that_names_nothing_changes_nothing() {
    let world = World::new(ASKS);
    propose(&world, "s", "c1", "ship a");
    let code = codes(&world)[0].clone();
    let records = world.records("s").len();
    ends(
        &world.jackline(&["allow", "jl-000000"]),
        1,
        "nothing that waits has the code `jl-000000`",
    );
    ends(&world.jackline(&["allow", "ship a"]), 2, "is no code; one looks like `jl-");
    ends(&world.jackline(&["allow", &code, "--for", "soon"]), 2, "--for takes a time such as");
    assert_eq!(world.records("s").len(), records);

    // Answered, or reset: both are over.
    ends(&world.jackline(&["refuse", &code]), 0, "refused");
    ends(&world.jackline(&["allow", &code]), 1, "it was answered, or given up");
    propose(&world, "s", "c2", "ship c");
    let code = codes(&world)[0].clone();
    ends(&world.jackline(&["reset", "s"]), 0, "is open again");
    ends(&world.jackline(&["allow", &code]), 1, "it was answered, or given up");

    // One that nobody touched for more than a day.
    propose(&world, "s", "c3", "ship d");
    let code = codes(&world)[0].clone();
    let old = fs::File::options().append(true).open(world.journal("s")).unwrap();
    let day = std::time::Duration::from_hours(25);
    old.set_modified(old.metadata().unwrap().modified().unwrap() - day).unwrap();
    ends(&world.jackline(&["allow", &code]), 1, "older than a day");
    world.prove("s");
}

#[test]
fn a_code_belongs_to_one_session() {
    let world = World::new(ASKS);
    assert_eq!(propose(&world, "one", "c1", "ship a"), "ask");
    assert_eq!(propose(&world, "two", "c1", "ship a"), "ask");
    let [two, one] = &codes(&world)[..] else { panic!("two wait") };
    assert_ne!(one, two);
    ends(&world.jackline(&["allow", one]), 0, "may pass once");
    assert_eq!(propose(&world, "two", "c2", "ship a"), "ask", "its own grant is its own");
    assert_eq!(propose(&world, "one", "c2", "ship a"), "allow");
}

#[test]
fn a_person_steers_a_session() {
    let world = World::new("");
    propose(&world, "s", "c1", "ls");
    ends(&world.jackline(&["pause", "--by", "dana", "--why", "lunch"]), 0, "session `s` is paused");
    assert_eq!(propose(&world, "s", "c2", "ls"), "pause");
    ends(&world.jackline(&["status"]), 0, "dana: lunch");
    ends(&world.jackline(&["resume"]), 0, "session `s` goes on");
    ends(&world.jackline(&["resume"]), 1, "the session is not paused");
    assert_eq!(propose(&world, "s", "c3", "ls"), "allow");
    ends(&world.jackline(&["stop", "s"]), 0, "session `s` is stopped");
    assert_eq!(propose(&world, "s", "c4", "ls"), "stop");
    ends(&world.jackline(&["pause", "s"]), 1, "this session is over");
    ends(&world.jackline(&["reset", "s"]), 0, "session `s` is open again");
    assert_eq!(propose(&world, "s", "c5", "ls"), "allow");
    ends(&world.jackline(&["stop", "nobody"]), 2, "no session `nobody`");
    world.prove("s");
}

#[test]
fn off_is_for_a_while_for_a_place_and_for_a_reason() {
    let world = World::new(ASKS);
    assert_eq!(propose(&world, "s", "c1", "rm a"), "deny");
    ends(&world.jackline(&["off"]), 2, "--why");
    for odd in ["0m", "25h", "soon", "-1m"] {
        let run = world.jackline(&["off", &format!("--for={odd}"), "--why", "x"]);
        ends(&run, 2, "--for takes");
    }
    ends(
        &world.jackline(&["off", "--by", "dana", "--why", "a migration"]),
        0,
        "by dana: a migration",
    );
    assert_eq!(propose(&world, "s", "c2", "rm a"), "(deny)");
    ends(&world.jackline(&["status"]), 0, "guard off");
    ends(&world.jackline(&["log"]), 0, "the guard was off, by dana: a migration");
    ends(&world.jackline(&["on"]), 0, "the guard is on again");
    ends(&world.jackline(&["on"]), 0, "the guard is not off here");
    assert_eq!(propose(&world, "s", "c3", "rm a"), "deny");
    world.prove("s");

    // A directory in which nobody works says what to do.
    let run = feed(world.person().current_dir(world.root()).args(["off", "--why", "x"]), b"");
    ends(&run, 2, "say --here or --everywhere");
    let run = feed(
        world.person().current_dir(world.root()).args(["off", "--everywhere", "--why", "x"]),
        b"",
    );
    ends(&run, 0, "the guard is off everywhere");
    assert_eq!(propose(&world, "s", "c4", "rm a"), "(deny)");
    ends(&world.jackline(&["on"]), 0, "it was off everywhere");
}

/// A place for markers that no other test uses.
fn with_runtime_directory<'c>(command: &'c mut Command, world: &World) -> &'c mut Command {
    let runtime = world.root().join("runtime");
    let _ = fs::create_dir(&runtime);
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    command.env("XDG_RUNTIME_DIR", runtime)
}

/// Off works in a broken state, and a call passes then that was denied before.
fn check_broken(world: &World, prepare: &dyn Fn(&mut Command)) {
    let run = |words: &[&str], input: &str| {
        let mut command = world.person();
        with_runtime_directory(&mut command, world);
        prepare(&mut command);
        feed(command.args(words), input.as_bytes())
    };
    let line = bash("s", "c1", "rm a");
    let denied = run(&["stdio"], &line);
    assert_eq!(denied.code, Some(3), "{denied:?}");
    assert!(denied.stdout.contains("jackline off --for 30m --why"), "{denied:?}");
    let off = run(&["off", "--for", "5m", "--why", "it is broken"], "");
    ends(&off, 0, "it is broken");
    let passed = run(&["stdio"], &line);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let verdict = &passed.verdicts()[0];
    assert_eq!(
        (&verdict["decision"], &verdict["error"]),
        (&"allow".into(), &Value::Null),
        "{verdict}"
    );
    ends(&run(&["on"], ""), 0, "the guard is on again");
    assert_eq!(run(&["stdio"], &line).code, Some(3));
}

#[test]
fn off_works_with_a_state_home_that_cannot_be_made() {
    let world = World::new(ASKS);
    let below_a_file = world.work().join("jackline.yaml").join("home");
    check_broken(&world, &|command| {
        command.env("JACKLINE_HOME", &below_a_file);
    });
}

/// Nobody may write to sysfs, not even root.
#[test]
fn off_works_with_a_read_only_state_home() {
    let world = World::new(ASKS);
    check_broken(&world, &|command| {
        command.env("JACKLINE_HOME", "/sys/kernel/jackline-home");
    });
}

#[test]
fn off_works_with_a_journal_that_is_none() {
    let world = World::new(ASKS);
    propose(&world, "s", "c0", "ls");
    fs::remove_file(world.directory("s").join("state")).unwrap();
    fs::write(world.journal("s"), "garbage\ngarbage\n").unwrap();
    check_broken(&world, &|_| {});
}

#[test]
fn off_works_without_any_state_home() {
    let world = World::new(ASKS);
    let mut command = world.person();
    with_runtime_directory(&mut command, &world).env_remove("JACKLINE_HOME");
    let run = feed(command.args(["off", "--why", "nothing is set"]), b"");
    ends(&run, 0, "nothing is set");
    let mut command = world.person();
    with_runtime_directory(&mut command, &world).env_remove("JACKLINE_HOME");
    ends(&feed(command.arg("on"), b""), 0, "the guard is on again");
}

/// A call that is denied, the way out, and the call again.
fn full() -> String {
    let line = bash("s", "c1", "rm a");
    format!(
        "echo '{line}' | {JACKLINE} stdio; {JACKLINE} off --why full --here; \
         echo '{line}' | {JACKLINE} stdio"
    )
}

/// Nothing could be written, so the call was denied; the way out works all the same.
fn check_full(run: &Run) {
    ends(run, 0, "the guard is off");
    assert!(run.stdout.contains(r#""type":"guard_fault""#), "{run:?}");
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["decision"], "allow", "{run:?}");
}

/// A limit on the size of files is a disk that takes no byte more.
#[test]
fn off_works_where_no_byte_can_be_written() {
    let world = World::new(ASKS);
    fs::create_dir(world.home()).unwrap();
    let script = format!("ulimit -f 0; trap '' XFSZ; {}", full());
    // Below an agent nobody may switch anything off, so that is left behind.
    let below = jackline_host::agent_above().is_some();
    let mut command = if below { world.apart("sh") } else { world.command("sh") };
    check_full(&feed(with_runtime_directory(&mut command, &world).args(["-c", &script]), b""));
    assert_eq!(propose(&world, "s", "c2", "rm a"), "(deny)");
}

/// A file system without any room, where this machine lets us make one.
#[test]
fn off_works_on_a_full_file_system() {
    let world = World::new(ASKS);
    let home = world.home();
    fs::create_dir(&home).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k,mode=700 none {home} || exit 77; \
         cat /dev/zero > {home}/filler 2>/dev/null; {}",
        full(),
        home = home.display(),
    );
    let mut command = world.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]);
    let run = feed(with_runtime_directory(&mut command, &world).args(["sh", "-c", &script]), b"");
    if run.code == Some(77) || run.stderr.contains("unshare") {
        eprintln!(
            "SKIPPED: this machine lets nobody mount a file system of their own ({}); \
             `off_works_where_no_byte_can_be_written` asks the same of a limit on files",
            run.stderr.trim(),
        );
        assert_eq!(run.stdout, "", "nothing was tried");
        return;
    }
    check_full(&run);
}

/// A shell that goes by the name of an agent.
fn as_agent(world: &World, name: &str, script: &str) -> Run {
    let agent = world.root().join(name);
    fs::copy("/bin/sh", &agent).unwrap();
    let mut command = world.command(agent.to_str().unwrap());
    with_runtime_directory(&mut command, world);
    feed(command.args(["-c", &format!("{script}; exit $?")]), b"")
}

#[test]
fn an_agent_cannot_answer_for_a_person() {
    let world = World::new(ASKS);
    propose(&world, "s", "c1", "ship a");
    let code = codes(&world)[0].clone();
    let records = world.records("s").len();
    for (name, script) in [
        ("claude", format!("{JACKLINE} allow {code}")),
        ("codex", format!("{JACKLINE} allow {code}")),
        ("gemini", format!("{JACKLINE} reset s")),
        ("claude", format!("{JACKLINE} reload s")),
        ("opencode", format!("{JACKLINE} resume s")),
        ("claude", format!("{JACKLINE} off --why mine")),
        ("claude", format!("{JACKLINE} trust --yes")),
        ("claude", format!("{JACKLINE} identity approve s")),
        ("claude", format!("{JACKLINE} identity revoke 0123456789")),
        ("claude", format!("sh -c 'sh -c \"{JACKLINE} off --why mine; exit \\$?\"; exit $?'")),
        ("claude", format!("env -i {JACKLINE} off --why mine")),
        ("claude", format!("setsid --wait {JACKLINE} off --why mine")),
    ] {
        let run = as_agent(&world, name, &script);
        ends(&run, 1, &format!("the agent `{name}` (process "));
        ends(&run, 1, "run it in a terminal that no agent has started");
    }
    assert_eq!(world.records("s").len(), records, "nothing was said");
    assert_eq!(propose(&world, "s", "c2", "rm a"), "deny", "nothing is off");

    // What tightens is anybody's.
    ends(&as_agent(&world, "claude", &format!("{JACKLINE} pause s")), 0, "is paused");
    ends(&as_agent(&world, "claude", &format!("{JACKLINE} stop s")), 0, "is stopped");
    ends(&as_agent(&world, "claude", &format!("{JACKLINE} pending")), 0, "nothing waits");
}

#[test]
fn an_agent_cannot_send_a_persons_word() {
    let world = World::new(ASKS);
    propose(&world, "s", "c1", "ship a");
    let say = |action: &str| format!(r#"{{"session":"s","event":"control","action":"{action}"}}"#);
    let lines = ["grant", "reload", "pause"].map(say).join("' '");
    let script = format!("printf '%s\\n' '{lines}' | {JACKLINE} stdio");
    let run = as_agent(&world, "claude", &script);
    let refused = "deny opening_control";
    assert_eq!(run.answers(), [refused, refused, "allow"], "{run:?}");
    assert_eq!(propose(&world, "s", "c2", "ship a"), "pause");
    ends(
        &world.jackline(&["log"]),
        0,
        "only a person may send this `control`, and the agent `claude`",
    );
}

/// What an agent tells its children stays with them, whoever their parent is.
#[test]
fn a_marker_gives_an_agent_away() {
    let world = World::new(ASKS);
    for marker in ["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID", "OPENCODE", "QWEN_CODE"] {
        let run = feed(world.command(JACKLINE).env(marker, "1").args(["off", "--why", "x"]), b"");
        ends(&run, 1, &format!("has {marker} set"));
    }
    let script = format!("env -u CLAUDECODE {JACKLINE} off --why x; exit $?");
    let run = feed(world.command("sh").env("CLAUDECODE", "1").args(["-c", &script]), b"");
    ends(&run, 1, "`sh` (process ");
    // A terminal of its own is no terminal of a person.
    let script = format!("script -qec '{JACKLINE} off --why x' /dev/null");
    let run = as_agent(&world, "claude", &script);
    ends(&run, 1, "the agent `claude` (process ");
}

/// Who forgets where it comes from is taken for the agent's that is at work
/// beside it. `sleep` keeps the agent at work until the answer is there.
#[test]
fn an_agent_cannot_cut_itself_loose_while_it_is_at_work() {
    let world = World::new(ASKS);
    let (home, said) = (world.home(), world.root().join("said"));
    let off = format!("{JACKLINE} off --why mine");
    for start in [
        format!("setsid --fork {off}"),
        format!("sh -c '({off} &)'"),
        format!("setsid --fork script -qec '{off}' /dev/null"),
    ] {
        let _ = fs::remove_file(&said);
        let script = format!(
            "env -i JACKLINE_HOME={} {start} < /dev/null > {said} 2>&1; \
             n=0; until grep -q 'has started' {said} || test $n = 200; do sleep 0.05; n=$((n + 1)); done; cat {said}",
            home.display(),
            said = said.display(),
        );
        let run = as_agent(&world, "claude", &script);
        assert!(run.stdout.contains("only a person may `jackline off`"), "{start}: {run:?}");
    }
    assert_eq!(propose(&world, "s", "c1", "rm a"), "deny", "nothing is off");
}

/// What is written down has to be read again, so what is too long never is.
#[test]
fn words_that_no_record_takes_are_refused_and_the_journal_stays_readable() {
    let world = World::new(ASKS);
    propose(&world, "s", "c1", "ship a");
    let code = codes(&world)[0].clone();
    let records = world.records("s").len();
    let long = "x".repeat(20_000);
    for (words, option) in [
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
        let said = format!("{option} takes at most 16384 bytes, not 20000");
        ends(&world.jackline(&words), 2, &said);
    }
    assert_eq!(world.records("s").len(), records);
    assert_eq!(propose(&world, "s", "c2", "rm a"), "deny", "it is not off");
    let longest = "x".repeat(16_384);
    ends(&world.jackline(&["pause", "s", "--why", &longest]), 0, "is paused");
    for command in ["log", "show", "replay", "verify"] {
        let run = world.jackline(&[command, "s"]);
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
    world.prove("s");
}
