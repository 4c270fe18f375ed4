//! Definitions as people use them: broken and fixed, split into several files, in layers, and paths
//! that are not regular files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use jackline_engine::Digest;
use jackline_engine::facts::DefinitionFact;
use serde_json::{Value, json};

use crate::session_events::{
    human_prompt, send_event, send_events, send_events_with, session_started, shell_proposed,
    stop_proposed, tool_finished, tool_proposed, verdict_summaries, verdict_summary,
    violation_message,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

const ONE_STEP: &str = "limits: { steps: 1 }\n";
const BROKEN: &str = "limitz: { steps: 1 }\n";

fn write_file(world: &CliWorld, name: &str, text: &str) {
    fs::write(world.workspace().join(name), text).unwrap();
}

/// Returns the exit status and the output of `check`.
fn check(world: &CliWorld) -> (Option<i32>, String) {
    let run = world.jackline(&["check"]);
    (run.code, format!("{}{}", run.stdout, run.stderr))
}

fn definition_checksum(world: &CliWorld) -> Value {
    let run = world.jackline(&["check", "--json"]);
    serde_json::from_str::<Value>(&run.stdout).unwrap()["checksum"].clone()
}

/// Returns the feedback about the definition that the agent receives.
fn definition_feedback(verdict: &Value) -> &str {
    let feedback = verdict["feedback"].as_array().map_or(&[][..], Vec::as_slice);
    let own = feedback.iter().find(|feedback| feedback["provider"] == "Definition");
    own.map_or("", |feedback| feedback["summary"].as_str().unwrap())
}

/// Returns whether the second of two calls exceeds the limit.
fn is_limited(world: &CliWorld, session: &str) -> bool {
    let verdicts =
        send_events(world, session, &[shell_proposed("a", "ls"), shell_proposed("b", "ls")]);
    verdict_summaries(&verdicts) == ["allow", "stop steps"]
}

#[test]
fn a_definition_that_breaks_during_a_session_is_reported_and_stays_in_force() {
    let world = CliWorld::new(ONE_STEP);
    send_event(&world, "s", session_started());
    write_file(&world, "jackline.yaml", BROKEN);
    let reason = format!(
        "{}:1:1: unknown key `limitz` in the definition; did you mean `limits`?",
        world.workspace().join("jackline.yaml").display()
    );
    let verdict = send_event(&world, "s", human_prompt());
    assert_eq!(
        definition_feedback(&verdict),
        format!("The definition no longer loads, so the last good one stays in force: {reason}")
    );
    assert!(verdict["context"].as_str().unwrap().contains("<feedback provider='Definition'"));
    assert!(is_limited(&world, "s"));
    let log = world.jackline(&["log", "s"]).stdout;
    let note =
        format!("the definition no longer loads; the last valid one stays in force: {reason}");
    assert!(log.contains(&note), "{log}");

    // The fixed file is a new definition, which the next session uses.
    write_file(&world, "jackline.yaml", "limits: { steps: 9 }\n");
    send_event(&world, "t", session_started());
    let verdict = send_event(&world, "t", human_prompt());
    assert_eq!((verdict_summary(&verdict).as_str(), definition_feedback(&verdict)), ("allow", ""));
    assert!(!is_limited(&world, "t"));
    world.verify_and_replay("s");
    world.verify_and_replay("t");
}

#[test]
fn a_session_that_starts_under_a_broken_definition_gets_a_warning() {
    let world = CliWorld::new(ONE_STEP);
    send_event(&world, "s", session_started());
    write_file(&world, "jackline.yaml", BROKEN);
    let run =
        send_events_with(&mut world.command(JACKLINE), "t", &[session_started(), human_prompt()]);
    let good = Digest::of(ONE_STEP.as_bytes());
    let start = format!(
        "warning: the definition does not load, and the last good one ({good}) stays in force in \
         session `t`: "
    );
    assert!(run.stderr.starts_with(&start) && run.stderr.lines().count() == 1, "{}", run.stderr);
    for verdict in &run.json_lines() {
        assert!(definition_feedback(verdict).contains("unknown key `limitz`"), "{verdict}");
    }
    assert!(is_limited(&world, "t"));
    let log = world.jackline(&["log", "t"]).stdout;
    assert!(log.contains("the definition does not load, and the last good one ("), "{log}");
    world.verify_and_replay("t");
}

#[test]
fn without_a_last_good_definition_everything_is_denied_until_it_is_fixed() {
    let world = CliWorld::new(BROKEN);
    let events = [
        session_started(),
        human_prompt(),
        shell_proposed("a", "ls"),
        tool_finished("a"),
        stop_proposed(),
    ];
    let denied = send_events_with(&mut world.command(JACKLINE), "s", &events);
    assert_eq!(denied.code, Some(3));
    for verdict in &denied.json_lines() {
        assert_eq!(verdict_summary(verdict), "deny definition");
        assert!(violation_message(verdict).starts_with("the guard is broken, not the call: "));
        assert!(violation_message(verdict).ends_with("did you mean `limits`?"));
        assert_eq!(
            verdict["violations"][0]["correction"],
            "fix the definition (`jackline check` shows the errors), then send the event again; a person can check \
             with `jackline status`, or turn the guard off for a while \
             with `jackline off --for 30m --why …`"
        );
    }
    assert!(!world.journal_path("s").exists());
    write_file(&world, "jackline.yaml", ONE_STEP);
    assert_eq!(verdict_summary(&send_event(&world, "s", session_started())), "allow");
    world.verify_and_replay("s");
}

#[test]
fn an_extended_file_is_a_part_of_the_definition() {
    let world = CliWorld::new("extends: ./base.yaml\n");
    write_file(&world, "base.yaml", "limits: { steps: 9 }\n");
    let before = definition_checksum(&world);
    send_event(&world, "s", session_started());
    write_file(&world, "base.yaml", ONE_STEP);
    assert_ne!(definition_checksum(&world), before);
    // The change is for the next session.
    assert_eq!(definition_feedback(&send_event(&world, "s", human_prompt())), "");
    let changed = world.records("s").pop().unwrap().facts.definition;
    assert!(matches!(changed, Some(DefinitionFact::Changed { .. })), "{changed:?}");
    assert!(!is_limited(&world, "s"));
    assert!(is_limited(&world, "t"));

    // If the extended file is broken, the last good definition stays in force.
    write_file(&world, "base.yaml", BROKEN);
    let verdict = send_event(&world, "u", session_started());
    assert!(
        definition_feedback(&verdict).contains("base.yaml:1:1: unknown key `limitz`"),
        "{verdict}"
    );
    assert!(is_limited(&world, "u"));
    fs::remove_file(world.workspace().join("base.yaml")).unwrap();
    let verdict = send_event(&world, "v", session_started());
    assert!(definition_feedback(&verdict).contains("No such file or directory"), "{verdict}");
    assert!(is_limited(&world, "v"));
    ["s", "t", "u", "v"].iter().for_each(|session| world.verify_and_replay(session));
}

#[test]
fn an_agent_cannot_write_an_extended_file() {
    let world = CliWorld::new("extends: ./team/base.yaml\n");
    fs::create_dir(world.workspace().join("team")).unwrap();
    write_file(&world, "team/base.yaml", ONE_STEP.replace('1', "99").as_str());
    let write_base = json!({"file_path": "team/base.yaml", "content": ""});
    let verdicts = send_events(
        &world,
        "s",
        &[
            tool_proposed("a", "Write", &write_base),
            shell_proposed("b", "echo 'mode: observe' >> team/base.yaml"),
            shell_proposed("c", "rm -rf team"),
            shell_proposed("d", "cat team/base.yaml"),
            tool_finished("d"),
            shell_proposed("e", "./opaque"),
        ],
    );
    let denied = "deny protected_write";
    assert_eq!(verdict_summaries(&verdicts), [denied, denied, denied, "allow", "allow", "allow"]);
    write_file(&world, "team/base.yaml", "mode: observe\n");
    let verdict = send_event(&world, "s", tool_finished("e"));
    assert_eq!(verdict_summary(&verdict), "pause changed_during_call");
    let base = fs::read_to_string(world.workspace().join("team/base.yaml")).unwrap();
    assert_eq!(base, "limits: { steps: 99 }\n");
    world.verify_and_replay("s");
}

#[test]
fn a_file_that_cannot_be_extended_is_named_with_its_position() {
    for (source, problem) in [
        (
            "extends: ./jackline.yaml\n",
            "1:10: this file extends itself: `jackline.yaml` → `jackline.yaml`",
        ),
        (
            "name: a/b\nextends: [./gone.yaml]\n",
            "2:11: can't read `gone.yaml`: No such file or directory (os error 2)",
        ),
        (
            "extends: [../base.yaml]\n",
            "1:11: `../base.yaml` is outside the directory of the definition; extend files in that \
             directory or below it",
        ),
        (
            "extends: [a/../../base.yaml]\n",
            "1:11: `a/../../base.yaml` is outside the directory of the definition; extend files in \
             that directory or below it",
        ),
        (
            "extends: [/srv/base.yaml]\n",
            "1:11: `/srv/base.yaml` is not a relative path; write a path relative to the file that \
             extends it, such as ./base.yaml",
        ),
        (
            "extends: [~/base.yaml]\n",
            "1:11: `~/base.yaml` is not a relative path; write a path relative to the file that \
             extends it, such as ./base.yaml",
        ),
        (
            "extends: [./]\n",
            "1:11: can't read `.`: it is a directory; give the path of a regular file instead",
        ),
    ] {
        let world = CliWorld::new(source);
        let expected = format!("jackline.yaml:{problem}\nerror: 1 problem in `jackline.yaml`\n");
        assert_eq!(check(&world), (Some(1), expected));
        let run = send_events_with(&mut world.command(JACKLINE), "s", &[session_started()]);
        assert_eq!(run.decisions(), ["deny definition"]);
    }
    let world = CliWorld::new("extends: ./a.yaml\n");
    write_file(&world, "a.yaml", "extends: [./b.yaml]\n");
    write_file(&world, "b.yaml", "extends: [pack/git, ./a.yaml]\n");
    assert_eq!(
        check(&world),
        (
            Some(1),
            "b.yaml:1:21: this file extends itself: `jackline.yaml` → `a.yaml` → `b.yaml` → `a.yaml`\n\
             error: 1 problem in `jackline.yaml`\n"
                .to_owned()
        )
    );
}

/// Opening a pipe without a writer would block forever, and a hook without an answer lets the call
/// through.
#[test]
fn a_path_that_is_not_a_regular_file_does_not_block() {
    let make_pipe = |path: PathBuf| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let in_time = |world: &CliWorld, args: &[&str], input: &str| {
        let mut command = world.command("timeout");
        command.args(["20", JACKLINE]).args(args);
        let run = run_with_input(&mut command, input.as_bytes());
        assert_ne!(run.code, Some(124), "timed out after 20 s");
        run
    };
    let start = r#"{"session":"s","event":"session_started"}"#;

    for (kind, is) in [("pipe", "a pipe"), ("endless", "a device")] {
        let world = CliWorld::new("extends: ./base.yaml\n");
        let base = world.workspace().join("base.yaml");
        match kind {
            "pipe" => make_pipe(base),
            _ => symlink("/dev/zero", base).unwrap(),
        }
        let run = in_time(&world, &["check"], "");
        assert_eq!(run.code, Some(1));
        let expected =
            format!("can't read `base.yaml`: it is {is}; give the path of a regular file");
        assert!(run.stdout.contains(&expected), "{run:?}");
        assert_eq!(in_time(&world, &["stdio"], start).decisions(), ["deny definition"]);
    }

    // A file that is replaced by a pipe during a session.
    let world = CliWorld::new("extends: ./base.yaml\n");
    write_file(&world, "base.yaml", ONE_STEP);
    send_event(&world, "s", session_started());
    fs::remove_file(world.workspace().join("base.yaml")).unwrap();
    make_pipe(world.workspace().join("base.yaml"));
    let line = r#"{"session":"s","event":"prompt_submitted","source":"human","text":"go"}"#;
    let run = in_time(&world, &["stdio"], line);
    assert!(
        definition_feedback(&run.json_lines()[0]).contains("it is a pipe; give the path"),
        "{run:?}"
    );
    world.verify_and_replay("s");
}

/// A machine with a managed definition, a user definition and a repository definition.
struct LayeredMachine {
    world: CliWorld,
}

impl LayeredMachine {
    fn new(managed: Option<&str>, user: &str, repository: &str) -> Self {
        let world = CliWorld::new(repository);
        fs::create_dir_all(world.root().join("config/jackline")).unwrap();
        fs::write(world.root().join("config/jackline/jackline.yaml"), user).unwrap();
        if let Some(managed) = managed {
            fs::write(world.root().join("managed.yaml"), managed).unwrap();
        }
        Self { world }
    }

    fn command(&self) -> Command {
        let mut command = self.world.command(JACKLINE);
        command.env("XDG_CONFIG_HOME", self.world.root().join("config"));
        let managed = self.world.root().join("managed.yaml");
        if managed.exists() {
            command.env("JACKLINE_MANAGED", managed);
        }
        command
    }

    fn jackline(&self, args: &[&str]) -> CliOutput {
        run_with_input(self.command().args(args), b"")
    }

    fn send_events(&self, session: &str, events: &[Value]) -> Vec<Value> {
        send_events_with(&mut self.command(), session, events).json_lines()
    }

    /// Returns the decision on a force push, and whether it is enforced.
    fn force_push(&self, session: &str) -> (String, bool) {
        let verdict =
            self.send_events(session, &[shell_proposed("c", "git push -f origin work")]).remove(0);
        (verdict_summary(&verdict), verdict["enforced"].as_bool().unwrap_or(true))
    }

    fn is_effective(&self, line: &str) -> bool {
        let output = self.jackline(&["check", "--effective"]).stdout;
        // Column widths depend on the content.
        let collapse = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        output.lines().any(|row| collapse(row) == line)
    }

    fn verify_and_replay(&self, session: &str) {
        self.world.verify_and_replay(session);
    }
}

const FORCE_PUSH_RULE: &str = "`git/push-force` denies `git push` under a condition";

#[test]
fn a_repository_cannot_silence_what_a_person_enforces_until_they_trust_it() {
    let machine = LayeredMachine::new(None, "extends: [pack/git]\n", "mode: observe\n");
    assert_eq!(machine.force_push("s"), ("deny git/push-force".to_owned(), true));
    assert!(machine.is_effective(&format!("rule user, pack git {FORCE_PUSH_RULE}")));
    assert!(machine.is_effective("setting user mode: enforce"));
    assert!(machine.is_effective(
        "`mode: observe` (repository) ignored: the user layer enforces; `jackline trust` would allow it"
    ));

    assert_eq!(machine.jackline(&["trust", "--yes"]).code, Some(0));
    assert_eq!(machine.force_push("t"), ("deny git/push-force".to_owned(), false));
    assert!(machine.is_effective("setting repository mode: observe"));
    assert!(machine.is_effective(
        "`mode: enforce` (user) ignored: the repository layer overrides it, and its file is trusted"
    ));
    // A session that started before the change keeps its definition.
    assert_eq!(machine.send_events("s", &[human_prompt()])[0]["decision"], "allow");
    machine.verify_and_replay("s");
    machine.verify_and_replay("t");
}

#[test]
fn a_repository_cannot_silence_the_managed_layer() {
    let machine =
        LayeredMachine::new(Some("extends: [pack/git]\n"), "mode: observe\n", "mode: observe\n");
    for session in ["s", "t"] {
        assert_eq!(machine.force_push(session), ("deny git/push-force".to_owned(), true));
        assert!(machine.is_effective(&format!("rule managed, pack git {FORCE_PUSH_RULE}")));
        assert!(machine.is_effective("`mode: observe` (user) ignored: the managed layer enforces"));
        machine.verify_and_replay(session);
        machine.jackline(&["trust", "--yes"]);
    }
}

#[test]
fn upper_layers_are_as_protected_as_the_file_of_the_repository() {
    let machine =
        LayeredMachine::new(Some("limits: { steps: 50 }\n"), "limits: { steps: 40 }\n", "");
    let root = machine.world.root();
    let managed = root.join("managed.yaml");
    let write = |path: PathBuf| json!({"file_path": path, "content": ""});
    let verdicts = machine.send_events(
        "s",
        &[
            session_started(),
            tool_proposed("a", "Write", &write(managed.clone())),
            tool_proposed("b", "Edit", &write(root.join("config/jackline/jackline.yaml"))),
            shell_proposed("c", &format!("rm -rf {}", root.join("config").display())),
            shell_proposed("d", "./opaque"),
        ],
    );
    let denied = "deny protected_write";
    assert_eq!(verdict_summaries(&verdicts), ["allow", denied, denied, denied, "allow"]);
    fs::write(&managed, "mode: observe\n").unwrap();
    assert_eq!(
        verdict_summary(&machine.send_events("s", &[tool_finished("d")])[0]),
        "pause changed_during_call"
    );
    assert_eq!(fs::read_to_string(&managed).unwrap(), "limits: { steps: 50 }\n");
    machine.verify_and_replay("s");
}

#[test]
fn a_broken_layer_is_reported_and_a_missing_managed_layer_denies_everything() {
    let machine = LayeredMachine::new(None, ONE_STEP, "mode: observe\n");
    machine.send_events("s", &[session_started()]);
    let user = machine.world.root().join("config/jackline/jackline.yaml");
    fs::write(&user, BROKEN).unwrap();
    let verdicts = machine.send_events(
        "t",
        &[session_started(), shell_proposed("a", "ls"), shell_proposed("b", "ls")],
    );
    assert!(
        definition_feedback(&verdicts[0])
            .contains("config/jackline/jackline.yaml:1:1: unknown key `limitz`")
    );
    assert_eq!(verdict_summary(&verdicts[2]), "stop steps");
    machine.verify_and_replay("t");

    // Without the managed layer, Jackline cannot know what is enforced.
    let mut command = machine.command();
    command.env("JACKLINE_MANAGED", machine.world.root().join("gone.yaml"));
    let other = CliWorld::new("");
    let run = send_events_with(command.current_dir(other.workspace()), "u", &[session_started()]);
    assert_eq!(run.decisions(), ["deny definition"]);
}
