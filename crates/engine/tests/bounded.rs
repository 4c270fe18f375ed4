//! The state of a session stays within its limit, even for the most extreme agent.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use jackline_engine::bounds::{
    CARRY_BYTES_MAX, CUSTOM_POLICIES_MAX, ID_BYTES_MAX, POLICY_STATE_BYTES_MAX, STATE_BYTES_MAX,
};
use jackline_engine::definition::{
    BudgetLimit, CompletionRequirement, ContextThresholds, DeclaredTool, LOOPS_WINDOW_MAX,
    LimitPeriod, LoopProfile, LoopSettings, Policy, PolicyRule, Prerequisite, Rule, RuleEffect,
    RuleScope, Rules, SequentialDependency, SessionLimits, StrictLevels, ToolDependency,
};
use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind, PolicyFact, VerificationFact, WatchedFact};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Definition, Digest, Facts, Mode, Now, Query, Record, Session, SessionLocation, Timestamp,
    ToolKind, observe,
};
use serde_json::{Value, json};

/// The maximum number of prerequisites that the loader accepts.
const PREREQUISITES: usize = 256;

/// The maximum number of tools with limits that the loader accepts.
const TOOL_LIMITS: usize = 32;

fn name(kind: char, number: usize) -> String {
    let number = number.to_string();
    format!("{number}{}", kind.to_string().repeat(ID_BYTES_MAX - number.len()))
}

fn definition() -> Definition {
    let needs = (0..PREREQUISITES)
        .map(|n| Prerequisite { tool: name('p', n), fresh: true })
        .collect::<Vec<_>>();
    let rule = SequentialDependency::new(vec![ToolDependency { tool: "deploy".to_owned(), needs }]);
    let custom = |n: usize| PolicyRule::Custom { name: format!("custom-{n}") };
    Definition {
        tools: (0..PREREQUISITES)
            .map(|n| DeclaredTool {
                kind: ToolKind::Edit,
                idempotent: n % 2 == 0,
                ..DeclaredTool::with_name(&name('p', n))
            })
            .collect(),
        policies: std::iter::once(PolicyRule::SequentialDependency(rule))
            .chain((0..CUSTOM_POLICIES_MAX).map(custom))
            .chain([PolicyRule::ReadBeforeWrite { deletes: true }])
            .map(|rule| Policy { section: None, rule })
            .collect(),
        rules: Rules::new(vec![Rule {
            name: "asks".to_owned(),
            origin: "test".to_owned(),
            scope: RuleScope::Tool("asked".to_owned()),
            commands: Vec::new(),
            when: None,
            effect: RuleEffect::Ask,
            mode: Mode::Enforce,
            message: "m".repeat(1000),
            instead: None,
        }]),
        protected: (0..40).map(|n| format!("{}{n}", "d/".repeat(60))).collect(),
        completion: Some(CompletionRequirement::All(
            (0..16)
                .map(|number| CompletionRequirement::Command {
                    number,
                    line: "true".to_owned(),
                    timeout_seconds: 1,
                    trusted: true,
                })
                .collect(),
        )),
        // The session must continue, whatever the loop guard finds.
        loops: LoopSettings {
            profile: LoopProfile::Strict,
            strict: StrictLevels { window: LOOPS_WINDOW_MAX, threshold: 3, override_retries: 1 },
            ..LoopSettings::default()
        },
        limits: SessionLimits {
            cost_usd: Some(BudgetLimit { max: 0, soft: true, per: LimitPeriod::Session }),
            tool_calls: (0..TOOL_LIMITS)
                .map(|n| (name('p', n), BudgetLimit { max: 0, soft: true, per: LimitPeriod::Turn }))
                .collect(),
            ..SessionLimits::default()
        },
        context: Some(ContextThresholds::default()),
        ..Definition::default()
    }
}

/// A file with the largest possible number of lines.
fn file() -> FileFact {
    FileFact {
        bytes: 1,
        modified: Some(Timestamp::from_ms(i64::MAX)),
        stamp: Some(u64::MAX),
        digest: Some(Digest128::of(b"x")),
        lines: Some(u64::MAX),
        ..FileFact::without_details(FileKind::File)
    }
}

fn place() -> SessionLocation {
    SessionLocation { workspace: Some("/w".to_owned()), ..SessionLocation::default() }
}

struct BoundedSession {
    session: Session,
    largest: usize,
}

impl BoundedSession {
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
                    let text = "s".repeat(POLICY_STATE_BYTES_MAX);
                    facts.policies.insert(*number, PolicyFact::State { text });
                }
                Query::File { path, .. } => {
                    facts.files.insert(path.clone(), file());
                }
                Query::Watched { files, .. } => {
                    let existing = WatchedFact {
                        stamp: u64::MAX,
                        sha256: Some(Digest::of(b"x")),
                        ..WatchedFact::default()
                    };
                    let facts_of_files =
                        files.iter().map(|file| (file.path.clone(), existing.clone()));
                    facts.watched = Some(facts_of_files.collect());
                }
                Query::Verification { run, .. } => {
                    let tail = "t".repeat(2000);
                    facts.verifications.insert(*run, VerificationFact::TimedOut { tail });
                }
                _ => {}
            }
        }
        let verdict = self.session.decide(&event, &facts);
        let seq = self.session.seq() + 1;
        self.session.apply(&Record { seq, event: &event, facts: &facts, verdict: &verdict });
        // Taking a snapshot is slower than deciding, and the state grows slowly.
        if seq.is_multiple_of(32) || seq > 14_000 {
            self.largest = self.largest.max(self.session.snapshot().len());
        }
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
    let session = Session::new(Arc::new(definition()), Arc::new(place()));
    let mut play = BoundedSession { session, largest: 0 };
    let model = "\u{10ffff}".repeat(400);
    play.send(json!({
        "event":"session_started","client":"stdio","model":model,"prompt_hash":model,
        "tools_hash":model,"parameters_hash":model,"role":model,
    }));
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
            "cache_read":huge,"cache_creation":huge,"model":format!("{n}{model}"),
            "actor":name('a', n % 40),
        }));
    }
    play.send(json!({"event":"stop_proposed"}));
    // Files that many actors read in parts, and searched directories.
    for n in 0..1200_u32 {
        let (call, actor) = (name('f', n as usize), name('a', n as usize % 40));
        let path = format!("some/directory/of/the/project/file-{n}.rs");
        for piece in 0..5 {
            let offset = 1_000_000_000 + piece * 1000 + n;
            play.send(json!({
                "event":"tool_proposed","actor":actor,"call":call,"tool":"Read",
                "args":{"file_path":path,"offset":offset,"limit":piece + 1},
            }));
            play.send(json!({"event":"tool_finished","actor":actor,"call":call,"status":"ok"}));
        }
    }
    for n in 0..40_usize {
        let directory = format!("{n}{}", "/dir".repeat(60));
        let call = name('g', n);
        play.send(json!({
            "event":"tool_proposed","call":call,"tool":"Grep","args":{"path":directory},
        }));
        play.send(json!({"event":"tool_finished","call":call,"status":"ok"}));
    }
    // Calls that wait for approval, and answers of a person.
    for n in 0..60_usize {
        play.send(json!({
            "event":"tool_proposed","call":name('q', n),"tool":"asked","args":{"n":n},
        }));
        let why = "\u{10ffff}".repeat(400);
        let action = if n % 2 == 0 { "grant" } else { "refuse" };
        if n < 40 {
            play.send(json!({"event":"control","action":action,"why":why,"seconds":u32::MAX}));
        }
    }
    // Lost and denied calls, then the maximum number of open calls.
    for n in 1000..1200 {
        play.call(n, &name('x', n), false);
    }
    // The maximum number of actors, each with a history.
    for n in 0..31 * 40_usize {
        let (call, actor) = (name('l', n), name('b', n % 31));
        let tool = if n / 31 < 8 { "asked" } else { "Bash" };
        let args = json!({"command": format!("make {n}{}", "x".repeat(200))});
        play.send(json!({
            "event":"tool_proposed","actor":actor,"call":call,"tool":tool,"args":args,
        }));
        play.send(json!({"event":"tool_finished","actor":actor,"call":call,"status":"ok"}));
    }
    let words = "\u{10ffff}".repeat(400);
    play.send(json!({"event":"control","action":"pause","by":words,"why":words}));
    play.send(json!({"event":"control","action":"resume"}));
    for n in 1200..1300 {
        let line = format!("cat {} > {n}", "f".repeat(100));
        play.send(json!({
            "event":"tool_proposed","actor":name('b', n % 31),"call":name('x', n),"tool":"Bash",
            "args":{"command":line},
        }));
    }
    play.send(json!({"event":"control","action":"pause","by":words,"why":words}));
    assert!(
        play.largest > STATE_BYTES_MAX / 2,
        "{} bytes: the test no longer reaches a large state",
        play.largest
    );
    assert!(play.largest <= STATE_BYTES_MAX, "{} bytes", play.largest);
}
