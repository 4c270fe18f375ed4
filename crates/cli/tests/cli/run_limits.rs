//! `jackline run` where models have limits of their own: what is waited out, who takes over and
//! who comes back, and what ends.

use std::fs;

use jackline_engine::EventKind;
use jackline_engine::event::{AdvisorAnswered, ModelChanged, UsageReported};
use jackline_host::clock::now;
use jackline_model::Provider;
use jackline_model::scripted::{Broken, Script, ScriptedModel, Step};
use serde_json::{Value, json};

use crate::run_support::{
    REPORT, Task, WORKS, code, end_of, ended, session, sleepers, told, until,
};
use crate::support::{Run, World, feed};

/// Goes in circles for ever.
const CIRCLES: &str = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";

/// What a model says whose plan is used up, and the rest of its script.
fn used_up(retry_after_ms: u64, rest: &str) -> String {
    let rest = rest.trim_start_matches("steps:\n");
    format!(
        "steps:\n  - {{ status: 429, text: usage limit reached, retry_after_ms: {retry_after_ms} }}\n{rest}"
    )
}

/// The reasons for which others took over.
fn reasons(run: &Run) -> Vec<String> {
    let changed = told(run, "changed");
    changed.iter().map(|it| it["reason"].as_str().unwrap().to_owned()).collect()
}

/// The changes from a model to itself, which are waits.
fn waits(world: &World, id: &str) -> Vec<String> {
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
fn a_plan_that_is_used_up_is_waited_for_where_everybody_can_see_it() {
    let world = World::new("");
    // One that may be asked at once is not.
    let task = Task::new(&world, REPORT, &[("main", &used_up(0, &used_up(0, WORKS)))]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let told: Vec<Value> = told(&run, "waiting").iter().map(|it| it["ms"].clone()).collect();
    assert_eq!(told, [1000, 2000]);
    let id = session(&run);
    assert_eq!(waits(&world, &id), ["plan_limit"; 2]);
    let log = fs::read_to_string(world.work().join(".jackline/safety_log.json")).unwrap();
    assert_eq!(log.matches("waited").count(), 2, "{log}");
    world.prove(&id);
}

#[test]
fn a_wait_that_no_time_is_left_for_ends_with_the_time() {
    let world = World::new("");
    let hour = 3_600_000;
    let rate = format!("steps:\n  - {{ status: 429, retry_after_ms: {hour} }}\n");
    // A plan of which nobody knows when it is there again is waited for, too.
    let unknown = "steps:\n  - { status: 402 }\n".to_owned();
    for (script, ms) in [(rate, hour), (used_up(hour, ""), hour), (unknown, 60_000)] {
        let definition = format!("{REPORT}limits: {{ wall_seconds: 2 }}\n");
        let task = Task::new(&world, &definition, &[("main", &script)]);
        let run = task.run(&[]);
        assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
        assert_eq!(told(&run, "waiting")[0]["ms"], ms, "{run:?}");
        world.prove(&session(&run));
    }
}

#[test]
fn the_first_comes_back_when_it_said_it_would_where_nobody_else_is_left() {
    let world = World::new("");
    let broken = "steps:\n  - status: 401\nrepeat: true\n";
    let scripts = [("first", used_up(1500, WORKS)), ("second", broken.to_owned())];
    let scripts = scripts.each_ref().map(|(name, script)| (*name, script.as_str()));
    let task = Task::new(&world, REPORT, &scripts);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(reasons(&run), ["plan_limit", "return"]);
    assert_eq!(waits(&world, &session(&run)), ["auth"]);
    world.prove(&session(&run));
}

#[test]
fn the_time_of_a_run_is_up_while_a_model_is_silent() {
    let world = World::new("");
    let silent = Script::new(vec![Step::say("x").broken(Broken::Nothing)]);
    let server = ScriptedModel::start(silent, std::time::Duration::from_mins(2)).unwrap();
    let (provider, url) = (Provider::OpenAiChat, server.url());
    let model = format!("provider: {provider}, model: m, url: \"{url}/v1\", timeout_seconds: 60");
    let definition = format!("{REPORT}limits: {{ wall_seconds: 1 }}\n");
    let task = Task::of(&world, &definition, &[model]);
    let began = now().boot_ms;
    let run = task.run(&[]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    let ms = now().boot_ms - began;
    assert!((1000..20_000).contains(&ms), "{ms} ms");
    world.prove(&session(&run));
}

#[test]
fn a_run_has_a_hundred_iterations_unless_its_definition_says_otherwise() {
    let world = World::new("");
    let done = "steps:\n  - text: Done!\nrepeat: true\n";
    let definition = format!("{REPORT}completion_cap: {{ blocks: 500, same: 500 }}\n");
    let run = Task::new(&world, &definition, &[("main", done)]).run(&[]);
    assert!(code(&run).contains("100 of 100 iterations of this session are used"), "{run:?}");
    assert!(code(&run).contains("jackline ack"), "{run:?}");
    world.prove(&session(&run));
    let more = format!("{definition}limits: {{ iterations: 120 }}\n");
    let run = Task::new(&world, &more, &[("main", done)]).run(&[]);
    assert!(code(&run).contains("120 of 120 iterations"), "{run:?}");
}

/// A task with a model of its own before those of the definition.
fn with_own<'w>(world: &'w World, own: &str, others: &[(&str, &str)]) -> Task<'w> {
    let task = Task::new(world, &format!("{REPORT}loops: {{}}\n"), others);
    fs::write(task.directory.join("own.yaml"), own).unwrap();
    task.add("model: { script: own.yaml }\n");
    task
}

#[test]
fn one_model_of_the_definition_goes_on_for_one_that_only_the_task_names() {
    let world = World::new("");
    let run = with_own(&world, CIRCLES, &[("second", WORKS)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(reasons(&run), ["blocked"]);
    world.prove(&session(&run));
}

#[test]
fn where_every_model_had_its_turn_a_person_is_waited_for() {
    let world = World::new("");
    let run = with_own(&world, CIRCLES, &[("second", CIRCLES)]).run(&[]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert_eq!(reasons(&run), ["blocked"]);
    world.prove(&session(&run));
}

/// A definition with an advisor that is `model`.
fn advised(model: &str) -> String {
    format!("{REPORT}loops: {{}}\nadvisor: {{ models: [{{ {model} }}], budget: 1 }}\n")
}

#[test]
fn an_advisor_that_can_not_be_asked_is_named_before_anything_is_done() {
    let world = World::new("");
    for (advisor, part) in [
        ("provider: anthropic, model: m, key_env: NO_SUCH", "the variable `NO_SUCH`"),
        ("provider: anthropic, model: m", "set ANTHROPIC_API_KEY"),
        ("provider: scripted, model: nowhere", "scripts: { nowhere: FILE }"),
    ] {
        let run = Task::new(&world, &advised(advisor), &[("main", WORKS)]).run(&[]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(part), "{run:?}");
    }
    assert!(!world.work().join("report.md").exists());
}

#[test]
fn an_advisor_that_does_not_answer_has_its_turn_and_the_next_model_goes_on() {
    let world = World::new("");
    let nobody = "provider: openai-chat, model: m, url: \"http://127.0.0.1:9/v1\"";
    let scripts = [("main", CIRCLES), ("second", WORKS)];
    let run = Task::new(&world, &advised(nobody), &scripts).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "advised")[0]["instruction"], Value::Null);
    assert_eq!(reasons(&run), ["blocked"]);
    let answers = world.records(&session(&run)).into_iter().filter(|record| {
        matches!(
            &record.event.kind,
            EventKind::AdvisorAnswered(AdvisorAnswered { error: Some(_), .. })
        )
    });
    assert_eq!(answers.count(), 1);
    world.prove(&session(&run));
}

#[test]
fn what_an_advisor_costs_counts() {
    let world = World::new("");
    let advice = "steps:\n  - text: Look elsewhere.\n    usage: { input: 5000, output: 70 }\n";
    let scripts = [("main", CIRCLES), ("advisor", advice)];
    let definition = advised("provider: scripted, model: advisor");
    let run = Task::new(&world, &definition, &scripts).run(&[]);
    let records = world.records(&session(&run)).into_iter();
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
    world.prove(&session(&run));
}

#[test]
fn a_run_is_known_by_its_first_model_whoever_works() {
    let world = World::new("");
    let sleeps = |seconds: u32| {
        let line = format!("touch began; sleep {seconds}");
        let rest = WORKS.trim_start_matches("steps:\n");
        format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\n{rest}")
    };
    let busy = "steps:\n  - status: 529\nrepeat: true\n";
    let task = Task::new(&world, REPORT, &[("main", busy), ("second", &sleeps(283))]);
    let mut child = task.start(&[]);
    until("the command", || world.work().join("began").exists());
    let id = fs::read_dir(world.home().join("sessions")).unwrap().next().unwrap().unwrap();
    let id = id.file_name().into_string().unwrap();
    let words = ["identity", "approve", &id, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&words).code, Some(0));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(283) == 0);
    // The second model works, and is nobody else for that.
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(told(&run, "started")[0]["model"], "scripted/second");
    world.prove(&id);
}

#[test]
fn an_engine_for_when_a_budget_is_used_up_works_then_and_not_before() {
    let world = World::new("");
    let call = |n: u32| {
        let args = json!({ "path": format!("n{n}"), "content": "x" });
        format!("  - calls: [{{ tool: write_file, args: {args} }}]\n")
    };
    // It is refused a question at first, which is nothing for whoever is there for the cost.
    let first = format!("steps:\n  - status: 529\n{}", (0..9).map(call).collect::<String>());
    let task = Task::new(&world, REPORT, &[("main", &first), ("busy", WORKS), ("cheap", WORKS)]);
    let model = |name: &str, more: &str| {
        format!("{{ provider: scripted, model: {name}, window: 100000{more} }}")
    };
    let models = [
        model("main", ", budget: 3"),
        model("busy", ", when: [offline]"),
        model("cheap", ", when: [cost]"),
    ];
    let text = format!("version: 1\nname: t/run\nmodels: [{}]\n{REPORT}", models.join(", "));
    fs::write(task.directory.join("jackline.yaml"), text).unwrap();
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let changed = &told(&run, "changed");
    assert_eq!(changed.len(), 1, "{run:?}");
    assert_eq!(changed[0]["from"], "scripted/main");
    assert_eq!(
        (&changed[0]["to"], &changed[0]["reason"]),
        (&"scripted/cheap".into(), &"cost".into())
    );
    let asked = told(&run, "asking");
    let by = |name: &str| asked.iter().filter(|it| it["model"] == name).count();
    assert_eq!((by("scripted/main"), by("scripted/cheap")), (3, 2), "{run:?}");
    let written = (0..9).filter(|n| world.work().join(format!("n{n}")).exists()).count();
    assert_eq!(written, 3, "what it was asked for within its budget is done: {run:?}");
    world.prove(&session(&run));
}

#[test]
fn an_engine_for_when_nobody_can_be_reached_answers_after_the_first_silence() {
    let world = World::new("");
    let models = |when: &str| {
        let second = format!("provider: scripted, model: second, window: 100000, when: [{when}]");
        let first = "provider: scripted, model: main, window: 100000".to_owned();
        [first, second].map(|model| format!("{{ {model} }}")).join(", ")
    };
    for (when, first, reason) in [
        ("offline", "steps:\n  - broken: nothing\nrepeat: true\n", "timeout"),
        ("offline", "steps:\n  - status: 502\nrepeat: true\n", "network"),
    ] {
        let task = Task::new(&world, REPORT, &[("main", first), ("second", WORKS)]);
        let file = task.directory.join("jackline.yaml");
        let text = format!("version: 1\nname: t/run\nmodels: [{}]\n{REPORT}", models(when));
        fs::write(file, text).unwrap();
        let run = task.run(&[]);
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
        assert_eq!(reasons(&run), [reason]);
        assert_eq!(told(&run, "waiting"), Vec::<Value>::new(), "nobody was asked twice");
        fs::remove_file(world.work().join("report.md")).unwrap();
        world.prove(&session(&run));
    }
}

/// The message with which a model begins that took over.
fn told_last(world: &World, run: &Run) -> String {
    let file = world.directory(&session(run)).join("conversation.jsonl");
    fs::read_to_string(file).unwrap()
}

#[test]
fn who_takes_over_because_it_got_nowhere_is_asked_for_another_plan() {
    let idle = "  - text: I am done.\n".repeat(6);
    let stop = |n: u32| {
        let args = json!({ "path": format!("n{n}"), "content": "x" });
        let call = json!([{ "tool": "write_file", "args": args }]);
        format!("  - calls: {call}\n  - text: Done.\n")
    };
    let stops = (0..6).map(stop).collect::<Vec<_>>().concat();
    let cap = "completion_cap: { blocks: 99, same: 99 }\n";
    for (script, reason) in [(idle, "stop_events"), (stops, "verification")] {
        let world = World::new("");
        let script = format!("steps:\n{script}");
        let definition = format!("{REPORT}{cap}");
        let run = Task::new(&world, &definition, &[("main", &script), ("second", WORKS)]).run(&[]);
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
        assert_eq!(reasons(&run), [reason], "{run:?}");
        let said = told_last(&world, &run);
        assert!(said.contains(&format!("did not get further ({reason})")), "{said}");
        world.prove(&session(&run));
    }
}

#[test]
fn a_conversation_that_does_not_fit_is_handed_over_with_the_wish_for_a_plan() {
    let world = World::new("");
    let long = "steps:\n  - { status: 400, text: prompt is too long }\nrepeat: true\n";
    let run = Task::new(&world, REPORT, &[("main", long), ("second", WORKS)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(reasons(&run), ["context"]);
    assert!(told_last(&world, &run).contains("did not get further (context)"));
    world.prove(&session(&run));
}

#[test]
fn a_person_is_told_of_a_run_that_waits() {
    let world = World::new("");
    let notify = "notify: { command: 'echo \"$JACKLINE_EVENT\" >> ../told', on: [pause, done] }\n";
    let definition = format!("{REPORT}loops: {{}}\n{notify}");
    let run = Task::new(&world, &definition, &[("main", CIRCLES)]).run(&[]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let told = world.root().join("told");
    until("the notice", || fs::read_to_string(&told).is_ok_and(|told| told.contains("pause")));
}

#[test]
fn the_command_that_stops_a_run_ends_what_it_does_within_a_second() {
    let world = World::new("");
    let line = "touch began; sleep 282; touch late";
    let script = format!("steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\n");
    let task = Task::new(&world, REPORT, &[("main", &script)]);
    let child = task.start(&[]);
    until("the command", || world.work().join("began").exists());
    let stopped = world.jackline(&["stop"]);
    let said = now().boot_ms;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    until("the end of the command", || sleepers(282) == 0);
    let ms = now().boot_ms - said;
    assert!(ms < STOP_MS, "{ms} ms");
    let run = end_of(child);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(!world.work().join("late").exists());
    world.prove(&session(&run));
}

/// The second within which a stop has its effect, and what a machine that is busy with other
/// tests may take for it.
const STOP_MS: u64 = 1000 + 500;

#[test]
fn a_key_is_nothing_for_commands_whatever_its_variable_is_called() {
    let world = World::new("");
    let steps = vec![
        Step::call("shell", json!({ "command": "env > seen" })),
        Step::call("write_file", json!({ "path": "report.md", "content": "x" })),
        Step::say("done"),
    ];
    let minutes = std::time::Duration::from_mins(2);
    let server = ScriptedModel::start(Script::new(steps), minutes).unwrap();
    let url = server.url();
    let model = format!(
        "provider: openai-chat, model: m, url: \"{url}/v1\", timeout_seconds: 20, key_env: MISTRAL"
    );
    let task = Task::of(&world, REPORT, &[model]);
    let mut command = task.command(&["--json", "--no-wait"]);
    let run = feed(command.arg(&task.directory).env("MISTRAL", "sk-hidden-123"), b"");
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let seen = fs::read_to_string(world.work().join("seen")).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains("MISTRAL"), "{seen}");
}

/// A task that plays a script unless the environment has a model.
fn plays(world: &World) -> Task<'_> {
    let task = Task::of(world, REPORT, &[]);
    fs::write(task.directory.join("script.yaml"), WORKS).unwrap();
    task.add("model: { script: script.yaml }\n");
    task
}

#[test]
fn a_model_out_of_the_environment_takes_the_place_of_a_script() {
    let world = World::new("");
    let task = plays(&world);
    let with = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = task.command(&["--json", "--no-wait"]);
        let variables = variables.iter().copied();
        feed(command.args(args).envs(variables), b"")
    };
    let directory = task.directory.to_str().unwrap();
    for (value, part) in
        [("anthropc/claude", "`anthropc`"), ("some-model", "say `PROVIDER/some-model`")]
    {
        let run = with(&[("JACKLINE_MODEL", value)], &[directory]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("JACKLINE_MODEL") && run.stderr.contains(part), "{run:?}");
    }
    // One that is left, and goes on only with the same model.
    let circles = Script::new(vec![Step::call("list_dir", json!({}))]).repeating();
    let minutes = std::time::Duration::from_mins(2);
    let server = ScriptedModel::start(circles, minutes).unwrap();
    fs::write(
        task.directory.join("jackline.yaml"),
        format!("version: 1\nname: t/run\nloops: {{}}\n{REPORT}"),
    )
    .unwrap();
    let url = format!("{}/v1", server.url());
    let variables = [
        ("JACKLINE_MODEL", "real"),
        ("JACKLINE_MODEL_URL", url.as_str()),
        ("JACKLINE_MODEL_KEY", "sk-hidden-123"),
    ];
    let run = with(&variables, &[directory]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    assert_eq!(told(&run, "asking")[0]["model"], "openai-chat/real");
    assert!(server.count() > 0);
    let id = session(&run);
    assert_eq!(world.jackline(&["clear", &id]).code, Some(0));
    let run = with(&[], &["--resume", &id]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("`real` can't be asked: it has begun this run"), "{run:?}");
    assert!(!world.work().join("report.md").exists());
}

#[test]
fn an_agent_acts_in_the_role_that_a_person_or_its_task_names() {
    let world = World::new("");
    let definition = format!("{REPORT}identity: {{ roles: [developer, writer] }}\n");
    let task = Task::new(&world, &definition, &[("main", WORKS)]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "a developer: {run:?}");
    fs::remove_file(world.work().join("report.md")).unwrap();
    let run = task.run(&["--role", "auditor"]);
    assert!(!world.work().join("report.md").exists(), "{run:?}");
    let called = told(&run, "called");
    assert!(called[0]["why"].as_str().unwrap().contains("the role `auditor`"), "{called:?}");
    task.add("role: writer\n");
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(ended(&run)["left"], Value::Null);
}
