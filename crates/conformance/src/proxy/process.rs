//! The real `jackline mcp wrap`, with a client and a server that do as they are told.
//!
//! The server is a process that copies what it gets into one pipe with a name, and
//! what is in another to its output; both end here.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::place::Place;

/// How long something may take before the proxy counts as stuck.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The server: `$1` is what it got, `$2` what it says. It ends with what it says.
const SERVER: &str = r#"exec 3<&0; cat <&3 >"$1" & exec cat "$2""#;

/// What takes a call back.
const CANCELLED: &str = "notifications/cancelled";

/// What came out of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A line for the client.
    Client(String),
    /// A line for the server.
    Server(String),
    /// Nothing more will come for the server.
    ServerEnds,
    /// Nothing more will come for the client.
    ClientEnds,
}

/// A proxy at work.
pub(super) struct Proxy {
    child: Child,
    client: Option<ChildStdin>,
    server: Option<File>,
    heard: Receiver<Heard>,
    /// What is to be said with the next result.
    pub(super) owed: Vec<String>,
    _pipes: TempDir,
}

impl Proxy {
    pub(super) fn start(
        place: &Place,
        session: &str,
        directory: &str,
        timeout_s: u64,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start `jackline mcp wrap`: {error}");
        let pipes = TempDir::new().map_err(failed)?;
        let (gets, says) = (pipes.path().join("gets"), pipes.path().join("says"));
        let made = Command::new("mkfifo").args([&gets, &says]).status().map_err(failed)?;
        if !made.success() {
            return Err("`mkfifo` makes no pipes".to_owned());
        }
        // For both, since this waits for nobody at the other end.
        let server = OpenOptions::new().read(true).write(true).open(&says).map_err(failed)?;
        let complaints = File::create(place.complaints()).map_err(failed)?;
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
            listen(output, sender.clone(), Heard::Client, Heard::ClientEnds);
        }
        listen_to_pipe(gets, sender);
        let client = child.stdin.take();
        Ok(Self { child, client, server: Some(server), heard, owed: Vec::new(), _pipes: pipes })
    }

    /// The client sends a line; gives what comes of it first.
    pub(super) fn send(&mut self, line: &str) -> Result<Heard, String> {
        write(self.client.as_mut(), line)?;
        self.next()
    }

    /// The client takes a call back, of which the server is told.
    pub(super) fn cancel(&mut self, call: &str) -> Result<(), String> {
        let line = json!({
            "jsonrpc": "2.0", "method": CANCELLED, "params": { "requestId": call },
        });
        let line = line.to_string();
        match self.send(&line)? {
            Heard::Server(got) if got == line => Ok(()),
            other => Err(format!("a call was taken back, and that led to {other:?}")),
        }
    }

    /// The server answers a call; gives what the client gets.
    pub(super) fn answer(&mut self, call: &str, result: &Value) -> Result<String, String> {
        let line = json!({ "jsonrpc": "2.0", "id": call, "result": result });
        write(self.server.as_mut(), &line.to_string())?;
        self.for_client(call)
    }

    /// The server ends; gives what the client gets for the one call that it had.
    pub(super) fn crash(&mut self, call: &str) -> Result<String, String> {
        self.server = None;
        match self.next()? {
            Heard::ServerEnds => self.for_client(call),
            Heard::Client(line) => answers(line, call),
            other => Err(format!("the server ended, and that led to {other:?}")),
        }
    }

    /// The server says nothing; gives what the client gets for that, once the server was
    /// told to give up.
    pub(super) fn silence(&mut self, call: &str) -> Result<String, String> {
        match self.next()? {
            Heard::Server(line) if line.contains(CANCELLED) => self.for_client(call),
            Heard::Client(line) => match self.next()? {
                Heard::Server(told) if told.contains(CANCELLED) => answers(line, call),
                other => Err(format!("no answer came for `{call}`, and that led to {other:?}")),
            },
            other => Err(format!("no answer came for `{call}`, and that led to {other:?}")),
        }
    }

    /// The next line for the client, which must be an answer to a call.
    fn for_client(&mut self, call: &str) -> Result<String, String> {
        match self.next()? {
            Heard::Client(line) => answers(line, call),
            other => Err(format!("an answer to `{call}` was expected, and came {other:?}")),
        }
    }

    /// The client leaves; the proxy has to end its server and itself, and be content.
    pub(super) fn leave(mut self) -> Result<(), String> {
        self.client = None;
        loop {
            match self.next()? {
                // A server that is asked to go goes.
                Heard::ServerEnds => self.server = None,
                Heard::ClientEnds => break,
                Heard::Server(line) if line.contains(CANCELLED) => {}
                Heard::Client(line) if line.contains("server_gone") => {}
                other => return Err(format!("nobody waits for {other:?}")),
            }
        }
        let status = self.child.wait().map_err(|error| format!("can't wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the proxy ended with {status}")) }
    }

    fn next(&mut self) -> Result<Heard, String> {
        self.heard.recv_timeout(TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => "nothing came out of the proxy".to_owned(),
            RecvTimeoutError::Disconnected => "the proxy has ended".to_owned(),
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // After `leave` this does nothing; else it is how a machine goes down.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line for the client, which must be an answer to a call.
fn answers(line: String, call: &str) -> Result<String, String> {
    let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    if answer.get("id").is_some_and(|id| id == call) {
        return Ok(line);
    }
    Err(format!("an answer to `{call}` was expected, and came {line}"))
}

fn write(to: Option<&mut impl std::io::Write>, line: &str) -> Result<(), String> {
    let to = to.ok_or("it is gone already")?;
    to.write_all(format!("{line}\n").as_bytes()).map_err(|error| format!("can't send: {error}"))
}

fn listen_to_pipe(path: impl AsRef<Path> + Send + 'static, sender: Sender<Heard>) {
    std::thread::spawn(move || {
        // This waits until the server is there.
        if let Ok(pipe) = File::open(path) {
            lines(pipe, &sender, Heard::Server, Heard::ServerEnds);
        }
    });
}

fn listen(
    from: impl Read + Send + 'static,
    sender: Sender<Heard>,
    heard: fn(String) -> Heard,
    end: Heard,
) {
    std::thread::spawn(move || lines(from, &sender, heard, end));
}

fn lines(from: impl Read, sender: &Sender<Heard>, heard: fn(String) -> Heard, end: Heard) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        if sender.send(heard(line)).is_err() {
            return;
        }
    }
    let _ = sender.send(end);
}
