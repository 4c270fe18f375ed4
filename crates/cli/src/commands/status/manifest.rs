//! The counters of a session by the names under which scripts around autonomous
//! loops know them: what such a loop kept in a manifest that its agent could
//! edit is read from here.

use jackline_engine::definition::Dimension;
use jackline_engine::definition::Profile;
use jackline_engine::{Definition, Summary};
use serde_json::{Map, Value, json};

/// `safety`, `context` and `dirty_bits`, with the thresholds that are in force.
pub(super) fn manifest(definition: &Definition, summary: &Summary) -> Map<String, Value> {
    let fields = [
        ("safety", safety(definition, summary)),
        ("context", context(definition, summary)),
        ("dirty_bits", json!(summary.dirty_bits)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn safety(definition: &Definition, summary: &Summary) -> Value {
    let (loops, progress) = (&definition.loops, &summary.progress);
    let hard = match loops.profile {
        Profile::Graded => loops.graded.hard,
        Profile::Strict => loops.strict.threshold,
    };
    // With what a person has added by acknowledging a checkpoint.
    let iterations =
        summary.budgets.iter().find(|budget| budget.key.dimension == Dimension::Iterations);
    let did = summary.last_actions.iter();
    let signatures: Vec<String> =
        did.map(|action| format!("{}({})", action.tool, action.does)).collect();
    json!({
        "iteration_count": progress.iteration_count,
        "max_iterations": iterations.map(|budget| budget.max),
        "consecutive_failures": progress.consecutive_failures,
        "max_consecutive_failures": progress.max_consecutive_failures,
        "last_tool_signatures": signatures,
        "signature_history_depth": loops.history,
        "soft_loop_threshold": loops.graded.soft,
        "hard_loop_threshold": hard,
        "loop_detected": summary.loops.actors.iter().any(|actor| actor.at.is_some()),
    })
}

/// That of the main agent; null where nobody knows, or where nothing is looked at.
fn context(definition: &Definition, summary: &Summary) -> Value {
    let main = summary.context.iter().find(|context| context.actor.is_main());
    let settings = definition.context.as_ref();
    json!({
        "estimated_usage_pct": main.and_then(|main| main.pct),
        "warning_threshold": settings.map(|settings| settings.warn),
        "mandatory_threshold": settings.map(|settings| settings.compact),
        "hard_block_threshold": settings.map(|settings| settings.block),
    })
}
