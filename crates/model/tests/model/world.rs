//! Providers that ask a scripted model, or a server that says what it is told to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use jackline_model::scripted::{Script, ScriptedModel};
use jackline_model::{
    Delta, Key, Message, Model, ModelError, ModelSpec, Provider, Reply, Request, Tool, connect,
};
use serde_json::{Value, json};

pub(crate) const KEY: &str = "sk-SECRETSECRET99";

/// Longer than any story that does not wait for its end.
const LONG: Duration = Duration::from_mins(1);

/// What a story waits for that is about time.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn start(script: Script) -> ScriptedModel {
    ScriptedModel::start(script, LONG).unwrap()
}

/// A model at a server; `url` is what comes before the version.
pub(crate) fn spec(provider: Provider, url: &str) -> ModelSpec {
    let version = if provider == Provider::Gemini { "v1beta" } else { "v1" };
    ModelSpec {
        provider,
        name: "some-model".to_owned(),
        url: Some(format!("{url}/{version}")),
        key: Some(Key::new(KEY)),
        timeout: LONG,
        silence_max: LONG,
    }
}

pub(crate) fn model(provider: Provider, url: &str) -> Box<dyn Model> {
    connect(&spec(provider, url)).unwrap()
}

/// A request that declares a tool.
pub(crate) fn request(text: &str) -> Request {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let description = "runs a command".to_owned();
    Request {
        system: "you help".to_owned(),
        messages: vec![Message::User(text.to_owned())],
        tools: vec![Tool { name: "Bash".to_owned(), description, schema }],
        output: None,
        output_tokens_max: 500,
    }
}

/// Asks and hears everything.
pub(crate) fn ask(model: &mut dyn Model, request: &Request) -> Result<Reply, ModelError> {
    model.ask(request, &mut |_| ControlFlow::Continue(()))
}

/// What is heard: texts joined, calls by their names and arguments.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
}

impl Heard {
    pub(crate) fn take(&mut self, delta: Delta<'_>) -> ControlFlow<()> {
        match delta {
            Delta::Text(more) => self.text.push_str(more),
            Delta::Call(name) => self.calls.push((name.to_owned(), String::new())),
            Delta::Arguments(number, more) => self.calls[number].1.push_str(more),
            Delta::Again => *self = Self::default(),
            Delta::Waiting => {}
        }
        ControlFlow::Continue(())
    }
}

/// A server that gives each connection an answer, and remembers what it was asked.
pub(crate) struct Canned {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Canned {
    /// Answers with these bytes, in turn.
    pub(crate) fn start(answers: Vec<Vec<u8>>) -> Self {
        Self::with(answers.len(), move |n, mut stream| {
            // The client may be gone in the middle.
            let _ = stream.write_all(&answers[n]);
        })
    }

    /// Serves so many connections.
    pub(crate) fn with(
        connections: usize,
        serve: impl Fn(usize, TcpStream) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        let thread = std::thread::spawn(move || {
            for n in 0..connections {
                let (stream, _) = listener.accept().unwrap();
                let Some(asked) = read(&stream) else { return };
                log.lock().unwrap().push(asked);
                serve(n, stream);
            }
        });
        Self { url, heard, thread: Some(thread) }
    }

    /// What was asked so far: the head and the body of each.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// The bodies of what was asked.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let heard = self.heard();
        let bodies = heard.iter().map(|asked| asked.split_once("\r\n\r\n").unwrap().1);
        bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        // Whoever still waits for a connection gets one that says nothing.
        let address = self.url.strip_prefix("http://").unwrap();
        let _ = TcpStream::connect(address);
        let _ = self.thread.take().unwrap().join();
    }
}

pub(crate) fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(format!("{head}{}", String::from_utf8(body).unwrap()))
}

/// An answer with a status, headers and a body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

pub(crate) fn json_answer(status: u16, body: &Value) -> Vec<u8> {
    answer(status, "content-type: application/json\r\n", &body.to_string())
}

/// A stream of these events.
pub(crate) fn stream(events: &[Value]) -> Vec<u8> {
    let body: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let body = body.concat();
    answer(200, "content-type: text/event-stream\r\n", &body)
}
