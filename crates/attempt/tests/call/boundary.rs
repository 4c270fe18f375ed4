//! What crosses the border, and what does not.

use jackline_attempt::{Budgets, InternalOutcome, OutcomeError, Subtype, egress};
use serde_json::json;

use crate::world::{Answer, World, mutation, retriable};

fn public(outcome: &InternalOutcome) -> String {
    serde_json::to_string(&egress(outcome).0).unwrap()
}

#[test]
fn an_exhausted_call_is_told_in_general_words_and_logged_in_exact_ones() {
    let (outcome, mut trace) = World::default().play(&Budgets::default(), &[mutation()]);
    let (said, normalization) = egress(&outcome);
    let expected = json!({
        "status": "error",
        "error_type": "request_not_completed",
        "error_message": "This request couldn't be completed after multiple attempts.",
        "retriable": false,
        "normalized": true,
        "normalization_policy": "guardrail_exhaustion_boundary_v1",
    });
    assert_eq!(serde_json::to_value(said).unwrap(), expected);
    let normalization = normalization.unwrap();
    assert_eq!(normalization.guardrail_subtype, "singleton_method_mutation");
    assert_eq!(normalization.guardrail_recovery_attempts, 1);
    trace.told(Some(&normalization));
    assert!(trace.user_outcome_normalized);
    let inside = serde_json::to_string(&(outcome, trace)).unwrap();
    assert!(inside.contains("singleton methods on Agent"), "{inside}");
}

#[test]
fn which_objection_it_was_changes_no_public_byte() {
    let said: Vec<String> = Subtype::ALL
        .iter()
        .filter(|subtype| subtype.class() == jackline_engine::verdict::Class::Recoverable)
        .flat_map(|subtype| {
            let text = format!("RAW-{}", subtype.name());
            [Answer::Bad(*subtype, text.clone()), Answer::BadAfter(*subtype, text)]
        })
        .map(|answer| public(&World::default().play(&Budgets::default(), &[answer]).0))
        .collect();
    assert!(said.len() > 10);
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
}

#[test]
fn a_delegates_failure_stays_raw_for_its_parent_and_is_normalised_at_the_top() {
    let (child, _) = World::default().play(&Budgets::default(), &[mutation()]);
    assert_eq!(
        child.error().unwrap().metadata["last_violation_subtype"],
        "singleton_method_mutation"
    );

    let (parent, trace) =
        World::default().play(&Budgets::default(), &[Answer::Child(child.clone())]);
    assert_eq!(parent, child, "as raw as it was");
    assert_eq!(trace.attempt_id, 1, "the delegate had its attempts");
    assert!(public(&parent).contains("couldn't be completed after multiple attempts"));
    assert!(!public(&parent).contains("singleton"));

    // Words of the inside that an artifact repeats as its own are no better.
    let forged = OutcomeError::new("guardrail_retry_exhausted", "RAW-CHILD", true);
    let (parent, _) = World::default().play(&Budgets::default(), &[Answer::Error(forged)]);
    assert!(!public(&parent).contains("RAW"), "{}", public(&parent));
}

#[test]
fn what_was_not_retried_is_not_called_multiple_attempts() {
    let missing = Answer::Bad(Subtype::MissingCredentials, "RAW-KEY".to_owned());
    let (outcome, _) = World::default().play(&Budgets::default(), &[missing]);
    assert!(public(&outcome).contains("\"This request couldn't be completed.\""));
}

#[test]
fn what_an_artifact_says_itself_is_said() {
    let error = OutcomeError::new("not_found", "no such film", false);
    let (outcome, _) = World::default().play(&Budgets::default(), &[Answer::Error(error)]);
    let said = egress(&outcome);
    assert_eq!((said.0.error_message.as_deref(), said.1), (Some("no such film"), None));
    let (outcome, _) = World::default().play(&Budgets::default(), &[retriable("fetch_failed")]);
    assert!(!public(&outcome).contains("RAW"));
}
