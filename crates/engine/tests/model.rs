//! A plain model of two guards, which keeps everything and recomputes, beside
//! the engine, which keeps little and folds. They must never disagree.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::definition::{
    Cap, Checker, Dependency, Graded, Loops, Need, Policy, PolicyRule, RequiredFile,
    SequentialDependency, Tool,
};
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::verdict::Completion;
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Decision, Definition, Facts, Kind, Now, Query, Record, Session, Timestamp, Verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOOLS: [&str; 7] = ["lint", "test", "build", "deploy", "edit", "write", "read"];
const FILES: [&str; 3] = ["a.txt", "b.txt", "c.txt"];
const STATUSES: [&str; 5] = ["ok", "error", "timeout", "crashed", "cancelled"];
const BLOCKS: usize = 4;
const SAME: usize = 2;

/// What can happen.
#[derive(Debug, Clone)]
enum Op {
    Propose {
        tool: usize,
    },
    /// Finishes one of the open calls, or one that is not.
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
    /// Changes whether a file is there.
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

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..TOOLS.len()).prop_map(|tool| Op::Propose { tool }),
        8 => (0..6_usize, 0..9_usize, prop::bool::weighted(0.1)).prop_map(|(which, status, background)| {
            Op::Finish { which, status: status.saturating_sub(4), background }
        }),
        1 => any::<bool>().prop_map(|human| Op::Prompt { human }),
        4 => (prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(sub_agent, background)| Op::Stop { sub_agent, background }),
        2 => (0..FILES.len()).prop_map(|file| Op::Flip { file }),
        1 => Just(Op::Reset),
        1 => Just(Op::Start),
        1 => (0..2_usize).prop_map(|name| Op::AttemptBegin { name }),
        1 => (0..2_usize, any::<bool>()).prop_map(|(name, rollback)| Op::AttemptEnd { name, rollback }),
    ]
}

/// What `deploy` and `build` need, and whether it must be fresh.
fn needs(tool: &str) -> &'static [(&'static str, bool)] {
    match tool {
        "deploy" => &[("test", false), ("build", true)],
        "build" => &[("lint", true)],
        _ => &[],
    }
}

fn definition() -> Definition {
    let tool = |name: &&str| Tool::named(name);
    let dependency = |tool: &str| Dependency {
        tool: tool.to_owned(),
        needs: needs(tool)
            .iter()
            .map(|(tool, fresh)| Need { tool: (*tool).to_owned(), fresh: *fresh })
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
        // Repetition is not what this model is about.
        loops: Loops {
            transparent: Kind::ALL.iter().map(|(_, kind)| *kind).collect(),
            graded: Graded { soft: u16::MAX - 2, hard: u16::MAX - 1, infinite: u16::MAX },
            ..Loops::default()
        },
        // a and (b or c)
        completion: Some(Checker::All(vec![
            Checker::Files(vec![file("a.txt")]),
            Checker::Any(vec![
                Checker::Files(vec![file("b.txt")]),
                Checker::Files(vec![file("c.txt")]),
            ]),
        ])),
        completion_cap: Cap { blocks: 4, same: 2 },
        ..Definition::default()
    }
}

#[derive(Debug, Clone)]
struct Call {
    id: String,
    tool: &'static str,
    /// How often the workspace had been changed when the call began.
    began: usize,
}

/// Everything that ever happened, kept as it is.
#[derive(Default)]
struct Model {
    open: Vec<Call>,
    /// How often the workspace was changed.
    changes: usize,
    /// Every success: the tool, and `began` of its call.
    successes: Vec<(&'static str, usize)>,
    attempts: Vec<(usize, Vec<(&'static str, usize)>)>,
    /// Every blocked stop of this turn: what was missing, and `changes`.
    blocks: Vec<(Vec<&'static str>, usize)>,
    files: BTreeMap<&'static str, bool>,
}

/// What the model expects of a verdict.
#[derive(Debug, PartialEq)]
struct Expected {
    decision: Decision,
    subtypes: Vec<String>,
    completion: Option<&'static str>,
}

fn expect(decision: Decision, subtypes: &[&str], completion: Option<&'static str>) -> Expected {
    let subtypes = subtypes.iter().map(|subtype| (*subtype).to_owned()).collect();
    Expected { decision, subtypes, completion }
}

fn allow() -> Expected {
    expect(Decision::Allow, &[], None)
}

impl Model {
    fn is_there(&self, file: &str) -> bool {
        self.files.get(file).copied().unwrap_or(false)
    }

    fn changes_files(tool: &str) -> bool {
        tool == "edit" || tool == "write"
    }

    /// Nobody knows how the open calls ended.
    fn lose_open(&mut self) {
        let lost = std::mem::take(&mut self.open);
        self.changes += lost.iter().filter(|call| Self::changes_files(call.tool)).count();
    }

    fn propose(&mut self, id: &str, tool: &'static str) -> Expected {
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
        self.open.push(Call { id: id.to_owned(), tool, began: self.changes });
        allow()
    }

    fn finish(&mut self, id: &str, status: &str, background: bool) -> Expected {
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

    fn stop(&mut self, sub_agent: bool, background: bool) -> Expected {
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

    fn attempt_begin(&mut self, name: usize) -> Expected {
        if self.attempts.iter().any(|(open, _)| *open == name) {
            return expect(Decision::Deny, &["duplicate_attempt"], None);
        }
        self.attempts.push((name, self.successes.clone()));
        allow()
    }

    fn attempt_end(&mut self, name: usize, rollback: bool) -> Expected {
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

/// The engine, driven as a runtime would, and replayed at every step.
struct Engine {
    session: Session,
    definition: Arc<Definition>,
}

impl Engine {
    fn send(&mut self, event: &Value, model: &Model) -> Expected {
        let event = parse_line(event.to_string().as_bytes(), None).expect("a valid event");
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
        for query in &self.session.needs(&event, &facts) {
            if let Query::File { path, .. } = query {
                let kind = if model.is_there(path) { FileKind::File } else { FileKind::Missing };
                facts.files.insert(path.clone(), FileFact::of(kind));
            }
        }
        let verdict = self.session.decide(&event, &facts);
        // A session that was saved and restored decides and folds the same.
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

fn summarise(verdict: &Verdict) -> Expected {
    Expected {
        decision: verdict.decision,
        subtypes: verdict
            .violations
            .iter()
            .map(|violation| violation.subtype.to_string())
            .collect(),
        completion: verdict.completion.as_ref().map(|completion| match completion {
            Completion::Complete => "complete",
            Completion::Incomplete { .. } => "incomplete",
            Completion::Bypassed { .. } => "bypassed",
            Completion::Capped { .. } => "capped",
            Completion::Unverified { .. } => "unverified",
        }),
    }
}

fn play(ops: &[Op]) {
    let definition = Arc::new(definition());
    let mut engine =
        Engine { session: Session::new(Arc::clone(&definition), Arc::default()), definition };
    let mut model = Model::default();
    for (number, op) in ops.iter().enumerate() {
        let (event, expected) = match op {
            Op::Propose { tool } => {
                // The engine keeps 64 open calls; the model keeps all.
                if model.open.len() >= 60 {
                    continue;
                }
                let (id, tool) =
                    (format!("c{number}"), TOOLS.get(*tool).copied().unwrap_or("read"));
                let event = json!({"event":"tool_proposed","call":id,"tool":tool,"args":{}});
                (event, model.propose(&id, tool))
            }
            Op::Finish { which, status, background } => {
                let open = model.open.get(*which).map(|call| call.id.clone());
                let id = open.unwrap_or_else(|| "nobody".to_owned());
                let status = STATUSES.get(*status).copied().unwrap_or("ok");
                let event = json!({
                    "event":"tool_finished","call":id,"status":status,"background":background,
                });
                (event, model.finish(&id, status, *background))
            }
            Op::Prompt { human } => {
                if *human {
                    model.blocks.clear();
                }
                model.lose_open();
                let source = if *human { "human" } else { "harness" };
                (json!({"event":"prompt_submitted","source":source}), allow())
            }
            Op::Stop { sub_agent, background } => {
                let actor = if *sub_agent { "sub" } else { "main" };
                let running = u8::from(*background);
                let event = json!({"event":"stop_proposed","actor":actor,"background":running});
                (event, model.stop(*sub_agent, *background))
            }
            Op::Flip { file } => {
                let file = FILES.get(*file).copied().unwrap_or("a.txt");
                let there = model.is_there(file);
                model.files.insert(file, !there);
                continue;
            }
            Op::Reset => {
                model.successes.clear();
                model.attempts.clear();
                model.blocks.clear();
                (json!({"event":"control","action":"reset"}), allow())
            }
            Op::Start => {
                model.lose_open();
                (json!({"event":"session_started"}), allow())
            }
            Op::AttemptBegin { name } => {
                let event = json!({"event":"attempt_started","attempt":format!("a{name}")});
                (event, model.attempt_begin(*name))
            }
            Op::AttemptEnd { name, rollback } => {
                let result = if *rollback { "rollback" } else { "commit" };
                let attempt = format!("a{name}");
                let event = json!({"event":"attempt_ended","attempt":attempt,"result":result});
                (event, model.attempt_end(*name, *rollback))
            }
        };
        let mut event = event;
        event["session"] = json!("s");
        // Files are looked at before the model moves on, so both see the same.
        assert_eq!(engine.send(&event, &model), expected, "at {number}: {op:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_and_the_plain_model_agree(ops in prop::collection::vec(op(), 1..150)) {
        play(&ops);
    }
}
