//! What happens to the servers in people's files.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::claude::settings::value_of;

const PLACE: [&str; 1] = ["mcpServers"];

fn wrapped(text: &str) -> Edited {
    let once = wrap(text, &PLACE, "/opt/jackline").unwrap();
    let twice = wrap(&once.text, &PLACE, "/opt/jackline").unwrap();
    assert_eq!((twice.text, twice.changed), (once.text.clone(), Vec::new()), "once is enough");
    once
}

fn there_and_back(text: &str) -> String {
    unwrap(&wrapped(text).text, &PLACE).unwrap().text
}

/// The servers, in every style that a person may write them in.
const STYLES: [&str; 16] = [
    r#"{"mcpServers":{"files":{"command":"npx","args":["-y","x"]}}}"#,
    r#"{"mcpServers":{"files":{"command":"npx"}}}"#,
    r#"{"mcpServers":{"files":{"command":"npx","args":[]}}}"#,
    r#"{"mcpServers":{"files":{"command":"npx","args":[ ]}}}"#,
    r#"{"mcpServers":{"files":{"args":["x"],"env":{"A":"1"},"command":"np\u0078"}}}"#,
    r#"{"mcpServers":{"files":{"args":[],"command":"npx"}}}"#,
    "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\",\n        \"x\"\n      ],\n      \"env\": {}\n    }\n  }\n}\n",
    "{\n\t\"mcpServers\": {\n\t\t\"files\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"npx\"\n\t\t}\n\t}\n}",
    "{\r\n  \"mcpServers\": {\r\n    \"a\": {\r\n      \"command\": \"npx\"\r\n    },\r\n    \"b\": { \"command\": \"b\", \"args\": [\r\n      \"1\"] }\r\n  }\r\n}\r\n",
    "\u{feff}{ \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [ \"x\" ] } } }",
    "// mine\n{ \"mcpServers\": { /* a */ \"files\": { // b\n \"command\": /* c */ \"npx\", // d\n \"args\": [ // e\n \"x\", /* f */ \"y\", // g\n ], }, }, } // h",
    "{\"mcpServers\":{\"files\":{\"command\":\"npx\",\"args\":[/* none */]}}}",
    "{\"mcpServers\":{\"files\":{\"command\" : \"npx\" , \"args\" : [\n]}}}",
    "{\"mcpServers\":{}}",
    "{\"other\": 1}\n",
    "",
];

#[test]
fn any_style_comes_back_byte_for_byte() {
    for text in STYLES {
        assert_eq!(there_and_back(text), text);
    }
}

#[test]
fn the_server_is_started_by_the_same_words() {
    let servers = |text: &str| value_of(text).unwrap()["mcpServers"].clone();
    let text = STYLES[6];
    let edited = wrapped(text);
    let files = json!({
        "command": "/opt/jackline", "args": ["mcp", "wrap", "--", "npx", "-y", "x"], "env": {},
    });
    assert_eq!(servers(&edited.text), json!({ "files": files }));
    assert_eq!((edited.changed, edited.left), (vec!["files".to_owned()], vec![]));
    assert!(edited.text.contains("        \"mcp\", \"wrap\", \"--\", \"npx\",\n        \"-y\",\n"));
    let alone = wrapped(STYLES[7]).text;
    assert!(
        alone.contains("\n\t\t\t\"args\": [\"mcp\", \"wrap\", \"--\", \"npx\"]\n\t\t}"),
        "{alone}"
    );
}

#[test]
fn what_somebody_changed_meanwhile_stays() {
    let text = STYLES[6];
    let edited = wrapped(text).text;
    let change = |text: &str| {
        let text = text.replace("\"env\": {}", "\"env\": { \"A\": \"1\" } // mine");
        text.replace("\"x\"\n", "\"x\",\n        \"--more\"\n")
    };
    assert_eq!(unwrap(&change(&edited), &PLACE).unwrap().text, change(text));
    let commented = edited.replace("\"npx\",\n", "\"npx\", // why\n");
    let back = unwrap(&commented, &PLACE).unwrap().text;
    assert!(back.contains("// why") && value_of(&back) == value_of(text), "{back}");
    let emptied = edited.replace(",\n        \"-y\",\n        \"x\"", ",");
    let back = value_of(&unwrap(&emptied, &PLACE).unwrap().text).unwrap();
    assert_eq!(back["mcpServers"]["files"], json!({ "command": "npx", "args": [], "env": {} }));
}

#[test]
fn what_is_guarded_remote_or_odd_is_left_and_named() {
    let text = r#"{"mcpServers": {
        "own": {"command": "jackline", "args": ["mcp", "serve"]},
        "by hand": {"command": "/x/jackline", "args": ["mcp", "wrap", "--timeout", "5", "--", "npx"]},
        "far": {"type": "http", "url": "https://example.com"},
        "far too": {"url": "https://example.com", "command": "x"},
        "list": [], "bare": {}, "number": {"command": "x", "args": [1]},
        "text": {"command": "x", "args": "y"}
    }}"#;
    let edited = wrapped(text);
    assert_eq!(edited.text, text);
    let left: Vec<(&str, Left)> =
        edited.left.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    let expected = [
        ("own", Left::Guarded),
        ("by hand", Left::Guarded),
        ("far", Left::Remote),
        ("far too", Left::Remote),
        ("list", Left::Odd("is no object")),
        ("bare", Left::Odd("has no `command`")),
        ("number", Left::Odd("has `args` that are no texts")),
        ("text", Left::Odd("has `args` that are no list")),
    ];
    assert_eq!(left, expected);
    assert_eq!(unwrap(text, &PLACE).unwrap().text, text);
}

#[test]
fn an_older_installation_is_brought_up_to_date() {
    let text = STYLES[0];
    let old = wrap(text, &PLACE, "/old/jackline").unwrap().text;
    let new = wrap(&old, &PLACE, "jackline").unwrap();
    assert_eq!(new.changed, ["files"]);
    assert_eq!(new.text, wrap(text, &PLACE, "jackline").unwrap().text);
}

#[test]
fn servers_of_one_project_are_found_among_others() {
    let text = r#"{"projects": {"/a": {"mcpServers": {"x": {"command": "x"}}}, "/b": {"mcpServers": {"x": {"command": "x"}}}}}"#;
    let place = ["projects", "/b", "mcpServers"];
    let edited = wrap(text, &place, "jackline").unwrap().text;
    let value = value_of(&edited).unwrap();
    assert_eq!(value["projects"]["/a"]["mcpServers"]["x"], json!({ "command": "x" }));
    assert_eq!(value["projects"]["/b"]["mcpServers"]["x"]["command"], json!("jackline"));
    assert_eq!(unwrap(&edited, &place).unwrap().text, text);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let shape = |what: &str, got| SettingsError::Shape {
        what: what.to_owned(),
        expected: "an object",
        got,
    };
    let twice = |key: &str| SettingsError::Twice { key: key.to_owned() };
    for (text, error) in [
        ("[]", shape("the whole file", "a list")),
        ("null", shape("the whole file", "null")),
        ("{\"mcpServers\": []}", shape("`mcpServers`", "a list")),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", twice("mcpServers")),
        ("{\"mcpServers\": {\"a\": {}, \"a\": {}}}", twice("a")),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"command\": \"y\"}}}", twice("command")),
    ] {
        assert_eq!(wrap(text, &PLACE, "jackline"), Err(error.clone()), "{text}");
        assert_eq!(unwrap(text, &PLACE), Err(error), "{text}");
    }
    let error = wrap("{\n  \"a\": 1\n  \"b\": 2\n}", &PLACE, "jackline").unwrap_err();
    assert!(error.to_string().contains("line 2, column 9: "), "{error}");
}

fn gap() -> impl Strategy<Value = &'static str> {
    let gaps = ["", " ", "\n  ", "\n\t", "\r\n    ", " // a é {\n", " /* \" , */ "];
    prop::sample::select(gaps.to_vec())
}

/// A server with anything between its parts.
fn server() -> impl Strategy<Value = String> {
    let words = ["\"-y\"", "\"\"", "\"np\\u0078 é\"", "\"mcp\"", "\"--\""];
    let args = prop::collection::vec(prop::sample::select(words.to_vec()), 0..4);
    let gaps = prop::collection::vec(gap(), 8);
    (prop::option::of(args), gaps, any::<[bool; 4]>()).prop_map(
        |(args, gaps, [last, first, comma, more])| {
            let gap = |at: usize| gaps.get(at).copied().unwrap_or_default();
            let mut parts = vec![format!("\"command\"{}:{}\"npx\"", gap(0), gap(1))];
            if let Some(args) = args {
                let comma = if last && !args.is_empty() { "," } else { "" };
                let list = args.join(&format!("{},{}", gap(2), gap(3)));
                parts.push(format!("\"args\":[{}{list}{comma}{}]", gap(4), gap(5)));
            }
            if more {
                parts.push("\"env\": {}".to_owned());
            }
            if first {
                parts.reverse();
            }
            let end = if comma { "," } else { "" };
            format!(
                "{{{}{}{end}{}}}",
                gap(6),
                parts.join(&format!("{},{}", gap(7), gap(6))),
                gap(2)
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_looks_like_it_comes_back(servers in prop::collection::vec(server(), 1..4)) {
        let named = servers.iter().enumerate().map(|(at, server)| format!("\"s{at}\": {server}"));
        let text = format!("{{\"mcpServers\": {{{}}}}}", named.collect::<Vec<String>>().join(","));
        prop_assert_eq!(there_and_back(&text), text.clone());
        let before = value_of(&text).unwrap();
        let after = value_of(&wrapped(&text).text).unwrap();
        for (name, server) in before["mcpServers"].as_object().unwrap() {
            let none = Vec::new();
            let old = server["args"].as_array().unwrap_or(&none);
            let words = [json!("mcp"), json!("wrap"), json!("--"), json!("npx")];
            let expected: Vec<Value> = words.iter().chain(old).cloned().collect();
            prop_assert_eq!(&after["mcpServers"][name]["args"], &Value::Array(expected));
        }
    }
}
