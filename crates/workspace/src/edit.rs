//! `edit_file`: replaces one exact text. If the text is missing, the error shows the most similar
//! lines.

use std::io::Read as _;

use jackline_engine::nearest_name;
use serde_json::{Value, json};

use crate::error::{ToolError, ToolErrorCode};
use crate::guidance::{Guidance, SuggestedCall};
use crate::suggestions;
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};
use crate::write::{changed_meanwhile, check_size, is_same_file, replace_file};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::EDIT_FILE,
        description: "Replaces a text in a file with another text. `old` must be in the file \
                      exactly once, with all its spaces and line ends.",
        input_schema: schema(
            &["path", "old", "new"],
            &[
                ("path", "string", "The file, relative to the workspace."),
                ("old", "string", "The text to replace, exactly as it is in the file."),
                ("new", "string", "The text to put there; empty to remove it."),
            ],
        ),
        read_only: false,
    }
}

/// How many line numbers an error lists, and how many lines are compared to find similar text.
const LINES_NAMED_MAX: usize = 20;
const LINES_COMPARED_MAX: usize = 20_000;
const SIMILAR_TEXT_BYTES_MAX: usize = 2000;

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let path = args.text("path")?;
    let old = args.text("old")?;
    let new = args.text("new")?;
    args.reject_unknown()?;
    if old.is_empty() {
        let message = "`old` is empty; it must be a text of the file";
        return Err(ToolError::new(ToolErrorCode::InvalidArguments, message)
            .with_advice("`write_file` writes a whole file."));
    }
    if old == new {
        return Err(ToolError::new(ToolErrorCode::NoChange, "`old` and `new` are the same"));
    }
    let inside = workspace.jail.to_workspace_path(path)?;
    let opened = workspace.jail.open_file(&inside);
    let (file, stat) =
        opened.map_err(|error| suggestions::suggest_for_missing(workspace, &inside, error))?;
    let path = inside.as_str();
    let max = workspace.limits.write_bytes_max;
    let mut content = Vec::new();
    let read = file.take(max as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| {
        ToolError::new(ToolErrorCode::Io, format!("`{path}`: {error}")).with_path(path)
    })?;
    check_size(workspace, &inside, content.len())?;
    let content = String::from_utf8(content).map_err(|_| {
        ToolError::new(
            ToolErrorCode::NotUtf8,
            format!("`{path}` is not UTF-8, and can't be edited as text"),
        )
        .with_path(path)
    })?;
    let at = match occurrences(&content, old).as_slice() {
        [at] => *at,
        [] => return Err(text_not_found(path, &content, old)),
        several => return Err(text_found_more_than_once(path, &content, several)),
    };
    let edited = [
        content.get(..at).unwrap_or_default(),
        new,
        content.get(at + old.len()..).unwrap_or_default(),
    ]
    .concat();
    check_size(workspace, &inside, edited.len())?;
    let place = workspace.resolve_for_write(&inside)?;
    if !place.stat.as_ref().is_some_and(|now| is_same_file(&stat, now)) {
        return Err(changed_meanwhile(&inside));
    }
    replace_file(workspace, &place, &inside, edited.as_bytes())?;
    let line = line_number(&content, at);
    Ok(ToolAnswer {
        text: format!("edited `{path}` at line {line}\n"),
        structured: json!({
            "path": path,
            "line": line,
            "bytes": edited.len(),
            "lines_removed": old.lines().count(),
            "lines_added": new.lines().count(),
        }),
    })
}

/// The positions of a text, overlapping matches included. Stops after one more match than an error
/// lists, because each search scans the rest of the file again.
fn occurrences(content: &str, text: &str) -> Vec<usize> {
    let step = text.chars().next().map_or(1, char::len_utf8);
    let mut positions: Vec<usize> = Vec::new();
    let mut from = 0;
    while positions.len() <= LINES_NAMED_MAX
        && let Some(at) = content.get(from..).and_then(|rest| rest.find(text))
    {
        positions.push(from + at);
        from += at + step;
    }
    positions
}

fn line_number(content: &str, at: usize) -> usize {
    content.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn text_found_more_than_once(path: &str, content: &str, several: &[usize]) -> ToolError {
    let lines: Vec<String> = several
        .iter()
        .take(LINES_NAMED_MAX)
        .map(|at| line_number(content, *at).to_string())
        .collect();
    let (count, more) = if several.len() > lines.len() {
        (format!("more than {LINES_NAMED_MAX}"), ", …")
    } else {
        (several.len().to_string(), "")
    };
    let message =
        format!("`old` occurs {count} times in `{path}`, on lines {}{more}", lines.join(", "));
    ToolError::new(ToolErrorCode::AmbiguousMatch, message)
        .with_path(path)
        .with_advice("Add more of the surrounding lines to `old`, so that it occurs only once.")
}

fn text_not_found(path: &str, content: &str, old: &str) -> ToolError {
    let error =
        ToolError::new(ToolErrorCode::NoMatch, format!("`old` is not in `{path}`")).with_path(path);
    let mut guidance = Guidance::default();
    match closest_lines(content, old) {
        Some(ClosestLines { line, text, differs_only_in_space: only_space }) => {
            let how = if only_space {
                "Ignoring white space, the text is"
            } else {
                "The most similar text is"
            };
            guidance.add_sentence(&format!("{how} at line {line}:\n{text}\n"));
            if only_space && content.contains("\r\n") && !old.contains('\r') {
                guidance.add_sentence("The file has CRLF line ends.");
            }
            guidance.elsewhere.push(format!("{path}:{line}"));
            guidance.near.push(text);
        }
        None => guidance.add_sentence("The file contains nothing similar; read the file again."),
    }
    let offset = guidance.elsewhere.first().and_then(|place| place.rsplit_once(':'));
    let offset = offset.and_then(|(_, line)| line.parse::<u64>().ok()).unwrap_or(1);
    let args = json!({ "path": path, "offset": offset.saturating_sub(5).max(1), "limit": 50 });
    guidance.next = Some(SuggestedCall { tool: "read_file", args });
    error.with_guidance(guidance.finish_with_call())
}

struct ClosestLines {
    line: usize,
    text: String,
    differs_only_in_space: bool,
}

/// Finds the lines that the model most likely meant.
fn closest_lines(content: &str, old: &str) -> Option<ClosestLines> {
    let lines: Vec<&str> = content.split_inclusive('\n').take(LINES_COMPARED_MAX).collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let show = |start: usize, only_space| {
        let mut text = String::new();
        for line in lines.iter().skip(start).take(wanted.len().max(1)) {
            if text.len() + line.len() > SIMILAR_TEXT_BYTES_MAX {
                let room = SIMILAR_TEXT_BYTES_MAX - text.len();
                text.extend(line.chars().take(room / 4));
                break;
            }
            text.push_str(line);
        }
        ClosestLines { line: start + 1, text, differs_only_in_space: only_space }
    };
    let bare: Vec<String> = wanted.iter().map(|line| normalise_space(line)).collect();
    let there: Vec<String> = lines.iter().map(|line| normalise_space(line)).collect();
    let spaced = !bare.is_empty() && bare.iter().any(|line| !line.is_empty());
    if let Some(start) = there.windows(bare.len().max(1)).position(|window| window == bare)
        && spaced
    {
        return Some(show(start, true));
    }
    // The longest line is the best hint for the position.
    let (number, longest) =
        wanted.iter().enumerate().max_by_key(|(_, line)| line.len()).filter(|_| spaced)?;
    let start = |line: usize| line.saturating_sub(number);
    let trimmed = || lines.iter().map(|line| line.trim());
    if let Some(at) = trimmed().position(|line| line == *longest || line.contains(longest)) {
        return Some(show(start(at), false));
    }
    let near = nearest_name(longest, trimmed())?;
    trimmed().position(|line| line == near).map(|at| show(start(at), false))
}

/// Removes differences in white space from a line.
fn normalise_space(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
