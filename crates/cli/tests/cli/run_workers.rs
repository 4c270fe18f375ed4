//! What `jackline run` tells an agent program that remembers nothing, start by start, and what
//! becomes of one that fails, is held, or takes too long.

use std::fs;

use jackline_host::clock::now;
use serde_json::{Value, json};

use crate::run_support::{
    REPORT, Task, WORKS, code, end_of, ended, mark, session, sleepers, told, until, wait_for_line,
};
use crate::support::{Run, World, feed};

/// The task of each of these.
const TASK: &str = "write report.md";

/// A worker that writes down what it is told, beside the workspace, and then does something;
/// `$n` counts its starts.
fn hears(does: &str) -> String {
    format!("n=$(ls .. | grep -c '^told-'); printf %s \"$1\" > ../told-$n; {does}")
}

/// What the worker was told, start by start.
fn prompts(world: &World) -> Vec<String> {
    let prompt = |n: usize| fs::read_to_string(world.root().join(format!("told-{n}"))).ok();
    (0..).map_while(prompt).collect()
}

/// The second start was told the task again, and all of these.
fn was_told_again(world: &World, news: &[&str]) {
    let prompts = prompts(world);
    assert_eq!((prompts.len(), prompts[0].as_str()), (2, TASK), "{prompts:#?}");
    let again = &prompts[1];
    assert!(again.starts_with(TASK), "{again}");
    for news in news {
        assert!(again.contains(news), "{news}: {again}");
    }
}

fn why_not(run: &Run) -> String {
    told(run, "stopping")[0]["why"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_without_memory_is_told_its_task_with_every_start() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, &hears("[ $n = 0 ] || echo done > report.md"));
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    was_told_again(&world, &["Where the work stands", &why_not(&run)]);
    world.prove(&session(&run));
}

/// Nobody sees what such a program calls, so each of its ends is one to look at.
#[test]
fn a_check_by_command_sees_what_each_start_of_a_program_has_left() {
    let world = World::new("");
    let check =
        "completion: { command: 'echo >> ../checks; test $(ls .. | grep -c ^told-) = 3' }\n";
    let run = Task::worker(&world, &format!("{check}progress: {{}}\n"), &hears(":")).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(prompts(&world).len(), 3);
    let checks = fs::read_to_string(world.root().join("checks")).unwrap();
    assert_eq!(checks.lines().count(), 3, "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn files_that_a_program_writes_are_changes_although_nobody_sees_its_calls() {
    let world = World::new("");
    let definition = format!("{REPORT}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n");
    let writes = hears("touch n$n; [ $n -lt 4 ] || echo done > report.md");
    let run = Task::worker(&world, &definition, &writes).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let ends = told(&run, "iteration_ended");
    assert_eq!(ends.len(), 4, "{run:?}");
    assert!(ends.iter().all(|end| end.get("failure").is_none()), "{ends:?}");
    // Nor does the evidence say that nothing was touched.
    assert_eq!(told(&run, "ended")[0]["evidence"]["code_modified"], true, "{run:?}");
    world.prove(&session(&run));
    let world = World::new("");
    let run = Task::worker(&world, &definition, "true").run(&[]);
    assert!(code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let ends = told(&run, "iteration_ended");
    assert_eq!(ends[0]["failure"], "nothing was changed", "{ends:?}");
}

#[test]
fn a_program_that_waited_for_a_person_is_told_its_task_and_why_its_stop_was_refused() {
    let world = World::new("");
    let definition = format!("{REPORT}limits: {{ iterations: 1 }}\n");
    let task = Task::worker(&world, &definition, &hears("[ $n = 0 ] || echo done > report.md"));
    let run = task.run(&[]);
    let id = session(&run);
    assert!(code(&run).contains("1 of 1 iterations"), "{run:?}");
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let again = task.resume(&[&id]);
    assert_eq!(code(&again), "OBJECTIVE_ACHIEVED", "{again:?}");
    was_told_again(&world, &[&why_not(&run)]);
    world.prove(&id);
}

#[test]
fn who_goes_on_after_a_checkpoint_is_not_told_that_nothing_is_left() {
    let world = World::new("");
    let definition = format!("{REPORT}limits: {{ iterations: 1 }}\n");
    let task = Task::worker(&world, &definition, &hears("[ $n = 0 ] || echo done > report.md"));
    let mut child = task.start(&[]);
    let said = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(world.jackline(&["ack"]).code, Some(0));
    let run = end_of(child);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{said}{run:?}");
    was_told_again(&world, &["A person has looked at it", "report.md"]);
    let again = &prompts(&world)[1];
    assert!(!again.contains("of 1 iterations") && !again.contains("jackline ack"), "{again}");
    // The second one ended the run, and `status` counts what had ended before.
    let evidence = &ended(&run)["evidence"];
    assert_eq!((&evidence["iterations"], &evidence["iterations_ended"]), (&2.into(), &1.into()));
    let status = world.jackline(&["status", "--json", &session(&run)]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["safety"]["iteration_count"], 1, "{status}");
    world.prove(&session(&run));
}

#[test]
fn a_run_that_is_left_at_its_checkpoint_has_as_many_iterations_as_its_status_says() {
    let world = World::new("");
    let definition = format!("{REPORT}limits: {{ iterations: 2 }}\n");
    let task = Task::worker(&world, &definition, "true");
    let run = task.run(&[]);
    let evidence = &ended(&run)["evidence"];
    assert_eq!((&evidence["iterations"], &evidence["iterations_ended"]), (&2.into(), &2.into()));
}

#[test]
fn what_a_program_without_hooks_has_cost_is_unknown_and_not_nothing() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, "echo done > report.md");
    let run = task.run(&[]);
    let evidence = &ended(&run)["evidence"];
    assert_eq!(
        (&evidence["cost_micros"], &evidence["tokens_unknown"]),
        (&Value::Null, &true.into())
    );
    let shown = feed(task.command(&["--no-wait"]).arg(&task.directory), b"").stdout;
    assert!(shown.contains(", tokens and cost unknown, ") && !shown.contains(" $"), "{shown}");
    assert!(shown.contains("1 iteration (0 of them ended)"), "{shown}");
}

#[test]
fn a_stop_while_a_person_is_waited_for_does_not_say_that_it_goes_on() {
    for stops_by_file in [true, false] {
        let world = World::new("");
        mark(&world, "PAUSE");
        let task = Task::worker(&world, REPORT, "echo done > report.md");
        let mut child = task.start(&[]);
        let said = wait_for_line(&mut child, "\"for\":\"person\"");
        if stops_by_file {
            mark(&world, "STOP");
        } else {
            assert_eq!(world.jackline(&["stop"]).code, Some(0));
        }
        let run = end_of(child);
        assert_eq!(code(&run), "HUMAN_REQUESTED", "{said}{run:?}");
        assert_eq!(told(&run, "goes_on"), Vec::<Value>::new(), "{run:?}");
        assert!(!world.work().join("report.md").exists());
        world.prove(&session(&run));
    }
}

#[test]
fn a_stop_is_the_end_of_everything_that_a_program_and_its_children_do() {
    let world = World::new("");
    // Both write until they are ended, one of them in a session of its own.
    let beats = "while :; do date +%s%3N >> ../beats; sleep 0.02; done";
    let line = format!("setsid sh -c '{beats}' & touch began; {beats}");
    let task = Task::worker(&world, REPORT, &line);
    let child = task.start(&[]);
    until("the program", || world.work().join("began").exists());
    until("its children", || world.root().join("beats").exists());
    let driver = child.id();
    let stopped = now().wall.as_ms();
    mark(&world, "STOP");
    let run = end_of(child);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(others_in(&world.work(), driver), Vec::<String>::new(), "{run:?}");
    let beats = fs::read_to_string(world.root().join("beats")).unwrap();
    // The last line may be cut off.
    let last = beats.lines().filter_map(|beat| beat.parse::<i64>().ok()).max().unwrap();
    assert!(last - stopped < 1500, "{} ms", last - stopped);
}

/// Processes that work in a directory, besides one.
fn others_in(directory: &std::path::Path, besides: u32) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let works = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter(works).map(name);
    all.filter(|name| *name != besides.to_string()).collect()
}

#[test]
fn a_program_whose_run_was_killed_is_told_its_task_and_that_it_was_cut_off() {
    let world = World::new("");
    let line = hears("if [ $n = 0 ]; then touch began; sleep 283; fi; echo done > report.md");
    let task = Task::worker(&world, REPORT, &line);
    let mut child = task.start(&[]);
    until("the worker", || world.work().join("began").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the worker", || sleepers(283) == 0);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    was_told_again(&world, &["after it was cut off"]);
    world.prove(&session(&run));
}

#[test]
fn a_pause_ends_a_program_without_hooks_and_afterwards_it_is_started_again() {
    let world = World::new("");
    let line = hears("if [ $n = 0 ]; then touch began; sleep 282; fi; echo done > report.md");
    let task = Task::worker(&world, REPORT, &line);
    let mut child = task.start(&[]);
    until("the worker", || world.work().join("began").exists());
    mark(&world, "PAUSE");
    let said = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(sleepers(282), 0, "{said}");
    assert!(!world.work().join("report.md").exists());
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    let run = end_of(child);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{said}{run:?}");
    was_told_again(&world, &["after it was cut off", "A person has looked at it"]);
    world.prove(&session(&run));
}

#[test]
fn a_pause_by_command_ends_a_program_without_hooks_too() {
    let world = World::new("");
    let line = hears("if [ $n = 0 ]; then touch began; sleep 280; fi; echo done > report.md");
    let task = Task::worker(&world, REPORT, &line);
    let mut child = task.start(&[]);
    until("the worker", || world.work().join("began").exists());
    assert_eq!(world.jackline(&["pause", "--why", "look first"]).code, Some(0));
    let said = wait_for_line(&mut child, "\"for\":\"person\"");
    assert_eq!(sleepers(280), 0, "{said}");
    assert_eq!(world.jackline(&["resume"]).code, Some(0));
    let run = end_of(child);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{said}{run:?}");
    was_told_again(&world, &["after it was cut off", "A person has looked at it"]);
    world.prove(&session(&run));
}

#[test]
fn an_advisor_sees_what_a_program_said_and_the_program_hears_it_with_its_task() {
    let world = World::new("");
    let line = hears("echo I tried $n; [ $n -lt 3 ] || echo done > report.md");
    let definition = format!(
        "{REPORT}progress: {{}}\ncompletion_cap: {{ blocks: 9, same: 9 }}\n\
         advisor: {{ models: [{{ provider: scripted, model: advisor }}] }}\n"
    );
    let task = Task::worker(&world, &definition, &line);
    task.add("scripts: { advisor: advisor.yaml }\n");
    let advice =
        "steps: [{ text: I see nothing. }]\nparts: { I tried 2: [{ text: Use a pen. }] }\n";
    fs::write(task.directory.join("advisor.yaml"), advice).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "advised")[0]["instruction"], "Use a pen.", "{run:?}");
    let prompts = prompts(&world);
    let last = prompts.last().unwrap();
    assert_eq!(prompts.len(), 4, "{prompts:#?}");
    assert!(last.starts_with(TASK) && last.contains("Use a pen."), "{last}");
    world.prove(&session(&run));
}

#[test]
fn a_plan_that_is_used_up_is_waited_for_until_the_time_that_a_program_names() {
    let world = World::new("");
    let does = "[ $n = 0 ] || { echo done > report.md; exit 0; }; \
                echo \"usage limit reached|$(($(date +%s) + 2))\"; exit 1";
    let task = Task::worker(&world, REPORT, &hears(does));
    let began = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(now().boot_ms - began >= 1000, "{run:?}");
    let waiting = &told(&run, "waiting")[0];
    assert_eq!(waiting["for"], "model", "{run:?}");
    assert!(waiting["ms"].as_u64().unwrap() <= 2000, "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_plan_that_is_used_up_for_longer_than_the_work_may_take_ends_it() {
    let world = World::new("");
    let definition = format!("{REPORT}limits: {{ wall_seconds: 1 }}\n");
    let run = Task::worker(&world, &definition, "echo usage limit reached; exit 1").run(&[]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn an_overloaded_program_is_started_again_within_its_budget() {
    let world = World::new("");
    let line = hears("[ $n -lt 2 ] || { echo done > report.md; exit 0; }; echo error: 529; exit 1");
    let words = json!(["sh", "-c", line, "worker"]);
    let task = Task::of(&world, REPORT, &[format!("worker: {words}, budget: 2")]);
    let run = task.run(&[]);
    assert_eq!((code(&run), prompts(&world).len()), ("SYSTEM_ERROR{worker}".into(), 2), "{run:?}");
    assert_eq!(told(&run, "waiting").len(), 2, "{run:?}");
    let task = Task::of(&world, REPORT, &[format!("worker: {words}, budget: 9")]);
    let run = task.run(&[]);
    assert_eq!((code(&run), prompts(&world).len()), ("OBJECTIVE_ACHIEVED".into(), 3), "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_program_that_only_fails_is_given_up_after_three_starts() {
    let world = World::new("");
    let run = Task::worker(&world, REPORT, &hears("exit 7")).run(&[]);
    assert_eq!(code(&run), "SYSTEM_ERROR{worker}", "{run:?}");
    assert_eq!(prompts(&world), [TASK; 3], "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_model_that_follows_a_program_is_told_where_the_work_stands() {
    let world = World::new("");
    let words = json!(["sh", "-c", "echo error: 529; exit 1", "worker"]);
    let models = [
        format!("worker: {words}"),
        "provider: scripted, model: second, window: 100000".to_owned(),
    ];
    let task = Task::of(&world, REPORT, &models);
    task.add("scripts: { second: second.yaml }\n");
    let works = WORKS.trim_start_matches("steps:\n");
    let script =
        format!("steps: [{{ text: I know nothing. }}]\nparts:\n  Where the work stands:\n{works}");
    fs::write(task.directory.join("second.yaml"), script).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "asking").len(), 3, "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_program_is_ended_when_the_time_of_the_session_is_up() {
    let world = World::new("");
    let definition = format!("{REPORT}limits: {{ wall_seconds: 2 }}\n");
    let task = Task::worker(&world, &definition, "sleep 281; echo done > report.md");
    let run = task.run(&[]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert_eq!(sleepers(281), 0);
    world.prove(&session(&run));
}

#[test]
fn where_the_time_is_up_already_no_program_is_started() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, "echo x > started; echo done > report.md");
    let run = task.run(&["--deadline", "2001-01-01T00:00:00Z"]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{deadline}", "{run:?}");
    assert!(!world.work().join("started").exists(), "{run:?}");
    assert_eq!(ended(&run)["evidence"]["iterations"], 0, "{run:?}");
    assert_eq!(told(&run, "iteration").len(), 0, "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn a_program_with_another_command_line_is_another_agent() {
    let world = World::new("");
    let task = Task::of(&world, REPORT, &[]);
    let by = |line: &str| {
        let words = json!(["sh", "-c", line, "worker"]);
        let text =
            format!("prompt: {TASK}\ndefinition: jackline.yaml\nmodel: {{ worker: {words} }}\n");
        fs::write(task.directory.join("task.yaml"), text).unwrap();
        task.run(&[])
    };
    let approved = session(&by("echo done > report.md"));
    let shown = world.jackline(&["identity", "show", &approved]).stdout;
    assert!(shown.contains("unknown"), "{shown}");
    let words = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&words).code, Some(0));
    assert_eq!(code(&by("echo done > report.md")), "OBJECTIVE_ACHIEVED");
    let run = by("echo other > report.md");
    assert_eq!((run.code, code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
}
