//! `jackline init --mcp`: the guard before the servers of a client, and away again.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::init::Project;
use crate::mcp_http::Http;
use crate::mcp_support::{Proxy, text};
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
fn a_guard_that_cannot_be_taken_out_is_said_to_be_there_still() {
    let project = with_servers(
        r#"{"mcpServers": {"t": {"command": "npx", "args": ["x"]}, "u": {"command": "y"}}}"#,
    );
    wrap(&project, &[]);
    let changed = project.read(".mcp.json").replacen("\"--\"", "\"--timeout\", \"9\", \"--\"", 1);
    project.write(".mcp.json", &changed);
    for (outcome, rest) in [("uninstalled", "\"u\": {\"command\": \"y\"}"), ("nothing_to_do", "")] {
        let run = project.init(&["--mcp", "--uninstall", "--dry-run"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stdout.contains("take it out by hand, in `"), "{run:?}");
        assert!(run.stderr.contains("THE GUARD IS STILL BEFORE `t`"), "{run:?}");
        assert!(!run.stdout.contains("put before none"), "{run:?}");
        let run = project.init(&["--mcp", "--uninstall", "--yes", "--json"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        let summary: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (&summary["outcome"], &summary["still_guarded"]),
            (&json!(outcome), &json!(["t"]))
        );
        let now = project.read(".mcp.json");
        assert!(now.contains("--timeout") && now.contains(rest), "{now}");
    }
    let words = format!(
        "\"{JACKLINE}\", \"args\": [\"mcp\", \"wrap\", \"--timeout\", \"9\", \"--\", \"npx\", \"x\"]"
    );
    let by_hand = project.read(".mcp.json").replace(&words, "\"npx\", \"args\": [\"x\"]");
    project.write(".mcp.json", &by_hand);
    assert!(wrap(&project, &["--uninstall"]).contains("put before none"), "{by_hand}");
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
    assert!(notes.contains("`--remote=far` puts the guard before it"), "{notes}");
    assert!(notes.contains("`odd` has no `command`"), "{notes}");
    assert_eq!(project.read(".mcp.json"), text);
}

/// Starts a server as a client does that reads this file.
fn start(project: &Project, name: &str) -> Proxy {
    let servers: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
    let server = &servers["mcpServers"][name];
    let words = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let env = server["env"].as_object().into_iter().flatten();
    let mut command = project.world.command(server["command"].as_str().unwrap());
    command.args(words).envs(env.map(|(key, value)| (key, value.as_str().unwrap())));
    Proxy::spawn(&mut command)
}

#[test]
fn a_server_elsewhere_answers_behind_the_guard_and_its_secrets_are_on_no_command_line() {
    let server = Http::start(|_| None);
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
        let project = with_servers(&before);
        assert!(wrap(&project, &[]).contains("`--remote=far` puts the guard before it"));
        assert_eq!(project.read(".mcp.json"), before, "only where somebody says so");
        wrap(&project, &["--remote"]);
        let now: Value = serde_json::from_str(&project.read(".mcp.json")).unwrap();
        let words = now["mcpServers"]["far"]["args"].to_string();
        assert!(!words.contains("t0ken") && !words.contains("s3cret"), "{words}");
        assert!(wrap(&project, &["--remote"]).contains("nothing to do"));

        project.write("jackline.yaml", "version: 1\nname: a/b\nmode: enforce\nrules:\n  - { name: no, tool: drop, deny: Never., examples: { deny: [{}] } }\n");
        let mut proxy = start(&project, "far");
        assert_eq!(text(&proxy.call(1, "echo", "{}"), 0), "said");
        assert!(text(&proxy.call(2, "drop", "{}"), 0).contains("Never."));
        assert_eq!(proxy.leave().code, Some(0));
        assert!(!server.seen().iter().any(|asked| asked.calls("drop")));
        let asked = server.wait(|asked| asked.calls("echo"));
        assert_eq!(asked.header("authorization"), Some("Bearer t0ken"));

        wrap(&project, &["--uninstall"]);
        assert_eq!(project.read(".mcp.json"), before);
    }
}

#[test]
fn a_server_elsewhere_comes_back_whatever_else_was_changed_and_without_a_record() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": { \"type\": \"streamable-http\", \"url\": \"https://a.example/mcp\" },\n    \"b\": { \"type\": \"http\", \"headers\": { \"K\": \"v\" }, \"url\": \"https://b.example\" }\n  }\n}\n";
    let change = |text: &str| {
        text.replace("\"v\"", "\"new\"").replacen("{\n", "{\n  \"other\": [1,  2],\n", 1)
    };
    for keeps in [true, false] {
        let project = with_servers(text);
        let said = wrap(&project, &["--remote"]);
        assert!(said.contains("`a` is sent no header"), "{said}");
        project.write(".mcp.json", &change(&project.read(".mcp.json")));
        if !keeps {
            fs::remove_dir_all(project.world.home()).unwrap();
        }
        let said = wrap(&project, &["--uninstall"]);
        assert_eq!(said.contains("nothing on this machine says who"), !keeps, "{said}");
        let word = if keeps { "streamable-http" } else { "http" };
        assert_eq!(project.read(".mcp.json"), change(text).replace("streamable-http", word));
    }
}

#[test]
fn a_server_elsewhere_that_cannot_be_wrapped_is_named_with_the_reason() {
    let text = r#"{"mcpServers": {
        "old": {"type": "sse", "url": "https://a.example"},
        "login": {"type": "http", "url": "https://a.example", "oauth": {"clientId": "x"}},
        "helper": {"type": "http", "url": "https://a.example", "headersHelper": "x"},
        "open": {"type": "http", "url": "http://a.example"},
        "line": {"type": "http", "url": "https://a.example", "headers": {"K": "t0ken\nB: c"}},
        "own": {"type": "http", "url": "https://a.example", "headers": {"Accept": "x"}}}}"#;
    let project = with_servers(text);
    for options in [&["--mcp", "--yes", "--remote"][..], &["--mcp", "--yes"]] {
        let summary = project.json(options);
        assert_eq!(summary["outcome"], "nothing_to_do");
        let notes = summary["notes"].to_string();
        for says in [
            "`old` is of type `sse`",
            "`login` has the client log in",
            "`helper` has the client ask a program",
            "`http://a.example/` is neither encrypted",
            "the header `Accept` is sent by the proxy itself",
            "the value of the header `K` has characters that no header can have",
        ] {
            assert!(notes.contains(says), "{says}: {notes}");
        }
        assert!(!notes.contains("--remote"), "{notes}");
    }
    assert_eq!(project.read(".mcp.json"), text);
    let run = project.init(&["--mcp", "--yes", "--remote=nobody"]);
    assert!(run.stderr.contains("there is no server `nobody`"), "{run:?}");
    assert_eq!(project.init(&["--yes", "--remote"]).code, Some(2), "it is about servers");
}

#[test]
fn a_guard_that_somebody_put_there_by_hand_stays() {
    let hand = r#""hand": {"command": "jackline", "args": ["mcp", "wrap", "--", "x"]}"#;
    let text = format!("{{\"mcpServers\": {{{hand}, \"files\": {{\"command\": \"npx\"}}}}}}\n");
    let project = with_servers(&text);
    wrap(&project, &[]);
    let once = project.read(".mcp.json");
    assert!(once.contains(hand) && once != text, "{once}");
    for _ in 0..2 {
        let said = wrap(&project, &["--uninstall"]);
        assert!(said.contains("`hand` has the guard before it, which was not put"), "{said}");
        assert_eq!(project.read(".mcp.json"), text, "also when it is asked for again");
    }
    wrap(&project, &[]);
    assert_eq!(project.read(".mcp.json"), once);

    // One that came later, before the next server gets its guard.
    let later = once.replacen("{\"hand\"", "{\"later\": {\"command\": \"y\"}, \"hand\"", 1);
    project.write(".mcp.json", &later);
    wrap(&project, &[]);
    wrap(&project, &["--uninstall"]);
    assert!(project.read(".mcp.json").contains(hand));
    assert_eq!(project.read(".mcp.json").matches("wrap").count(), 1);

    // Nobody remembers: then all that looks like ours goes, and the plan says so.
    wrap(&project, &[]);
    fs::remove_dir_all(project.world.home()).unwrap();
    let dry = project.json(&["--mcp", "--uninstall", "--dry-run"]);
    assert!(dry["notes"].to_string().contains("before `later`, `hand`, `files`, so what"), "{dry}");
    wrap(&project, &["--uninstall"]);
    assert!(!project.read(".mcp.json").contains("wrap"));
}

#[test]
fn what_an_older_jackline_has_wrapped_is_taken_out_too() {
    let project = with_servers(STYLES[0]);
    wrap(&project, &[]);
    let installs = project.world.home().join("installs");
    let record = fs::read_dir(installs).unwrap().next().unwrap().unwrap().path();
    let mut old: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    assert!(old.as_object_mut().unwrap().remove("servers").is_some());
    fs::write(&record, old.to_string()).unwrap();
    let more = |text: &str| text.replacen("{\"files\"", "{\"b\":{\"command\":\"b\"},\"files\"", 1);
    project.write(".mcp.json", &more(&project.read(".mcp.json")));
    wrap(&project, &[]);
    wrap(&project, &["--uninstall"]);
    assert_eq!(project.read(".mcp.json"), more(STYLES[0]));
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
