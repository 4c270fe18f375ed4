//! The state of the display, and what each key does. It does no I/O, so it can be tested without a
//! terminal.

use jackline_engine::{ControlAction, SessionId, Timestamp};

use super::keys::PressedKey;
use super::palette::WatchPalette;
use super::text::clean;
use super::watched_session::{PendingQuestion, RecentRecord, WatchedSession};

/// How long an automatically chosen question is shown before a key can answer it. The user may
/// still mean the previous question, which disappeared a moment ago.
const NEW_QUESTION_MS: u64 = 500;

/// How many lines the page keys move.
const PAGE_LINES: usize = 10;

/// The state of the display.
pub(super) struct WatchApp {
    pub(super) palette: WatchPalette,
    /// The workspace, or "all workspaces".
    pub(super) location: String,
    /// Whether a person uses this display. An agent must not see approval codes.
    pub(super) for_person: bool,
    pub(super) now: Timestamp,
    pub(super) sessions: Vec<WatchedSession>,
    /// The recent records of the chosen session.
    pub(super) recent: Vec<RecentRecord>,
    /// A message, if the guard is off in the workspace of the chosen session.
    pub(super) off: Option<String>,
    pub(super) view: WatchView,
    pub(super) note: Option<WatchMessage>,
    chosen: Option<String>,
    question: Option<ChosenQuestion>,
}

/// What fills the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchView {
    Sessions,
    /// The list of sessions as printed text, without keys.
    Printed,
    /// Only the chosen session, scrolled down by this number of lines.
    SessionOnly(usize),
    Help,
    /// The confirmation to stop this session.
    Stop(SessionId),
}

/// The message about the last action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchMessage {
    Done(String),
    Failed(String),
}

/// The question that the keys answer.
struct ChosenQuestion {
    seq: u64,
    /// When it was chosen automatically; `None` if the user chose it.
    since_ms: Option<u64>,
}

/// What a key asks the caller to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    Quit,
    Suspend,
    Control(SessionId, ControlAction),
    /// An answer to the question of a record, with the text of the call.
    Answer(SessionId, ControlAction, u64, String),
}

impl WatchApp {
    pub(super) fn new(palette: WatchPalette, location: String, now: Timestamp) -> Self {
        Self {
            palette,
            location,
            for_person: true,
            now,
            sessions: Vec::new(),
            recent: Vec::new(),
            off: None,
            view: WatchView::Sessions,
            note: None,
            chosen: None,
            question: None,
        }
    }

    /// The chosen session.
    pub(super) fn chosen(&self) -> Option<&WatchedSession> {
        let chosen = self.chosen.as_ref()?;
        self.sessions.iter().find(|seen| seen.name == *chosen)
    }

    /// The chosen question of the chosen session.
    pub(super) fn chosen_question(&self) -> Option<&PendingQuestion> {
        let chosen = self.question.as_ref()?;
        self.chosen()?.questions().iter().find(|ask| ask.seq == chosen.seq)
    }

    /// Updates the sessions. The chosen session and question stay chosen if they still exist.
    pub(super) fn update_sessions(&mut self, sessions: Vec<WatchedSession>, now_ms: u64) {
        self.sessions = sessions;
        if self.chosen().is_none() {
            let waiting = self.sessions.iter().find(|seen| !seen.questions().is_empty());
            self.chosen = waiting.or(self.sessions.first()).map(|seen| seen.name.clone());
        }
        self.choose_question(Some(now_ms));
    }

    /// Chooses the latest question, unless the chosen one still waits.
    fn choose_question(&mut self, since_ms: Option<u64>) {
        if self.chosen_question().is_none() {
            let latest = self.chosen().and_then(|seen| seen.questions().first());
            self.question = latest.map(|ask| ChosenQuestion { seq: ask.seq, since_ms });
        }
    }

    /// Handles a key. Returns what the caller has to do.
    pub(super) fn press(&mut self, key: PressedKey, now_ms: u64) -> Option<KeyAction> {
        self.note = None;
        match (key, &self.view) {
            (PressedKey::Interrupt, _) | (PressedKey::Char('q'), WatchView::Sessions) => {
                return Some(KeyAction::Quit);
            }
            (PressedKey::Suspend, _) => return Some(KeyAction::Suspend),
            (PressedKey::Char('y' | 'Y'), WatchView::Stop(session)) => {
                let action = KeyAction::Control(session.clone(), ControlAction::Stop);
                self.view = WatchView::Sessions;
                return Some(action);
            }
            (_, WatchView::Stop(_)) => {
                self.view = WatchView::Sessions;
                self.note = Some(WatchMessage::Failed("nothing was stopped".to_owned()));
            }
            (_, WatchView::Help) => self.view = WatchView::Sessions,
            (
                PressedKey::Char('q') | PressedKey::Escape | PressedKey::Enter,
                WatchView::SessionOnly(_),
            ) => {
                self.view = WatchView::Sessions;
            }
            (PressedKey::Char('?'), _) => self.view = WatchView::Help,
            (PressedKey::Enter, WatchView::Sessions) if self.chosen().is_some() => {
                self.view = WatchView::SessionOnly(0);
            }
            (PressedKey::Tab, _) => self.choose_next_question(),
            (PressedKey::Char(letter @ ('p' | 'r' | 's' | 'a' | 'd')), _) => {
                return self.steer(letter, now_ms);
            }
            (_, WatchView::SessionOnly(line)) => {
                self.view = WatchView::SessionOnly(moved(key, *line, usize::MAX));
            }
            (_, WatchView::Sessions | WatchView::Printed) => self.choose(key),
        }
        None
    }

    fn choose(&mut self, key: PressedKey) {
        let at = self
            .chosen
            .as_ref()
            .and_then(|chosen| self.sessions.iter().position(|seen| seen.name == *chosen));
        let to = moved(key, at.unwrap_or(0), self.sessions.len());
        if let Some(seen) = self.sessions.get(to) {
            self.chosen = Some(seen.name.clone());
            self.choose_question(None);
        }
    }

    fn choose_next_question(&mut self) {
        let asks = self.chosen().map_or(&[][..], WatchedSession::questions);
        let chosen = self.question.as_ref().map(|chosen| chosen.seq);
        let at = asks.iter().position(|ask| Some(ask.seq) == chosen);
        let next = at.and_then(|at| asks.get(at + 1)).or(asks.first());
        self.question = next.map(|ask| ChosenQuestion { seq: ask.seq, since_ms: None });
    }

    /// Handles the keys that control the chosen session or answer the chosen question.
    fn steer(&mut self, letter: char, now_ms: u64) -> Option<KeyAction> {
        let session = match self.chosen().map(|seen| &seen.status) {
            None => {
                self.note = Some(WatchMessage::Failed("there is no session to control".to_owned()));
                return None;
            }
            Some(Err(_)) => {
                let text = "the state of this session can't be read, so it can't be controlled";
                self.note = Some(WatchMessage::Failed(text.to_owned()));
                return None;
            }
            Some(Ok(status)) => status.session.clone(),
        };
        let action = match letter {
            'p' => return Some(KeyAction::Control(session, ControlAction::Pause)),
            'r' => return Some(KeyAction::Control(session, ControlAction::Resume)),
            's' => {
                self.view = WatchView::Stop(session);
                return None;
            }
            'a' => ControlAction::Grant,
            _ => ControlAction::Refuse,
        };
        let Some(ask) = self.chosen_question() else {
            self.note =
                Some(WatchMessage::Failed("nothing waits for you in this session".to_owned()));
            return None;
        };
        let (seq, call) = (ask.seq, ask.call.clone());
        let since = self.question.as_ref().and_then(|chosen| chosen.since_ms);
        if since.is_some_and(|since| now_ms.saturating_sub(since) < NEW_QUESTION_MS) {
            let text = "this question is new; read it, then press the key again";
            self.note = Some(WatchMessage::Failed(text.to_owned()));
            return None;
        }
        Some(KeyAction::Answer(session, action, seq, call))
    }

    /// Shows the result of an action.
    pub(super) fn show_outcome(&mut self, outcome: Result<String, String>) {
        self.note = Some(match outcome {
            Ok(done) => WatchMessage::Done(clean(&done)),
            Err(problem) => WatchMessage::Failed(clean(&problem)),
        });
    }
}

/// The position in a list after a key.
fn moved(key: PressedKey, at: usize, length: usize) -> usize {
    let last = length.saturating_sub(1);
    match key {
        PressedKey::Up | PressedKey::Char('k') => at.saturating_sub(1),
        PressedKey::Down | PressedKey::Char('j') => at.saturating_add(1).min(last),
        PressedKey::PageUp => at.saturating_sub(PAGE_LINES),
        PressedKey::PageDown => at.saturating_add(PAGE_LINES).min(last),
        PressedKey::Home | PressedKey::Char('g') => 0,
        PressedKey::End | PressedKey::Char('G') => last,
        _ => at,
    }
}
