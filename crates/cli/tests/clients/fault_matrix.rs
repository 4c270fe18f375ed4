//! Tests that a denied call does not run, whatever fault the guard has: for the main agent, and for
//! a sub-agent in the background.

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::TESTED_VERSION;
use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::installed_client::InstalledClient;
use jackline_setup::doctor::BrokenGuard;
use jackline_setup::live::LiveOutcome;

use crate::world::{
    ACTORS, ClientWorld, JACKLINE, client_program, describe_outcome, main_and_subagent_script,
};

/// A rule that forbids to touch a canary file.
const DENY: &str = r#"
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a.startsWith("canary"))'
    deny: No canary may be touched.
    examples: { deny: [touch canary-x], allow: [touch witness-x] }
"#;

/// Checks that the allowed calls ran, and that the denied calls were refused with these texts.
fn check_canaries(world: &ClientWorld, seen: &LiveOutcome, witnesses: &[&str], fragments: &[&str]) {
    for witness in witnesses {
        assert!(
            world.scratch.has_path(witness),
            "the client did not run it: {}",
            describe_outcome(seen)
        );
    }
    for (name, marker) in ACTORS {
        assert!(
            !world.scratch.has_path(&format!("canary-{name}")),
            "{name}: the denied call ran: {}",
            describe_outcome(seen)
        );
        let results = seen.tool_results(marker);
        let refused = results
            .last()
            .unwrap_or_else(|| panic!("{name} made no call: {}", describe_outcome(seen)));
        assert!(refused.is_error, "{name}: {refused:?}");
        for fragment in fragments {
            assert!(refused.text.contains(fragment), "{name}: `{fragment}` is not in {refused:?}");
        }
    }
}

const BOTH_WITNESSES: [&str; 2] = ["witness-main", "witness-sub"];

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_call_that_a_rule_denies_does_not_run() {
    let world = ClientWorld::new(DENY);
    let seen = world.play(main_and_subagent_script());
    check_canaries(&world, &seen, &BOTH_WITNESSES, &["No canary may be touched."]);
    world.verify_and_replay();
}

/// A headless client has no person to ask. The call waits, the person gets the approval code, and
/// the model does not.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_call_that_needs_an_approval_does_not_run_without_it() {
    let world = ClientWorld::new(&DENY.replace("deny:", "ask:"));
    let seen = world.play(main_and_subagent_script());
    check_canaries(&world, &seen, &BOTH_WITNESSES, &["No canary may be touched."]);
    assert!(!seen.showed_model("jl-"), "the model got the code: {}", describe_outcome(&seen));
    assert!(seen.showed_person("jl-"), "{}", describe_outcome(&seen));
    world.verify_and_replay();
}

fn check_fault(fault: BrokenGuard, witnesses: &[&str], fragments: &[&str]) {
    let world = ClientWorld::new(DENY);
    let installed =
        InstalledClient { client: &CLIENT, program: client_program(), version: TESTED_VERSION };
    let guard =
        fault.hooks(&installed, &world.scratch, &quote_shell_word(JACKLINE), "canary").unwrap();
    let seen = world.play_guarded(&guard, main_and_subagent_script());
    check_canaries(&world, &seen, witnesses, fragments);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_killed_guard_no_call_runs() {
    check_fault(BrokenGuard::Killed, &BOTH_WITNESSES, &["jackline, the guard", "jackline off"]);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_hanging_guard_no_call_runs() {
    check_fault(BrokenGuard::Hung, &BOTH_WITNESSES, &[]);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_guard_that_prints_garbage_no_call_runs() {
    check_fault(BrokenGuard::Garbage, &BOTH_WITNESSES, &["jackline, the guard", "jackline off"]);
}

/// The guard is missing after its first sealed answer, so only one allowed call runs.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_missing_guard_no_call_runs() {
    let world = ClientWorld::new(DENY);
    let guard = world.wrapper_hooks(r#""Agent""#, "gone=1");
    let text = std::fs::read_to_string(world.scratch.root().join("jackline-wrapped")).unwrap();
    let text = format!("{text}[ -z \"$gone\" ] || rm -f -- \"$0\"\n");
    world.scratch.write_program("jackline-wrapped", &text).unwrap();
    let seen = world.play_guarded(&guard, main_and_subagent_script());
    check_canaries(&world, &seen, &["witness-main"], &["jackline, the guard", "jackline off"]);
    assert!(!world.scratch.has_path("witness-sub"));
}

/// Root may ignore file permissions, but no process may write to sysfs.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_read_only_state_home_no_call_runs() {
    let world = ClientWorld::new(DENY);
    let guard = world.wrapper_hooks("canary", "export JACKLINE_HOME=/sys/kernel/jackline-home");
    let seen = world.play_guarded(&guard, main_and_subagent_script());
    check_canaries(&world, &seen, &BOTH_WITNESSES, &["the guard is broken, not the call"]);
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_full_disk_no_call_runs() {
    let world = ClientWorld::new(DENY);
    // A file size limit of zero has the same effect as a full disk.
    let guard = world.wrapper_hooks("canary", "trap '' XFSZ; ulimit -f 0");
    let seen = world.play_guarded(&guard, main_and_subagent_script());
    check_canaries(&world, &seen, &BOTH_WITNESSES, &["the guard is broken, not the call"]);
    world.verify_and_replay();
}

/// There is no last good definition.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn with_a_broken_definition_no_call_runs() {
    let world = ClientWorld::new(DENY);
    std::fs::write(world.scratch.root().join("broken.yaml"), "rules: [").unwrap();
    let root = world.scratch.root().display();
    let first =
        format!("export JACKLINE_HOME='{root}/other'; set -- \"$@\" -d '{root}/broken.yaml'");
    let seen =
        world.play_guarded(&world.wrapper_hooks("canary", &first), main_and_subagent_script());
    check_canaries(
        &world,
        &seen,
        &BOTH_WITNESSES,
        &["the guard is broken, not the call", "broken.yaml"],
    );
    world.verify_and_replay();
}

/// A typing mistake must neither turn the guard off nor stop all work.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn if_the_definition_breaks_later_the_last_good_one_stays_in_force() {
    let world = ClientWorld::new(DENY);
    let file = world.scratch.work().join("jackline.yaml");
    let first = format!("echo 'rules: [' > '{}'", file.display());
    let seen = world
        .play_guarded(&world.wrapper_hooks("UserPromptSubmit", &first), main_and_subagent_script());
    assert_eq!(world.scratch.read("jackline.yaml").as_deref(), Some("rules: [\n"));
    check_canaries(&world, &seen, &BOTH_WITNESSES, &["No canary may be touched."]);
    world.verify_and_replay();
}
