//! The report files for people that currently exist.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Phase, SessionState};
use crate::event::ControlAction;
use crate::guards::reports::required_report;
use crate::session::Record;
use crate::verdict::{ContextLevel, Verdict};

/// A report file for people in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportFile {
    /// Why the session can't continue.
    Blocker,
    /// The state of the session after the allowed number of iterations.
    Checkpoint,
    /// The information for an agent that starts with an empty context.
    Briefing,
}

impl ReportFile {
    /// Every report.
    pub const ALL: [Self; 3] = [Self::Blocker, Self::Checkpoint, Self::Briefing];

    /// The path of the report in the workspace.
    pub fn path(self) -> &'static str {
        match self {
            Self::Blocker => ".jackline/BLOCKER_REPORT.md",
            Self::Checkpoint => ".jackline/CHECKPOINT.md",
            Self::Briefing => ".jackline/MISSION_BRIEFING.md",
        }
    }

    /// The report with this path.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|report| report.path() == path)
    }

    /// The command that has the same effect as removing the report.
    pub(crate) fn clearing_command(self) -> Option<&'static str> {
        match self {
            Self::Blocker => Some("jackline clear"),
            Self::Checkpoint => Some("jackline ack"),
            Self::Briefing => None,
        }
    }

    /// The action that a person takes by removing the report.
    pub(crate) fn resolved_by(self) -> Option<ControlAction> {
        match self {
            Self::Blocker => Some(ControlAction::ClearBlocker),
            Self::Checkpoint => Some(ControlAction::Acknowledge),
            Self::Briefing => None,
        }
    }
}

/// A change of a report that the runtime has to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportChange {
    /// Write the report.
    Write(ReportFile),
    /// Remove the report, because it no longer applies.
    Remove(ReportFile),
}

impl ReportChange {
    /// Which report.
    pub fn report(self) -> ReportFile {
        match self {
            Self::Write(report) | Self::Remove(report) => report,
        }
    }
}

/// The state of a session's reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportState {
    /// The reports that Jackline wrote and that are unchanged since.
    pub(crate) written: Vec<ReportFile>,
    /// Whether a briefing has to be written.
    pub(crate) needs_briefing: bool,
    /// Whether the context was too full at the last usage report.
    pub(crate) context_was_full: bool,
}

impl ReportState {
    /// Whether a verdict may require a change of the reports.
    pub(crate) fn may_need_change(&self, verdict: &Verdict) -> bool {
        let waits = |report: &ReportFile| report.resolved_by().is_some();
        let fills = verdict.context_gate.is_some_and(|gate| gate.level >= ContextLevel::Compact);
        self.needs_briefing || (fills && !self.context_was_full) || self.written.iter().any(waits)
    }
}

impl SessionState {
    /// The changes that the runtime has to make to the reports.
    pub(crate) fn pending_report_changes(&self) -> Vec<ReportChange> {
        let wanted = required_report(self);
        let out = |report: &ReportFile| self.reports.written.contains(report);
        let write = wanted.filter(|report| !out(report)).map(ReportChange::Write);
        let brief =
            self.reports.needs_briefing.then_some(ReportChange::Write(ReportFile::Briefing));
        let is_obsolete =
            |report: &ReportFile| *report != ReportFile::Briefing && wanted != Some(*report);
        let obsolete =
            self.reports.written.iter().copied().filter(is_obsolete).map(ReportChange::Remove);
        write.into_iter().chain(brief).chain(obsolete).collect()
    }

    /// Expires the report of a pause in which the session has just stopped. It says how to continue
    /// a paused session, so the report of the stop replaces it.
    pub(crate) fn expire_pause_report(&mut self) {
        if matches!(self.phase, Phase::Stopped(_)) {
            let wanted = required_report(self);
            self.reports.written.retain(|report| wanted != Some(*report));
        }
    }

    /// Applies the report changes that the runtime made together with a record.
    pub(crate) fn apply_report_changes(&mut self, record: &Record<'_>) {
        for (path, fact) in &record.facts.written {
            let Some(report) = ReportFile::from_path(path) else { continue };
            self.protected_files.accept_current(path, fact);
            self.reports.written.retain(|existing| *existing != report);
            if fact.sha256.is_some() {
                self.reports.written.push(report);
            }
            if report == ReportFile::Briefing {
                self.reports.needs_briefing = false;
            }
        }
    }
}
