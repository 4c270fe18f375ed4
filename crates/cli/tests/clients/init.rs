//! Tests of `jackline init claude`: the installed hooks are the tested hooks, and they guard the
//! client.

use jackline_clients::claude::CLIENT;
use jackline_clients::claude::settings::{TESTED_VERSION, hooks_for};
use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::version::ClientVersion;
use jackline_model::scripted::ModelScript;
use jackline_setup::live::ScratchHome;

use crate::world::{ClientWorld, JACKLINE, bash, client_program, describe_outcome, guard_hooks};

/// The file that `init` writes without a flag.
const SETTINGS: &str = ".claude/settings.local.json";

/// The file of the scratch homes in which hooks are tested.
const TESTED_SETTINGS: &str = ".claude/settings.json";

/// A workspace without a definition.
fn world_without_definition() -> ClientWorld {
    ClientWorld { scratch: ScratchHome::new().unwrap() }
}

/// A client program that only prints its version.
fn fake_client(world: &ClientWorld, version: ClientVersion) -> String {
    let text = format!("#!/bin/sh\necho '{version} (Claude Code)'\n");
    world.scratch.write_program("claude", &text).unwrap().display().to_string()
}

#[test]
fn the_installed_hooks_are_exactly_the_tested_hooks() {
    for version in [TESTED_VERSION, ClientVersion(2, 1, 100), ClientVersion(1, 0, 60)] {
        let world = world_without_definition();
        let client = fake_client(&world, version);
        let args = ["init", "claude", "--yes", "--no-canary", "--client-program", &client];
        let (code, text) = world.jackline(&args);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("canary: not run: --no-canary"), "{text}");
        let tested = ScratchHome::new().unwrap();
        tested
            .install(CLIENT.installation, &hooks_for(version, &quote_shell_word(JACKLINE)))
            .unwrap();
        assert_eq!(world.scratch.read(SETTINGS), tested.read(TESTED_SETTINGS), "{version}");
    }
}

/// A client that makes no call proves nothing.
#[test]
fn a_client_that_makes_no_call_is_no_proof() {
    let world = world_without_definition();
    let client = fake_client(&world, TESTED_VERSION);
    let (code, text) =
        world.jackline(&["init", "claude", "--yes", "--json", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(r#""result":"unproven""#), "{text}");
    let world = world_without_definition();
    let client = fake_client(&world, TESTED_VERSION);
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: it is NOT PROVEN that Claude Code is guarded"), "{text}");
    assert!(world.scratch.has_path(SETTINGS), "the hooks must be installed anyway");
}

/// The settings of the person prevent the hooks. In another directory the hooks would run, but that
/// would prove nothing.
#[test]
fn hooks_that_will_not_run_here_are_not_tested_elsewhere() {
    let world = world_without_definition();
    world.scratch.write(SETTINGS, "{} // mine\n").unwrap();
    let client = fake_client(&world, TESTED_VERSION);
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &client]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: not run: the hooks will not run here"), "{text}");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_installation_ends_with_a_canary_guards_the_client_and_can_be_undone() {
    let world = world_without_definition();
    let before = "{\n\t\"cleanupPeriodDays\": 30\n}\n";
    world.scratch.write(SETTINGS, before).unwrap();
    let client = client_program().display().to_string();
    let args = ["init", "claude", "--yes", "--client-program", &client];
    let (code, text) = world.jackline(&args);
    assert_eq!(code, Some(0), "{text}");
    let canary = text.lines().find(|line| line.starts_with("canary: ok, the denied call")).unwrap();
    let start = "canary: ok, the denied call did not run, and the model got the reason (";
    assert!(canary.starts_with(start) && canary.ends_with(" s)"), "{canary}");
    // A rule that a new user appends to the definition that `init` wrote.
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
    let seen =
        world.play_installed(ModelScript::new([bash("touch canary"), bash("touch witness")]));
    assert!(
        !world.scratch.has_path("canary") && world.scratch.has_path("witness"),
        "{}",
        describe_outcome(&seen)
    );
    let results = seen.tool_results(None);
    let refused = results.first().unwrap();
    assert!(refused.is_error && refused.text.contains("Let it sing."), "{refused:?}");
    world.verify_and_replay();
    let (code, text) = world.jackline(&["init", "claude", "--uninstall", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("canary:"), "{text}");
    assert_eq!(world.scratch.read(SETTINGS).as_deref(), Some(before));
}

/// This is the reason why `init` warns of comments and `doctor` reports them as open: the client
/// ignores a settings file with comments, without a message.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_client_ignores_hooks_in_a_file_with_a_comment() {
    let world = ClientWorld::new("rules: [");
    world.scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
    let seen = world.play_installed(ModelScript::new([bash("touch canary")]));
    assert!(!world.scratch.has_path("canary"), "{}", describe_outcome(&seen));
    let text = world.scratch.read(TESTED_SETTINGS).unwrap();
    world.scratch.write(TESTED_SETTINGS, &format!("// mine\n{text}")).unwrap();
    let seen = world.play_installed(ModelScript::new([bash("touch canary")]));
    assert!(
        world.scratch.has_path("canary"),
        "the client accepts comments now: {}",
        describe_outcome(&seen)
    );
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn an_installation_that_does_not_guard_is_reported_clearly() {
    let world = world_without_definition();
    let program = world.unguarded_client().display().to_string();
    let (code, text) = world.jackline(&["init", "claude", "--yes", "--client-program", &program]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("canary: Claude Code IS NOT GUARDED: the denied call: it ran"), "{text}");
}
