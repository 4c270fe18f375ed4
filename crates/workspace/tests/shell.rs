//! Commands that misbehave, each with the real supervisor above it.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jackline_workspace::shell::{
    Artifact, Cancel, Confine, Confinement, Keep, ShellError, ShellLimits, ShellOutput, run,
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

/// A directory where nobody may write who is confined: beneath `/tmp` everybody may.
fn elsewhere() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn shell(limits: &ShellLimits, command: &str) -> ShellOutput {
    run(workspace().path(), limits, command).unwrap()
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// The number that a command left in a file.
fn number(root: &Path, file: &str) -> String {
    let text = std::fs::read_to_string(root.join(file)).unwrap();
    assert!(text.trim().parse::<u32>().is_ok(), "{text}");
    text
}

#[test]
fn both_streams_come_in_order_with_the_exit_code() {
    let output = shell(&limits(), "echo one; echo two >&2; echo three; exit 3");
    assert_eq!(output.output, "one\ntwo\nthree\n");
    assert_eq!((output.exit_code, output.signal), (Some(3), None));
    assert_eq!((output.bytes_total, output.truncated, output.lossy), (14, false, false));
    assert_eq!((output.timed_out, output.processes_ended, output.processes_left), (false, 0, 0));
    assert!(!output.succeeded());
    assert_eq!(output.render_text(), "one\ntwo\nthree\n[exit code 3]\n");
}

#[test]
fn a_command_that_a_signal_ends_says_which() {
    let output = shell(&limits(), "kill -9 $$");
    assert_eq!((output.exit_code, output.signal), (None, Some(9)));
    assert_eq!(output.processes_ended, 0);
}

#[test]
fn it_works_in_the_workspace_and_names_it_by_no_absolute_path() {
    let root = workspace();
    let line = r#"pwd; echo "$PWD/src/a.rs:7"; echo "$PWD-else"; ls / | head -n 0"#;
    let output = run(root.path(), &limits(), line).unwrap();
    let whole = root.path().canonicalize().unwrap();
    assert_eq!(output.output, format!(".\nsrc/a.rs:7\n{}-else\n", whole.display()));
}

#[test]
fn a_name_that_leads_to_the_workspace_is_shortened_too() {
    let root = workspace();
    std::fs::create_dir(root.path().join("there")).unwrap();
    std::os::unix::fs::symlink("there", root.path().join("here")).unwrap();
    let given = root.path().join("here");
    let line = format!("echo {}/a; pwd", given.display());
    assert_eq!(run(&given, &limits(), &line).unwrap().output, "a\n.\n");
}

#[test]
fn what_waits_for_input_gets_none() {
    let output = shell(&limits(), "read line; echo \"<$line>\"; cat; tty; cat < /dev/tty");
    assert!(output.output.starts_with("<>\nnot a tty\n"), "{}", output.output);
    assert_eq!(output.exit_code, Some(1));
}

#[test]
fn one_that_sleeps_too_long_is_ended() {
    let output = shell(&ShellLimits { timeout_ms: 200, ..limits() }, "echo begun; sleep 1000");
    assert!(output.timed_out && !output.succeeded());
    assert_eq!((output.output.as_str(), output.exit_code), ("begun\n", None));
    assert!(output.render_text().contains("ran out of time"));
}

#[test]
fn one_that_is_asked_may_still_say_goodbye() {
    let line = "trap 'echo goodbye; exit 7' TERM; echo begun; while :; do sleep 0.01; done";
    let limits = ShellLimits { timeout_ms: 300, grace_ms: 30_000, ..limits() };
    let output = shell(&limits, line);
    assert!(output.timed_out);
    assert!(output.output.ends_with("goodbye\n"), "{}", output.output);
    assert_eq!(output.exit_code, Some(7));
}

#[test]
fn one_that_does_not_listen_is_ended_all_the_same() {
    let root = workspace();
    let line = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.05; done";
    let limits = ShellLimits { timeout_ms: 300, grace_ms: 50, ..limits() };
    let output = run(root.path(), &limits, line).unwrap();
    assert!(output.timed_out);
    assert_eq!((output.exit_code, output.signal, output.processes_left), (None, Some(9), 0));
    assert!(is_gone(&number(root.path(), "pid")));
}

#[test]
fn what_it_leaves_in_the_background_is_ended_and_holds_nobody_up() {
    let root = workspace();
    let output = run(root.path(), &limits(), "sleep 1000 & echo $! > pid; echo done").unwrap();
    assert_eq!((output.output.as_str(), output.exit_code), ("done\n", Some(0)));
    assert_eq!(output.processes_ended, 1);
    assert!(is_gone(&number(root.path(), "pid")));
}

#[test]
fn what_forks_and_detaches_is_ended() {
    let root = workspace();
    let detach = [
        "(setsid nohup sh -c 'echo $$ > one; exec sleep 1000' > /dev/null 2>&1 &)",
        "(env -i setsid sh -c '(setsid sh -c \"echo \\$\\$ > two; sleep 1000\" &)' &)",
        "(sh -c 'trap \"\" TERM HUP; echo $$ > three; while :; do sleep 0.05; done' &)",
        "until [ -s one ] && [ -s two ] && [ -s three ]; do sleep 0.01; done",
    ];
    let output = run(root.path(), &limits(), &detach.join("\n")).unwrap();
    assert_eq!(output.exit_code, Some(0), "{}", output.output);
    assert!(output.processes_ended >= 3, "{}", output.processes_ended);
    assert_eq!(output.processes_left, 0);
    for file in ["one", "two", "three"] {
        assert!(is_gone(&number(root.path(), file)), "{file}");
    }
}

#[test]
fn what_goes_on_forking_is_ended() {
    let root = workspace();
    // Each begets the next and goes, so that nobody is there for long.
    std::fs::write(root.path().join("next"), "echo $$ > last; setsid sh ./next &\n").unwrap();
    let line = "sh ./next; until [ -s last ]; do sleep 0.01; done";
    let output = run(root.path(), &limits(), line).unwrap();
    assert_eq!((output.exit_code, output.processes_left), (Some(0), 0), "{}", output.output);
    let last = std::fs::read_to_string(root.path().join("last")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(std::fs::read_to_string(root.path().join("last")).unwrap(), last);
}

#[test]
fn a_gigabyte_is_read_and_thrown_away() {
    let root = workspace();
    let line = "echo first; head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo last";
    let limits = ShellLimits { printed_bytes_max: 2 << 30, ..limits() };
    let output = run(root.path(), &limits, line).unwrap();
    assert_eq!((output.exit_code, output.truncated), (Some(0), true));
    assert_eq!(output.bytes_total, (1 << 30) + 12);
    assert!(output.output.len() <= limits.output_bytes_max + 100);
    assert!(output.output.starts_with("first\nxxx"));
    assert!(output.output.ends_with("xxx\nlast\n"));
    assert!(output.output.contains(" of 1073741836 bytes are not shown]\n"));
}

#[test]
fn what_prints_for_ever_is_ended_at_its_budget() {
    let output = shell(&ShellLimits { printed_bytes_max: 1 << 20, ..limits() }, "yes");
    assert!(output.printed_too_much && !output.timed_out && !output.succeeded());
    assert_eq!(output.exit_code, None);
    assert!(output.bytes_total > 1 << 20);
    assert!(output.render_text().contains("printed too much"));
}

#[test]
fn a_command_that_somebody_ends_leaves_nobody_behind() {
    let root = workspace();
    let began = root.path().join("began");
    let cancel = Cancel::when(move || began.exists());
    let limits = ShellLimits { cancel, ..limits() };
    let line = "setsid sleep 300 & touch began; sleep 300; touch late";
    let output = run(root.path(), &limits, line).unwrap();
    assert!(output.cancelled && !output.printed_too_much && !output.succeeded(), "{output:?}");
    assert_eq!(output.processes_left, 0);
    assert!(!root.path().join("late").exists());
}

#[test]
fn what_is_no_text_is_marked() {
    let output = shell(&limits(), "printf 'a\\377\\376\\000b\\n'; head -c 4096 /dev/urandom");
    assert!(output.lossy);
    assert!(output.output.starts_with("a\u{fffd}b\n"));
    assert_eq!(output.bytes_total, 6 + 4096);
}

#[test]
fn secrets_stay_behind_and_nobody_is_asked() {
    // The supervisor is started with what this process has, and with secrets.
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
    let output = run(root.path(), &limits, line).unwrap();
    assert_eq!(output.output, "[] wanted banana\n0\ndumb cat\n");
}

#[test]
fn what_is_not_shown_and_what_failed_is_kept_whole() {
    let keeping = |kept: &std::sync::Arc<std::sync::Mutex<Vec<String>>>| {
        let kept = std::sync::Arc::clone(kept);
        let keep = Keep::by(move |text| {
            kept.lock().unwrap().push(text.to_owned());
            let bytes = text.len() as u64;
            Ok(Artifact { file: "/kept/1.txt".to_owned(), cursor: "1-0".to_owned(), bytes })
        });
        ShellLimits { keep, output_bytes_max: 100, ..limits() }
    };
    let kept = std::sync::Arc::default();
    let limits = keeping(&kept);
    let output = shell(&limits, "seq 1000");
    assert!(output.truncated);
    let whole = (1..=1000).fold(String::new(), |text, line| format!("{text}{line}\n"));
    assert_eq!(*kept.lock().unwrap(), [whole]);
    assert_eq!(output.artifact.as_ref().unwrap().bytes, 3893);
    assert!(output.render_text().contains("`jackline_page` {\"cursor\":\"1-0\"}"));
    let failed = shell(&limits, "pwd; exit 3");
    assert_eq!(kept.lock().unwrap().last().unwrap(), ".\n", "paths are relative there, too");
    assert!(failed.artifact.is_some() && !failed.render_text().contains("jackline_page"));
    for fine in ["seq 3", "exit 3"] {
        assert_eq!(shell(&limits, fine).artifact, None, "{fine}");
    }
    let full = ShellLimits { keep: Keep::by(|_| Err("no room".to_owned())), ..limits };
    assert!(shell(&full, "seq 1000").render_text().contains("could not be kept: no room"));
}

#[test]
fn a_flood_is_kept_up_to_a_bound() {
    let keep = Keep::by(|text| {
        let (file, cursor) = (String::new(), String::new());
        Ok(Artifact { file, cursor, bytes: text.len() as u64 })
    });
    let output =
        shell(&ShellLimits { keep, ..limits() }, "head -c 40000000 /dev/zero | tr '\\0' x");
    assert_eq!((output.bytes_total, output.artifact.unwrap().bytes), (40_000_000, 16 << 20));
}

/// Why a test of what the kernel keeps commands from says nothing here, if it does not. Where
/// the kernel lists Landlock it has to hold.
fn unconfined(output: &ShellOutput) -> Option<String> {
    let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    let listed = modules.split(',').any(|module| module.trim() == "landlock");
    assert!(!listed || output.confinement != Confinement::None, "Landlock is there, and unused");
    let full = output.confinement == Confinement::Full;
    (!full).then(|| format!("SKIPPED: this kernel confines {:?}", output.confinement))
}

#[test]
fn writing_is_for_the_workspace_alone_where_the_kernel_can() {
    let (root, outside, also) = (elsewhere(), elsewhere(), elsewhere());
    let line = format!(
        "echo in > inside; echo tmp > /dev/null; t=$(mktemp) && rm \"$t\"; cat {0}/there
         echo out > {0}/new; echo out > {0}/there; rm {0}/there; mkdir {0}/dir
         ln inside {0}/link; mv inside {0}/moved; echo ok > {1}/new; exit 0",
        outside.path().display(),
        also.path().display(),
    );
    std::fs::write(outside.path().join("there"), "readable\n").unwrap();
    let limits = ShellLimits { writable: vec![also.path().into()], ..limits() };
    let output = run(root.path(), &limits, &line).unwrap();
    if let Some(why) = unconfined(&output) {
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
fn its_supervisor_is_out_of_reach_where_the_kernel_can() {
    let output = shell(&limits(), "kill -9 $PPID; echo still here");
    if let Some(why) = unconfined(&output) {
        println!("{why}");
        return;
    }
    assert!(output.output.ends_with("still here\n"), "{}", output.output);
}

#[test]
fn a_supervisor_that_is_ended_takes_its_session_along() {
    let root = workspace();
    let line = "sleep 1000 & echo $! > pid; sync; kill -9 $PPID; sleep 1000";
    let limits = ShellLimits { confine: Confine::Off, ..limits() };
    let error = run(root.path(), &limits, line).unwrap_err();
    assert!(matches!(error, ShellError::Lost), "{error}");
    assert_eq!(error.code(), "supervisor_lost");
    assert!(is_gone(&number(root.path(), "pid")));
}

#[test]
fn runs_beside_each_other_do_not_touch_each_other() {
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
fn what_can_not_be_run_is_an_error_with_a_word_and_a_way_on() {
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
        let error = run(root, limits, command).unwrap_err();
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
