//! A hook that is broken: the gate is shut, the text says what broke, and what
//! could not be written down is, once it can.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::hook_support::{
    DENIED, RULES, SESSION, bash, command, deny, faults, hear, heard, last_faults, payload,
    permission, prepared, ran, stop, tell,
};
use crate::support::{JACKLINE, Run, World, Xorshift, feed};

/// A world whose state home can't be made: there is a file in its place.
fn without_home() -> World {
    let world = World::new(RULES);
    fs::write(world.home(), "no directory").unwrap();
    world
}

fn mend(world: &World) {
    fs::remove_file(world.home()).unwrap();
}

/// A denial whose text says that the guard is broken, and what a person can do.
fn check_broken(said: &Value) -> String {
    let reason = said.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
    let reason = reason.as_str().unwrap().to_owned();
    let mut expected = deny(&reason);
    expected["systemMessage"] = json!(reason);
    assert_eq!(said, &expected);
    assert!(reason.starts_with("jackline"), "{reason}");
    assert!(reason.contains("is broken, not the call"), "{reason}");
    assert!(reason.contains("`jackline off --for 30m"), "{reason}");
    reason
}

#[test]
fn without_a_state_home_every_call_is_denied_and_that_is_told_later() {
    let world = without_home();
    for call in ["c1", "c2"] {
        let reason = check_broken(&hear(&world, &bash(&world, call, "echo")));
        assert!(reason.contains("state home"), "{reason}");
    }
    mend(&world);
    assert_eq!(hear(&world, &bash(&world, "c3", "echo")), Value::Null);
    let told = last_faults(&world);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|fault| fault.contains("can't open the saved state")), "{told:?}");
    // Once, and not with every event from now on.
    assert_eq!(hear(&world, &ran(&world, "c3", "echo")), Value::Null);
    assert_eq!(last_faults(&world), [""; 0]);
    world.prove(SESSION);
}

#[test]
fn a_state_home_that_nobody_can_write_to_denies() {
    let world = World::new(RULES);
    for home in ["/sys/kernel/jackline-home", "/proc/jackline-nowhere"] {
        let mut hook = command(&world);
        let input = bash(&world, "c1", "echo").to_string();
        check_broken(&heard(&feed(hook.env("JACKLINE_HOME", home), input.as_bytes())));
    }
    for (variable, value) in [("JACKLINE_HOME", "relative"), ("PATH", "")] {
        let mut hook = command(&world);
        let input = bash(&world, "c1", "echo").to_string();
        hook.env_remove("JACKLINE_HOME").env(variable, value);
        check_broken(&heard(&feed(&mut hook, input.as_bytes())));
    }
}

/// The hook where no file may grow beyond some blocks of 512 bytes.
fn limited(world: &World, blocks: u32, input: &Value) -> Run {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {JACKLINE} hook claude");
    feed(&mut prepared(world, "sh", &["-c", &script]), input.to_string().as_bytes())
}

#[test]
fn a_full_disk_denies_and_loses_nothing() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    let long = format!("echo {}", "x".repeat(60_000));
    check_broken(&heard(&limited(&world, 64, &bash(&world, "c2", &long))));
    // With not one byte to write there is still an answer.
    check_broken(&heard(&limited(&world, 0, &bash(&world, "c3", "echo"))));
    assert_eq!(hear(&world, &bash(&world, "c4", "git push -f")), deny(DENIED));
    let told = last_faults(&world);
    assert!(told.len() == 1 && told[0].contains("File too large"), "{told:?}");
    assert_eq!(world.records(SESSION).len(), 2);
    world.prove(SESSION);
}

#[test]
fn a_journal_that_was_tampered_with_denies_until_somebody_looks() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    fs::write(world.journal(SESSION), "{}\n").unwrap();
    let reason = check_broken(&hear(&world, &bash(&world, "c2", "echo")));
    assert!(reason.contains("journal"), "{reason}");
}

#[test]
fn a_broken_guard_holds_up_a_stop_once_and_the_turn_is_unverified() {
    let world = without_home();
    let first = hear(&world, &stop(&world, false));
    assert_eq!(first["decision"], "block", "{first}");
    assert!(first["reason"].as_str().unwrap().contains("is broken, not the call"));
    let again = hear(&world, &stop(&world, true));
    assert_eq!(again, json!({"systemMessage": first["reason"]}));
    mend(&world);
    let prompt = payload(&world, "UserPromptSubmit", json!({"prompt": "next"}));
    assert_eq!(hear(&world, &prompt), Value::Null);
    let records = world.records(SESSION);
    assert_eq!(records.len(), 2, "the stop that nobody saw, and the prompt");
    assert_eq!(faults(&records[0].notes).len(), 2, "{:?}", records[0].notes);
    assert!(records[0].verdict_json.contains(r#""result":"unverified""#), "{:?}", records[0]);
    world.prove(SESSION);

    // And where the next thing is the end of the session.
    let world = without_home();
    hear(&world, &stop(&world, true));
    mend(&world);
    assert_eq!(hear(&world, &payload(&world, "SessionEnd", json!({}))), Value::Null);
    let run = world.jackline(&["status", SESSION]);
    assert!(run.stdout.contains("unverified"), "{run:?}");
    world.prove(SESSION);
}

#[test]
fn a_broken_guard_keeps_nobody_from_typing_or_leaving() {
    let world = without_home();
    for event in ["SessionStart", "UserPromptSubmit", "SubagentStop", "SessionEnd", "PreCompact"] {
        let said = hear(&world, &payload(&world, event, json!({})));
        assert_eq!(said["decision"], Value::Null, "{event}: {said}");
    }
}

#[test]
fn the_own_deadline_denies_before_the_client_gives_up() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    let journal = File::open(world.journal(SESSION)).unwrap();
    journal.lock().unwrap();
    let words = ["hook", "claude", "--deadline-seconds", "1"];
    let late = |input: &Value| {
        heard(&feed(&mut prepared(&world, JACKLINE, &words), input.to_string().as_bytes()))
    };
    let reason = check_broken(&late(&bash(&world, "c2", "echo")));
    assert!(reason.contains("no answer within 1 seconds"), "{reason}");
    let blocked = late(&stop(&world, false));
    assert_eq!(blocked["decision"], "block", "{blocked}");
    journal.unlock().unwrap();
    assert_eq!(hear(&world, &bash(&world, "c3", "echo")), Value::Null);
    let told = last_faults(&world);
    assert_eq!(told, ["it found no answer within 1 seconds"; 2]);
    world.prove(SESSION);
}

/// A client that never says that its payload is over.
#[test]
fn a_payload_without_an_end_is_refused_in_time() {
    let world = World::new(RULES);
    for said in ["", r#"{"hook_event_name":"PreToolUse""#] {
        let mut hook = prepared(&world, JACKLINE, &["hook", "claude", "--deadline-seconds", "1"]);
        let mut child = piped(&mut hook);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(said.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
        assert!(stderr.contains("is broken, not the call"), "{stderr}");
    }
}

fn piped(command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The client must not take for silence what it could not hear.
#[test]
fn an_answer_that_cannot_be_printed_is_a_refusal() {
    let world = World::new(RULES);
    let input = bash(&world, "c1", "git push -f").to_string();
    let full = format!("exec {JACKLINE} hook claude > /dev/full");
    let run = feed(&mut prepared(&world, "sh", &["-c", &full]), input.as_bytes());
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("can't be printed"), "{run:?}");

    let mut child = piped(&mut command(&world));
    drop(child.stdout.take());
    let input = bash(&world, "c2", "git push -f").to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    // What could not be said was decided, and is written down.
    assert_eq!(world.records(SESSION).len(), 2);
    world.prove(SESSION);
}

#[test]
fn the_last_good_definition_stays_in_force_and_the_person_is_told() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    assert_eq!(hear(&world, &ran(&world, "c1", "echo")), Value::Null);
    fs::write(world.work().join("jackline.yaml"), "rules: [").unwrap();
    // A session that is under way keeps what it began with.
    assert_eq!(hear(&world, &bash(&world, "c2", "git push -f")), deny(DENIED));
    let other = |call: &str| {
        let mut payload = bash(&world, call, "git push -f");
        payload["session_id"] = json!("other");
        hear(&world, &payload)
    };
    let said = other("c1");
    let message = said["systemMessage"].as_str().unwrap();
    assert!(message.starts_with("jackline: the definition does not load"), "{said}");
    let reason = said.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
    assert!(reason.as_str().unwrap().starts_with(DENIED), "{said}");
    let mut expected = deny(reason.as_str().unwrap());
    expected["systemMessage"] = json!(message);
    assert_eq!(said, expected);
    world.prove(SESSION);
    world.prove("other");
}

#[test]
fn without_any_good_definition_every_call_is_denied() {
    for source in ["rules: [", "nonsense: 1", "\u{0}"] {
        let world = World::new(source);
        let reason = check_broken(&hear(&world, &bash(&world, "c1", "echo")));
        assert!(reason.contains("jackline check"), "{reason}");
        fs::write(world.work().join("jackline.yaml"), RULES).unwrap();
        assert_eq!(hear(&world, &bash(&world, "c2", "echo")), Value::Null);
        assert_eq!(last_faults(&world).len(), 1, "{:?}", last_faults(&world));
        world.prove(SESSION);
    }
    let world = World::new("");
    fs::remove_file(world.work().join("jackline.yaml")).unwrap();
    check_broken(&hear(&world, &bash(&world, "c1", "echo")));
}

/// The longer the guard was broken, the more there would be to tell.
#[test]
fn a_long_outage_is_told_in_one_record() {
    let world = without_home();
    for number in 0..30 {
        check_broken(&hear(&world, &bash(&world, &format!("c{number}"), "echo")));
    }
    mend(&world);
    assert_eq!(hear(&world, &bash(&world, "d", "echo")), Value::Null);
    let record = world.records(SESSION).pop().unwrap();
    let told = serde_json::to_value(&record.notes).unwrap().to_string();
    assert!(faults(&record.notes).len() == 8 && told.contains("22"), "{told}");
    assert_eq!(hear(&world, &ran(&world, "d", "echo")), Value::Null);
    assert_eq!(world.records(SESSION).pop().unwrap().notes, []);
    world.prove(SESSION);
}

#[test]
fn eight_hooks_at_once_lose_nothing() {
    const HOOKS: usize = 8;
    let world = World::new(RULES);
    for round in 0..5 {
        std::thread::scope(|scope| {
            for hook in 0..HOOKS {
                let world = &world;
                scope.spawn(move || {
                    let call = format!("c{round}-{hook}");
                    let (line, expected) =
                        if hook % 2 == 0 { ("git push -f", Some("deny")) } else { ("echo", None) };
                    let said = hear(world, &bash(world, &call, line));
                    assert_eq!(permission(&said), expected, "{said}");
                });
            }
        });
    }
    let numbers: Vec<u64> = world.records(SESSION).iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=5 * HOOKS as u64).collect::<Vec<_>>());
    world.prove(SESSION);
}

/// Killed at any moment: what was answered is in the journal.
#[test]
fn a_hook_that_is_killed_loses_nothing_that_was_answered() {
    const KILLS: u64 = 60;
    let world = World::new(RULES);
    let mut random = Xorshift(0x686f_6f6b_2d39);
    let mut answered = 0;
    for number in 0..KILLS {
        let mut child = piped(&mut command(&world));
        let input = bash(&world, &format!("c{number}"), "git push -f").to_string();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        for _ in 0..random.below(3_000_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        if !said.is_empty() {
            assert_eq!(said.parse::<Value>().unwrap(), deny(DENIED), "an answer is whole");
            answered += 1;
            let last = world.records(SESSION).pop().unwrap();
            let call = serde_json::to_value(&last.event).unwrap()["call"].clone();
            assert_eq!(call, format!("c{number}"));
        }
    }
    assert_eq!(hear(&world, &bash(&world, "last", "echo")), Value::Null);
    world.prove(SESSION);
    println!("{KILLS} kills, {answered} answers, {} records", world.records(SESSION).len());
}

/// What the client kills in time is told by nobody, and shuts no later gate.
#[test]
fn a_hook_that_is_never_answered_leaves_the_session_in_order() {
    let world = World::new(RULES);
    let mut child = piped(&mut command(&world));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    assert_eq!(tell(&world, &ran(&world, "c1", "echo")).code, Some(0));
    world.prove(SESSION);
}
