//! Tests of the main features with the real client: a denial with its reason, a protected file, and
//! a stop that waits for its report.

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::{ModelScript, ScriptStep};
use jackline_setup::live::LiveRun;
use serde_json::json;

use crate::world::{ClientWorld, JACKLINE, bash, client_program, describe_outcome, guard_hooks};

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_rule_denies_a_write_and_the_model_gets_the_reason() {
    let world = ClientWorld::new(
        r#"
rules:
  - name: generated
    tool: write
    when: 'path.startsWith("generated/")'
    deny: Files in generated/ are made by the build. Change their source instead.
    examples: { deny: [{ path: generated/a.rs }], allow: [{ path: src/a.rs }] }
"#,
    );
    let write = |path: &str| {
        let path = world.scratch.work().join(path);
        ScriptStep::call("Write", json!({ "file_path": path, "content": "fn main() {}\n" }))
    };
    let seen = world.play(ModelScript::new([write("generated/a.rs"), write("src/a.rs")]));
    assert!(!world.scratch.has_path("generated/a.rs"), "{}", describe_outcome(&seen));
    assert!(world.scratch.has_path("src/a.rs"), "{}", describe_outcome(&seen));
    let results = seen.tool_results(None);
    let [denied, allowed] = results.as_slice() else { panic!("{results:?}") };
    assert!(denied.is_error && !allowed.is_error, "{results:?}");
    let reason = "Files in generated/ are made by the build. Change their source instead.";
    assert!(denied.text.contains(reason), "{denied:?}");
    // The refusal contains the reason, but not the command line of the hook.
    assert!(!denied.text.contains("--sealed"), "{denied:?}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_unread_file_is_not_overwritten_by_a_shell_command() {
    let world = ClientWorld::new("policies: [read_before_write: {}]\n");
    world.scratch.write("config.yaml", "a: 1\n").unwrap();
    let file = world.scratch.work().join("config.yaml");
    let seen = world.play(ModelScript::new([
        bash("echo x > config.yaml"),
        bash("cp config.yaml before.yaml"),
        ScriptStep::call("Read", json!({ "file_path": file })),
        bash("echo x > config.yaml"),
    ]));
    assert_eq!(
        world.scratch.read("before.yaml").as_deref(),
        Some("a: 1\n"),
        "{}",
        describe_outcome(&seen)
    );
    assert_eq!(
        world.scratch.read("config.yaml").as_deref(),
        Some("x\n"),
        "{}",
        describe_outcome(&seen)
    );
    let results = seen.tool_results(None);
    let refused = results.first().unwrap();
    assert!(refused.is_error && refused.text.contains("config.yaml"), "{refused:?}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_waits_for_its_report_and_is_allowed_once_the_report_exists() {
    let world = ClientWorld::new("completion: { files: [report.md] }\n");
    let report = world.scratch.work().join("report.md");
    let seen = world.play(ModelScript::new([
        ScriptStep::say("I am done."),
        ScriptStep::call("Write", json!({ "file_path": report, "content": "# Report\n" })),
        ScriptStep::say("Now I am done."),
    ]));
    // The stop was blocked once, and the model was told which file is missing.
    let main: Vec<bool> =
        seen.requests_of(None).map(|request| request.has_text("report.md")).collect();
    assert_eq!(main, [false, true, true], "{}", describe_outcome(&seen));
    assert_eq!(world.scratch.read("report.md").as_deref(), Some("# Report\n"));
    let (code, status) = world.jackline(&["status"]);
    assert_eq!(code, Some(0), "{status}");
    assert!(!status.contains("capped"), "{status}");
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_unsatisfiable_completion_check_ends_at_its_cap() {
    let world = ClientWorld::new("completion: { files: [never.md] }\n");
    let seen = world.play(ModelScript::new([]));
    // Three blocks with the same text, then the stop is allowed. The cap of the client itself is 8.
    assert_eq!(seen.requests_of(None).count(), 4, "{}", describe_outcome(&seen));
    assert_eq!(seen.code, Some(0), "{}", describe_outcome(&seen));
    let (code, status) = world.jackline(&["status"]);
    assert!(code == Some(0) && status.contains("capped"), "{status}");
    assert!(seen.showed_person("the task is not done"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

/// The guard has no violation for these calls. The client would ask its person, but there is no
/// person, so the calls do not run.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn without_a_violation_a_call_still_needs_the_approval_of_the_client() {
    let world = ClientWorld::new("");
    let file = world.scratch.work().join("new.txt");
    let script = ModelScript::new([
        bash("touch made-by-bash"),
        ScriptStep::call("Write", json!({ "file_path": file, "content": "x" })),
    ]);
    let client = client_program();
    world.scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
    let mut run = LiveRun::new(&CLIENT, &client, &world.scratch, script);
    run.allowed_tools = "Read";
    let seen = run.run_client().unwrap();
    assert!(
        !world.scratch.has_path("made-by-bash") && !world.scratch.has_path("new.txt"),
        "{}",
        describe_outcome(&seen)
    );
    let results = seen.tool_results(None);
    assert_eq!(results.len(), 2, "{}", describe_outcome(&seen));
    for refused in &results {
        assert!(refused.is_error && !refused.text.contains("hook error"), "{refused:?}");
    }
    // The guard decided on both calls and reported no violation.
    let (_, log) = world.jackline(&["log"]);
    assert!(!log.contains("deny"), "{log}");
    world.verify_and_replay();
}
