//! Tests of `jackline run` with a model that writes programs: each program is checked, runs as one
//! step, and is undone if it fails.

use std::fs;
use std::process::{Child, Command};

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, TaskDirectory, count_sleepers, ended_event, events_named,
    normalised_journal, poll_until, session_id, stop_code, wait_for_output,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A program that finishes the task.
const REPORT_PROGRAM: &str =
    "tool('write_file')(path='report.md', content='done')\nok({'written': 1})";

/// A program that writes a file and then breaks a rule.
const RULE_BREAKING_PROGRAM: &str = "tool('write_file')(path='draft.md', content='half')\n\
                             tool('write_file')(path='secret.txt', content='x')\nok('fine')";

const RULE: &str = "completion: { files: [report.md] }\n\
                    rules:\n  - name: no-secrets\n    tool: write_file\n    when: 'path == \"secret.txt\"'\n    \
                    deny: Secrets are not written down.\n    \
                    examples: { deny: [{ path: secret.txt, content: x }], allow: [{ path: a, content: x }] }\n";

/// Returns the names of the program events.
fn program_events(run: &CliOutput) -> Vec<String> {
    let word = |it: &Value| it["step"]["event"].as_str().unwrap().to_owned();
    events_named(run, "program").iter().map(word).collect()
}

/// Returns the files of the workspace, without the files for people.
fn workspace_files(world: &CliWorld) -> Vec<String> {
    let entries = fs::read_dir(world.workspace()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|it| !it.starts_with('.')).collect();
    names.sort();
    names
}

fn create_control_file(world: &CliWorld, name: &str) {
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    fs::write(world.workspace().join(".jackline").join(name), "").unwrap();
}

/// Returns the conversation file of a run.
fn conversation(world: &CliWorld, run: &CliOutput) -> String {
    fs::read_to_string(world.session_directory(&session_id(run)).join("conversation.jsonl"))
        .unwrap()
}

#[test]
fn a_program_finishes_the_task_and_its_value_is_the_result() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &[REPORT_PROGRAM])]);
    let run = task.run(&[]);
    assert_eq!((run.code, stop_code(&run)), (Some(0), "OBJECTIVE_ACHIEVED".into()), "{run:?}");
    let ended = ended_event(&run);
    assert_eq!(
        ended["outcome"],
        json!({ "status": "ok", "value": { "written": 1 }, "retriable": false, "normalized": false })
    );
    assert_eq!(ended["evidence"]["files_changed"], json!(["report.md"]));
    assert_eq!(program_events(&run), ["started", "generated", "committed"]);
    let id = session_id(&run);
    let kinds: Vec<&str> = world.records(&id).iter().map(|it| it.event.kind.name()).collect();
    let attempts = ["attempt_started", "attempt_stage", "attempt_ended", "stop_proposed"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| attempts.contains(kind)).collect();
    let expected = [&attempts[..1], &[attempts[1]; 4], &attempts[2..]].concat();
    assert_eq!(kinds, expected, "the session of the run records every stage");
    let log = world.jackline(&["log", &id]).stdout;
    let stages = ["attempt_stage     a1 generated ", "attempt_stage     a1 committed "];
    assert!(stages.iter().all(|stage| log.contains(stage)), "{log}");
    world.verify_and_replay(&id);
    // A person can still undo the changes of a program.
    assert_eq!(world.jackline(&["undo", &id, "1"]).code, Some(0));
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
}

#[test]
fn a_program_that_breaks_a_rule_is_undone_and_the_next_one_gets_the_violation() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        RULE,
        &[("main", &[RULE_BREAKING_PROGRAM, REPORT_PROGRAM])],
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let expected =
        ["started", "generated", "objected", "rolled_back", "started", "generated", "committed"];
    assert_eq!(program_events(&run), expected, "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml", "report.md"]);
    let conversation = conversation(&world, &run);
    assert!(conversation.contains("Secrets are not written down"), "{conversation}");
    assert!(!ended_event(&run)["outcome"].to_string().contains("Secrets"));
    assert_eq!(events_named(&run, "iteration").len(), 1, "expected one iteration: {run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn after_an_early_result_the_model_is_told_what_is_missing() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &["ok('all done')", REPORT_PROGRAM])],
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let stops: Vec<bool> =
        events_named(&run, "stopping").iter().map(|it| it["allowed"].as_bool().unwrap()).collect();
    assert_eq!(stops, [false, true]);
    assert!(
        conversation(&world, &run).contains("report.md"),
        "the model must be told what is missing"
    );
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_model_that_does_not_answer_is_replaced_by_the_next() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[]), ("second", &[REPORT_PROGRAM])],
    );
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    fs::write(task.directory.join("main.yaml"), busy).unwrap();
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "changed")[0]["reason"], "overload");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_full_context_is_restarted_between_two_programs() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_programs(&world, &format!("{RULE}context: {{}}\n"), &[("main", &[])]);
    let steps = json!({ "steps": [
        { "text": RULE_BREAKING_PROGRAM, "usage": { "input": 81000, "output": 10 } },
        { "text": REPORT_PROGRAM },
    ] });
    fs::write(task.directory.join("main.yaml"), steps.to_string()).unwrap();
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "restarted")[0]["pct"], 81);
    let conversation = conversation(&world, &run);
    assert!(conversation.contains("State of the work"), "{conversation}");
    assert!(
        conversation.contains("Secrets are not written down"),
        "the new conversation must contain the violation: {conversation}"
    );
    world.verify_and_replay(&session_id(&run));
}

/// A model that always breaks a rule, with a context that becomes full with every second program.
fn run_until_conversations_are_full(world: &CliWorld, definition: &str, end: &str) -> CliOutput {
    let task = TaskDirectory::with_programs(
        world,
        &format!("{definition}context: {{}}\n"),
        &[("main", &[])],
    );
    let steps = json!({ "repeat": true, "steps": [
        { "text": RULE_BREAKING_PROGRAM, "usage": { "input": 10000, "output": 10 } },
        { "text": RULE_BREAKING_PROGRAM, "usage": { "input": 81000, "output": 10 } },
    ] });
    fs::write(task.directory.join("main.yaml"), steps.to_string()).unwrap();
    let run = task.run(&[]);
    assert!(stop_code(&run).starts_with(end), "{run:?}");
    assert_eq!(workspace_files(world), ["jackline.yaml"]);
    world.verify_and_replay(&session_id(&run));
    run
}

/// Each restart makes room, so no compaction is useless. But there is no progress either.
#[test]
fn programs_that_only_fill_one_conversation_after_another_end_the_run() {
    let run = run_until_conversations_are_full(
        &CliWorld::new(""),
        &format!("attempts: {{ guardrail: 2 }}\n{RULE}"),
        "SYSTEM_ERROR{model}",
    );
    assert_eq!(
        (events_named(&run, "restarted").len(), events_named(&run, "asking").len()),
        (2, 6),
        "{run:?}"
    );
    let aside = events_named(&run, "aside").pop().unwrap();
    assert!(aside["text"].as_str().unwrap().contains("makes no progress"), "{aside}");
}

#[test]
fn failed_programs_count_also_in_a_full_conversation() {
    let definition = format!("{RULE}{NO_PRESSURE}");
    let end = "left: it waits for a person: no program succeeded in 4 iterations in a row; to \
               continue: read .jackline/BLOCKER_REPORT.md";
    let run = run_until_conversations_are_full(&CliWorld::new(""), &definition, end);
    assert_eq!(events_named(&run, "iteration_ended").len(), 4, "{run:?}");
    assert_eq!(events_named(&run, "restarted").len(), 3, "{run:?}");
}

/// Returns the child processes of a process.
fn child_processes(parent_process: &Child) -> Vec<u32> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    ids.filter(|id| parent_of(*id) == Some(parent_process.id())).collect()
}

/// Every call keeps its retries, however many calls used all of them.
const NO_PRESSURE: &str = "attempts: { pressure_after: 100 }\n";

/// A program that computes until it is stopped.
const ENDLESS_PROGRAM: &str =
    "tool('write_file')(path='started', content='x')\nwhile True:\n    pass\nok(1)";

/// A program that runs a command for minutes, with a detached process.
fn sleeping_program(seconds: u32) -> String {
    let command = format!("setsid sleep {seconds} & touch running; sleep {seconds}");
    format!(
        "tool('write_file')(path='started', content='x')\ntool('shell')(command='{command}')\n{REPORT_PROGRAM}"
    )
}

/// Stops or pauses a run while a program is running. Returns the output, and the time until the
/// program ended.
fn interrupt_program(
    world: &CliWorld,
    task: &TaskDirectory<'_>,
    act: impl Fn(&CliWorld),
    is_running: impl Fn() -> bool,
) -> (CliOutput, u64) {
    let mut command = task.run_command(&["--json", "--no-wait"]);
    let child = crate::run_support::spawn_piped(command.arg(&task.directory));
    poll_until("the program", || world.workspace().join("started").exists() && is_running());
    let workers = child_processes(&child);
    assert!(!workers.is_empty(), "the program must have a worker process");
    let start_ms = now().boot_ms;
    act(world);
    poll_until("the end of the program", || !world.workspace().join("started").exists());
    let ms = now().boot_ms - start_ms;
    let run = wait_for_output(child);
    let remaining =
        workers.iter().filter(|id| fs::exists(format!("/proc/{id}/exe")).unwrap_or(false));
    assert_eq!(remaining.count(), 0, "no worker process may remain");
    (run, ms)
}

#[test]
fn a_stop_ends_a_computing_program_within_a_second_and_undoes_it() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[ENDLESS_PROGRAM, REPORT_PROGRAM])],
    );
    let (run, ms) =
        interrupt_program(&world, &task, |world| create_control_file(world, "STOP"), || true);
    assert!(ms < 1000, "{ms} ms");
    assert_eq!((run.code, stop_code(&run)), (Some(1), "HUMAN_REQUESTED".into()), "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
    assert!(program_events(&run).contains(&"rolled_back".to_owned()), "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_stop_ends_a_command_of_a_program_with_all_its_processes() {
    let world = CliWorld::new("");
    let program = sleeping_program(279);
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[&program, REPORT_PROGRAM])],
    );
    let (run, ms) = interrupt_program(
        &world,
        &task,
        |world| create_control_file(world, "STOP"),
        || count_sleepers(279) >= 2,
    );
    assert!(ms < 1500, "{ms} ms");
    assert_eq!((stop_code(&run), count_sleepers(279)), ("HUMAN_REQUESTED".into(), 0), "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_pause_undoes_the_program_and_the_run_continues_with_the_next_one() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[ENDLESS_PROGRAM, REPORT_PROGRAM])],
    );
    let (run, ms) =
        interrupt_program(&world, &task, |world| create_control_file(world, "PAUSE"), || true);
    assert!(ms < 1000, "{ms} ms");
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(conversation(&world, &run).contains("all of its changes are undone"));
    assert_eq!(workspace_files(&world), ["jackline.yaml", "report.md"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_pause_command_does_not_wait_for_a_program() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[ENDLESS_PROGRAM, REPORT_PROGRAM])],
    );
    let pause = |world: &CliWorld| {
        assert_eq!(world.jackline(&["pause", "--why", "let me see"]).code, Some(0));
    };
    let (run, ms) = interrupt_program(&world, &task, pause, || true);
    // The pause command itself takes time, too.
    assert!(ms < 2000, "{ms} ms");
    assert!(stop_code(&run).contains("let me see"), "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
    let id = session_id(&run);
    assert_eq!(world.jackline(&["resume", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn a_signal_ends_the_program_and_the_run_can_be_resumed() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[ENDLESS_PROGRAM, REPORT_PROGRAM])],
    );
    let child = task.start(&[]);
    poll_until("the program", || world.workspace().join("started").exists());
    let mut kill = Command::new("kill");
    assert!(kill.args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "left: it was interrupted by a signal", "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn changes_of_a_killed_program_are_undone_before_the_run_continues() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a.txt"), "original").unwrap();
    let program =
        format!("tool('write_file')(path='a.txt', content='half')\n{}", sleeping_program(278));
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[&program, REPORT_PROGRAM])],
    );
    let mut child = task.start(&[]);
    poll_until("the command", || count_sleepers(278) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(278) == 0);
    assert_eq!(fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "half");
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let asides = events_named(&run, "aside");
    let text = asides[0]["text"].as_str().unwrap();
    assert!(text.contains("was interrupted and is now undone: started, a.txt"), "{text}");
    assert_eq!(fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "original");
    assert_eq!(workspace_files(&world), ["a.txt", "jackline.yaml", "report.md"]);
    assert!(conversation(&world, &run).contains("all of its changes are undone"));
    let id = session_id(&run);
    let numbers: Vec<Value> = events_named(&run, "program")
        .iter()
        .filter(|it| it["step"]["event"] == "started")
        .map(|it| it["step"]["number"].clone())
        .collect();
    assert_eq!(numbers, [2], "the second attempt must have the number 2");
    world.verify_and_replay(&id);
}

#[test]
fn no_program_starts_while_another_process_undoes_the_last_one() {
    let world = CliWorld::new("");
    let program =
        format!("tool('write_file')(path='a.txt', content='half')\n{}", sleeping_program(277));
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[&program, REPORT_PROGRAM])],
    );
    let mut child = task.start(&[]);
    poll_until("the command", || count_sleepers(277) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(277) == 0);
    let mut sessions = fs::read_dir(world.home().join("sessions")).unwrap();
    let directory = sessions.next().unwrap().unwrap().path();
    let undo_lock = fs::File::open(directory.join("attempting")).unwrap();
    undo_lock.lock().unwrap();
    let run = task.resume(&[]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("another process is undoing it"), "{run:?}");
    assert!(world.workspace().join("a.txt").exists());
    drop(undo_lock);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml", "report.md"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_attempt_undoes_the_changes_of_a_killed_run_and_the_run_is_told() {
    let world = CliWorld::new("");
    let program = sleeping_program(277);
    let task = TaskDirectory::with_programs(
        &world,
        REPORT_COMPLETION,
        &[("main", &[&program, REPORT_PROGRAM])],
    );
    let mut child = task.start(&[]);
    poll_until("the command", || count_sleepers(277) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(277) == 0);
    let other = world.root().join("other.yaml");
    fs::write(world.root().join("script.yaml"), "steps: [ 'ok(1)' ]").unwrap();
    fs::write(&other, "prompt: say 1\nmodel: { script: script.yaml }\n").unwrap();
    let attempt = world.jackline(&["attempt", other.to_str().unwrap()]);
    assert_eq!(attempt.code, Some(0), "{attempt:?}");
    assert!(attempt.stderr.contains("attempt 1 of session `run-"), "{attempt:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(events_named(&run, "aside").is_empty(), "nothing may remain to undo: {run:?}");
    assert!(conversation(&world, &run).contains("all of its changes are undone"));
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_run_that_is_killed_during_a_model_request_leaves_no_attempt_open() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &[])]);
    let slow = json!({ "steps": [{ "text": REPORT_PROGRAM, "delay_ms": 60_000 }, { "text": REPORT_PROGRAM }] });
    fs::write(task.directory.join("main.yaml"), slow.to_string()).unwrap();
    let mut child = task.start(&[]);
    let journal = || {
        let sessions = fs::read_dir(world.home().join("sessions")).into_iter().flatten().flatten();
        let texts = sessions.map(|it| fs::read_to_string(it.path().join("journal.jsonl")));
        texts.flatten().any(|text| text.contains("attempt_started"))
    };
    poll_until("the attempt", journal);
    child.kill().unwrap();
    child.wait().unwrap();
    let quick = json!({ "steps": [{ "text": REPORT_PROGRAM }] });
    fs::write(task.directory.join("main.yaml"), quick.to_string()).unwrap();
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let id = session_id(&run);
    let count =
        |name: &str| world.records(&id).iter().filter(|it| it.event.kind.name() == name).count();
    assert_eq!((count("attempt_started"), count("attempt_ended")), (2, 2));
    world.verify_and_replay(&id);
}

/// Internal words that must not appear in a public message of these tests.
const INTERNAL_WORDS: [&str; 6] =
    ["secret.txt", "Secrets", "no-secrets", "write_file", "rule_violation", "exhausted"];

#[test]
fn failed_programs_are_failed_iterations_and_their_details_are_not_public() {
    let world = CliWorld::new("");
    let definition = format!(
        "{RULE}{NO_PRESSURE}progress: {{}}\nadvisor: {{ models: [{{ provider: scripted, model: advisor }}], budget: 1 }}\n"
    );
    let programs = [RULE_BREAKING_PROGRAM; 20];
    let scripts: [(&str, &[&str]); 3] =
        [("main", &programs), ("second", &programs), ("advisor", &["Look elsewhere."])];
    let task = TaskDirectory::with_programs(&world, &definition, &scripts);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1));
    assert!(stop_code(&run).starts_with("left: it waits for a person: 3 iterations"), "{run:?}");
    assert!(world.workspace().join(".jackline/BLOCKER_REPORT.md").is_file());
    assert_eq!(
        (events_named(&run, "advised").len(), events_named(&run, "changed").len()),
        (1, 1),
        "{run:?}"
    );
    let ended = ended_event(&run);
    assert_eq!(
        ended["outcome"],
        json!({
            "status": "error", "error_type": "request_not_completed",
            "error_message": "This request couldn't be completed after multiple attempts.",
            "retriable": false, "normalized": true,
            "normalization_policy": "guardrail_exhaustion_boundary_v1",
            "guardrail_class": "recoverable_guardrail", "guardrail_subtype": "rule",
            // Nine calls, each with one retry.
            "guardrail_recovery_attempts": 9,
        })
    );
    for internal in INTERNAL_WORDS {
        let public = [&ended["left"], &ended["outcome"]];
        assert!(!public.iter().any(|it| it.to_string().contains(internal)), "{internal}: {ended}");
    }
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn without_a_progress_limit_four_iterations_of_failed_programs_wait_for_a_person() {
    let world = CliWorld::new("");
    let definition = format!("{RULE}{NO_PRESSURE}");
    let scripts: [(&str, &[&str]); 1] = [("main", &[RULE_BREAKING_PROGRAM; 20])];
    let task = TaskDirectory::with_programs(&world, &definition, &scripts);
    let mut command = task.run_command(&["--no-wait"]);
    let run = run_with_input(command.arg(&task.directory), b"");
    assert_eq!(run.code, Some(1), "{run:?}");
    let (_, summary) =
        run.stdout.split_once("\nnot finished: ").unwrap_or_else(|| panic!("{run:?}"));
    let mut lines = summary.lines();
    let reason = "it waits for a person: no program succeeded in 4 iterations in a row; ";
    assert!(lines.next().unwrap().starts_with(reason), "{run:?}");
    let expected = "  This request couldn't be completed after multiple attempts.";
    assert_eq!(lines.next(), Some(expected), "{run:?}");
    for internal in ["secret.txt", "Secrets", "write_file"] {
        assert!(!summary.contains(internal), "{internal}: {summary}");
    }
    assert_eq!(run.stdout.matches("\niteration ").count(), 4, "{run:?}");
    assert_eq!(workspace_files(&world), ["jackline.yaml"]);
}

#[test]
fn an_error_message_of_a_program_is_public() {
    let world = CliWorld::new("");
    let program = "error('not_found', 'There is no such film.', retriable=False)";
    let task = TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &[program; 4])]);
    let run = task.run(&[]);
    assert!(stop_code(&run).contains("no program succeeded in 4 iterations"), "{run:?}");
    let outcome = &ended_event(&run)["outcome"];
    assert_eq!(
        (&outcome["error_type"], &outcome["error_message"]),
        (&json!("not_found"), &json!("There is no such film."))
    );
}

/// Returns the lines of the log of attempts.
fn attempt_log(world: &CliWorld, run: &CliOutput) -> Vec<Value> {
    let path = world.session_directory(&session_id(run)).join("attempts.jsonl");
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_log_has_the_outcome_that_the_caller_of_a_run_gets() {
    let repair = "error('no_film', 'RAW text of the program', retriable=True)";
    for (definition, programs) in [
        // Without a completion check, a successful program is no success of the run.
        ("", ["ok({'a': 1})"; 8]),
        (REPORT_COMPLETION, [repair; 8]),
        (REPORT_COMPLETION, [REPORT_PROGRAM; 8]),
    ] {
        let world = CliWorld::new("");
        let task = TaskDirectory::with_programs(&world, definition, &[("main", &programs)]);
        let run = task.run(&[]);
        let outcome = ended_event(&run)["outcome"].clone();
        assert!(!outcome.to_string().contains("RAW"), "{outcome}");
        let mut log = attempt_log(&world, &run);
        let last = log.pop().unwrap();
        assert_eq!(last["user_outcome"], outcome, "{last}");
        assert_eq!(last["user_outcome_normalized"], outcome["normalized"], "{last}");
        let policy = &outcome["normalization_policy"];
        assert_eq!(last["user_outcome_normalization_policy"], *policy, "{last}");
        // No single call has an outcome that a caller got.
        assert!(log.iter().all(|line| line["user_outcome"] == Value::Null), "{log:?}");
    }
}

#[test]
fn the_outcome_of_a_run_counts_the_retries_of_all_its_programs() {
    let world = CliWorld::new("");
    let programs = ["import os"; 20];
    let task = TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &programs)]);
    let run = task.run(&[]);
    let outcome = ended_event(&run)["outcome"].clone();
    // Two calls use their retry. Then pressure takes the retries away.
    assert_eq!(outcome["guardrail_recovery_attempts"], 2, "{outcome}");
    let text = "This request couldn't be completed after multiple attempts.";
    assert_eq!(outcome["error_message"], text);
    assert_eq!(outcome["guardrail_subtype"], "forbidden_construct");
}

#[test]
fn two_runs_of_one_script_leave_the_same_journal() {
    let journals: Vec<String> = (0..2)
        .map(|_| {
            let world = CliWorld::new("");
            let programs = [RULE_BREAKING_PROGRAM, "ok('too early')", "1/0", REPORT_PROGRAM];
            let task = TaskDirectory::with_programs(&world, RULE, &[("main", &programs)]);
            let run = task.run(&[]);
            assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
            world.verify_and_replay(&session_id(&run));
            normalised_journal(&world, &session_id(&run))
        })
        .collect();
    assert_eq!(journals[0], journals[1]);
    assert!(journals[0].contains("attempt_ended"));
}

#[test]
fn an_unknown_way_to_act_and_all_other_mistakes_are_reported_at_once() {
    let world = CliWorld::new("");
    let file = world.workspace().join("task.yaml");
    let errors_of = |text: &str| {
        fs::write(&file, text).unwrap();
        let run = world.jackline(&["run", file.to_str().unwrap()]);
        assert_eq!(run.code, Some(2), "{run:?}");
        run.with_path_placeholders(&world).stderr
    };
    let text = errors_of("acts: progams\ntools: [read_fil]\n");
    for part in [
        "task.yaml:1:7: `acts` can't be `progams`; did you mean `programs`?",
        "`read_file`",
        "needs a `prompt`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = errors_of("prompt: x\nacts: dance\n");
    assert!(text.contains("`acts` can't be `dance`; known words: `tools`, `programs`"), "{text}");
    let text = errors_of("prompt: x\nacts: programs\nmodel: { worker: claude }\n");
    let expected = "task.yaml:2:7: `acts: programs` needs a model that writes programs; a `worker` is an agent \
                    program with its own way to act; name a model with `provider`, or remove `acts`";
    assert!(text.contains(expected), "{text}");
    // The definition can name a worker, too.
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, "true");
    task.append("acts: programs\n");
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("`sh` can't be used: `acts: programs` needs a model"), "{run:?}");
    assert!(!world.home().join("sessions").exists(), "no session may be started");
}

#[test]
fn a_relative_sandbox_path_of_a_run_begins_in_the_directory_of_the_person() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &[REPORT_PROGRAM])]);
    fs::copy(crate::attempt::sandbox(), world.workspace().join("worker")).unwrap();
    let run = task.run(&["--sandbox", "./worker"]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
}

#[test]
fn a_missing_sandbox_is_reported_before_anything_runs() {
    let world = CliWorld::new("");
    let task =
        TaskDirectory::with_programs(&world, REPORT_COMPLETION, &[("main", &[REPORT_PROGRAM])]);
    let copy = world.root().join("alone/jackline");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    fs::copy(JACKLINE, &copy).unwrap();
    let mut command = world.command(copy.to_str().unwrap());
    let run = run_with_input(command.args(["run", "--json"]).arg(&task.directory), b"");
    assert_eq!((run.code, ended_event(&run)["error"]["kind"].as_str()), (Some(3), Some("sandbox")));
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    let expected = "error: `jackline-sandbox` is neither beside this program nor in PATH; \
                    build it with `cargo build --release -p jackline-sandbox`\n";
    assert_eq!(run.stderr, expected);
    assert!(!world.home().join("sessions").exists());
    let run = task.run(&["--sandbox", "/nowhere"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("`/nowhere` can't be started"), "{run:?}");
}
