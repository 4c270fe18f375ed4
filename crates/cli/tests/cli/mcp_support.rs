//! A client and a server of MCP, both scripted, with the real proxy between them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{JACKLINE, World};

/// How long a test waits for what must come.
const LONG: Duration = Duration::from_mins(1);

/// A server that any machine can run. It writes down every line it gets, and answers
/// calls by the name of the tool; `$id` is the id of the request.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
text() { answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
while IFS= read -r line; do
    printf '%s\n' "$line" >> received
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    CASES
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"echo","description":"says it","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) text "$id" said ;;
    *'"method"'*'"id"'*|*'"id"'*'"method"'*) answer "$id" '{ "odd" : [1.0, "\u0061"] }' ;;
    esac
done
"#;

/// A proxy at work.
pub(crate) struct Proxy {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: std::thread::JoinHandle<String>,
}

/// How a proxy ended.
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    /// What was not asked for.
    pub(crate) lines: Vec<String>,
    pub(crate) stderr: String,
}

impl Proxy {
    /// A proxy before a server that treats some lines otherwise: cases of `sh`.
    pub(crate) fn start(world: &World, cases: &str) -> Self {
        Self::start_with(world, &[], cases)
    }

    pub(crate) fn start_with(world: &World, options: &[&str], cases: &str) -> Self {
        fs::write(world.root().join("server.sh"), SERVER.replace("CASES", cases)).unwrap();
        let mut command = world.command(JACKLINE);
        command.args(["mcp", "wrap"]).args(options).args(["--", "sh", "../server.sh"]);
        Self::spawn(&mut command)
    }

    /// A proxy as a client starts it that says something of itself.
    pub(crate) fn start_by(world: &World, variables: &[(&str, &str)]) -> Self {
        fs::write(world.root().join("server.sh"), SERVER.replace("CASES", "")).unwrap();
        let mut command = world.command(JACKLINE);
        command.envs(variables.iter().copied());
        Self::spawn(command.args(["mcp", "wrap", "--", "sh", "../server.sh"]))
    }

    pub(crate) fn spawn(command: &mut std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.split(b'\n') {
                let _ = sender.send(String::from_utf8(line.unwrap()).unwrap());
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { stdin: child.stdin.take(), child, lines, errors }
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line, as it is.
    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(LONG).unwrap()
    }

    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, id: u64, tool: &str, arguments: &str) -> Value {
        self.ask(&call(id, tool, arguments))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The client leaves.
    pub(crate) fn leave(mut self) -> Left {
        self.stdin = None;
        self.end()
    }

    pub(crate) fn end(mut self) -> Left {
        let code = self.child.wait().unwrap().code();
        let lines = self.lines.iter().collect();
        Left { code, lines, stderr: self.errors.join().unwrap() }
    }
}

pub(crate) fn call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// The text of an item of a result.
pub(crate) fn text(answer: &Value, item: usize) -> &str {
    answer["result"]["content"][item]["text"].as_str().unwrap_or_default()
}

/// The one session that a proxy has left.
pub(crate) fn session(world: &World) -> String {
    let mut names: Vec<String> = fs::read_dir(world.home().join("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

/// What the server was given.
pub(crate) fn received(world: &World) -> String {
    fs::read_to_string(world.work().join("received")).unwrap_or_default()
}
