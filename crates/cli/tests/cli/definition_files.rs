//! What becomes of definitions in the hands of people: broken, mended, made of
//! several files, in layers, and of things that are no files at all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use jackline_engine::Digest;
use jackline_engine::facts::DefinitionFact;
use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};
use crate::words::{
    all_words, finish, message, prompt, propose, run, started, stop, tell, tell_by, tell_one, words,
};

const ONE_STEP: &str = "limits: { steps: 1 }\n";
const BROKEN: &str = "limitz: { steps: 1 }\n";

fn write(world: &World, name: &str, text: &str) {
    fs::write(world.work().join(name), text).unwrap();
}

/// What `check` says, and with which code it ends.
fn check(world: &World) -> (Option<i32>, String) {
    let run = world.jackline(&["check"]);
    (run.code, format!("{}{}", run.stdout, run.stderr))
}

fn checksum(world: &World) -> Value {
    let run = world.jackline(&["check", "--json"]);
    serde_json::from_str::<Value>(&run.stdout).unwrap()["checksum"].clone()
}

/// What the agent is told about its definition.
fn told(verdict: &Value) -> &str {
    let feedback = verdict["feedback"].as_array().map_or(&[][..], Vec::as_slice);
    let own = feedback.iter().find(|feedback| feedback["provider"] == "Definition");
    own.map_or("", |feedback| feedback["summary"].as_str().unwrap())
}

/// Two calls under a limit of one.
fn is_limited(world: &World, session: &str) -> bool {
    let verdicts = tell(world, session, &[run("a", "ls"), run("b", "ls")]);
    all_words(&verdicts) == ["allow", "stop steps"]
}

#[test]
fn a_definition_that_breaks_under_a_session_is_told_and_stays_in_force() {
    let world = World::new(ONE_STEP);
    tell_one(&world, "s", started());
    write(&world, "jackline.yaml", BROKEN);
    let reason = format!(
        "{}:1:1: unknown key `limitz` in the definition; did you mean `limits`?",
        world.work().join("jackline.yaml").display()
    );
    let verdict = tell_one(&world, "s", prompt());
    assert_eq!(
        told(&verdict),
        format!("The definition no longer loads, so the last good one stays in force: {reason}")
    );
    assert!(verdict["context"].as_str().unwrap().contains("<feedback provider='Definition'"));
    assert!(is_limited(&world, "s"));
    let log = world.jackline(&["log", "s"]).stdout;
    let note = format!("the definition no longer loads, the last good one is in force: {reason}");
    assert!(log.contains(&note), "{log}");

    // Mended, it is another one, and for the next session.
    write(&world, "jackline.yaml", "limits: { steps: 9 }\n");
    tell_one(&world, "t", started());
    let verdict = tell_one(&world, "t", prompt());
    assert_eq!((words(&verdict).as_str(), told(&verdict)), ("allow", ""));
    assert!(!is_limited(&world, "t"));
    world.prove("s");
    world.prove("t");
}

#[test]
fn a_session_that_begins_under_a_broken_definition_hears_of_it() {
    let world = World::new(ONE_STEP);
    tell_one(&world, "s", started());
    write(&world, "jackline.yaml", BROKEN);
    let run = tell_by(&mut world.command(JACKLINE), "t", &[started(), prompt()]);
    let good = Digest::of(ONE_STEP.as_bytes());
    let start = format!(
        "warning: the definition does not load, and the last good one ({good}) stays in force in \
         session `t`: "
    );
    assert!(run.stderr.starts_with(&start) && run.stderr.lines().count() == 1, "{}", run.stderr);
    for verdict in &run.verdicts() {
        assert!(told(verdict).contains("unknown key `limitz`"), "{verdict}");
    }
    assert!(is_limited(&world, "t"));
    let log = world.jackline(&["log", "t"]).stdout;
    assert!(log.contains("the definition does not load, and the last good one ("), "{log}");
    world.prove("t");
}

#[test]
fn without_a_last_good_definition_everything_is_denied_until_it_is_mended() {
    let world = World::new(BROKEN);
    let events = [started(), prompt(), run("a", "ls"), finish("a"), stop()];
    let denied = tell_by(&mut world.command(JACKLINE), "s", &events);
    assert_eq!(denied.code, Some(3));
    for verdict in &denied.verdicts() {
        assert_eq!(words(verdict), "deny definition");
        assert!(message(verdict).starts_with("the guard is broken, not the call: "));
        assert!(message(verdict).ends_with("did you mean `limits`?"));
        assert_eq!(
            verdict["violations"][0]["correction"],
            "mend the definition (`jackline check`), then send it again; a person can look \
             with `jackline status`, or pass for a while \
             with `jackline off --for 30m --why …`"
        );
    }
    assert!(!world.journal("s").exists());
    write(&world, "jackline.yaml", ONE_STEP);
    assert_eq!(words(&tell_one(&world, "s", started())), "allow");
    world.prove("s");
}

#[test]
fn a_file_that_is_extended_is_a_part_of_the_definition() {
    let world = World::new("extends: ./base.yaml\n");
    write(&world, "base.yaml", "limits: { steps: 9 }\n");
    let before = checksum(&world);
    tell_one(&world, "s", started());
    write(&world, "base.yaml", ONE_STEP);
    assert_ne!(checksum(&world), before);
    // For the next session.
    assert_eq!(told(&tell_one(&world, "s", prompt())), "");
    let changed = world.records("s").pop().unwrap().facts.definition;
    assert!(matches!(changed, Some(DefinitionFact::Changed { .. })), "{changed:?}");
    assert!(!is_limited(&world, "s"));
    assert!(is_limited(&world, "t"));

    // Broken, it leaves the last good one.
    write(&world, "base.yaml", BROKEN);
    let verdict = tell_one(&world, "u", started());
    assert!(told(&verdict).contains("base.yaml:1:1: unknown key `limitz`"), "{verdict}");
    assert!(is_limited(&world, "u"));
    fs::remove_file(world.work().join("base.yaml")).unwrap();
    let verdict = tell_one(&world, "v", started());
    assert!(told(&verdict).contains("No such file or directory"), "{verdict}");
    assert!(is_limited(&world, "v"));
    ["s", "t", "u", "v"].iter().for_each(|session| world.prove(session));
}

#[test]
fn a_file_that_is_extended_is_written_by_no_agent() {
    let world = World::new("extends: ./team/base.yaml\n");
    fs::create_dir(world.work().join("team")).unwrap();
    write(&world, "team/base.yaml", ONE_STEP.replace('1', "99").as_str());
    let write_base = json!({"file_path": "team/base.yaml", "content": ""});
    let verdicts = tell(
        &world,
        "s",
        &[
            propose("a", "Write", &write_base),
            run("b", "echo 'mode: observe' >> team/base.yaml"),
            run("c", "rm -rf team"),
            run("d", "cat team/base.yaml"),
            finish("d"),
            run("e", "./opaque"),
        ],
    );
    let denied = "deny protected_write";
    assert_eq!(all_words(&verdicts), [denied, denied, denied, "allow", "allow", "allow"]);
    write(&world, "team/base.yaml", "mode: observe\n");
    let verdict = tell_one(&world, "s", finish("e"));
    assert_eq!(words(&verdict), "pause changed_during_call");
    let base = fs::read_to_string(world.work().join("team/base.yaml")).unwrap();
    assert_eq!(base, "limits: { steps: 99 }\n");
    world.prove("s");
}

#[test]
fn what_cannot_be_extended_is_named_with_its_place() {
    for (source, problem) in [
        (
            "extends: ./jackline.yaml\n",
            "1:10: this extends itself: `jackline.yaml` → `jackline.yaml`",
        ),
        (
            "name: a/b\nextends: [./gone.yaml]\n",
            "2:11: can't read `gone.yaml`: No such file or directory (os error 2)",
        ),
        (
            "extends: [../base.yaml]\n",
            "1:11: `../base.yaml` leads out of the directory of the definition; extend files in that \
             directory or below it",
        ),
        (
            "extends: [a/../../base.yaml]\n",
            "1:11: `a/../../base.yaml` leads out of the directory of the definition; extend files in \
             that directory or below it",
        ),
        (
            "extends: [/srv/base.yaml]\n",
            "1:11: `/srv/base.yaml` is not in this directory; name it from the file that extends it, \
             such as ./base.yaml",
        ),
        (
            "extends: [~/base.yaml]\n",
            "1:11: `~/base.yaml` is not in this directory; name it from the file that extends it, \
             such as ./base.yaml",
        ),
        ("extends: [./]\n", "1:11: can't read `.`: it is not a regular file"),
    ] {
        let world = World::new(source);
        let expected = format!("jackline.yaml:{problem}\nerror: 1 problem in `jackline.yaml`\n");
        assert_eq!(check(&world), (Some(1), expected));
        let run = tell_by(&mut world.command(JACKLINE), "s", &[started()]);
        assert_eq!(run.answers(), ["deny definition"]);
    }
    let world = World::new("extends: ./a.yaml\n");
    write(&world, "a.yaml", "extends: [./b.yaml]\n");
    write(&world, "b.yaml", "extends: [pack/git, ./a.yaml]\n");
    assert_eq!(
        check(&world),
        (
            Some(1),
            "b.yaml:1:21: this extends itself: `jackline.yaml` → `a.yaml` → `b.yaml` → `a.yaml`\n\
             error: 1 problem in `jackline.yaml`\n"
                .to_owned()
        )
    );
}

/// Who would wait for a pipe to be written to would wait for ever, and no
/// answer is a denial nowhere but here.
#[test]
fn what_is_no_file_is_not_waited_for() {
    let make_pipe = |path: PathBuf| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let in_time = |world: &World, args: &[&str], input: &str| {
        let mut command = world.command("timeout");
        command.args(["20", JACKLINE]).args(args);
        let run = feed(&mut command, input.as_bytes());
        assert_ne!(run.code, Some(124), "cut off after 20 s");
        run
    };
    let start = r#"{"session":"s","event":"session_started"}"#;

    for what in ["pipe", "endless"] {
        let world = World::new("extends: ./base.yaml\n");
        let base = world.work().join("base.yaml");
        match what {
            "pipe" => make_pipe(base),
            _ => symlink("/dev/zero", base).unwrap(),
        }
        let run = in_time(&world, &["check"], "");
        assert_eq!(run.code, Some(1));
        assert!(run.stdout.contains("can't read `base.yaml`: it is not a regular file"), "{run:?}");
        assert_eq!(in_time(&world, &["stdio"], start).answers(), ["deny definition"]);
    }

    // One that became a pipe under a session.
    let world = World::new("extends: ./base.yaml\n");
    write(&world, "base.yaml", ONE_STEP);
    tell_one(&world, "s", started());
    fs::remove_file(world.work().join("base.yaml")).unwrap();
    make_pipe(world.work().join("base.yaml"));
    let line = r#"{"session":"s","event":"prompt_submitted","source":"human","text":"go"}"#;
    let run = in_time(&world, &["stdio"], line);
    assert!(told(&run.verdicts()[0]).contains("it is not a regular file"), "{run:?}");
    world.prove("s");
}

/// A machine with an owner, a person on it, and a repository.
struct Machine {
    world: World,
}

impl Machine {
    fn new(managed: Option<&str>, user: &str, repository: &str) -> Self {
        let world = World::new(repository);
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

    fn jackline(&self, args: &[&str]) -> Run {
        feed(self.command().args(args), b"")
    }

    fn tell(&self, session: &str, events: &[Value]) -> Vec<Value> {
        tell_by(&mut self.command(), session, events).verdicts()
    }

    /// The decision on a force push, and whether it is enforced.
    fn force_push(&self, session: &str) -> (String, bool) {
        let verdict = self.tell(session, &[run("c", "git push -f origin work")]).remove(0);
        (words(&verdict), verdict["enforced"].as_bool().unwrap_or(true))
    }

    fn is_effective(&self, line: &str) -> bool {
        let shown = self.jackline(&["check", "--effective"]).stdout;
        // Columns are as wide as they have to be.
        let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        shown.lines().any(|shown| plain(shown) == line)
    }

    fn prove(&self, session: &str) {
        self.world.prove(session);
    }
}

const RULE: &str = "`git/push-force` denies `git push` under a condition";

#[test]
fn a_repository_cannot_silence_what_a_person_enforces_until_they_trust_it() {
    let machine = Machine::new(None, "extends: [pack/git]\n", "mode: observe\n");
    assert_eq!(machine.force_push("s"), ("deny git/push-force".to_owned(), true));
    assert!(machine.is_effective(&format!("rule user, pack git {RULE}")));
    assert!(machine.is_effective("setting user mode: enforce"));
    assert!(machine.is_effective(
        "`mode: observe` (repository) ignored: the user layer enforces; `jackline trust` would let it"
    ));

    assert_eq!(machine.jackline(&["trust", "--yes"]).code, Some(0));
    assert_eq!(machine.force_push("t"), ("deny git/push-force".to_owned(), false));
    assert!(machine.is_effective("setting repository mode: observe"));
    assert!(machine.is_effective(
        "`mode: enforce` (user) ignored: the repository layer says otherwise, and its file is trusted"
    ));
    // What began before goes on as it began.
    assert_eq!(machine.tell("s", &[prompt()])[0]["decision"], "allow");
    machine.prove("s");
    machine.prove("t");
}

#[test]
fn nobody_silences_what_the_owner_of_the_machine_enforces() {
    let machine = Machine::new(Some("extends: [pack/git]\n"), "mode: observe\n", "mode: observe\n");
    for session in ["s", "t"] {
        assert_eq!(machine.force_push(session), ("deny git/push-force".to_owned(), true));
        assert!(machine.is_effective(&format!("rule managed, pack git {RULE}")));
        assert!(machine.is_effective("`mode: observe` (user) ignored: the managed layer enforces"));
        machine.prove(session);
        machine.jackline(&["trust", "--yes"]);
    }
}

#[test]
fn a_layer_above_is_as_protected_as_the_repositorys_own_file() {
    let machine = Machine::new(Some("limits: { steps: 50 }\n"), "limits: { steps: 40 }\n", "");
    let root = machine.world.root();
    let managed = root.join("managed.yaml");
    let write = |path: PathBuf| json!({"file_path": path, "content": ""});
    let verdicts = machine.tell(
        "s",
        &[
            started(),
            propose("a", "Write", &write(managed.clone())),
            propose("b", "Edit", &write(root.join("config/jackline/jackline.yaml"))),
            run("c", &format!("rm -rf {}", root.join("config").display())),
            run("d", "./opaque"),
        ],
    );
    let denied = "deny protected_write";
    assert_eq!(all_words(&verdicts), ["allow", denied, denied, denied, "allow"]);
    fs::write(&managed, "mode: observe\n").unwrap();
    assert_eq!(words(&machine.tell("s", &[finish("d")])[0]), "pause changed_during_call");
    assert_eq!(fs::read_to_string(&managed).unwrap(), "limits: { steps: 50 }\n");
    machine.prove("s");
}

#[test]
fn a_layer_that_breaks_is_told_and_one_that_is_gone_shuts_the_gate() {
    let machine = Machine::new(None, ONE_STEP, "mode: observe\n");
    machine.tell("s", &[started()]);
    let user = machine.world.root().join("config/jackline/jackline.yaml");
    fs::write(&user, BROKEN).unwrap();
    let verdicts = machine.tell("t", &[started(), run("a", "ls"), run("b", "ls")]);
    assert!(told(&verdicts[0]).contains("config/jackline/jackline.yaml:1:1: unknown key `limitz`"));
    assert_eq!(words(&verdicts[2]), "stop steps");
    machine.prove("t");

    // The owner's layer must be there, or nobody knows what is enforced.
    let mut command = machine.command();
    command.env("JACKLINE_MANAGED", machine.world.root().join("gone.yaml"));
    let other = World::new("");
    let run = tell_by(command.current_dir(other.work()), "u", &[started()]);
    assert_eq!(run.answers(), ["deny definition"]);
}
