//! `jackline init --mcp`: the guard before the servers of a client, and away again.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::init::Project;
use crate::support::{JACKLINE, feed};

/// Servers as people write them down.
const STYLES: [&str; 5] = [
    r#"{"mcpServers":{"files":{"command":"npx","args":["-y","x"]}}}"#,
    "{\n\t\"mcpServers\": {\n\t\t\"files\": {\n\t\t\t\"command\": \"npx\"\n\t\t}\n\t}\n}",
    "{\r\n  \"mcpServers\": {\r\n    \"files\": {\r\n      \"command\": \"npx\",\r\n      \"args\": [\r\n        \"x\"\r\n      ]\r\n    }\r\n  }\r\n}\r\n",
    "{ // mine\n  \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [], }, },\n}\n",
    "\u{feff}{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"args\": [\"x\"], \"env\": { \"A\": \"1\" } }\n  }\n}\n",
];

fn with_servers(text: &str) -> Project {
    let project = Project::new();
    project.write(".mcp.json", text);
    project
}

fn wrap(project: &Project, args: &[&str]) -> String {
    let run = project.init(&[&["--mcp", "--yes"], args].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout + &run.stderr
}

#[test]
fn any_style_comes_back_byte_for_byte() {
    for text in STYLES {
        let project = with_servers(text);
        let before = project.contents();
        let said = wrap(&project, &["claude"]);
        let once = project.read(".mcp.json");
        assert!(once.contains(JACKLINE) && said.contains("+ "), "{said}");
        assert!(said.contains("start the client anew"), "{said}");
        assert!(wrap(&project, &[]).contains("nothing to do"));
        assert_eq!(project.read(".mcp.json"), once);
        wrap(&project, &["--uninstall"]);
        assert_eq!(project.contents(), before);
        assert!(wrap(&project, &["--uninstall"]).contains("nothing to do"));
    }
}

#[test]
fn what_was_changed_since_stays() {
    let text = STYLES[4];
    let change = |text: &str| {
        let text = text.replace("\"x\"]", "\"x\", \"--more\"]").replace("\"1\"", "\"2\"");
        text.replacen("{\n", "{\n  \"other\": [1,  2],\n", 1)
    };
    let project = with_servers(text);
    wrap(&project, &[]);
    project.write(".mcp.json", &change(&project.read(".mcp.json")));
    fs::remove_dir_all(project.world.home()).unwrap();
    wrap(&project, &["--uninstall"]);
    assert_eq!(project.read(".mcp.json"), change(text));
}

#[test]
fn a_wrapped_server_starts_behind_the_guard() {
    let text = r#"{"mcpServers": {"cat": {"command": "cat", "args": ["-u"], "env": {"A": "1"}}}}"#;
    let project = with_servers(text);
    wrap(&project, &[]);
    let servers: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
    let cat = &servers["mcpServers"]["cat"];
    assert_eq!(cat["env"], json!({ "A": "1" }));
    let words = cat["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut command = project.world.command(cat["command"].as_str().unwrap());
    let run = feed(command.args(words), b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");
}

#[test]
fn servers_that_stay_as_they_are_are_named() {
    let text = r#"{"mcpServers": {
        "far": {"type": "http", "url": "https://example.com", "headers": {"K": "v"}},
        "own": {"command": "jackline", "args": ["mcp", "serve"]}, "odd": {"command": 1}}}"#;
    let project = with_servers(text);
    let summary = project.json(&["--mcp", "--yes"]);
    assert_eq!(summary["outcome"], "nothing_to_do");
    let notes = summary["notes"].to_string();
    assert!(notes.contains("`far` is no program") && notes.contains("`own` has"), "{notes}");
    assert!(notes.contains("`odd` has no `command`"), "{notes}");
    assert_eq!(project.read(".mcp.json"), text);
}

#[test]
fn ones_own_servers_are_found_where_the_client_keeps_them() {
    let project = with_servers(STYLES[0]);
    let work = project.world.work().display().to_string();
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

    assert!(wrap(&project, &["--user"]).contains("close it first"));
    wrap(&project, &["--local"]);
    let now: Value = serde_json::from_str(&read(&person)).unwrap();
    let command = |pointer: &str| now.pointer(pointer).unwrap().clone();
    assert_eq!(command("/mcpServers/mine/command"), JACKLINE);
    assert_eq!(command("/projects/~1else/mcpServers/a/command"), "x");
    assert_eq!(now["projects"][&work]["mcpServers"]["a"]["command"], JACKLINE);
    assert_eq!(project.read(".mcp.json"), STYLES[0], "that is for everybody");
    wrap(&project, &["--user", "--uninstall"]);
    assert!(read(&person).contains(JACKLINE), "the other one stays");
    wrap(&project, &["--local", "--uninstall"]);
    assert_eq!(read(&person), text);

    let mut command = project.command();
    command.env("CLAUDE_CONFIG_DIR", &elsewhere).args(["init", "--mcp", "--user", "--yes"]);
    assert_eq!(feed(&mut command, b"").code, Some(0));
    assert!(read(&elsewhere).contains(JACKLINE) && read(&person) == text);
}

#[test]
fn what_cannot_be_wrapped_is_said_and_left_alone() {
    let project = Project::new();
    let run = project.init(&["--mcp", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there is nothing to wrap"), "{}", run.stderr);
    assert_eq!(project.init(&["--mcp", "--uninstall", "--yes"]).code, Some(0));
    for (text, says) in [
        ("{\"mcpServers\": {}}", "there is nothing to wrap"),
        ("{\n  \"mcpServers\": {,}\n}", "line 2, column "),
        ("[]", "the whole file must be an object"),
        ("{\"mcpServers\": []}", "`mcpServers` must be an object, and is a list"),
        ("{\"mcpServers\": {\"a\": {}, \"a\": {}}}", "`a` is there twice"),
    ] {
        let project = with_servers(text);
        let run = project.init(&["--mcp", "--yes"]);
        assert!(matches!(run.code, Some(1 | 2)), "{run:?}");
        assert!(run.stderr.contains(says), "{}", run.stderr);
        assert_eq!(project.read(".mcp.json"), text);
    }
    let project = with_servers("");
    fs::write(project.path(".mcp.json"), [0x7b, 0xff]).unwrap();
    let run = project.init(&["--mcp", "--yes"]);
    assert!(run.stderr.contains("is not UTF-8"), "{run:?}");
}

#[test]
fn nothing_is_written_without_a_word_and_others_are_thought_of() {
    let project = Project::in_git();
    project.write(".mcp.json", STYLES[0]);
    let dry = project.json(&["--mcp", "--dry-run"]);
    assert_eq!(
        (&dry["outcome"], &dry["changes"][0]["purpose"]),
        (&json!("dry_run"), &json!("servers"))
    );
    assert!(dry["warnings"].to_string().contains("the servers would not start"), "{dry}");
    assert_eq!(project.init(&["--mcp"]).code, Some(2), "nobody can be asked");
    assert_eq!(project.read(".mcp.json"), STYLES[0]);
}
