//! Tests of `jackline run` with models over HTTP, on the loopback address, whose answers are
//! invalid: partial, HTML, with malformed calls, huge, or missing.

use std::fs;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::Provider;
use jackline_model::scripted::{AnswerDefect, ModelScript, ScriptStep, ScriptedModel};
use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, TaskDirectory, events_named, poll_until, session_id, spawn_piped, stop_code,
    wait_for_output,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

/// A scripted server ends after this time.
const SERVER_LIFETIME: Duration = Duration::from_mins(2);

/// The environment variable with the key, and the key.
const KEY: (&str, &str) = ("A_KEY", "sk-very-secret-0123456789");

/// A scripted HTTP model, and the world that uses it.
struct HttpModelTest {
    world: CliWorld,
    server: ScriptedModel,
    provider: Provider,
}

impl HttpModelTest {
    fn new(provider: Provider, steps: Vec<ScriptStep>) -> Self {
        let server = ScriptedModel::start(ModelScript::new(steps), SERVER_LIFETIME).unwrap();
        Self { world: CliWorld::new(""), server, provider }
    }

    /// Returns the model in the format of a definition.
    fn model(&self, timeout_seconds: u32) -> String {
        let version = if self.provider == Provider::Gemini { "v1beta" } else { "v1" };
        let (provider, url) = (self.provider, self.server.url());
        format!(
            "provider: {provider}, model: some-model, url: \"{url}/{version}\", key_env: {}, \
             timeout_seconds: {timeout_seconds}",
            KEY.0
        )
    }

    fn run(&self) -> CliOutput {
        self.run_with(&[self.model(2)])
    }

    fn run_with(&self, models: &[String]) -> CliOutput {
        let task = TaskDirectory::with_models(&self.world, REPORT_COMPLETION, models);
        let mut command = task.run_command(&["--json", "--no-wait"]);
        run_with_input(command.arg(&task.directory).env(KEY.0, KEY.1), b"")
    }
}

fn write_step(path: &str) -> ScriptStep {
    ScriptStep::call("write_file", json!({ "path": path, "content": "x" }))
}

fn event_texts(run: &CliOutput, event: &str, field: &str) -> Vec<String> {
    events_named(run, event).iter().map(|it| it[field].as_str().unwrap().to_owned()).collect()
}

/// Checks all providers in parallel, because a check spends most of its time waiting.
fn for_each_provider(check: impl Fn(Provider) + Sync) {
    std::thread::scope(|scope| {
        let check = &check;
        for provider in Provider::ALL {
            scope.spawn(move || check(provider));
        }
    });
}

#[test]
fn an_invalid_answer_is_requested_again_and_no_call_runs_twice() {
    for_each_provider(|provider| {
        let half = write_step("half").broken(AnswerDefect::Incomplete);
        let html = ScriptStep::say("x").broken(AnswerDefect::Html);
        let silent = ScriptStep::say("x").broken(AnswerDefect::Nothing);
        let steps = vec![
            half,
            write_step("a"),
            html,
            write_step("b"),
            silent,
            write_step("c"),
            ScriptStep::fail(529),
            write_step("d"),
            ScriptStep::fail(429),
            write_step("report.md"),
            ScriptStep::say("Written."),
        ];
        let asked = HttpModelTest::new(provider, steps);
        let run = asked.run();
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
        assert_eq!(
            event_texts(&run, "called", "does"),
            ["a", "b", "c", "d", "report.md"],
            "{provider}"
        );
        let waits = events_named(&run, "waiting");
        let reasons: Vec<&str> = waits.iter().map(|it| it["why"].as_str().unwrap()).collect();
        assert_eq!(reasons.len(), 5, "{provider}: {reasons:?}");
        for (reason, part) in
            reasons.iter().zip(["before the end", "HTML", "too long", "529", "429"])
        {
            assert!(reason.contains(part), "{provider}: {reason}");
        }
        assert!(!asked.world.workspace().join("half").exists());
        asked.world.verify_and_replay(&session_id(&run));
    });
}

#[test]
fn a_delta_of_a_megabyte_is_accepted() {
    for_each_provider(|provider| {
        let steps =
            vec![write_step("report.md").broken(AnswerDefect::Huge), ScriptStep::say("Written.")];
        let asked = HttpModelTest::new(provider, steps);
        let run = asked.run_with(&[asked.model(20)]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {}", run.stderr);
        let texts_shown = event_texts(&run, "said", "text");
        assert!(
            texts_shown[0].chars().count() < 400,
            "{provider}: {} characters",
            texts_shown[0].len()
        );
        // The full text is sent back to the model in the next request.
        let last = asked.server.requests().pop().unwrap();
        assert!(last.body.to_string().contains(&"x".repeat(1 << 20)), "{provider}");
        asked.world.verify_and_replay(&session_id(&run));
    });
}

/// A model whose answers are always too long fills one conversation after another.
#[test]
fn a_model_whose_answers_do_not_end_is_given_up() {
    for_each_provider(|provider| {
        let steps =
            vec![ScriptStep::say("and so on ".repeat(50)).broken(AnswerDefect::LengthLimit); 40];
        let asked = HttpModelTest::new(provider, steps);
        let run = asked.run();
        assert_eq!(stop_code(&run), "SYSTEM_ERROR{model}", "{provider}: {}", run.stdout);
        let count = events_named(&run, "asking").len();
        assert_eq!(count, 9, "{provider}: expected three conversations with three answers each");
        // Another model can take over.
        let next = ScriptStep::call("write_file", json!({ "path": "report.md", "content": "x" }));
        let other = HttpModelTest::new(provider, vec![next, ScriptStep::say("done")]);
        let next = other.model(2).replace("some-model", "another");
        let run = asked.run_with(&[asked.model(2), next]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {}", run.stdout);
    });
}

#[test]
fn malformed_calls_are_answered_and_the_model_continues() {
    for_each_provider(|provider| {
        let steps = vec![
            ScriptStep::default().and_call_with("write_file", r#"{"path": "cut"#),
            ScriptStep::default().and_call_with("write_file", "[1, 2]"),
            ScriptStep::call("unknown", json!({})),
            ScriptStep::call("read_file", json!({ "path": 5 })),
            write_step("report.md"),
            ScriptStep::say("Written."),
        ];
        let asked = HttpModelTest::new(provider, steps);
        let run = asked.run();
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
        let called = events_named(&run, "called");
        let worked = |it: &&Value| it["status"] == "ok" && it["decision"] == "allow";
        // Gemini calls have no arguments as text. The answer is invalid there and is requested
        // again.
        assert!(called.len() >= 3, "{provider}: {called:?}");
        assert_eq!(called.iter().filter(worked).count(), 1, "{provider}: {called:?}");
        assert_eq!(called.last().unwrap()["does"], "report.md", "{provider}: {called:?}");
        assert_eq!(asked.server.count(), 6, "{provider}");
        asked.world.verify_and_replay(&session_id(&run));
    });
}

/// Returns everything that a run leaves: its output and the contents of all files.
fn all_remains(asked: &HttpModelTest, run: &CliOutput) -> String {
    let files = asked.world.file_tree().into_iter().map(|path| asked.world.root().join(path));
    let read = |path| fs::read(path).unwrap_or_default();
    let files: Vec<u8> = files.filter(|path| path.is_file()).flat_map(read).collect();
    format!("{}{}{}", run.stdout, run.stderr, String::from_utf8_lossy(&files))
}

#[test]
fn a_wrong_key_and_an_unknown_model_are_reported_once_and_the_key_is_not_shown() {
    for_each_provider(|provider| {
        let refusal = |status, text: String| ScriptStep { text, ..ScriptStep::fail(status) };
        let wrong_key = refusal(401, format!("the key {} is invalid", KEY.1));
        let no_model = refusal(404, "the model `some-model` does not exist".to_owned());
        for (step, parts) in [
            (wrong_key, ["the key … is invalid", "A_KEY"]),
            (no_model, ["some-model", "does not exist"]),
        ] {
            let asked = HttpModelTest::new(provider, vec![step]);
            let run = asked.run();
            assert_eq!(
                (run.code, stop_code(&run)),
                (Some(1), "SYSTEM_ERROR{model}".into()),
                "{run:?}"
            );
            let why = event_texts(&run, "aside", "text").join("\n");
            // The `openai-chat` provider needs no key, so it names no variable.
            let parts =
                parts.iter().filter(|part| provider != Provider::OpenAiChat || **part != "A_KEY");
            for part in parts {
                assert!(why.contains(part), "{provider}: {part}: {why}");
            }
            assert_eq!(asked.server.count(), 1, "{provider}: the request must not be repeated");
            assert!(!all_remains(&asked, &run).contains(KEY.1), "{provider}");
            asked.world.verify_and_replay(&session_id(&run));
        }
    });
}

#[test]
fn a_missing_key_error_names_the_variable_of_the_definition() {
    let asked = HttpModelTest::new(Provider::Anthropic, Vec::new());
    let task = TaskDirectory::with_models(&asked.world, REPORT_COMPLETION, &[asked.model(1)]);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("the variable `A_KEY`, which `key_env` names"), "{run:?}");
    assert_eq!(asked.server.count(), 0);
}

#[test]
fn after_one_timeout_of_a_silent_model_the_next_model_answers() {
    let silent = HttpModelTest::new(
        Provider::Anthropic,
        vec![ScriptStep::say("x").broken(AnswerDefect::Nothing)],
    );
    let next = HttpModelTest::new(
        Provider::OpenAiChat,
        vec![write_step("report.md"), ScriptStep::say("Written.")],
    );
    let start_ms = now().boot_ms;
    let run = silent.run_with(&[silent.model(1), next.model(20)]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = events_named(&run, "changed");
    assert_eq!((changed.len(), &changed[0]["reason"]), (1, &Value::from("timeout")), "{run:?}");
    assert_eq!(silent.server.count(), 1);
    assert!(now().boot_ms - start_ms < 10_000);
    silent.world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_stop_does_not_wait_for_a_silent_model() {
    let asked = HttpModelTest::new(
        Provider::OpenAiChat,
        vec![ScriptStep::say("x").broken(AnswerDefect::Nothing)],
    );
    let task = TaskDirectory::with_models(&asked.world, REPORT_COMPLETION, &[asked.model(60)]);
    let child = spawn_piped(task.run_command(&["--json"]).arg(&task.directory).env(KEY.0, KEY.1));
    poll_until("the question", || asked.server.count() == 1);
    let stopped = now().boot_ms;
    fs::create_dir_all(asked.world.workspace().join(".jackline")).unwrap();
    fs::write(asked.world.workspace().join(".jackline/STOP"), "").unwrap();
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    let ms = now().boot_ms - stopped;
    assert!(ms < 5000, "{ms} ms");
    asked.world.verify_and_replay(&session_id(&run));
}

/// The schema of the arguments of `write_file`.
const WRITE_FILE_SCHEMA: &str = "tools: { write_file: { schema: { type: object, required: [path, content], \
    additionalProperties: false, properties: { path: { type: string }, content: { type: string } } } } }\n";

/// The model first calls with an unknown key, long before the end of the arguments, and then
/// correctly. Returns the second request and the decisions on the calls.
fn run_with_wrong_key(provider: Provider, mode: &str) -> (String, Vec<String>) {
    let wrong = json!({ "at": "report.md", "content": "x".repeat(20_000) });
    let steps = vec![
        ScriptStep::call("write_file", wrong),
        write_step("report.md"),
        ScriptStep::say("Written."),
    ];
    let asked = HttpModelTest::new(provider, steps);
    let definition = format!("mode: {mode}\n{REPORT_COMPLETION}{WRITE_FILE_SCHEMA}");
    let task = TaskDirectory::with_models(&asked.world, &definition, &[asked.model(10)]);
    let mut command = task.run_command(&["--json", "--no-wait"]);
    let run = run_with_input(command.arg(&task.directory).env(KEY.0, KEY.1), b"");
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
    (asked.server.requests()[1].body.to_string(), event_texts(&run, "called", "decision"))
}

#[test]
fn a_call_that_cannot_become_valid_is_cut_and_the_model_is_told_the_byte() {
    for_each_provider(|provider| {
        let (next, decisions) = run_with_wrong_key(provider, "enforce");
        assert_eq!(decisions, ["deny", "allow"], "{provider}");
        assert!(next.contains("was cut at byte "), "{provider}: {next}");
        assert!(next.contains("expected a key, one of "), "{provider}: {next}");
        // The model gets back the part that was received, and not all that it wrote.
        let is_streamed = matches!(provider, Provider::Anthropic | Provider::OpenAiChat);
        assert_eq!(next.contains(&"x".repeat(200)), !is_streamed, "{provider}: {next}");
    });
}

#[test]
fn nothing_is_cut_in_observe_mode() {
    let (next, _) = run_with_wrong_key(Provider::OpenAiChat, "observe");
    assert!(!next.contains("was cut at byte "), "{next}");
    assert!(next.contains(&"x".repeat(200)), "{next}");
}

/// A model script that lists a directory, then calls with an unknown key, and then correctly.
fn wrong_key_script(delay_ms: u64) -> String {
    let call = |tool: &str, args: Value| json!({ "calls": [{ "tool": tool, "args": args }] });
    let mut first = call("list_dir", json!({ "path": "." }));
    first["delay_ms"] = delay_ms.into();
    let wrong = call("write_file", json!({ "at": "report.md", "content": "x" }));
    let right = call("write_file", json!({ "path": "report.md", "content": "x" }));
    let mut steps = [first, wrong, right, json!({ "text": "Written." })];
    for step in &mut steps {
        step["usage"] = json!({ "input": 1, "output": 1 });
    }
    json!({ "steps": steps }).to_string()
}

fn conversation_text(world: &CliWorld, id: &str) -> String {
    fs::read_to_string(world.session_directory(id).join("conversation.jsonl")).unwrap()
}

#[test]
fn the_estimated_cost_of_a_cut_answer_counts() {
    let world = CliWorld::new("");
    let limited =
        format!("{REPORT_COMPLETION}{WRITE_FILE_SCHEMA}limits: {{ total_tokens: 100 }}\n");
    let run = TaskDirectory::new(&world, &limited, &[("main", &wrong_key_script(0))]).run(&[]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{total_tokens}", "{run:?}");
    assert!(conversation_text(&world, &session_id(&run)).contains("was cut at byte "), "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn nothing_is_cut_while_the_guard_is_off() {
    let world = CliWorld::new("");
    assert_eq!(world.jackline(&["off", "--why", "a migration"]).code, Some(0));
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}{WRITE_FILE_SCHEMA}"),
        &[("main", &wrong_key_script(0))],
    );
    let run = task.run(&[]);
    assert!(!conversation_text(&world, &session_id(&run)).contains("was cut at byte "), "{run:?}");
}

#[test]
fn answers_are_cut_by_the_reloaded_definition() {
    let world = CliWorld::new("");
    let script = wrong_key_script(2000);
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}{WRITE_FILE_SCHEMA}"),
        &[("main", &script)],
    );
    let mut command = task.run_command(&["--json", "--no-wait"]);
    let child = spawn_piped(command.arg(&task.directory));
    let started_session = || {
        let mut sessions = fs::read_dir(world.home().join("sessions")).ok()?.flatten();
        // The session starts after its directory exists. Its first message proves that it started.
        let conversation = |it: &fs::DirEntry| it.path().join("conversation.jsonl").metadata();
        let entry = sessions.find(|it| conversation(it).is_ok_and(|it| it.len() > 0))?;
        entry.file_name().into_string().ok()
    };
    poll_until("the question", || started_session().is_some());
    let id = started_session().unwrap();
    let file = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("additionalProperties: false", "minProperties: 1")
            .replace("required: [path, content]", "required: [content]"),
    )
    .unwrap();
    let reloaded = world.jackline(&["reload", &id]);
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "iteration").len(), 1, "expected one iteration: {run:?}");
    assert!(!conversation_text(&world, &id).contains("was cut at byte "), "{run:?}");
    world.verify_and_replay(&id);
}

#[cfg(not(feature = "local-model"))]
#[test]
fn a_build_without_local_models_tells_how_to_build_one_with_them() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_models(
        &world,
        REPORT_COMPLETION,
        &["provider: local, model: some.gguf".to_owned()],
    );
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    // The path must stay valid if the run is resumed from another directory.
    let path = world.workspace().join("some.gguf").display().to_string();
    let part = format!(
        "built without `local-model`, so `{path}` can't be run; build one with `cargo build --release --features local-model`"
    );
    assert!(run.stderr.contains(&part), "{run:?}");
    let file = task.directory.join("task.yaml");
    for (model, part) in [
        ("local:some.gguf", "task/some.gguf` can't be run"),
        ("{ provider: local, name: some.gguf, window: 2048 }", "task/some.gguf` can't be run"),
        ("local", "task.yaml:3:8: `model` can't be `local`; write `local:FILE.gguf`, or a mapping"),
        (
            "{ provider: local, name: a, key_env: K }",
            "task.yaml:3:45: a model of provider `local` can't have a `key_env`",
        ),
        (
            "{ provider: local, name: a, window: 0 }",
            "task.yaml:3:44: `window` must be a positive number of tokens",
        ),
    ] {
        let text = format!("prompt: x\ndefinition: jackline.yaml\nmodel: {model}\n");
        fs::write(&file, text).unwrap();
        let run = task.run(&[]);
        assert_eq!(run.code, Some(2), "{model}: {run:?}");
        assert!(run.stderr.contains(part), "{model}: {run:?}");
    }
}
