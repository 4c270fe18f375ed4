//! What a person sees and may press: pure, so that it can be tested without a
//! terminal.

use jackline_engine::{Action, SessionId, Timestamp};

use super::keys::Key;
use super::palette::Palette;
use super::seen::{Ask, Happened, Seen};
use super::text::clean;

/// How long a question has been chosen by itself before it can be answered.
/// Who meant another one that vanished a moment ago does not answer this one.
const SETTLED_MS: u64 = 500;

/// How far the page keys go.
const PAGE: usize = 10;

/// Everything that is shown.
pub(super) struct App {
    pub(super) palette: Palette,
    /// The workspace, or that it is all of them.
    pub(super) place: String,
    /// Whether an agent started this; codes are not for it.
    pub(super) for_person: bool,
    pub(super) now: Timestamp,
    pub(super) sessions: Vec<Seen>,
    /// What happened lately in the chosen one.
    pub(super) lately: Vec<Happened>,
    /// That the guard is off where the chosen one works.
    pub(super) off: Option<String>,
    pub(super) view: View,
    pub(super) note: Option<Note>,
    chosen: Option<String>,
    ask: Option<Chosen>,
}

/// What fills the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    Sessions,
    /// The same on paper: there are no keys to press.
    Printed,
    /// The chosen session alone, so many lines further down.
    Whole(usize),
    Help,
    /// Whether this session is to be stopped.
    Stop(SessionId),
}

/// The last word about something that was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    Done(String),
    Not(String),
}

/// A question that keys are about.
struct Chosen {
    seq: u64,
    /// When that came about by itself; none if a person chose it.
    since_ms: Option<u64>,
}

/// What has to be done because of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    Suspend,
    Control(SessionId, Action),
    /// An answer to a question, and the call that it is about.
    Answer(SessionId, Action, u64, String),
}

impl App {
    pub(super) fn new(palette: Palette, place: String, now: Timestamp) -> Self {
        Self {
            palette,
            place,
            for_person: true,
            now,
            sessions: Vec::new(),
            lately: Vec::new(),
            off: None,
            view: View::Sessions,
            note: None,
            chosen: None,
            ask: None,
        }
    }

    /// The chosen session.
    pub(super) fn chosen(&self) -> Option<&Seen> {
        let chosen = self.chosen.as_ref()?;
        self.sessions.iter().find(|seen| seen.name == *chosen)
    }

    /// The chosen question of the chosen session.
    pub(super) fn chosen_ask(&self) -> Option<&Ask> {
        let chosen = self.ask.as_ref()?;
        self.chosen()?.asks().iter().find(|ask| ask.seq == chosen.seq)
    }

    /// Takes what was looked at. What was chosen stays chosen while it is there.
    pub(super) fn take(&mut self, sessions: Vec<Seen>, now_ms: u64) {
        self.sessions = sessions;
        if self.chosen().is_none() {
            let waits = self.sessions.iter().find(|seen| !seen.asks().is_empty());
            self.chosen = waits.or(self.sessions.first()).map(|seen| seen.name.clone());
        }
        self.settle_ask(Some(now_ms));
    }

    /// Chooses the latest question where none is chosen that still waits.
    fn settle_ask(&mut self, since_ms: Option<u64>) {
        if self.chosen_ask().is_none() {
            let latest = self.chosen().and_then(|seen| seen.asks().first());
            self.ask = latest.map(|ask| Chosen { seq: ask.seq, since_ms });
        }
    }

    /// What a key does, and what is left to do for others.
    pub(super) fn press(&mut self, key: Key, now_ms: u64) -> Option<Wish> {
        self.note = None;
        match (key, &self.view) {
            (Key::Interrupt, _) | (Key::Char('q'), View::Sessions) => return Some(Wish::Quit),
            (Key::Suspend, _) => return Some(Wish::Suspend),
            (Key::Char('y' | 'Y'), View::Stop(session)) => {
                let wish = Wish::Control(session.clone(), Action::Stop);
                self.view = View::Sessions;
                return Some(wish);
            }
            (_, View::Stop(_)) => {
                self.view = View::Sessions;
                self.note = Some(Note::Not("nothing was stopped".to_owned()));
            }
            (_, View::Help) => self.view = View::Sessions,
            (Key::Char('q') | Key::Escape | Key::Enter, View::Whole(_)) => {
                self.view = View::Sessions;
            }
            (Key::Char('?'), _) => self.view = View::Help,
            (Key::Enter, View::Sessions) if self.chosen().is_some() => self.view = View::Whole(0),
            (Key::Tab, _) => self.next_ask(),
            (Key::Char(letter @ ('p' | 'r' | 's' | 'a' | 'd')), _) => {
                return self.steer(letter, now_ms);
            }
            (_, View::Whole(line)) => self.view = View::Whole(moved(key, *line, usize::MAX)),
            (_, View::Sessions | View::Printed) => self.choose(key),
        }
        None
    }

    fn choose(&mut self, key: Key) {
        let at = self
            .chosen
            .as_ref()
            .and_then(|chosen| self.sessions.iter().position(|seen| seen.name == *chosen));
        let to = moved(key, at.unwrap_or(0), self.sessions.len());
        if let Some(seen) = self.sessions.get(to) {
            self.chosen = Some(seen.name.clone());
            self.settle_ask(None);
        }
    }

    fn next_ask(&mut self) {
        let asks = self.chosen().map_or(&[][..], Seen::asks);
        let chosen = self.ask.as_ref().map(|chosen| chosen.seq);
        let at = asks.iter().position(|ask| Some(ask.seq) == chosen);
        let next = at.and_then(|at| asks.get(at + 1)).or(asks.first());
        self.ask = next.map(|ask| Chosen { seq: ask.seq, since_ms: None });
    }

    /// Keys that steer the chosen session, or answer the chosen question.
    fn steer(&mut self, letter: char, now_ms: u64) -> Option<Wish> {
        let session = match self.chosen().map(|seen| &seen.standing) {
            None => {
                self.note = Some(Note::Not("there is no session to steer".to_owned()));
                return None;
            }
            Some(Err(_)) => {
                let text = "nobody can say where this session stands, so it can't be steered";
                self.note = Some(Note::Not(text.to_owned()));
                return None;
            }
            Some(Ok(standing)) => standing.session.clone(),
        };
        let action = match letter {
            'p' => return Some(Wish::Control(session, Action::Pause)),
            'r' => return Some(Wish::Control(session, Action::Resume)),
            's' => {
                self.view = View::Stop(session);
                return None;
            }
            'a' => Action::Grant,
            _ => Action::Refuse,
        };
        let Some(ask) = self.chosen_ask() else {
            self.note = Some(Note::Not("nothing waits for you in this session".to_owned()));
            return None;
        };
        let (seq, call) = (ask.seq, ask.call.clone());
        let since = self.ask.as_ref().and_then(|chosen| chosen.since_ms);
        if since.is_some_and(|since| now_ms.saturating_sub(since) < SETTLED_MS) {
            let text = "this question came a moment ago; look at it, and press again";
            self.note = Some(Note::Not(text.to_owned()));
            return None;
        }
        Some(Wish::Answer(session, action, seq, call))
    }

    /// Says what came of a wish.
    pub(super) fn tell(&mut self, outcome: Result<String, String>) {
        self.note = Some(match outcome {
            Ok(done) => Note::Done(clean(&done)),
            Err(problem) => Note::Not(clean(&problem)),
        });
    }
}

/// Where a key leads in a list.
fn moved(key: Key, at: usize, length: usize) -> usize {
    let last = length.saturating_sub(1);
    match key {
        Key::Up | Key::Char('k') => at.saturating_sub(1),
        Key::Down | Key::Char('j') => at.saturating_add(1).min(last),
        Key::PageUp => at.saturating_sub(PAGE),
        Key::PageDown => at.saturating_add(PAGE).min(last),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => at,
    }
}
