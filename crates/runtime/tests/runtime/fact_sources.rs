//! Broken sources of facts: the answer is a denial by a broken guard, nothing is recorded, and the
//! session continues. Facts can also come from another source than this machine.

use std::sync::{Arc, Mutex};
use std::{fs, thread, time::Duration};

use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::{Fact, Query};
use jackline_journal::{JournalNote, MemoryStore};
use jackline_runtime::facts::{FactContext, FactDeadline, FactError, Recording};
use jackline_runtime::{FactSource, Runtime};
use serde_json::json;

use crate::support::{RuntimeTest, send};

const DEFINITION: &str = "\
sections:
  - name: files
    tools: [write]
    policies: [ read_before_write: {} ]
";

const PROPOSED: &str =
    r#"{"event":"tool_proposed","call":"c1","tool":"write","args":{"path":"f"}}"#;

/// How a source fails.
#[derive(Clone, Copy)]
enum SourceFailure {
    Fails,
    IsLate,
    OmitsAnswers,
    AnswersWrongly,
    AnswersUnknown,
    Panics,
    IsFine,
}

/// Fails once, and then answers that every file is missing.
#[derive(Clone)]
struct FailingSource {
    way: Arc<Mutex<SourceFailure>>,
    workspaces: Arc<Mutex<Vec<String>>>,
}

impl FailingSource {
    fn with_failure(way: SourceFailure) -> Self {
        Self { way: Arc::new(Mutex::new(way)), workspaces: Arc::default() }
    }
}

impl FactSource for FailingSource {
    fn answer(
        &mut self,
        scene: &FactContext<'_>,
        queries: &[Query],
        deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError> {
        let shown = |path: &std::path::Path| path.display().to_string();
        self.workspaces.lock().unwrap().extend(scene.workspace().map(shown));
        let mut facts: Vec<Fact> = queries.iter().map(missing).collect();
        let way = std::mem::replace(&mut *self.way.lock().unwrap(), SourceFailure::IsFine);
        match way {
            SourceFailure::Fails => return Err(FactError::Failed("the wire is cut".to_owned())),
            SourceFailure::IsLate => {
                while deadline.remaining_ms() > 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(Duration::from_millis(2));
            }
            SourceFailure::OmitsAnswers => drop(facts.pop()),
            SourceFailure::AnswersWrongly => facts.fill(Fact::Git(GitFact::default())),
            SourceFailure::AnswersUnknown => facts.fill(Fact::Unknown),
            SourceFailure::Panics => panic!("a bug in a source"),
            SourceFailure::IsFine => {}
        }
        Ok(facts)
    }
}

/// The answer for a machine without files, as another process would send it.
fn missing(query: &Query) -> Fact {
    let sent = serde_json::to_string(query).unwrap();
    let fact = match serde_json::from_str(&sent).unwrap() {
        Query::File { .. } => Fact::File(FileFact::without_details(FileKind::Missing)),
        Query::Watched { .. } => Fact::Watched([].into()),
        Query::Changed { .. } => Fact::Changed([].into()),
        Query::Protect { .. } => Fact::Protect([].into()),
        Query::Git { .. } => Fact::Git(GitFact::default()),
        Query::Ignored { .. } => Fact::Ignored(false),
        Query::Definition => Fact::Definition(jackline_engine::facts::DefinitionFact::Same),
        Query::Pins { .. } => Fact::Pins(jackline_engine::facts::PinsFact::default()),
        other => panic!("an unexpected query: {other:?}"),
    };
    serde_json::from_str(&serde_json::to_string(&fact).unwrap()).unwrap()
}

/// Lets a source fail once.
fn check(way: SourceFailure, kind: &str, reason: &str) {
    let world = RuntimeTest::new(DEFINITION);
    let source = FailingSource::with_failure(way);
    // Only a source that waits for its deadline needs a short one.
    let limit_ms = if matches!(way, SourceFailure::IsLate) { 200 } else { 60_000 };
    let mut runtime = world.runtime().with_fact_source(source.clone());
    runtime = runtime.with_fact_deadline_ms(limit_ms);
    let verdict = send(&mut runtime, PROPOSED);
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("deny"), &json!(true)));
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    assert_eq!(verdict["violations"][0]["subtype"], kind);
    let context = verdict["context"].as_str().unwrap();
    assert!(context.starts_with("the guard is broken, not the call: "), "{context}");
    assert!(context.contains(reason), "{context}");
    assert!(!world.is_opened("s"), "something was recorded");

    assert_eq!(send(&mut runtime, PROPOSED)["decision"], "allow");
    let notes = world.records("s")[0].notes.clone();
    let [JournalNote::Fault { kind: noted, reason: message }] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert!(noted.as_str() == kind && message.contains(reason), "{noted:?}: {message}");
    assert!(source.workspaces.lock().unwrap().iter().all(|it| it.ends_with("/work")));
    world.prove("s");
}

#[test]
fn a_source_that_fails_denies() {
    check(SourceFailure::Fails, "facts", "the source of facts failed: the wire is cut");
}

#[test]
fn a_source_that_exceeds_its_deadline_denies() {
    check(SourceFailure::IsLate, "facts", "the source of facts did not answer within 200 ms");
}

#[test]
fn a_source_that_omits_answers_denies() {
    check(SourceFailure::OmitsAnswers, "facts", "the source of facts gave ");
}

#[test]
fn a_source_that_answers_something_else_denies() {
    let reason = "the source of facts gave a wrong answer: the query `";
    check(SourceFailure::AnswersWrongly, "facts", reason);
    check(SourceFailure::AnswersUnknown, "facts", reason);
}

#[test]
fn a_source_that_panics_denies() {
    check(SourceFailure::Panics, "internal", "an internal fault: a bug in a source");
}

/// Facts that were recorded on one machine give the same decisions on another machine without
/// files.
#[test]
fn a_recording_decides_without_its_machine() {
    let world = RuntimeTest::new(DEFINITION);
    fs::write(world.workspace().join("f"), "old\n").unwrap();
    let mut runtime = world.runtime();
    let lines = [
        r#"{"event":"session_started"}"#,
        PROPOSED,
        r#"{"event":"tool_proposed","call":"c2","tool":"read","args":{"path":"f"}}"#,
        r#"{"event":"tool_finished","call":"c2","status":"ok","result":"old"}"#,
        r#"{"event":"tool_proposed","call":"c3","tool":"write","args":{"path":"f"}}"#,
    ];
    let decisions = lines.map(|line| send(&mut runtime, line)["decision"].clone());
    assert_eq!(decisions, ["allow", "deny", "allow", "allow", "allow"]);

    fs::remove_file(world.workspace().join("f")).unwrap();
    let recording = Recording::default();
    let mut elsewhere: Runtime =
        world.runtime_on(MemoryStore::default()).with_fact_source(recording.clone());
    assert_eq!(send(&mut elsewhere, lines[0])["decision"], "deny", "no record is loaded");
    for (line, record) in lines.iter().zip(world.records("s")) {
        recording.load(record.facts);
        let decided = send(&mut elsewhere, line);
        assert_eq!(decided["decision"], record.verdict.decision.as_str(), "{line}");
        assert_eq!(decided["violations"].is_null(), record.verdict.violations.is_empty());
    }
}
