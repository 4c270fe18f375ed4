//! Descriptions of the loops that the loop guard found.

use jackline_engine::summary::{LoopAt, LoopLevel, LoopsSummary};

/// Repeated refusals get a row from this number on.
const BLOCKED_MIN: u32 = 2;

/// An actor that is in a loop, or whose calls are refused repeatedly for the same reason.
pub(in super::super) struct LoopStatus {
    pub(in super::super) text: String,
    /// Whether the loop is past the soft level.
    pub(in super::super) is_bad: bool,
}

/// The loops at present.
pub(in super::super) fn current_loops(loops: &LoopsSummary) -> Vec<LoopStatus> {
    let mut rows = Vec::new();
    for actor in &loops.actors {
        let name = if actor.actor.is_main() { "" } else { actor.actor.as_str() };
        rows.extend(actor.at.as_ref().map(|at| describe_loop(at, name)));
        if actor.blocked >= BLOCKED_MIN {
            let text = format!("refused {} times for the same reason{}", actor.blocked, of(name));
            rows.push(LoopStatus { text, is_bad: false });
        }
    }
    rows
}

/// The latest loop that has ended.
pub(in super::super) fn previous_loop(loops: &LoopsSummary) -> Option<LoopStatus> {
    let last = loops.last.last()?;
    let name = if last.actor.is_main() { "" } else { last.actor.as_str() };
    let LoopStatus { text, is_bad } = describe_loop(&last.at, name);
    Some(LoopStatus { text: format!("before: {text}"), is_bad })
}

fn describe_loop(at: &LoopAt, actor: &str) -> LoopStatus {
    let LoopAt { level, rule, count, signature } = at;
    let rule = rule.replace('_', " ");
    let text = format!("{rule} {count} times, {level}: {signature}{}", of(actor));
    LoopStatus { text, is_bad: *level != LoopLevel::Soft }
}

/// The name of the actor, unless it is the main agent.
fn of(actor: &str) -> String {
    if actor.is_empty() { String::new() } else { format!(" ({actor})") }
}
