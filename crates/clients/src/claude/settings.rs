//! Our entries in the settings of Claude Code.
//!
//! The file is a person's, and stays as they wrote it: comments, commas, order,
//! indentation and other people's hooks. We add our own entries, know them
//! again by their command, and take exactly those out again.

mod events;
mod plain;

use jackline_engine::json::kind_of;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::hook_line::program_of;
use crate::installation::HookEntry;
use crate::settings_text::{BYTE_ORDER_MARK, once, parse, value, value_of};

pub use crate::settings_text::SettingsError;
pub use crate::settings_text::{is_blank, is_strict, loose_line};
pub use events::{PINNED, SHUTS_SINCE, hooks_for};
pub use plain::doubtful;

/// Variables on which it depends which guard is asked, or whether one is.
const TRUSTED: [&str; 9] = [
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

/// How others of them begin.
const TRUSTED_FAMILIES: [&str; 4] = ["JACKLINE", "XDG_", "LD_", "BASH_FUNC_"];

/// The settings with these hooks in them. What holds them already comes back
/// byte for byte.
pub fn install(text: &str, hooks: &[HookEntry]) -> Result<String, SettingsError> {
    edit(text, |root| {
        let settings = root.object_value_or_set();
        let events = settings.object_value_or_set("hooks");
        for property in events.properties() {
            let name = property.decoded_name().unwrap_or_default();
            if !hooks.iter().any(|hook| hook.event == name)
                && let Some(groups) = property.array_value()
                && take_out(&groups, None)
                && groups.elements().is_empty()
            {
                property.remove();
            }
        }
        hooks.iter().for_each(|hook| put(&events, hook));
    })
}

/// The settings without our hooks. Lists that only we filled go with them,
/// unless they were there, and empty, in the original.
pub fn remove(text: &str, original: Option<&str>) -> Result<String, SettingsError> {
    let original = original.and_then(|text| value_of(text).ok()).unwrap_or_default();
    edit(text, |root| {
        let Some(hooks) = root.object_value().and_then(|settings| settings.get("hooks")) else {
            return;
        };
        let Some(events) = hooks.object_value() else { return };
        let was = original.get("hooks");
        let mut emptied = false;
        for property in events.properties() {
            let name = property.decoded_name().unwrap_or_default();
            let Some(groups) = property.array_value() else { continue };
            let ours = take_out(&groups, None);
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

/// Our own hooks in there: the event, and what is run at it.
pub fn ours(text: &str) -> Vec<(String, Value)> {
    let settings = value_of(text).unwrap_or_default();
    let events = settings.get("hooks").and_then(Value::as_object);
    let mut found = Vec::new();
    for (event, groups) in events.into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let handlers = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        let ours = handlers.filter(|handler| is_ours(handler));
        found.extend(ours.map(|handler| (event.clone(), handler.clone())));
    }
    found
}

/// The key in there that keeps our hooks from running.
pub fn silencer(text: &str) -> Option<&'static str> {
    let settings = value_of(text).ok()?;
    ["disableAllHooks", "allowManagedHooksOnly"]
        .into_iter()
        .find(|key| settings.get(*key).is_some_and(|value| *value == Value::Bool(true)))
}

/// A variable that these settings put into the environment of the hooks, and
/// that decides which program they run and what it believes.
pub fn redirects(text: &str) -> Option<String> {
    let settings = value_of(text).ok()?;
    let variables = settings.get("env")?.as_object()?;
    variables.keys().find(|name| is_trusted(name)).cloned()
}

fn is_trusted(variable: &str) -> bool {
    TRUSTED.contains(&variable) || TRUSTED_FAMILIES.iter().any(|it| variable.starts_with(it))
}

/// An entry of somebody else's that the client does not take, and for whose
/// sake older versions ignore the whole file.
pub fn misfit(text: &str) -> Option<String> {
    let settings = value_of(text).ok()?;
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

/// Edits a text, and makes sure that nothing but our own entries changed.
fn edit(text: &str, change: impl FnOnce(&CstRootNode)) -> Result<String, SettingsError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK);
    let root = parse(bare.unwrap_or(text))?;
    let before = value(&root);
    check(&root, &before)?;
    change(&root);
    let edited = root.to_string();
    let after = value_of(&edited).map_err(|_| SettingsError::Entangled)?;
    if without_ours(after) != without_ours(before) {
        return Err(SettingsError::Entangled);
    }
    Ok(if bare.is_some() { format!("{BYTE_ORDER_MARK}{edited}") } else { edited })
}

/// Whether the places that we want to write to are what they have to be.
fn check(root: &CstRootNode, settings: &Value) -> Result<(), SettingsError> {
    let shape = |what: &str, expected, got: &Value| SettingsError::Shape {
        what: what.to_owned(),
        expected,
        got: kind_of(got),
    };
    if root.value().is_none() {
        return Ok(());
    }
    let Some(object) = root.object_value() else {
        return Err(shape("the whole file", "an object", settings));
    };
    once(&object, |name| name == "hooks")?;
    let Some(hooks) = settings.get("hooks") else { return Ok(()) };
    let (Some(events), Some(named)) = (object.object_value("hooks"), hooks.as_object()) else {
        return Err(shape("`hooks`", "an object", hooks));
    };
    once(&events, |_| true)?;
    match named.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, groups)) => Err(shape(&format!("`hooks.{event}`"), "a list", groups)),
        None => Ok(()),
    }
}

/// Puts one hook where an earlier one of ours is, else at the end of the list.
fn put(events: &CstObject, hook: &HookEntry) {
    let Some(groups) = events.array_value(hook.event) else {
        events.append(hook.event, input(&Value::Array(vec![entry_of(hook)])));
        return;
    };
    let kept = keep_first(&groups, hook);
    take_out(&groups, kept);
    if kept.is_none() {
        groups.append(input(&entry_of(hook)));
    }
}

/// Where an entry stands: which group of an event, and which handler in it.
type Standing = (usize, usize);

/// Makes the first of our entries in a list what it should be. An entry that
/// stands among other people's hooks for other tools can't stay there.
fn keep_first(groups: &CstArray, hook: &HookEntry) -> Option<Standing> {
    for (at, group) in groups.elements().into_iter().enumerate() {
        let Some(group) = group.as_object() else { continue };
        let Some(handlers) = group.array_value("hooks") else { continue };
        let handlers = handlers.elements();
        let Some(place) = handlers.iter().position(is_our_handler) else { continue };
        let first = handlers.get(place)?.as_object()?;
        if asks_about(&group, hook) {
            if first.to_serde_value().as_ref() != Some(&hook.handler) {
                first.replace_with(input(&hook.handler));
            }
            return Some((at, place));
        }
        if handlers.iter().all(is_our_handler) {
            group.replace_with(input(&entry_of(hook)));
            return Some((at, 0));
        }
    }
    None
}

/// The entry in the list of an event.
fn entry_of(hook: &HookEntry) -> Value {
    match hook.matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [hook.handler] }),
        None => json!({ "hooks": [hook.handler] }),
    }
}

/// Whether a group asks us about everything that a hook is about.
fn asks_about(group: &CstObject, hook: &HookEntry) -> bool {
    let matcher = group.get("matcher").and_then(|matcher| matcher.value());
    let Some(matcher) = matcher else { return true };
    let Some(Value::String(matcher)) = matcher.to_serde_value() else { return false };
    matcher.is_empty() || Some(matcher.as_str()) == hook.matcher.or(Some("*"))
}

/// Takes our entries out of a list, but for one; whether there were any.
fn take_out(groups: &CstArray, kept: Option<Standing>) -> bool {
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
    handler.get("command").and_then(Value::as_str).and_then(|line| program_of(line, NAME)).is_some()
}

/// What other people's settings mean: ours taken out, and with them what
/// nothing is left of.
fn without_ours(mut settings: Value) -> Value {
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
        // Marked above, so that an empty list of somebody else's is not ours.
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

/// The order in which people write these keys.
const ORDER: [&str; 6] = ["matcher", "hooks", "type", "command", "timeout", "onFailure"];

/// A value in the form in which it can be put into a file.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => {
            let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key));
            let entries = entries.into_iter().map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(entries.collect())
        }
    }
}

#[cfg(test)]
mod any_settings;
#[cfg(test)]
mod tests;
