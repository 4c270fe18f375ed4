//! Reloads the definition of a running session: what continues and what starts from the initial
//! state.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_definition::load;
use jackline_engine::definition::{CompletionRequirement, Policy, PolicyRule, StoredDefinition};
use jackline_engine::facts::{
    DefinitionFact, NewDefinition, PinsFact, PolicyFact, ROUNDS_MAX, ReloadFact, VerificationFact,
};
use jackline_engine::verdict::ViolationType;
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Definition, Digest, Facts, Now, Query, Record, Session, Timestamp, Verdict, observe,
};
use serde_json::{Value, json};

/// A session under a definition, with the answers to its queries.
struct ReloadSession {
    session: Session,
    /// The queries so far.
    asked: Vec<Query>,
}

impl ReloadSession {
    fn new(definition: Definition) -> Self {
        Self { session: Session::new(Arc::new(definition), Arc::default()), asked: Vec::new() }
    }

    fn of(source: &str) -> Self {
        Self::new(loaded(source))
    }

    fn send(&mut self, event: Value) -> Verdict {
        self.send_with(event, None)
    }

    fn reload(&mut self, definition: Definition) -> Verdict {
        let checksum = Digest::of(definition.name.as_bytes());
        let new = NewDefinition {
            checksum,
            files: Vec::new(),
            lowered: StoredDefinition::new(definition.into()),
        };
        let reload = Some(ReloadFact::New(Box::new(new)));
        self.send_with(json!({"event": "control", "action": "reload"}), reload)
    }

    fn send_with(&mut self, mut event: Value, reload: Option<ReloadFact>) -> Verdict {
        event["session"] = json!("s");
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
        facts.observed = observe(&event);
        facts.reload = reload;
        for _ in 0..ROUNDS_MAX {
            for query in &self.session.needs(&event, &facts) {
                self.answer(query, &mut facts);
            }
        }
        let verdict = self.session.decide(&event, &facts);
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        verdict
    }

    fn answer(&mut self, query: &Query, facts: &mut Facts) {
        match query {
            Query::PolicyCheck { number, .. } => {
                let carry = Some(format!("carried by {number}"));
                facts.policies.insert(*number, PolicyFact::Allowed { carry });
            }
            Query::PolicyResult { number, state, call, .. } => {
                let text = format!("{state}{}", call.tool);
                facts.policies.insert(*number, PolicyFact::State { text });
            }
            Query::Verification { run, .. } => {
                facts.verifications.insert(*run, VerificationFact::Passed);
            }
            Query::Definition => facts.definition = Some(DefinitionFact::Same),
            Query::Watched { .. } => facts.watched = Some(BTreeMap::new()),
            Query::Changed { .. } => facts.changed = Some(BTreeMap::new()),
            Query::Protect { .. } => facts.protects = Some(BTreeMap::new()),
            // No agent is approved, so no approval is required. The tests ignore this query.
            Query::Pins { .. } => {
                facts.pins = Some(PinsFact::default());
                return;
            }
            other => panic!("{other:?}"),
        }
        self.asked.push(query.clone());
    }

    fn propose(&mut self, call: &str, tool: &str) -> Verdict {
        self.send(
            json!({"event": "tool_proposed", "call": call, "tool": tool, "args": {"c": call}}),
        )
    }

    fn finish(&mut self, call: &str) -> Verdict {
        self.send(json!({"event": "tool_finished", "call": call, "status": "ok"}))
    }

    fn run(&mut self, call: &str, tool: &str) -> Verdict {
        let verdict = self.propose(call, tool);
        self.finish(call);
        verdict
    }
}

fn loaded(source: &str) -> Definition {
    load(source.as_bytes(), "jackline.yaml").unwrap()
}

/// Sections with the same requirements, each with one tool of its own.
fn in_sections(names: &[&str]) -> Definition {
    let section = |name: &&str| {
        format!(
            "  - {{ name: {name}, tools: [lint, deploy, {name}], policies: [ sequential_dependency: {{ deploy: [lint] }} ] }}\n"
        )
    };
    let sections: String = names.iter().map(section).collect();
    loaded(&format!("sections:\n{sections}"))
}

#[test]
fn a_section_is_identified_by_its_tools() {
    let violations =
        |play: &mut ReloadSession, call: &str| play.propose(call, "deploy").violations.len();
    let mut play = ReloadSession::new(in_sections(&["one", "two"]));
    assert_eq!(violations(&mut play, "c1"), 2);
    play.run("c2", "lint");
    assert_eq!(violations(&mut play, "c3"), 0);
    // The numbers of sections have no meaning: the second section is now the first.
    play.reload(in_sections(&["two", "three"]));
    assert_eq!(violations(&mut play, "c4"), 1, "the new section has no successes");
    play.reload(in_sections(&["three", "two"]));
    assert_eq!(violations(&mut play, "c5"), 1);
    play.reload(in_sections(&["two"]));
    assert_eq!(violations(&mut play, "c6"), 0);
}

fn with_policies(names: &[&str]) -> Definition {
    let rule = |name: &&str| PolicyRule::Custom { name: (*name).to_owned() };
    let policies = names.iter().map(|name| Policy { section: None, rule: rule(name) });
    Definition { policies: policies.collect(), ..Definition::default() }
}

#[test]
fn state_and_carried_data_follow_a_custom_policy() {
    let mut play = ReloadSession::new(with_policies(&["first", "second"]));
    play.run("c1", "lint");
    play.propose("c2", "test");
    play.reload(with_policies(&["third", "second"]));
    play.asked.clear();
    play.finish("c2");
    let asked: Vec<(u16, &str, &str, Option<&str>)> = play
        .asked
        .iter()
        .filter_map(|query| match query {
            Query::PolicyResult { number, name, state, call } => {
                Some((*number, name.as_str(), state.as_str(), call.carried.as_deref()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(asked, [(0, "third", "", None), (1, "second", "lint", Some("carried by 1"))]);
}

fn with_commands(lines: &[(&str, u32)]) -> Definition {
    let command =
        |(number, (line, timeout_seconds)): (u16, &(&str, u32))| CompletionRequirement::Command {
            number,
            line: (*line).to_owned(),
            timeout_seconds: *timeout_seconds,
            trusted: true,
        };
    let all = (0..).zip(lines).map(command).collect();
    Definition { completion: Some(CompletionRequirement::All(all)), ..Definition::default() }
}

#[test]
fn a_verification_that_passed_has_passed_for_the_same_command_only() {
    let mut play = ReloadSession::new(with_commands(&[("make test", 60), ("make lint", 60)]));
    play.send(json!({"event": "stop_proposed"}));
    let ids = |asked: &[Query]| -> Vec<(u64, String)> {
        let id = |query: &Query| match query {
            Query::Verification { run, line, .. } => Some((*run, line.clone())),
            _ => None,
        };
        asked.iter().filter_map(id).collect()
    };
    let before = ids(&std::mem::take(&mut play.asked));
    let [(_, test), (lint_run, lint)] = before.as_slice() else { panic!("{before:?}") };
    assert_eq!([test, lint], ["make test", "make lint"]);
    play.reload(with_commands(&[("make lint", 60), ("make test", 90), ("make docs", 60)]));
    play.send(json!({"event": "stop_proposed"}));
    let after = ids(&std::mem::take(&mut play.asked));
    let earlier: Vec<u64> = before.iter().map(|(run, _)| *run).collect();
    let [same, longer, new] = after.as_slice() else { panic!("{after:?}") };
    assert_eq!(same, &(*lint_run, "make lint".to_owned()), "the unchanged command keeps its run");
    for (run, line) in [longer, new] {
        assert!(!earlier.contains(run), "`{line}` needs a new run");
    }
}

#[test]
fn a_changed_soft_limit_is_reported_again() {
    let mut play = ReloadSession::of(
        "limits: { steps: { max: 1, soft: true }, input_tokens: { max: 0, soft: true } }",
    );
    let reported = |verdict: &Verdict| -> Vec<String> {
        let observed = verdict.feedback.iter().flat_map(|feedback| &feedback.observations);
        observed.map(|it| format!("{} {}", it.category, it.description)).collect()
    };
    assert_eq!(reported(&play.run("c1", "t")), ["input_tokens 0 of 0"]);
    assert_eq!(reported(&play.run("c2", "t")), ["steps 1 of 1"]);
    play.reload(loaded(
        "limits: { steps: { max: 3, soft: true }, input_tokens: { max: 0, soft: true } }",
    ));
    assert_eq!(reported(&play.run("c3", "t")), [""; 0], "the unchanged limit was already reported");
    assert_eq!(reported(&play.run("c4", "t")), ["steps 3 of 3"]);
}

#[test]
fn a_call_counts_once_for_each_of_two_limits() {
    let mut definition =
        loaded("tools: { shell: { aliases: [Bash] } }\nlimits: { tool_calls: { shell: 3 } }");
    let (_, limit) = definition.limits.tool_calls.first().cloned().unwrap();
    definition.limits.tool_calls.push(("Bash".to_owned(), limit));
    let mut play = ReloadSession::new(definition);
    play.run("c1", "Bash");
    let used: Vec<u64> = play.session.summary().budgets.iter().map(|it| it.used).collect();
    assert_eq!(used, [1, 1]);
}

#[test]
fn a_session_stores_the_checksum_of_its_reloaded_definition() {
    let mut play = ReloadSession::of("name: a/one");
    assert_eq!(play.session.reloaded_checksum(), None);
    play.run("c1", "t");
    play.reload(loaded("name: a/two"));
    let two = Digest::of(b"a/two");
    assert_eq!(play.session.reloaded_checksum(), Some(two));
    assert_eq!(play.session.definition().name, "a/two");
    play.send(json!({"event": "control", "action": "reset"}));
    assert_eq!(play.session.reloaded_checksum(), Some(two), "a reset keeps the definition");
    play.send(json!({"event": "control", "action": "stop"}));
    let verdict = play.reload(loaded("name: a/three"));
    assert_eq!(verdict.violations.first().unwrap().kind, ViolationType::SessionOver);
    assert_eq!(play.session.definition().name, "a/two", "the session has ended");
}

#[test]
fn a_reload_record_without_its_definition_is_detected() {
    let mut play = ReloadSession::of("");
    play.run("c1", "t");
    let event = br#"{"session":"s","event":"control","action":"reload"}"#;
    let event = parse_line(event, None).unwrap();
    let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
    let refused = play.session.decide(&event, &facts);
    let lacks = |facts: &Facts, verdict: &Verdict| {
        Record { seq: 3, event: &event, facts, verdict }.lacks_definition()
    };
    assert!(!lacks(&facts, &refused), "a refused reload does not change the definition");
    assert!(lacks(&facts, &Verdict::allow()));
    let lowered = StoredDefinition::new(Arc::default());
    let new = NewDefinition { checksum: Digest::of(b""), files: Vec::new(), lowered };
    facts.reload = Some(ReloadFact::New(Box::new(new)));
    assert!(!lacks(&facts, &Verdict::allow()));
    for reload in [ReloadFact::Same, ReloadFact::Broken { reason: "line 1".to_owned() }] {
        facts.reload = Some(reload);
        assert!(lacks(&facts, &Verdict::allow()));
    }
}
