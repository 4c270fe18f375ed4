//! Tests that wrapping and unwrapping servers preserves the rest of the files.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use jackline_clients::settings_text::parse_value;

const KEY_PATH: [&str; 1] = ["mcpServers"];

fn wrap(text: &str, place: &[&str], program: &str) -> Result<EditedServers, SettingsError> {
    wrap_with(text, place, program, &RemoteSelection::None, &WrapHistory::NoRecord)
}

fn wrap_with(
    text: &str,
    place: &[&str],
    program: &str,
    remote: &RemoteSelection,
    history: &WrapHistory,
) -> Result<EditedServers, SettingsError> {
    super::wrap_servers(
        text,
        place,
        WrapOptions { program, remote, can_connect: |_, _| Ok(()), history },
    )
}

fn unwrap(text: &str, place: &[&str]) -> Result<EditedServers, SettingsError> {
    super::unwrap_servers(text, place, &WrapHistory::NoRecord)
}

fn wrapped(text: &str) -> EditedServers {
    let once = wrap(text, &KEY_PATH, "/opt/jackline").unwrap();
    let twice = wrap(&once.text, &KEY_PATH, "/opt/jackline").unwrap();
    assert_eq!(
        (twice.text, twice.changed),
        (once.text.clone(), Vec::new()),
        "a second wrapping changes nothing"
    );
    once
}

fn there_and_back(text: &str) -> String {
    unwrap(&wrapped(text).text, &KEY_PATH).unwrap().text
}

/// Wraps the remote servers too.
fn wrapped_all(text: &str) -> EditedServers {
    wrap_with(text, &KEY_PATH, "/opt/jackline", &RemoteSelection::All, &WrapHistory::NoRecord)
        .unwrap()
}

/// Servers in all styles that a person may use.
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
fn any_style_is_restored_byte_for_byte() {
    for text in STYLES {
        assert_eq!(there_and_back(text), text);
    }
}

#[test]
fn the_server_is_started_with_the_same_arguments() {
    let servers = |text: &str| parse_value(text).unwrap()["mcpServers"].clone();
    let text = STYLES[6];
    let edited = wrapped(text);
    let files = json!({
        "command": "/opt/jackline", "args": ["mcp", "wrap", "--", "npx", "-y", "x"], "env": {},
    });
    assert_eq!(servers(&edited.text), json!({ "files": files }));
    assert_eq!((edited.changed, edited.unchanged), (vec!["files".to_owned()], vec![]));
    assert!(edited.text.contains("        \"mcp\", \"wrap\", \"--\", \"npx\",\n        \"-y\",\n"));
    let alone = wrapped(STYLES[7]).text;
    assert!(
        alone.contains("\n\t\t\t\"args\": [\"mcp\", \"wrap\", \"--\", \"npx\"]\n\t\t}"),
        "{alone}"
    );
}

#[test]
fn later_changes_of_other_people_stay() {
    let text = STYLES[6];
    let edited = wrapped(text).text;
    let change = |text: &str| {
        let text = text.replace("\"env\": {}", "\"env\": { \"A\": \"1\" } // mine");
        text.replace("\"x\"\n", "\"x\",\n        \"--more\"\n")
    };
    assert_eq!(unwrap(&change(&edited), &KEY_PATH).unwrap().text, change(text));
    let commented = edited.replace("\"npx\",\n", "\"npx\", // why\n");
    let back = unwrap(&commented, &KEY_PATH).unwrap().text;
    assert!(back.contains("// why") && parse_value(&back) == parse_value(text), "{back}");
    let emptied = edited.replace(",\n        \"-y\",\n        \"x\"", ",");
    let back = parse_value(&unwrap(&emptied, &KEY_PATH).unwrap().text).unwrap();
    assert_eq!(back["mcpServers"]["files"], json!({ "command": "npx", "args": [], "env": {} }));
}

#[test]
fn wrapped_remote_and_invalid_servers_stay_unchanged_with_a_reason() {
    let text = r#"{"mcpServers": {
        "own": {"command": "jackline", "args": ["mcp", "serve"]},
        "by hand": {"command": "/x/jackline", "args": ["mcp", "wrap", "--timeout", "5", "--", "npx"]},
        "far": {"type": "http", "url": "https://example.com"},
        "far too": {"url": "https://example.com", "command": "x"},
        "old": {"type": "sse", "url": "https://example.com"},
        "list": [], "bare": {}, "number": {"command": "x", "args": [1]},
        "text": {"command": "x", "args": "y"}
    }}"#;
    let edited = wrapped(text);
    assert_eq!(edited.text, text);
    let unchanged: Vec<(&str, UnchangedReason)> =
        edited.unchanged.iter().map(|(name, why)| (name.as_str(), why.clone())).collect();
    let invalid = |why: &str| UnchangedReason::Invalid(why.to_owned());
    let expected = [
        ("own", UnchangedReason::Wrapped),
        ("by hand", UnchangedReason::Wrapped),
        ("far", UnchangedReason::Remote),
        ("far too", invalid("has a `url` but no `type`, so the client can't use it either")),
        ("old", invalid("is of type `sse`, but `jackline mcp wrap` supports only `http`")),
        ("list", invalid("is not an object")),
        ("bare", invalid("has no `command`")),
        ("number", invalid("has `args` that are not all texts")),
        ("text", invalid("has `args` that are not a list")),
    ];
    assert_eq!(unchanged, expected);
    assert_eq!(unwrap(text, &KEY_PATH).unwrap().text, text);
}

#[test]
fn an_older_installation_is_updated() {
    let text = STYLES[0];
    let old = wrap(text, &KEY_PATH, "/old/jackline").unwrap().text;
    let new = wrap(&old, &KEY_PATH, "jackline").unwrap();
    assert_eq!(new.changed, ["files"]);
    assert_eq!(new.text, wrap(text, &KEY_PATH, "jackline").unwrap().text);
}

#[test]
fn a_remote_server_is_passed_in_arguments_and_its_secrets_in_variables() {
    let text = r#"{"mcpServers": {
        "plain": {"type": "http", "url": "https://a.example/mcp", "timeout": 5},
        "token": {"headers": {"Authorization": "Bearer ${T}", "X-Team": "b\u006cue"}, "type": "http", "url": "https://a.example/"},
        "key": {"type": "http", "url": "https://a.example/?key=s3cret", "headers": {"X-Team": "blue"}},
        "variable": {"type": "http", "url": "${BASE}/mcp"}}}"#;
    let edited = wrapped_all(text);
    assert_eq!(edited.changed, ["plain", "token", "key", "variable"]);
    assert_eq!(edited.without_header, ["plain", "variable"]);
    let servers = parse_value(&edited.text).unwrap()["mcpServers"].clone();
    let expected = json!({
        "plain": { "type": "stdio", "command": "/opt/jackline", "timeout": 5,
            "args": ["mcp", "wrap", "--url", "https://a.example/mcp"] },
        "token": { "type": "stdio", "command": "/opt/jackline",
            "args": ["mcp", "wrap", "--url", "https://a.example/", "--header-env", "Authorization=JACKLINE_HEADER_1", "--header-env", "X-Team=JACKLINE_HEADER_2"],
            "env": { "JACKLINE_HEADER_1": "Bearer ${T}", "JACKLINE_HEADER_2": "blue" } },
        "key": { "type": "stdio", "command": "/opt/jackline",
            "args": ["mcp", "wrap", "--url-env", "JACKLINE_URL", "--header-env", "X-Team=JACKLINE_HEADER_1"],
            "env": { "JACKLINE_URL": "https://a.example/?key=s3cret", "JACKLINE_HEADER_1": "blue" } },
        "variable": { "type": "stdio", "command": "/opt/jackline",
            "args": ["mcp", "wrap", "--url-env", "JACKLINE_URL"], "env": { "JACKLINE_URL": "${BASE}/mcp" } },
    });
    assert_eq!(servers, expected);
    assert_eq!(unwrap(&edited.text, &KEY_PATH).unwrap().text, text);
    let history = WrapHistory::Recorded(edited.wrapped);
    let moved =
        wrap_with(&edited.text, &KEY_PATH, "jackline", &RemoteSelection::None, &history).unwrap();
    assert_eq!(moved.changed, ["plain", "token", "key", "variable"]);
    assert_eq!(super::unwrap_servers(&moved.text, &KEY_PATH, &history).unwrap().text, text);
}

#[test]
fn only_the_named_remote_servers_are_wrapped() {
    let text = r#"{"mcpServers": {"a": {"type": "http", "url": "https://a"}, "b": {"type": "http", "url": "https://b"}}}"#;
    let named = RemoteSelection::Named(vec!["b".to_owned()]);
    let edited = wrap_with(text, &KEY_PATH, "jackline", &named, &WrapHistory::NoRecord).unwrap();
    assert_eq!(edited.changed, ["b"]);
    assert_eq!(edited.unchanged, [("a".to_owned(), UnchangedReason::Remote)]);
}

#[test]
fn a_changed_remote_server_is_restored_or_stays_wrapped() {
    let text = r#"{"mcpServers": {"a": {"type": "streamable-http", "url": "https://a/mcp", "headers": {"K": "v"}}}}"#;
    let edited = wrapped_all(text);
    assert_eq!(edited.wrapped["a"].as_deref(), Some("\"streamable-http\""));
    let history = WrapHistory::Recorded(edited.wrapped.clone());
    let back = |text: &str| super::unwrap_servers(text, &KEY_PATH, &history).unwrap();
    assert_eq!(back(&edited.text).text, text);
    let without_record = unwrap(&edited.text, &KEY_PATH).unwrap().text;
    assert_eq!(
        without_record,
        text.replace("streamable-http", "http"),
        "the client treats both types alike"
    );

    let change =
        |text: &str| text.replace("\"v\"", "\"w\", \n").replace("https://a/", "https://b/");
    let change = |text: &str| {
        change(text).replace("\"w\", \n", "\"w\"").replace("}}}}", "}, \"timeout\": 9}}}")
    };
    assert_eq!(back(&change(&edited.text)).text, change(text));
    let untyped = edited.text.replace("\"type\": \"stdio\", ", "");
    assert_eq!(parse_value(&back(&untyped).text), parse_value(text));

    for (old, new) in [
        ("\"mcp\", \"wrap\",", "\"mcp\", \"wrap\", \"--timeout\", \"9\","),
        ("\"K=JACKLINE_HEADER_1\"", "\"K=OTHER\""),
        ("\"v\"}", "\"v\", \"MORE\": \"1\"}"),
        ("\"v\"}", "1}"),
    ] {
        let changed = edited.text.replace(old, new);
        assert_ne!(changed, edited.text);
        let back = back(&changed);
        assert_eq!(
            (back.text, back.unchanged),
            (changed, vec![("a".to_owned(), UnchangedReason::Changed)])
        );
    }
}

#[test]
fn a_secret_address_is_not_on_the_command_line_and_is_restored() {
    for (url, is_secret) in [
        ("https://a.example/mcp", false),
        ("https://a.example/v1/some-long-words-without-any", false),
        ("https://a1b2c3d4e5f6a7b8c9/mcp", false),
        ("https://a.example/12345678901234567890/mcp", false),
        ("https://a.example/a.b/k3y", false),
        ("https://a.example/s/sk_live-0123456789", true),
        ("https://a.example/0123456789abcdef", true),
        ("https://a.example/mcp#k", true),
        ("https://me:k@a.example/mcp", true),
        ("https://a.example/mcp?k", true),
        ("https://${HOST}/mcp", true),
    ] {
        let server = format!(r#"{{"type": "http", "url": "{url}", "headers": {{"K": "v"}}}}"#);
        let text = format!("{{\"mcpServers\": {{\"a\": {server}}}}}");
        let edited = wrapped_all(&text);
        assert_eq!(edited.text.contains("--url-env"), is_secret, "{url}");
        assert_eq!(edited.text.contains(&format!("--url\", \"{url}")), !is_secret, "{url}");
        assert_eq!(unwrap(&edited.text, &KEY_PATH).unwrap().text, text);
    }
}

#[test]
fn a_remote_server_that_can_not_be_wrapped_stays_unchanged_with_a_reason() {
    for (server, reason) in [
        (r#"{"type": "sse", "url": "https://a"}"#, "is of type `sse`"),
        (r#"{"type": "ws", "url": "wss://a"}"#, "is of type `ws`"),
        (r#"{"type": "http", "url": 1}"#, "that is not a text"),
        (r#"{"type": "http"}"#, "without a `url`"),
        (
            r#"{"type": "http", "url": "https://a", "headersHelper": "x"}"#,
            "run a program for its headers",
        ),
        (r#"{"type": "http", "url": "https://a", "oauth": {}}"#, "makes the client log in"),
        (r#"{"type": "http", "url": "https://a", "tools": []}"#, "has tool rules"),
        (r#"{"type": "http", "url": "https://a", "env": {}}"#, "keys that start a program"),
        (r#"{"type": "http", "url": "https://a", "headers": []}"#, "not an object"),
        (r#"{"type": "http", "url": "https://a", "headers": {"A": ""}}"#, "is empty or not a text"),
        (r#"{"type": "http", "url": "https://a", "headers": {"A": "1", "a": "2"}}"#, "twice"),
        (r#"{"type": "http", "\u0075rl": "https://a"}"#, "escapes"),
        (r#"{"type": "http", "url": "https://a?b", "headers": {}}"#, "empty `headers`"),
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {server}}}}}");
        let edited = wrapped_all(&text);
        assert_eq!(edited.text, text);
        assert!(
            matches!(&edited.unchanged[0].1, UnchangedReason::Invalid(why) if why.contains(reason)),
            "{edited:?}"
        );
    }
}

#[test]
fn with_a_record_servers_wrapped_by_hand_stay_wrapped() {
    let hand = r#""hand": {"command": "jackline", "args": ["mcp", "wrap", "--", "x"]}"#;
    let text = format!("{{\"mcpServers\": {{{hand}, \"files\": {{\"command\": \"npx\"}}}}}}");
    let edited = wrapped(&text);
    assert_eq!(edited.changed, ["files"]);
    assert!(edited.text.contains(hand), "{}", edited.text);
    let history = WrapHistory::Recorded(edited.wrapped);
    let back = super::unwrap_servers(&edited.text, &KEY_PATH, &history).unwrap();
    assert_eq!((back.text, back.changed), (text, vec!["files".to_owned()]));
    assert_eq!(back.unchanged, [("hand".to_owned(), UnchangedReason::WrappedByHand)]);
    assert_eq!(unwrap(&edited.text, &KEY_PATH).unwrap().changed, ["hand", "files"]);
}

#[test]
fn servers_of_one_project_are_found_among_others() {
    let text = r#"{"projects": {"/a": {"mcpServers": {"x": {"command": "x"}}}, "/b": {"mcpServers": {"x": {"command": "x"}}}}}"#;
    let place = ["projects", "/b", "mcpServers"];
    let edited = wrap(text, &place, "jackline").unwrap().text;
    let value = parse_value(&edited).unwrap();
    assert_eq!(value["projects"]["/a"]["mcpServers"]["x"], json!({ "command": "x" }));
    assert_eq!(value["projects"]["/b"]["mcpServers"]["x"]["command"], json!("jackline"));
    assert_eq!(unwrap(&edited, &place).unwrap().text, text);
}

#[test]
fn errors_report_the_position() {
    let shape = |what: &str, got| SettingsError::WrongType {
        what: what.to_owned(),
        expected: "an object",
        got,
    };
    let twice = |key: &str| SettingsError::DuplicateKey { key: key.to_owned() };
    for (text, error) in [
        ("[]", shape("the whole file", "a list")),
        ("null", shape("the whole file", "null")),
        ("{\"mcpServers\": []}", shape("`mcpServers`", "a list")),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", twice("mcpServers")),
        ("{\"mcpServers\": {\"a\": {}, \"a\": {}}}", twice("a")),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"command\": \"y\"}}}", twice("command")),
    ] {
        assert_eq!(wrap(text, &KEY_PATH, "jackline"), Err(error.clone()), "{text}");
        assert_eq!(unwrap(text, &KEY_PATH), Err(error), "{text}");
    }
    let error = wrap("{\n  \"a\": 1\n  \"b\": 2\n}", &KEY_PATH, "jackline").unwrap_err();
    assert!(error.to_string().contains("line 2, column 9: "), "{error}");
}

fn gap() -> impl Strategy<Value = &'static str> {
    let gaps = ["", " ", "\n  ", "\n\t", "\r\n    ", " // a é {\n", " /* \" , */ "];
    prop::sample::select(gaps.to_vec())
}

/// A server with any white space and comments between its parts.
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

/// A remote server with any white space and comments between its parts.
fn elsewhere() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec!["http", "streamable-http", "h\\u0074tp"]);
    let urls =
        prop::sample::select(vec!["https://a/mcp", "https:\\/\\/a/", "https://a?k=é", "${A:-b}/"]);
    let headers = prop::option::of(prop::collection::vec("[a-z]{1,3}", 0..4));
    let gaps = prop::collection::vec(gap(), 8);
    (kinds, urls, headers, gaps, 0_usize..6, any::<[bool; 2]>()).prop_map(
        |(kind, url, headers, gaps, turn, [comma, more])| {
            let gap = |at: usize| gaps.get(at).copied().unwrap_or_default();
            let mut parts = vec![
                format!("\"type\"{}:{}\"{kind}\"", gap(0), gap(1)),
                format!("\"url\"{}:{}\"{url}\"", gap(2), gap(0)),
            ];
            if let Some(headers) = headers {
                let headers = headers.iter().enumerate();
                let headers: Vec<String> = headers
                    .map(|(at, name)| {
                        format!("\"{name}{at}\"{}:{}\"v{at}\\u0061\"", gap(3), gap(4))
                    })
                    .collect();
                let headers = headers.join(&format!("{},{}", gap(5), gap(6)));
                parts.push(format!("\"headers\": {{{}{headers}{}}}", gap(7), gap(1)));
            }
            if more {
                parts.push("\"timeout\": 9".to_owned());
            }
            let turn = turn % parts.len();
            parts.rotate_left(turn);
            let end = if comma { "," } else { "" };
            let parts = parts.join(&format!("{},{}", gap(7), gap(6)));
            format!("{{{}{parts}{end}{}}}", gap(2), gap(3))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_server_is_restored(servers in prop::collection::vec(server(), 1..4)) {
        let entries = servers.iter().enumerate().map(|(at, server)| format!("\"s{at}\": {server}"));
        let text = format!("{{\"mcpServers\": {{{}}}}}", entries.collect::<Vec<String>>().join(","));
        prop_assert_eq!(there_and_back(&text), text.clone());
        let before = parse_value(&text).unwrap();
        let after = parse_value(&wrapped(&text).text).unwrap();
        for (name, server) in before["mcpServers"].as_object().unwrap() {
            let none = Vec::new();
            let old = server["args"].as_array().unwrap_or(&none);
            let words = [json!("mcp"), json!("wrap"), json!("--"), json!("npx")];
            let expected: Vec<Value> = words.iter().chain(old).cloned().collect();
            prop_assert_eq!(&after["mcpServers"][name]["args"], &Value::Array(expected));
        }
    }

    #[test]
    fn any_remote_server_is_restored(servers in prop::collection::vec(elsewhere(), 1..4)) {
        let entries = servers.iter().enumerate().map(|(at, server)| format!("\"s{at}\": {server}"));
        let text = format!("{{\"mcpServers\": {{{}}}}}", entries.collect::<Vec<String>>().join(","));
        let edited = wrapped_all(&text);
        let before = parse_value(&text).unwrap();
        let after = parse_value(&edited.text).unwrap();
        for name in &edited.changed {
            let (old, new) = (&before["mcpServers"][name], &after["mcpServers"][name]);
            prop_assert_eq!(&new["command"], &json!("/opt/jackline"));
            let mut values: Vec<&Value> = old["headers"].as_object().into_iter().flat_map(|it| it.values()).collect();
            values.insert(0, &old["url"]);
            let words = new["args"].as_array().unwrap().iter();
            let written = new["env"].as_object().into_iter().flat_map(|it| it.values()).chain(words);
            let written: Vec<&Value> = written.collect();
            prop_assert!(values.iter().all(|value| written.contains(value)), "{}", edited.text);
        }
        let back = super::unwrap_servers(&edited.text, &KEY_PATH, &WrapHistory::Recorded(edited.wrapped.clone())).unwrap();
        prop_assert_eq!(back.text, text);
    }
}
