//! `jackline run` with the real Claude Code as the worker, against a scripted model.

use std::fs::{self, DirEntry};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::scripted::{Script, ScriptedModel, Step, Usage};
use serde_json::{Value, json};

use crate::world::{JACKLINE, World, bash, client};

/// How long a run may take.
const LIFETIME: Duration = Duration::from_mins(3);

/// A run of the worker in a workspace.
struct Worker {
    world: World,
    model: ScriptedModel,
}

/// What a run left behind.
struct Ran {
    code: Option<i32>,
    told: Vec<Value>,
    text: String,
}

impl Worker {
    fn new(definition: &str, script: Script) -> Self {
        let world = World::new(&format!("version: 1\nname: t/run\n{definition}"));
        world
            .scratch
            .write("task.yaml", "prompt: write report.md\nmodel: { worker: claude }\n")
            .unwrap();
        // The supervisor finds its worker by its name.
        let bin = world.scratch.work().join("../bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(client(), bin.join("claude")).unwrap();
        let model = ScriptedModel::start(script, LIFETIME).unwrap();
        Self { world, model }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(JACKLINE);
        self.world.scratch.enter(&mut command);
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
        command.args(["run", "--json"]).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        let output = self.command(words).arg("--no-wait").output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let told = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ran { code: output.status.code(), told, text }
    }

    fn play(&self) -> Ran {
        self.run(&["task.yaml"])
    }

    fn has(&self, file: &str) -> bool {
        self.world.scratch.has(file)
    }
}

impl Ran {
    fn ended(&self) -> &Value {
        let last = self.told.last().unwrap_or_else(|| panic!("nothing was said: {}", self.text));
        assert_eq!(last["event"], "ended", "{}", self.text);
        last
    }

    fn stop(&self) -> String {
        let stop = &self.ended()["stop"];
        match (stop["code"].as_str(), stop["detail"].as_str()) {
            (Some(code), Some(detail)) => format!("{code}{{{detail}}}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => format!("left: {}", self.ended()["left"].as_str().unwrap_or_default()),
        }
    }

    fn of(&self, event: &str) -> Vec<&Value> {
        self.told.iter().filter(|told| told["event"] == event).collect()
    }
}

const REPORT: &str = "completion: { files: [report.md] }\n";

fn writes(path: &Path) -> Step {
    let path = path.display().to_string();
    Step::call("Write", json!({ "file_path": path, "content": "done" }))
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_that_is_not_done_is_another_iteration_of_the_same_conversation() {
    let worker = Worker::new(REPORT, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = Script::new([
        bash("git push --force origin main"),
        Step::say("I am done."),
        writes(&report),
        Step::say("Now it is written."),
    ]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let ran = worker.play();
    assert_eq!((ran.code, ran.stop()), (Some(0), "OBJECTIVE_ACHIEVED".into()), "{}", ran.text);
    assert!(worker.has("report.md"));
    assert_eq!(ran.of("iteration").len(), 2, "{}", ran.text);
    assert_eq!(ran.ended()["outcome"]["value"], "Now it is written.");
    // One session, which has the calls of the client in it, and its own goal.
    let sessions = worker.world.jackline(&["status", "--all", "--json"]).1;
    assert_eq!(sessions.lines().count(), 1, "{sessions}");
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_hard_loop_of_the_client_ends_its_iteration_and_waits_for_a_person() {
    let definition = format!("{REPORT}loops: {{}}\n");
    let script = Script::new(vec![bash("echo the same"); 12]);
    let worker = Worker::new(&definition, script);
    let ran = worker.play();
    assert!(ran.stop().starts_with("left: it waits for a person"), "{}", ran.text);
    assert!(worker.has(".jackline/BLOCKER_REPORT.md"), "{}", ran.text);
    let session = ran.ended()["session"].as_str().unwrap().to_owned();
    worker.world.person(&["stop", &session]);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_full_conversation_of_the_client_begins_anew_with_a_briefing() {
    let definition = format!("{REPORT}context: {{ window: 100000 }}\n");
    let worker = Worker::new(&definition, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let full = Usage { input: 82_000, ..Usage::default() };
    let script = Script::new([bash("ls").costing(full), bash("ls -a").costing(full)])
        .part("Where the work stands", [writes(&report), Step::say("Written.")]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.of("restarted").len(), 1, "{}", ran.text);
    worker.world.prove();
}

/// A model beside the worker that plays a script, by our own loop.
fn beside(worker: &Worker, name: &str, script: &str) {
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
    let worker = Worker::new(&definition, Script::default());
    // It sees what the client called, or has nothing to say.
    let advice = "steps: [{ status: 529 }]\nparts: { 'CALL Bash {\"command\":\"echo the same\"': [{ text: Write the report instead. }] }\n";
    beside(&worker, "advisor", advice);
    let report = worker.world.scratch.work().join("report.md");
    let mut steps = vec![bash("echo the same"); 5];
    steps.extend([writes(&report), Step::say("Written.")]);
    let model = ScriptedModel::start(Script::new(steps), LIFETIME).unwrap();
    let worker = Worker { model, ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.of("advised").len(), 1, "{}", ran.text);
    let told =
        |request: &jackline_model::scripted::Request| request.shows("Write the report instead.");
    assert!(worker.model.requests().iter().any(told), "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn where_the_client_finds_its_model_overloaded_the_next_one_takes_over() {
    let definition = format!("{REPORT}models: [{{ provider: scripted, model: second }}]\n");
    let script = Script::new(vec![Step::fail(529); 40]);
    let worker = Worker::new(&definition, script);
    let call = "{ tool: write_file, args: { path: report.md, content: done } }";
    beside(&worker, "second", &format!("steps:\n  - calls: [{call}]\n  - text: Written.\n"));
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    let changed = ran.of("changed");
    assert_eq!((changed.len(), &changed.first().unwrap()["to"]), (1, &json!("scripted/second")));
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn iterations_of_the_client_that_bring_nothing_wait_for_a_person() {
    let definition = format!("{REPORT}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = Worker::new(&definition, Script::new(vec![Step::say("I am done."); 3]));
    let ran = worker.play();
    assert!(ran.stop().contains("3 iterations in a row failed"), "{}", ran.text);
    assert_eq!(ran.of("iteration").len(), 3);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_iteration_cap_holds_the_client_until_it_is_acknowledged() {
    let definition =
        format!("{REPORT}limits: {{ iterations: 2 }}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = Worker::new(&definition, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = Script::new([
        Step::say("Done one."),
        Step::say("Done two."),
        writes(&report),
        Step::say("Written."),
    ]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let ran = worker.play();
    assert!(ran.stop().starts_with("left: it waits for a person"), "{}", ran.text);
    assert!(worker.has(".jackline/CHECKPOINT.md"), "{}", ran.text);
    let session = ran.ended()["session"].as_str().unwrap().to_owned();
    worker.world.person(&["ack", &session]);
    let ran = worker.run(&["--resume", &session]);
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.prove();
}

/// How many processes sleep for so long.
fn sleepers(seconds: u32) -> usize {
    let line = |entry: DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let all = fs::read_dir("/proc").unwrap().map(|entry| line(entry.unwrap()));
    let wanted = format!("sleep\0{seconds}\0");
    all.filter(|line| line == wanted.as_bytes()).count()
}

/// Waits for something that the client does.
fn until(child: &mut Child, what: &str, holds: impl Fn() -> bool) {
    while !holds() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn told(text: &str) -> Ran {
    let told = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ran { code: None, told, text: text.to_owned() }
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_file_ends_the_client_and_everything_below_it_within_a_second() {
    let script = Script::new([bash("setsid sleep 279 & touch began; sleep 279")]);
    let worker = Worker::new(REPORT, script);
    let mut child = worker.command(&["task.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    until(&mut child, "its first command", || worker.has("began") && sleepers(279) == 2);
    worker.world.scratch.write(".jackline/STOP", "").unwrap();
    let stopped = now().boot_ms;
    while sleepers(279) > 0 {
        assert!(now().boot_ms < stopped + 1500, "somebody is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let ran = told(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(ran.stop(), "HUMAN_REQUESTED", "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_whose_run_was_killed_goes_on_with_its_conversation() {
    let worker = Worker::new(REPORT, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let script =
        Script::new([bash("touch began; sleep 278"), writes(&report), Step::say("Written.")]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let mut child = worker.command(&["task.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    until(&mut child, "its first command", || worker.has("began") && sleepers(278) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    while sleepers(278) > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = worker.run(&["--resume"]);
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    // What it did before is in what its model is shown, and so is why it did not end.
    let requests = worker.model.requests();
    let goes_on = requests.iter().filter(|it| it.shows("after it was cut off"));
    assert!(goes_on.clone().count() > 0, "{}", ran.text);
    assert!(goes_on.clone().all(|it| it.shows("touch began") && it.shows("write report.md")));
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_conversation_that_the_client_does_not_know_begins_anew_with_the_task() {
    let definition =
        format!("{REPORT}limits: {{ iterations: 1 }}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let worker = Worker::new(&definition, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = Script::new([Step::say("Done.")])
        .part("Where the work stands", [writes(&report), Step::say("Written.")]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let ran = worker.play();
    let session = ran.ended()["session"].as_str().unwrap().to_owned();
    worker.world.person(&["ack", &session]);
    let kept =
        worker.world.scratch.state_home().join("sessions").join(&session).join("worker.json");
    let mut told: Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    told["conversation"] = json!("00000000-0000-4000-8000-000000000000");
    fs::write(&kept, told.to_string()).unwrap();
    let ran = worker.run(&["--resume", &session]);
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_finds_its_model_overloaded_is_started_again_in_the_same_conversation() {
    let worker = Worker::new(REPORT, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let mut steps = vec![bash("echo first")];
    steps.extend(vec![Step::fail(529); 4]);
    steps.extend([writes(&report), Step::say("Written.")]);
    let model = ScriptedModel::start(Script::new(steps), LIFETIME).unwrap();
    let worker = Worker { model, ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert!(!ran.of("waiting").is_empty(), "{}", ran.text);
    let requests = worker.model.requests();
    let last = requests.last().unwrap();
    assert!(last.shows("echo first") && last.shows("write report.md"), "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn three_stops_of_the_client_without_a_call_hand_over_to_the_next() {
    let definition = format!(
        "{REPORT}completion_cap: {{ blocks: 9, same: 9 }}\nmodels: [{{ provider: scripted, model: second }}]\n"
    );
    let worker = Worker::new(&definition, Script::new(vec![Step::say("I am done."); 3]));
    let call = "{ tool: write_file, args: { path: report.md, content: done } }";
    beside(&worker, "second", &format!("steps:\n  - calls: [{call}]\n  - text: Written.\n"));
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    assert_eq!(ran.of("changed")[0]["reason"], "stop_events", "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_is_not_the_approved_agent_is_not_even_asked() {
    let worker = Worker::new(REPORT, Script::default());
    let report = worker.world.scratch.work().join("report.md");
    let script = Script::new([
        writes(&report),
        Step::say("Written."),
        writes(&report),
        Step::say("Written again."),
    ]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    let approve = |ran: &Ran| {
        let session = ran.ended()["session"].as_str().unwrap();
        worker.world.person(&["identity", "approve", session, "--by", "dana", "--why", "it works"]);
    };
    approve(&ran);
    std::fs::remove_file(&report).unwrap();
    let asked = worker.model.count();
    // Another definition makes another agent of it.
    let other = format!("version: 1\nname: t/run\n{REPORT}limits: {{ steps: 99 }}\n");
    worker.world.scratch.write("jackline.yaml", &other).unwrap();
    let ran = worker.play();
    assert_eq!((ran.code, ran.stop()), (Some(1), "SYSTEM_ERROR{identity}".into()), "{}", ran.text);
    assert_eq!((worker.has("report.md"), worker.model.count()), (false, asked), "{}", ran.text);
    approve(&ran);
    let ran = worker.play();
    assert_eq!(ran.stop(), "OBJECTIVE_ACHIEVED", "{}", ran.text);
    worker.world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_pause_file_holds_the_client_until_a_person_removes_it() {
    let worker = Worker::new(REPORT, Script::default());
    let work = worker.world.scratch.work();
    let (report, pause) = (work.join("report.md"), work.join(".jackline/PAUSE"));
    let script = Script::new([
        bash("touch began; until [ -e paused ]; do sleep 0.05; done"),
        writes(&report),
        writes(&report),
        Step::say("Written."),
    ]);
    let worker = Worker { model: ScriptedModel::start(script, LIFETIME).unwrap(), ..worker };
    let mut child =
        worker.command(&["task.yaml"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut told = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !worker.has("began") {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its first command");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::create_dir_all(work.join(".jackline")).unwrap();
    std::fs::write(&pause, "").unwrap();
    std::fs::write(work.join("paused"), "").unwrap();
    for line in lines.by_ref() {
        told.push(line.unwrap());
        if told.last().unwrap().contains("\"for\":\"person\"") {
            break;
        }
    }
    let waits = told.last().cloned().unwrap_or_default();
    assert!(waits.contains(".jackline/PAUSE"), "{told:#?}");
    assert!(!worker.has("report.md"), "{told:#?}");
    std::fs::remove_file(&pause).unwrap();
    told.extend(lines.map(Result::unwrap));
    assert!(child.wait().unwrap().success(), "{told:#?}");
    assert!(told.last().unwrap().contains("OBJECTIVE_ACHIEVED"), "{told:#?}");
    assert!(worker.has("report.md"));
    worker.world.prove();
}
