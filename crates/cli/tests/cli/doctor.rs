//! Tests of `jackline doctor` on a machine without an agent client.

use crate::support::CliWorld;

#[test]
fn without_a_client_doctor_says_what_to_install_and_tests_nothing() {
    let world = CliWorld::new("");
    for args in [&["doctor"][..], &["doctor", "claude"], &["doctor", "--json"]] {
        let mut command = world.person_command();
        let run = crate::support::run_with_input(command.args(args).env("PATH", "/nowhere"), b"");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {run:?}");
        let expected = "error: there is no agent client to test: Claude Code is not installed: `claude` is not in PATH; \
                        install it with `npm install -g @anthropic-ai/claude-code`, or add the directory of `claude` to \
                        PATH, or name its program with `jackline doctor --client-program PATH`\n";
        assert_eq!(run.stderr, expected, "{args:?}");
    }
}

#[test]
fn a_path_without_a_client_is_named() {
    let world = CliWorld::new("");
    for (path, expected) in [
        ("./gone", "there is no program `./gone`; check the path after --client-program"),
        (
            "/bin/false",
            "`/bin/false --version` prints no version; check that this is the program of an agent client",
        ),
    ] {
        let run = world.jackline(&["doctor", "--client-program", path]);
        assert_eq!((run.code, run.stderr), (Some(2), format!("error: {expected}\n")));
    }
}
