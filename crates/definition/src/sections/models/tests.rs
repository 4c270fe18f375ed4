//! Models and advisors of several layers.

use jackline_engine::definition::ModelChoice;

use crate::layers::every_key::{Looser, looser};
use crate::layers::tests::*;
use crate::layers::{Combined, Layer, Subject, combine};

/// The one model of the higher layer, or another one in its place.
macro_rules! model {
    ($fields:literal) => {
        concat!("models: [ { ", $fields, " } ]")
    };
}

const ONE: &str = model!("provider: openai, model: m, budget: 5, timeout_seconds: 5, window: 5");

/// No model is stricter than another, so the models of the higher layer hold.
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
    // A further one would go on where the higher layer pauses.
    looser(
        "model.provider",
        "progress: {}",
        "models: [ { provider: openai, model: m }, { provider: openai, model: n } ]",
    ),
];

const MINE: &str = "models: [ { provider: openai, model: m } ]";
const STRANGE: &str = "models: [ { provider: anthropic, model: n }, { worker: [evil] }, { provider: openai, model: m, url: 'https://evil.example' } ]\nadvisor: { models: [ { provider: openai, model: m, key_env: GITHUB_TOKEN } ] }";

fn labels(combined: &Combined) -> Vec<String> {
    combined.definition.choices.iter().map(ModelChoice::label).collect()
}

#[test]
fn what_runs_or_sends_something_waits_for_trust() {
    let low = of_file(STRANGE);
    for layers in [vec![repository(low.clone())], vec![user(of_file("")), repository(low.clone())]]
    {
        let combined = combine(layers, false);
        assert_eq!(labels(&combined), ["anthropic/n"]);
        assert_eq!(combined.definition.advisor, None);
        let untrusted = "ignored: nobody has trusted this file to run it or to send anything there; trust would let it";
        assert_eq!(
            ignored(&combined),
            ["evil", "openai/m", "openai/m"].map(|label| format!("model `{label}` {untrusted}"))
        );
    }
    let combined = trusted(&of_file(""), &low);
    assert_eq!(labels(&combined), ["anthropic/n", "evil", "openai/m"]);
    assert!(combined.definition.advisor.is_some());
    // The layers of the owner and of the person need no trust.
    for layer in [user, managed] {
        assert_eq!(labels(&combine(vec![layer(low.clone())], false)).len(), 3);
    }
}

#[test]
fn the_models_of_the_higher_layer_hold() {
    let (high, low) = (of_file(MINE), of_file("models: [ { provider: gemini, model: g } ]"));
    let combined = untrusted(&high, &low);
    assert_eq!(labels(&combined), ["openai/m"]);
    assert_eq!(
        ignored(&combined),
        ["models: gemini/g ignored: the user layer has models of its own; trust would let it"]
    );
    assert_eq!(labels(&trusted(&high, &low)), ["gemini/g"]);
    assert_eq!(labels(&untrusted(&of_file(""), &low)), ["gemini/g"]);
}

#[test]
fn nobody_goes_on_where_a_higher_layer_wants_a_person_to_look() {
    let advised = "advisor: { models: [ { provider: openai, model: m } ] }";
    let further = "models: [ { provider: openai, model: a }, { provider: openai, model: b } ]";
    for high in ["loops: { mode: enforce }", "progress: {}"] {
        let high = of_file(high);
        for low in [advised, further] {
            let combined = untrusted(&high, &of_file(low));
            assert_eq!(combined.definition, combine(vec![user(high.clone())], false).definition);
            let [line] = &ignored(&combined)[..] else { panic!("{low}") };
            assert!(line.contains("pauses a session that gets nowhere"), "{line}");
            assert_ne!(trusted(&high, &of_file(low)).definition, high);
        }
        assert_eq!(labels(&untrusted(&high, &of_file(MINE))), ["openai/m"]);
    }
    let combined = untrusted(&of_file("loops: { mode: observe, history: 9 }"), &of_file(advised));
    assert!(combined.definition.advisor.is_some());
}

#[test]
fn an_advisor_is_asked_as_seldom_and_about_as_little_as_either_says() {
    let advisor = |rest: &str| {
        of_file(&format!("advisor: {{ models: [ {{ provider: openai, model: m }} ]{rest} }}"))
    };
    let high = advisor(", budget: 3, transcript_lines: 100");
    let low = advisor(", budget: 1, transcript_lines: 200");
    let kept = advisor(", budget: 1, transcript_lines: 100");
    assert_eq!(untrusted(&high, &low).definition, kept);
    assert_eq!(trusted(&high, &low).definition, low);
    assert_eq!(
        in_force(&untrusted(&high, &low), Subject::Setting).last(),
        Some(&("advisor: openai/m, 1 times, shown 100 lines".to_owned(), Layer::Repository))
    );
}
