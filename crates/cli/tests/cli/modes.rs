//! `jackline enforce` and `jackline observe`: one word of a person's file.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{Run, World, feed};

const RULES: &str = "\
rules:
  - name: no-deploy # not from here
    command: deploy
    deny: No.
    examples: { deny: [deploy] }
";

fn file(world: &World) -> String {
    fs::read_to_string(world.work().join("jackline.yaml")).unwrap()
}

/// Runs a command on a file, and gives what was said and what the file holds.
fn after(source: &str, args: &[&str]) -> (Run, String) {
    let world = World::new(source);
    let run = world.jackline(args).anywhere(&world);
    let text = file(&world);
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 1);
    (run, text)
}

fn said(code: i32, stdout: &str, stderr: &str) -> Run {
    Run { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

#[test]
fn the_definition_is_enforced_and_the_change_is_shown() {
    let (run, text) = after("mode: observe # for now\nextends: pack/git\n", &["enforce"]);
    let shown = "jackline.yaml\n  - mode: observe # for now\n  + mode: enforce # for now\nthat applies to sessions that start from now on\n";
    assert_eq!(run, said(0, shown, ""));
    assert_eq!(text, "mode: enforce # for now\nextends: pack/git\n");
}

#[test]
fn a_rule_and_a_pack_are_named_beside_what_is_extended() {
    let source =
        format!("version: 1\nextends: [pack/git, pack/secrets] # both\nmode: observe\n\n{RULES}");
    let (run, text) = after(&source, &["enforce", "no-deploy", "pack/git"]);
    let shown = "jackline.yaml\n  + modes:\n  +   no-deploy: enforce\n  +   pack/git: enforce\nthat applies to sessions that start from now on\n";
    assert_eq!(run, said(0, shown, ""));
    assert_eq!(
        text,
        format!(
            "version: 1\nextends: [pack/git, pack/secrets] # both\nmode: observe\nmodes:\n  no-deploy: enforce\n  pack/git: enforce\n\n{RULES}"
        )
    );
}

#[test]
fn files_are_written_as_they_were() {
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
        let (run, text) = after(source, args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{source:?}");
        assert_eq!(text, expected);
    }
}

#[test]
fn what_is_so_already_is_left_alone() {
    let (run, text) = after("mode: enforce\n", &["enforce"]);
    assert_eq!(run, said(0, "`jackline.yaml` says so already\n", ""));
    assert_eq!(text, "mode: enforce\n");
}

#[test]
fn what_keeps_its_own_mode_is_said() {
    let source = "extends: pack/git\nmodes: { git/clean: enforce }\n";
    let (run, _) = after(source, &["observe"]);
    assert!(run.stdout.contains("still enforced by name: `git/clean`\n"), "{run:?}");
    let (run, _) = after(source, &["observe", "pack/git"]);
    assert!(run.stdout.contains("still enforced by name: `git/clean`\n"), "{run:?}");
}

#[test]
fn a_name_that_means_nothing_here_changes_nothing() {
    let source = "extends: pack/git\n";
    for (name, hint) in [
        ("git/push-forse", "did you mean `git/push-force`?"),
        ("git", "did you mean `pack/git`?"),
        ("secrets/read-env", "`jackline check` lists the rules that are in force"),
    ] {
        let (run, text) = after(source, &["observe", name]);
        let error = format!("error: no rule and no pack named `{name}` is in force here; {hint}\n");
        assert_eq!((run, text.as_str()), (said(2, "", &error), source));
    }
}

#[test]
fn what_would_not_load_or_not_mean_it_is_not_written() {
    // A rule that only observes has nothing to enforce.
    let source = "rules: [ { name: watch, observe: Seen., examples: { observe: [x] } } ]\n";
    let (run, text) = after(source, &["enforce", "watch"]);
    assert_eq!((run.code, text.as_str()), (Some(1), source));
    assert!(run.stdout.contains("`watch` only observes"), "{run:?}");
    // A file that does not load is mended first.
    let (run, text) = after("mode: obsrve\n", &["enforce"]);
    assert_eq!((run.code, text.as_str()), (Some(1), "mode: obsrve\n"));
    assert!(run.stderr.contains("mend it first"), "{run:?}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let (run, text) = after("mode: observe\n", &["enforce", "--dry-run"]);
    let shown = "jackline.yaml\n  - mode: observe\n  + mode: enforce\nnothing was written\n";
    assert_eq!((run, text.as_str()), (said(0, shown, ""), "mode: observe\n"));
}

#[test]
fn permissions_and_links_stay_and_a_file_may_be_named() {
    let world = World::new("");
    let (real, link) = (world.work().join("team.yaml"), world.work().join("link.yaml"));
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
fn a_session_that_is_open_keeps_what_it_has() {
    let world = World::new(&format!("mode: observe\n{RULES}"));
    let deploy = r#"{"event":"tool_proposed","session":"s","call":"c1","tool":"Bash","args":{"command":"deploy"}}"#;
    assert_eq!(world.stdio(&[deploy]).verdicts()[0]["enforced"], false);
    let run = world.jackline(&["enforce", "no-deploy", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let finished = r#"{"event":"tool_finished","session":"s","call":"c1","status":"ok"}"#;
    assert_eq!(world.stdio(&[finished]).answers(), ["allow"]);
    let run = world.jackline(&["enforce", "no-deploy"]);
    assert!(run.stdout.contains("\nsession `s` ("), "{run:?}");
    assert!(run.stdout.ends_with(") still has the old one: `jackline reload s`\n"), "{run:?}");
    assert_eq!(run.stderr, "");
    let verdicts = world.stdio(&[&deploy.replace("c1", "c2"), &deploy.replace("\"s\"", "\"t\"")]);
    assert_eq!(verdicts.verdicts()[0]["enforced"], false);
    assert_eq!(verdicts.verdicts()[1]["enforced"], true);
    world.prove("s");
    world.prove("t");
}

#[test]
fn what_a_higher_layer_enforces_stays_so_and_that_is_said() {
    let world = World::new("extends: pack/git\n");
    let user = world.root().join("config/jackline/jackline.yaml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, "extends: pack/git\n").unwrap();
    let config = world.root().join("config");
    let mut command = world.person();
    let output = command.env("XDG_CONFIG_HOME", &config).args(["observe", "git/clean"]).output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert_eq!(
        stderr,
        "warning: `modes: git/clean: observe` is ignored here: the user layer enforces it\n"
    );
}

/// A change under a call that can write is taken for the agent's; but not one
/// that a person had made by our own command.
#[test]
fn a_person_may_enforce_while_the_agent_works() {
    let world = World::new(&format!("mode: observe\n{RULES}"));
    let make = r#"{"event":"tool_proposed","session":"s","call":"c1","tool":"Bash","args":{"command":"make"}}"#;
    let done = r#"{"event":"tool_finished","session":"s","call":"c1","status":"ok"}"#;
    world.stdio(&[make]);
    let run = world.jackline(&["enforce"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(world.stdio(&[done]).answers(), ["allow"]);
    let kept = fs::read_to_string(world.work().join("jackline.yaml")).unwrap();
    assert!(kept.starts_with("mode: enforce\n"), "{kept}");
    world.prove("s");

    // The same by anybody else's hand is given back.
    let again = make.replace("c1", "c2");
    world.stdio(&[&again]);
    fs::write(world.work().join("jackline.yaml"), "mode: observe\n").unwrap();
    assert_eq!(world.stdio(&[&done.replace("c1", "c2")]).answers(), ["pause"]);
    assert_eq!(fs::read_to_string(world.work().join("jackline.yaml")).unwrap(), kept);
}

/// A person's word for one file at one time is none for another.
#[test]
fn what_a_person_wanted_elsewhere_or_before_is_given_back() {
    let world = World::new("mode: enforce\n");
    let make = |call: &str| {
        format!(
            r#"{{"event":"tool_proposed","session":"{call}","call":"{call}","tool":"Bash","args":{{"command":"make"}}}}"#
        )
    };
    let done = |call: &str| {
        format!(r#"{{"event":"tool_finished","session":"{call}","call":"{call}","status":"ok"}}"#)
    };
    let path = world.work().join("jackline.yaml");

    // Elsewhere.
    fs::write(world.root().join("x.yaml"), "mode: enforce\n").unwrap();
    let run = world.jackline(&["observe", "-d", "../x.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    world.stdio(&[make("c1")]);
    fs::copy(world.root().join("x.yaml"), &path).unwrap();
    assert_eq!(world.stdio(&[done("c1")]).answers(), ["pause"]);
    assert_eq!(file(&world), "mode: enforce\n");

    // Before.
    world.stdio(&[make("c2")]);
    assert_eq!(world.jackline(&["observe"]).code, Some(0));
    assert_eq!(world.jackline(&["enforce"]).code, Some(0));
    fs::write(&path, "mode: observe\n").unwrap();
    assert_eq!(world.stdio(&[done("c2")]).answers(), ["pause"]);
    assert_eq!(file(&world), "mode: enforce\n");
    ["c1", "c2"].iter().for_each(|session| world.prove(session));
}

/// An agent may enforce, but that is its own doing, and no person's.
#[test]
fn what_an_agent_enforces_is_not_vouched_for() {
    let world = World::new("mode: observe\n");
    let mut command = world.command(crate::support::JACKLINE);
    let run = feed(command.env("CLAUDECODE", "1").arg("enforce"), b"");
    assert_eq!((run.code, file(&world).as_str()), (Some(0), "mode: enforce\n"), "{run:?}");
    assert!(!world.home().join("edits").exists());
    assert_eq!(world.jackline(&["observe"]).code, Some(0));
    assert!(world.home().join("edits").exists());
}

const TRIAL: &str = "\
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
fn what_would_have_been_denied_is_counted_and_marked() {
    let world = World::new(TRIAL);
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
        "  on trial    would have been denied: 4, asked: 1\n",
        "  most by     no-make 3×, careful 1×, git/push-force 1×\n",
        "  to enforce  `jackline enforce no-make`, or all with `jackline enforce`\n",
    ] {
        assert!(status.contains(row), "{row}{status}");
    }
    let json = world.jackline(&["status", "--json"]).verdicts().remove(0);
    assert_eq!(
        json["on_trial"],
        serde_json::json!({"would_deny": 4, "would_ask": 1, "of_last_records": null,
            "by": {"no-make": 3, "careful": 1, "git/push-force": 1}})
    );
    let log = world.jackline(&["log", "--objections"]).stdout;
    assert!(log.contains("would deny  No. (rule `no-make`, at `make`)"), "{log}");
    assert!(log.contains("would ask  Sure?"), "{log}");
    // Beside what holds, what would have held.
    assert!(
        log.contains("deny  No. (rule `no-deploy`, at `deploy`)  would deny: No. (rule `no-make`"),
        "{log}"
    );
    world.prove("s");
}

#[test]
fn where_nothing_is_on_trial_nothing_is_said_of_it() {
    let world = World::new("mode: observe\n");
    world.stdio(&[r#"{"event":"session_started","session":"s"}"#]);
    let status = world.jackline(&["status"]).stdout;
    assert!(!status.contains("on trial"), "{status}");
}
