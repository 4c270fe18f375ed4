//! What a person would see: a denial with its reason, a file that stays as it was,
//! a stop that waits for its report.

use jackline_clients::claude::CLIENT;
use jackline_model::scripted::{Script, Step};
use jackline_setup::live::Run;
use serde_json::json;

use crate::world::{JACKLINE, World, bash, client, hooks, story};

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_rule_denies_a_write_and_the_model_sees_why() {
    let world = World::new(
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
        Step::call("Write", json!({ "file_path": path, "content": "fn main() {}\n" }))
    };
    let seen = world.play(Script::new([write("generated/a.rs"), write("src/a.rs")]));
    assert!(!world.scratch.has("generated/a.rs"), "{}", story(&seen));
    assert!(world.scratch.has("src/a.rs"), "{}", story(&seen));
    let results = seen.results(None);
    let [denied, allowed] = results.as_slice() else { panic!("{results:?}") };
    assert!(denied.is_error && !allowed.is_error, "{results:?}");
    let reason = "Files in generated/ are made by the build. Change their source instead.";
    assert!(denied.text.contains(reason), "{denied:?}");
    // Refused in its own words, without the command line that asked.
    assert!(!denied.text.contains("--sealed"), "{denied:?}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_file_that_was_not_read_is_not_overwritten_by_the_shell() {
    let world = World::new("policies: [read_before_write: {}]\n");
    world.scratch.write("config.yaml", "a: 1\n").unwrap();
    let file = world.scratch.work().join("config.yaml");
    let seen = world.play(Script::new([
        bash("echo x > config.yaml"),
        bash("cp config.yaml before.yaml"),
        Step::call("Read", json!({ "file_path": file })),
        bash("echo x > config.yaml"),
    ]));
    assert_eq!(world.scratch.read("before.yaml").as_deref(), Some("a: 1\n"), "{}", story(&seen));
    assert_eq!(world.scratch.read("config.yaml").as_deref(), Some("x\n"), "{}", story(&seen));
    let results = seen.results(None);
    let refused = results.first().unwrap();
    assert!(refused.is_error && refused.text.contains("config.yaml"), "{refused:?}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_stop_waits_for_its_report_and_passes_once_it_is_there() {
    let world = World::new("completion: { files: [report.md] }\n");
    let report = world.scratch.work().join("report.md");
    let seen = world.play(Script::new([
        Step::say("I am done."),
        Step::call("Write", json!({ "file_path": report, "content": "# Report\n" })),
        Step::say("Now I am done."),
    ]));
    // The stop was blocked once, and the model was told which file is missing.
    let main: Vec<bool> = seen.of(None).map(|request| request.shows("report.md")).collect();
    assert_eq!(main, [false, true, true], "{}", story(&seen));
    assert_eq!(world.scratch.read("report.md").as_deref(), Some("# Report\n"));
    let (code, status) = world.jackline(&["status"]);
    assert_eq!(code, Some(0), "{status}");
    assert!(!status.contains("capped"), "{status}");
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_gate_that_cannot_be_satisfied_ends_within_its_cap() {
    let world = World::new("completion: { files: [never.md] }\n");
    let seen = world.play(Script::new([]));
    // Three blocks with the same text, then the stop passes; the client's own cap is 8.
    assert_eq!(seen.of(None).count(), 4, "{}", story(&seen));
    assert_eq!(seen.code, Some(0), "{}", story(&seen));
    let (code, status) = world.jackline(&["status"]);
    assert!(code == Some(0) && status.contains("capped"), "{status}");
    assert!(seen.told_person("not as done"), "{}", story(&seen));
    world.prove();
}

/// The guard has nothing against these calls, and the client would ask its person
/// about them: nobody is there, so they do not run.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn no_objection_is_no_approval() {
    let world = World::new("");
    let file = world.scratch.work().join("new.txt");
    let script = Script::new([
        bash("touch made-by-bash"),
        Step::call("Write", json!({ "file_path": file, "content": "x" })),
    ]);
    let client = client();
    world.scratch.install(CLIENT.installation, &hooks(JACKLINE)).unwrap();
    let mut run = Run::new(&CLIENT, &client, &world.scratch, script);
    run.allowed_tools = "Read";
    let seen = run.play().unwrap();
    assert!(
        !world.scratch.has("made-by-bash") && !world.scratch.has("new.txt"),
        "{}",
        story(&seen)
    );
    let results = seen.results(None);
    assert_eq!(results.len(), 2, "{}", story(&seen));
    for refused in &results {
        assert!(refused.is_error && !refused.text.contains("hook error"), "{refused:?}");
    }
    // The guard did look at both, and had nothing to say.
    let (_, log) = world.jackline(&["log"]);
    assert!(!log.contains("deny"), "{log}");
    world.prove();
}
