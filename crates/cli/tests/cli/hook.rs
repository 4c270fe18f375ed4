//! Tests of `jackline hook claude`: sequences of events, as Claude Code sends them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hook_support::{
    DENIED_REASON, RULES, SESSION, all_payloads, bash_finished, bash_proposed,
    command_in_hook_environment, decision_answer, deny_answer, hook_answer, hook_command, merge,
    parse_answer, payload, session_summary, stop_payload,
};
use crate::support::{CliWorld, JACKLINE, run_with_input};

/// The text that tells an agent to wait for the approval of a person.
const WAITING_HINT: &str = "\n-> a person was notified how to allow exactly this call; continue with \
                     something else, or end the turn and report which call waits";

#[test]
fn without_a_violation_the_hook_prints_nothing_for_any_event() {
    let world = CliWorld::new(RULES);
    for payload in all_payloads(&world) {
        assert_eq!(hook_answer(&world, &payload), Value::Null, "{payload}");
    }
    let kinds: Vec<String> = world
        .records(SESSION)
        .iter()
        .map(|record| serde_json::to_value(&record.event).unwrap()["event"].to_string())
        .collect();
    let expected = [
        "session_started",
        "prompt_submitted",
        "tool_proposed",
        "tool_finished",
        "tool_finished",
        "tool_finished",
        "prompt_submitted",
        "stop_proposed",
        "stop_proposed",
        "session_ended",
    ];
    assert_eq!(kinds, expected.map(|kind| format!("\"{kind}\"")));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_denial_is_one_object_that_claude_code_understands() {
    let world = CliWorld::new(RULES);
    assert_eq!(
        hook_answer(&world, &bash_proposed(&world, "c1", "git push -f")),
        deny_answer(DENIED_REASON)
    );
    // The same for a sub-agent, and in a mode in which the client asks no person.
    let mut inside = bash_proposed(&world, "c2", "cd . && git push -f");
    merge(&mut inside, json!({"agent_id": "a1", "permission_mode": "bypassPermissions"}));
    assert_eq!(hook_answer(&world, &inside), deny_answer(DENIED_REASON));
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c3", "git push")), Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_sealed_answer_starts_with_the_seal_and_an_emergency_answer_has_none() {
    let world = CliWorld::new(RULES);
    let sealed = |input: &[u8]| {
        run_with_input(
            &mut command_in_hook_environment(&world, JACKLINE, &["hook", "claude", "--sealed"]),
            input,
        )
    };
    let run = sealed(bash_proposed(&world, "c1", "git push").to_string().as_bytes());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "jackline:1:", ""));
    let run = sealed(bash_proposed(&world, "c2", "git push -f").to_string().as_bytes());
    let answer: Value = run.stdout.strip_prefix("jackline:1:").unwrap().parse().unwrap();
    assert_eq!((run.code, answer), (Some(0), deny_answer(DENIED_REASON)));
    let run = sealed(b"{");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("the guard, is broken"), "{run:?}");
    world.verify_and_replay(SESSION);
}

/// A person can only be asked in a terminal client that is in an asking mode.
#[test]
fn a_question_goes_to_the_person_at_the_client_or_is_a_denial() {
    let world = CliWorld::new(RULES);
    let why = "A person looks at deployments. (rule `deployments`, at `make deploy`)";
    let ask = |number: usize, entry: Option<&str>, extra: Value| {
        let mut payload = bash_proposed(&world, &format!("c{number}"), "make deploy");
        merge(&mut payload, extra);
        let mut hook = hook_command(&world);
        match entry {
            Some(entry) => hook.env("CLAUDE_CODE_ENTRYPOINT", entry),
            None => hook.env_remove("CLAUDE_CODE_ENTRYPOINT"),
        };
        parse_answer(&run_with_input(&mut hook, payload.to_string().as_bytes()))
    };
    for (number, mode) in ["default", "acceptEdits", "plan"].into_iter().enumerate() {
        let answer = ask(number, Some("cli"), json!({ "permission_mode": mode }));
        assert_eq!(answer, decision_answer("ask", why), "{mode}");
    }
    let without_person = [
        (Some("sdk-cli"), json!({})),
        (None, json!({})),
        (Some("claude-vscode"), json!({})),
        (Some("cli"), json!({"permission_mode": "bypassPermissions"})),
        (Some("cli"), json!({"permission_mode": "dontAsk"})),
        (Some("cli"), json!({"permission_mode": "tomorrow"})),
        (Some("cli"), json!({"permission_mode": null})),
        (Some("cli"), json!({"permission_mode": ["default"]})),
        (Some("cli"), json!({"agent_id": "a1"})),
    ];
    for (number, (entry, extra)) in without_person.into_iter().enumerate() {
        let answer = ask(10 + number, entry, extra.clone());
        let mut expected = deny_answer(&format!("{why}{WAITING_HINT}"));
        let message = answer["systemMessage"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("jackline: this call waits for your approval: {why}\n"))
        );
        merge(&mut expected, json!({ "systemMessage": message }));
        assert_eq!(answer, expected, "{entry:?} {extra}");
        // The approval code is for the person. The agent must not read it.
        let code = message.split_once("`jackline allow ").unwrap().1.split('`').next().unwrap();
        assert!(!answer["hookSpecificOutput"].to_string().contains(code), "{answer}");
    }
    world.verify_and_replay(SESSION);
}

#[test]
fn a_violation_that_is_only_observed_prints_nothing() {
    let world =
        CliWorld::new(&format!("mode: observe\ncompletion: {{ files: [report.md] }}\n{RULES}"));
    for payload in [
        bash_proposed(&world, "c1", "git push -f"),
        bash_proposed(&world, "c2", "make deploy"),
        bash_finished(&world, "c1", "git push -f"),
        stop_payload(&world, false),
    ] {
        assert_eq!(hook_answer(&world, &payload), Value::Null, "{payload}");
    }
    world.verify_and_replay(SESSION);
}

#[test]
fn feedback_is_added_to_the_result_of_successful_and_failed_calls() {
    let world = CliWorld::new("feedback: [ { static: Follow AGENTS.md., every_n_calls: 1 } ]");
    let mut failed = bash_proposed(&world, "c2", "exit 3");
    merge(&mut failed, json!({"hook_event_name": "PostToolUseFailure", "error": "Exit code 3"}));
    for (call, event, after) in [
        ("c1", "PostToolUse", bash_finished(&world, "c1", "echo")),
        ("c2", "PostToolUseFailure", failed),
    ] {
        assert_eq!(hook_answer(&world, &bash_proposed(&world, call, "echo")), Value::Null);
        let answer = hook_answer(&world, &after);
        let context = answer.pointer("/hookSpecificOutput/additionalContext").unwrap();
        assert!(context.as_str().unwrap().contains("Follow AGENTS.md."), "{answer}");
        let expected = json!({"hookEventName": event, "additionalContext": context});
        assert_eq!(answer, json!({ "hookSpecificOutput": expected }));
    }
    world.verify_and_replay(SESSION);
}

const MISSING_REPORT_REASON: &str =
    "The required file `report.md` is missing.\n-> finish the task, then stop";

#[test]
fn a_stop_without_its_file_is_blocked_and_allowed_once_the_file_exists() {
    let world = CliWorld::new("completion: { files: [report.md] }");
    let blocked = json!({"decision": "block", "reason": MISSING_REPORT_REASON});
    assert_eq!(hook_answer(&world, &stop_payload(&world, false)), blocked);
    assert_eq!(hook_answer(&world, &stop_payload(&world, true)), blocked);
    fs::write(world.workspace().join("report.md"), "x").unwrap();
    assert_eq!(hook_answer(&world, &stop_payload(&world, true)), Value::Null);
    assert_eq!(
        session_summary(&world)["turn"]["result"],
        "complete",
        "{}",
        session_summary(&world)
    );
    world.verify_and_replay(SESSION);
}

#[test]
fn an_unsatisfiable_completion_check_gives_up_and_reports_it() {
    let world = CliWorld::new("completion: { files: [report.md] }");
    let blocked = json!({"decision": "block", "reason": MISSING_REPORT_REASON});
    for number in 0..3 {
        assert_eq!(hook_answer(&world, &stop_payload(&world, number > 0)), blocked);
    }
    let message = "jackline: the turn ended, but the task is not done (gave up after 3 blocked stops; still missing: The required file `report.md` is missing.)";
    assert_eq!(
        hook_answer(&world, &stop_payload(&world, true)),
        json!({ "systemMessage": message })
    );
    let run = world.jackline(&["status", SESSION]);
    assert!(run.stdout.contains("capped"), "{run:?}");
    world.verify_and_replay(SESSION);
}

#[test]
fn background_work_delays_the_stop_and_a_subagent_stop_ends_no_turn() {
    let world = CliWorld::new("completion: { files: [report.md] }");
    let running = json!([{"id": "a1", "type": "subagent", "status": "running"}]);
    let mut waiting = stop_payload(&world, false);
    merge(&mut waiting, json!({ "background_tasks": running }));
    assert_eq!(hook_answer(&world, &waiting), Value::Null);
    let mut inside = stop_payload(&world, false);
    merge(&mut inside, json!({"hook_event_name": "SubagentStop", "agent_id": "a1"}));
    assert_eq!(hook_answer(&world, &inside), Value::Null);
    // Also if the client does not name the sub-agent.
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    merge(&mut inside, json!({ "agent_id": null }));
    assert_eq!(hook_answer(&world, &inside), Value::Null);
    assert_eq!(hook_answer(&world, &bash_finished(&world, "c1", "echo")), Value::Null);
    assert_eq!(session_summary(&world)["invocations"]["ok"], 1, "{}", session_summary(&world));
    assert_eq!(hook_answer(&world, &stop_payload(&world, false))["decision"], "block");
    world.verify_and_replay(SESSION);
}

fn file_call(world: &CliWorld, call: &str, tool: &str, input: &Value) -> Value {
    let extra = json!({"tool_name": tool, "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", extra)
}

fn read_file_through_hook(world: &CliWorld, call: &str, path: &Path, lines: u64, total: u64) {
    let input = json!({ "file_path": path });
    let mut call = file_call(world, call, "Read", &input);
    assert_eq!(hook_answer(world, &call), Value::Null);
    let file = json!({"filePath": path, "content": "…", "startLine": 1, "numLines": lines, "totalLines": total});
    let extra =
        json!({"hook_event_name": "PostToolUse", "tool_response": {"type": "text", "file": file}});
    merge(&mut call, extra);
    assert_eq!(hook_answer(world, &call), Value::Null);
}

/// The content that the client showed counts as read until a compaction.
#[test]
fn a_file_may_be_overwritten_after_all_of_it_was_read() {
    let world = CliWorld::new(
        "sections: [ { name: files, tools: [Read, Write], policies: [ read_before_write: {} ] } ]\nunknown_tools: allow\n",
    );
    let path = world.workspace().join("config.yaml");
    fs::write(&path, "one\ntwo\n").unwrap();
    let write = |call: &str| {
        let input = json!({"file_path": path, "content": "new\n"});
        hook_answer(&world, &file_call(&world, call, "Write", &input))
    };
    let assert_denied = |answer: &Value| {
        let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
        assert!(reason.as_str().unwrap().contains("config.yaml"), "{answer}");
        assert_eq!(answer, &deny_answer(reason.as_str().unwrap()));
    };
    assert_denied(&write("w1"));
    read_file_through_hook(&world, "r1", &path, 1, 3);
    assert_denied(&write("w2"));
    read_file_through_hook(&world, "r2", &path, 3, 3);
    assert_eq!(write("w3"), Value::Null);
    let compacted = payload(&world, "SessionStart", json!({"source": "compact"}));
    assert_eq!(hook_answer(&world, &compacted), Value::Null);
    assert_denied(&write("w4"));
    world.verify_and_replay(SESSION);
}

fn send_control(world: &CliWorld, action: &str) {
    let line = format!(
        r#"{{"session":"{SESSION}","event":"control","action":"{action}","by":"dana","why":"lunch"}}"#
    );
    assert_eq!(world.stdio(&[line]).decisions().len(), 1);
}

#[test]
fn a_batch_ends_the_run_of_a_stopped_or_paused_session() {
    let world = CliWorld::new(RULES);
    let batch = payload(&world, "PostToolBatch", json!({"tool_calls": []}));
    assert_eq!(hook_answer(&world, &batch), Value::Null, "the session does not exist yet");
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    assert_eq!(hook_answer(&world, &batch), Value::Null);
    send_control(&world, "pause");
    let paused = hook_answer(&world, &bash_proposed(&world, "c2", "echo"));
    let why = "the session was paused by `dana`: lunch\n-> end the turn; the next message of a person or `jackline resume` continues the session";
    assert_eq!(paused, deny_answer(why));
    let end_of_run = |why: &str| json!({"decision": "block", "reason": why, "systemMessage": why});
    assert_eq!(hook_answer(&world, &batch), end_of_run("jackline: the session is paused: lunch"));
    // A message of a person resumes the session.
    let prompt = payload(&world, "UserPromptSubmit", json!({"prompt": "go on"}));
    assert_eq!(hook_answer(&world, &prompt), Value::Null);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c3", "echo")), Value::Null);
    send_control(&world, "stop");
    assert_eq!(
        hook_answer(&world, &batch),
        end_of_run("jackline: the session has ended: HUMAN_REQUESTED")
    );
    assert_eq!(hook_answer(&world, &prompt)["decision"], "block");
    assert_eq!(hook_answer(&world, &stop_payload(&world, false))["decision"], Value::Null);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_generated_prompt_does_not_end_a_pause() {
    let world = CliWorld::new(RULES);
    hook_answer(&world, &bash_proposed(&world, "c1", "echo"));
    send_control(&world, "pause");
    for (number, extra) in [
        json!({"prompt": "<task-notification>x</task-notification>"}),
        json!({"prompt": "go on", "source": "tool"}),
        json!({"prompt": "\n <system-reminder>x"}),
    ]
    .into_iter()
    .enumerate()
    {
        hook_answer(&world, &payload(&world, "UserPromptSubmit", extra));
        let answer = hook_answer(&world, &bash_proposed(&world, &format!("d{number}"), "echo"));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    }
    world.verify_and_replay(SESSION);
}

#[test]
fn two_sessions_in_one_workspace_are_independent() {
    let world = CliWorld::new("completion: { files: [report.md] }\nlimits: { steps: 3 }");
    for session in ["one", "two"] {
        for call in ["c1", "c2"] {
            let mut payload = bash_proposed(&world, call, "echo");
            merge(&mut payload, json!({ "session_id": session }));
            assert_eq!(hook_answer(&world, &payload), Value::Null, "{session} {call}");
        }
    }
    // Another client works in the same workspace with its own session.
    assert_eq!(
        world
            .stdio(&[
                r#"{"session":"three","event":"tool_proposed","call":"c1","tool":"t","args":{}}"#
            ])
            .decisions(),
        ["allow"]
    );
    for session in ["one", "two", "three"] {
        world.verify_and_replay(session);
    }
}

#[test]
fn hooks_that_are_installed_twice_give_the_same_answer_twice() {
    let world = CliWorld::new(RULES);
    for (call, command, expected) in
        [("c1", "echo", Value::Null), ("c2", "git push -f", deny_answer(DENIED_REASON))]
    {
        let payload = bash_proposed(&world, call, command);
        assert_eq!(hook_answer(&world, &payload), expected);
        assert_eq!(hook_answer(&world, &payload), expected);
    }
    assert_eq!(world.records(SESSION).len(), 2);
    world.verify_and_replay(SESSION);
}

#[test]
fn a_session_stays_bound_to_the_workspace_in_which_it_started() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    let moved = world.root().join("moved");
    fs::create_dir(&moved).unwrap();
    let hear_from_moved = |payload: &Value| {
        let mut hook = hook_command(&world);
        hook.current_dir(&moved).env("CLAUDE_PROJECT_DIR", &moved);
        parse_answer(&run_with_input(&mut hook, payload.to_string().as_bytes()))
    };
    let start = payload(&world, "SessionStart", json!({"source": "resume", "cwd": moved}));
    let answer = hear_from_moved(&start);
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("it is bound to another workspace"), "{answer}");
    assert_eq!(answer, json!({ "systemMessage": message }));
    // The rules of the first workspace are in force there, too.
    let mut denied = bash_proposed(&world, "c2", "git push -f");
    merge(&mut denied, json!({ "cwd": moved }));
    assert_eq!(hear_from_moved(&denied), deny_answer(DENIED_REASON));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_deleted_workspace_is_still_guarded() {
    let world = CliWorld::new(RULES);
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    assert_eq!(hook_answer(&world, &bash_finished(&world, "c1", "echo")), Value::Null);
    let script = format!("rm -r \"$PWD\" && exec {JACKLINE} hook claude");
    let mut hook = command_in_hook_environment(&world, "sh", &["-c", &script]);
    hook.env_remove("CLAUDE_PROJECT_DIR");
    let input = bash_proposed(&world, "c2", "git push -f").to_string();
    assert_eq!(
        parse_answer(&run_with_input(&mut hook, input.as_bytes())),
        deny_answer(DENIED_REASON)
    );
    assert!(!world.workspace().exists());
    fs::create_dir(world.workspace()).unwrap();
    world.verify_and_replay(SESSION);
}

#[test]
fn a_session_continues_after_its_end() {
    let world = CliWorld::new(RULES);
    for (event, extra) in [
        ("SessionStart", json!({"source": "startup"})),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
    ] {
        assert_eq!(hook_answer(&world, &payload(&world, event, extra)), Value::Null);
    }
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "echo")), Value::Null);
    assert_eq!(
        hook_answer(&world, &bash_proposed(&world, "c2", "git push -f")),
        deny_answer(DENIED_REASON)
    );
    world.verify_and_replay(SESSION);
}
