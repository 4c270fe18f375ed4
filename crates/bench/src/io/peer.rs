//! A server at the other end of two pipes, and what it needs of the machine.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{COPIES, ECHO};
use crate::Failure;

/// A process that answers calls of tools, one after the other.
pub(super) struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Peer {
    fn start(mut command: Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, input, output, calls: 0 })
    }

    /// The server that only echoes.
    pub(super) fn echo() -> Result<Self, Failure> {
        Self::ourselves(ECHO)
    }

    /// The same one behind a proxy that only copies.
    pub(super) fn copied() -> Result<Self, Failure> {
        Self::ourselves(COPIES)
    }

    fn ourselves(as_what: &str) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(as_what);
        Self::start(command)
    }

    /// The same one behind the proxy.
    pub(super) fn wrapped(jackline: &Path, place: &Path) -> Result<Self, Failure> {
        let mut command = guarded(jackline, place, "wrap")?;
        command.arg("--").arg(std::env::current_exe()?).arg(ECHO);
        Self::start(command)
    }

    /// The server of tools in a directory.
    pub(super) fn serving(jackline: &Path, place: &Path) -> Result<Self, Failure> {
        Self::start(guarded(jackline, place, "serve")?)
    }

    /// Calls a tool; gives the result unless it is an error.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        self.calls += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        let line =
            json!({ "jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params });
        let input = self.input.as_mut().ok_or("no input")?;
        input.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        let result = answer.get_mut("result").map(Value::take).unwrap_or_default();
        let fine = result.get("isError").is_none_or(|error| error == false);
        if answer.get("id") == Some(&json!(self.calls)) && result.is_object() && fine {
            return Ok(result);
        }
        Err(format!("`{tool}` was answered with {answer}: {result}").into())
    }

    /// Calls the tool of the echo server, each time with something else.
    pub(super) fn echoes(&mut self) -> Result<(), Failure> {
        let text = format!("call {} says something of a common length", self.calls);
        let result = self.call("echo", &json!({ "text": text }))?;
        if result.pointer("/content/0/text") == Some(&json!(text)) {
            return Ok(());
        }
        Err(format!("no echo: {result}").into())
    }

    /// A line of what the kernel says of the process, in megabytes.
    pub(super) fn memory_mb(&self, key: &str) -> Result<f64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kilobytes = line.ok_or("the kernel does not say")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<f64>()? / 1024.0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A command of `jackline mcp` under all guards, with a state home of its own.
fn guarded(jackline: &Path, place: &Path, what: &str) -> Result<Command, Failure> {
    let work = place.join("work");
    fs::create_dir_all(&work)?;
    // Outside of the tree, so that it is found by nobody.
    let definition = place.join("jackline.yaml");
    fs::write(&definition, include_str!("../../definition.yaml"))?;
    let mut command = Command::new(jackline);
    command.args(["mcp", what, "-d"]).arg(definition).current_dir(work);
    command.env("JACKLINE_HOME", place.join("home")).env("HOME", place);
    Ok(command)
}
