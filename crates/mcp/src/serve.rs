//! A server of the workspace's tools, a JSON-RPC message a line.
//!
//! The guards decide on one thread, in the order in which calls come. Tools run on
//! threads of their own, so a command that takes minutes keeps nobody waiting, and
//! a tool that breaks is an answer, not the end.

mod message;
mod protocol;
mod result;
mod shelf;
mod taken;
mod written;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use jackline_engine::tool::PAGE_TURN;
use jackline_runtime::{CallPermit, RefusalCode, Runtime};
use jackline_workspace::shell::Cancel;
use jackline_workspace::{Shows, ToolError, ToolOutput, ToolSpec, Workspace};
use serde_json::{Value, json};

use self::message::{Message, RpcError, id_of_long, parse};
use self::protocol::Era;
use self::result::Answer;
pub use self::shelf::Shelf;
use self::taken::taken;
use self::written::Written;
use crate::lines::{self, LINE_BYTES_MAX, read_line};
use crate::mcp_front::{McpFront, Opening};
use crate::page::PAGE;

/// How many calls may run at once; an agent that wants more has not waited.
const CALLS_MAX: usize = 32;

/// How many lines are read ahead: each may be long.
const AHEAD: usize = 1;

/// What is served, and under which guards.
pub struct Served {
    /// The guards.
    pub runtime: Runtime,
    /// How the session begins.
    pub opening: Opening,
    /// The tools.
    pub workspace: Workspace,
    /// Where all of a long output lies.
    pub shelf: Shelf,
}

/// Serves until the client closes its side, and every call that runs is answered.
/// `aside` is told what people should know.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    served: Served,
    mut aside: impl FnMut(&str),
) -> io::Result<()> {
    let Served { runtime, opening, workspace, shelf } = served;
    let (tell, heard) = sync_channel(AHEAD);
    let reader = tell.clone();
    std::thread::Builder::new().spawn(move || read(input, &reader))?;
    let server = Server {
        output,
        front: McpFront::new(runtime.with_tools(taken(workspace.tools())), opening),
        tools: workspace.tools().iter().cloned().chain([shelf::spec()]).collect(),
        workspace: Arc::new(workspace),
        shelf,
        running: BTreeMap::new(),
        tell,
    };
    server.run(&heard, &mut aside);
    Ok(())
}

/// What the server waits for.
enum Heard {
    Line(Vec<u8>),
    /// A line that nobody reads, and whose request it is as far as it says.
    TooLong {
        id: Value,
        bytes: usize,
    },
    /// The client has closed its side, or it can't be read any more.
    End,
    Done(Box<Done>),
}

/// A call that came back.
struct Done {
    number: u64,
    outcome: Option<Result<ToolOutput, ToolError>>,
}

/// A call that runs.
struct Running {
    id: Value,
    shows: Shows,
    era: Era,
    /// Whether the client has taken it back.
    taken_back: Arc<AtomicBool>,
}

struct Server<W> {
    output: W,
    front: McpFront,
    /// All tools: those of the workspace, and one that turns pages.
    tools: Vec<ToolSpec>,
    workspace: Arc<Workspace>,
    shelf: Shelf,
    running: BTreeMap<u64, Running>,
    tell: SyncSender<Heard>,
}

/// Reads lines until there are none, or nobody wants them.
fn read(mut input: impl BufRead, tell: &SyncSender<Heard>) {
    loop {
        let heard = match read_line(&mut input, LINE_BYTES_MAX) {
            Ok(lines::Read::Line(line)) => Heard::Line(line),
            Ok(lines::Read::TooLong { head, tail, bytes }) => {
                Heard::TooLong { id: id_of_long(&head, &tail), bytes }
            }
            Ok(lines::Read::End) | Err(_) => Heard::End,
        };
        let end = matches!(heard, Heard::End);
        if tell.send(heard).is_err() || end {
            return;
        }
    }
}

impl<W: Write> Server<W> {
    fn run(mut self, heard: &Receiver<Heard>, aside: &mut impl FnMut(&str)) {
        let mut open = true;
        // The server itself holds a sender, so there is always somebody to hear.
        while (open || !self.running.is_empty())
            && let Ok(heard) = heard.recv()
        {
            let said = match heard {
                Heard::Line(line) => self.hear(&line),
                Heard::TooLong { id, bytes } => self.say(&too_long(&id, bytes)),
                Heard::End => {
                    open = false;
                    Ok(())
                }
                Heard::Done(done) => self.finish(*done),
            };
            self.front.run_deferred().iter().for_each(|text| aside(text));
            if said.is_err() {
                // The client is gone, and with it everybody who could be told.
                break;
            }
        }
        self.front.end();
    }

    fn hear(&mut self, line: &[u8]) -> io::Result<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match parse(line) {
            Ok(Message::Request { id, method, params }) => self.answer(&id, &method, &params),
            Ok(Message::Garbled { id, params, arguments, why }) => {
                let written = Written::Garbled { arguments: &arguments, why: &why };
                let called =
                    Era::of(&params).and_then(|era| self.call(&id, &params, &written, era));
                self.reply(&id, called)
            }
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params.get("requestId"));
                }
                Ok(())
            }
            // We ask nothing, so nobody can answer us.
            Ok(Message::Response) => Ok(()),
            Err(refused) => {
                let (id, error) = *refused;
                self.say(&error.render(&id))
            }
        }
    }

    fn answer(&mut self, id: &Value, method: &str, params: &Value) -> io::Result<()> {
        let answered = Era::of(params).and_then(|era| match method {
            "initialize" => Ok(Some(protocol::initialize(params))),
            "server/discover" => Ok(Some(protocol::discover())),
            "ping" => Ok(Some(era.seal(json!({})))),
            "tools/list" => protocol::list(params, era, &self.tools).map(Some),
            "tools/call" => self.call(id, params, &Written::of(params), era),
            _ => Err(RpcError::no_method(method)),
        });
        self.reply(id, answered)
    }

    /// Says what came of a request, if something did already.
    fn reply(&mut self, id: &Value, answered: Result<Option<Value>, RpcError>) -> io::Result<()> {
        match answered {
            Ok(Some(result)) => self.say(&render(id, &result)),
            Ok(None) => Ok(()),
            Err(error) => self.say(&error.render(id)),
        }
    }

    /// Has a call run, if the guards let it; else this is its result.
    fn call(
        &mut self,
        id: &Value,
        params: &Value,
        written: &Written<'_>,
        era: Era,
    ) -> Result<Option<Value>, RpcError> {
        let Some(tool) = params.get("name").and_then(Value::as_str) else {
            let data = json!({ "path": "/name", "expected": "a string" });
            return Err(RpcError::params("a call needs the `name` of a tool", data));
        };
        if self.running.len() >= CALLS_MAX {
            return Ok(Some(era.seal(Answer::busy(CALLS_MAX).render(None))));
        }
        if tool == PAGE_TURN {
            // So the guards know the tool that turns pages, and nobody else does: as a call that
            // runs it would make them forget which tools were called that are not there.
            return Ok(Some(era.seal(Answer::unknown(tool, &self.tools).render(None))));
        }
        let is_page = tool == PAGE;
        let name = if is_page { PAGE_TURN } else { tool };
        let permit = match self.front.propose(id, name, written.for_guards()) {
            Ok(permit) => permit,
            Err(refusal) => {
                let mut refused = Answer::refused(&refusal);
                if !self.has(tool) && refusal.code != RefusalCode::Stopped {
                    refused = if refusal.is_about_unknown_tool() {
                        refused.naming(tool, &self.tools)
                    } else {
                        refused.leading_on(tool, &self.tools)
                    };
                }
                return Ok(Some(era.seal(refused.render(None))));
            }
        };
        let CallPermit { number, args: cleaned, .. } = permit;
        // Guards that only observe let everything run.
        let answer = match cleaned.map_or_else(|| written.for_tools(), Ok) {
            _ if !self.has(tool) => Answer::unknown(tool, &self.tools),
            Err(why) => Answer::invalid(&format!("the arguments can't be read: {why}")),
            Ok(args) if is_page => self.shelf.turn(&args),
            Ok(args) => {
                if let Some(taken_back) = self.start(number, tool, &args) {
                    let shows = Shows::of(tool, &args);
                    self.running.insert(number, Running { id: id.clone(), shows, era, taken_back });
                    return Ok(None);
                }
                Answer::broken()
            }
        };
        let feedback = self.front.finish(answer.came_back(number));
        Ok(Some(era.seal(answer.render(feedback.as_deref()))))
    }

    /// Runs a tool on a thread of its own; gives how it is taken back, if there is one.
    fn start(&self, number: u64, tool: &str, args: &Value) -> Option<Arc<AtomicBool>> {
        let (workspace, tell) = (Arc::clone(&self.workspace), self.tell.clone());
        let (tool, args) = (tool.to_owned(), args.clone());
        let taken_back = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&taken_back);
        let cancel = Cancel::when(move || asked.load(Ordering::Relaxed));
        let work = move || {
            let call = AssertUnwindSafe(|| workspace.call_until(&tool, &args, &cancel));
            let outcome = catch_unwind(call).ok();
            // Nobody is left to hear it where this fails.
            let _ = tell.send(Heard::Done(Box::new(Done { number, outcome })));
        };
        std::thread::Builder::new().spawn(work).is_ok().then_some(taken_back)
    }

    fn finish(&mut self, done: Done) -> io::Result<()> {
        let Some(running) = self.running.remove(&done.number) else { return Ok(()) };
        let answer = match done.outcome {
            Some(Ok(output)) => Answer::of(running.shows, output),
            Some(Err(error)) => Answer::failed(&error),
            None => Answer::broken(),
        };
        let feedback = self.front.finish(answer.came_back(done.number));
        if running.taken_back.load(Ordering::Relaxed) {
            return Ok(());
        }
        let result = running.era.seal(answer.render(feedback.as_deref()));
        self.say(&render(&running.id, &result))
    }

    /// A call that is taken back is not answered. A command is ended, with everything it has
    /// started; the other tools are at their end soon.
    fn cancel(&mut self, id: Option<&Value>) {
        let running = self.running.values().find(|running| Some(&running.id) == id);
        if let Some(running) = running {
            running.taken_back.store(true, Ordering::Relaxed);
        }
    }

    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.output.write_all(line.as_bytes())?;
        self.output.write_all(b"\n")?;
        self.output.flush()
    }
}

fn render(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn too_long(id: &Value, bytes: usize) -> String {
    let text = format!(
        "this message has {bytes} bytes; at most {LINE_BYTES_MAX} are read; nothing was done; send less"
    );
    RpcError::invalid(&text).render(id)
}
