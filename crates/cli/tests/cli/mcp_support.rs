//! A scripted MCP client and a scripted MCP server, with the real proxy between them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{CliWorld, JACKLINE};

/// How long a test waits for a line of the proxy.
const LINE_TIMEOUT: Duration = Duration::from_mins(1);

/// An MCP server as a shell script, which runs on any machine. It appends every line it receives to
/// the file `received`, and answers calls by the name of the tool. `$id` is the id of the request.
const SERVER_SCRIPT: &str = r#"
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

/// A running proxy process.
pub(crate) struct WrapProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: std::thread::JoinHandle<String>,
}

/// The exit status of a proxy and its remaining output.
pub(crate) struct WrapExit {
    pub(crate) code: Option<i32>,
    /// The lines that the test did not read.
    pub(crate) unread_lines: Vec<String>,
    pub(crate) stderr: String,
}

impl WrapProcess {
    /// Starts a proxy in front of a server with extra `case` branches in `sh` syntax.
    pub(crate) fn start(world: &CliWorld, cases: &str) -> Self {
        Self::start_with(world, &[], cases)
    }

    pub(crate) fn start_with(world: &CliWorld, options: &[&str], cases: &str) -> Self {
        fs::write(world.root().join("server.sh"), SERVER_SCRIPT.replace("CASES", cases)).unwrap();
        let mut command = world.command(JACKLINE);
        command.args(["mcp", "wrap"]).args(options).args(["--", "sh", "../server.sh"]);
        Self::spawn(&mut command)
    }

    /// Starts a proxy with the environment variables that identify a client.
    pub(crate) fn start_with_variables(world: &CliWorld, variables: &[(&str, &str)]) -> Self {
        fs::write(world.root().join("server.sh"), SERVER_SCRIPT.replace("CASES", "")).unwrap();
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

    /// Returns the next line unchanged.
    pub(crate) fn next_line(&mut self) -> String {
        self.lines.recv_timeout(LINE_TIMEOUT).unwrap()
    }

    pub(crate) fn request(&mut self, line: &str) -> Value {
        self.send(line);
        serde_json::from_str(&self.next_line()).unwrap()
    }

    /// Calls a tool and returns the answer.
    pub(crate) fn call_tool(&mut self, id: u64, tool: &str, arguments: &str) -> Value {
        self.request(&call_request(id, tool, arguments))
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input, as a client does when it disconnects, and waits for the exit.
    pub(crate) fn disconnect(mut self) -> WrapExit {
        self.stdin = None;
        self.wait()
    }

    pub(crate) fn wait(mut self) -> WrapExit {
        let code = self.child.wait().unwrap().code();
        let lines = self.lines.iter().collect();
        WrapExit { code, unread_lines: lines, stderr: self.errors.join().unwrap() }
    }
}

pub(crate) fn call_request(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Returns the text of one content item of a result.
pub(crate) fn result_text(answer: &Value, item: usize) -> &str {
    answer["result"]["content"][item]["text"].as_str().unwrap_or_default()
}

/// Returns the id of the only session in the state home.
pub(crate) fn only_session(world: &CliWorld) -> String {
    let mut names: Vec<String> = fs::read_dir(world.home().join("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

/// Returns everything that the server received.
pub(crate) fn server_input(world: &CliWorld) -> String {
    fs::read_to_string(world.workspace().join("received")).unwrap_or_default()
}
