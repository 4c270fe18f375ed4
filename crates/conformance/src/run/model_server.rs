//! A model on a loopback address that answers when a scenario says so.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// How many times to look for a request, once per millisecond.
const REQUEST_CHECKS_MAX: usize = 30_000;

/// How long the run may be silent within a request.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The model. A request waits until the scenario has the next answer.
pub(super) struct ModelServer {
    listener: TcpListener,
    calls: usize,
    /// The texts that must be in the next request.
    pub(super) expected_texts: Vec<String>,
}

impl ModelServer {
    pub(super) fn start() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start the model: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, calls: 0, expected_texts: Vec::new() })
    }

    pub(super) fn url(&self) -> Result<String, String> {
        let address = self.listener.local_addr().map_err(|error| error.to_string())?;
        Ok(format!("http://{address}/v1"))
    }

    /// Answers the next request with a text and no call.
    pub(super) fn say(&mut self, text: &str) -> Result<(), String> {
        self.answer(&json!({ "role": "assistant", "content": text }), "stop")
    }

    /// Answers the next request with a call.
    pub(super) fn call(&mut self, tool: &str, arguments: &str) -> Result<(), String> {
        self.calls += 1;
        let function = json!({ "name": tool, "arguments": arguments });
        let id = format!("call_{}", self.calls);
        let calls = json!([{ "id": id, "type": "function", "function": function }]);
        let message = json!({ "role": "assistant", "content": "", "tool_calls": calls });
        self.answer(&message, "tool_calls")
    }

    fn answer(&mut self, message: &Value, reason: &str) -> Result<(), String> {
        let stream = self.accept()?;
        let failed = |error: std::io::Error| format!("the request of the run failed: {error}");
        let request = read_request(&stream).map_err(failed)?;
        let shown = message_texts(&request);
        for text in self.expected_texts.drain(..) {
            if !shown.contains(&text) {
                return Err(format!("the model must get {text:?}, but got {shown}"));
            }
        }
        let body = json!({
            "id": "answer",
            "model": "scenario",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": { "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 },
        });
        let body = body.to_string();
        write!(
            &stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .map_err(failed)
    }

    fn accept(&self) -> Result<TcpStream, String> {
        for _ in 0..REQUEST_CHECKS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let ready = stream
                        .set_nonblocking(false)
                        .and_then(|()| stream.set_read_timeout(Some(SILENCE_MAX)));
                    return ready.map(|()| stream).map_err(|error| error.to_string());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the run did not ask its model".to_owned())
    }
}

/// Reads the JSON body of a request.
fn read_request(stream: &TcpStream) -> std::io::Result<Value> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// The texts of all messages in a request.
fn message_texts(request: &Value) -> String {
    let messages = request.get("messages").and_then(Value::as_array);
    let texts = messages.into_iter().flatten().filter_map(|it| it.get("content")?.as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}
