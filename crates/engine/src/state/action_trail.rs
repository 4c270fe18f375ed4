//! The goal of the agent and its last actions, for people who check on it.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize, Serializer};

use super::{CallKey, SessionState, short_hash};
use crate::digest::Digest128;
use crate::event::{
    CallStatus, EventKind, Payload, PromptSource, PromptSubmitted, ToolFinished, ToolProposed,
};
use crate::guards::FoldInput;
use crate::verdict::Decision;

/// How many actions are remembered.
const ACTIONS_MAX: usize = 8;

/// How many characters of a goal are stored.
const GOAL_CHARS_MAX: usize = 500;

/// How many characters of a tool's name are stored.
const TOOL_CHARS_MAX: usize = 64;

/// The goal and the last actions of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActionTrail {
    /// The first prompt of a person.
    pub(crate) goal: Option<String>,
    /// The latest action last.
    actions: Vec<TrailEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TrailEntry {
    seq: u64,
    /// A hash of the call id, or of the tool and its arguments.
    key: u64,
    tool: String,
    does: String,
    ended: ActionEnd,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActionEnd {
    /// It has no result yet.
    Open,
    /// The decision did not let it run.
    NotRun(Decision),
    /// It has a result with this status.
    Returned(CallStatus),
    /// It has a result, and its program failed with this exit code.
    ExitCode(i64),
}

impl ActionEnd {
    /// The JSON word for `--json` and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::NotRun(decision) => decision.as_str(),
            Self::Returned(status) => status.as_str(),
            Self::ExitCode(_) => "failed",
        }
    }
}

/// A call that the agent made or wanted to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastAction {
    /// The record in which the call was proposed.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// What the call does: the command line, or the file.
    pub does: String,
    /// How it ended.
    #[serde(serialize_with = "serialize_word")]
    pub ended: ActionEnd,
    /// The exit code with which its program failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

impl ActionTrail {
    /// The last actions, the most recent last.
    pub(crate) fn actions(&self) -> impl Iterator<Item = LastAction> {
        self.actions.iter().map(|entry| LastAction {
            seq: entry.seq,
            tool: entry.tool.clone(),
            does: entry.does.clone(),
            ended: entry.ended,
            exit_code: match entry.ended {
                ActionEnd::ExitCode(code) => Some(code),
                ActionEnd::Open | ActionEnd::NotRun(_) | ActionEnd::Returned(_) => None,
            },
        })
    }
}

fn serialize_word<S: Serializer>(end: &ActionEnd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(end.as_str())
}

/// The first characters of a text.
fn first_chars(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

impl SessionState {
    /// Records the goal and the actions of an event.
    pub(crate) fn record_action(&mut self, fold: FoldInput<'_>) {
        let record = fold.record;
        let trail = &mut self.action_trail;
        match &record.event.kind {
            EventKind::PromptSubmitted(PromptSubmitted {
                source: PromptSource::Human,
                text: Some(text),
            }) if trail.goal.is_none() && record.event.actor.is_main() => {
                trail.goal = goal_of_prompt(text);
            }
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                let Some(proposal) = fold.proposal else { return };
                let args = record.facts.observed.args;
                let key = match call {
                    Some(call) => short_hash(call.as_str()),
                    None => call_key_without_id(proposal.tool.name, args),
                };
                let verdict = record.verdict;
                let ended = if verdict.allows_run() {
                    ActionEnd::Open
                } else {
                    ActionEnd::NotRun(verdict.decision)
                };
                // The oldest actions are removed.
                let passed = (trail.actions.len() + 1).saturating_sub(ACTIONS_MAX);
                trail.actions.drain(..passed);
                trail.actions.push(TrailEntry {
                    seq: record.seq,
                    key,
                    tool: first_chars(proposal.tool.name, TOOL_CHARS_MAX).to_string(),
                    does: proposal.does().to_string(),
                    ended,
                });
            }
            EventKind::ToolFinished(ToolFinished { status, exit_code, .. }) => {
                let key = match record.call_key(fold.definition) {
                    CallKey::Id(call) => short_hash(call.as_str()),
                    CallKey::ToolAndArgs(tool, args) => call_key_without_id(tool, Some(args)),
                    CallKey::Unknown => return,
                };
                // A call that waited for approval may have run. A call that was blocked is often
                // reported as failed, which is not new information.
                let waits =
                    |ended| matches!(ended, ActionEnd::Open | ActionEnd::NotRun(Decision::Ask));
                let same = |entry: &&mut TrailEntry| entry.key == key && waits(entry.ended);
                if let Some(entry) = trail.actions.iter_mut().find(same) {
                    entry.ended = match exit_code.filter(|code| *code != 0) {
                        Some(code) if *status == CallStatus::Ok => ActionEnd::ExitCode(code),
                        _ => ActionEnd::Returned(*status),
                    };
                }
            }
            _ => {}
        }
    }
}

/// The key of a call from a client without call ids.
fn call_key_without_id(tool: &str, args: Option<Digest128>) -> u64 {
    short_hash(&args.map_or_else(|| tool.to_string(), |args| format!("{tool} {args}")))
}

fn goal_of_prompt(text: &Payload) -> Option<String> {
    let text = text.head().trim();
    let mut goal: String = text.chars().take(GOAL_CHARS_MAX).collect();
    if text.chars().nth(GOAL_CHARS_MAX).is_some() {
        goal.pop();
        goal.push('…');
    }
    (!goal.is_empty()).then_some(goal)
}
