//! The client's settings, read and not written: which hooks are ours, and whether
//! anything keeps them from running.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Keys that keep hooks of ours from running.
const SILENCERS: [&str; 2] = ["disableAllHooks", "allowManagedHooksOnly"];

/// How our command lines go on after the program.
const WORDS: &str = " hook claude";

/// One file of settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) file: PathBuf,
    value: Value,
}

/// One of our hooks in there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ours {
    pub(super) event: String,
    /// The program that it starts.
    pub(super) program: PathBuf,
    /// It believes nothing without our seal, and a failure shuts the gate.
    pub(super) shuts: bool,
    /// It is asked about every tool.
    pub(super) all_tools: bool,
}

impl Settings {
    /// Reads a file; none if it is not there.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("`{}` can't be read: {error}", file.display())),
        };
        let value = serde_json::from_str(&without_comments(&text));
        match value {
            Ok(value) => Ok(Some(Self { file: file.to_owned(), value })),
            Err(error) => Err(format!("`{}` is no JSON: {error}", file.display())),
        }
    }

    /// The key that keeps our hooks from running.
    pub(super) fn silencer(&self) -> Option<&'static str> {
        SILENCERS.into_iter().find(|key| self.value.get(key) == Some(&Value::Bool(true)))
    }

    /// Our own hooks.
    pub(super) fn ours(&self) -> Vec<Ours> {
        let events = self.value.get("hooks").and_then(Value::as_object);
        let mut ours = Vec::new();
        for (event, groups) in events.into_iter().flatten() {
            for group in groups.as_array().into_iter().flatten() {
                let hooks = group.get("hooks").and_then(Value::as_array);
                ours.extend(hooks.into_iter().flatten().filter_map(|hook| our(event, group, hook)));
            }
        }
        ours
    }
}

fn our(event: &str, group: &Value, hook: &Value) -> Option<Ours> {
    let command = hook.get("command")?.as_str()?.trim();
    let sealed = command.strip_prefix("r=$(");
    let (word, rest) = sealed.unwrap_or(command).split_once(WORDS)?;
    let program = unquote(word);
    let name = program.file_name()?.to_str()?;
    if !name.starts_with("jackline") {
        return None;
    }
    let seals = sealed.is_some() && rest.starts_with(" --sealed)");
    let blocks = hook.get("onFailure").and_then(Value::as_str) == Some("block");
    let matcher = group.get("matcher").and_then(Value::as_str);
    Some(Ours {
        event: event.to_owned(),
        shuts: seals && blocks,
        all_tools: matches!(matcher, None | Some("" | "*" | ".*")),
        program,
    })
}

fn unquote(word: &str) -> PathBuf {
    let inner = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    PathBuf::from(inner.map_or_else(|| word.to_owned(), |inner| inner.replace(r"'\''", "'")))
}

/// The text with blanks in the place of comments and commas that end a list, as
/// people write settings.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.get(rest.find('\n').unwrap_or(rest.len())..).unwrap_or_default();
                continue;
            }
            '/' if rest.starts_with("/*") => {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                rest = rest.get(end..).unwrap_or_default();
                continue;
            }
            '}' | ']' => {
                let kept = plain.trim_end();
                if kept.ends_with(',') {
                    plain.truncate(kept.len() - 1);
                }
                1
            }
            _ => c.len_utf8(),
        };
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        plain.push_str(taken);
        rest = left;
    }
    plain
}

/// How long the string is that a text begins with, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_passed_over_and_strings_are_not() {
        let text = "{ // one\n \"a//b\": \"c/*d\\\"//\", /* two */ \"e\": [1, 2, ], }";
        let plain: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(plain, serde_json::json!({ "a//b": "c/*d\"//", "e": [1, 2] }));
        for odd in ["", "\"", "\"\\", "/*", "/", "//", "]", ",}"] {
            let _ = without_comments(odd);
        }
    }

    #[test]
    fn our_own_hooks_are_known_again_and_others_are_not() {
        let guard = crate::live::Guard::of(Path::new("/opt/it's here/jackline"));
        let mut value = guard.settings();
        let foreign =
            serde_json::json!([{ "hooks": [{ "type": "command", "command": "x hook claude" }] }]);
        value["hooks"]["Notification"] = foreign;
        let settings = Settings { file: PathBuf::new(), value };
        let ours = settings.ours();
        assert!(ours.iter().all(|hook| hook.program == Path::new("/opt/it's here/jackline")));
        assert!(ours.iter().all(|hook| hook.shuts == (hook.event == "PreToolUse")));
        assert!(!ours.iter().any(|hook| hook.event == "Notification"));
        assert_eq!(settings.silencer(), None);
    }
}
