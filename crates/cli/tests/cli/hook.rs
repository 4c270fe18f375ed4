//! `jackline hook claude`: stories as the client tells them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hook_support::{
    DENIED, RULES, SESSION, all, bash, command, decision, deny, hear, heard, merge, payload,
    prepared, ran, status, stop,
};
use crate::support::{JACKLINE, World, feed};

/// What an agent is told besides, where it has to wait for a person.
const WAITS: &str = "\n-> a person was told how to let exactly this call pass; go on with \
                     something else, or end the turn and say what waits";

#[test]
fn no_objection_is_silence_on_every_event() {
    let world = World::new(RULES);
    for payload in all(&world) {
        assert_eq!(hear(&world, &payload), Value::Null, "{payload}");
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
    world.prove(SESSION);
}

#[test]
fn a_denial_is_one_object_that_the_client_understands() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "git push -f")), deny(DENIED));
    // The same in a sub-agent, and where the client asks nobody.
    let mut inside = bash(&world, "c2", "cd . && git push -f");
    merge(&mut inside, json!({"agent_id": "a1", "permission_mode": "bypassPermissions"}));
    assert_eq!(hear(&world, &inside), deny(DENIED));
    assert_eq!(hear(&world, &bash(&world, "c3", "git push")), Value::Null);
    world.prove(SESSION);
}

#[test]
fn a_sealed_answer_begins_with_the_seal_and_a_last_resort_has_none() {
    let world = World::new(RULES);
    let sealed = |input: &[u8]| {
        feed(&mut prepared(&world, JACKLINE, &["hook", "claude", "--sealed"]), input)
    };
    let run = sealed(bash(&world, "c1", "git push").to_string().as_bytes());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "jackline:1:", ""));
    let run = sealed(bash(&world, "c2", "git push -f").to_string().as_bytes());
    let said: Value = run.stdout.strip_prefix("jackline:1:").unwrap().parse().unwrap();
    assert_eq!((run.code, said), (Some(0), deny(DENIED)));
    let run = sealed(b"{");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("the guard, is broken"), "{run:?}");
    world.prove(SESSION);
}

/// Who can be asked: the person at the client, in a mode in which it asks.
#[test]
fn a_question_goes_to_the_person_at_the_client_or_is_a_denial() {
    let world = World::new(RULES);
    let why = "A person looks at deployments. (rule `deployments`, at `make deploy`)";
    let ask = |number: usize, entry: Option<&str>, beyond: Value| {
        let mut payload = bash(&world, &format!("c{number}"), "make deploy");
        merge(&mut payload, beyond);
        let mut hook = command(&world);
        match entry {
            Some(entry) => hook.env("CLAUDE_CODE_ENTRYPOINT", entry),
            None => hook.env_remove("CLAUDE_CODE_ENTRYPOINT"),
        };
        heard(&feed(&mut hook, payload.to_string().as_bytes()))
    };
    for (number, mode) in ["default", "acceptEdits", "plan"].into_iter().enumerate() {
        let said = ask(number, Some("cli"), json!({ "permission_mode": mode }));
        assert_eq!(said, decision("ask", why), "{mode}");
    }
    let nobody = [
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
    for (number, (entry, beyond)) in nobody.into_iter().enumerate() {
        let said = ask(10 + number, entry, beyond.clone());
        let mut expected = deny(&format!("{why}{WAITS}"));
        let message = said["systemMessage"].as_str().unwrap();
        assert!(message.starts_with(&format!("jackline: this call waits for you: {why}\n")));
        merge(&mut expected, json!({ "systemMessage": message }));
        assert_eq!(said, expected, "{entry:?} {beyond}");
        // The code is for the person, and nothing the agent reads holds it.
        let code = message.split_once("`jackline allow ").unwrap().1.split('`').next().unwrap();
        assert!(!said["hookSpecificOutput"].to_string().contains(code), "{said}");
    }
    world.prove(SESSION);
}

#[test]
fn what_is_only_observed_is_silent() {
    let world =
        World::new(&format!("mode: observe\ncompletion: {{ files: [report.md] }}\n{RULES}"));
    for payload in [
        bash(&world, "c1", "git push -f"),
        bash(&world, "c2", "make deploy"),
        ran(&world, "c1", "git push -f"),
        stop(&world, false),
    ] {
        assert_eq!(hear(&world, &payload), Value::Null, "{payload}");
    }
    world.prove(SESSION);
}

#[test]
fn feedback_comes_with_the_result_of_a_call_whether_it_failed_or_not() {
    let world = World::new("feedback: [ { static: Follow AGENTS.md., every_n_calls: 1 } ]");
    let mut failed = bash(&world, "c2", "exit 3");
    merge(&mut failed, json!({"hook_event_name": "PostToolUseFailure", "error": "Exit code 3"}));
    for (call, event, after) in
        [("c1", "PostToolUse", ran(&world, "c1", "echo")), ("c2", "PostToolUseFailure", failed)]
    {
        assert_eq!(hear(&world, &bash(&world, call, "echo")), Value::Null);
        let said = hear(&world, &after);
        let context = said.pointer("/hookSpecificOutput/additionalContext").unwrap();
        assert!(context.as_str().unwrap().contains("Follow AGENTS.md."), "{said}");
        let expected = json!({"hookEventName": event, "additionalContext": context});
        assert_eq!(said, json!({ "hookSpecificOutput": expected }));
    }
    world.prove(SESSION);
}

const MISSING: &str = "The required file `report.md` is missing.\n-> finish the task, then stop";

#[test]
fn a_stop_without_its_file_is_blocked_and_passes_once_it_is_there() {
    let world = World::new("completion: { files: [report.md] }");
    let blocked = json!({"decision": "block", "reason": MISSING});
    assert_eq!(hear(&world, &stop(&world, false)), blocked);
    assert_eq!(hear(&world, &stop(&world, true)), blocked);
    fs::write(world.work().join("report.md"), "x").unwrap();
    assert_eq!(hear(&world, &stop(&world, true)), Value::Null);
    assert_eq!(status(&world)["turn"]["result"], "complete", "{}", status(&world));
    world.prove(SESSION);
}

#[test]
fn a_gate_that_can_never_be_satisfied_gives_up_and_says_so() {
    let world = World::new("completion: { files: [report.md] }");
    let blocked = json!({"decision": "block", "reason": MISSING});
    for number in 0..3 {
        assert_eq!(hear(&world, &stop(&world, number > 0)), blocked);
    }
    let said = "jackline: the turn ended, and not as done (capped after 3 blocked stops; still missing: The required file `report.md` is missing.)";
    assert_eq!(hear(&world, &stop(&world, true)), json!({ "systemMessage": said }));
    let run = world.jackline(&["status", SESSION]);
    assert!(run.stdout.contains("capped"), "{run:?}");
    world.prove(SESSION);
}

#[test]
fn work_in_the_background_is_no_stop_and_a_sub_agent_s_stop_ends_no_turn() {
    let world = World::new("completion: { files: [report.md] }");
    let running = json!([{"id": "a1", "type": "subagent", "status": "running"}]);
    let mut waiting = stop(&world, false);
    merge(&mut waiting, json!({ "background_tasks": running }));
    assert_eq!(hear(&world, &waiting), Value::Null);
    let mut inside = stop(&world, false);
    merge(&mut inside, json!({"hook_event_name": "SubagentStop", "agent_id": "a1"}));
    assert_eq!(hear(&world, &inside), Value::Null);
    // Not even where the client forgot to say whose it is.
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    merge(&mut inside, json!({ "agent_id": null }));
    assert_eq!(hear(&world, &inside), Value::Null);
    assert_eq!(hear(&world, &ran(&world, "c1", "echo")), Value::Null);
    assert_eq!(status(&world)["invocations"]["ok"], 1, "{}", status(&world));
    assert_eq!(hear(&world, &stop(&world, false))["decision"], "block");
    world.prove(SESSION);
}

fn file_call(world: &World, call: &str, tool: &str, input: &Value) -> Value {
    let beyond = json!({"tool_name": tool, "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", beyond)
}

fn read(world: &World, call: &str, path: &Path, lines: u64, of: u64) {
    let input = json!({ "file_path": path });
    let mut call = file_call(world, call, "Read", &input);
    assert_eq!(hear(world, &call), Value::Null);
    let file = json!({"filePath": path, "content": "…", "startLine": 1, "numLines": lines, "totalLines": of});
    let beyond =
        json!({"hook_event_name": "PostToolUse", "tool_response": {"type": "text", "file": file}});
    merge(&mut call, beyond);
    assert_eq!(hear(world, &call), Value::Null);
}

/// What the client showed of a file is known, until a compaction forgets it.
#[test]
fn a_file_is_overwritten_by_who_has_seen_all_of_it() {
    let world = World::new(
        "sections: [ { name: files, tools: [Read, Write], policies: [ read_before_write: {} ] } ]\nunknown_tools: allow\n",
    );
    let path = world.work().join("config.yaml");
    fs::write(&path, "one\ntwo\n").unwrap();
    let write = |call: &str| {
        let input = json!({"file_path": path, "content": "new\n"});
        hear(&world, &file_call(&world, call, "Write", &input))
    };
    let denied = |said: &Value| {
        let reason = said.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
        assert!(reason.as_str().unwrap().contains("config.yaml"), "{said}");
        assert_eq!(said, &deny(reason.as_str().unwrap()));
    };
    denied(&write("w1"));
    read(&world, "r1", &path, 1, 3);
    denied(&write("w2"));
    read(&world, "r2", &path, 3, 3);
    assert_eq!(write("w3"), Value::Null);
    let compacted = payload(&world, "SessionStart", json!({"source": "compact"}));
    assert_eq!(hear(&world, &compacted), Value::Null);
    denied(&write("w4"));
    world.prove(SESSION);
}

fn control(world: &World, action: &str) {
    let line = format!(
        r#"{{"session":"{SESSION}","event":"control","action":"{action}","by":"dana","why":"lunch"}}"#
    );
    assert_eq!(world.stdio(&[line]).answers().len(), 1);
}

#[test]
fn a_batch_ends_the_run_of_a_session_that_a_person_stopped_or_paused() {
    let world = World::new(RULES);
    let batch = payload(&world, "PostToolBatch", json!({"tool_calls": []}));
    assert_eq!(hear(&world, &batch), Value::Null, "nothing is known of the session yet");
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    assert_eq!(hear(&world, &batch), Value::Null);
    control(&world, "pause");
    let paused = hear(&world, &bash(&world, "c2", "echo"));
    let why = "the session was paused by `dana`: lunch\n-> end the turn; a person's next message or `resume` goes on";
    assert_eq!(paused, deny(why));
    let ends = |why: &str| json!({"decision": "block", "reason": why, "systemMessage": why});
    assert_eq!(hear(&world, &batch), ends("jackline: the session is paused: lunch"));
    // A person's message goes on.
    let prompt = payload(&world, "UserPromptSubmit", json!({"prompt": "go on"}));
    assert_eq!(hear(&world, &prompt), Value::Null);
    assert_eq!(hear(&world, &bash(&world, "c3", "echo")), Value::Null);
    control(&world, "stop");
    assert_eq!(hear(&world, &batch), ends("jackline: the session is over: HUMAN_REQUESTED"));
    assert_eq!(hear(&world, &prompt)["decision"], "block");
    assert_eq!(hear(&world, &stop(&world, false))["decision"], Value::Null);
    world.prove(SESSION);
}

#[test]
fn a_machine_s_message_lifts_no_pause() {
    let world = World::new(RULES);
    hear(&world, &bash(&world, "c1", "echo"));
    control(&world, "pause");
    for (number, beyond) in [
        json!({"prompt": "<task-notification>x</task-notification>"}),
        json!({"prompt": "go on", "source": "tool"}),
        json!({"prompt": "\n <system-reminder>x"}),
    ]
    .into_iter()
    .enumerate()
    {
        hear(&world, &payload(&world, "UserPromptSubmit", beyond));
        let said = hear(&world, &bash(&world, &format!("d{number}"), "echo"));
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    }
    world.prove(SESSION);
}

#[test]
fn two_sessions_in_one_workspace_know_nothing_of_each_other() {
    let world = World::new("completion: { files: [report.md] }\nlimits: { steps: 3 }");
    for session in ["one", "two"] {
        for call in ["c1", "c2"] {
            let mut payload = bash(&world, call, "echo");
            merge(&mut payload, json!({ "session_id": session }));
            assert_eq!(hear(&world, &payload), Value::Null, "{session} {call}");
        }
    }
    // Another client works on a session of its own, at the same files.
    assert_eq!(
        world
            .stdio(&[
                r#"{"session":"three","event":"tool_proposed","call":"c1","tool":"t","args":{}}"#
            ])
            .answers(),
        ["allow"]
    );
    for session in ["one", "two", "three"] {
        world.prove(session);
    }
}

#[test]
fn hooks_that_are_installed_twice_say_the_same_twice() {
    let world = World::new(RULES);
    for (call, command, said) in [("c1", "echo", Value::Null), ("c2", "git push -f", deny(DENIED))]
    {
        let payload = bash(&world, call, command);
        assert_eq!(hear(&world, &payload), said);
        assert_eq!(hear(&world, &payload), said);
    }
    assert_eq!(world.records(SESSION).len(), 2);
    world.prove(SESSION);
}

#[test]
fn a_session_stays_with_the_workspace_it_began_in() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    let moved = world.root().join("moved");
    fs::create_dir(&moved).unwrap();
    let from = |payload: &Value| {
        let mut hook = command(&world);
        hook.current_dir(&moved).env("CLAUDE_PROJECT_DIR", &moved);
        heard(&feed(&mut hook, payload.to_string().as_bytes()))
    };
    let start = payload(&world, "SessionStart", json!({"source": "resume", "cwd": moved}));
    let said = from(&start);
    let message = said["systemMessage"].as_str().unwrap();
    assert!(message.contains("its workspace is pinned"), "{said}");
    assert_eq!(said, json!({ "systemMessage": message }));
    // The rules it began with are in force there, too.
    let mut denied = bash(&world, "c2", "git push -f");
    merge(&mut denied, json!({ "cwd": moved }));
    assert_eq!(from(&denied), deny(DENIED));
    world.prove(SESSION);
}

#[test]
fn a_workspace_that_is_gone_is_still_guarded() {
    let world = World::new(RULES);
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    assert_eq!(hear(&world, &ran(&world, "c1", "echo")), Value::Null);
    let script = format!("rm -r \"$PWD\" && exec {JACKLINE} hook claude");
    let mut hook = prepared(&world, "sh", &["-c", &script]);
    hook.env_remove("CLAUDE_PROJECT_DIR");
    let input = bash(&world, "c2", "git push -f").to_string();
    assert_eq!(heard(&feed(&mut hook, input.as_bytes())), deny(DENIED));
    assert!(!world.work().exists());
    fs::create_dir(world.work()).unwrap();
    world.prove(SESSION);
}

#[test]
fn a_session_comes_back_after_its_end() {
    let world = World::new(RULES);
    for (event, beyond) in [
        ("SessionStart", json!({"source": "startup"})),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
    ] {
        assert_eq!(hear(&world, &payload(&world, event, beyond)), Value::Null);
    }
    assert_eq!(hear(&world, &bash(&world, "c1", "echo")), Value::Null);
    assert_eq!(hear(&world, &bash(&world, "c2", "git push -f")), deny(DENIED));
    world.prove(SESSION);
}
