//! Tests of `jackline mcp wrap --url` with remote servers that work, and with servers that fail.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_engine::{CallStatus, EventKind, ToolFinished};
use serde_json::{Value, json};

use crate::mcp_http::{
    McpHttpReply, McpHttpRequest, McpHttpServer, event, reply_json, reply_status, stream,
};
use crate::mcp_support::{WrapProcess, call_request, only_session, result_text};
use crate::support::{CliWorld, JACKLINE};

const RULES: &str = "
version: 1
name: test/mcp
mode: enforce
rules:
  - name: no-secrets
    tool: echo
    when: 'args.text == \"secret\"'
    deny: Secrets are not echoed. Echo something else.
    examples: { deny: [{ text: secret }], allow: [{ text: a }] }
";

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

const PING: &str = r#"{"jsonrpc":"2.0","id":90,"method":"ping"}"#;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn error_kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_default()
}

fn error_message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn finished_statuses(world: &CliWorld) -> Vec<CallStatus> {
    let session = only_session(world);
    world.verify_and_replay(&session);
    let status = |kind: &EventKind| match kind {
        EventKind::ToolFinished(ToolFinished { status, .. }) => Some(*status),
        _ => None,
    };
    world.records(&session).iter().filter_map(|record| status(&record.event.kind)).collect()
}

/// Starts a session with this id.
fn start_session(request: &McpHttpRequest, name: &str) -> Option<McpHttpReply> {
    (request.message()["method"] == "initialize").then(|| {
        let body = request.result_message(&json!({"protocolVersion": "2025-11-25"}));
        let headers = [("content-type", "application/json"), ("Mcp-Session-Id", name)];
        McpHttpReply::Full(200, headers.map(|(key, value)| (key, value.to_owned())).to_vec(), body)
    })
}

#[test]
fn a_denied_call_is_not_sent_to_the_server() {
    let world = CliWorld::new(RULES);
    let server = McpHttpServer::start(|_| None);
    let mut proxy = server.start_proxy(&world, &[]);
    assert_eq!(result_text(&proxy.call_tool(1, "echo", r#"{"text":"a"}"#), 0), "said");
    let refused = proxy.call_tool(2, "echo", r#"{"text":"secret"}"#);
    assert_eq!(refused["result"]["isError"], true);
    assert!(result_text(&refused, 0).contains("Secrets are not echoed"), "{refused}");
    let listed = proxy.request(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    assert_eq!(listed["result"]["tools"][1]["name"], "jackline_page");
    assert_eq!(proxy.disconnect().code, Some(0));
    assert_eq!(server.tool_call_count(), 1);
    assert!(server.requests().iter().all(|request| !request.body.contains("secret")));
    assert_eq!(finished_statuses(&world), [CallStatus::Ok]);
}

#[test]
fn a_message_is_sent_unchanged_and_its_answer_becomes_one_line() {
    let world = CliWorld::new(EMPTY);
    let unusual = r#"{"jsonrpc": "2.0",  "id":"\u0061", "result":{ "x" : 1.0 }}"#;
    let many = "{\"jsonrpc\":\"2.0\",\r\n\"id\":5,\n\n\"result\":{\"y\":2.50}}";
    let lines = "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":6,\ndata:\"result\":{}}\n\n";
    let server = McpHttpServer::start(move |request| {
        match request.message()["id"].as_u64() {
            None if request.message()["method"] == "odd" => Some(reply_json(unusual.to_owned())),
            Some(5) => Some(reply_json(many.to_owned())),
            Some(6) => {
                // A comment, an event of another kind, and a request that the server sends.
                let own = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#;
                let before = format!(": hello\r\n\r\nevent: other\ndata: x\n\n{}", event(own));
                Some(McpHttpReply::Raw(stream(&(before + lines)).into_bytes()))
            }
            _ => None,
        }
    });
    let mut proxy = server.start_proxy(&world, &[]);
    let line = r#"{"jsonrpc" :"2.0","id":"\u0061","method":"odd","params":{"x":1.50}}"#;
    proxy.send(line);
    assert_eq!(proxy.next_line(), unusual);
    proxy.send(r#"{"jsonrpc":"2.0","id":5,"method":"many"}"#);
    assert_eq!(proxy.next_line(), many.replace(['\r', '\n'], " "));
    proxy.send(r#"{"jsonrpc":"2.0","id":6,"method":"lines"}"#);
    assert!(proxy.next_line().contains("sampling/createMessage"));
    assert_eq!(proxy.next_line(), r#"{"jsonrpc":"2.0", "id":6, "result":{}}"#);
    let own = r#"{"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}"#;
    proxy.send(own);
    proxy.request(PING);
    let exit = proxy.disconnect();
    assert_eq!((exit.unread_lines.len(), exit.stderr.as_str()), (0, ""));
    let requests = server.requests();
    assert_eq!((requests[0].body.as_str(), requests[3].body.as_str()), (line, own));
    for request in &requests {
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    }
}

#[test]
fn a_session_id_is_sent_in_every_request_and_the_session_is_deleted() {
    let world = CliWorld::new(EMPTY);
    let noise = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}"#;
    let more = noise.replace('1', "2");
    let opened = AtomicU32::new(0);
    let server = McpHttpServer::start(move |request| {
        if request.verb == "GET" {
            // The stream breaks once, and is resumed at the same event.
            return Some(match opened.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let event = format!("retry: 10\nid: e-1\n{}", event(noise));
                    McpHttpReply::Raw(stream(&event).into_bytes())
                }
                _ => McpHttpReply::Hang(stream(&event(&more))),
            });
        }
        start_session(request, "s-1")
    });
    let mut proxy = server.start_proxy(&world, &["--header", "X-Team: blue"]);
    proxy.request(INITIALIZE);
    proxy.send(INITIALIZED);
    assert_eq!(proxy.next_line(), noise);
    assert!(proxy.next_line().contains("\"n\":2"));
    assert_eq!(result_text(&proxy.call_tool(2, "echo", "{}"), 0), "said");
    assert_eq!(proxy.disconnect().code, Some(0));
    server.wait_for(|request| request.verb == "DELETE");
    let again = server.wait_for(|request| request.header("last-event-id").is_some());
    assert_eq!((again.verb.as_str(), again.header("last-event-id")), ("GET", Some("e-1")));
    for request in server.requests() {
        let first = request.message()["method"] == "initialize";
        let expected = if first { (None, None) } else { (Some("s-1"), Some("2025-11-25")) };
        let headers = (request.header("mcp-session-id"), request.header("mcp-protocol-version"));
        assert_eq!(headers, expected, "{}", request.verb);
        assert_eq!(request.header("mcp-method"), None);
        assert_eq!(request.header("x-team"), Some("blue"));
    }
}

#[test]
fn an_answer_whose_stream_breaks_is_resumed_at_the_last_event() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| {
        if request.is_call_of("slow") {
            let events = "retry: 10\nid: e-7\ndata:\n\ndata: {\"jsonrpc\":";
            return Some(McpHttpReply::Raw(stream(events).into_bytes()));
        }
        if request.verb == "GET" {
            let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
            return Some(McpHttpReply::Hang(stream(&event(answer))));
        }
        start_session(request, "s-1")
    });
    let mut proxy = server.start_proxy(&world, &[]);
    proxy.request(INITIALIZE);
    assert_eq!(proxy.call_tool(2, "slow", "{}")["result"]["content"], json!([]));
    let again = server.wait_for(|request| request.verb == "GET");
    let headers = (again.header("last-event-id"), again.header("mcp-session-id"));
    assert_eq!(headers, (Some("e-7"), Some("s-1")));
    assert_eq!(proxy.disconnect().unread_lines, Vec::<String>::new());
    assert_eq!((server.tool_call_count(), finished_statuses(&world)), (1, vec![CallStatus::Ok]));
}

#[test]
fn a_client_without_a_handshake_gets_the_request_headers_of_its_version() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| {
        let properties = json!({"place": {"type": "string", "x-mcp-header": "Place"}});
        let echo = json!({"name": "echo", "inputSchema": {"properties": properties}});
        let tools = json!({"tools": [echo, {"name": "slow"}]});
        match request.message()["method"].as_str()? {
            "tools/list" => Some(reply_json(request.result_message(&tools))),
            _ => request.is_call_of("slow").then(|| McpHttpReply::Hang(stream(": hello\n\n"))),
        }
    });
    let mut proxy = server.start_proxy(&world, &[]);
    proxy.request(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
    let meta = r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"#;
    let line =
        |id, tool| call_request(id, tool, r#"{"place":"süd"}"#).replace(r#""params":{"#, meta);
    assert_eq!(result_text(&proxy.request(&line(1, "echo")), 0), "said");
    let request = server.wait_for(|request| request.is_call_of("echo"));
    assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(request.header("mcp-method"), Some("tools/call"));
    assert_eq!(request.header("mcp-name"), Some("echo"));
    assert_eq!(request.header("mcp-param-place"), Some("=?base64?c8O8ZA==?="));
    assert_eq!(request.header("mcp-session-id"), None);
    // A request is cancelled by closing the connection, not by a message.
    proxy.send(&line(2, "slow"));
    server.wait_for(|request| request.is_call_of("slow"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert_eq!(proxy.request(PING)["id"], 90);
    assert_eq!(proxy.disconnect().unread_lines, Vec::<String>::new());
    assert!(server.requests().iter().all(|request| request.verb == "POST"));
    assert!(!server.requests().iter().any(|request| request.body.contains("cancelled")));
    assert_eq!(finished_statuses(&world), [CallStatus::Ok, CallStatus::Cancelled]);
}

#[test]
fn an_expired_session_is_gone_now_and_later() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| {
        start_session(request, "s-1")
            .or_else(|| request.is_call_of("late").then(|| reply_status(404)))
    });
    let mut proxy = server.start_proxy(&world, &[]);
    proxy.request(INITIALIZE);
    let expired = proxy.call_tool(2, "late", "{}");
    assert_eq!(error_kind(&expired), "server_gone");
    assert_eq!(expired["error"]["data"]["how"], "its session expired (HTTP status 404)");
    assert_eq!(expired["error"]["data"]["stderr"], Value::Null);
    assert_eq!(error_kind(&proxy.request(PING)), "server_gone");
    proxy.disconnect();
    assert_eq!(server.requests().len(), 2, "an expired session is not deleted");
    assert_eq!(finished_statuses(&world), [CallStatus::Crashed]);
}

#[test]
fn each_failure_has_an_error_kind() {
    let world = CliWorld::new(EMPTY);
    let page =
        || McpHttpReply::Full(200, vec![("content-type", "text/html".to_owned())], "<p>".into());
    let server = McpHttpServer::start(move |request| {
        let head =
            |status: &str, media: &str| format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\n");
        let raw = |text: String| Some(McpHttpReply::Raw(text.into_bytes()));
        match request.message()["params"]["name"].as_str()? {
            "broken" => Some(reply_status(500)),
            "locked" => raw(format!("{}\r\nno: t0ken is bad", head("401 No", "text/plain"))),
            "page" => Some(page()),
            "moved" => raw("HTTP/1.1 307 X\r\nlocation: http://127.0.0.9/?x\r\n\r\n".to_owned()),
            "half" => raw(stream("data: {\"jsonrpc\":")),
            "cut" => {
                raw(format!("{}content-length: 99\r\n\r\n{{", head("200 X", "application/json")))
            }
            "dead" => raw(String::new()),
            "noise" => raw("hello\r\n\r\n".to_owned()),
            "other" => Some(reply_json(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.to_owned())),
            "unknown" => {
                let id = &request.message()["id"];
                let error =
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
                let headers = vec![("content-type", "application/json".to_owned())];
                Some(McpHttpReply::Full(404, headers, error.to_string()))
            }
            _ => None,
        }
    });
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &server.url, "--header-env", "Authorization=TOKEN"]);
    let mut proxy = WrapProcess::spawn(command.env("TOKEN", "Bearer t0ken"));
    let cases = [
        ("broken", "http_error", "HTTP status 500; the call may have run"),
        (
            "locked",
            "http_error",
            "HTTP status 401: no: … is bad; the server requires authentication",
        ),
        ("page", "not_mcp", "answered with `text/html`"),
        ("moved", "server_moved", "redirects to `http://127.0.0.9/`"),
        ("half", "answer_cut", "the stream ended before the answer; the call may have run"),
        ("cut", "answer_cut", "the call may have run"),
        ("dead", "answer_cut", "the call may have run"),
        ("noise", "answer_cut", "the call may have run"),
        ("other", "result_unreadable", "the call may have run"),
    ];
    for (id, (tool, name, fragment)) in (1..).zip(cases) {
        let failed = proxy.call_tool(id, tool, "{}");
        assert_eq!((&failed["id"], error_kind(&failed)), (&json!(id), name), "{failed}");
        assert!(error_message(&failed).contains(fragment), "{failed}");
        assert!(!failed.to_string().contains("t0ken"));
    }
    assert_eq!(
        proxy.call_tool(40, "unknown", "{}")["error"]["code"],
        -32601,
        "the error of the server is passed on"
    );
    assert_eq!(result_text(&proxy.call_tool(41, "echo", "{}"), 0), "said", "the next call works");
    assert!(!proxy.disconnect().stderr.contains("t0ken"));
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer t0ken"));
    let mut statuses = vec![CallStatus::Error; cases.len() + 1];
    statuses.push(CallStatus::Ok);
    assert_eq!(finished_statuses(&world), statuses);
    let journal = fs::read_to_string(world.journal_path(&only_session(&world))).unwrap();
    assert!(!journal.contains("t0ken"));
}

#[test]
fn an_unreachable_server_may_become_reachable_later() {
    let world = CliWorld::new(EMPTY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &format!("http://{address}/mcp?key=hidden")]);
    let mut proxy = WrapProcess::spawn(&mut command);
    let failed = proxy.call_tool(1, "echo", "{}");
    assert_eq!(error_kind(&failed), "server_unreachable");
    let expected = format!("the MCP server at http://{address}/mcp can't be reached: ");
    assert!(error_message(&failed).contains(&expected), "{failed}");
    assert!(error_message(&failed).contains("was not sent"), "{failed}");
    assert!(!failed.to_string().contains("hidden"));
    assert_eq!(proxy.disconnect().code, Some(0));
}

#[test]
fn a_server_without_a_certificate_gets_no_request() {
    let world = CliWorld::new(EMPTY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &url]);
    let mut proxy = WrapProcess::spawn(&mut command);
    let failed = proxy.call_tool(1, "echo", "{}");
    assert_eq!(error_kind(&failed), "server_unreachable", "{failed}");
    assert!(error_message(&failed).contains("no secure connection"), "{failed}");
    proxy.disconnect();
}

#[test]
fn a_server_that_hangs_is_timed_out_and_gets_a_cancellation() {
    let world = CliWorld::new(EMPTY);
    let server =
        McpHttpServer::start(|request| match request.message()["params"]["name"].as_str()? {
            "hang" => Some(McpHttpReply::Hang(String::new())),
            "stream" => Some(McpHttpReply::Hang(stream(": hello\n\n"))),
            _ => None,
        });
    let mut proxy = server.start_proxy(&world, &["--timeout", "1"]);
    for (id, tool) in [(1, "hang"), (2, "stream")] {
        assert_eq!(error_kind(&proxy.call_tool(id, tool, "{}")), "timeout");
        let cancellation = server.wait_for(|request| {
            let message = request.message();
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == id
        });
        assert_eq!(cancellation.verb, "POST");
    }
    assert_eq!(result_text(&proxy.call_tool(3, "echo", "{}"), 0), "said");
    proxy.disconnect();
    assert_eq!(
        finished_statuses(&world),
        [CallStatus::Timeout, CallStatus::Timeout, CallStatus::Ok]
    );
}

#[test]
fn an_answer_of_70_mb_is_an_error_for_the_request() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| {
        let flood = || request.text_result(&"x".repeat(70_000_000));
        match request.message()["params"]["name"].as_str()? {
            "whole" => Some(reply_json(flood())),
            "event" => Some(McpHttpReply::Raw(stream(&event(&flood())).into_bytes())),
            _ => None,
        }
    });
    let mut proxy = server.start_proxy(&world, &[]);
    for (id, tool) in [(1, "whole"), (2, "event")] {
        let failed = proxy.call_tool(id, tool, "{}");
        assert_eq!((&failed["id"], error_kind(&failed)), (&json!(id), "result_too_long"));
        assert!(error_message(&failed).contains(" 70000"), "{failed}");
    }
    assert_eq!(result_text(&proxy.call_tool(3, "echo", "{}"), 0), "said");
    proxy.disconnect();
}

#[test]
fn a_long_result_is_split_into_pages_and_a_changed_tool_is_reported() {
    let world = CliWorld::new(EMPTY);
    let whole = "Grüße\n".repeat(50_000);
    let (long, lists) = (whole.clone(), AtomicU32::new(0));
    let server = McpHttpServer::start(move |request| {
        if request.is_call_of("show") {
            return Some(McpHttpReply::Raw(
                stream(&event(&request.text_result(&long))).into_bytes(),
            ));
        }
        let lists = (request.message()["method"] == "tools/list")
            .then(|| lists.fetch_add(1, Ordering::Relaxed))?;
        let tools = json!({"tools": [{"name": "show", "description": lists.to_string()}]});
        Some(reply_json(request.result_message(&tools)))
    });
    for run in 0..2 {
        let mut proxy = server.start_proxy(&world, &[]);
        proxy.request(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let mut answer = proxy.call_tool(2, "show", "{}");
        let (mut received, mut id) = (String::new(), 2);
        loop {
            received.push_str(result_text(&answer, 0));
            let next = &answer["result"]["_meta"]["jackline/page"]["next_cursor"];
            let Some(cursor) = next.as_str() else { break };
            id += 1;
            answer = proxy.call_tool(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        }
        assert!(received == whole, "{} and {} bytes", received.len(), whole.len());
        let exit = proxy.disconnect();
        assert_eq!(
            exit.stderr.contains("show"),
            run == 1,
            "the changed tool is named: {}",
            exit.stderr
        );
    }
    assert_eq!(server.tool_call_count(), 2, "a page is answered by the proxy");
}

/// A proxy in front of an address that an environment variable contains.
fn proxy_with_url_variable(
    world: &CliWorld,
    url: &str,
    more: &[(&str, &str)],
    options: &[&str],
) -> WrapProcess {
    let mut command = world.command(JACKLINE);
    command.env("MCP_URL", url).envs(more.iter().copied());
    WrapProcess::spawn(command.args(["mcp", "wrap", "--url-env", "MCP_URL"]).args(options))
}

#[test]
fn an_address_from_a_variable_is_not_shown() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| match request.message()["method"].as_str()? {
        "moved" => {
            let location = "https://example.org/s3cret-path/mcp/".to_owned();
            Some(McpHttpReply::Full(307, vec![("location", location)], String::new()))
        }
        "broken" => {
            let plain = vec![("content-type", "text/plain".to_owned())];
            Some(McpHttpReply::Full(404, plain, "no /s3cret-path/mcp, nor s3cret-path".to_owned()))
        }
        "empty" => Some(McpHttpReply::Full(200, Vec::new(), String::new())),
        _ => None,
    });
    let host = server.url.strip_suffix("/mcp").unwrap().to_owned();
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut output = String::new();
    for (method, host, expected) in [
        ("moved", host.clone(), "server_moved"),
        ("broken", host.clone(), "http_error"),
        ("empty", host.clone(), "not_mcp"),
        ("any", format!("http://{unreachable}"), "server_unreachable"),
        ("tools/list", host, ""),
    ] {
        let mut proxy =
            proxy_with_url_variable(&world, &format!("{host}/s3cret-path/mcp"), &[], &[]);
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let answer = proxy.request(&request.to_string());
        assert_eq!(error_kind(&answer), expected, "{answer}");
        let is_named = error_message(&answer).contains(&format!("{host}/…"));
        assert!(expected.is_empty() || is_named, "{answer}");
        proxy.send(r#"{"jsonrpc":"2.0","method":"broken"}"#);
        let exit = proxy.disconnect();
        output = [output, answer.to_string(), exit.unread_lines.concat(), exit.stderr].concat();
    }
    let pins: Vec<_> = fs::read_dir(world.home().join("pins")).unwrap().collect();
    assert_eq!(pins.len(), 1);
    output += &fs::read_to_string(pins[0].as_ref().unwrap().path()).unwrap();
    assert!(output.contains("echo") && !output.contains("s3cret"), "{output}");
}

#[test]
fn a_header_with_an_empty_variable_is_not_sent() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|_| None);
    let options = ["--header-env", "X-None=NONE", "--header-env", "X-Some=SOME"];
    let mut proxy =
        proxy_with_url_variable(&world, &server.url, &[("NONE", ""), ("SOME", "some")], &options);
    assert_eq!(result_text(&proxy.call_tool(1, "echo", "{}"), 0), "said");
    assert_eq!(proxy.disconnect().code, Some(0));
    let request = server.wait_for(|request| request.is_call_of("echo"));
    assert_eq!((request.header("x-none"), request.header("x-some")), (None, Some("some")));
    let exit = proxy_with_url_variable(&world, &server.url, &[("NONE", "")], &options).disconnect();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.contains("`X-Some` is not set"), "{}", exit.stderr);
}

#[test]
fn parallel_requests_are_answered_and_too_many_are_refused() {
    let world = CliWorld::new(EMPTY);
    let server = McpHttpServer::start(|request| {
        request.is_call_of("hang").then(|| McpHttpReply::Hang(stream(": hello\n\n")))
    });
    let mut proxy = server.start_proxy(&world, &["--timeout", "20"]);
    let calls = 32 + 64 + 10;
    (1..=calls).for_each(|id| proxy.send(&call_request(id, "hang", "{}")));
    let busy: Vec<Value> =
        (0..10).map(|_| serde_json::from_str(&proxy.next_line()).unwrap()).collect();
    assert!(busy.iter().all(|answer| error_kind(answer) == "too_many_requests"), "{busy:?}");
    assert!(server.tool_call_count() <= 32);
    // A cancelled request makes room for another one.
    for id in 1..=32 {
        let params = format!(r#"{{"requestId":{id}}}"#);
        proxy.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ));
    }
    server.wait_for(|request| request.message()["id"] == 40);
    proxy.disconnect();
}

#[test]
fn invalid_options_are_refused_before_a_server_is_started() {
    let world = CliWorld::new(EMPTY);
    let wrap = |args: &[&str]| world.jackline(&[&["mcp", "wrap"], args].concat());
    for (args, fragment) in [
        (&[] as &[&str], "--url <URL>|--url-env <VARIABLE>|CMD"),
        (&["--url", "https://example.org", "--", "x"], "cannot be used with"),
        (&["--header", "A: b", "--", "x"], "cannot be used with"),
        (&["--url", "http://example.org/mcp?k=t0ken"], "add `--insecure-http`"),
        (&["--url", "https://me:t0ken@example.org"], "--header-env"),
        (&["--url", "nonsense"], "https://HOST/PATH"),
        (&["--url", "https://example.org", "--header", "t0ken"], "Name: value"),
        (&["--url", "https://example.org", "--header", "Host: t0ken"], "the proxy itself"),
        (&["--url", "https://example.org", "--header-env", "A=T0KEN"], "`A` is not set"),
        (&["--url-env", "T0KEN"], "from `--url-env` is not set"),
    ] {
        let run = wrap(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(fragment), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.to_lowercase().contains("t0ken"), "{args:?}: {}", run.stderr);
    }
}
