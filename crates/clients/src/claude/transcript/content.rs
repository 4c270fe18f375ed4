//! Parses the blocks of a message: texts, calls and results.

use jackline_engine::event::ShownLines;
use jackline_engine::{CallId, CallStatus, EventKind, Payload, ToolFinished};
use serde::Deserialize;

use super::super::raw_value::{OptionalRaw, parse_raw, raw_flag, raw_text};
use super::super::tool_results::is_refusal_by_person;

/// How texts begin that look like a prompt of a person but come from the client: messages of
/// finished tasks, and the client's own commands and their output.
const CLIENT_PREFIXES: [&str; 11] = [
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

/// The result of a failed command begins with this.
const EXIT_CODE_PREFIX: &str = "Exit code ";

/// One block of a message.
#[derive(Deserialize)]
pub(super) struct TranscriptBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: OptionalRaw<'a>,
    #[serde(borrow)]
    pub(super) text: OptionalRaw<'a>,
    #[serde(borrow)]
    pub(super) id: OptionalRaw<'a>,
    #[serde(borrow)]
    pub(super) name: OptionalRaw<'a>,
    #[serde(borrow)]
    pub(super) input: OptionalRaw<'a>,
    #[serde(borrow)]
    tool_use_id: OptionalRaw<'a>,
    #[serde(borrow)]
    content: OptionalRaw<'a>,
    #[serde(borrow)]
    is_error: OptionalRaw<'a>,
}

/// What the transcript line says about a result, apart from the message.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultDetails<'a> {
    #[serde(borrow)]
    stdout: OptionalRaw<'a>,
    #[serde(borrow)]
    stderr: OptionalRaw<'a>,
    #[serde(borrow)]
    interrupted: OptionalRaw<'a>,
    #[serde(borrow)]
    return_code_interpretation: OptionalRaw<'a>,
    #[serde(borrow)]
    is_async: OptionalRaw<'a>,
    #[serde(borrow)]
    background_task_id: OptionalRaw<'a>,
    #[serde(borrow)]
    file: OptionalRaw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownFilePart<'a> {
    #[serde(borrow)]
    file_path: OptionalRaw<'a>,
    #[serde(borrow)]
    start_line: OptionalRaw<'a>,
    #[serde(borrow)]
    num_lines: OptionalRaw<'a>,
    #[serde(borrow)]
    total_lines: OptionalRaw<'a>,
}

/// Whether the client wrote this prompt.
pub(super) fn is_client_prompt(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    CLIENT_PREFIXES.iter().any(|wrapper| prompt.starts_with(wrapper))
}

/// The blocks of a message. Blocks of another format are left out.
pub(super) fn parse_blocks(content: OptionalRaw<'_>) -> Option<Vec<TranscriptBlock<'_>>> {
    let blocks: Vec<OptionalRaw<'_>> = parse_raw(content)?;
    Some(blocks.into_iter().filter_map(parse_raw).collect())
}

/// A finished call, or nothing if the result does not name its call.
pub(super) fn finished_call(
    block: &TranscriptBlock<'_>,
    details: OptionalRaw<'_>,
    denial: OptionalRaw<'_>,
) -> Option<EventKind> {
    let call = CallId::parse(raw_text(block.tool_use_id)?).ok()?;
    let details: ResultDetails<'_> = parse_raw(details).unwrap_or_default();
    let result = model_text(block.content).or_else(|| command_output(&details));
    let status = result_status(block, &details, denial, result.as_deref().unwrap_or_default());
    let background = raw_flag(details.is_async) || details.background_task_id.is_some();
    Some(EventKind::ToolFinished(ToolFinished {
        call: Some(call),
        status,
        exit_code: command_exit_code(
            status,
            &details,
            background,
            result.as_deref().unwrap_or_default(),
        ),
        result: result.map(Payload::Inline),
        seen: shown_lines(details.file).into_iter().collect(),
        background,
        ..ToolFinished::default()
    }))
}

fn result_status(
    block: &TranscriptBlock<'_>,
    details: &ResultDetails<'_>,
    denial: OptionalRaw<'_>,
    result: &str,
) -> CallStatus {
    let failed = raw_flag(block.is_error);
    if denial.is_some() || raw_flag(details.interrupted) || (failed && is_refusal_by_person(result))
    {
        CallStatus::Cancelled
    } else if failed {
        CallStatus::Error
    } else {
        CallStatus::Ok
    }
}

/// The text that the model received.
fn model_text(content: OptionalRaw<'_>) -> Option<String> {
    raw_text(content).or_else(|| {
        let texts: Vec<String> =
            parse_blocks(content)?.iter().filter_map(|block| raw_text(block.text)).collect();
        Some(texts.join("\n"))
    })
}

/// The output of a command.
fn command_output(details: &ResultDetails<'_>) -> Option<String> {
    let parts = [raw_text(details.stdout), raw_text(details.stderr)];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The exit status of a command, if it is in the transcript. The output of a failed command begins
/// with it. A successful command does not report one.
fn command_exit_code(
    status: CallStatus,
    details: &ResultDetails<'_>,
    background: bool,
    result: &str,
) -> Option<i64> {
    match status {
        CallStatus::Error => {
            let digits = result.strip_prefix(EXIT_CODE_PREFIX)?;
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits.get(..end)?.parse().ok()
        }
        CallStatus::Ok => {
            let ended = details.stdout.is_some() && !background;
            // Some programs exit with 1 to say "nothing found".
            (ended && details.return_code_interpretation.is_none()).then_some(0)
        }
        _ => None,
    }
}

/// The lines of a file that were shown.
fn shown_lines(file: OptionalRaw<'_>) -> Option<ShownLines> {
    let shown: ShownFilePart<'_> = parse_raw(file)?;
    let from: u64 = parse_raw(shown.start_line)?;
    let lines: u64 = parse_raw(shown.num_lines).filter(|lines| *lines > 0)?;
    let to = from.checked_add(lines)?.checked_sub(1)?;
    Some(ShownLines {
        path: raw_text(shown.file_path)?,
        from,
        to,
        of: parse_raw(shown.total_lines),
    })
}
