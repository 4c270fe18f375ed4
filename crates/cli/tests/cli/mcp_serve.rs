//! Tests of `jackline mcp serve` with plain JSON, one message per line.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jackline_engine::{CallId, EventKind, ToolProposed};
use serde_json::{Value, json};

use crate::support::{CliWorld, JACKLINE, RELEASED, run_with_input};

const DEFINITION: &str = "version: 1
name: test/serve
unknown_tools: allow
policies:
  - read_before_write: {}
rules:
  - name: no-push
    command: git push
    deny: A person pushes.
    instead: git diff
    examples: { deny: [git push], allow: [git diff] }
  - name: ask-first
    command: touch
    ask: A person says what is touched.
    examples: { ask: [touch a], allow: [git diff] }
  - name: gently
    command: uname
    warn: The machine is of no interest.
    examples: { warn: [uname], allow: [git diff] }
";

const SERVE: [&str; 4] = ["mcp", "serve", "--session", "s1"];

/// A server process to which a test sends one line at a time.
struct ServeProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

fn serve_command(world: &CliWorld) -> Command {
    let mut command = world.command(JACKLINE);
    command.args(SERVE);
    command
}

impl ServeProcess {
    fn start(world: &CliWorld) -> Self {
        Self::spawn(serve_command(world))
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, last_id: 0 }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&request.to_string());
        let answer = self.read();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(id), &json!("2.0")));
        answer
    }

    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
        answer["result"].clone()
    }

    fn wait(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

/// Returns the code of a tool error.
fn error_code(result: &Value) -> &str {
    assert_eq!(result["isError"], json!(true), "{result}");
    result["structuredContent"]["error"]["code"].as_str().unwrap()
}

fn result_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_client_initializes_and_lists_the_tools() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let hello = server.request("initialize", &json!({ "protocolVersion": "2025-06-18" }));
    assert_eq!(hello["result"]["protocolVersion"], json!("2025-06-18"));
    assert_eq!(hello["result"]["serverInfo"]["name"], json!("jackline"));
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    let listed = server.request("tools/list", &json!({}))["result"].clone();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = "read_file list_dir search find_files write_file edit_file shell jackline_page";
    assert_eq!(names.join(" "), expected);
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == json!("object")));
    assert_eq!(listed.get("ttlMs"), None);
    assert_eq!(server.wait(), Some(0));
    assert!(!world.journal_path("s1").exists(), "no call was made");
}

#[test]
fn a_stateless_request_needs_no_handshake() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta });
    let discovery = server.request("server/discover", &params)["result"].clone();
    assert_eq!(discovery["resultType"], json!("complete"));
    assert_eq!(discovery["supportedVersions"][0], json!("2026-07-28"));
    assert_eq!(discovery["capabilities"], json!({ "tools": { "listChanged": false } }));
    let listed = server.request("tools/list", &params)["result"].clone();
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"] == json!("public"));
    let call = json!({ "_meta": meta, "name": "shell", "arguments": { "command": "echo hello" } });
    let result = server.request("tools/call", &call)["result"].clone();
    assert_eq!(result["resultType"], json!("complete"));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], json!("jackline"));
    assert_eq!(result["structuredContent"]["output"], json!("hello\n"));
    let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1900-01-01" } });
    let error = server.request("tools/list", &other)["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("1900-01-01"))
    );
    let bare = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(server.request("tools/list", &bare)["error"]["code"], json!(-32602));
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_file_is_overwritten_only_after_all_its_pages_were_read() {
    let world = CliWorld::new(DEFINITION);
    let lines: Vec<String> = (1..=900).map(|line| format!("line {line}\n")).collect();
    fs::write(world.workspace().join("long.txt"), lines.concat()).unwrap();
    let mut server = ServeProcess::start(&world);
    let write = json!({ "path": "long.txt", "content": "short\n" });
    assert_eq!(error_code(&server.call_tool("write_file", &write)), "denied");
    let first = server.call_tool("read_file", &json!({ "path": "long.txt" }));
    let page = &first["structuredContent"];
    assert_eq!((&page["lines_shown"], &page["has_more"]), (&json!(500), &json!(true)));
    let denied = server.call_tool("write_file", &write);
    assert_eq!(error_code(&denied), "denied");
    let violations = denied["structuredContent"]["error"]["violations"].as_array().unwrap();
    assert_eq!(violations[0]["guard"], json!("read_before_write"));
    assert!(result_text(&denied).starts_with("jackline: "), "{denied}");
    let second = server.call_tool("read_file", &json!({ "path": "long.txt", "offset": 501 }));
    assert_eq!(second["structuredContent"]["has_more"], json!(false));
    let written = server.call_tool("write_file", &write);
    assert_eq!(written["isError"], json!(false), "{written}");
    assert_eq!(fs::read_to_string(world.workspace().join("long.txt")).unwrap(), "short\n");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(journal.contains(r#""seen":[{"path":"long.txt","from":501,"to":900,"of":900}]"#));
    assert!(journal.contains("session_ended"));
}

#[test]
fn the_definition_limits_the_pages_and_the_run_time_of_a_command() {
    let io = "io:
  read_file: { max_lines: 3, max_line_bytes: 16 }
  shell: { seconds: 1, output_bytes: 1024 }
";
    let world = CliWorld::new(&format!("{DEFINITION}{io}"));
    fs::write(world.workspace().join("f"), format!("{}\nb\nc\nd\n", "a".repeat(20))).unwrap();
    let mut server = ServeProcess::start(&world);
    let page = server.call_tool("read_file", &json!({"path": "f"}));
    let page = &page["structuredContent"];
    assert_eq!(
        (&page["lines_shown"], &page["cut_lines"][0]["shown_bytes"]),
        (&json!(3), &json!(16))
    );
    let ran = server.call_tool("shell", &json!({"command": "seq 1 5000; sleep 60"}));
    let ran = &ran["structuredContent"];
    assert_eq!((&ran["timed_out"], &ran["truncated"]), (&json!(true), &json!(true)));
    assert!(ran["output"].as_str().unwrap().len() < 1200, "{ran}");
}

#[test]
fn a_cut_line_counts_as_read_after_all_of_its_pieces_were_read() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("wide.txt"), format!("a\n{}\nb\n", "x".repeat(5000))).unwrap();
    fs::write(world.workspace().join("empty.txt"), "").unwrap();
    let mut server = ServeProcess::start(&world);
    let page = server.call_tool("read_file", &json!({ "path": "wide.txt" }));
    assert_eq!(page["structuredContent"]["cut_lines"][0]["line"], json!(2), "{page}");
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    let read = |server: &mut ServeProcess, from: u64| {
        let rest = json!({ "path": "wide.txt", "offset": 2, "line_offset": from });
        let page = server.call_tool("read_file", &rest);
        assert_eq!(page["isError"], json!(false), "{page}");
        page["structuredContent"]["line_shown"] == true
    };
    let denied = |server: &mut ServeProcess| {
        let denied = server.call_tool("write_file", &write("wide.txt"));
        assert_eq!(error_code(&denied), "denied");
        assert!(result_text(&denied).contains("2 of its 3 lines were read"), "{denied}");
    };
    assert!(!read(&mut server, 3000), "the bytes before the offset were not shown");
    denied(&mut server);
    assert!(read(&mut server, 2000));
    assert_eq!(server.call_tool("write_file", &write("wide.txt"))["isError"], json!(false));
    // Another file with the same name must be read from the start.
    fs::write(world.workspace().join("wide.txt"), format!("a\n{}\nb\n", "y".repeat(5000))).unwrap();
    assert!(!read(&mut server, 2000));
    server.call_tool("read_file", &json!({ "path": "wide.txt" }));
    denied(&mut server);
    assert!(read(&mut server, 1900));
    assert_eq!(server.call_tool("write_file", &write("wide.txt"))["isError"], json!(false));
    assert_eq!(
        server.call_tool("read_file", &json!({ "path": "empty.txt" }))["isError"],
        json!(false)
    );
    assert_eq!(server.call_tool("write_file", &write("empty.txt"))["isError"], json!(false));
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn a_link_to_a_file_does_not_count_as_read() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("original.txt"), "a\nb\n").unwrap();
    let mut server = ServeProcess::start(&world);
    let names = [
        "ln -s original.txt one",
        "cp -s original.txt two",
        "ln original.txt three",
        "mv original.txt z",
    ];
    for (line, name) in names.into_iter().zip(["one", "two", "three", "z"]) {
        let ran = server.call_tool("shell", &json!({ "command": line }));
        assert_eq!(ran["structuredContent"]["exit_code"], json!(0), "{ran}");
        for path in
            ["original.txt", name].iter().filter(|path| world.workspace().join(path).exists())
        {
            let write = server.call_tool("write_file", &json!({ "path": path, "content": "new" }));
            assert_eq!(error_code(&write), "denied", "{line}, {path}: {write}");
        }
    }
    assert_eq!(server.call_tool("read_file", &json!({ "path": "z" }))["isError"], json!(false));
    let write = server.call_tool("write_file", &json!({ "path": "z", "content": "new" }));
    assert_eq!(write["isError"], json!(false), "{write}");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn the_guards_decide_on_commands() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let denied = server.call_tool("shell", &json!({ "command": "git push" }));
    assert_eq!(error_code(&denied), "denied");
    assert!(
        result_text(&denied).contains("A person pushes.")
            && result_text(&denied).contains("git diff")
    );
    let asked = server.call_tool("shell", &json!({ "command": "touch made" }));
    assert_eq!(error_code(&asked), "waits_for_person");
    assert!(!world.workspace().join("made").exists());
    let warned = server.call_tool("shell", &json!({ "command": "uname" }));
    assert_eq!(
        (&warned["isError"], &warned["structuredContent"]["exit_code"]),
        (&json!(false), &json!(0))
    );
    let feedback = warned["content"][1]["text"].as_str().unwrap();
    assert!(feedback.contains("The machine is of no interest."), "{warned}");
    assert_eq!(warned["structuredContent"]["feedback"].as_str().unwrap(), feedback);
    let failed = server.call_tool("shell", &json!({ "command": "pwd; exit 4" }));
    assert_eq!(failed["structuredContent"]["output"], json!(".\n"));
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(journal.contains(r#""exit_code":4"#));
}

#[test]
fn an_invalid_call_is_corrected() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let unknown = server.call_tool("raed_file", &json!({ "path": "a" }));
    assert_eq!(error_code(&unknown), "unknown_tool");
    let error = &unknown["structuredContent"]["error"];
    assert_eq!(error["nearest"], json!("read_file"));
    assert!(error["tools"].as_array().unwrap().contains(&json!("shell")));
    assert!(result_text(&unknown).contains("did you mean `read_file`?"));
    let invalid = server.call_tool("read_file", &json!({ "offset": [], "file": "a" }));
    assert_eq!(error_code(&invalid), "invalid_arguments");
    let error = &invalid["structuredContent"]["error"];
    let wrong: Vec<&str> =
        error["errors"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(
        wrong,
        ["", "", "/offset"],
        "`path` is missing, `file` is unknown, `offset` must be a number: {error}"
    );
    assert_eq!(error["attempts_remaining"], json!(1));
    let text_only = server.call_tool("read_file", &json!(r#"{"path":"no-such-file"}"#));
    assert_eq!(error_code(&text_only), "not_found", "an object as text is accepted");
    let listed = server.call_tool("read_file", &json!(["a"]));
    assert_eq!(error_code(&listed), "invalid_arguments", "{listed}");
    let nameless = server.request("tools/call", &json!({ "arguments": {} }));
    assert_eq!(nameless["error"]["code"], json!(-32602));
    let missing = server.call_tool("read_file", &json!({ "path": "no-such-file" }));
    assert_eq!(missing["isError"], json!(true));
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn an_unknown_tool_gets_a_suggestion_even_if_the_guards_deny_it() {
    let world = CliWorld::new("version: 1\nname: test/strict\nunknown_tools: deny\n");
    let mut server = ServeProcess::start(&world);
    let refused = server.call_tool("raed_file", &json!({}));
    assert_eq!(error_code(&refused), "unknown_tool");
    assert_eq!(refused["structuredContent"]["error"]["nearest"], json!("read_file"));
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn the_tools_of_the_server_are_known_unless_the_definition_lists_tools() {
    let world = CliWorld::new("version: 1\nname: test/strict\nunknown_tools: deny\n");
    let mut server = ServeProcess::start(&world);
    let listed = server.call_tool("list_dir", &json!({}));
    assert_ne!(listed["isError"], json!(true), "{listed}");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let world = CliWorld::new(
        "version: 1\nname: test/listed\nunknown_tools: deny\ntools: { read_file: {} }\n",
    );
    let mut server = ServeProcess::start(&world);
    assert_eq!(error_code(&server.call_tool("list_dir", &json!({}))), "unknown_tool");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    // A tool of the server may be declared under another name.
    let world = CliWorld::new(
        "version: 1\nname: test/alias\nunknown_tools: deny\ntools: { look: { aliases: [list_dir] } }\n",
    );
    let mut server = ServeProcess::start(&world);
    let listed = server.call_tool("list_dir", &json!({}));
    assert_ne!(listed["isError"], json!(true), "{listed}");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn an_unknown_tool_is_corrected_twice_and_then_the_session_ends() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    for expected in ["unknown_tool", "unknown_tool", "stopped"] {
        let refused = server.call_tool("raed_file", &json!({}));
        assert_eq!(error_code(&refused), expected);
        assert_eq!(
            result_text(&refused).matches("`list_dir`").count(),
            1,
            "{}",
            result_text(&refused)
        );
        let end_text = "this session has ended: SYSTEM_ERROR{schema}; a person can reopen it";
        assert_eq!(
            result_text(&refused).contains(end_text),
            expected == "stopped",
            "{}",
            result_text(&refused)
        );
        let message = &refused["structuredContent"]["error"]["message"];
        assert_eq!(
            message.as_str().unwrap(),
            result_text(&refused),
            "both messages must be the same"
        );
    }
    let after = server.call_tool("raed_file", &json!({}));
    assert_eq!(
        (error_code(&after), result_text(&after).contains("`list_dir`")),
        ("stopped", false)
    );
    assert_eq!(error_code(&server.call_tool("list_dir", &json!({}))), "stopped");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(journal.contains(r#""type":"unknown_tool""#), "{journal}");
    assert!(journal.contains(r#""code":"SYSTEM_ERROR""#), "{journal}");
}

#[test]
fn the_reserved_page_tool_name_does_not_bypass_the_guards() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let mut codes = Vec::new();
    for tool in ["nope", "jackline/page", "nope", "jackline/page", "nope"] {
        codes.push(error_code(&server.call_tool(tool, &json!({ "cursor": "1-0" }))).to_owned());
    }
    assert_eq!(codes[1], "unknown_tool");
    assert_eq!((codes[3].as_str(), codes[4].as_str()), ("unknown_tool", "stopped"), "{codes:?}");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(!journal.contains("jackline/page"), "the call must not reach the guards: {journal}");
}

#[test]
fn an_unknown_tool_error_lists_all_tools_and_suggests_only_a_similar_one() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let refused = server.call_tool(&"x".repeat(100), &json!({}));
    assert_eq!(refused["structuredContent"]["error"]["nearest"], Value::Null, "{refused}");
    assert!(!result_text(&refused).contains("did you mean"), "{refused}");
    for tool in ["`read_file`", "`shell`", "`jackline_page`"] {
        assert!(result_text(&refused).contains(tool), "{refused}");
    }
    assert_eq!(
        error_code(&server.call_tool("jackline_page", &json!({ "cursor": "9-0" }))),
        "no_such_page"
    );
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn arguments_as_text_are_parsed_if_only_one_reading_is_possible() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("a"), "one\n").unwrap();
    let mut server = ServeProcess::start(&world);
    for written in [
        r#"{"path":"a"}"#,
        r#"{"path":"a",}"#,
        "{'path':'a'}",
        "```json\n{\"path\":\"a\"}\n```",
        "<think>which file?</think>{\"path\":\"a\"}",
    ] {
        let page = server.call_tool("read_file", &json!(written));
        assert_eq!(page["structuredContent"]["content"], json!("one\n"), "{written}: {page}");
    }
    let refused = server.call_tool("read_file", &json!("the file a"));
    assert_eq!(error_code(&refused), "invalid_arguments", "{refused}");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn repeated_invalid_arguments_end_the_session_with_the_reason() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    for (path, expected) in [(1, "invalid_arguments"), (2, "invalid_arguments"), (3, "stopped")] {
        assert_eq!(error_code(&server.call_tool("list_dir", &json!({ "path": path }))), expected);
    }
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(journal.contains("`/path`: expected"), "{journal}");
}

#[test]
fn an_offset_of_0_is_accepted_and_uses_no_attempt() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("a"), "one\ntwo\n").unwrap();
    let mut server = ServeProcess::start(&world);
    for offset in [json!(0), json!("0"), json!(0), json!(0)] {
        let page = server.call_tool("read_file", &json!({ "path": "a", "offset": offset }));
        assert_eq!(page["structuredContent"]["content"], json!("one\ntwo\n"), "{page}");
        let listed = server.call_tool("list_dir", &json!({ "offset": offset }));
        assert_eq!(listed["isError"], json!(false), "{listed}");
    }
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(!journal.contains("schema_violation"), "{journal}");
}

#[test]
fn in_observe_mode_an_invalid_call_is_left_to_the_tool() {
    let world = CliWorld::new("version: 1\nname: test/watch\nmode: observe\n");
    let mut server = ServeProcess::start(&world);
    for _ in 0..4 {
        assert_eq!(error_code(&server.call_tool("raed_file", &json!({}))), "unknown_tool");
        assert_eq!(
            error_code(&server.call_tool("list_dir", &json!({ "path": 1 }))),
            "invalid_arguments"
        );
    }
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn an_invalid_message_is_answered_and_the_next_one_is_read() {
    let world = CliWorld::new(DEFINITION);
    let mut input = Vec::new();
    for line in ["garbage", "{", "[]", "42", "{}", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#]
    {
        input.extend(format!("{line}\n").bytes());
    }
    input.extend(b"\xff\xfe\n\n  \n");
    input.extend(br#"{"jsonrpc":"2.0","method":"notifications/whatever","params":{}}"#);
    input.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n");
    input.extend(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#,
    );
    input.push(b'\n');
    input.extend("[".repeat(200_000).bytes());
    input.push(b'\n');
    input.extend(std::iter::repeat_n(b'x', 100 << 20));
    input.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"nothing/such\"}\n");
    input.extend(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let run = run_with_input(&mut serve_command(&world), &input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<Option<i64>> =
        answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    let (parse, invalid) = (Some(-32700), Some(-32600));
    let expected = [
        parse,
        parse,
        invalid,
        invalid,
        invalid,
        invalid,
        parse,
        parse,
        invalid,
        Some(-32601),
        None,
    ];
    assert_eq!(codes, expected, "{}", run.stdout);
    assert_eq!((&answers[9]["id"], &answers[10]["id"]), (&json!("last"), &json!(1)));
}

#[test]
fn a_partly_invalid_request_is_answered_with_its_id() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let cases = [
        r#""method":"tools/list","params":{"a":1,"a":2}"#,
        r#""method":"tools/call","params":{"name":"list_dir","name":"shell","arguments":{}}"#,
        r#""method":"tools/call","params":{"name":"list_dir","_meta":{"a":1,"a":2}}"#,
        r#""method":"tools/call","params":["list_dir",{"a":1,"a":2}]"#,
    ];
    for (id, case) in (10..).zip(cases) {
        server.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},{case}}}"#));
        let answer = server.read();
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&json!(id), &json!(-32602)), "{answer}");
        assert_eq!(error["data"]["path"], "/params");
    }
    server.write(r#"{"jsonrpc":"2.0","id":"x","method":"ping","a":1,"a":2}"#);
    let answer = server.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32700)));
    // Neither of the two ids is certain to be the one that waits.
    server.write(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#);
    let answer = server.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(server.wait(), Some(0));
    assert!(!world.journal_path("s1").exists(), "no call was made");
}

#[test]
fn unreadable_arguments_are_an_invalid_call_that_uses_an_attempt() {
    let deep = format!(r#"{{"path":{}{}}}"#, "[".repeat(150), "]".repeat(150));
    for (arguments, expected) in [
        (r#"{"path":"a","path":"b"}"#, "each key once"),
        (r#"{"path":"\ud83d"}"#, "both halves of a surrogate pair"),
        (deep.as_str(), ""),
        (r#"{"path":"a","offset":1e400}"#, "a number that can be stored exactly"),
        (r#"{"path":"a","offset":1e30}"#, "at most 9007199254740991"),
        (r#"{"path":"a","offset":18446744073709551615}"#, "at most 9007199254740991"),
        (r#"{"path":"a","limit":"99999999999999999999"}"#, "a text that matches"),
    ] {
        let world = CliWorld::new(DEFINITION);
        let mut server = ServeProcess::start(&world);
        for (id, remaining) in [(7, Some(1)), (8, Some(0)), (9, None)] {
            let params = format!(r#"{{"name":"read_file","arguments":{arguments}}}"#);
            server.write(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
            ));
            let answer = server.read();
            assert_eq!(answer["id"], json!(id));
            let result = &answer["result"];
            let expected_code = if remaining.is_some() { "invalid_arguments" } else { "stopped" };
            assert_eq!(error_code(result), expected_code, "{answer}");
            let error = &result["structuredContent"]["error"];
            let message = error["errors"][0]["expected"].as_str().unwrap();
            assert!(message.starts_with(expected), "{message}");
            assert!(!result_text(result).contains("\\\""), "{}", result_text(result));
            if let Some(remaining) = remaining {
                assert_eq!(error["attempts_remaining"], json!(remaining), "{answer}");
            }
        }
        assert_eq!(server.wait(), Some(0));
        world.verify_and_replay("s1");
    }
}

#[test]
fn unreadable_arguments_run_no_tool_in_observe_mode() {
    let world = CliWorld::new("version: 1\nname: test/watch\nmode: observe\n");
    let mut server = ServeProcess::start(&world);
    for _ in 0..4 {
        let params = r#"{"name":"write_file","arguments":{"path":"a","path":"b","content":""}}"#;
        server.write(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
        ));
        let result = server.read()["result"].clone();
        assert_eq!(error_code(&result), "invalid_arguments");
        assert!(
            result_text(&result).contains("the arguments can't be parsed: duplicate key"),
            "{result}"
        );
    }
    assert_eq!(server.wait(), Some(0));
    assert!(!world.workspace().join("a").exists() && !world.workspace().join("b").exists());
    world.verify_and_replay("s1");
}

#[test]
fn a_whole_number_is_accepted_in_any_notation() {
    let world = CliWorld::new(DEFINITION);
    fs::write(world.workspace().join("a"), "one\ntwo\n").unwrap();
    let mut server = ServeProcess::start(&world);
    for offset in [json!(2), json!(2.0), json!("2")] {
        let page = server.call_tool("read_file", &json!({ "path": "a", "offset": offset }));
        assert_eq!(page["structuredContent"]["content"], json!("two\n"), "{page}");
    }
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_message_that_is_too_long_is_answered_with_its_id_if_it_has_one() {
    let world = CliWorld::new(DEFINITION);
    let long = "x".repeat(65 << 20);
    let params = format!(r#""params":{{"name":"write_file","arguments":{{"content":"{long}"}}}}"#);
    let mut input = String::new();
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call",{params}}}"#),
        format!(r#"{{"method":"tools/call",{params},"jsonrpc":"2.0","id":"last"}}"#),
        format!(r#"{{"method":"tools/call",{params}, "id" : 22 }}"#),
        format!(r#"{{"jsonrpc":"2.0","id":{{"odd":1}},"method":"tools/call",{params}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
    ] {
        input.push_str(&line);
        input.push('\n');
    }
    let run = run_with_input(&mut serve_command(&world), input.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(7), &json!("last"), &json!(22), &Value::Null, &json!(1)]);
    for answer in &answers[..4] {
        assert_eq!(answer["error"]["code"], json!(-32600));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("the limit is 67108864"), "{message}");
    }
}

#[test]
fn servers_in_one_session_use_different_call_ids() {
    let world = CliWorld::new(DEFINITION);
    let event = |event: &str, call: &str| json!({ "event": event, "session": "s1", "call": call, "tool": "t", "args": {} });
    let started = json!({ "event": "session_started", "session": "s1" });
    world.stdio(&[started.to_string(), event("tool_proposed", "c1").to_string()]);
    let mut both = [0, 1].map(|_| ServeProcess::start(&world));
    for server in &mut both {
        // Each server reads another file, so that no call is a repetition.
        let path = format!("f{}.txt", server.child.id());
        fs::write(world.workspace().join(&path), "a\n").unwrap();
        let result = server.call_tool("read_file", &json!({ "path": path }));
        assert_eq!(result["isError"], false, "{result}");
    }
    let later = event("tool_proposed", "c2").to_string();
    let verdicts = world.stdio(&[later]).json_lines();
    assert_eq!(verdicts[0]["decision"], "allow", "{verdicts:?}");
    assert_eq!(both.map(ServeProcess::wait), [Some(0); 2]);
    world.verify_and_replay("s1");
    let records = world.records("s1");
    let calls = records.iter().filter_map(|record| match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, .. }) => call.as_ref().map(CallId::as_str),
        _ => None,
    });
    assert_eq!(calls.collect::<BTreeSet<_>>().len(), 4, "every call id must be unique");
}

#[test]
fn a_long_call_delays_no_other_call_and_is_answered_after_the_input_ends() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let line = "until [ -e go ]; do sleep 0.01; done; echo done";
    let call = |id: u64, line: &str| {
        let params = json!({ "name": "shell", "arguments": { "command": line } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    server.write(&call(100, line));
    server.write(&call(101, "echo quick"));
    assert_eq!(server.read()["id"], json!(101));
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    server.write(&call(102, line));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 102 } });
    server.write(&cancelled.to_string());
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    drop(server.stdin.take());
    fs::write(world.workspace().join("go"), "").unwrap();
    let late = server.read();
    assert_eq!(late["id"], json!(100));
    assert_eq!(late["result"]["structuredContent"]["output"], json!("done\n"));
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn a_cancelled_command_is_ended_with_its_children() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let line = "sleep 1000 & echo $! > pid.new; mv pid.new pid; sleep 1000";
    let params = json!({ "name": "shell", "arguments": { "command": line } });
    let call = json!({ "jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": params });
    server.write(&call.to_string());
    let pid = loop {
        if let Ok(pid) = fs::read_to_string(world.workspace().join("pid")) {
            break pid.trim().to_owned();
        }
        server.request("ping", &json!({}));
    };
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 100 } });
    server.write(&cancelled.to_string());
    // The server exits when no command is running, long before the command would have ended.
    assert_eq!(server.wait(), Some(0));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(stat.map_or(true, |stat| stat.contains(") Z ")), "{pid} is still running");
    world.verify_and_replay("s1");
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert!(journal.contains(r#""status":"cancelled""#), "{journal}");
}

#[test]
fn the_middle_of_a_long_output_is_in_its_pages() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let long = server.call_tool("shell", &json!({ "command": "seq 100000" }));
    assert_eq!(long["structuredContent"]["truncated"], json!(true));
    assert!(result_text(&long).contains("jackline_page"), "{}", result_text(&long));
    let artifact = &long["structuredContent"]["artifact"];
    let lines: Vec<String> = (1..=100_000).map(|line| format!("{line}\n")).collect();
    let whole = lines.concat();
    assert_eq!(fs::read_to_string(artifact["file"].as_str().unwrap()).unwrap(), whole);
    let (mut pages, mut cursor) = (String::new(), artifact["cursor"].clone());
    while let Some(at) = cursor.as_str() {
        let page = server.call_tool("jackline_page", &json!({ "cursor": at }));
        pages.push_str(page["structuredContent"]["output"].as_str().unwrap());
        cursor = page["structuredContent"]["next_cursor"].clone();
    }
    assert!(pages == whole);
    let none = server.call_tool("jackline_page", &json!({ "cursor": "9-0" }));
    assert_eq!(error_code(&none), "no_such_page");
    assert_eq!(server.wait(), Some(0));
    world.verify_and_replay("s1");
}

#[test]
fn an_invalid_page_request_is_answered_with_the_correct_form() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let missing = server.call_tool("jackline_page", &json!({}));
    assert_eq!(error_code(&missing), "invalid_arguments");
    assert_eq!(
        result_text(&missing),
        "jackline: the arguments of `jackline_page` can't be used: expected the member \"cursor\", \
         got no members\n-> write it again, for example: {\"cursor\":\"1-31744\"}"
    );
    let unknown = server.call_tool("jackline_page", &json!({ "cursor": "two" }));
    assert_eq!(error_code(&unknown), "no_such_page");
    assert!(
        result_text(&unknown).contains("a cursor is two numbers such as `1-31744`"),
        "{unknown}"
    );
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn invalid_options_are_reported_at_the_start() {
    let world = CliWorld::new(DEFINITION);
    for args in [
        ["mcp", "serve", "-w", "no-such-directory"],
        ["mcp", "serve", "-d", "no-such-file"],
        ["mcp", "serve", "--session", ""],
    ] {
        let run = run_with_input(world.command(JACKLINE).args(args), b"");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains("error:"), "{}", run.stderr);
    }
}

#[test]
fn a_broken_definition_denies_every_call_and_reports_the_guard() {
    let world = CliWorld::new("version: 1\nname: [\n");
    let mut server = ServeProcess::start(&world);
    let denied = server.call_tool("shell", &json!({ "command": "touch made" }));
    assert_eq!(error_code(&denied), "guard_broken");
    assert!(result_text(&denied).contains("the guard is broken, not the call"), "{denied}");
    assert!(!world.workspace().join("made").exists());
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_command_of_the_agent_is_not_a_person() {
    let world = CliWorld::new(DEFINITION);
    // As if an unknown client had started the server.
    let mut command = world.person_command();
    command.args(SERVE);
    let mut server = ServeProcess::spawn(command);
    // No guard can see what a script does before it runs.
    let home = world.home().display().to_string();
    let script = format!("env -i JACKLINE_HOME={home} $1 {RELEASED} off --for 1m --why x 2>&1\n");
    fs::write(world.workspace().join("open.sh"), script).unwrap();
    for around in ["nice", "setsid --wait", "nohup"] {
        let line = format!("sh open.sh '{around}'");
        let tried = server.call_tool("shell", &json!({ "command": line }));
        let output = tried["structuredContent"]["output"].as_str().unwrap();
        assert!(output.contains("an agent started this"), "{tried}");
    }
    assert_eq!(error_code(&server.call_tool("shell", &json!({ "command": "git push" }))), "denied");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_killed_server_leaves_no_process() {
    let world = CliWorld::new(DEFINITION);
    let mut server = ServeProcess::start(&world);
    let line = "(setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' &); sleep 1000";
    let params = json!({ "name": "shell", "arguments": { "command": line } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    server.write(&call.to_string());
    let wait_until = |condition: &dyn Fn() -> bool| {
        (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            condition()
        })
    };
    assert!(wait_until(&|| world.workspace().join("pid").exists()));
    let pid = fs::read_to_string(world.workspace().join("pid")).unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    assert!(wait_until(&|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))));
}
