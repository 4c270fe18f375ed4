//! Many runs with many faults: models that fail in every way, in this process or over HTTP, tools
//! that crash, and a supervisor that is killed at random moments and resumed.
//!
//! `RUN_ITERATIONS` sets the total number of iterations.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jackline_engine::verdict::SessionStop;
use jackline_engine::{Decision, EventKind, ToolFinished, ToolProposed};
use jackline_host::clock::now;
use jackline_host::environment::named_variable;
use jackline_journal::EventRecord;
use jackline_model::Provider;
use jackline_model::scripted::{ModelScript, ScriptedModel};
use serde_json::{Value, json};

use crate::support::{CliWorld, JACKLINE, Xorshift};

/// How many runs are active at the same time. They mostly wait for the disk.
const PARALLEL_RUNS: usize = 4;

/// How many times one run is killed at most.
const KILLS_MAX: u64 = 5;

/// How long a test waits for a remaining process to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A scripted server ends after this time, also if its run hangs.
const SERVER_LIFETIME: Duration = Duration::from_mins(10);

/// The environment variable with the key of models over HTTP.
const KEY: &str = "SOAK_KEY";

/// The result of one run.
#[derive(Default)]
struct SoakRun {
    iterations: u64,
    kills: u64,
    /// The stop code, or the note that a person had to stop the run.
    outcome: String,
    /// Whether its models were used over HTTP.
    over_http: bool,
    /// The reasons of the model changes and their counts.
    reasons: BTreeMap<String, u64>,
    /// The highest memory peak of its processes, at the first iteration and at the last.
    memory_kib: (u64, u64),
}

#[test]
fn a_run_with_faults_ends_with_one_stop_code_and_loses_nothing() {
    let iterations_min = number_variable("RUN_ITERATIONS").unwrap_or(60);
    let first = number_variable("RUN_SEED").unwrap_or(1);
    let (seeds, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let mut runs = Vec::new();
    std::thread::scope(|scope| {
        let work = || {
            let mut finished = Vec::new();
            while done.load(Ordering::SeqCst) < iterations_min {
                let seed = seeds.fetch_add(1, Ordering::SeqCst);
                let run = soak_run(seed);
                done.fetch_add(run.iterations, Ordering::SeqCst);
                finished.push(run);
            }
            finished
        };
        let workers: Vec<_> = (0..PARALLEL_RUNS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            runs.extend(worker.join().unwrap());
        }
    });
    let kills: u64 = runs.iter().map(|it| it.kills).sum();
    let mut outcomes: Vec<&str> = runs.iter().map(|it| it.outcome.as_str()).collect();
    outcomes.sort_unstable();
    let outcome_counts: Vec<String> = outcomes
        .chunk_by(|one, other| one == other)
        .map(|same| format!("{} {}", same.len(), same[0]))
        .collect();
    let iterations = done.into_inner();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in runs.iter().flat_map(|it| &it.reasons) {
        *reasons.entry(reason).or_default() += count;
    }
    let over_http = runs.iter().filter(|it| it.over_http).count();
    let peak = |value: fn(&SoakRun) -> u64| runs.iter().map(value).max().unwrap_or(0);
    let (first, last) = (peak(|it| it.memory_kib.0), peak(|it| it.memory_kib.1));
    println!(
        "{iterations} iterations in {} runs, {over_http} of them over HTTP, {kills} kills: {outcome_counts:?}; \
         models changed for {reasons:?}; at most {first} KiB at a first iteration, {last} KiB at a last",
        runs.len()
    );
    assert!(kills > 0 && outcomes.contains(&"OBJECTIVE_ACHIEVED"), "{outcome_counts:?}");
    assert!(over_http > 0 && over_http < runs.len());
}

fn number_variable(name: &str) -> Option<u64> {
    named_variable(name).and_then(|text| text.parse().ok())
}

/// Executes a run from its start to its one stop code, in as many processes as needed.
fn soak_run(seed: u64) -> SoakRun {
    let world = CliWorld::new("");
    let mut dice = Xorshift(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let servers = write_task(&world, &mut dice, seed);
    let mut run = SoakRun { over_http: !servers.is_empty(), ..SoakRun::default() };
    let mut answered: Vec<String> = Vec::new();
    let mut kills_left = dice.below(KILLS_MAX + 1);
    let mut session: Option<String> = None;
    loop {
        let kill_after = (kills_left > 0).then(|| Duration::from_millis(dice.below(500)));
        let process = run_process(&world, session.as_deref(), kill_after);
        answered.extend(process.finished_calls());
        run.add_process(&process);
        until(seed, "the end of its processes", || !has_process_in(&world.root()));
        // A process that was killed before its first line may have started a session.
        session = session.or_else(|| only_session(&world));
        if process.killed {
            run.kills += 1;
            kills_left -= 1;
            continue;
        }
        let id = session.unwrap_or_else(|| panic!("seed {seed}: no session"));
        if let Some(code) = process.ended_code() {
            code.clone_into(&mut run.outcome);
            run.iterations = check_session(&world, seed, &id, &answered, &run.outcome);
            return run;
        }
        let last = process.lines.last().unwrap_or_else(|| panic!("seed {seed}: {process:?}"));
        assert_eq!(last["event"], "ended", "seed {seed}: {process:?}");
        if last["stop"].is_null() {
            let left = last["left"].as_str().unwrap_or_default();
            assert!(left.starts_with("it waits for a person"), "seed {seed}: {last}");
            let stopped = world.jackline(&["stop", &id]);
            assert_eq!(stopped.code, Some(0), "seed {seed}: {stopped:?}");
            "by a person".clone_into(&mut run.outcome);
        } else {
            last["stop"]["code"].as_str().unwrap().clone_into(&mut run.outcome);
        }
        run.iterations = check_session(&world, seed, &id, &answered, &run.outcome);
        return run;
    }
}

impl SoakRun {
    /// Adds the values that one process reported.
    fn add_process(&mut self, process: &SoakProcess) {
        let peak = |peak_kib: Option<&u64>| peak_kib.copied().unwrap_or(0);
        let (first, last) = (peak(process.peaks_kib.first()), peak(process.peaks_kib.last()));
        self.memory_kib = (self.memory_kib.0.max(first), self.memory_kib.1.max(last));
        for changed in process.lines.iter().filter(|it| it["event"] == "changed") {
            let reason = changed["reason"].as_str().unwrap().to_owned();
            *self.reasons.entry(reason).or_default() += 1;
        }
    }
}

/// Checks an ended session. Returns the number of its iterations.
fn check_session(world: &CliWorld, seed: u64, id: &str, answered: &[String], outcome: &str) -> u64 {
    world.verify_and_replay(id);
    let records = world.records(id);
    let stops =
        records.iter().filter(|it| is_session_end(it)).filter_map(|it| it.verdict.stop.as_ref());
    let mut stops: Vec<&SessionStop> = stops.collect();
    stops.dedup();
    assert_eq!(stops.len(), 1, "seed {seed}: {stops:?}");
    if outcome != "by a person" {
        assert_eq!(json!(stops[0].code), outcome, "seed {seed}");
    }
    let (mut names, mut finished, mut iterations) = (Vec::new(), Vec::new(), 1);
    for record in &records {
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call, tool, .. }) => {
                names.push((call, tool.to_string()));
            }
            EventKind::ToolFinished(ToolFinished { call, status, .. }) => {
                let name = names.iter().rev().find(|(id, _)| *id == call).unwrap();
                finished.push(format!("{} {}", name.1, status.as_str()));
            }
            EventKind::IterationEnded(_) => iterations += 1,
            _ => {}
        }
    }
    // Every reported call is in the journal, in the same order. The journal may contain more.
    let mut journal = finished.iter();
    for reported in answered {
        assert!(journal.any(|it| it == reported), "seed {seed}: {reported} is not in {finished:?}");
    }
    iterations
}

/// Returns whether a record ends a session. In observe mode a guard only notes that it would have
/// ended it.
fn is_session_end(record: &EventRecord) -> bool {
    let kind = &record.event.kind;
    let is_end = matches!(kind, EventKind::SessionEnded(_) | EventKind::Control(_));
    is_end || record.verdict.is_enforced(Decision::Stop)
}

fn only_session(world: &CliWorld) -> Option<String> {
    let mut entries = fs::read_dir(world.home().join("sessions")).ok()?.flatten();
    let entry = entries.find(|entry| entry.path().join("journal.jsonl").exists())?;
    Some(entry.file_name().to_str().unwrap().to_owned())
}

/// The output of one process of a run.
#[derive(Debug)]
struct SoakProcess {
    lines: Vec<Value>,
    stderr: String,
    killed: bool,
    /// The memory peak at the start of each of its iterations.
    peaks_kib: Vec<u64>,
}

impl SoakProcess {
    /// Returns the stop code if the session had ended before its last process was killed.
    fn ended_code(&self) -> Option<&str> {
        let (_, code) = self.stderr.split_once("` has ended: ")?;
        let is_first = self.lines.iter().all(|line| line["event"] == "ended");
        code.split(['{', ';']).next().filter(|_| is_first)
    }

    /// Returns the finished calls.
    fn finished_calls(&self) -> impl Iterator<Item = String> {
        let called = self.lines.iter().filter(|it| it["event"] == "called");
        called.filter_map(|it| {
            let (tool, status) = (it["tool"].as_str()?, it["status"].as_str()?);
            Some(format!("{tool} {status}"))
        })
    }
}

/// Starts or resumes a run, and waits until it ends or kills it.
fn run_process(
    world: &CliWorld,
    session: Option<&str>,
    kill_after: Option<Duration>,
) -> SoakProcess {
    let mut command = world.command(JACKLINE);
    command.env(KEY, "a-key").args(["run", "--json", "--no-wait"]);
    match session {
        Some(id) => command.args(["--resume", id]),
        None => command.arg(world.root().join("task")),
    };
    let mut child = start(&mut command);
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let stderr = child.stderr.take().unwrap();
    let status = format!("/proc/{}/status", child.id());
    std::thread::scope(|scope| {
        let stdout_reader = scope.spawn(move || {
            let (mut lines, mut peaks_kib) = (Vec::new(), Vec::new());
            for line in stdout.lines() {
                // Only the last line can be incomplete, because of the kill.
                let Ok(line) = serde_json::from_str::<Value>(&line.unwrap()) else { break };
                if line["event"] == "iteration" {
                    peaks_kib.extend(peak_kib(&status));
                }
                lines.push(line);
            }
            (lines, peaks_kib)
        });
        let stderr_reader = scope.spawn(move || std::io::read_to_string(stderr).unwrap());
        let killed = match kill_after {
            Some(after) => kill_after_delay(&mut child, after),
            None => {
                child.wait().unwrap();
                false
            }
        };
        let (lines, peaks_kib) = stdout_reader.join().unwrap();
        SoakProcess { lines, stderr: stderr_reader.join().unwrap(), killed, peaks_kib }
    })
}

fn start(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Kills a process after a delay. Returns false if it ended before.
fn kill_after_delay(child: &mut Child, after: Duration) -> bool {
    std::thread::sleep(after);
    if child.try_wait().unwrap().is_some() {
        return false;
    }
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

fn peak_kib(status: &str) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns whether any process works in a directory or below it.
fn has_process_in(root: &Path) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .any(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root)))
}

fn until(seed: u64, condition: &str, is_true: impl Fn() -> bool) {
    let start_ms = now().boot_ms;
    while !is_true() {
        let waited = Duration::from_millis(now().boot_ms - start_ms);
        assert!(waited < EXIT_TIMEOUT, "seed {seed}: {condition} did not happen in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes a task with three models that fail now and then. Returns the servers of the models over
/// HTTP.
fn write_task(world: &CliWorld, dice: &mut Xorshift, seed: u64) -> Vec<ScriptedModel> {
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let names = ["first", "second", "third"];
    // Every second run uses HTTP, so that a few runs cover both kinds.
    let over_http = seed.is_multiple_of(2);
    let (mut models, mut servers) = (Vec::new(), Vec::new());
    for name in names {
        let script = json!({ "steps": script_steps(dice) });
        fs::write(directory.join(format!("{name}.yaml")), script.to_string()).unwrap();
        let connection = if over_http {
            let server =
                ScriptedModel::start(ModelScript::parse(&script).unwrap(), SERVER_LIFETIME)
                    .unwrap();
            let options = model_options(&server, dice);
            servers.push(server);
            options
        } else {
            "provider: scripted".to_owned()
        };
        models.push(format!("{{ {connection}, model: {name}, window: 100000 }}"));
    }
    let models = models.join(", ");
    let scripts = names.map(|name| format!("{name}: {name}.yaml")).join(", ");
    let task =
        format!("prompt: write report.md\ndefinition: jackline.yaml\nscripts: {{ {scripts} }}\n");
    fs::write(directory.join("task.yaml"), task).unwrap();
    // Some runs have loop or progress limits, so that a person must end them.
    let more = ["", "", "", "loops: {}\n", "progress: {}\n", "context: {}\n"];
    let more = more[usize::try_from(dice.below(more.len() as u64)).unwrap()];
    let definition = format!(
        "version: 1\nname: t/soak{seed}\nmodels: [{models}]\ncompletion: {{ files: [report.md] }}\n\
         completion_cap: {{ blocks: 500, same: 9 }}\nlimits: {{ iterations: 100000 }}\n{more}"
    );
    fs::write(directory.join("jackline.yaml"), definition).unwrap();
    servers
}

/// Returns the options of a model on this server, for a random provider. Its timeout is short.
fn model_options(server: &ScriptedModel, dice: &mut Xorshift) -> String {
    let providers = Provider::ALL;
    let provider = providers[usize::try_from(dice.below(providers.len() as u64)).unwrap()];
    let version = if provider == Provider::Gemini { "v1beta" } else { "v1" };
    let url = format!("{}/{version}", server.url());
    format!("provider: {provider}, url: \"{url}\", key_env: {KEY}, timeout_seconds: 1")
}

fn script_steps(dice: &mut Xorshift) -> Vec<Value> {
    let mut steps = Vec::new();
    for number in 0..5 + dice.below(40) {
        for _ in 0..=dice.below(2) {
            if dice.below(20) == 0 {
                steps.push(failing_step(dice));
            }
            let calls: Vec<Value> = (0..=dice.below(2)).map(|_| call(dice, number)).collect();
            steps.push(json!({ "calls": calls }));
        }
        steps.push(json!({ "text": format!("Done {number}.") }));
    }
    steps.push(json!({ "calls": [write("report.md", "done")] }));
    steps.push(json!({ "text": "It is written." }));
    steps
}

/// A model answer that fails.
fn failing_step(dice: &mut Xorshift) -> Value {
    match dice.below(12) {
        0..=2 => json!({ "status": 529 }),
        3 | 4 => json!({ "status": 503 }),
        5 => json!({ "status": 401 }),
        9 | 10 => json!({ "status": 429 }),
        6 => json!({ "text": "half of it", "broken": "half" }),
        7 => json!({ "broken": "html" }),
        8 => json!({ "broken": "nothing" }),
        _ => json!({ "calls": [write("huge", "x")], "broken": "huge" }),
    }
}

fn write(path: &str, content: &str) -> Value {
    json!({ "tool": "write_file", "args": { "path": path, "content": content } })
}

/// A call that works, fails, crashes, or is invalid.
fn call(dice: &mut Xorshift, number: u64) -> Value {
    let shell = |line: &str| json!({ "tool": "shell", "args": { "command": line } });
    match dice.below(16) {
        0..=4 => write(
            &format!("n{number}"),
            &"line\n".repeat(1 + usize::try_from(dice.below(50)).unwrap()),
        ),
        5 | 6 => json!({ "tool": "list_dir", "args": {} }),
        7 => json!({ "tool": "read_file", "args": { "path": "missing" } }),
        8 => shell("exit 3"),
        9 => shell("kill -9 $$"),
        10 => shell("setsid sleep 400 & sleep 0.1; kill -SEGV $$"),
        11 => shell(&format!("echo {number} >> log; sleep 0.05; cat log")),
        12 => json!({ "tool": "unknown", "args": {} }),
        13 => json!({ "tool": "no name!", "args": {} }),
        14 => json!({ "tool": "write_file", "args_text": "{\"path\": \"cut" }),
        _ => json!({ "tool": "read_file", "args": { "path": 5 } }),
    }
}

/// After this number of iterations, everything that a run needs in memory is allocated.
const WARM_ITERATIONS: usize = 50;

#[test]
fn memory_does_not_grow_with_the_number_of_iterations() {
    let iterations = number_variable("RUN_LONG").unwrap_or(200);
    let peaks = memory_peaks(iterations);
    let (warm, last) = (peaks[WARM_ITERATIONS - 1], peaks[peaks.len() - 1]);
    println!("{warm} KiB after {WARM_ITERATIONS} iterations, {last} KiB after {}", peaks.len());
    assert!(
        peaks.len() >= 3 * WARM_ITERATIONS,
        "{} iterations are too few for this test",
        peaks.len()
    );
    assert!(last <= warm + warm / 10, "{warm} KiB, then {last} KiB");
}

/// Returns the memory peaks of a run with this number of iterations, which repeats the same few
/// steps.
fn memory_peaks(iterations: u64) -> Vec<u64> {
    let world = CliWorld::new("");
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let mut steps = Vec::new();
    for number in 0..10 {
        // The last step fills the context.
        let input = if number == 9 { 90_000 } else { 1000 };
        let text = "line\n".repeat(200);
        let usage = json!({ "input": input, "output": 10 });
        steps.push(json!({ "calls": [write(&format!("n{number}"), &text)], "usage": usage }));
        steps.push(json!({ "text": format!("Done {number}.") }));
    }
    let script = json!({ "steps": steps, "repeat": true }).to_string();
    fs::write(directory.join("main.yaml"), script).unwrap();
    let task = "prompt: go on\ndefinition: jackline.yaml\nscripts: { main: main.yaml }\n";
    fs::write(directory.join("task.yaml"), task).unwrap();
    let definition = format!(
        "version: 1\nname: t/long\nmodels: [{{ provider: scripted, model: main, window: 100000 }}]\n\
         completion: {{ files: [report.md] }}\ncompletion_cap: {{ blocks: 100000, same: 100000 }}\n\
         context: {{}}\nlimits: {{ iterations: {iterations} }}\n"
    );
    fs::write(directory.join("jackline.yaml"), definition).unwrap();
    let process = run_process(&world, None, None);
    let last = process.lines.last().unwrap_or_else(|| panic!("{}", process.stderr));
    let left = last["left"].as_str().unwrap_or_default();
    assert!(left.starts_with("it waits for a person"), "{last}");
    let ended = process.lines.iter().filter(|it| it["event"] == "iteration_ended").count();
    assert!(ended as u64 >= iterations * 9 / 10, "{ended} of {iterations}");
    process.peaks_kib
}
