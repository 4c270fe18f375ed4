//! Tests of `jackline run` with the section `run` of a definition: how often a run tries again
//! before it asks for help, pauses or ends.

use jackline_engine::EventKind;
use jackline_engine::event::ModelChanged;
use serde_json::Value;

use crate::run_support::{REPORT_COMPLETION, TaskDirectory, events_named, session_id, stop_code};
use crate::support::{CliOutput, CliWorld};

/// Runs a task with one script for each model.
fn run_scripts(world: &CliWorld, limits: &str, scripts: &[(&str, &str)]) -> CliOutput {
    let definition = format!("{REPORT_COMPLETION}{limits}\n");
    let run = TaskDirectory::new(world, &definition, scripts).run(&[]);
    world.verify_and_replay(&session_id(&run));
    run
}

/// How often the first model wanted to stop before another model took over or the run ended.
fn stops_of_first_model(run: &CliOutput) -> usize {
    let events = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = events.map(|event| event["event"].as_str().unwrap().to_owned());
    names.take_while(|name| name != "changed").filter(|name| name == "said").count()
}

#[test]
fn refused_stops_without_work_ask_for_help_at_the_number_of_the_definition() {
    let idle = "steps:\n  - text: I am done.\nrepeat: true\n";
    for (limits, stops) in
        [("", 3), ("run: { stops_without_work: 1 }", 1), ("run: { stops_without_work: 2 }", 2)]
    {
        let run = run_scripts(&CliWorld::new(""), limits, &[("main", idle), ("second", idle)]);
        assert_eq!(stops_of_first_model(&run), stops, "{limits}: {run:?}");
    }
}

#[test]
fn failed_checks_ask_for_help_after_the_number_of_the_definition() {
    let work = |n: u32| {
        let args = format!("{{ path: n{n}, content: x }}");
        format!("  - calls: [{{ tool: write_file, args: {args} }}]\n  - text: Done.\n")
    };
    let works = format!("steps:\n{}", (0..30).map(work).collect::<String>());
    for (limits, stops) in
        [("", 4), ("run: { failed_checks: 0 }", 1), ("run: { failed_checks: 1 }", 2)]
    {
        let scripts = [("main", works.as_str()), ("second", works.as_str())];
        let run = run_scripts(&CliWorld::new(""), limits, &scripts);
        assert_eq!(stops_of_first_model(&run), stops, "{limits}: {run:?}");
    }
}

#[test]
fn failed_programs_pause_the_run_after_the_number_of_the_definition() {
    let world = CliWorld::new("");
    let programs: &[&str] = &["1 / 0"; 20];
    let limits = "run: { undone_iterations: 1 }\n";
    let run = TaskDirectory::with_programs(&world, limits, &[("main", programs)]).run(&[]);
    assert!(stop_code(&run).contains("no program succeeded in 2 iterations"), "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn answers_that_are_cut_off_fill_the_context_at_the_number_of_the_definition() {
    let cut_off = "steps:\n  - { text: and so on, broken: long }\nrepeat: true\n";
    for (limits, asked) in [("", 3), ("run: { cut_off_answers: 1 }", 1)] {
        let limits = format!("context: {{ restarts_max: 0 }}\n{limits}");
        let run = run_scripts(&CliWorld::new(""), &limits, &[("main", cut_off)]);
        assert_eq!(stop_code(&run), "SYSTEM_ERROR{model}", "{run:?}");
        assert_eq!(events_named(&run, "asking").len(), asked, "{limits}: {run:?}");
    }
}

#[test]
fn a_model_that_does_not_answer_is_asked_as_often_as_the_definition_says() {
    let fails = "steps:\n  - status: 502\nrepeat: true\n";
    let run = run_scripts(&CliWorld::new(""), "run: { model_tries: 2 }", &[("main", fails)]);
    assert_eq!(stop_code(&run), "SYSTEM_ERROR{model}", "{run:?}");
    // A wait comes before each further try.
    assert_eq!(events_named(&run, "waiting").len(), 1, "{run:?}");
}

#[test]
fn the_run_waits_for_a_used_up_plan_as_often_as_the_definition_says() {
    let used_up =
        "steps:\n  - { status: 429, text: usage limit reached, retry_after_ms: 0 }\nrepeat: true\n";
    for (limits, waits) in [("run: { model_waits: 0 }", 0), ("run: { model_waits: 1 }", 1)] {
        let world = CliWorld::new("");
        let run = run_scripts(&world, limits, &[("main", used_up)]);
        assert_eq!(stop_code(&run), "SYSTEM_ERROR{model}", "{run:?}");
        let is_wait = |kind: &EventKind| matches!(kind, EventKind::ModelChanged(ModelChanged { from: Some(from), to, .. }) if from == to);
        let records = world.records(&session_id(&run)).into_iter();
        assert_eq!(records.filter(|it| is_wait(&it.event.kind)).count(), waits, "{run:?}");
    }
}

#[test]
fn a_failing_program_is_started_as_often_as_the_definition_says() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}run: {{ program_starts: 1 }}\n");
    let run =
        TaskDirectory::with_worker(&world, &definition, "echo x >> ../starts; exit 7").run(&[]);
    assert_eq!(stop_code(&run), "SYSTEM_ERROR{worker}", "{run:?}");
    assert_eq!(std::fs::read_to_string(world.root().join("starts")).unwrap(), "x\n");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_advisor_that_does_not_answer_is_asked_as_often_as_the_definition_says() {
    let idle = "steps:\n  - text: I am done.\nrepeat: true\n";
    let advice = "steps:\n  - status: 502\n  - text: Look elsewhere.\n";
    let advisor = "advisor: { models: [{ provider: scripted, model: advisor }], budget: 1 }";
    for (limits, instruction) in
        [("", Value::from("Look elsewhere.")), ("run: { advisor_tries: 1 }", Value::Null)]
    {
        let definition = format!("{advisor}\n{limits}");
        let scripts = [("main", idle), ("advisor", advice)];
        let run = run_scripts(&CliWorld::new(""), &definition, &scripts);
        assert_eq!(events_named(&run, "advised")[0]["instruction"], instruction, "{run:?}");
    }
}
