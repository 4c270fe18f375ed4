//! `edit_file`: one exact text for another; if it is not there, what is nearest.

use std::io::Read as _;

use jackline_engine::nearest;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::{Code, ToolError};
use crate::guidance::{Guidance, Next};
use crate::hints;
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};
use crate::write::{changed, replace, same, small_enough};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: crate::tools::EDIT_FILE,
        description: "Replaces a text in a file by another. `old` must be in the file exactly \
                      once, with all its spaces and line ends.",
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

/// How many lines are named, and how many lines are looked at for the nearest text.
const LINES_NAMED_MAX: usize = 20;
const LINES_LOOKED_MAX: usize = 20_000;
const NEAREST_BYTES_MAX: usize = 2000;

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let path = args.text("path")?;
    let old = args.text("old")?;
    let new = args.text("new")?;
    args.finish()?;
    if old.is_empty() {
        let message = "`old` is empty; it must be a text of the file";
        return Err(ToolError::new(Code::InvalidArguments, message)
            .advice("`write_file` writes a whole file."));
    }
    if old == new {
        return Err(ToolError::new(Code::NoChange, "`old` and `new` are the same"));
    }
    let inside = workspace.jail.locate(path)?;
    let opened = workspace.jail.open_file(&inside);
    let (file, look) = opened.map_err(|error| hints::for_missing(workspace, &inside, error))?;
    let path = inside.as_str();
    let max = workspace.limits.write_bytes_max;
    let mut content = Vec::new();
    let read = file.take(max as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| ToolError::new(Code::Io, format!("`{path}`: {error}")).at(path))?;
    small_enough(workspace, &inside, content.len())?;
    let content = String::from_utf8(content).map_err(|_| {
        ToolError::new(Code::NotUtf8, format!("`{path}` is not UTF-8, and can't be edited as text"))
            .at(path)
    })?;
    let at = match occurrences(&content, old).as_slice() {
        [at] => *at,
        [] => return Err(missing(path, &content, old)),
        several => return Err(ambiguous(path, &content, several)),
    };
    let edited = [
        content.get(..at).unwrap_or_default(),
        new,
        content.get(at + old.len()..).unwrap_or_default(),
    ]
    .concat();
    small_enough(workspace, &inside, edited.len())?;
    let place = workspace.place(&inside)?;
    if !place.look.as_ref().is_some_and(|now| same(&look, now)) {
        return Err(changed(&inside));
    }
    replace(workspace, &place, &inside, edited.as_bytes())?;
    let line = line_of(&content, at);
    Ok(ToolOutput {
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

/// Where a text is, overlapping or not; as often as is named, and once more. Each search
/// looks at all of the text again, so there are few.
fn occurrences(content: &str, text: &str) -> Vec<usize> {
    let step = text.chars().next().map_or(1, char::len_utf8);
    let mut found: Vec<usize> = Vec::new();
    let mut from = 0;
    while found.len() <= LINES_NAMED_MAX
        && let Some(at) = content.get(from..).and_then(|rest| rest.find(text))
    {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_of(content: &str, at: usize) -> usize {
    content.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn ambiguous(path: &str, content: &str, several: &[usize]) -> ToolError {
    let lines: Vec<String> =
        several.iter().take(LINES_NAMED_MAX).map(|at| line_of(content, *at).to_string()).collect();
    let (count, more) = if several.len() > lines.len() {
        (format!("more than {LINES_NAMED_MAX}"), ", …")
    } else {
        (several.len().to_string(), "")
    };
    let message =
        format!("`old` is in `{path}` {count} times, at the lines {}{more}", lines.join(", "));
    ToolError::new(Code::AmbiguousMatch, message)
        .at(path)
        .advice("Take more of the lines around it into `old`, so that it is there once.")
}

fn missing(path: &str, content: &str, old: &str) -> ToolError {
    let error = ToolError::new(Code::NoMatch, format!("`old` is not in `{path}`")).at(path);
    let mut guidance = Guidance::default();
    match closest(content, old) {
        Some(Closest { line, text, only_space }) => {
            let how = if only_space { "Apart from white space it is" } else { "The nearest is" };
            guidance.say(&format!("{how} at line {line}:\n{text}\n"));
            if only_space && content.contains("\r\n") && !old.contains('\r') {
                guidance.say("The file has CRLF line ends.");
            }
            guidance.elsewhere.push(format!("{path}:{line}"));
            guidance.near.push(text);
        }
        None => guidance.say("Nothing in the file is like it; read it again."),
    }
    let offset = guidance.elsewhere.first().and_then(|place| place.rsplit_once(':'));
    let offset = offset.and_then(|(_, line)| line.parse::<u64>().ok()).unwrap_or(1);
    let args = json!({ "path": path, "offset": offset.saturating_sub(5).max(1), "limit": 50 });
    guidance.next = Some(Next { tool: "read_file", args });
    error.with(guidance.finish())
}

struct Closest {
    line: usize,
    text: String,
    only_space: bool,
}

/// The lines that are likely meant.
fn closest(content: &str, old: &str) -> Option<Closest> {
    let lines: Vec<&str> = content.split_inclusive('\n').take(LINES_LOOKED_MAX).collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let show = |start: usize, only_space| {
        let mut text = String::new();
        for line in lines.iter().skip(start).take(wanted.len().max(1)) {
            if text.len() + line.len() > NEAREST_BYTES_MAX {
                let room = NEAREST_BYTES_MAX - text.len();
                text.extend(line.chars().take(room / 4));
                break;
            }
            text.push_str(line);
        }
        Closest { line: start + 1, text, only_space }
    };
    let bare: Vec<String> = wanted.iter().map(|line| squeeze(line)).collect();
    let there: Vec<String> = lines.iter().map(|line| squeeze(line)).collect();
    let spaced = !bare.is_empty() && bare.iter().any(|line| !line.is_empty());
    if let Some(start) = there.windows(bare.len().max(1)).position(|window| window == bare)
        && spaced
    {
        return Some(show(start, true));
    }
    // The longest line says most about where it should be.
    let (number, telling) =
        wanted.iter().enumerate().max_by_key(|(_, line)| line.len()).filter(|_| spaced)?;
    let start = |line: usize| line.saturating_sub(number);
    let trimmed = || lines.iter().map(|line| line.trim());
    if let Some(at) = trimmed().position(|line| line == *telling || line.contains(telling)) {
        return Some(show(start(at), false));
    }
    let near = nearest(telling, trimmed())?;
    trimmed().position(|line| line == near).map(|at| show(start(at), false))
}

/// A line whose white space does not matter.
fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
