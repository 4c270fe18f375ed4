//! `read_file`: a page of a file, and what is left of it.

mod page;
mod pieces;
mod source;

use rustix::fs::Stat;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::{Code, ToolError};
use crate::guidance::Guidance;
use crate::hints;
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};
use page::{Asked, Failed, Page};
use pieces::Of;
pub(crate) use pieces::Pieces;

/// Says of the last piece of a long line that all of them were shown.
pub(crate) const LINE_SHOWN: &str = "line_shown";

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "read_file",
        description: "Reads a text file, a page at a time. `offset` is the first line, counted \
                      from 1. If `has_more` is true, go on with `next_offset`. A line that is \
                      listed in `cut_lines` goes on with that line as `offset` and \
                      `shown_bytes` as `line_offset`.",
        input_schema: schema(
            &["path"],
            &[
                ("path", "string", "The file, relative to the workspace."),
                ("offset", "integer", "The first line to read, counted from 1."),
                ("limit", "integer", "How many lines to read at most."),
                ("line_offset", "integer", "Read only the line `offset`, from this byte on."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let path = args.text("path")?;
    let offset = args.number_if("offset", 0)?.unwrap_or(1).max(1);
    let limit = args.number_if("limit", 1)?;
    let line_offset = args.number_if("line_offset", 0)?.unwrap_or(0);
    args.finish()?;
    let limits = &workspace.limits;
    let limit = limit.unwrap_or(u64::MAX).min(limits.read_lines_max);
    let inside = workspace.jail.locate(path)?;
    let opened = workspace.jail.open_file(&inside);
    let (file, look) = opened.map_err(|error| hints::for_missing(workspace, &inside, error))?;
    let path = inside.as_str();
    let size = u64::try_from(look.st_size).unwrap_or_default();
    let page = page::read(file, size, &Asked { offset, limit, line_offset }, limits)
        .map_err(|failed| refused(&failed, path, offset, line_offset))?;
    let whole = note_pieces(&workspace.pieces, (path, &look), (offset, line_offset), &page);
    Ok(render(path, offset, whole, page))
}

/// Remembers how far long lines were shown. Says whether the line that was gone on with was
/// shown from its beginning to its end by now.
fn note_pieces(
    pieces: &Pieces,
    (path, look): (&str, &Stat),
    (line, line_offset): (u64, u64),
    page: &Page,
) -> bool {
    if line_offset > 0 {
        let to = page.next.filter(|(next, _)| *next == line).and_then(|(_, byte)| byte);
        return pieces.shown(Of { path, look, line }, line_offset, to);
    }
    for cut in &page.cut {
        pieces.shown(Of { path, look, line: cut.line }, 0, Some(cut.shown_bytes));
    }
    false
}

fn refused(failed: &Failed, path: &str, offset: u64, line_offset: u64) -> ToolError {
    match *failed {
        Failed::Binary { utf16 } => {
            let error = ToolError::new(Code::Binary, format!("`{path}` is not text")).at(path);
            if utf16 {
                error.advice("It looks like UTF-16; convert it with `iconv -f utf-16` first.")
            } else {
                error.advice("Use a program that knows its format, or `file` to find out which.")
            }
        }
        Failed::TooFar { at_line } => {
            let message = format!("line {offset} of `{path}` is too far into the file");
            ToolError::new(Code::OffsetTooFar, message).at(path).advice(format!(
                "Line {at_line} is the last that can be reached; `search` finds lines anywhere."
            ))
        }
        Failed::TooFarInLine { bytes } => {
            let message = format!("byte {line_offset} is too far into line {offset} of `{path}`");
            ToolError::new(Code::OffsetTooFar, message).at(path).advice(format!(
                "Byte {bytes} is the last of the line that can be reached; a program such as `cut -b` \
                 goes further."
            ))
        }
        Failed::ShortLine { bytes } => {
            let message = format!("line {offset} of `{path}` has {bytes} bytes, not {line_offset}");
            ToolError::new(Code::InvalidArguments, message).at(path)
        }
        Failed::System(errno) => ToolError::system(errno, path),
    }
}

fn render(path: &str, offset: u64, whole: bool, page: Page) -> ToolOutput {
    let (content, lossy) = match String::from_utf8(page.content) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let last = offset.saturating_add(page.lines_shown.saturating_sub(1));
    let has_more = page.next.is_some();
    let mut notes = Vec::new();
    let total = page.total_lines.map_or_else(|| "many".to_owned(), |total| total.to_string());
    if let Some((line, byte)) = page.next {
        let within = byte.map_or_else(String::new, |byte| format!(" and line_offset {byte}"));
        notes
            .push(format!("lines {offset} to {last} of {total}; go on with offset {line}{within}"));
    } else if offset > 1 && page.lines_shown > 0 {
        notes.push(format!("lines {offset} to {last} of {total}; the end"));
    }
    for cut in &page.cut {
        let of = cut.bytes.map_or_else(String::new, |bytes| format!(" of {bytes}"));
        notes.push(format!(
            "line {line} is cut after {shown}{of} bytes; go on with offset {line} and line_offset {shown}",
            line = cut.line,
            shown = cut.shown_bytes,
        ));
    }
    if lossy {
        notes.push("some bytes are not UTF-8 and are shown as \u{fffd}".to_owned());
    }
    let structured = json!({
        "path": path,
        "offset": offset,
        "lines_shown": page.lines_shown,
        "lines_remaining": page.lines_remaining,
        "has_more": has_more,
        "next_offset": page.next.map(|(line, _)| line),
        "next_line_offset": page.next.and_then(|(_, byte)| byte),
        "total_lines": page.total_lines,
        "bytes_remaining": page.bytes_remaining,
        "cut_lines": page.cut,
        "lossy": lossy,
        "content": content,
    });
    let mut output = ToolOutput { text: content, structured };
    if whole && let Some(fields) = output.structured.as_object_mut() {
        fields.insert(LINE_SHOWN.to_owned(), Value::Bool(true));
    }
    notes.iter().take(NOTES_MAX).for_each(|note| output.note(note));
    if page.lines_shown == 0 {
        output.guide("", &beyond(path, offset, page.total_lines.unwrap_or_default()));
    }
    output
}

/// How many notes follow a page. All cut lines are in the fields.
const NOTES_MAX: usize = 8;

/// Nothing to show: the file is empty, or shorter.
fn beyond(path: &str, offset: u64, total: u64) -> Guidance {
    let mut guidance = Guidance::default();
    if total == 0 {
        guidance.say(&format!("`{path}` is empty."));
        return guidance;
    }
    guidance.say(&format!("`{path}` has {total} lines; there is no line {offset}."));
    let offset = total.saturating_sub(99).max(1);
    guidance.propose("read_file", json!({ "path": path, "offset": offset }));
    guidance.finish()
}
