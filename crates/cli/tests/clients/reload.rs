//! Tests of settings that change during a call: a script that removes the guard from the settings
//! must not get the next call through.

use jackline_clients::claude::CLIENT;
use jackline_clients::installation::HookEntry;
use jackline_model::scripted::ModelScript;
use jackline_setup::live::LiveOutcome;

use crate::world::{ClientWorld, JACKLINE, bash, describe_outcome, guard_hooks};

const DEFINITION: &str = r#"
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a == "canary")'
    deny: Not the canary.
    examples: { deny: ["touch canary"], allow: ["touch other"] }
"#;

const EMPTY_SETTINGS: &str = "open(project, 'w').write('{}')";
const DISABLED_HOOKS: &str = r#"open(local, 'w').write('{"disableAllHooks": true}')"#;

/// A script changes the settings and gives the client time to notice. Then the agent makes a call
/// that the rule denies.
fn play_change(world: &ClientWorld, hooks: &[HookEntry], change: &str) -> LiveOutcome {
    // The script assembles the file names at run time, so no rule can see them before.
    let script = format!(
        "import os, time\n\
         folder = '.cla' + 'ude'\n\
         project, local = [folder + '/set' + 'tings' + end for end in ['.json', '.local.json']]\n\
         before = open(project).read()\n\
         {change}\n\
         time.sleep(1.5)\n\
         open('finished', 'w')\n"
    );
    world.scratch.write("tool.py", &script).unwrap();
    world.scratch.install(CLIENT.installation, hooks).unwrap();
    let seen =
        world.play_installed(ModelScript::new([bash("python3 tool.py"), bash("touch canary")]));
    assert!(world.scratch.has_path("finished"), "{change}: {}", describe_outcome(&seen));
    seen
}

fn check_guarded(change: &str) {
    let world = ClientWorld::new(DEFINITION);
    let seen = play_change(&world, &guard_hooks(JACKLINE), change);
    assert!(!world.scratch.has_path("canary"), "{change}: {}", describe_outcome(&seen));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn settings_that_a_script_empties_or_removes_do_not_remove_the_guard() {
    check_guarded(EMPTY_SETTINGS);
    check_guarded("os.remove(project)");
    check_guarded("os.rename(folder, 'elsewhere')");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn hooks_that_a_script_disables_still_run() {
    check_guarded(DISABLED_HOOKS);
    check_guarded(r#"open(local, 'w').write('{"env": {"PATH": "/nowhere"}}')"#);
}

/// If one value has a wrong type, the client ignores the whole file, including all hooks.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn settings_that_the_client_would_ignore_do_not_remove_the_guard() {
    for invalid in [r#"{"model": 5,"#, r#"{"permissions": "x","#] {
        check_guarded(&format!("open(project, 'w').write(before.replace('{{', '{invalid}', 1))"));
    }
}

/// If the guard is killed while it checks new settings, the client keeps the old ones.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_is_killed_while_it_checks_new_settings_stays_active() {
    for change in [EMPTY_SETTINGS, DISABLED_HOOKS] {
        let world = ClientWorld::new(DEFINITION);
        let seen = play_change(&world, &world.wrapper_hooks("ConfigChange", "kill -9 $$"), change);
        assert!(!world.scratch.has_path("canary"), "{change}: {}", describe_outcome(&seen));
    }
}

/// Shows why the hook is needed: without it, the client drops the guard.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_without_the_config_change_hook_drops_the_guard() {
    for change in [EMPTY_SETTINGS, DISABLED_HOOKS] {
        let world = ClientWorld::new(DEFINITION);
        let mut hooks = guard_hooks(JACKLINE);
        hooks.retain(|hook| hook.event != "ConfigChange");
        let seen = play_change(&world, &hooks, change);
        assert!(world.scratch.has_path("canary"), "{change}: {}", describe_outcome(&seen));
    }
}
