//! Tests of definition layers: the settings in force, trust, and the last good definition.

use std::fs;
use std::process::Command;

use jackline_engine::Digest;
use jackline_engine::facts::DefinitionFact;
use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, run_with_input};

const REPOSITORY_DEFINITION: &str = "mode: observe\nlimits: { steps: 9 }\n";

const USER_DEFINITION: &str = "\
limits: { steps: 5 }
rules:
  - name: no-stash
    tool: exec
    command: git stash clear
    deny: What is stashed can't be had back.
    examples: { deny: [git stash clear], allow: [git stash] }
";

/// A person with a user definition, in a repository whose definition wants weaker settings.
struct LayersWorld {
    world: CliWorld,
}

impl LayersWorld {
    fn new(own: &str, repository: &str) -> Self {
        let person = Self { world: CliWorld::new(repository) };
        let directory = person.world.root().join("config/jackline");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("jackline.yaml"), own).unwrap();
        person
    }

    fn command(&self) -> Command {
        let mut command = self.world.person_command();
        command.env("XDG_CONFIG_HOME", self.world.root().join("config")).env("USER", "dana");
        command
    }

    fn jackline(&self, args: &[&str]) -> CliOutput {
        run_with_input(self.command().args(args), b"").with_path_placeholders(&self.world)
    }

    /// Returns the step limit of a new session.
    fn step_limit(&self) -> Value {
        let run = self.jackline(&["check", "--effective", "--json"]);
        let output: Value = serde_json::from_str(&run.stdout).unwrap();
        output["definition"]["limits"]["steps"]["max"].clone()
    }
}

fn success(stdout: &str) -> CliOutput {
    CliOutput { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

#[test]
fn check_effective_names_the_layer_of_each_setting_and_what_is_ignored() {
    let person = LayersWorld::new(USER_DEFINITION, REPOSITORY_DEFINITION);
    let run = person.jackline(&["check", "--effective"]);
    let checksum = {
        let output = person.jackline(&["check", "--effective", "--json"]);
        serde_json::from_str::<Value>(&output.stdout).unwrap()["checksum"].clone()
    };
    assert_eq!(
        run,
        success(&format!(
            "\
local/agent in mode enforce
  user layer: ROOT/config/jackline/jackline.yaml
  repository layer: jackline.yaml, not trusted
  checksum {}
in force
  setting  user  mode: enforce
  limit    user  at most 5 steps per session
  rule     user  `no-stash` denies `git stash clear`
ignored
  `mode: observe` (repository) ignored: the user layer enforces; `jackline trust` would allow it
  at most 9 steps per session (repository) ignored: the user layer already has one, and this one is not stricter; `jackline trust` would allow it
",
            checksum.as_str().unwrap()
        ))
    );
    let run = person.jackline(&["check", "--effective", "--json"]);
    let output: Value = serde_json::from_str(&run.stdout).unwrap();
    let own = "ROOT/config/jackline/jackline.yaml";
    assert_eq!(
        (&output["ok"], &output["trusted"], &output["layers"]),
        (
            &json!(true),
            &json!(false),
            &json!([
                {"layer": "user", "file": own, "checksum": Digest::of(USER_DEFINITION.as_bytes())},
                {"layer": "repository", "file": "jackline.yaml", "checksum": Digest::of(REPOSITORY_DEFINITION.as_bytes())},
            ])
        )
    );
    assert_eq!(
        output["decisions"][3],
        json!({"subject": "setting", "text": "`mode: observe`", "layer": "repository",
            "file": "jackline.yaml", "origin": null, "in_force": false,
            "why": "the user layer enforces", "until_trusted": true})
    );
}

#[test]
fn check_effective_names_the_pack_of_a_rule() {
    let person = LayersWorld::new("extends: [pack/git]\n", REPOSITORY_DEFINITION);
    let run = person.jackline(&["check", "--effective"]);
    let line = "rule     user, pack git  `git/stash-clear` denies `git stash clear`\n";
    assert!(run.stdout.contains(line), "{}", run.stdout);
}

#[test]
fn check_effective_shows_the_definition_that_a_session_gets() {
    let person = LayersWorld::new("limits: { steps: 1 }\n", REPOSITORY_DEFINITION);
    let call = r#"{"event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    let run = run_with_input(
        person.command().args(["stdio", "--session", "s"]),
        format!("{call}\n{call}\n").as_bytes(),
    );
    assert_eq!(run.decisions(), ["allow", "stop"]);
    let effective = person.jackline(&["check", "--effective", "--json"]);
    let effective: Value = serde_json::from_str(&effective.stdout).unwrap();
    let status = person.jackline(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["definition"]["checksum"], effective["checksum"]);
    person.world.verify_and_replay("s");
}

#[test]
fn trust_shows_its_effect_and_needs_a_confirmation() {
    let person = LayersWorld::new("limits: { steps: 5 }\n", REPOSITORY_DEFINITION);
    let listing = format!(
        "\
WORKSPACE/jackline.yaml
  checksum {}
would relax:
  `mode: observe`: the user layer enforces
  at most 9 steps per session: the user layer already has one, and this one is not stricter
",
        Digest::of(REPOSITORY_DEFINITION.as_bytes())
    );
    assert_eq!(
        person.jackline(&["trust"]),
        CliOutput {
            code: Some(2),
            stdout: listing.clone(),
            stderr: "error: no terminal to confirm in; check the list above, then pass --yes\n"
                .to_owned(),
        }
    );
    assert_eq!(person.step_limit(), 5);
    assert_eq!(
        person.jackline(&["trust", "--list"]),
        success(
            "no definition is trusted; `jackline trust` trusts the definition of this workspace\n"
        )
    );

    let trusted =
        "`WORKSPACE/jackline.yaml` is trusted in its current state; this applies to new sessions\n";
    assert_eq!(person.jackline(&["trust", "--yes"]), success(&format!("{listing}{trusted}")));
    assert_eq!(person.step_limit(), 9);
    let already = "`WORKSPACE/jackline.yaml` is already trusted\n";
    assert_eq!(person.jackline(&["trust", "--yes"]), success(already));
    assert_eq!(person.jackline(&["trust", "jackline.yaml"]), success(already));
}

#[test]
fn trust_ends_when_the_file_changes_or_a_person_revokes_it() {
    let person = LayersWorld::new("limits: { steps: 5 }\n", REPOSITORY_DEFINITION);
    person.jackline(&["trust", "--yes"]);
    let listed = person.jackline(&["trust", "--list", "--json"]);
    let mut entry: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(entry["at"].take().is_string());
    assert_eq!(
        entry,
        json!({"file": "WORKSPACE/jackline.yaml", "checksum": Digest::of(REPOSITORY_DEFINITION.as_bytes()),
            "at": null, "by": "dana", "current": true})
    );

    let file = person.world.workspace().join("jackline.yaml");
    fs::write(&file, "limits: { steps: 90 }\n").unwrap();
    assert_eq!(person.step_limit(), 5);
    let run = person.jackline(&["trust", "--list"]);
    assert!(run.stdout.contains("changed since, not trusted"), "{}", run.stdout);
    fs::write(&file, REPOSITORY_DEFINITION).unwrap();
    assert_eq!(person.step_limit(), 9);

    let name = "`WORKSPACE/jackline.yaml`";
    let revoked = format!("{name} is no longer trusted; this applies to new sessions\n");
    assert_eq!(person.jackline(&["trust", "--revoke"]), success(&revoked));
    let not = format!("{name} was not trusted\n");
    assert_eq!(person.jackline(&["trust", "--revoke"]), success(&not));
    assert_eq!(person.step_limit(), 5);
}

#[test]
fn trust_refuses_a_definition_that_does_not_load() {
    let person = LayersWorld::new("", "toolz: {}\n");
    let run = person.jackline(&["trust", "--yes"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(1), "error: `WORKSPACE/jackline.yaml` does not load; fix it first\n")
    );
    assert_eq!(person.jackline(&["trust", "gone.yaml"]).code, Some(2));
    assert_eq!(person.jackline(&["trust", "--list", "--yes"]).code, Some(2));
    fs::remove_file(person.world.workspace().join("jackline.yaml")).unwrap();
    assert_eq!(person.jackline(&["trust"]).code, Some(2));
    // The user definition needs no trust.
    let own = person.world.root().join("config/jackline/jackline.yaml");
    assert_eq!(
        person.jackline(&["trust", own.to_str().unwrap()]),
        success(
            "`ROOT/config/jackline/jackline.yaml` is not the definition of a repository, so it needs no trust\n"
        )
    );
}

#[test]
fn the_trust_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let person = LayersWorld::new("", REPOSITORY_DEFINITION);
    person.jackline(&["trust", "--yes"]);
    let mode = fs::metadata(person.world.home().join("trust")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_definition_causes_a_warning_and_the_last_good_one_stays_in_force() {
    let world = CliWorld::new("limits: { steps: 1 }\n");
    world.stdio(&[r#"{"session":"a","event":"session_started"}"#]);
    let good = Digest::of(b"limits: { steps: 1 }\n");
    fs::write(world.workspace().join("jackline.yaml"), "limitz: {}\n").unwrap();

    let call = r#"{"event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    let prompt = r#"{"event":"prompt_submitted","source":"human","text":"go"}"#;
    let run = world.stdio(&[r#"{"session":"b","event":"session_started"}"#, prompt, call, call]);
    assert_eq!(
        (run.code, run.decisions()),
        (Some(0), ["allow", "allow", "allow", "stop"].map(ToOwned::to_owned).to_vec())
    );
    let file = world.workspace().join("jackline.yaml").display().to_string();
    let reason =
        format!("{file}:1:1: unknown key `limitz` in the definition; did you mean `limits`?");
    assert_eq!(
        run.stderr,
        format!(
            "warning: the definition does not load, and the last good one ({good}) stays in force \
             in session `b`: {reason}; fix the definition (`jackline check` shows the errors)\n"
        )
    );
    assert_eq!(world.records("b")[1].facts.definition, Some(DefinitionFact::Broken { reason }));
    world.verify_and_replay("b");

    let run = world.jackline(&["check"]);
    assert_eq!(
        (run.code, run.stderr),
        (
            Some(1),
            format!(
                "error: 1 problem in `jackline.yaml`; until it is fixed, the last valid definition stays \
             in force: {good}\n"
            )
        )
    );
    let run = world.jackline(&["check", "--json"]);
    let output: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(output["in_force"], json!(good));
    assert_eq!(world.jackline(&["check", "--effective"]).code, Some(1));
}
