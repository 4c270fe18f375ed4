//! What is shown of attempts: to people in words, to programs as it is told.

use anstyle::AnsiColor;
use jackline_attempt::Violation;
use jackline_task::{Report, Told, What};

use crate::terminal::{bold, dim, note, plain, say, say_json, styled, warn};

/// How much of a message is shown.
const MESSAGE_CHARS_MAX: usize = 400;

/// How many files are named.
const FILES_MAX: usize = 5;

/// Shows what is told.
pub(super) struct Shown {
    as_json: bool,
}

impl Shown {
    pub(super) fn new(as_json: bool) -> Self {
        Self { as_json }
    }

    pub(super) fn tell(&mut self, told: &Told) {
        if self.as_json {
            if let Ok(line) = serde_json::to_string(told) {
                say_json(line);
            }
            return;
        }
        let margin = "  ".repeat(told.depth as usize);
        for line in lines(told) {
            say(format!("{margin}{line}"));
        }
    }
}

/// What is said about a step of an attempt.
pub(in crate::commands) fn lines(told: &Told) -> Vec<String> {
    match &told.what {
        What::Started { .. } => {
            let of = if told.depth == 0 { String::new() } else { format!(" of {}", told.name) };
            vec![bold(format!("attempt {}{of}", told.attempt))]
        }
        What::Generated { lines } => {
            let s = if *lines == 1 { "" } else { "s" };
            vec![format!("  the model wrote {lines} line{s}")]
        }
        What::NotGenerated { error_type, message } => {
            vec![wrong(&format!("nothing usable: {error_type}: {message}"))]
        }
        What::Objected { violations } => violations.iter().flat_map(objection).collect(),
        What::Failed { error_type, message } => {
            vec![wrong(&format!("failed: {error_type}: {message}"))]
        }
        What::Answered { error_type, message, retriable } => {
            let again = if *retriable { "" } else { ", for good" };
            vec![wrong(&format!("its outcome{again}: {error_type}: {message}"))]
        }
        What::RolledBack { restored, kept, not_undoable } => {
            let mut lines =
                vec![format!("  rolled back: {}", files(restored, "nothing was written"))];
            if !kept.is_empty() {
                let kept = files(kept, "");
                lines.push(format!("  left alone, since somebody else has changed it: {kept}"));
            }
            let named = not_undoable.iter();
            lines.extend(named.map(|it| wrong(&format!("not undone: {it}"))));
            lines
        }
        What::NotRolledBack { reason } => vec![wrong(&format!("not rolled back: {reason}"))],
        What::Committed { files: written, tools } => {
            let mut lines = vec![format!("  committed: {}", files(written, "nothing was written"))];
            if !tools.is_empty() {
                lines.push(format!("  tools kept: {}", files(tools, "")));
            }
            lines
        }
        What::Aside { text } => {
            warn(plain(text, 2000));
            Vec::new()
        }
    }
}

/// An objection: where, what, and what passes instead.
fn objection(violation: &Violation) -> Vec<String> {
    let at = violation.location.map_or_else(String::new, |at| format!(" at {at}"));
    let subtype = &violation.subtype;
    vec![
        wrong(&format!("{subtype}{at}: {}", violation.message)),
        dim(format!("      -> {}", plain(&violation.correction, MESSAGE_CHARS_MAX))),
    ]
}

fn wrong(text: &str) -> String {
    let mark = styled(AnsiColor::Red.on_default(), "✗");
    format!("  {mark} {}", plain(text, MESSAGE_CHARS_MAX))
}

fn files(names: &[String], none: &str) -> String {
    if names.is_empty() {
        return none.to_owned();
    }
    let mut shown: Vec<String> =
        names.iter().take(FILES_MAX).map(|name| plain(name, 100)).collect();
    if names.len() > FILES_MAX {
        shown.push(format!("and {} more", names.len() - FILES_MAX));
    }
    shown.join(", ")
}

/// The public outcome, and where everything else is.
pub(super) fn outcome(report: &Report) {
    let public = &report.public;
    match (&public.value, &public.error_message) {
        (Some(value), _) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(|line| plain(line, 2000)).collect();
            say(format!("{}\n{}", styled(AnsiColor::Green.on_default(), "ok"), lines.join("\n")));
        }
        (None, message) => {
            let error_type = public.error_type.as_deref().unwrap_or_default();
            let message = message.as_deref().unwrap_or_default();
            let text = plain(&format!("{error_type}: {message}"), 2000);
            say(format!("{} {text}", styled(AnsiColor::Red.on_default().bold(), "not done:")));
        }
    }
    let trace = report.trace_file.display().to_string();
    note(dim(format!("session {}, trace in {}", report.session, plain(&trace, 400))));
}
