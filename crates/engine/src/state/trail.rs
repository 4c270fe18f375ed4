//! What the agent was given to do, and what it did last: for people who come to
//! look after it.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize, Serializer};

use super::{Key, State, short};
use crate::digest::Digest128;
use crate::event::{
    EventKind, Payload, PromptSource, PromptSubmitted, Status, ToolFinished, ToolProposed,
};
use crate::guards::Fold;
use crate::verdict::Decision;

/// How many actions are remembered.
const ACTIONS_MAX: usize = 8;

/// How much of a goal is kept.
const GOAL_CHARS_MAX: usize = 500;

/// How much of a tool's name is kept.
const TOOL_CHARS_MAX: usize = 64;

/// The goal and the last actions of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trail {
    /// What a person said first.
    pub(crate) goal: Option<String>,
    /// The latest last.
    actions: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    seq: u64,
    /// The call by its id, or by its tool and arguments.
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
    /// A decision kept it from running.
    Held(Decision),
    /// It came back with this status.
    With(Status),
    /// It came back, and its program failed with this exit code.
    Exit(i64),
}

impl ActionEnd {
    /// The word that `--json` and reports show.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Held(decision) => decision.word(),
            Self::With(status) => status.word(),
            Self::Exit(_) => "failed",
        }
    }
}

/// Something the agent did, or wanted to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastAction {
    /// The record in which it was proposed.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// What it does: the command line, or the file.
    pub does: String,
    /// How it ended.
    #[serde(serialize_with = "serialize_word")]
    pub ended: ActionEnd,
    /// The exit code by which its program failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

impl Trail {
    /// The last actions, the latest last.
    pub(crate) fn actions(&self) -> impl Iterator<Item = LastAction> {
        self.actions.iter().map(|entry| LastAction {
            seq: entry.seq,
            tool: entry.tool.clone(),
            does: entry.does.clone(),
            ended: entry.ended,
            exit_code: match entry.ended {
                ActionEnd::Exit(code) => Some(code),
                ActionEnd::Open | ActionEnd::Held(_) | ActionEnd::With(_) => None,
            },
        })
    }
}

fn serialize_word<S: Serializer>(end: &ActionEnd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(end.word())
}

/// As many characters as a text may be shown with.
fn first_chars(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

impl State {
    /// Remembers what an event says about the goal and the actions.
    pub(crate) fn keep_trail(&mut self, fold: Fold<'_>) {
        let record = fold.record;
        let trail = &mut self.trail;
        match &record.event.kind {
            EventKind::PromptSubmitted(PromptSubmitted {
                source: PromptSource::Human,
                text: Some(text),
            }) if trail.goal.is_none() && record.event.actor.is_main() => {
                trail.goal = goal(text);
            }
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                let Some(proposal) = fold.proposal else { return };
                let args = record.facts.observed.args;
                let key = match call {
                    Some(call) => short(call.as_str()),
                    None => anonymous(proposal.tool.name, args),
                };
                let verdict = record.verdict;
                let ended = if verdict.lets_run() {
                    ActionEnd::Open
                } else {
                    ActionEnd::Held(verdict.decision)
                };
                // The oldest gives way.
                let passed = (trail.actions.len() + 1).saturating_sub(ACTIONS_MAX);
                trail.actions.drain(..passed);
                trail.actions.push(Entry {
                    seq: record.seq,
                    key,
                    tool: first_chars(proposal.tool.name, TOOL_CHARS_MAX).to_string(),
                    does: proposal.does().to_string(),
                    ended,
                });
            }
            EventKind::ToolFinished(ToolFinished { status, exit_code, .. }) => {
                let key = match record.key(fold.definition) {
                    Key::Id(call) => short(call.as_str()),
                    Key::Called(tool, args) => anonymous(tool, Some(args)),
                    Key::Nothing => return,
                };
                // One that was asked about may have run; what was kept from
                // running is often reported as failed, which is not news.
                let waits =
                    |ended| matches!(ended, ActionEnd::Open | ActionEnd::Held(Decision::Ask));
                let same = |entry: &&mut Entry| entry.key == key && waits(entry.ended);
                if let Some(entry) = trail.actions.iter_mut().find(same) {
                    entry.ended = match exit_code.filter(|code| *code != 0) {
                        Some(code) if *status == Status::Ok => ActionEnd::Exit(code),
                        _ => ActionEnd::With(*status),
                    };
                }
            }
            _ => {}
        }
    }
}

/// A call of a client without call ids.
fn anonymous(tool: &str, args: Option<Digest128>) -> u64 {
    short(&args.map_or_else(|| tool.to_string(), |args| format!("{tool} {args}")))
}

fn goal(text: &Payload) -> Option<String> {
    let text = text.head().trim();
    let mut goal: String = text.chars().take(GOAL_CHARS_MAX).collect();
    if text.chars().nth(GOAL_CHARS_MAX).is_some() {
        goal.pop();
        goal.push('…');
    }
    (!goal.is_empty()).then_some(goal)
}
