//! A plain model of the dirty bits, which keeps every change and every run and
//! looks at all of them again, beside the engine, which keeps two numbers.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::sync::Arc;

use jackline_engine::definition::{Cap, Checker};
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Definition, Facts, Now, Query, Record, Session, Timestamp, Verdict, observe,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What an agent can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    EditsCode,
    EditsDocs,
    Tests,
    TestsIntoPipe,
    TestsOrTrue,
    TestsElsewhere,
    ChangesThenTests,
    TestsThenChanges,
}

const ALL: [Does; 8] = [
    Does::EditsCode,
    Does::EditsDocs,
    Does::Tests,
    Does::TestsIntoPipe,
    Does::TestsOrTrue,
    Does::TestsElsewhere,
    Does::ChangesThenTests,
    Does::TestsThenChanges,
];

const STATUSES: [&str; 4] = ["ok", "error", "cancelled", "timeout"];
const SUMMARIES: [Option<&str>; 3] =
    [None, Some("3 passed in 1s"), Some("1 failed, 2 passed in 1s")];

#[derive(Debug, Clone)]
enum Op {
    Begin(Does),
    End { which: usize, status: &'static str, says: Option<&'static str> },
    Stop,
    Skip,
}

fn op() -> impl Strategy<Value = Op> {
    let ends =
        (0..4_usize, prop::sample::select(&STATUSES[..]), prop::sample::select(&SUMMARIES[..]));
    prop_oneof![
        6 => prop::sample::select(&ALL[..]).prop_map(Op::Begin),
        6 => ends.prop_map(|(which, status, says)| Op::End { which, status, says }),
        3 => Just(Op::Stop),
        1 => Just(Op::Skip),
    ]
}

impl Does {
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

    /// How the tests in it ended; none where there were none, or it can't be
    /// told that they ran.
    fn outcome(self, status: &str, says: Option<&str>) -> Option<Outcome> {
        let said = match says {
            Some(text) if text.contains("failed") => Outcome::No,
            Some(_) if status != "timeout" => Outcome::Yes,
            _ => Outcome::Unknown,
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
            // What a script hides the summary tells.
            "ok" if proven && said != Outcome::No => Some(Outcome::Yes),
            "error" if refuted => Some(Outcome::No),
            _ => (certain || says.is_some()).then_some(said),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Yes,
    No,
    Unknown,
}

#[derive(Debug, Clone)]
struct Open {
    id: String,
    does: Does,
    changes: usize,
    code: usize,
}

/// A run that has ended, and how much had been changed when it began.
#[derive(Debug)]
struct Run {
    changes: usize,
    code: usize,
    outcome: Outcome,
}

/// Everything that ever happened.
#[derive(Debug, Default)]
struct Model {
    open: Vec<Open>,
    /// Changes of anything, and of code.
    changes: usize,
    code: usize,
    runs: Vec<Run>,
    /// How much code had been changed when a person said that it is good.
    skipped: Option<usize>,
}

impl Model {
    fn lands(&mut self, does: Does) {
        self.changes += usize::from(does == Does::EditsDocs || does.changes_code());
        self.code += usize::from(does.changes_code());
    }

    fn end(&mut self, call: &Open, status: &str, says: Option<&str>) {
        if let Some(outcome) = call.does.outcome(status, says) {
            // It has seen its own change, if that was the only one.
            let own = call.does == Does::ChangesThenTests && self.changes == call.changes;
            let (changes, code) = (call.changes + usize::from(own), call.code + usize::from(own));
            self.runs.push(Run { changes, code, outcome });
        }
        self.lands(call.does);
    }

    /// The objection to a stop.
    fn objection(&self) -> Option<&'static str> {
        if self.open.iter().any(|call| call.does.changes_code()) {
            return Some("untested_code");
        }
        if self.skipped == Some(self.code) {
            return None;
        }
        let mut latest: Option<(usize, Outcome)> = None;
        for run in self.runs.iter().filter(|run| run.code == self.code) {
            latest = Some(match latest {
                Some((changes, outcome)) if changes > run.changes => (changes, outcome),
                Some((_, known)) if run.outcome == Outcome::Unknown => (run.changes, known),
                _ => (run.changes, run.outcome),
            });
        }
        match latest {
            None => (self.code > 0).then_some("untested_code"),
            Some((_, Outcome::Yes)) => None,
            Some((_, Outcome::No)) => Some("failing_tests"),
            Some((_, Outcome::Unknown)) => Some("unknown_tests"),
        }
    }
}

struct Engine {
    session: Session,
    seq: u64,
}

impl Engine {
    fn new() -> Self {
        let definition = Definition {
            completion: Some(Checker::Clean),
            completion_cap: Cap { blocks: u32::MAX, same: u32::MAX },
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
        // There is no such file, wherever it is looked for.
        let asked = self.session.needs(&event, &facts);
        facts.files.extend(asked.iter().filter_map(|query| match query {
            Query::File { path, .. } => Some((path.clone(), FileFact::of(FileKind::Missing))),
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
    fn the_bits_are_those_of_the_plain_model(ops in prop::collection::vec(op(), 1..60)) {
        let (mut engine, mut model) = (Engine::new(), Model::default());
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Begin(does) => {
                    let (tool, args) = does.call();
                    let id = format!("c{number}");
                    engine.send(json!({"event": "tool_proposed", "call": id, "tool": tool, "args": args}));
                    let Model { changes, code, .. } = model;
                    model.open.push(Open { id, does, changes, code });
                }
                Op::End { which, status, says } => {
                    if which < model.open.len() {
                        let call = model.open.remove(which);
                        engine.send(json!({
                            "event": "tool_finished", "call": call.id, "status": status, "result": says,
                        }));
                        model.end(&call, status, says);
                    }
                }
                Op::Skip => {
                    engine.send(json!({"event": "control", "action": "skip_dirty_bits"}));
                    // Where nothing is missing, there is nothing to skip.
                    if model.objection().is_some() {
                        model.skipped = Some(model.code);
                    }
                }
                Op::Stop => {
                    let verdict = engine.send(json!({"event": "stop_proposed"}));
                    let subtype = verdict.violations.first().map(|v| v.subtype.word());
                    prop_assert_eq!(subtype, model.objection());
                    // What has not come back by now may have run.
                    for call in std::mem::take(&mut model.open) {
                        model.lands(call.does);
                    }
                }
            }
        }
    }
}
