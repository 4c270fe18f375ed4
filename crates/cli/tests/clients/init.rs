//! `jackline init claude`: what it writes is what was tried, and guards.

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::{PINNED, hooks_for};
use jackline_clients::hook_line::shell_word;
use jackline_clients::version::Version;
use jackline_model::scripted::Script;
use jackline_setup::live::Scratch;

use crate::world::{JACKLINE, World, bash, client, hooks, story};

const SETTINGS: &str = ".claude/settings.json";

/// A workspace without a definition.
fn newcomer() -> World {
    World { scratch: Scratch::new().unwrap() }
}

/// A client that says its version and does nothing else.
fn pretender(world: &World, version: Version) -> String {
    let text = format!("#!/bin/sh\necho '{version} (Claude Code)'\n");
    world.scratch.write_program("claude", &text).unwrap().display().to_string()
}

#[test]
fn what_is_installed_is_what_was_tried_to_the_letter() {
    for version in [PINNED, Version(2, 1, 100), Version(1, 0, 60)] {
        let world = newcomer();
        let client = pretender(&world, version);
        let words = ["init", "claude", "--yes", "--no-canary", "--client-program", &client];
        let (code, text) = world.jackline(&words);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("canary: not run: --no-canary"), "{text}");
        let tried = Scratch::new().unwrap();
        tried.install(CLIENT.installation, &hooks_for(version, &shell_word(JACKLINE))).unwrap();
        assert_eq!(world.scratch.read(SETTINGS), tried.read(SETTINGS), "{version}");
    }
}

/// A client that never gets as far as a call proves nothing.
#[test]
fn a_client_that_does_nothing_is_no_proof() {
    let world = newcomer();
    let client = pretender(&world, PINNED);
    let (code, text) =
        world.jackline(&["init", "claude", "--yes", "--json", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(r#""result":"unproven""#), "{text}");
    let world = newcomer();
    let client = pretender(&world, PINNED);
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: it is NOT PROVEN that Claude Code is guarded"), "{text}");
    assert!(world.scratch.has(SETTINGS), "it is installed all the same");
}

/// The settings that a person has would keep the hooks from running: elsewhere they
/// would run, and prove nothing.
#[test]
fn hooks_that_will_not_run_here_are_not_tried_elsewhere() {
    let world = newcomer();
    world.scratch.write(SETTINGS, "{} // mine\n").unwrap();
    let client = pretender(&world, PINNED);
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: not run: the hooks will not run here"), "{text}");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_installation_ends_with_the_canary_guards_and_is_given_back() {
    let world = newcomer();
    let before = "{\n\t\"cleanupPeriodDays\": 30\n}\n";
    world.scratch.write(SETTINGS, before).unwrap();
    let client = client().display().to_string();
    let words = ["init", "claude", "--yes", "--client-program", &client];
    let (code, text) = world.jackline(&words);
    assert_eq!(code, Some(0), "{text}");
    let canary = text.lines().find(|line| line.starts_with("canary: a denied call")).unwrap();
    let said = "canary: a denied call did not run, and the model was told why (";
    assert!(canary.starts_with(said) && canary.ends_with(" s)"), "{canary}");
    // A rule that a newcomer writes below what `init` wrote.
    let definition = world.scratch.read("jackline.yaml").unwrap();
    let definition = definition.replace("\nmode: observe\n", "\n");
    let rule = "rules:
  - name: canary
    command: touch
    when: 'argv.exists(a, a == \"canary\")'
    deny: Let it sing.
    examples: { deny: [touch canary], allow: [touch witness] }
";
    world.scratch.write("jackline.yaml", &format!("{definition}{rule}")).unwrap();
    let seen = world.play_installed(Script::new([bash("touch canary"), bash("touch witness")]));
    assert!(!world.scratch.has("canary") && world.scratch.has("witness"), "{}", story(&seen));
    let results = seen.results(None);
    let refused = results.first().unwrap();
    assert!(refused.is_error && refused.text.contains("Let it sing."), "{refused:?}");
    world.prove();
    let (code, text) = world.jackline(&["init", "claude", "--uninstall", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("canary:"), "{text}");
    assert_eq!(world.scratch.read(SETTINGS).as_deref(), Some(before));
}

/// Why `init` warns of comments and `doctor` calls them open: for their sake the
/// client ignores the whole file, and says nothing.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_client_ignores_hooks_in_a_file_with_a_comment() {
    let shut = World::new("rules: [");
    shut.scratch.install(CLIENT.installation, &hooks(JACKLINE)).unwrap();
    let seen = shut.play_installed(Script::new([bash("touch canary")]));
    assert!(!shut.scratch.has("canary"), "{}", story(&seen));
    let text = shut.scratch.read(SETTINGS).unwrap();
    shut.scratch.write(SETTINGS, &format!("// mine\n{text}")).unwrap();
    let seen = shut.play_installed(Script::new([bash("touch canary")]));
    assert!(shut.scratch.has("canary"), "it reads comments now: {}", story(&seen));
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_installation_that_does_not_guard_is_said_so_loudly() {
    let world = newcomer();
    let program = world.unguarded_client().display().to_string();
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &program]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: Claude Code IS NOT GUARDED: a denied call: it ran"), "{text}");
}
