//! An MCP server of the workspace tools: one JSON-RPC message per line.
//!
//! The guards decide on one thread, in the order of the calls. Each tool runs on its own thread, so
//! a long command blocks no other call. A tool that panics is answered with an error and does not
//! end the server.

mod argument_schemas;
mod call_answer;
mod client_message;
mod output_store;
mod protocol;
mod raw_arguments;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_runtime::{AdapterTools, CallPermit, RefusalCode, Runtime};
use jackline_workspace::shell::CancelSignal;
use jackline_workspace::{ShownContent, ToolAnswer, ToolError, ToolSpec, Workspace};
use serde_json::{Value, json};

use self::argument_schemas::argument_schemas;
use self::call_answer::McpCallAnswer;
use self::client_message::{ClientMessage, RpcError, id_of_too_long, parse_message};
pub use self::output_store::OutputStore;
use self::protocol::ProtocolEra;
use self::raw_arguments::RawArguments;
use crate::bounded_lines::{self, LINE_BYTES_MAX, read_line};
use crate::mcp_session_gate::{McpSessionGate, McpSessionOpening};
use crate::page_tool::PAGE_TOOL;

/// How many calls may run at once. A client that sends more gets an error.
const CALLS_MAX: usize = 32;

/// How many lines are read ahead. Each line may be long.
const LINES_AHEAD_MAX: usize = 1;

/// The tools to serve, and their guards.
pub struct ServeSetup {
    /// The guards and their session.
    pub runtime: Runtime,
    /// The session to start.
    pub opening: McpSessionOpening,
    /// The workspace that provides the tools.
    pub workspace: Workspace,
    /// Stores long outputs in full.
    pub output_store: OutputStore,
}

/// Serves until the client closes its side and every running call is answered. `aside` receives
/// notifications for people.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    served: ServeSetup,
    mut aside: impl FnMut(&str),
) -> io::Result<()> {
    let ServeSetup { runtime, opening, workspace, output_store: shelf } = served;
    let (sender, events) = sync_channel(LINES_AHEAD_MAX);
    let reader = sender.clone();
    std::thread::Builder::new().spawn(move || read_lines(input, &reader))?;
    let tools: Vec<ToolSpec> =
        workspace.tools().iter().cloned().chain([output_store::page_tool_spec()]).collect();
    let known = AdapterTools::complete(tools.iter().map(|spec| spec.name.to_owned()))
        .with_schemas(argument_schemas(workspace.tools()));
    let server = ToolServer {
        output,
        front: McpSessionGate::new(runtime.with_tools(known), opening),
        tools,
        workspace: Arc::new(workspace),
        output_store: shelf,
        running: BTreeMap::new(),
        events: sender,
    };
    server.run(&events, &mut aside);
    Ok(())
}

/// The events that the server waits for.
enum ServerEvent {
    Line(Vec<u8>),
    /// A line that is too long, with the id of its request, if the id was found.
    TooLong {
        id: Value,
        bytes: usize,
    },
    /// The client closed its side, or the input can't be read.
    End,
    CallFinished(Box<FinishedToolCall>),
}

/// The result of a call on a tool thread.
struct FinishedToolCall {
    number: u64,
    outcome: Option<Result<ToolAnswer, ToolError>>,
}

/// A running call.
struct RunningToolCall {
    id: Value,
    shows: ShownContent,
    era: ProtocolEra,
    /// Whether the client has cancelled the call.
    cancelled: Arc<AtomicBool>,
}

struct ToolServer<W> {
    output: W,
    front: McpSessionGate,
    /// All tools: those of the workspace, and the page tool.
    tools: Vec<ToolSpec>,
    workspace: Arc<Workspace>,
    output_store: OutputStore,
    running: BTreeMap<u64, RunningToolCall>,
    events: SyncSender<ServerEvent>,
}

/// Reads lines until the input ends or the server stops.
fn read_lines(mut input: impl BufRead, sender: &SyncSender<ServerEvent>) {
    loop {
        let event = match read_line(&mut input, LINE_BYTES_MAX) {
            Ok(bounded_lines::LineRead::Line(line)) => ServerEvent::Line(line),
            Ok(bounded_lines::LineRead::TooLong { head, tail, bytes }) => {
                ServerEvent::TooLong { id: id_of_too_long(&head, &tail), bytes }
            }
            Ok(bounded_lines::LineRead::End) | Err(_) => ServerEvent::End,
        };
        let end = matches!(event, ServerEvent::End);
        if sender.send(event).is_err() || end {
            return;
        }
    }
}

impl<W: Write> ToolServer<W> {
    fn run(mut self, events: &Receiver<ServerEvent>, aside: &mut impl FnMut(&str)) {
        let mut open = true;
        // The server itself holds a sender, so receiving never fails.
        while (open || !self.running.is_empty())
            && let Ok(event) = events.recv()
        {
            let sent = match event {
                ServerEvent::Line(line) => self.handle_line(&line),
                ServerEvent::TooLong { id, bytes } => {
                    self.send_line(&message_too_long_error(&id, bytes))
                }
                ServerEvent::End => {
                    open = false;
                    Ok(())
                }
                ServerEvent::CallFinished(done) => self.finish_call(*done),
            };
            self.front.run_deferred().iter().for_each(|text| aside(text));
            if sent.is_err() {
                // The client is gone, so there is no one left to answer.
                break;
            }
        }
        self.front.end();
    }

    fn handle_line(&mut self, line: &[u8]) -> io::Result<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match parse_message(line) {
            Ok(ClientMessage::Request { id, method, params }) => {
                self.handle_request(&id, &method, &params)
            }
            Ok(ClientMessage::Garbled { id, params, arguments, why }) => {
                let written = RawArguments::Garbled { arguments: &arguments, why: &why };
                let result = ProtocolEra::of_request(&params)
                    .and_then(|era| self.start_call(&id, &params, &written, era));
                self.send_result(&id, result)
            }
            Ok(ClientMessage::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel_call(params.get("requestId"));
                }
                Ok(())
            }
            // The server sends no requests, so it expects no responses.
            Ok(ClientMessage::Response) => Ok(()),
            Err(error_with_id) => {
                let (id, error) = *error_with_id;
                self.send_line(&error.render(&id))
            }
        }
    }

    fn handle_request(&mut self, id: &Value, method: &str, params: &Value) -> io::Result<()> {
        let result = ProtocolEra::of_request(params).and_then(|era| match method {
            "initialize" => Ok(Some(protocol::initialize(params))),
            "server/discover" => Ok(Some(protocol::discover())),
            "ping" => Ok(Some(era.seal(json!({})))),
            "tools/list" => protocol::list_tools(params, era, &self.tools).map(Some),
            "tools/call" => self.start_call(id, params, &RawArguments::of(params), era),
            _ => Err(RpcError::no_method(method)),
        });
        self.send_result(id, result)
    }

    /// Sends the answer to a request, unless the call is still running.
    fn send_result(
        &mut self,
        id: &Value,
        result: Result<Option<Value>, RpcError>,
    ) -> io::Result<()> {
        match result {
            Ok(Some(result)) => self.send_line(&render_result(id, &result)),
            Ok(None) => Ok(()),
            Err(error) => self.send_line(&error.render(id)),
        }
    }

    /// Starts a call if the guards permit it. Otherwise, returns the result of the call.
    fn start_call(
        &mut self,
        id: &Value,
        params: &Value,
        written: &RawArguments<'_>,
        era: ProtocolEra,
    ) -> Result<Option<Value>, RpcError> {
        let Some(tool) = params.get("name").and_then(Value::as_str) else {
            let data = json!({ "path": "/name", "expected": "a string" });
            return Err(RpcError::invalid_params("the `name` of the tool is missing", data));
        };
        if self.running.len() >= CALLS_MAX {
            return Ok(Some(era.seal(McpCallAnswer::too_many_calls(CALLS_MAX).render(None))));
        }
        if tool == PAGE_TURN_TOOL {
            // This is the guards' name of the page tool. Clients must use the other name. The
            // guards must not see this call as a call of an unknown tool either, because that
            // resets their count of unknown tools.
            return Ok(Some(era.seal(McpCallAnswer::unknown_tool(tool, &self.tools).render(None))));
        }
        let is_page = tool == PAGE_TOOL;
        let name = if is_page { PAGE_TURN_TOOL } else { tool };
        let permit = match self.front.propose(id, name, written.for_guards()) {
            Ok(permit) => permit,
            Err(refusal) => {
                let mut refused = McpCallAnswer::refused(&refusal);
                if !self.has_tool(tool) && refusal.code != RefusalCode::Stopped {
                    refused = if refusal.is_about_unknown_tool() {
                        refused.with_tool_fields(tool, &self.tools)
                    } else {
                        refused.with_tool_list(tool, &self.tools)
                    };
                }
                return Ok(Some(era.seal(refused.render(None))));
            }
        };
        let CallPermit { number, args: cleaned, .. } = permit;
        // Guards in observe mode permit every call, even of unknown tools.
        let answer = match cleaned.map_or_else(|| written.for_tools(), Ok) {
            _ if !self.has_tool(tool) => McpCallAnswer::unknown_tool(tool, &self.tools),
            Err(why) => {
                McpCallAnswer::invalid_arguments(&format!("the arguments can't be parsed: {why}"))
            }
            Ok(args) if is_page => self.output_store.show_page(&args),
            Ok(args) => {
                if let Some(cancelled) = self.start_tool_thread(number, tool, &args) {
                    let shows = ShownContent::of(tool, &args);
                    self.running
                        .insert(number, RunningToolCall { id: id.clone(), shows, era, cancelled });
                    return Ok(None);
                }
                McpCallAnswer::tool_fault()
            }
        };
        let feedback = self.front.finish(answer.to_call_result(number));
        Ok(Some(era.seal(answer.render(feedback.as_deref()))))
    }

    /// Runs a tool on its own thread. Returns the flag that cancels it, or `None` if no thread
    /// could be started.
    fn start_tool_thread(&self, number: u64, tool: &str, args: &Value) -> Option<Arc<AtomicBool>> {
        let (workspace, sender) = (Arc::clone(&self.workspace), self.events.clone());
        let (tool, args) = (tool.to_owned(), args.clone());
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        let cancel = CancelSignal::when(move || flag.load(Ordering::Relaxed));
        let work = move || {
            let call = AssertUnwindSafe(|| workspace.call_until(&tool, &args, &cancel));
            let outcome = catch_unwind(call).ok();
            // This only fails if the server has stopped.
            let _ = sender
                .send(ServerEvent::CallFinished(Box::new(FinishedToolCall { number, outcome })));
        };
        std::thread::Builder::new().spawn(work).is_ok().then_some(cancelled)
    }

    fn finish_call(&mut self, done: FinishedToolCall) -> io::Result<()> {
        let Some(running) = self.running.remove(&done.number) else { return Ok(()) };
        let answer = match done.outcome {
            Some(Ok(output)) => McpCallAnswer::of_output(running.shows, output),
            Some(Err(error)) => McpCallAnswer::failed(&error),
            None => McpCallAnswer::tool_fault(),
        };
        let feedback = self.front.finish(answer.to_call_result(done.number));
        if running.cancelled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let result = running.era.seal(answer.render(feedback.as_deref()));
        self.send_line(&render_result(&running.id, &result))
    }

    /// Cancels a call, which then gets no answer. A command is ended with all its processes; the
    /// other tools finish soon.
    fn cancel_call(&mut self, id: Option<&Value>) {
        let running = self.running.values().find(|running| Some(&running.id) == id);
        if let Some(running) = running {
            running.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    fn send_line(&mut self, line: &str) -> io::Result<()> {
        self.output.write_all(line.as_bytes())?;
        self.output.write_all(b"\n")?;
        self.output.flush()
    }
}

fn render_result(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn message_too_long_error(id: &Value, bytes: usize) -> String {
    let text = format!(
        "this message has {bytes} bytes, but the limit is {LINE_BYTES_MAX}; it was ignored; send a \
         shorter message"
    );
    RpcError::invalid_request(&text).render(id)
}
