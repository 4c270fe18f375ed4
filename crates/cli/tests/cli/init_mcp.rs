//! Tests of `jackline init --mcp`: it wraps the MCP servers of a client, and unwraps them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::init::InitProject;
use crate::mcp_http::McpHttpServer;
use crate::mcp_support::{WrapProcess, result_text};
use crate::support::{JACKLINE, run_with_input};

/// Server files in the different styles that people write.
const SERVER_FILE_STYLES: [&str; 5] = [
    r#"{"mcpServers":{"files":{"command":"npx","args":["-y","x"]}}}"#,
    "{\n\t\"mcpServers\": {\n\t\t\"files\": {\n\t\t\t\"command\": \"npx\"\n\t\t}\n\t}\n}",
    "{\r\n  \"mcpServers\": {\r\n    \"files\": {\r\n      \"command\": \"npx\",\r\n      \"args\": [\r\n        \"x\"\r\n      ]\r\n    }\r\n  }\r\n}\r\n",
    "{ // mine\n  \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [], }, },\n}\n",
    "\u{feff}{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"args\": [\"x\"], \"env\": { \"A\": \"1\" } }\n  }\n}\n",
];

fn project_with_servers(text: &str) -> InitProject {
    let project = InitProject::new();
    project.write(".mcp.json", text);
    project
}

/// Guards the servers in `.mcp.json`.
fn run_init_mcp(project: &InitProject, args: &[&str]) -> String {
    run_init_of_scope(project, &[&["--shared"], args].concat())
}

fn run_init_of_scope(project: &InitProject, args: &[&str]) -> String {
    let run = project.run_init(&[&["--mcp", "--yes"], args].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout + &run.stderr
}

#[test]
fn any_style_is_restored_byte_for_byte() {
    for text in SERVER_FILE_STYLES {
        let project = project_with_servers(text);
        let before = project.contents();
        let output = run_init_mcp(&project, &["claude"]);
        let once = project.read(".mcp.json");
        assert!(once.contains(JACKLINE) && output.contains("+ "), "{output}");
        assert!(output.contains("restart the client"), "{output}");
        assert!(run_init_mcp(&project, &[]).contains("nothing to do"));
        assert_eq!(project.read(".mcp.json"), once);
        run_init_mcp(&project, &["--uninstall"]);
        assert_eq!(project.contents(), before);
        assert!(run_init_mcp(&project, &["--uninstall"]).contains("nothing to do"));
    }
}

#[test]
fn later_changes_are_not_reverted() {
    let text = SERVER_FILE_STYLES[4];
    let change = |text: &str| {
        let text = text.replace("\"x\"]", "\"x\", \"--more\"]").replace("\"1\"", "\"2\"");
        text.replacen("{\n", "{\n  \"other\": [1,  2],\n", 1)
    };
    let project = project_with_servers(text);
    run_init_mcp(&project, &[]);
    project.write(".mcp.json", &change(&project.read(".mcp.json")));
    fs::remove_dir_all(project.world.home()).unwrap();
    run_init_mcp(&project, &["--uninstall"]);
    assert_eq!(project.read(".mcp.json"), change(text));
}

#[test]
fn a_guard_that_cannot_be_removed_is_reported() {
    let project = project_with_servers(
        r#"{"mcpServers": {"t": {"command": "npx", "args": ["x"]}, "u": {"command": "y"}}}"#,
    );
    run_init_mcp(&project, &[]);
    let changed = project.read(".mcp.json").replacen("\"--\"", "\"--timeout\", \"9\", \"--\"", 1);
    project.write(".mcp.json", &changed);
    for (outcome, rest) in [("uninstalled", "\"u\": {\"command\": \"y\"}"), ("nothing_to_do", "")] {
        let run = project.run_init(&["--mcp", "--shared", "--uninstall", "--dry-run"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stdout.contains("unwrap it by hand in `"), "{run:?}");
        assert!(run.stderr.contains("server `t` IS STILL GUARDED"), "{run:?}");
        assert!(!run.stdout.contains("none of these MCP servers is guarded"), "{run:?}");
        let run = project.run_init(&["--mcp", "--shared", "--uninstall", "--yes", "--json"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        let summary: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (&summary["outcome"], &summary["still_guarded"]),
            (&json!(outcome), &json!(["t"]))
        );
        let now = project.read(".mcp.json");
        assert!(now.contains("--timeout") && now.contains(rest), "{now}");
    }
    let wrapped = format!(
        "\"{JACKLINE}\", \"args\": [\"mcp\", \"wrap\", \"--timeout\", \"9\", \"--\", \"npx\", \"x\"]"
    );
    let by_hand = project.read(".mcp.json").replace(&wrapped, "\"npx\", \"args\": [\"x\"]");
    project.write(".mcp.json", &by_hand);
    assert!(
        run_init_mcp(&project, &["--uninstall"]).contains("none of these MCP servers is guarded"),
        "{by_hand}"
    );
}

#[test]
fn a_wrapped_server_starts_behind_the_guard() {
    let text = r#"{"mcpServers": {"cat": {"command": "cat", "args": ["-u"], "env": {"A": "1"}}}}"#;
    let project = project_with_servers(text);
    run_init_mcp(&project, &[]);
    let servers: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
    let cat = &servers["mcpServers"]["cat"];
    assert_eq!(cat["env"], json!({ "A": "1" }));
    let args = cat["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let mut command = project.world.command(cat["command"].as_str().unwrap());
    let run = run_with_input(
        command.args(args),
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n",
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");
}

#[test]
fn servers_that_are_not_wrapped_are_named() {
    let text = r#"{"mcpServers": {
        "far": {"type": "http", "url": "https://example.com", "headers": {"K": "v"}},
        "own": {"command": "jackline", "args": ["mcp", "serve"]}, "odd": {"command": 1}}}"#;
    let project = project_with_servers(text);
    let summary = project.init_json(&["--mcp", "--shared", "--yes"]);
    assert_eq!(summary["outcome"], "nothing_to_do");
    let notes = summary["notes"].to_string();
    assert!(
        notes.contains("`far` is a remote server") && notes.contains("`own` is wrapped"),
        "{notes}"
    );
    assert!(notes.contains("`--remote=far` wraps it"), "{notes}");
    assert!(notes.contains("`odd` has no `command`"), "{notes}");
    assert_eq!(project.read(".mcp.json"), text);
}

/// Starts a server in the same way as a client that reads this file.
fn start_server(project: &InitProject, name: &str) -> WrapProcess {
    let servers: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
    let server = &servers["mcpServers"][name];
    let args = server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let env = server["env"].as_object().into_iter().flatten();
    let mut command = project.world.command(server["command"].as_str().unwrap());
    command.args(args).envs(env.map(|(key, value)| (key, value.as_str().unwrap())));
    WrapProcess::spawn(&mut command)
}

#[test]
fn a_remote_server_works_behind_the_guard_and_its_secrets_are_on_no_command_line() {
    let server = McpHttpServer::start(|_| None);
    let text_of = |url: &str| {
        format!(
            "{{ \"mcpServers\": {{\n  \"far\": {{\n    \"type\": \"http\",\n    \"url\": \"{url}\",\n    \
             \"headers\": {{ \"Authorization\": \"Bearer t0ken\" }}\n  }}\n}} }}\n"
        )
    };
    for url in [
        server.url.clone(),
        format!("{}?key=s3cret", server.url),
        format!("{}/s3cret-0123456789", server.url),
    ] {
        let before = text_of(&url);
        let project = project_with_servers(&before);
        assert!(run_init_mcp(&project, &[]).contains("`--remote=far` wraps it"));
        assert_eq!(
            project.read(".mcp.json"),
            before,
            "remote servers are wrapped only with --remote"
        );
        run_init_mcp(&project, &["--remote"]);
        let now: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
        let args = now["mcpServers"]["far"]["args"].to_string();
        assert!(!args.contains("t0ken") && !args.contains("s3cret"), "{args}");
        assert!(run_init_mcp(&project, &["--remote"]).contains("nothing to do"));

        project.write("jackline.yaml", "version: 1\nname: a/b\nmode: enforce\nrules:\n  - { name: no, tool: drop, deny: Never., examples: { deny: [{}] } }\n");
        let mut proxy = start_server(&project, "far");
        assert_eq!(result_text(&proxy.call_tool(1, "echo", "{}"), 0), "said");
        assert!(result_text(&proxy.call_tool(2, "drop", "{}"), 0).contains("Never."));
        assert_eq!(proxy.disconnect().code, Some(0));
        assert!(!server.requests().iter().any(|request| request.is_call_of("drop")));
        let request = server.wait_for(|request| request.is_call_of("echo"));
        assert_eq!(request.header("authorization"), Some("Bearer t0ken"));

        run_init_mcp(&project, &["--uninstall"]);
        assert_eq!(project.read(".mcp.json"), before);
    }
}

#[test]
fn a_remote_server_is_restored_after_other_changes_and_without_a_record() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": { \"type\": \"streamable-http\", \"url\": \"https://a.example/mcp\" },\n    \"b\": { \"type\": \"http\", \"headers\": { \"K\": \"v\" }, \"url\": \"https://b.example\" }\n  }\n}\n";
    let change = |text: &str| {
        text.replace("\"v\"", "\"new\"").replacen("{\n", "{\n  \"other\": [1,  2],\n", 1)
    };
    for has_record in [true, false] {
        let project = project_with_servers(text);
        let output = run_init_mcp(&project, &["--remote"]);
        assert!(output.contains("`a` gets no header"), "{output}");
        project.write(".mcp.json", &change(&project.read(".mcp.json")));
        if !has_record {
            fs::remove_dir_all(project.world.home()).unwrap();
        }
        let output = run_init_mcp(&project, &["--uninstall"]);
        assert_eq!(output.contains("no record on this machine shows who"), !has_record, "{output}");
        let transport = if has_record { "streamable-http" } else { "http" };
        assert_eq!(project.read(".mcp.json"), change(text).replace("streamable-http", transport));
    }
}

#[test]
fn a_remote_server_that_cannot_be_wrapped_is_named_with_the_reason() {
    let text = r#"{"mcpServers": {
        "old": {"type": "sse", "url": "https://a.example"},
        "login": {"type": "http", "url": "https://a.example", "oauth": {"clientId": "x"}},
        "helper": {"type": "http", "url": "https://a.example", "headersHelper": "x"},
        "open": {"type": "http", "url": "http://a.example"},
        "line": {"type": "http", "url": "https://a.example", "headers": {"K": "t0ken\nB: c"}},
        "own": {"type": "http", "url": "https://a.example", "headers": {"Accept": "x"}}}}"#;
    let project = project_with_servers(text);
    for options in
        [&["--mcp", "--shared", "--yes", "--remote"][..], &["--mcp", "--shared", "--yes"]]
    {
        let summary = project.init_json(options);
        assert_eq!(summary["outcome"], "nothing_to_do");
        let notes = summary["notes"].to_string();
        for note in [
            "`old` is of type `sse`",
            "`login` makes the client log in",
            "`helper` makes the client run a program",
            "`http://a.example/` is not encrypted",
            "the header `Accept` is set by the proxy itself",
            "the value of the header `K` contains characters that are not allowed",
        ] {
            assert!(notes.contains(note), "{note}: {notes}");
        }
        assert!(!notes.contains("--remote"), "{notes}");
    }
    assert_eq!(project.read(".mcp.json"), text);
    let run = project.run_init(&["--mcp", "--shared", "--yes", "--remote=unknown"]);
    assert!(run.stderr.contains("there is no server `unknown`"), "{run:?}");
    assert_eq!(project.run_init(&["--yes", "--remote"]).code, Some(2), "--remote requires --mcp");
}

#[test]
fn a_guard_that_a_person_wrote_by_hand_stays() {
    let hand = r#""hand": {"command": "jackline", "args": ["mcp", "wrap", "--", "x"]}"#;
    let text = format!("{{\"mcpServers\": {{{hand}, \"files\": {{\"command\": \"npx\"}}}}}}\n");
    let project = project_with_servers(&text);
    run_init_mcp(&project, &[]);
    let once = project.read(".mcp.json");
    assert!(once.contains(hand) && once != text, "{once}");
    for _ in 0..2 {
        let output = run_init_mcp(&project, &["--uninstall"]);
        assert!(output.contains("`hand` is wrapped, but not by `jackline init`"), "{output}");
        assert_eq!(project.read(".mcp.json"), text, "a second run must not change it either");
    }
    run_init_mcp(&project, &[]);
    assert_eq!(project.read(".mcp.json"), once);

    // A guard that a person added after the first `init` ran.
    let later = once.replacen("{\"hand\"", "{\"later\": {\"command\": \"y\"}, \"hand\"", 1);
    project.write(".mcp.json", &later);
    run_init_mcp(&project, &[]);
    run_init_mcp(&project, &["--uninstall"]);
    assert!(project.read(".mcp.json").contains(hand));
    assert_eq!(project.read(".mcp.json").matches("wrap").count(), 1);

    // Without a record, everything that looks like our guard is removed, and the plan says so.
    run_init_mcp(&project, &[]);
    fs::remove_dir_all(project.world.home()).unwrap();
    let dry = project.init_json(&["--mcp", "--shared", "--uninstall", "--dry-run"]);
    assert!(
        dry["notes"].to_string().contains("wrapped `later`, `hand`, `files`, so servers"),
        "{dry}"
    );
    run_init_mcp(&project, &["--uninstall"]);
    assert!(!project.read(".mcp.json").contains("wrap"));
}

#[test]
fn guards_of_an_older_jackline_are_removed_too() {
    let project = project_with_servers(SERVER_FILE_STYLES[0]);
    run_init_mcp(&project, &[]);
    let installs = project.world.home().join("installs");
    let record = fs::read_dir(installs).unwrap().next().unwrap().unwrap().path();
    let mut old: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    assert!(old.as_object_mut().unwrap().remove("servers").is_some());
    fs::write(&record, old.to_string()).unwrap();
    let more = |text: &str| text.replacen("{\"files\"", "{\"b\":{\"command\":\"b\"},\"files\"", 1);
    project.write(".mcp.json", &more(&project.read(".mcp.json")));
    run_init_mcp(&project, &[]);
    run_init_mcp(&project, &["--uninstall"]);
    assert_eq!(project.read(".mcp.json"), more(SERVER_FILE_STYLES[0]));
}

#[test]
fn user_and_local_servers_are_found_in_the_client_state() {
    let project = project_with_servers(SERVER_FILE_STYLES[0]);
    let work = project.world.workspace().display().to_string();
    let server = json!({ "command": "x", "args": ["y"] });
    let state = json!({
        "mcpServers": { "mine": server.clone() },
        "projects": { "/else": { "mcpServers": { "a": server.clone() } }, &work: { "mcpServers": { "a": server } } },
    });
    let text = serde_json::to_string_pretty(&state).unwrap();
    let person = project.world.root().join("person");
    let elsewhere = project.world.root().join("conf");
    fs::create_dir(&elsewhere).unwrap();
    let at = |directory: &PathBuf| directory.join(".claude.json");
    let read = |directory: &PathBuf| fs::read_to_string(at(directory)).unwrap();
    fs::write(at(&person), &text).unwrap();
    fs::write(at(&elsewhere), &text).unwrap();

    assert!(run_init_of_scope(&project, &["--user"]).contains("close it first"));
    run_init_of_scope(&project, &[]);
    let now: Value = serde_json::from_str(&read(&person)).unwrap();
    let command = |pointer: &str| now.pointer(pointer).unwrap().clone();
    assert_eq!(command("/mcpServers/mine/command"), JACKLINE);
    assert_eq!(command("/projects/~1else/mcpServers/a/command"), "x");
    assert_eq!(now["projects"][&work]["mcpServers"]["a"]["command"], JACKLINE);
    assert_eq!(project.read(".mcp.json"), SERVER_FILE_STYLES[0], "the shared file must not change");
    run_init_of_scope(&project, &["--user", "--uninstall"]);
    assert!(read(&person).contains(JACKLINE), "the guard of the local server stays");
    run_init_of_scope(&project, &["--uninstall"]);
    assert_eq!(read(&person), text);

    let mut command = project.command();
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["init", "--mcp", "--user", "--yes"]);
    assert_eq!(run_with_input(&mut command, b"").code, Some(0));
    assert!(read(&elsewhere).contains(JACKLINE) && read(&person) == text);
}

#[test]
fn invalid_server_files_are_reported_and_not_changed() {
    let project = InitProject::new();
    let run = project.run_init(&["--mcp", "--shared", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there is nothing to wrap"), "{}", run.stderr);
    assert_eq!(project.run_init(&["--mcp", "--shared", "--uninstall", "--yes"]).code, Some(0));
    for (text, error) in [
        ("{\"mcpServers\": {}}", "there is nothing to wrap"),
        ("{\n  \"mcpServers\": {,}\n}", "line 2, column "),
        ("[]", "the whole file must be an object"),
        ("{\"mcpServers\": []}", "`mcpServers` must be an object, but is a list"),
        ("{\"mcpServers\": {\"a\": {}, \"a\": {}}}", "`a` occurs twice"),
    ] {
        let project = project_with_servers(text);
        let run = project.run_init(&["--mcp", "--shared", "--yes"]);
        assert!(matches!(run.code, Some(1 | 2)), "{run:?}");
        assert!(run.stderr.contains(error), "{}", run.stderr);
        assert_eq!(project.read(".mcp.json"), text);
    }
    let project = project_with_servers("");
    fs::write(project.path(".mcp.json"), [0x7b, 0xff]).unwrap();
    let run = project.run_init(&["--mcp", "--shared", "--yes"]);
    assert!(run.stderr.contains("is not UTF-8"), "{run:?}");
}

#[test]
fn nothing_is_written_without_a_confirmation_and_teammates_are_mentioned() {
    let project = InitProject::in_git();
    project.write(".mcp.json", SERVER_FILE_STYLES[0]);
    let dry = project.init_json(&["--mcp", "--shared", "--dry-run"]);
    assert_eq!(
        (&dry["outcome"], &dry["changes"][0]["purpose"]),
        (&json!("dry_run"), &json!("servers"))
    );
    assert!(dry["warnings"].to_string().contains("the servers would not start"), "{dry}");
    assert_eq!(
        project.run_init(&["--mcp", "--shared"]).code,
        Some(2),
        "there is no terminal to confirm in"
    );
    assert_eq!(project.read(".mcp.json"), SERVER_FILE_STYLES[0]);
}
