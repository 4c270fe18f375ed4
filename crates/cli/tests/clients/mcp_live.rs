//! Tests of the real client with MCP servers: servers behind the guard, and the server of the guard
//! itself.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use jackline_model::scripted::{ModelScript, RecordedToolResult, ScriptStep};
use serde_json::{Value, json};

use crate::mcp::mcp_modules;
use crate::world::{ClientWorld, JACKLINE, describe_outcome};

const KEEP_RULE: &str = "
rules:
  - name: keep
    tool: write_file
    when: 'args.path.endsWith(\"keep.txt\")'
    deny: This file must not change. Write another one.
    examples: { deny: [{ path: /a/keep.txt }], allow: [{ path: /a/b }] }
";

/// How many bytes of a text one page shows at most.
const PAGE_BYTES: usize = 31_744;

/// The number of lines that a read shows at once.
const READ_LINES: usize = 500;

/// Configures the client to start a server from npm, and wraps it. Returns the original
/// configuration.
fn wrap_server(world: &ClientWorld, name: &str, package: &str, about: &str) -> String {
    let server = format!("node_modules/@modelcontextprotocol/{package}/dist/index.js");
    let args = json!([mcp_modules().join(server), about]);
    let servers = json!({ "mcpServers": { name: { "command": "node", "args": args } } });
    world.scratch.write(".mcp.json", &servers.to_string()).unwrap();
    world.run_as_person(&["init", "--mcp", "--shared", "--yes"]);
    servers.to_string()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect::<Vec<String>>().concat()
}

/// Splits a text after the last whole line within the limit. The first part is the one that is
/// shown.
fn split_at_line(whole: &str, bytes_max: usize) -> (&str, &str) {
    whole.split_at(whole.get(..bytes_max).unwrap().rfind('\n').unwrap() + 1)
}

/// Returns both ends of a long result for an assertion message.
fn text_ends(result: &RecordedToolResult) -> String {
    let text = &result.text;
    let tail = text.char_indices().rev().nth(600).and_then(|(at, _)| text.get(at..));
    format!("{text:.600} … {}", tail.unwrap_or(text))
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_wrapped_server_is_guarded_and_a_long_result_is_split_into_pages() {
    let world = ClientWorld::new(KEEP_RULE);
    let whole = lines(400_000, |n| format!("line {n}\n"));
    world.scratch.write("files/long.txt", &whole).unwrap();
    let files = world.scratch.work().join("files");
    let at = |name: &str| files.join(name).display().to_string();
    let before = wrap_server(&world, "files", "server-filesystem", files.to_str().unwrap());
    // A read is cut by lines too.
    let (shown, rest) = whole.split_at(lines(READ_LINES, |n| format!("line {n}\n")).len());
    let cursor = format!("1-{}", shown.len());
    let write = |path: String| {
        ScriptStep::call("mcp__files__write_file", json!({ "path": path, "content": "x" }))
    };
    let seen = world.play_with_servers(
        "mcp__files",
        ModelScript::new([
            write(at("new.txt")),
            write(at("keep.txt")),
            ScriptStep::call("mcp__files__read_text_file", json!({ "path": at("long.txt") })),
            ScriptStep::call("mcp__files__jackline_page", json!({ "cursor": &cursor })),
        ]),
    );
    let results = seen.tool_results(None);
    let [written, denied, first, second] = results.as_slice() else {
        panic!("{}", describe_outcome(&seen))
    };
    assert!(!written.is_error && world.scratch.has_path("files/new.txt"), "{written:?}");
    assert!(denied.is_error && !world.scratch.has_path("files/keep.txt"), "{denied:?}");
    assert!(denied.text.contains("This file must not change. Write another one."), "{denied:?}");
    // The client shows structured content as JSON, and does not show the text next to it.
    let as_json = json!(shown).to_string();
    let as_json = as_json.trim_end_matches('"');
    assert!(!first.is_error && first.text.contains(as_json), "{}", text_ends(first));
    assert!(first.text.contains(&format!("{as_json}\\n[jackline: cut")), "{}", text_ends(first));
    assert!(first.text.contains(&cursor), "{}", text_ends(first));
    let two_pages = lines(2 * READ_LINES, |n| format!("line {n}\n")).len();
    let (page, _) = rest.split_at(two_pages - shown.len());
    assert!(!second.is_error && second.text.contains(page), "{}", text_ends(second));
    assert!(!seen.showed_model("line 100000"), "the rest of the text must not reach the model");

    // There is one session of the client. The session of the proxy is a part of it.
    let status = world.status();
    let parts = status.get("parts").and_then(Value::as_array).map(Vec::len);
    assert_eq!(parts, Some(1), "{status}");
    // Both sessions count every call once. Only the proxy denies: its session has the tool name
    // that the rule uses.
    let counted = |status: &Value| {
        let count = |name: &str| status.pointer(&format!("/summary/invocations/{name}")).cloned();
        [count("proposed"), count("denied")].map(Option::unwrap_or_default)
    };
    let part = status.pointer("/parts/0").and_then(Value::as_str).unwrap();
    let proxy_status = world.status_of(part);
    assert_eq!(counted(&proxy_status), [json!(4), json!(1)], "{proxy_status}");
    assert_eq!(counted(&status), [json!(4), json!(0)], "{status}");
    world.verify_and_replay();

    world.run_as_person(&["init", "--mcp", "--shared", "--uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(world.scratch.work().join(".mcp.json")).unwrap(), before);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn pages_are_short_enough_for_the_client() {
    let world = ClientWorld::new("");
    wrap_server(&world, "all", "server-everything", "stdio");
    let message = lines(12_000, |n| format!("\"{n}\"\n"));
    let whole = format!("Echo: {message}");
    let (shown, rest) = split_at_line(&whole, PAGE_BYTES);
    let cursor = format!("1-{}", shown.len());
    let seen = world.play_with_servers(
        "mcp__all",
        ModelScript::new([
            ScriptStep::call("mcp__all__echo", json!({ "message": message })),
            ScriptStep::call("mcp__all__jackline_page", json!({ "cursor": cursor })),
        ]),
    );
    let results = seen.tool_results(None);
    let [first, second] = results.as_slice() else { panic!("{}", describe_outcome(&seen)) };
    assert!(first.text.contains(shown) && first.text.contains(&cursor), "{}", text_ends(first));
    assert!(second.text.contains(split_at_line(rest, PAGE_BYTES).0), "{}", text_ends(second));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_server_of_the_guard_knows_which_pages_the_agent_has_read() {
    let world = ClientWorld::new("policies: [read_before_write: {}]\n");
    let whole = lines(900, |n| format!("line {n}\n"));
    world.scratch.write("long.txt", &whole).unwrap();
    let server = json!({ "command": JACKLINE, "args": ["mcp", "serve"] });
    world
        .scratch
        .write(".mcp.json", &json!({ "mcpServers": { "own": server } }).to_string())
        .unwrap();
    let read = |offset: u64| {
        ScriptStep::call("mcp__own__read_file", json!({ "path": "long.txt", "offset": offset }))
    };
    let write = |text: &str| {
        ScriptStep::call("mcp__own__write_file", json!({ "path": "long.txt", "content": text }))
    };
    let seen = world.play_with_servers(
        "mcp__own",
        ModelScript::new([read(1), write("early\n"), read(501), write("late\n")]),
    );
    let results = seen.tool_results(None);
    let [first, early, second, late] = results.as_slice() else {
        panic!("{}", describe_outcome(&seen))
    };
    assert!(first.text.contains("line 500") && !first.text.contains("line 501"), "{first:?}");
    assert!(early.is_error && early.text.contains("long.txt"), "{early:?}");
    assert!(second.text.contains("line 900"), "{second:?}");
    assert!(!late.is_error, "{late:?}");
    assert_eq!(world.scratch.read("long.txt").as_deref(), Some("late\n"));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_long_page_of_the_server_of_the_guard_is_shown_completely() {
    let world = ClientWorld::new("");
    let text = lines(480, |n| format!("line {n} {}\n", "ab ".repeat(150)));
    world.scratch.write("long.txt", &text).unwrap();
    let server = json!({ "command": JACKLINE, "args": ["mcp", "serve"] });
    world
        .scratch
        .write(".mcp.json", &json!({ "mcpServers": { "own": server } }).to_string())
        .unwrap();
    let read = ScriptStep::call("mcp__own__read_file", json!({ "path": "long.txt" }));
    let seen = world.play_with_servers("mcp__own", ModelScript::new([read]));
    let results = seen.tool_results(None);
    let [whole] = results.as_slice() else { panic!("{}", describe_outcome(&seen)) };
    assert!(whole.text.contains("line 480"), "{} bytes: {}", whole.text.len(), text_ends(whole));
    world.verify_and_replay();
}

/// Starts a remote server that runs until the test ends. Its tool returns the `Authorization`
/// header that it received.
fn start_remote_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            thread::spawn(move || serve(connection.unwrap()));
        }
    });
    url
}

fn serve(mut connection: TcpStream) {
    let mut input = BufReader::new(connection.try_clone().unwrap());
    loop {
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    value.clone_into(&mut authorization);
                }
                _ if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let result = match message.get("method").and_then(Value::as_str) {
            Some("initialize") => json!({
                "protocolVersion": message.pointer("/params/protocolVersion"),
                "capabilities": { "tools": {} }, "serverInfo": { "name": "far", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "whoami", "inputSchema": { "type": "object" } }] })
            }
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": authorization }] }),
            _ => json!({}),
        };
        let answer = match (message.get("method"), message.get("id")) {
            (None, _) => "HTTP/1.1 405 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            (_, None) => "HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            (_, Some(id)) => {
                let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                let kind = "content-type: application/json";
                format!("HTTP/1.1 200 X\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
        };
        if connection.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Headers become environment variables of the proxy. The client expands variables in them there,
/// too.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_remote_server_is_used_through_the_guard_with_its_own_headers() {
    let world = ClientWorld::new("");
    let headers = json!({ "Authorization": "Bearer ${JACKLINE_TEST_UNSET:-of the default}" });
    let server = json!({ "type": "http", "url": start_remote_server(), "headers": headers });
    let before = json!({ "mcpServers": { "far": server } }).to_string();
    world.scratch.write(".mcp.json", &before).unwrap();
    world.run_as_person(&["init", "--mcp", "--shared", "--remote", "--yes"]);
    let script = ModelScript::new([ScriptStep::call("mcp__far__whoami", json!({}))]);
    let seen = world.play_with_servers("mcp__far", script);
    let results = seen.tool_results(None);
    let [result] = results.as_slice() else { panic!("{}", describe_outcome(&seen)) };
    assert!(!result.is_error && result.text.contains("Bearer of the default"), "{result:?}");
    let status = world.status();
    let parts = status.get("parts").and_then(Value::as_array).map(Vec::len);
    assert_eq!(parts, Some(1), "{status}");
    world.verify_and_replay();
    world.run_as_person(&["init", "--mcp", "--shared", "--uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(world.scratch.work().join(".mcp.json")).unwrap(), before);
}
