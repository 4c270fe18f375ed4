//! The client reads its settings again while a call runs: a script that takes the guard
//! out of them must not get the next call through.

use jackline_model::scripted::Script;

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

const BLOCKED: &str = "would take the guard out of the running session";

/// What a script does to the settings and how long the client has to notice; the canary
/// after it must not be there. `told` is what the person reads.
fn check_guarded(change: &str, told: Option<&str>) {
    let world = World::new(DEFINITION);
    // The names are put together only when it runs: no rule sees them before.
    let script = format!(
        "import os, signal, time\nd = '.cla' + 'ude/'\nproject, local = d + 'set' + 'tings.json', d + 'set' + \
         'tings.local.json'\nguarded = open(project).read()\n{change}\ntime.sleep(1.5)\nopen('ran', 'w')\n"
    );
    world.scratch.write("tool.py", &script).unwrap();
    world.scratch.install(&hooks(JACKLINE)).unwrap();
    let seen = world.play_installed(Script::new([bash("python3 tool.py"), bash("touch canary")]));
    assert!(world.scratch.has("ran"), "{change}: {}", story(&seen));
    assert!(!world.scratch.has("canary"), "{change}: {}", story(&seen));
    if let Some(told) = told {
        assert!(seen.told_person(told), "{change}: {}", story(&seen));
    }
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn settings_that_a_script_empties_or_removes_do_not_take_the_guard_out() {
    check_guarded("open(project, 'w').write('{}')", Some(BLOCKED));
    check_guarded("os.remove(project)", Some(BLOCKED));
    check_guarded("os.rename(d[:-1], 'elsewhere')", None);
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn hooks_that_a_script_switches_off_still_run() {
    check_guarded("open(local, 'w').write('{\"disableAllHooks\": true}')", Some(BLOCKED));
    check_guarded("open(local, 'w').write('{\"env\": {\"PATH\": \"/nowhere\"}}')", Some(BLOCKED));
}
