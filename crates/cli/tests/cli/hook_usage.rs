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

fn usage(world: &World) -> (Value, Value) {
    let summary = status(world);
    let of = |pointer: &str| summary.pointer(pointer).cloned().unwrap_or_default();
    (of("/usage/input"), of("/turn/usage/input"))
}

const SONNET: &str = "claude-sonnet-4-5-20250929";

/// The client writes an answer down when the call in it may long be over: two may lie
/// there at once, and the last one of a turn only after its stop.
#[test]
fn answers_that_are_written_down_late_all_count_each_in_its_turn() {
    let world = World::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let transcript = json!({"transcript_path": main});
    let prompt = |text: &str| {
        let mut said = transcript.clone();
        merge(&mut said, json!({"prompt": text}));
        hear(&world, &payload(&world, "UserPromptSubmit", said))
    };
    prompt("begin");
    told(&world, "PostToolBatch", None);
    answers(&main, "m1", SONNET, false, 1);
    answers(&main, "m2", SONNET, false, 20);
    told(&world, "PostToolBatch", None);
    assert_eq!(usage(&world), (json!(21), json!(21)));
    told(&world, "Stop", None);
    answers(&main, "m3", SONNET, false, 300);
    prompt("go on");
    assert_eq!(usage(&world), (json!(321), json!(0)));
    answers(&main, "m4", SONNET, false, 4000);
    hear(&world, &payload(&world, "SessionEnd", transcript));
    assert_eq!(usage(&world), (json!(4321), json!(4000)));
    world.prove(SESSION);
}

/// The last answer before a compaction is written down after the stop, and would
/// look as if the compaction had freed nothing.
#[test]
fn an_answer_from_before_a_compaction_says_nothing_of_what_it_freed() {
    let world = World::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let start = |source: &str| {
        let said = json!({"source": source, "model": SONNET, "transcript_path": main});
        hear(&world, &payload(&world, "SessionStart", said));
    };
    start("startup");
    answers(&main, "m1", SONNET, false, 70_000);
    told(&world, "Stop", None);
    answers(&main, "m2", SONNET, false, 75_000);
    start("compact");
    // The answer to what follows is not there yet.
    told(&world, "PostToolBatch", None);
    answers(&main, "m3", SONNET, false, 20_000);
    told(&world, "PostToolBatch", None);
    let row = |field: &str| status(&world)["context"][0][field].clone();
    assert_eq!((row("used"), row("ineffective")), (json!(120_000), json!(0)));
    world.prove(SESSION);
}

/// A session that goes on with what another has done has a transcript that begins
/// with it.
#[test]
fn what_was_used_before_a_session_began_is_not_its_own() {
    let world = World::new(DEFINITION);
    let main = world.root().join(format!("{SESSION}.jsonl"));
    let old = json!({"type": "assistant", "timestamp": "2020-01-31T12:00:00.000Z", "message":
        {"id": "m0", "usage": {"input_tokens": 7, "output_tokens": 7}}});
    fs::write(&main, format!("{old}\n")).unwrap();
    assert_eq!(hear(&world, &bash(&world, "c1", "ls")), Value::Null);
    told(&world, "PostToolBatch", None);
    answers(&main, "m1", SONNET, false, 20);
    told(&world, "PostToolBatch", None);
    assert_eq!(usage(&world).0, json!(20));
}

/// A limit on tokens never acts on what nobody can read. So it is said: to the agent, and in
/// `status`.
#[test]
fn usage_that_nobody_can_read_is_told_once_and_shown() {
    let world = World::new("limits: { total_tokens: 100 }\n");
    let main = world.root().join(format!("{SESSION}.jsonl"));
    assert_eq!(hear(&world, &bash(&world, "c0", "ls")), Value::Null);
    for (id, input) in [("m1", json!(-5)), ("m2", json!("9"))] {
        let message = json!({"id": id, "usage": {"input_tokens": input, "output_tokens": 1}});
        let before = fs::read_to_string(&main).unwrap_or_default();
        let line = json!({"type": "assistant", "message": message});
        fs::write(&main, format!("{before}{line}\n")).unwrap();
        for _ in 0..2 {
            told(&world, "PostToolBatch", None);
        }
    }
    let said = hear(&world, &bash(&world, "c1", "ls")).to_string();
    assert!(said.contains("Nobody can read what some answers of the model used"), "{said}");
    let again = hear(&world, &bash(&world, "c2", "ls")).to_string();
    assert!(!again.contains("Nobody can read what some answers of the model used"), "{again}");
    assert_eq!(status(&world)["usage"]["unknown"], json!(2));
    let shown = world.jackline(&["status", SESSION]).stdout;
    assert!(shown.contains("2 answers of the model, whose usage can't be read"), "{shown}");
    world.prove(SESSION);
}
