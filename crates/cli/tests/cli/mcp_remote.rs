//! `jackline mcp wrap --url`: a server elsewhere, as it should be, and as it should not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_engine::{EventKind, Status, ToolFinished};
use serde_json::{Value, json};

use crate::mcp_http::{Asked, Http, Reply, event, reply_json, reply_status, stream};
use crate::mcp_support::{Proxy, call, session, text};
use crate::support::{JACKLINE, World};

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

fn kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_default()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn ended(world: &World) -> Vec<Status> {
    let session = session(world);
    world.prove(&session);
    let status = |kind: &EventKind| match kind {
        EventKind::ToolFinished(ToolFinished { status, .. }) => Some(*status),
        _ => None,
    };
    world.records(&session).iter().filter_map(|record| status(&record.event.kind)).collect()
}

/// Begins a session with this name.
fn begins(asked: &Asked, name: &str) -> Option<Reply> {
    (asked.message()["method"] == "initialize").then(|| {
        let body = asked.answer(&json!({"protocolVersion": "2025-11-25"}));
        let headers = [("content-type", "application/json"), ("Mcp-Session-Id", name)];
        Reply::Whole(200, headers.map(|(key, value)| (key, value.to_owned())).to_vec(), body)
    })
}

#[test]
fn a_call_is_decided_on_and_what_is_refused_is_never_posted() {
    let world = World::new(RULES);
    let server = Http::start(|_| None);
    let mut proxy = server.proxy(&world, &[]);
    assert_eq!(text(&proxy.call(1, "echo", r#"{"text":"a"}"#), 0), "said");
    let refused = proxy.call(2, "echo", r#"{"text":"secret"}"#);
    assert_eq!(refused["result"]["isError"], true);
    assert!(text(&refused, 0).contains("Secrets are not echoed"), "{refused}");
    let listed = proxy.ask(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    assert_eq!(listed["result"]["tools"][1]["name"], "jackline_page");
    assert_eq!(proxy.leave().code, Some(0));
    assert_eq!(server.calls(), 1);
    assert!(server.seen().iter().all(|asked| !asked.body.contains("secret")));
    assert_eq!(ended(&world), [Status::Ok]);
}

#[test]
fn a_line_is_posted_as_it_is_and_what_comes_back_is_one_line() {
    let world = World::new(EMPTY);
    let odd = r#"{"jsonrpc": "2.0",  "id":"\u0061", "result":{ "x" : 1.0 }}"#;
    let many = "{\"jsonrpc\":\"2.0\",\r\n\"id\":5,\n\n\"result\":{\"y\":2.50}}";
    let lines = "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":6,\ndata:\"result\":{}}\n\n";
    let server = Http::start(move |asked| {
        match asked.message()["id"].as_u64() {
            None if asked.message()["method"] == "odd" => Some(reply_json(odd.to_owned())),
            Some(5) => Some(reply_json(many.to_owned())),
            Some(6) => {
                // A comment, a request of the server's own, an event of another kind.
                let own = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#;
                let before = format!(": hello\r\n\r\nevent: other\ndata: x\n\n{}", event(own));
                Some(Reply::Raw(stream(&(before + lines)).into_bytes()))
            }
            _ => None,
        }
    });
    let mut proxy = server.proxy(&world, &[]);
    let line = r#"{"jsonrpc" :"2.0","id":"\u0061","method":"odd","params":{"x":1.50}}"#;
    proxy.send(line);
    assert_eq!(proxy.line(), odd);
    proxy.send(r#"{"jsonrpc":"2.0","id":5,"method":"many"}"#);
    assert_eq!(proxy.line(), many.replace(['\r', '\n'], " "));
    proxy.send(r#"{"jsonrpc":"2.0","id":6,"method":"lines"}"#);
    assert!(proxy.line().contains("sampling/createMessage"));
    assert_eq!(proxy.line(), r#"{"jsonrpc":"2.0", "id":6, "result":{}}"#);
    let own = r#"{"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}"#;
    proxy.send(own);
    proxy.ask(PING);
    let left = proxy.leave();
    assert_eq!((left.lines.len(), left.stderr.as_str()), (0, ""));
    let seen = server.seen();
    assert_eq!((seen[0].body.as_str(), seen[3].body.as_str()), (line, own));
    for asked in &seen {
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
    }
}

#[test]
fn a_session_is_named_in_every_request_and_ended_at_the_end() {
    let world = World::new(EMPTY);
    let noise = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}"#;
    let more = noise.replace('1', "2");
    let opened = AtomicU32::new(0);
    let server = Http::start(move |asked| {
        if asked.verb == "GET" {
            // The stream breaks once, and is taken up again where it was.
            return Some(match opened.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let event = format!("retry: 10\nid: e-1\n{}", event(noise));
                    Reply::Raw(stream(&event).into_bytes())
                }
                _ => Reply::Hang(stream(&event(&more))),
            });
        }
        begins(asked, "s-1")
    });
    let mut proxy = server.proxy(&world, &["--header", "X-Team: blue"]);
    proxy.ask(INITIALIZE);
    proxy.send(INITIALIZED);
    assert_eq!(proxy.line(), noise);
    assert!(proxy.line().contains("\"n\":2"));
    assert_eq!(text(&proxy.call(2, "echo", "{}"), 0), "said");
    assert_eq!(proxy.leave().code, Some(0));
    server.wait(|asked| asked.verb == "DELETE");
    let again = server.wait(|asked| asked.header("last-event-id").is_some());
    assert_eq!((again.verb.as_str(), again.header("last-event-id")), ("GET", Some("e-1")));
    for asked in server.seen() {
        let first = asked.message()["method"] == "initialize";
        let expected = if first { (None, None) } else { (Some("s-1"), Some("2025-11-25")) };
        let headers = (asked.header("mcp-session-id"), asked.header("mcp-protocol-version"));
        assert_eq!(headers, expected, "{}", asked.verb);
        assert_eq!(asked.header("mcp-method"), None);
        assert_eq!(asked.header("x-team"), Some("blue"));
    }
}

#[test]
fn an_answer_whose_stream_breaks_is_fetched_where_the_server_says() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| {
        if asked.calls("slow") {
            let events = "retry: 10\nid: e-7\ndata:\n\ndata: {\"jsonrpc\":";
            return Some(Reply::Raw(stream(events).into_bytes()));
        }
        if asked.verb == "GET" {
            let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
            return Some(Reply::Hang(stream(&event(answer))));
        }
        begins(asked, "s-1")
    });
    let mut proxy = server.proxy(&world, &[]);
    proxy.ask(INITIALIZE);
    assert_eq!(proxy.call(2, "slow", "{}")["result"]["content"], json!([]));
    let again = server.wait(|asked| asked.verb == "GET");
    let headers = (again.header("last-event-id"), again.header("mcp-session-id"));
    assert_eq!(headers, (Some("e-7"), Some("s-1")));
    assert_eq!(proxy.leave().lines, Vec::<String>::new());
    assert_eq!((server.calls(), ended(&world)), (1, vec![Status::Ok]));
}

#[test]
fn a_client_without_a_handshake_is_repeated_in_headers() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| {
        let place = json!({"place": {"type": "string", "x-mcp-header": "Place"}});
        let tools = json!({"tools": [{"name": "echo", "inputSchema": {"properties": place}}]});
        match asked.message()["method"].as_str()? {
            "tools/list" => Some(reply_json(asked.answer(&tools))),
            _ => asked.calls("slow").then(|| Reply::Hang(stream(": hello\n\n"))),
        }
    });
    let mut proxy = server.proxy(&world, &[]);
    proxy.ask(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#);
    let meta = r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"#;
    let line = |id, tool| call(id, tool, r#"{"place":"süd"}"#).replace(r#""params":{"#, meta);
    assert_eq!(text(&proxy.ask(&line(1, "echo")), 0), "said");
    let asked = server.wait(|asked| asked.calls("echo"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-method"), Some("tools/call"));
    assert_eq!(asked.header("mcp-name"), Some("echo"));
    assert_eq!(asked.header("mcp-param-place"), Some("=?base64?c8O8ZA==?="));
    assert_eq!(asked.header("mcp-session-id"), None);
    // The end of the connection takes a request back, and nothing else does.
    proxy.send(&line(2, "slow"));
    server.wait(|asked| asked.calls("slow"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert_eq!(proxy.ask(PING)["id"], 90);
    assert_eq!(proxy.leave().lines, Vec::<String>::new());
    assert!(server.seen().iter().all(|asked| asked.verb == "POST"));
    assert!(!server.seen().iter().any(|asked| asked.body.contains("cancelled")));
    assert_eq!(ended(&world), [Status::Ok, Status::Cancelled]);
}

#[test]
fn a_session_that_has_expired_is_gone_now_and_later() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| {
        begins(asked, "s-1").or_else(|| asked.calls("late").then(|| reply_status(404)))
    });
    let mut proxy = server.proxy(&world, &[]);
    proxy.ask(INITIALIZE);
    let gone = proxy.call(2, "late", "{}");
    assert_eq!(kind(&gone), "server_gone");
    assert_eq!(gone["error"]["data"]["how"], "its session has expired (HTTP status 404)");
    assert_eq!(gone["error"]["data"]["stderr"], Value::Null);
    assert_eq!(kind(&proxy.ask(PING)), "server_gone");
    proxy.leave();
    assert_eq!(server.seen().len(), 2, "what is not known any more is not ended");
    assert_eq!(ended(&world), [Status::Crashed]);
}

#[test]
fn what_goes_wrong_has_a_name() {
    let world = World::new(EMPTY);
    let page = || Reply::Whole(200, vec![("content-type", "text/html".to_owned())], "<p>".into());
    let server = Http::start(move |asked| {
        let head =
            |status: &str, media: &str| format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\n");
        let raw = |text: String| Some(Reply::Raw(text.into_bytes()));
        match asked.message()["params"]["name"].as_str()? {
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
                let id = &asked.message()["id"];
                let error =
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
                let headers = vec![("content-type", "application/json".to_owned())];
                Some(Reply::Whole(404, headers, error.to_string()))
            }
            _ => None,
        }
    });
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &server.url, "--header-env", "Authorization=TOKEN"]);
    let mut proxy = Proxy::spawn(command.env("TOKEN", "Bearer t0ken"));
    let cases = [
        ("broken", "http_error", "HTTP status 500; the call may have run"),
        ("locked", "http_error", "HTTP status 401: no: … is bad; it wants to know who asks"),
        ("page", "not_mcp", "answered with `text/html`"),
        ("moved", "server_moved", "sends its clients to `http://127.0.0.9/`"),
        ("half", "answer_cut", "the stream ended before the answer; the call may have run"),
        ("cut", "answer_cut", "the call may have run"),
        ("dead", "answer_cut", "the call may have run"),
        ("noise", "answer_cut", "the call may have run"),
        ("other", "result_unreadable", "the call may have run"),
    ];
    for (id, (tool, name, words)) in (1..).zip(cases) {
        let failed = proxy.call(id, tool, "{}");
        assert_eq!((&failed["id"], kind(&failed)), (&json!(id), name), "{failed}");
        assert!(message(&failed).contains(words), "{failed}");
        assert!(!failed.to_string().contains("t0ken"));
    }
    assert_eq!(proxy.call(40, "unknown", "{}")["error"]["code"], -32601, "in its own words");
    assert_eq!(text(&proxy.call(41, "echo", "{}"), 0), "said", "the next one is as good as new");
    assert!(!proxy.leave().stderr.contains("t0ken"));
    assert_eq!(server.seen()[0].header("authorization"), Some("Bearer t0ken"));
    let mut statuses = vec![Status::Error; cases.len() + 1];
    statuses.push(Status::Ok);
    assert_eq!(ended(&world), statuses);
    let journal = fs::read_to_string(world.journal(&session(&world))).unwrap();
    assert!(!journal.contains("t0ken"));
}

#[test]
fn a_server_that_is_not_there_may_be_there_later() {
    let world = World::new(EMPTY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    drop(listener);
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &format!("http://{place}/mcp?key=hidden")]);
    let mut proxy = Proxy::spawn(&mut command);
    let failed = proxy.call(1, "echo", "{}");
    assert_eq!(kind(&failed), "server_unreachable");
    let words = format!("the MCP server at http://{place}/mcp can't be reached: ");
    assert!(message(&failed).contains(&words), "{failed}");
    assert!(message(&failed).contains("was not sent"), "{failed}");
    assert!(!failed.to_string().contains("hidden"));
    assert_eq!(proxy.leave().code, Some(0));
}

#[test]
fn a_server_without_a_certificate_is_not_spoken_to() {
    let world = World::new(EMPTY);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &url]);
    let mut proxy = Proxy::spawn(&mut command);
    let failed = proxy.call(1, "echo", "{}");
    assert_eq!(kind(&failed), "server_unreachable", "{failed}");
    assert!(message(&failed).contains("no safe connection"), "{failed}");
    proxy.leave();
}

#[test]
fn a_server_that_hangs_is_waited_for_so_long_and_told() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| match asked.message()["params"]["name"].as_str()? {
        "hang" => Some(Reply::Hang(String::new())),
        "stream" => Some(Reply::Hang(stream(": hello\n\n"))),
        _ => None,
    });
    let mut proxy = server.proxy(&world, &["--timeout", "1"]);
    for (id, tool) in [(1, "hang"), (2, "stream")] {
        assert_eq!(kind(&proxy.call(id, tool, "{}")), "timeout");
        let told = server.wait(|asked| {
            let message = asked.message();
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == id
        });
        assert_eq!(told.verb, "POST");
    }
    assert_eq!(text(&proxy.call(3, "echo", "{}"), 0), "said");
    proxy.leave();
    assert_eq!(ended(&world), [Status::Timeout, Status::Timeout, Status::Ok]);
}

#[test]
fn an_answer_of_70_mb_is_an_error_for_whoever_asked() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| {
        let flood = || asked.text(&"x".repeat(70_000_000));
        match asked.message()["params"]["name"].as_str()? {
            "whole" => Some(reply_json(flood())),
            "event" => Some(Reply::Raw(stream(&event(&flood())).into_bytes())),
            _ => None,
        }
    });
    let mut proxy = server.proxy(&world, &[]);
    for (id, tool) in [(1, "whole"), (2, "event")] {
        let failed = proxy.call(id, tool, "{}");
        assert_eq!((&failed["id"], kind(&failed)), (&json!(id), "result_too_long"));
        assert!(message(&failed).contains(" 70000"), "{failed}");
    }
    assert_eq!(text(&proxy.call(3, "echo", "{}"), 0), "said");
    proxy.leave();
}

#[test]
fn a_long_result_comes_in_pages_and_a_tool_that_changes_is_noticed() {
    let world = World::new(EMPTY);
    let whole = "Grüße\n".repeat(50_000);
    let (long, lists) = (whole.clone(), AtomicU32::new(0));
    let server = Http::start(move |asked| {
        if asked.calls("show") {
            return Some(Reply::Raw(stream(&event(&asked.text(&long))).into_bytes()));
        }
        let lists = (asked.message()["method"] == "tools/list")
            .then(|| lists.fetch_add(1, Ordering::Relaxed))?;
        let tools = json!({"tools": [{"name": "show", "description": lists.to_string()}]});
        Some(reply_json(asked.answer(&tools)))
    });
    for run in 0..2 {
        let mut proxy = server.proxy(&world, &[]);
        proxy.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let mut answer = proxy.call(2, "show", "{}");
        let (mut got, mut id) = (String::new(), 2);
        loop {
            got.push_str(text(&answer, 0));
            let next = &answer["result"]["_meta"]["jackline/page"]["next_cursor"];
            let Some(cursor) = next.as_str() else { break };
            id += 1;
            answer = proxy.call(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        }
        assert!(got == whole, "{} and {} bytes", got.len(), whole.len());
        let left = proxy.leave();
        assert_eq!(left.stderr.contains("show"), run == 1, "by its address: {}", left.stderr);
    }
    assert_eq!(server.calls(), 2, "to turn a page asks nobody");
}

/// A proxy before an address that a variable names.
fn by_variable(world: &World, url: &str, more: &[(&str, &str)], options: &[&str]) -> Proxy {
    let mut command = world.command(JACKLINE);
    command.env("MCP_URL", url).envs(more.iter().copied());
    Proxy::spawn(command.args(["mcp", "wrap", "--url-env", "MCP_URL"]).args(options))
}

#[test]
fn an_address_that_a_variable_names_is_shown_to_nobody() {
    let world = World::new(EMPTY);
    let server = Http::start(|asked| match asked.message()["method"].as_str()? {
        "moved" => {
            let to = "https://example.org/s3cret-path/mcp/".to_owned();
            Some(Reply::Whole(307, vec![("location", to)], String::new()))
        }
        "broken" => {
            let plain = vec![("content-type", "text/plain".to_owned())];
            Some(Reply::Whole(404, plain, "no /s3cret-path/mcp, nor s3cret-path".to_owned()))
        }
        "odd" => Some(Reply::Whole(200, Vec::new(), String::new())),
        _ => None,
    });
    let host = server.url.strip_suffix("/mcp").unwrap().to_owned();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut said = String::new();
    for (method, host, expected) in [
        ("moved", host.clone(), "server_moved"),
        ("broken", host.clone(), "http_error"),
        ("odd", host.clone(), "not_mcp"),
        ("any", format!("http://{gone}"), "server_unreachable"),
        ("tools/list", host, ""),
    ] {
        let mut proxy = by_variable(&world, &format!("{host}/s3cret-path/mcp"), &[], &[]);
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        let answer = proxy.ask(&asked.to_string());
        assert_eq!(kind(&answer), expected, "{answer}");
        let shows = message(&answer).contains(&format!("{host}/…"));
        assert!(expected.is_empty() || shows, "{answer}");
        proxy.send(r#"{"jsonrpc":"2.0","method":"broken"}"#);
        let left = proxy.leave();
        said = [said, answer.to_string(), left.lines.concat(), left.stderr].concat();
    }
    let pins: Vec<_> = fs::read_dir(world.home().join("pins")).unwrap().collect();
    assert_eq!(pins.len(), 1);
    said += &fs::read_to_string(pins[0].as_ref().unwrap().path()).unwrap();
    assert!(said.contains("echo") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_header_whose_variable_says_nothing_is_not_sent() {
    let world = World::new(EMPTY);
    let server = Http::start(|_| None);
    let options = ["--header-env", "X-None=NONE", "--header-env", "X-Some=SOME"];
    let mut proxy = by_variable(&world, &server.url, &[("NONE", ""), ("SOME", "some")], &options);
    assert_eq!(text(&proxy.call(1, "echo", "{}"), 0), "said");
    assert_eq!(proxy.leave().code, Some(0));
    let asked = server.wait(|asked| asked.calls("echo"));
    assert_eq!((asked.header("x-none"), asked.header("x-some")), (None, Some("some")));
    let left = by_variable(&world, &server.url, &[("NONE", "")], &options).leave();
    assert_eq!(left.code, Some(2));
    assert!(left.stderr.contains("`X-Some` is not set"), "{}", left.stderr);
}

#[test]
fn many_at_once_are_answered_and_too_many_are_told_so() {
    let world = World::new(EMPTY);
    let server =
        Http::start(|asked| asked.calls("hang").then(|| Reply::Hang(stream(": hello\n\n"))));
    let mut proxy = server.proxy(&world, &["--timeout", "20"]);
    let calls = 32 + 64 + 10;
    (1..=calls).for_each(|id| proxy.send(&call(id, "hang", "{}")));
    let busy: Vec<Value> = (0..10).map(|_| serde_json::from_str(&proxy.line()).unwrap()).collect();
    assert!(busy.iter().all(|answer| kind(answer) == "too_many_requests"), "{busy:?}");
    assert!(server.calls() <= 32);
    // One that is taken back makes room.
    for id in 1..=32 {
        let params = format!(r#"{{"requestId":{id}}}"#);
        proxy.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ));
    }
    server.wait(|asked| asked.message()["id"] == 40);
    proxy.leave();
}

#[test]
fn what_is_not_said_clearly_is_not_begun() {
    let world = World::new(EMPTY);
    let wrap = |args: &[&str]| world.jackline(&[&["mcp", "wrap"], args].concat());
    for (args, words) in [
        (&[] as &[&str], "--url <URL>|--url-env <VARIABLE>|CMD"),
        (&["--url", "https://example.org", "--", "x"], "cannot be used with"),
        (&["--header", "A: b", "--", "x"], "cannot be used with"),
        (&["--url", "http://example.org/mcp?k=t0ken"], "add `--insecure-http`"),
        (&["--url", "https://me:t0ken@example.org"], "--header-env"),
        (&["--url", "nonsense"], "https://HOST/PATH"),
        (&["--url", "https://example.org", "--header", "t0ken"], "Name: value"),
        (&["--url", "https://example.org", "--header", "Host: t0ken"], "the proxy itself"),
        (&["--url", "https://example.org", "--header-env", "A=T0KEN"], "`A` is not set"),
        (&["--url-env", "T0KEN"], "`--url-env` names is not set"),
    ] {
        let run = wrap(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.to_lowercase().contains("t0ken"), "{args:?}: {}", run.stderr);
    }
}
