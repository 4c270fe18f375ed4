//! The real `jackline mcp wrap`, with a client and a server that a scenario controls.
//!
//! The server is a process that copies its input to one named pipe, and the contents of another
//! named pipe to its output. The other ends of both pipes are in this process.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scenario_directories::ScenarioDirectories;

/// How long an operation may take before the proxy counts as blocked.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The server: `$1` is the pipe for its input, `$2` the pipe for its output. It ends at the end of
/// its output.
const SERVER: &str = r#"exec 3<&0; cat <&3 >"$1" & exec cat "$2""#;

/// The method that cancels a call.
const CANCELLED: &str = "notifications/cancelled";

/// A message from the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyMessage {
    /// A line for the client.
    Client(String),
    /// A line for the server.
    Server(String),
    /// The end of the messages for the server.
    ServerEnds,
    /// The end of the messages for the client.
    ClientEnds,
}

/// A running proxy.
pub(super) struct ProxyProcess {
    child: Child,
    client: Option<ChildStdin>,
    server: Option<File>,
    messages: Receiver<ProxyMessage>,
    /// The texts that must come with the next result.
    pub(super) expected_texts: Vec<String>,
    _pipes: TempDir,
}

impl ProxyProcess {
    pub(super) fn start(
        place: &ScenarioDirectories,
        session: &str,
        directory: &str,
        timeout_s: u64,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline mcp wrap`: {error}");
        let pipes = TempDir::new().map_err(failed)?;
        let (gets, says) = (pipes.path().join("gets"), pipes.path().join("says"));
        let made = Command::new("mkfifo").args([&gets, &says]).status().map_err(failed)?;
        if !made.success() {
            return Err("`mkfifo` can't create the pipes".to_owned());
        }
        // Open for reading and writing, because this does not wait for the other end.
        let server = OpenOptions::new().read(true).write(true).open(&says).map_err(failed)?;
        let complaints = File::create(place.stderr_file()).map_err(failed)?;
        let mut child = place
            .command("mcp")
            .args(["wrap", "--session", session, "--timeout", &timeout_s.to_string(), "--"])
            .args(["sh", "-c", SERVER, "server"])
            .args([&gets, &says])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(failed)?;
        let (sender, heard) = channel();
        if let Some(output) = child.stdout.take() {
            spawn_reader(output, sender.clone(), ProxyMessage::Client, ProxyMessage::ClientEnds);
        }
        spawn_pipe_reader(gets, sender);
        let client = child.stdin.take();
        Ok(Self {
            child,
            client,
            server: Some(server),
            messages: heard,
            expected_texts: Vec::new(),
            _pipes: pipes,
        })
    }

    /// Sends a line of the client, and returns the first message that follows.
    pub(super) fn send(&mut self, line: &str) -> Result<ProxyMessage, String> {
        write(self.client.as_mut(), line)?;
        self.next()
    }

    /// Cancels a call for the client; the server must get the cancellation.
    pub(super) fn cancel(&mut self, call: &str) -> Result<(), String> {
        let line = json!({
            "jsonrpc": "2.0", "method": CANCELLED, "params": { "requestId": call },
        });
        let line = line.to_string();
        match self.send(&line)? {
            ProxyMessage::Server(got) if got == line => Ok(()),
            other => Err(format!("the cancellation of a call gave {other:?}")),
        }
    }

    /// Sends a result of the server, and returns the message to the client.
    pub(super) fn answer(&mut self, call: &str, result: &Value) -> Result<String, String> {
        let line = json!({ "jsonrpc": "2.0", "id": call, "result": result });
        write(self.server.as_mut(), &line.to_string())?;
        self.for_client(call)
    }

    /// Ends the server, and returns the message to the client for its one open call.
    pub(super) fn crash(&mut self, call: &str) -> Result<String, String> {
        self.server = None;
        match self.next()? {
            ProxyMessage::ServerEnds => self.for_client(call),
            ProxyMessage::Client(line) => check_answers(line, call),
            other => Err(format!("the end of the server gave {other:?}")),
        }
    }

    /// Waits for the timeout of a call. The server must get a cancellation; returns the message to
    /// the client.
    pub(super) fn wait_for_timeout(&mut self, call: &str) -> Result<String, String> {
        match self.next()? {
            ProxyMessage::Server(line) if line.contains(CANCELLED) => self.for_client(call),
            ProxyMessage::Client(line) => match self.next()? {
                ProxyMessage::Server(cancellation) if cancellation.contains(CANCELLED) => {
                    check_answers(line, call)
                }
                other => Err(format!("the timeout of `{call}` gave {other:?}")),
            },
            other => Err(format!("the timeout of `{call}` gave {other:?}")),
        }
    }

    /// The next line for the client, which must answer a call.
    fn for_client(&mut self, call: &str) -> Result<String, String> {
        match self.next()? {
            ProxyMessage::Client(line) => check_answers(line, call),
            other => Err(format!("expected an answer to `{call}`, but got {other:?}")),
        }
    }

    /// Disconnects the client. The proxy must end its server and exit successfully.
    pub(super) fn leave(mut self) -> Result<(), String> {
        self.client = None;
        loop {
            match self.next()? {
                // A server ends when its input is closed.
                ProxyMessage::ServerEnds => self.server = None,
                ProxyMessage::ClientEnds => break,
                ProxyMessage::Server(line) if line.contains(CANCELLED) => {}
                ProxyMessage::Client(line) if line.contains("server_gone") => {}
                other => return Err(format!("unexpected message: {other:?}")),
            }
        }
        let status = self.child.wait().map_err(|error| format!("can't wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the proxy ended with {status}")) }
    }

    fn next(&mut self) -> Result<ProxyMessage, String> {
        self.messages.recv_timeout(TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => "the proxy sent no message in time".to_owned(),
            RecvTimeoutError::Disconnected => "the proxy has ended".to_owned(),
        })
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        // After `leave` this has no effect. Otherwise it kills the proxy, as in a crash of the
        // machine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that a line for the client answers a call.
fn check_answers(line: String, call: &str) -> Result<String, String> {
    let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    if answer.get("id").is_some_and(|id| id == call) {
        return Ok(line);
    }
    Err(format!("expected an answer to `{call}`, but got {line}"))
}

fn write(to: Option<&mut impl std::io::Write>, line: &str) -> Result<(), String> {
    let to = to.ok_or("the other end is already closed")?;
    to.write_all(format!("{line}\n").as_bytes()).map_err(|error| format!("can't send: {error}"))
}

fn spawn_pipe_reader(path: impl AsRef<Path> + Send + 'static, sender: Sender<ProxyMessage>) {
    std::thread::spawn(move || {
        // This waits until the server has opened the pipe.
        if let Ok(pipe) = File::open(path) {
            send_lines(pipe, &sender, ProxyMessage::Server, ProxyMessage::ServerEnds);
        }
    });
}

fn spawn_reader(
    from: impl Read + Send + 'static,
    sender: Sender<ProxyMessage>,
    heard: fn(String) -> ProxyMessage,
    end: ProxyMessage,
) {
    std::thread::spawn(move || send_lines(from, &sender, heard, end));
}

fn send_lines(
    from: impl Read,
    sender: &Sender<ProxyMessage>,
    heard: fn(String) -> ProxyMessage,
    end: ProxyMessage,
) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        if sender.send(heard(line)).is_err() {
            return;
        }
    }
    let _ = sender.send(end);
}
