//! The lines that show the chosen session.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::app::WatchApp;
use super::palette::WatchPalette;
use super::status_rows::RowTone;
use super::text::{age, clean, fit, padded, row, wrap};
use super::watched_session::{PendingQuestion, RecentRecord, SessionStatus, WatchedSession};
use crate::terminal::format_age_at;

/// How many lines a value may take next to the list.
const WRAPPED_LINES_MAX: usize = 2;

/// How many lines a value may take in the full frame.
const WRAPPED_LINES_FULL_MAX: usize = 12;

/// How many recent records are shown next to the list at most.
const RECENT_ROWS_MAX: usize = 10;

/// How many recent records always have space.
const RECENT_ROWS_MIN: usize = 4;

/// The space for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailSpace {
    /// This number of lines next to the list.
    Beside(usize),
    /// The full frame, which can be scrolled.
    FullFrame,
}

/// The lines of a session.
pub(super) fn detail_lines(
    app: &WatchApp,
    seen: &WatchedSession,
    width: usize,
    room: DetailSpace,
) -> Vec<Line<'static>> {
    let wrapped =
        if room == DetailSpace::FullFrame { WRAPPED_LINES_FULL_MAX } else { WRAPPED_LINES_MAX };
    let mut lines = DetailLines { width, wrapped, all: Vec::new() };
    match &seen.status {
        Err(problem) => {
            let style = app.palette.bad();
            for text in wrap(&clean(problem), width, WRAPPED_LINES_FULL_MAX) {
                lines.all.push(Line::styled(text, style));
            }
        }
        Ok(standing) => status_lines(app, seen, standing, &mut lines),
    }
    let mut lines = lines.all;
    let left = match room {
        DetailSpace::Beside(height) => {
            // Some recent records are always shown, so other lines may be cut.
            lines.truncate(height.saturating_sub(app.recent.len().min(RECENT_ROWS_MIN) + 1));
            height.saturating_sub(lines.len() + 1).min(RECENT_ROWS_MAX)
        }
        DetailSpace::FullFrame => app.recent.len(),
    };
    if left > 0 && !app.recent.is_empty() {
        lines.push(Line::styled("recent", WatchPalette::dim()));
        let latest = app.recent.iter().rev().take(left);
        lines.extend(latest.map(|happened| record_line(app, happened, width)));
    }
    lines
}

struct DetailLines {
    width: usize,
    wrapped: usize,
    all: Vec<Line<'static>>,
}

impl DetailLines {
    fn add(&mut self, name: &str, value: &str, style: Style) {
        let name = (name, WatchPalette::dim());
        self.all.extend(row(name, (value, style), self.width, self.wrapped));
    }

    fn plain(&mut self, name: &str, value: &str) {
        self.add(name, value, Style::new());
    }
}

fn status_lines(
    app: &WatchApp,
    seen: &WatchedSession,
    standing: &SessionStatus,
    lines: &mut DetailLines,
) {
    let palette = app.palette;
    lines.all.push(Line::styled(fit(&clean(&seen.name), lines.width), WatchPalette::bold()));
    let style = palette.status(standing.status.tone);
    lines.add("status", &standing.status.to_string(), style);
    if let Some(why) = &standing.paused_why {
        lines.add("", why, style);
    }
    if let Some(off) = &app.off {
        lines.add("guard off", off, palette.bad());
    }
    for ask in &standing.questions {
        question_lines(app, ask, lines);
    }
    for part in &standing.rows {
        let style = match part.tone {
            RowTone::Plain => Style::new(),
            RowTone::Good => palette.good(),
            RowTone::Warning => palette.warning(),
            RowTone::Bad => palette.bad(),
        };
        lines.add(part.name, &part.text, style);
    }
    lines.plain("turn", &standing.turn);
    lines.plain("steps", &standing.steps);
    if let Some(tokens) = &standing.tokens {
        lines.plain("tokens", tokens);
    }
    lines.plain("calls", &standing.calls);
    for (what, until) in &standing.in_force {
        if until.is_none_or(|until| app.now < until) {
            let ends = until
                .map_or_else(String::new, |at| format!(", ends {}", format_age_at(at, app.now)));
            lines.plain("in force", &format!("{what}{ends}"));
        }
    }
    if !standing.in_flight.is_empty() {
        lines.plain("in flight", &standing.in_flight.join(", "));
    }
    if let Some(deadline) = standing.deadline {
        lines.plain("deadline", &format_age_at(deadline, app.now));
    }
    lines.plain("started", &format_age_at(standing.started, app.now));
    lines.plain("definition", &standing.definition);
    if let Some(workspace) = &standing.workspace {
        lines.plain("workspace", &clean(workspace));
    }
}

fn question_lines(app: &WatchApp, ask: &PendingQuestion, lines: &mut DetailLines) {
    let chosen = app.chosen_question().is_some_and(|chosen| chosen.seq == ask.seq);
    let name = if chosen { "waits ▸" } else { "waits" };
    // An agent may see the waiting calls, but must not get the codes to answer them.
    let code = if app.for_person { ask.code.as_str() } else { "jl-…" };
    let when = format_age_at(ask.asked_at, app.now);
    let style = app.palette.warning();
    lines.add(name, &format!("{code} {} ({when})", ask.call), style);
    lines.plain("", &ask.why);
}

/// A record on one line: number, age, decision, description.
fn record_line(app: &WatchApp, happened: &RecentRecord, width: usize) -> Line<'static> {
    let age = age(happened.at, app.now);
    let texts = [happened.event.unwrap_or_default(), &happened.description, &happened.remarks];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let head = format!("#{:<4} {:>6} ", happened.seq, age);
    let decided = padded(&happened.decision_text, 8);
    let room = width.saturating_sub(head.chars().count() + 9);
    Line::from(vec![
        Span::styled(head, WatchPalette::dim()),
        Span::styled(decided, app.palette.decision(happened.decision)),
        Span::raw(format!(" {}", fit(&texts.join("  "), room))),
    ])
}
