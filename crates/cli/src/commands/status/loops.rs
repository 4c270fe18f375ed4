//! Who goes in circles, in words.

use jackline_engine::summary::{LoopAt, LoopLevel, LoopsSummary};

/// From when on refusals of the same call are worth a row.
const BLOCKED_MIN: u32 = 2;

/// Somebody who goes in circles, or is refused the same again.
pub(in super::super) struct Circle {
    pub(in super::super) text: String,
    /// Whether it is more than worth a word.
    pub(in super::super) is_bad: bool,
}

/// Who does so now.
pub(in super::super) fn circles(loops: &LoopsSummary) -> Vec<Circle> {
    let mut rows = Vec::new();
    for actor in &loops.actors {
        let whose = if actor.actor.is_main() { "" } else { actor.actor.as_str() };
        rows.extend(actor.at.as_ref().map(|at| circle(at, whose)));
        if actor.blocked >= BLOCKED_MIN {
            let text = format!("refused {} times for the same reason{}", actor.blocked, of(whose));
            rows.push(Circle { text, is_bad: false });
        }
    }
    rows
}

/// Who did so last.
pub(in super::super) fn circle_before(loops: &LoopsSummary) -> Option<Circle> {
    let last = loops.last.last()?;
    let whose = if last.actor.is_main() { "" } else { last.actor.as_str() };
    let Circle { text, is_bad } = circle(&last.at, whose);
    Some(Circle { text: format!("before: {text}"), is_bad })
}

fn circle(at: &LoopAt, whose: &str) -> Circle {
    let LoopAt { level, rule, count, signature } = at;
    let rule = rule.replace('_', " ");
    let text = format!("{rule} {count} times, {level}: {signature}{}", of(whose));
    Circle { text, is_bad: *level != LoopLevel::Soft }
}

/// Whose it is, where it is not the main agent's.
fn of(whose: &str) -> String {
    if whose.is_empty() { String::new() } else { format!(" ({whose})") }
}
