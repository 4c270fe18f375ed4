//! Properties that hold for any answers: calls are bounded and atomic, and leak no internal text.

use jackline_attempt::{AttemptBudgets, OutcomeError, Stage, Subtype, egress};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{AttemptChanges, CallWorld, ScriptedArtifact};

/// A marker in every text that the caller must not see.
const MARKER: &str = "RAW-4f1d";

fn answer() -> impl Strategy<Value = ScriptedArtifact> {
    let subtype = || prop::sample::select(Subtype::ALL.to_vec());
    let inside = || prop::sample::select(vec!["low_utility", "fetch_failed", "schema_mismatch"]);
    prop_oneof![
        Just(ScriptedArtifact::Down("timeout")),
        subtype().prop_map(|it| ScriptedArtifact::Bad(it, MARKER.to_owned())),
        subtype().prop_map(|it| ScriptedArtifact::BadAfter(it, MARKER.to_owned())),
        Just(ScriptedArtifact::Refused(MARKER.to_owned())),
        prop::sample::select(vec!["execution", "worker_crash", "timeout"])
            .prop_map(|it| ScriptedArtifact::Crash(it, MARKER.to_owned())),
        inside().prop_map(|it| ScriptedArtifact::Error(OutcomeError::new(it, MARKER, true))),
        Just(ScriptedArtifact::Error(OutcomeError::new("not_found", "nothing there", false))),
        Just(ScriptedArtifact::Good(json!(7))),
    ]
}

fn budgets() -> impl Strategy<Value = AttemptBudgets> {
    (0..3u32, 0..3u32, 0..3u32, 1..3u32, 1..8u32).prop_map(
        |(provider, guardrail, execution, outcome, ceiling)| AttemptBudgets {
            provider,
            guardrail,
            execution,
            outcome,
            ceiling,
            ..AttemptBudgets::default()
        },
    )
}

/// Whether one stage may come after another within an attempt.
fn may_follow(before: Stage, after: Stage) -> bool {
    use Stage::{
        Committed, Executed, ExecutionRetry, Generated, OutcomeRetry, RolledBack, Started,
        Validated,
    };
    match before {
        Started => after == Generated,
        Generated => matches!(after, Validated | RolledBack),
        Validated => matches!(after, Executed | RolledBack | ExecutionRetry),
        Executed => matches!(after, Committed | RolledBack | OutcomeRetry),
        RolledBack | ExecutionRetry | OutcomeRetry | Committed => after == Started,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_call_ends_and_leaves_all_or_nothing(
        budgets in budgets(),
        answers in prop::collection::vec(answer(), 1..8),
        end_after in prop::option::of(1..12usize),
    ) {
        let mut world = CallWorld { end_after, ..CallWorld::default() };
        let (outcome, trace) = world.run_call(&budgets, &answers);

        // The number of requests is bounded.
        let most = budgets.provider + budgets.guardrail + budgets.execution + budgets.outcome;
        prop_assert!(world.asks.len() <= budgets.ceiling.min(1 + most) as usize);
        prop_assert_eq!(trace.lanes.asked as usize, world.asks.len());

        // All changes stay, or none.
        if outcome.is_ok() {
            prop_assert_eq!(world.changes.context.len(), 1);
            prop_assert_eq!(trace.attempt_stage, Some(Stage::Committed));
        } else {
            prop_assert_eq!(&world.changes, &AttemptChanges::default());
        }

        // The stages are in order.
        for pair in world.stages.windows(2) {
            let ((earlier, before), (later, after)) = (pair[0], pair[1]);
            prop_assert!(may_follow(before, after), "{:?} then {:?}", before, after);
            prop_assert_eq!(later - earlier, u32::from(after == Stage::Started));
        }

        // No internal text is public.
        let public = egress(&outcome);
        let text = serde_json::to_string(&public).unwrap();
        prop_assert!(!text.contains(MARKER), "{}", text);
        prop_assert_eq!(public.retriable, outcome.error().is_some_and(|error| error.retriable));
        let attempts = public.normalized.then_some(trace.guardrail_recovery_attempts);
        prop_assert_eq!(public.guardrail_recovery_attempts, attempts);

        // The same answers lead to the same result.
        let mut again = CallWorld { end_after, ..CallWorld::default() };
        let (second, second_trace) = again.run_call(&budgets, &answers);
        prop_assert_eq!(second, outcome);
        prop_assert_eq!(second_trace, trace);
        prop_assert_eq!(again.asks, world.asks);
    }
}
