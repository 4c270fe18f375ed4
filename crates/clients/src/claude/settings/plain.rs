//! Settings of which we know that the client reads them.
//!
//! One value of a type that the client does not take, in a key that has nothing to
//! do with hooks, and it ignores the whole file. Its rules change with its versions,
//! so this knows a few keys that people use, and nothing about the others.

use serde_json::{Map, Value};

use super::BYTE_ORDER_MARK;

/// Modes of the client that it knows by name.
const MODES: [&str; 4] = ["default", "acceptEdits", "plan", "bypassPermissions"];

/// The key in there for which the client might ignore the whole file; the text
/// itself where it is no object.
pub fn doubtful(text: &str) -> Option<String> {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    let Ok(Value::Object(settings)) = serde_json::from_str(bare) else {
        return Some("the whole file".to_owned());
    };
    settings.into_iter().find(|(key, value)| !is_known(key, value)).map(|(key, _)| key)
}

fn is_known(key: &str, value: &Value) -> bool {
    match key {
        "hooks" => all_in(value, |_, groups| each(groups, is_group)),
        "permissions" => all_in(value, is_permission),
        "env" => all_in(value, |_, value| value.is_string()),
        "model" => value.is_string(),
        "includeCoAuthoredBy" | "disableAllHooks" => value.is_boolean(),
        _ => false,
    }
}

fn is_permission(key: &str, value: &Value) -> bool {
    match key {
        "allow" | "deny" | "ask" => each(value, |rule| rule.as_str().is_some_and(is_rule)),
        "additionalDirectories" => each(value, Value::is_string),
        "defaultMode" => value.as_str().is_some_and(|mode| MODES.contains(&mode)),
        _ => false,
    }
}

/// A tool, or a tool with what it may be used for in brackets.
fn is_rule(rule: &str) -> bool {
    let (tool, rest) = rule.split_once('(').map_or((rule, None), |(tool, rest)| (tool, Some(rest)));
    let named = tool.starts_with(|c: char| c.is_ascii_uppercase())
        && tool.chars().all(|c| c.is_ascii_alphanumeric());
    let what = rest.is_none_or(|rest| {
        rest.strip_suffix(')').is_some_and(|what| !what.is_empty() && !what.contains(['(', ')']))
    });
    named && what
}

fn is_group(group: &Value) -> bool {
    all_in(group, |key, value| match key {
        "matcher" => value.is_string(),
        "hooks" => each(value, is_handler),
        _ => false,
    }) && group.get("hooks").is_some()
}

fn is_handler(handler: &Value) -> bool {
    all_in(handler, |key, value| match key {
        "type" => value == "command",
        "command" => value.is_string(),
        "timeout" => value.as_u64().is_some_and(|seconds| seconds > 0),
        "onFailure" => value == "block",
        _ => false,
    }) && ["type", "command"].iter().all(|key| handler.get(key).is_some())
}

fn all_in(value: &Value, fits: impl Fn(&str, &Value) -> bool) -> bool {
    let all = |map: &Map<String, Value>| map.iter().all(|(key, value)| fits(key, value));
    value.as_object().is_some_and(all)
}

fn each(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_known_and_anything_else_is_doubtful() {
        let known = r#"{
            "model": "opus", "env": {"RUST_LOG": "debug"}, "includeCoAuthoredBy": false,
            "permissions": {"allow": ["Read", "Bash(cargo test:*)"], "defaultMode": "plan"},
            "hooks": {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]}
        }"#;
        assert_eq!(doubtful(known), None);
        assert_eq!(doubtful("{}"), None);
        for text in [
            "",
            "[]",
            r#"{"model": 5}"#,
            r#"{"model": "x", "model": 5}"#,
            r#"{"env": {"A": 1}}"#,
            r#"{"env": []}"#,
            r#"{"permissions": "x"}"#,
            r#"{"permissions": {"allow": "Read"}}"#,
            r#"{"permissions": {"allow": ["Bash("]}}"#,
            r#"{"permissions": {"allow": [""]}}"#,
            r#"{"permissions": {"defaultMode": "mine"}}"#,
            r#"{"disableAllHooks": "no"}"#,
            r#"{"hooks": {"Stop": {}}}"#,
            r#"{"hooks": {"Stop": [{"hooks": [{"type": 7}]}]}}"#,
            r#"{"hooks": {"Stop": [{"matcher": "*"}]}}"#,
            r#"{"tomorrow": 1}"#,
            r#"{"model": "x",}"#,
        ] {
            assert!(doubtful(text).is_some(), "{text}");
        }
    }
}
