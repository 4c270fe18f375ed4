//! Tests of `jackline mcp wrap` with tools whose output is too long.

use std::fs;

use jackline_engine::{EventKind, Payload, ToolFinished};
use serde_json::{Value, json};

use crate::mcp_support::{WrapProcess, only_session, result_text};
use crate::support::CliWorld;

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

/// The output limit of `io.output`.
const OUTPUT_BYTES_MAX: usize = 65_536;

/// A proxy in front of a server whose tool `show` returns the given result.
fn proxy_with_result(world: &CliWorld, result: &Value) -> WrapProcess {
    proxy_with_raw_result(world, &result.to_string())
}

fn proxy_with_raw_result(world: &CliWorld, result: &str) -> WrapProcess {
    fs::write(world.workspace().join("result.json"), result).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;
    *initialize*) answer "$id" '{"protocolVersion":"2025-06-18"}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"show","outputSchema":{"type":"object"}}]}' ;;"#;
    let mut proxy = WrapProcess::start(world, cases);
    proxy.request(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
    proxy.request(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    proxy
}

fn long_text() -> String {
    let lines: Vec<String> = (0..200_000).map(|n| format!("line {n}: Grüße \"€\" \\ 🦀")).collect();
    lines.join("\n")
}

#[test]
fn a_long_result_is_split_into_pages_that_together_are_the_whole_result() {
    let world = CliWorld::new(EMPTY);
    let whole = long_text();
    assert!(whole.len() > 5_000_000);
    let mut proxy =
        proxy_with_result(&world, &json!({"content": [{"type": "text", "text": whole}], "x": 1}));
    let first = proxy.call_tool(3, "show", "{}");
    assert_eq!(first["result"]["x"], 1, "unknown fields are passed on");
    let note = result_text(&first, 1);
    assert!(note.contains("jackline_page") && note.contains(&whole.len().to_string()), "{note}");
    let link = &first["result"]["content"][2];
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(whole.len())));
    let file = link["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);

    let (mut received, mut answer, mut id) = (String::new(), first, 3);
    loop {
        received.push_str(result_text(&answer, 0));
        assert!(result_text(&answer, 0).len() < OUTPUT_BYTES_MAX);
        let page = answer["result"]["_meta"]["jackline/page"].clone();
        assert_eq!(page["bytes_remaining"], whole.len() - received.len());
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        id += 1;
        answer = proxy.call_tool(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        assert_eq!(answer["result"]["isError"], false);
    }
    assert!(received == whole, "{} and {} bytes", received.len(), whole.len());
    let unknown = proxy.call_tool(900, "jackline_page", r#"{"cursor":"../../x"}"#);
    assert_eq!(unknown["result"]["isError"], true);
    proxy.disconnect();
    assert!(!fs::exists(&file).unwrap(), "the stored output must be deleted");
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn the_definition_sets_the_page_size() {
    let world = CliWorld::new(&format!("{EMPTY}io: {{ output: {{ max_bytes: 4096 }} }}\n"));
    let whole = "a line\n".repeat(700);
    let mut proxy =
        proxy_with_result(&world, &json!({"content": [{"type": "text", "text": whole}]}));
    let answer = proxy.call_tool(3, "show", "{}");
    assert_eq!(result_text(&answer, 0).len(), 1022, "whole lines, and room for a note");
    assert!(result_text(&answer, 1).contains("bytes 0 to 1022 of 4900"), "{answer}");
    proxy.disconnect();
}

#[test]
fn structured_content_keeps_its_shape() {
    let world = CliWorld::new(EMPTY);
    let whole = long_text();
    let structured = json!({"content": whole, "n": 3});
    let content = json!([{"type": "text", "text": whole}]);
    let mut proxy =
        proxy_with_result(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call_tool(3, "show", "{}");
    assert!(answer.to_string().len() < 2 * OUTPUT_BYTES_MAX);
    let cut = &answer["result"]["structuredContent"];
    assert_eq!(cut["n"], 3);
    assert!(whole.starts_with(result_text(&answer, 0)));
    // A client that shows only this field can continue exactly at the cut.
    let (shown, rest) = cut["content"].as_str().unwrap().split_once("\n[jackline: cut").unwrap();
    let cursor = rest.split('"').nth(3).unwrap();
    let second = proxy.call_tool(4, "jackline_page", &json!({ "cursor": cursor }).to_string());
    assert!(whole.starts_with(&format!("{shown}{}", result_text(&second, 0))), "{cursor}");
    proxy.disconnect();
}

#[test]
fn every_text_of_structured_content_has_its_own_pages() {
    let world = CliWorld::new(EMPTY);
    let texts = ["a", "b"].map(|letter| format!("{letter}\n").repeat(50_000));
    let structured = json!({ "texts": texts, "small": "c" });
    let content = json!([{"type": "text", "text": structured.to_string()}]);
    let mut proxy =
        proxy_with_result(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call_tool(3, "show", "{}");
    let cut = &answer["result"]["structuredContent"];
    assert_eq!(cut["small"], "c");
    for (at, whole) in texts.iter().enumerate() {
        let cut = cut["texts"][at].as_str().unwrap();
        let (shown, rest) = cut.split_once("\n[jackline: cut").unwrap();
        let cursor = json!({ "cursor": rest.split('"').nth(3).unwrap() }).to_string();
        let second = proxy.call_tool(4 + at as u64, "jackline_page", &cursor);
        assert!(whole.starts_with(&format!("{shown}{}", result_text(&second, 0))), "{cursor}");
    }
    proxy.disconnect();
}

#[test]
fn fields_that_differ_from_the_text_are_cut_and_paged_too() {
    let world = CliWorld::new(EMPTY);
    let whole = long_text();
    let content = json!([{"type": "text", "text": "fine"}]);
    let structured = json!({ "log": whole });
    let mut proxy =
        proxy_with_result(&world, &json!({"content": content, "structuredContent": structured}));
    let answer = proxy.call_tool(3, "show", "{}");
    assert!(answer.to_string().len() < OUTPUT_BYTES_MAX, "{} bytes", answer.to_string().len());
    assert_eq!(result_text(&answer, 0), "fine");
    let mut shown = String::new();
    let cut = answer["result"]["structuredContent"]["log"].as_str().unwrap();
    let (first, rest) = cut.split_once("\n[jackline: cut").unwrap();
    shown.push_str(first);
    let mut cursor = rest.split('"').nth(3).map(ToOwned::to_owned);
    let mut id = 4;
    while let Some(next) = cursor {
        let page = proxy.call_tool(id, "jackline_page", &json!({ "cursor": next }).to_string());
        shown.push_str(result_text(&page, 0));
        let next = &page["result"]["_meta"]["jackline/page"]["next_cursor"];
        cursor = next.as_str().map(ToOwned::to_owned);
        id += 1;
    }
    assert!(shown == whole, "{} and {} bytes", shown.len(), whole.len());
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn content_that_cannot_be_cut_is_omitted_and_reported() {
    let world = CliWorld::new(EMPTY);
    let numbers: Vec<u64> = (0..100_000).collect();
    let mut proxy =
        proxy_with_result(&world, &json!({"content": [], "structuredContent": {"n": numbers}}));
    let answer = proxy.call_tool(3, "show", "{}");
    assert!(answer.to_string().len() < OUTPUT_BYTES_MAX);
    assert_eq!(answer["result"]["structuredContent"], Value::Null);
    assert_eq!(
        answer["result"]["isError"], true,
        "without an error a client would require the structured content"
    );
    assert!(result_text(&answer, 0).starts_with(r#"{"n":[0,1,2"#));
    proxy.disconnect();
}

#[test]
fn images_count_towards_the_limit_and_a_large_one_is_stored_in_a_file() {
    let world = CliWorld::new(EMPTY);
    let image =
        |bytes: usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(bytes)});
    let caption = json!({"type": "text", "text": "two pictures"});
    let (small, large) = (image(100), image(100_000));
    let mut proxy = proxy_with_result(&world, &json!({"content": [caption, small, large]}));
    let answer = proxy.call_tool(3, "show", "{}");
    assert!(answer.to_string().len() < OUTPUT_BYTES_MAX);
    assert_eq!(result_text(&answer, 0), "two pictures");
    assert_eq!(answer["result"]["content"][1], small);
    assert!(result_text(&answer, 2).contains("[image image/png, 100"), "{answer}");
    let file = result_text(&answer, 2).split('`').nth(1).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap(), large);
    proxy.disconnect();
}

#[test]
fn a_result_within_the_limit_is_unchanged() {
    let world = CliWorld::new(EMPTY);
    // With its JSON escapes the text is longer than the limit. Only its decoded length counts.
    let result = json!({"content": [{"type": "text", "text": "\n".repeat(60_000)}]});
    let mut proxy = proxy_with_result(&world, &result);
    assert_eq!(proxy.call_tool(3, "show", "{}")["result"], result);
    proxy.disconnect();
}

#[test]
fn each_page_uses_a_step_and_a_page_without_a_step_is_refused() {
    let world =
        CliWorld::new("version: 1\nmode: enforce\ntools: { show: {} }\nlimits: { steps: 3 }\n");
    let whole = "x\n".repeat(200_000);
    let mut proxy =
        proxy_with_result(&world, &json!({"content": [{"type": "text", "text": whole}]}));
    let mut answer = proxy.call_tool(3, "show", "{}");
    for (id, is_allowed) in [(4, true), (5, true), (6, false)] {
        let next = answer["result"]["_meta"]["jackline/page"]["next_cursor"].clone();
        let cursor = next.as_str().unwrap_or("1-31744");
        let page = proxy.call_tool(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        assert_eq!(page["result"]["isError"], !is_allowed, "{page}");
        answer = page;
    }
    assert!(result_text(&answer, 0).contains("steps"), "{answer}");
    let named = proxy.call_tool(7, "jackline/page", "{}");
    assert!(result_text(&named, 0).contains("is a reserved tool name"), "{named}");
    proxy.disconnect();
    let session = only_session(&world);
    world.verify_and_replay(&session);
    let events: Vec<String> =
        world.records(&session).iter().map(|it| format!("{:?}", it.event.kind)).collect();
    assert!(events.iter().any(|it| it.contains("bytes 31744 to 63488 of 400000")), "{events:?}");
}

/// Reads all following pages, and returns their text.
fn read_all_pages(proxy: &mut WrapProcess, first: &Value) -> String {
    let (mut rest, mut answer, mut id) = (String::new(), first.clone(), 1000);
    while let Some(cursor) = answer["result"]["_meta"]["jackline/page"]["next_cursor"].as_str() {
        id += 1;
        answer = proxy.call_tool(id, "jackline_page", &json!({ "cursor": cursor }).to_string());
        rest.push_str(result_text(&answer, 0));
    }
    rest
}

#[test]
fn a_malformed_result_is_limited_and_still_recorded() {
    let word = "forty-two ".repeat(20_000);
    let half = format!(r#"{{"type":"text","text":"{word}\ud83d {word}"}}"#);
    let nameless = format!(r#"{{"text":"{word}"}}"#);
    let number = format!(r#"{{"type":"text","text":[{}1]}}"#, "1,".repeat(100_000));
    let text_only = format!(r#""{word}""#);
    let legacy = format!(r#"{{"toolResult":"{word}"}}"#);
    let in_list = |item: &str| format!(r#"{{"content":[{item}]}}"#);
    let cases = [
        (in_list(&half), half.clone()),
        (in_list(&nameless), nameless),
        (in_list(&number), number),
        (format!(r#"{{"content":{text_only}}}"#), text_only),
        (legacy.clone(), legacy),
    ];
    for (result, whole) in cases {
        let world = CliWorld::new(EMPTY);
        let mut proxy = proxy_with_raw_result(&world, &result);
        let first = proxy.call_tool(3, "show", "{}");
        assert!(first.to_string().len() < OUTPUT_BYTES_MAX, "{}", first.to_string().len());
        let pages = format!("{}{}", result_text(&first, 0), read_all_pages(&mut proxy, &first));
        assert!(pages == whole, "{} and {} bytes", pages.len(), whole.len());
        proxy.disconnect();
        let session = only_session(&world);
        world.verify_and_replay(&session);
        let result = world.records(&session).into_iter().find_map(|it| match it.event.kind {
            EventKind::ToolFinished(ToolFinished { result: Some(payload), .. }) => Some(payload),
            _ => None,
        });
        let seen = match result.unwrap() {
            Payload::Inline(text) => text.len() as u64,
            Payload::Elided { elided } => elided.bytes,
        };
        assert!(seen > 190_000, "the guards got only {seen} bytes");
    }
}

#[test]
fn a_short_malformed_result_is_unchanged() {
    let world = CliWorld::new(EMPTY);
    let result = r#"{"content":[{"type":"text","text":"a\ud83d"},{"text":1}],"x":"\udd80"}"#;
    let mut proxy = proxy_with_raw_result(&world, result);
    proxy.send(&crate::mcp_support::call_request(3, "show", "{}"));
    assert!(proxy.next_line().contains(result));
    proxy.disconnect();
}

#[test]
fn many_items_and_unknown_fields_are_limited() {
    let world = CliWorld::new(EMPTY);
    let item = json!({"type": "image", "data": "A".repeat(1000)});
    let items: Vec<Value> = (0..5000).map(|_| item.clone()).collect();
    let result = json!({"content": items, "notes": "n".repeat(100_000), "isError": true});
    let mut proxy = proxy_with_result(&world, &result);
    let answer = proxy.call_tool(3, "show", "{}");
    assert!(answer.to_string().len() < OUTPUT_BYTES_MAX + 8192, "{}", answer.to_string().len());
    assert_eq!(
        (&answer["result"]["notes"], &answer["result"]["isError"]),
        (&Value::Null, &json!(true))
    );
    let text = answer.to_string();
    assert!(text.contains("more items") && text.contains("[field `notes`"), "{text}");
    proxy.disconnect();
}

#[test]
fn an_error_that_is_too_long_is_cut_and_paged() {
    let world = CliWorld::new(EMPTY);
    let error = format!(r#"{{"code":-32042,"message":"{}"}}"#, "it failed because ".repeat(20_000));
    fs::write(world.workspace().join("error.json"), &error).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"error":' "$id"; cat error.json; printf '}\n' ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    let answer = proxy.call_tool(1, "show", "{}");
    assert!(answer.to_string().len() < OUTPUT_BYTES_MAX);
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["by"]),
        (&json!(-32042), &json!("jackline"))
    );
    assert!(
        answer["error"]["message"].as_str().unwrap().starts_with("it failed because it failed")
    );
    let cursor = answer["error"]["data"]["next_cursor"].clone();
    let first = proxy.call_tool(2, "jackline_page", &json!({ "cursor": cursor }).to_string());
    let whole = format!("{}{}", result_text(&first, 0), read_all_pages(&mut proxy, &first));
    assert!(whole == error);
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

const READ_DEFINITION: &str = "version: 1
name: test/reads
mode: enforce
unknown_tools: allow
policies: [ read_before_write: {} ]
";

/// A proxy in front of a server that returns the file as its tool result. Write calls succeed.
fn proxy_with_file(world: &CliWorld, text: &str) -> WrapProcess {
    proxy_with_file_result(world, text, &json!({ "content": [{ "type": "text", "text": text }] }))
}

fn proxy_with_file_result(world: &CliWorld, text: &str, result: &Value) -> WrapProcess {
    fs::write(world.workspace().join("a.txt"), text).unwrap();
    fs::write(world.workspace().join("result.json"), result.to_string()).unwrap();
    let cases = r#"*'"read_file"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;"#;
    WrapProcess::start(world, cases)
}

const READ_ARGUMENTS: &str = r#"{"path":"a.txt"}"#;
const WRITE_ARGUMENTS: &str = r#"{"path":"a.txt","content":"new"}"#;

#[test]
fn a_read_of_many_short_lines_is_cut_to_the_lines_of_a_page() {
    let world = CliWorld::new(READ_DEFINITION);
    let whole = (1..=900).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
    let result = json!({
        "content": [{ "type": "text", "text": whole }],
        "structuredContent": { "content": whole, "path": "a.txt" },
    });
    let mut proxy = proxy_with_file_result(&world, &whole, &result);
    let first = proxy.call_tool(1, "read_file", READ_ARGUMENTS);
    assert_eq!(result_text(&first, 0).lines().count(), 500);
    let fields = &first["result"]["structuredContent"];
    let (shown, note) = fields["content"].as_str().unwrap().split_once("\n[jackline: ").unwrap();
    assert!(shown.ends_with("line 500\n") && note.contains("jackline_page"), "{note}");
    assert_eq!(fields["path"], "a.txt");
    let page = &first["result"]["_meta"]["jackline/page"];
    assert_eq!((&page["lines_shown"], &page["lines_remaining"]), (&json!(500), &json!(400)));
    let refused = proxy.call_tool(2, "write_file", WRITE_ARGUMENTS);
    assert!(result_text(&refused, 0).contains("would be replaced, but only"), "{refused}");
    read_all_pages(&mut proxy, &first);
    assert_eq!(result_text(&proxy.call_tool(3, "write_file", WRITE_ARGUMENTS), 0), "said");
    proxy.disconnect();
    let session = only_session(&world);
    let records = world.records(&session);
    let pages = records.iter().filter_map(|record| {
        serde_json::from_str::<Value>(&record.verdict_json).unwrap().get("page").cloned()
    });
    let pages: Vec<Value> = pages.collect();
    assert_eq!((pages.len(), &pages[0]["next_offset"]), (1, &json!(501)));
    world.verify_and_replay(&session);
}

#[test]
fn a_file_counts_as_read_when_all_of_its_pages_were_read() {
    let world = CliWorld::new(READ_DEFINITION);
    let mut proxy = proxy_with_file(&world, &"a line\n".repeat(50_000));
    let first = proxy.call_tool(1, "read_file", READ_ARGUMENTS);
    assert_eq!(first["result"]["_meta"]["jackline/page"]["has_more"], true);
    let refused = proxy.call_tool(2, "write_file", WRITE_ARGUMENTS);
    assert!(result_text(&refused, 0).contains("would be replaced, but only"), "{refused}");
    // The last page alone does not cover the middle of the file.
    let last = proxy.call_tool(3, "jackline_page", r#"{"cursor":"1-349930"}"#);
    assert_eq!(last["result"]["_meta"]["jackline/page"]["has_more"], false);
    let refused = proxy.call_tool(4, "write_file", WRITE_ARGUMENTS);
    assert!(result_text(&refused, 0).contains("would be replaced, but only"), "{refused}");
    read_all_pages(&mut proxy, &first);
    assert_eq!(result_text(&proxy.call_tool(5, "write_file", WRITE_ARGUMENTS), 0), "said");
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn a_file_in_two_fields_counts_as_read_when_either_is_read_completely() {
    // The first text is over the limit itself. The second one is over it only with its JSON
    // escapes.
    for whole in ["a line\n".repeat(50_000), "\"\n".repeat(15_000)] {
        for structured in [false, true] {
            let world = CliWorld::new(READ_DEFINITION);
            let result = json!({
                "content": [{ "type": "text", "text": whole }],
                "structuredContent": { "content": whole },
            });
            let mut proxy = proxy_with_file_result(&world, &whole, &result);
            let first = proxy.call_tool(1, "read_file", READ_ARGUMENTS);
            let refused = proxy.call_tool(2, "write_file", WRITE_ARGUMENTS);
            assert!(result_text(&refused, 0).contains("would be replaced, but only"), "{refused}");
            let seen = if structured {
                let cut = first["result"]["structuredContent"]["content"].as_str().unwrap();
                let (shown, rest) = cut.split_once("\n[jackline: cut").unwrap();
                let cursor = json!({ "cursor": rest.split('"').nth(3).unwrap() }).to_string();
                let second = proxy.call_tool(3, "jackline_page", &cursor);
                format!("{shown}{}{}", result_text(&second, 0), read_all_pages(&mut proxy, &second))
            } else {
                format!("{}{}", result_text(&first, 0), read_all_pages(&mut proxy, &first))
            };
            assert!(seen == whole, "{} and {} bytes", seen.len(), whole.len());
            let written = proxy.call_tool(4, "write_file", WRITE_ARGUMENTS);
            assert_eq!(result_text(&written, 0), "said", "structured: {structured}");
            proxy.disconnect();
            world.verify_and_replay(&only_session(&world));
        }
    }
}

#[test]
fn pages_of_a_file_that_changed_meanwhile_do_not_count_as_read() {
    let world = CliWorld::new(READ_DEFINITION);
    let mut proxy = proxy_with_file(&world, &"a line\n".repeat(50_000));
    let first = proxy.call_tool(1, "read_file", READ_ARGUMENTS);
    fs::write(world.workspace().join("a.txt"), "another\n").unwrap();
    read_all_pages(&mut proxy, &first);
    let refused = proxy.call_tool(2, "write_file", WRITE_ARGUMENTS);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn a_file_that_is_shown_in_one_page_counts_as_read() {
    let world = CliWorld::new(READ_DEFINITION);
    let mut proxy = proxy_with_file(&world, "a line\n");
    proxy.call_tool(1, "read_file", READ_ARGUMENTS);
    assert_eq!(result_text(&proxy.call_tool(2, "write_file", WRITE_ARGUMENTS), 0), "said");
    proxy.disconnect();
}

#[test]
fn an_invalid_page_request_is_answered_with_the_correct_form() {
    let world = CliWorld::new("version: 1\nname: test/mcp\nmode: enforce\n");
    let mut proxy = WrapProcess::start(&world, "");
    let hint = r#"use the cursor from the shortened result, for example {"cursor":"1-31744"}"#;
    for (id, arguments, message) in [
        (1, "{}", format!("jackline: `cursor` is missing; {hint}")),
        (2, r#"{"cursor":7}"#, format!("jackline: `cursor` must be a string, not a number; {hint}")),
        (
            3,
            r#"{"cursor":"two"}"#,
            "jackline: there is no page `two`; a cursor is two numbers such as `1-31744`; the \
             truncated result contains it"
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
        let answer = proxy.call_tool(id, "jackline_page", arguments);
        assert_eq!((&answer["result"]["isError"], result_text(&answer, 0)), (&json!(true), message.as_str()));
    }
    assert_eq!(proxy.disconnect().code, Some(0));
    world.verify_and_replay(&only_session(&world));
}
