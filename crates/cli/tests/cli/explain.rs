//! `jackline explain`: what would be decided, why, and that nothing is left behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

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

fn explain(world: &World, args: &[&str]) -> Run {
    let mut words = vec!["explain"];
    words.extend(args);
    world.jackline(&words).anywhere(world)
}

fn as_json(world: &World, args: &[&str]) -> (Option<i32>, Value) {
    let mut words = vec!["--json"];
    words.extend(args);
    let run = explain(world, &words);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout.lines().count(), 1);
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

/// The exit code and the first line.
fn answer(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let run = explain(world, args);
    assert_eq!(run.stderr, "", "{args:?}");
    (run.code, run.stdout.lines().next().unwrap_or_default().to_owned())
}

fn said(code: i32, first: &str) -> (Option<i32>, String) {
    (Some(code), first.to_owned())
}

fn git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    assert!(command.current_dir(directory).status().unwrap().success(), "{args:?}");
}

#[test]
fn a_denial_names_the_rule_the_part_and_what_passes_instead() {
    let world = World::new(DEFINITION);
    fs::create_dir(world.work().join("web")).unwrap();
    let run = explain(&world, &["cd web && git push -f origin main | tee 'push log'"]);
    assert_eq!(
        run,
        Run {
            code: Some(1),
            stdout: "\
deny
  rules: no-force-push (file jackline.yaml)
    at `git push -f origin main`
    Force pushes rewrite shared history.
    -> git push origin my-branch (passes)

what the line does
  cd web
  git push -f origin main  (in web)
  tee 'push log'  (in web)
    writes web/push log

by acme/web (WORKSPACE/jackline.yaml), for a new session in WORKSPACE
"
            .to_owned(),
            stderr: String::new(),
        }
    );
}

#[test]
fn each_answer_has_its_word_and_its_exit_code() {
    let world = World::new(DEFINITION);
    assert_eq!(answer(&world, &["git push -f"]), said(1, "deny"));
    assert_eq!(answer(&world, &["make ship"]), said(1, "ask"));
    assert_eq!(answer(&world, &["make quiet"]), said(0, "would deny (observe)"));
    assert_eq!(answer(&world, &["make hint"]), said(0, "allow"));
    assert_eq!(answer(&world, &["make test"]), said(0, "allow"));
    let pay = |args: &str| answer(&world, &["--tool", "pay", "--args", args]);
    assert_eq!(pay(r#"{"amount":11}"#), said(1, "deny"));
    assert_eq!(pay(r#"{"amount":1}"#), said(0, "allow"));
    // The condition asks for something that is not there: the rule is broken.
    assert_eq!(pay(r#"{"iban":"x"}"#), said(3, "deny"));
}

#[test]
fn an_allowed_line_is_shown_as_it_was_understood() {
    let world = World::new(DEFINITION);
    let run =
        explain(&world, &["cat a.txt > b.txt; ./setup.sh && make hint; rm -r \"$TMP/x\" *.o"]);
    let footer = "\nby acme/web (WORKSPACE/jackline.yaml), for a new session in WORKSPACE\n";
    assert_eq!(
        run.stdout.strip_suffix(footer).unwrap(),
        "\
allow
  rules: hint (file jackline.yaml): warn
    at `make hint`
    It takes an hour.

what the line does
  cat a.txt
    reads a.txt
    writes b.txt
  ./setup.sh
  make hint
  rm -r $TMP/x *.o
    deletes $TMP/x (which can't be told) and all below, *.o (a pattern) and all below
what can't be seen into
  `./setup.sh`: it runs a script from a file
  `make hint`: the program runs others
"
    );
    let run = explain(&world, &["true"]);
    assert!(run.stdout.starts_with("allow\n  no objection\n\nwhat the line does\n  true\n"));
    let run = explain(&world, &["make ship"]);
    let next = "ask\n  it does not run until a person has granted exactly this call\n";
    assert!(run.stdout.starts_with(next), "{}", run.stdout);
}

#[test]
fn a_file_that_was_not_read_is_not_overwritten() {
    let world = World::new(DEFINITION);
    let args = r#"{"file_path":"config.yaml","content":"a: 1"}"#;
    let write = ["--tool", "Write", "--args", args];
    assert_eq!(answer(&world, &write), said(0, "allow"));
    fs::write(world.work().join("config.yaml"), "a: 0\n").unwrap();
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
    assert_eq!(answer(&world, &["echo x > config.yaml"]), said(1, "deny"));
    assert_eq!(answer(&world, &["echo x >> config.yaml"]), said(0, "allow"));
}

#[test]
fn what_is_protected_stays_so_even_where_everything_is_observed() {
    let world = World::new(&format!("mode: observe\n{DEFINITION}"));
    assert_eq!(answer(&world, &["git push -f"]), said(0, "would deny (observe)"));
    for line in ["rm deploy.key", "echo >> jackline.yaml", "bash -c 'rm -r ./.jackline/STOP'"] {
        assert_eq!(answer(&world, &[line]), said(1, "deny"), "{line}");
    }
    let (_, shown) = as_json(&world, &["rm deploy.key"]);
    let found = &shown["violations"][0];
    assert_eq!(
        (&found["guard"], &found["location"], &found["enforced"], &found["rule"]),
        (&json!("protected"), &json!("deploy.key"), &json!(true), &json!(null))
    );
}

#[test]
fn the_json_is_one_object_with_everything() {
    let world = World::new(DEFINITION);
    fs::create_dir(world.work().join("web")).unwrap();
    let (code, mut shown) = as_json(&world, &["cd web && git push -f; python -c 'print(1)'"]);
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
                "reason": "inline_script", "why": "it holds a script in another language",
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
fn bad_input_is_refused_with_its_place() {
    let world = World::new(DEFINITION);
    for (args, complaint) in [
        (&["--args", r#"{"a": }"#][..], "--args is not JSON: expected value at line 1 column 7"),
        (
            &["--args", r#"{"a":1,"a":2}"#],
            "--args is not JSON: duplicate key `a` at line 1 column 10",
        ),
        (
            &["--args", "[1]"],
            "--args is JSON, but no object; arguments are one: '{\"path\":\"a\"}'",
        ),
        (
            &["--tool", "Write", "x"],
            "`Write` takes no command line; say what it is given with --args",
        ),
        (&["--tool", "", "x"], "the name of a tool must not be empty"),
        (&["--actor", "a\tb", "x"], "--actor holds a control character"),
        (&["--cwd", "gone", "x"], "--cwd: no directory `gone`; name one that is there"),
        (&["--session", "none", "x"], "no session `none`; `jackline status --all` lists them"),
        (&["-d", "gone.yaml", "x"], "no definition `gone.yaml`; check the path after -d"),
        (&[], "the following required arguments were not provided"),
        (&["ls", "--args", "{}"], "cannot be used with"),
        (&["ls", "--session", "s", "-d", "jackline.yaml"], "cannot be used with"),
    ] {
        let run = explain(&world, args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains(complaint), "{args:?}: {}", run.stderr);
    }
    fs::remove_file(world.work().join("jackline.yaml")).unwrap();
    let run = explain(&world, &["ls"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no `jackline.yaml` in `WORKSPACE` or above it"), "{}", run.stderr);
}

#[test]
fn a_line_comes_from_standard_input_as_it_is() {
    let world = World::new(DEFINITION);
    let input =
        |bytes: &[u8]| feed(world.command(JACKLINE).args(["explain", "-", "--json"]), bytes);
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
    let world = World::new(DEFINITION);
    let line = "echo '\u{1b}[2J\u{202e}' && git push -f $'\\e[31m' && ./a\u{1b}b.sh > $'\\r'";
    let run = explain(&world, &[line]);
    assert_eq!(run.code, Some(1));
    let acts = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!run.stdout.contains(acts), "{:?}", run.stdout);
}

#[test]
fn a_rule_about_the_repository_looks_at_the_real_one() {
    let world = World::new("extends: [pack/git]\n");
    for name in ["clean", "dirty"] {
        let directory = world.work().join(name);
        fs::create_dir(&directory).unwrap();
        git(&directory, &["init", "-q", "-b", "work"]);
        fs::write(directory.join("kept"), "1").unwrap();
        git(&directory, &["add", "-A"]);
        git(&directory, &["commit", "-q", "-m", "x"]);
    }
    fs::write(world.work().join("dirty/kept"), "2").unwrap();
    let reset = "git reset --hard";
    assert_eq!(answer(&world, &["--cwd", "clean", reset]), said(0, "allow"));
    assert_eq!(answer(&world, &["--cwd", "dirty", reset]), said(1, "deny"));
    assert_eq!(answer(&world, &[&format!("cd clean && {reset}")]), said(0, "allow"));
    let run = explain(&world, &[&format!("git -C clean status; cd dirty && {reset}")]);
    let shown = "\
deny
  rules: git/reset-hard (pack git)
    at `git reset --hard`
";
    assert!(run.stdout.starts_with(shown), "{}", run.stdout);
    let (_, shown) = as_json(&world, &["--cwd", "dirty", reset]);
    assert_eq!(
        (&shown["facts"]["git"]["dirty"]["dirty"], &shown["violations"][0]["instead"]["passes"]),
        (&json!(true), &json!(true))
    );
}

#[test]
fn a_session_is_asked_as_it_stands() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("config.yaml"), "a: 0\n").unwrap();
    let write = ["--tool", "Write", "--args", r#"{"file_path":"config.yaml","content":"a: 1"}"#];
    let in_session = [&write[..], &["--session", "s1"]].concat();
    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    assert_eq!(answer(&world, &in_session), said(1, "deny"));
    world.stdio(&[
        r#"{"session":"s1","event":"tool_proposed","call":"c","tool":"Read","args":{"file_path":"config.yaml"}}"#,
        r#"{"session":"s1","event":"tool_finished","call":"c","status":"ok","result":"a: 0\n"}"#,
    ]);
    assert_eq!(answer(&world, &in_session), said(0, "allow"));
    assert_eq!(answer(&world, &write), said(1, "deny"));
    let as_another = [&in_session[..], &["--actor", "helper"]].concat();
    assert_eq!(answer(&world, &as_another), said(1, "deny"));
    // The session keeps its definition, whatever became of the file.
    fs::write(world.work().join("jackline.yaml"), "").unwrap();
    assert_eq!(answer(&world, &["git push -f"]), said(0, "allow"));
    assert_eq!(answer(&world, &["git push -f", "--session", "s1"]), said(1, "deny"));
    let run = explain(&world, &["ls", "--session", "s1"]);
    assert!(run.stdout.contains("for the session after record 3 in WORKSPACE"), "{}", run.stdout);
    world.stdio(&[r#"{"session":"s1","event":"control","action":"pause","by":"dana"}"#]);
    assert_eq!(answer(&world, &["ls", "--session", "s1"]), said(1, "pause"));
    world.prove("s1");
}

#[test]
fn nothing_is_written() {
    let world = World::new(DEFINITION);
    let before = world.tree();
    for args in [&["git push -f"][..], &["ls"], &["rm jackline.yaml"], &["ls", "--json"]] {
        explain(&world, args);
    }
    assert_eq!(world.tree(), before);

    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    fs::write(world.work().join("jackline.yaml"), "extends: [pack/git]\n").unwrap();
    let contents = || {
        let files =
            world.tree().into_iter().map(|name| (fs::read(world.root().join(&name)).ok(), name));
        files.collect::<Vec<_>>()
    };
    let before = contents();
    explain(&world, &["ls"]);
    explain(&world, &["ls", "--session", "s1"]);
    assert!(contents() == before);
    world.prove("s1");
}

#[test]
fn a_definition_that_does_not_load_is_said() {
    let world = World::new("rulez: []\n");
    let run = explain(&world, &["ls"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert!(run.stderr.contains("unknown key `rulez`"), "{}", run.stderr);
    assert!(run.stderr.contains("(`jackline check`)"), "{}", run.stderr);

    fs::write(world.work().join("jackline.yaml"), DEFINITION).unwrap();
    world.stdio(&[r#"{"session":"s1","event":"session_started"}"#]);
    fs::write(world.work().join("jackline.yaml"), "rulez: []\n").unwrap();
    let run = explain(&world, &["git push -f"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.starts_with("deny\n"), "{}", run.stdout);
    assert!(run.stderr.contains("warning: the definition does not load"), "{}", run.stderr);
}

#[test]
fn the_workspace_is_where_the_definition_is() {
    let world = World::new(DEFINITION);
    let below = world.work().join("web/src");
    fs::create_dir_all(&below).unwrap();
    let mut command = world.command(JACKLINE);
    let run = feed(command.current_dir(&below).args(["explain", "--json", "rm ../x"]), b"");
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["workspace"], json!(world.work()));
    assert_eq!(
        (&shown["call"]["cwd"], &shown["commands"][0]["deletes"]),
        (&json!("web/src"), &json!(["web/x"]))
    );
}

#[test]
fn a_line_goes_to_the_tool_that_the_definition_has_for_it() {
    let source = "tools: { run: { kind: exec, command: /spec/line }, note: {} }\n";
    let world = World::new(source);
    let (code, shown) = as_json(&world, &["rm a"]);
    assert_eq!((code, &shown["call"]["tool"]), (Some(0), &json!("run")));
    assert_eq!(shown["commands"][0]["deletes"], json!(["a"]));
    // The usual one is not known here.
    assert_eq!(answer(&world, &["--tool", "Bash", "rm a"]), said(1, "deny"));
    let named = ["--tool", "run", "--args", r#"{"spec":{"line":"rm b"}}"#];
    assert_eq!(as_json(&world, &named).1["commands"][0]["deletes"], json!(["b"]));
}

#[test]
fn what_waits_and_what_is_in_force_is_seen() {
    let world = World::new(DEFINITION);
    let ship = |call: &str, line: &str| {
        format!(
            r#"{{"session":"s1","event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
        )
    };
    world.stdio(&[ship("c1", "make ship"), ship("c2", "make ship -j2")]);
    let run = world.jackline(&["status"]);
    let waits = run.stdout.lines().filter(|line| line.contains("waits for you")).count();
    assert_eq!(waits, 2, "{}", run.stdout);
    assert!(run.stdout.contains("Bash `make ship`: Shipping needs a person."), "{}", run.stdout);

    world.stdio(&[
        r#"{"session":"s1","event":"control","action":"grant","call":"c1","by":"dana","why":"release day"}"#,
        r#"{"session":"s1","event":"control","action":"refuse","call":"c2","by":"dana","why":"too fast"}"#,
        r#"{"session":"s1","event":"control","action":"pause"}"#,
    ]);
    let run = world.jackline(&["status"]);
    for shown in [
        "k1 one call may pass: release day (once)",
        "k2 one call is refused: too fast (for this session)",
        "a person: no reason given",
        "a message of yours, or `jackline resume`",
    ] {
        assert!(run.stdout.contains(shown), "{shown}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("waits for you"), "{}", run.stdout);
    let run = world.jackline(&["log"]);
    for shown in ["ask  Shipping needs a person.", "allow  k1 one call may pass: release day"] {
        assert!(run.stdout.contains(shown), "{shown}: {}", run.stdout);
    }
    world.stdio(&[r#"{"session":"s1","event":"control","action":"resume"}"#]);
    assert_eq!(answer(&world, &["--session", "s1", "make ship"]), said(0, "allow"));
    assert_eq!(answer(&world, &["--session", "s1", "make ship -j2"]), said(1, "deny"));
    assert_eq!(answer(&world, &["make ship"]), said(1, "ask"));
    world.prove("s1");
}
