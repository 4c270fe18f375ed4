//! Sources of facts that break: the answer is a denial that blames the guard, nothing is
//! recorded, and the session goes on. Facts can come from another place than this machine.

use std::sync::{Arc, Mutex};
use std::{fs, thread, time::Duration};

use jackline_engine::facts::{FileFact, FileKind, GitFact};
use jackline_engine::{Fact, Query};
use jackline_journal::{MemoryStore, Note};
use jackline_runtime::facts::{Deadline, FactError, Recording, Scene};
use jackline_runtime::{FactSource, Runtime};
use serde_json::json;

use crate::support::{World, send};

const DEFINITION: &str = "\
sections:
  - name: files
    tools: [write]
    policies: [ read_before_write: {} ]
";

const PROPOSED: &str =
    r#"{"event":"tool_proposed","call":"c1","tool":"write","args":{"path":"f"}}"#;

/// How a source goes wrong.
#[derive(Clone, Copy)]
enum Way {
    Fails,
    IsLate,
    SaysTooLittle,
    SaysSomethingElse,
    DoesNotKnow,
    Panics,
    IsFine,
}

/// Answers that every file is missing, after it has gone wrong once.
#[derive(Clone)]
struct Shaky {
    way: Arc<Mutex<Way>>,
    workspaces: Arc<Mutex<Vec<String>>>,
}

impl Shaky {
    fn that(way: Way) -> Self {
        Self { way: Arc::new(Mutex::new(way)), workspaces: Arc::default() }
    }
}

impl FactSource for Shaky {
    fn answer(
        &mut self,
        scene: &Scene<'_>,
        queries: &[Query],
        deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError> {
        let shown = |path: &std::path::Path| path.display().to_string();
        self.workspaces.lock().unwrap().extend(scene.workspace().map(shown));
        let mut facts: Vec<Fact> = queries.iter().map(missing).collect();
        let way = std::mem::replace(&mut *self.way.lock().unwrap(), Way::IsFine);
        match way {
            Way::Fails => return Err(FactError::Failed("the wire is cut".to_owned())),
            Way::IsLate => {
                while deadline.remaining_ms() > 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(Duration::from_millis(2));
            }
            Way::SaysTooLittle => drop(facts.pop()),
            Way::SaysSomethingElse => facts.fill(Fact::Git(GitFact::default())),
            Way::DoesNotKnow => facts.fill(Fact::Unknown),
            Way::Panics => panic!("a bug in a source"),
            Way::IsFine => {}
        }
        Ok(facts)
    }
}

/// The answer about a machine without files, as another process would send it.
fn missing(query: &Query) -> Fact {
    let sent = serde_json::to_string(query).unwrap();
    let fact = match serde_json::from_str(&sent).unwrap() {
        Query::File { .. } => Fact::File(FileFact::of(FileKind::Missing)),
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

/// Has a source go wrong once.
fn check(way: Way, kind: &str, reason: &str) {
    let world = World::new(DEFINITION);
    let source = Shaky::that(way);
    // Only a source that waits for its deadline needs a short one.
    let limit_ms = if matches!(way, Way::IsLate) { 200 } else { 60_000 };
    let mut runtime = world.runtime().with_fact_source(source.clone());
    runtime = runtime.with_fact_deadline_ms(limit_ms);
    let verdict = send(&mut runtime, PROPOSED);
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("deny"), &json!(true)));
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    assert_eq!(verdict["violations"][0]["subtype"], kind);
    let context = verdict["context"].as_str().unwrap();
    assert!(context.starts_with("the guard is broken, not the call: "), "{context}");
    assert!(context.contains(reason), "{context}");
    assert!(!world.opened("s"), "something was recorded");

    assert_eq!(send(&mut runtime, PROPOSED)["decision"], "allow");
    let notes = world.records("s")[0].notes.clone();
    let [Note::Fault { kind: noted, reason: said }] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert!(noted.word() == kind && said.contains(reason), "{noted:?}: {said}");
    assert!(source.workspaces.lock().unwrap().iter().all(|it| it.ends_with("/work")));
    world.prove("s");
}

#[test]
fn a_source_that_fails_denies() {
    check(Way::Fails, "facts", "the source of facts failed: the wire is cut");
}

#[test]
fn a_source_that_exceeds_its_deadline_denies() {
    check(Way::IsLate, "facts", "the source of facts gave no answer within 200 ms");
}

#[test]
fn a_source_that_leaves_queries_out_denies() {
    check(Way::SaysTooLittle, "facts", "the source of facts gave ");
}

#[test]
fn a_source_that_answers_something_else_denies() {
    let reason = "the source of facts gave a wrong answer: the query `";
    check(Way::SaysSomethingElse, "facts", reason);
    check(Way::DoesNotKnow, "facts", reason);
}

#[test]
fn a_source_that_panics_denies() {
    check(Way::Panics, "internal", "an internal fault: a bug in a source");
}

/// Facts that were recorded on one machine decide the same on another, which has no files.
#[test]
fn a_recording_decides_without_the_machine_it_was_made_on() {
    let world = World::new(DEFINITION);
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
        assert_eq!(decided["decision"], record.verdict.decision.word(), "{line}");
        assert_eq!(decided["violations"].is_null(), record.verdict.violations.is_empty());
    }
}
