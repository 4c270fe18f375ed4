//! `jackline attempt`: a model does a task in attempts.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use jackline_journal::FileStore;
use jackline_sandbox_host::Sandbox;
use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

/// The worker beside the binary: built with everything else, or now.
pub(crate) fn sandbox() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let path = Path::new(JACKLINE).with_file_name("jackline-sandbox");
        if !path.is_file() {
            let profile = path.parent().unwrap();
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--locked", "-p", "jackline-sandbox", "--target-dir"]);
            cargo.arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success());
        }
        path.display().to_string()
    })
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/movie-tool")
}

fn attempt(world: &World, task: &Path, more: &[&str]) -> Run {
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--sandbox", sandbox()]).arg(task).args(more);
    feed(&mut command, b"")
}

/// A task with a script, beside the workspace.
fn task(world: &World, tools: &str, script: &str) -> PathBuf {
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let text = format!("prompt: do it\ntools: [{tools}]\nmodel: {{ script: script.yaml }}\n");
    fs::write(directory.join("task.yaml"), text).unwrap();
    fs::write(directory.join("script.yaml"), script).unwrap();
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_example_shows_the_recovery_story_offline() {
    let world = World::new("");
    let work = world.root().join("tonight");
    fs::create_dir(&work).unwrap();
    let run = attempt(&world, &example(), &["--workspace", work.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let expected = "\
attempt 1
  the model wrote 4 lines
  ✗ singleton_method_mutation at 2:1: `log` is assigned on something that the program did not make
      -> Call tool(\"name\") or delegate(\"name\", ...) and use what it returns; never assign to an attribute of a tool, an agent or a module.
  rolled back: nothing was written
attempt 2
  the model wrote 5 lines
  ✗ its outcome: low_utility: no film begins after 22:00
  rolled back: draft.md
attempt 3
  the model wrote 11 lines
  committed: tonight.md
  tools kept: best_after
ok
{
  \"at\": \"20:15\",
  \"title\": \"Dune\"
}
";
    assert_eq!(run.stdout, expected);
    assert!(run.stderr.contains("attempts.jsonl"), "{run:?}");
    assert_eq!(names(&work), ["tonight.md"], "only the committed attempt's work");
    assert_eq!(fs::read_to_string(work.join("tonight.md")).unwrap(), "Dune at 20:15\n");
    let tools = world.jackline(&["tools", "--json"]).verdicts();
    assert_eq!((&tools[0]["name"], &tools[0]["uses"]), (&json!("best_after"), &json!(1)));

    let session = run.stderr.split(&[' ', ','][..]).find(|word| word.starts_with("attempt-"));
    let session = session.unwrap();
    world.prove(session);
    // The committed attempt can still be undone, by its number.
    let undone = world.jackline(&["undo", session, "3"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(names(&work).is_empty(), "{undone:?}");
}

#[test]
fn json_has_an_object_a_line_and_the_outcome_last() {
    let world = World::new("");
    let work = world.root().join("tonight");
    fs::create_dir(&work).unwrap();
    let run = attempt(&world, &example(), &["--json", "--workspace", work.to_str().unwrap()]);
    let lines = run.verdicts();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let expected = [
        "started",
        "generated",
        "objected",
        "rolled_back",
        "started",
        "generated",
        "answered",
        "rolled_back",
        "started",
        "generated",
        "committed",
        "ended",
    ];
    assert_eq!(events, expected);
    let ended = lines.last().unwrap();
    assert_eq!(
        ended["outcome"],
        json!({
            "status": "ok", "value": { "title": "Dune", "at": "20:15" },
            "retriable": false, "normalized": false,
        })
    );
    let trace = fs::read_to_string(ended["trace"].as_str().unwrap()).unwrap();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    assert_eq!(trace["guardrail_violation_subtypes"], json!({ "singleton_method_mutation": 1 }));
}

#[test]
fn a_missing_worker_is_answered_with_the_command_that_builds_it() {
    let world = World::new("");
    let copy = world.root().join("alone/jackline");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    fs::copy(JACKLINE, &copy).unwrap();
    let mut command = world.command(copy.to_str().unwrap());
    let run = feed(command.arg("attempt").arg(example()), b"");
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    let expected = "error: `jackline-sandbox` is neither beside this program nor in PATH; \
                    `cargo build --release -p jackline-sandbox` builds it\n";
    assert_eq!(run.stderr, expected);
    let run = feed(
        world.command(JACKLINE).args(["attempt", "--sandbox", "/nowhere"]).arg(example()),
        b"",
    );
    assert!(run.stderr.contains("cargo build --release -p jackline-sandbox"), "{run:?}");
    assert_eq!(world.tree().iter().filter(|path| path.contains("sessions/")).count(), 0);
}

#[test]
fn a_task_that_is_wrong_is_said_with_all_its_lines() {
    let world = World::new("");
    let file = world.root().join("bad.yaml");
    fs::write(&file, "prompt: x\ntool: [read_file]\nmodel: { scrip: y }\n").unwrap();
    let run = attempt(&world, &file, &[]).anywhere(&world);
    assert_eq!(run.code, Some(2));
    let expected = "error: the task is wrong\n\
        ROOT/bad.yaml:2:1: unknown key `tool` in a task; did you mean `tools`?\n\
        ROOT/bad.yaml:3:8: `model` needs either `script` or `url`, or is `local:FILE.gguf`\n\
        ROOT/bad.yaml:3:10: unknown key `scrip` in `model`; did you mean `script`?\n";
    assert_eq!(run.stderr, expected);
    let run = attempt(&world, &world.root().join("nowhere"), &[]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("error: can't read `"), "{run:?}");
    let run = attempt(&world, &example(), &["--workspace", "/nowhere"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_model_that_says_nothing_or_the_same_for_ever_ends_in_public_words() {
    let after = "not done: request_not_completed: This request couldn't be completed after multiple attempts.";
    for (script, shown) in [
        (
            "answers: [ { text: '' } ]\nrepeat: true",
            "nothing usable: empty_answer: the model said nothing",
        ),
        (
            "answers: [ { timeout: true } ]\nrepeat: true",
            "nothing usable: timeout: the model did not answer",
        ),
        ("answers: [ { status: 529 } ]\nrepeat: true", "answered with status 529"),
        ("answers: [ 'import os' ]\nrepeat: true", "✗ forbidden_construct at 1:8"),
        ("answers: [ '1/0' ]\nrepeat: true", "failed: execution: "),
        (
            "answers: [ \"error('low_utility', 'no', retriable=True)\" ]\nrepeat: true",
            "its outcome: low_utility: no",
        ),
    ] {
        let world = World::new("");
        let run = attempt(&world, &task(&world, "write_file", script), &[]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert_eq!(run.stdout.lines().last(), Some(after), "{run:?}");
        assert_eq!(run.stdout.matches(shown).count(), 2, "twice, by the budget: {run:?}");
        assert_eq!(names(&world.work()), ["jackline.yaml"]);
    }
}

/// An attempt that is killed in the middle, while a command of its runs.
#[test]
fn what_a_kill_leaves_is_undone_at_the_next_start() {
    let world = World::new("");
    fs::write(world.work().join("a.txt"), "as it was").unwrap();
    // Beside the workspace, where it is seen at once.
    let started = world.work().with_file_name("started");
    let program = format!(
        "answers:\n  - |\n    tool('write_file')(path='a.txt', content='half')\n    \
         tool('write_file')(path='b/c.txt', content='new')\n    \
         tool('shell')(command='touch {}; sleep 60')\n    ok(1)\n",
        started.display()
    );
    let directory = task(&world, "write_file, shell", &program);
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--sandbox", sandbox()]).arg(&directory);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_there = (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        started.exists()
    });
    assert!(is_there);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_to_string(world.work().join("a.txt")).unwrap(), "half");

    let run = attempt(&world, &task(&world, "", "answers: [ 'ok(1)' ]"), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("was cut off, and is undone now: b/c.txt, b, a.txt"), "{run:?}");
    assert_eq!(fs::read_to_string(world.work().join("a.txt")).unwrap(), "as it was");
    assert_eq!(names(&world.work()), ["a.txt", "jackline.yaml"]);
}

#[test]
fn what_a_command_did_is_named_where_it_cannot_be_undone() {
    let world = World::new("");
    let script = "answers:\n  - |\n    tool('shell')(command='touch made')\n    1/0\n  - ok(1)\n";
    let run = attempt(&world, &task(&world, "shell", script), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("✗ not undone: what the command `touch made` did"), "{run:?}");
    // All of it, or what is not in the workspace: that is undone where the kernel helps.
    let outside = run.stdout.contains("did outside of the workspace");
    assert_eq!(world.work().join("made").exists(), !outside, "{run:?}");
}

/// What a server answers.
enum Answer {
    Says(u16, Value),
    /// It takes the request, and says nothing.
    Silence,
}

/// A server that speaks as chat completions do, for as many requests as there are answers.
struct Server {
    url: String,
    heard: JoinHandle<Vec<String>>,
}

impl Server {
    fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let mut silent = Vec::new();
            let each = answers.into_iter().map(|answer| {
                let (stream, _) = listener.accept().unwrap();
                let request = read(&stream);
                match answer {
                    Answer::Says(status, body) => write(stream, status, &body),
                    Answer::Silence => silent.push(stream),
                }
                request
            });
            each.collect()
        });
        Self { url, heard }
    }
}

fn read(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    format!("{head}\n{}", String::from_utf8(body).unwrap())
}

fn write(mut stream: TcpStream, status: u16, body: &Value) {
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

fn said(text: &str) -> Answer {
    let choice = json!({ "message": { "content": text }, "finish_reason": "stop" });
    Answer::Says(
        200,
        json!({ "choices": [choice], "usage": { "prompt_tokens": 11, "completion_tokens": 7 } }),
    )
}

fn chat(world: &World, url: &str) -> PathBuf {
    let file = world.root().join("chat.yaml");
    let model = format!("{{ url: '{url}', name: m1, key_env: MODEL_KEY, timeout_seconds: 1 }}");
    fs::write(&file, format!("prompt: say 42\nmodel: {model}\n")).unwrap();
    file
}

fn with_key(world: &World, task: &Path) -> Run {
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--json", "--sandbox", sandbox()]).arg(task);
    feed(command.env("MODEL_KEY", "sk-SECRETSECRET99"), b"")
}

#[test]
fn a_model_behind_an_address_is_told_what_was_wrong_and_its_key_is_nowhere() {
    let world = World::new("");
    let answers = vec![said("import os"), said("Here:\n```python\nok(42)\n```")];
    let server = Server::start(answers);
    let run = with_key(&world, &chat(&world, &server.url));
    assert_eq!(run.code, Some(0), "{run:?}");
    let heard = server.heard.join().unwrap();
    assert!(heard[0].starts_with("POST /v1/chat/completions "), "{}", heard[0]);
    assert!(heard[0].contains("Bearer sk-SECRETSECRET99") && heard[0].contains("say 42"));
    assert!(heard[1].contains("forbidden_construct") && heard[1].contains("required_correction"));
    let lines = run.verdicts();
    assert_eq!(lines.last().unwrap()["outcome"]["value"], 42);
    let session = lines.last().unwrap()["session"].as_str().unwrap().to_owned();
    let usage = world
        .records(&session)
        .iter()
        .filter(|it| it.event.kind.name() == "usage_reported")
        .count();
    assert_eq!(usage, 2);
    for path in world.tree() {
        let bytes = fs::read(world.root().join(&path)).unwrap_or_default();
        let found = bytes.windows(12).any(|window| window == b"SECRETSECRET");
        assert!(!found, "the key is in {path}");
    }
    assert!(!format!("{run:?}").contains("SECRETSECRET"));
}

#[test]
fn a_plan_is_asked_for_by_its_schema() {
    let world = World::new("");
    let step = json!({ "name": "write_file", "arguments": { "path": "a", "content": "x" } });
    let plan = json!({ "action_type": "SYNTHESIZE", "tool_calls": [step] });
    let server = Server::start(vec![said(&plan.to_string())]);
    let task = chat(&world, &server.url);
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, format!("{text}artifact: plan\ntools: [write_file]\n")).unwrap();
    let run = with_key(&world, &task);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.work().join("a").exists());
    let heard = server.heard.join().unwrap().remove(0);
    let body: Value = serde_json::from_str(heard.split_once("\n\n").unwrap().1).unwrap();
    assert_eq!(body["response_format"]["type"], "json_schema");
    let schema = &body["response_format"]["json_schema"]["schema"];
    let step = &schema["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"];
    assert_eq!(step["name"], json!({ "enum": ["write_file"] }));
    assert!(step["arguments"]["properties"]["content"].is_object(), "{step}");
}

#[test]
fn a_model_that_is_silent_refuses_or_is_gone_is_typed() {
    let refusal =
        |status| Answer::Says(status, json!({ "error": { "message": "no: sk-SECRETSECRET99" } }));
    for (answers, error_type) in [
        (vec![Answer::Silence, Answer::Silence], "timeout"),
        (vec![refusal(500), refusal(500)], "provider"),
        (vec![refusal(429), refusal(429)], "rate_limited"),
        (vec![refusal(401)], "missing_credentials"),
        (vec![said(""), said("")], "empty_answer"),
    ] {
        let world = World::new("");
        let server = Server::start(answers);
        let run = with_key(&world, &chat(&world, &server.url));
        assert_eq!(run.code, Some(1), "{error_type}: {run:?}");
        let lines = run.verdicts();
        assert!(lines.iter().any(|line| line["error_type"] == error_type), "{error_type}: {run:?}");
        assert!(!format!("{run:?}").contains("SECRETSECRET"), "{run:?}");
        server.heard.join().unwrap();
    }
    let world = World::new("");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let task = chat(&world, &format!("http://{gone}"));
    let run = with_key(&world, &task);
    assert!(run.stdout.contains("\"error_type\":\"network_error\""), "{run:?}");
    let run = attempt(&world, &task, &[]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.stderr, "error: the variable `MODEL_KEY`, which `key_env` names, is not set\n");
}

/// Runs a task whose rollback gets stuck: the copy of what a file was is gone. Gives the
/// session, and where the copy has to be again.
fn stuck(world: &World, task: &Path) -> (String, PathBuf) {
    let opening = jackline_task::Opening {
        store: FileStore::new(world.home(), 0),
        workspace: world.work(),
        definition: None,
        sandbox: Sandbox { path: Some(sandbox().into()) },
        program: None,
        cancelled: std::sync::Arc::default(),
    };
    let task = jackline_task::load(task).unwrap();
    let sessions = world.home().join("sessions");
    let mut copy = PathBuf::new();
    let report = jackline_task::run(&task, opening, &mut |told| {
        if matches!(told.what, jackline_task::What::Failed { .. }) {
            let session = fs::read_dir(&sessions).unwrap().next().unwrap().unwrap();
            copy = session.path().join("undo/1/0");
            fs::rename(&copy, copy.with_extension("aside")).unwrap();
        }
    });
    let report = report.unwrap();
    assert!(report.stuck.is_some());
    (report.session, copy)
}

#[test]
fn a_rollback_that_is_stuck_is_tried_again_by_a_person() {
    let world = World::new("");
    let file = world.work().join("a.txt");
    // Too long to stand in the log itself.
    let was = "as it was\n".repeat(2000);
    fs::write(&file, &was).unwrap();
    let spoils = "tool('write_file')(path='a.txt', content='half')\n1/0";
    let script = json!({ "answers": [spoils, "ok(1)"] }).to_string();
    let task = task(&world, "write_file", &script);
    let (session, copy) = stuck(&world, &task);
    let refused = attempt(&world, &task, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("jackline undo {session}")), "{refused:?}");
    // As long as what was wrong is wrong, it stays stuck, and says so.
    let undo = || world.jackline(&["undo", &session, "1"]);
    let run = undo();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("`a.txt` is as the session left it"), "{run:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "half");
    fs::rename(copy.with_extension("aside"), &copy).unwrap();
    let run = undo();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), was);
    // And work can begin again.
    let run = attempt(&world, &task, &[]);
    assert!(!run.stderr.contains("jackline undo"), "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");
}
