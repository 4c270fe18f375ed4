//! The chosen session, line by line.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::app::App;
use super::palette::Palette;
use super::parts::Tone;
use super::seen::{Ask, Happened, Seen, Standing};
use super::text::{age, clean, fit, padded, row, wrap};
use crate::terminal::ago_at;

/// How many lines a value may take beside the list.
const WRAPPED_MAX: usize = 2;

/// The same where there is a whole frame.
const WRAPPED_WHOLE_MAX: usize = 12;

/// How many of the last verdicts are shown beside the list, and for how many
/// there is always room.
const LATELY_MAX: usize = 10;
const LATELY_MIN: usize = 4;

/// How much room a session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// So many lines beside the list.
    Beside(usize),
    /// As many as it takes.
    Whole,
}

/// The lines of a session.
pub(super) fn lines(app: &App, seen: &Seen, width: usize, room: Room) -> Vec<Line<'static>> {
    let wrapped = if room == Room::Whole { WRAPPED_WHOLE_MAX } else { WRAPPED_MAX };
    let mut lines = Lines { width, wrapped, all: Vec::new() };
    match &seen.standing {
        Err(problem) => {
            let style = app.palette.bad();
            for text in wrap(&clean(problem), width, WRAPPED_WHOLE_MAX) {
                lines.all.push(Line::styled(text, style));
            }
        }
        Ok(standing) => standing_lines(app, seen, standing, &mut lines),
    }
    let mut lines = lines.all;
    let left = match room {
        Room::Beside(height) => {
            // The last verdicts have their place, whatever else there is to say.
            lines.truncate(height.saturating_sub(app.lately.len().min(LATELY_MIN) + 1));
            height.saturating_sub(lines.len() + 1).min(LATELY_MAX)
        }
        Room::Whole => app.lately.len(),
    };
    if left > 0 && !app.lately.is_empty() {
        lines.push(Line::styled("lately", Palette::dim()));
        let latest = app.lately.iter().rev().take(left);
        lines.extend(latest.map(|happened| verdict(app, happened, width)));
    }
    lines
}

struct Lines {
    width: usize,
    wrapped: usize,
    all: Vec<Line<'static>>,
}

impl Lines {
    fn add(&mut self, name: &str, value: &str, style: Style) {
        let name = (name, Palette::dim());
        self.all.extend(row(name, (value, style), self.width, self.wrapped));
    }

    fn plain(&mut self, name: &str, value: &str) {
        self.add(name, value, Style::new());
    }
}

fn standing_lines(app: &App, seen: &Seen, standing: &Standing, lines: &mut Lines) {
    let palette = app.palette;
    lines.all.push(Line::styled(fit(&clean(&seen.name), lines.width), Palette::bold()));
    let phase = palette.phase(standing.phase, standing.achieved);
    lines.add("phase", standing.phase.word(), phase);
    if let Some(why) = &standing.why {
        lines.add("", why, phase);
    }
    if let Some(off) = &app.off {
        lines.add("guard off", off, palette.bad());
    }
    for ask in &standing.asks {
        ask_lines(app, ask, lines);
    }
    for part in &standing.parts {
        let style = match part.tone {
            Tone::Plain => Style::new(),
            Tone::Good => palette.good(),
            Tone::Warning => palette.warning(),
            Tone::Bad => palette.bad(),
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
            let ends =
                until.map_or_else(String::new, |at| format!(", ends {}", ago_at(at, app.now)));
            lines.plain("in force", &format!("{what}{ends}"));
        }
    }
    if !standing.in_flight.is_empty() {
        lines.plain("in flight", &standing.in_flight.join(", "));
    }
    if let Some(deadline) = standing.deadline {
        lines.plain("deadline", &ago_at(deadline, app.now));
    }
    lines.plain("started", &ago_at(standing.started, app.now));
    lines.plain("definition", &standing.definition);
    if let Some(workspace) = &standing.workspace {
        lines.plain("workspace", &clean(workspace));
    }
}

fn ask_lines(app: &App, ask: &Ask, lines: &mut Lines) {
    let chosen = app.chosen_ask().is_some_and(|chosen| chosen.seq == ask.seq);
    let name = if chosen { "waits ▸" } else { "waits" };
    // An agent may know what waits, and can't be the one who answers.
    let code = if app.for_person { ask.code.as_str() } else { "jl-…" };
    let when = ago_at(ask.asked_at, app.now);
    let style = app.palette.warning();
    lines.add(name, &format!("{code} {} ({when})", ask.call), style);
    lines.plain("", &ask.why);
}

/// A record on one line: number, age, decision, what it was about.
fn verdict(app: &App, happened: &Happened, width: usize) -> Line<'static> {
    let age = age(happened.at, app.now);
    let said = [happened.event.unwrap_or_default(), &happened.what, &happened.remarks];
    let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let head = format!("#{:<4} {:>6} ", happened.seq, age);
    let decided = padded(&happened.decided, 8);
    let room = width.saturating_sub(head.chars().count() + 9);
    Line::from(vec![
        Span::styled(head, Palette::dim()),
        Span::styled(decided, app.palette.decision(happened.decision)),
        Span::raw(format!(" {}", fit(&said.join("  "), room))),
    ])
}
