//! Whatever happens to the guard, a call that must not run does not run: for the
//! agent itself and for a sub-agent in the background.

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::PINNED;
use jackline_clients::hook_line::shell_word;
use jackline_clients::installed::Installed;
use jackline_setup::doctor::Fault;
use jackline_setup::live::Seen;

use crate::world::{ACTORS, JACKLINE, World, client, script_of_both, story};

/// Nothing may touch a canary.
const DENY: &str = r#"
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a.startsWith("canary"))'
    deny: No canary may be touched.
    examples: { deny: [touch canary-x], allow: [touch witness-x] }
"#;

/// The calls that may run did, and the others were refused in these words.
fn check(world: &World, seen: &Seen, witnesses: &[&str], words: &[&str]) {
    for witness in witnesses {
        assert!(world.scratch.has(witness), "the client ran nothing: {}", story(seen));
    }
    for (name, marker) in ACTORS {
        assert!(!world.scratch.has(&format!("canary-{name}")), "{name}: it ran: {}", story(seen));
        let results = seen.results(marker);
        let refused =
            results.last().unwrap_or_else(|| panic!("{name} called nothing: {}", story(seen)));
        assert!(refused.is_error, "{name}: {refused:?}");
        for word in words {
            assert!(refused.text.contains(word), "{name}: `{word}` is not in {refused:?}");
        }
    }
}

const BOTH: [&str; 2] = ["witness-main", "witness-sub"];

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn what_a_rule_denies_does_not_run() {
    let world = World::new(DENY);
    let seen = world.play(script_of_both());
    check(&world, &seen, &BOTH, &["No canary may be touched."]);
    world.prove();
}

/// Nobody sits at a client that runs headless: the call waits for a person, who
/// learns the code; the model does not.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn what_a_person_is_asked_about_does_not_run_unasked() {
    let world = World::new(&DENY.replace("deny:", "ask:"));
    let seen = world.play(script_of_both());
    check(&world, &seen, &BOTH, &["No canary may be touched."]);
    assert!(!seen.showed("jl-"), "the model was shown a code: {}", story(&seen));
    assert!(seen.told_person("jl-"), "{}", story(&seen));
    world.prove();
}

fn check_fault(fault: Fault, witnesses: &[&str], words: &[&str]) {
    let world = World::new(DENY);
    let installed = Installed { client: &CLIENT, program: client(), version: PINNED };
    let guard = fault.hooks(&installed, &world.scratch, &shell_word(JACKLINE), "canary").unwrap();
    let seen = world.play_guarded(&guard, script_of_both());
    check(&world, &seen, witnesses, words);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_is_killed_lets_nothing_run() {
    check_fault(Fault::Killed, &BOTH, &["jackline, the guard", "jackline off"]);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_hangs_lets_nothing_run() {
    check_fault(Fault::Hung, &BOTH, &[]);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_prints_garbage_lets_nothing_run() {
    check_fault(Fault::Garbage, &BOTH, &["jackline, the guard", "jackline off"]);
}

/// Gone from its first sealed answer on: not even the witnesses but one.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_is_missing_lets_nothing_run() {
    let world = World::new(DENY);
    let guard = world.wrapped(r#""Agent""#, "gone=1");
    let text = std::fs::read_to_string(world.scratch.root().join("jackline-wrapped")).unwrap();
    let text = format!("{text}[ -z \"$gone\" ] || rm -f -- \"$0\"\n");
    world.scratch.write_program("jackline-wrapped", &text).unwrap();
    let seen = world.play_guarded(&guard, script_of_both());
    check(&world, &seen, &["witness-main"], &["jackline, the guard", "jackline off"]);
    assert!(!world.scratch.has("witness-sub"));
}

/// Root may write where permissions say no, but nobody may write to sysfs.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_read_only_state_home_lets_nothing_run() {
    let world = World::new(DENY);
    let guard = world.wrapped("canary", "export JACKLINE_HOME=/sys/kernel/jackline-home");
    let seen = world.play_guarded(&guard, script_of_both());
    check(&world, &seen, &BOTH, &["the guard is broken, not the call"]);
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_full_disk_lets_nothing_run() {
    let world = World::new(DENY);
    // No file may grow, which to a program looks like a disk without room.
    let guard = world.wrapped("canary", "trap '' XFSZ; ulimit -f 0");
    let seen = world.play_guarded(&guard, script_of_both());
    check(&world, &seen, &BOTH, &["the guard is broken, not the call"]);
    world.prove();
}

/// Nothing that was ever good is there to fall back on.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_broken_definition_lets_nothing_run() {
    let world = World::new(DENY);
    std::fs::write(world.scratch.root().join("broken.yaml"), "rules: [").unwrap();
    let root = world.scratch.root().display();
    let first =
        format!("export JACKLINE_HOME='{root}/other'; set -- \"$@\" -d '{root}/broken.yaml'");
    let seen = world.play_guarded(&world.wrapped("canary", &first), script_of_both());
    check(&world, &seen, &BOTH, &["the guard is broken, not the call", "broken.yaml"]);
    world.prove();
}

/// A typo must not open the gate, nor end all work.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_definition_that_breaks_later_stays_in_force_as_it_was() {
    let world = World::new(DENY);
    let file = world.scratch.work().join("jackline.yaml");
    let first = format!("echo 'rules: [' > '{}'", file.display());
    let seen = world.play_guarded(&world.wrapped("UserPromptSubmit", &first), script_of_both());
    assert_eq!(world.scratch.read("jackline.yaml").as_deref(), Some("rules: [\n"));
    check(&world, &seen, &BOTH, &["No canary may be touched."]);
    world.prove();
}
