//! `jackline run` where everything around it is against it: workers that don't end, that
//! leave others behind, that write to the state home; a workspace that is gone, disks that
//! are full, clocks that jump.

use std::fs;

use jackline_host::clock::now;
use serde_json::json;

use crate::run_support::{
    REPORT, Task, WORKS, code, end_of, ended, mark, session, sleepers, told, until, wait_for_line,
};
use crate::support::{JACKLINE, Run, World, feed};

/// Does what is asked for, as a worker.
const DOES_IT: &str = "echo done > report.md";

fn began(world: &World) -> bool {
    world.work().join("began").exists()
}

#[test]
fn a_worker_that_ignores_the_word_to_end_is_ended_all_the_same() {
    let world = World::new("");
    let line = "trap '' TERM INT HUP; touch began; while :; do sleep 289; done";
    let task = Task::worker(&world, REPORT, line);
    let child = task.start(&[]);
    until("the worker", || sleepers(289) > 0 && began(&world));
    mark(&world, "STOP");
    let stopped = now().boot_ms;
    let run = end_of(child);
    let ms = now().boot_ms - stopped;
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(sleepers(289), 0);
    assert!(ms < 5000, "{ms} ms");
    world.prove(&session(&run));
}

/// Forks twice, in sessions of their own: what is left is nobody's child.
fn leaves(seconds: u32) -> String {
    format!(
        "setsid sh -c 'setsid sleep {seconds} & sleep {seconds} & exit' & \
         (trap '' TERM; exec setsid sleep {seconds}) & touch began; "
    )
}

#[test]
fn what_a_worker_leaves_behind_ends_with_it() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, &(leaves(288) + DOES_IT));
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(sleepers(288), 0);
    world.prove(&session(&run));
}

#[test]
fn a_stop_leaves_nobody_of_a_worker_that_has_cut_itself_loose() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, &(leaves(287) + "wait; sleep 287"));
    let child = task.start(&[]);
    until("those that are left", || sleepers(287) >= 3 && began(&world));
    mark(&world, "STOP");
    let run = end_of(child);
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert_eq!(sleepers(287), 0);
    world.prove(&session(&run));
}

/// Runs a worker that does something in the directory of its session, and then its work.
fn meddles(line: &str) -> Run {
    let world = World::new("");
    let home = world.home().display().to_string();
    let line = format!("(cd {home}/sessions/run-*/ && {line}); {DOES_IT}");
    Task::worker(&world, REPORT, &line).run(&[])
}

#[test]
fn a_worker_that_writes_to_the_journal_is_found_out_and_nothing_counts_as_done() {
    // In place, so that the file and its end are the same: only its middle differs.
    let flip = "at=$(grep -abo 'write report' journal.jsonl | head -1 | cut -d: -f1) && \
                printf W | dd of=journal.jsonl bs=1 seek=$at conv=notrunc";
    for (line, found) in [
        ("echo '{}' >> journal.jsonl", "was tampered with"),
        (": > journal.jsonl", "was truncated"),
        ("truncate -s -20 journal.jsonl", "was truncated"),
        ("rm journal.jsonl", "was removed"),
        ("sed -i 's/write report/write other/' journal.jsonl", "was removed"),
        (flip, "was changed ("),
    ] {
        let run = meddles(line);
        assert_eq!(run.code, Some(3), "{line}: {run:?}");
        assert!(run.stderr.contains(found), "{line}: {run:?}");
        assert!(run.stderr.contains("jackline verify") || found == "was removed", "{run:?}");
        assert!(!run.stdout.contains("OBJECTIVE_ACHIEVED"), "{line}: {run:?}");
    }
}

/// What is used up would come back if the rest of it were left out.
#[test]
fn a_journal_that_can_not_be_read_to_its_end_is_not_gone_on_with() {
    let world = World::new("");
    mark(&world, "PAUSE");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let id = session(&task.run(&[]));
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    let bytes = fs::read(world.journal(&id)).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let journal = fs::OpenOptions::new().write(true).open(world.journal(&id)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&journal, b"#", second as u64).unwrap();
    let run = task.resume(&[&id]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("was changed ("), "{run:?}");
    assert!(run.stderr.contains(&format!("jackline verify {id}")), "{run:?}");
    assert!(!world.work().join("report.md").exists());
}

#[test]
fn a_worker_can_not_approve_or_trust_anything_unseen() {
    let world = World::new("");
    let home = world.home().display().to_string();
    let agent = format!("{:064}", 1);
    let approval = json!({
        "checksum": agent, "definition": "t/other", "workflow": null, "session": "s",
        "at": "2026-01-01T00:00:00Z", "by": "dana", "why": null,
    });
    let line = format!("[ -e report.md ] || echo '{approval}' >> {home}/approvals; {DOES_IT}");
    let task = Task::worker(&world, REPORT, &line);
    let run = task.run(&[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(code(&run).contains("approved or trusted was changed while `sh` worked"), "{run:?}");
    let id = session(&run);
    assert_eq!(world.jackline(&["resume", &id]).code, Some(0));
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
}

#[test]
fn a_worker_has_no_say_where_a_person_has() {
    let world = World::new("");
    let line = format!(
        "{JACKLINE} off --for 1h --why x 2>> said; setsid {JACKLINE} identity approve --by x 2>> said; {DOES_IT}"
    );
    let run = Task::worker(&world, REPORT, &line).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let said = fs::read_to_string(world.work().join("said")).unwrap();
    assert_eq!(said.matches("only a person may").count(), 2, "{said}");
    assert!(!world.home().join("approvals").exists());
}

#[test]
fn a_worker_that_is_not_the_approved_one_is_not_started() {
    let world = World::new("");
    let line = format!("echo x >> starts; {DOES_IT}");
    let approved = session(&Task::worker(&world, REPORT, &line).run(&[]));
    let words = ["identity", "approve", &approved, "--by", "dana", "--why", "it works"];
    assert_eq!(world.jackline(&words).code, Some(0));
    fs::remove_file(world.work().join("report.md")).unwrap();
    let other = format!("{REPORT}limits: {{ steps: 99 }}\n");
    let task = Task::worker(&world, &other, &line);
    let run = task.run(&[]);
    assert_eq!((run.code, code(&run)), (Some(1), "SYSTEM_ERROR{identity}".into()), "{run:?}");
    let asides = told(&run, "aside");
    assert!(asides[0]["text"].as_str().unwrap().contains("identity approve"), "{asides:?}");
    assert_eq!(fs::read_to_string(world.work().join("starts")).unwrap(), "x\n");
    world.prove(&session(&run));
}

/// What is told where the workspace is deleted.
fn is_lost(world: &World, run: &Run) {
    assert_eq!((run.code, code(run)), (Some(1), "SYSTEM_ERROR{workspace}".into()), "{run:?}");
    let asides = told(run, "aside");
    let said = asides.iter().filter_map(|it| it["text"].as_str());
    let lost = said.filter(|it| it.contains("was deleted while the run was under way"));
    assert_eq!(lost.count(), 1, "{run:?}");
    // What proves it needs somewhere to stand.
    fs::create_dir_all(world.work()).unwrap();
    world.prove(&session(run));
}

#[test]
fn a_workspace_that_is_deleted_ends_the_run_that_works_in_it() {
    let world = World::new("");
    let task = Task::worker(&world, REPORT, "rm -rf \"$PWD\"; sleep 286");
    is_lost(&world, &task.run(&[]));
    assert_eq!(sleepers(286), 0);
}

#[test]
fn a_workspace_that_is_deleted_under_a_command_ends_it() {
    let world = World::new("");
    let call = "{ tool: shell, args: { command: 'touch began; sleep 285' } }";
    let script = format!("steps:\n  - calls: [{call}]\nrepeat: true\n");
    let task = Task::new(&world, REPORT, &[("main", &script)]);
    let child = task.start(&[]);
    until("the command", || began(&world));
    fs::remove_dir_all(world.work()).unwrap();
    let run = end_of(child);
    is_lost(&world, &run);
    assert_eq!(sleepers(285), 0);
}

#[test]
fn a_workspace_that_is_deleted_while_a_person_is_waited_for_ends_the_wait() {
    let world = World::new("");
    mark(&world, "PAUSE");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let mut child = task.start(&[]);
    let waits = wait_for_line(&mut child, "\"for\":\"person\"");
    fs::remove_dir_all(world.work()).unwrap();
    let run = end_of(child);
    is_lost(&world, &Run { stdout: waits + &run.stdout, ..run });
}

/// Runs a script where file systems can be mounted.
fn mounted(world: &World, script: &str) -> Run {
    let words = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"];
    let unshare = |script: &str| {
        let mut command = world.command("/usr/bin/unshare");
        command.args(words).args(["--mount-proc", "sh", "-ec", script]);
        feed(&mut command, b"")
    };
    let can = unshare("mount -t tmpfs tmpfs /mnt").code == Some(0);
    assert!(can, "this test needs user namespaces, in which a file system can be mounted");
    unshare(script)
}

/// A run of which only what it said is left.
fn ran_to(stdout: &str) -> Run {
    Run { code: None, stdout: stdout.to_owned(), stderr: String::new() }
}

#[test]
fn a_disk_that_is_full_at_a_checkpoint_leaves_none_and_says_so() {
    let world = World::new("");
    let fill = "{ tool: shell, args: { command: 'cat /dev/zero > fill; ls' } }";
    let rest = WORKS.trim_start_matches("steps:\n");
    let script = format!("steps:\n  - calls: [{fill}]\n  - text: Done.\n{rest}");
    let definition = format!("{REPORT}limits: {{ iterations: 1 }}\n");
    let task = Task::new(&world, &definition, &[("main", &script)]);
    let (work, root) = (world.work(), world.root());
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
    let ran = mounted(&world, &script);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let first = ran_to(&read("first"));
    assert!(code(&first).contains("1 of 1 iterations"), "{first:?}");
    let asides: Vec<String> =
        told(&first, "aside").iter().map(|it| it["text"].to_string()).collect();
    let said =
        asides.iter().filter(|it| it.contains("can't be written") && it.contains("CHECKPOINT.md"));
    assert_eq!(said.count(), 1, "{asides:?}");
    // Nothing of it, not even a beginning.
    assert_eq!(read("files"), "./fill\n./jackline.yaml\n");
    assert_eq!(code(&ran_to(&read("second"))), "OBJECTIVE_ACHIEVED");
    world.prove(&session(&first));
}

#[test]
fn a_state_home_that_is_full_stops_the_run_and_with_room_it_goes_on() {
    let world = World::new("");
    let call = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: {} }} }}]\n",
            "x".repeat(3000)
        )
    };
    let calls: String = (0..60).map(call).collect();
    let script = format!("steps:\n{calls}{}", WORKS.trim_start_matches("steps:\n"));
    let task = Task::new(&world, REPORT, &[("main", &script)]);
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
    let ran = mounted(&world, &script);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let why = read("why");
    assert!(why.contains("No space left") && why.contains("jackline run --resume"), "{why}");
    assert_eq!(read("code"), "3\n");
    assert_eq!(code(&ran_to(&read("second"))), "OBJECTIVE_ACHIEVED");
    let verified = read("verified");
    assert_eq!(
        (verified.matches(": clean, ").count(), verified.matches(": proven, ").count()),
        (2, 1)
    );
}

/// A run whose clock of the machine's start is ahead.
fn ahead(world: &World, seconds: u32, args: &[&str]) -> Run {
    let unshare = |words: &[&str]| {
        let mut command = world.command("/usr/bin/unshare");
        command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount-proc", "--time", "--boottime", &seconds.to_string()]);
        feed(command.args(words), b"")
    };
    let can = unshare(&["true"]).code == Some(0);
    assert!(can, "this test needs user namespaces, with a clock of their own");
    unshare(&[&[JACKLINE, "run", "--json", "--no-wait"], args].concat())
}

const DAY_S: u32 = 24 * 60 * 60;

/// Stops once without having done anything, which is one iteration too many.
const HOUR_AND_CAP: &str =
    "completion: { files: [report.md] }\nlimits: { iterations: 1, wall_seconds: 3600 }\n";

fn capped(world: &World) -> Task<'_> {
    let script = WORKS.replace("steps:\n", "steps:\n  - text: Done!\n");
    Task::new(world, HOUR_AND_CAP, &[("main", &script)])
}

#[test]
fn a_clock_that_has_run_back_gives_no_time_and_takes_none() {
    let world = World::new("");
    let task = capped(&world);
    let run = ahead(&world, DAY_S, &[task.directory.to_str().unwrap()]);
    let id = session(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0), "{run:?}");
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(ended(&run)["evidence"]["elapsed_ms"].as_u64().unwrap() < 600_000, "{run:?}");
    world.prove(&id);
}

#[test]
fn a_clock_that_has_jumped_ahead_uses_up_the_time_once() {
    let world = World::new("");
    let task = capped(&world);
    let run = task.run(&[]);
    let id = session(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0), "{run:?}");
    let run = ahead(&world, DAY_S, &["--resume", &id]);
    assert_eq!(code(&run), "BUDGET_EXCEEDED{wall_seconds}", "{run:?}");
    assert!(!world.work().join("report.md").exists());
    world.prove(&id);
}

#[test]
fn the_time_of_a_run_is_up_while_it_waits_for_a_person() {
    let world = World::new("");
    mark(&world, "PAUSE");
    let task =
        Task::new(&world, &format!("{REPORT}limits: {{ wall_seconds: 1 }}\n"), &[("main", WORKS)]);
    let run = end_of(task.start(&[]));
    let ended = ended(&run);
    // It was a person who held it.
    assert_eq!(code(&run), "HUMAN_REQUESTED", "{run:?}");
    assert!(ended["evidence"]["elapsed_ms"].as_u64().unwrap() >= 1000, "{run:?}");
    assert!(!world.work().join("report.md").exists());
    world.prove(&session(&run));
}

#[test]
fn an_engine_that_has_used_up_its_budget_is_not_asked_again_after_a_kill() {
    let world = World::new("");
    let sleeps = "{ tool: shell, args: { command: 'touch began; sleep 284' } }";
    let first = format!(
        "steps:\n  - calls: [{{ tool: list_dir, args: {{}} }}]\n  - calls: [{sleeps}]\n  - text: Done.\nrepeat: true\n"
    );
    let models = ["first", "second"]
        .map(|name| format!("provider: scripted, model: {name}, window: 100000"));
    let task = Task::new(&world, REPORT, &[("first", &first), ("second", WORKS)]);
    let definition = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&definition).unwrap();
    let text = text.replace(&models[0], &format!("{}, budget: 2", models[0]));
    fs::write(definition, text).unwrap();
    let mut child = task.start(&[]);
    until("the command", || began(&world));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(284) == 0);
    let run = task.resume(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let asked: Vec<_> = told(&run, "asking").iter().map(|it| it["model"].to_string()).collect();
    assert_eq!(asked, ["\"scripted/second\""; 2], "{run:?}");
    assert_eq!(told(&run, "changed")[0]["reason"], "cost");
    world.prove(&session(&run));
}
