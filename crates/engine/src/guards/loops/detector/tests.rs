//! Loops of every kind, and normal work that must not count as a loop.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use super::*;

/// An actor whose calls return one after the other.
#[derive(Default)]
struct TestActor {
    detector: LoopDetector,
    loops: LoopSettings,
    steps: u64,
    batch: Option<u64>,
}

fn result_digest(text: &str) -> Digest128 {
    let event = serde_json::json!({
        "session": "s", "event": "tool_finished", "call": "c", "status": "ok", "result": text,
    });
    let event = crate::wire::parse_line(event.to_string().as_bytes(), None).unwrap();
    crate::observe::observe(&event).result.unwrap().content_digest()
}

fn step(call: &str, result: &str, class: CallClass) -> CompletedCall {
    CompletedCall {
        call: Digest128::of(call.as_bytes()),
        outcome: result_digest(result),
        tool: 1,
        coarse: None,
        error: None,
        failed: false,
        class,
        at_ms: 0,
        batch: 0,
    }
}

impl TestActor {
    fn record(&mut self, step: &CompletedCall) -> Option<(LoopLevel, LoopRule)> {
        self.steps += 1;
        let at_ms = self.steps * 1000;
        let step = CompletedCall { at_ms, batch: self.batch.unwrap_or(self.steps), ..*step };
        match self.detector.record(&step, &self.loops) {
            DetectorResult::Counted(Some(finding)) => Some((finding.level, finding.rule)),
            DetectorResult::Counted(None) | DetectorResult::Ignored => None,
        }
    }

    fn call(&mut self, call: &str, result: &str) -> Option<(LoopLevel, LoopRule)> {
        self.record(&step(call, result, CallClass::Other))
    }

    fn record_all(
        &mut self,
        steps: impl IntoIterator<Item = CompletedCall>,
    ) -> Vec<Option<(LoopLevel, LoopRule)>> {
        steps.into_iter().map(|step| self.record(&step)).collect()
    }
}

/// Returns the first call that reaches a level, counted from one.
fn first_at_level(findings: &[Option<(LoopLevel, LoopRule)>], level: LoopLevel) -> Option<usize> {
    let reached =
        |found: &Option<(LoopLevel, LoopRule)>| found.is_some_and(|found| found.0 >= level);
    findings.iter().position(reached).map(|at| at + 1)
}

const CLASSES: [CallClass; 3] = [CallClass::ReadOnly, CallClass::Exec, CallClass::Other];

fn failed(call: &str, error: ErrorClass, class: CallClass) -> CompletedCall {
    CompletedCall { failed: true, error: Some(error), ..step(call, call, class) }
}

const REFUSED: ErrorClass = ErrorClass { fingerprint: 401, protocol: true };
const BROKEN: ErrorClass = ErrorClass { fingerprint: 7, protocol: false };

#[test]
fn the_same_call_with_the_same_result_climbs_at_three_five_and_ten() {
    for class in CLASSES {
        let found = TestActor::default().record_all((0..12).map(|_| step("a", "same", class)));
        assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(3), "{class:?}");
        assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(5), "{class:?}");
        assert_eq!(first_at_level(&found, LoopLevel::Infinite), Some(10), "{class:?}");
        assert!(found.iter().flatten().all(|found| found.1.as_str() == "repeat"), "{found:?}");
    }
}

#[test]
fn a_cycle_is_hard_at_its_third_repetition() {
    for class in CLASSES {
        for period in 2..=8_usize {
            let steps = (0..3 * period).map(|n| step(&format!("{}", n % period), "same", class));
            let found = TestActor::default().record_all(steps);
            assert_eq!(
                first_at_level(&found, LoopLevel::Hard),
                Some(3 * period),
                "{class:?} {period}"
            );
            let last = found.last().unwrap().unwrap();
            assert_eq!(last, (LoopLevel::Hard, LoopRule::Cycle), "{class:?} {period}");
        }
    }
}

#[test]
fn a_cycle_that_never_ends_is_infinite() {
    let found = TestActor::default()
        .record_all((0..20).map(|n| step(&format!("{}", n % 2), "x", CallClass::Exec)));
    assert_eq!(first_at_level(&found, LoopLevel::Infinite), Some(20));
}

#[test]
fn a_long_chain_is_soft_the_second_time_and_hard_the_third() {
    let steps = (0..36).map(|n| step(&format!("{}", n % 12), "same", CallClass::Exec));
    let found = TestActor::default().record_all(steps);
    assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(24));
    assert_eq!(found[23], Some((LoopLevel::Soft, LoopRule::DuplicateChain)));
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(36));
}

#[test]
fn a_process_number_in_the_output_does_not_hide_a_loop() {
    let mut actor = TestActor::default();
    let results = (0..5).map(|n| format!("started server, pid {}, took {n}.{n}s", 4711 + n * 13));
    let found: Vec<_> = results.map(|result| actor.call("serve", &result)).collect();
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(5));
}

#[test]
fn a_thousand_polls_whose_result_changes_are_never_hard() {
    for class in CLASSES {
        let steps = (0..1000).map(|n| step("status", &format!("{n} of 1000 done"), class));
        let found = TestActor::default().record_all(steps);
        assert_eq!(first_at_level(&found, LoopLevel::Hard), None, "{class:?}");
        assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(8), "{class:?}");
    }
    let poll = CallClass::Poll { until_changed: true, max_calls: 50, within_ms: 3_600_000 };
    let steps = (0..1000).map(|n| step("status", &format!("{n} of 1000 done"), poll));
    assert!(TestActor::default().record_all(steps).iter().all(Option::is_none));
}

#[test]
fn fifty_pages_of_a_listing_are_no_loop() {
    for class in CLASSES {
        let pages = (1..=50).map(|n| CompletedCall {
            coarse: Some(1),
            ..step(&format!("list page {n}"), &format!("page {n} of 50"), class)
        });
        assert!(TestActor::default().record_all(pages).iter().all(Option::is_none), "{class:?}");
    }
}

#[test]
fn a_refusal_with_other_arguments_is_hard_by_the_eighth_call() {
    for class in CLASSES {
        let found = TestActor::default()
            .record_all((0..8).map(|n| failed(&format!("query {n}"), REFUSED, class)));
        assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(5), "{class:?}");
        assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(8), "{class:?}");
    }
}

#[test]
fn varied_errors_of_exec_calls_are_no_storm() {
    let storm = |class| {
        TestActor::default().record_all((0..20).map(|n| failed(&format!("run {n}"), BROKEN, class)))
    };
    assert!(storm(CallClass::Exec).iter().all(Option::is_none));
    assert_eq!(first_at_level(&storm(CallClass::Other), LoopLevel::Hard), Some(8));
}

#[test]
fn errors_of_one_batch_count_once() {
    let mut actor = TestActor::default();
    for batch in 1..=4 {
        actor.batch = Some(batch);
        let found = actor
            .record_all((0..5).map(|n| failed(&format!("{batch} {n}"), REFUSED, CallClass::Other)));
        assert!(found.iter().all(Option::is_none), "{batch}: {found:?}");
    }
    actor.batch = Some(5);
    let fifth = actor.record(&failed("again", REFUSED, CallClass::Other));
    assert_eq!(fifth, Some((LoopLevel::Soft, LoopRule::ErrorStorm)));
}

#[test]
fn a_repeated_failure_is_found_whatever_happens_in_between() {
    let mut actor = TestActor::default();
    let mut found = Vec::new();
    for n in 0..5 {
        actor.call(&format!("look at {n}"), &format!("{n}"));
        let error = ErrorClass { fingerprint: n, protocol: false };
        found.push(actor.record(&CompletedCall {
            outcome: result_digest(&format!("failed for reason {n}")),
            ..failed("edit", error, CallClass::Other)
        }));
    }
    assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(3));
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(5));
    assert_eq!(found[4], Some((LoopLevel::Hard, LoopRule::SameFailure)));
}

#[test]
fn a_test_that_fails_after_every_change_is_work() {
    let mut actor = TestActor::default();
    for n in 0..40 {
        assert_eq!(actor.call(&format!("edit {n}"), "ok"), None);
        assert_eq!(actor.record(&failed("pytest", BROKEN, CallClass::Exec)), None, "{n}");
        assert_eq!(actor.record(&step("cargo fmt", "", CallClass::Exec)), None, "{n}");
    }
}

#[test]
fn calls_without_news_are_found_in_any_order() {
    let mut actor = TestActor::default();
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(actor.call(name, "x"), None);
    }
    let found: Vec<_> =
        ["c", "a", "d", "b", "e"].iter().map(|name| actor.call(name, "x")).collect();
    assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(3));
    assert_eq!(found[4], Some((LoopLevel::Hard, LoopRule::Stagnation)));
}

#[test]
fn reading_everything_once_more_is_soft_at_most() {
    let read = |n: usize| step(&format!("read {n}"), &format!("file {n}"), CallClass::ReadOnly);
    let mut actor = TestActor::default();
    actor.record_all((0..12).map(read));
    let again = actor.record_all((0..12).rev().map(read));
    assert_eq!(first_at_level(&again, LoopLevel::Soft), Some(5));
    assert_eq!(first_at_level(&again, LoopLevel::Hard), None);
    let third = actor.record_all((0..12).map(|n| read((n * 5) % 12)));
    assert_eq!(first_at_level(&third, LoopLevel::Hard), Some(1));
}

#[test]
fn repetitions_within_one_batch_are_no_loop() {
    let mut actor = TestActor { batch: Some(1), ..TestActor::default() };
    for _ in 0..10 {
        assert_eq!(actor.call("a", "x"), None);
        assert_eq!(actor.call("b", "x"), None);
    }
}

#[test]
fn a_poll_may_wait_for_its_whole_allowance() {
    let poll = CallClass::Poll { until_changed: true, max_calls: 20, within_ms: u64::MAX };
    let mut actor = TestActor::default();
    let found = actor.record_all((0..30).map(|_| step("status", "pending", poll)));
    assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(23));
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(25));
    // A changed result renews the allowance.
    assert_eq!(actor.record(&step("status", "running", poll)), None);
    assert!(
        actor
            .record_all((0..19).map(|_| step("status", "running", poll)))
            .iter()
            .all(Option::is_none)
    );

    let short = CallClass::Poll { until_changed: true, max_calls: u32::MAX, within_ms: 10_000 };
    let found = TestActor::default().record_all((0..20).map(|_| step("status", "pending", short)));
    assert_eq!(
        first_at_level(&found, LoopLevel::Soft),
        Some(14),
        "one call per second, and three more"
    );
}

#[test]
fn calls_between_two_polls_are_no_loop() {
    let poll = CallClass::Poll { until_changed: true, max_calls: 30, within_ms: u64::MAX };
    let mut actor = TestActor::default();
    for _ in 0..30 {
        assert_eq!(actor.record(&step("status", "pending", poll)), None);
        assert_eq!(actor.record(&step("sleep 10", "", CallClass::Exec)), None);
    }
}

const WAIT: CallClass = CallClass::Wait { max_calls: 60, within_ms: u64::MAX };

#[test]
fn a_repeated_call_after_waiting_is_a_loop_only_after_the_allowance() {
    for class in CLASSES {
        let mut actor = TestActor::default();
        let found: Vec<_> = (0..70)
            .flat_map(|_| {
                actor.record_all([step("status", "pending", class), step("sleep", "", WAIT)])
            })
            .collect();
        assert!(first_at_level(&found, LoopLevel::Soft) > Some(120), "{class:?}");
        assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(126), "{class:?}");
    }
}

#[test]
fn a_new_result_renews_the_allowance_for_waiting() {
    let mut actor = TestActor::default();
    for job in 0..10 {
        for _ in 0..50 {
            let result = format!("job {job} runs");
            assert_eq!(actor.record(&step("status", &result, CallClass::Exec)), None);
            assert_eq!(actor.record(&step("sleep", "", WAIT)), None);
        }
    }
}

#[test]
fn waiting_does_not_excuse_failures() {
    let mut actor = TestActor::default();
    let mut after_waiting = |failure: CompletedCall| {
        let found = actor.record(&failure);
        assert_eq!(actor.record(&step("sleep", "", WAIT)), None);
        found
    };
    let same: Vec<_> =
        (0..10).map(|_| after_waiting(failed("make", BROKEN, CallClass::Exec))).collect();
    assert_eq!(first_at_level(&same, LoopLevel::Soft), Some(3));
    assert_eq!(first_at_level(&same, LoopLevel::Hard), Some(5));
    assert_eq!(first_at_level(&same, LoopLevel::Infinite), Some(10));
    assert_eq!(same[4], Some((LoopLevel::Hard, LoopRule::SameFailure)));

    let storm: Vec<_> = (0..8)
        .map(|n| after_waiting(failed(&format!("query {n}"), REFUSED, CallClass::Exec)))
        .collect();
    assert_eq!(first_at_level(&storm, LoopLevel::Hard), Some(8));
    assert_eq!(storm[7], Some((LoopLevel::Hard, LoopRule::ErrorStorm)));

    let about = |n: i32| CompletedCall {
        coarse: Some(9),
        ..failed(&format!("sed {n}"), BROKEN, CallClass::Exec)
    };
    let coarse: Vec<_> = (0..20).map(|n| after_waiting(about(n))).collect();
    assert_eq!(first_at_level(&coarse, LoopLevel::Soft), Some(4));
    assert_eq!(first_at_level(&coarse, LoopLevel::Hard), None);
}

#[test]
fn a_refused_poll_counts_as_a_loop() {
    let poll = CallClass::Poll { until_changed: true, max_calls: 60, within_ms: u64::MAX };
    let found = TestActor::default().record_all((0..10).map(|_| failed("status", REFUSED, poll)));
    assert_eq!(first_at_level(&found, LoopLevel::Soft), Some(3));
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(5));
    // A poll for something that does not exist yet may continue.
    let found = TestActor::default().record_all((0..10).map(|_| failed("status", BROKEN, poll)));
    assert_eq!(first_at_level(&found, LoopLevel::Soft), None);
}

#[test]
fn transparent_calls_neither_cause_nor_end_a_loop() {
    let mut actor = TestActor::default();
    let mut found = Vec::new();
    for n in 0..5 {
        assert_eq!(actor.record(&step("think", &format!("{n}"), CallClass::Transparent)), None);
        found.push(actor.call("a", "x"));
    }
    assert_eq!(first_at_level(&found, LoopLevel::Hard), Some(5));
}

#[test]
fn coarse_repetition_is_soft_at_most() {
    let edits = |failed: bool| {
        let error = failed.then_some(BROKEN);
        let steps = (0..40).map(move |n| CompletedCall {
            coarse: Some(9),
            failed,
            error,
            ..step(&format!("sed {n}"), "", CallClass::Exec)
        });
        TestActor::default().record_all(steps)
    };
    assert_eq!(first_at_level(&edits(true), LoopLevel::Soft), Some(4));
    assert_eq!(first_at_level(&edits(false), LoopLevel::Soft), Some(12));
    assert_eq!(first_at_level(&edits(true), LoopLevel::Hard), None);
    assert_eq!(first_at_level(&edits(false), LoopLevel::Hard), None);
}

#[test]
fn a_message_of_a_person_resets_the_detector() {
    let mut actor = TestActor::default();
    for _ in 0..4 {
        actor.call("a", "x");
    }
    actor.detector.reset();
    assert_eq!(actor.call("a", "x"), None);
    assert_eq!(actor.call("a", "x"), None);
}
