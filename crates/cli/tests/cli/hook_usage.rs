//! What the client's transcripts say of tokens reaches limits and the context
//! gate, the agent's and its sub-agents'.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hook_support::{SESSION, bash, hear, merge, payload, permission, status};
use crate::support::World;

const DEFINITION: &str = "context: {}\nlimits: { cost_usd: 100 }\n";

/// Adds an answer of the model to a transcript.
fn answers(file: &Path, id: &str, model: &str, sub_agent: bool, input: u64) {
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 0, "output_tokens": 0});
    let message = json!({"id": id, "model": model, "content": [], "usage": usage});
    let line = json!({"type": "assistant", "isSidechain": sub_agent, "message": message});
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let before = fs::read_to_string(file).unwrap_or_default();
    fs::write(file, format!("{before}{line}\n")).unwrap();
}

fn told(world: &World, event: &str, agent: Option<&str>) -> Value {
    let transcript = world.root().join(format!("{SESSION}.jsonl"));
    let mut beyond = json!({"transcript_path": transcript, "tool_calls": []});
    if let Some(agent) = agent {
        merge(&mut beyond, json!({"agent_id": agent, "agent_type": "x"}));
    }
    hear(world, &payload(world, event, beyond))
}

#[test]
fn the_transcript_fills_the_context_and_costs() {
    let world = World::new(DEFINITION);
    let start = json!({"source": "startup", "model": "claude-sonnet-4-5"});
    assert_eq!(hear(&world, &payload(&world, "SessionStart", start)), Value::Null);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let sub = world.root().join(SESSION).join("subagents/agent-a1.jsonl");
    answers(&main, "m1", "claude-sonnet-4-5-20250929", false, 48_000);
    answers(&sub, "s1", "claude-haiku-4-5-20251001", true, 0);
    // Told twice, it counts once.
    for _ in 0..2 {
        told(&world, "PostToolBatch", None);
        told(&world, "PostToolBatch", Some("a1"));
    }
    assert_eq!(hear(&world, &bash(&world, "c1", "ls")), Value::Null);
    answers(&main, "m2", "claude-sonnet-4-5-20250929", false, 72_000);
    told(&world, "PostToolBatch", None);
    let heard = hear(&world, &bash(&world, "c2", "ls"));
    assert_eq!(permission(&heard), None);
    let said = heard.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str);
    let said = said.unwrap_or_else(|| panic!("{heard}"));
    assert!(said.contains("The context is 86 % full (172000 of 200000 tokens)."), "{said}");
    assert!(said.contains("`.jackline/MISSION_BRIEFING.md`"), "{said}");

    let summary = status(&world);
    // 0.048 + 0.072 times 3, three times 0.1 at 0.30, 0.30 and 0.10.
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
    let shown = world.jackline(&["status", SESSION]).stdout;
    for words in
        ["0.43 of 100.00 USD", "86 % (172000 of 200000 tokens)", "50 % (100000 of 200000 tokens)"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}
