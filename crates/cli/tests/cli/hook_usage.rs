//! Tests that the token usage in Claude Code transcripts counts towards limits and the context
//! gate, for the agent and its sub-agents.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hook_support::{
    SESSION, bash_proposed, hook_answer, merge, payload, permission_decision, session_summary,
};
use crate::support::CliWorld;

const DEFINITION: &str = "context: {}\nlimits: { cost_usd: 100 }\n";

/// Appends a model answer to a transcript.
fn append_answer(file: &Path, id: &str, model: &str, sub_agent: bool, input: u64) {
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 0, "output_tokens": 0});
    let message = json!({"id": id, "model": model, "content": [], "usage": usage});
    let line = json!({"type": "assistant", "isSidechain": sub_agent, "message": message});
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = fs::read_to_string(file).unwrap_or_default();
    fs::write(file, format!("{before}{line}\n")).unwrap();
}

fn send_hook_event(world: &CliWorld, event: &str, agent: Option<&str>) -> Value {
    let transcript = world.root().join(format!("{SESSION}.jsonl"));
    let mut extra = json!({"transcript_path": transcript, "tool_calls": []});
    if let Some(agent) = agent {
        merge(&mut extra, json!({"agent_id": agent, "agent_type": "x"}));
    }
    hook_answer(world, &payload(world, event, extra))
}

#[test]
fn the_transcript_provides_context_usage_and_cost() {
    let world = CliWorld::new(DEFINITION);
    let start = json!({"source": "startup", "model": "claude-sonnet-4-5"});
    assert_eq!(hook_answer(&world, &payload(&world, "SessionStart", start)), Value::Null);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let sub = world.root().join(SESSION).join("subagents/agent-a1.jsonl");
    append_answer(&main, "m1", "claude-sonnet-4-5-20250929", false, 48_000);
    append_answer(&sub, "s1", "claude-haiku-4-5-20251001", true, 0);
    // A repeated event counts once.
    for _ in 0..2 {
        send_hook_event(&world, "PostToolBatch", None);
        send_hook_event(&world, "PostToolBatch", Some("a1"));
    }
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "ls")), Value::Null);
    append_answer(&main, "m2", "claude-sonnet-4-5-20250929", false, 72_000);
    send_hook_event(&world, "PostToolBatch", None);
    let answer = hook_answer(&world, &bash_proposed(&world, "c2", "ls"));
    assert_eq!(permission_decision(&answer), None);
    let context = answer.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str);
    let context = context.unwrap_or_else(|| panic!("{answer}"));
    assert!(context.contains("The context is 86 % full (172000 of 200000 tokens)."), "{context}");
    assert!(context.contains("`.jackline/MISSION_BRIEFING.md`"), "{context}");

    let summary = session_summary(&world);
    // (0.048 + 0.072) × 3 USD for the new input, plus three times 0.1 million cached tokens at
    // 0.30, 0.30 and 0.10 USD.
    assert_eq!(summary["budgets"][0]["used"], json!(430_000));
    let row = |number: usize, field: &str| summary["context"][number][field].clone();
    assert_eq!(
        (row(0, "actor"), row(0, "pct"), row(0, "level")),
        (json!("main"), json!(86), json!("compact"))
    );
    assert_eq!(
        (row(1, "actor"), row(1, "pct"), row(1, "level")),
        (json!("a1"), json!(50), json!("ok"))
    );
    let output = world.jackline(&["status", SESSION]).stdout;
    for fragment in
        ["0.43 of 100.00 USD", "86 % (172000 of 200000 tokens)", "50 % (100000 of 200000 tokens)"]
    {
        assert!(output.contains(fragment), "{fragment}: {output}");
    }
}

fn input_tokens(world: &CliWorld) -> (Value, Value) {
    let summary = session_summary(world);
    let value = |pointer: &str| summary.pointer(pointer).cloned().unwrap_or_default();
    (value("/usage/input"), value("/turn/usage/input"))
}

const SONNET: &str = "claude-sonnet-4-5-20250929";

/// The client may write an answer after its call has finished: two answers may arrive together, and
/// the last answer of a turn arrives after its stop.
#[test]
fn answers_that_are_written_late_count_in_their_own_turn() {
    let world = CliWorld::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let transcript = json!({"transcript_path": main});
    let prompt = |text: &str| {
        let mut extra = transcript.clone();
        merge(&mut extra, json!({"prompt": text}));
        hook_answer(&world, &payload(&world, "UserPromptSubmit", extra))
    };
    prompt("begin");
    send_hook_event(&world, "PostToolBatch", None);
    append_answer(&main, "m1", SONNET, false, 1);
    append_answer(&main, "m2", SONNET, false, 20);
    send_hook_event(&world, "PostToolBatch", None);
    assert_eq!(input_tokens(&world), (json!(21), json!(21)));
    send_hook_event(&world, "Stop", None);
    append_answer(&main, "m3", SONNET, false, 300);
    prompt("go on");
    assert_eq!(input_tokens(&world), (json!(321), json!(0)));
    append_answer(&main, "m4", SONNET, false, 4000);
    hook_answer(&world, &payload(&world, "SessionEnd", transcript));
    assert_eq!(input_tokens(&world), (json!(4321), json!(4000)));
    world.verify_and_replay(SESSION);
}

/// The last answer before a compaction is written after the stop. It must not make the compaction
/// look ineffective.
#[test]
fn an_answer_from_before_a_compaction_does_not_count_as_context_after_it() {
    let world = CliWorld::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let start = |source: &str| {
        let extra = json!({"source": source, "model": SONNET, "transcript_path": main});
        hook_answer(&world, &payload(&world, "SessionStart", extra));
    };
    start("startup");
    append_answer(&main, "m1", SONNET, false, 70_000);
    send_hook_event(&world, "Stop", None);
    append_answer(&main, "m2", SONNET, false, 75_000);
    start("compact");
    // The answer after the compaction is not written yet.
    send_hook_event(&world, "PostToolBatch", None);
    append_answer(&main, "m3", SONNET, false, 20_000);
    send_hook_event(&world, "PostToolBatch", None);
    let row = |field: &str| session_summary(&world)["context"][0][field].clone();
    assert_eq!((row("used"), row("ineffective")), (json!(120_000), json!(0)));
    world.verify_and_replay(SESSION);
}

/// The transcript of a continued session starts with the answers of the earlier session.
#[test]
fn usage_from_before_the_start_of_a_session_does_not_count() {
    let world = CliWorld::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let old = json!({"type": "assistant", "timestamp": "2020-01-31T12:00:00.000Z", "message":
        {"id": "m0", "usage": {"input_tokens": 7, "output_tokens": 7}}});
    fs::write(&main, format!("{old}\n")).unwrap();
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "ls")), Value::Null);
    send_hook_event(&world, "PostToolBatch", None);
    append_answer(&main, "m1", SONNET, false, 20);
    send_hook_event(&world, "PostToolBatch", None);
    assert_eq!(input_tokens(&world).0, json!(20));
}

/// A token limit cannot count unreadable usage, so the agent and `status` report it.
#[test]
fn unreadable_usage_is_reported_once_and_shown_in_status() {
    let world = CliWorld::new("limits: { total_tokens: 100 }\n");
    let main = world.root().join(format!("{SESSION}.jsonl"));
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c0", "ls")), Value::Null);
    for (id, input) in [("m1", json!(-5)), ("m2", json!("9"))] {
        let message = json!({"id": id, "usage": {"input_tokens": input, "output_tokens": 1}});
        let before = fs::read_to_string(&main).unwrap_or_default();
        let line = json!({"type": "assistant", "message": message});
        fs::write(&main, format!("{before}{line}\n")).unwrap();
        for _ in 0..2 {
            send_hook_event(&world, "PostToolBatch", None);
        }
    }
    let answer = hook_answer(&world, &bash_proposed(&world, "c1", "ls")).to_string();
    assert!(answer.contains("The usage of some model replies could not be read"), "{answer}");
    let again = hook_answer(&world, &bash_proposed(&world, "c2", "ls")).to_string();
    assert!(!again.contains("The usage of some model replies could not be read"), "{again}");
    assert_eq!(session_summary(&world)["usage"]["unknown"], json!(2));
    let output = world.jackline(&["status", SESSION]).stdout;
    assert!(output.contains("2 answers of the model with unknown usage"), "{output}");
    world.verify_and_replay(SESSION);
}
