//! Shared helpers for tests of `jackline run`: a task directory next to the workspace, and readers
//! for the events that a run prints.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::attempt::sandbox;
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A task directory next to the workspace. Its models are scripts.
pub(crate) struct TaskDirectory<'w> {
    world: &'w CliWorld,
    pub(crate) directory: PathBuf,
}

impl<'w> TaskDirectory<'w> {
    /// `definition` is appended after the version, the name and the models. The scripts are the
    /// models, in this order.
    pub(crate) fn new(world: &'w CliWorld, definition: &str, scripts: &[(&str, &str)]) -> Self {
        let model =
            |(name, _): &(&str, &str)| format!("provider: scripted, model: {name}, window: 100000");
        let workers = scripts.iter().filter(|(name, _)| *name != "advisor");
        let task = Self::with_models(world, definition, &workers.map(model).collect::<Vec<_>>());
        let mut text = "prompt: write report.md\ndefinition: jackline.yaml\n".to_owned();
        text.push_str("scripts:\n");
        for (name, script) in scripts {
            fs::write(task.directory.join(format!("{name}.yaml")), script).unwrap();
            let _ = writeln!(text, "  {name}: {name}.yaml");
        }
        fs::write(task.directory.join("task.yaml"), text).unwrap();
        task
    }

    /// Creates a task whose models write programs, one program per answer.
    pub(crate) fn with_programs(
        world: &'w CliWorld,
        definition: &str,
        models: &[(&str, &[&str])],
    ) -> Self {
        // Builds the sandbox if it is missing: `jackline run` searches for it next to the binary.
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
        task.append("acts: programs\n");
        task
    }

    /// Appends lines to the task file.
    pub(crate) fn append(&self, lines: &str) {
        let file = self.directory.join("task.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text + lines).unwrap();
    }

    /// Creates a task with the given definition models. Each model is written without its braces.
    pub(crate) fn with_models(world: &'w CliWorld, definition: &str, models: &[String]) -> Self {
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

    /// Creates a task with a worker that runs a shell command.
    pub(crate) fn with_worker(world: &'w CliWorld, definition: &str, command: &str) -> Self {
        let words = json!(["sh", "-c", command, "worker"]);
        Self::with_models(world, definition, &[format!("worker: {words}")])
    }

    pub(crate) fn run_command(&self, args: &[&str]) -> Command {
        let mut command = self.world.person_command();
        command.arg("run").args(args);
        command
    }

    pub(crate) fn run(&self, more: &[&str]) -> CliOutput {
        run_with_input(
            self.run_command(&["--json", "--no-wait"]).arg(&self.directory).args(more),
            b"",
        )
    }

    pub(crate) fn resume(&self, more: &[&str]) -> CliOutput {
        run_with_input(self.run_command(&["--json", "--no-wait", "--resume"]).args(more), b"")
    }

    /// Starts a run that waits for a person, unless the arguments say otherwise.
    pub(crate) fn start(&self, more: &[&str]) -> Child {
        let mut command = self.world.command(JACKLINE);
        let waits = (!more.contains(&"--no-wait")).then_some("--wait");
        spawn_piped(command.args(["run", "--json"]).args(waits).arg(&self.directory).args(more))
    }
}

/// Starts a process whose output the test reads.
pub(crate) fn spawn_piped(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn ended_event(run: &CliOutput) -> Value {
    let last = run.stdout.lines().last().unwrap_or_else(|| panic!("no output: {run:?}"));
    let event: Value = serde_json::from_str(last).unwrap();
    assert_eq!(event["event"], "ended", "{run:?}");
    event
}

/// Returns the stop code with its detail, or the reason why the run was left.
pub(crate) fn stop_code(run: &CliOutput) -> String {
    let event = ended_event(run);
    match (event["stop"]["code"].as_str(), event["stop"]["detail"].as_str()) {
        (Some(code), Some(detail)) => format!("{code}{{{detail}}}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => format!("left: {}", event["left"].as_str().unwrap_or_default()),
    }
}

/// Returns the printed events with the given name.
pub(crate) fn events_named(run: &CliOutput, name: &str) -> Vec<Value> {
    let events = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == name).collect()
}

pub(crate) fn session_id(run: &CliOutput) -> String {
    ended_event(run)["session"].as_str().unwrap().to_owned()
}

/// Waits until a condition is true, and panics after one minute.
pub(crate) fn poll_until(condition: &str, is_true: impl Fn() -> bool) {
    let began = now().boot_ms;
    while !is_true() {
        assert!(now().boot_ms < began + 60_000, "{condition} did not happen within 60 seconds");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) const REPORT_COMPLETION: &str = "completion: { files: [report.md] }\n";

/// A model script that writes the report and stops.
pub(crate) const REPORT_SCRIPT: &str = "steps:\n  - calls: [{ tool: write_file, args: { path: report.md, content: done } }]\n  - text: It is written.\n";

/// Counts the `sleep` processes with the given duration.
pub(crate) fn count_sleepers(seconds: u32) -> usize {
    let command_line =
        |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let command_lines = fs::read_dir("/proc").unwrap().map(|entry| command_line(entry.unwrap()));
    let wanted = format!("sleep\0{seconds}\0");
    command_lines.filter(|it| it == wanted.as_bytes()).count()
}

/// Waits for a process to exit and returns its output.
pub(crate) fn wait_for_output(child: Child) -> CliOutput {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CliOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Returns the events and verdicts of a session, without times, paths and the session id.
pub(crate) fn normalised_journal(world: &CliWorld, session: &str) -> String {
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

/// Creates a control file (`STOP` or `PAUSE`) in the workspace, as a person would.
pub(crate) fn create_control_file(world: &CliWorld, name: &str) {
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    fs::write(world.workspace().join(".jackline").join(name), "").unwrap();
}

/// Reads the output of a process up to and including a line that contains `text`.
pub(crate) fn wait_for_line(child: &mut Child, text: &str) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut output = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte).unwrap() > 0 {
        output.push(byte[0]);
        if byte == *b"\n" && String::from_utf8_lossy(&output).contains(text) {
            break;
        }
    }
    String::from_utf8(output).unwrap()
}
