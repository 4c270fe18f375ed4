//! Whatever the parts answer: bounded, undone or done, and nothing of the inside outside.

use jackline_attempt::{Budgets, OutcomeError, Stage, Subtype, egress};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{Answer, Kept, World};

/// In everything that is not meant for whoever asked.
const MARKER: &str = "RAW-4f1d";

fn answer() -> impl Strategy<Value = Answer> {
    let subtype = || prop::sample::select(Subtype::ALL.to_vec());
    let inside = || prop::sample::select(vec!["low_utility", "fetch_failed", "schema_mismatch"]);
    prop_oneof![
        Just(Answer::Down("timeout")),
        subtype().prop_map(|it| Answer::Bad(it, MARKER.to_owned())),
        subtype().prop_map(|it| Answer::BadAfter(it, MARKER.to_owned())),
        Just(Answer::Refused(MARKER.to_owned())),
        prop::sample::select(vec!["execution", "worker_crash", "timeout"])
            .prop_map(|it| Answer::Crash(it, MARKER.to_owned())),
        inside().prop_map(|it| Answer::Error(OutcomeError::new(it, MARKER, true))),
        Just(Answer::Error(OutcomeError::new("not_found", "nothing there", false))),
        Just(Answer::Good(json!(7))),
    ]
}

fn budgets() -> impl Strategy<Value = Budgets> {
    (0..3u32, 0..3u32, 0..3u32, 1..3u32, 1..8u32).prop_map(
        |(provider, guardrail, execution, outcome, ceiling)| Budgets {
            provider,
            guardrail,
            execution,
            outcome,
            ceiling,
            ..Budgets::default()
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
        let mut world = World { end_after, ..World::default() };
        let (outcome, trace) = world.play(&budgets, &answers);

        // Bounded.
        let most = budgets.provider + budgets.guardrail + budgets.execution + budgets.outcome;
        prop_assert!(world.asks.len() <= budgets.ceiling.min(1 + most) as usize);
        prop_assert_eq!(trace.lanes.asked as usize, world.asks.len());

        // All or nothing.
        if outcome.is_ok() {
            prop_assert_eq!(world.kept.context.len(), 1);
            prop_assert_eq!(trace.attempt_stage, Some(Stage::Committed));
        } else {
            prop_assert_eq!(&world.kept, &Kept::default());
        }

        // In order.
        for pair in world.stages.windows(2) {
            let ((earlier, before), (later, after)) = (pair[0], pair[1]);
            prop_assert!(may_follow(before, after), "{:?} then {:?}", before, after);
            prop_assert_eq!(later - earlier, u32::from(after == Stage::Started));
        }

        // Nothing of the inside outside.
        let (public, normalization) = egress(&outcome);
        let text = serde_json::to_string(&public).unwrap();
        prop_assert!(!text.contains(MARKER), "{}", text);
        prop_assert_eq!(public.normalized, normalization.is_some());

        // The same answers, the same way.
        let mut again = World { end_after, ..World::default() };
        let (second, second_trace) = again.play(&budgets, &answers);
        prop_assert_eq!(second, outcome);
        prop_assert_eq!(second_trace, trace);
        prop_assert_eq!(again.asks, world.asks);
    }
}
