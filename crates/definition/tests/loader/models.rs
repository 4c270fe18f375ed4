//! Who does the work, and who is asked: what is wrong with the keys.

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
            "f:1:11: a `provider` has no `model`; name it as the provider does",
        ),
        (
            "models: [ { worker: claude, url: 'https://a.example', window: 5 } ]",
            "f:1:34: a worker has no `url`; it goes with a `provider`\nf:1:63: a worker has no `window`; it goes with a `provider`",
        ),
        (
            "models: [ { provider: openai, model: m }, { provider: openai, model: m, budget: 2 } ]",
            "f:1:43: `openai/m` is in `models` twice; leave one of them out",
        ),
        (
            "models: [ { worker: [/a/agent] }, { worker: [/b/agent, -v] } ]",
            "f:1:35: `agent` is in `models` twice; leave one of them out",
        ),
        (
            "models: [ { worker: ./agent } ]",
            "f:1:21: `worker` can't be `./agent`; write another agent as a list, the program first: `[agent, --headless]`",
        ),
    ]);
    check_shapes(&[
        ("models: [ {} ]", "f:1:11: a model has no `provider` and no `worker`; name one of them"),
        (
            "models: [ { provider: openai, model: m, worker: claude } ]",
            "f:1:49: a model has a `provider` or a `worker`, not both",
        ),
        (
            "models: [ { provider: opnai, model: m } ]",
            "f:1:23: `provider` can't be `opnai`; did you mean `openai`?",
        ),
        ("models: [ { worker: [] } ]", "f:1:21: `worker` has 0 words; 1 to 64 are taken"),
        (
            "models: [ { provider: gemini, model: m, url: 'ftp://x' } ]",
            "f:1:46: `url` is no address of a web server; write it as `https://host/path`",
        ),
        (
            "models: [ { provider: gemini, model: m, key_env: 'sk-12-secret' } ]",
            "f:1:50: `key_env` is no name of an environment variable; write the name, such as `ANTHROPIC_API_KEY`, and never the key",
        ),
        ("models: [ { provider: gemini, model: m, window: 0 } ]", "f:1:49: `window` can't be 0"),
        (
            "models: [ { provider: gemini, model: m, when: [overlode] } ]",
            "f:1:48: a reason in `when` can't be `overlode`; did you mean `overload`?",
        ),
        (
            "models: [ { provider: gemini, model: m, when: [] } ]",
            "f:1:47: `when` names nothing; leave it out, or name a reason",
        ),
        (
            "models: [ { provider: gemini, model: m, budget: 0 } ]",
            "f:1:49: `models.budget` can't be 0; from 1 to 4294967295",
        ),
        (
            "models: [ { provider: gemini, model: m, timeout_seconds: 86401 } ]",
            "f:1:58: `models.timeout_seconds` can't be 86401; from 1 to 86400",
        ),
    ]);
}

#[test]
fn there_are_not_more_models_than_anybody_tries() {
    let list = |count: usize| {
        let model = |number| format!("{{ provider: openai, model: m{number} }}");
        format!("models: [ {} ]", (0..count).map(model).collect::<Vec<_>>().join(", "))
    };
    check(&[(&list(16), "ok"), (&list(17), "f:1:9: 17 models in `models`; at most 16 are kept")]);
}

#[test]
fn an_advisor_is_a_model_that_is_asked_so_often() {
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
            "f:1:20: `claude` can't advise: it is a worker; name a `provider` and its `model`",
        ),
    ]);
    check_shapes(&[
        (
            "advisor: {}",
            "f:1:10: `advisor` has no models; name at least one in `advisor.models`, or leave `advisor` out",
        ),
        (
            "advisor: { models: [] }",
            "f:1:10: `advisor` has no models; name at least one in `advisor.models`, or leave `advisor` out",
        ),
        (
            "advisor: { models: [ { provider: openai, model: m } ], budget: 1001 }",
            "f:1:64: `advisor.budget` can't be 1001; from 0 to 1000",
        ),
        (
            "advisor: { models: [ { provider: openai, model: m } ], transcript_lines: 0 }",
            "f:1:74: `advisor.transcript_lines` can't be 0; from 1 to 100000",
        ),
    ]);
}
