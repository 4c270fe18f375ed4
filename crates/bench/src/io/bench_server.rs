//! Runs a server on two pipes, calls its tools, and reads its memory use.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{COPIES_ARGUMENT, ECHO_ARGUMENT};
use crate::BenchError;

/// A server process that answers tool calls one after another.
pub(super) struct BenchServer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl BenchServer {
    fn from_command(mut command: Command) -> Result<Self, BenchError> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, input, output, calls: 0 })
    }

    /// Starts the echo server.
    pub(super) fn start_echo() -> Result<Self, BenchError> {
        Self::start_self(ECHO_ARGUMENT)
    }

    /// Starts the echo server behind the proxy that only copies.
    pub(super) fn start_copied_echo() -> Result<Self, BenchError> {
        Self::start_self(COPIES_ARGUMENT)
    }

    fn start_self(as_what: &str) -> Result<Self, BenchError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(as_what);
        Self::from_command(command)
    }

    /// Starts the echo server behind `jackline mcp wrap`.
    pub(super) fn start_wrapped_echo(jackline: &Path, place: &Path) -> Result<Self, BenchError> {
        let mut command = mcp_command(jackline, place, "wrap")?;
        command.arg("--").arg(std::env::current_exe()?).arg(ECHO_ARGUMENT);
        Self::from_command(command)
    }

    /// Starts `jackline mcp serve` in a directory.
    pub(super) fn start_serve(jackline: &Path, place: &Path) -> Result<Self, BenchError> {
        Self::from_command(mcp_command(jackline, place, "serve")?)
    }

    /// Calls a tool. Returns the result, or an error if the tool reports one.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, BenchError> {
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
        let is_ok = result.get("isError").is_none_or(|error| error == false);
        if answer.get("id") == Some(&json!(self.calls)) && result.is_object() && is_ok {
            return Ok(result);
        }
        Err(format!("unexpected answer to `{tool}`: {answer}: {result}").into())
    }

    /// Calls the echo tool, each time with another text.
    pub(super) fn call_echo(&mut self) -> Result<(), BenchError> {
        let text = format!("call {} says something of a common length", self.calls);
        let result = self.call("echo", &json!({ "text": text }))?;
        if result.pointer("/content/0/text") == Some(&json!(text)) {
            return Ok(());
        }
        Err(format!("no echo: {result}").into())
    }

    /// A value from the kernel's status of the process, in megabytes.
    pub(super) fn memory_mb(&self, key: &str) -> Result<f64, BenchError> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kilobytes =
            line.ok_or("the kernel does not report this value")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<f64>()? / 1024.0)
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A command of `jackline mcp` with all guards and its own state home.
fn mcp_command(jackline: &Path, place: &Path, what: &str) -> Result<Command, BenchError> {
    let work = place.join("work");
    fs::create_dir_all(&work)?;
    // The definition is outside of the workspace, so that no search finds it.
    let definition = place.join("jackline.yaml");
    fs::write(&definition, include_str!("../../definition.yaml"))?;
    let mut command = Command::new(jackline);
    command.args(["mcp", what, "-d"]).arg(definition).current_dir(work);
    command.env("JACKLINE_HOME", place.join("home")).env("HOME", place);
    Ok(command)
}
