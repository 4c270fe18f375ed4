//! A state home and a workspace for one test, and helpers that run the `jackline` binary in them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jackline_engine::SessionId;
use jackline_journal::{EventRecord, FileStore, JournalLine, parse_record};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use crate::person_program::{JACKLINE, RELEASED, install_person_program};

/// A temporary directory with a workspace (`work`) and a state home (`home`).
pub(crate) struct CliWorld {
    root: TempDir,
}

/// The exit status and the output of one `jackline` process.
#[derive(Debug, PartialEq)]
pub(crate) struct CliOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CliOutput {
    /// Replaces the temporary paths by `WORKSPACE` and `ROOT`, so that a test can compare the
    /// output.
    pub(crate) fn with_path_placeholders(self, world: &CliWorld) -> Self {
        let (work, root) =
            (world.workspace().display().to_string(), world.root().display().to_string());
        let plain = |text: &str| text.replace(&work, "WORKSPACE").replace(&root, "ROOT");
        Self { stdout: plain(&self.stdout), stderr: plain(&self.stderr), ..self }
    }

    /// Parses every line of the output as JSON. Most commands print one verdict per line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the decision of each verdict, followed by the kind of error if there is one.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let summary = |verdict: &Value| {
            let decision = verdict["decision"].as_str().unwrap();
            match verdict["error"]["kind"].as_str() {
                Some(kind) => format!("{decision} {kind}"),
                None => decision.to_owned(),
            }
        };
        self.json_lines().iter().map(summary).collect()
    }

    /// Returns the sorted session ids of a listing with one JSON object per line.
    pub(crate) fn session_ids(&self) -> Vec<String> {
        let name = |line: Value| line["session"].as_str().unwrap_or_default().to_owned();
        let mut names: Vec<String> = self.json_lines().into_iter().map(name).collect();
        names.sort();
        names
    }
}

impl CliWorld {
    /// Creates a workspace with `source` as its `jackline.yaml`.
    pub(crate) fn new(source: &str) -> Self {
        install_person_program();
        let root = tempfile::tempdir().unwrap();
        let world = Self { root };
        fs::create_dir(world.workspace()).unwrap();
        fs::write(world.workspace().join("jackline.yaml"), source).unwrap();
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn session_directory(&self, session: &str) -> PathBuf {
        let store = FileStore::new(self.home(), 0);
        store.directory(&SessionId::parse(session).unwrap())
    }

    pub(crate) fn journal_path(&self, session: &str) -> PathBuf {
        self.session_directory(session).join("journal.jsonl")
    }

    /// A command with an empty environment, apart from `PATH` and `JACKLINE_HOME`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("JACKLINE_HOME", self.home());
        command
    }

    pub(crate) fn jackline(&self, args: &[&str]) -> CliOutput {
        run_with_input(self.person_command().args(args), b"")
    }

    /// `jackline` as if a person at a terminal had started it.
    pub(crate) fn person_command(&self) -> Command {
        self.command(JACKLINE)
    }

    /// A command in its own process namespace. It cannot see that an agent is above it.
    pub(crate) fn isolated_command(&self, program: &str) -> Command {
        let mut command = self.command("/usr/bin/unshare");
        command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount-proc", program]);
        command
    }

    /// Runs `jackline stdio` with the given input lines.
    pub(crate) fn stdio(&self, lines: &[impl AsRef<str>]) -> CliOutput {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        self.stdio_bytes(format!("{}\n", lines.join("\n")).as_bytes())
    }

    pub(crate) fn stdio_bytes(&self, input: &[u8]) -> CliOutput {
        run_with_input(self.person_command().arg("stdio"), input)
    }

    /// Returns the event records of a journal, without the record that opens it.
    pub(crate) fn records(&self, session: &str) -> Vec<EventRecord> {
        let bytes = fs::read(self.journal_path(session)).unwrap();
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .filter_map(|line| match parse_record(line).unwrap() {
                JournalLine::Event(record) => Some(*record),
                JournalLine::Opened(_) => None,
            })
            .collect()
    }

    /// Checks and replays a journal. Every test does this with each journal it writes.
    pub(crate) fn verify_and_replay(&self, session: &str) {
        for command in ["verify", "replay"] {
            let run = self.jackline(&[command, session]);
            assert_eq!(run.code, Some(0), "{command}: {run:?}");
        }
    }

    /// Returns the relative path of every file and directory below the root.
    pub(crate) fn file_tree(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut pending = vec![self.root()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                paths.push(path.strip_prefix(self.root()).unwrap().display().to_string());
                if path.is_dir() {
                    pending.push(path);
                }
            }
        }
        paths.sort();
        paths
    }
}

/// Runs a command with an input of any length.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> CliOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // The child may exit before it has read everything.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CliOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A `jackline stdio` process to which a test sends one line at a time.
pub(crate) struct StdioSession {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl StdioSession {
    pub(crate) fn start(world: &CliWorld) -> Self {
        let mut child = world
            .command(JACKLINE)
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    pub(crate) fn send(&mut self, line: &str) -> Value {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    pub(crate) fn finish(mut self) -> Option<i32> {
        drop(self.stdin);
        self.child.wait().unwrap().code()
    }
}

/// The lines of a file, without newlines.
pub(crate) fn read_lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(ToOwned::to_owned).collect()
}

/// A seeded random number generator: the same numbers in every run.
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
