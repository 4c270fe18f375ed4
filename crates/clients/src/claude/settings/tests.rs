//! What happens to people's settings.

use proptest::prelude::*;
use serde_json::json;

use super::any_settings::any_settings;
use super::*;

fn hooks() -> Vec<HookEntry> {
    hooks_for(PINNED, "jackline")
}

fn installed(text: &str) -> String {
    let once = install(text, &hooks()).unwrap();
    assert_eq!(install(&once, &hooks()).unwrap(), once, "installing twice is installing once");
    assert!(!ours(&once).is_empty());
    once
}

/// Installs, takes it out again, and looks whether the rest stayed.
fn there_and_back(text: &str) -> String {
    let back = remove(&installed(text), Some(text)).unwrap();
    assert!(ours(&back).is_empty());
    let (then, now) = (value_of(text).unwrap(), value_of(&back).unwrap());
    assert_eq!(if then.is_null() { json!({}) } else { then }, now, "{text}");
    back
}

#[test]
fn a_new_file_reads_as_if_a_person_wrote_it() {
    let some: Vec<HookEntry> = hooks().into_iter().filter(|hook| hook.event == "Stop").collect();
    let text = install("", &some).unwrap();
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
fn common_layouts_come_back_byte_for_byte_even_from_the_text_alone() {
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
fn comments_commas_order_and_line_ends_stay() {
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
fn an_older_entry_is_brought_up_to_date_where_it_stands() {
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
    let settings = value_of(&installed(text)).unwrap();
    let gate: Vec<HookEntry> =
        hooks().into_iter().filter(|hook| hook.event == "PreToolUse").collect();
    let mine = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "mine" }] });
    assert_eq!(settings["hooks"]["PreToolUse"], json!([entry_of(&gate[0]), mine]));
    assert_eq!(settings["hooks"].get("Notification"), None, "no version of ours asks for it now");
}

#[test]
fn an_entry_among_others_for_fewer_tools_moves_out() {
    let text = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[
      {"type":"command","command":"mine"},{"type":"command","command":"jackline hook claude"}]}]}}"#;
    let settings = value_of(&installed(text)).unwrap();
    let groups = settings["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(groups[0]["hooks"], json!([{ "type": "command", "command": "mine" }]));
    assert_eq!(groups.len(), 2);
}

#[test]
fn only_what_is_ours_is_taken_out() {
    let text =
        r#"{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}],"X":[]}}"#;
    let mut edited = installed(text);
    edited = edited.replacen("\"a\":1", "\"a\":1, \"since\": true", 1);
    let back = value_of(&remove(&edited, None).unwrap()).unwrap();
    assert_eq!(back["since"], json!(true));
    assert_eq!(back["hooks"], value_of(text).unwrap()["hooks"]);
}

#[test]
fn empty_lists_that_were_there_before_stay() {
    let text = "{ \"hooks\": { \"Stop\": [] } }";
    let back = there_and_back(text);
    assert_eq!(value_of(&back).unwrap(), json!({ "hooks": { "Stop": [] } }));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let shape =
        |what: &str, expected, got| SettingsError::Shape { what: what.to_owned(), expected, got };
    let cases = [
        ("[]", shape("the whole file", "an object", "a list")),
        ("null", shape("the whole file", "an object", "null")),
        ("{\"hooks\": []}", shape("`hooks`", "an object", "a list")),
        ("{\"hooks\": null}", shape("`hooks`", "an object", "null")),
        ("{\"hooks\": {\"Stop\": {}}}", shape("`hooks.Stop`", "a list", "an object")),
        ("{\"hooks\": {}, \"hooks\": {}}", SettingsError::Twice { key: "hooks".to_owned() }),
    ];
    for (text, error) in cases {
        assert_eq!(install(text, &hooks()), Err(error), "{text}");
    }
    for (text, place) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: "),
        ("{\n  \"a\": ", "line 2, column "),
        ("{'a': 1}", "line 1, column 2: "),
        ("{} {}", "line 1, column 4: "),
        ("/* never ends", "line 1, column 1: "),
    ] {
        let error = install(text, &hooks()).unwrap_err().to_string();
        assert!(error.contains(place), "{text}: {error}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(install(&deep, &hooks()), Err(SettingsError::Syntax { .. })));
}

#[test]
fn what_keeps_hooks_from_running_is_found() {
    assert_eq!(silencer("{\"disableAllHooks\": true} // yes"), Some("disableAllHooks"));
    assert_eq!(silencer("{\"allowManagedHooksOnly\": true}"), Some("allowManagedHooksOnly"));
    assert_eq!(silencer("{\"disableAllHooks\": false}"), None);
    let odd = r#"{"hooks":{"Stop":[{"matcher":{"a":1},"hooks":[]}]}}"#;
    assert_eq!(misfit(odd), Some("`hooks.Stop[0].matcher` is not a text".to_owned()));
    assert_eq!(misfit(&installed("{}")), None);
}

#[test]
fn the_client_reads_less_than_we_do() {
    for text in ["", "{}", "\u{feff}{\r\n}\n", "{\"a\": 1, \"a\": 2}"] {
        assert!(is_strict(text) && is_strict(&installed(text)), "{text}");
    }
    for text in ["{} // a", "{ /* a */ }", "{\"a\": 1,}"] {
        assert!(!is_strict(text) && !is_strict(&installed(text)), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_settings_say_they_say_it_still(text in any_settings()) {
        prop_assume!(value_of(&text).is_ok());
        there_and_back(&text);
    }

    #[test]
    fn every_comment_stays(text in any_settings()) {
        prop_assume!(value_of(&text).is_ok());
        let count = |text: &str| (text.matches("// a \u{e9} {").count(), text.matches("/* \" */").count());
        let edited = installed(&text);
        prop_assert_eq!(count(&edited), count(&text), "{}", edited);
    }

    #[test]
    fn no_text_is_too_odd(text in "[\\{\\}\\[\\],:\"/*a\\\\ \n\u{e9}\u{feff}0-9.-]{0,40}") {
        if let Ok(edited) = install(&text, &hooks()) {
            prop_assert!(install(&edited, &hooks()).is_ok());
        }
    }
}
