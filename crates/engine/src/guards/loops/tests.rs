//! Overrides of every type are enforced and end as specified.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::signature::call_signature;
use crate::definition::{Definition, LoopSettings, Mode};
use crate::digest::Digest128;
use crate::event::Event;
use crate::facts::{Facts, Now};
use crate::id::{ActorId, SessionId};
use crate::proposal::{Proposal, ProposalSource};
use crate::session::{Record, Session};
use crate::session_location::SessionLocation;
use crate::state::{ForcedAction, OverrideDemand, OverrideDraft};
use crate::time::Timestamp;
use crate::tool::ToolKind;
use crate::verdict::Verdict;
use crate::wire::parse_line;

fn definition() -> Arc<Definition> {
    let loops = LoopSettings { mode: Mode::Enforce, ..LoopSettings::default() };
    Arc::new(Definition { loops, ..Definition::default() })
}

fn event(line: &str) -> Event {
    parse_line(line.as_bytes(), SessionId::parse("s").ok().as_ref()).unwrap()
}

fn proposed(id: i64, tool: &str, args: &str) -> String {
    alloc::format!(r#"{{"event":"tool_proposed","call":"c{id}","tool":"{tool}","args":{args}}}"#)
}

/// Returns the signature of a call.
fn call(tool: &str, args: &str) -> Digest128 {
    let (event, definition) = (event(&proposed(0, tool, args)), definition());
    let heard = ProposalSource::of(&definition, &event).unwrap();
    let proposal = Proposal::of(&definition, &SessionLocation::default(), &heard);
    call_signature(&proposal, &definition.loops, crate::observe(&event).args)
}

struct LoopSession(Session);

impl LoopSession {
    /// Creates a session in which the main agent is under one override, `k1`.
    fn under_override(demand: OverrideDemand, about: Digest128, expires_s: Option<i64>) -> Self {
        let mut session = Session::new(definition(), Arc::default());
        let expires_at = expires_s.map(|seconds| Timestamp::from_ms(seconds * 1000));
        let draft = OverrideDraft {
            demand,
            call: about,
            reason: "it was repeated".to_string(),
            expires_at,
            enforced: true,
        };
        session.state_mut().approvals.reserve_number();
        session.state_mut().overrides.add(1, &ActorId::main(), draft, 0);
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

    /// Returns the decision on a call, and the constraint that it names.
    fn call(&mut self, second: i64, tool: &str, args: &str) -> (&'static str, Option<String>) {
        let verdict = self.send(second, &proposed(second, tool, args));
        (verdict.decision.as_str(), verdict.violations.first().and_then(|v| v.location.clone()))
    }

    fn in_force(&self) -> usize {
        self.0.summary().constraints.len()
    }
}

fn allowed() -> (&'static str, Option<String>) {
    ("allow", None)
}

fn answered_by_k1(word: &'static str) -> (&'static str, Option<String>) {
    (word, Some("k1".to_string()))
}

#[test]
fn a_forbidden_call_stops_and_others_are_allowed() {
    let forbidden = call("t", r#"{"a":1}"#);
    let mut play = LoopSession::under_override(OverrideDemand::Forbid(forbidden), forbidden, None);
    assert_eq!(play.call(1, "t", r#"{"a":2}"#), allowed());
    assert_eq!(play.call(2, "t", r#"{"a":1}"#), answered_by_k1("stop"));
}

#[test]
fn an_override_ends_exactly_at_its_expiry() {
    let forbidden = call("t", r#"{"a":1}"#);
    let mut play =
        LoopSession::under_override(OverrideDemand::Forbid(forbidden), call("u", "{}"), Some(60));
    play.send(0, r#"{"event":"session_started"}"#);
    assert_eq!(play.call(59, "t", r#"{"a":1}"#), answered_by_k1("deny"));
    assert_eq!(play.in_force(), 1);
    assert_eq!(play.call(60, "t", r#"{"a":1}"#), allowed());
    assert_eq!(play.in_force(), 0);
}

#[test]
fn only_the_forced_action_is_allowed_until_it_is_done() {
    for wanted in [ForcedAction::Kind(ToolKind::Read), ForcedAction::Tool("Read".to_string())] {
        let mut play =
            LoopSession::under_override(OverrideDemand::Force(wanted), call("Edit", "{}"), None);
        assert_eq!(play.call(1, "Grep", r#"{"pattern":"x"}"#), answered_by_k1("deny"));
        assert_eq!(play.call(2, "Read", r#"{"file_path":"a"}"#), allowed());
        assert_eq!(play.call(3, "Grep", r#"{"pattern":"xy"}"#), allowed());
    }
    // An agent without a read tool reads with a command.
    let read = OverrideDemand::Force(ForcedAction::Kind(ToolKind::Read));
    let mut play = LoopSession::under_override(read, call("Edit", "{}"), None);
    assert_eq!(play.call(1, "Bash", r#"{"command":"make"}"#), answered_by_k1("deny"));
    assert_eq!(play.call(2, "Bash", r#"{"command":"cat a.txt"}"#), allowed());
    assert_eq!(play.in_force(), 0);
}

#[test]
fn a_tool_budget_is_used_up_by_calls_that_run() {
    let budget = OverrideDemand::Budget { tool: "api".to_string(), left: 2 };
    let mut play = LoopSession::under_override(budget, call("api", "{}"), None);
    for (second, expected) in (1..).zip([allowed(), allowed(), answered_by_k1("stop")]) {
        let args = alloc::format!(r#"{{"page":{second}}}"#);
        assert_eq!(play.call(second, "api", &args), expected);
    }
}

#[test]
fn a_different_search_ends_the_override_of_a_search() {
    let search = call("Grep", r#"{"pattern":"foo"}"#);
    let mut play =
        LoopSession::under_override(OverrideDemand::Widen(search), call("u", "{}"), None);
    assert_eq!(play.call(1, "Grep", r#"{"pattern":"foo"}"#), answered_by_k1("deny"));
    assert_eq!(play.call(2, "Read", r#"{"file_path":"a"}"#), allowed());
    assert_eq!(play.in_force(), 1);
    assert_eq!(play.call(3, "Grep", r#"{"pattern":"fo"}"#), allowed());
    assert_eq!(play.call(4, "Grep", r#"{"pattern":"foo"}"#), allowed());
}

#[test]
fn a_permission_of_a_person_takes_precedence_over_an_override() {
    use crate::definition::{OpaquePolicy, ShellSettings};
    let line = r#"{"command":"eval $X"}"#;
    let asking = Definition {
        shell: ShellSettings { opaque: OpaquePolicy::Ask },
        loops: LoopSettings { mode: Mode::Enforce, ..LoopSettings::default() },
        ..Definition::default()
    };
    let mut play = LoopSession(Session::new(Arc::new(asking), Arc::default()));
    assert_eq!(play.call(1, "Bash", line).0, "ask");
    let granted = play.send(2, r#"{"event":"control","action":"grant","seconds":600}"#);
    assert_eq!(granted.constraints.len(), 1);
    let forbidden = call("Bash", line);
    let demand = OverrideDemand::Forbid(forbidden);
    let draft = OverrideDraft {
        demand,
        call: forbidden,
        reason: String::new(),
        expires_at: None,
        enforced: true,
    };
    let number = play.0.state_mut().approvals.next_number();
    play.0.state_mut().overrides.add(number, &ActorId::main(), draft, 0);
    assert_eq!(play.call(3, "Bash", line), allowed());
}

#[test]
fn overrides_are_bounded_and_the_oldest_is_removed() {
    let mut play = LoopSession::under_override(
        OverrideDemand::Forbid(call("t0", "{}")),
        call("t0", "{}"),
        None,
    );
    let numbers: Vec<u32> = (2..40).collect();
    for number in numbers {
        let about = call(&alloc::format!("t{number}"), "{}");
        let demand = OverrideDemand::Forbid(about);
        let draft = OverrideDraft {
            demand,
            call: about,
            reason: "x".repeat(500),
            expires_at: None,
            enforced: true,
        };
        play.0.state_mut().overrides.add(number, &ActorId::main(), draft, 0);
    }
    assert_eq!(play.in_force(), 16);
    let size = postcard::to_allocvec(&play.0.state_mut().overrides).unwrap().len();
    assert!(size < 5 * 1024, "{size}");
    assert_eq!(play.call(1, "t0", "{}"), allowed());
}
