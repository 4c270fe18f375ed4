//! A state home and a workspace for one test, and the binary to run in them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jackline_engine::SessionId;
use jackline_host::agent_above;
use jackline_journal::{EventRecord, FileStore, Line, parse_record};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const JACKLINE: &str = env!("CARGO_BIN_EXE_jackline");

pub(crate) struct World {
    root: TempDir,
}

/// What a run of the binary left behind.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The same, without where this test happens to run.
    pub(crate) fn anywhere(self, world: &World) -> Self {
        let (work, root) = (world.work().display().to_string(), world.root().display().to_string());
        let plain = |text: &str| text.replace(&work, "WORKSPACE").replace(&root, "ROOT");
        Self { stdout: plain(&self.stdout), stderr: plain(&self.stderr), ..self }
    }

    /// The verdicts, one a line.
    pub(crate) fn verdicts(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The decisions, with the kind of error where there is one.
    pub(crate) fn answers(&self) -> Vec<String> {
        let word = |verdict: &Value| {
            let decision = verdict["decision"].as_str().unwrap();
            match verdict["error"]["kind"].as_str() {
                Some(kind) => format!("{decision} {kind}"),
                None => decision.to_owned(),
            }
        };
        self.verdicts().iter().map(word).collect()
    }

    /// The sessions that were listed, one JSON object a line.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let name = |line: Value| line["session"].as_str().unwrap_or_default().to_owned();
        let mut names: Vec<String> = self.verdicts().into_iter().map(name).collect();
        names.sort();
        names
    }
}

impl World {
    /// A workspace whose `jackline.yaml` holds `source`.
    pub(crate) fn new(source: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let world = Self { root };
        fs::create_dir(world.work()).unwrap();
        fs::write(world.work().join("jackline.yaml"), source).unwrap();
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn directory(&self, session: &str) -> PathBuf {
        let store = FileStore::new(self.home(), 0);
        store.directory(&SessionId::parse(session).unwrap())
    }

    pub(crate) fn journal(&self, session: &str) -> PathBuf {
        self.directory(session).join("journal.jsonl")
    }

    /// A command that knows nothing of the machine it runs on.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("JACKLINE_HOME", self.home());
        command
    }

    pub(crate) fn jackline(&self, args: &[&str]) -> Run {
        feed(self.person().args(args), b"")
    }

    /// The binary as a person starts it, whoever runs the tests.
    pub(crate) fn person(&self) -> Command {
        if agent_above().is_none() { self.command(JACKLINE) } else { self.apart(JACKLINE) }
    }

    /// A command that sees nobody above it.
    pub(crate) fn apart(&self, program: &str) -> Command {
        let mut command = self.command("/usr/bin/unshare");
        command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount-proc", program]);
        command
    }

    /// Runs `jackline stdio` on some lines.
    pub(crate) fn stdio(&self, lines: &[impl AsRef<str>]) -> Run {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        self.stdio_bytes(format!("{}\n", lines.join("\n")).as_bytes())
    }

    pub(crate) fn stdio_bytes(&self, input: &[u8]) -> Run {
        feed(self.person().arg("stdio"), input)
    }

    /// The records of a journal, without its opening.
    pub(crate) fn records(&self, session: &str) -> Vec<EventRecord> {
        let bytes = fs::read(self.journal(session)).unwrap();
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .filter_map(|line| match parse_record(line).unwrap() {
                Line::Event(record) => Some(*record),
                Line::Opened(_) => None,
            })
            .collect()
    }

    /// Every journal a test writes is checked and replayed.
    pub(crate) fn prove(&self, session: &str) {
        for command in ["verify", "replay"] {
            let run = self.jackline(&[command, session]);
            assert_eq!(run.code, Some(0), "{command}: {run:?}");
        }
    }

    /// Every file and directory below the root, by its path from there.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(self.root()).unwrap().display().to_string());
                if path.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

/// Runs a command on an input of any length.
pub(crate) fn feed(command: &mut Command, input: &[u8]) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Whoever ends early does not read all of it.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A `jackline stdio` that is spoken with line by line.
pub(crate) struct Talk {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Talk {
    pub(crate) fn start(world: &World) -> Self {
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

    pub(crate) fn say(&mut self, line: &str) -> Value {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin);
        self.child.wait().unwrap().code()
    }
}

/// The lines of a file, without newlines.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(ToOwned::to_owned).collect()
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
