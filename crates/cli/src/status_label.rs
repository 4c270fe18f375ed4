//! The words that people read for the state of a session.
//!
//! All commands take their labels from here. `--json` and the journal keep the codes, such as
//! `NO_EVIDENCE`.

use std::fmt;

use anstyle::{AnsiColor, Style};
use jackline_engine::verdict::{SessionStop, StopDetail};
use jackline_engine::{SessionPhase, SessionSummary, StopCode};

/// How much attention a label needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelTone {
    /// Nothing to do; shown in grey.
    Normal,
    /// The objective was achieved and checked; shown in green.
    Good,
    /// The session waits; shown in yellow.
    Waiting,
    /// A person has to look at the session; shown in red.
    Alarm,
}

/// The state of a session in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusLabel {
    /// One word, for lists.
    pub(crate) word: &'static str,
    /// The reason, if the session has stopped or ended.
    pub(crate) reason: Option<String>,
    pub(crate) tone: LabelTone,
}

impl StatusLabel {
    /// The label of a session in its current state.
    pub(crate) fn of_session(summary: &SessionSummary) -> Self {
        let stop = summary.stop.as_ref().filter(|_| !summary.phase.is_open());
        stop.map_or_else(|| Self::of_phase(summary.phase), Self::of_stop)
    }

    /// The label of a phase without a stop.
    pub(crate) fn of_phase(phase: SessionPhase) -> Self {
        let (word, tone) = match phase {
            SessionPhase::New => ("new", LabelTone::Normal),
            SessionPhase::Running => ("running", LabelTone::Normal),
            SessionPhase::Paused => ("paused", LabelTone::Waiting),
            SessionPhase::Stopped => ("stopped", LabelTone::Alarm),
            SessionPhase::Ended => ("ended", LabelTone::Normal),
        };
        Self { word, reason: None, tone }
    }

    /// The label of a stop: its code and its detail.
    pub(crate) fn of_stop(stop: &SessionStop) -> Self {
        let (word, reason, tone) = match stop.code {
            StopCode::ObjectiveAchieved => ("finished", None, LabelTone::Good),
            StopCode::NoEvidence => {
                let reason = match &stop.detail {
                    Some(StopDetail::Completion) => "completion check not passed",
                    _ => "no completion check",
                };
                ("finished", Some(reason.to_owned()), LabelTone::Normal)
            }
            StopCode::HumanRequested => {
                ("stopped", Some("by a person".to_owned()), LabelTone::Normal)
            }
            StopCode::Interrupted => {
                ("ended", Some("before the task was done".to_owned()), LabelTone::Normal)
            }
            StopCode::BudgetExceeded | StopCode::SystemError | StopCode::Capped => {
                let code = match stop.code {
                    StopCode::BudgetExceeded => "limit reached",
                    StopCode::SystemError => "system error",
                    _ => "too many failures",
                };
                let reason = stop.detail.as_ref().map_or_else(|| code.to_owned(), detail_label);
                ("stopped", Some(reason), LabelTone::Alarm)
            }
        };
        Self { word, reason, tone }
    }

    /// The style for a terminal.
    pub(crate) fn style(&self) -> Style {
        match self.tone {
            LabelTone::Normal => Style::new().dimmed(),
            LabelTone::Good => AnsiColor::Green.on_default(),
            LabelTone::Waiting => AnsiColor::Yellow.on_default(),
            LabelTone::Alarm => AnsiColor::Red.on_default(),
        }
    }
}

impl fmt::Display for StatusLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, reason, tone } = self;
        match (reason, tone) {
            (None, _) => f.write_str(word),
            (Some(reason), LabelTone::Alarm) => write!(f, "{word}: {reason}"),
            (Some(reason), _) if *word == "finished" => write!(f, "{word} ({reason})"),
            (Some(reason), _) => write!(f, "{word} {reason}"),
        }
    }
}

/// The label of a stop code as statements contain it, such as `NO_EVIDENCE`.
pub(crate) fn stop_code_label(code: &str) -> String {
    let known = StopCode::ALL.iter().find(|(word, _)| *word == code);
    known.map_or_else(
        || code.to_owned(),
        |(_, code)| StatusLabel::of_stop(&SessionStop::with_code(*code)).to_string(),
    )
}

/// What exactly stopped a session.
fn detail_label(detail: &StopDetail) -> String {
    let label = match detail {
        StopDetail::Deadline => "deadline passed",
        StopDetail::Steps => "step limit",
        StopDetail::WallSeconds => "time limit",
        StopDetail::CostUsd => "cost limit",
        StopDetail::InputTokens => "input token limit",
        StopDetail::OutputTokens => "output token limit",
        StopDetail::TotalTokens => "token limit",
        StopDetail::Iterations => "iteration limit",
        StopDetail::ToolCalls => "tool call limit",
        StopDetail::Budget => "limit reached",
        StopDetail::Context => "context window full",
        StopDetail::Progress => "no progress",
        StopDetail::Completion => "completion check failed too often",
        StopDetail::Loop => "loop",
        StopDetail::Schema => "too many invalid calls",
        StopDetail::Compaction => "compaction freed too little",
        StopDetail::Rollback => "an attempt could not be undone",
        StopDetail::Identity => "agent not approved",
        StopDetail::Model => "no model answers",
        StopDetail::Worker => "agent program failed",
        StopDetail::Workspace => "workspace deleted",
        StopDetail::Other(word) => return word.replace('_', " "),
    };
    label.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(code: StopCode, detail: Option<StopDetail>) -> (String, LabelTone) {
        let label = StatusLabel::of_stop(&SessionStop { detail, ..SessionStop::with_code(code) });
        (label.to_string(), label.tone)
    }

    #[test]
    fn stop_codes_have_labels_that_people_know() {
        let cases = [
            (StopCode::ObjectiveAchieved, None, "finished", LabelTone::Good),
            (StopCode::NoEvidence, None, "finished (no completion check)", LabelTone::Normal),
            (
                StopCode::NoEvidence,
                Some(StopDetail::Completion),
                "finished (completion check not passed)",
                LabelTone::Normal,
            ),
            (StopCode::Interrupted, None, "ended before the task was done", LabelTone::Normal),
            (StopCode::HumanRequested, None, "stopped by a person", LabelTone::Normal),
            (StopCode::SystemError, Some(StopDetail::Loop), "stopped: loop", LabelTone::Alarm),
            (StopCode::Capped, None, "stopped: too many failures", LabelTone::Alarm),
        ];
        for (code, detail, text, tone) in cases {
            assert_eq!(label(code, detail), (text.to_owned(), tone));
        }
    }

    #[test]
    fn every_detail_and_every_code_has_a_label_without_code_words() {
        for (word, detail) in StopDetail::ALL {
            let (text, _) = label(StopCode::SystemError, Some(detail.clone()));
            assert!(!text.contains('_'), "{word}: {text}");
        }
        for (word, _) in StopCode::ALL {
            let text = stop_code_label(word);
            assert!(!text.contains(|c: char| c.is_uppercase()), "{word}: {text}");
        }
        assert_eq!(stop_code_label("BUDGET_EXCEEDED"), "stopped: limit reached");
        assert_eq!(stop_code_label("NEW_CODE"), "NEW_CODE");
    }

    #[test]
    fn a_running_session_is_normal_and_a_paused_one_waits() {
        let running = StatusLabel::of_phase(SessionPhase::Running);
        assert_eq!((running.to_string().as_str(), running.tone), ("running", LabelTone::Normal));
        assert_eq!(StatusLabel::of_phase(SessionPhase::Paused).tone, LabelTone::Waiting);
    }
}
