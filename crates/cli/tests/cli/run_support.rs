//! What tests of `jackline run` have in common: a task beside the workspace, and how to read
//! what a run has told.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::attempt::sandbox;
use crate::support::{JACKLINE, Run, World, feed};

/// A task whose models are scripts, beside the workspace.
pub(crate) struct Task<'w> {
    world: &'w World,
    pub(crate) directory: PathBuf,
}

impl<'w> Task<'w> {
    /// `definition` goes on after the version; the scripts are the models, in their order.
    pub(crate) fn new(world: &'w World, definition: &str, scripts: &[(&str, &str)]) -> Self {
        let model =
            |(name, _): &(&str, &str)| format!("provider: scripted, model: {name}, window: 100000");
        let workers = scripts.iter().filter(|(name, _)| *name != "advisor");
        let task = Self::of(world, definition, &workers.map(model).collect::<Vec<_>>());
        let mut text = "prompt: write report.md\ndefinition: jackline.yaml\n".to_owned();
        text.push_str("scripts:\n");
        for (name, script) in scripts {
            fs::write(task.directory.join(format!("{name}.yaml")), script).unwrap();
            let _ = writeln!(text, "  {name}: {name}.yaml");
        }
        fs::write(task.directory.join("task.yaml"), text).unwrap();
        task
    }

    /// The same with models that write programs, an answer each.
    pub(crate) fn programs(world: &'w World, definition: &str, models: &[(&str, &[&str])]) -> Self {
        // It is looked for beside the binary.
        sandbox();
        let steps = |programs: &&[&str]| -> Vec<Value> {
            programs.iter().map(|program| json!({ "text": program })).collect()
        };
        let scripts: Vec<(&str, String)> = models
            .iter()
            .map(|(name, programs)| (*name, json!({ "steps": steps(programs) }).to_string()))
            .collect();
        let scripts: Vec<(&str, &str)> =
            scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
        let task = Self::new(world, definition, &scripts);
        task.add("acts: programs\n");
        task
    }

    /// Adds lines to the task.
    pub(crate) fn add(&self, lines: &str) {
        let file = self.directory.join("task.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text + lines).unwrap();
    }

    /// The same with models as the definition has them, each without its braces.
    pub(crate) fn of(world: &'w World, definition: &str, models: &[String]) -> Self {
        let directory = world.root().join("task");
        fs::create_dir_all(&directory).unwrap();
        let text = "prompt: write report.md\ndefinition: jackline.yaml\n";
        fs::write(directory.join("task.yaml"), text).unwrap();
        let models: Vec<String> = models.iter().map(|model| format!("{{ {model} }}")).collect();
        let definition =
            format!("version: 1\nname: t/run\nmodels: [{}]\n{definition}", models.join(", "));
        fs::write(directory.join("jackline.yaml"), definition).unwrap();
        Self { world, directory }
    }

    /// The same with a worker that runs a line of the shell.
    pub(crate) fn worker(world: &'w World, definition: &str, line: &str) -> Self {
        let words = json!(["sh", "-c", line, "worker"]);
        Self::of(world, definition, &[format!("worker: {words}")])
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.person();
        command.arg("run").args(args);
        command
    }

    pub(crate) fn run(&self, more: &[&str]) -> Run {
        feed(self.command(&["--json", "--no-wait"]).arg(&self.directory).args(more), b"")
    }

    pub(crate) fn resume(&self, more: &[&str]) -> Run {
        feed(self.command(&["--json", "--no-wait", "--resume"]).args(more), b"")
    }

    pub(crate) fn start(&self, more: &[&str]) -> Child {
        let mut command = self.world.command(JACKLINE);
        piped(command.args(["run", "--json"]).arg(&self.directory).args(more))
    }
}

/// Starts a process of which is read what it says.
pub(crate) fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn ended(run: &Run) -> Value {
    let last = run.stdout.lines().last().unwrap_or_else(|| panic!("nothing was said: {run:?}"));
    let ended: Value = serde_json::from_str(last).unwrap();
    assert_eq!(ended["event"], "ended", "{run:?}");
    ended
}

/// The stop code with its detail, or why it was left.
pub(crate) fn code(run: &Run) -> String {
    let ended = ended(run);
    match (ended["stop"]["code"].as_str(), ended["stop"]["detail"].as_str()) {
        (Some(code), Some(detail)) => format!("{code}{{{detail}}}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => format!("left: {}", ended["left"].as_str().unwrap_or_default()),
    }
}

pub(crate) fn told(run: &Run, event: &str) -> Vec<Value> {
    let all = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|told| told["event"] == event).collect()
}

pub(crate) fn session(run: &Run) -> String {
    ended(run)["session"].as_str().unwrap().to_owned()
}

pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let began = now().boot_ms;
    while !holds() {
        assert!(now().boot_ms < began + 60_000, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) const REPORT: &str = "completion: { files: [report.md] }\n";

/// Writes the report and stops.
pub(crate) const WORKS: &str = "steps:\n  - calls: [{ tool: write_file, args: { path: report.md, content: done } }]\n  - text: It is written.\n";

/// How many processes sleep for so long.
pub(crate) fn sleepers(seconds: u32) -> usize {
    let line = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let all = fs::read_dir("/proc").unwrap().map(|entry| line(entry.unwrap()));
    let wanted = format!("sleep\0{seconds}\0");
    all.filter(|line| line == wanted.as_bytes()).count()
}

/// What a process that was started has come to.
pub(crate) fn end_of(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// What happened and what was decided, without when, where and under which name.
pub(crate) fn normalised(world: &World, session: &str) -> String {
    let events = world.records(session).into_iter().map(|record| {
        let (event, verdict) = (record.event, record.verdict);
        let event = serde_json::to_string(&event.kind).unwrap();
        let verdict =
            serde_json::from_str::<Value>(&serde_json::to_string(&verdict).unwrap()).unwrap();
        format!("{event} {} {}", verdict["decision"], verdict["violations"])
    });
    let text = events.collect::<Vec<_>>().join("\n");
    text.replace(session, "SESSION").replace(&world.root().display().to_string(), "ROOT")
}

/// A person holds or ends the session by a file.
pub(crate) fn mark(world: &World, name: &str) {
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline").join(name), "").unwrap();
}

/// Reads what a process says, up to a line with a text in it.
pub(crate) fn wait_for_line(child: &mut Child, text: &str) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte).unwrap() > 0 {
        said.push(byte[0]);
        if byte == *b"\n" && String::from_utf8_lossy(&said).contains(text) {
            break;
        }
    }
    String::from_utf8(said).unwrap()
}
