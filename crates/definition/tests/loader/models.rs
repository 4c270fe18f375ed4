//! Tests the errors in `models` and `advisor`.

use jackline_definition::load;

use crate::{check, check_shapes};

#[test]
fn a_model_is_a_provider_with_its_model_or_a_worker() {
    check(&[
        ("models: []", "ok"),
        ("models: [ { provider: scripted, model: s } ]", "ok"),
        ("models: [ { worker: claude } ]", "ok"),
        ("models: [ { worker: any-other-client } ]", "ok"),
        ("models: [ { worker: claude }, { worker: claude, model: haiku } ]", "ok"),
        (
            "models: [ { provider: openai } ]",
            "f:1:11: a `provider` needs a `model`; write the name that the provider uses",
        ),
        (
            "models: [ { worker: claude, url: 'https://a.example', window: 5 } ]",
            "f:1:34: a worker can't have `url`; use it with a `provider`\nf:1:63: a worker can't have `window`; use it with a `provider`",
        ),
        (
            "models: [ { provider: openai, model: m }, { provider: openai, model: m, budget: 2 } ]",
            "f:1:43: `openai/m` occurs twice in `models`; remove one of them",
        ),
        (
            "models: [ { worker: [/a/agent] }, { worker: [/b/agent, -v] } ]",
            "f:1:35: `agent` occurs twice in `models`; remove one of them",
        ),
        (
            "models: [ { worker: ./agent } ]",
            "f:1:21: `worker` can't be `./agent`; write another agent as a list that starts with the program: `[agent, --headless]`",
        ),
    ]);
    check_shapes(&[
        ("models: [ {} ]", "f:1:11: a model needs a `provider` or a `worker`; add one of them"),
        (
            "models: [ { provider: openai, model: m, worker: claude } ]",
            "f:1:49: a model can't have both `provider` and `worker`",
        ),
        (
            "models: [ { provider: opnai, model: m } ]",
            "f:1:23: `provider` can't be `opnai`; did you mean `openai`?",
        ),
        ("models: [ { worker: [] } ]", "f:1:21: `worker` has 0 words; 1 to 64 are supported"),
        (
            "models: [ { provider: gemini, model: m, url: 'ftp://x' } ]",
            "f:1:46: `url` is not a web address; write it as `https://host/path`",
        ),
        (
            "models: [ { provider: gemini, model: m, key_env: 'sk-12-secret' } ]",
            "f:1:50: `key_env` is not the name of an environment variable; write the name of the variable, such as `ANTHROPIC_API_KEY`, never the key itself",
        ),
        ("models: [ { provider: gemini, model: m, window: 0 } ]", "f:1:49: `window` can't be 0"),
        (
            "models: [ { provider: gemini, model: m, when: [overlode] } ]",
            "f:1:48: a reason in `when` can't be `overlode`; did you mean `overload`?",
        ),
        (
            "models: [ { provider: gemini, model: m, when: [] } ]",
            "f:1:47: `when` is empty; remove it, or name a reason",
        ),
        (
            "models: [ { provider: gemini, model: m, budget: 0 } ]",
            "f:1:49: `models.budget` can't be 0; use a number from 1 to 4294967295",
        ),
        (
            "models: [ { provider: gemini, model: m, timeout_seconds: 86401 } ]",
            "f:1:58: `models.timeout_seconds` can't be 86401; use a number from 1 to 86400",
        ),
    ]);
}

#[test]
fn the_number_of_models_is_limited() {
    let list = |count: usize| {
        let model = |number| format!("{{ provider: openai, model: m{number} }}");
        format!("models: [ {} ]", (0..count).map(model).collect::<Vec<_>>().join(", "))
    };
    check(&[
        (&list(16), "ok"),
        (&list(17), "f:1:9: 17 models in `models`; at most 16 are supported"),
    ]);
}

#[test]
fn an_advisor_has_models_and_limits() {
    let advisor = load(b"advisor: { models: [ { provider: openai, model: m } ] }", "f")
        .ok()
        .and_then(|definition| definition.advisor);
    let numbers = advisor.map(|advisor| (advisor.transcript_lines, advisor.budget));
    assert_eq!(numbers, Some((500, 2)));
    check(&[
        ("advisor: null", "ok"),
        ("advisor: { models: [ { provider: openai, model: m } ], budget: 0 }", "ok"),
        (
            "advisor: { models: [ { worker: claude } ] }",
            "f:1:20: `claude` is a worker and can't be an advisor; name a `provider` and its `model`",
        ),
    ]);
    check_shapes(&[
        (
            "advisor: {}",
            "f:1:10: `advisor` has no models; add one to `advisor.models`, or remove `advisor`",
        ),
        (
            "advisor: { models: [] }",
            "f:1:10: `advisor` has no models; add one to `advisor.models`, or remove `advisor`",
        ),
        (
            "advisor: { models: [ { provider: openai, model: m } ], budget: 1001 }",
            "f:1:64: `advisor.budget` can't be 1001; use a number from 0 to 1000",
        ),
        (
            "advisor: { models: [ { provider: openai, model: m } ], transcript_lines: 0 }",
            "f:1:74: `advisor.transcript_lines` can't be 0; use a number from 1 to 100000",
        ),
    ]);
}
