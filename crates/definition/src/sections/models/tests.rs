//! Tests how the models and advisors of several layers are joined.

use jackline_engine::definition::ModelChoice;

use crate::layers::every_key::{Looser, looser};
use crate::layers::tests::*;
use crate::layers::{CombinedDefinition, DemandSubject, Layer, combine};

/// A list with one model that has these fields.
macro_rules! model {
    ($fields:literal) => {
        concat!("models: [ { ", $fields, " } ]")
    };
}

const ONE: &str = model!("provider: openai, model: m, budget: 5, timeout_seconds: 5, window: 5");

/// No model is stricter than another, so the models of the higher layer win.
pub(super) const LOOSER: [Looser; 11] = [
    looser("model.provider", ONE, model!("provider: gemini, model: m, budget: 5")),
    looser("model.worker", ONE, model!("worker: claude")),
    looser("model.worker", ONE, model!("worker: [agent]")),
    looser("model.model", ONE, model!("provider: openai, model: n, budget: 5")),
    looser("model.url", ONE, model!("provider: openai, model: m, url: 'https://evil.example'")),
    looser("model.key_env", ONE, model!("provider: openai, model: m, key_env: GITHUB_TOKEN")),
    looser("model.window", ONE, model!("provider: openai, model: m, window: 6")),
    looser("model.when", ONE, model!("provider: openai, model: m, when: [cost]")),
    looser("model.budget", ONE, model!("provider: openai, model: m, budget: 6")),
    looser("model.timeout_seconds", ONE, model!("provider: openai, model: m, timeout_seconds: 6")),
    // A fallback model would continue a session that the higher layer pauses.
    looser(
        "model.provider",
        "progress: {}",
        "models: [ { provider: openai, model: m }, { provider: openai, model: n } ]",
    ),
];

const MINE: &str = "models: [ { provider: openai, model: m } ]";
const STRANGE: &str = "models: [ { provider: anthropic, model: n }, { worker: [evil] }, { provider: openai, model: m, url: 'https://evil.example' } ]\nadvisor: { models: [ { provider: openai, model: m, key_env: GITHUB_TOKEN } ] }";

fn labels(combined: &CombinedDefinition) -> Vec<String> {
    combined.definition.choices.iter().map(ModelChoice::label).collect()
}

#[test]
fn models_that_run_or_send_something_wait_for_trust() {
    let low = load_definition(STRANGE);
    for layers in
        [vec![repository(low.clone())], vec![user(load_definition("")), repository(low.clone())]]
    {
        let combined = combine(layers, false);
        assert_eq!(labels(&combined), ["anthropic/n"]);
        assert_eq!(combined.definition.advisor, None);
        let untrusted = "ignored: the file is not trusted to run programs or to send data; trust would allow it";
        assert_eq!(
            ignored(&combined),
            ["evil", "openai/m", "openai/m"].map(|label| format!("model `{label}` {untrusted}"))
        );
    }
    let combined = trusted(&load_definition(""), &low);
    assert_eq!(labels(&combined), ["anthropic/n", "evil", "openai/m"]);
    assert!(combined.definition.advisor.is_some());
    // The layers of the owner and of the person need no trust.
    for layer in [user, managed] {
        assert_eq!(labels(&combine(vec![layer(low.clone())], false)).len(), 3);
    }
}

#[test]
fn the_models_of_the_higher_layer_win() {
    let (high, low) =
        (load_definition(MINE), load_definition("models: [ { provider: gemini, model: g } ]"));
    let combined = untrusted(&high, &low);
    assert_eq!(labels(&combined), ["openai/m"]);
    assert_eq!(
        ignored(&combined),
        ["models: gemini/g ignored: the user layer has its own models; trust would allow it"]
    );
    assert_eq!(labels(&trusted(&high, &low)), ["gemini/g"]);
    assert_eq!(labels(&untrusted(&load_definition(""), &low)), ["gemini/g"]);
}

#[test]
fn no_model_continues_a_session_that_a_higher_layer_pauses() {
    let advised = "advisor: { models: [ { provider: openai, model: m } ] }";
    let fallback = "models: [ { provider: openai, model: a }, { provider: openai, model: b } ]";
    for high in ["loops: { mode: enforce }", "progress: {}"] {
        let high = load_definition(high);
        for low in [advised, fallback] {
            let combined = untrusted(&high, &load_definition(low));
            assert_eq!(combined.definition, combine(vec![user(high.clone())], false).definition);
            let [line] = &ignored(&combined)[..] else { panic!("{low}") };
            assert!(line.contains("pauses a session without progress"), "{line}");
            assert_ne!(trusted(&high, &load_definition(low)).definition, high);
        }
        assert_eq!(labels(&untrusted(&high, &load_definition(MINE))), ["openai/m"]);
    }
    let combined = untrusted(
        &load_definition("loops: { mode: observe, history: 9 }"),
        &load_definition(advised),
    );
    assert!(combined.definition.advisor.is_some());
}

#[test]
fn an_advisor_gets_the_smaller_budget_and_the_shorter_transcript() {
    let advisor = |rest: &str| {
        load_definition(&format!(
            "advisor: {{ models: [ {{ provider: openai, model: m }} ]{rest} }}"
        ))
    };
    let high = advisor(", budget: 3, transcript_lines: 100");
    let low = advisor(", budget: 1, transcript_lines: 200");
    let expected = advisor(", budget: 1, transcript_lines: 100");
    assert_eq!(untrusted(&high, &low).definition, expected);
    assert_eq!(trusted(&high, &low).definition, low);
    assert_eq!(
        in_force(&untrusted(&high, &low), DemandSubject::Setting).last(),
        Some(&("advisor: openai/m, budget 1, 100 transcript lines".to_owned(), Layer::Repository))
    );
}
