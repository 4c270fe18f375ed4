//! Overrides of every type hold, and end as they say.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::step::call_signature;
use crate::definition::{Definition, Loops, Mode};
use crate::digest::Digest128;
use crate::event::Event;
use crate::facts::{Facts, Now};
use crate::id::{ActorId, SessionId};
use crate::place::Place;
use crate::proposal::{Heard, Proposal};
use crate::session::{Record, Session};
use crate::state::{Demand, Draft, Wanted};
use crate::time::Timestamp;
use crate::tool::Kind;
use crate::verdict::Verdict;
use crate::wire::parse_line;

fn definition() -> Arc<Definition> {
    let loops = Loops { mode: Mode::Enforce, ..Loops::default() };
    Arc::new(Definition { loops, ..Definition::default() })
}

fn event(line: &str) -> Event {
    parse_line(line.as_bytes(), SessionId::parse("s").ok().as_ref()).unwrap()
}

fn proposed(id: i64, tool: &str, args: &str) -> String {
    alloc::format!(r#"{{"event":"tool_proposed","call":"c{id}","tool":"{tool}","args":{args}}}"#)
}

/// The signature of a call.
fn call(tool: &str, args: &str) -> Digest128 {
    let (event, definition) = (event(&proposed(0, tool, args)), definition());
    let heard = Heard::of(&definition, &event).unwrap();
    let proposal = Proposal::of(&definition, &Place::default(), &heard);
    call_signature(&proposal, &definition.loops, crate::observe(&event).args)
}

struct Play(Session);

impl Play {
    /// A session in which the main agent is under one override, as `k1`.
    fn under(demand: Demand, about: Digest128, expires_s: Option<i64>) -> Self {
        let mut session = Session::new(definition(), Arc::default());
        let expires_at = expires_s.map(|seconds| Timestamp::from_ms(seconds * 1000));
        let draft = Draft {
            demand,
            call: about,
            reason: "it was repeated".to_string(),
            expires_at,
            enforced: true,
        };
        session.state_mut().asks.took_number();
        session.state_mut().overrides.put(1, &ActorId::main(), draft, 0);
        Self(session)
    }

    fn send(&mut self, second: i64, line: &str) -> Verdict {
        let event = event(line);
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(second * 1000)));
        facts.observed = crate::observe(&event);
        let verdict = self.0.decide(&event, &facts);
        let record =
            Record { seq: self.0.seq() + 1, event: &event, facts: &facts, verdict: &verdict };
        self.0.apply(&record);
        verdict
    }

    /// The word of the decision on a call, and the constraint it names.
    fn call(&mut self, second: i64, tool: &str, args: &str) -> (&'static str, Option<String>) {
        let verdict = self.send(second, &proposed(second, tool, args));
        (verdict.decision.word(), verdict.violations.first().and_then(|v| v.location.clone()))
    }

    fn in_force(&self) -> usize {
        self.0.summary().constraints.len()
    }
}

fn allowed() -> (&'static str, Option<String>) {
    ("allow", None)
}

fn by_k1(word: &'static str) -> (&'static str, Option<String>) {
    (word, Some("k1".to_string()))
}

#[test]
fn a_forbidden_call_stops_and_others_pass() {
    let forbidden = call("t", r#"{"a":1}"#);
    let mut play = Play::under(Demand::Forbid(forbidden), forbidden, None);
    assert_eq!(play.call(1, "t", r#"{"a":2}"#), allowed());
    assert_eq!(play.call(2, "t", r#"{"a":1}"#), by_k1("stop"));
}

#[test]
fn an_override_is_over_exactly_at_its_expiry() {
    let forbidden = call("t", r#"{"a":1}"#);
    let mut play = Play::under(Demand::Forbid(forbidden), call("u", "{}"), Some(60));
    play.send(0, r#"{"event":"session_started"}"#);
    assert_eq!(play.call(59, "t", r#"{"a":1}"#), by_k1("deny"));
    assert_eq!(play.in_force(), 1);
    assert_eq!(play.call(60, "t", r#"{"a":1}"#), allowed());
    assert_eq!(play.in_force(), 0);
}

#[test]
fn a_forced_action_is_all_that_passes_until_it_is_done() {
    for wanted in [Wanted::Kind(Kind::Read), Wanted::Tool("Read".to_string())] {
        let mut play = Play::under(Demand::Force(wanted), call("Edit", "{}"), None);
        assert_eq!(play.call(1, "Grep", r#"{"pattern":"x"}"#), by_k1("deny"));
        assert_eq!(play.call(2, "Read", r#"{"file_path":"a"}"#), allowed());
        assert_eq!(play.call(3, "Grep", r#"{"pattern":"xy"}"#), allowed());
    }
    // Whoever has no tool for reading reads with a command.
    let read = Demand::Force(Wanted::Kind(Kind::Read));
    let mut play = Play::under(read, call("Edit", "{}"), None);
    assert_eq!(play.call(1, "Bash", r#"{"command":"make"}"#), by_k1("deny"));
    assert_eq!(play.call(2, "Bash", r#"{"command":"cat a.txt"}"#), allowed());
    assert_eq!(play.in_force(), 0);
}

#[test]
fn a_tool_budget_is_used_up_by_calls_that_run() {
    let budget = Demand::Budget { tool: "api".to_string(), left: 2 };
    let mut play = Play::under(budget, call("api", "{}"), None);
    for (second, expected) in (1..).zip([allowed(), allowed(), by_k1("stop")]) {
        let args = alloc::format!(r#"{{"page":{second}}}"#);
        assert_eq!(play.call(second, "api", &args), expected);
    }
}

#[test]
fn a_search_is_widened_by_another_one() {
    let search = call("Grep", r#"{"pattern":"foo"}"#);
    let mut play = Play::under(Demand::Widen(search), call("u", "{}"), None);
    assert_eq!(play.call(1, "Grep", r#"{"pattern":"foo"}"#), by_k1("deny"));
    assert_eq!(play.call(2, "Read", r#"{"file_path":"a"}"#), allowed());
    assert_eq!(play.in_force(), 1);
    assert_eq!(play.call(3, "Grep", r#"{"pattern":"fo"}"#), allowed());
    assert_eq!(play.call(4, "Grep", r#"{"pattern":"foo"}"#), allowed());
}

#[test]
fn what_a_person_permits_goes_before_what_the_guard_forbids() {
    use crate::definition::{Opaque, Shell};
    let line = r#"{"command":"eval $X"}"#;
    let asking = Definition {
        shell: Shell { opaque: Opaque::Ask },
        loops: Loops { mode: Mode::Enforce, ..Loops::default() },
        ..Definition::default()
    };
    let mut play = Play(Session::new(Arc::new(asking), Arc::default()));
    assert_eq!(play.call(1, "Bash", line).0, "ask");
    let granted = play.send(2, r#"{"event":"control","action":"grant","seconds":600}"#);
    assert_eq!(granted.constraints.len(), 1);
    let forbidden = call("Bash", line);
    let demand = Demand::Forbid(forbidden);
    let draft =
        Draft { demand, call: forbidden, reason: String::new(), expires_at: None, enforced: true };
    let number = play.0.state_mut().asks.next_number();
    play.0.state_mut().overrides.put(number, &ActorId::main(), draft, 0);
    assert_eq!(play.call(3, "Bash", line), allowed());
}

#[test]
fn overrides_are_bounded_and_the_oldest_gives_way() {
    let mut play = Play::under(Demand::Forbid(call("t0", "{}")), call("t0", "{}"), None);
    let numbers: Vec<u32> = (2..40).collect();
    for number in numbers {
        let about = call(&alloc::format!("t{number}"), "{}");
        let demand = Demand::Forbid(about);
        let draft = Draft {
            demand,
            call: about,
            reason: "x".repeat(500),
            expires_at: None,
            enforced: true,
        };
        play.0.state_mut().overrides.put(number, &ActorId::main(), draft, 0);
    }
    assert_eq!(play.in_force(), 16);
    let size = postcard::to_allocvec(&play.0.state_mut().overrides).unwrap().len();
    assert!(size < 5 * 1024, "{size}");
    assert_eq!(play.call(1, "t0", "{}"), allowed());
}
