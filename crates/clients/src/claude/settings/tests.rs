//! Tests that installing and removing hooks preserves the rest of the settings.

use proptest::prelude::*;
use serde_json::json;

use super::any_settings::any_settings;
use super::*;

fn hooks() -> Vec<HookEntry> {
    hooks_for(TESTED_VERSION, "jackline")
}

fn installed(text: &str) -> String {
    let once = add_hooks(text, &hooks()).unwrap();
    assert_eq!(add_hooks(&once, &hooks()).unwrap(), once, "a second installation changes nothing");
    assert!(!own_hooks(&once).is_empty());
    once
}

/// Installs the hooks, removes them, and checks that the rest did not change.
fn there_and_back(text: &str) -> String {
    let back = remove_hooks(&installed(text), Some(text)).unwrap();
    assert!(own_hooks(&back).is_empty());
    let (then, now) = (parse_value(text).unwrap(), parse_value(&back).unwrap());
    assert_eq!(if then.is_null() { json!({}) } else { then }, now, "{text}");
    back
}

#[test]
fn a_new_file_reads_as_if_a_person_wrote_it() {
    let some: Vec<HookEntry> = hooks().into_iter().filter(|hook| hook.event == "Stop").collect();
    let text = add_hooks("", &some).unwrap();
    let expected = r#"{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "jackline hook claude",
            "timeout": 30
          }
        ]
      }
    ]
  }
}
"#;
    assert_eq!(text, expected);
}

#[test]
fn common_layouts_are_restored_byte_for_byte_without_the_original() {
    for text in [
        "{}",
        "{}\n",
        "// top\n{\n  \"a\": 1, // one\n  \"b\": [1, 2] // two\n  // end\n}\n// after\n",
        "{\n\t\"a\": 1,\n}\n",
        "{\r\n    \"a\": 1\r\n}\r\n",
        "\u{feff}{\n  \"a\": 1\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"x\" }] }\n    ]\n  },\n  \"b\": 2\n}",
        "{\n  /* a */ \"hooks\": {\n    // b\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\", // c\n        \"hooks\": [],\n      },\n    ],\n  },\n}\n",
    ] {
        assert_eq!(there_and_back(text), text);
    }
}

#[test]
fn comments_commas_order_and_line_endings_stay() {
    let text = "{\r\n\t// mine\r\n\t\"z\": 1,\r\n\t\"a\": 2, // last\r\n}\r\n";
    let edited = installed(text);
    assert!(
        edited.starts_with(
            "{\r\n\t// mine\r\n\t\"z\": 1,\r\n\t\"a\": 2, // last\r\n\t\"hooks\": {\r\n"
        )
    );
    assert!(edited.ends_with("\r\n\t},\r\n}\r\n"));
    assert!(!edited.replace("\r\n", "").contains('\n'));
}

#[test]
fn an_older_entry_is_updated_in_place() {
    let text = r#"{
  "hooks": {
    "PreToolUse": [
      { "matcher": "*", "hooks": [{ "type": "command", "command": "/old/jackline hook claude" }] },
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "mine" }] },
      { "matcher": "Edit", "hooks": [{ "type": "command", "command": "jackline hook claude" }] }
    ],
    "Notification": [{ "hooks": [{ "type": "command", "command": "jackline hook claude" }] }]
  }
}"#;
    let settings = parse_value(&installed(text)).unwrap();
    let gate: Vec<HookEntry> =
        hooks().into_iter().filter(|hook| hook.event == "PreToolUse").collect();
    let mine = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "mine" }] });
    assert_eq!(settings["hooks"]["PreToolUse"], json!([entry_of(&gate[0]), mine]));
    assert_eq!(
        settings["hooks"].get("Notification"),
        None,
        "this version does not install this hook"
    );
}

#[test]
fn an_entry_in_a_group_for_fewer_tools_gets_its_own_group() {
    let text = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[
      {"type":"command","command":"mine"},{"type":"command","command":"jackline hook claude"}]}]}}"#;
    let settings = parse_value(&installed(text)).unwrap();
    let groups = settings["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(groups[0]["hooks"], json!([{ "type": "command", "command": "mine" }]));
    assert_eq!(groups.len(), 2);
}

#[test]
fn only_our_own_entries_are_removed() {
    let text =
        r#"{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}],"X":[]}}"#;
    let mut edited = installed(text);
    edited = edited.replacen("\"a\":1", "\"a\":1, \"since\": true", 1);
    let back = parse_value(&remove_hooks(&edited, None).unwrap()).unwrap();
    assert_eq!(back["since"], json!(true));
    assert_eq!(back["hooks"], parse_value(text).unwrap()["hooks"]);
}

#[test]
fn empty_lists_that_were_there_before_stay() {
    let text = "{ \"hooks\": { \"Stop\": [] } }";
    let back = there_and_back(text);
    assert_eq!(parse_value(&back).unwrap(), json!({ "hooks": { "Stop": [] } }));
}

#[test]
fn errors_report_the_position() {
    let shape = |what: &str, expected, got| SettingsError::WrongType {
        what: what.to_owned(),
        expected,
        got,
    };
    let cases = [
        ("[]", shape("the whole file", "an object", "a list")),
        ("null", shape("the whole file", "an object", "null")),
        ("{\"hooks\": []}", shape("`hooks`", "an object", "a list")),
        ("{\"hooks\": null}", shape("`hooks`", "an object", "null")),
        ("{\"hooks\": {\"Stop\": {}}}", shape("`hooks.Stop`", "a list", "an object")),
        ("{\"hooks\": {}, \"hooks\": {}}", SettingsError::DuplicateKey { key: "hooks".to_owned() }),
    ];
    for (text, error) in cases {
        assert_eq!(add_hooks(text, &hooks()), Err(error), "{text}");
    }
    for (text, position) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: "),
        ("{\n  \"a\": ", "line 2, column "),
        ("{'a': 1}", "line 1, column 2: "),
        ("{} {}", "line 1, column 4: "),
        ("/* never ends", "line 1, column 1: "),
    ] {
        let error = add_hooks(text, &hooks()).unwrap_err().to_string();
        assert!(error.contains(position), "{text}: {error}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(add_hooks(&deep, &hooks()), Err(SettingsError::Syntax { .. })));
}

#[test]
fn settings_that_disable_hooks_are_found() {
    assert_eq!(disabling_key("{\"disableAllHooks\": true} // yes"), Some("disableAllHooks"));
    assert_eq!(disabling_key("{\"allowManagedHooksOnly\": true}"), Some("allowManagedHooksOnly"));
    assert_eq!(disabling_key("{\"disableAllHooks\": false}"), None);
    let odd = r#"{"hooks":{"Stop":[{"matcher":{"a":1},"hooks":[]}]}}"#;
    assert_eq!(rejected_entry(odd), Some("`hooks.Stop[0].matcher` is not a text".to_owned()));
    assert_eq!(rejected_entry(&installed("{}")), None);
}

#[test]
fn the_client_accepts_less_than_we_do() {
    for text in ["", "{}", "\u{feff}{\r\n}\n", "{\"a\": 1, \"a\": 2}"] {
        assert!(is_valid_for_client(text) && is_valid_for_client(&installed(text)), "{text}");
    }
    for text in ["{} // a", "{ /* a */ }", "{\"a\": 1,}"] {
        assert!(!is_valid_for_client(text) && !is_valid_for_client(&installed(text)), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn installing_keeps_the_meaning_of_all_settings(text in any_settings()) {
        prop_assume!(parse_value(&text).is_ok());
        there_and_back(&text);
    }

    #[test]
    fn every_comment_stays(text in any_settings()) {
        prop_assume!(parse_value(&text).is_ok());
        let count = |text: &str| (text.matches("// a \u{e9} {").count(), text.matches("/* \" */").count());
        let edited = installed(&text);
        prop_assert_eq!(count(&edited), count(&text), "{}", edited);
    }

    #[test]
    fn unusual_texts_do_not_break_the_installation(text in "[\\{\\}\\[\\],:\"/*a\\\\ \n\u{e9}\u{feff}0-9.-]{0,40}") {
        if let Ok(edited) = add_hooks(&text, &hooks()) {
            prop_assert!(add_hooks(&edited, &hooks()).is_ok());
        }
    }
}
