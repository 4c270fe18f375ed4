//! What is known of a session without an event.

use std::sync::Arc;

use jackline_engine::{
    Definition, Event, ReportFile, Session, SessionId, SessionPhase, Summary, Timestamp,
};

use super::Runtime;
use crate::live::Live;

/// Whether a session may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Running,
    /// A person, or a guard, has paused it, and why.
    Paused(String),
    /// It is over, and how.
    Stopped(String),
}

impl Standing {
    fn of(summary: &Summary) -> Self {
        match (summary.phase, &summary.stop) {
            (SessionPhase::Stopped, Some(stop)) => Self::Stopped(stop.to_string()),
            (SessionPhase::Paused, _) => {
                let why = summary.paused_why.clone();
                let why = why.unwrap_or_else(|| "no reason given".to_owned());
                let report = summary.reports.iter().find(|it| **it != ReportFile::Briefing);
                let read = report.map_or_else(String::new, |it| format!(" (see `{}`)", it.path()));
                Self::Paused(format!("{why}{read}"))
            }
            _ => Self::Running,
        }
    }
}

impl Runtime {
    /// Whether a session may go on, as far as anything is known of it.
    pub fn standing(&mut self, id: &SessionId) -> Option<Standing> {
        self.summary(id).map(|summary| Standing::of(&summary))
    }

    /// Where a session stands, as far as anything is known of it.
    pub fn summary(&mut self, id: &SessionId) -> Option<Summary> {
        self.with(id, Session::summary)
    }

    /// The definition that a session is under.
    pub fn definition_of(&mut self, id: &SessionId) -> Option<Arc<Definition>> {
        self.with(id, |session| Arc::clone(session.definition()))
    }

    fn with<T>(&mut self, id: &SessionId, tell: impl FnOnce(&Session) -> T) -> Option<T> {
        if let Some((_, live)) = self.live.iter_mut().find(|(open, _)| open == id) {
            // Others steer the same session; what can't be read now is read at the next gate.
            let _ = live.catch_up();
            return Some(tell(&live.session));
        }
        Some(tell(&self.look(id)?.session))
    }

    /// Whether a session lacks a report on usage; `said` is when it was written down.
    pub fn lacks(&mut self, report: &Event, said: Option<Timestamp>) -> bool {
        let live = self.at_hand(&report.session);
        live.is_some_and(|live| !live.session.has_counted(report, said))
    }

    /// A session that is kept at hand for the event that follows.
    pub(super) fn at_hand(&mut self, id: &SessionId) -> Option<&Live> {
        if !self.live.iter().any(|(open, _)| open == id) {
            let live = self.look(id)?;
            self.keep(id.clone(), live);
        }
        self.live.iter().find(|(open, _)| open == id).map(|(_, live)| live)
    }

    /// A session as its journal tells it, where it has one.
    fn look(&self, id: &SessionId) -> Option<Live> {
        let log = self.store.open(id).ok()?;
        let mut live = Live::load(log, id, &self.definitions).ok()??;
        live.catch_up().ok()?;
        Some(live)
    }
}
