//! Tests of `jackline explain`: it shows the decision and the reason, and writes nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

const DEFINITION: &str = "\
version: 1
name: acme/web
policies: [ read_before_write: {} ]
protected: [deploy.key]
rules:
  - name: no-force-push
    command: git push
    when: 'argv.exists(a, a == \"--force\" || a == \"-f\")'
    deny: Force pushes rewrite shared history.
    instead: git push origin my-branch
    examples: { deny: [git push -f origin main], allow: [git push origin my-branch] }
  - name: ship
    command: make ship
    ask: Shipping needs a person.
    examples: { ask: [make ship], allow: [make test] }
  - name: quiet
    command: make quiet
    mode: observe
    deny: Not yet.
    examples: { deny: [make quiet], allow: [make test] }
  - name: hint
    command: make hint
    warn: It takes an hour.
    examples: { warn: [make hint], allow: [make test] }
  - name: vague
    tool: pay
    when: 'args.amount > 10'
    deny: Too much.
    examples: { deny: [{ amount: 11 }], allow: [{ amount: 1 }] }
";

fn explain(world: &CliWorld, args: &[&str]) -> CliOutput {
    let mut command = vec!["explain"];
    command.extend(args);
    world.jackline(&command).with_path_placeholders(world)
}

fn explain_json(world: &CliWorld, args: &[&str]) -> (Option<i32>, Value) {
    let mut command = vec!["--json"];
    command.extend(args);
    let run = explain(world, &command);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout.lines().count(), 1);
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

/// Returns the exit code and the first line of the output.
fn exit_and_first_line(world: &CliWorld, args: &[&str]) -> (Option<i32>, String) {
    let run = explain(world, args);
    assert_eq!(run.stderr, "", "{args:?}");
    (run.code, run.stdout.lines().next().unwrap_or_default().to_owned())
}

fn expected_answer(code: i32, first: &str) -> (Option<i32>, String) {
    (Some(code), first.to_owned())
}

fn run_git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    assert!(command.current_dir(directory).status().unwrap().success(), "{args:?}");
}

#[test]
fn a_denial_names_the_rule_the_position_and_an_allowed_alternative() {
    let world = CliWorld::new(DEFINITION);
    fs::create_dir(world.workspace().join("web")).unwrap();
    let run = explain(&world, &["cd web && git push -f origin main | tee 'push log'"]);
    assert_eq!(
        run,
        CliOutput {
            code: Some(1),
            stdout: "\
deny
  rules: no-force-push (file jackline.yaml)
    at `git push -f origin main`
    Force pushes rewrite shared history.
    -> git push origin my-branch (allowed)

what the command line does
  cd web
  git push -f origin main  (in web)
  tee 'push log'  (in web)
    writes web/push log

decided by acme/web (WORKSPACE/jackline.yaml), for a new session in WORKSPACE
"
            .to_owned(),
            stderr: String::new(),
        }
    );
}

#[test]
fn each_decision_has_its_label_and_its_exit_code() {
    let world = CliWorld::new(DEFINITION);
    assert_eq!(exit_and_first_line(&world, &["git push -f"]), expected_answer(1, "deny"));
    assert_eq!(exit_and_first_line(&world, &["make ship"]), expected_answer(1, "ask"));
    assert_eq!(
        exit_and_first_line(&world, &["make quiet"]),
        expected_answer(0, "would deny (observe)")
    );
    assert_eq!(exit_and_first_line(&world, &["make hint"]), expected_answer(0, "allow"));
    assert_eq!(exit_and_first_line(&world, &["make test"]), expected_answer(0, "allow"));
    let pay = |args: &str| exit_and_first_line(&world, &["--tool", "pay", "--args", args]);
    assert_eq!(pay(r#"{"amount":11}"#), expected_answer(1, "deny"));
    assert_eq!(pay(r#"{"amount":1}"#), expected_answer(0, "allow"));
    // The argument that the condition needs is missing, so the rule is broken.
    assert_eq!(pay(r#"{"iban":"x"}"#), expected_answer(3, "deny"));
}

#[test]
fn an_allowed_command_line_is_shown_as_jackline_understands_it() {
    let world = CliWorld::new(DEFINITION);
    let run =
        explain(&world, &["cat a.txt > b.txt; ./setup.sh && make hint; rm -r \"$TMP/x\" *.o"]);
    let footer =
        "\ndecided by acme/web (WORKSPACE/jackline.yaml), for a new session in WORKSPACE\n";
    assert_eq!(
        run.stdout.strip_suffix(footer).unwrap(),
        "\
allow
  rules: hint (file jackline.yaml): warn
    at `make hint`
    It takes an hour.

what the command line does
  cat a.txt
    reads a.txt
    writes b.txt
  ./setup.sh
  make hint
  rm -r $TMP/x *.o
    deletes $TMP/x (unknown path) and everything below, *.o (a pattern) and everything below
opaque parts: Jackline cannot tell what they run
  `./setup.sh`: it runs a script from a file
  `make hint`: the program runs other programs
"
    );
    let run = explain(&world, &["true"]);
    assert!(
        run.stdout.starts_with("allow\n  no violation\n\nwhat the command line does\n  true\n")
    );
    let run = explain(&world, &["make ship"]);
    let next = "ask\n  the call does not run until a person allows exactly this call\n";
    assert!(run.stdout.starts_with(next), "{}", run.stdout);
}

#[test]
fn an_unread_file_is_not_overwritten() {
    let world = CliWorld::new(DEFINITION);
    let args = r#"{"file_path":"config.yaml","content":"a: 1"}"#;
    let write = ["--tool", "Write", "--args", args];
    assert_eq!(exit_and_first_line(&world, &write), expected_answer(0, "allow"));
    fs::write(world.workspace().join("config.yaml"), "a: 0\n").unwrap();
    let run = explain(&world, &write);
    assert_eq!(run.code, Some(1));
    let shown = "\
deny
  read_before_write: unread_overwrite
    `config.yaml` exists and was not read
    -> read all of `config.yaml`, then write it

what the call does
  Write (kind write)
    writes config.yaml
";
    assert!(run.stdout.starts_with(shown), "{}", run.stdout);
    assert_eq!(exit_and_first_line(&world, &["echo x > config.yaml"]), expected_answer(1, "deny"));
    assert_eq!(
        exit_and_first_line(&world, &["echo x >> config.yaml"]),
        expected_answer(0, "allow")
    );
}

#[test]
fn in_observe_mode_only_the_files_of_the_guard_are_protected() {
    let world = CliWorld::new(&format!("mode: observe\n{DEFINITION}"));
    assert_eq!(
        exit_and_first_line(&world, &["git push -f"]),
        expected_answer(0, "would deny (observe)")
    );
    for line in ["rm deploy.key", "bash -c 'rm -r ./.jackline/STOP'"] {
        let observed = expected_answer(0, "would deny (observe)");
        assert_eq!(exit_and_first_line(&world, &[line]), observed, "{line}");
    }
    for line in ["echo >> jackline.yaml", "bash -c 'rm -r ./jackline.yaml'"] {
        assert_eq!(exit_and_first_line(&world, &[line]), expected_answer(1, "deny"), "{line}");
    }
    let (_, output) = explain_json(&world, &["rm jackline.yaml"]);
    let violation = &output["violations"][0];
    assert_eq!(
        (&violation["guard"], &violation["location"], &violation["enforced"], &violation["rule"]),
        (&json!("protected"), &json!("jackline.yaml"), &json!(true), &json!(null))
    );
}

#[test]
fn the_json_is_one_complete_object() {
    let world = CliWorld::new(DEFINITION);
    fs::create_dir(world.workspace().join("web")).unwrap();
    let (code, mut shown) = explain_json(&world, &["cd web && git push -f; python -c 'print(1)'"]);
    assert_eq!(code, Some(1));
    let checksum = shown["definition"]["checksum"].take();
    assert_eq!(checksum.as_str().unwrap().len(), 64);
    assert!(shown["facts"].take()["now"]["wall"].is_string());
    let command = |program: &str, argv: &[&str], dir: &str, exit: &str| {
        json!({
            "program": program, "argv": argv, "dir": dir, "dir_certain": true, "reads": [],
            "writes": [], "deletes": [], "exit": exit, "certain": true, "parent": null,
            "tools": [],
        })
    };
    let mut push = command("git", &["push", "-f"], "web", "lost");
    push["certain"] = json!(false);
    let mut python = command("python", &["-c", "print(1)"], "web", "decides");
    python["dir_certain"] = json!(false);
    assert_eq!(
        shown,
        json!({
            "decision": "deny", "enforced": true, "may_run": false,
            "violations": [{
                "guard": "rules", "type": "rule_violation", "subtype": "no-force-push",
                "class": "recoverable_guardrail", "decision": "deny", "enforced": true,
                "message": "Force pushes rewrite shared history. (rule `no-force-push`, at `git push -f`)",
                "location": "git push -f", "correction": "instead: git push origin my-branch",
                "rule": {
                    "name": "no-force-push", "origin": "file jackline.yaml",
                    "message": "Force pushes rewrite shared history.",
                },
                "instead": {
                    "text": "git push origin my-branch", "decision": "allow", "passes": true,
                },
            }],
            "call": {
                "tool": "Bash", "kind": "exec", "actor": "main", "cwd": ".",
                "reads": [], "writes": [], "deletes": [],
            },
            "commands": [command("cd", &["web"], ".", "lost"), push, python],
            "opaque": [{
                "reason": "inline_script", "why": "it contains a script in another language",
                "text": "print(1)", "command": 2,
            }],
            "facts": null,
            "definition": {
                "name": "acme/web", "mode": "enforce", "checksum": null,
                "files": ["WORKSPACE/jackline.yaml"],
            },
            "workspace": "WORKSPACE", "after_record": 0,
        })
    );
}

#[test]
fn bad_input_is_refused_with_its_position() {
    let world = CliWorld::new(DEFINITION);
    for (args, error) in [
        (&["--args", r#"{"a": }"#][..], "--args is not JSON: expected value at line 1 column 7"),
        (
            &["--args", r#"{"a":1,"a":2}"#],
            "--args is not JSON: duplicate key `a` at line 1 column 10",
        ),
        (
            &["--args", "[1]"],
            "--args is JSON but not an object; write for example '{\"path\":\"a\"}'",
        ),
        (
            &["--tool", "Write", "x"],
            "`Write` takes no command line; pass its arguments with --args",
        ),
        (&["--tool", "", "x"], "the tool name must not be empty"),
        (&["--actor", "a\tb", "x"], "--actor contains a control character"),
        (&["--cwd", "gone", "x"], "--cwd: `gone` is not an existing directory"),
        (
            &["--session", "none", "x"],
            "no session `none`; `jackline status --all` lists all sessions",
        ),
        (&["-d", "gone.yaml", "x"], "definition `gone.yaml` not found; check the path after -d"),
        (&[], "the following required arguments were not provided"),
        (&["ls", "--args", "{}"], "cannot be used with"),
        (&["ls", "--session", "s", "-d", "jackline.yaml"], "cannot be used with"),
    ] {
        let run = explain(&world, args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains(error), "{args:?}: {}", run.stderr);
    }
    fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
    // Without a definition the preset decides, as for `backtest`.
    let run = explain(&world, &["git push -f origin main"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("rules: git/push-force"), "{run:?}");
    assert!(run.stderr.contains("the decision of the preset `coding-agent`"), "{run:?}");
}

#[test]
fn a_command_line_is_read_unchanged_from_standard_input() {
    let world = CliWorld::new(DEFINITION);
    let input = |bytes: &[u8]| {
        run_with_input(world.command(JACKLINE).args(["explain", "-", "--json"]), bytes)
    };
    let long = format!("echo '{}' \"it's\" && git push -f\n", "x".repeat(20_000));
    let run = input(long.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["commands"][0]["argv"][1], "it's");
    assert_eq!(shown["violations"][0]["location"], "git push -f");
    let here = "cat > notes.md <<'EOF'\ngit push -f\nEOF\n";
    assert_eq!(input(here.as_bytes()).code, Some(0));
    assert_eq!(input(b"").code, Some(0));
    assert_eq!(input(b"echo \xff").code, Some(2));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let world = CliWorld::new(DEFINITION);
    let line = "echo '\u{1b}[2J\u{202e}' && git push -f $'\\e[31m' && ./a\u{1b}b.sh > $'\\r'";
    let run = explain(&world, &[line]);
    assert_eq!(run.code, Some(1));
    let is_unsafe = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!run.stdout.contains(is_unsafe), "{:?}", run.stdout);
}

#[test]
fn a_rule_about_the_repository_reads_the_real_repository() {
    let world = CliWorld::new("extends: [pack/git]\n");
    for name in ["clean", "dirty"] {
        let directory = world.workspace().join(name);
        fs::create_dir(&directory).unwrap();
        run_git(&directory, &["init", "-q", "-b", "work"]);
        fs::write(directory.join("tracked"), "1").unwrap();
        run_git(&directory, &["add", "-A"]);
        run_git(&directory, &["commit", "-q", "-m", "x"]);
    }
    fs::write(world.workspace().join("dirty/tracked"), "2").unwrap();
    let reset = "git reset --hard";
    assert_eq!(
        exit_and_first_line(&world, &["--cwd", "clean", reset]),
        expected_answer(0, "allow")
    );
    assert_eq!(exit_and_first_line(&world, &["--cwd", "dirty", reset]), expected_answer(1, "deny"));
    assert_eq!(
        exit_and_first_line(&world, &[&format!("cd clean && {reset}")]),
        expected_answer(0, "allow")
    );
    let run = explain(&world, &[&format!("git -C clean status; cd dirty && {reset}")]);
    let shown = "\
deny
  rules: git/reset-hard (pack git)
    at `git reset --hard`
";
    assert!(run.stdout.starts_with(shown), "{}", run.stdout);
    let (_, shown) = explain_json(&world, &["--cwd", "dirty", reset]);
    assert_eq!(
        (&shown["facts"]["git"]["dirty"]["dirty"], &shown["violations"][0]["instead"]["passes"]),
        (&json!(true), &json!(true))
    );
}

#[test]
fn explain_uses_the_current_state_of_a_session() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("config.yaml"), "a: 0\n").unwrap();
    let write = ["--tool", "Write", "--args", r#"{"file_path":"config.yaml","content":"a: 1"}"#];
    let in_session = [&write[..], &["--session", "s1"]].concat();
    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    assert_eq!(exit_and_first_line(&world, &in_session), expected_answer(1, "deny"));
    world.stdio(&[
        r#"{"session":"s1","event":"tool_proposed","call":"c","tool":"Read","args":{"file_path":"config.yaml"}}"#,
        r#"{"session":"s1","event":"tool_finished","call":"c","status":"ok","result":"a: 0\n"}"#,
    ]);
    assert_eq!(exit_and_first_line(&world, &in_session), expected_answer(0, "allow"));
    assert_eq!(exit_and_first_line(&world, &write), expected_answer(1, "deny"));
    let as_another = [&in_session[..], &["--actor", "helper"]].concat();
    assert_eq!(exit_and_first_line(&world, &as_another), expected_answer(1, "deny"));
    // The session keeps its definition when the file changes.
    fs::write(world.workspace().join("jackline.yaml"), "").unwrap();
    assert_eq!(exit_and_first_line(&world, &["git push -f"]), expected_answer(0, "allow"));
    assert_eq!(
        exit_and_first_line(&world, &["git push -f", "--session", "s1"]),
        expected_answer(1, "deny")
    );
    let run = explain(&world, &["ls", "--session", "s1"]);
    assert!(run.stdout.contains("for the session after record 3 in WORKSPACE"), "{}", run.stdout);
    world.stdio(&[r#"{"session":"s1","event":"control","action":"pause","by":"dana"}"#]);
    assert_eq!(
        exit_and_first_line(&world, &["ls", "--session", "s1"]),
        expected_answer(1, "pause")
    );
    world.verify_and_replay("s1");
}

#[test]
fn explain_writes_nothing() {
    let world = CliWorld::new(DEFINITION);
    let before = world.file_tree();
    for args in [&["git push -f"][..], &["ls"], &["rm jackline.yaml"], &["ls", "--json"]] {
        explain(&world, args);
    }
    assert_eq!(world.file_tree(), before);

    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    fs::write(world.workspace().join("jackline.yaml"), "extends: [pack/git]\n").unwrap();
    let contents = || {
        let files = world
            .file_tree()
            .into_iter()
            .map(|name| (fs::read(world.root().join(&name)).ok(), name));
        files.collect::<Vec<_>>()
    };
    let before = contents();
    explain(&world, &["ls"]);
    explain(&world, &["ls", "--session", "s1"]);
    assert!(contents() == before);
    world.verify_and_replay("s1");
}

#[test]
fn a_definition_that_does_not_load_is_reported() {
    let world = CliWorld::new("rulez: []\n");
    let run = explain(&world, &["ls"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert!(run.stderr.contains("unknown key `rulez`"), "{}", run.stderr);
    assert!(run.stderr.contains("(`jackline check`)"), "{}", run.stderr);

    fs::write(world.workspace().join("jackline.yaml"), DEFINITION).unwrap();
    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    fs::write(world.workspace().join("jackline.yaml"), "rulez: []\n").unwrap();
    let run = explain(&world, &["git push -f"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.starts_with("deny\n"), "{}", run.stdout);
    assert!(run.stderr.contains("warning: the definition does not load"), "{}", run.stderr);
}

#[test]
fn the_workspace_is_the_directory_of_the_definition() {
    let world = CliWorld::new(DEFINITION);
    let below = world.workspace().join("web/src");
    fs::create_dir_all(&below).unwrap();
    let mut command = world.command(JACKLINE);
    let run =
        run_with_input(command.current_dir(&below).args(["explain", "--json", "rm ../x"]), b"");
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["workspace"], json!(world.workspace()));
    assert_eq!(
        (&shown["call"]["cwd"], &shown["commands"][0]["deletes"]),
        (&json!("web/src"), &json!(["web/x"]))
    );
}

#[test]
fn a_command_line_is_given_to_the_exec_tool_of_the_definition() {
    let source =
        "unknown_tools: deny\ntools: { run: { kind: exec, command: /spec/line }, note: {} }\n";
    let world = CliWorld::new(source);
    let (code, shown) = explain_json(&world, &["rm a"]);
    assert_eq!((code, &shown["call"]["tool"]), (Some(0), &json!("run")));
    assert_eq!(shown["commands"][0]["deletes"], json!(["a"]));
    // This definition does not declare the tool `Bash`.
    assert_eq!(
        exit_and_first_line(&world, &["--tool", "Bash", "rm a"]),
        expected_answer(1, "deny")
    );
    let named = ["--tool", "run", "--args", r#"{"spec":{"line":"rm b"}}"#];
    assert_eq!(explain_json(&world, &named).1["commands"][0]["deletes"], json!(["b"]));
}

#[test]
fn status_shows_waiting_calls_and_active_constraints() {
    let world = CliWorld::new(DEFINITION);
    let ship = |call: &str, line: &str| {
        format!(
            r#"{{"session":"s1","event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
        )
    };
    world.stdio(&[ship("c1", "make ship"), ship("c2", "make ship -j2")]);
    let run = world.jackline(&["status"]);
    let waiting = run.stdout.lines().filter(|line| line.contains("waits for you")).count();
    assert_eq!(waiting, 2, "{}", run.stdout);
    assert!(run.stdout.contains("Bash `make ship`: Shipping needs a person."), "{}", run.stdout);

    world.stdio(&[
        r#"{"session":"s1","event":"control","action":"grant","call":"c1","by":"dana","why":"release day"}"#,
        r#"{"session":"s1","event":"control","action":"refuse","call":"c2","by":"dana","why":"too fast"}"#,
        r#"{"session":"s1","event":"control","action":"pause"}"#,
    ]);
    let run = world.jackline(&["status"]);
    for text in [
        "k1 one call is allowed: release day (once)",
        "k2 one call is refused: too fast (for this session)",
        "a person: no reason given",
        "send the agent a message, or run `jackline resume`",
    ] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("waits for you"), "{}", run.stdout);
    let run = world.jackline(&["log"]);
    for text in ["ask  Shipping needs a person.", "allow  k1 one call is allowed: release day"] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    world.stdio(&[r#"{"session":"s1","event":"control","action":"resume"}"#]);
    assert_eq!(
        exit_and_first_line(&world, &["--session", "s1", "make ship"]),
        expected_answer(0, "allow")
    );
    assert_eq!(
        exit_and_first_line(&world, &["--session", "s1", "make ship -j2"]),
        expected_answer(1, "deny")
    );
    assert_eq!(exit_and_first_line(&world, &["make ship"]), expected_answer(1, "ask"));
    world.verify_and_replay("s1");
}
