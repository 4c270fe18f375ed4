//! What messages are made of: blocks of text, calls and results.

use jackline_engine::event::Seen;
use jackline_engine::{CallId, EventKind, Payload, Status, ToolFinished};
use serde::Deserialize;

use super::super::lines::{Raw, flag, read, text};

/// How texts begin that look like a person's and are the client's: messages of
/// finished tasks, commands of its own and what they said.
const WRAPPERS: [&str; 11] = [
    "<task-notification>",
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<teammate-message",
    "[Request interrupted by user",
];

/// How a result begins of a call that a person refused, in versions that have
/// no field for it.
const REFUSED: &str = "The user doesn't want to";

/// How the result of a command begins that failed.
const EXIT_CODE: &str = "Exit code ";

/// One block of a message.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
    #[serde(borrow)]
    pub(super) input: Raw<'a>,
    #[serde(borrow)]
    tool_use_id: Raw<'a>,
    #[serde(borrow)]
    content: Raw<'a>,
    #[serde(borrow)]
    is_error: Raw<'a>,
}

/// What the client knows of a result.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside<'a> {
    #[serde(borrow)]
    stdout: Raw<'a>,
    #[serde(borrow)]
    stderr: Raw<'a>,
    #[serde(borrow)]
    interrupted: Raw<'a>,
    #[serde(borrow)]
    return_code_interpretation: Raw<'a>,
    #[serde(borrow)]
    is_async: Raw<'a>,
    #[serde(borrow)]
    background_task_id: Raw<'a>,
    #[serde(borrow)]
    file: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(borrow)]
    file_path: Raw<'a>,
    #[serde(borrow)]
    start_line: Raw<'a>,
    #[serde(borrow)]
    num_lines: Raw<'a>,
    #[serde(borrow)]
    total_lines: Raw<'a>,
}

/// Whether a prompt was written by the client.
pub(super) fn is_wrapper(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    WRAPPERS.iter().any(|wrapper| prompt.starts_with(wrapper))
}

/// The blocks of a message, those of another shape left out.
pub(super) fn blocks(content: Raw<'_>) -> Option<Vec<Block<'_>>> {
    let blocks: Vec<Raw<'_>> = read(content)?;
    Some(blocks.into_iter().filter_map(read).collect())
}

/// A result, or nothing where it does not say of which call.
pub(super) fn finished(block: &Block<'_>, beside: Raw<'_>, denial: Raw<'_>) -> Option<EventKind> {
    let call = CallId::parse(text(block.tool_use_id)?).ok()?;
    let beside: Beside<'_> = read(beside).unwrap_or_default();
    let result = said(block.content).or_else(|| printed(&beside));
    let status = status(block, &beside, denial, result.as_deref().unwrap_or_default());
    let background = flag(beside.is_async) || beside.background_task_id.is_some();
    Some(EventKind::ToolFinished(ToolFinished {
        call: Some(call),
        status,
        exit_code: exit_code(status, &beside, background, result.as_deref().unwrap_or_default()),
        result: result.map(Payload::Inline),
        seen: seen(beside.file).into_iter().collect(),
        background,
        ..ToolFinished::default()
    }))
}

fn status(block: &Block<'_>, beside: &Beside<'_>, denial: Raw<'_>, result: &str) -> Status {
    let failed = flag(block.is_error);
    if denial.is_some() || flag(beside.interrupted) || (failed && result.starts_with(REFUSED)) {
        Status::Cancelled
    } else if failed {
        Status::Error
    } else {
        Status::Ok
    }
}

/// What the model was told.
fn said(content: Raw<'_>) -> Option<String> {
    text(content).or_else(|| {
        let texts: Vec<String> =
            blocks(content)?.iter().filter_map(|block| text(block.text)).collect();
        Some(texts.join("\n"))
    })
}

/// What a command printed.
fn printed(beside: &Beside<'_>) -> Option<String> {
    let parts = [text(beside.stdout), text(beside.stderr)];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The exit status of a command, where it is told: it stands before the output
/// of one that failed, and one that did not has none to tell.
fn exit_code(status: Status, beside: &Beside<'_>, background: bool, result: &str) -> Option<i64> {
    match status {
        Status::Error => {
            let digits = result.strip_prefix(EXIT_CODE)?;
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits.get(..end)?.parse().ok()
        }
        Status::Ok => {
            let ended = beside.stdout.is_some() && !background;
            // Some programs end with 1 to say "nothing found".
            (ended && beside.return_code_interpretation.is_none()).then_some(0)
        }
        _ => None,
    }
}

/// The part of a file that was shown.
fn seen(file: Raw<'_>) -> Option<Seen> {
    let shown: Shown<'_> = read(file)?;
    let from: u64 = read(shown.start_line)?;
    let lines: u64 = read(shown.num_lines).filter(|lines| *lines > 0)?;
    let to = from.checked_add(lines)?.checked_sub(1)?;
    Some(Seen { path: text(shown.file_path)?, from, to, of: read(shown.total_lines) })
}
