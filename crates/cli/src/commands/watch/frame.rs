//! Draws a frame: the list of sessions, the chosen session, the last message, and the keys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::app::{WatchApp, WatchMessage, WatchView};
use super::detail::{DetailSpace, detail_lines};
use super::palette::WatchPalette;
use super::text::{age, clean, fit, padded, wrap};
use super::watched_session::WatchedSession;

/// The minimum size of a frame.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 10;

/// From this width on, the list is next to the chosen session. Below it, the list is above.
const BESIDE_WIDTH: u16 = 72;

/// The line between the list and the chosen session.
const DIVIDER: &str = "│";

/// How many lines the message about the last action may take.
const NOTE_LINES: usize = 3;

/// The width of the status column of the list: the longest word is `finished`.
const STATUS_CHARS: usize = 8;

const KEYS: [(&str, &str); 8] = [
    ("p", "pause"),
    ("r", "resume"),
    ("s", "stop"),
    ("a", "allow"),
    ("d", "refuse"),
    ("⏎", "log"),
    ("?", "help"),
    ("q", "quit"),
];

const SESSION_ONLY_KEYS: [(&str, &str); 7] = [
    ("↑↓", "scroll"),
    ("p", "pause"),
    ("r", "resume"),
    ("s", "stop"),
    ("a", "allow"),
    ("d", "refuse"),
    ("q", "back"),
];

const HELP: [(&str, &str); 12] = [
    ("↑ ↓ j k", "choose a session"),
    ("Tab", "choose among the calls that wait for you"),
    ("p", "pause: no call runs until a person resumes it"),
    ("r", "resume a session that was paused"),
    ("s", "stop a session permanently; asks first"),
    ("a", "allow the chosen call, exactly this one, once"),
    ("d", "refuse the chosen call in this session"),
    ("Enter", "show only this session, with recent records"),
    ("q Esc", "back"),
    ("q Ctrl-C", "quit; the sessions continue"),
    ("!", "marks a session that waits for you"),
    ("", "only a person may use a and r, not an agent"),
];

/// Draws a frame.
pub(super) fn draw(app: &WatchApp, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text =
            format!("too small: {}x{}, needs {WIDTH_MIN}x{HEIGHT_MIN}", area.width, area.height);
        let text = wrap(&text, usize::from(area.width), usize::from(area.height));
        draw_lines(buffer, area, &text.into_iter().map(Line::from).collect::<Vec<_>>(), 0);
        return;
    }
    let foot = foot(app, usize::from(area.width));
    let foot_height = u16::try_from(foot.len()).unwrap_or(1);
    let (head, rest) = split_top(area, 1);
    let (body, below) = split_top(rest, rest.height.saturating_sub(foot_height));
    draw_lines(buffer, head, &[title(app, usize::from(head.width))], 0);
    draw_lines(buffer, below, &foot, 0);
    match app.view {
        WatchView::Help => help(buffer, body),
        WatchView::SessionOnly(line) => {
            if let Some(seen) = app.chosen() {
                let lines =
                    detail_lines(app, seen, usize::from(body.width), DetailSpace::FullFrame);
                let last = lines.len().saturating_sub(usize::from(body.height));
                draw_lines(buffer, body, &lines, line.min(last));
            }
        }
        WatchView::Sessions | WatchView::Printed | WatchView::Stop(_) => {
            sessions(app, buffer, body);
        }
    }
}

fn title(app: &WatchApp, width: usize) -> Line<'static> {
    let count = app.sessions.len();
    let waiting = app.sessions.iter().filter(|seen| !seen.questions().is_empty()).count();
    let sessions = if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") };
    let waits = match waiting {
        0 => String::new(),
        1 => ", 1 waits for you".to_owned(),
        waiting => format!(", {waiting} wait for you"),
    };
    let tail = format!("{sessions}{waits}");
    let room = width.saturating_sub("jackline  ".len() + tail.chars().count() + 2);
    let place = padded(&app.location, room);
    let style = if waiting > 0 { app.palette.warning() } else { Style::new() };
    Line::from(vec![
        Span::styled("jackline  ", WatchPalette::bold()),
        Span::styled(place, WatchPalette::dim()),
        Span::styled(format!("  {tail}"), style),
    ])
}

fn sessions(app: &WatchApp, buffer: &mut Buffer, body: Rect) {
    if app.sessions.is_empty() {
        let text = "no session has worked here yet; `jackline watch --all` shows those of all \
                    workspaces";
        let text = wrap(text, usize::from(body.width), usize::from(body.height));
        draw_lines(buffer, body, &text.into_iter().map(Line::from).collect::<Vec<_>>(), 0);
        return;
    }
    let beside = body.width >= BESIDE_WIDTH;
    let (listed, detail) = if beside {
        let width = (body.width / 3).min(36);
        let line = Rect { x: body.x + width, width: 1, ..body };
        (line.top()..line.bottom()).for_each(|y| {
            buffer.set_string(line.x, y, DIVIDER, WatchPalette::dim());
        });
        let x = line.x + 2;
        (Rect { width, ..body }, Rect { x, width: body.right().saturating_sub(x), ..body })
    } else {
        let rows = u16::try_from(app.sessions.len()).unwrap_or(u16::MAX).min(body.height / 3);
        let (list, rest) = split_top(body, rows.max(1));
        let (line, rest) = split_top(rest, 1);
        buffer.set_string(line.x, line.y, "─".repeat(usize::from(line.width)), WatchPalette::dim());
        (list, rest)
    };
    list(app, buffer, listed);
    if let Some(seen) = app.chosen() {
        let room = DetailSpace::Beside(usize::from(detail.height));
        let lines = detail_lines(app, seen, usize::from(detail.width), room);
        draw_lines(buffer, detail, &lines, 0);
    }
}

fn list(app: &WatchApp, buffer: &mut Buffer, area: Rect) {
    let chosen = app.chosen().map(|seen| seen.name.as_str());
    let at = app.sessions.iter().position(|seen| Some(seen.name.as_str()) == chosen);
    let height = usize::from(area.height);
    // The chosen session is always visible.
    let first = at.unwrap_or(0).saturating_sub(height.saturating_sub(1));
    let rows: Vec<Line<'static>> = app
        .sessions
        .iter()
        .skip(first)
        .take(height)
        .map(|seen| session_line(app, seen, Some(seen.name.as_str()) == chosen, area.width.into()))
        .collect();
    draw_lines(buffer, area, &rows, 0);
}

fn session_line(
    app: &WatchApp,
    seen: &WatchedSession,
    chosen: bool,
    width: usize,
) -> Line<'static> {
    let waits = !seen.questions().is_empty();
    let (status, style) = match &seen.status {
        Ok(it) => (it.status.word, app.palette.status(it.status.tone)),
        Err(_) => ("error", app.palette.bad()),
    };
    let age = seen.modified.map(|at| age(at, app.now));
    let mark = format!("{}{} ", if chosen { '▸' } else { ' ' }, if waits { '!' } else { ' ' });
    let name = padded(&clean(&seen.name), width.saturating_sub(3 + 1 + STATUS_CHARS + 1 + 7));
    let name_style = if chosen { WatchPalette::chosen() } else { Style::new() };
    Line::from(vec![
        Span::styled(mark, if waits { app.palette.warning() } else { Style::new() }),
        Span::styled(name, name_style),
        Span::styled(format!(" {}", padded(status, STATUS_CHARS)), style),
        Span::styled(format!(" {:>6}", fit(&age.unwrap_or_default(), 6)), WatchPalette::dim()),
    ])
}

/// The message about the last action, and the keys.
fn foot(app: &WatchApp, width: usize) -> Vec<Line<'static>> {
    let mut foot = Vec::new();
    let (text, style) = match (&app.view, &app.note) {
        (WatchView::Stop(session), _) => {
            let session = clean(session.as_str());
            let text =
                format!("stop session `{session}` permanently? y stops it, any other key does not");
            (text, app.palette.warning())
        }
        (_, Some(WatchMessage::Done(text))) => (text.clone(), app.palette.good()),
        (_, Some(WatchMessage::Failed(text))) => (text.clone(), app.palette.bad()),
        (_, None) => (String::new(), Style::new()),
    };
    foot.extend(wrap(&text, width, NOTE_LINES).into_iter().map(|text| Line::styled(text, style)));
    let keys = match app.view {
        WatchView::Printed => return foot,
        WatchView::SessionOnly(_) => &SESSION_ONLY_KEYS[..],
        WatchView::Sessions | WatchView::Help | WatchView::Stop(_) => &KEYS[..],
    };
    let mut line = Line::default();
    for (key, label) in keys {
        let label = format!(" {label}  ");
        if line.width() + key.width() + label.trim_end().width() > width {
            foot.push(std::mem::take(&mut line));
        }
        line.push_span(Span::styled(*key, WatchPalette::bold()));
        line.push_span(Span::styled(label, WatchPalette::dim()));
    }
    foot.push(line);
    foot
}

fn help(buffer: &mut Buffer, area: Rect) {
    let width = usize::from(area.width).saturating_sub(10);
    let lines: Vec<Line<'static>> = HELP
        .iter()
        .map(|(key, text)| {
            let key = Span::styled(padded(key, 10), WatchPalette::bold());
            Line::from(vec![key, Span::raw(fit(text, width))])
        })
        .collect();
    draw_lines(buffer, area, &lines, 0);
}

/// Draws lines into an area, starting at line `from`. Lines that do not fit are not shown.
fn draw_lines(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>], from: usize) {
    for (y, line) in (area.top()..area.bottom()).zip(lines.iter().skip(from)) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Splits an area into its top lines and the rest.
fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

/// A frame as printed text, without its empty rows.
pub(super) fn as_print(buffer: &Buffer) -> String {
    let text = as_text(buffer);
    let has_text = |line: &&str| !matches!(line.trim(), "" | DIVIDER);
    text.lines().filter(has_text).collect::<Vec<_>>().join("\n")
}

/// A frame as text, without spaces at the ends of lines.
pub(super) fn as_text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut covered = 0;
        for x in area.left()..area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            if covered == 0 {
                line.push_str(symbol);
                covered = symbol.width();
            }
            covered = covered.saturating_sub(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
