//! Failed attempts are undone and repeated, in each lane.

use std::fs;

use jackline_task::{AttemptEventKind, ScriptedAnswer};
use serde_json::json;

use crate::world::{TaskWorld, scripted_model, task, text_answer};

const MUTATES: &str = "\
tool('write_file')(path='left.txt', content='x')
read = tool('read_file')
read.run = print
ok(1)";

const LEAVES_A_FILE: &str = "\
tool('write_file')(path='left/behind.txt', content='x')
context['seen'] = True
forge('helper', 'ok(1)', description='helps')
error('low_utility', 'nothing was found', retriable=True)";

const GOOD: &str = "\
tool('write_file')(path='films.txt', content='Dune')
ok({'films': 1, 'seen': context.get('seen', False)})";

#[test]
fn a_singleton_mutation_is_refused_before_it_runs_and_corrected() {
    let world = TaskWorld::new("");
    let done = world.programs(&[MUTATES, GOOD]);
    assert_eq!(done.value(), Some(&json!({ "films": 1, "seen": false })));
    assert_eq!(done.violations(), ["singleton_method_mutation 3:1"]);
    assert_eq!(done.requests(), 2);
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["films.txt"]);
    let stages: Vec<_> = done.report.trace.stages.iter().map(|(n, it)| (*n, it.as_str())).collect();
    let expected = [
        (1, "started"),
        (1, "generated"),
        (1, "rolled_back"),
        (2, "started"),
        (2, "generated"),
        (2, "validated"),
        (2, "executed"),
        (2, "committed"),
    ];
    assert_eq!(stages, expected);
    // The journal has the same stages, with every call of the program in between.
    let events = world.events(&done.report.session);
    let expected = [
        "session_started",
        "prompt_submitted",
        "attempt_started",
        "attempt_stage",
        "attempt_stage",
        "attempt_ended",
        "attempt_started",
        "attempt_stage",
        "attempt_stage",
        "tool_proposed",
        "tool_finished",
        "attempt_stage",
        "attempt_stage",
        "attempt_ended",
        "stop_proposed",
        "session_ended",
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_retriable_error_outcome_is_undone_completely_and_repeated() {
    let world = TaskWorld::new("");
    let done = world.programs(&[LEAVES_A_FILE, GOOD]);
    assert_eq!(done.value(), Some(&json!({ "films": 1, "seen": false })), "the context");
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["films.txt"], "files");
    assert_eq!(world.generated_tools(), [] as [&str; 0], "tools");
    let trace = &done.report.trace;
    assert!(trace.rollback_applied && trace.outcome_repair_triggered);
    let restored = done.events_seen.iter().find_map(|told| match &told.kind {
        AttemptEventKind::RolledBack { restored, .. } => Some(restored.clone()),
        _ => None,
    });
    assert_eq!(restored.unwrap(), ["left/behind.txt", "left"]);
}

#[test]
fn an_overwritten_file_is_restored_unless_a_person_edited_it_since() {
    let world = TaskWorld::new("");
    for name in ["a.txt", "b.txt"] {
        fs::write(world.work().join(name), "as it was").unwrap();
    }
    let spoils = "\
tool('write_file')(path='a.txt', content='theirs')
tool('write_file')(path='b.txt', content='theirs')
1/0";
    let task =
        task(&[spoils, "ok([tool('read_file')(path=p)['content'] for p in ['a.txt', 'b.txt']])"]);
    let theirs = world.work().join("b.txt");
    let mut kept = Vec::new();
    let report = jackline_task::run_task(&task, world.options(), &mut |told| match &told.kind {
        AttemptEventKind::Failed { .. } => fs::write(&theirs, "a person's").unwrap(),
        AttemptEventKind::RolledBack { kept: files, .. } => kept.extend(files.clone()),
        _ => {}
    })
    .unwrap();
    assert_eq!(report.public.value, Some(json!(["as it was", "a person's"])));
    assert_eq!((kept, report.trace.kept), (vec!["b.txt".to_owned()], vec!["b.txt".to_owned()]));
    assert_eq!(report.trace.execution_retry_attempts, 1);
}

#[test]
fn a_missing_capability_ends_the_call_without_a_retry() {
    let world =
        TaskWorld::new("attempts: { terminal: [missing_external_provenance, unknown_tool] }");
    let done = world.programs(&["ok(tool('fetch')(url='u'))", GOOD]);
    assert_eq!(done.requests(), 1);
    let internal = done.internal();
    assert_eq!(internal["guardrail_class"], "terminal_guardrail");
    assert_eq!(internal["error_type"], "tool_registry_violation");
    assert_eq!(internal["metadata"]["last_violation_subtype"], "unknown_tool");
    assert_eq!(
        done.report.public.error_message.as_deref(),
        Some("This request couldn't be completed.")
    );
}

#[test]
fn provider_guardrail_execution_and_outcome_failures_have_budgets_of_their_own() {
    let world = TaskWorld::new("");
    let mut task = task(&[]);
    task.model = scripted_model(vec![
        ScriptedAnswer::Timeout,
        text_answer(MUTATES),
        text_answer("1/0"),
        text_answer(LEAVES_A_FILE),
        text_answer(&format!("Here it is:\n```python\n{GOOD}\n```\n")),
    ]);
    let done = world.run(&task);
    assert!(done.report.internal.is_ok(), "{:?}", done.report.internal);
    let lanes = done.report.trace.lanes;
    let used = [lanes.provider, lanes.guardrail, lanes.execution, lanes.outcome];
    assert_eq!(used.map(|lane| (lane.used, lane.remaining)), [(1, 0); 4]);
    assert_eq!(done.requests(), 5);
    let failures: Vec<_> = done
        .report
        .trace
        .attempt_failures
        .iter()
        .map(|it| (it.attempt_id, it.stage, it.error_class.as_str()))
        .collect();
    let expected = [
        (1, "provider", "timeout"),
        (1, "validation", "singleton_method_mutation"),
        (2, "execution", "execution"),
        (3, "outcome_policy", "low_utility"),
    ];
    assert_eq!(failures, expected);
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["films.txt"]);
}

#[test]
fn a_refused_call_undoes_the_calls_before_it() {
    let definition = r#"
rules:
  - name: no-secrets
    tool: write_file
    when: 'path.startsWith("secret/")'
    deny: Nothing is written there.
    examples: { deny: [{ path: secret/x, content: y }], allow: [{ path: x, content: y }] }
"#;
    let world = TaskWorld::new(definition);
    let done = world.programs(&[
        "tool('write_file')(path='a.txt', content='x')\n\
         tool('write_file')(path='secret/b.txt', content='x')\nok(1)",
        GOOD,
    ]);
    assert!(done.report.internal.is_ok(), "{:?}", done.report.internal);
    assert_eq!(done.violations(), ["no-secrets 2:1"]);
    assert_eq!(world.files().keys().collect::<Vec<_>>(), ["films.txt"]);
}

#[test]
fn the_state_of_policies_is_undone_with_the_attempt() {
    let definition = "policies: [ sequential_dependency: { write_file: [list_dir] } ]\n";
    let world = TaskWorld::new(definition);
    let done = world.programs(&[
        "tool('list_dir')()\nerror('low_utility', 'no', retriable=True)",
        "tool('write_file')(path='a.txt', content='x')\nok(1)",
        "tool('list_dir')()\ntool('write_file')(path='a.txt', content='x')\nok(2)",
    ]);
    assert_eq!(done.value(), Some(&json!(2)), "{:?}", done.report.internal);
    assert_eq!(done.report.trace.guardrail_recovery_attempts, 1);
}
