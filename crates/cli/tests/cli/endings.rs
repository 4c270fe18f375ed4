//! Every way in which a run or an attempt can end: exit status, public outcome, evidence and journal
//! say the same.

use std::fs;
use std::path::PathBuf;

use jackline_engine::verdict::ViolationSubtype;
use jackline_engine::{Decision, EventKind, StopProposed};
use serde_json::{Value, json};

use crate::attempt::run_attempt;
use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, create_control_file, ended_event, stop_code,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// How a run or an attempt has to end.
struct Ending {
    name: &'static str,
    /// The stop code, or `left` for a run that was suspended.
    stop: &'static str,
    exit: i32,
    /// The violation subtype in the outcome, if a guard ended the work.
    subtype: Option<&'static str>,
    retriable: bool,
}

/// An ending with success.
const fn done(name: &'static str, stop: &'static str) -> Ending {
    Ending { name, stop, exit: 0, subtype: None, retriable: false }
}

/// An ending without success.
const fn failed(name: &'static str, stop: &'static str, subtype: Option<&'static str>) -> Ending {
    Ending { name, stop, exit: 1, subtype, retriable: false }
}

/// An ending without success, after which another request may help.
const fn retriable(name: &'static str, stop: &'static str) -> Ending {
    Ending { name, stop, exit: 1, subtype: None, retriable: true }
}

/// Checks what holds for every ending of a session: the outcome, the exit status and the journal.
fn check_ending(world: &CliWorld, ending: &Ending, run: &CliOutput) {
    let name = ending.name;
    let event = ended_event(run);
    let (outcome, session) = (&event["outcome"], event["session"].as_str().unwrap());
    assert_eq!(run.code, Some(ending.exit), "{name}: {run:?}");
    let stop = stop_code(run);
    let is_suspended = stop.starts_with("left");
    assert!(stop == ending.stop || (is_suspended && ending.stop == "left"), "{name}: {run:?}");

    // The outcome and the exit status agree.
    let is_ok = outcome["status"] == "ok";
    assert_eq!(is_ok, ending.exit == 0, "{name}: {outcome}");
    assert_eq!(outcome["retriable"], ending.retriable, "{name}: {outcome}");
    assert_eq!(outcome["guardrail_subtype"].as_str(), ending.subtype, "{name}: {outcome}");
    assert_eq!(outcome["guardrail_class"].is_null(), ending.subtype.is_none(), "{name}: {outcome}");
    if !is_ok && outcome["error_type"] != "not_found" {
        assert_eq!(outcome["error_type"], "request_not_completed", "{name}: {outcome}");
        assert_eq!(outcome["normalized"], true, "{name}: {outcome}");
        assert_eq!(outcome["normalization_policy"], "guardrail_exhaustion_boundary_v1", "{name}");
        assert!(outcome["guardrail_recovery_attempts"].is_u64(), "{name}: {outcome}");
    }

    // The journal shows the same end, and nothing after it.
    let records = world.records(session);
    let mut stops = records.iter().filter_map(|record| record.verdict.stop.as_ref());
    let last = stops.next_back().map(ToString::to_string);
    match &last {
        Some(last) if !is_suspended => assert_eq!(*last, stop, "{name}: {run:?}"),
        _ => assert!(is_suspended, "{name}: {run:?}"),
    }
    let end = records.iter().position(|record| record.verdict.is_enforced(Decision::Stop));
    let prompts = records.iter().skip(end.map_or(records.len(), |end| end + 1));
    let mut prompts = prompts.filter(|it| matches!(it.event.kind, EventKind::PromptSubmitted(_)));
    assert!(prompts.next().is_none(), "{name}: a prompt after the end of the session");
    let last_stop = records.iter().rfind(|it| matches!(it.event.kind, EventKind::StopProposed(_)));
    if is_ok {
        let allowed = last_stop.is_some_and(|it| it.verdict.allows_run());
        assert!(allowed, "{name}: success without an allowed stop");
    }
    world.verify_and_replay(session);
}

/// Checks the evidence of a run against its journal.
fn check_evidence(world: &CliWorld, ending: &Ending, run: &CliOutput) {
    let name = ending.name;
    let event = ended_event(run);
    let (evidence, session) = (&event["evidence"], event["session"].as_str().unwrap());
    let records = world.records(session);
    let verdicts: u64 =
        evidence["verdicts"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(verdicts, records.len() as u64, "{name}: {evidence}");
    let status = world.jackline(&["status", session, "--json"]).json_lines();
    let bits = &status[0]["dirty_bits"];
    for bit in ["code_modified", "tests_run", "tests_passing"] {
        assert_eq!(evidence[bit], bits[bit], "{name}: {bit}: {evidence} {bits}");
    }
    let refused = records.iter().filter(|record| {
        let is_stop = matches!(record.event.kind, EventKind::StopProposed(StopProposed { .. }));
        is_stop && record.verdict.is_enforced(Decision::Deny)
    });
    if event["outcome"]["normalized"] == true && ending.subtype != Some("forbidden_construct") {
        let counted = &event["outcome"]["guardrail_recovery_attempts"];
        assert_eq!(*counted, json!(refused.count()), "{name}: {event}");
    }
}

fn check_run(world: &CliWorld, ending: &Ending, run: &CliOutput) {
    check_ending(world, ending, run);
    check_evidence(world, ending, run);
}

/// A script of a model that calls the same tool until it is stopped.
const LOOPING_SCRIPT: &str =
    "steps:\n  - calls: [{ tool: list_dir, args: { path: '.' } }]\nrepeat: true\n";

/// A script of a model that only claims to be done.
const CLAIMING_SCRIPT: &str = "steps:\n  - text: I am done.\nrepeat: true\n";

#[test]
fn every_end_of_a_run_with_tool_calls_agrees_with_its_journal() {
    let check = REPORT_COMPLETION;
    let limit = format!("{check}limits: {{ steps: 1 }}\n");
    let iterations = format!("{check}limits: {{ iterations: 1 }}\n");
    let strict = format!("{check}loops: {{ profile: strict }}\n");
    let refusing = "steps:\n  - status: 401\nrepeat: true\n";
    let rows: [(Ending, &str, &str); 7] = [
        (done("done", "OBJECTIVE_ACHIEVED"), check, REPORT_SCRIPT),
        (failed("without a check", "NO_EVIDENCE", None), "", REPORT_SCRIPT),
        (failed("refused stops", "left", None), check, CLAIMING_SCRIPT),
        (failed("a limit", "BUDGET_EXCEEDED{steps}", Some("steps")), &limit, LOOPING_SCRIPT),
        (failed("a loop", "SYSTEM_ERROR{loop}", Some("widen_retrieval")), &strict, LOOPING_SCRIPT),
        (failed("a provider that refuses", "SYSTEM_ERROR{model}", None), check, refusing),
        (failed("a checkpoint", "left", None), &iterations, CLAIMING_SCRIPT),
    ];
    for (ending, definition, script) in rows {
        let world = CliWorld::new("");
        let run = TaskDirectory::new(&world, definition, &[("main", script)]).run(&[]);
        check_run(&world, &ending, &run);
    }
}

#[test]
fn a_run_that_a_person_stops_or_a_deadline_ends_agrees_with_its_journal() {
    let world = CliWorld::new("");
    create_control_file(&world, "STOP");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let ending = failed("a stop file", "HUMAN_REQUESTED", None);
    check_run(&world, &ending, &task.run(&[]));
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let run = task.run(&["--deadline", "2020-01-01T00:00:00Z"]);
    let ending = failed("a deadline", "BUDGET_EXCEEDED{deadline}", None);
    check_run(&world, &ending, &run);
}

#[test]
fn every_end_of_a_run_by_programs_agrees_with_its_journal() {
    let write = "tool('write_file')(path='report.md', content='done')\nok('written')";
    let clean = "completion: { clean: {} }\n";
    let rows: [(Ending, &str, &[&str]); 3] = [
        (done("done", "OBJECTIVE_ACHIEVED"), REPORT_COMPLETION, &[write]),
        // The program that failed changed nothing, so there is nothing to test.
        (
            done("only a rolled-back change", "OBJECTIVE_ACHIEVED"),
            clean,
            &["tool('write_file')(path='a.py', content='x')\n1/0", "ok('an answer')"],
        ),
        (
            failed("violations", "left", Some("forbidden_construct")),
            REPORT_COMPLETION,
            &["```\nimport os\n```"; 8],
        ),
    ];
    for (ending, definition, programs) in rows {
        let world = CliWorld::new("");
        let task = TaskDirectory::with_programs(&world, definition, &[("main", programs)]);
        check_run(&world, &ending, &task.run(&[]));
    }
}

/// Jackline sees no call of such a program. It compares the files, so that the journal has the
/// change before the stop is judged.
#[test]
fn code_that_a_program_without_hooks_changed_needs_tests() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_worker(&world, "completion: { clean: {} }\n", "echo x >> foo.py");
    let run = task.run(&[]);
    let ending = failed("an untested change", "left", None);
    check_run(&world, &ending, &run);
    let event = ended_event(&run);
    assert_eq!(event["evidence"]["code_modified"], true, "{run:?}");
    assert_eq!(event["evidence"]["files_changed"], json!(["foo.py"]));
    let records = world.records(event["session"].as_str().unwrap());
    let changes: Vec<&EventKind> = records
        .iter()
        .map(|record| &record.event.kind)
        .filter(|kind| matches!(kind, EventKind::WorkspaceChanged(_)))
        .collect();
    assert!(!changes.is_empty(), "{records:?}");
    assert_eq!(serde_json::to_value(changes[0]).unwrap()["files"], json!(["foo.py"]));

    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_worker(&world, "completion: { clean: {} }\n", "cat jackline.yaml");
    check_run(&world, &done("no change", "OBJECTIVE_ACHIEVED"), &task.run(&[]));
}

/// Writes a task with scripted answers. The definition is beside it.
fn write_task(world: &CliWorld, definition: &str, answers: &Value) -> PathBuf {
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let task = "prompt: do it\ntools: [write_file, read_file]\nmodel: { script: script.yaml }\n";
    fs::write(directory.join("task.yaml"), format!("{task}definition: jackline.yaml\n")).unwrap();
    fs::write(directory.join("script.yaml"), answers.to_string()).unwrap();
    let definition = format!("version: 1\nname: t/attempt\n{definition}");
    fs::write(directory.join("jackline.yaml"), definition).unwrap();
    directory
}

#[test]
fn every_end_of_an_attempt_agrees_with_its_journal() {
    let file = "completion: { files: [out.txt] }\n";
    let write = "tool('write_file')(path='out.txt', content='x')\nok('answer')";
    let always = |answer: &str| json!({ "steps": [answer], "repeat": true });
    let slow = "completion: { command: 'sleep 1; test -e out.txt' }\n";
    let wrong = "completion: { command: 'sleep 1; false' }\n";
    let error = "error('not_found', 'no such film')";
    let repair = "error('low_utility', 'no', retriable=True)";
    let status = |code: u32| json!({ "steps": [{ "status": code }], "repeat": true });
    let interrupted = "INTERRUPTED";
    let rows: [(Ending, &str, Value); 13] = [
        (done("done", "OBJECTIVE_ACHIEVED"), file, always(write)),
        (done("without a check", "NO_EVIDENCE"), "", always("ok(1)")),
        (
            failed("a refused stop", interrupted, Some("missing_files")),
            file,
            always("ok('answer')"),
        ),
        (done("a slow check", "OBJECTIVE_ACHIEVED"), slow, always(write)),
        (failed("a failing check", interrupted, Some("checker")), wrong, always(write)),
        (failed("violations", interrupted, Some("forbidden_construct")), file, always("import os")),
        (
            failed("a terminal violation", interrupted, Some("unknown_tool")),
            "attempts: { terminal: [unknown_tool] }\n",
            always("ok(tool('fetch')())"),
        ),
        (failed("a program that fails", interrupted, None), file, always("1/0")),
        (failed("outcomes", interrupted, None), file, always(repair)),
        (failed("an error of the program", interrupted, None), file, always(error)),
        (retriable("a provider that fails", interrupted), file, status(529)),
        (
            retriable("an empty answer", interrupted),
            file,
            json!({ "steps": [{ "text": "" }], "repeat": true }),
        ),
        (retriable("prose", interrupted), file, always("I am sorry, I can't do that.")),
    ];
    for (ending, definition, answers) in rows {
        let world = CliWorld::new("");
        let task = write_task(&world, definition, &answers);
        let run = run_attempt(&world, &task, &["--json"]);
        check_ending(&world, &ending, &run);
        // The trace says the same as the output.
        let event = ended_event(&run);
        let trace = fs::read_to_string(event["trace"].as_str().unwrap()).unwrap();
        let trace: Value = serde_json::from_str(trace.lines().last().unwrap()).unwrap();
        let (name, outcome) = (ending.name, &event["outcome"]);
        assert_eq!(trace["user_outcome"], *outcome, "{name}");
        assert_eq!(trace["user_outcome_normalized"], outcome["normalized"], "{name}");
        assert_eq!(trace["outcome_status"], outcome["status"], "{name}");
        if outcome["normalized"] == true {
            let attempts = &outcome["guardrail_recovery_attempts"];
            assert_eq!(trace["guardrail_recovery_attempts"], *attempts, "{name}");
            assert_eq!(trace["outcome"]["retriable"], outcome["retriable"], "{name}");
        }
    }
}

#[test]
fn prose_and_an_empty_answer_use_the_provider_lane() {
    for answer in [json!({ "text": "" }), json!("I am sorry, I can't do that.")] {
        let world = CliWorld::new("");
        let answers = json!({ "steps": [answer, "ok('answer')"] });
        let run = run_attempt(&world, &write_task(&world, "", &answers), &["--json"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let trace = fs::read_to_string(ended_event(&run)["trace"].as_str().unwrap()).unwrap();
        let trace: Value = serde_json::from_str(trace.trim()).unwrap();
        let used = |lane: &str| trace["lanes"][lane]["used"].clone();
        assert_eq!((used("provider"), used("guardrail")), (json!(1), json!(0)), "{trace}");
    }
}

#[test]
fn only_the_public_outcome_is_printed_on_request() {
    let world = CliWorld::new("");
    let answers = json!({ "steps": ["import os"], "repeat": true });
    let run = run_attempt(&world, &write_task(&world, "", &answers), &["--public"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(
        run.json_lines(),
        [json!({
            "status": "error",
            "error_type": "request_not_completed",
            "error_message": "This request couldn't be completed after multiple attempts.",
            "retriable": false,
            "normalized": true,
            "normalization_policy": "guardrail_exhaustion_boundary_v1",
            "guardrail_class": "recoverable_guardrail",
            "guardrail_subtype": "forbidden_construct",
            "guardrail_recovery_attempts": 1,
        })]
    );
    assert!(!run.stdout.contains("import"), "{run:?}");
}

/// The fields of a public outcome, as docs/reference/attempt.md lists them for each ending.
const OK_FIELDS: [&str; 4] = ["normalized", "retriable", "status", "value"];
const OWN_ERROR_FIELDS: [&str; 5] =
    ["error_message", "error_type", "normalized", "retriable", "status"];
const NORMALIZED_FIELDS: [&str; 7] = [
    "error_message",
    "error_type",
    "guardrail_recovery_attempts",
    "normalization_policy",
    "normalized",
    "retriable",
    "status",
];
const GUARDRAIL_FIELDS: [&str; 2] = ["guardrail_class", "guardrail_subtype"];

/// Checks that a public outcome has exactly the documented fields, with words of Jackline in them.
/// Returns its subtype, `-` if no guardrail ended the call.
fn check_public_fields(name: &str, outcome: &Value) -> String {
    let page = include_str!("../../../../docs/reference/attempt.md");
    let fields: Vec<&str> = outcome.as_object().unwrap().keys().map(String::as_str).collect();
    let is_normalized = outcome["normalized"].as_bool().unwrap();
    let is_by_guardrail = !outcome["guardrail_subtype"].is_null();
    let mut expected: Vec<&str> = match (outcome["status"].as_str().unwrap(), is_normalized) {
        ("ok", false) => OK_FIELDS.to_vec(),
        ("error", false) => OWN_ERROR_FIELDS.to_vec(),
        ("error", true) => NORMALIZED_FIELDS.to_vec(),
        other => panic!("{name}: {other:?}"),
    };
    expected.extend(GUARDRAIL_FIELDS.into_iter().filter(|_| is_by_guardrail));
    expected.sort_unstable();
    assert_eq!(fields, expected, "{name}: {outcome}");
    let (_, section) = page.split_once("\n## The public outcome\n").unwrap();
    for field in &fields {
        assert!(section.contains(&format!("`{field}`")), "`{field}` is not documented");
    }
    if is_normalized {
        assert_eq!(outcome["error_type"], "request_not_completed", "{name}");
        assert_eq!(outcome["normalization_policy"], "guardrail_exhaustion_boundary_v1", "{name}");
        let message = outcome["error_message"].as_str().unwrap();
        assert!(message.starts_with("This request couldn't be completed"), "{name}: {outcome}");
    }
    let Some(subtype) = outcome["guardrail_subtype"].as_str() else { return "-".to_owned() };
    let is_contract_word = ViolationSubtype::ALL.iter().any(|(word, _)| *word == subtype);
    assert!(is_contract_word || subtype == "rule", "{name}: {outcome}");
    subtype.to_owned()
}

#[test]
fn a_public_outcome_has_exactly_the_documented_fields_in_every_ending() {
    let always = |answer: Value| json!({ "steps": [answer], "repeat": true });
    let write = |path: &str| format!("tool('write_file')(path='{path}', content='x')\nok('done')");
    let rule = "rules:\n  - name: no-internal-keys\n    tool: write_file\n    \
                when: 'path == \"keys.txt\"'\n    deny: The keys of the vault stay secret.\n    \
                examples: { deny: [{ path: keys.txt, content: x }], allow: [{ path: a, content: x }] }\n";
    let file = "completion: { files: [report.txt] }\n";
    let cases = [
        ("ok", "", json!({ "steps": ["ok(1)"] }), "-"),
        ("own error", "", json!({ "steps": ["error('not_found', 'no such film')"] }), "-"),
        (
            "own error, retried",
            "",
            always(json!("error('low_utility', 'no', retriable=True)")),
            "-",
        ),
        ("no answer", "", always(json!({ "timeout": true })), "-"),
        ("provider", "", always(json!({ "status": 529 })), "-"),
        ("empty answer", "", always(json!({ "text": "" })), "-"),
        ("crash", "", always(json!("1/0")), "-"),
        ("validation", "", always(json!("import os")), "forbidden_construct"),
        ("rule", rule, always(json!(write("keys.txt"))), "rule"),
        ("protected file", "", always(json!(write("jackline.yaml"))), "protected_write"),
        ("limit", "limits: { steps: 1 }\n", always(json!(write("a.txt"))), "steps"),
        ("completion", file, json!({ "steps": ["ok(1)"] }), "missing_files"),
    ];
    for (name, definition, answers, expected) in cases {
        let world = CliWorld::new("");
        let run = run_attempt(&world, &write_task(&world, definition, &answers), &["--public"]);
        let outcomes = run.json_lines();
        assert_eq!(outcomes.len(), 1, "{name}: {run:?}");
        let subtype = check_public_fields(name, &outcomes[0]);
        assert_eq!(subtype, expected, "{name}: {run:?}");
        for internal in ["no-internal-keys", "vault", "keys.txt", "report.txt", "import", "ROOT"] {
            let shown = run.stdout.replace(world.root().to_str().unwrap(), "ROOT");
            assert!(!shown.contains(internal), "{name}: {internal}: {shown}");
        }
    }
    // A task that can't start.
    let world = CliWorld::new("");
    let task = write_task(&world, "", &json!({ "steps": ["ok(1)"] }));
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--public", "--sandbox", "/nonexistent"]).arg(&task);
    let run = run_with_input(&mut command, b"");
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(check_public_fields("not started", &run.json_lines()[0]), "-");
}

#[test]
fn a_task_that_cannot_start_still_has_an_outcome_for_programs() {
    let world = CliWorld::new("");
    let answers = json!({ "steps": ["ok(1)"] });
    let task = write_task(&world, "", &answers);
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--json", "--sandbox", "/nonexistent"]).arg(&task);
    let run = run_with_input(&mut command, b"");
    let event = ended_event(&run);
    assert_eq!((run.code, &event["error"]["kind"]), (Some(3), &json!("sandbox")), "{run:?}");
    assert_eq!(event["outcome"]["status"], "error");
    let model = "{ url: 'http://127.0.0.1:9/v1', name: m, key_env: NO_SUCH_KEY }";
    let text = format!("prompt: do it\nmodel: {model}\n");
    fs::write(task.join("task.yaml"), text).unwrap();
    let run = run_attempt(&world, &task, &["--json"]);
    let event = ended_event(&run);
    assert_eq!((run.code, &event["error"]["kind"]), (Some(2), &json!("model")), "{run:?}");
    let run = run_attempt(&world, &task, &["--public"]);
    assert_eq!((run.code, &run.json_lines()[0]["status"]), (Some(2), &json!("error")), "{run:?}");
}

#[test]
fn an_attempt_without_any_definition_works_under_the_default_one() {
    let world = CliWorld::new("");
    fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
    let task = write_task(&world, "", &json!({ "steps": ["ok(1)"] }));
    fs::write(task.join("task.yaml"), "prompt: do it\nmodel: { script: script.yaml }\n").unwrap();
    fs::remove_file(task.join("jackline.yaml")).unwrap();
    let run = run_attempt(&world, &task, &["--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    world.verify_and_replay(ended_event(&run)["session"].as_str().unwrap());
}
