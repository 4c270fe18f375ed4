//! Tests of `jackline run` with the real Claude Code as the worker, and a scripted model.

use std::fs::{self, DirEntry};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::scripted::{ModelScript, ScriptStep, ScriptUsage, ScriptedModel};
use serde_json::{Value, json};

use crate::world::{ClientWorld, JACKLINE, bash, client_program};

/// How long a run may take.
const RUN_TIME_MAX: Duration = Duration::from_mins(3);

/// A workspace and a scripted model for runs of the worker.
struct ClaudeWorkerTest {
    world: ClientWorld,
    model: ScriptedModel,
}

/// The output of a run.
struct WorkerOutput {
    code: Option<i32>,
    events: Vec<Value>,
    text: String,
}

impl ClaudeWorkerTest {
    fn new(definition: &str, script: ModelScript) -> Self {
        let world = ClientWorld::new(&format!("version: 1\nname: t/run\n{definition}"));
        world
            .scratch
            .write("task.yaml", "prompt: write report.md\nmodel: { worker: claude }\n")
            .unwrap();
        // The supervisor finds its worker by name in the path.
        let bin = world.scratch.work().join("../bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(client_program(), bin.join("claude")).unwrap();
        let model = ScriptedModel::start(script, RUN_TIME_MAX).unwrap();
        Self { world, model }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(JACKLINE);
        self.world.scratch.configure_command(&mut command);
        let bin = self.world.scratch.work().join("../bin");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        for (name, value) in [
            ("PATH", path.as_str()),
            ("ANTHROPIC_BASE_URL", self.model.url().as_str()),
            ("ANTHROPIC_API_KEY", "no-key-is-needed"),
            ("NO_PROXY", "127.0.0.1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ] {
            command.env(name, value);
        }
        command.args(["run", "--json"]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> WorkerOutput {
        let output = self.command(args).arg("--no-wait").output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        WorkerOutput { code: output.status.code(), events, text }
    }

    fn play(&self) -> WorkerOutput {
        self.run(&["task.yaml"])
    }

    fn has(&self, file: &str) -> bool {
        self.world.scratch.has_path(file)
    }
}

impl WorkerOutput {
    fn ended_event(&self) -> &Value {
        let last = self.events.last().unwrap_or_else(|| panic!("no output: {}", self.text));
        assert_eq!(last["event"], "ended", "{}", self.text);
        last
    }

    fn stop_code(&self) -> String {
        let stop = &self.ended_event()["stop"];
        match (stop["code"].as_str(), stop["detail"].as_str()) {
            (Some(code), Some(detail)) => format!("{code}{{{detail}}}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => {
                format!("left: {}", self.ended_event()["left"].as_str().unwrap_or_default())
            }
        }
    }

    fn events_named(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|it| it["event"] == name).collect()
    }
}

const REPORT: &str = "completion: { files: [report.md] }\n";

fn write_step(path: &Path) -> ScriptStep {
    let path = path.display().to_string();
    ScriptStep::call("Write", json!({ "file_path": path, "content": "done" }))
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_early_stop_starts_another_iteration_of_the_same_conversation() {
    let worker = ClaudeWorkerTest::new(REPORT, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = ModelScript::new([
        bash("git push --force origin main"),
        ScriptStep::say("I am done."),
        write_step(&report),
        ScriptStep::say("Now it is written."),
    ]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let output = worker.play();
    assert_eq!(
        (output.code, output.stop_code()),
        (Some(0), "OBJECTIVE_ACHIEVED".into()),
        "{}",
        output.text
    );
    assert!(worker.has("report.md"));
    assert_eq!(output.events_named("iteration").len(), 2, "{}", output.text);
    assert_eq!(output.ended_event()["outcome"]["value"], "Now it is written.");
    // There is one session. It contains the calls of the client.
    let sessions = worker.world.jackline(&["status", "--all", "--json"]).1;
    assert_eq!(sessions.lines().count(), 1, "{sessions}");
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_hard_loop_of_the_client_ends_its_iteration_and_waits_for_a_person() {
    let definition = format!("{REPORT}loops: {{}}\n");
    let script = ModelScript::new(vec![bash("echo the same"); 12]);
    let worker = ClaudeWorkerTest::new(&definition, script);
    let ran = worker.play();
    assert!(ran.stop_code().starts_with("left: it waits for a person"), "{}", ran.text);
    assert!(worker.has(".jackline/BLOCKER_REPORT.md"), "{}", ran.text);
    let session = ran.ended_event()["session"].as_str().unwrap().to_owned();
    worker.world.run_as_person(&["stop", &session]);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_full_conversation_of_the_client_is_restarted_with_a_briefing() {
    let definition = format!("{REPORT}context: {{ window: 100000 }}\n");
    let worker = ClaudeWorkerTest::new(&definition, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let full = ScriptUsage { input: 82_000, ..ScriptUsage::default() };
    let script = ModelScript::new([bash("ls").with_usage(full), bash("ls -a").with_usage(full)])
        .part("State of the work", [write_step(&report), ScriptStep::say("Written.")]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.events_named("restarted").len(), 1, "{}", ran.text);
    worker.world.verify_and_replay();
}

/// Adds a scripted model next to the worker. The supervisor runs it itself.
fn add_scripted_model(worker: &ClaudeWorkerTest, name: &str, script: &str) {
    worker.world.scratch.write(&format!("{name}.yaml"), script).unwrap();
    let text = format!(
        "prompt: write report.md\nmodel: {{ worker: claude }}\nscripts: {{ {name}: {name}.yaml }}\n"
    );
    worker.world.scratch.write("task.yaml", &text).unwrap();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_advisor_gets_the_client_out_of_a_loop() {
    let definition = format!(
        "{REPORT}loops: {{}}\nadvisor: {{ models: [{{ provider: scripted, model: advisor }}] }}\n"
    );
    let worker = ClaudeWorkerTest::new(&definition, ModelScript::default());
    // The advisor answers only if it sees the calls of the client.
    let advice = "steps: [{ status: 529 }]\nparts: { 'CALL Bash {\"command\":\"echo the same\"': [{ text: Write the report instead. }] }\n";
    add_scripted_model(&worker, "advisor", advice);
    let report = worker.world.scratch.work().join("report.md");
    let mut steps = vec![bash("echo the same"); 5];
    steps.extend([write_step(&report), ScriptStep::say("Written.")]);
    let model = ScriptedModel::start(ModelScript::new(steps), RUN_TIME_MAX).unwrap();
    let worker = ClaudeWorkerTest { model, ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.events_named("advised").len(), 1, "{}", ran.text);
    let has_advice = |request: &jackline_model::scripted::RecordedRequest| {
        request.has_text("Write the report instead.")
    };
    assert!(worker.model.requests().iter().any(has_advice), "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_next_model_takes_over_from_a_client_with_an_overloaded_model() {
    let definition = format!("{REPORT}models: [{{ provider: scripted, model: second }}]\n");
    let script = ModelScript::new(vec![ScriptStep::fail(529); 40]);
    let worker = ClaudeWorkerTest::new(&definition, script);
    let call = "{ tool: write_file, args: { path: report.md, content: done } }";
    add_scripted_model(
        &worker,
        "second",
        &format!("steps:\n  - calls: [{call}]\n  - text: Written.\n"),
    );
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    let changed = ran.events_named("changed");
    assert_eq!((changed.len(), &changed.first().unwrap()["to"]), (1, &json!("scripted/second")));
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn iterations_of_the_client_without_progress_wait_for_a_person() {
    let definition = format!("{REPORT}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = ClaudeWorkerTest::new(
        &definition,
        ModelScript::new(vec![ScriptStep::say("I am done."); 3]),
    );
    let ran = worker.play();
    assert!(ran.stop_code().contains("3 iterations in a row failed"), "{}", ran.text);
    assert_eq!(ran.events_named("iteration").len(), 3);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_iteration_limit_pauses_the_client_until_it_is_acknowledged() {
    let definition =
        format!("{REPORT}limits: {{ iterations: 2 }}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = ClaudeWorkerTest::new(&definition, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = ModelScript::new([
        ScriptStep::say("Done one."),
        ScriptStep::say("Done two."),
        write_step(&report),
        ScriptStep::say("Written."),
    ]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let ran = worker.play();
    assert!(ran.stop_code().starts_with("left: it waits for a person"), "{}", ran.text);
    assert!(worker.has(".jackline/CHECKPOINT.md"), "{}", ran.text);
    let session = ran.ended_event()["session"].as_str().unwrap().to_owned();
    worker.world.run_as_person(&["ack", &session]);
    let ran = worker.run(&["--resume", &session]);
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.verify_and_replay();
}

/// Counts the `sleep` processes with the given duration.
fn count_sleepers(seconds: u32) -> usize {
    let command_line = |entry: DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let command_lines = fs::read_dir("/proc").unwrap().map(|entry| command_line(entry.unwrap()));
    let wanted = format!("sleep\0{seconds}\0");
    command_lines.filter(|it| it == wanted.as_bytes()).count()
}

/// Waits until the client has done something.
fn wait_until(child: &mut Child, condition: &str, is_true: impl Fn() -> bool) {
    while !is_true() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before {condition}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn parse_output(text: &str) -> WorkerOutput {
    let events = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    WorkerOutput { code: None, events, text: text.to_owned() }
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_ends_the_client_with_all_its_processes_within_a_second() {
    let script = ModelScript::new([bash("setsid sleep 279 & touch started; sleep 279")]);
    let worker = ClaudeWorkerTest::new(REPORT, script);
    let mut child = worker.command(&["task.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_until(&mut child, "its first command", || {
        worker.has("started") && count_sleepers(279) == 2
    });
    worker.world.scratch.write(".jackline/STOP", "").unwrap();
    let stopped = now().boot_ms;
    while count_sleepers(279) > 0 {
        assert!(now().boot_ms < stopped + 1500, "a process is still running");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let ran = parse_output(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(ran.stop_code(), "HUMAN_REQUESTED", "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_whose_run_was_killed_continues_its_conversation() {
    let worker = ClaudeWorkerTest::new(REPORT, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = ModelScript::new([
        bash("touch started; sleep 278"),
        write_step(&report),
        ScriptStep::say("Written."),
    ]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let mut child = worker.command(&["task.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_until(&mut child, "its first command", || {
        worker.has("started") && count_sleepers(278) == 1
    });
    child.kill().unwrap();
    child.wait().unwrap();
    while count_sleepers(278) > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = worker.run(&["--resume"]);
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    // The model is shown the earlier calls, and that the run was interrupted.
    let requests = worker.model.requests();
    let continued = requests.iter().filter(|it| it.has_text("after an interruption"));
    assert!(continued.clone().count() > 0, "{}", ran.text);
    assert!(
        continued.clone().all(|it| it.has_text("touch started") && it.has_text("write report.md"))
    );
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_conversation_that_the_client_does_not_know_is_started_again_with_the_task() {
    let definition =
        format!("{REPORT}limits: {{ iterations: 1 }}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = ClaudeWorkerTest::new(&definition, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = ModelScript::new([ScriptStep::say("Done.")])
        .part("State of the work", [write_step(&report), ScriptStep::say("Written.")]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let ran = worker.play();
    let session = ran.ended_event()["session"].as_str().unwrap().to_owned();
    worker.world.run_as_person(&["ack", &session]);
    let file =
        worker.world.scratch.state_home().join("sessions").join(&session).join("worker.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    state["conversation"] = json!("00000000-0000-4000-8000-000000000000");
    fs::write(&file, state.to_string()).unwrap();
    let ran = worker.run(&["--resume", &session]);
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_with_an_overloaded_model_is_started_again_in_the_same_conversation() {
    let worker = ClaudeWorkerTest::new(REPORT, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let mut steps = vec![bash("echo first")];
    steps.extend(vec![ScriptStep::fail(529); 4]);
    steps.extend([write_step(&report), ScriptStep::say("Written.")]);
    let model = ScriptedModel::start(ModelScript::new(steps), RUN_TIME_MAX).unwrap();
    let worker = ClaudeWorkerTest { model, ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert!(!ran.events_named("waiting").is_empty(), "{}", ran.text);
    let requests = worker.model.requests();
    let last = requests.last().unwrap();
    assert!(last.has_text("echo first") && last.has_text("write report.md"), "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn after_three_stops_without_a_call_the_next_model_takes_over() {
    let definition = format!(
        "{REPORT}completion_cap: {{ blocks: 9, same: 9 }}\nmodels: [{{ provider: scripted, model: second }}]\n"
    );
    let worker = ClaudeWorkerTest::new(
        &definition,
        ModelScript::new(vec![ScriptStep::say("I am done."); 3]),
    );
    let call = "{ tool: write_file, args: { path: report.md, content: done } }";
    add_scripted_model(
        &worker,
        "second",
        &format!("steps:\n  - calls: [{call}]\n  - text: Written.\n"),
    );
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.events_named("changed")[0]["reason"], "stop_events", "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_is_not_the_approved_agent_is_not_started() {
    let worker = ClaudeWorkerTest::new(REPORT, ModelScript::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = ModelScript::new([
        write_step(&report),
        ScriptStep::say("Written."),
        write_step(&report),
        ScriptStep::say("Written again."),
    ]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    let approve = |ran: &WorkerOutput| {
        let session = ran.ended_event()["session"].as_str().unwrap();
        worker
            .world
            .run_as_person(&["identity", "approve", session, "--by", "dana", "--why", "it works"]);
    };
    approve(&ran);
    std::fs::remove_file(&report).unwrap();
    let request_count = worker.model.count();
    // Another definition makes it another agent.
    let other = format!("version: 1\nname: t/run\n{REPORT}limits: {{ steps: 99 }}\n");
    worker.world.scratch.write("jackline.yaml", &other).unwrap();
    let ran = worker.play();
    assert_eq!(
        (ran.code, ran.stop_code()),
        (Some(1), "SYSTEM_ERROR{identity}".into()),
        "{}",
        ran.text
    );
    assert_eq!(
        (worker.has("report.md"), worker.model.count()),
        (false, request_count),
        "{}",
        ran.text
    );
    approve(&ran);
    let ran = worker.play();
    assert_eq!(ran.stop_code(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_pause_file_pauses_the_client_until_a_person_removes_it() {
    let worker = ClaudeWorkerTest::new(REPORT, ModelScript::default());
    let work = worker.world.scratch.work();
    let (report, pause) = (work.join("report.md"), work.join(".jackline/PAUSE"));
    let script = ModelScript::new([
        bash("touch started; until [ -e paused ]; do sleep 0.05; done"),
        write_step(&report),
        write_step(&report),
        ScriptStep::say("Written."),
    ]);
    let worker =
        ClaudeWorkerTest { model: ScriptedModel::start(script, RUN_TIME_MAX).unwrap(), ..worker };
    let mut child = worker
        .command(&["--wait", "task.yaml"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !worker.has("started") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first command");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::create_dir_all(work.join(".jackline")).unwrap();
    std::fs::write(&pause, "").unwrap();
    std::fs::write(work.join("paused"), "").unwrap();
    for line in lines.by_ref() {
        events.push(line.unwrap());
        if events.last().unwrap().contains("\"for\":\"person\"") {
            break;
        }
    }
    let last = events.last().cloned().unwrap_or_default();
    assert!(last.contains(".jackline/PAUSE"), "{events:#?}");
    assert!(!worker.has("report.md"), "{events:#?}");
    std::fs::remove_file(&pause).unwrap();
    events.extend(lines.map(Result::unwrap));
    assert!(child.wait().unwrap().success(), "{events:#?}");
    assert!(events.last().unwrap().contains("OBJECTIVE_ACHIEVED"), "{events:#?}");
    assert!(worker.has("report.md"));
    worker.world.verify_and_replay();
}
