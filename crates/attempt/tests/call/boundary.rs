//! Tests of what crosses the border, and what does not.

use jackline_attempt::{
    AttemptBudgets, GuardrailCause, InternalOutcome, OutcomeError, RULE_SUBTYPE, Subtype, egress,
};
use jackline_engine::verdict::ViolationClass;
use serde_json::json;

use crate::world::{CallWorld, ScriptedArtifact, mutation, retriable};

fn public(outcome: &InternalOutcome) -> String {
    serde_json::to_string(&egress(outcome)).unwrap()
}

#[test]
fn an_exhausted_call_has_a_general_public_text_and_an_exact_log() {
    let (outcome, mut trace) =
        CallWorld::default().run_call(&AttemptBudgets::default(), &[mutation()]);
    let public = egress(&outcome);
    let expected = json!({
        "status": "error",
        "error_type": "request_not_completed",
        "error_message": "This request couldn't be completed after multiple attempts.",
        "retriable": false,
        "normalized": true,
        "normalization_policy": "guardrail_exhaustion_boundary_v1",
        "guardrail_class": "recoverable_guardrail",
        "guardrail_subtype": "singleton_method_mutation",
        "guardrail_recovery_attempts": 1,
    });
    assert_eq!(serde_json::to_value(&public).unwrap(), expected);
    assert_eq!(trace.guardrail_recovery_attempts, 1, "the log has the same count");
    trace.record_public_outcome(&public);
    assert!(trace.user_outcome_normalized);
    let inside = serde_json::to_string(&(outcome, trace)).unwrap();
    assert!(inside.contains("singleton methods on Agent"), "{inside}");
}

#[test]
fn a_public_subtype_is_a_word_of_jackline_and_no_name_of_a_rule() {
    let public_subtype = |subtype: &str| {
        let public = egress(&InternalOutcome::InternalError {
            error: OutcomeError::new("x", "y", false),
            guardrail: Some(GuardrailCause {
                class: ViolationClass::Terminal,
                subtype: subtype.to_owned(),
            }),
            guardrail_recovery_attempts: 0,
            retries: 0,
        });
        public.guardrail.unwrap().subtype
    };
    for subtype in Subtype::ALL {
        assert_eq!(public_subtype(subtype.name()), subtype.name());
    }
    for rule in ["git/push-force", "vault-of-acme", ""] {
        assert_eq!(public_subtype(rule), RULE_SUBTYPE);
    }
}

#[test]
fn only_the_subtype_of_a_public_outcome_depends_on_the_violation() {
    let texts: Vec<String> = Subtype::ALL
        .iter()
        .filter(|subtype| subtype.class() == ViolationClass::Recoverable)
        .flat_map(|subtype| {
            let text = format!("RAW-{}", subtype.name());
            [
                ScriptedArtifact::Bad(*subtype, text.clone()),
                ScriptedArtifact::BadAfter(*subtype, text),
            ]
        })
        .map(|answer| {
            let (outcome, _) = CallWorld::default().run_call(&AttemptBudgets::default(), &[answer]);
            let mut public = egress(&outcome);
            assert!(!serde_json::to_string(&public).unwrap().contains("RAW"), "{public:?}");
            public.guardrail.as_mut().unwrap().subtype.clear();
            serde_json::to_string(&public).unwrap()
        })
        .collect();
    assert!(texts.len() > 10);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

#[test]
fn a_failure_of_a_delegate_is_detailed_for_its_parent_and_general_at_the_top() {
    let (child, _) = CallWorld::default().run_call(&AttemptBudgets::default(), &[mutation()]);
    assert_eq!(
        child.error().unwrap().metadata["last_violation_subtype"],
        "singleton_method_mutation"
    );

    let (parent, trace) = CallWorld::default()
        .run_call(&AttemptBudgets::default(), &[ScriptedArtifact::Child(child.clone())]);
    assert_eq!(parent, child, "the parent passes it on unchanged");
    assert_eq!(trace.attempt_id, 1, "the delegate already had its attempts");
    assert!(public(&parent).contains("couldn't be completed after multiple attempts"));
    assert!(!public(&parent).contains("singleton methods"));

    // An artifact that returns an internal error type as its own must not leak it.
    let forged = OutcomeError::new("guardrail_retry_exhausted", "RAW-CHILD", true);
    let (parent, _) = CallWorld::default()
        .run_call(&AttemptBudgets::default(), &[ScriptedArtifact::Error(forged)]);
    assert!(!public(&parent).contains("RAW"), "{}", public(&parent));
}

#[test]
fn the_public_text_mentions_several_attempts_only_after_a_retry() {
    let missing = ScriptedArtifact::Bad(Subtype::MissingCredentials, "RAW-KEY".to_owned());
    let (outcome, _) = CallWorld::default().run_call(&AttemptBudgets::default(), &[missing]);
    assert!(public(&outcome).contains("\"This request couldn't be completed.\""));
}

#[test]
fn an_error_that_the_artifact_returns_is_public() {
    let error = OutcomeError::new("not_found", "no such film", false);
    let (outcome, _) = CallWorld::default()
        .run_call(&AttemptBudgets::default(), &[ScriptedArtifact::Error(error)]);
    let outcome = egress(&outcome);
    assert_eq!(
        (outcome.error_message.as_deref(), outcome.normalized),
        (Some("no such film"), false)
    );
    let (outcome, _) =
        CallWorld::default().run_call(&AttemptBudgets::default(), &[retriable("fetch_failed")]);
    assert!(!public(&outcome).contains("RAW"));
}

#[test]
fn a_public_outcome_says_what_the_internal_one_says_about_another_request() {
    let answers = [ScriptedArtifact::Down("provider"), ScriptedArtifact::Down("provider")];
    let (outcome, trace) = CallWorld::default().run_call(&AttemptBudgets::default(), &answers);
    let public = egress(&outcome);
    let raw = outcome.error().unwrap();
    assert_eq!((public.retriable, public.normalized), (raw.retriable, true));
    assert!(raw.retriable, "another request may help when the provider failed");
    // No guardrail ended the call.
    assert_eq!((&public.guardrail, public.guardrail_recovery_attempts), (&None, Some(0)));
    assert_eq!(trace.guardrail_recovery_attempts, 0);
}
