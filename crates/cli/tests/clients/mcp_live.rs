//! The real client with MCP servers: some behind the guard, and the guard's own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use jackline_model::scripted::{Script, Step, ToolResult};
use serde_json::{Value, json};

use crate::mcp::modules;
use crate::world::{JACKLINE, World, story};

const KEEP: &str = "
rules:
  - name: keep
    tool: write_file
    when: 'args.path.endsWith(\"keep.txt\")'
    deny: This file stays as it is. Write another one.
    examples: { deny: [{ path: /a/keep.txt }], allow: [{ path: /a/b }] }
";

/// What is shown of a text on one page, at most.
const PAGE_BYTES: usize = 31_744;

/// The same where it is structured content.
const STRUCTURED_BYTES: usize = PAGE_BYTES - PAGE_BYTES / 4 - 112;

/// Has the client start a server of npm, and puts the guard before it; what was there first.
fn wrap(world: &World, name: &str, package: &str, about: &str) -> String {
    let server = format!("node_modules/@modelcontextprotocol/{package}/dist/index.js");
    let args = json!([modules().join(server), about]);
    let servers = json!({ "mcpServers": { name: { "command": "node", "args": args } } });
    world.scratch.write(".mcp.json", &servers.to_string()).unwrap();
    world.person(&["init", "--mcp", "--yes"]);
    servers.to_string()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect::<Vec<String>>().concat()
}

/// The two parts of a text, of which the first is shown: whole lines of so many bytes.
fn cut(whole: &str, most: usize) -> (&str, &str) {
    whole.split_at(whole.get(..most).unwrap().rfind('\n').unwrap() + 1)
}

/// Both ends of what the model was shown.
fn ends(result: &ToolResult) -> String {
    let text = &result.text;
    let last = text.char_indices().rev().nth(600).and_then(|(at, _)| text.get(at..));
    format!("{text:.600} … {}", last.unwrap_or(text))
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_wrapped_server_is_guarded_and_a_long_result_comes_in_pages() {
    let world = World::new(KEEP);
    let whole = lines(400_000, |n| format!("line {n}\n"));
    world.scratch.write("files/long.txt", &whole).unwrap();
    let files = world.scratch.work().join("files");
    let at = |name: &str| files.join(name).display().to_string();
    let before = wrap(&world, "files", "server-filesystem", files.to_str().unwrap());
    let (shown, rest) = cut(&whole, STRUCTURED_BYTES);
    let cursor = format!("1-{}", shown.len());
    let write = |path: String| {
        Step::call("mcp__files__write_file", json!({ "path": path, "content": "x" }))
    };
    let seen = world.play_with_servers(
        "mcp__files",
        Script::new([
            write(at("new.txt")),
            write(at("keep.txt")),
            Step::call("mcp__files__read_text_file", json!({ "path": at("long.txt") })),
            Step::call("mcp__files__jackline_page", json!({ "cursor": &cursor })),
        ]),
    );
    let results = seen.results(None);
    let [written, denied, first, second] = results.as_slice() else { panic!("{}", story(&seen)) };
    assert!(!written.is_error && world.scratch.has("files/new.txt"), "{written:?}");
    assert!(denied.is_error && !world.scratch.has("files/keep.txt"), "{denied:?}");
    assert!(denied.text.contains("This file stays as it is. Write another one."), "{denied:?}");
    // The client shows structured content as JSON, and nothing of the text beside it.
    let as_json = json!(shown).to_string();
    let as_json = as_json.trim_end_matches('"');
    assert!(!first.is_error && first.text.contains(as_json), "{}", ends(first));
    assert!(first.text.contains(&format!("{as_json}\\n[jackline: cut")), "{}", ends(first));
    assert!(first.text.contains(&cursor), "{}", ends(first));
    let (page, _) = cut(rest, PAGE_BYTES);
    assert!(!second.is_error && second.text.contains(page), "{}", ends(second));
    assert!(!seen.showed("line 100000"), "the rest of 4 MB never reached the model");

    // One session is the client's, and the proxy's belongs to it.
    let status = world.status();
    let parts = status.get("parts").and_then(Value::as_array).map(Vec::len);
    assert_eq!(parts, Some(1), "{status}");
    // Both count every call once, and the one refusal is the proxy's: the rule names its tool.
    let counted = |status: &Value| {
        let count = |name: &str| status.pointer(&format!("/summary/invocations/{name}")).cloned();
        [count("proposed"), count("denied")].map(Option::unwrap_or_default)
    };
    let part = status.pointer("/parts/0").and_then(Value::as_str).unwrap();
    let of_proxy = world.status_of(part);
    assert_eq!(counted(&of_proxy), [json!(4), json!(1)], "{of_proxy}");
    assert_eq!(counted(&status), [json!(4), json!(0)], "{status}");
    world.prove();

    world.person(&["init", "--mcp", "--uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(world.scratch.work().join(".mcp.json")).unwrap(), before);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn pages_are_short_enough_for_the_client_to_show_them() {
    let world = World::new("");
    wrap(&world, "all", "server-everything", "stdio");
    let message = lines(12_000, |n| format!("\"{n}\"\n"));
    let whole = format!("Echo: {message}");
    let (shown, rest) = cut(&whole, PAGE_BYTES);
    let cursor = format!("1-{}", shown.len());
    let seen = world.play_with_servers(
        "mcp__all",
        Script::new([
            Step::call("mcp__all__echo", json!({ "message": message })),
            Step::call("mcp__all__jackline_page", json!({ "cursor": cursor })),
        ]),
    );
    let results = seen.results(None);
    let [first, second] = results.as_slice() else { panic!("{}", story(&seen)) };
    assert!(first.text.contains(shown) && first.text.contains(&cursor), "{}", ends(first));
    assert!(second.text.contains(cut(rest, PAGE_BYTES).0), "{}", ends(second));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_guards_own_server_knows_which_pages_the_agent_has_seen() {
    let world = World::new("policies: [read_before_write: {}]\n");
    let whole = lines(900, |n| format!("line {n}\n"));
    world.scratch.write("long.txt", &whole).unwrap();
    let own = json!({ "command": JACKLINE, "args": ["mcp", "serve"] });
    world.scratch.write(".mcp.json", &json!({ "mcpServers": { "own": own } }).to_string()).unwrap();
    let read = |offset: u64| {
        Step::call("mcp__own__read_file", json!({ "path": "long.txt", "offset": offset }))
    };
    let write = |text: &str| {
        Step::call("mcp__own__write_file", json!({ "path": "long.txt", "content": text }))
    };
    let seen = world.play_with_servers(
        "mcp__own",
        Script::new([read(1), write("early\n"), read(501), write("late\n")]),
    );
    let results = seen.results(None);
    let [first, early, second, late] = results.as_slice() else { panic!("{}", story(&seen)) };
    assert!(first.text.contains("line 500") && !first.text.contains("line 501"), "{first:?}");
    assert!(early.is_error && early.text.contains("long.txt"), "{early:?}");
    assert!(second.text.contains("line 900"), "{second:?}");
    assert!(!late.is_error, "{late:?}");
    assert_eq!(world.scratch.read("long.txt").as_deref(), Some("late\n"));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_long_page_of_the_guards_own_server_is_shown_whole() {
    let world = World::new("");
    let text = lines(480, |n| format!("line {n} {}\n", "ab ".repeat(150)));
    world.scratch.write("long.txt", &text).unwrap();
    let own = json!({ "command": JACKLINE, "args": ["mcp", "serve"] });
    world.scratch.write(".mcp.json", &json!({ "mcpServers": { "own": own } }).to_string()).unwrap();
    let read = Step::call("mcp__own__read_file", json!({ "path": "long.txt" }));
    let seen = world.play_with_servers("mcp__own", Script::new([read]));
    let results = seen.results(None);
    let [whole] = results.as_slice() else { panic!("{}", story(&seen)) };
    assert!(whole.text.contains("line 480"), "{} bytes: {}", whole.text.len(), ends(whole));
    world.prove();
}

/// A server that runs elsewhere, for as long as the test does. Its tool says what it was sent as
/// `Authorization`.
fn elsewhere() -> String {
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

/// Headers become variables of a program, and the client fills them in there, too.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_server_elsewhere_is_reached_through_the_guard_with_the_headers_that_it_had() {
    let world = World::new("");
    let headers = json!({ "Authorization": "Bearer ${JACKLINE_TEST_NOBODY:-of the default}" });
    let server = json!({ "type": "http", "url": elsewhere(), "headers": headers });
    let before = json!({ "mcpServers": { "far": server } }).to_string();
    world.scratch.write(".mcp.json", &before).unwrap();
    world.person(&["init", "--mcp", "--remote", "--yes"]);
    let script = Script::new([Step::call("mcp__far__whoami", json!({}))]);
    let seen = world.play_with_servers("mcp__far", script);
    let results = seen.results(None);
    let [said] = results.as_slice() else { panic!("{}", story(&seen)) };
    assert!(!said.is_error && said.text.contains("Bearer of the default"), "{said:?}");
    let status = world.status();
    let parts = status.get("parts").and_then(Value::as_array).map(Vec::len);
    assert_eq!(parts, Some(1), "{status}");
    world.prove();
    world.person(&["init", "--mcp", "--uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(world.scratch.work().join(".mcp.json")).unwrap(), before);
}
