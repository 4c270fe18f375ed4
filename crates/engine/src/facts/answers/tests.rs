//! Queries and facts have a stable JSON form, and only a matching fact is accepted.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::*;
use crate::definition::StoredDefinition;
use crate::digest::{Digest, Digest128};
use crate::facts::{
    CallView, ChangedFile, DefinitionFile, FeedbackView, FileDetails, FileKind, FileSearch,
    GitChange, GitFileChange, NewDefinition, Now, Queries,
};
use crate::time::Timestamp;
use crate::verdict::{FeedbackObservation, Severity};

const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn tracked() -> Vec<TrackedFile> {
    vec![TrackedFile { path: "a".to_owned(), stamp: u64::MAX }]
}

fn call() -> CallView {
    CallView { tool: "t".to_owned(), args: json!({"a": [1, null]}), carried: Some("c".to_owned()) }
}

fn view() -> FeedbackView {
    FeedbackView {
        definition: "a/b".to_owned(),
        deadline: None,
        now: Timestamp::from_ms(0),
        tool_call_count: 3,
        calls_since_feedback: 2,
        calls_since_own_feedback: 1,
        recent_tool_calls: vec!["t".to_owned()],
        last_feedback: Some(("Deadline".to_owned(), "soon".to_owned())),
    }
}

/// A query with its JSON form, and a matching fact with its JSON form.
type QueryFactPair = (Query, Value, Fact, Value);

/// One pair for every query.
fn pairs() -> Vec<QueryFactPair> {
    let mut pairs = pairs_about_files();
    pairs.extend(pairs_about_guard_files());
    pairs.extend(pairs_about_custom_guards());
    pairs.extend(pairs_about_definitions());
    pairs
}

fn pairs_about_files() -> Vec<QueryFactPair> {
    let watched = BTreeMap::from([(
        "a".to_owned(),
        WatchedFact { stamp: 7, sha256: Some(Digest::ZERO), by_person: true, ..Default::default() },
    )]);
    let file = FileFact {
        bytes: 5,
        json: Some(true),
        real: Some("b".to_owned()),
        stamp: Some(9),
        digest: Some(Digest128::of(b"x")),
        lines: Some(1),
        ..FileFact::without_details(FileKind::File)
    };
    let file_json = json!({"kind": "file", "bytes": 5, "json": true, "real": "b", "look": 9,
        "digest": Digest128::of(b"x"), "lines": 1});
    let watched_json = json!({"a": {"look": 7, "sha256": ZERO, "by_person": true}});
    let files_json = json!([{"path": "a", "look": u64::MAX}]);
    vec![
        (
            Query::File {
                path: "a".to_owned(),
                wants: FileDetails { json: true, ..FileDetails::default() },
            },
            json!({"query": "file", "path": "a", "wants": {"json": true}}),
            Fact::File(file.clone()),
            json!({"fact": "file", "value": file_json.clone()}),
        ),
        (
            Query::Watched { files: tracked(), since: Some(Timestamp::from_ms(0)) },
            json!({"query": "watched", "files": files_json.clone(), "since": Timestamp::from_ms(0)}),
            Fact::Watched(watched.clone()),
            json!({"fact": "watched", "value": watched_json.clone()}),
        ),
        (
            Query::Changed { files: tracked() },
            json!({"query": "changed", "files": files_json.clone()}),
            Fact::Changed(BTreeMap::from([("a".to_owned(), file)])),
            json!({"fact": "changed", "value": {"a": file_json}}),
        ),
        (
            Query::Protect { files: tracked() },
            json!({"query": "protect", "files": files_json}),
            Fact::Protect(watched),
            json!({"fact": "protect", "value": watched_json}),
        ),
        (
            Query::Git { dir: "d".to_owned() },
            json!({"query": "git", "dir": "d"}),
            Fact::Git(GitFact { repository: true, ..GitFact::default() }),
            json!({"fact": "git", "value": {"repository": true, "dirty": false, "untracked": false,
                "branch": ""}}),
        ),
        (
            Query::Ignored { path: "a".to_owned() },
            json!({"query": "ignored", "path": "a"}),
            Fact::Ignored(true),
            json!({"fact": "ignored", "value": true}),
        ),
    ]
}

fn pairs_about_guard_files() -> Vec<QueryFactPair> {
    let change = GitFileChange {
        removed: true,
        kept: false,
        before: HookState::Present,
        after: HookState::Disabled,
    };
    let known = GitChangeFact::Known { files: BTreeMap::from([("a".to_owned(), change)]) };
    let moved = FileChangeFact {
        by_git: true,
        before: HookState::Absent,
        after: HookState::Present,
        unrestorable: false,
    };
    vec![
        (
            Query::GitChange {
                command: 1,
                dir: ".".to_owned(),
                change: GitChange::Move { to: "old".to_owned(), discards: false },
                files: vec!["a".to_owned()],
            },
            json!({"query": "git_change", "command": 1, "dir": ".", "files": ["a"],
                "change": {"git": "move", "to": "old", "discards": false}}),
            Fact::GitChange(known),
            json!({"fact": "git_change", "value": {"answer": "known", "files": {"a":
                {"removed": true, "before": "present", "after": "disabled"}}}}),
        ),
        (
            Query::Hook { path: "a".to_owned() },
            json!({"query": "hook", "path": "a"}),
            Fact::Hook(HookState::Absent),
            json!({"fact": "hook", "value": "absent"}),
        ),
        (
            Query::FileSearch {
                search: FileSearch { pattern: "a*".to_owned(), entries: vec!["*b".to_owned()] },
            },
            json!({"query": "file_search", "search": {"pattern": "a*", "entries": ["*b"]}}),
            Fact::FileSearch(Some("ab".to_owned())),
            json!({"fact": "file_search", "value": "ab"}),
        ),
        (
            Query::FileChanges { files: vec![ChangedFile { path: "a".to_owned(), before: None }] },
            json!({"query": "file_changes", "files": [{"path": "a", "before": null}]}),
            Fact::FileChanges(BTreeMap::from([("a".to_owned(), moved)])),
            json!({"fact": "file_changes", "value": {"a":
                {"by_git": true, "before": "absent", "after": "present"}}}),
        ),
    ]
}

fn pairs_about_custom_guards() -> Vec<QueryFactPair> {
    let (name, state) = ("p".to_owned(), "s".to_owned());
    let call_json = json!({"tool": "t", "args": {"a": [1, null]}, "carried": "c"});
    vec![
        (
            Query::Verification { run: 8, line: "make".to_owned(), timeout_seconds: 60 },
            json!({"query": "verification", "run": 8, "line": "make", "timeout_seconds": 60}),
            Fact::Verification(VerificationFact::Failed { exit: Some(1), tail: "no".to_owned() }),
            json!({"fact": "verification", "value": {"answer": "failed", "exit": 1, "tail": "no"}}),
        ),
        (
            Query::Feedback { number: 2, name: name.clone(), view: view() },
            json!({"query": "feedback", "number": 2, "name": "p", "view": {"definition": "a/b",
                "deadline": null, "now": Timestamp::from_ms(0), "tool_call_count": 3,
                "calls_since_feedback": 2, "calls_since_own_feedback": 1,
                "recent_tool_calls": ["t"], "last_feedback": ["Deadline", "soon"]}}),
            Fact::Feedback(FeedbackFact::Message {
                severity: Severity::Info,
                summary: "s".to_owned(),
                observations: vec![FeedbackObservation {
                    category: "c".to_owned(),
                    description: "d".to_owned(),
                    evidence: None,
                }],
                suggestions: Vec::new(),
            }),
            json!({"fact": "feedback", "value": {"answer": "said", "severity": "info",
                "summary": "s", "observations": [{"category": "c", "description": "d"}]}}),
        ),
        (
            Query::PolicyCheck {
                number: 1,
                name: name.clone(),
                state: state.clone(),
                call: call(),
            },
            json!({"query": "policy_check", "number": 1, "name": "p", "state": "s",
                "call": call_json.clone()}),
            Fact::Policy(PolicyFact::Denied { reason: Some("no".to_owned()) }),
            json!({"fact": "policy", "value": {"answer": "denied", "reason": "no"}}),
        ),
        (
            Query::PolicyResult { number: 1, name: name.clone(), state, call: call() },
            json!({"query": "policy_result", "number": 1, "name": "p", "state": "s",
                "call": call_json}),
            Fact::Policy(PolicyFact::State { text: "t".to_owned() }),
            json!({"fact": "policy", "value": {"answer": "state", "text": "t"}}),
        ),
        (
            Query::Checker { name },
            json!({"query": "checker", "name": "p"}),
            Fact::Checker(CheckFact::Incomplete { feedback: None }),
            json!({"fact": "checker", "value": {"answer": "incomplete", "feedback": null}}),
        ),
    ]
}

fn pairs_about_definitions() -> Vec<QueryFactPair> {
    let new = NewDefinition {
        checksum: Digest::ZERO,
        files: vec![DefinitionFile {
            path: "/d".to_owned(),
            sha256: Digest::ZERO,
            by_person: false,
        }],
        lowered: StoredDefinition::new(Arc::default()),
    };
    let new_json = json!({"new": {"checksum": ZERO, "files": [{"path": "/d", "sha256": ZERO}],
        "lowered": StoredDefinition::new(Arc::default()).digest()}});
    vec![
        (
            Query::Definition,
            json!({"query": "definition"}),
            Fact::Definition(DefinitionFact::Changed { checksum: Digest::ZERO }),
            json!({"fact": "definition", "value": {"file": "changed", "checksum": ZERO}}),
        ),
        (
            Query::Reload,
            json!({"query": "reload"}),
            Fact::Reload(ReloadFact::New(Box::new(new))),
            json!({"fact": "reload", "value": new_json}),
        ),
        (
            Query::Pins { definition: "a/b".to_owned(), workflow: None },
            json!({"query": "pins", "definition": "a/b", "workflow": null}),
            Fact::Pins(PinsFact { demanded: true, ..PinsFact::default() }),
            json!({"fact": "pins", "value": {"demanded": true}}),
        ),
    ]
}

#[test]
fn every_query_and_fact_keeps_its_json_form() {
    for (query, query_json, fact, fact_json) in pairs() {
        assert_eq!(serde_json::to_value(&query).unwrap(), query_json);
        assert_eq!(query_json["query"], query.name());
        assert_eq!(serde_json::from_value::<Query>(query_json).unwrap(), query);
        assert_eq!(serde_json::to_value(&fact).unwrap(), fact_json);
        assert_eq!(fact_json["fact"], fact.name());
        assert_eq!(serde_json::from_value::<Fact>(fact_json).unwrap(), fact);
    }
    assert_eq!(serde_json::to_value(Fact::Unknown).unwrap(), json!({"fact": "unknown"}));
}

#[test]
fn an_unknown_field_or_name_is_an_error() {
    for text in [
        r#"{"query":"file","path":"a","wants":{},"more":1}"#,
        r#"{"query":"file","path":"a","wants":{"owner":true}}"#,
        r#"{"query":"weather"}"#,
        r#"{"path":"a"}"#,
    ] {
        assert!(serde_json::from_str::<Query>(text).is_err(), "{text}");
    }
    for text in [r#"{"fact":"git","value":{"repository":true,"more":1}}"#, r#"{"fact":"weather"}"#]
    {
        assert!(serde_json::from_str::<Fact>(text).is_err(), "{text}");
    }
}

/// The recorded answer to a query that found nothing.
fn empty_answer(query: &Query) -> Fact {
    match query {
        Query::Watched { .. } => Fact::Watched(BTreeMap::new()),
        Query::Changed { .. } => Fact::Changed(BTreeMap::new()),
        Query::Protect { .. } => Fact::Protect(BTreeMap::new()),
        Query::Pins { .. } => Fact::Pins(PinsFact::default()),
        Query::FileChanges { .. } => Fact::FileChanges(BTreeMap::new()),
        _ => Fact::Unknown,
    }
}

#[test]
fn only_a_matching_fact_is_accepted_and_returned() {
    let pairs = pairs();
    for (query, ..) in &pairs {
        for (_, _, fact, _) in &pairs {
            let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
            let before = facts.clone();
            let is_match = pairs.iter().any(|(other, _, answer, _)| {
                other.name() == query.name() && answer.name() == fact.name()
            });
            match facts.add_answer(query, fact.clone()) {
                Ok(()) => {
                    assert!(is_match, "{} learned {}", query.name(), fact.name());
                    assert_eq!(facts.recorded_answer(query), *fact);
                }
                Err(wrong) => {
                    assert!(!is_match, "{wrong}");
                    assert_eq!(facts, before);
                    assert_eq!(facts.recorded_answer(query), empty_answer(query));
                }
            }
        }
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
        let wrong = facts.add_answer(query, Fact::Unknown).unwrap_err();
        assert!(wrong.to_string().contains(query.name()), "{wrong}");
    }
}

#[test]
fn a_file_that_was_not_queried_is_refused() {
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
    let found = BTreeMap::from([("b".to_owned(), WatchedFact::default())]);
    let query = Query::Watched { files: tracked(), since: None };
    assert!(facts.add_answer(&query, Fact::Watched(found)).is_err());
    assert_eq!(facts.watched, None);
}

#[test]
fn queries_about_one_file_are_merged() {
    let ask = |wants| Query::File { path: "f".to_owned(), wants };
    let (json, contents) = (
        FileDetails { json: true, ..FileDetails::default() },
        FileDetails { contents: true, ..FileDetails::default() },
    );
    let mut queries = Queries::default();
    queries.ask(ask(FileDetails::default()));
    queries.ask(ask(contents));
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
    let without_facts = queries.clone().into_batch(&facts);
    assert_eq!(without_facts, [ask(contents)]);
    let fact = FileFact { json: Some(false), ..FileFact::without_details(FileKind::File) };
    facts.add_answer(&ask(json), Fact::File(fact)).unwrap();
    assert_eq!(queries.into_batch(&facts), [ask(contents.union(json))]);
}
