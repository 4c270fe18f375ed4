//! Recognises settings that the client surely reads.
//!
//! The client ignores the whole file if any key, even one without relation to hooks, has a value of
//! the wrong type. These rules change between versions. So this module accepts a few common keys,
//! and treats all others as doubtful.

use serde_json::{Map, Value};

use super::BYTE_ORDER_MARK;

/// Permission modes that the client supports.
const PERMISSION_MODES: [&str; 4] = ["default", "acceptEdits", "plan", "bypassPermissions"];

/// The key because of which the client might ignore the whole file; `the whole file` if the text is
/// not a JSON object.
pub fn doubtful_key(text: &str) -> Option<String> {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    let Ok(Value::Object(settings)) = serde_json::from_str(bare) else {
        return Some("the whole file".to_owned());
    };
    settings.into_iter().find(|(key, value)| !is_recognised(key, value)).map(|(key, _)| key)
}

fn is_recognised(key: &str, value: &Value) -> bool {
    match key {
        "hooks" => all_entries(value, |_, groups| all_items(groups, is_group)),
        "permissions" => all_entries(value, is_permission),
        "env" => all_entries(value, |_, value| value.is_string()),
        "model" => value.is_string(),
        "includeCoAuthoredBy" | "disableAllHooks" => value.is_boolean(),
        _ => false,
    }
}

fn is_permission(key: &str, value: &Value) -> bool {
    match key {
        "allow" | "deny" | "ask" => all_items(value, |rule| rule.as_str().is_some_and(is_rule)),
        "additionalDirectories" => all_items(value, Value::is_string),
        "defaultMode" => value.as_str().is_some_and(|mode| PERMISSION_MODES.contains(&mode)),
        _ => false,
    }
}

/// A tool name, or a tool name with a specifier in brackets.
fn is_rule(rule: &str) -> bool {
    let (tool, rest) = rule.split_once('(').map_or((rule, None), |(tool, rest)| (tool, Some(rest)));
    let named = tool.starts_with(|c: char| c.is_ascii_uppercase())
        && tool.chars().all(|c| c.is_ascii_alphanumeric());
    let has_specifier = rest.is_none_or(|rest| {
        rest.strip_suffix(')').is_some_and(|what| !what.is_empty() && !what.contains(['(', ')']))
    });
    named && has_specifier
}

fn is_group(group: &Value) -> bool {
    all_entries(group, |key, value| match key {
        "matcher" => value.is_string(),
        "hooks" => all_items(value, is_handler),
        _ => false,
    }) && group.get("hooks").is_some()
}

fn is_handler(handler: &Value) -> bool {
    all_entries(handler, |key, value| match key {
        "type" => value == "command",
        "command" => value.is_string(),
        "timeout" => value.as_u64().is_some_and(|seconds| seconds > 0),
        "onFailure" => value == "block",
        _ => false,
    }) && ["type", "command"].iter().all(|key| handler.get(key).is_some())
}

fn all_entries(value: &Value, fits: impl Fn(&str, &Value) -> bool) -> bool {
    let all = |map: &Map<String, Value>| map.iter().all(|(key, value)| fits(key, value));
    value.as_object().is_some_and(all)
}

fn all_items(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_settings_are_recognised_and_all_others_are_doubtful() {
        let common = r#"{
            "model": "opus", "env": {"RUST_LOG": "debug"}, "includeCoAuthoredBy": false,
            "permissions": {"allow": ["Read", "Bash(cargo test:*)"], "defaultMode": "plan"},
            "hooks": {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]}
        }"#;
        assert_eq!(doubtful_key(common), None);
        assert_eq!(doubtful_key("{}"), None);
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
            assert!(doubtful_key(text).is_some(), "{text}");
        }
    }
}
