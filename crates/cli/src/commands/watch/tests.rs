//! Frames as text, and what keys do to them.

use jackline_engine::{Action, Decision, SessionId, SessionPhase, Summary, Timestamp};
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use serde_json::json;

use super::app::{App, Note, View, Wish};
use super::frame::{as_text, draw};
use super::keys::Key;
use super::palette::Palette;
use super::parts::parts;
use super::played::{call, played};
use super::seen::{Ask, Happened, Seen, Standing};

const NOW: i64 = 1_800_000_000_000;

fn ago(ms: i64) -> Timestamp {
    Timestamp::from_ms(NOW - ms)
}

fn id(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn standing(name: &str, phase: SessionPhase) -> Standing {
    Standing {
        session: id(name),
        workspace: Some("/project".to_owned()),
        definition: "acme/web (enforce)".to_owned(),
        phase,
        achieved: false,
        why: None,
        asks: Vec::new(),
        in_force: Vec::new(),
        started: ago(600_000),
        deadline: None,
        turn: "3 not finished, blocked once".to_owned(),
        steps: "41 of 500".to_owned(),
        tokens: Some("12300 (11000 in, 1300 out)".to_owned()),
        calls: "40: 35 ok, 3 failed, 2 denied".to_owned(),
        in_flight: Vec::new(),
        parts: Vec::new(),
    }
}

fn seen(name: &str, standing: Standing, ms: i64) -> Seen {
    Seen { name: name.to_owned(), modified: Some(ago(ms)), standing: Ok(standing) }
}

fn ask(seq: u64, call: &str) -> Ask {
    Ask {
        seq,
        code: format!("jl-00000{seq}"),
        asked_at: ago(120_000),
        call: call.to_owned(),
        why: "This publishes a package for everybody.".to_owned(),
    }
}

fn happened(seq: u64, decision: Decision, what: &str, remarks: &str) -> Happened {
    Happened {
        seq,
        at: ago(60_000 - i64::try_from(seq).unwrap() * 1000),
        event: None,
        what: what.to_owned(),
        decision,
        decided: decision.word().to_owned(),
        remarks: remarks.to_owned(),
    }
}

/// A session with something of every guard, as the runtime sums it up.
fn worked() -> Summary {
    let definition = "limits: { cost_usd: { max: 0.5, per: turn } }\ncontext: {}\nloops: {}\n\
                      progress: { max_consecutive_failures: 5 }";
    let events = [
        vec![json!({ "event": "usage_reported", "request": "r1", "input": 124_000, "output": 0,
                     "window": 200_000, "cost_micros": 450_000 })],
        call("c0", "Write", &json!({ "file_path": "a.rs", "content": "x" }), "ok", "done"),
        vec![json!({ "event": "iteration_ended", "build": "failed" })],
        (1..4)
            .flat_map(|n| {
                let read = json!({ "file_path": "b.rs" });
                call(&format!("c{n}"), "Read", &read, "ok", "text")
            })
            .collect(),
    ];
    played(definition, &events.concat())
}

/// Three sessions, of which one waits.
fn app() -> App {
    let mut app = App::new(Palette::new(true), "/project".to_owned(), Timestamp::from_ms(NOW));
    let busy = Standing {
        asks: vec![ask(9, "Bash `npm publish`"), ask(7, "Bash `make deploy`")],
        in_force: vec![("one call may pass: said dana".to_owned(), Some(ago(-300_000)))],
        in_flight: vec!["Bash".to_owned()],
        parts: parts(&worked()),
        ..standing("busy", SessionPhase::Running)
    };
    let held = Standing {
        why: Some("by dana: lunch".to_owned()),
        ..standing("held", SessionPhase::Paused)
    };
    let broken = Err("the journal is damaged at record 4; `jackline verify` says more".to_owned());
    let sessions = vec![
        seen("held", held, 2000),
        seen("busy", busy, 61_000),
        Seen { name: "broken".to_owned(), modified: None, standing: broken },
    ];
    app.take(sessions, 0);
    app.lately = vec![
        happened(11, Decision::Allow, "Bash ls", ""),
        happened(12, Decision::Deny, "Bash rm -rf /", "Never. (rule `no-rm`)"),
    ];
    app
}

fn frame(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame.buffer_mut())).unwrap();
    as_text(terminal.backend().buffer())
}

fn check(app: &App, (width, height): (u16, u16), expected: &str) {
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
fn a_large_frame_has_room() {
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

/// Whatever the size and the view, drawing ends well.
#[test]
fn every_size_can_be_drawn() {
    let mut app = app();
    for view in [View::Sessions, View::Whole(0), View::Whole(999), View::Help, View::Stop(id("s"))]
    {
        app.view = view;
        for (width, height) in SIZES.iter().flat_map(|w| SIZES.iter().map(move |h| (*w, *h))) {
            frame(&app, width, height);
        }
    }
}

#[test]
fn a_session_alone_shows_all_and_scrolls() {
    let mut app = app();
    app.press(Key::Enter, 9999);
    check(&app, (80, 16), include_str!("frames/whole.txt"));
    app.press(Key::End, 9999);
    let end = frame(&app, 80, 16);
    assert!(end.contains("#11  ") && !end.contains("phase"), "{end}");
    app.press(Key::Char('q'), 9999);
    assert_eq!(app.view, View::Sessions);
}

#[test]
fn nobody_is_here_yet() {
    let mut app = App::new(Palette::new(true), "/project".to_owned(), Timestamp::from_ms(NOW));
    app.take(Vec::new(), 0);
    let shown = frame(&app, 80, 10);
    assert!(shown.contains("no session has worked here yet; `jackline watch --all`"), "{shown}");
    for key in ['p', 'r', 's', 'a', 'd', 'j'] {
        assert_eq!(app.press(Key::Char(key), 9999), None);
    }
    assert_eq!(app.press(Key::Char('q'), 9999), Some(Wish::Quit));
}

#[test]
fn without_colours_there_are_none() {
    let mut app = app();
    app.tell(Err("no".to_owned()));
    for colours in [true, false] {
        app.palette = Palette::new(colours);
        let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
        terminal.draw(|frame| draw(&app, frame.buffer_mut())).unwrap();
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), colours);
        assert!(cells.iter().all(|cell| cell.bg == Color::Reset));
    }
}

#[test]
fn what_an_agent_wrote_cannot_act_on_the_terminal() {
    let hostile = "\u{1b}]0;mine\u{7}\u{1b}[2J\u{9b}31m\r\n\u{202e}x";
    let mut app = app();
    let session = Standing {
        workspace: Some(hostile.to_owned()),
        why: Some(hostile.to_owned()),
        ..standing("s", SessionPhase::Paused)
    };
    app.take(vec![seen(hostile, session, 0)], 0);
    app.tell(Err(hostile.to_owned()));
    app.lately = vec![happened(1, Decision::Deny, hostile, hostile)];
    for view in [View::Sessions, View::Whole(0)] {
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
fn an_agent_is_shown_no_codes() {
    let mut app = app();
    app.for_person = false;
    let shown = frame(&app, 80, 24);
    assert!(shown.contains("jl-… Bash `npm publish`") && !shown.contains("jl-0"), "{shown}");
}

#[test]
fn the_session_that_waits_is_chosen_first_and_stays_chosen() {
    let mut app = app();
    assert_eq!(app.chosen().unwrap().name, "busy");
    let mut again = app.sessions.clone();
    again.reverse();
    again.push(seen("new", standing("new", SessionPhase::New), 0));
    app.take(again, 1000);
    assert_eq!(app.chosen().unwrap().name, "busy");
    app.press(Key::Down, 1000);
    assert_eq!(app.chosen().unwrap().name, "held");
    app.press(Key::Char('g'), 1000);
    assert_eq!(app.chosen().unwrap().name, "broken");
    app.press(Key::Up, 1000);
    assert_eq!(app.chosen().unwrap().name, "broken");
    app.press(Key::Char('G'), 1000);
    assert_eq!(app.chosen().unwrap().name, "new");
    app.press(Key::Char('j'), 1000);
    assert_eq!(app.chosen().unwrap().name, "new");
}

#[test]
fn keys_steer_the_chosen_session() {
    let mut app = app();
    let control = |action| Some(Wish::Control(id("busy"), action));
    assert_eq!(app.press(Key::Char('p'), 9999), control(Action::Pause));
    assert_eq!(app.press(Key::Char('r'), 9999), control(Action::Resume));
    assert_eq!(app.press(Key::Char('s'), 9999), None);
    assert!(frame(&app, 80, 24).contains("stop session `busy` for good? y stops it"));
    assert_eq!(app.press(Key::Char('n'), 9999), None);
    assert_eq!(app.note, Some(Note::Not("nothing was stopped".to_owned())));
    app.press(Key::Char('s'), 9999);
    assert_eq!(app.press(Key::Char('y'), 9999), control(Action::Stop));
    assert_eq!(app.press(Key::Char('y'), 9999), None, "a yes to nothing");
    assert_eq!(app.press(Key::Interrupt, 9999), Some(Wish::Quit));
    assert_eq!(app.press(Key::Suspend, 9999), Some(Wish::Suspend));
    app.press(Key::Char('G'), 9999);
    assert_eq!(app.press(Key::Char('p'), 9999), None);
    assert!(frame(&app, 80, 24).contains("nobody can say where this session stands"));
}

#[test]
fn what_waits_is_answered_as_it_was_chosen() {
    let mut app = app();
    let answer = |action, seq, call: &str| {
        Some(Wish::Answer(id("busy"), action, seq, format!("Bash `{call}`")))
    };
    assert_eq!(app.press(Key::Char('a'), 9999), answer(Action::Grant, 9, "npm publish"));
    app.press(Key::Tab, 9999);
    assert_eq!(app.press(Key::Char('d'), 9999), answer(Action::Refuse, 7, "make deploy"));
    app.press(Key::Tab, 9999);
    assert_eq!(app.press(Key::Char('d'), 9999), answer(Action::Refuse, 9, "npm publish"));
    app.press(Key::Up, 9999);
    assert_eq!(app.press(Key::Char('a'), 9999), None);
    assert_eq!(app.note, Some(Note::Not("nothing waits for you in this session".to_owned())));
}

/// The question under the finger was answered elsewhere, and another one has
/// taken its place.
#[test]
fn a_question_that_came_a_moment_ago_is_not_answered_by_mistake() {
    let mut app = app();
    app.press(Key::Tab, 5000);
    let mut sessions = app.sessions.clone();
    if let Ok(standing) = &mut sessions[1].standing {
        standing.asks.retain(|ask| ask.seq != 7);
    }
    app.take(sessions, 6000);
    assert_eq!(app.press(Key::Char('a'), 6100), None);
    assert!(frame(&app, 80, 24).contains("this question came a moment ago"));
    assert!(matches!(app.press(Key::Char('a'), 6500), Some(Wish::Answer(_, Action::Grant, 9, _))));
}

#[test]
fn help_names_every_key() {
    let mut app = app();
    app.press(Key::Char('?'), 0);
    let shown = frame(&app, 60, 20);
    for word in ["pause", "resume", "stop", "allow", "refuse", "quit", "Tab", "Enter"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    app.press(Key::Char('p'), 0);
    assert_eq!(app.view, View::Sessions, "and no key does anything behind it");
}
