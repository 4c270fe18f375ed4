//! Tests of frames as text, and of the keys.

use jackline_engine::{
    ControlAction, Decision, SessionId, SessionPhase, SessionSummary, Timestamp,
};
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use serde_json::json;

use super::app::{KeyAction, WatchApp, WatchMessage, WatchView};
use super::frame::{as_text, draw};
use super::keys::PressedKey;
use super::palette::WatchPalette;
use super::status_rows::status_rows;
use super::test_sessions::{call_events, play_events};
use super::watched_session::{PendingQuestion, RecentRecord, SessionStatus, WatchedSession};
use crate::status_label::StatusLabel;

const NOW: i64 = 1_800_000_000_000;

fn ago(ms: i64) -> Timestamp {
    Timestamp::from_ms(NOW - ms)
}

fn id(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn status(name: &str, phase: SessionPhase) -> SessionStatus {
    SessionStatus {
        session: id(name),
        workspace: Some("/project".to_owned()),
        definition: "acme/web (enforce)".to_owned(),
        status: StatusLabel::of_phase(phase),
        paused_why: None,
        questions: Vec::new(),
        in_force: Vec::new(),
        started: ago(600_000),
        deadline: None,
        turn: "3 not finished, blocked once".to_owned(),
        steps: "41 of 500".to_owned(),
        tokens: Some("12300 (11000 in, 1300 out)".to_owned()),
        calls: "40: 35 ok, 3 failed, 2 denied".to_owned(),
        in_flight: Vec::new(),
        rows: Vec::new(),
    }
}

fn seen(name: &str, status: SessionStatus, ms: i64) -> WatchedSession {
    WatchedSession { name: name.to_owned(), modified: Some(ago(ms)), status: Ok(status) }
}

fn ask(seq: u64, call: &str) -> PendingQuestion {
    PendingQuestion {
        seq,
        code: format!("jl-00000{seq}"),
        asked_at: ago(120_000),
        call: call.to_owned(),
        why: "This publishes a package to the public.".to_owned(),
    }
}

fn happened(seq: u64, decision: Decision, what: &str, remarks: &str) -> RecentRecord {
    RecentRecord {
        seq,
        at: ago(60_000 - i64::try_from(seq).unwrap() * 1000),
        event: None,
        description: what.to_owned(),
        decision,
        decision_text: decision.as_str().to_owned(),
        remarks: remarks.to_owned(),
    }
}

/// The summary of a session that uses every guard.
fn worked() -> SessionSummary {
    let definition = "limits: { cost_usd: { max: 0.5, per: turn } }\ncontext: {}\nloops: {}\n\
                      progress: { max_consecutive_failures: 5 }";
    let events = [
        vec![json!({ "event": "usage_reported", "request": "r1", "input": 124_000, "output": 0,
                     "window": 200_000, "cost_micros": 450_000 })],
        call_events("c0", "Write", &json!({ "file_path": "a.rs", "content": "x" }), "ok", "done"),
        vec![json!({ "event": "iteration_ended", "build": "failed" })],
        (1..4)
            .flat_map(|n| {
                let read = json!({ "file_path": "b.rs" });
                call_events(&format!("c{n}"), "Read", &read, "ok", "text")
            })
            .collect(),
    ];
    play_events(definition, &events.concat())
}

/// Three sessions. One of them waits for approval.
fn app() -> WatchApp {
    let mut app =
        WatchApp::new(WatchPalette::new(true), "/project".to_owned(), Timestamp::from_ms(NOW));
    let busy = SessionStatus {
        questions: vec![ask(9, "Bash `npm publish`"), ask(7, "Bash `make deploy`")],
        in_force: vec![("one call is allowed: by dana".to_owned(), Some(ago(-300_000)))],
        in_flight: vec!["Bash".to_owned()],
        rows: status_rows(&worked()),
        ..status("busy", SessionPhase::Running)
    };
    let held = SessionStatus {
        paused_why: Some("by dana: lunch".to_owned()),
        ..status("held", SessionPhase::Paused)
    };
    let broken = Err("the journal is damaged at record 4; see `jackline verify`".to_owned());
    let sessions = vec![
        seen("held", held, 2000),
        seen("busy", busy, 61_000),
        WatchedSession { name: "broken".to_owned(), modified: None, status: broken },
    ];
    app.update_sessions(sessions, 0);
    app.recent = vec![
        happened(11, Decision::Allow, "Bash ls", ""),
        happened(12, Decision::Deny, "Bash rm -rf /", "Never. (rule `no-rm`)"),
    ];
    app
}

fn frame(app: &WatchApp, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame.buffer_mut())).unwrap();
    as_text(terminal.backend().buffer())
}

fn check(app: &WatchApp, (width, height): (u16, u16), expected: &str) {
    let shown = frame(app, width, height);
    assert!(shown.trim_end() == expected.trim_end(), "{width}x{height} is now\n{shown}<<end");
}

#[test]
fn a_frame_of_the_usual_size() {
    check(&app(), (80, 24), include_str!("frames/usual.txt"));
}

#[test]
fn a_narrow_frame_has_the_list_above() {
    check(&app(), (50, 20), include_str!("frames/narrow.txt"));
}

#[test]
fn a_large_frame_shows_everything() {
    check(&app(), (120, 36), include_str!("frames/large.txt"));
}

#[test]
fn a_frame_that_is_too_small_says_so() {
    check(&app(), (39, 24), "too small: 39x24, needs 40x10");
    check(&app(), (80, 9), "too small: 80x9, needs 40x10");
    check(&app(), (12, 2), "too small:\n12x2, needs…");
    check(&app(), (1, 1), "…");
}

const SIZES: [u16; 14] = [0, 1, 2, 3, 9, 10, 11, 12, 39, 40, 41, 71, 72, 130];

/// No size and no view makes drawing fail.
#[test]
fn every_size_can_be_drawn() {
    let mut app = app();
    for view in [
        WatchView::Sessions,
        WatchView::SessionOnly(0),
        WatchView::SessionOnly(999),
        WatchView::Help,
        WatchView::Stop(id("s")),
    ] {
        app.view = view;
        for (width, height) in SIZES.iter().flat_map(|w| SIZES.iter().map(move |h| (*w, *h))) {
            frame(&app, width, height);
        }
    }
}

#[test]
fn a_single_session_shows_everything_and_scrolls() {
    let mut app = app();
    app.press(PressedKey::Enter, 9999);
    check(&app, (80, 16), include_str!("frames/whole.txt"));
    app.press(PressedKey::End, 9999);
    let end = frame(&app, 80, 16);
    assert!(end.contains("#11  ") && !end.contains("status"), "{end}");
    app.press(PressedKey::Char('q'), 9999);
    assert_eq!(app.view, WatchView::Sessions);
}

#[test]
fn a_frame_without_sessions_says_so() {
    let mut app =
        WatchApp::new(WatchPalette::new(true), "/project".to_owned(), Timestamp::from_ms(NOW));
    app.update_sessions(Vec::new(), 0);
    let shown = frame(&app, 80, 10);
    assert!(shown.contains("no session has worked here yet; `jackline watch --all`"), "{shown}");
    for key in ['p', 'r', 's', 'a', 'd', 'j'] {
        assert_eq!(app.press(PressedKey::Char(key), 9999), None);
    }
    assert_eq!(app.press(PressedKey::Char('q'), 9999), Some(KeyAction::Quit));
}

#[test]
fn a_palette_without_colours_uses_none() {
    let mut app = app();
    app.show_outcome(Err("no".to_owned()));
    for colours in [true, false] {
        app.palette = WatchPalette::new(colours);
        let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
        terminal.draw(|frame| draw(&app, frame.buffer_mut())).unwrap();
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), colours);
        assert!(cells.iter().all(|cell| cell.bg == Color::Reset));
    }
}

#[test]
fn text_of_an_agent_cannot_control_the_terminal() {
    let hostile = "\u{1b}]0;mine\u{7}\u{1b}[2J\u{9b}31m\r\n\u{202e}x";
    let mut app = app();
    let session = SessionStatus {
        workspace: Some(hostile.to_owned()),
        paused_why: Some(hostile.to_owned()),
        ..status("s", SessionPhase::Paused)
    };
    app.update_sessions(vec![seen(hostile, session, 0)], 0);
    app.show_outcome(Err(hostile.to_owned()));
    app.recent = vec![happened(1, Decision::Deny, hostile, hostile)];
    for view in [WatchView::Sessions, WatchView::SessionOnly(0)] {
        app.view = view;
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        terminal.draw(|frame| draw(&app, frame.buffer_mut())).unwrap();
        for cell in terminal.backend().buffer().content() {
            let acts = |c: char| c.is_control() || c == '\u{202e}' || c == '\u{9b}';
            assert!(!cell.symbol().contains(acts), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn an_agent_sees_no_approval_codes() {
    let mut app = app();
    app.for_person = false;
    let shown = frame(&app, 80, 24);
    assert!(shown.contains("jl-… Bash `npm publish`") && !shown.contains("jl-0"), "{shown}");
}

#[test]
fn a_waiting_session_is_chosen_first_and_stays_chosen() {
    let mut app = app();
    assert_eq!(app.chosen().unwrap().name, "busy");
    let mut again = app.sessions.clone();
    again.reverse();
    again.push(seen("new", status("new", SessionPhase::New), 0));
    app.update_sessions(again, 1000);
    assert_eq!(app.chosen().unwrap().name, "busy");
    app.press(PressedKey::Down, 1000);
    assert_eq!(app.chosen().unwrap().name, "held");
    app.press(PressedKey::Char('g'), 1000);
    assert_eq!(app.chosen().unwrap().name, "broken");
    app.press(PressedKey::Up, 1000);
    assert_eq!(app.chosen().unwrap().name, "broken");
    app.press(PressedKey::Char('G'), 1000);
    assert_eq!(app.chosen().unwrap().name, "new");
    app.press(PressedKey::Char('j'), 1000);
    assert_eq!(app.chosen().unwrap().name, "new");
}

#[test]
fn keys_control_the_chosen_session() {
    let mut app = app();
    let control = |action| Some(KeyAction::Control(id("busy"), action));
    assert_eq!(app.press(PressedKey::Char('p'), 9999), control(ControlAction::Pause));
    assert_eq!(app.press(PressedKey::Char('r'), 9999), control(ControlAction::Resume));
    assert_eq!(app.press(PressedKey::Char('s'), 9999), None);
    assert!(frame(&app, 80, 24).contains("stop session `busy` permanently? y stops it"));
    assert_eq!(app.press(PressedKey::Char('n'), 9999), None);
    assert_eq!(app.note, Some(WatchMessage::Failed("nothing was stopped".to_owned())));
    app.press(PressedKey::Char('s'), 9999);
    assert_eq!(app.press(PressedKey::Char('y'), 9999), control(ControlAction::Stop));
    assert_eq!(app.press(PressedKey::Char('y'), 9999), None, "y without a question");
    assert_eq!(app.press(PressedKey::Interrupt, 9999), Some(KeyAction::Quit));
    assert_eq!(app.press(PressedKey::Suspend, 9999), Some(KeyAction::Suspend));
    app.press(PressedKey::Char('G'), 9999);
    assert_eq!(app.press(PressedKey::Char('p'), 9999), None);
    assert!(frame(&app, 80, 24).contains("the state of this session can't be read"));
}

#[test]
fn the_chosen_question_is_answered() {
    let mut app = app();
    let answer = |action, seq, call: &str| {
        Some(KeyAction::Answer(id("busy"), action, seq, format!("Bash `{call}`")))
    };
    assert_eq!(
        app.press(PressedKey::Char('a'), 9999),
        answer(ControlAction::Grant, 9, "npm publish")
    );
    app.press(PressedKey::Tab, 9999);
    assert_eq!(
        app.press(PressedKey::Char('d'), 9999),
        answer(ControlAction::Refuse, 7, "make deploy")
    );
    app.press(PressedKey::Tab, 9999);
    assert_eq!(
        app.press(PressedKey::Char('d'), 9999),
        answer(ControlAction::Refuse, 9, "npm publish")
    );
    app.press(PressedKey::Up, 9999);
    assert_eq!(app.press(PressedKey::Char('a'), 9999), None);
    assert_eq!(
        app.note,
        Some(WatchMessage::Failed("nothing waits for you in this session".to_owned()))
    );
}

/// The chosen question was answered elsewhere, and another question has replaced it.
#[test]
fn a_new_question_is_not_answered_by_mistake() {
    let mut app = app();
    app.press(PressedKey::Tab, 5000);
    let mut sessions = app.sessions.clone();
    if let Ok(status) = &mut sessions[1].status {
        status.questions.retain(|ask| ask.seq != 7);
    }
    app.update_sessions(sessions, 6000);
    assert_eq!(app.press(PressedKey::Char('a'), 6100), None);
    assert!(frame(&app, 80, 24).contains("this question is new"));
    assert!(matches!(
        app.press(PressedKey::Char('a'), 6500),
        Some(KeyAction::Answer(_, ControlAction::Grant, 9, _))
    ));
}

#[test]
fn help_names_every_key() {
    let mut app = app();
    app.press(PressedKey::Char('?'), 0);
    let shown = frame(&app, 60, 20);
    for word in ["pause", "resume", "stop", "allow", "refuse", "quit", "Tab", "Enter"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    app.press(PressedKey::Char('p'), 0);
    assert_eq!(app.view, WatchView::Sessions, "a key in the help only closes it");
}
