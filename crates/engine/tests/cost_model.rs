//! Compares the engine with a simple model of usage and cost. The model stores every report and
//! adds all of them each time. The engine stores sums and subtracts the counts that a report
//! replaces. Both must always agree.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jackline_engine::definition::{
    BudgetLimit, LimitPeriod, ModelPrice, ModelTables, SessionLimits,
};
use jackline_engine::summary::UsageTotals;
use jackline_engine::wire::parse_line;
use jackline_engine::{Definition, Facts, Now, Record, Session, Timestamp, observe};
use proptest::prelude::*;
use serde_json::{Value, json};

const MODELS: [Option<&str>; 4] = [Some("dear"), Some("cheap-20260101"), Some("mystery"), None];

#[derive(Debug, Clone)]
enum CostOp {
    Report(ModelReport),
    Prompt,
    Reset,
}

#[derive(Debug, Clone)]
struct ModelReport {
    /// Fewer than the number of requests that can be updated.
    request: Option<u8>,
    model: usize,
    tokens: [u64; 4],
    cost: Option<u64>,
    sub_agent: bool,
}

fn op() -> impl Strategy<Value = CostOp> {
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
            CostOp::Report(ModelReport { request, model, tokens, cost, sub_agent })
        }),
        1 => Just(CostOp::Prompt),
        1 => Just(CostOp::Reset),
    ]
}

fn definition() -> Definition {
    let price = |model: &str, unit: u64| ModelPrice {
        model: model.to_owned(),
        input: unit,
        output: 5 * unit,
        cache_read: unit / 10,
        cache_creation: unit + 7,
    };
    let limit = |per| Some(BudgetLimit { max: u64::MAX, soft: true, per });
    Definition {
        limits: SessionLimits { cost_usd: limit(LimitPeriod::Session), ..SessionLimits::default() },
        models: ModelTables {
            prices: vec![price("dear", 15_000_000), price("cheap", 33)],
            ..ModelTables::default()
        },
        ..Definition::default()
    }
}

/// The usage that one report adds, and the name of the model if it has no price.
fn expected_usage(report: &ModelReport) -> (UsageTotals, Option<&'static str>) {
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

/// Every report that counts, with the turn in which it was first made and its latest counts.
#[derive(Default)]
struct CostModel {
    with_id: BTreeMap<(bool, u8), (u64, UsageTotals)>,
    without_id: Vec<(u64, UsageTotals)>,
    unpriced: BTreeSet<&'static str>,
    turn: u64,
    since: u64,
}

impl CostModel {
    fn apply(&mut self, op: &CostOp) {
        match op {
            CostOp::Prompt => self.turn += 1,
            CostOp::Reset => {
                self.turn += 1;
                self.since = self.turn;
                self.unpriced.clear();
            }
            CostOp::Report(report) => {
                let (used, unpriced) = expected_usage(report);
                self.unpriced.extend(unpriced);
                match report.request {
                    None => self.without_id.push((self.turn, used)),
                    Some(request) => {
                        let key = (report.sub_agent, request);
                        let (_, total) = self.with_id.entry(key).or_insert((self.turn, used));
                        total.input = total.input.max(used.input);
                        total.output = total.output.max(used.output);
                        total.cache_read = total.cache_read.max(used.cache_read);
                        total.cache_creation = total.cache_creation.max(used.cache_creation);
                        total.cost_micros = total.cost_micros.max(used.cost_micros);
                        total.unpriced = total.unpriced.min(used.unpriced);
                    }
                }
            }
        }
    }

    fn sum(&self, from: u64) -> UsageTotals {
        let mut sum = UsageTotals::default();
        for (_, used) in
            self.with_id.values().chain(&self.without_id).filter(|(turn, _)| *turn >= from)
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

fn event(op: &CostOp) -> Value {
    match op {
        CostOp::Prompt => json!({"event": "prompt_submitted", "source": "human"}),
        CostOp::Reset => json!({"event": "control", "action": "reset"}),
        CostOp::Report(report) => {
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

fn send(session: &mut Session, op: &CostOp) {
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
        let mut model = CostModel::default();
        for op in &ops {
            send(&mut session, op);
            model.apply(op);
            let summary = session.summary();
            prop_assert_eq!(summary.usage, model.sum(model.since));
            prop_assert_eq!(summary.turn.usage, model.sum(model.turn));
            let budget = &summary.budgets[0];
            prop_assert_eq!(budget.used, summary.usage.cost_micros);
            let named: BTreeSet<&str> = budget.unpriced.iter().map(String::as_str).collect();
            let expected = if summary.usage.unpriced > 0 { model.unpriced.clone() } else { BTreeSet::new() };
            prop_assert_eq!(named, expected);
        }
    }
}
