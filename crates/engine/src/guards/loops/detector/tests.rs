//! Loops of every kind, and work that is none.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use super::*;

/// An actor whose calls come back one after the other.
#[derive(Default)]
struct Actor {
    detector: Detector,
    loops: Loops,
    steps: u64,
    batch: Option<u64>,
}

fn says(text: &str) -> Digest128 {
    let event = serde_json::json!({
        "session": "s", "event": "tool_finished", "call": "c", "status": "ok", "result": text,
    });
    let event = crate::wire::parse_line(event.to_string().as_bytes(), None).unwrap();
    crate::observe::observe(&event).result.unwrap().says()
}

fn step(call: &str, result: &str, class: Class) -> Step {
    Step {
        call: Digest128::of(call.as_bytes()),
        outcome: says(result),
        tool: 1,
        coarse: None,
        error: None,
        failed: false,
        class,
        at_ms: 0,
        batch: 0,
    }
}

impl Actor {
    fn note(&mut self, step: &Step) -> Option<(LoopLevel, LoopRule)> {
        self.steps += 1;
        let at_ms = self.steps * 1000;
        let step = Step { at_ms, batch: self.batch.unwrap_or(self.steps), ..*step };
        match self.detector.note(&step, &self.loops) {
            Noted::Taken(Some(found)) => Some((found.level, found.rule)),
            Noted::Taken(None) | Noted::PassedOver => None,
        }
    }

    fn call(&mut self, call: &str, result: &str) -> Option<(LoopLevel, LoopRule)> {
        self.note(&step(call, result, Class::Other))
    }

    fn all(&mut self, steps: impl IntoIterator<Item = Step>) -> Vec<Option<(LoopLevel, LoopRule)>> {
        steps.into_iter().map(|step| self.note(&step)).collect()
    }
}

/// The first step at which a level is reached, counted from one.
fn first(found: &[Option<(LoopLevel, LoopRule)>], level: LoopLevel) -> Option<usize> {
    let reached =
        |found: &Option<(LoopLevel, LoopRule)>| found.is_some_and(|found| found.0 >= level);
    found.iter().position(reached).map(|at| at + 1)
}

const CLASSES: [Class; 3] = [Class::ReadOnly, Class::Exec, Class::Other];

fn failed(call: &str, error: ErrorClass, class: Class) -> Step {
    Step { failed: true, error: Some(error), ..step(call, call, class) }
}

const REFUSED: ErrorClass = ErrorClass { fingerprint: 401, protocol: true };
const BROKEN: ErrorClass = ErrorClass { fingerprint: 7, protocol: false };

#[test]
fn the_same_call_with_the_same_result_climbs_at_three_five_and_ten() {
    for class in CLASSES {
        let found = Actor::default().all((0..12).map(|_| step("a", "same", class)));
        assert_eq!(first(&found, LoopLevel::Soft), Some(3), "{class:?}");
        assert_eq!(first(&found, LoopLevel::Hard), Some(5), "{class:?}");
        assert_eq!(first(&found, LoopLevel::Infinite), Some(10), "{class:?}");
        assert!(found.iter().flatten().all(|found| found.1.word() == "repeat"), "{found:?}");
    }
}

#[test]
fn a_cycle_is_hard_at_its_third_repetition() {
    for class in CLASSES {
        for period in 2..=8_usize {
            let steps = (0..3 * period).map(|n| step(&format!("{}", n % period), "same", class));
            let found = Actor::default().all(steps);
            assert_eq!(first(&found, LoopLevel::Hard), Some(3 * period), "{class:?} {period}");
            let last = found.last().unwrap().unwrap();
            assert_eq!(last, (LoopLevel::Hard, LoopRule::Cycle), "{class:?} {period}");
        }
    }
}

#[test]
fn a_cycle_that_never_ends_is_infinite() {
    let found =
        Actor::default().all((0..20).map(|n| step(&format!("{}", n % 2), "x", Class::Exec)));
    assert_eq!(first(&found, LoopLevel::Infinite), Some(20));
}

#[test]
fn a_long_chain_is_a_word_the_second_time_and_hard_the_third() {
    let steps = (0..36).map(|n| step(&format!("{}", n % 12), "same", Class::Exec));
    let found = Actor::default().all(steps);
    assert_eq!(first(&found, LoopLevel::Soft), Some(24));
    assert_eq!(found[23], Some((LoopLevel::Soft, LoopRule::DuplicateChain)));
    assert_eq!(first(&found, LoopLevel::Hard), Some(36));
}

#[test]
fn a_process_number_in_the_output_does_not_hide_a_loop() {
    let mut actor = Actor::default();
    let results = (0..5).map(|n| format!("started server, pid {}, took {n}.{n}s", 4711 + n * 13));
    let found: Vec<_> = results.map(|result| actor.call("serve", &result)).collect();
    assert_eq!(first(&found, LoopLevel::Hard), Some(5));
}

#[test]
fn a_thousand_polls_whose_result_changes_are_never_hard() {
    for class in CLASSES {
        let steps = (0..1000).map(|n| step("status", &format!("{n} of 1000 done"), class));
        let found = Actor::default().all(steps);
        assert_eq!(first(&found, LoopLevel::Hard), None, "{class:?}");
        assert_eq!(first(&found, LoopLevel::Soft), Some(8), "{class:?}");
    }
    let poll = Class::Poll { until_changed: true, max_calls: 50, within_ms: 3_600_000 };
    let steps = (0..1000).map(|n| step("status", &format!("{n} of 1000 done"), poll));
    assert!(Actor::default().all(steps).iter().all(Option::is_none));
}

#[test]
fn fifty_pages_of_a_listing_are_nothing() {
    for class in CLASSES {
        let pages = (1..=50).map(|n| Step {
            coarse: Some(1),
            ..step(&format!("list page {n}"), &format!("page {n} of 50"), class)
        });
        assert!(Actor::default().all(pages).iter().all(Option::is_none), "{class:?}");
    }
}

#[test]
fn a_refusal_with_other_arguments_is_hard_by_the_eighth_call() {
    for class in CLASSES {
        let found =
            Actor::default().all((0..8).map(|n| failed(&format!("query {n}"), REFUSED, class)));
        assert_eq!(first(&found, LoopLevel::Soft), Some(5), "{class:?}");
        assert_eq!(first(&found, LoopLevel::Hard), Some(8), "{class:?}");
    }
}

#[test]
fn other_errors_of_what_runs_anything_are_no_storm() {
    let storm =
        |class| Actor::default().all((0..20).map(|n| failed(&format!("run {n}"), BROKEN, class)));
    assert!(storm(Class::Exec).iter().all(Option::is_none));
    assert_eq!(first(&storm(Class::Other), LoopLevel::Hard), Some(8));
}

#[test]
fn errors_of_one_batch_count_once() {
    let mut actor = Actor::default();
    for batch in 1..=4 {
        actor.batch = Some(batch);
        let found =
            actor.all((0..5).map(|n| failed(&format!("{batch} {n}"), REFUSED, Class::Other)));
        assert!(found.iter().all(Option::is_none), "{batch}: {found:?}");
    }
    actor.batch = Some(5);
    let fifth = actor.note(&failed("again", REFUSED, Class::Other));
    assert_eq!(fifth, Some((LoopLevel::Soft, LoopRule::ErrorStorm)));
}

#[test]
fn the_same_failing_call_is_found_whatever_is_done_in_between() {
    let mut actor = Actor::default();
    let mut found = Vec::new();
    for n in 0..5 {
        actor.call(&format!("look at {n}"), &format!("{n}"));
        let error = ErrorClass { fingerprint: n, protocol: false };
        found.push(actor.note(&Step {
            outcome: says(&format!("failed for reason {n}")),
            ..failed("edit", error, Class::Other)
        }));
    }
    assert_eq!(first(&found, LoopLevel::Soft), Some(3));
    assert_eq!(first(&found, LoopLevel::Hard), Some(5));
    assert_eq!(found[4], Some((LoopLevel::Hard, LoopRule::SameFailure)));
}

#[test]
fn a_test_that_fails_after_every_change_is_work() {
    let mut actor = Actor::default();
    for n in 0..40 {
        assert_eq!(actor.call(&format!("edit {n}"), "ok"), None);
        assert_eq!(actor.note(&failed("pytest", BROKEN, Class::Exec)), None, "{n}");
        assert_eq!(actor.note(&step("cargo fmt", "", Class::Exec)), None, "{n}");
    }
}

#[test]
fn nothing_new_in_any_order_is_found() {
    let mut actor = Actor::default();
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(actor.call(name, "x"), None);
    }
    let found: Vec<_> =
        ["c", "a", "d", "b", "e"].iter().map(|name| actor.call(name, "x")).collect();
    assert_eq!(first(&found, LoopLevel::Soft), Some(3));
    assert_eq!(found[4], Some((LoopLevel::Hard, LoopRule::Stagnation)));
}

#[test]
fn reading_everything_once_more_is_worth_a_word_at_most() {
    let read = |n: usize| step(&format!("read {n}"), &format!("file {n}"), Class::ReadOnly);
    let mut actor = Actor::default();
    actor.all((0..12).map(read));
    let again = actor.all((0..12).rev().map(read));
    assert_eq!(first(&again, LoopLevel::Soft), Some(5));
    assert_eq!(first(&again, LoopLevel::Hard), None);
    let third = actor.all((0..12).map(|n| read((n * 5) % 12)));
    assert_eq!(first(&third, LoopLevel::Hard), Some(1));
}

#[test]
fn a_batch_asks_before_it_knows() {
    let mut actor = Actor { batch: Some(1), ..Actor::default() };
    for _ in 0..10 {
        assert_eq!(actor.call("a", "x"), None);
        assert_eq!(actor.call("b", "x"), None);
    }
}

#[test]
fn a_poll_may_wait_as_long_as_it_was_given() {
    let poll = Class::Poll { until_changed: true, max_calls: 20, within_ms: u64::MAX };
    let mut actor = Actor::default();
    let found = actor.all((0..30).map(|_| step("status", "pending", poll)));
    assert_eq!(first(&found, LoopLevel::Soft), Some(23));
    assert_eq!(first(&found, LoopLevel::Hard), Some(25));
    // Something happened: it may wait again.
    assert_eq!(actor.note(&step("status", "running", poll)), None);
    assert!(
        actor.all((0..19).map(|_| step("status", "running", poll))).iter().all(Option::is_none)
    );

    let short = Class::Poll { until_changed: true, max_calls: u32::MAX, within_ms: 10_000 };
    let found = Actor::default().all((0..20).map(|_| step("status", "pending", short)));
    assert_eq!(first(&found, LoopLevel::Soft), Some(14), "a second apart, and three more");
}

#[test]
fn what_is_done_between_two_polls_is_no_loop() {
    let poll = Class::Poll { until_changed: true, max_calls: 30, within_ms: u64::MAX };
    let mut actor = Actor::default();
    for _ in 0..30 {
        assert_eq!(actor.note(&step("status", "pending", poll)), None);
        assert_eq!(actor.note(&step("sleep 10", "", Class::Exec)), None);
    }
}

const WAIT: Class = Class::Wait { max_calls: 60, within_ms: u64::MAX };

#[test]
fn asking_again_after_waiting_is_no_loop_until_too_long_was_waited() {
    for class in CLASSES {
        let mut actor = Actor::default();
        let found: Vec<_> = (0..70)
            .flat_map(|_| actor.all([step("status", "pending", class), step("sleep", "", WAIT)]))
            .collect();
        assert!(first(&found, LoopLevel::Soft) > Some(120), "{class:?}");
        assert_eq!(first(&found, LoopLevel::Hard), Some(126), "{class:?}");
    }
}

#[test]
fn whoever_waited_for_something_may_wait_anew() {
    let mut actor = Actor::default();
    for job in 0..10 {
        for _ in 0..50 {
            let result = format!("job {job} runs");
            assert_eq!(actor.note(&step("status", &result, Class::Exec)), None);
            assert_eq!(actor.note(&step("sleep", "", WAIT)), None);
        }
    }
}

#[test]
fn waiting_excuses_no_failure() {
    let mut actor = Actor::default();
    let mut after_waiting = |fails: Step| {
        let found = actor.note(&fails);
        assert_eq!(actor.note(&step("sleep", "", WAIT)), None);
        found
    };
    let same: Vec<_> =
        (0..10).map(|_| after_waiting(failed("make", BROKEN, Class::Exec))).collect();
    assert_eq!(first(&same, LoopLevel::Soft), Some(3));
    assert_eq!(first(&same, LoopLevel::Hard), Some(5));
    assert_eq!(first(&same, LoopLevel::Infinite), Some(10));
    assert_eq!(same[4], Some((LoopLevel::Hard, LoopRule::SameFailure)));

    let storm: Vec<_> = (0..8)
        .map(|n| after_waiting(failed(&format!("query {n}"), REFUSED, Class::Exec)))
        .collect();
    assert_eq!(first(&storm, LoopLevel::Hard), Some(8));
    assert_eq!(storm[7], Some((LoopLevel::Hard, LoopRule::ErrorStorm)));

    let about =
        |n: i32| Step { coarse: Some(9), ..failed(&format!("sed {n}"), BROKEN, Class::Exec) };
    let coarse: Vec<_> = (0..20).map(|n| after_waiting(about(n))).collect();
    assert_eq!(first(&coarse, LoopLevel::Soft), Some(5));
    assert_eq!(first(&coarse, LoopLevel::Hard), None);
}

#[test]
fn a_poll_that_is_refused_waits_for_nothing() {
    let poll = Class::Poll { until_changed: true, max_calls: 60, within_ms: u64::MAX };
    let found = Actor::default().all((0..10).map(|_| failed("status", REFUSED, poll)));
    assert_eq!(first(&found, LoopLevel::Soft), Some(3));
    assert_eq!(first(&found, LoopLevel::Hard), Some(5));
    // What is not there yet may come.
    let found = Actor::default().all((0..10).map(|_| failed("status", BROKEN, poll)));
    assert_eq!(first(&found, LoopLevel::Soft), None);
}

#[test]
fn thinking_neither_makes_nor_breaks_a_loop() {
    let mut actor = Actor::default();
    let mut found = Vec::new();
    for n in 0..5 {
        assert_eq!(actor.note(&step("think", &format!("{n}"), Class::Transparent)), None);
        found.push(actor.call("a", "x"));
    }
    assert_eq!(first(&found, LoopLevel::Hard), Some(5));
}

#[test]
fn calls_about_the_same_with_the_same_end_are_worth_a_word_and_no_more() {
    let edits = |failed: bool| {
        let error = failed.then_some(BROKEN);
        let steps = (0..40).map(move |n| Step {
            coarse: Some(9),
            failed,
            error,
            ..step(&format!("sed {n}"), "", Class::Exec)
        });
        Actor::default().all(steps)
    };
    assert_eq!(first(&edits(true), LoopLevel::Soft), Some(5));
    assert_eq!(first(&edits(false), LoopLevel::Soft), Some(12));
    assert_eq!(first(&edits(true), LoopLevel::Hard), None);
    assert_eq!(first(&edits(false), LoopLevel::Hard), None);
}

#[test]
fn a_person_makes_it_new() {
    let mut actor = Actor::default();
    for _ in 0..4 {
        actor.call("a", "x");
    }
    actor.detector.human();
    assert_eq!(actor.call("a", "x"), None);
    assert_eq!(actor.call("a", "x"), None);
}
