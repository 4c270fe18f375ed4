//! Backtests of recorded runs: certain results, and results that can't be known any more.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use jackline_analysis::{Backtest, BacktestOutcome, BacktestStep, ResultMemo, UnrecordedFact};
use jackline_engine::wire::parse_line;
use jackline_engine::{Decision, SessionId, SessionLocation};
use serde_json::{Value, json};

const CODING: &str = "extends: [coding-agent]";

fn play(source: &str, events: &[Value]) -> (Vec<BacktestStep>, BacktestOutcome) {
    let definition = jackline_definition::load(source.as_bytes(), "test").unwrap();
    let place =
        SessionLocation { home: Some("/home/dana".to_owned()), ..SessionLocation::default() };
    let (mut run, memo) = (Backtest::new(&definition, place).start(), ResultMemo::default());
    let id = SessionId::parse("s").unwrap();
    let started = json!({"event": "session_started", "workspace": "/project"});
    let steps = std::iter::once(&started).chain(events).map(|event| {
        let mut event = parse_line(event.to_string().as_bytes(), Some(&id)).unwrap();
        run.event(&mut event, &memo).unwrap()
    });
    let steps = steps.collect::<Vec<_>>().split_off(1);
    (steps, run.finish())
}

fn call(tool: &str, args: &Value) -> Value {
    json!({"event": "tool_proposed", "call": "c", "tool": tool, "args": args})
}

fn line(line: &str) -> Value {
    call("Bash", &json!({"command": line}))
}

fn finished() -> Value {
    json!({"event": "tool_finished", "call": "c", "status": "ok", "result": "done"})
}

/// The result for one call: the decision, the sources of its violations, and the undecidable parts.
fn said(source: &str, event: Value) -> (Decision, Vec<String>, Vec<(String, UnrecordedFact)>) {
    let (steps, _) = play(source, &[event]);
    let step = &steps[0];
    let by = step.violations.iter().map(jackline_analysis::violation_source).collect();
    let unsure = step.undecidable.iter().map(|one| (one.guard.clone(), one.missing)).collect();
    (step.decision, by, unsure)
}

fn unsure(guard: &str, lacks: UnrecordedFact) -> Vec<(String, UnrecordedFact)> {
    vec![(guard.to_owned(), lacks)]
}

#[test]
fn a_decision_on_the_call_alone_is_certain() {
    let deny = |rule: &str| (Decision::Deny, vec![rule.to_owned()], vec![]);
    assert_eq!(said(CODING, line("git stash clear")), deny("git/stash-clear"));
    assert_eq!(said(CODING, line("ls -la")), (Decision::Allow, vec![], vec![]));
    let ask = (Decision::Ask, vec!["git/stash-drop".to_owned()], vec![]);
    assert_eq!(said(CODING, line("git stash drop")), ask);
}

#[test]
fn a_repeat_that_a_strict_definition_stops_is_reported() {
    let strict = "loops: { profile: strict }";
    let same: Vec<_> = (0..5).flat_map(|_| [line("make check"), finished()]).collect();
    for source in [strict, "mode: observe\nloops: { profile: strict }"] {
        let (_, outcome) = play(source, &same);
        assert_eq!((outcome.hard, outcome.denied), (Some(2), vec![3, 4]));
        assert_eq!(
            outcome.stop.map(|stop| stop.to_string()).as_deref(),
            Some("SYSTEM_ERROR{loop}")
        );
    }
    // The second repeat stops where the first is only denied.
    let later = "loops: { profile: strict, strict: { override_retries: 2 } }";
    let (steps, outcome) = play(later, &same);
    assert_eq!((steps[6].decision, steps[8].decision), (Decision::Deny, Decision::Stop));
    assert!(outcome.stop.is_some());
    // Three equal calls only cause a warning if there is no fourth.
    assert_eq!(play(strict, &same[..6]).1.stop, None);
}

#[test]
fn a_result_that_depends_on_the_repository_is_not_guessed() {
    let (decision, by, lacks) = said(CODING, line("git commit --amend"));
    assert_eq!((decision, by), (Decision::Allow, vec![]));
    assert_eq!(lacks, unsure("git/amend-protected", UnrecordedFact::Repository));
}

#[test]
fn a_result_that_depends_on_files_is_not_guessed() {
    let rule = "rules: [{ name: there, tool: exec, when: 'exists(\"a\")', deny: no, \
                examples: { deny: [{ run: ls, given: { exists: [a] } }] } }]";
    let (decision, _, lacks) = said(rule, line("ls"));
    assert_eq!((decision, lacks), (Decision::Allow, unsure("there", UnrecordedFact::Files)));

    let reads = "policies: [ read_before_write: {} ]";
    let (decision, _, lacks) =
        said(reads, call("Write", &json!({"file_path": "/project/a", "content": ""})));
    assert_eq!(decision, Decision::Allow);
    assert!(lacks.contains(&("read_before_write".to_owned(), UnrecordedFact::Files)), "{lacks:?}");
}

#[test]
fn a_protected_path_is_recognised_by_name_but_links_are_undecidable() {
    let write = |path: &str| call("Write", &json!({"file_path": path, "content": "x"}));
    let protected = vec!["protected".to_owned()];
    for path in ["/project/jackline.yaml", "/project/.claude/settings.json"] {
        assert_eq!(
            said(CODING, write(path)),
            (Decision::Deny, protected.clone(), vec![]),
            "{path}"
        );
    }
    let (decision, by, lacks) = said(CODING, write("/project/src/a.rs"));
    assert_eq!((decision, by), (Decision::Allow, vec![]));
    assert_eq!(lacks, unsure("protected", UnrecordedFact::Links));
    // If `kept` was a directory, the file would have been copied into it, and would be a file of
    // the guard there. If not, `kept` was a backup copy.
    let (decision, _, lacks) = said(CODING, line("cp a/jackline.yaml kept"));
    assert_eq!((decision, lacks), (Decision::Allow, unsure("protected", UnrecordedFact::Files)));
}

#[test]
fn a_broken_rule_is_broken_for_every_kind_of_file() {
    let rule = "rules: [{ name: odd, tool: exec, when: 'args.n > 1', deny: no, \
                examples: { deny: [{ run: { command: ls, n: 2 } }] } }]";
    let (decision, by, lacks) = said(rule, line("rm -r a"));
    assert_eq!((decision, by), (Decision::Deny, vec!["odd".to_owned()]));
    assert_eq!(lacks, unsure("protected", UnrecordedFact::Links));
}

#[test]
fn recorded_calls_count_as_run_even_if_they_would_be_denied() {
    let source = "tools: { lint: { commands: [make lint] }, deploy: { commands: [make deploy] } }\n\
                  unknown_tools: allow\n\
                  policies: [ sequential_dependency: { deploy: [lint] } ]\n\
                  rules: [{ name: no-lint, tool: exec, command: make lint, deny: no, \
                  examples: { deny: [make lint] } }]";
    let events =
        [line("make deploy"), finished(), line("make lint"), finished(), line("make deploy")];
    let (steps, outcome) = play(source, &events);
    let decisions: Vec<Decision> = steps.iter().step_by(2).map(|step| step.decision).collect();
    // The lint would have been denied. It ran, so the deployment is allowed.
    assert_eq!(decisions, [Decision::Deny, Decision::Deny, Decision::Allow]);
    assert_eq!((outcome.denied, outcome.calls), (vec![0, 1], 3));
    assert_eq!(outcome.rule.as_deref(), Some("sequential_dependency"));
}

#[test]
fn an_observed_definition_is_decided_as_if_it_were_enforced() {
    let source = "extends: [coding-agent]\nmode: observe";
    assert_eq!(said(source, line("git stash clear")).0, Decision::Deny);
    let source = "rules: [{ name: tried, tool: exec, command: ls, deny: no, mode: observe, \
                  examples: { deny: [ls] } }]";
    assert_eq!(said(source, line("ls")).0, Decision::Deny);
    // A rule that only observes has no effect in any mode.
    let source = source
        .replace("deny: no, mode: observe", "observe: seen")
        .replace("{ deny: [ls] }", "{ observe: [ls] }");
    assert_eq!(said(&source, line("ls")).0, Decision::Allow);
}

#[test]
fn later_events_are_decided_after_a_limit_has_stopped_the_session() {
    let (steps, outcome) =
        play("limits: { steps: 1 }", &[line("ls"), finished(), line("ls"), finished(), line("ls")]);
    assert_eq!(steps[4].decision, Decision::Stop);
    assert_eq!(outcome.denied, [1, 2]);
    assert_eq!(serde_json::to_value(outcome).unwrap()["stop"], json!("BUDGET_EXCEEDED{steps}"));
}

#[test]
fn secrets_are_redacted_first() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let (steps, _) = play(CODING, &[line(&format!("git stash clear; echo {secret}"))]);
    let shown = format!("{:?}", steps[0]);
    assert!(!shown.contains(secret) && shown.contains("git stash clear"), "{shown}");
}

#[test]
fn a_stop_with_a_file_check_is_undecidable() {
    let (steps, outcome) =
        play("completion: { files: [report.md] }", &[json!({"event": "stop_proposed"})]);
    assert_eq!(steps[0].decision, Decision::Allow);
    assert!(outcome.undecidable.contains("completion"), "{outcome:?}");
}

#[test]
fn an_outcome_has_every_field() {
    // Both calls have the same id, which the backtest accepts in a recording.
    let (_, outcome) = play(CODING, &[line("git stash clear"), line("git stash drop")]);
    assert_eq!(
        serde_json::to_value(outcome).unwrap(),
        json!({"soft": null, "hard": null, "rule": "git/stash-clear", "denied": [0], "asked": [1],
            "stop": null, "undecidable": []})
    );
}
