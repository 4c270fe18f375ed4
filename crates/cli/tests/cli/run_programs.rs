//! `jackline run` where a model acts by programs: each of them is looked at, runs as one
//! step, and is undone where it fails.

use std::fs;
use std::process::{Child, Command};

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::run_support::{
    REPORT, Task, code, end_of, ended, normalised, session, sleepers, told, until,
};
use crate::support::{JACKLINE, Run, World, feed};

/// Does what is asked for.
const DOES_IT: &str = "tool('write_file')(path='report.md', content='done')\nok({'written': 1})";

/// Writes something, and then what a rule is against.
const BREAKS_A_RULE: &str = "tool('write_file')(path='draft.md', content='half')\n\
                             tool('write_file')(path='secret.txt', content='x')\nok('fine')";

const RULE: &str = "completion: { files: [report.md] }\n\
                    rules:\n  - name: no-secrets\n    tool: write_file\n    when: 'path == \"secret.txt\"'\n    \
                    deny: Secrets are not written down.\n    \
                    examples: { deny: [{ path: secret.txt, content: x }], allow: [{ path: a, content: x }] }\n";

/// What became of programs, step by step.
fn steps(run: &Run) -> Vec<String> {
    let word = |it: &Value| it["step"]["event"].as_str().unwrap().to_owned();
    told(run, "program").iter().map(word).collect()
}

/// Files of the workspace, without what is for people.
fn files(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.work()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|it| !it.starts_with('.')).collect();
    names.sort();
    names
}

fn mark(world: &World, name: &str) {
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline").join(name), "").unwrap();
}

/// What a model has been told, and has said.
fn conversation(world: &World, run: &Run) -> String {
    fs::read_to_string(world.directory(&session(run)).join("conversation.jsonl")).unwrap()
}

#[test]
fn a_program_does_what_is_asked_for_and_its_value_is_the_answer() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[DOES_IT])]);
    let run = task.run(&[]);
    assert_eq!((run.code, code(&run)), (Some(0), "OBJECTIVE_ACHIEVED".into()), "{run:?}");
    let ended = ended(&run);
    assert_eq!(
        ended["outcome"],
        json!({ "status": "ok", "value": { "written": 1 }, "retriable": false, "normalized": false })
    );
    assert_eq!(ended["evidence"]["files_changed"], json!(["report.md"]));
    assert_eq!(steps(&run), ["started", "generated", "committed"]);
    let id = session(&run);
    let kinds: Vec<&str> = world.records(&id).iter().map(|it| it.event.kind.name()).collect();
    let attempts = ["attempt_started", "attempt_stage", "attempt_ended", "stop_proposed"];
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| attempts.contains(kind)).collect();
    let expected = [&attempts[..1], &[attempts[1]; 4], &attempts[2..]].concat();
    assert_eq!(kinds, expected, "all of it is in the session of the run");
    world.prove(&id);
    // What a program did can still be undone by a person.
    assert_eq!(world.jackline(&["undo", &id, "1"]).code, Some(0));
    assert_eq!(files(&world), ["jackline.yaml"]);
}

#[test]
fn what_breaks_a_rule_is_undone_and_the_next_program_is_told() {
    let world = World::new("");
    let task = Task::programs(&world, RULE, &[("main", &[BREAKS_A_RULE, DOES_IT])]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let expected =
        ["started", "generated", "objected", "rolled_back", "started", "generated", "committed"];
    assert_eq!(steps(&run), expected, "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml", "report.md"]);
    let said = conversation(&world, &run);
    assert!(said.contains("Secrets are not written down"), "{said}");
    assert!(!ended(&run)["outcome"].to_string().contains("Secrets"));
    assert_eq!(told(&run, "iteration").len(), 1, "within one iteration: {run:?}");
    world.prove(&session(&run));
}

#[test]
fn an_answer_that_comes_too_early_goes_on_with_what_is_missing() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &["ok('all done')", DOES_IT])]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let stops: Vec<bool> =
        told(&run, "stopping").iter().map(|it| it["allowed"].as_bool().unwrap()).collect();
    assert_eq!(stops, [false, true]);
    assert!(conversation(&world, &run).contains("report.md"), "it is told what is missing");
    world.prove(&session(&run));
}

#[test]
fn a_model_that_does_not_answer_is_followed_by_the_next() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[]), ("second", &[DOES_IT])]);
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    fs::write(task.directory.join("main.yaml"), busy).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "changed")[0]["reason"], "overload");
    world.prove(&session(&run));
}

#[test]
fn a_full_context_begins_anew_between_two_programs() {
    let world = World::new("");
    let task = Task::programs(&world, &format!("{RULE}context: {{}}\n"), &[("main", &[])]);
    let steps = json!({ "steps": [
        { "text": BREAKS_A_RULE, "usage": { "input": 81000, "output": 10 } },
        { "text": DOES_IT },
    ] });
    fs::write(task.directory.join("main.yaml"), steps.to_string()).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "restarted")[0]["pct"], 81);
    let said = conversation(&world, &run);
    assert!(said.contains("Where the work stands"), "{said}");
    assert!(said.contains("Secrets are not written down"), "it is told what was wrong: {said}");
    world.prove(&session(&run));
}

/// Programs that break a rule, for ever: in a fresh conversation, and in one that is full.
fn fails_until_full(world: &World, definition: &str) -> Run {
    let task = Task::programs(world, &format!("{definition}context: {{}}\n"), &[("main", &[])]);
    let steps = json!({ "repeat": true, "steps": [
        { "text": BREAKS_A_RULE, "usage": { "input": 10000, "output": 10 } },
        { "text": BREAKS_A_RULE, "usage": { "input": 81000, "output": 10 } },
    ] });
    fs::write(task.directory.join("main.yaml"), steps.to_string()).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "SYSTEM_ERROR{model}", "{run:?}");
    assert_eq!(files(world), ["jackline.yaml"]);
    world.prove(&session(&run));
    run
}

/// Each time there is room again, so no compaction was useless; but nothing comes of it.
#[test]
fn programs_that_only_fill_one_conversation_after_the_other_come_to_an_end() {
    let run = fails_until_full(&World::new(""), &format!("attempts: {{ guardrail: 2 }}\n{RULE}"));
    assert_eq!((told(&run, "restarted").len(), told(&run, "asking").len()), (2, 6), "{run:?}");
    let aside = told(&run, "aside").pop().unwrap();
    assert!(aside["text"].as_str().unwrap().contains("nothing comes of it"), "{aside}");
}

#[test]
fn programs_that_came_to_nothing_count_where_the_conversation_is_full_too() {
    let run = fails_until_full(&World::new(""), RULE);
    assert_eq!(told(&run, "iteration_ended").len(), 4, "{run:?}");
    assert_eq!(told(&run, "restarted").len(), 3, "{run:?}");
}

/// The processes that a process has started, as far as they are still there.
fn children(of: &Child) -> Vec<u32> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    ids.filter(|id| parent(*id) == Some(of.id())).collect()
}

/// Computes for as long as it may.
const COMPUTES: &str =
    "tool('write_file')(path='began', content='x')\nwhile True:\n    pass\nok(1)";

/// Has a command run for minutes that leaves others behind.
fn sleeps(seconds: u32) -> String {
    let line = format!("setsid sleep {seconds} & touch inside; sleep {seconds}");
    format!(
        "tool('write_file')(path='began', content='x')\ntool('shell')(command='{line}')\n{DOES_IT}"
    )
}

/// Holds a run while a program is under way; what it came to, and after how long.
fn held_by(
    world: &World,
    task: &Task<'_>,
    hold: impl Fn(&World),
    at_work: impl Fn() -> bool,
) -> (Run, u64) {
    let mut command = task.command(&["--json", "--no-wait"]);
    let child = crate::run_support::piped(command.arg(&task.directory));
    until("the program", || world.work().join("began").exists() && at_work());
    let below = children(&child);
    assert!(!below.is_empty(), "a worker is there");
    let marked = now().boot_ms;
    hold(world);
    until("the end of the program", || !world.work().join("began").exists());
    let ms = now().boot_ms - marked;
    let run = end_of(child);
    let left = below.iter().filter(|id| fs::exists(format!("/proc/{id}/exe")).unwrap_or(false));
    assert_eq!(left.count(), 0, "nobody is left");
    (run, ms)
}

#[test]
fn a_stop_ends_a_program_that_computes_within_a_second_and_undoes_it() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[COMPUTES, DOES_IT])]);
    let (run, ms) = held_by(&world, &task, |world| mark(world, "STOP"), || true);
    assert!(ms < 1000, "{ms} ms");
    assert_eq!((run.code, code(&run)), (Some(1), "HUMAN_REQUESTED".into()), "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml"]);
    assert!(steps(&run).contains(&"rolled_back".to_owned()), "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_stop_ends_a_command_of_a_program_with_all_that_it_started() {
    let world = World::new("");
    let program = sleeps(279);
    let task = Task::programs(&world, REPORT, &[("main", &[&program, DOES_IT])]);
    let (run, ms) = held_by(&world, &task, |world| mark(world, "STOP"), || sleepers(279) >= 2);
    assert!(ms < 1500, "{ms} ms");
    assert_eq!((code(&run), sleepers(279)), ("HUMAN_REQUESTED".into(), 0), "{run:?}");
    assert!(!world.work().join("report.md").exists());
    world.prove(&session(&run));
}

#[test]
fn a_pause_undoes_the_program_and_the_next_one_goes_on() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[COMPUTES, DOES_IT])]);
    let (run, ms) = held_by(&world, &task, |world| mark(world, "PAUSE"), || true);
    assert!(ms < 1000, "{ms} ms");
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(conversation(&world, &run).contains("everything that it did is undone"));
    assert_eq!(files(&world), ["jackline.yaml", "report.md"]);
    world.prove(&session(&run));
}

#[test]
fn a_person_who_pauses_by_a_command_does_not_wait_for_a_program() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[COMPUTES, DOES_IT])]);
    let pause = |world: &World| {
        assert_eq!(world.jackline(&["pause", "--why", "let me see"]).code, Some(0));
    };
    let (run, ms) = held_by(&world, &task, pause, || true);
    // The command takes its time as well.
    assert!(ms < 2000, "{ms} ms");
    assert!(code(&run).contains("let me see"), "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml"]);
    let id = session(&run);
    assert_eq!(world.jackline(&["resume", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

#[test]
fn a_signal_ends_the_program_and_a_resumed_run_goes_on() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[COMPUTES, DOES_IT])]);
    let child = task.start(&[]);
    until("the program", || world.work().join("began").exists());
    let mut kill = Command::new("kill");
    assert!(kill.args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let run = end_of(child);
    assert_eq!(code(&run), "left: it was ended by a signal", "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml"]);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn what_a_kill_leaves_is_undone_before_the_work_goes_on() {
    let world = World::new("");
    fs::write(world.work().join("a.txt"), "as it was").unwrap();
    let program = format!("tool('write_file')(path='a.txt', content='half')\n{}", sleeps(278));
    let task = Task::programs(&world, REPORT, &[("main", &[&program, DOES_IT])]);
    let mut child = task.start(&[]);
    until("the command", || sleepers(278) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(278) == 0);
    assert_eq!(fs::read_to_string(world.work().join("a.txt")).unwrap(), "half");
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let asides = told(&run, "aside");
    let said = asides[0]["text"].as_str().unwrap();
    assert!(said.contains("was cut off, and is undone now: began, a.txt"), "{said}");
    assert_eq!(fs::read_to_string(world.work().join("a.txt")).unwrap(), "as it was");
    assert_eq!(files(&world), ["a.txt", "jackline.yaml", "report.md"]);
    assert!(conversation(&world, &run).contains("everything that it did is undone"));
    let id = session(&run);
    let numbers: Vec<Value> = told(&run, "program")
        .iter()
        .filter(|it| it["step"]["event"] == "started")
        .map(|it| it["step"]["number"].clone())
        .collect();
    assert_eq!(numbers, [2], "attempts are numbered through");
    world.prove(&id);
}

#[test]
fn while_somebody_else_undoes_what_is_left_none_is_begun() {
    let world = World::new("");
    let program = format!("tool('write_file')(path='a.txt', content='half')\n{}", sleeps(277));
    let task = Task::programs(&world, REPORT, &[("main", &[&program, DOES_IT])]);
    let mut child = task.start(&[]);
    until("the command", || sleepers(277) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(277) == 0);
    let mut sessions = fs::read_dir(world.home().join("sessions")).unwrap();
    let directory = sessions.next().unwrap().unwrap().path();
    let undoes = fs::File::open(directory.join("attempting")).unwrap();
    undoes.lock().unwrap();
    let run = task.resume(&[]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("another process is undoing it"), "{run:?}");
    assert!(world.work().join("a.txt").exists());
    drop(undoes);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml", "report.md"]);
    world.prove(&session(&run));
}

#[test]
fn a_task_in_attempts_undoes_what_a_run_has_left_and_the_run_knows() {
    let world = World::new("");
    let program = sleeps(277);
    let task = Task::programs(&world, REPORT, &[("main", &[&program, DOES_IT])]);
    let mut child = task.start(&[]);
    until("the command", || sleepers(277) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(277) == 0);
    let other = world.root().join("other.yaml");
    fs::write(world.root().join("script.yaml"), "answers: [ 'ok(1)' ]").unwrap();
    fs::write(&other, "prompt: say 1\nmodel: { script: script.yaml }\n").unwrap();
    let attempt = world.jackline(&["attempt", other.to_str().unwrap()]);
    assert_eq!(attempt.code, Some(0), "{attempt:?}");
    assert!(attempt.stderr.contains("attempt 1 of session `run-"), "{attempt:?}");
    assert_eq!(files(&world), ["jackline.yaml"]);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(told(&run, "aside").is_empty(), "nothing is left to undo: {run:?}");
    assert!(conversation(&world, &run).contains("everything that it did is undone"));
    world.prove(&session(&run));
}

#[test]
fn a_run_that_is_killed_while_it_is_asked_leaves_no_attempt_open() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[])]);
    let slow = json!({ "steps": [{ "text": DOES_IT, "delay_ms": 60_000 }, { "text": DOES_IT }] });
    fs::write(task.directory.join("main.yaml"), slow.to_string()).unwrap();
    let mut child = task.start(&[]);
    let journal = || {
        let sessions = fs::read_dir(world.home().join("sessions")).into_iter().flatten().flatten();
        let texts = sessions.map(|it| fs::read_to_string(it.path().join("journal.jsonl")));
        texts.flatten().any(|text| text.contains("attempt_started"))
    };
    until("the attempt", journal);
    child.kill().unwrap();
    child.wait().unwrap();
    let quick = json!({ "steps": [{ "text": DOES_IT }] });
    fs::write(task.directory.join("main.yaml"), quick.to_string()).unwrap();
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let id = session(&run);
    let count =
        |name: &str| world.records(&id).iter().filter(|it| it.event.kind.name() == name).count();
    assert_eq!((count("attempt_started"), count("attempt_ended")), (2, 2));
    world.prove(&id);
}

/// Everything that is of the inside in these stories.
const INSIDE: [&str; 6] =
    ["secret.txt", "Secrets", "no-secrets", "write_file", "rule_violation", "exhausted"];

#[test]
fn programs_that_come_to_nothing_are_failed_iterations_and_nothing_of_them_is_public() {
    let world = World::new("");
    let definition = format!(
        "{RULE}progress: {{}}\nadvisor: {{ models: [{{ provider: scripted, model: advisor }}], budget: 1 }}\n"
    );
    let breaks = [BREAKS_A_RULE; 20];
    let scripts: [(&str, &[&str]); 3] =
        [("main", &breaks), ("second", &breaks), ("advisor", &["Look elsewhere."])];
    let task = Task::programs(&world, &definition, &scripts);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1));
    assert!(code(&run).starts_with("left: it waits for a person: 3 iterations"), "{run:?}");
    assert!(world.work().join(".jackline/BLOCKER_REPORT.md").is_file());
    assert_eq!((told(&run, "advised").len(), told(&run, "changed").len()), (1, 1), "{run:?}");
    let ended = ended(&run);
    assert_eq!(
        ended["outcome"],
        json!({
            "status": "error", "error_type": "request_not_completed",
            "error_message": "This request couldn't be completed after multiple attempts.",
            "retriable": false, "normalized": true,
            "normalization_policy": "guardrail_exhaustion_boundary_v1",
        })
    );
    for inside in INSIDE {
        assert!(!ended["left"].to_string().contains(inside), "{inside}: {ended}");
    }
    assert_eq!(files(&world), ["jackline.yaml"]);
    world.prove(&session(&run));
}

#[test]
fn where_nothing_counts_failures_and_nobody_else_is_there_it_ends_all_the_same() {
    let world = World::new("");
    let task = Task::programs(&world, RULE, &[("main", &[BREAKS_A_RULE; 20])]);
    let mut command = task.command(&["--no-wait"]);
    let run = feed(command.arg(&task.directory), b"");
    assert_eq!(run.code, Some(1), "{run:?}");
    let (_, summary) = run.stdout.split_once("\nSYSTEM_ERROR").unwrap_or_else(|| panic!("{run:?}"));
    let mut lines = summary.lines();
    assert_eq!(lines.next(), Some("{model}"), "{run:?}");
    let told = "  This request couldn't be completed after multiple attempts.";
    assert_eq!(lines.next(), Some(told), "{run:?}");
    for inside in ["secret.txt", "Secrets", "write_file"] {
        assert!(!summary.contains(inside), "{inside}: {summary}");
    }
    assert_eq!(run.stdout.matches("\niteration ").count(), 4, "{run:?}");
    assert_eq!(files(&world), ["jackline.yaml"]);
}

#[test]
fn what_a_program_says_itself_is_told_as_it_says_it() {
    let world = World::new("");
    let says = "error('not_found', 'There is no such film.', retriable=False)";
    let task = Task::programs(&world, REPORT, &[("main", &[says; 4])]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "SYSTEM_ERROR{model}", "{run:?}");
    let outcome = &ended(&run)["outcome"];
    assert_eq!(
        (&outcome["error_type"], &outcome["error_message"]),
        (&json!("not_found"), &json!("There is no such film."))
    );
}

#[test]
fn two_runs_of_one_script_leave_the_same_journal() {
    let journals: Vec<String> = (0..2)
        .map(|_| {
            let world = World::new("");
            let programs = [BREAKS_A_RULE, "ok('too early')", "1/0", DOES_IT];
            let task = Task::programs(&world, RULE, &[("main", &programs)]);
            let run = task.run(&[]);
            assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
            world.prove(&session(&run));
            normalised(&world, &session(&run))
        })
        .collect();
    assert_eq!(journals[0], journals[1]);
    assert!(journals[0].contains("attempt_ended"));
}

#[test]
fn how_a_model_acts_is_one_of_two_and_all_mistakes_are_said_at_once() {
    let world = World::new("");
    let file = world.work().join("task.yaml");
    let said = |text: &str| {
        fs::write(&file, text).unwrap();
        let run = world.jackline(&["run", file.to_str().unwrap()]);
        assert_eq!(run.code, Some(2), "{run:?}");
        run.anywhere(&world).stderr
    };
    let text = said("acts: progams\ntools: [read_fil]\n");
    for part in [
        "task.yaml:1:7: `acts` can't be `progams`; did you mean `programs`?",
        "`read_file`",
        "needs a `prompt`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = said("prompt: x\nacts: dance\n");
    assert!(text.contains("`acts` can't be `dance`; known are `tools`, `programs`"), "{text}");
    let text = said("prompt: x\nacts: programs\nmodel: { worker: claude }\n");
    let expected = "task.yaml:2:7: `acts: programs` has a model write programs, and a `worker` is an agent that acts \
                    in its own way; name a model by its `provider`, or leave `acts` out";
    assert!(text.contains(expected), "{text}");
    // The definition may name one as well.
    let task = Task::worker(&world, REPORT, "true");
    task.add("acts: programs\n");
    let run = task.run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("`sh` can't be asked: `acts: programs` has a model"), "{run:?}");
    assert!(!world.home().join("sessions").exists(), "nothing was begun");
}

#[test]
fn a_missing_worker_is_said_before_anything_begins() {
    let world = World::new("");
    let task = Task::programs(&world, REPORT, &[("main", &[DOES_IT])]);
    let copy = world.root().join("alone/jackline");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    fs::copy(JACKLINE, &copy).unwrap();
    let mut command = world.command(copy.to_str().unwrap());
    let run = feed(command.args(["run", "--json"]).arg(&task.directory), b"");
    assert_eq!((run.code, ended(&run)["error"]["kind"].as_str()), (Some(3), Some("sandbox")));
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    let expected = "error: `jackline-sandbox` is neither beside this program nor in PATH; \
                    `cargo build --release -p jackline-sandbox` builds it\n";
    assert_eq!(run.stderr, expected);
    assert!(!world.home().join("sessions").exists());
    let run = task.run(&["--sandbox", "/nowhere"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("`/nowhere` can't be started"), "{run:?}");
}
