//! The display of attempts: lines for people, or the events as JSON.

use anstyle::AnsiColor;
use jackline_attempt::{AttemptViolation, not_started_outcome};
use jackline_task::{AttemptEvent, AttemptEventKind, TaskReport};
use serde_json::json;

use super::{AttemptOutput, AttemptRefusal, broken_text};

use crate::terminal::{
    bold, dim, print_json_line, print_line, print_note, print_warning, sanitize, styled,
};

/// The maximum length of a shown message.
const MESSAGE_CHARS_MAX: usize = 400;

/// How many files are named.
const FILES_MAX: usize = 5;

/// Shows the events of attempts.
pub(super) struct AttemptDisplay {
    output: AttemptOutput,
}

impl AttemptDisplay {
    pub(super) fn new(output: AttemptOutput) -> Self {
        Self { output }
    }

    pub(super) fn show(&mut self, event: &AttemptEvent) {
        match self.output {
            AttemptOutput::Text => {
                let indent = "  ".repeat(event.depth as usize);
                for line in attempt_lines(event) {
                    print_line(format!("{indent}{line}"));
                }
            }
            AttemptOutput::Json => {
                if let Ok(line) = serde_json::to_string(event) {
                    print_json_line(line);
                }
            }
            // Violations are not for the reader of the public outcome. The trace has them.
            AttemptOutput::PublicOutcome => {}
        }
    }
}

/// The lines for an event of an attempt.
pub(in crate::commands) fn attempt_lines(event: &AttemptEvent) -> Vec<String> {
    match &event.kind {
        AttemptEventKind::Started { .. } => {
            let of = if event.depth == 0 { String::new() } else { format!(" of {}", event.name) };
            vec![bold(format!("attempt {}{of}", event.attempt))]
        }
        AttemptEventKind::Generated { lines } => {
            let s = if *lines == 1 { "" } else { "s" };
            vec![format!("  the model wrote {lines} line{s}")]
        }
        AttemptEventKind::NotGenerated { error_type, message } => {
            vec![failure_line(&format!("no usable program: {error_type}: {message}"))]
        }
        AttemptEventKind::ViolationsRaised { violations } => {
            violations.iter().flat_map(violation_lines).collect()
        }
        AttemptEventKind::Failed { error_type, message } => {
            vec![failure_line(&format!("failed: {error_type}: {message}"))]
        }
        AttemptEventKind::ErrorReturned { error_type, message, retriable } => {
            let retry = if *retriable { "" } else { ", not retried" };
            vec![failure_line(&format!(
                "the program reported an error{retry}: {error_type}: {message}"
            ))]
        }
        AttemptEventKind::RolledBack { restored, kept, not_undoable } => {
            let mut lines =
                vec![format!("  rolled back: {}", files(restored, "nothing was written"))];
            if !kept.is_empty() {
                let kept = files(kept, "");
                lines.push(format!("  left alone, because someone else has changed it: {kept}"));
            }
            let failed = not_undoable.iter();
            lines.extend(failed.map(|it| failure_line(&format!("not undone: {it}"))));
            lines
        }
        AttemptEventKind::NotRolledBack { reason } => {
            vec![failure_line(&format!("not rolled back: {reason}"))]
        }
        AttemptEventKind::Committed { files: written, tools } => {
            let mut lines = vec![format!("  committed: {}", files(written, "nothing was written"))];
            if !tools.is_empty() {
                lines.push(format!("  generated tools saved: {}", files(tools, "")));
            }
            lines
        }
        AttemptEventKind::Notification { text } => {
            print_warning(sanitize(text, 2000));
            Vec::new()
        }
    }
}

/// A violation: its location, the message, and what to do instead.
fn violation_lines(violation: &AttemptViolation) -> Vec<String> {
    let at = violation.location.map_or_else(String::new, |at| format!(" at {at}"));
    let subtype = &violation.subtype;
    vec![
        failure_line(&format!("{subtype}{at}: {}", violation.message)),
        dim(format!("      -> {}", sanitize(&violation.correction, MESSAGE_CHARS_MAX))),
    ]
}

fn failure_line(text: &str) -> String {
    let mark = styled(AnsiColor::Red.on_default(), "✗");
    format!("  {mark} {}", sanitize(text, MESSAGE_CHARS_MAX))
}

fn files(names: &[String], text_if_empty: &str) -> String {
    if names.is_empty() {
        return text_if_empty.to_owned();
    }
    let mut shown: Vec<String> =
        names.iter().take(FILES_MAX).map(|name| sanitize(name, 100)).collect();
    if names.len() > FILES_MAX {
        shown.push(format!("and {} more", names.len() - FILES_MAX));
    }
    shown.join(", ")
}

/// Prints the end of a task.
pub(super) fn print_report(output: AttemptOutput, report: &TaskReport) {
    match output {
        AttemptOutput::Text => print_outcome(report),
        AttemptOutput::Json => {
            let mut ended = json!({
                "event": "ended",
                "session": report.session,
                "stop": report.stop,
                "outcome": report.public,
                "trace": report.trace_file,
            });
            if let (Some((kind, message)), Some(fields)) =
                (broken_text(report), ended.as_object_mut())
            {
                let error = json!({ "kind": kind, "message": message });
                fields.insert("error".to_owned(), error);
            }
            print_json_line(ended);
        }
        AttemptOutput::PublicOutcome => print_json_line(json!(report.public)),
    }
}

/// Prints the last JSON object of a task without a report.
pub(super) fn print_refusal(output: AttemptOutput, refusal: &AttemptRefusal) {
    let outcome = not_started_outcome();
    match output {
        AttemptOutput::Text => {}
        AttemptOutput::Json => print_json_line(json!({
            "event": "ended",
            "session": null,
            "stop": null,
            "error": { "kind": refusal.kind, "message": refusal.text },
            "outcome": outcome,
        })),
        AttemptOutput::PublicOutcome => print_json_line(json!(outcome)),
    }
}

/// Prints the public outcome, and the path of the trace with all details.
fn print_outcome(report: &TaskReport) {
    let public = &report.public;
    match (&public.value, &public.error_message) {
        (Some(value), _) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(|line| sanitize(line, 2000)).collect();
            print_line(format!(
                "{}\n{}",
                styled(AnsiColor::Green.on_default(), "ok"),
                lines.join("\n")
            ));
        }
        (None, message) => {
            let error_type = public.error_type.as_deref().unwrap_or_default();
            let message = message.as_deref().unwrap_or_default();
            let text = sanitize(&format!("{error_type}: {message}"), 2000);
            print_line(format!(
                "{} {text}",
                styled(AnsiColor::Red.on_default().bold(), "not done:")
            ));
        }
    }
    let trace = report.trace_file.display().to_string();
    print_note(dim(format!("session {}, trace in {}", report.session, sanitize(&trace, 400))));
}
