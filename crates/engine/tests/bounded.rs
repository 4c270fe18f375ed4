//! The worst an agent can do to a session's memory stays within the limit.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use jackline_engine::definition::{
    Dependency, Need, Policy, PolicyRule, SequentialDependency, Tool,
};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    CARRY_BYTES_MAX, CUSTOM_POLICIES_MAX, Definition, Facts, ID_BYTES_MAX, Kind, Now,
    POLICY_BYTES_MAX, PolicyFact, Query, Record, STATE_BYTES_MAX, Session, Timestamp, observe,
};
use serde_json::{Value, json};

/// As many prerequisites as the loader accepts.
const PREREQUISITES: usize = 256;

fn name(kind: char, number: usize) -> String {
    let number = number.to_string();
    format!("{number}{}", kind.to_string().repeat(ID_BYTES_MAX - number.len()))
}

fn definition() -> Definition {
    let needs =
        (0..PREREQUISITES).map(|n| Need { tool: name('p', n), fresh: true }).collect::<Vec<_>>();
    let rule = SequentialDependency::new(vec![Dependency { tool: "deploy".to_owned(), needs }]);
    let custom = |n: usize| PolicyRule::Custom { name: format!("custom-{n}") };
    Definition {
        tools: (0..PREREQUISITES)
            .map(|n| Tool {
                kind: Kind::Edit,
                idempotent: n % 2 == 0,
                ..Tool::named(&name('p', n))
            })
            .collect(),
        policies: std::iter::once(PolicyRule::SequentialDependency(rule))
            .chain((0..CUSTOM_POLICIES_MAX).map(custom))
            .map(|rule| Policy { section: None, rule })
            .collect(),
        ..Definition::default()
    }
}

struct Play {
    session: Session,
    largest: usize,
}

impl Play {
    fn send(&mut self, mut event: Value) {
        event.as_object_mut().unwrap().insert("session".to_owned(), json!("s"));
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let far = Timestamp::from_ms(i64::MAX);
        let mut facts = Facts::at(Now { wall: far, boot_id: "b".repeat(36), boot_ms: u64::MAX });
        facts.observed = observe(&event);
        for query in &self.session.needs(&event, &facts) {
            match query {
                Query::PolicyCheck { number, .. } => {
                    let carry = Some("c".repeat(CARRY_BYTES_MAX / CUSTOM_POLICIES_MAX));
                    facts.policies.insert(*number, PolicyFact::Allowed { carry });
                }
                Query::PolicyResult { number, .. } => {
                    let text = "s".repeat(POLICY_BYTES_MAX);
                    facts.policies.insert(*number, PolicyFact::State { text });
                }
                _ => {}
            }
        }
        let verdict = self.session.decide(&event, &facts);
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        self.largest = self.largest.max(self.session.snapshot().len());
    }

    fn call(&mut self, id: usize, tool: &str, finish: bool) {
        let (id, actor) = (name('c', id), name('a', id % 40));
        self.send(json!({"event":"tool_proposed","actor":actor,"call":id,"tool":tool,"args":{}}));
        if finish {
            self.send(json!({"event":"tool_finished","call":id,"status":"ok"}));
        }
    }
}

#[test]
fn the_largest_state_fits() {
    let session = Session::new(Arc::new(definition()), Arc::default());
    let mut play = Play { session, largest: 0 };
    for n in 0..PREREQUISITES {
        play.call(n, &name('p', n), true);
    }
    for n in 0..6 {
        play.send(json!({"event":"attempt_started","attempt":name('t', n)}));
    }
    for n in 0..2200 {
        let huge = u64::MAX;
        play.send(json!({
            "event":"usage_reported","request":name('r', n),"input":huge,"output":huge,
            "cache_read":huge,"cache_creation":huge,
        }));
    }
    // Lost and denied ones, then as many open ones as are kept.
    for n in 1000..1200 {
        play.call(n, &name('x', n), false);
    }
    let words = "\u{10ffff}".repeat(400);
    play.send(json!({"event":"control","action":"pause","by":words,"why":words}));
    for n in 1200..1300 {
        play.call(n, &name('x', n), false);
    }
    assert!(play.largest > STATE_BYTES_MAX / 2, "{} bytes: is this the worst?", play.largest);
    assert!(play.largest <= STATE_BYTES_MAX, "{} bytes", play.largest);
}
