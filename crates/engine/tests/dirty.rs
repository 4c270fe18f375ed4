//! Compares the engine with a simple model of the dirty bits. The model stores every change and
//! every test run and evaluates all of them each time. The engine stores two numbers.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::sync::Arc;

use jackline_engine::definition::{CompletionCap, CompletionRequirement};
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Definition, Facts, Now, Query, Record, Session, Timestamp, Verdict, observe,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The calls that an agent can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirtyCall {
    EditsCode,
    EditsDocs,
    Tests,
    TestsIntoPipe,
    TestsOrTrue,
    TestsElsewhere,
    ChangesThenTests,
    TestsThenChanges,
}

const ALL: [DirtyCall; 8] = [
    DirtyCall::EditsCode,
    DirtyCall::EditsDocs,
    DirtyCall::Tests,
    DirtyCall::TestsIntoPipe,
    DirtyCall::TestsOrTrue,
    DirtyCall::TestsElsewhere,
    DirtyCall::ChangesThenTests,
    DirtyCall::TestsThenChanges,
];

const STATUSES: [&str; 4] = ["ok", "error", "cancelled", "timeout"];
const SUMMARIES: [Option<&str>; 3] =
    [None, Some("3 passed in 1s"), Some("1 failed, 2 passed in 1s")];

#[derive(Debug, Clone)]
enum DirtyOp {
    Begin(DirtyCall),
    End { which: usize, status: &'static str, says: Option<&'static str> },
    Stop,
    Skip,
}

fn op() -> impl Strategy<Value = DirtyOp> {
    let ends =
        (0..4_usize, prop::sample::select(&STATUSES[..]), prop::sample::select(&SUMMARIES[..]));
    prop_oneof![
        6 => prop::sample::select(&ALL[..]).prop_map(DirtyOp::Begin),
        6 => ends.prop_map(|(which, status, says)| DirtyOp::End { which, status, says }),
        3 => Just(DirtyOp::Stop),
        1 => Just(DirtyOp::Skip),
    ]
}

impl DirtyCall {
    fn call(self) -> (&'static str, Value) {
        let line = |command: &str| ("Bash", json!({ "command": command }));
        match self {
            Self::EditsCode => ("Edit", json!({"file_path": "src/a.rs"})),
            Self::EditsDocs => ("Edit", json!({"file_path": "docs/a.txt"})),
            Self::Tests => line("pytest"),
            Self::TestsIntoPipe => line("pytest | tail"),
            Self::TestsOrTrue => line("pytest || true"),
            Self::TestsElsewhere => line("cd x && pytest"),
            Self::ChangesThenTests => line("sed -i s/a/b/ src/a.rs && pytest"),
            Self::TestsThenChanges => line("pytest && sed -i s/a/b/ src/a.rs"),
        }
    }

    fn changes_code(self) -> bool {
        matches!(self, Self::EditsCode | Self::ChangesThenTests | Self::TestsThenChanges)
    }

    /// How the tests of the call ended; `None` if there were none or it is not certain that they
    /// ran.
    fn outcome(self, status: &str, says: Option<&str>) -> Option<TestOutcome> {
        let summary = match says {
            Some(text) if text.contains("failed") => TestOutcome::No,
            Some(_) if status != "timeout" => TestOutcome::Yes,
            _ => TestOutcome::Unknown,
        };
        let (proven, refuted, certain) = match self {
            Self::EditsCode | Self::EditsDocs => return None,
            Self::Tests => (true, true, true),
            Self::TestsIntoPipe => (false, false, true),
            Self::TestsOrTrue => (false, true, true),
            Self::TestsElsewhere | Self::ChangesThenTests => (true, false, false),
            Self::TestsThenChanges => (true, false, true),
        };
        match status {
            "cancelled" => None,
            // The summary is used if the exit status of the script does not show the result.
            "ok" if proven && summary != TestOutcome::No => Some(TestOutcome::Yes),
            "error" if refuted => Some(TestOutcome::No),
            _ => (certain || says.is_some()).then_some(summary),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestOutcome {
    Yes,
    No,
    Unknown,
}

#[derive(Debug, Clone)]
struct OpenDirtyCall {
    id: String,
    does: DirtyCall,
    changes: usize,
    code: usize,
}

/// A finished test run, and the number of changes when it began.
#[derive(Debug)]
struct FinishedTestRun {
    changes: usize,
    code: usize,
    outcome: TestOutcome,
}

/// All past events.
#[derive(Debug, Default)]
struct DirtyModel {
    open: Vec<OpenDirtyCall>,
    /// The number of changes of anything, and of code.
    changes: usize,
    code: usize,
    runs: Vec<FinishedTestRun>,
    /// The number of code changes when a person skipped the check.
    skipped: Option<usize>,
}

impl DirtyModel {
    fn apply_changes(&mut self, does: DirtyCall) {
        self.changes += usize::from(does == DirtyCall::EditsDocs || does.changes_code());
        self.code += usize::from(does.changes_code());
    }

    fn end(&mut self, call: &OpenDirtyCall, status: &str, says: Option<&str>) {
        if let Some(outcome) = call.does.outcome(status, says) {
            // The test has seen the call's own change, if that was the only one.
            let own = call.does == DirtyCall::ChangesThenTests && self.changes == call.changes;
            let (changes, code) = (call.changes + usize::from(own), call.code + usize::from(own));
            self.runs.push(FinishedTestRun { changes, code, outcome });
        }
        self.apply_changes(call.does);
    }

    /// The expected subtype of the violation for a stop.
    fn expected_violation(&self) -> Option<&'static str> {
        if self.open.iter().any(|call| call.does.changes_code()) {
            return Some("untested_code");
        }
        if self.skipped == Some(self.code) {
            return None;
        }
        let mut latest: Option<(usize, TestOutcome)> = None;
        for run in self.runs.iter().filter(|run| run.code == self.code) {
            latest = Some(match latest {
                Some((changes, outcome)) if changes > run.changes => (changes, outcome),
                Some((_, outcome)) if run.outcome == TestOutcome::Unknown => (run.changes, outcome),
                _ => (run.changes, run.outcome),
            });
        }
        match latest {
            None => (self.code > 0).then_some("untested_code"),
            Some((_, TestOutcome::Yes)) => None,
            Some((_, TestOutcome::No)) => Some("failing_tests"),
            Some((_, TestOutcome::Unknown)) => Some("unknown_tests"),
        }
    }
}

struct DirtyEngine {
    session: Session,
    seq: u64,
}

impl DirtyEngine {
    fn new() -> Self {
        let definition = Definition {
            completion: Some(CompletionRequirement::Clean),
            completion_cap: CompletionCap { blocks: u32::MAX, same: u32::MAX },
            ..Definition::default()
        };
        Self { session: Session::new(Arc::new(definition), Arc::default()), seq: 0 }
    }

    fn send(&mut self, mut event: Value) -> Verdict {
        self.seq += 1;
        event["session"] = json!("s");
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
        facts.observed = observe(&event);
        // No file exists, wherever the engine looks for it.
        let asked = self.session.needs(&event, &facts);
        facts.files.extend(asked.iter().filter_map(|query| match query {
            Query::File { path, .. } => {
                Some((path.clone(), FileFact::without_details(FileKind::Missing)))
            }
            _ => None,
        }));
        let verdict = self.session.decide(&event, &facts);
        let record = Record { seq: self.seq, event: &event, facts: &facts, verdict: &verdict };
        self.session.apply(&record);
        verdict
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_engine_agrees_with_the_simple_model(ops in prop::collection::vec(op(), 1..60)) {
        let (mut engine, mut model) = (DirtyEngine::new(), DirtyModel::default());
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                DirtyOp::Begin(does) => {
                    let (tool, args) = does.call();
                    let id = format!("c{number}");
                    engine.send(json!({"event": "tool_proposed", "call": id, "tool": tool, "args": args}));
                    let DirtyModel { changes, code, .. } = model;
                    model.open.push(OpenDirtyCall { id, does, changes, code });
                }
                DirtyOp::End { which, status, says } => {
                    if which < model.open.len() {
                        let call = model.open.remove(which);
                        engine.send(json!({
                            "event": "tool_finished", "call": call.id, "status": status, "result": says,
                        }));
                        model.end(&call, status, says);
                    }
                }
                DirtyOp::Skip => {
                    engine.send(json!({"event": "control", "action": "skip_dirty_bits"}));
                    // If no requirement is missing, there is nothing to skip.
                    if model.expected_violation().is_some() {
                        model.skipped = Some(model.code);
                    }
                }
                DirtyOp::Stop => {
                    let verdict = engine.send(json!({"event": "stop_proposed"}));
                    let subtype = verdict.violations.first().map(|v| v.subtype.as_str());
                    prop_assert_eq!(subtype, model.expected_violation());
                    // A call without a result at this point may have run.
                    for call in std::mem::take(&mut model.open) {
                        model.apply_changes(call.does);
                    }
                }
            }
        }
    }
}
