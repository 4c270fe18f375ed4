//! Tests of widely used MCP servers with the official clients, with and without our proxy in
//! between.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp_rust;
use crate::world::JACKLINE;

/// The command that starts the proxy in front of a server.
const WRAP_COMMAND: [&str; 4] = [JACKLINE, "mcp", "wrap", "--"];

const DEFINITION: &str = "
version: 1
name: test/mcp
mode: enforce
rules:
  - name: keep
    tool: write_file
    when: 'args.path.endsWith(\"keep.txt\")'
    deny: This file must not change. Write another one.
    examples: { deny: [{ path: /a/keep.txt }], allow: [{ path: /a/b }] }
";

/// The directory with the servers and their client.
pub(crate) fn mcp_modules() -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "JACKLINE_TEST_MCP");
    let Some((_, directory)) = named else {
        panic!("JACKLINE_TEST_MCP is not set; run `cargo xtask test --clients`");
    };
    PathBuf::from(directory)
}

fn server_program(server: &str) -> PathBuf {
    mcp_modules().join(format!("node_modules/@modelcontextprotocol/{server}/dist/index.js"))
}

/// A server with streamable HTTP. It is killed when this value is dropped.
struct HttpServerProcess {
    child: Child,
    url: String,
}

impl HttpServerProcess {
    fn start() -> Self {
        // If another process takes the port in between, the test fails instead of passing wrongly.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("node");
        command.arg(server_program("server-everything")).arg("streamableHttp");
        command.env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening")), "the server did not start");
        // Drains the error output, so that the server never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: format!("http://localhost:{port}/mcp") }
    }
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A workspace with a definition for the proxy, and files for the servers.
struct McpServerWorld {
    root: TempDir,
}

impl McpServerWorld {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("jackline.yaml"), DEFINITION).unwrap();
        fs::create_dir(root.path().join("files")).unwrap();
        Self { root }
    }

    fn files(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("files")
    }

    /// Returns the answers of a server: the tools first, then one answer per call.
    fn call_server(&self, before: &[&str], server: &str, about: &str, calls: &Value) -> Vec<Value> {
        let program = server_program(server).display().to_string();
        self.call_command(&[before, &["node", &program, about]].concat(), calls)
    }

    /// Returns the answers of the server that a command starts.
    fn call_command(&self, command_line: &[&str], calls: &Value) -> Vec<Value> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mcp_client.mjs");
        let mut command = Command::new("node");
        command.current_dir(self.root.path()).env("JACKLINE_HOME", self.root.path().join("home"));
        command.arg(script).arg(mcp_modules()).arg(calls.to_string());
        let output = command.args(command_line).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The same with the Rust client.
    fn call_server_in_rust(
        &self,
        before: &[&str],
        server: &str,
        about: &str,
        calls: &Value,
    ) -> Vec<Value> {
        let program = server_program(server).display().to_string();
        self.call_command_in_rust(&[before, &["node", &program, about]].concat(), calls)
    }

    fn call_command_in_rust(&self, command_line: &[&str], calls: &Value) -> Vec<Value> {
        let (first, rest) = command_line.split_first().unwrap();
        let mut command = Command::new(first);
        command.current_dir(self.root.path()).env("JACKLINE_HOME", self.root.path().join("home"));
        command.args(rest);
        mcp_rust::call_tools(command, calls)
    }

    fn call_wrapped_server(&self, server: &str, about: &str, calls: &Value) -> Vec<Value> {
        self.call_server(&WRAP_COMMAND, server, about, calls)
    }

    fn verify_and_replay(&self) {
        for command in ["verify", "replay"] {
            let mut run = Command::new(JACKLINE);
            run.current_dir(self.root.path()).env("JACKLINE_HOME", self.root.path().join("home"));
            assert!(run.args([command, "--all"]).status().unwrap().success(), "{command}");
        }
    }
}

/// Calls of `server-everything` that return different kinds of content.
fn everything_calls() -> Value {
    json!([
        {"name": "echo", "arguments": {"message": "Grüße"}},
        {"name": "get-sum", "arguments": {"a": 1, "b": 2}},
        {"name": "get-tiny-image", "arguments": {}},
        {"name": "get-annotated-message", "arguments": {"messageType": "error", "includeImage": true}},
        {"name": "get-resource-links", "arguments": {}},
        {"name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 4}},
        {"name": "get-sum", "arguments": {"a": "no number"}},
        {"name": "no-such-tool", "arguments": {}},
    ])
}

/// Removes the page tool of the proxy, so that the answers can be compared with the direct ones.
fn without_page_tool(mut answers: Vec<Value>) -> Vec<Value> {
    let tools = answers.first_mut().and_then(Value::as_array_mut).unwrap();
    assert_eq!(tools.pop().unwrap().get("name"), Some(&json!("jackline_page")));
    answers
}

/// Checks that the proxy passes on every answer of the server, and refuses the two calls that the
/// server's list of tools does not allow.
fn check_wrapped_answers(wrapped: Vec<Value>, direct: &[Value]) {
    let mut answers = without_page_tool(wrapped);
    assert_eq!(answers.len(), direct.len());
    let refused = answers.split_off(answers.len() - 2);
    assert_eq!(Some(answers.as_slice()), direct.get(..answers.len()));
    let starts =
        ["jackline: the arguments of `get-sum` ", "jackline: there is no tool `no-such-tool`"];
    for (answer, start) in refused.iter().zip(starts) {
        // The clients in Python and Rust report an answer in different forms.
        assert!(answer.to_string().contains(start), "{answer}");
    }
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn server_everything_gives_the_same_answers_behind_the_guard() {
    let (world, calls) = (McpServerWorld::new(), everything_calls());
    let direct = world.call_server(&[], "server-everything", "stdio", &calls);
    let wrapped = world.call_wrapped_server("server-everything", "stdio", &calls);
    check_wrapped_answers(wrapped, &direct);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn server_everything_over_http_gives_the_same_answers_behind_the_guard() {
    let (world, calls) = (McpServerWorld::new(), everything_calls());
    let direct = world.call_server(&[], "server-everything", "stdio", &calls);
    let server = HttpServerProcess::start();
    let wrapped = world.call_command(&[JACKLINE, "mcp", "wrap", "--url", &server.url], &calls);
    check_wrapped_answers(wrapped, &direct);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn server_filesystem_is_guarded_and_a_file_of_5_mb_is_split_into_pages() {
    let world = McpServerWorld::new();
    let lines: Vec<String> = (0..400_000).map(|n| format!("line {n}\n")).collect();
    let whole = lines.concat();
    let at = |name: &str| world.files().join(name).display().to_string();
    fs::write(at("long.txt"), &whole).unwrap();
    let calls = json!([
        {"name": "write_file", "arguments": {"path": at("new.txt"), "content": "hello"}},
        {"name": "write_file", "arguments": {"path": at("keep.txt"), "content": "hello"}},
        {"name": "read_text_file", "arguments": {"path": at("long.txt")}},
        {"name": "read_text_file", "arguments": {"path": at("new.txt")}},
    ]);
    let files = world.files().display().to_string();
    let answers = world.call_wrapped_server("server-filesystem", &files, &calls);
    let result = |at: usize| answers.get(at).and_then(|answer| answer.get("result")).unwrap();
    assert_eq!(fs::read_to_string(at("new.txt")).unwrap(), "hello");
    assert_eq!(result(2).get("isError"), Some(&json!(true)));
    assert!(result(2).to_string().contains("This file must not change"), "{}", result(2));
    assert!(!fs::exists(at("keep.txt")).unwrap());
    assert!(result(3).get("text").and_then(Value::as_str) == Some(&whole));
    assert!(result(3).get("pages").and_then(Value::as_u64) > Some(50));
    assert_eq!(
        result(3).get("structured"),
        Some(&json!(["content"])),
        "the client requires structured content"
    );
    assert_eq!(result(4).pointer("/content/0/text"), Some(&json!("hello")));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn reads_and_writes_of_server_filesystem_are_known_without_a_declaration() {
    let world = McpServerWorld::new();
    let definition = "version: 1\nname: test/reads\npolicies: [ read_before_write: {} ]\n";
    fs::write(world.root.path().join("jackline.yaml"), definition).unwrap();
    let at = |name: &str| world.files().join(name).display().to_string();
    for name in ["a.txt", "b.txt", "c.txt"] {
        fs::write(at(name), "one\ntwo\nthree\n").unwrap();
    }
    let write = |name: &str| json!({"name": "write_file", "arguments": {"path": at(name), "content": "new"}});
    let calls = json!([
        {"name": "list_directory_with_sizes", "arguments": {"path": at("")}},
        {"name": "get_file_info", "arguments": {"path": at("a.txt")}},
        write("a.txt"),
        {"name": "read_text_file", "arguments": {"path": at("a.txt"), "head": 1}},
        write("a.txt"),
        {"name": "read_text_file", "arguments": {"path": at("a.txt")}},
        write("a.txt"),
        {"name": "read_multiple_files", "arguments": {"paths": [at("b.txt")]}},
        write("b.txt"),
        {"name": "move_file", "arguments": {"source": at("b.txt"), "destination": at("c.txt")}},
    ]);
    let files = world.files().display().to_string();
    let answers = world.call_wrapped_server("server-filesystem", &files, &calls);
    let result = |at: usize| answers.get(at).and_then(|answer| answer.get("result")).unwrap();
    let refused = |at: usize| result(at).get("isError") == Some(&json!(true));
    let refusals: Vec<usize> = (1..=10).filter(|at| refused(*at)).collect();
    assert_eq!(refusals, [3, 5, 10], "{answers:?}");
    assert!(result(3).to_string().contains("was not read"), "{}", result(3));
    assert!(result(5).to_string().contains("1 of its 3 lines"), "{}", result(5));
    assert!(result(10).to_string().contains("was not read"), "{}", result(10));
    assert_eq!(fs::read_to_string(at("a.txt")).unwrap(), "new");
    assert_eq!(fs::read_to_string(at("b.txt")).unwrap(), "new");
    assert_eq!(fs::read_to_string(at("c.txt")).unwrap(), "one\ntwo\nthree\n");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn the_rust_client_gets_the_same_answers_from_server_everything() {
    let (world, calls) = (McpServerWorld::new(), everything_calls());
    let direct = world.call_server_in_rust(&[], "server-everything", "stdio", &calls);
    let wrapped = world.call_server_in_rust(&WRAP_COMMAND, "server-everything", "stdio", &calls);
    check_wrapped_answers(wrapped, &direct);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs servers from npm; run with `cargo xtask test --clients`"]
fn the_rust_client_gets_denials_and_reads_all_pages() {
    let world = McpServerWorld::new();
    let lines: Vec<String> = (0..400_000).map(|n| format!("line {n}\n")).collect();
    let at = |name: &str| world.files().join(name).display().to_string();
    fs::write(at("long.txt"), lines.concat()).unwrap();
    let calls = json!([
        {"name": "write_file", "arguments": {"path": at("keep.txt"), "content": "hello"}},
        {"name": "read_text_file", "arguments": {"path": at("long.txt")}},
    ]);
    let files = world.files().display().to_string();
    let answers = world.call_server_in_rust(&WRAP_COMMAND, "server-filesystem", &files, &calls);
    let [_, refused, long] = answers.as_slice() else { panic!("{} answers", answers.len()) };
    assert_eq!(refused.get("isError"), Some(&json!(true)));
    assert!(refused.to_string().contains("This file must not change"), "{refused}");
    assert!(!fs::exists(at("keep.txt")).unwrap());
    assert!(long.get("text").and_then(Value::as_str) == Some(&lines.concat()));
    world.verify_and_replay();
}

#[test]
#[ignore = "run with `cargo xtask test --clients`"]
fn the_rust_client_uses_the_workspace_tools() {
    let world = McpServerWorld::new();
    let long: Vec<String> = (1..=900).map(|n| format!("line {n}\n")).collect();
    fs::write(world.root.path().join("long.txt"), long.concat()).unwrap();
    let calls = json!([
        {"name": "read_file", "arguments": {"path": "long.txt"}},
        {"name": "read_file", "arguments": {"path": "long.txt", "offset": 501}},
        {"name": "write_file", "arguments": {"path": "keep.txt", "content": "x"}},
        {"name": "read_fil", "arguments": {}},
        {"name": "search", "arguments": {"pattern": "no such text", "path": "files"}},
    ]);
    let answers = world.call_command_in_rust(&[JACKLINE, "mcp", "serve"], &calls);
    let [tools, first, second, refused, unknown, nothing] = answers.as_slice() else {
        panic!("{} answers", answers.len())
    };
    assert_eq!(tools.as_array().map(Vec::len), Some(8));
    let field = |result: &Value, name: &str| result["structuredContent"][name].clone();
    assert_eq!(field(first, "lines_shown"), 500);
    assert_eq!(field(first, "lines_remaining"), 400);
    assert_eq!(field(first, "has_more"), true);
    assert_eq!(field(second, "has_more"), false);
    assert_eq!(refused["isError"], true);
    assert!(!fs::exists(world.root.path().join("keep.txt")).unwrap());
    assert_eq!(unknown["structuredContent"]["error"]["code"], "unknown_tool", "{unknown}");
    assert!(field(nothing, "guidance").is_object(), "{nothing}");
    world.verify_and_replay();
}
