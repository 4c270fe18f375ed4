//! Tests misbehaving commands with the real supervisor.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jackline_workspace::shell::{
    Artifact, ArtifactSink, CancelSignal, ConfineMode, Confinement, ShellError, ShellLimits,
    ShellOutput, run_command,
};

fn limits() -> ShellLimits {
    ShellLimits {
        timeout_ms: 60_000,
        supervisor: Some(env!("CARGO_BIN_EXE_jackline-shell-child").into()),
        ..ShellLimits::default()
    }
}

fn workspace() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A directory outside of `/tmp`, because a confined command may write to all of `/tmp`.
fn directory_outside_tmp() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn shell(limits: &ShellLimits, command: &str) -> ShellOutput {
    run_command(workspace().path(), limits, command).unwrap()
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// The process id that a command wrote to a file.
fn read_pid(root: &Path, file: &str) -> String {
    let text = std::fs::read_to_string(root.join(file)).unwrap();
    assert!(text.trim().parse::<u32>().is_ok(), "{text}");
    text
}

#[test]
fn both_streams_are_in_order_and_the_exit_code_is_reported() {
    let output = shell(&limits(), "echo one; echo two >&2; echo three; exit 3");
    assert_eq!(output.output, "one\ntwo\nthree\n");
    assert_eq!((output.exit_code, output.signal), (Some(3), None));
    assert_eq!((output.bytes_total, output.truncated, output.lossy), (14, false, false));
    assert_eq!((output.timed_out, output.processes_ended, output.processes_left), (false, 0, 0));
    assert!(!output.succeeded());
    assert_eq!(output.render_text(), "one\ntwo\nthree\n[exit code 3]\n");
}

#[test]
fn a_signal_that_ends_a_command_is_reported() {
    let output = shell(&limits(), "kill -9 $$");
    assert_eq!((output.exit_code, output.signal), (None, Some(9)));
    assert_eq!(output.processes_ended, 0);
}

#[test]
fn a_command_runs_in_the_workspace_and_its_paths_become_relative() {
    let root = workspace();
    let line = r#"pwd; echo "$PWD/src/a.rs:7"; echo "$PWD-else"; ls / | head -n 0"#;
    let output = run_command(root.path(), &limits(), line).unwrap();
    let whole = root.path().canonicalize().unwrap();
    assert_eq!(output.output, format!(".\nsrc/a.rs:7\n{}-else\n", whole.display()));
}

#[test]
fn the_path_of_a_link_to_the_workspace_becomes_relative_too() {
    let root = workspace();
    std::fs::create_dir(root.path().join("there")).unwrap();
    std::os::unix::fs::symlink("there", root.path().join("here")).unwrap();
    let given = root.path().join("here");
    let line = format!("echo {}/a; pwd", given.display());
    assert_eq!(run_command(&given, &limits(), &line).unwrap().output, "a\n.\n");
}

#[test]
fn a_command_that_reads_input_gets_none() {
    let output = shell(&limits(), "read line; echo \"<$line>\"; cat; tty; cat < /dev/tty");
    assert!(output.output.starts_with("<>\nnot a tty\n"), "{}", output.output);
    assert_eq!(output.exit_code, Some(1));
}

#[test]
fn a_command_that_sleeps_too_long_is_ended() {
    let output = shell(&ShellLimits { timeout_ms: 200, ..limits() }, "echo begun; sleep 1000");
    assert!(output.timed_out && !output.succeeded());
    assert_eq!((output.output.as_str(), output.exit_code), ("begun\n", None));
    assert!(output.render_text().contains("timed out"));
}

#[test]
fn a_terminated_command_can_still_clean_up() {
    let line = "trap 'echo goodbye; exit 7' TERM; echo begun; while :; do sleep 0.01; done";
    let limits = ShellLimits { timeout_ms: 300, grace_ms: 30_000, ..limits() };
    let output = shell(&limits, line);
    assert!(output.timed_out);
    assert!(output.output.ends_with("goodbye\n"), "{}", output.output);
    assert_eq!(output.exit_code, Some(7));
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    let root = workspace();
    let line = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.05; done";
    let limits = ShellLimits { timeout_ms: 300, grace_ms: 50, ..limits() };
    let output = run_command(root.path(), &limits, line).unwrap();
    assert!(output.timed_out);
    assert_eq!((output.exit_code, output.signal, output.processes_left), (None, Some(9), 0));
    assert!(is_gone(&read_pid(root.path(), "pid")));
}

#[test]
fn a_background_process_is_ended_and_delays_nothing() {
    let root = workspace();
    let output =
        run_command(root.path(), &limits(), "sleep 1000 & echo $! > pid; echo done").unwrap();
    assert_eq!((output.output.as_str(), output.exit_code), ("done\n", Some(0)));
    assert_eq!(output.processes_ended, 1);
    assert!(is_gone(&read_pid(root.path(), "pid")));
}

#[test]
fn detached_processes_are_ended() {
    let root = workspace();
    let detach = [
        "(setsid nohup sh -c 'echo $$ > one; exec sleep 1000' > /dev/null 2>&1 &)",
        "(env -i setsid sh -c '(setsid sh -c \"echo \\$\\$ > two; sleep 1000\" &)' &)",
        "(sh -c 'trap \"\" TERM HUP; echo $$ > three; while :; do sleep 0.05; done' &)",
        "until [ -s one ] && [ -s two ] && [ -s three ]; do sleep 0.01; done",
    ];
    let output = run_command(root.path(), &limits(), &detach.join("\n")).unwrap();
    assert_eq!(output.exit_code, Some(0), "{}", output.output);
    assert!(output.processes_ended >= 3, "{}", output.processes_ended);
    assert_eq!(output.processes_left, 0);
    for file in ["one", "two", "three"] {
        assert!(is_gone(&read_pid(root.path(), file)), "{file}");
    }
}

#[test]
fn a_chain_of_forks_is_ended() {
    let root = workspace();
    // Each process starts the next one and exits, so that none lives long.
    std::fs::write(root.path().join("next"), "echo $$ > last; setsid sh ./next &\n").unwrap();
    let line = "sh ./next; until [ -s last ]; do sleep 0.01; done";
    let output = run_command(root.path(), &limits(), line).unwrap();
    assert_eq!((output.exit_code, output.processes_left), (Some(0), 0), "{}", output.output);
    let last = std::fs::read_to_string(root.path().join("last")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(std::fs::read_to_string(root.path().join("last")).unwrap(), last);
}

#[test]
fn the_middle_of_a_gigabyte_of_output_is_dropped() {
    let root = workspace();
    let line = "echo first; head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo last";
    let limits = ShellLimits { printed_bytes_max: 2 << 30, ..limits() };
    let output = run_command(root.path(), &limits, line).unwrap();
    assert_eq!((output.exit_code, output.truncated), (Some(0), true));
    assert_eq!(output.bytes_total, (1 << 30) + 12);
    assert!(output.output.len() <= limits.output_bytes_max + 100);
    assert!(output.output.starts_with("first\nxxx"));
    assert!(output.output.ends_with("xxx\nlast\n"));
    assert!(output.output.contains(" of 1073741836 bytes are not shown]\n"));
}

#[test]
fn a_command_that_prints_without_end_is_ended_at_the_limit() {
    let output = shell(&ShellLimits { printed_bytes_max: 1 << 20, ..limits() }, "yes");
    assert!(output.printed_too_much && !output.timed_out && !output.succeeded());
    assert_eq!(output.exit_code, None);
    assert!(output.bytes_total > 1 << 20);
    assert!(output.render_text().contains("printed too much"));
}

#[test]
fn a_cancelled_command_leaves_no_process_behind() {
    let root = workspace();
    let began = root.path().join("began");
    let cancel = CancelSignal::when(move || began.exists());
    let limits = ShellLimits { cancel, ..limits() };
    let line = "setsid sleep 300 & touch began; sleep 300; touch late";
    let output = run_command(root.path(), &limits, line).unwrap();
    assert!(output.cancelled && !output.printed_too_much && !output.succeeded(), "{output:?}");
    assert_eq!(output.processes_left, 0);
    assert!(!root.path().join("late").exists());
}

#[test]
fn output_that_is_not_text_is_marked() {
    let output = shell(&limits(), "printf 'a\\377\\376\\000b\\n'; head -c 4096 /dev/urandom");
    assert!(output.lossy);
    assert!(output.output.starts_with("a\u{fffd}b\n"));
    assert_eq!(output.bytes_total, 6 + 4096);
}

#[test]
fn secret_variables_are_removed_and_prompts_are_disabled() {
    // The supervisor starts with the environment of this process and additional secrets.
    let root = workspace();
    let supervisor = root.path().join("supervisor");
    let child = env!("CARGO_BIN_EXE_jackline-shell-child");
    let script = format!(
        "#!/bin/sh\nexport DEPLOY_TOKEN=hidden PASSED_KEY=wanted MONKEY=banana\nexec '{child}' \"$@\"\n"
    );
    std::fs::write(&supervisor, script).unwrap();
    std::fs::set_permissions(&supervisor, Permissions::from_mode(0o700)).unwrap();
    let limits = ShellLimits {
        supervisor: Some(supervisor),
        environment: vec!["PASSED_KEY".to_owned()],
        ..limits()
    };
    let line =
        "echo \"[$DEPLOY_TOKEN] $PASSED_KEY $MONKEY\"; env | grep -c hidden; echo \"$TERM $PAGER\"";
    let output = run_command(root.path(), &limits, line).unwrap();
    assert_eq!(output.output, "[] wanted banana\n0\ndumb cat\n");
}

#[test]
fn a_truncated_or_failed_output_is_stored_completely() {
    let limits_with_sink = |stored: &std::sync::Arc<std::sync::Mutex<Vec<String>>>| {
        let stored = std::sync::Arc::clone(stored);
        let keep = ArtifactSink::storing_with(move |text| {
            stored.lock().unwrap().push(text.to_owned());
            let bytes = text.len() as u64;
            Ok(Artifact { file: "/stored/1.txt".to_owned(), cursor: "1-0".to_owned(), bytes })
        });
        ShellLimits { artifact_sink: keep, output_bytes_max: 100, ..limits() }
    };
    let stored = std::sync::Arc::default();
    let limits = limits_with_sink(&stored);
    let output = shell(&limits, "seq 1000");
    assert!(output.truncated);
    let whole = (1..=1000).fold(String::new(), |text, line| format!("{text}{line}\n"));
    assert_eq!(*stored.lock().unwrap(), [whole]);
    assert_eq!(output.artifact.as_ref().unwrap().bytes, 3893);
    assert!(output.render_text().contains("`jackline_page` {\"cursor\":\"1-0\"}"));
    let failed = shell(&limits, "pwd; exit 3");
    assert_eq!(
        stored.lock().unwrap().last().unwrap(),
        ".\n",
        "paths in the stored output are relative too"
    );
    assert!(failed.artifact.is_some() && !failed.render_text().contains("jackline_page"));
    for fine in ["seq 3", "exit 3"] {
        assert_eq!(shell(&limits, fine).artifact, None, "{fine}");
    }
    let full = ShellLimits {
        artifact_sink: ArtifactSink::storing_with(|_| Err("no room".to_owned())),
        ..limits
    };
    assert!(shell(&full, "seq 1000").render_text().contains("could not be stored: no room"));
}

#[test]
fn a_huge_output_is_stored_up_to_the_limit() {
    let keep = ArtifactSink::storing_with(|text| {
        let (file, cursor) = (String::new(), String::new());
        Ok(Artifact { file, cursor, bytes: text.len() as u64 })
    });
    let output = shell(
        &ShellLimits { artifact_sink: keep, ..limits() },
        "head -c 40000000 /dev/zero | tr '\\0' x",
    );
    assert_eq!((output.bytes_total, output.artifact.unwrap().bytes), (40_000_000, 16 << 20));
}

/// The reason to skip a test of confinement, if this kernel does not support it. If the kernel
/// lists Landlock, confinement must work.
fn unconfined_reason(output: &ShellOutput) -> Option<String> {
    let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    let listed = modules.split(',').any(|module| module.trim() == "landlock");
    assert!(
        !listed || output.confinement != Confinement::None,
        "Landlock is available but not used"
    );
    let full = output.confinement == Confinement::Full;
    (!full).then(|| format!("SKIPPED: this kernel confines {:?}", output.confinement))
}

#[test]
fn a_confined_command_can_write_only_to_the_workspace() {
    let (root, outside, also) =
        (directory_outside_tmp(), directory_outside_tmp(), directory_outside_tmp());
    let line = format!(
        "echo in > inside; echo tmp > /dev/null; t=$(mktemp) && rm \"$t\"; cat {0}/there
         echo out > {0}/new; echo out > {0}/there; rm {0}/there; mkdir {0}/dir
         ln inside {0}/link; mv inside {0}/moved; echo ok > {1}/new; exit 0",
        outside.path().display(),
        also.path().display(),
    );
    std::fs::write(outside.path().join("there"), "readable\n").unwrap();
    let limits = ShellLimits { writable: vec![also.path().into()], ..limits() };
    let output = run_command(root.path(), &limits, &line).unwrap();
    if let Some(why) = unconfined_reason(&output) {
        println!("{why}");
        return;
    }
    assert!(output.output.starts_with("readable\n"), "{}", output.output);
    assert_eq!(output.output.matches("Permission denied").count(), 6, "{}", output.output);
    let names = |root: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(root).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(outside.path()), ["there"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("there")).unwrap(), "readable\n");
    assert_eq!(
        (names(root.path()), names(also.path())),
        (vec!["inside".into()], vec!["new".into()])
    );
}

#[test]
fn a_confined_command_cannot_kill_its_supervisor() {
    let output = shell(&limits(), "kill -9 $PPID; echo still here");
    if let Some(why) = unconfined_reason(&output) {
        println!("{why}");
        return;
    }
    assert!(output.output.ends_with("still here\n"), "{}", output.output);
}

#[test]
fn the_session_of_a_killed_supervisor_is_killed() {
    let root = workspace();
    let line = "sleep 1000 & echo $! > pid; sync; kill -9 $PPID; sleep 1000";
    let limits = ShellLimits { confine: ConfineMode::Off, ..limits() };
    let error = run_command(root.path(), &limits, line).unwrap_err();
    assert!(matches!(error, ShellError::Lost), "{error}");
    assert_eq!(error.code(), "supervisor_lost");
    assert!(is_gone(&read_pid(root.path(), "pid")));
}

#[test]
fn parallel_commands_do_not_affect_each_other() {
    let all: Vec<ShellOutput> = std::thread::scope(|scope| {
        let runs = (0..50).map(|run| {
            let line = format!(
                "(setsid sh -c 'sleep 0.3; exit 5' &); sleep 1000 & (exit {run}); echo {run}:$?"
            );
            scope.spawn(move || shell(&limits(), &line))
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (run, output) in all.iter().enumerate() {
        assert_eq!(
            (output.output.as_str(), output.exit_code),
            (&*format!("{run}:{run}\n"), Some(0))
        );
        assert!(output.processes_ended >= 1, "{output:?}");
        assert_eq!(output.processes_left, 0);
    }
}

#[test]
fn a_command_that_cannot_run_is_an_error_with_code_and_guidance() {
    let root = workspace();
    let gone = root.path().join("gone");
    let long = "x".repeat(200_000);
    let none = ShellLimits { shell: "/bin/no-such-shell".into(), ..limits() };
    let broken = ShellLimits { shell: root.path().join("broken"), ..limits() };
    std::fs::write(&broken.shell, "").unwrap();
    let stranger = ShellLimits { supervisor: Some("/bin/echo".into()), ..limits() };
    let silent = ShellLimits { supervisor: Some("/bin/true".into()), ..limits() };
    let absent = ShellLimits { supervisor: Some("/bin/no-such-program".into()), ..limits() };
    for (root, limits, command, code) in [
        (root.path(), &limits(), " \n", "empty_command"),
        (root.path(), &limits(), "a\0b", "invalid_command"),
        (root.path(), &limits(), long.as_str(), "command_too_long"),
        (gone.as_path(), &limits(), "true", "workspace_missing"),
        (root.path(), &none, "true", "shell_missing"),
        (root.path(), &broken, "true", "shell_not_started"),
        (root.path(), &stranger, "true", "supervisor_broken"),
        (root.path(), &silent, "true", "supervisor_broken"),
        (root.path(), &absent, "true", "supervisor_broken"),
    ] {
        let error = run_command(root, limits, command).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.guidance().is_empty());
    }
}

#[test]
fn the_longest_command_is_run() {
    let command = format!("echo {}", "x".repeat(jackline_workspace::shell::COMMAND_BYTES_MAX - 5));
    let output = shell(&limits(), &command);
    assert_eq!((output.exit_code, output.truncated), (Some(0), true));
}
