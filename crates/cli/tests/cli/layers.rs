//! Layers through the binary: what is in force, trust, and the last good definition.

use std::fs;
use std::process::Command;

use jackline_engine::Digest;
use jackline_engine::facts::DefinitionFact;
use serde_json::{Value, json};

use crate::support::{Run, World, feed};

const WISH: &str = "mode: observe\nlimits: { steps: 9 }\n";

const OWN: &str = "\
limits: { steps: 5 }
rules:
  - name: no-stash
    tool: exec
    command: git stash clear
    deny: What is stashed can't be had back.
    examples: { deny: [git stash clear], allow: [git stash] }
";

/// A person with a definition of their own, in a repository with wishes.
struct Person {
    world: World,
}

impl Person {
    fn new(own: &str, repository: &str) -> Self {
        let person = Self { world: World::new(repository) };
        let directory = person.world.root().join("config/jackline");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("jackline.yaml"), own).unwrap();
        person
    }

    fn command(&self) -> Command {
        let mut command = self.world.person();
        command.env("XDG_CONFIG_HOME", self.world.root().join("config")).env("USER", "dana");
        command
    }

    fn jackline(&self, args: &[&str]) -> Run {
        feed(self.command().args(args), b"").anywhere(&self.world)
    }

    /// How many steps a new session has.
    fn steps(&self) -> Value {
        let run = self.jackline(&["check", "--effective", "--json"]);
        let shown: Value = serde_json::from_str(&run.stdout).unwrap();
        shown["definition"]["limits"]["steps"]["max"].clone()
    }
}

fn fine(stdout: &str) -> Run {
    Run { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

#[test]
fn check_effective_says_whose_each_demand_is_and_what_is_ignored() {
    let person = Person::new(OWN, WISH);
    let run = person.jackline(&["check", "--effective"]);
    let checksum = {
        let shown = person.jackline(&["check", "--effective", "--json"]);
        serde_json::from_str::<Value>(&shown.stdout).unwrap()["checksum"].clone()
    };
    assert_eq!(
        run,
        fine(&format!(
            "\
local/agent in mode enforce
  user layer: ROOT/config/jackline/jackline.yaml
  repository layer: jackline.yaml, not trusted
  checksum {}
in force
  setting  user  mode: enforce
  limit    user  at most 5 steps a session
  rule     user  `no-stash` denies `git stash clear`
ignored
  `mode: observe` (repository) ignored: the user layer enforces; `jackline trust` would let it
  at most 9 steps a session (repository) ignored: the user layer has one that this does not tighten; `jackline trust` would let it
",
            checksum.as_str().unwrap()
        ))
    );
    let run = person.jackline(&["check", "--effective", "--json"]);
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    let own = "ROOT/config/jackline/jackline.yaml";
    assert_eq!(
        (&shown["ok"], &shown["trusted"], &shown["layers"]),
        (
            &json!(true),
            &json!(false),
            &json!([
                {"layer": "user", "file": own, "checksum": Digest::of(OWN.as_bytes())},
                {"layer": "repository", "file": "jackline.yaml", "checksum": Digest::of(WISH.as_bytes())},
            ])
        )
    );
    assert_eq!(
        shown["decisions"][3],
        json!({"subject": "setting", "text": "`mode: observe`", "layer": "repository",
            "file": "jackline.yaml", "origin": null, "in_force": false,
            "why": "the user layer enforces", "until_trusted": true})
    );
}

#[test]
fn check_effective_says_what_came_with_a_pack() {
    let person = Person::new("extends: [pack/git]\n", WISH);
    let run = person.jackline(&["check", "--effective"]);
    let line = "rule     user, pack git  `git/stash-clear` denies `git stash clear`\n";
    assert!(run.stdout.contains(line), "{}", run.stdout);
}

#[test]
fn what_check_calls_effective_is_what_a_session_gets() {
    let person = Person::new("limits: { steps: 1 }\n", WISH);
    let call = r#"{"event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    let run = feed(
        person.command().args(["stdio", "--session", "s"]),
        format!("{call}\n{call}\n").as_bytes(),
    );
    assert_eq!(run.answers(), ["allow", "stop"]);
    let shown = person.jackline(&["check", "--effective", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let status = person.jackline(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["definition"]["checksum"], shown["checksum"]);
    person.world.prove("s");
}

#[test]
fn trust_shows_what_it_is_for_and_needs_a_word() {
    let person = Person::new("limits: { steps: 5 }\n", WISH);
    let shown = format!(
        "\
WORKSPACE/jackline.yaml
  checksum {}
would loosen:
  `mode: observe`: the user layer enforces
  at most 9 steps a session: the user layer has one that this does not tighten
",
        Digest::of(WISH.as_bytes())
    );
    assert_eq!(
        person.jackline(&["trust"]),
        Run {
            code: Some(2),
            stdout: shown.clone(),
            stderr: "error: nobody can be asked here; look at what it does, then say --yes\n"
                .to_owned(),
        }
    );
    assert_eq!(person.steps(), 5);
    assert_eq!(
        person.jackline(&["trust", "--list"]),
        fine("nothing is trusted; `jackline trust` trusts the definition of this workspace\n")
    );

    let trusted =
        "`WORKSPACE/jackline.yaml` is trusted as it is now; that applies to new sessions\n";
    assert_eq!(person.jackline(&["trust", "--yes"]), fine(&format!("{shown}{trusted}")));
    assert_eq!(person.steps(), 9);
    let already = "`WORKSPACE/jackline.yaml` is trusted already\n";
    assert_eq!(person.jackline(&["trust", "--yes"]), fine(already));
    assert_eq!(person.jackline(&["trust", "jackline.yaml"]), fine(already));
}

#[test]
fn trust_ends_when_the_file_changes_or_a_person_says_so() {
    let person = Person::new("limits: { steps: 5 }\n", WISH);
    person.jackline(&["trust", "--yes"]);
    let listed = person.jackline(&["trust", "--list", "--json"]);
    let mut shown: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(shown["at"].take().is_string());
    assert_eq!(
        shown,
        json!({"file": "WORKSPACE/jackline.yaml", "checksum": Digest::of(WISH.as_bytes()),
            "at": null, "by": "dana", "current": true})
    );

    let file = person.world.work().join("jackline.yaml");
    fs::write(&file, "limits: { steps: 90 }\n").unwrap();
    assert_eq!(person.steps(), 5);
    let run = person.jackline(&["trust", "--list"]);
    assert!(run.stdout.contains("changed since, not trusted"), "{}", run.stdout);
    fs::write(&file, WISH).unwrap();
    assert_eq!(person.steps(), 9);

    let name = "`WORKSPACE/jackline.yaml`";
    let revoked = format!("{name} is trusted no longer; that applies to new sessions\n");
    assert_eq!(person.jackline(&["trust", "--revoke"]), fine(&revoked));
    let not = format!("{name} was not trusted\n");
    assert_eq!(person.jackline(&["trust", "--revoke"]), fine(&not));
    assert_eq!(person.steps(), 5);
}

#[test]
fn trust_refuses_what_it_cannot_show() {
    let person = Person::new("", "toolz: {}\n");
    let run = person.jackline(&["trust", "--yes"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(1), "error: `WORKSPACE/jackline.yaml` does not load; mend it first\n")
    );
    assert_eq!(person.jackline(&["trust", "gone.yaml"]).code, Some(2));
    assert_eq!(person.jackline(&["trust", "--list", "--yes"]).code, Some(2));
    fs::remove_file(person.world.work().join("jackline.yaml")).unwrap();
    assert_eq!(person.jackline(&["trust"]).code, Some(2));
    // A person's own definition is theirs already.
    let own = person.world.root().join("config/jackline/jackline.yaml");
    assert_eq!(
        person.jackline(&["trust", own.to_str().unwrap()]),
        fine(
            "`ROOT/config/jackline/jackline.yaml` is no repository's definition, and needs no trust\n"
        )
    );
}

#[test]
fn grants_are_for_their_person_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let person = Person::new("", WISH);
    person.jackline(&["trust", "--yes"]);
    let mode = fs::metadata(person.world.home().join("trust")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_definition_is_loud_and_the_last_good_one_guards() {
    let world = World::new("limits: { steps: 1 }\n");
    world.stdio(&[r#"{"session":"a","event":"session_started"}"#]);
    let good = Digest::of(b"limits: { steps: 1 }\n");
    fs::write(world.work().join("jackline.yaml"), "limitz: {}\n").unwrap();

    let call = r#"{"event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    let prompt = r#"{"event":"prompt_submitted","source":"human","text":"go"}"#;
    let run = world.stdio(&[r#"{"session":"b","event":"session_started"}"#, prompt, call, call]);
    assert_eq!(
        (run.code, run.answers()),
        (Some(0), ["allow", "allow", "allow", "stop"].map(ToOwned::to_owned).to_vec())
    );
    let file = world.work().join("jackline.yaml").display().to_string();
    let reason =
        format!("{file}:1:1: unknown key `limitz` in the definition; did you mean `limits`?");
    assert_eq!(
        run.stderr,
        format!(
            "warning: the definition does not load, and the last good one ({good}) stays in force \
             in session `b`: {reason}; mend it (`jackline check`)\n"
        )
    );
    assert_eq!(world.records("b")[1].facts.definition, Some(DefinitionFact::Broken { reason }));
    world.prove("b");

    let run = world.jackline(&["check"]);
    assert_eq!(
        (run.code, run.stderr),
        (
            Some(1),
            format!(
                "error: 1 problem in `jackline.yaml`; until it is mended, the last good definition stays \
             in force: {good}\n"
            )
        )
    );
    let run = world.jackline(&["check", "--json"]);
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["in_force"], json!(good));
    assert_eq!(world.jackline(&["check", "--effective"]).code, Some(1));
}
