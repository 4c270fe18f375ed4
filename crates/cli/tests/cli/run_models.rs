//! `jackline run` with models over HTTP, on the loopback address, that answer as they should
//! not: in halves, in HTML, with calls that are none, with a megabyte at once, or not at all.

use std::fs;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::Provider;
use jackline_model::scripted::{Broken, Script, ScriptedModel, Step};
use serde_json::{Value, json};

use crate::run_support::{REPORT, Task, code, end_of, piped, session, told, until};
use crate::support::{Run, World, feed};

/// A server ends at the latest after so long.
const LIFETIME: Duration = Duration::from_mins(2);

/// The variable with the key, and the key.
const KEY: (&str, &str) = ("A_KEY", "sk-very-secret-0123456789");

/// Such a model, and the world that it is asked in.
struct Asked {
    world: World,
    server: ScriptedModel,
    provider: Provider,
}

impl Asked {
    fn new(provider: Provider, steps: Vec<Step>) -> Self {
        let server = ScriptedModel::start(Script::new(steps), LIFETIME).unwrap();
        Self { world: World::new(""), server, provider }
    }

    /// The model as a definition names it.
    fn model(&self, timeout_seconds: u32) -> String {
        let version = if self.provider == Provider::Gemini { "v1beta" } else { "v1" };
        let (provider, url) = (self.provider, self.server.url());
        format!(
            "provider: {provider}, model: some-model, url: \"{url}/{version}\", key_env: {}, \
             timeout_seconds: {timeout_seconds}",
            KEY.0
        )
    }

    fn run(&self) -> Run {
        self.run_with(&[self.model(2)])
    }

    fn run_with(&self, models: &[String]) -> Run {
        let task = Task::of(&self.world, REPORT, models);
        let mut command = task.command(&["--json", "--no-wait"]);
        feed(command.arg(&task.directory).env(KEY.0, KEY.1), b"")
    }
}

fn write(path: &str) -> Step {
    Step::call("write_file", json!({ "path": path, "content": "x" }))
}

fn texts(run: &Run, event: &str, field: &str) -> Vec<String> {
    told(run, event).iter().map(|it| it[field].as_str().unwrap().to_owned()).collect()
}

/// Every provider at once: most of the time is spent waiting.
fn at_each(check: impl Fn(Provider) + Sync) {
    std::thread::scope(|scope| {
        let check = &check;
        for provider in Provider::ALL {
            scope.spawn(move || check(provider));
        }
    });
}

#[test]
fn what_is_no_answer_is_asked_again_and_nothing_is_done_twice() {
    at_each(|provider| {
        let half = write("half").broken(Broken::Half);
        let html = Step::say("x").broken(Broken::Html);
        let silent = Step::say("x").broken(Broken::Nothing);
        let steps = vec![
            half,
            write("a"),
            html,
            write("b"),
            silent,
            write("c"),
            Step::fail(529),
            write("d"),
            Step::fail(429),
            write("report.md"),
            Step::say("Written."),
        ];
        let asked = Asked::new(provider, steps);
        let run = asked.run();
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
        assert_eq!(texts(&run, "called", "does"), ["a", "b", "c", "d", "report.md"], "{provider}");
        let waits = told(&run, "waiting");
        let whys: Vec<&str> = waits.iter().map(|it| it["why"].as_str().unwrap()).collect();
        assert_eq!(whys.len(), 5, "{provider}: {whys:?}");
        for (why, part) in whys.iter().zip(["middle", "HTML", "too long", "529", "429"]) {
            assert!(why.contains(part), "{provider}: {why}");
        }
        assert!(!asked.world.work().join("half").exists());
        asked.world.prove(&session(&run));
    });
}

#[test]
fn a_delta_of_a_megabyte_is_a_text_like_any_other() {
    at_each(|provider| {
        let steps = vec![write("report.md").broken(Broken::Huge), Step::say("Written.")];
        let asked = Asked::new(provider, steps);
        let run = asked.run_with(&[asked.model(20)]);
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {}", run.stderr);
        let said = texts(&run, "said", "text");
        assert!(said[0].chars().count() < 400, "{provider}: {} characters", said[0].len());
        // What it said is what it is shown the next time.
        let last = asked.server.requests().pop().unwrap();
        assert!(last.body.to_string().contains(&"x".repeat(1 << 20)), "{provider}");
        asked.world.prove(&session(&run));
    });
}

/// A model that only ever writes too much fills one conversation after the other.
#[test]
fn one_that_never_comes_to_an_end_is_given_up() {
    at_each(|provider| {
        let steps = vec![Step::say("and so on ".repeat(50)).broken(Broken::Long); 40];
        let asked = Asked::new(provider, steps);
        let run = asked.run();
        assert_eq!(code(&run), "SYSTEM_ERROR{model}", "{provider}: {}", run.stdout);
        let count = told(&run, "asking").len();
        assert_eq!(count, 9, "{provider}: three conversations of three answers");
        // Somebody else can take over.
        let next = Step::call("write_file", json!({ "path": "report.md", "content": "x" }));
        let other = Asked::new(provider, vec![next, Step::say("done")]);
        let next = other.model(2).replace("some-model", "another");
        let run = asked.run_with(&[asked.model(2), next]);
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {}", run.stdout);
    });
}

#[test]
fn calls_that_are_none_are_answered_and_the_model_goes_on() {
    at_each(|provider| {
        let steps = vec![
            Step::default().and_call_with("write_file", r#"{"path": "cut"#),
            Step::default().and_call_with("write_file", "[1, 2]"),
            Step::call("nobody", json!({})),
            Step::call("write_file", json!({ "path": 5 })),
            write("report.md"),
            Step::say("Written."),
        ];
        let asked = Asked::new(provider, steps);
        let run = asked.run();
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
        let called = told(&run, "called");
        let worked = |it: &&Value| it["status"] == "ok" && it["decision"] == "allow";
        // What Gemini calls has no arguments as a text: there it is no answer, and asked again.
        assert!(called.len() >= 3, "{provider}: {called:?}");
        assert_eq!(called.iter().filter(worked).count(), 1, "{provider}: {called:?}");
        assert_eq!(called.last().unwrap()["does"], "report.md", "{provider}: {called:?}");
        assert_eq!(asked.server.count(), 6, "{provider}");
        asked.world.prove(&session(&run));
    });
}

/// Everything that a run leaves: what it says, and every file.
fn left(asked: &Asked, run: &Run) -> String {
    let files = asked.world.tree().into_iter().map(|path| asked.world.root().join(path));
    let read = |path| fs::read(path).unwrap_or_default();
    let files: Vec<u8> = files.filter(|path| path.is_file()).flat_map(read).collect();
    format!("{}{}{}", run.stdout, run.stderr, String::from_utf8_lossy(&files))
}

#[test]
fn a_wrong_key_and_an_unknown_model_are_told_once_and_the_key_never() {
    at_each(|provider| {
        let refusal = |status, text: String| Step { text, ..Step::fail(status) };
        let wrong_key = refusal(401, format!("the key {} is not known", KEY.1));
        let no_model = refusal(404, "the model `some-model` does not exist".to_owned());
        for (step, parts) in [
            (wrong_key, ["the key … is not known", "A_KEY"]),
            (no_model, ["some-model", "does not exist"]),
        ] {
            let asked = Asked::new(provider, vec![step]);
            let run = asked.run();
            assert_eq!((run.code, code(&run)), (Some(1), "SYSTEM_ERROR{model}".into()), "{run:?}");
            let why = texts(&run, "aside", "text").join("\n");
            // Who needs no key has no variable that is usual.
            let parts =
                parts.iter().filter(|part| provider != Provider::OpenAiChat || **part != "A_KEY");
            for part in parts {
                assert!(why.contains(part), "{provider}: {part}: {why}");
            }
            assert_eq!(asked.server.count(), 1, "{provider}: it stays wrong");
            assert!(!left(&asked, &run).contains(KEY.1), "{provider}");
            asked.world.prove(&session(&run));
        }
    });
}

#[test]
fn a_key_is_asked_for_by_the_variable_that_was_named() {
    let asked = Asked::new(Provider::Anthropic, Vec::new());
    let task = Task::of(&asked.world, REPORT, &[asked.model(1)]);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("the variable `A_KEY`, which `key_env` names"), "{run:?}");
    assert_eq!(asked.server.count(), 0);
}

#[test]
fn behind_one_that_is_silent_the_next_answers_within_its_first_time_out() {
    let silent = Asked::new(Provider::Anthropic, vec![Step::say("x").broken(Broken::Nothing)]);
    let next = Asked::new(Provider::OpenAiChat, vec![write("report.md"), Step::say("Written.")]);
    let began = now().boot_ms;
    let run = silent.run_with(&[silent.model(1), next.model(20)]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = told(&run, "changed");
    assert_eq!((changed.len(), &changed[0]["reason"]), (1, &Value::from("timeout")), "{run:?}");
    assert_eq!(silent.server.count(), 1);
    assert!(now().boot_ms - began < 10_000);
    silent.world.prove(&session(&run));
}

#[test]
fn a_stop_does_not_wait_for_a_model_that_is_silent() {
    let asked = Asked::new(Provider::OpenAiChat, vec![Step::say("x").broken(Broken::Nothing)]);
    let task = Task::of(&asked.world, REPORT, &[asked.model(60)]);
    let child = piped(task.command(&["--json"]).arg(&task.directory).env(KEY.0, KEY.1));
    until("the question", || asked.server.count() == 1);
    let stopped = now().boot_ms;
    fs::create_dir_all(asked.world.work().join(".jackline")).unwrap();
    fs::write(asked.world.work().join(".jackline/STOP"), "").unwrap();
    let run = end_of(child);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    let ms = now().boot_ms - stopped;
    assert!(ms < 5000, "{ms} ms");
    asked.world.prove(&session(&run));
}

/// What the arguments of `write_file` have to look like.
const SCHEMA: &str = "tools: { write_file: { schema: { type: object, required: [path, content], \
    additionalProperties: false, properties: { path: { type: string }, content: { type: string } } } } }\n";

/// A model calls with a key that nobody knows, long before the end, then as it should; what it
/// was shown after the first, and how the calls were decided on.
fn after_a_wrong_key(provider: Provider, mode: &str) -> (String, Vec<String>) {
    let wrong = json!({ "at": "report.md", "content": "x".repeat(20_000) });
    let steps = vec![Step::call("write_file", wrong), write("report.md"), Step::say("Written.")];
    let asked = Asked::new(provider, steps);
    let definition = format!("mode: {mode}\n{REPORT}{SCHEMA}");
    let task = Task::of(&asked.world, &definition, &[asked.model(10)]);
    let mut command = task.command(&["--json", "--no-wait"]);
    let run = feed(command.arg(&task.directory).env(KEY.0, KEY.1), b"");
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{provider}: {run:?}");
    (asked.server.requests()[1].body.to_string(), texts(&run, "called", "decision"))
}

#[test]
fn a_call_that_can_not_become_valid_is_cut_and_told_by_its_byte() {
    at_each(|provider| {
        let (next, decisions) = after_a_wrong_key(provider, "enforce");
        assert_eq!(decisions, ["deny", "allow"], "{provider}");
        assert!(next.contains("was cut at byte "), "{provider}: {next}");
        assert!(next.contains("expected a key, one of "), "{provider}: {next}");
        // What came goes back to the model, and not all that it wrote.
        let in_pieces = matches!(provider, Provider::Anthropic | Provider::OpenAiChat);
        assert_eq!(next.contains(&"x".repeat(200)), !in_pieces, "{provider}: {next}");
    });
}

#[test]
fn nothing_is_cut_where_verdicts_only_observe() {
    let (next, _) = after_a_wrong_key(Provider::OpenAiChat, "observe");
    assert!(!next.contains("was cut at byte "), "{next}");
    assert!(next.contains(&"x".repeat(200)), "{next}");
}

/// A script that reads a file, then calls with a key that nobody knows, then as it should.
fn wrong_after_a_while(delay_ms: u64) -> String {
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

fn said_to(world: &World, id: &str) -> String {
    fs::read_to_string(world.directory(id).join("conversation.jsonl")).unwrap()
}

#[test]
fn what_an_answer_must_have_cost_counts_where_it_was_cut() {
    let world = World::new("");
    let limited = format!("{REPORT}{SCHEMA}limits: {{ total_tokens: 100 }}\n");
    let run = Task::new(&world, &limited, &[("main", &wrong_after_a_while(0))]).run(&[]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{total_tokens}", "{run:?}");
    assert!(said_to(&world, &session(&run)).contains("was cut at byte "), "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn nothing_is_cut_while_the_guard_is_off() {
    let world = World::new("");
    assert_eq!(world.jackline(&["off", "--why", "a migration"]).code, Some(0));
    let task =
        Task::new(&world, &format!("{REPORT}{SCHEMA}"), &[("main", &wrong_after_a_while(0))]);
    let run = task.run(&[]);
    assert!(!said_to(&world, &session(&run)).contains("was cut at byte "), "{run:?}");
}

#[test]
fn a_definition_that_a_person_has_changed_is_the_one_that_cuts() {
    let world = World::new("");
    let script = wrong_after_a_while(2000);
    let task = Task::new(&world, &format!("{REPORT}{SCHEMA}"), &[("main", &script)]);
    let mut command = task.command(&["--json", "--no-wait"]);
    let child = piped(command.arg(&task.directory));
    let begun = || {
        let mut sessions = fs::read_dir(world.home().join("sessions")).ok()?.flatten();
        // The file is there before the session is; what is said in it comes after.
        let said = |it: &fs::DirEntry| it.path().join("conversation.jsonl").metadata();
        let found = sessions.find(|it| said(it).is_ok_and(|it| it.len() > 0))?;
        found.file_name().into_string().ok()
    };
    until("the question", || begun().is_some());
    let id = begun().unwrap();
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
    let run = end_of(child);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "iteration").len(), 1, "within one iteration: {run:?}");
    assert!(!said_to(&world, &id).contains("was cut at byte "), "{run:?}");
    world.prove(&id);
}

#[cfg(not(feature = "local-model"))]
#[test]
fn a_build_without_models_of_this_machine_says_how_to_get_one() {
    let world = World::new("");
    let task = Task::of(&world, REPORT, &["provider: local, model: some.gguf".to_owned()]);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    // Wherever it goes on, the file is looked for where it was begun.
    let path = world.work().join("some.gguf").display().to_string();
    let part = format!(
        "built without `local-model`, so `{path}` can't be run; build one with `cargo build --release --features local-model`"
    );
    assert!(run.stderr.contains(&part), "{run:?}");
    let file = task.directory.join("task.yaml");
    for (model, part) in [
        ("local:some.gguf", "task/some.gguf` can't be run"),
        ("{ provider: local, name: some.gguf, window: 2048 }", "task/some.gguf` can't be run"),
        ("local", "task.yaml:3:8: `model` can't be `local`; `local:FILE.gguf`, or a mapping"),
        (
            "{ provider: local, name: a, key_env: K }",
            "task.yaml:3:45: a model of this machine has no `key_env`",
        ),
        (
            "{ provider: local, name: a, window: 0 }",
            "task.yaml:3:44: `window` is no number of tokens",
        ),
    ] {
        let text = format!("prompt: x\ndefinition: jackline.yaml\nmodel: {model}\n");
        fs::write(&file, text).unwrap();
        let run = task.run(&[]);
        assert_eq!(run.code, Some(2), "{model}: {run:?}");
        assert!(run.stderr.contains(part), "{model}: {run:?}");
    }
}
