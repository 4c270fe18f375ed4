//! Which reports for people are out.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::State;
use crate::event::Action;
use crate::guards::reports::wanted;
use crate::session::Record;
use crate::verdict::{ContextLevel, Verdict};

/// A file for people in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportFile {
    /// Why the session can't go on.
    Blocker,
    /// Where it stands after as many iterations as were allowed.
    Checkpoint,
    /// What an agent has to know that begins with an empty context.
    Briefing,
}

impl ReportFile {
    /// Every report.
    pub const ALL: [Self; 3] = [Self::Blocker, Self::Checkpoint, Self::Briefing];

    /// Where it lies, in the workspace.
    pub fn path(self) -> &'static str {
        match self {
            Self::Blocker => ".jackline/BLOCKER_REPORT.md",
            Self::Checkpoint => ".jackline/CHECKPOINT.md",
            Self::Briefing => ".jackline/MISSION_BRIEFING.md",
        }
    }

    /// The report that lies there.
    pub(crate) fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|report| report.path() == path)
    }

    /// The command that says the same as removing it.
    pub(crate) fn cleared_by(self) -> Option<&'static str> {
        match self {
            Self::Blocker => Some("jackline clear"),
            Self::Checkpoint => Some("jackline ack"),
            Self::Briefing => None,
        }
    }

    /// What a person says by removing it.
    pub(crate) fn settled_by(self) -> Option<Action> {
        match self {
            Self::Blocker => Some(Action::ClearBlocker),
            Self::Checkpoint => Some(Action::Acknowledge),
            Self::Briefing => None,
        }
    }
}

/// What has to be done about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It has to be written.
    Write(ReportFile),
    /// What it says is over.
    Remove(ReportFile),
}

impl Order {
    /// Which report.
    pub fn report(self) -> ReportFile {
        match self {
            Self::Write(report) | Self::Remove(report) => report,
        }
    }
}

/// The reports of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reports {
    /// Those that we wrote and that nobody else has touched.
    pub(crate) out: Vec<ReportFile>,
    /// Whether a briefing has to be written.
    pub(crate) brief: bool,
    /// Whether the context was too full when it was reported last.
    pub(crate) full: bool,
}

impl Reports {
    /// Whether anything may have to be done about them after a verdict.
    pub(crate) fn may_change(&self, verdict: &Verdict) -> bool {
        let waits = |report: &ReportFile| report.settled_by().is_some();
        let fills = verdict.context_gate.is_some_and(|gate| gate.level >= ContextLevel::Compact);
        self.brief || (fills && !self.full) || self.out.iter().any(waits)
    }
}

impl State {
    /// What has to be done about reports.
    pub(crate) fn orders(&self) -> Vec<Order> {
        let wanted = wanted(self);
        let out = |report: &ReportFile| self.reports.out.contains(report);
        let write = wanted.filter(|report| !out(report)).map(Order::Write);
        let brief = self.reports.brief.then_some(Order::Write(ReportFile::Briefing));
        let is_over =
            |report: &ReportFile| *report != ReportFile::Briefing && wanted != Some(*report);
        let over = self.reports.out.iter().copied().filter(is_over).map(Order::Remove);
        write.into_iter().chain(brief).chain(over).collect()
    }

    /// Takes note of the reports that were written or removed along with a record.
    pub(crate) fn note_reports(&mut self, record: &Record<'_>) {
        for (path, fact) in &record.facts.written {
            let Some(report) = ReportFile::at(path) else { continue };
            self.watched.accept(path, fact);
            self.reports.out.retain(|known| *known != report);
            if fact.sha256.is_some() {
                self.reports.out.push(report);
            }
            if report == ReportFile::Briefing {
                self.reports.brief = false;
            }
        }
    }
}
