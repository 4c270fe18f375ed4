//! Faults of a hook: every call is denied, the text names the fault, and faults that could not be
//! recorded are recorded later.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::hook_support::{
    DENIED_REASON, RULES, SESSION, bash_finished, bash_proposed, command_in_hook_environment,
    deny_answer, fault_reasons, hook_answer, hook_command, last_fault_reasons, parse_answer,
    payload, permission_decision, send_payload, stop_payload,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, Xorshift, run_with_input};

/// A world whose state home can't be created: a file has its path.
fn world_without_home() -> CliWorld {
    let world = CliWorld::new(RULES);
    fs::write(world.home(), "no directory").unwrap();
    world
}

fn restore_home(world: &CliWorld) {
    fs::remove_file(world.home()).unwrap();
}

/// Checks a denial whose text says that the guard is broken, and how a person can turn it off.
/// Returns the reason.
fn check_fault_denial(answer: &Value) -> String {
    let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
    let reason = reason.as_str().unwrap().to_owned();
    let mut expected = deny_answer(&reason);
    expected["systemMessage"] = json!(reason);
    assert_eq!(answer, &expected);
    assert!(reason.starts_with("jackline"), "{reason}");
    assert!(reason.contains("is broken, not the call"), "{reason}");
    assert!(reason.contains("`jackline off --for 30m"), "{reason}");
    reason
}

#[test]
fn without_a_state_home_every_call_is_denied_and_the_fault_is_recorded_later() {
    let world = world_without_home();
    for call in ["c1", "c2"] {
        let reason = check_fault_denial(&hook_answer(&world, &bash_proposed(&world, call, "echo")));
        assert!(reason.contains("state home"), "{reason}");
    }
    restore_home(&world);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c3", "echo")), Value::Null);
    let reasons = last_fault_reasons(&world);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons.iter().all(|fault| fault.contains("can't open the saved state")),
        "{reasons:?}"
    );
    // The faults are recorded once, and not with every later event.
    assert_eq!(hook_answer(&world, &bash_finished(&world, "c3", "echo")), Value::Null);
    assert_eq!(last_fault_reasons(&world), [""; 0]);
    world.verify_and_replay(SESSION);
}

#[test]
fn an_unwritable_state_home_denies_every_call() {
    let world = CliWorld::new(RULES);
    for home in ["/sys/kernel/jackline-home", "/proc/jackline-nowhere"] {
        let mut hook = hook_command(&world);
        let input = bash_proposed(&world, "c1", "echo").to_string();
        check_fault_denial(&parse_answer(&run_with_input(
            hook.env("JACKLINE_HOME", home),
            input.as_bytes(),
        )));
    }
    for (variable, value) in [("JACKLINE_HOME", "relative"), ("PATH", "")] {
        let mut hook = hook_command(&world);
        let input = bash_proposed(&world, "c1", "echo").to_string();
        hook.env_remove("JACKLINE_HOME").env(variable, value);
        check_fault_denial(&parse_answer(&run_with_input(&mut hook, input.as_bytes())));
    }
}

/// Runs the hook with a file size limit, in blocks of 512 bytes.
fn hook_with_file_limit(world: &CliWorld, blocks: u32, input: &Value) -> CliOutput {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} hook claude");
    run_with_input(
        &mut command_in_hook_environment(world, "sh", &["-c", &script]),
        input.to_string().as_bytes(),
    )
}

#[test]
fn a_full_disk_denies_and_loses_nothing() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    let long = format!("echo {}", "x".repeat(60_000));
    check_fault_denial(&parse_answer(&hook_with_file_limit(
        &world,
        64,
        &bash_proposed(&world, "c2", &long),
    )));
    // Even if no byte can be written, there is an answer.
    check_fault_denial(&parse_answer(&hook_with_file_limit(
        &world,
        0,
        &bash_proposed(&world, "c3", "echo"),
    )));
    assert_eq!(
        hook_answer(&world, &bash_proposed(&world, "c4", "git push -f")),
        deny_answer(DENIED_REASON)
    );
    let reasons = last_fault_reasons(&world);
    assert!(reasons.len() == 1 && reasons[0].contains("File too large"), "{reasons:?}");
    assert_eq!(world.records(SESSION).len(), 2);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_changed_journal_denies_every_call() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    fs::write(world.journal_path(SESSION), "{}\n").unwrap();
    let reason = check_fault_denial(&hook_answer(&world, &bash_proposed(&world, "c2", "echo")));
    assert!(reason.contains("journal"), "{reason}");
}

#[test]
fn a_broken_guard_blocks_a_stop_once_and_the_turn_is_unverified() {
    let world = world_without_home();
    let first = hook_answer(&world, &stop_payload(&world, false));
    assert_eq!(first["decision"], "block", "{first}");
    assert!(first["reason"].as_str().unwrap().contains("is broken, not the call"));
    let again = hook_answer(&world, &stop_payload(&world, true));
    assert_eq!(again, json!({"systemMessage": first["reason"]}));
    restore_home(&world);
    let prompt = payload(&world, "UserPromptSubmit", json!({"prompt": "next"}));
    assert_eq!(hook_answer(&world, &prompt), Value::Null);
    let records = world.records(SESSION);
    assert_eq!(records.len(), 2, "the unrecorded stop, and the prompt");
    assert_eq!(fault_reasons(&records[0].notes).len(), 2, "{:?}", records[0].notes);
    assert!(records[0].verdict_json.contains(r#""result":"unverified""#), "{:?}", records[0]);
    world.verify_and_replay(SESSION);

    // The same if the next event is the end of the session.
    let world = world_without_home();
    hook_answer(&world, &stop_payload(&world, true));
    restore_home(&world);
    assert_eq!(hook_answer(&world, &payload(&world, "SessionEnd", json!({}))), Value::Null);
    let run = world.jackline(&["status", SESSION]);
    assert!(run.stdout.contains("unverified"), "{run:?}");
    world.verify_and_replay(SESSION);
}

#[test]
fn a_broken_guard_does_not_block_prompts_or_the_end_of_a_session() {
    let world = world_without_home();
    for event in ["SessionStart", "UserPromptSubmit", "SubagentStop", "SessionEnd", "PreCompact"] {
        let answer = hook_answer(&world, &payload(&world, event, json!({})));
        assert_eq!(answer["decision"], Value::Null, "{event}: {answer}");
    }
}

#[test]
fn the_deadline_of_the_hook_denies_before_the_client_gives_up() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    let journal = File::open(world.journal_path(SESSION)).unwrap();
    journal.lock().unwrap();
    let args = ["hook", "claude", "--deadline-seconds", "1"];
    let late = |input: &Value| {
        parse_answer(&run_with_input(
            &mut command_in_hook_environment(&world, JACKLINE, &args),
            input.to_string().as_bytes(),
        ))
    };
    let reason = check_fault_denial(&late(&bash_proposed(&world, "c2", "echo")));
    assert!(reason.contains("no answer within 1 seconds"), "{reason}");
    let blocked = late(&stop_payload(&world, false));
    assert_eq!(blocked["decision"], "block", "{blocked}");
    journal.unlock().unwrap();
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c3", "echo")), Value::Null);
    let reasons = last_fault_reasons(&world);
    assert_eq!(reasons, ["it found no answer within 1 seconds"; 2]);
    world.verify_and_replay(SESSION);
}

/// A client that does not close the input.
#[test]
fn a_payload_without_an_end_is_refused_in_time() {
    let world = CliWorld::new(RULES);
    for input in ["", r#"{"hook_event_name":"PreToolUse""#] {
        let mut hook = command_in_hook_environment(
            &world,
            JACKLINE,
            &["hook", "claude", "--deadline-seconds", "1"],
        );
        let mut child = spawn_piped(&mut hook);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
        assert!(stderr.contains("is broken, not the call"), "{stderr}");
    }
}

fn spawn_piped(command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The client must not treat an answer that it could not read as permission.
#[test]
fn an_answer_that_cannot_be_printed_is_a_denial() {
    let world = CliWorld::new(RULES);
    let input = bash_proposed(&world, "c1", "git push -f").to_string();
    let full = format!("exec {JACKLINE} hook claude > /dev/full");
    let run = run_with_input(
        &mut command_in_hook_environment(&world, "sh", &["-c", &full]),
        input.as_bytes(),
    );
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("can't be printed"), "{run:?}");

    let mut child = spawn_piped(&mut hook_command(&world));
    drop(child.stdout.take());
    let input = bash_proposed(&world, "c2", "git push -f").to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    // The verdict was recorded, although it could not be printed.
    assert_eq!(world.records(SESSION).len(), 2);
    world.verify_and_replay(SESSION);
}

#[test]
fn the_last_good_definition_stays_in_force_and_the_person_gets_a_warning() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    assert_eq!(hook_answer(&world, &bash_finished(&world, "c1", "echo")), Value::Null);
    fs::write(world.workspace().join("jackline.yaml"), "rules: [").unwrap();
    // A running session keeps the definition with which it started.
    assert_eq!(
        hook_answer(&world, &bash_proposed(&world, "c2", "git push -f")),
        deny_answer(DENIED_REASON)
    );
    let other = |call: &str| {
        let mut payload = bash_proposed(&world, call, "git push -f");
        payload["session_id"] = json!("other");
        hook_answer(&world, &payload)
    };
    let answer = other("c1");
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.starts_with("jackline: the definition does not load"), "{answer}");
    let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
    assert!(reason.as_str().unwrap().starts_with(DENIED_REASON), "{answer}");
    let mut expected = deny_answer(reason.as_str().unwrap());
    expected["systemMessage"] = json!(message);
    assert_eq!(answer, expected);
    world.verify_and_replay(SESSION);
    world.verify_and_replay("other");
}

#[test]
fn without_any_good_definition_every_call_is_denied() {
    for source in ["rules: [", "nonsense: 1", "\u{0}"] {
        let world = CliWorld::new(source);
        let reason = check_fault_denial(&hook_answer(&world, &bash_proposed(&world, "c1", "echo")));
        assert!(reason.contains("jackline check"), "{reason}");
        fs::write(world.workspace().join("jackline.yaml"), RULES).unwrap();
        assert_eq!(hook_answer(&world, &bash_proposed(&world, "c2", "echo")), Value::Null);
        assert_eq!(last_fault_reasons(&world).len(), 1, "{:?}", last_fault_reasons(&world));
        world.verify_and_replay(SESSION);
    }
    let world = CliWorld::new("");
    fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
    check_fault_denial(&hook_answer(&world, &bash_proposed(&world, "c1", "echo")));
}

/// The number of recorded faults is limited, however long the guard was broken.
#[test]
fn a_long_outage_is_recorded_in_one_record() {
    let world = world_without_home();
    for number in 0..30 {
        check_fault_denial(&hook_answer(
            &world,
            &bash_proposed(&world, &format!("c{number}"), "echo"),
        ));
    }
    restore_home(&world);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "d", "echo")), Value::Null);
    let record = world.records(SESSION).pop().unwrap();
    let notes = serde_json::to_value(&record.notes).unwrap().to_string();
    assert!(fault_reasons(&record.notes).len() == 8 && notes.contains("22"), "{notes}");
    assert_eq!(hook_answer(&world, &bash_finished(&world, "d", "echo")), Value::Null);
    assert_eq!(world.records(SESSION).pop().unwrap().notes, []);
    world.verify_and_replay(SESSION);
}

#[test]
fn eight_hooks_at_once_lose_nothing() {
    const HOOKS: usize = 8;
    let world = CliWorld::new(RULES);
    for round in 0..5 {
        std::thread::scope(|scope| {
            for hook in 0..HOOKS {
                let world = &world;
                scope.spawn(move || {
                    let call = format!("c{round}-{hook}");
                    let (line, expected) =
                        if hook % 2 == 0 { ("git push -f", Some("deny")) } else { ("echo", None) };
                    let answer = hook_answer(world, &bash_proposed(world, &call, line));
                    assert_eq!(permission_decision(&answer), expected, "{answer}");
                });
            }
        });
    }
    let numbers: Vec<u64> = world.records(SESSION).iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=5 * HOOKS as u64).collect::<Vec<_>>());
    world.verify_and_replay(SESSION);
}

/// The hook is killed at random moments. Every answered event is in the journal.
#[test]
fn a_killed_hook_loses_no_answered_event() {
    const KILLS: u64 = 60;
    let world = CliWorld::new(RULES);
    let mut random = Xorshift(0x686f_6f6b_2d39);
    let mut answered = 0;
    for number in 0..KILLS {
        let mut child = spawn_piped(&mut hook_command(&world));
        let input = bash_proposed(&world, &format!("c{number}"), "git push -f").to_string();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        for _ in 0..random.below(3_000_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        child.wait().unwrap();
        if !output.is_empty() {
            assert_eq!(
                output.parse::<Value>().unwrap(),
                deny_answer(DENIED_REASON),
                "an answer must be complete"
            );
            answered += 1;
            let last = world.records(SESSION).pop().unwrap();
            let call = serde_json::to_value(&last.event).unwrap()["call"].clone();
            assert_eq!(call, format!("c{number}"));
        }
    }
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "last", "echo")), Value::Null);
    world.verify_and_replay(SESSION);
    println!("{KILLS} kills, {answered} answers, {} records", world.records(SESSION).len());
}

/// An event that the client gave up on is not recorded, and later calls are not denied because of
/// it.
#[test]
fn an_event_without_an_answer_does_not_break_the_session() {
    let world = CliWorld::new(RULES);
    let mut child = spawn_piped(&mut hook_command(&world));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    assert_eq!(send_payload(&world, &bash_finished(&world, "c1", "echo")).code, Some(0));
    world.verify_and_replay(SESSION);
}
