//! Tests of the fallback chain of `jackline run`: who is asked after each trigger, in which order,
//! and how the run ends. All models are scripts.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, ended_event, events_named, session_id,
    stop_code,
};
use crate::support::{CliOutput, CliWorld};

/// What makes a model stuck or unusable, for each model in the same way.
struct Trigger {
    /// The part of the definition that the trigger needs.
    definition: &'static str,
    /// The script of each model.
    script: String,
    /// Whether an advisor can help.
    takes_advice: bool,
    /// Whether the next model can help.
    takes_next_model: bool,
    /// The reason of each change of the model.
    reason: &'static str,
    /// How the run ends when no help is left: the beginning of its stop code.
    end: &'static str,
    /// The report for the person, if one must act.
    report: Option<&'static str>,
}

const WAITS_FOR_PERSON: &str = "left: it waits for a person";

const BLOCKER: Option<&str> = Some("BLOCKER_REPORT.md");

impl Trigger {
    /// A trigger that an advisor, the next model or a person resolves, in this order.
    fn stuck(reason: &'static str, definition: &'static str, script: String) -> Self {
        Self {
            definition,
            script,
            takes_advice: true,
            takes_next_model: true,
            reason,
            end: WAITS_FOR_PERSON,
            report: BLOCKER,
        }
    }

    /// A trigger that only the next model resolves.
    fn for_next_model(reason: &'static str, definition: &'static str, script: String) -> Self {
        Self {
            takes_advice: false,
            end: "SYSTEM_ERROR{model}",
            report: None,
            ..Self::stuck(reason, definition, script)
        }
    }

    /// A trigger that only a person resolves.
    fn for_person(definition: &'static str, script: String, report: Option<&'static str>) -> Self {
        Self {
            takes_advice: false,
            takes_next_model: false,
            report,
            ..Self::stuck("", definition, script)
        }
    }

    /// Plays the trigger with and without an advisor, and with one, two and three models.
    fn check(&self) {
        for (models, has_advisor) in
            [(1, false), (1, true), (2, false), (2, true), (3, false), (3, true)]
        {
            let world = CliWorld::new("");
            let run = self.run(&world, models, has_advisor);
            let context = format!("{models} models, advisor: {has_advisor}: {run:?}");
            assert_eq!(asked(&run), self.expected_order(models, has_advisor), "{context}");
            assert!(stop_code(&run).starts_with(self.end), "{context}");
            assert_eq!(run.code, Some(1), "{context}");
            for change in events_named(&run, "changed") {
                assert_eq!(change["reason"], self.reason, "{context}");
            }
            for report in ["BLOCKER_REPORT.md", "CHECKPOINT.md"] {
                let exists = world.workspace().join(".jackline").join(report).is_file();
                assert_eq!(exists, self.report == Some(report), "{report}: {context}");
            }
            world.verify_and_replay(&session_id(&run));
        }
    }

    fn run(&self, world: &CliWorld, models: usize, has_advisor: bool) -> CliOutput {
        let advisor = "advisor: { models: [{ provider: scripted, model: advisor }], budget: 1 }\n";
        let advisor = if has_advisor { advisor } else { "" };
        let advice = "steps:\n  - text: Look elsewhere.\nrepeat: true\n";
        let mut scripts: Vec<(&str, &str)> =
            MODELS[..models].iter().map(|name| (*name, self.script.as_str())).collect();
        scripts.push(("advisor", advice));
        TaskDirectory::new(world, &format!("{}{advisor}", self.definition), &scripts).run(&[])
    }

    /// The advisor is asked once, because its budget is one question.
    fn expected_order(&self, models: usize, has_advisor: bool) -> Vec<String> {
        let models = if self.takes_next_model { models } else { 1 };
        let mut order: Vec<String> =
            MODELS[..models].iter().map(|name| format!("scripted/{name}")).collect();
        if has_advisor && self.takes_advice {
            order.splice(1..1, ["advisor".to_owned(), order[0].clone()]);
        }
        order
    }
}

const MODELS: [&str; 3] = ["first", "second", "third"];

/// Who was asked, without repetitions.
fn asked(run: &CliOutput) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    for line in run.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        order.extend(match event["event"].as_str().unwrap() {
            "asking" => event["model"].as_str().map(ToOwned::to_owned),
            "advised" => Some("advisor".to_owned()),
            _ => None,
        });
    }
    order.dedup();
    order
}

/// A script that does the same again and again.
fn repeated(steps: &str) -> String {
    format!("steps:\n{steps}repeat: true\n")
}

/// A script that does something before each stop.
fn working(call: impl Fn(u32) -> Value) -> String {
    (0..40).fold("steps:\n".to_owned(), |mut text, n| {
        let _ = write!(text, "  - calls: {}\n  - text: Done.\n", json!([call(n)]));
        text
    })
}

fn write_call(n: u32) -> Value {
    json!({ "tool": "write_file", "args": { "path": format!("n{n}"), "content": "x" } })
}

fn read_call(n: u32) -> Value {
    json!({ "tool": "read_file", "args": { "path": format!("n{n}") } })
}

#[test]
fn failed_iterations_ask_the_advisor_then_the_next_model_then_a_person() {
    let definition = "completion: { files: [report.md] }\n\
                      progress: { steps_per_iteration: 1 }\n";
    let steps = (0..40).fold("steps:\n".to_owned(), |mut text, n| {
        let _ = writeln!(text, "  - calls: {}", json!([read_call(n)]));
        text
    });
    Trigger::stuck("blocked", definition, steps).check();
}

#[test]
fn stops_without_work_ask_the_advisor_then_the_next_model_then_a_person() {
    let script = repeated("  - text: I am done.\n");
    Trigger::stuck("stop_events", REPORT_COMPLETION, script.clone()).check();
    // The limit on failed iterations is as small as the one on stops.
    for limits in [
        "completion: { files: [report.md] }\nprogress: {}\n",
        "extends: [autonomous]\ncompletion: { files: [report.md] }\n",
    ] {
        let run = |models| {
            let world = CliWorld::new("");
            Trigger::stuck("stop_events", limits, script.clone()).run(&world, models, false)
        };
        assert_eq!(asked(&run(2)), ["scripted/first", "scripted/second"]);
        assert!(stop_code(&run(1)).contains("3 iterations in a row failed"));
    }
}

#[test]
fn failed_verifications_ask_the_advisor_then_the_next_model_then_a_person() {
    Trigger::stuck("verification", REPORT_COMPLETION, working(write_call)).check();
    let small_cap = "completion: { files: [report.md] }\ncompletion_cap: { blocks: 2, same: 2 }\n";
    Trigger::stuck("verification", small_cap, working(write_call)).check();
    // The work changes nothing, so each block has the same text.
    Trigger::stuck("verification", REPORT_COMPLETION, working(read_call)).check();
}

#[test]
fn each_model_has_its_own_count_of_failed_verifications() {
    let world = CliWorld::new("");
    let trigger = Trigger::stuck("verification", REPORT_COMPLETION, working(write_call));
    let run = trigger.run(&world, 3, false);
    let mut stops = vec![0];
    for line in run.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str().unwrap() {
            "said" => *stops.last_mut().unwrap() += 1,
            "changed" => stops.push(0),
            _ => {}
        }
    }
    // The last model has the whole cap of the check, because no other model is left.
    assert_eq!(stops, [4, 4, 6], "{run:?}");
}

#[test]
fn a_loop_asks_the_advisor_then_the_next_model_then_a_person() {
    let definition = "completion: { files: [report.md] }\nloops: {}\n";
    let script = repeated("  - calls: [{ tool: list_dir, args: {} }]\n");
    Trigger::stuck("blocked", definition, script).check();
}

#[test]
fn programs_that_all_fail_ask_the_advisor_then_the_next_model_then_a_person() {
    for (models, has_advisor) in [(1, false), (2, false), (2, true)] {
        let world = CliWorld::new("");
        let advisor = "advisor: { models: [{ provider: scripted, model: advisor }], budget: 1 }\n";
        let definition = if has_advisor { advisor } else { "" };
        let programs: &[&str] = &["1 / 0"; 99];
        let mut scripts: Vec<(&str, &[&str])> =
            MODELS[..models].iter().map(|name| (*name, programs)).collect();
        scripts.push(("advisor", &["Look elsewhere."]));
        let run = TaskDirectory::with_programs(&world, definition, &scripts).run(&[]);
        let trigger = Trigger::stuck("blocked", "", String::new());
        assert_eq!(asked(&run), trigger.expected_order(models, has_advisor), "{run:?}");
        assert!(stop_code(&run).contains("no program succeeded in 4 iterations"), "{run:?}");
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn a_full_context_reaches_the_next_model() {
    let script =
        repeated("  - { text: Hm., usage: { input: 81000, output: 10 } }\n").replace("Hm.", "more");
    let definition = "completion: { files: [report.md] }\ncontext: {}\n\
                      completion_cap: { blocks: 99, same: 99 }\n";
    let calls =
        "  - calls: [{ tool: list_dir, args: {} }]\n    usage: { input: 81000, output: 10 }\n";
    for script in [repeated(calls), script] {
        let trigger = Trigger::for_next_model("context", definition, script);
        Trigger { end: "SYSTEM_ERROR{compaction}", ..trigger }.check();
    }
    // The provider refuses the conversation, and no guard measures it.
    let refused = repeated("  - { status: 400, text: prompt is too long }\n");
    Trigger::for_next_model("context", REPORT_COMPLETION, refused).check();
}

#[test]
fn a_model_that_cannot_be_used_is_replaced_by_the_next() {
    let script = repeated("  - status: 401\n");
    Trigger::for_next_model("auth", REPORT_COMPLETION, script).check();
}

#[test]
fn a_model_that_does_not_answer_now_is_replaced_by_the_next() {
    for (step, reason) in [
        ("status: 529", "overload"),
        ("status: 429", "rate_limit"),
        ("status: 502", "network"),
        ("broken: nothing", "timeout"),
        ("broken: html", "bad_answer"),
    ] {
        let world = CliWorld::new("");
        let busy = repeated(&format!("  - {step}\n"));
        let scripts =
            [("first", busy.as_str()), ("second", busy.as_str()), ("third", REPORT_SCRIPT)];
        let run = TaskDirectory::new(&world, REPORT_COMPLETION, &scripts).run(&[]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{step}: {run:?}");
        assert_eq!(asked(&run), ["scripted/first", "scripted/second", "scripted/third"], "{step}");
        let changes = events_named(&run, "changed");
        assert!(changes.iter().all(|change| change["reason"] == reason), "{step}: {run:?}");
        world.verify_and_replay(&session_id(&run));
    }
}

#[test]
fn a_model_whose_budget_is_used_up_is_replaced_by_the_next() {
    let world = CliWorld::new("");
    let script = working(write_call);
    let scripts = MODELS.map(|name| (name, script.as_str()));
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &scripts);
    let file = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("window: 100000", "window: 100000, budget: 2")).unwrap();
    let run = task.run(&[]);
    assert_eq!(asked(&run), ["scripted/first", "scripted/second", "scripted/third"], "{run:?}");
    assert_eq!(stop_code(&run), "SYSTEM_ERROR{model}", "{run:?}");
    assert!(events_named(&run, "changed").iter().all(|change| change["reason"] == "cost"));
}

#[test]
fn only_a_person_resolves_a_checkpoint_a_pause_and_a_check_that_cannot_run() {
    let stop = || repeated("  - text: I am done.\n");
    let checkpoint = "completion: { files: [report.md] }\nlimits: { iterations: 1 }\n";
    Trigger::for_person(checkpoint, stop(), Some("CHECKPOINT.md")).check();
    let missing = "completion: { command: no-such-program --all }\n";
    Trigger::for_person(missing, stop(), BLOCKER).check();
}

/// A model that only the task names is the first one.
#[test]
fn a_model_of_the_task_comes_before_those_of_the_definition() {
    let world = CliWorld::new("");
    let script = repeated("  - text: I am done.\n");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("second", REPORT_SCRIPT)]);
    fs::write(task.directory.join("own.yaml"), script).unwrap();
    task.append("model: { script: own.yaml }\n");
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(asked(&run), ["scripted", "scripted/second"], "{run:?}");
}

#[test]
fn the_next_model_learns_what_the_check_misses() {
    let world = CliWorld::new("");
    let idle = repeated("  - text: I am done.\n");
    let scripts = [("first", idle.as_str()), ("second", REPORT_SCRIPT)];
    let run = TaskDirectory::new(&world, REPORT_COMPLETION, &scripts).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let conversation = world.session_directory(&session_id(&run)).join("conversation.jsonl");
    let conversation = fs::read_to_string(conversation).unwrap();
    let problem = "(stop_events): the agent stopped 3 times and did nothing in between: \
                   The required file `report.md` is missing.";
    assert!(conversation.contains(problem), "{conversation}");
}

#[test]
fn the_last_model_of_an_advisor_is_asked_with_a_budget_of_one() {
    let world = CliWorld::new("");
    let unreachable = "{ provider: openai-chat, model: m, url: \"http://127.0.0.1:9/v1\" }";
    let silent = "{ provider: scripted, model: silent }";
    let advisor = "{ provider: scripted, model: advisor }";
    let definition = format!(
        "{REPORT_COMPLETION}loops: {{}}\n\
         advisor: {{ models: [{unreachable}, {silent}, {advisor}], budget: 1 }}\n"
    );
    fs::write(world.workspace().join("a.txt"), "x").unwrap();
    let circles = "  - calls: [{ tool: read_file, args: { path: a.txt } }]\n".repeat(5);
    let main = format!("steps:\n{circles}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let scripts = [("main", main.as_str()), ("advisor", "steps:\n  - text: Write the report.\n")];
    let task = TaskDirectory::new(&world, &definition, &scripts);
    fs::write(task.directory.join("silent.yaml"), "steps:\n  - text: \"\"\n").unwrap();
    task.append("  silent: silent.yaml\n");
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let advised = events_named(&run, "advised");
    assert_eq!(advised.len(), 3, "{run:?}");
    assert_eq!(advised[2]["instruction"], "Write the report.", "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_check_that_cannot_run_waits_for_a_person_and_runs_again_after_that() {
    let world = CliWorld::new("");
    let definition = "completion: { command: ./check.sh }\n";
    let task = TaskDirectory::new(&world, definition, &[("main", REPORT_SCRIPT)]);
    let run = task.run(&[]);
    let left = stop_code(&run);
    assert!(left.contains("`./check.sh` could not be run: `./check.sh` does not exist"), "{left}");
    assert!(left.contains("`jackline clear`"), "{left}");
    assert_eq!(ended_event(&run)["evidence"]["iterations"], 2, "{run:?}");
    let id = session_id(&run);
    fs::write(world.workspace().join("check.sh"), "#!/bin/sh\ntest -e report.md\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(world.workspace().join("check.sh"), mode).unwrap();
    assert_eq!(world.jackline(&["clear", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn a_missing_test_program_of_the_agent_is_not_told_as_failing_tests() {
    let world = CliWorld::new("");
    let write = json!([{ "tool": "write_file", "args": { "path": "a.py", "content": "x" } }]);
    let test = json!([{ "tool": "shell", "args": { "command": "no-such-tester" } }]);
    let script = format!("steps:\n  - calls: {write}\n  - calls: {test}\n  - text: Done.\n");
    let definition = "extends: [autonomous]\ncompletion: { clean: {} }\ndirty_bits: { tests: [no-such-tester] }\n";
    let run = TaskDirectory::new(&world, definition, &[("main", &script)]).run(&[]);
    let left = stop_code(&run);
    let part = "The tests could not be run: `no-such-tester` is not on the `PATH`";
    assert!(left.contains(part), "{left}");
    assert!(!run.stdout.contains("The tests fail"), "{run:?}");
    assert_eq!(events_named(&run, "asking").len(), 4, "{run:?}");
}
