//! `read_file`: shows one page of a file and states what is left.

mod line_reader;
mod page;
mod partial_lines;

use rustix::fs::Stat;
use serde_json::{Value, json};

use crate::error::{ToolError, ToolErrorCode};
use crate::guidance::Guidance;
use crate::suggestions;
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};
use page::{FilePage, PageRequest, ReadFailure};
use partial_lines::LineKey;
pub(crate) use partial_lines::PartialLines;

/// This field marks the last piece of a long line if all pieces of the line were shown.
pub(crate) const LINE_SHOWN_FIELD: &str = "line_shown";

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "read_file",
        description: "Reads a text file, a page at a time. `offset` is the first line, counted \
                      from 1. If `has_more` is true, continue with `next_offset`. A line that is \
                      listed in `cut_lines` continues with that line as `offset` and \
                      `shown_bytes` as `line_offset`.",
        input_schema: schema(
            &["path"],
            &[
                ("path", "string", "The file, relative to the workspace."),
                ("offset", "integer", "The first line to read, counted from 1."),
                ("limit", "integer", "The maximum number of lines to read."),
                ("line_offset", "integer", "Read only line `offset`, starting at this byte."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let path = args.text("path")?;
    let offset = args.optional_number("offset", 0)?.unwrap_or(1).max(1);
    let limit = args.optional_number("limit", 1)?;
    let line_offset = args.optional_number("line_offset", 0)?.unwrap_or(0);
    args.reject_unknown()?;
    let limits = &workspace.limits;
    let limit = limit.unwrap_or(u64::MAX).min(limits.read_lines_max);
    let inside = workspace.jail.to_workspace_path(path)?;
    let opened = workspace.jail.open_file(&inside);
    let (file, stat) =
        opened.map_err(|error| suggestions::suggest_for_missing(workspace, &inside, error))?;
    let path = inside.as_str();
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let page = page::read_page(file, size, &PageRequest { offset, limit, line_offset }, limits)
        .map_err(|failure| read_error(&failure, path, offset, line_offset))?;
    let whole =
        record_partial_lines(&workspace.partial_lines, (path, &stat), (offset, line_offset), &page);
    Ok(render(path, offset, whole, page))
}

/// Records how far long lines were shown. Returns whether all pieces of the continued line were
/// shown by now, from its start to its end.
fn record_partial_lines(
    pieces: &PartialLines,
    (path, stat): (&str, &Stat),
    (line, line_offset): (u64, u64),
    page: &FilePage,
) -> bool {
    if line_offset > 0 {
        let to = page.next.filter(|(next, _)| *next == line).and_then(|(_, byte)| byte);
        return pieces.record_shown(LineKey { path, stat, line }, line_offset, to);
    }
    for cut in &page.cut_lines {
        pieces.record_shown(LineKey { path, stat, line: cut.line }, 0, Some(cut.shown_bytes));
    }
    false
}

fn read_error(failure: &ReadFailure, path: &str, offset: u64, line_offset: u64) -> ToolError {
    match *failure {
        ReadFailure::Binary { utf16 } => {
            let error = ToolError::new(ToolErrorCode::Binary, format!("`{path}` is a binary file"))
                .with_path(path);
            if utf16 {
                error.with_advice("It looks like UTF-16; convert it with `iconv -f utf-16` first.")
            } else {
                error.with_advice("Use a program for its format; `file` shows what format it is.")
            }
        }
        ReadFailure::TooFar { at_line } => {
            let message = format!("line {offset} of `{path}` is too far into the file to be read");
            ToolError::new(ToolErrorCode::OffsetTooFar, message).with_path(path).with_advice(
                format!(
                    "The last line that can be read is line {at_line}; `search` can find any line."
                ),
            )
        }
        ReadFailure::TooFarInLine { bytes } => {
            let message =
                format!("byte {line_offset} is too far into line {offset} of `{path}` to be read");
            ToolError::new(ToolErrorCode::OffsetTooFar, message).with_path(path).with_advice(
                format!(
                    "The last byte of the line that can be read is byte {bytes}; a program such as \
                 `cut -b` can read the rest."
                ),
            )
        }
        ReadFailure::ShortLine { bytes } => {
            let message = format!("line {offset} of `{path}` has {bytes} bytes, not {line_offset}");
            ToolError::new(ToolErrorCode::InvalidArguments, message).with_path(path)
        }
        ReadFailure::System(errno) => ToolError::from_errno(errno, path),
    }
}

fn render(path: &str, offset: u64, whole: bool, page: FilePage) -> ToolAnswer {
    let (content, lossy) = match String::from_utf8(page.content) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let last = offset.saturating_add(page.lines_shown.saturating_sub(1));
    // The last page ends with the file. What its long lines did not show is still left.
    let first_cut = page.cut_lines.first().map(|cut| (cut.line, Some(cut.shown_bytes)));
    let next = page.next.or(first_cut);
    let mut notes = Vec::new();
    let total = page.total_lines.map_or_else(|| "unknown".to_owned(), |total| total.to_string());
    if let Some((line, byte)) = page.next {
        let within = byte.map_or_else(String::new, |byte| format!(" and line_offset {byte}"));
        notes.push(format!(
            "lines {offset} to {last} of {total}; continue with offset {line}{within}"
        ));
    } else if offset > 1 && page.lines_shown > 0 {
        notes.push(format!("lines {offset} to {last} of {total}; end of file"));
    }
    for cut in &page.cut_lines {
        let of = cut.bytes.map_or_else(String::new, |bytes| format!(" of {bytes}"));
        notes.push(format!(
            "line {line} is cut after {shown}{of} bytes; continue with offset {line} and \
             line_offset {shown}",
            line = cut.line,
            shown = cut.shown_bytes,
        ));
    }
    if lossy {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
    }
    let structured = json!({
        "path": path,
        "offset": offset,
        "lines_shown": page.lines_shown,
        "lines_remaining": page.lines_remaining,
        "has_more": next.is_some(),
        "next_offset": next.map(|(line, _)| line),
        "next_line_offset": next.and_then(|(_, byte)| byte),
        "total_lines": page.total_lines,
        "bytes_remaining": page.bytes_remaining,
        "cut_lines": page.cut_lines,
        "lossy": lossy,
        "content": content,
    });
    let mut output = ToolAnswer { text: content, structured };
    if whole && let Some(fields) = output.structured.as_object_mut() {
        fields.insert(LINE_SHOWN_FIELD.to_owned(), Value::Bool(true));
    }
    notes.iter().take(NOTES_MAX).for_each(|note| output.add_note(note));
    if page.lines_shown == 0 {
        output.add_guidance(
            "",
            &no_lines_guidance(path, offset, page.total_lines.unwrap_or_default()),
        );
    }
    output
}

/// How many notes follow a page. The JSON fields list all cut lines.
const NOTES_MAX: usize = 8;

/// The guidance for a page without lines: the file is empty or has fewer lines.
fn no_lines_guidance(path: &str, offset: u64, total: u64) -> Guidance {
    let mut guidance = Guidance::default();
    if total == 0 {
        guidance.add_sentence(&format!("`{path}` is empty."));
        return guidance;
    }
    guidance.add_sentence(&format!("`{path}` has {total} lines; there is no line {offset}."));
    let offset = total.saturating_sub(99).max(1);
    guidance.suggest_call("read_file", json!({ "path": path, "offset": offset }));
    guidance.finish_with_call()
}
