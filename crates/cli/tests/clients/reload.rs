//! The client reads its settings again while a call runs: a script that takes the guard
//! out of them must not get the next call through.

use jackline_clients::claude::CLIENT;
use jackline_clients::installation::HookEntry;
use jackline_model::scripted::Script;
use jackline_setup::live::Seen;

use crate::world::{JACKLINE, World, bash, hooks, story};

const DEFINITION: &str = r#"
rules:
  - name: canary
    tool: exec
    command: touch
    when: 'argv.exists(a, a == "canary")'
    deny: Not the canary.
    examples: { deny: ["touch canary"], allow: ["touch other"] }
"#;

const EMPTIED: &str = "open(project, 'w').write('{}')";
const SWITCHED_OFF: &str = r#"open(local, 'w').write('{"disableAllHooks": true}')"#;

/// A script changes the settings, gives the client the time to notice, and then the
/// agent does what it may not.
fn play(world: &World, hooks: &[HookEntry], change: &str) -> Seen {
    // The names are put together only when it runs: no rule sees them before.
    let script = format!(
        "import os, time\n\
         folder = '.cla' + 'ude'\n\
         project, local = [folder + '/set' + 'tings' + end for end in ['.json', '.local.json']]\n\
         before = open(project).read()\n\
         {change}\n\
         time.sleep(1.5)\n\
         open('ran', 'w')\n"
    );
    world.scratch.write("tool.py", &script).unwrap();
    world.scratch.install(CLIENT.installation, hooks).unwrap();
    let seen = world.play_installed(Script::new([bash("python3 tool.py"), bash("touch canary")]));
    assert!(world.scratch.has("ran"), "{change}: {}", story(&seen));
    seen
}

fn check_guarded(change: &str) {
    let world = World::new(DEFINITION);
    let seen = play(&world, &hooks(JACKLINE), change);
    assert!(!world.scratch.has("canary"), "{change}: {}", story(&seen));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn settings_that_a_script_empties_or_removes_do_not_take_the_guard_out() {
    check_guarded(EMPTIED);
    check_guarded("os.remove(project)");
    check_guarded("os.rename(folder, 'elsewhere')");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn hooks_that_a_script_switches_off_still_run() {
    check_guarded(SWITCHED_OFF);
    check_guarded(r#"open(local, 'w').write('{"env": {"PATH": "/nowhere"}}')"#);
}

/// For one value of a wrong type the client ignores the whole file, with all hooks in it.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn settings_that_the_client_would_ignore_do_not_take_the_guard_out() {
    for odd in [r#"{"model": 5,"#, r#"{"permissions": "x","#] {
        check_guarded(&format!("open(project, 'w').write(before.replace('{{', '{odd}', 1))"));
    }
}

/// Whoever kills the guard while it looks at new settings gets none.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_guard_that_is_killed_at_new_settings_stays() {
    for change in [EMPTIED, SWITCHED_OFF] {
        let world = World::new(DEFINITION);
        let seen = play(&world, &world.wrapped("ConfigChange", "kill -9 $$"), change);
        assert!(!world.scratch.has("canary"), "{change}: {}", story(&seen));
    }
}

/// What this is good for: without it the client drops the guard.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_does_not_ask_about_its_settings_is_open() {
    for change in [EMPTIED, SWITCHED_OFF] {
        let world = World::new(DEFINITION);
        let mut hooks = hooks(JACKLINE);
        hooks.retain(|hook| hook.event != "ConfigChange");
        let seen = play(&world, &hooks, change);
        assert!(world.scratch.has("canary"), "{change}: {}", story(&seen));
    }
}
