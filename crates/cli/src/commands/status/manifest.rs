//! The counters of a session, under the names that scripts for autonomous loops use.
//!
//! Such scripts used to store the counters in a manifest file, which the agent could edit.

use jackline_engine::definition::LimitDimension;
use jackline_engine::definition::LoopProfile;
use jackline_engine::{Definition, Session, SessionSummary};
use serde_json::{Map, Value, json};

/// The fields `safety`, `context`, `dirty_bits` and `identity`, with the active thresholds.
pub(super) fn manifest(session: &Session) -> Map<String, Value> {
    let (definition, summary) = (session.definition(), &session.summary());
    let fields = [
        ("safety", safety(definition, summary)),
        ("context", context(definition, summary)),
        ("dirty_bits", json!(summary.dirty_bits)),
        ("identity", identity(session)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn safety(definition: &Definition, summary: &SessionSummary) -> Value {
    let (loops, progress) = (&definition.loops, &summary.progress);
    let hard = match loops.profile {
        LoopProfile::Graded => loops.graded.hard,
        LoopProfile::Strict => loops.strict.threshold,
    };
    // Includes the iterations that a person added by acknowledging checkpoints.
    let iterations =
        summary.budgets.iter().find(|budget| budget.key.dimension == LimitDimension::Iterations);
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

/// The context of the main agent; null if it is unknown or the context guard is not configured.
fn context(definition: &Definition, summary: &SessionSummary) -> Value {
    let main = summary.context.iter().find(|context| context.actor.is_main());
    let settings = definition.context.as_ref();
    json!({
        "estimated_usage_pct": main.and_then(|main| main.pct),
        "warning_threshold": settings.map(|settings| settings.warn),
        "mandatory_threshold": settings.map(|settings| settings.compact),
        "hard_block_threshold": settings.map(|settings| settings.block),
        "last_compaction": summary.last_compaction,
    })
}

/// The checksum of the agent, and the roles and the workflow that the definition demands.
fn identity(session: &Session) -> Value {
    let settings = session.definition().identity.as_ref();
    json!({
        "agent_checksum": session.agent_checksum(),
        "workflow_binding": settings.and_then(|settings| settings.workflow.as_deref()),
        "authorized_roles": settings.map(|settings| &settings.roles),
        "role": session.agent().role,
    })
}
