//! Models of all providers, connected to a scripted model or to a server with fixed responses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use jackline_model::scripted::{ModelScript, ScriptedModel};
use jackline_model::{
    AnswerDelta, ApiKey, ConversationMessage, Model, ModelError, ModelReply, ModelRequest,
    Provider, RemoteModelSpec, ToolDeclaration, connect,
};
use serde_json::{Value, json};

pub(crate) const KEY: &str = "sk-SECRETSECRET99";

/// A timeout that no story reaches by accident.
const LONG: Duration = Duration::from_mins(1);

/// A timeout for stories that wait for it.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn start(script: ModelScript) -> ScriptedModel {
    ScriptedModel::start(script, LONG).unwrap()
}

/// The specification of a model at a server; `url` lacks the version.
pub(crate) fn spec(provider: Provider, url: &str) -> RemoteModelSpec {
    let version = if provider == Provider::Gemini { "v1beta" } else { "v1" };
    RemoteModelSpec {
        provider,
        name: "some-model".to_owned(),
        url: Some(format!("{url}/{version}")),
        key: Some(ApiKey::new(KEY)),
        timeout: LONG,
        silence_max: LONG,
    }
}

pub(crate) fn model(provider: Provider, url: &str) -> Box<dyn Model> {
    connect(&spec(provider, url)).unwrap()
}

/// A request with a tool.
pub(crate) fn request(text: &str) -> ModelRequest {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let description = "runs a command".to_owned();
    ModelRequest {
        system: "you help".to_owned(),
        messages: vec![ConversationMessage::User(text.to_owned())],
        tools: vec![ToolDeclaration { name: "Bash".to_owned(), description, schema }],
        output: None,
        output_tokens_max: 500,
    }
}

/// Sends a request and ignores the pieces.
pub(crate) fn ask(model: &mut dyn Model, request: &ModelRequest) -> Result<ModelReply, ModelError> {
    model.ask(request, &mut |_| ControlFlow::Continue(()))
}

/// The received pieces: the joined text, and the calls with their arguments.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ReceivedPieces {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
}

impl ReceivedPieces {
    pub(crate) fn add(&mut self, delta: AnswerDelta<'_>) -> ControlFlow<()> {
        match delta {
            AnswerDelta::Text(more) => self.text.push_str(more),
            AnswerDelta::Call(name) => self.calls.push((name.to_owned(), String::new())),
            AnswerDelta::Arguments(number, more) => self.calls[number].1.push_str(more),
            AnswerDelta::Again => *self = Self::default(),
            AnswerDelta::Waiting => {}
        }
        ControlFlow::Continue(())
    }
}

/// A server that gives each connection a fixed response and records the requests.
pub(crate) struct CannedServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl CannedServer {
    /// Responds with these bytes, in order.
    pub(crate) fn start(answers: Vec<Vec<u8>>) -> Self {
        Self::with(answers.len(), move |n, mut stream| {
            // The client may have disconnected.
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
        let log_entries = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&log_entries);
        let thread = std::thread::spawn(move || {
            for n in 0..connections {
                let (stream, _) = listener.accept().unwrap();
                let Some(request) = read(&stream) else { return };
                log.lock().unwrap().push(request);
                serve(n, stream);
            }
        });
        Self { url, requests: log_entries, thread: Some(thread) }
    }

    /// The requests so far: the head and the body of each.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let requests = self.requests();
        let bodies = requests.iter().map(|request| request.split_once("\r\n\r\n").unwrap().1);
        bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

impl Drop for CannedServer {
    fn drop(&mut self) {
        // This connection ends a thread that still waits for one.
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

/// A response with a status, headers and a body.
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
