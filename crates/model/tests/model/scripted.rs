//! The HTTP server of the scripted model, as a client sees it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use jackline_model::scripted::{
    ModelScript, RecordedRequestKind, ScriptStep, ScriptUsage, ScriptedModel,
};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_mins(1);

fn start(script: ModelScript) -> ScriptedModel {
    ScriptedModel::start(script, LONG).unwrap()
}

/// Sends bytes and returns the complete response, if there is any.
fn exchange(model: &ScriptedModel, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(model.address()).unwrap();
    let mut answer = String::new();
    let _ = stream.write_all(bytes).and_then(|()| stream.read_to_string(&mut answer));
    answer
}

/// The status and the body of a response.
fn post(model: &ScriptedModel, path: &str, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
    let answer = exchange(model, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn json_of((status, body): (u16, String)) -> Value {
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn main_request(first: &str) -> Value {
    json!({
        "model": "m",
        "tools": [{ "name": "Bash" }],
        "messages": [{ "role": "user", "content": first }],
    })
}

#[test]
fn only_a_request_with_tools_takes_a_step() {
    let call = ScriptStep::call("Bash", json!({ "command": "ls" })).with_usage(ScriptUsage {
        input: 7,
        output: 8,
        ..ScriptUsage::default()
    });
    let model = start(ModelScript::new([call]));
    let side = json_of(post(&model, "/v1/messages", &json!({ "model": "m", "messages": [] })));
    assert_eq!(side["content"][0]["text"], "a side note");
    let main = json_of(post(&model, "/v1/messages?beta=true", &main_request("go")));
    assert_eq!((&main["stop_reason"], &main["model"]), (&json!("tool_use"), &json!("m")));
    assert_eq!(main["content"][0]["name"], "Bash");
    assert_eq!(main["content"][0]["input"], json!({ "command": "ls" }));
    assert_eq!(
        (&main["usage"]["input_tokens"], &main["usage"]["output_tokens"]),
        (&json!(7), &json!(8))
    );
    let over = json_of(post(&model, "/v1/messages", &main_request("go")));
    assert_eq!(
        (&over["content"][0]["text"], &over["stop_reason"]),
        (&json!("DONE"), &json!("end_turn"))
    );
    let count = json_of(post(&model, "/v1/messages/count_tokens", &json!({})));
    assert_eq!(count, json!({ "input_tokens": 1000 }));

    let main = |step| RecordedRequestKind::Main { part: None, step };
    let kinds: Vec<RecordedRequestKind> =
        model.requests().into_iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [RecordedRequestKind::Side, main(0), main(1), RecordedRequestKind::Count]);
}

#[test]
fn a_stream_contains_the_same_answer() {
    let step = ScriptStep { text: "well".to_owned(), ..ScriptStep::default() }
        .and_call("Bash", json!({ "command": "ls" }))
        .and_call("Read", json!({ "file_path": "a" }));
    let model = start(ModelScript::new([step]));
    let mut request = main_request("go");
    request["stream"] = true.into();
    let (status, body) = post(&model, "/v1/messages", &request);
    assert_eq!(status, 200);
    let events: Vec<(String, Value)> = body
        .split_terminator("\n\n")
        .map(|event| event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap())
        .map(|(name, data)| (name.to_owned(), serde_json::from_str(data).unwrap()))
        .collect();
    assert!(events.iter().all(|(name, data)| data["type"] == name.as_str()));
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected =
        [&["message_start"][..], &block, &block, &block, &["message_delta", "message_stop"]];
    assert_eq!(names, expected.concat());
    assert_eq!(events[0].1["message"]["content"], json!([]));
    assert_eq!(events[2].1["delta"], json!({ "type": "text_delta", "text": "well" }));
    assert_eq!(events[4].1["content_block"]["input"], json!({}));
    assert_eq!(events[5].1["delta"]["partial_json"], r#"{"command":"ls"}"#);
    assert_ne!(events[4].1["content_block"]["id"], events[7].1["content_block"]["id"]);
    assert_eq!(events[10].1["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_step_can_fail_or_be_delayed() {
    let slow = ScriptStep::say("late").with_delay(Duration::from_millis(1));
    let model = start(ModelScript::new([ScriptStep::fail(529), slow]));
    let (status, body) = post(&model, "/v1/messages", &main_request("go"));
    assert_eq!(status, 529);
    assert!(body.contains("overloaded_error"), "{body}");
    let late = json_of(post(&model, "/v1/messages", &main_request("go")));
    assert_eq!(late["content"][0]["text"], "late");
}

#[test]
fn a_sub_agent_has_its_own_part() {
    let model = start(
        ModelScript::new([ScriptStep::say("m0"), ScriptStep::say("m1")])
            .part("SUB", [ScriptStep::say("s0")]),
    );
    let ask = |first: &str| {
        json_of(post(&model, "/v1/messages", &main_request(first)))["content"][0]["text"].clone()
    };
    assert_eq!([ask("go"), ask("SUB"), ask("go")], ["m0", "s0", "m1"]);
    let of_sub: Vec<usize> = model
        .requests()
        .iter()
        .filter(|request| request.is_of_part(Some("SUB")))
        .map(|request| request.number)
        .collect();
    assert_eq!(of_sub, [2]);
}

#[test]
fn an_invalid_request_is_answered_and_harmless() {
    let model = start(ModelScript::new([ScriptStep::say("fine")]));
    assert!(exchange(&model, b"\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(exchange(&model, b"GET /nowhere HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let huge = b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n";
    assert!(exchange(&model, huge).starts_with("HTTP/1.1 413 "));
    let no_json = b"POST /v1/messages HTTP/1.1\r\ncontent-length: 3\r\n\r\n{{{";
    assert!(exchange(&model, no_json).starts_with("HTTP/1.1 200 "));
    let fine = json_of(post(&model, "/v1/messages", &main_request("go")));
    assert_eq!(fine["content"][0]["text"], "fine");
}

#[test]
fn too_many_connections_are_refused_and_the_others_are_served() {
    let model = start(ModelScript::new([]));
    // These connections send nothing, so they stay open.
    let idle: Vec<TcpStream> =
        (0..16).map(|_| TcpStream::connect(model.address()).unwrap()).collect();
    assert_eq!(exchange(&model, b"GET /v1/models HTTP/1.1\r\n\r\n"), "");
    drop(idle);
    let served = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        exchange(&model, b"GET /v1/models HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ")
    });
    assert!(served);
}

/// A client that waits for an answer when the model ends is disconnected and does not delay the
/// end.
#[test]
fn it_ends_when_it_is_dropped_and_after_its_lifetime() {
    let model = start(ModelScript::new([ScriptStep::say("never").with_delay(LONG)]));
    let address = model.address();
    let mut open = TcpStream::connect(address).unwrap();
    let body = main_request("go").to_string();
    write!(open, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    while model.count() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(model);
    let mut answer = String::new();
    let _ = open.read_to_string(&mut answer);
    assert_eq!(answer, "");
    assert!(TcpStream::connect(address).is_err());

    let short = ScriptedModel::start(ModelScript::new([]), Duration::from_millis(20)).unwrap();
    let is_over = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        TcpStream::connect(short.address()).is_err()
    });
    assert!(is_over);
}
