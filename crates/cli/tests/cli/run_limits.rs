//! Tests of `jackline run` with limits of models: which limits the run waits for, which model takes
//! over and when the first model returns, and which limits end the run.

use std::fs;

use jackline_engine::EventKind;
use jackline_engine::event::{AdvisorAnswered, ModelChanged, UsageReported};
use jackline_host::clock::now;
use jackline_model::Provider;
use jackline_model::scripted::{AnswerDefect, ModelScript, ScriptStep, ScriptedModel};
use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, count_sleepers, ended_event, events_named,
    poll_until, session_id, stop_code, wait_for_output,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

/// A model script that repeats the same call forever.
const CIRCLING_SCRIPT: &str = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";

/// A model script that first reports a used-up plan, and then continues with `rest`.
fn used_up_plan_script(retry_after_ms: u64, rest: &str) -> String {
    let rest = rest.trim_start_matches("steps:\n");
    format!(
        "steps:\n  - {{ status: 429, text: usage limit reached, retry_after_ms: {retry_after_ms} }}\n{rest}"
    )
}

/// Returns the reasons of the model changes.
fn model_change_reasons(run: &CliOutput) -> Vec<String> {
    let changed = events_named(run, "changed");
    changed.iter().map(|it| it["reason"].as_str().unwrap().to_owned()).collect()
}

/// Returns the reasons of the model changes from a model to itself. Each of them is a wait.
fn wait_reasons(world: &CliWorld, id: &str) -> Vec<String> {
    let records = world.records(id).into_iter();
    let wait = |kind| match kind {
        EventKind::ModelChanged(ModelChanged { from, to, reason }) if from == Some(to.clone()) => {
            Some(reason.to_string())
        }
        _ => None,
    };
    records.filter_map(|record| wait(record.event.kind)).collect()
}

#[test]
fn the_run_waits_for_a_used_up_plan_and_reports_each_wait() {
    let world = CliWorld::new("");
    // A retry time of 0 ms is raised to a minimum.
    let task = TaskDirectory::new(
        &world,
        REPORT_COMPLETION,
        &[("main", &used_up_plan_script(0, &used_up_plan_script(0, REPORT_SCRIPT)))],
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let waits_ms: Vec<Value> =
        events_named(&run, "waiting").iter().map(|it| it["ms"].clone()).collect();
    assert_eq!(waits_ms, [1000, 2000]);
    let id = session_id(&run);
    assert_eq!(wait_reasons(&world, &id), ["plan_limit"; 2]);
    let log = fs::read_to_string(world.workspace().join(".jackline/safety_log.json")).unwrap();
    assert_eq!(log.matches("waited").count(), 2, "{log}");
    world.verify_and_replay(&id);
}

#[test]
fn a_wait_longer_than_the_remaining_time_ends_with_the_time_limit() {
    let world = CliWorld::new("");
    let hour = 3_600_000;
    let rate = format!("steps:\n  - {{ status: 429, retry_after_ms: {hour} }}\n");
    // If the provider gives no time, the run waits for a default time.
    let without_time = "steps:\n  - { status: 402 }\n".to_owned();
    for (script, ms) in
        [(rate, hour), (used_up_plan_script(hour, ""), hour), (without_time, 60_000)]
    {
        let definition = format!("{REPORT_COMPLETION}limits: {{ wall_seconds: 2 }}\n");
        let task = TaskDirectory::new(&world, &definition, &[("main", &script)]);
        let run = task.run(&[]);
        assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
        assert_eq!(events_named(&run, "waiting")[0]["ms"], ms, "{run:?}");
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn the_first_model_returns_at_its_time_if_no_other_model_is_left() {
    let world = CliWorld::new("");
    let broken = "steps:\n  - status: 401\nrepeat: true\n";
    let scripts =
        [("first", used_up_plan_script(1500, REPORT_SCRIPT)), ("second", broken.to_owned())];
    let scripts = scripts.each_ref().map(|(name, script)| (*name, script.as_str()));
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &scripts);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(model_change_reasons(&run), ["plan_limit", "return"]);
    assert_eq!(wait_reasons(&world, &session_id(&run)), ["auth"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_time_limit_of_a_run_ends_a_request_to_a_silent_model() {
    let world = CliWorld::new("");
    let silent = ModelScript::new(vec![ScriptStep::say("x").broken(AnswerDefect::Nothing)]);
    let server = ScriptedModel::start(silent, std::time::Duration::from_mins(2)).unwrap();
    let (provider, url) = (Provider::OpenAiChat, server.url());
    let model = format!("provider: {provider}, model: m, url: \"{url}/v1\", timeout_seconds: 60");
    let definition = format!("{REPORT_COMPLETION}limits: {{ wall_seconds: 1 }}\n");
    let task = TaskDirectory::with_models(&world, &definition, &[model]);
    let start_ms = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    let ms = now().boot_ms - start_ms;
    assert!((1000..20_000).contains(&ms), "{ms} ms");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_default_limit_is_a_hundred_iterations() {
    let world = CliWorld::new("");
    let done = "steps:\n  - text: Done!\nrepeat: true\n";
    let definition = format!("{REPORT_COMPLETION}completion_cap: {{ blocks: 500, same: 500 }}\n");
    let run = TaskDirectory::new(&world, &definition, &[("main", done)]).run(&[]);
    assert!(stop_code(&run).contains("100 of 100 iterations of this session are used"), "{run:?}");
    assert!(stop_code(&run).contains("jackline ack"), "{run:?}");
    world.verify_and_replay(&session_id(&run));
    let more = format!("{definition}limits: {{ iterations: 120 }}\n");
    let run = TaskDirectory::new(&world, &more, &[("main", done)]).run(&[]);
    assert!(stop_code(&run).contains("120 of 120 iterations"), "{run:?}");
}

/// A task that names a model of its own, which comes before the models of the definition.
fn task_with_own_model<'w>(
    world: &'w CliWorld,
    own: &str,
    others: &[(&str, &str)],
) -> TaskDirectory<'w> {
    let task = TaskDirectory::new(world, &format!("{REPORT_COMPLETION}loops: {{}}\n"), others);
    fs::write(task.directory.join("own.yaml"), own).unwrap();
    task.append("model: { script: own.yaml }\n");
    task
}

#[test]
fn a_model_of_the_definition_takes_over_from_a_model_of_the_task() {
    let world = CliWorld::new("");
    let run = task_with_own_model(&world, CIRCLING_SCRIPT, &[("second", REPORT_SCRIPT)]).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(model_change_reasons(&run), ["blocked"]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn after_every_model_was_used_the_run_waits_for_a_person() {
    let world = CliWorld::new("");
    let run = task_with_own_model(&world, CIRCLING_SCRIPT, &[("second", CIRCLING_SCRIPT)]).run(&[]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert_eq!(model_change_reasons(&run), ["blocked"]);
    world.verify_and_replay(&session_id(&run));
}

/// A definition whose advisor is `model`.
fn definition_with_advisor(model: &str) -> String {
    format!("{REPORT_COMPLETION}loops: {{}}\nadvisor: {{ models: [{{ {model} }}], budget: 1 }}\n")
}

#[test]
fn an_advisor_that_cannot_be_used_is_named_before_anything_runs() {
    let world = CliWorld::new("");
    for (advisor, part) in [
        ("provider: anthropic, model: m, key_env: NO_SUCH", "the variable `NO_SUCH`"),
        ("provider: anthropic, model: m", "set ANTHROPIC_API_KEY"),
        ("provider: scripted, model: nowhere", "scripts: { nowhere: FILE }"),
    ] {
        let run = TaskDirectory::new(
            &world,
            &definition_with_advisor(advisor),
            &[("main", REPORT_SCRIPT)],
        )
        .run(&[]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(part), "{run:?}");
    }
    assert!(!world.workspace().join("report.md").exists());
}

#[test]
fn an_advisor_that_does_not_answer_is_used_up_and_the_next_model_takes_over() {
    let world = CliWorld::new("");
    let unreachable = "provider: openai-chat, model: m, url: \"http://127.0.0.1:9/v1\"";
    let scripts = [("main", CIRCLING_SCRIPT), ("second", REPORT_SCRIPT)];
    let run = TaskDirectory::new(&world, &definition_with_advisor(unreachable), &scripts).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "advised")[0]["instruction"], Value::Null);
    assert_eq!(model_change_reasons(&run), ["blocked"]);
    let answers = world.records(&session_id(&run)).into_iter().filter(|record| {
        matches!(
            &record.event.kind,
            EventKind::AdvisorAnswered(AdvisorAnswered { error: Some(_), .. })
        )
    });
    assert_eq!(answers.count(), 1);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_cost_of_the_advisor_counts() {
    let world = CliWorld::new("");
    let advice = "steps:\n  - text: Look elsewhere.\n    usage: { input: 5000, output: 70 }\n";
    let scripts = [("main", CIRCLING_SCRIPT), ("advisor", advice)];
    let definition = definition_with_advisor("provider: scripted, model: advisor");
    let run = TaskDirectory::new(&world, &definition, &scripts).run(&[]);
    let records = world.records(&session_id(&run)).into_iter();
    let by_advisor = records.filter(|record| record.event.actor.as_str() == "advisor");
    let costs: Vec<_> = by_advisor
        .map(|record| match record.event.kind {
            EventKind::UsageReported(UsageReported { input, output, model, .. }) => {
                (input, output, model)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(costs, [(5000, 70, Some("scripted/advisor".to_owned()))]);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_run_is_identified_by_its_first_model() {
    let world = CliWorld::new("");
    let sleeps = |seconds: u32| {
        let line = format!("touch started; sleep {seconds}");
        let rest = REPORT_SCRIPT.trim_start_matches("steps:\n");
        format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\n{rest}")
    };
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    let task =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", busy), ("second", &sleeps(283))]);
    let mut child = task.start(&[]);
    poll_until("the command", || world.workspace().join("started").exists());
    let id = fs::read_dir(world.home().join("sessions")).unwrap().next().unwrap().unwrap();
    let id = id.file_name().into_string().unwrap();
    let args = ["identity", "approve", &id, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&args).code, Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(283) == 0);
    // The second model works now, but the identity is still that of the first.
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(events_named(&run, "started")[0]["model"], "scripted/second");
    world.verify_and_replay(&id);
}

#[test]
fn a_model_for_the_budget_limit_is_used_only_after_the_budget() {
    let world = CliWorld::new("");
    let call = |n: u32| {
        let args = json!({ "path": format!("n{n}"), "content": "x" });
        format!("  - calls: [{{ tool: write_file, args: {args} }}]\n")
    };
    // The first request fails because of overload. The model for the cost limit must not take over
    // for that.
    let first = format!("steps:\n  - status: 529\n{}", (0..9).map(call).collect::<String>());
    let task = TaskDirectory::new(
        &world,
        REPORT_COMPLETION,
        &[("main", &first), ("busy", REPORT_SCRIPT), ("cheap", REPORT_SCRIPT)],
    );
    let model = |name: &str, more: &str| {
        format!("{{ provider: scripted, model: {name}, window: 100000{more} }}")
    };
    let models = [
        model("main", ", budget: 3"),
        model("busy", ", when: [offline]"),
        model("cheap", ", when: [cost]"),
    ];
    let text =
        format!("version: 1\nname: t/run\nmodels: [{}]\n{REPORT_COMPLETION}", models.join(", "));
    fs::write(task.directory.join("jackline.yaml"), text).unwrap();
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = &events_named(&run, "changed");
    assert_eq!(changed.len(), 1, "{run:?}");
    assert_eq!(changed[0]["from"], "scripted/main");
    assert_eq!(
        (&changed[0]["to"], &changed[0]["reason"]),
        (&"scripted/cheap".into(), &"cost".into())
    );
    let requests = events_named(&run, "asking");
    let count_of = |name: &str| requests.iter().filter(|it| it["model"] == name).count();
    assert_eq!((count_of("scripted/main"), count_of("scripted/cheap")), (3, 2), "{run:?}");
    let written = (0..9).filter(|n| world.workspace().join(format!("n{n}")).exists()).count();
    assert_eq!(written, 3, "the calls within the budget must be done: {run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_model_for_offline_use_takes_over_after_the_first_timeout() {
    let world = CliWorld::new("");
    let models = |when: &str| {
        let second = format!("provider: scripted, model: second, window: 100000, when: [{when}]");
        let first = "provider: scripted, model: main, window: 100000".to_owned();
        [first, second].map(|model| format!("{{ {model} }}")).join(", ")
    };
    for (when, first, reason) in [
        ("offline", "steps:\n  - broken: nothing\nrepeat: true\n", "timeout"),
        ("offline", "steps:\n  - status: 502\nrepeat: true\n", "network"),
    ] {
        let task = TaskDirectory::new(
            &world,
            REPORT_COMPLETION,
            &[("main", first), ("second", REPORT_SCRIPT)],
        );
        let file = task.directory.join("jackline.yaml");
        let text =
            format!("version: 1\nname: t/run\nmodels: [{}]\n{REPORT_COMPLETION}", models(when));
        fs::write(file, text).unwrap();
        let run = task.run(&[]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
        assert_eq!(model_change_reasons(&run), [reason]);
        assert_eq!(
            events_named(&run, "waiting"),
            Vec::<Value>::new(),
            "no model may be asked twice"
        );
        fs::remove_file(world.workspace().join("report.md")).unwrap();
        world.verify_and_replay(&session_id(&run));
    }
}

/// Returns the conversation file, which starts with the message to the model that took over.
fn conversation_text(world: &CliWorld, run: &CliOutput) -> String {
    let file = world.session_directory(&session_id(run)).join("conversation.jsonl");
    fs::read_to_string(file).unwrap()
}

#[test]
fn a_model_that_takes_over_after_no_progress_is_asked_for_another_plan() {
    let idle = "  - text: I am done.\n".repeat(6);
    let stop = |n: u32| {
        let args = json!({ "path": format!("n{n}"), "content": "x" });
        let call = json!([{ "tool": "write_file", "args": args }]);
        format!("  - calls: {call}\n  - text: Done.\n")
    };
    let stops = (0..6).map(stop).collect::<Vec<_>>().concat();
    let cap = "completion_cap: { blocks: 99, same: 99 }\n";
    for (script, reason) in [(idle, "stop_events"), (stops, "verification")] {
        let world = CliWorld::new("");
        let script = format!("steps:\n{script}");
        let definition = format!("{REPORT_COMPLETION}{cap}");
        let run = TaskDirectory::new(
            &world,
            &definition,
            &[("main", &script), ("second", REPORT_SCRIPT)],
        )
        .run(&[]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
        assert_eq!(model_change_reasons(&run), [reason], "{run:?}");
        let conversation = conversation_text(&world, &run);
        assert!(conversation.contains(&format!("made no progress ({reason})")), "{conversation}");
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn a_model_that_takes_over_a_full_conversation_is_asked_for_a_plan() {
    let world = CliWorld::new("");
    let long = "steps:\n  - { status: 400, text: prompt is too long }\nrepeat: true\n";
    let run =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", long), ("second", REPORT_SCRIPT)])
            .run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(model_change_reasons(&run), ["context"]);
    assert!(conversation_text(&world, &run).contains("made no progress (context)"));
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_person_is_notified_of_a_run_that_waits() {
    let world = CliWorld::new("");
    let notify =
        "notify: { command: 'echo \"$JACKLINE_EVENT\" >> ../notified', on: [pause, done] }\n";
    let definition = format!("{REPORT_COMPLETION}loops: {{}}\n{notify}");
    let run = TaskDirectory::new(&world, &definition, &[("main", CIRCLING_SCRIPT)]).run(&[]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let file = world.root().join("notified");
    poll_until("the notification", || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("pause"))
    });
}

#[test]
fn the_stop_command_ends_the_work_of_a_run_within_a_second() {
    let world = CliWorld::new("");
    let command = "touch started; sleep 282; touch late";
    let script =
        format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{command}' }} }}]\n");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
    let child = task.start(&[]);
    poll_until("the command", || world.workspace().join("started").exists());
    let stopped = world.jackline(&["stop"]);
    let stopped_ms = now().boot_ms;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    poll_until("the end of the command", || count_sleepers(282) == 0);
    let ms = now().boot_ms - stopped_ms;
    assert!(ms < STOP_MS, "{ms} ms");
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(!world.workspace().join("late").exists());
    world.verify_and_replay(&session_id(&run));
}

/// A stop must take effect within one second, and a machine that is busy with other tests may need
/// half a second more.
const STOP_MS: u64 = 1000 + 500;

#[test]
fn commands_do_not_see_the_variable_of_a_key() {
    let world = CliWorld::new("");
    let steps = vec![
        ScriptStep::call("shell", json!({ "command": "env > variables" })),
        ScriptStep::call("write_file", json!({ "path": "report.md", "content": "x" })),
        ScriptStep::say("done"),
    ];
    let minutes = std::time::Duration::from_mins(2);
    let server = ScriptedModel::start(ModelScript::new(steps), minutes).unwrap();
    let url = server.url();
    let model = format!(
        "provider: openai-chat, model: m, url: \"{url}/v1\", timeout_seconds: 20, key_env: MISTRAL"
    );
    let task = TaskDirectory::with_models(&world, REPORT_COMPLETION, &[model]);
    let mut command = task.run_command(&["--json", "--no-wait"]);
    let run = run_with_input(command.arg(&task.directory).env("MISTRAL", "sk-hidden-123"), b"");
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let variables = fs::read_to_string(world.workspace().join("variables")).unwrap();
    assert!(variables.contains("PATH=") && !variables.contains("MISTRAL"), "{variables}");
}

/// A task that plays a script unless the environment names a model.
fn task_with_script(world: &CliWorld) -> TaskDirectory<'_> {
    let task = TaskDirectory::with_models(world, REPORT_COMPLETION, &[]);
    fs::write(task.directory.join("script.yaml"), REPORT_SCRIPT).unwrap();
    task.append("model: { script: script.yaml }\n");
    task
}

#[test]
fn a_model_in_the_environment_replaces_a_script() {
    let world = CliWorld::new("");
    let task = task_with_script(&world);
    let run_with = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = task.run_command(&["--json", "--no-wait"]);
        let variables = variables.iter().copied();
        run_with_input(command.args(args).envs(variables), b"")
    };
    let directory = task.directory.to_str().unwrap();
    for (value, part) in
        [("anthropc/claude", "`anthropc`"), ("some-model", "set it to `PROVIDER/some-model`")]
    {
        let run = run_with(&[("JACKLINE_MODEL", value)], &[directory]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("JACKLINE_MODEL") && run.stderr.contains(part), "{run:?}");
    }
    // A run that was left can be resumed only with the same model.
    let circles = ModelScript::new(vec![ScriptStep::call("list_dir", json!({}))]).repeating();
    let minutes = std::time::Duration::from_mins(2);
    let server = ScriptedModel::start(circles, minutes).unwrap();
    fs::write(
        task.directory.join("jackline.yaml"),
        format!("version: 1\nname: t/run\nloops: {{}}\n{REPORT_COMPLETION}"),
    )
    .unwrap();
    let url = format!("{}/v1", server.url());
    let variables = [
        ("JACKLINE_MODEL", "real"),
        ("JACKLINE_MODEL_URL", url.as_str()),
        ("JACKLINE_MODEL_KEY", "sk-hidden-123"),
    ];
    let run = run_with(&variables, &[directory]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert_eq!(events_named(&run, "asking")[0]["model"], "openai-chat/real");
    assert!(server.count() > 0);
    let id = session_id(&run);
    assert_eq!(world.jackline(&["clear", &id]).code, Some(0));
    let run = run_with(&[], &["--resume", &id]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("`real` can't be used: it started this run"), "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
}

#[test]
fn the_agent_has_the_role_that_the_person_or_the_task_names() {
    let world = CliWorld::new("");
    let definition = format!("{REPORT_COMPLETION}identity: {{ roles: [developer, writer] }}\n");
    let task = TaskDirectory::new(&world, &definition, &[("main", REPORT_SCRIPT)]);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "the default role is `developer`: {run:?}");
    fs::remove_file(world.workspace().join("report.md")).unwrap();
    let run = task.run(&["--role", "auditor"]);
    assert!(!world.workspace().join("report.md").exists(), "{run:?}");
    let called = events_named(&run, "called");
    assert!(called[0]["why"].as_str().unwrap().contains("the role `auditor`"), "{called:?}");
    task.append("role: writer\n");
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(ended_event(&run)["left"], Value::Null);
}
