//! Says in a few words what a change does to a file.

use std::path::Path;

use jackline_clients::Client;
use serde_json::Value;

use super::{FilePurpose, PlannedChange};

/// What a change does, in lines for a person; nothing if its difference is short and says more.
pub fn summarize(change: &PlannedChange) -> Option<Vec<String>> {
    match change.purpose {
        FilePurpose::Settings(client) => summarize_hooks(client, change),
        FilePurpose::Definition if change.before.is_none() => Some(vec![
            "mode `observe`: decides on every call and records it, and denies only the removal of the guard".to_owned(),
            "packs `destructive`, `git`, `secrets`, `publish`: actions that can't be undone"
                .to_owned(),
        ]),
        FilePurpose::Definition | FilePurpose::Servers(_) | FilePurpose::Exclude => None,
    }
}

/// Our hooks in a settings text: the event and its handler.
type OwnHooks = Vec<(String, Value)>;

fn summarize_hooks(client: &Client, change: &PlannedChange) -> Option<Vec<String>> {
    let hooks = |bytes: &Option<Vec<u8>>| {
        let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        client.installation.own_hooks(&text)
    };
    let (before, after) = (hooks(&change.before), hooks(&change.after));
    let is_in = |hooks: &OwnHooks, event: &str| hooks.iter().any(|(other, _)| other == event);
    let added = after.iter().filter(|(event, _)| !is_in(&before, event));
    let updated = after.iter().filter(|hook| is_in(&before, &hook.0) && !before.contains(hook));
    let removed = before.iter().filter(|(event, _)| !is_in(&after, event));
    let parts: Vec<String> = [
        describe_hooks("adds", client, added),
        describe_hooks("updates", client, updated),
        describe_hooks("removes", client, removed),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Without a change of our hooks, only the layout differs.
    (!parts.is_empty()).then_some(parts)
}

fn describe_hooks<'a>(
    verb: &str,
    client: &Client,
    hooks: impl Iterator<Item = &'a (String, Value)>,
) -> Option<String> {
    let hooks: Vec<&(String, Value)> = hooks.collect();
    let (_, first) = hooks.first()?;
    let program = client.installation.program_of(first).unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    let events: Vec<&str> = hooks.iter().map(|(event, _)| event.as_str()).collect();
    let noun = if events.len() == 1 { "hook" } else { "hooks" };
    Some(format!(
        "{verb} {} {noun} that run `{program} hook {}`: {}",
        events.len(),
        client.id,
        events.join(", ")
    ))
}
