//! A plain model of what was used and what it cost, which keeps every report
//! and adds up anew, beside the engine, which keeps sums and takes back what is
//! replaced. They must never disagree.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jackline_engine::definition::{Limit, Limits, Models, Per, Price};
use jackline_engine::summary::UsageTotals;
use jackline_engine::wire::parse_line;
use jackline_engine::{Definition, Facts, Now, Record, Session, Timestamp, observe};
use proptest::prelude::*;
use serde_json::{Value, json};

const MODELS: [Option<&str>; 4] = [Some("dear"), Some("cheap-20260101"), Some("mystery"), None];

#[derive(Debug, Clone)]
enum Op {
    Report(Report),
    Prompt,
    Reset,
}

#[derive(Debug, Clone)]
struct Report {
    /// Fewer than can be replaced.
    request: Option<u8>,
    model: usize,
    tokens: [u64; 4],
    cost: Option<u64>,
    sub_agent: bool,
}

fn op() -> impl Strategy<Value = Op> {
    let tokens = prop_oneof![8 => 0..5_000_u64, 1 => Just(0), 1 => 0..u64::from(u32::MAX)];
    let report = (
        prop::option::weighted(0.8, 0..40_u8),
        0..MODELS.len(),
        prop::array::uniform4(tokens),
        prop::option::weighted(0.3, 0..1_000_000_u64),
        any::<bool>(),
    );
    prop_oneof![
        12 => report.prop_map(|(request, model, tokens, cost, sub_agent)| {
            Op::Report(Report { request, model, tokens, cost, sub_agent })
        }),
        1 => Just(Op::Prompt),
        1 => Just(Op::Reset),
    ]
}

fn definition() -> Definition {
    let price = |model: &str, unit: u64| Price {
        model: model.to_owned(),
        input: unit,
        output: 5 * unit,
        cache_read: unit / 10,
        cache_creation: unit + 7,
    };
    let limit = |per| Some(Limit { max: u64::MAX, soft: true, per });
    Definition {
        limits: Limits { cost_usd: limit(Per::Session), ..Limits::default() },
        models: Models {
            prices: vec![price("dear", 15_000_000), price("cheap", 33)],
            ..Models::default()
        },
        ..Definition::default()
    }
}

/// What one report adds, and the model it can't price.
fn plainly(report: &Report) -> (UsageTotals, Option<&'static str>) {
    let [input, output, cache_read, cache_creation] = report.tokens;
    let unit = match report.model {
        0 => Some(15_000_000_u128),
        1 => Some(33),
        _ => None,
    };
    let by_table = unit.map(|unit| {
        let sum = u128::from(input) * unit
            + u128::from(output) * 5 * unit
            + u128::from(cache_read) * (unit / 10)
            + u128::from(cache_creation) * (unit + 7);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap()
    });
    let cost = report.cost.or(by_table);
    let unpriced = cost.is_none() && report.tokens != [0; 4];
    let used = UsageTotals {
        input,
        output,
        cache_read,
        cache_creation,
        cost_micros: cost.unwrap_or(0),
        unpriced: u64::from(unpriced),
        unknown: 0,
    };
    (used, unpriced.then(|| MODELS[report.model].unwrap_or("a model without a name")))
}

/// Every report that counts: the turn it was first made in, and what it says now.
#[derive(Default)]
struct Plain {
    named: BTreeMap<(bool, u8), (u64, UsageTotals)>,
    nameless: Vec<(u64, UsageTotals)>,
    unpriced: BTreeSet<&'static str>,
    turn: u64,
    since: u64,
}

impl Plain {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Prompt => self.turn += 1,
            Op::Reset => {
                self.turn += 1;
                self.since = self.turn;
                self.unpriced.clear();
            }
            Op::Report(report) => {
                let (used, unpriced) = plainly(report);
                self.unpriced.extend(unpriced);
                match report.request {
                    None => self.nameless.push((self.turn, used)),
                    Some(request) => {
                        let key = (report.sub_agent, request);
                        let (_, known) = self.named.entry(key).or_insert((self.turn, used));
                        known.input = known.input.max(used.input);
                        known.output = known.output.max(used.output);
                        known.cache_read = known.cache_read.max(used.cache_read);
                        known.cache_creation = known.cache_creation.max(used.cache_creation);
                        known.cost_micros = known.cost_micros.max(used.cost_micros);
                        known.unpriced = known.unpriced.min(used.unpriced);
                    }
                }
            }
        }
    }

    fn sum(&self, from: u64) -> UsageTotals {
        let mut sum = UsageTotals::default();
        for (_, used) in self.named.values().chain(&self.nameless).filter(|(turn, _)| *turn >= from)
        {
            sum.input += used.input;
            sum.output += used.output;
            sum.cache_read += used.cache_read;
            sum.cache_creation += used.cache_creation;
            sum.cost_micros += used.cost_micros;
            sum.unpriced += used.unpriced;
        }
        sum
    }
}

fn event(op: &Op) -> Value {
    match op {
        Op::Prompt => json!({"event": "prompt_submitted", "source": "human"}),
        Op::Reset => json!({"event": "control", "action": "reset"}),
        Op::Report(report) => {
            let [input, output, cache_read, cache_creation] = report.tokens;
            json!({
                "event": "usage_reported", "input": input, "output": output,
                "cache_read": cache_read, "cache_creation": cache_creation,
                "request": report.request.map(|request| format!("r{request}")),
                "model": MODELS[report.model], "cost_micros": report.cost,
                "actor": if report.sub_agent { "helper" } else { "main" },
            })
        }
    }
}

fn send(session: &mut Session, op: &Op) {
    let mut event = event(op);
    event.as_object_mut().unwrap().insert("session".to_owned(), json!("s"));
    let event = parse_line(event.to_string().as_bytes(), None).unwrap();
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
    facts.observed = observe(&event);
    let verdict = session.decide(&event, &facts);
    let seq = session.seq() + 1;
    session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
}

proptest! {
    #[test]
    fn the_engine_and_the_plain_model_count_the_same(ops in prop::collection::vec(op(), 0..120)) {
        let mut session = Session::new(Arc::new(definition()), Arc::default());
        let mut plain = Plain::default();
        for op in &ops {
            send(&mut session, op);
            plain.apply(op);
            let summary = session.summary();
            prop_assert_eq!(summary.usage, plain.sum(plain.since));
            prop_assert_eq!(summary.turn.usage, plain.sum(plain.turn));
            let budget = &summary.budgets[0];
            prop_assert_eq!(budget.used, summary.usage.cost_micros);
            let named: BTreeSet<&str> = budget.unpriced.iter().map(String::as_str).collect();
            let expected = if summary.usage.unpriced > 0 { plain.unpriced.clone() } else { BTreeSet::new() };
            prop_assert_eq!(named, expected);
        }
    }
}
