//! Measures decisions of the Cedar policy engine in the same run, for comparison.

use std::time::Instant;

use cedar_policy::{Authorizer, Context, Entities, EntityUid, PolicySet, Request};

use crate::BenchError;

/// Three policies about tool calls, as one would write them in Cedar.
const POLICIES: &str = r#"
permit(principal, action == Action::"call", resource);
forbid(principal, action == Action::"call", resource == Tool::"deploy")
    unless { context.lint_epoch == context.epoch && context.tests_passed };
forbid(principal, action == Action::"call", resource)
    when { context.steps >= context.steps_max };
"#;

/// The nanoseconds of each decision.
pub(crate) fn measure(runs: usize) -> Result<Vec<f64>, BenchError> {
    let policies: PolicySet = POLICIES.parse()?;
    let authorizer = Authorizer::new();
    let entities = Entities::empty();
    let mut times = Vec::with_capacity(runs);
    for number in 0..runs {
        let tool = if number % 50 == 0 { "deploy" } else { "Bash" };
        let context = serde_json::json!({
            "epoch": 7, "lint_epoch": 7, "tests_passed": true,
            "steps": number % 100, "steps_max": 1000,
        });
        let principal: EntityUid = r#"Agent::"main""#.parse()?;
        let action: EntityUid = r#"Action::"call""#.parse()?;
        let resource: EntityUid = format!(r#"Tool::"{tool}""#).parse()?;
        let context = Context::from_json_value(context, None)?;
        let request = Request::new(principal, action, resource, context, None)?;
        // Only the decision is measured. Its request is prepared before.
        let start = Instant::now();
        let answer = authorizer.is_authorized(&request, &policies, &entities);
        times.push(start.elapsed().as_nanos() as f64);
        std::hint::black_box(answer);
    }
    Ok(times)
}
