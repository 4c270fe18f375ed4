//! Tests of `jackline attempt`: a model works on a task in attempts.

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

use crate::support::{
    CliOutput, CliWorld, JACKLINE, RELEASED, install_person_program, run_with_input,
};

/// Returns the path of the sandbox worker next to the binary. Builds the worker if it is missing.
pub(crate) fn sandbox() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let path = Path::new(RELEASED).with_file_name("jackline-sandbox");
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
        install_person_program();
        path.display().to_string()
    })
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/movie-tool")
}

pub(crate) fn run_attempt(world: &CliWorld, task: &Path, more: &[&str]) -> CliOutput {
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--sandbox", sandbox()]).arg(task).args(more);
    run_with_input(&mut command, b"")
}

/// Creates a task with a script, next to the workspace.
fn write_task(world: &CliWorld, tools: &str, script: &str) -> PathBuf {
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let text = format!("prompt: do it\ntools: [{tools}]\nmodel: {{ script: script.yaml }}\n");
    fs::write(directory.join("task.yaml"), text).unwrap();
    fs::write(directory.join("script.yaml"), script).unwrap();
    directory
}

fn file_names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_example_shows_the_recovery_story_offline() {
    let world = CliWorld::new("");
    let work = world.root().join("tonight");
    fs::create_dir(&work).unwrap();
    let run = run_attempt(&world, &example(), &["--workspace", work.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let expected = "\
attempt 1
  the model wrote 4 lines
  ✗ singleton_method_mutation at 2:1: `log` is assigned on an object that the program did not create
      -> Call tool(\"name\") or delegate(\"name\", ...) and use what it returns; never assign to an attribute of a tool, an agent or a module.
  rolled back: nothing was written
attempt 2
  the model wrote 5 lines
  ✗ the program reported an error: low_utility: no film begins after 22:00
  rolled back: draft.md
attempt 3
  the model wrote 11 lines
  committed: tonight.md
  generated tools saved: best_after
ok
{
  \"at\": \"20:15\",
  \"title\": \"Dune\"
}
";
    assert_eq!(run.stdout, expected);
    assert!(run.stderr.contains("attempts.jsonl"), "{run:?}");
    assert_eq!(file_names(&work), ["tonight.md"], "only files of the committed attempt");
    assert_eq!(fs::read_to_string(work.join("tonight.md")).unwrap(), "Dune at 20:15\n");
    let tools = world.jackline(&["tools", "--json"]).json_lines();
    assert_eq!((&tools[0]["name"], &tools[0]["uses"]), (&json!("best_after"), &json!(1)));

    let session = run.stderr.split(&[' ', ','][..]).find(|word| word.starts_with("attempt-"));
    let session = session.unwrap();
    world.verify_and_replay(session);
    check_attempt_log(&world, session);
    // The committed attempt can still be undone, by its number.
    let undone = world.jackline(&["undo", session, "3"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(file_names(&work).is_empty(), "{undone:?}");
}

/// Checks that the reference page describes every field of the log, and that `violations` sums it.
fn check_attempt_log(world: &CliWorld, session: &str) {
    let page = include_str!("../../../../docs/reference/attempt-log.md");
    let log =
        fs::read_to_string(world.journal_path(session).parent().unwrap().join("attempts.jsonl"))
            .unwrap();
    let entry: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    for field in entry.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{field}`")), "`{field}` is not in attempt-log.md");
    }
    let counted = world.jackline(&["violations", session, "--json"]).json_lines();
    assert_eq!(
        (&counted[0]["sessions"], &counted[0]["guardrail_violation_subtypes"]),
        (&json!(1), &json!({"singleton_method_mutation": 1}))
    );
    let shown = world.jackline(&["violations", session]).stdout;
    assert!(shown.contains("singleton_method_mutation  1"), "{shown}");
}

#[test]
fn json_output_has_one_object_per_line_and_the_outcome_last() {
    let world = CliWorld::new("");
    let work = world.root().join("tonight");
    fs::create_dir(&work).unwrap();
    let run = run_attempt(&world, &example(), &["--json", "--workspace", work.to_str().unwrap()]);
    let lines = run.json_lines();
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
fn a_missing_worker_error_names_the_command_that_builds_it() {
    let world = CliWorld::new("");
    let copy = world.root().join("alone/jackline");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    fs::copy(JACKLINE, &copy).unwrap();
    let mut command = world.command(copy.to_str().unwrap());
    let run = run_with_input(command.arg("attempt").arg(example()), b"");
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    let expected = "error: `jackline-sandbox` is neither beside this program nor in PATH; \
                    build it with `cargo build --release -p jackline-sandbox`\n";
    assert_eq!(run.stderr, expected);
    let run = run_with_input(
        world.command(JACKLINE).args(["attempt", "--sandbox", "/nowhere"]).arg(example()),
        b"",
    );
    assert!(run.stderr.contains("cargo build --release -p jackline-sandbox"), "{run:?}");
    assert_eq!(world.file_tree().iter().filter(|path| path.contains("sessions/")).count(), 0);
}

#[test]
fn an_invalid_task_is_reported_with_every_wrong_line() {
    let world = CliWorld::new("");
    let file = world.root().join("bad.yaml");
    fs::write(&file, "prompt: x\ntool: [read_file]\nmodel: { scrip: y }\n").unwrap();
    let run = run_attempt(&world, &file, &[]).with_path_placeholders(&world);
    assert_eq!(run.code, Some(2));
    let expected = "error: invalid task\n\
        ROOT/bad.yaml:2:1: unknown key `tool` in a task; did you mean `tools`?\n\
        ROOT/bad.yaml:3:8: `model` needs either `script` or `url`, or is `local:FILE.gguf`\n\
        ROOT/bad.yaml:3:10: unknown key `scrip` in `model`; did you mean `script`?\n";
    assert_eq!(run.stderr, expected);
    let run = run_attempt(&world, &world.root().join("nowhere"), &[]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("error: can't read `"), "{run:?}");
    let run = run_attempt(&world, &example(), &["--workspace", "/nowhere"]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_model_without_a_usable_answer_ends_with_the_public_message() {
    let after = "not done: request_not_completed: This request couldn't be completed after multiple attempts.";
    for (script, shown) in [
        (
            "steps: [ { text: '' } ]\nrepeat: true",
            "no usable program: empty_answer: the model sent an empty answer",
        ),
        (
            "steps: [ { timeout: true } ]\nrepeat: true",
            "no usable program: timeout: the model did not answer",
        ),
        ("steps: [ { status: 529 } ]\nrepeat: true", "answered with status 529"),
        ("steps: [ 'import os' ]\nrepeat: true", "✗ forbidden_construct at 1:8"),
        ("steps: [ '1/0' ]\nrepeat: true", "failed: execution: "),
        (
            "steps: [ \"error('low_utility', 'no', retriable=True)\" ]\nrepeat: true",
            "the program reported an error: low_utility: no",
        ),
    ] {
        let world = CliWorld::new("");
        let run = run_attempt(&world, &write_task(&world, "write_file", script), &[]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert_eq!(run.stdout.lines().last(), Some(after), "{run:?}");
        assert_eq!(run.stdout.matches(shown).count(), 2, "the budget allows two attempts: {run:?}");
        assert_eq!(file_names(&world.workspace()), ["jackline.yaml"]);
    }
}

/// The attempt is killed while a shell command of it runs.
#[test]
fn a_killed_attempt_is_undone_at_the_next_start() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a.txt"), "original").unwrap();
    // Not in the workspace, so that an overlay of the workspace does not hide it.
    let started = world.workspace().with_file_name("started");
    let program = format!(
        "steps:\n  - |\n    tool('write_file')(path='a.txt', content='half')\n    \
         tool('write_file')(path='b/c.txt', content='new')\n    \
         tool('shell')(command='touch {}; sleep 60')\n    ok(1)\n",
        started.display()
    );
    let directory = write_task(&world, "write_file, shell", &program);
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
    assert_eq!(fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "half");

    let run = run_attempt(&world, &write_task(&world, "", "steps: [ 'ok(1)' ]"), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("was interrupted and is now undone: b/c.txt, b, a.txt"), "{run:?}");
    assert_eq!(fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "original");
    assert_eq!(file_names(&world.workspace()), ["a.txt", "jackline.yaml"]);
}

#[test]
fn effects_of_a_command_that_cannot_be_undone_are_named() {
    let world = CliWorld::new("");
    let script = "steps:\n  - |\n    tool('shell')(command='touch made')\n    1/0\n  - ok(1)\n";
    let run = run_attempt(&world, &write_task(&world, "shell", script), &[]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("✗ not undone: effects of the command `touch made`"), "{run:?}");
    // If the kernel supports it, changes in the workspace are undone. Otherwise none are.
    let outside = run.stdout.contains("` outside the workspace");
    assert_eq!(world.workspace().join("made").exists(), !outside, "{run:?}");
}

/// One scripted answer of a server.
enum ChatAnswer {
    Reply(u16, Value),
    /// The server reads the request and never answers.
    Silence,
}

/// A chat completions server that answers one request per scripted answer.
struct ChatServer {
    url: String,
    requests: JoinHandle<Vec<String>>,
}

impl ChatServer {
    fn start(answers: Vec<ChatAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = std::thread::spawn(move || {
            let mut silent = Vec::new();
            let requests = answers.into_iter().map(|answer| {
                let (stream, _) = listener.accept().unwrap();
                let request = read_request(&stream);
                match answer {
                    ChatAnswer::Reply(status, body) => write_response(stream, status, &body),
                    ChatAnswer::Silence => silent.push(stream),
                }
                request
            });
            requests.collect()
        });
        Self { url, requests }
    }
}

fn read_request(stream: &TcpStream) -> String {
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

fn write_response(mut stream: TcpStream, status: u16, body: &Value) {
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

fn text_answer(text: &str) -> ChatAnswer {
    let choice = json!({ "message": { "content": text }, "finish_reason": "stop" });
    ChatAnswer::Reply(
        200,
        json!({ "choices": [choice], "usage": { "prompt_tokens": 11, "completion_tokens": 7 } }),
    )
}

fn chat_task(world: &CliWorld, url: &str) -> PathBuf {
    let file = world.root().join("chat.yaml");
    let model = format!("{{ url: '{url}', name: m1, key_env: MODEL_KEY, timeout_seconds: 1 }}");
    fs::write(&file, format!("prompt: say 42\nmodel: {model}\n")).unwrap();
    file
}

fn run_with_key(world: &CliWorld, task: &Path) -> CliOutput {
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--json", "--sandbox", sandbox()]).arg(task);
    run_with_input(command.env("MODEL_KEY", "sk-SECRETSECRET99"), b"")
}

#[test]
fn a_remote_model_gets_the_violation_and_its_key_is_not_stored() {
    let world = CliWorld::new("");
    let answers = vec![text_answer("import os"), text_answer("Here:\n```python\nok(42)\n```")];
    let server = ChatServer::start(answers);
    let run = run_with_key(&world, &chat_task(&world, &server.url));
    assert_eq!(run.code, Some(0), "{run:?}");
    let requests = server.requests.join().unwrap();
    assert!(requests[0].starts_with("POST /v1/chat/completions "), "{}", requests[0]);
    assert!(requests[0].contains("Bearer sk-SECRETSECRET99") && requests[0].contains("say 42"));
    assert!(
        requests[1].contains("forbidden_construct") && requests[1].contains("required_correction")
    );
    let lines = run.json_lines();
    assert_eq!(lines.last().unwrap()["outcome"]["value"], 42);
    let session = lines.last().unwrap()["session"].as_str().unwrap().to_owned();
    let usage = world
        .records(&session)
        .iter()
        .filter(|it| it.event.kind.name() == "usage_reported")
        .count();
    assert_eq!(usage, 2);
    for path in world.file_tree() {
        let bytes = fs::read(world.root().join(&path)).unwrap_or_default();
        let has_key = bytes.windows(12).any(|window| window == b"SECRETSECRET");
        assert!(!has_key, "the key is in {path}");
    }
    assert!(!format!("{run:?}").contains("SECRETSECRET"));
}

#[test]
fn a_plan_is_requested_by_its_schema() {
    let world = CliWorld::new("");
    let step = json!({ "name": "write_file", "arguments": { "path": "a", "content": "x" } });
    let plan = json!({ "action_type": "SYNTHESIZE", "tool_calls": [step] });
    let server = ChatServer::start(vec![text_answer(&plan.to_string())]);
    let task = chat_task(&world, &server.url);
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, format!("{text}artifact: plan\ntools: [write_file]\n")).unwrap();
    let run = run_with_key(&world, &task);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(world.workspace().join("a").exists());
    let request = server.requests.join().unwrap().remove(0);
    let body: Value = serde_json::from_str(request.split_once("\n\n").unwrap().1).unwrap();
    assert_eq!(body["response_format"]["type"], "json_schema");
    let schema = &body["response_format"]["json_schema"]["schema"];
    let step = &schema["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"];
    assert_eq!(step["name"], json!({ "enum": ["write_file"] }));
    assert!(step["arguments"]["properties"]["content"].is_object(), "{step}");
}

#[test]
fn a_model_that_is_silent_refuses_or_is_unreachable_has_a_typed_error() {
    let refusal = |status| {
        ChatAnswer::Reply(status, json!({ "error": { "message": "no: sk-SECRETSECRET99" } }))
    };
    for (answers, error_type) in [
        (vec![ChatAnswer::Silence, ChatAnswer::Silence], "timeout"),
        (vec![refusal(500), refusal(500)], "provider"),
        (vec![refusal(429), refusal(429)], "rate_limited"),
        (vec![refusal(401)], "missing_credentials"),
        (vec![text_answer(""), text_answer("")], "empty_answer"),
    ] {
        let world = CliWorld::new("");
        let server = ChatServer::start(answers);
        let run = run_with_key(&world, &chat_task(&world, &server.url));
        assert_eq!(run.code, Some(1), "{error_type}: {run:?}");
        let lines = run.json_lines();
        assert!(lines.iter().any(|line| line["error_type"] == error_type), "{error_type}: {run:?}");
        assert!(!format!("{run:?}").contains("SECRETSECRET"), "{run:?}");
        server.requests.join().unwrap();
    }
    let world = CliWorld::new("");
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let task = chat_task(&world, &format!("http://{unreachable}"));
    let run = run_with_key(&world, &task);
    assert!(run.stdout.contains("\"error_type\":\"network_error\""), "{run:?}");
    let run = run_attempt(&world, &task, &[]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.stderr, "error: the variable `MODEL_KEY`, which `key_env` names, is not set\n");
}

/// Runs a task whose rollback fails because the saved copy of a file is missing. Returns the
/// session, and the path at which the copy must be again.
fn run_with_failed_rollback(world: &CliWorld, task: &Path) -> (String, PathBuf) {
    let opening = jackline_task::TaskOptions {
        store: FileStore::new(world.home(), 0),
        workspace: world.workspace(),
        definition: None,
        sandbox: Sandbox { path: Some(sandbox().into()) },
        program: None,
        cancelled: std::sync::Arc::default(),
    };
    let task = jackline_task::load_task(task).unwrap();
    let sessions = world.home().join("sessions");
    let mut copy = PathBuf::new();
    let report = jackline_task::run_task(&task, opening, &mut |event| {
        if matches!(event.kind, jackline_task::AttemptEventKind::Failed { .. }) {
            let session = fs::read_dir(&sessions).unwrap().next().unwrap().unwrap();
            copy = session.path().join("undo/1/0");
            fs::rename(&copy, copy.with_extension("aside")).unwrap();
        }
    });
    let report = report.unwrap();
    assert!(report.rollback_failure.is_some());
    (report.session, copy)
}

#[test]
fn a_person_can_repeat_a_failed_rollback() {
    let world = CliWorld::new("");
    let file = world.workspace().join("a.txt");
    // Too long to be stored in the undo log itself.
    let original = "original\n".repeat(2000);
    fs::write(&file, &original).unwrap();
    let failing_program = "tool('write_file')(path='a.txt', content='half')\n1/0";
    let script = json!({ "steps": [failing_program, "ok(1)"] }).to_string();
    let task = write_task(&world, "write_file", &script);
    let (session, copy) = run_with_failed_rollback(&world, &task);
    let refused = run_attempt(&world, &task, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("jackline undo {session}")), "{refused:?}");
    // The rollback fails, and reports it, until the copy is back.
    let undo = || world.jackline(&["undo", &session, "1"]);
    let run = undo();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("`a.txt` was not restored"), "{run:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "half");
    fs::rename(copy.with_extension("aside"), &copy).unwrap();
    let run = undo();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), original);
    // New work can start again.
    let run = run_attempt(&world, &task, &[]);
    assert!(!run.stderr.contains("jackline undo"), "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_relative_sandbox_path_begins_in_the_directory_of_the_person() {
    let world = CliWorld::new("");
    fs::copy(sandbox(), world.workspace().join("worker")).unwrap();
    let run = |path: &str| {
        let mut command = world.command(JACKLINE);
        run_with_input(command.args(["attempt", "--sandbox", path]).arg(example()), b"")
    };
    for path in ["./worker", "worker"] {
        let found = run(path);
        assert_eq!(found.code, Some(0), "{path}: {found:?}");
    }
    // The message has the path as the person wrote it.
    let missing = run("./gone");
    assert_eq!(missing.code, Some(3), "{missing:?}");
    let expected = "`./gone` can't be started: the file does not exist";
    assert!(missing.stderr.contains(expected), "{missing:?}");
}
