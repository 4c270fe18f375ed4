//! A scenario in the words of a surface that has only the tools of the workspace.
//!
//! Most scenarios call the tools by the names of Claude Code. The guards decide by what a tool does,
//! so the same story can be told with the tools of the workspace.

use jackline_engine::json::parse_strict;
use serde_json::{Map, Value};

use crate::scenario::{Scenario, ScenarioAction, ScenarioStep};

/// The tool of the workspace for each tool of Claude Code.
const TOOLS: [(&str, &str); 4] =
    [("Bash", "shell"), ("Read", "read_file"), ("Write", "write_file"), ("Edit", "edit_file")];

/// The argument of the workspace tools for each argument of Claude Code's tools.
const ARGUMENTS: [(&str, &str); 1] = [("file_path", "path")];

/// Renames the tools and arguments everywhere in a scenario.
pub(crate) fn in_workspace_words(scenario: &Scenario) -> Scenario {
    let steps = scenario.steps.iter().map(|step| {
        let act = match &step.act {
            ScenarioAction::Send { line, expect } => {
                ScenarioAction::Send { line: rename_line(line), expect: renamed(expect) }
            }
            other => other.clone(),
        };
        ScenarioStep { at: step.at, act }
    });
    Scenario {
        definition: rename_text(&scenario.definition),
        steps: steps.collect(),
        ..scenario.clone()
    }
}

/// Renames the tool and the arguments of a call, and leaves all other texts of the event.
fn rename_line(line: &str) -> String {
    let Ok(Value::Object(mut event)) = parse_strict(line.as_bytes()) else {
        return line.to_owned();
    };
    let tool = event.get("tool").and_then(Value::as_str);
    let Some((_, name)) = TOOLS.iter().find(|(known, _)| Some(*known) == tool) else {
        return line.to_owned();
    };
    event.insert("tool".to_owned(), (*name).into());
    if let Some(Value::Object(args)) = event.get_mut("args") {
        let renamed: Map<String, Value> = std::mem::take(args)
            .into_iter()
            .map(|(key, value)| (rename_argument(&key).to_owned(), value))
            .collect();
        *args = renamed;
    }
    Value::Object(event).to_string()
}

fn rename_argument(key: &str) -> &str {
    ARGUMENTS.iter().find(|(known, _)| *known == key).map_or(key, |(_, name)| name)
}

fn renamed(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(rename_text(text)),
        Value::Array(items) => items.iter().map(renamed).collect(),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (rename_text(key), renamed(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Renames whole words. `Read` and `Write` before a plain word are English, not names of tools.
fn rename_text(text: &str) -> String {
    let mut renamed = text.to_owned();
    for (known, name) in TOOLS.iter().chain(&ARGUMENTS) {
        let mut rest = std::mem::take(&mut renamed);
        while let Some(at) = rest.find(known) {
            let after = rest.split_off(at + known.len());
            let before = rest.len() - known.len();
            let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
            let starts = !rest.get(..before).is_some_and(|it| it.ends_with(part_of_word));
            let ends = !after.starts_with(part_of_word);
            let is_english = *known != "Bash"
                && (after.strip_prefix(' '))
                    .is_some_and(|it| it.starts_with(|c: char| c.is_lowercase() || c == '`'));
            if starts && ends && !is_english {
                rest.truncate(before);
                rest.push_str(name);
            }
            renamed.push_str(&rest);
            rest = after;
        }
        renamed.push_str(&rest);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_renamed_and_english_words_are_not() {
        for (before, after) in [
            ("tool: Bash", "tool: shell"),
            ("`Bash(make)`", "`shell(make)`"),
            ("[Read, Edit]", "[read_file, edit_file]"),
            ("Read `a.md` first. Write it.", "Read `a.md` first. Write it."),
            ("BashOutput MyBash NotebookEdit", "BashOutput MyBash NotebookEdit"),
            ("/file_path", "/path"),
        ] {
            assert_eq!(rename_text(before), after);
        }
        assert_eq!(
            rename_line(r#"{"tool":"Read","args":{"file_path":"Bash"}}"#),
            r#"{"args":{"path":"Bash"},"tool":"read_file"}"#
        );
    }
}
