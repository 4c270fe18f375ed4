//! A scripted MCP server that speaks streamable HTTP on the loopback address.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp_support::WrapProcess;
use crate::support::{CliWorld, JACKLINE};

/// How many connections a test may open.
const CONNECTIONS_MAX: usize = 300;

/// How long a test waits for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A request that the server received.
#[derive(Clone)]
pub(crate) struct McpHttpRequest {
    pub(crate) verb: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl McpHttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Formats a result as the answer to this request.
    pub(crate) fn result_message(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.message()["id"], "result": result}).to_string()
    }

    /// Formats a text result of a tool.
    pub(crate) fn text_result(&self, text: &str) -> String {
        self.result_message(&json!({"content": [{"type": "text", "text": text}]}))
    }

    /// Returns whether this is a call of the given tool.
    pub(crate) fn is_call_of(&self, tool: &str) -> bool {
        self.message()["params"]["name"] == tool
    }
}

/// An answer, or a part of one.
pub(crate) enum McpHttpReply {
    /// A complete answer: status, headers and body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// Raw bytes. Then the server closes the connection.
    Raw(Vec<u8>),
    /// Raw text. Then the server sends nothing more.
    Hang(String),
}

pub(crate) fn reply_json(body: String) -> McpHttpReply {
    McpHttpReply::Full(200, vec![("content-type", "application/json".to_owned())], body)
}

pub(crate) fn reply_status(status: u16) -> McpHttpReply {
    McpHttpReply::Full(status, Vec::new(), String::new())
}

/// The start of an event stream without a length.
pub(crate) fn stream(events: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}")
}

pub(crate) fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// A running server.
pub(crate) struct McpHttpServer {
    pub(crate) url: String,
    requests: Arc<(Mutex<Vec<McpHttpRequest>>, Condvar)>,
}

impl McpHttpServer {
    /// Starts a server that answers with a function. If the function returns `None`, the server
    /// sends the default answer.
    pub(crate) fn start(
        answers: impl Fn(&McpHttpRequest) -> Option<McpHttpReply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests: Arc<(Mutex<Vec<McpHttpRequest>>, Condvar)> = Arc::default();
        let (answers, with) = (Arc::new(answers), Arc::clone(&requests));
        std::thread::spawn(move || {
            for connection in listener.incoming().take(CONNECTIONS_MAX) {
                let (answers, requests) = (Arc::clone(&answers), Arc::clone(&with));
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let mut input = BufReader::new(connection.try_clone().unwrap());
                    while let Some(request) = read(&mut input) {
                        requests.0.lock().unwrap().push(request.clone());
                        requests.1.notify_all();
                        let reply = answers(&request).unwrap_or_else(|| default_reply(&request));
                        if !write(&mut connection, reply) {
                            break;
                        }
                    }
                });
            }
        });
        Self { url, requests }
    }

    /// Returns the requests that were received so far.
    pub(crate) fn requests(&self) -> Vec<McpHttpRequest> {
        self.requests.0.lock().unwrap().clone()
    }

    /// Waits for the first request with a property.
    pub(crate) fn wait_for(&self, matches: impl Fn(&McpHttpRequest) -> bool) -> McpHttpRequest {
        let requests = self.requests.0.lock().unwrap();
        let missing = |requests: &mut Vec<McpHttpRequest>| !requests.iter().any(&matches);
        let (requests, late) =
            self.requests.1.wait_timeout_while(requests, REQUEST_TIMEOUT, missing).unwrap();
        assert!(!late.timed_out(), "timed out waiting for a request");
        requests.iter().find(|request| matches(request)).unwrap().clone()
    }

    /// Returns how many tool calls the server received.
    pub(crate) fn tool_call_count(&self) -> usize {
        self.requests().iter().filter(|request| request.message()["method"] == "tools/call").count()
    }

    /// Starts a proxy in front of this server.
    pub(crate) fn start_proxy(&self, world: &CliWorld, options: &[&str]) -> WrapProcess {
        let mut command = world.command(JACKLINE);
        command.args(["mcp", "wrap", "--url", &self.url]).args(options);
        WrapProcess::spawn(&mut command)
    }
}

fn default_reply(request: &McpHttpRequest) -> McpHttpReply {
    let message = request.message();
    if request.verb != "POST" {
        return reply_status(405);
    }
    match message["method"].as_str() {
        Some("tools/call") => reply_json(request.text_result("said")),
        Some("tools/list") => {
            reply_json(request.result_message(&json!({"tools": [{"name": "echo"}]})))
        }
        Some("initialize") => {
            let version = &message["params"]["protocolVersion"];
            reply_json(request.result_message(&json!({"protocolVersion": version})))
        }
        _ if message["id"].is_null() || message["method"].is_null() => reply_status(202),
        _ => reply_json(request.result_message(&json!({}))),
    }
}

fn read(input: &mut BufReader<TcpStream>) -> Option<McpHttpRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let verb = lines.first()?.split(' ').next()?.to_owned();
    let header = |line: &String| line.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    let headers: Vec<_> = lines.iter().filter_map(header).collect();
    let mut request = McpHttpRequest { verb, headers, body: String::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}

/// Returns whether the connection stays open.
fn write(connection: &mut TcpStream, reply: McpHttpReply) -> bool {
    match reply {
        McpHttpReply::Full(status, headers, body) => {
            let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                text.extend([name, ": ", &value, "\r\n"]);
            }
            connection.write_all(format!("{text}\r\n{body}").as_bytes()).is_ok()
        }
        McpHttpReply::Raw(bytes) => {
            let _ = connection.write_all(&bytes);
            let _ = connection.shutdown(Shutdown::Write);
            false
        }
        // A client that reads on waits until the connection is closed.
        McpHttpReply::Hang(text) => connection.write_all(text.as_bytes()).is_ok(),
    }
}
