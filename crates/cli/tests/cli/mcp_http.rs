//! A server of MCP that speaks streamable HTTP, scripted, on the loopback address.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp_support::Proxy;
use crate::support::{JACKLINE, World};

/// How many connections a test may need.
const CONNECTIONS_MAX: usize = 300;

/// How long a test waits for what must come.
const LONG: Duration = Duration::from_mins(1);

/// What somebody asked for.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) verb: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// What is answered to this, as one message.
    pub(crate) fn answer(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.message()["id"], "result": result}).to_string()
    }

    /// A result of a tool.
    pub(crate) fn text(&self, text: &str) -> String {
        self.answer(&json!({"content": [{"type": "text", "text": text}]}))
    }

    /// Whether a tool of this name is called.
    pub(crate) fn calls(&self, tool: &str) -> bool {
        self.message()["params"]["name"] == tool
    }
}

/// What is answered; parts may wait.
pub(crate) enum Reply {
    /// All of it: a status, headers, a body.
    Whole(u16, Vec<(&'static str, String)>, String),
    /// Bytes as they are, and then the end of the connection.
    Raw(Vec<u8>),
    /// Bytes as they are, and then nothing.
    Hang(String),
}

pub(crate) fn reply_json(body: String) -> Reply {
    Reply::Whole(200, vec![("content-type", "application/json".to_owned())], body)
}

pub(crate) fn reply_status(status: u16) -> Reply {
    Reply::Whole(status, Vec::new(), String::new())
}

/// The beginning of a stream of events without a length.
pub(crate) fn stream(events: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}")
}

pub(crate) fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// A server at work.
pub(crate) struct Http {
    pub(crate) url: String,
    seen: Arc<(Mutex<Vec<Asked>>, Condvar)>,
}

impl Http {
    /// A server that answers by a function; where that has nothing to say as most do.
    pub(crate) fn start(answers: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<(Mutex<Vec<Asked>>, Condvar)> = Arc::default();
        let (answers, with) = (Arc::new(answers), Arc::clone(&seen));
        std::thread::spawn(move || {
            for connection in listener.incoming().take(CONNECTIONS_MAX) {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&with));
                std::thread::spawn(move || {
                    let mut connection = connection.unwrap();
                    let mut input = BufReader::new(connection.try_clone().unwrap());
                    while let Some(asked) = read(&mut input) {
                        seen.0.lock().unwrap().push(asked.clone());
                        seen.1.notify_all();
                        let reply = answers(&asked).unwrap_or_else(|| usual(&asked));
                        if !write(&mut connection, reply) {
                            break;
                        }
                    }
                });
            }
        });
        Self { url, seen }
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.0.lock().unwrap().clone()
    }

    /// The first request that is like this, once it is there.
    pub(crate) fn wait(&self, like: impl Fn(&Asked) -> bool) -> Asked {
        let seen = self.seen.0.lock().unwrap();
        let missing = |seen: &mut Vec<Asked>| !seen.iter().any(&like);
        let (seen, late) = self.seen.1.wait_timeout_while(seen, LONG, missing).unwrap();
        assert!(!late.timed_out(), "it never came");
        seen.iter().find(|asked| like(asked)).unwrap().clone()
    }

    /// The calls of tools that reached it.
    pub(crate) fn calls(&self) -> usize {
        self.seen().iter().filter(|asked| asked.message()["method"] == "tools/call").count()
    }

    /// A proxy before it.
    pub(crate) fn proxy(&self, world: &World, options: &[&str]) -> Proxy {
        let mut command = world.command(JACKLINE);
        command.args(["mcp", "wrap", "--url", &self.url]).args(options);
        Proxy::spawn(&mut command)
    }
}

fn usual(asked: &Asked) -> Reply {
    let message = asked.message();
    if asked.verb != "POST" {
        return reply_status(405);
    }
    match message["method"].as_str() {
        Some("tools/call") => reply_json(asked.text("said")),
        Some("tools/list") => reply_json(asked.answer(&json!({"tools": [{"name": "echo"}]}))),
        Some("initialize") => {
            let version = &message["params"]["protocolVersion"];
            reply_json(asked.answer(&json!({"protocolVersion": version})))
        }
        _ if message["id"].is_null() || message["method"].is_null() => reply_status(202),
        _ => reply_json(asked.answer(&json!({}))),
    }
}

fn read(input: &mut BufReader<TcpStream>) -> Option<Asked> {
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
    let mut asked = Asked { verb, headers, body: String::new() };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8(body).unwrap();
    Some(asked)
}

/// Says whether the connection goes on.
fn write(connection: &mut TcpStream, reply: Reply) -> bool {
    match reply {
        Reply::Whole(status, headers, body) => {
            let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                text.extend([name, ": ", &value, "\r\n"]);
            }
            connection.write_all(format!("{text}\r\n{body}").as_bytes()).is_ok()
        }
        Reply::Raw(bytes) => {
            let _ = connection.write_all(&bytes);
            let _ = connection.shutdown(Shutdown::Write);
            false
        }
        // Whoever reads next waits for the end of the connection.
        Reply::Hang(text) => connection.write_all(text.as_bytes()).is_ok(),
    }
}
