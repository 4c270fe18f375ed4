//! `jackline mcp wrap` before tools that say too much.

use std::fs;

use jackline_engine::{EventKind, Payload, ToolFinished};
use serde_json::{Value, json};

use crate::mcp_support::{Proxy, session, text};
use crate::support::World;

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

/// What `io.output` allows.
const MOST: usize = 65_536;

/// A proxy before a server whose tool `show` answers with what lies in a file.
fn showing(world: &World, result: &Value) -> Proxy {
    showing_bytes(world, &result.to_string())
}

fn showing_bytes(world: &World, result: &str) -> Proxy {
    fs::write(world.work().join("result.json"), result).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;
    *initialize*) answer "$id" '{"protocolVersion":"2025-06-18"}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"show","outputSchema":{"type":"object"}}]}' ;;"#;
    let mut proxy = Proxy::start(world, cases);
    proxy.ask(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
    proxy.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    proxy
}

fn long_text() -> String {
    let lines: Vec<String> = (0..200_000).map(|n| format!("line {n}: Grüße \"€\" \\ 🦀")).collect();
    lines.join("\n")
}

#[test]
fn a_long_result_comes_in_pages_that_are_together_exactly_what_it_was() {
    let world = World::new(EMPTY);
    let whole = long_text();
    assert!(whole.len() > 5_000_000);
    let mut proxy = showing(&world, &json!({"content": [{"type": "text", "text": whole}], "x": 1}));
    let first = proxy.call(3, "show", "{}");
    assert_eq!(first["result"]["x"], 1, "what nobody knows is kept");
    let note = text(&first, 1);
    assert!(note.contains("jackline_page") && note.contains(&whole.len().to_string()), "{note}");
    let link = &first["result"]["content"][2];
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(whole.len())));
    let file = link["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    let (mut got, mut answer, mut id) = (String::new(), first, 3);
    loop {
        got.push_str(text(&answer, 0));
        assert!(text(&answer, 0).len() < MOST);
        let page = answer["result"]["_meta"]["jackline/page"].clone();
        assert_eq!(page["bytes_remaining"], whole.len() - got.len());
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        id += 1;
        answer = proxy.call(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        assert_eq!(answer["result"]["isError"], false);
    }
    assert!(got == whole, "{} and {} bytes", got.len(), whole.len());
    let unknown = proxy.call(900, "jackline_page", r#"{"cursor":"../../x"}"#);
    assert_eq!(unknown["result"]["isError"], true);
    proxy.leave();
    assert!(!fs::exists(&file).unwrap(), "what tools said is not left behind");
    world.prove(&session(&world));
}

#[test]
fn a_definition_says_how_long_a_page_is() {
    let world = World::new(&format!("{EMPTY}io: {{ output: {{ max_bytes: 4096 }} }}\n"));
    let whole = "a line\n".repeat(700);
    let mut proxy = showing(&world, &json!({"content": [{"type": "text", "text": whole}]}));
    let answer = proxy.call(3, "show", "{}");
    assert_eq!(text(&answer, 0).len(), 1022, "whole lines, and room for a note");
    assert!(text(&answer, 1).contains("bytes 0 to 1022 of 4900"), "{answer}");
    proxy.leave();
}

#[test]
fn structured_content_keeps_its_shape() {
    let world = World::new(EMPTY);
    let whole = long_text();
    let structured = json!({"content": whole, "n": 3});
    let content = json!([{"type": "text", "text": whole}]);
    let mut proxy = showing(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call(3, "show", "{}");
    assert!(answer.to_string().len() < 2 * MOST);
    let cut = &answer["result"]["structuredContent"];
    assert_eq!(cut["n"], 3);
    assert!(whole.starts_with(text(&answer, 0)));
    // A client that shows nothing else goes on exactly where it was cut.
    let (shown, rest) = cut["content"].as_str().unwrap().split_once("\n[jackline: cut").unwrap();
    let cursor = rest.split('"').nth(3).unwrap();
    let second = proxy.call(4, "jackline_page", &json!({ "cursor": cursor }).to_string());
    assert!(whole.starts_with(&format!("{shown}{}", text(&second, 0))), "{cursor}");
    proxy.leave();
}

#[test]
fn every_text_of_structured_content_has_its_own_pages() {
    let world = World::new(EMPTY);
    let texts = ["a", "b"].map(|letter| format!("{letter}\n").repeat(50_000));
    let structured = json!({ "texts": texts, "small": "c" });
    let content = json!([{"type": "text", "text": structured.to_string()}]);
    let mut proxy = showing(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call(3, "show", "{}");
    let cut = &answer["result"]["structuredContent"];
    assert_eq!(cut["small"], "c");
    for (at, whole) in texts.iter().enumerate() {
        let cut = cut["texts"][at].as_str().unwrap();
        let (shown, rest) = cut.split_once("\n[jackline: cut").unwrap();
        let cursor = json!({ "cursor": rest.split('"').nth(3).unwrap() }).to_string();
        let second = proxy.call(4 + at as u64, "jackline_page", &cursor);
        assert!(whole.starts_with(&format!("{shown}{}", text(&second, 0))), "{cursor}");
    }
    proxy.leave();
}

#[test]
fn fields_that_say_something_else_than_the_text_are_cut_and_paged_too() {
    let world = World::new(EMPTY);
    let whole = long_text();
    let content = json!([{"type": "text", "text": "fine"}]);
    let structured = json!({ "log": whole });
    let mut proxy = showing(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call(3, "show", "{}");
    assert!(answer.to_string().len() < MOST, "{} bytes", answer.to_string().len());
    assert_eq!(text(&answer, 0), "fine");
    let mut shown = String::new();
    let cut = answer["result"]["structuredContent"]["log"].as_str().unwrap();
    let (first, rest) = cut.split_once("\n[jackline: cut").unwrap();
    shown.push_str(first);
    let mut cursor = rest.split('"').nth(3).map(ToOwned::to_owned);
    let mut id = 4;
    while let Some(next) = cursor {
        let page = proxy.call(id, "jackline_page", &json!({ "cursor": next }).to_string());
        shown.push_str(text(&page, 0));
        let next = &page["result"]["_meta"]["jackline/page"]["next_cursor"];
        cursor = next.as_str().map(ToOwned::to_owned);
        id += 1;
    }
    assert!(shown == whole, "{} and {} bytes", shown.len(), whole.len());
    proxy.leave();
    world.prove(&session(&world));
}

#[test]
fn what_cannot_be_cut_is_left_out_and_said() {
    let world = World::new(EMPTY);
    let numbers: Vec<u64> = (0..100_000).collect();
    let mut proxy = showing(&world, &json!({"content": [], "structuredContent": {"n": numbers}}));
    let answer = proxy.call(3, "show", "{}");
    assert!(answer.to_string().len() < MOST);
    assert_eq!(answer["result"]["structuredContent"], Value::Null);
    assert_eq!(answer["result"]["isError"], true, "a client would insist on it");
    assert!(text(&answer, 0).starts_with(r#"{"n":[0,1,2"#));
    proxy.leave();
}

#[test]
fn images_count_and_one_that_is_too_long_lies_in_a_file() {
    let world = World::new(EMPTY);
    let image =
        |bytes: usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(bytes)});
    let word = json!({"type": "text", "text": "two pictures"});
    let (small, large) = (image(100), image(100_000));
    let mut proxy = showing(&world, &json!({"content": [word, small, large]}));
    let answer = proxy.call(3, "show", "{}");
    assert!(answer.to_string().len() < MOST);
    assert_eq!(text(&answer, 0), "two pictures");
    assert_eq!(answer["result"]["content"][1], small);
    assert!(text(&answer, 2).contains("[image image/png, 100"), "{answer}");
    let file = text(&answer, 2).split('`').nth(1).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap(), large);
    proxy.leave();
}

#[test]
fn what_is_short_enough_stays_as_it_is() {
    let world = World::new(EMPTY);
    // Escaped it is longer than it may be, and read it is not.
    let result = json!({"content": [{"type": "text", "text": "\n".repeat(60_000)}]});
    let mut proxy = showing(&world, &result);
    assert_eq!(proxy.call(3, "show", "{}")["result"], result);
    proxy.leave();
}

#[test]
fn to_turn_a_page_spends_a_step_and_the_last_one_is_refused() {
    let world =
        World::new("version: 1\nmode: enforce\ntools: { show: {} }\nlimits: { steps: 3 }\n");
    let whole = "x\n".repeat(200_000);
    let mut proxy = showing(&world, &json!({"content": [{"type": "text", "text": whole}]}));
    let mut answer = proxy.call(3, "show", "{}");
    for (id, runs) in [(4, true), (5, true), (6, false)] {
        let next = answer["result"]["_meta"]["jackline/page"]["next_cursor"].clone();
        let cursor = next.as_str().unwrap_or("1-31744");
        let turned = proxy.call(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        assert_eq!(turned["result"]["isError"], !runs, "{turned}");
        answer = turned;
    }
    assert!(text(&answer, 0).contains("steps"), "{answer}");
    let named = proxy.call(7, "jackline/page", "{}");
    assert!(text(&named, 0).contains("no name for a tool of a server"), "{named}");
    proxy.leave();
    let session = session(&world);
    world.prove(&session);
    let said: Vec<String> =
        world.records(&session).iter().map(|it| format!("{:?}", it.event.kind)).collect();
    assert!(said.iter().any(|it| it.contains("bytes 31744 to 63488 of 400000")), "{said:?}");
}

/// Turns pages until there is none; gives what they said after the first.
fn turn_all(proxy: &mut Proxy, first: &Value) -> String {
    let (mut rest, mut answer, mut id) = (String::new(), first.clone(), 1000);
    while let Some(cursor) = answer["result"]["_meta"]["jackline/page"]["next_cursor"].as_str() {
        id += 1;
        answer = proxy.call(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        rest.push_str(text(&answer, 0));
    }
    rest
}

#[test]
fn what_no_reader_takes_is_bounded_and_seen_all_the_same() {
    let word = "forty-two ".repeat(20_000);
    let half = format!(r#"{{"type":"text","text":"{word}\ud83d {word}"}}"#);
    let nameless = format!(r#"{{"text":"{word}"}}"#);
    let number = format!(r#"{{"type":"text","text":[{}1]}}"#, "1,".repeat(100_000));
    let text_only = format!(r#""{word}""#);
    let odd = format!(r#"{{"toolResult":"{word}"}}"#);
    let in_list = |item: &str| format!(r#"{{"content":[{item}]}}"#);
    let cases = [
        (in_list(&half), half.clone()),
        (in_list(&nameless), nameless),
        (in_list(&number), number),
        (format!(r#"{{"content":{text_only}}}"#), text_only),
        (odd.clone(), odd),
    ];
    for (result, whole) in cases {
        let world = World::new(EMPTY);
        let mut proxy = showing_bytes(&world, &result);
        let first = proxy.call(3, "show", "{}");
        assert!(first.to_string().len() < MOST, "{}", first.to_string().len());
        let pages = format!("{}{}", text(&first, 0), turn_all(&mut proxy, &first));
        assert!(pages == whole, "{} and {} bytes", pages.len(), whole.len());
        proxy.leave();
        let session = session(&world);
        world.prove(&session);
        let said = world.records(&session).into_iter().find_map(|it| match it.event.kind {
            EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) => Some(result),
            _ => None,
        });
        let seen = match said.unwrap() {
            Payload::Inline(text) => text.len() as u64,
            Payload::Elided { elided } => elided.bytes,
        };
        assert!(seen > 190_000, "the guards were told of {seen} bytes");
    }
}

#[test]
fn a_short_result_that_no_reader_takes_passes_as_it_is() {
    let world = World::new(EMPTY);
    let result = r#"{"content":[{"type":"text","text":"a\ud83d"},{"text":1}],"x":"\udd80"}"#;
    let mut proxy = showing_bytes(&world, result);
    proxy.send(&crate::mcp_support::call(3, "show", "{}"));
    assert!(proxy.line().contains(result));
    proxy.leave();
}

#[test]
fn a_thousand_items_and_a_field_that_nobody_knows_are_bounded() {
    let world = World::new(EMPTY);
    let item = json!({"type": "image", "data": "A".repeat(1000)});
    let items: Vec<Value> = (0..5000).map(|_| item.clone()).collect();
    let result = json!({"content": items, "notes": "n".repeat(100_000), "isError": true});
    let mut proxy = showing(&world, &result);
    let answer = proxy.call(3, "show", "{}");
    assert!(answer.to_string().len() < MOST + 8192, "{}", answer.to_string().len());
    assert_eq!(
        (&answer["result"]["notes"], &answer["result"]["isError"]),
        (&Value::Null, &json!(true))
    );
    let said = answer.to_string();
    assert!(said.contains("more items") && said.contains("[field `notes`"), "{said}");
    proxy.leave();
}

#[test]
fn an_error_that_is_too_long_is_cut_and_lies_in_pages() {
    let world = World::new(EMPTY);
    let error = format!(r#"{{"code":-32042,"message":"{}"}}"#, "it failed because ".repeat(20_000));
    fs::write(world.work().join("error.json"), &error).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"error":' "$id"; cat error.json; printf '}\n' ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    let answer = proxy.call(1, "show", "{}");
    assert!(answer.to_string().len() < MOST);
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["by"]),
        (&json!(-32042), &json!("jackline"))
    );
    assert!(
        answer["error"]["message"].as_str().unwrap().starts_with("it failed because it failed")
    );
    let cursor = answer["error"]["data"]["next_cursor"].clone();
    let first = proxy.call(2, "jackline_page", &json!({ "cursor": cursor }).to_string());
    let whole = format!("{}{}", text(&first, 0), turn_all(&mut proxy, &first));
    assert!(whole == error);
    proxy.leave();
    world.prove(&session(&world));
}

const READS: &str = "version: 1
name: test/reads
mode: enforce
unknown_tools: allow
policies: [ read_before_write: {} ]
";

/// A proxy before a server that reads any file as it is, and writes what it is told.
fn reading(world: &World, text: &str) -> Proxy {
    reading_as(world, text, &json!({ "content": [{ "type": "text", "text": text }] }))
}

fn reading_as(world: &World, text: &str, result: &Value) -> Proxy {
    fs::write(world.work().join("a.txt"), text).unwrap();
    fs::write(world.work().join("result.json"), result.to_string()).unwrap();
    let cases = r#"*'"read_file"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;"#;
    Proxy::start(world, cases)
}

const READ: &str = r#"{"path":"a.txt"}"#;
const WRITE: &str = r#"{"path":"a.txt","content":"new"}"#;

#[test]
fn a_file_counts_as_read_when_all_of_its_pages_were_turned_to() {
    let world = World::new(READS);
    let mut proxy = reading(&world, &"a line\n".repeat(50_000));
    let first = proxy.call(1, "read_file", READ);
    assert_eq!(first["result"]["_meta"]["jackline/page"]["has_more"], true);
    let refused = proxy.call(2, "write_file", WRITE);
    assert!(text(&refused, 0).contains("only read in part"), "{refused}");
    // The last page alone is not the rest.
    let last = proxy.call(3, "jackline_page", r#"{"cursor":"1-349930"}"#);
    assert_eq!(last["result"]["_meta"]["jackline/page"]["has_more"], false);
    let refused = proxy.call(4, "write_file", WRITE);
    assert!(text(&refused, 0).contains("only read in part"), "{refused}");
    turn_all(&mut proxy, &first);
    assert_eq!(text(&proxy.call(5, "write_file", WRITE), 0), "said");
    proxy.leave();
    world.prove(&session(&world));
}

#[test]
fn a_file_that_is_said_twice_was_read_by_whichever_of_the_two_was_followed() {
    // One is too long by itself, and one only with what JSON adds to it.
    for whole in ["a line\n".repeat(50_000), "\"\n".repeat(15_000)] {
        for structured in [false, true] {
            let world = World::new(READS);
            let result = json!({
                "content": [{ "type": "text", "text": whole }],
                "structuredContent": { "content": whole },
            });
            let mut proxy = reading_as(&world, &whole, &result);
            let first = proxy.call(1, "read_file", READ);
            let refused = proxy.call(2, "write_file", WRITE);
            assert!(text(&refused, 0).contains("only read in part"), "{refused}");
            let seen = if structured {
                let cut = first["result"]["structuredContent"]["content"].as_str().unwrap();
                let (shown, rest) = cut.split_once("\n[jackline: cut").unwrap();
                let cursor = json!({ "cursor": rest.split('"').nth(3).unwrap() }).to_string();
                let second = proxy.call(3, "jackline_page", &cursor);
                format!("{shown}{}{}", text(&second, 0), turn_all(&mut proxy, &second))
            } else {
                format!("{}{}", text(&first, 0), turn_all(&mut proxy, &first))
            };
            assert!(seen == whole, "{} and {} bytes", seen.len(), whole.len());
            let written = proxy.call(4, "write_file", WRITE);
            assert_eq!(text(&written, 0), "said", "structured: {structured}");
            proxy.leave();
            world.prove(&session(&world));
        }
    }
}

#[test]
fn pages_of_a_file_that_was_changed_meanwhile_show_an_older_one() {
    let world = World::new(READS);
    let mut proxy = reading(&world, &"a line\n".repeat(50_000));
    let first = proxy.call(1, "read_file", READ);
    fs::write(world.work().join("a.txt"), "another\n").unwrap();
    turn_all(&mut proxy, &first);
    let refused = proxy.call(2, "write_file", WRITE);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    proxy.leave();
    world.prove(&session(&world));
}

#[test]
fn a_file_that_is_shown_at_once_was_read() {
    let world = World::new(READS);
    let mut proxy = reading(&world, "a line\n");
    proxy.call(1, "read_file", READ);
    assert_eq!(text(&proxy.call(2, "write_file", WRITE), 0), "said");
    proxy.leave();
}

#[test]
fn a_page_that_is_asked_for_wrongly_is_answered_with_what_was_meant() {
    let world = World::new("version: 1\nname: test/mcp\nmode: enforce\n");
    let mut proxy = Proxy::start(&world, "");
    let such = r#"give it as the cut result names it, such as {"cursor":"1-31744"}"#;
    for (id, arguments, said) in [
        (1, "{}", format!("jackline: `cursor` is missing; {such}")),
        (2, r#"{"cursor":7}"#, format!("jackline: `cursor` must be a text, and is a number; {such}")),
        (
            3,
            r#"{"cursor":"two"}"#,
            "jackline: there is no page `two`; a cursor is two numbers, such as `1-31744`, and the \
             cut result names it"
                .to_owned(),
        ),
        (
            4,
            r#"{"cursor":"1-0","cursor":"2-0"}"#,
            "jackline: the arguments of `jackline_page` can't be used: expected each key once, got \
             `\"cursor\":\"2-0\"}`\n-> write it again as one JSON object"
                .to_owned(),
        ),
    ] {
        let answer = proxy.call(id, "jackline_page", arguments);
        assert_eq!((&answer["result"]["isError"], text(&answer, 0)), (&json!(true), said.as_str()));
    }
    assert_eq!(proxy.leave().code, Some(0));
    world.prove(&session(&world));
}
