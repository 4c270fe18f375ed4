//! Tests of `jackline enforce` and `jackline observe`, which change the mode in a definition file.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{CliOutput, CliWorld, run_with_input};

const RULES: &str = "\
rules:
  - name: no-deploy # not from here
    command: deploy
    deny: No.
    examples: { deny: [deploy] }
";

fn definition_text(world: &CliWorld) -> String {
    fs::read_to_string(world.workspace().join("jackline.yaml")).unwrap()
}

/// Runs a command with a definition, and returns its output and the new text of the file.
fn run_on_definition(source: &str, args: &[&str]) -> (CliOutput, String) {
    let world = CliWorld::new(source);
    let run = world.jackline(args).with_path_placeholders(&world);
    let text = definition_text(&world);
    // No temporary file remains.
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 1);
    (run, text)
}

fn expected_output(code: i32, stdout: &str, stderr: &str) -> CliOutput {
    CliOutput { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

#[test]
fn the_definition_is_enforced_and_the_change_is_shown() {
    let (run, text) =
        run_on_definition("mode: observe # for now\nextends: pack/git\n", &["enforce"]);
    let expected = "jackline.yaml\n  - mode: observe # for now\n  + mode: enforce # for now\nthis applies to new sessions; a session that you continue changes with `jackline reload`\n";
    assert_eq!(run, expected_output(0, expected, ""));
    assert_eq!(text, "mode: enforce # for now\nextends: pack/git\n");
}

#[test]
fn modes_of_rules_and_packs_are_written_after_the_extended_files() {
    let source =
        format!("version: 1\nextends: [pack/git, pack/secrets] # both\nmode: observe\n\n{RULES}");
    let (run, text) = run_on_definition(&source, &["enforce", "no-deploy", "pack/git"]);
    let expected = "jackline.yaml\n  + modes:\n  +   no-deploy: enforce\n  +   pack/git: enforce\nthis applies to new sessions; a session that you continue changes with `jackline reload`\n";
    assert_eq!(run, expected_output(0, expected, ""));
    assert_eq!(
        text,
        format!(
            "version: 1\nextends: [pack/git, pack/secrets] # both\nmode: observe\nmodes:\n  no-deploy: enforce\n  pack/git: enforce\n\n{RULES}"
        )
    );
}

#[test]
fn a_change_keeps_the_format_of_the_file() {
    for (source, args, expected) in [
        (
            "mode: observe\r\nextends: pack/git\r\n",
            &["enforce"][..],
            "mode: enforce\r\nextends: pack/git\r\n",
        ),
        ("extends: pack/git", &["observe"], "extends: pack/git\nmode: observe"),
        ("", &["observe"], "mode: observe\n"),
        ("{extends: pack/git, mode: observe}", &["enforce"], "{extends: pack/git, mode: enforce}"),
        (
            "{extends: pack/git}",
            &["observe", "git/clean"],
            "{modes: { git/clean: observe }, extends: pack/git}",
        ),
        (
            "# top\r\nextends: pack/git # all\r\nmodes: # mine\r\n  git/clean: observe # noisy",
            &["enforce", "git/push-force", "git/clean"],
            "# top\r\nextends: pack/git # all\r\nmodes: # mine\r\n  git/clean: enforce # noisy\r\n  git/push-force: enforce",
        ),
    ] {
        let (run, text) = run_on_definition(source, args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{source:?}");
        assert_eq!(text, expected);
    }
}

#[test]
fn an_unchanged_mode_changes_nothing() {
    let (run, text) = run_on_definition("mode: enforce\n", &["enforce"]);
    assert_eq!(run, expected_output(0, "`jackline.yaml` already has this mode\n", ""));
    assert_eq!(text, "mode: enforce\n");
}

#[test]
fn rules_with_their_own_mode_are_named() {
    let source = "extends: pack/git\nmodes: { git/clean: enforce }\n";
    let (run, _) = run_on_definition(source, &["observe"]);
    assert!(run.stdout.contains("still enforced, by name: `git/clean`\n"), "{run:?}");
    let (run, _) = run_on_definition(source, &["observe", "pack/git"]);
    assert!(run.stdout.contains("still enforced, by name: `git/clean`\n"), "{run:?}");
}

#[test]
fn an_unknown_name_changes_nothing() {
    let source = "extends: pack/git\n";
    for (name, hint) in [
        ("git/push-forse", "did you mean `git/push-force`?"),
        ("git", "did you mean `pack/git`?"),
        ("secrets/read-env", "`jackline check --details` lists the rules in force"),
    ] {
        let (run, text) = run_on_definition(source, &["observe", name]);
        let error =
            format!("error: no rule or pack with the name `{name}` is in force here; {hint}\n");
        assert_eq!((run, text.as_str()), (expected_output(2, "", &error), source));
    }
}

#[test]
fn an_invalid_or_ineffective_change_is_not_written() {
    // A rule that only observes has nothing to enforce.
    let source = "rules: [ { name: watch, observe: Seen., examples: { observe: [x] } } ]\n";
    let (run, text) = run_on_definition(source, &["enforce", "watch"]);
    assert_eq!((run.code, text.as_str()), (Some(1), source));
    assert!(run.stdout.contains("`watch` is an `observe` rule"), "{run:?}");
    // A file that does not load must be fixed first.
    let (run, text) = run_on_definition("mode: obsrve\n", &["enforce"]);
    assert_eq!((run.code, text.as_str()), (Some(1), "mode: obsrve\n"));
    assert!(run.stderr.contains("fix it first"), "{run:?}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let (run, text) = run_on_definition("mode: observe\n", &["enforce", "--dry-run"]);
    let expected = "jackline.yaml\n  - mode: observe\n  + mode: enforce\nnothing was written\n";
    assert_eq!((run, text.as_str()), (expected_output(0, expected, ""), "mode: observe\n"));
}

#[test]
fn permissions_and_links_are_preserved_and_a_file_can_be_named() {
    let world = CliWorld::new("");
    let (real, link) = (world.workspace().join("team.yaml"), world.workspace().join("link.yaml"));
    fs::write(&real, "mode: observe\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    let run = world.jackline(&["enforce", "-d", "link.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "mode: enforce\n");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let run = world.jackline(&["observe", "-d", "team.yaml"]);
    let error = "error: can't write `team.yaml`: the file is read-only; nothing was changed\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), error));
    let run = world.jackline(&["observe", "-d", "nowhere.yaml"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn an_open_session_keeps_its_definition() {
    let world = CliWorld::new(&format!("mode: observe\n{RULES}"));
    let deploy = r#"{"event":"tool_proposed","session":"s","call":"c1","tool":"Bash","args":{"command":"deploy"}}"#;
    assert_eq!(world.stdio(&[deploy]).json_lines()[0]["enforced"], false);
    let run = world.jackline(&["enforce", "no-deploy", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let finished = r#"{"event":"tool_finished","session":"s","call":"c1","status":"ok"}"#;
    assert_eq!(world.stdio(&[finished]).decisions(), ["allow"]);
    let run = world.jackline(&["enforce", "no-deploy"]);
    assert!(run.stdout.contains("\nsession `s` ("), "{run:?}");
    assert!(
        run.stdout
            .ends_with(") still uses the old definition; update it with `jackline reload s`\n"),
        "{run:?}"
    );
    assert_eq!(run.stderr, "");
    let verdicts = world.stdio(&[&deploy.replace("c1", "c2"), &deploy.replace("\"s\"", "\"t\"")]);
    assert_eq!(verdicts.json_lines()[0]["enforced"], false);
    assert_eq!(verdicts.json_lines()[1]["enforced"], true);
    world.verify_and_replay("s");
    world.verify_and_replay("t");
}

#[test]
fn a_rule_of_a_higher_layer_stays_enforced_and_the_person_is_warned() {
    let world = CliWorld::new("extends: pack/git\n");
    let user = world.root().join("config/jackline/jackline.yaml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, "extends: pack/git\n").unwrap();
    let config = world.root().join("config");
    let mut command = world.person_command();
    let output = command.env("XDG_CONFIG_HOME", &config).args(["observe", "git/clean"]).output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert_eq!(
        stderr,
        "warning: `modes: git/clean: observe` is ignored here: the user layer enforces it\n"
    );
}

/// A file that changes during a call counts as changed by the agent, unless a person changed it
/// with `jackline enforce` or `jackline observe`.
#[test]
fn a_person_may_change_the_mode_while_the_agent_works() {
    let world = CliWorld::new(&format!("mode: enforce\n{RULES}"));
    let make = r#"{"event":"tool_proposed","session":"s","call":"c1","tool":"Bash","args":{"command":"make"}}"#;
    let done = r#"{"event":"tool_finished","session":"s","call":"c1","status":"ok"}"#;
    world.stdio(&[make]);
    let run = world.jackline(&["observe"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(world.stdio(&[done]).decisions(), ["allow"]);
    let text = fs::read_to_string(world.workspace().join("jackline.yaml")).unwrap();
    assert!(text.starts_with("mode: observe\n"), "{text}");
    world.verify_and_replay("s");

    // The same change by another program is reverted.
    let again = make.replace("c1", "c2");
    world.stdio(&[&again]);
    fs::write(world.workspace().join("jackline.yaml"), "mode: enforce\n").unwrap();
    assert_eq!(world.stdio(&[&done.replace("c1", "c2")]).decisions(), ["pause"]);
    assert_eq!(fs::read_to_string(world.workspace().join("jackline.yaml")).unwrap(), text);
}

/// A change by a person is accepted for that file and that time only.
#[test]
fn an_earlier_change_or_a_change_of_another_file_is_no_permission() {
    let world = CliWorld::new("mode: enforce\n");
    let make = |call: &str| {
        format!(
            r#"{{"event":"tool_proposed","session":"{call}","call":"{call}","tool":"Bash","args":{{"command":"make"}}}}"#
        )
    };
    let done = |call: &str| {
        format!(r#"{{"event":"tool_finished","session":"{call}","call":"{call}","status":"ok"}}"#)
    };
    let path = world.workspace().join("jackline.yaml");

    // Another file.
    fs::write(world.root().join("x.yaml"), "mode: enforce\n").unwrap();
    let run = world.jackline(&["observe", "-d", "../x.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    world.stdio(&[make("c1")]);
    fs::copy(world.root().join("x.yaml"), &path).unwrap();
    assert_eq!(world.stdio(&[done("c1")]).decisions(), ["pause"]);
    assert_eq!(definition_text(&world), "mode: enforce\n");

    // An earlier change.
    world.stdio(&[make("c2")]);
    assert_eq!(world.jackline(&["observe"]).code, Some(0));
    assert_eq!(world.jackline(&["enforce"]).code, Some(0));
    fs::write(&path, "mode: observe\n").unwrap();
    assert_eq!(world.stdio(&[done("c2")]).decisions(), ["pause"]);
    assert_eq!(definition_text(&world), "mode: enforce\n");
    ["c1", "c2"].iter().for_each(|session| world.verify_and_replay(session));
}

/// An agent may enforce rules, but its change does not count as a change by a person.
#[test]
fn a_mode_that_an_agent_changed_is_not_recorded_as_a_change_by_a_person() {
    let world = CliWorld::new("mode: observe\n");
    let mut command = world.command(crate::support::JACKLINE);
    let run = run_with_input(command.env("CLAUDECODE", "1").arg("enforce"), b"");
    assert_eq!(
        (run.code, definition_text(&world).as_str()),
        (Some(0), "mode: enforce\n"),
        "{run:?}"
    );
    assert!(!world.home().join("edits").exists());
    assert_eq!(world.jackline(&["observe"]).code, Some(0));
    assert!(world.home().join("edits").exists());
}

const OBSERVED_RULES: &str = "\
extends: pack/git
mode: observe
modes: { no-deploy: enforce }
limits: { steps: 6 }
rules:
  - { name: no-deploy, command: deploy, deny: No., examples: { deny: [deploy] } }
  - { name: no-make, command: [make, deploy], deny: No., examples: { deny: [make] } }
  - { name: careful, command: tag, ask: Sure?, examples: { ask: [tag] } }
  - { name: watch, command: ls, observe: Seen., examples: { observe: [ls] } }
";

#[test]
fn observed_denials_are_counted_and_marked() {
    let world = CliWorld::new(OBSERVED_RULES);
    let mut lines = Vec::new();
    for (number, line) in
        ["make", "make x", "tag", "ls", "deploy", "git push -f"].iter().enumerate()
    {
        lines.push(format!(
            r#"{{"event":"tool_proposed","session":"s","call":"c{number}","tool":"Bash","args":{{"command":"{line}"}}}}"#
        ));
    }
    world.stdio(&lines);
    let status = world.jackline(&["status"]).stdout;
    for row in [
        "  definition  local/agent (observe)\n",
        "  observed    would have been denied: 4, asked: 1\n",
        "  mostly by   no-make 3×, careful 1×, git/push-force 1×\n",
        "  to enforce  `jackline enforce no-make`, or all with `jackline enforce`\n",
    ] {
        assert!(status.contains(row), "{row}{status}");
    }
    let json = world.jackline(&["status", "--json"]).json_lines().remove(0);
    assert_eq!(
        json["on_trial"],
        serde_json::json!({"would_deny": 4, "would_ask": 1, "while_off": 0, "of_last_records": null,
            "by": {"no-make": 3, "careful": 1, "git/push-force": 1}})
    );
    let log = world.jackline(&["log", "--objections"]).stdout;
    assert!(log.contains("would deny  No. (rule `no-make`, at `make`)"), "{log}");
    assert!(log.contains("would ask  Sure?"), "{log}");
    // The log shows both the enforced violation and the observed one.
    assert!(
        log.contains("deny  No. (rule `no-deploy`, at `deploy`)  would deny: No. (rule `no-make`"),
        "{log}"
    );
    world.verify_and_replay("s");
}

#[test]
fn status_shows_no_observed_denials_if_there_are_none() {
    let world = CliWorld::new("mode: observe\n");
    world.stdio(&[r#"{"event":"session_started","session":"s"}"#]);
    let status = world.jackline(&["status"]).stdout;
    assert!(!status.contains("observed"), "{status}");
}

#[test]
fn a_session_that_only_observes_keeps_its_mode_until_it_is_reloaded() {
    let world = CliWorld::new(&format!("mode: observe\n{RULES}"));
    let deploy = |call: &str| {
        format!(
            r#"{{"event":"tool_proposed","session":"s","call":"{call}","tool":"Bash","args":{{"command":"deploy"}}}}"#
        )
    };
    world.stdio(&[deploy("c1")]);
    let status = || world.jackline(&["status", "s"]).stdout;
    assert!(status().contains("  to enforce  `jackline enforce no-deploy`"), "{}", status());
    let finished = r#"{"event":"tool_finished","session":"s","call":"c1","status":"ok"}"#;
    world.stdio(&[finished]);
    assert_eq!(world.jackline(&["enforce"]).code, Some(0));
    let row = "  to enforce  the definition enforces now, but this session keeps the mode it \
               started with: `jackline reload s`, or start a new session\n";
    assert!(status().contains(row), "{}", status());
    assert_eq!(world.stdio(&[deploy("c2")]).json_lines()[0]["enforced"], false);
    world.stdio(&[finished.replace("c1", "c2")]);
    // The advice is enough.
    let reload = world.jackline(&["reload", "s"]);
    assert_eq!(reload.code, Some(0), "{reload:?}");
    let row = "  to enforce  nothing to do: the session enforces this rule now\n";
    assert!(status().contains(row), "{}", status());
    assert_eq!(world.stdio(&[deploy("c3")]).json_lines()[0]["enforced"], true);
    world.verify_and_replay("s");
}

#[test]
fn calls_that_ran_while_the_guard_was_off_need_no_other_mode() {
    let world = CliWorld::new(RULES);
    assert_eq!(world.jackline(&["off", "--why", "urgent"]).code, Some(0));
    let deploy = r#"{"event":"tool_proposed","session":"s","call":"c1","tool":"Bash","args":{"command":"deploy"}}"#;
    assert_eq!(world.stdio(&[deploy]).json_lines()[0]["enforced"], false);
    let status = || world.jackline(&["status", "s"]).stdout;
    let row = "  observed    would have been denied: 1, asked: 0 (1 while the guard was off)\n";
    assert!(status().contains(row), "{}", status());
    assert!(status().contains("  to enforce  `jackline on`\n"), "{}", status());
    assert_eq!(world.jackline(&["on"]).code, Some(0));
    let row = "  to enforce  nothing to do: the guard is on again\n";
    assert!(status().contains(row), "{}", status());
    assert!(!status().contains("jackline enforce"), "{}", status());
}
