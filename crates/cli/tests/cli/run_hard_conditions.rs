//! Tests of `jackline run` under hard conditions: workers that do not end, that leave processes, or
//! that write to the state home; a deleted workspace, full disks, and clocks that jump.

use std::fs;

use jackline_host::clock::now;
use serde_json::json;

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, count_sleepers, create_control_file,
    ended_event, events_named, poll_until, session_id, stop_code, wait_for_line, wait_for_output,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A worker command that finishes the task.
const WRITE_REPORT: &str = "echo done > report.md";

fn has_started(world: &CliWorld) -> bool {
    world.workspace().join("started").exists()
}

#[test]
fn a_worker_that_ignores_termination_signals_is_killed() {
    let world = CliWorld::new("");
    let line = "trap '' TERM INT HUP; touch started; while :; do sleep 289; done";
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, line);
    let child = task.start(&[]);
    poll_until("the worker", || count_sleepers(289) > 0 && has_started(&world));
    create_control_file(&world, "STOP");
    let stopped = now().boot_ms;
    let run = wait_for_output(child);
    let ms = now().boot_ms - stopped;
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(count_sleepers(289), 0);
    assert!(ms < 5000, "{ms} ms");
    world.verify_and_replay(&session_id(&run));
}

/// Forks twice into new sessions, so the processes are no children of the worker.
fn detached_processes(seconds: u32) -> String {
    format!(
        "setsid sh -c 'setsid sleep {seconds} & sleep {seconds} & exit' & \
         (trap '' TERM; exec setsid sleep {seconds}) & touch started; "
    )
}

#[test]
fn processes_of_a_worker_end_with_it() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(
        &world,
        REPORT_COMPLETION,
        &(detached_processes(288) + WRITE_REPORT),
    );
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(count_sleepers(288), 0);
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_stop_ends_detached_processes_of_a_worker_too() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(
        &world,
        REPORT_COMPLETION,
        &(detached_processes(287) + "wait; sleep 287"),
    );
    let child = task.start(&[]);
    poll_until("the detached processes", || count_sleepers(287) >= 3 && has_started(&world));
    create_control_file(&world, "STOP");
    let run = wait_for_output(child);
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(count_sleepers(287), 0);
    world.verify_and_replay(&session_id(&run));
}

/// Runs a worker that first changes files in its session directory and then finishes the task.
fn run_with_changed_session(line: &str) -> CliOutput {
    let world = CliWorld::new("");
    let home = world.home().display().to_string();
    let line = format!("(cd {home}/sessions/run-*/ && {line}); {WRITE_REPORT}");
    TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line).run(&[])
}

#[test]
fn a_worker_that_changes_the_journal_is_detected_and_nothing_counts_as_done() {
    // Changes one byte in place: the length and the last record stay the same.
    let flip = "at=$(grep -abo 'write report' journal.jsonl | head -1 | cut -d: -f1) && \
                printf W | dd of=journal.jsonl bs=1 seek=$at conv=notrunc";
    for (line, error) in [
        ("echo '{}' >> journal.jsonl", "was tampered with"),
        (": > journal.jsonl", "was truncated"),
        ("truncate -s -20 journal.jsonl", "was truncated"),
        ("rm journal.jsonl", "was removed"),
        ("sed -i 's/write report/write other/' journal.jsonl", "was removed"),
        (flip, "was changed ("),
    ] {
        let run = run_with_changed_session(line);
        assert_eq!(run.code, Some(3), "{line}: {run:?}");
        assert!(run.stderr.contains(error), "{line}: {run:?}");
        assert!(run.stderr.contains("jackline verify") || error == "was removed", "{run:?}");
        assert!(!run.stdout.contains("finished"), "{line}: {run:?}");
    }
}

/// If the run continued without the unreadable records, their budget could be used again.
#[test]
fn a_run_with_an_unreadable_journal_is_not_resumed() {
    let world = CliWorld::new("");
    create_control_file(&world, "PAUSE");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let id = session_id(&task.run(&[]));
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    let bytes = fs::read(world.journal_path(&id)).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let journal = fs::OpenOptions::new().write(true).open(world.journal_path(&id)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&journal, b"#", second as u64).unwrap();
    let run = task.resume(&[&id]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("was changed ("), "{run:?}");
    assert!(run.stderr.contains(&format!("jackline verify {id}")), "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
}

#[test]
fn a_worker_cannot_approve_or_trust_unnoticed() {
    let world = CliWorld::new("");
    let home = world.home().display().to_string();
    let agent = format!("{:064}", 1);
    let approval = json!({
        "checksum": agent, "definition": "t/other", "workflow": null, "session": "s",
        "at": "2026-01-01T00:00:00Z", "by": "dana", "why": null,
    });
    let line = format!("[ -e report.md ] || echo '{approval}' >> {home}/approvals; {WRITE_REPORT}");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        stop_code(&run).contains("approvals or trust grants of people changed while `sh` worked"),
        "{run:?}"
    );
    let id = session_id(&run);
    assert_eq!(world.jackline(&["resume", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn a_worker_cannot_run_commands_of_a_person() {
    let world = CliWorld::new("");
    let line = format!(
        "{JACKLINE} off --for 1h --why x 2>> output; setsid {JACKLINE} identity approve --by x 2>> output; {WRITE_REPORT}"
    );
    let run = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let output = fs::read_to_string(world.workspace().join("output")).unwrap();
    assert_eq!(output.matches("only a person may").count(), 2, "{output}");
    assert!(!world.home().join("approvals").exists());
}

#[test]
fn a_worker_that_is_not_approved_is_not_started() {
    let world = CliWorld::new("");
    let line = format!("echo x >> starts; {WRITE_REPORT}");
    let approved =
        session_id(&TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line).run(&[]));
    let args = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&args).code, Some(0));
    fs::remove_file(world.workspace().join("report.md")).unwrap();
    let other = format!("{REPORT_COMPLETION}limits: {{ steps: 99 }}\n");
    let task = TaskDirectory::with_worker(&world, &other, &line);
    let run = task.run(&[]);
    assert_eq!((run.code, stop_code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
    let asides = events_named(&run, "aside");
    assert!(asides[0]["text"].as_str().unwrap().contains("identity approve"), "{asides:?}");
    assert_eq!(fs::read_to_string(world.workspace().join("starts")).unwrap(), "x\n");
    world.verify_and_replay(&session_id(&run));
}

/// Checks the end of a run whose workspace was deleted.
fn check_lost_workspace(world: &CliWorld, run: &CliOutput) {
    assert_eq!((run.code, stop_code(run)), (Some(1), "SYSTEM_ERROR{workspace}".into()), "{run:?}");
    let asides = events_named(run, "aside");
    let texts = asides.iter().filter_map(|it| it["text"].as_str());
    let lost = texts.filter(|it| it.contains("was deleted while the run was active"));
    assert_eq!(lost.count(), 1, "{run:?}");
    // The journal checks need an existing directory.
    fs::create_dir_all(world.workspace()).unwrap();
    world.verify_and_replay(&session_id(run));
}

#[test]
fn a_deleted_workspace_ends_its_run() {
    let world = CliWorld::new("");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, "rm -rf \"$PWD\"; sleep 286");
    check_lost_workspace(&world, &task.run(&[]));
    assert_eq!(count_sleepers(286), 0);
}

#[test]
fn a_deleted_workspace_ends_a_running_command() {
    let world = CliWorld::new("");
    let call = "{ tool: shell, args: { command: 'touch started; sleep 285' } }";
    let script = format!("steps:\n  - calls: [{call}]\nrepeat: true\n");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
    let child = task.start(&[]);
    poll_until("the command", || has_started(&world));
    fs::remove_dir_all(world.workspace()).unwrap();
    let run = wait_for_output(child);
    check_lost_workspace(&world, &run);
    assert_eq!(count_sleepers(285), 0);
}

#[test]
fn a_deleted_workspace_ends_the_wait_for_a_person() {
    let world = CliWorld::new("");
    create_control_file(&world, "PAUSE");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let mut child = task.start(&[]);
    let first_output = wait_for_line(&mut child, "\"for\":\"person\"");
    fs::remove_dir_all(world.workspace()).unwrap();
    let run = wait_for_output(child);
    check_lost_workspace(&world, &CliOutput { stdout: first_output + &run.stdout, ..run });
}

/// Runs a script in a namespace in which it can mount file systems.
fn run_in_mount_namespace(world: &CliWorld, script: &str) -> CliOutput {
    let options = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
    let unshare = |script: &str| {
        let mut command = world.command("/usr/bin/unshare");
        command.args(options).args(["--mount-proc", "sh", "-ec", script]);
        run_with_input(&mut command, b"")
    };
    let is_supported = unshare("mount -t tmpfs tmpfs /mnt").code == Some(0);
    assert!(is_supported, "this test needs user namespaces that can mount a file system");
    unshare(script)
}

/// An output of which only the standard output is known.
fn output_with_stdout(stdout: &str) -> CliOutput {
    CliOutput { code: None, stdout: stdout.to_owned(), stderr: String::new() }
}

#[test]
fn a_full_disk_at_a_checkpoint_leaves_no_partial_file_and_is_reported() {
    let world = CliWorld::new("");
    let fill = "{ tool: shell, args: { command: 'cat /dev/zero > fill; ls' } }";
    let rest = REPORT_SCRIPT.trim_start_matches("steps:\n");
    let script = format!("steps:\n  - calls: [{fill}]\n  - text: Done.\n{rest}");
    let definition = format!("{REPORT_COMPLETION}limits: {{ iterations: 1 }}\n");
    let task = TaskDirectory::new(&world, &definition, &[("main", &script)]);
    let (work, root) = (world.workspace(), world.root());
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs {work}; cd {work}; touch jackline.yaml
         {JACKLINE} run --json --no-wait {task} > {root}/first || true
         find . -type f | sort > {root}/files; ls {home}/sessions > {root}/id
         rm fill; {JACKLINE} status --json > {root}/status
         {JACKLINE} ack $(cat {root}/id) > /dev/null
         {JACKLINE} run --json --no-wait --resume $(cat {root}/id) > {root}/second",
        work = work.display(),
        root = root.display(),
        home = world.home().display(),
        task = task.directory.display(),
    );
    let output = run_in_mount_namespace(&world, &script);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let first = output_with_stdout(&read("first"));
    assert!(stop_code(&first).contains("1 of 1 iterations"), "{first:?}");
    let asides: Vec<String> =
        events_named(&first, "aside").iter().map(|it| it["text"].to_string()).collect();
    let errors =
        asides.iter().filter(|it| it.contains("can't be written") && it.contains("CHECKPOINT.md"));
    assert_eq!(errors.count(), 1, "{asides:?}");
    // Not even a partial file remains.
    assert_eq!(read("files"), "./fill\n./jackline.yaml\n");
    assert_eq!(stop_code(&output_with_stdout(&read("second"))), "OBJECTIVE_ACHIEVED");
    world.verify_and_replay(&session_id(&first));
}

#[test]
fn a_full_state_home_stops_the_run_and_with_space_it_continues() {
    let world = CliWorld::new("");
    let call = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: {} }} }}]\n",
            "x".repeat(3000)
        )
    };
    let calls: String = (0..60).map(call).collect();
    let script = format!("steps:\n{calls}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
    let root = world.root();
    let script = format!(
        "mkdir -p {home}; mount -t tmpfs -o size=300k tmpfs {home}
         {JACKLINE} run --json --no-wait {task} > {root}/first 2> {root}/why || echo $? > {root}/code
         {JACKLINE} verify --all > {root}/verified
         mount -o remount,size=20m {home}
         {JACKLINE} run --json --no-wait --resume > {root}/second
         {JACKLINE} verify --all >> {root}/verified; {JACKLINE} replay --all >> {root}/verified",
        root = root.display(),
        home = world.home().display(),
        task = task.directory.display(),
    );
    let output = run_in_mount_namespace(&world, &script);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let why = read("why");
    assert!(why.contains("No space left") && why.contains("jackline run --resume"), "{why}");
    assert_eq!(read("code"), "3\n");
    assert_eq!(stop_code(&output_with_stdout(&read("second"))), "OBJECTIVE_ACHIEVED");
    let verified = read("verified");
    assert_eq!(
        (verified.matches(": clean, ").count(), verified.matches(": proven, ").count()),
        (2, 1)
    );
}

/// Runs `jackline run` in a time namespace whose boot clock is ahead.
fn run_with_clock_ahead(world: &CliWorld, seconds: u32, args: &[&str]) -> CliOutput {
    let unshare = |command_line: &[&str]| {
        let mut command = world.command("/usr/bin/unshare");
        command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount-proc", "--time", "--boottime", &seconds.to_string()]);
        run_with_input(command.args(command_line), b"")
    };
    let is_supported = unshare(&["true"]).code == Some(0);
    assert!(is_supported, "this test needs user namespaces with their own clock");
    unshare(&[&[JACKLINE, "run", "--json", "--no-wait"], args].concat())
}

const DAY_S: u32 = 24 * 60 * 60;

/// The model script proposes a stop without any work, which reaches the iteration limit.
const HOUR_AND_CAP: &str =
    "completion: { files: [report.md] }\nlimits: { iterations: 1, wall_seconds: 3600 }\n";

fn task_at_iteration_limit(world: &CliWorld) -> TaskDirectory<'_> {
    let script = REPORT_SCRIPT.replace("steps:\n", "steps:\n  - text: Done!\n");
    TaskDirectory::new(world, HOUR_AND_CAP, &[("main", &script)])
}

#[test]
fn a_clock_that_jumped_back_neither_adds_nor_removes_time() {
    let world = CliWorld::new("");
    let task = task_at_iteration_limit(&world);
    let run = run_with_clock_ahead(&world, DAY_S, &[task.directory.to_str().unwrap()]);
    let id = session_id(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0), "{run:?}");
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(ended_event(&run)["evidence"]["elapsed_ms"].as_u64().unwrap() < 600_000, "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn a_clock_that_jumped_ahead_uses_up_the_time_limit() {
    let world = CliWorld::new("");
    let task = task_at_iteration_limit(&world);
    let run = task.run(&[]);
    let id = session_id(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0), "{run:?}");
    let run = run_with_clock_ahead(&world, DAY_S, &["--resume", &id]);
    assert_eq!(stop_code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
    world.verify_and_replay(&id);
}

#[test]
fn the_time_limit_of_a_run_ends_its_wait_for_a_person() {
    let world = CliWorld::new("");
    create_control_file(&world, "PAUSE");
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}limits: {{ wall_seconds: 1 }}\n"),
        &[("main", REPORT_SCRIPT)],
    );
    let run = wait_for_output(task.start(&[]));
    let ended = ended_event(&run);
    // The run was waiting for a person, so the stop code names the person.
    assert_eq!(stop_code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(ended["evidence"]["elapsed_ms"].as_u64().unwrap() >= 1000, "{run:?}");
    assert!(!world.workspace().join("report.md").exists());
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn an_engine_without_budget_is_not_asked_again_after_a_kill() {
    let world = CliWorld::new("");
    let slow_call = "{ tool: shell, args: { command: 'touch started; sleep 284' } }";
    let first = format!(
        "steps:\n  - calls: [{{ tool: list_dir, args: {{}} }}]\n  - calls: [{slow_call}]\n  - text: Done.\nrepeat: true\n"
    );
    let models = ["first", "second"]
        .map(|name| format!("provider: scripted, model: {name}, window: 100000"));
    let task = TaskDirectory::new(
        &world,
        REPORT_COMPLETION,
        &[("first", &first), ("second", REPORT_SCRIPT)],
    );
    let definition = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&definition).unwrap();
    let text = text.replace(&models[0], &format!("{}, budget: 2", models[0]));
    fs::write(definition, text).unwrap();
    let mut child = task.start(&[]);
    poll_until("the command", || has_started(&world));
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(284) == 0);
    let run = task.resume(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let models_asked: Vec<_> =
        events_named(&run, "asking").iter().map(|it| it["model"].to_string()).collect();
    assert_eq!(models_asked, ["\"scripted/second\""; 2], "{run:?}");
    assert_eq!(events_named(&run, "changed")[0]["reason"], "cost");
    world.verify_and_replay(&session_id(&run));
}
