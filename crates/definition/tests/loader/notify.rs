//! Tests the section `notify`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use jackline_definition::load;
use jackline_engine::definition::{Notifier, Occasion};

use crate::{check, check_shapes};

fn notifiers(source: &str) -> Vec<Notifier> {
    load(source.as_bytes(), "f").unwrap().notify
}

#[test]
fn a_person_is_notified_of_everything_by_default() {
    let parsed = notifiers("notify: { command: tell-me }");
    assert_eq!(parsed[0].on, Occasion::ALL.map(|(_, occasion)| occasion));
    let parsed = notifiers("notify: { desktop: true, on: [guard_broken] }");
    assert_eq!(
        parsed,
        [Notifier {
            command: None,
            webhook: None,
            desktop: true,
            on: vec![Occasion::GuardBroken],
            trusted: true
        }]
    );
}

#[test]
fn without_a_way_to_notify_there_is_no_notifier() {
    for source in [
        "notify:",
        "notify: {}",
        "notify: { on: [ask] }",
        "notify: { command: null, webhook: null, desktop: false }",
    ] {
        assert_eq!(notifiers(source), [], "{source}");
    }
}

#[test]
fn an_invalid_notifier_is_an_error() {
    check_shapes(&[
        ("notify: { on: [asks] }", "f:1:16: an occasion can't be `asks`; did you mean `ask`?"),
        ("notify: { desktop: maybe }", "f:1:20: `notify.desktop` must be true or false, not text"),
        ("notify: { command: [a] }", "f:1:20: `notify.command` must be text, not a list"),
        (
            "notify: { webhook: ftp://a }",
            "f:1:20: `notify.webhook` is not a web address; write it as `https://host/path`",
        ),
        (
            "notify: { webhook: 'https://' }",
            "f:1:20: `notify.webhook` is not a web address; write it as `https://host/path`",
        ),
        (
            "notify: { webhook: 'https://a b' }",
            "f:1:20: `notify.webhook` is not a web address; write it as `https://host/path`",
        ),
        (
            "notify: { comand: x }",
            "f:1:11: unknown key `comand` in `notify`; did you mean `command`?",
        ),
    ]);
    check(&[("notify: { webhook: 'http://localhost:8080/x?y=1' }", "ok")]);
}
