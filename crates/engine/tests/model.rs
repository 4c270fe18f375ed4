//! Compares the engine with a simple model of two guards. The model stores everything and
//! recomputes it each time. The engine stores little and updates it. Both must always agree.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::definition::{
    CompletionCap, CompletionRequirement, DeclaredTool, GradedLevels, LoopSettings, Policy,
    PolicyRule, Prerequisite, RequiredFile, SequentialDependency, ToolDependency,
};
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::verdict::CompletionResult;
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Decision, Definition, Facts, Now, Query, Record, Session, Timestamp, ToolKind, Verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOOLS: [&str; 7] = ["lint", "test", "build", "deploy", "edit", "write", "read"];
const FILES: [&str; 3] = ["a.txt", "b.txt", "c.txt"];
const STATUSES: [&str; 5] = ["ok", "error", "timeout", "crashed", "cancelled"];
const BLOCKS: usize = 4;
const SAME: usize = 2;

/// The events of the test.
#[derive(Debug, Clone)]
enum ModelOp {
    Propose {
        tool: usize,
    },
    /// Finishes one of the open calls, or a call that is not open.
    Finish {
        which: usize,
        status: usize,
        background: bool,
    },
    Prompt {
        human: bool,
    },
    Stop {
        sub_agent: bool,
        background: bool,
    },
    /// Creates or removes a file.
    Flip {
        file: usize,
    },
    Reset,
    Start,
    AttemptBegin {
        name: usize,
    },
    AttemptEnd {
        name: usize,
        rollback: bool,
    },
}

fn op() -> impl Strategy<Value = ModelOp> {
    prop_oneof![
        8 => (0..TOOLS.len()).prop_map(|tool| ModelOp::Propose { tool }),
        8 => (0..6_usize, 0..9_usize, prop::bool::weighted(0.1)).prop_map(|(which, status, background)| {
            ModelOp::Finish { which, status: status.saturating_sub(4), background }
        }),
        1 => any::<bool>().prop_map(|human| ModelOp::Prompt { human }),
        4 => (prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(sub_agent, background)| ModelOp::Stop { sub_agent, background }),
        2 => (0..FILES.len()).prop_map(|file| ModelOp::Flip { file }),
        1 => Just(ModelOp::Reset),
        1 => Just(ModelOp::Start),
        1 => (0..2_usize).prop_map(|name| ModelOp::AttemptBegin { name }),
        1 => (0..2_usize, any::<bool>()).prop_map(|(name, rollback)| ModelOp::AttemptEnd { name, rollback }),
    ]
}

/// The prerequisites of `deploy` and `build`, and whether each must be fresh.
fn needs(tool: &str) -> &'static [(&'static str, bool)] {
    match tool {
        "deploy" => &[("test", false), ("build", true)],
        "build" => &[("lint", true)],
        _ => &[],
    }
}

fn definition() -> Definition {
    let tool = |name: &&str| DeclaredTool::with_name(name);
    let dependency = |tool: &str| ToolDependency {
        tool: tool.to_owned(),
        needs: needs(tool)
            .iter()
            .map(|(tool, fresh)| Prerequisite { tool: (*tool).to_owned(), fresh: *fresh })
            .collect(),
    };
    let file = |path: &str| RequiredFile {
        path: path.to_owned(),
        min_bytes: 0,
        json: false,
        newer_than_start: false,
    };
    let rule = SequentialDependency::new(vec![dependency("deploy"), dependency("build")]);
    Definition {
        tools: TOOLS.iter().map(tool).collect(),
        policies: vec![Policy { section: None, rule: PolicyRule::SequentialDependency(rule) }],
        // This model does not cover repetition.
        loops: LoopSettings {
            transparent: ToolKind::ALL.iter().map(|(_, kind)| *kind).collect(),
            graded: GradedLevels { soft: u16::MAX - 2, hard: u16::MAX - 1, infinite: u16::MAX },
            ..LoopSettings::default()
        },
        // a and (b or c)
        completion: Some(CompletionRequirement::All(vec![
            CompletionRequirement::Files(vec![file("a.txt")]),
            CompletionRequirement::Any(vec![
                CompletionRequirement::Files(vec![file("b.txt")]),
                CompletionRequirement::Files(vec![file("c.txt")]),
            ]),
        ])),
        completion_cap: CompletionCap { blocks: 4, same: 2 },
        ..Definition::default()
    }
}

#[derive(Debug, Clone)]
struct OpenModelCall {
    id: String,
    tool: &'static str,
    /// The number of changes of the workspace when the call began.
    began: usize,
}

/// All past events.
#[derive(Default)]
struct SimpleModel {
    open: Vec<OpenModelCall>,
    /// The number of changes of the workspace.
    changes: usize,
    /// Every success: the tool, and `began` of its call.
    successes: Vec<(&'static str, usize)>,
    attempts: Vec<(usize, Vec<(&'static str, usize)>)>,
    /// Every blocked stop of this turn: the missing files, and `changes`.
    blocks: Vec<(Vec<&'static str>, usize)>,
    files: BTreeMap<&'static str, bool>,
}

/// The expected verdict.
#[derive(Debug, PartialEq)]
struct ExpectedVerdict {
    decision: Decision,
    subtypes: Vec<String>,
    completion: Option<&'static str>,
}

fn expect(
    decision: Decision,
    subtypes: &[&str],
    completion: Option<&'static str>,
) -> ExpectedVerdict {
    let subtypes = subtypes.iter().map(|subtype| (*subtype).to_owned()).collect();
    ExpectedVerdict { decision, subtypes, completion }
}

fn allow() -> ExpectedVerdict {
    expect(Decision::Allow, &[], None)
}

impl SimpleModel {
    fn is_there(&self, file: &str) -> bool {
        self.files.get(file).copied().unwrap_or(false)
    }

    fn changes_files(tool: &str) -> bool {
        tool == "edit" || tool == "write"
    }

    /// Closes the open calls, whose results are unknown.
    fn lose_open(&mut self) {
        let lost = std::mem::take(&mut self.open);
        self.changes += lost.iter().filter(|call| Self::changes_files(call.tool)).count();
    }

    fn propose(&mut self, id: &str, tool: &'static str) -> ExpectedVerdict {
        let changing = self.open.iter().any(|call| Self::changes_files(call.tool));
        let (mut missing, mut stale) = (false, false);
        for (need, fresh) in needs(tool) {
            let successes: Vec<usize> =
                self.successes.iter().filter(|(tool, _)| tool == need).map(|(_, at)| *at).collect();
            if successes.is_empty() {
                missing = true;
            } else if *fresh && (changing || !successes.contains(&self.changes)) {
                stale = true;
            }
        }
        if missing {
            return expect(Decision::Deny, &["missing_prerequisite"], None);
        }
        if stale {
            return expect(Decision::Deny, &["stale_prerequisite"], None);
        }
        self.open.push(OpenModelCall { id: id.to_owned(), tool, began: self.changes });
        allow()
    }

    fn finish(&mut self, id: &str, status: &str, background: bool) -> ExpectedVerdict {
        let Some(at) = self.open.iter().position(|call| call.id == id) else {
            return expect(Decision::Deny, &["result_without_call"], None);
        };
        let call = self.open.remove(at);
        if status == "ok" && !background {
            self.successes.push((call.tool, call.began));
        }
        if Self::changes_files(call.tool) {
            self.changes += 1;
        }
        allow()
    }

    fn stop(&mut self, sub_agent: bool, background: bool) -> ExpectedVerdict {
        if sub_agent || background {
            return allow();
        }
        let either = self.is_there("b.txt") || self.is_there("c.txt");
        let mut missing = Vec::new();
        missing.extend((!self.is_there("a.txt")).then_some("a.txt"));
        missing.extend((!either).then_some(["b.txt", "c.txt"]).into_iter().flatten());
        let expected = if missing.is_empty() {
            expect(Decision::Allow, &[], Some("complete"))
        } else {
            let now = (missing, self.changes);
            let alike = self.blocks.iter().rev().take_while(|block| **block == now).count();
            if self.blocks.len() >= BLOCKS || alike >= SAME {
                expect(Decision::Allow, &[], Some("capped"))
            } else {
                self.blocks.push(now);
                expect(Decision::Deny, &["missing_files"], Some("incomplete"))
            }
        };
        self.lose_open();
        expected
    }

    fn attempt_begin(&mut self, name: usize) -> ExpectedVerdict {
        if self.attempts.iter().any(|(open, _)| *open == name) {
            return expect(Decision::Deny, &["duplicate_attempt"], None);
        }
        self.attempts.push((name, self.successes.clone()));
        allow()
    }

    fn attempt_end(&mut self, name: usize, rollback: bool) -> ExpectedVerdict {
        let Some(at) = self.attempts.iter().position(|(open, _)| *open == name) else {
            return expect(Decision::Deny, &["unknown_attempt"], None);
        };
        let (_, before) = self.attempts.remove(at);
        if rollback {
            self.successes = before;
            self.attempts.truncate(at);
            self.changes += 1;
        }
        allow()
    }
}

/// The engine, driven as a runtime drives it, and restored from a snapshot at every step.
struct ReplayedEngine {
    session: Session,
    definition: Arc<Definition>,
}

impl ReplayedEngine {
    fn send(&mut self, event: &Value, model: &SimpleModel) -> ExpectedVerdict {
        let event = parse_line(event.to_string().as_bytes(), None).expect("a valid event");
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
        for query in &self.session.needs(&event, &facts) {
            if let Query::File { path, .. } = query {
                let kind = if model.is_there(path) { FileKind::File } else { FileKind::Missing };
                facts.files.insert(path.clone(), FileFact::without_details(kind));
            }
        }
        let verdict = self.session.decide(&event, &facts);
        // A restored session decides and applies in the same way.
        let mut restored = Session::restore(
            Arc::clone(&self.definition),
            Arc::default(),
            &self.session.snapshot(),
        )
        .unwrap();
        assert_eq!(restored.decide(&event, &facts), verdict);
        let record =
            Record { seq: self.session.seq() + 1, event: &event, facts: &facts, verdict: &verdict };
        restored.apply(&record);
        self.session.apply(&record);
        assert_eq!(restored.snapshot(), self.session.snapshot());
        summarise(&verdict)
    }
}

fn summarise(verdict: &Verdict) -> ExpectedVerdict {
    ExpectedVerdict {
        decision: verdict.decision,
        subtypes: verdict
            .violations
            .iter()
            .map(|violation| violation.subtype.to_string())
            .collect(),
        completion: verdict.completion.as_ref().map(|completion| match completion {
            CompletionResult::Complete => "complete",
            CompletionResult::Incomplete { .. } => "incomplete",
            CompletionResult::Bypassed { .. } => "bypassed",
            CompletionResult::Capped { .. } => "capped",
            CompletionResult::Unverified { .. } => "unverified",
        }),
    }
}

fn play(ops: &[ModelOp]) {
    let definition = Arc::new(definition());
    let mut engine = ReplayedEngine {
        session: Session::new(Arc::clone(&definition), Arc::default()),
        definition,
    };
    let mut model = SimpleModel::default();
    for (number, op) in ops.iter().enumerate() {
        let (event, expected) = match op {
            ModelOp::Propose { tool } => {
                // The engine stores at most 64 open calls; the model stores all.
                if model.open.len() >= 60 {
                    continue;
                }
                let (id, tool) =
                    (format!("c{number}"), TOOLS.get(*tool).copied().unwrap_or("read"));
                let event = json!({"event":"tool_proposed","call":id,"tool":tool,"args":{}});
                (event, model.propose(&id, tool))
            }
            ModelOp::Finish { which, status, background } => {
                let open = model.open.get(*which).map(|call| call.id.clone());
                let id = open.unwrap_or_else(|| "missing".to_owned());
                let status = STATUSES.get(*status).copied().unwrap_or("ok");
                let event = json!({
                    "event":"tool_finished","call":id,"status":status,"background":background,
                });
                (event, model.finish(&id, status, *background))
            }
            ModelOp::Prompt { human } => {
                if *human {
                    model.blocks.clear();
                }
                model.lose_open();
                let source = if *human { "human" } else { "harness" };
                (json!({"event":"prompt_submitted","source":source}), allow())
            }
            ModelOp::Stop { sub_agent, background } => {
                let actor = if *sub_agent { "sub" } else { "main" };
                let running = u8::from(*background);
                let event = json!({"event":"stop_proposed","actor":actor,"background":running});
                (event, model.stop(*sub_agent, *background))
            }
            ModelOp::Flip { file } => {
                let file = FILES.get(*file).copied().unwrap_or("a.txt");
                let exists = model.is_there(file);
                model.files.insert(file, !exists);
                continue;
            }
            ModelOp::Reset => {
                model.successes.clear();
                model.attempts.clear();
                model.blocks.clear();
                (json!({"event":"control","action":"reset"}), allow())
            }
            ModelOp::Start => {
                model.lose_open();
                (json!({"event":"session_started"}), allow())
            }
            ModelOp::AttemptBegin { name } => {
                let event = json!({"event":"attempt_started","attempt":format!("a{name}")});
                (event, model.attempt_begin(*name))
            }
            ModelOp::AttemptEnd { name, rollback } => {
                let result = if *rollback { "rollback" } else { "commit" };
                let attempt = format!("a{name}");
                let event = json!({"event":"attempt_ended","attempt":attempt,"result":result});
                (event, model.attempt_end(*name, *rollback))
            }
        };
        let mut event = event;
        event["session"] = json!("s");
        // The engine queries the files before the model changes, so both use the same files.
        assert_eq!(engine.send(&event, &model), expected, "at {number}: {op:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_the_simple_model(ops in prop::collection::vec(op(), 1..150)) {
        play(&ops);
    }
}
