//! Compares the advisor and the fallback models of a stuck agent with a simple model.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use jackline_engine::definition::{
    Advisor, GradedLevels, LoopSettings, ModelChoice, ModelKind, ModelProvider,
};
use jackline_engine::summary::PauseCause;
use jackline_engine::verdict::SafetyAction;
use jackline_engine::wire::parse_event;
use jackline_engine::{
    Decision, Definition, Facts, Mode, Now, Record, Session, Timestamp, Verdict, observe,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// After this number of equal calls, the agent is paused.
const HARD: u16 = 3;

#[derive(Debug, Clone, Copy)]
enum StuckOp {
    /// The agent repeats a call until it is paused, or once more if it is already paused.
    Circle,
    /// A model of the advisor was asked, and gave an instruction, answered nothing of use, or could
    /// not be reached.
    Answer { says: bool, reached: bool },
    /// Another model continues, because the agent is stuck or for another reason. It may be a model
    /// that the definition does not name.
    Change { blocked: bool, to: u32 },
    /// A person sends a prompt.
    Human,
    /// A person clears the blocker.
    Clear,
    /// A person reopens the session.
    Reset,
    /// The process restarts.
    Restart,
}

fn an_op() -> impl Strategy<Value = StuckOp> {
    prop_oneof![
        4 => Just(StuckOp::Circle),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(says, reached)| StuckOp::Answer {
            says: says && reached,
            reached,
        }),
        3 => (any::<bool>(), 0..4_u32).prop_map(|(blocked, to)| StuckOp::Change { blocked, to }),
        1 => Just(StuckOp::Human),
        1 => Just(StuckOp::Clear),
        1 => Just(StuckOp::Reset),
        1 => Just(StuckOp::Restart),
    ]
}

fn definition(models: usize, budget: Option<u32>) -> Definition {
    let model = |number: usize| ModelChoice {
        kind: ModelKind::Provider {
            provider: ModelProvider::Scripted,
            model: format!("m{number}"),
            url: None,
            key_env: None,
            window: None,
            timeout_seconds: None,
        },
        worker_model: None,
        when: Vec::new(),
        budget: None,
    };
    Definition {
        loops: LoopSettings {
            mode: Mode::Enforce,
            graded: GradedLevels { soft: 2, hard: HARD, infinite: 10_000 },
            ..LoopSettings::default()
        },
        choices: (0..models).map(model).collect(),
        advisor: budget.map(|budget| Advisor {
            models: vec![model(8), model(9)],
            transcript_lines: 1,
            budget,
        }),
        ..Definition::default()
    }
}

struct StuckEngine {
    session: Session,
    calls: u64,
}

impl StuckEngine {
    fn send(&mut self, mut event: Value) -> Verdict {
        event.as_object_mut().unwrap().insert("session".to_owned(), json!("s"));
        let event = parse_event(event).unwrap();
        let seq = self.session.seq() + 1;
        let at = Timestamp::from_ms(1_000 * i64::try_from(seq).unwrap());
        let mut facts = Facts::at(Now::wall(at));
        facts.observed = observe(&event);
        let verdict = self.session.decide(&event, &facts);
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        verdict
    }

    fn propose(&mut self) -> Verdict {
        self.calls += 1;
        let call = format!("c{}", self.calls);
        let args = json!({"file_path": "a.txt"});
        self.send(json!({"event": "tool_proposed", "call": call, "tool": "Read", "args": args}))
    }

    fn finish(&mut self) -> Verdict {
        let call = format!("c{}", self.calls);
        self.send(json!({"event": "tool_finished", "call": call, "status": "ok", "result": "x"}))
    }
}

/// The simple model.
#[derive(Debug, Default)]
struct StuckModel {
    models: u32,
    budget: Option<u32>,
    stuck: bool,
    asked: u32,
    /// The models that were asked the current question, and whether one of them answered.
    question: (u32, bool),
    /// The models that were stuck or continued since the last prompt of a person.
    tried: Vec<String>,
    steps: u64,
    at_work: Option<String>,
    /// Whether the circle of the current model is still counted. After an advisor's instruction, its
    /// next call pauses the agent again.
    counted: bool,
}

impl StuckModel {
    fn answer(&mut self, says: bool, reached: bool) -> Decision {
        self.steps += 1;
        let Some(budget) = self.budget.filter(|_| self.stuck) else { return Decision::Deny };
        let (models, answered) = if self.question.0 < 2 { self.question } else { (0, false) };
        if self.asked >= budget && !answered {
            return Decision::Deny;
        }
        self.asked += u32::from(reached && !answered);
        self.question = (models + 1, answered || reached);
        if says {
            (self.stuck, self.question) = (false, (0, false));
        }
        Decision::Allow
    }

    fn resume(&mut self) {
        self.counted = false;
        (self.stuck, self.question) = (false, (0, false));
    }

    fn change(&mut self, blocked: bool, to: &str) -> Decision {
        self.steps += 1;
        if blocked {
            let works = self.at_work.clone().unwrap_or_else(|| label(0));
            let is_named = (0..self.models).any(|number| label(number) == to);
            let had_its_turn = works == to || self.tried.iter().any(|tried| tried == to);
            if !self.stuck || !is_named || had_its_turn {
                return Decision::Deny;
            }
            self.tried.extend([works, to.to_owned()]);
            self.resume();
        }
        self.at_work = Some(to.to_owned());
        self.counted = false;
        Decision::Allow
    }
}

/// The label of a model in the definition.
fn label(number: u32) -> String {
    format!("scripted/m{number}")
}

fn play(models: u32, budget: Option<u32>, ops: &[StuckOp]) {
    let definition = Arc::new(definition(models as usize, budget));
    let session = Session::new(Arc::clone(&definition), Arc::default());
    let mut engine = StuckEngine { session, calls: 0 };
    let mut model = StuckModel { models, budget, ..StuckModel::default() };
    for (number, op) in ops.iter().enumerate() {
        let context = format!("at {number}: {op:?} of {model:?}");
        match *op {
            StuckOp::Circle if model.stuck => {
                model.steps += 1;
                assert_eq!(engine.propose().decision, Decision::Pause, "{context}");
            }
            StuckOp::Circle => {
                let hard = if model.counted { 1 } else { HARD };
                for count in 1..=hard {
                    model.steps += 1;
                    assert_eq!(engine.propose().decision, Decision::Allow, "{context}");
                    let expected = if count == hard { Decision::Pause } else { Decision::Allow };
                    assert_eq!(engine.finish().decision, expected, "{context}");
                }
                (model.stuck, model.counted) = (true, true);
            }
            StuckOp::Answer { says, reached } => {
                let instruction = if says { json!("Look elsewhere.") } else { Value::Null };
                let error = if reached { Value::Null } else { json!("no route") };
                let event = json!({"event": "advisor_answered", "model": "m",
                                   "instruction": instruction, "error": error});
                let verdict = engine.send(event);
                let expected = model.answer(says, reached);
                assert_eq!(verdict.decision, expected, "{context}");
                let is_delivered = says && expected == Decision::Allow;
                assert_eq!(verdict.context.is_some(), is_delivered || expected == Decision::Deny);
                assert_eq!(
                    (verdict.feedback.len(), verdict.safety.len()),
                    (is_delivered.into(), 1)
                );
            }
            StuckOp::Change { blocked, to } => {
                let (to, reason) = (label(to), if blocked { "blocked" } else { "cost" });
                let verdict =
                    engine.send(json!({"event": "model_changed", "to": to, "reason": reason}));
                assert_eq!(verdict.decision, model.change(blocked, &to), "{context}");
                assert_eq!(verdict.safety.len(), 1);
            }
            StuckOp::Human => {
                engine.send(json!({"event": "prompt_submitted", "source": "human"}));
                model.resume();
                model.tried.clear();
            }
            StuckOp::Clear => {
                let verdict = engine.send(json!({"event": "control", "action": "clear_blocker"}));
                assert_eq!(verdict.decision == Decision::Allow, model.stuck, "{context}");
                if model.stuck {
                    model.resume();
                }
            }
            StuckOp::Reset => {
                engine.send(json!({"event": "control", "action": "reset"}));
                let StuckModel { models, budget, at_work, .. } = model;
                model = StuckModel { models, budget, at_work, ..StuckModel::default() };
            }
            StuckOp::Restart => {
                let saved = engine.session.snapshot();
                engine.session =
                    Session::restore(Arc::clone(&definition), Arc::default(), &saved).unwrap();
            }
        }
        let summary = engine.session.summary();
        assert_eq!(summary.paused_cause == Some(PauseCause::Loop), model.stuck, "{context}");
        assert_eq!(summary.steps, model.steps, "{context}");
        assert_eq!(summary.model, model.at_work, "{context}");
        let asked = summary.advisor.map(|advisor| (advisor.used, advisor.budget));
        assert_eq!(asked, budget.map(|budget| (model.asked, budget)), "{context}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn advisor_and_fallback_models_are_used_within_their_budgets(
        models in 0..4_u32,
        budget in prop::option::of(0..4_u32),
        ops in prop::collection::vec(an_op(), 0..40),
    ) {
        play(models, budget, &ops);
    }
}

/// An advisor's answer fits into the space for feedback after escaping.
#[test]
fn an_advisors_answer_is_cut_to_the_space_for_feedback() {
    for (room, instruction, shown) in [
        (4096, "Read the log.", Some("Read the log.")),
        (45, "<<<<", None),
        (46, "<", Some("&lt;")),
        (46, "<<", None),
        (49, "<<", Some("&lt;…")),
        (50, "<<", Some("&lt;&lt;")),
        (48, "éééééé", Some("é…")),
        (0, "Read the log.", None),
        (4096, "  ", None),
    ] {
        let bytes = Definition { feedback_bytes_max: room, ..definition(1, Some(9)) };
        let session = Session::new(Arc::new(bytes), Arc::default());
        let mut engine = StuckEngine { session, calls: 0 };
        for _ in 0..HARD {
            engine.propose();
            engine.finish();
        }
        let verdict = engine.send(json!({"event": "advisor_answered", "instruction": instruction}));
        let block =
            shown.map(|shown| format!("<feedback provider='advisor'>\n{shown}\n</feedback>"));
        assert_eq!(verdict.context, block, "{instruction} in {room}");
        assert!(verdict.context.is_none_or(|text| text.len() <= room as usize));
        let taken = if shown.is_some() {
            SafetyAction::InjectedInstruction
        } else {
            SafetyAction::NoAnswer
        };
        assert_eq!(verdict.safety[0].action_taken, taken);
        assert_eq!(engine.session.summary().paused_cause.is_none(), shown.is_some());
    }
}
