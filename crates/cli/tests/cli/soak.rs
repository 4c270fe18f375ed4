//! Many runs in which much goes wrong: models that fail in every way, in this process or
//! over HTTP, tools that crash, and a supervisor that is killed at any moment and goes on.
//!
//! `RUN_ITERATIONS` says how many iterations there are in all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jackline_engine::verdict::Stop;
use jackline_engine::{Decision, EventKind, ToolFinished, ToolProposed};
use jackline_host::clock::now;
use jackline_host::environment::named_variable;
use jackline_journal::EventRecord;
use jackline_model::Provider;
use jackline_model::scripted::{Script, ScriptedModel};
use serde_json::{Value, json};

use crate::support::{JACKLINE, World, Xorshift};

/// How many runs there are at once; most of the time is spent waiting for the disk.
const AT_ONCE: usize = 4;

/// How often one run is killed at most.
const KILLS_MAX: u64 = 5;

/// A process that is left is waited for so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server ends at the latest after so long, whatever becomes of the run.
const LIFETIME: Duration = Duration::from_mins(10);

/// The variable with the key of models over HTTP.
const KEY: &str = "SOAK_KEY";

/// What one run came to.
#[derive(Default)]
struct Came {
    iterations: u64,
    kills: u64,
    /// The stop code, or that a person had to end it.
    how: String,
    /// Whether its models were asked over HTTP.
    over_http: bool,
    /// Why models were changed, and how often.
    reasons: BTreeMap<String, u64>,
    /// The highest peak of memory of one of its processes at its first iteration, and at
    /// its last.
    memory_kib: (u64, u64),
}

#[test]
fn whatever_goes_wrong_a_run_ends_with_one_stop_code_and_loses_nothing() {
    let wanted = told("RUN_ITERATIONS").unwrap_or(60);
    let first = told("RUN_SEED").unwrap_or(1);
    let (seeds, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let mut came = Vec::new();
    std::thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            while done.load(Ordering::SeqCst) < wanted {
                let seed = seeds.fetch_add(1, Ordering::SeqCst);
                let came = one_run(seed);
                done.fetch_add(came.iterations, Ordering::SeqCst);
                mine.push(came);
            }
            mine
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            came.extend(worker.join().unwrap());
        }
    });
    let kills: u64 = came.iter().map(|it| it.kills).sum();
    let mut hows: Vec<&str> = came.iter().map(|it| it.how.as_str()).collect();
    hows.sort_unstable();
    let counted: Vec<String> = hows
        .chunk_by(|one, other| one == other)
        .map(|same| format!("{} {}", same.len(), same[0]))
        .collect();
    let iterations = done.into_inner();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in came.iter().flat_map(|it| &it.reasons) {
        *reasons.entry(reason).or_default() += count;
    }
    let over_http = came.iter().filter(|it| it.over_http).count();
    let peak = |of: fn(&Came) -> u64| came.iter().map(of).max().unwrap_or(0);
    let (first, last) = (peak(|it| it.memory_kib.0), peak(|it| it.memory_kib.1));
    println!(
        "{iterations} iterations in {} runs, {over_http} of them over HTTP, {kills} kills: {counted:?}; \
         models changed for {reasons:?}; at most {first} KiB at a first iteration, {last} KiB at a last",
        came.len()
    );
    assert!(kills > 0 && hows.contains(&"OBJECTIVE_ACHIEVED"), "{counted:?}");
    assert!(over_http > 0 && over_http < came.len());
}

fn told(name: &str) -> Option<u64> {
    named_variable(name).and_then(|text| text.parse().ok())
}

/// A run from its beginning to its one stop code, over as many processes as it takes.
fn one_run(seed: u64) -> Came {
    let world = World::new("");
    let mut dice = Xorshift(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let servers = write_task(&world, &mut dice, seed);
    let mut came = Came { over_http: !servers.is_empty(), ..Came::default() };
    let mut answered: Vec<String> = Vec::new();
    let mut kills_left = dice.below(KILLS_MAX + 1);
    let mut session: Option<String> = None;
    loop {
        let kill_after = (kills_left > 0).then(|| Duration::from_millis(dice.below(500)));
        let ran = run_process(&world, session.as_deref(), kill_after);
        answered.extend(ran.calls());
        came.heard(&ran);
        until(seed, "the end of its processes", || !is_anybody_in(&world.root()));
        // Killed before its first line, it may have a session all the same.
        session = session.or_else(|| only_session(&world));
        if ran.killed {
            came.kills += 1;
            kills_left -= 1;
            continue;
        }
        let id = session.unwrap_or_else(|| panic!("seed {seed}: no session"));
        if let Some(code) = ran.was_over() {
            code.clone_into(&mut came.how);
            came.iterations = check(&world, seed, &id, &answered, &came.how);
            return came;
        }
        let last = ran.lines.last().unwrap_or_else(|| panic!("seed {seed}: {ran:?}"));
        assert_eq!(last["event"], "ended", "seed {seed}: {ran:?}");
        if last["stop"].is_null() {
            let left = last["left"].as_str().unwrap_or_default();
            assert!(left.starts_with("it waits for a person"), "seed {seed}: {last}");
            let stopped = world.jackline(&["stop", &id]);
            assert_eq!(stopped.code, Some(0), "seed {seed}: {stopped:?}");
            "by a person".clone_into(&mut came.how);
        } else {
            last["stop"]["code"].as_str().unwrap().clone_into(&mut came.how);
        }
        came.iterations = check(&world, seed, &id, &answered, &came.how);
        return came;
    }
}

impl Came {
    /// Takes over what one process tells.
    fn heard(&mut self, ran: &Ran) {
        let peak = |at: Option<&u64>| at.copied().unwrap_or(0);
        let (first, last) = (peak(ran.peaks_kib.first()), peak(ran.peaks_kib.last()));
        self.memory_kib = (self.memory_kib.0.max(first), self.memory_kib.1.max(last));
        for changed in ran.lines.iter().filter(|it| it["event"] == "changed") {
            let reason = changed["reason"].as_str().unwrap().to_owned();
            *self.reasons.entry(reason).or_default() += 1;
        }
    }
}

/// What has to hold of a session that is over; how many iterations it had.
fn check(world: &World, seed: u64, id: &str, answered: &[String], how: &str) -> u64 {
    world.prove(id);
    let records = world.records(id);
    let stops = records.iter().filter(|it| ends(it)).filter_map(|it| it.verdict.stop.as_ref());
    let mut stops: Vec<&Stop> = stops.collect();
    stops.dedup();
    assert_eq!(stops.len(), 1, "seed {seed}: {stops:?}");
    if how != "by a person" {
        assert_eq!(json!(stops[0].code), how, "seed {seed}");
    }
    let (mut names, mut finished, mut iterations) = (Vec::new(), Vec::new(), 1);
    for record in &records {
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call, tool, .. }) => {
                names.push((call, tool.to_string()));
            }
            EventKind::ToolFinished(ToolFinished { call, status, .. }) => {
                let name = names.iter().rev().find(|(id, _)| *id == call).unwrap();
                finished.push(format!("{} {}", name.1, status.word()));
            }
            EventKind::IterationEnded(_) => iterations += 1,
            _ => {}
        }
    }
    // What was told is in the journal, in the same order; the journal may know more.
    let mut journal = finished.iter();
    for told in answered {
        assert!(journal.any(|it| it == told), "seed {seed}: {told} is not in {finished:?}");
    }
    iterations
}

/// Whether a record ends a session. Guards that only watch say how they would have ended it.
fn ends(record: &EventRecord) -> bool {
    let kind = &record.event.kind;
    let leaves = matches!(kind, EventKind::SessionEnded(_) | EventKind::Control(_));
    leaves || record.verdict.is_enforced(Decision::Stop)
}

fn only_session(world: &World) -> Option<String> {
    let mut all = fs::read_dir(world.home().join("sessions")).ok()?.flatten();
    let found = all.find(|entry| entry.path().join("journal.jsonl").exists())?;
    Some(found.file_name().to_str().unwrap().to_owned())
}

/// What one process of a run has said.
#[derive(Debug)]
struct Ran {
    lines: Vec<Value>,
    stderr: String,
    killed: bool,
    /// The peak of memory up to each of its iterations.
    peaks_kib: Vec<u64>,
}

impl Ran {
    /// The code of a session that had ended when its process was killed, before it said so.
    fn was_over(&self) -> Option<&str> {
        let (_, code) = self.stderr.split_once("` is over: ")?;
        let is_first = self.lines.iter().all(|line| line["event"] == "ended");
        code.split(['{', ';']).next().filter(|_| is_first)
    }

    /// Calls that came back.
    fn calls(&self) -> impl Iterator<Item = String> {
        let called = self.lines.iter().filter(|it| it["event"] == "called");
        called.filter_map(|it| {
            let (tool, status) = (it["tool"].as_str()?, it["status"].as_str()?);
            Some(format!("{tool} {status}"))
        })
    }
}

/// Begins a run or goes on with it, until it ends by itself or is killed.
fn run_process(world: &World, session: Option<&str>, kill_after: Option<Duration>) -> Ran {
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
        let reads = scope.spawn(move || {
            let (mut lines, mut peaks_kib) = (Vec::new(), Vec::new());
            for line in stdout.lines() {
                // Only the last line can be cut off, by the kill.
                let Ok(line) = serde_json::from_str::<Value>(&line.unwrap()) else { break };
                if line["event"] == "iteration" {
                    peaks_kib.extend(peak_kib(&status));
                }
                lines.push(line);
            }
            (lines, peaks_kib)
        });
        let complains = scope.spawn(move || std::io::read_to_string(stderr).unwrap());
        let killed = match kill_after {
            Some(after) => is_killed(&mut child, after),
            None => {
                child.wait().unwrap();
                false
            }
        };
        let (lines, peaks_kib) = reads.join().unwrap();
        Ran { lines, stderr: complains.join().unwrap(), killed, peaks_kib }
    })
}

fn start(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Kills a process after a while, unless it has ended before.
fn is_killed(child: &mut Child, after: Duration) -> bool {
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

/// Whether any process works below a directory.
fn is_anybody_in(root: &Path) -> bool {
    let mut all = fs::read_dir("/proc").unwrap().flatten();
    all.any(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root)))
}

fn until(seed: u64, what: &str, holds: impl Fn() -> bool) {
    let began = now().boot_ms;
    while !holds() {
        let waited = Duration::from_millis(now().boot_ms - began);
        assert!(waited < PATIENCE, "seed {seed}: {what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A task with three models, each of which fails now and then. Gives the servers of those
/// that are asked over HTTP.
fn write_task(world: &World, dice: &mut Xorshift, seed: u64) -> Vec<ScriptedModel> {
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let names = ["first", "second", "third"];
    // Every other run, so that a few runs have both.
    let over_http = seed.is_multiple_of(2);
    let (mut models, mut servers) = (Vec::new(), Vec::new());
    for name in names {
        let script = json!({ "steps": steps(dice) });
        fs::write(directory.join(format!("{name}.yaml")), script.to_string()).unwrap();
        let who = if over_http {
            let server = ScriptedModel::start(Script::parse(&script).unwrap(), LIFETIME).unwrap();
            let reached = reached_at(&server, dice);
            servers.push(server);
            reached
        } else {
            "provider: scripted".to_owned()
        };
        models.push(format!("{{ {who}, model: {name}, window: 100000 }}"));
    }
    let models = models.join(", ");
    let scripts = names.map(|name| format!("{name}: {name}.yaml")).join(", ");
    let task =
        format!("prompt: write report.md\ndefinition: jackline.yaml\nscripts: {{ {scripts} }}\n");
    fs::write(directory.join("task.yaml"), task).unwrap();
    // Some are watched for loops and for progress, so that a person has to end them.
    let more = ["", "", "", "loops: {}\n", "progress: {}\n", "context: {}\n"];
    let more = more[usize::try_from(dice.below(more.len() as u64)).unwrap()];
    let definition = format!(
        "version: 1\nname: t/soak{seed}\nmodels: [{models}]\ncompletion: {{ files: [report.md] }}\n\
         completion_cap: {{ blocks: 500, same: 9 }}\nlimits: {{ iterations: 100000 }}\n{more}"
    );
    fs::write(directory.join("jackline.yaml"), definition).unwrap();
    servers
}

/// How a server is reached, in the words of any provider. Its silence is soon over.
fn reached_at(server: &ScriptedModel, dice: &mut Xorshift) -> String {
    let all = Provider::ALL;
    let provider = all[usize::try_from(dice.below(all.len() as u64)).unwrap()];
    let version = if provider == Provider::Gemini { "v1beta" } else { "v1" };
    let url = format!("{}/{version}", server.url());
    format!("provider: {provider}, url: \"{url}\", key_env: {KEY}, timeout_seconds: 1")
}

fn steps(dice: &mut Xorshift) -> Vec<Value> {
    let mut steps = Vec::new();
    for number in 0..5 + dice.below(40) {
        for _ in 0..=dice.below(2) {
            if dice.below(20) == 0 {
                steps.push(fault(dice));
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

/// A question that is not answered as it should be.
fn fault(dice: &mut Xorshift) -> Value {
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

/// A call that works, fails, crashes, or is none.
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
        12 => json!({ "tool": "nobody", "args": {} }),
        13 => json!({ "tool": "no name!", "args": {} }),
        14 => json!({ "tool": "write_file", "args_text": "{\"path\": \"cut" }),
        _ => json!({ "tool": "read_file", "args": { "path": 5 } }),
    }
}

/// So many iterations in, everything that a run ever needs at once is there.
const WARM: usize = 50;

#[test]
fn memory_does_not_grow_with_the_number_of_iterations() {
    let many = told("RUN_LONG").unwrap_or(200);
    let peaks = peaks_of(many);
    let (warm, last) = (peaks[WARM - 1], peaks[peaks.len() - 1]);
    println!("{warm} KiB after {WARM} iterations, {last} KiB after {}", peaks.len());
    assert!(peaks.len() >= 3 * WARM, "{} iterations show nothing", peaks.len());
    assert!(last <= warm + warm / 10, "{warm} KiB, then {last} KiB");
}

/// The peaks of a run of so many iterations, the same few again and again.
fn peaks_of(iterations: u64) -> Vec<u64> {
    let world = World::new("");
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let mut steps = Vec::new();
    for number in 0..10 {
        // The last one of these has filled the context.
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
    let ran = run_process(&world, None, None);
    let last = ran.lines.last().unwrap_or_else(|| panic!("{}", ran.stderr));
    let left = last["left"].as_str().unwrap_or_default();
    assert!(left.starts_with("it waits for a person"), "{last}");
    let ended = ran.lines.iter().filter(|it| it["event"] == "iteration_ended").count();
    assert!(ended as u64 >= iterations * 9 / 10, "{ended} of {iterations}");
    ran.peaks_kib
}
