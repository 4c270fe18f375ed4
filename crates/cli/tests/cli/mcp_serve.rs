//! `jackline mcp serve` as any client speaks with it: plain JSON, a message a line.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use jackline_engine::{CallId, EventKind, ToolProposed};
use serde_json::{Value, json};

use crate::support::{JACKLINE, World, feed};

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

/// A server that is spoken with line by line.
struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

fn command(world: &World) -> Command {
    let mut command = world.command(JACKLINE);
    command.args(SERVE);
    command
}

impl Served {
    fn start(world: &World) -> Self {
        Self::spawn(command(world))
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, next: 0 }
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

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&asked.to_string());
        let answer = self.read();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(id), &json!("2.0")));
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
        answer["result"].clone()
    }

    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

/// The code of an error of a tool.
fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], json!(true), "{result}");
    result["structuredContent"]["error"]["code"].as_str().unwrap()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_client_shakes_hands_and_learns_of_the_tools() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let hello = served.ask("initialize", &json!({ "protocolVersion": "2025-06-18" }));
    assert_eq!(hello["result"]["protocolVersion"], json!("2025-06-18"));
    assert_eq!(hello["result"]["serverInfo"]["name"], json!("jackline"));
    served.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(served.ask("ping", &json!({}))["result"], json!({}));
    let listed = served.ask("tools/list", &json!({}))["result"].clone();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let all = "read_file list_dir search find_files write_file edit_file shell jackline_page";
    assert_eq!(names.join(" "), all);
    assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == json!("object")));
    assert_eq!(listed.get("ttlMs"), None);
    assert_eq!(served.end(), Some(0));
    assert!(!world.journal("s1").exists(), "nobody called anything");
}

#[test]
fn a_request_of_the_stateless_era_stands_for_itself() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta });
    let found = served.ask("server/discover", &params)["result"].clone();
    assert_eq!(found["resultType"], json!("complete"));
    assert_eq!(found["supportedVersions"][0], json!("2026-07-28"));
    assert_eq!(found["capabilities"], json!({ "tools": { "listChanged": false } }));
    let listed = served.ask("tools/list", &params)["result"].clone();
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"] == json!("public"));
    let call = json!({ "_meta": meta, "name": "shell", "arguments": { "command": "echo hello" } });
    let result = served.ask("tools/call", &call)["result"].clone();
    assert_eq!(result["resultType"], json!("complete"));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], json!("jackline"));
    assert_eq!(result["structuredContent"]["output"], json!("hello\n"));
    let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1900-01-01" } });
    let error = served.ask("tools/list", &other)["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("1900-01-01"))
    );
    let bare = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(served.ask("tools/list", &bare)["error"]["code"], json!(-32602));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_file_is_overwritten_only_when_all_its_pages_were_seen() {
    let world = World::new(DEFINITION);
    let lines: Vec<String> = (1..=900).map(|line| format!("line {line}\n")).collect();
    fs::write(world.work().join("long.txt"), lines.concat()).unwrap();
    let mut served = Served::start(&world);
    let write = json!({ "path": "long.txt", "content": "short\n" });
    assert_eq!(code(&served.call("write_file", &write)), "denied");
    let first = served.call("read_file", &json!({ "path": "long.txt" }));
    let page = &first["structuredContent"];
    assert_eq!((&page["lines_shown"], &page["has_more"]), (&json!(500), &json!(true)));
    let denied = served.call("write_file", &write);
    assert_eq!(code(&denied), "denied");
    let violations = denied["structuredContent"]["error"]["violations"].as_array().unwrap();
    assert_eq!(violations[0]["guard"], json!("read_before_write"));
    assert!(text(&denied).starts_with("jackline: "), "{denied}");
    let second = served.call("read_file", &json!({ "path": "long.txt", "offset": 501 }));
    assert_eq!(second["structuredContent"]["has_more"], json!(false));
    let written = served.call("write_file", &write);
    assert_eq!(written["isError"], json!(false), "{written}");
    assert_eq!(fs::read_to_string(world.work().join("long.txt")).unwrap(), "short\n");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(journal.contains(r#""seen":[{"path":"long.txt","from":501,"to":900,"of":900}]"#));
    assert!(journal.contains("session_ended"));
}

#[test]
fn a_definition_says_how_much_is_shown_and_how_long_a_command_runs() {
    let io = "io:
  read_file: { max_lines: 3, max_line_bytes: 16 }
  shell: { seconds: 1, output_bytes: 1024 }
";
    let world = World::new(&format!("{DEFINITION}{io}"));
    fs::write(world.work().join("f"), format!("{}\nb\nc\nd\n", "a".repeat(20))).unwrap();
    let mut served = Served::start(&world);
    let page = served.call("read_file", &json!({"path": "f"}));
    let page = &page["structuredContent"];
    assert_eq!(
        (&page["lines_shown"], &page["cut_lines"][0]["shown_bytes"]),
        (&json!(3), &json!(16))
    );
    let ran = served.call("shell", &json!({"command": "seq 1 5000; sleep 60"}));
    let ran = &ran["structuredContent"];
    assert_eq!((&ran["timed_out"], &ran["truncated"]), (&json!(true), &json!(true)));
    assert!(ran["output"].as_str().unwrap().len() < 1200, "{ran}");
}

#[test]
fn a_line_that_was_cut_was_seen_when_all_of_its_pieces_were() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("wide.txt"), format!("a\n{}\nb\n", "x".repeat(5000))).unwrap();
    fs::write(world.work().join("empty.txt"), "").unwrap();
    let mut served = Served::start(&world);
    let page = served.call("read_file", &json!({ "path": "wide.txt" }));
    assert_eq!(page["structuredContent"]["cut_lines"][0]["line"], json!(2), "{page}");
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    let read = |served: &mut Served, from: u64| {
        let rest = json!({ "path": "wide.txt", "offset": 2, "line_offset": from });
        let page = served.call("read_file", &rest);
        assert_eq!(page["isError"], json!(false), "{page}");
        page["structuredContent"]["line_shown"] == true
    };
    let denied = |served: &mut Served| {
        let denied = served.call("write_file", &write("wide.txt"));
        assert_eq!(code(&denied), "denied");
        assert!(text(&denied).contains("2 of its 3 lines were read"), "{denied}");
    };
    assert!(!read(&mut served, 3000), "what is before it was not shown");
    denied(&mut served);
    assert!(read(&mut served, 2000));
    assert_eq!(served.call("write_file", &write("wide.txt"))["isError"], json!(false));
    // Another file of the same name begins anew.
    fs::write(world.work().join("wide.txt"), format!("a\n{}\nb\n", "y".repeat(5000))).unwrap();
    assert!(!read(&mut served, 2000));
    served.call("read_file", &json!({ "path": "wide.txt" }));
    denied(&mut served);
    assert!(read(&mut served, 1900));
    assert_eq!(served.call("write_file", &write("wide.txt"))["isError"], json!(false));
    assert_eq!(served.call("read_file", &json!({ "path": "empty.txt" }))["isError"], json!(false));
    assert_eq!(served.call("write_file", &write("empty.txt"))["isError"], json!(false));
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn a_link_to_a_file_is_no_read_of_it() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("kept.txt"), "a\nb\n").unwrap();
    let mut served = Served::start(&world);
    let names = ["ln -s kept.txt one", "cp -s kept.txt two", "ln kept.txt three", "mv kept.txt z"];
    for (line, name) in names.into_iter().zip(["one", "two", "three", "z"]) {
        let ran = served.call("shell", &json!({ "command": line }));
        assert_eq!(ran["structuredContent"]["exit_code"], json!(0), "{ran}");
        for path in ["kept.txt", name].iter().filter(|path| world.work().join(path).exists()) {
            let write = served.call("write_file", &json!({ "path": path, "content": "new" }));
            assert_eq!(code(&write), "denied", "{line}, {path}: {write}");
        }
    }
    assert_eq!(served.call("read_file", &json!({ "path": "z" }))["isError"], json!(false));
    let write = served.call("write_file", &json!({ "path": "z", "content": "new" }));
    assert_eq!(write["isError"], json!(false), "{write}");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn the_guards_decide_on_commands() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let denied = served.call("shell", &json!({ "command": "git push" }));
    assert_eq!(code(&denied), "denied");
    assert!(text(&denied).contains("A person pushes.") && text(&denied).contains("git diff"));
    let asked = served.call("shell", &json!({ "command": "touch made" }));
    assert_eq!(code(&asked), "waits_for_person");
    assert!(!world.work().join("made").exists());
    let warned = served.call("shell", &json!({ "command": "uname" }));
    assert_eq!(
        (&warned["isError"], &warned["structuredContent"]["exit_code"]),
        (&json!(false), &json!(0))
    );
    let told = warned["content"][1]["text"].as_str().unwrap();
    assert!(told.contains("The machine is of no interest."), "{warned}");
    assert_eq!(warned["structuredContent"]["feedback"].as_str().unwrap(), told);
    let failed = served.call("shell", &json!({ "command": "pwd; exit 4" }));
    assert_eq!(failed["structuredContent"]["output"], json!(".\n"));
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(journal.contains(r#""exit_code":4"#));
}

#[test]
fn a_wrong_call_leads_to_the_right_one() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let unknown = served.call("raed_file", &json!({ "path": "a" }));
    assert_eq!(code(&unknown), "unknown_tool");
    let error = &unknown["structuredContent"]["error"];
    assert_eq!(error["nearest"], json!("read_file"));
    assert!(error["tools"].as_array().unwrap().contains(&json!("shell")));
    assert!(text(&unknown).contains("did you mean `read_file`?"));
    let invalid = served.call("read_file", &json!({ "offset": [], "file": "a" }));
    assert_eq!(code(&invalid), "invalid_arguments");
    let error = &invalid["structuredContent"]["error"];
    let wrong: Vec<&str> =
        error["errors"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(wrong, ["", "", "/offset"], "a path, no file, and a number: {error}");
    assert_eq!(error["attempts_remaining"], json!(1));
    let text_only = served.call("read_file", &json!(r#"{"path":"no-such-file"}"#));
    assert_eq!(code(&text_only), "not_found", "what is clear is understood");
    let listed = served.call("read_file", &json!(["a"]));
    assert_eq!(code(&listed), "invalid_arguments", "{listed}");
    let nameless = served.ask("tools/call", &json!({ "arguments": {} }));
    assert_eq!(nameless["error"]["code"], json!(-32602));
    let missing = served.call("read_file", &json!({ "path": "no-such-file" }));
    assert_eq!(missing["isError"], json!(true));
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn an_unknown_tool_is_still_led_on_where_the_guards_refuse_it() {
    let world = World::new("version: 1\nname: test/strict\nunknown_tools: deny\n");
    let mut served = Served::start(&world);
    let refused = served.call("raed_file", &json!({}));
    assert_eq!(code(&refused), "unknown_tool");
    assert_eq!(refused["structuredContent"]["error"]["nearest"], json!("read_file"));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn the_tools_of_the_server_are_known_where_unknown_ones_are_denied_unless_some_are_listed() {
    let world = World::new("version: 1\nname: test/strict\nunknown_tools: deny\n");
    let mut served = Served::start(&world);
    let listed = served.call("list_dir", &json!({}));
    assert_ne!(listed["isError"], json!(true), "{listed}");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let world = World::new("version: 1\nname: test/listed\ntools: { read_file: {} }\n");
    let mut served = Served::start(&world);
    assert_eq!(code(&served.call("list_dir", &json!({}))), "unknown_tool");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn a_tool_that_is_not_there_is_corrected_twice_and_then_it_is_over() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    for codes in ["unknown_tool", "unknown_tool", "stopped"] {
        let refused = served.call("raed_file", &json!({}));
        assert_eq!(code(&refused), codes);
        assert_eq!(text(&refused).matches("`list_dir`").count(), 1, "{}", text(&refused));
        let over = "this session is over now: SYSTEM_ERROR{schema}; a person can open it anew";
        assert_eq!(text(&refused).contains(over), codes == "stopped", "{}", text(&refused));
        let message = &refused["structuredContent"]["error"]["message"];
        assert_eq!(message.as_str().unwrap(), text(&refused), "said twice in the same words");
    }
    let after = served.call("raed_file", &json!({}));
    assert_eq!((code(&after), text(&after).contains("`list_dir`")), ("stopped", false));
    assert_eq!(code(&served.call("list_dir", &json!({}))), "stopped");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(journal.contains(r#""type":"unknown_tool""#), "{journal}");
    assert!(journal.contains(r#""code":"SYSTEM_ERROR""#), "{journal}");
}

#[test]
fn the_guards_own_name_for_turning_pages_is_no_way_around_them() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let mut codes = Vec::new();
    for tool in ["nope", "jackline/page", "nope", "jackline/page", "nope"] {
        codes.push(code(&served.call(tool, &json!({ "cursor": "1-0" }))).to_owned());
    }
    assert_eq!(codes[1], "unknown_tool");
    assert_eq!((codes[3].as_str(), codes[4].as_str()), ("unknown_tool", "stopped"), "{codes:?}");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(!journal.contains("jackline/page"), "no guard was asked: {journal}");
}

#[test]
fn who_names_no_tool_is_told_of_all_and_of_one_only_where_it_may_be_meant() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let refused = served.call(&"x".repeat(100), &json!({}));
    assert_eq!(refused["structuredContent"]["error"]["nearest"], Value::Null, "{refused}");
    assert!(!text(&refused).contains("did you mean"), "{refused}");
    for tool in ["`read_file`", "`shell`", "`jackline_page`"] {
        assert!(text(&refused).contains(tool), "{refused}");
    }
    assert_eq!(code(&served.call("jackline_page", &json!({ "cursor": "9-0" }))), "no_such_page");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn arguments_as_a_text_are_mended_where_only_one_reading_is_left() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("a"), "one\n").unwrap();
    let mut served = Served::start(&world);
    for written in [
        r#"{"path":"a"}"#,
        r#"{"path":"a",}"#,
        "{'path':'a'}",
        "```json\n{\"path\":\"a\"}\n```",
        "<think>which file?</think>{\"path\":\"a\"}",
    ] {
        let page = served.call("read_file", &json!(written));
        assert_eq!(page["structuredContent"]["content"], json!("one\n"), "{written}: {page}");
    }
    let refused = served.call("read_file", &json!("the file a"));
    assert_eq!(code(&refused), "invalid_arguments", "{refused}");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn arguments_that_stay_wrong_end_the_session_with_what_was_wrong() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    for (path, codes) in [(1, "invalid_arguments"), (2, "invalid_arguments"), (3, "stopped")] {
        assert_eq!(code(&served.call("list_dir", &json!({ "path": path }))), codes);
    }
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(journal.contains("`/path`: expected"), "{journal}");
}

#[test]
fn who_counts_from_0_is_understood_and_spends_no_attempt() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("a"), "one\ntwo\n").unwrap();
    let mut served = Served::start(&world);
    for offset in [json!(0), json!("0"), json!(0), json!(0)] {
        let page = served.call("read_file", &json!({ "path": "a", "offset": offset }));
        assert_eq!(page["structuredContent"]["content"], json!("one\ntwo\n"), "{page}");
        let listed = served.call("list_dir", &json!({ "offset": offset }));
        assert_eq!(listed["isError"], json!(false), "{listed}");
    }
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(!journal.contains("schema_violation"), "{journal}");
}

#[test]
fn guards_that_only_observe_leave_a_wrong_call_to_the_tool() {
    let world = World::new("version: 1\nname: test/watch\nmode: observe\n");
    let mut served = Served::start(&world);
    for _ in 0..4 {
        assert_eq!(code(&served.call("raed_file", &json!({}))), "unknown_tool");
        assert_eq!(code(&served.call("list_dir", &json!({ "path": 1 }))), "invalid_arguments");
    }
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_heard() {
    let world = World::new(DEFINITION);
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
    let run = feed(&mut command(&world), &input);
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
fn a_request_that_can_be_read_only_in_part_is_answered_under_its_own_id() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let cases = [
        r#""method":"tools/list","params":{"a":1,"a":2}"#,
        r#""method":"tools/call","params":{"name":"list_dir","name":"shell","arguments":{}}"#,
        r#""method":"tools/call","params":{"name":"list_dir","_meta":{"a":1,"a":2}}"#,
        r#""method":"tools/call","params":["list_dir",{"a":1,"a":2}]"#,
    ];
    for (id, case) in (10..).zip(cases) {
        served.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},{case}}}"#));
        let answer = served.read();
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&json!(id), &json!(-32602)), "{answer}");
        assert_eq!(error["data"]["path"], "/params");
    }
    served.write(r#"{"jsonrpc":"2.0","id":"x","method":"ping","a":1,"a":2}"#);
    let answer = served.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32700)));
    // Nobody knows which of the two waits.
    served.write(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#);
    let answer = served.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    assert_eq!(served.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(served.end(), Some(0));
    assert!(!world.journal("s1").exists(), "nobody called anything");
}

#[test]
fn arguments_that_cannot_be_read_are_an_invalid_call_that_spends_an_attempt() {
    let deep = format!(r#"{{"path":{}{}}}"#, "[".repeat(150), "]".repeat(150));
    for (arguments, expected) in [
        (r#"{"path":"a","path":"b"}"#, "each key once"),
        (r#"{"path":"\ud83d"}"#, "both halves of the character"),
        (deep.as_str(), ""),
        (r#"{"path":"a","offset":1e400}"#, "a number that can be kept exactly"),
        (r#"{"path":"a","offset":1e30}"#, "at most 9007199254740991"),
        (r#"{"path":"a","offset":18446744073709551615}"#, "at most 9007199254740991"),
        (r#"{"path":"a","limit":"99999999999999999999"}"#, "a text that matches"),
    ] {
        let world = World::new(DEFINITION);
        let mut served = Served::start(&world);
        for (id, left) in [(7, Some(1)), (8, Some(0)), (9, None)] {
            let params = format!(r#"{{"name":"read_file","arguments":{arguments}}}"#);
            served.write(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
            ));
            let answer = served.read();
            assert_eq!(answer["id"], json!(id));
            let result = &answer["result"];
            let ends = if left.is_some() { "invalid_arguments" } else { "stopped" };
            assert_eq!(code(result), ends, "{answer}");
            let error = &result["structuredContent"]["error"];
            let told = error["errors"][0]["expected"].as_str().unwrap();
            assert!(told.starts_with(expected), "{told}");
            assert!(!text(result).contains("\\\""), "{}", text(result));
            if let Some(left) = left {
                assert_eq!(error["attempts_remaining"], json!(left), "{answer}");
            }
        }
        assert_eq!(served.end(), Some(0));
        world.prove("s1");
    }
}

#[test]
fn arguments_that_cannot_be_read_run_no_tool_where_guards_only_observe() {
    let world = World::new("version: 1\nname: test/watch\nmode: observe\n");
    let mut served = Served::start(&world);
    for _ in 0..4 {
        let params = r#"{"name":"write_file","arguments":{"path":"a","path":"b","content":""}}"#;
        served.write(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
        ));
        let result = served.read()["result"].clone();
        assert_eq!(code(&result), "invalid_arguments");
        assert!(text(&result).contains("the arguments can't be read: duplicate key"), "{result}");
    }
    assert_eq!(served.end(), Some(0));
    assert!(!world.work().join("a").exists() && !world.work().join("b").exists());
    world.prove("s1");
}

#[test]
fn a_whole_number_is_one_however_it_is_written() {
    let world = World::new(DEFINITION);
    fs::write(world.work().join("a"), "one\ntwo\n").unwrap();
    let mut served = Served::start(&world);
    for offset in [json!(2), json!(2.0), json!("2")] {
        let page = served.call("read_file", &json!({ "path": "a", "offset": offset }));
        assert_eq!(page["structuredContent"]["content"], json!("two\n"), "{page}");
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_message_that_is_too_long_is_answered_under_its_id_where_it_says_it() {
    let world = World::new(DEFINITION);
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
    let run = feed(&mut command(&world), input.as_bytes());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(7), &json!("last"), &json!(22), &Value::Null, &json!(1)]);
    for answer in &answers[..4] {
        assert_eq!(answer["error"]["code"], json!(-32600));
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("at most 67108864 are read"), "{said}");
    }
}

#[test]
fn servers_that_join_a_session_have_names_of_their_own_for_calls() {
    let world = World::new(DEFINITION);
    let event = |event: &str, call: &str| json!({ "event": event, "session": "s1", "call": call, "tool": "t", "args": {} });
    let began = json!({ "event": "session_started", "session": "s1" });
    world.stdio(&[began.to_string(), event("tool_proposed", "c1").to_string()]);
    let mut both = [0, 1].map(|_| Served::start(&world));
    for served in &mut both {
        // What is read differs, so that nothing is a repetition.
        let path = format!("f{}.txt", served.child.id());
        fs::write(world.work().join(&path), "a\n").unwrap();
        let result = served.call("read_file", &json!({ "path": path }));
        assert_eq!(result["isError"], false, "{result}");
    }
    let later = event("tool_proposed", "c2").to_string();
    let verdicts = world.stdio(&[later]).verdicts();
    assert_eq!(verdicts[0]["decision"], "allow", "{verdicts:?}");
    assert_eq!(both.map(Served::end), [Some(0); 2]);
    world.prove("s1");
    let records = world.records("s1");
    let calls = records.iter().filter_map(|record| match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, .. }) => call.as_ref().map(CallId::as_str),
        _ => None,
    });
    assert_eq!(calls.collect::<BTreeSet<_>>().len(), 4, "no name is given twice");
}

#[test]
fn a_long_call_keeps_nobody_waiting_and_is_answered_after_the_client_has_left() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let line = "until [ -e go ]; do sleep 0.01; done; echo went";
    let call = |id: u64, line: &str| {
        let params = json!({ "name": "shell", "arguments": { "command": line } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    served.write(&call(100, line));
    served.write(&call(101, "echo quick"));
    assert_eq!(served.read()["id"], json!(101));
    assert_eq!(served.ask("ping", &json!({}))["result"], json!({}));
    served.write(&call(102, line));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 102 } });
    served.write(&cancelled.to_string());
    assert_eq!(served.ask("ping", &json!({}))["result"], json!({}));
    drop(served.stdin.take());
    fs::write(world.work().join("go"), "").unwrap();
    let late = served.read();
    assert_eq!(late["id"], json!(100));
    assert_eq!(late["result"]["structuredContent"]["output"], json!("went\n"));
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn a_command_that_is_taken_back_is_ended_with_all_it_has_started() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let line = "sleep 1000 & echo $! > pid.new; mv pid.new pid; sleep 1000";
    let params = json!({ "name": "shell", "arguments": { "command": line } });
    let call = json!({ "jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": params });
    served.write(&call.to_string());
    let pid = loop {
        if let Ok(pid) = fs::read_to_string(world.work().join("pid")) {
            break pid.trim().to_owned();
        }
        served.ask("ping", &json!({}));
    };
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 100 } });
    served.write(&cancelled.to_string());
    // The server ends when nothing runs any more, long before the command would have.
    assert_eq!(served.end(), Some(0));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(stat.map_or(true, |stat| stat.contains(") Z ")), "{pid} is still there");
    world.prove("s1");
    let journal = fs::read_to_string(world.journal("s1")).unwrap();
    assert!(journal.contains(r#""status":"cancelled""#), "{journal}");
}

#[test]
fn the_middle_of_a_long_output_is_in_its_pages() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let long = served.call("shell", &json!({ "command": "seq 100000" }));
    assert_eq!(long["structuredContent"]["truncated"], json!(true));
    assert!(text(&long).contains("jackline_page"), "{}", text(&long));
    let artifact = &long["structuredContent"]["artifact"];
    let lines: Vec<String> = (1..=100_000).map(|line| format!("{line}\n")).collect();
    let whole = lines.concat();
    assert_eq!(fs::read_to_string(artifact["file"].as_str().unwrap()).unwrap(), whole);
    let (mut pages, mut cursor) = (String::new(), artifact["cursor"].clone());
    while let Some(at) = cursor.as_str() {
        let page = served.call("jackline_page", &json!({ "cursor": at }));
        pages.push_str(page["structuredContent"]["output"].as_str().unwrap());
        cursor = page["structuredContent"]["next_cursor"].clone();
    }
    assert!(pages == whole);
    let none = served.call("jackline_page", &json!({ "cursor": "9-0" }));
    assert_eq!(code(&none), "no_such_page");
    assert_eq!(served.end(), Some(0));
    world.prove("s1");
}

#[test]
fn a_page_that_is_asked_for_wrongly_is_answered_with_what_was_meant() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let missing = served.call("jackline_page", &json!({}));
    assert_eq!(code(&missing), "invalid_arguments");
    assert_eq!(
        text(&missing),
        "jackline: the arguments of `jackline_page` can't be used: expected the member \"cursor\", \
         got no members\n-> write it again, such as {\"cursor\":\"1-31744\"}"
    );
    let unknown = served.call("jackline_page", &json!({ "cursor": "two" }));
    assert_eq!(code(&unknown), "no_such_page");
    assert!(text(&unknown).contains("a cursor is two numbers, such as `1-31744`"), "{unknown}");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn what_makes_no_sense_is_said_at_the_start() {
    let world = World::new(DEFINITION);
    for args in [
        ["mcp", "serve", "-w", "no-such-directory"],
        ["mcp", "serve", "-d", "no-such-file"],
        ["mcp", "serve", "--session", ""],
    ] {
        let run = feed(world.command(JACKLINE).args(args), b"");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains("error:"), "{}", run.stderr);
    }
}

#[test]
fn a_broken_definition_denies_every_call_and_says_so() {
    let world = World::new("version: 1\nname: [\n");
    let mut served = Served::start(&world);
    let denied = served.call("shell", &json!({ "command": "touch made" }));
    assert_eq!(code(&denied), "guard_broken");
    assert!(text(&denied).contains("the guard is broken, not the call"), "{denied}");
    assert!(!world.work().join("made").exists());
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_command_is_no_person() {
    let world = World::new(DEFINITION);
    // As if a client had started it that nobody knows.
    let mut command = world.person();
    command.args(SERVE);
    let mut served = Served::spawn(command);
    // What a script does, no guard sees beforehand.
    let home = world.home().display().to_string();
    let script = format!("env -i JACKLINE_HOME={home} $1 {JACKLINE} off --for 1m --why x 2>&1\n");
    fs::write(world.work().join("open.sh"), script).unwrap();
    for around in ["nice", "setsid --wait", "nohup"] {
        let line = format!("sh open.sh '{around}'");
        let tried = served.call("shell", &json!({ "command": line }));
        let output = tried["structuredContent"]["output"].as_str().unwrap();
        assert!(output.contains("an agent started this"), "{tried}");
    }
    assert_eq!(code(&served.call("shell", &json!({ "command": "git push" }))), "denied");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_server_that_is_killed_leaves_no_process_behind() {
    let world = World::new(DEFINITION);
    let mut served = Served::start(&world);
    let line = "(setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' &); sleep 1000";
    let params = json!({ "name": "shell", "arguments": { "command": line } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    served.write(&call.to_string());
    let wait = |what: &dyn Fn() -> bool| {
        (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            what()
        })
    };
    assert!(wait(&|| world.work().join("pid").exists()));
    let pid = fs::read_to_string(world.work().join("pid")).unwrap();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    assert!(wait(&|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))));
}
