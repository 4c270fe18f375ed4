//! Adds our hooks to the settings of Claude Code and removes them.
//!
//! The file belongs to a person and stays as they wrote it: comments, commas, order, indentation
//! and hooks of other programs. We add our own entries, recognise them later by their command, and
//! remove exactly those.

mod events;
mod recognised_settings;

use jackline_engine::json::describe_type;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value, json};

use super::CLIENT_ID;
use crate::hook_line::parse_program;
use crate::installation::HookEntry;
use crate::settings_text::{BYTE_ORDER_MARK, check_keys_once, parse, parse_value, tree_value};

pub use crate::settings_text::SettingsError;
pub use crate::settings_text::{first_invalid_line, is_blank, is_valid_for_client};
pub use events::{FAILS_CLOSED_SINCE, TESTED_VERSION, hooks_for};
pub use recognised_settings::doubtful_key;

/// Variables that decide which guard the hooks start, or whether they start one.
const TRUSTED_VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_SHELL",
    "CLAUDE_CODE_SIMPLE",
];

/// Prefixes of more such variables.
const TRUSTED_PREFIXES: [&str; 4] = ["JACKLINE", "XDG_", "LD_", "BASH_FUNC_"];

/// The settings with these hooks added. Settings that have them already are returned byte for byte.
pub fn add_hooks(text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
    edit_own_entries(text, |root| {
        let settings = root.object_value_or_set();
        let events = settings.object_value_or_set("hooks");
        for property in events.properties() {
            let name = property.decoded_name().unwrap_or_default();
            if !hooks.iter().any(|hook| hook.event == name)
                && let Some(groups) = property.array_value()
                && remove_entries(&groups, None)
                && groups.elements().is_empty()
            {
                property.remove();
            }
        }
        hooks.iter().for_each(|hook| put_hook(&events, hook));
    })
}

/// The settings without our hooks. Lists that are empty then are removed too, unless the original
/// settings had them.
pub fn remove_hooks(text: &str, original: Option<&str>) -> Result<String, SettingsError> {
    let original = original.and_then(|text| parse_value(text).ok()).unwrap_or_default();
    edit_own_entries(text, |root| {
        let Some(hooks) = root.object_value().and_then(|settings| settings.get("hooks")) else {
            return;
        };
        let Some(events) = hooks.object_value() else { return };
        let was = original.get("hooks");
        let mut emptied = false;
        for property in events.properties() {
            let name = property.decoded_name().unwrap_or_default();
            let Some(groups) = property.array_value() else { continue };
            let ours = remove_entries(&groups, None);
            if ours && groups.elements().is_empty() && was.and_then(|was| was.get(&name)).is_none()
            {
                property.remove();
            }
            emptied |= ours;
        }
        if emptied && events.properties().is_empty() && was.is_none() {
            hooks.remove();
        }
    })
}

/// Our own hooks in a settings text: the event and its handler.
pub fn own_hooks(text: &str) -> Vec<(String, Value)> {
    let settings = parse_value(text).unwrap_or_default();
    let events = settings.get("hooks").and_then(Value::as_object);
    let mut own_hooks = Vec::new();
    for (event, groups) in events.into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let handlers = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        let ours = handlers.filter(|handler| is_ours(handler));
        own_hooks.extend(ours.map(|handler| (event.clone(), handler.clone())));
    }
    own_hooks
}

/// The key in these settings that keeps our hooks from running.
pub fn disabling_key(text: &str) -> Option<&'static str> {
    let settings = parse_value(text).ok()?;
    ["disableAllHooks", "allowManagedHooksOnly"]
        .into_iter()
        .find(|key| settings.get(*key).is_some_and(|value| *value == Value::Bool(true)))
}

/// A variable that these settings set for the hooks and that decides which program they run or how
/// it works.
pub fn guard_variable(text: &str) -> Option<String> {
    let settings = parse_value(text).ok()?;
    let variables = settings.get("env")?.as_object()?;
    variables.keys().find(|name| is_trusted(name)).cloned()
}

fn is_trusted(variable: &str) -> bool {
    TRUSTED_VARIABLES.contains(&variable)
        || TRUSTED_PREFIXES.iter().any(|it| variable.starts_with(it))
}

/// An entry that the client rejects and that is not ours. Older versions ignore the whole file
/// because of it.
pub fn rejected_entry(text: &str) -> Option<String> {
    let settings = parse_value(text).ok()?;
    let events = settings.get("hooks")?.as_object()?;
    for (event, groups) in events {
        for (at, group) in groups.as_array()?.iter().enumerate() {
            let place = format!("hooks.{event}[{at}]");
            let fits = |key: &str, right: fn(&Value) -> bool| group.get(key).is_none_or(right);
            if !group.is_object() {
                return Some(format!("`{place}` is not an object"));
            }
            if !fits("matcher", Value::is_string) {
                return Some(format!("`{place}.matcher` is not a text"));
            }
            if !group.get("hooks").is_some_and(Value::is_array) {
                return Some(format!("`{place}.hooks` is not a list"));
            }
        }
    }
    None
}

/// Edits a text, and checks that only our own entries changed.
fn edit_own_entries(
    text: &str,
    change: impl FnOnce(&CstRootNode),
) -> Result<String, SettingsError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK);
    let root = parse(bare.unwrap_or(text))?;
    let before = tree_value(&root);
    check_types(&root, &before)?;
    change(&root);
    let edited = root.to_string();
    let after = parse_value(&edited).map_err(|_| SettingsError::WouldChangeOthers)?;
    if without_own_entries(after) != without_own_entries(before) {
        return Err(SettingsError::WouldChangeOthers);
    }
    Ok(if bare.is_some() { format!("{BYTE_ORDER_MARK}{edited}") } else { edited })
}

/// Checks that the values we want to change have the expected type.
fn check_types(root: &CstRootNode, settings: &Value) -> Result<(), SettingsError> {
    let shape = |what: &str, expected, got: &Value| SettingsError::WrongType {
        what: what.to_owned(),
        expected,
        got: describe_type(got),
    };
    if root.value().is_none() {
        return Ok(());
    }
    let Some(object) = root.object_value() else {
        return Err(shape("the whole file", "an object", settings));
    };
    check_keys_once(&object, |name| name == "hooks")?;
    let Some(hooks) = settings.get("hooks") else { return Ok(()) };
    let (Some(events), Some(named)) = (object.object_value("hooks"), hooks.as_object()) else {
        return Err(shape("`hooks`", "an object", hooks));
    };
    check_keys_once(&events, |_| true)?;
    match named.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, groups)) => Err(shape(&format!("`hooks.{event}`"), "a list", groups)),
        None => Ok(()),
    }
}

/// Writes a hook in place of an earlier one of ours, else at the end of the list.
fn put_hook(events: &CstObject, hook: &HookEntry) {
    let Some(groups) = events.array_value(hook.event) else {
        events.append(hook.event, syntax_input(&Value::Array(vec![entry_of(hook)])));
        return;
    };
    let kept = update_first(&groups, hook);
    remove_entries(&groups, kept);
    if kept.is_none() {
        groups.append(syntax_input(&entry_of(hook)));
    }
}

/// The position of an entry: the group in the list of an event, and the handler in the group.
type EntryPosition = (usize, usize);

/// Updates the first of our entries in a list. An entry that shares a group for other tools with
/// hooks of other programs can't stay there.
fn update_first(groups: &CstArray, hook: &HookEntry) -> Option<EntryPosition> {
    for (at, group) in groups.elements().into_iter().enumerate() {
        let Some(group) = group.as_object() else { continue };
        let Some(handlers) = group.array_value("hooks") else { continue };
        let handlers = handlers.elements();
        let Some(place) = handlers.iter().position(is_our_handler) else { continue };
        let first = handlers.get(place)?.as_object()?;
        if covers_tools(&group, hook) {
            if first.to_serde_value().as_ref() != Some(&hook.handler) {
                first.replace_with(syntax_input(&hook.handler));
            }
            return Some((at, place));
        }
        if handlers.iter().all(is_our_handler) {
            group.replace_with(syntax_input(&entry_of(hook)));
            return Some((at, 0));
        }
    }
    None
}

/// The entry for the list of an event.
fn entry_of(hook: &HookEntry) -> Value {
    match hook.matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [hook.handler] }),
        None => json!({ "hooks": [hook.handler] }),
    }
}

/// Whether a group covers all tools of a hook.
fn covers_tools(group: &CstObject, hook: &HookEntry) -> bool {
    let matcher = group.get("matcher").and_then(|matcher| matcher.value());
    let Some(matcher) = matcher else { return true };
    let Some(Value::String(matcher)) = matcher.to_serde_value() else { return false };
    matcher.is_empty() || Some(matcher.as_str()) == hook.matcher.or(Some("*"))
}

/// Removes our entries from a list, except for one. Returns whether there were any.
fn remove_entries(groups: &CstArray, kept: Option<EntryPosition>) -> bool {
    let mut found = false;
    for (at, group) in groups.elements().into_iter().enumerate() {
        let Some(group) = group.as_object() else { continue };
        let Some(handlers) = group.array_value("hooks") else { continue };
        let mut ours = false;
        for (place, handler) in handlers.elements().into_iter().enumerate() {
            if is_our_handler(&handler) && kept != Some((at, place)) {
                handler.remove();
                ours = true;
            }
        }
        if ours && handlers.elements().is_empty() {
            group.remove();
        }
        found |= ours;
    }
    found
}

fn is_our_handler(node: &CstNode) -> bool {
    node.to_serde_value().is_some_and(|handler| is_ours(&handler))
}

fn is_ours(handler: &Value) -> bool {
    handler
        .get("command")
        .and_then(Value::as_str)
        .and_then(|line| parse_program(line, CLIENT_ID))
        .is_some()
}

/// The settings without our entries and without the lists that are empty then, to compare the rest.
fn without_own_entries(mut settings: Value) -> Value {
    let Some(events) = settings.get_mut("hooks").and_then(Value::as_object_mut) else {
        return if settings.is_null() { Value::Object(Map::new()) } else { settings };
    };
    for groups in events.values_mut().filter_map(Value::as_array_mut) {
        for handlers in groups.iter_mut().filter_map(|group| group.get_mut("hooks")) {
            if let Some(handlers) = handlers.as_array_mut()
                && handlers.iter().any(is_ours)
            {
                handlers.retain(|handler| !is_ours(handler));
                if handlers.is_empty() {
                    handlers.push(Value::Null);
                }
            }
        }
        // Null marks the lists that we emptied. An empty list that was there before stays.
        let is_spent = |group: &Value| {
            group.get("hooks").and_then(Value::as_array).is_some_and(|all| *all == [Value::Null])
        };
        groups.retain(|group| !is_spent(group));
    }
    events.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
    if events.is_empty()
        && let Some(settings) = settings.as_object_mut()
    {
        settings.remove("hooks");
    }
    settings
}

/// The usual order of these keys.
const KEY_ORDER: [&str; 6] = ["matcher", "hooks", "type", "command", "timeout", "onFailure"];

/// A JSON value, converted for the syntax tree.
fn syntax_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(syntax_input).collect()),
        Value::Object(entries) => {
            let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| KEY_ORDER.iter().position(|name| name == key));
            let entries =
                entries.into_iter().map(|(key, value)| (key.clone(), syntax_input(value)));
            CstInputValue::Object(entries.collect())
        }
    }
}

#[cfg(test)]
mod any_settings;
#[cfg(test)]
mod tests;
