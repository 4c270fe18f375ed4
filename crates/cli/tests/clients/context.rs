//! Tests of a context that fills up: the client compacts its context itself, so Jackline writes a
//! briefing and tells the agent the active constraints again.

use jackline_model::scripted::{ModelScript, RecordedRequest, ScriptStep, ScriptUsage};
use serde_json::{Value, json};

use crate::world::{ClientWorld, bash, describe_outcome, recorded_call, was_halted};

const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

/// The usage of an answer that fills the given part of a context of 200,000 tokens.
fn context_usage(pct: u64) -> ScriptUsage {
    ScriptUsage { input: pct * 2000, output: 0, ..ScriptUsage::default() }
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_full_context_is_briefed_and_the_agent_is_told() {
    let world = ClientWorld::new("context: {}\ncompletion: { files: [report.md] }\n");
    let seen = world.play(ModelScript::new([
        recorded_call("echo a").with_usage(context_usage(74)),
        recorded_call("touch meanwhile").with_usage(context_usage(86)),
        recorded_call("touch after").with_usage(context_usage(86)),
        ScriptStep::say("I am done.").with_usage(context_usage(86)),
    ]));
    let when = |text: &str| seen.requests_of(None).position(|request| request.has_text(text));
    // The usage of an answer is known when its call ends. The next answer is the first that can
    // show it.
    let warning = "The context is 86 % full (172000 of 200000 tokens). A briefing was written to";
    assert_eq!(when(warning), Some(3), "{}", describe_outcome(&seen));
    assert_eq!(when("The context is 74"), None, "{}", describe_outcome(&seen));
    // Only the client can compact, so no call is blocked, and the stop is allowed.
    assert!(
        world.scratch.has_path("meanwhile") && world.scratch.has_path("after"),
        "{}",
        describe_outcome(&seen)
    );
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "context" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    let briefing = world.scratch.read(BRIEFING).unwrap();
    for fragment in ["- do the scripted work", "used: 172000", "## Next step"] {
        assert!(briefing.contains(fragment), "{briefing}");
    }
    assert_eq!(world.safety_log_entries(), ["COMPACTION_GATE: briefed"]);
    world.verify_and_replay();
}

/// Returns all messages that the model got.
fn shown_messages(request: &RecordedRequest) -> String {
    request.body.get("messages").map(|messages| format!("{messages:#}")).unwrap_or_default()
}

/// A person types `/compact`. The model writes the summary.
fn compact(world: &ClientWorld) {
    let seen =
        world.resume_and_play("/compact", ModelScript::new([ScriptStep::say("The summary.")]));
    let done = |line: &Value| line.get("subtype") == Some(&"compact_boundary".into());
    assert!(seen.output_lines.iter().any(done), "{}", describe_outcome(&seen));
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_compacted_agent_is_told_the_active_constraints_again() {
    let definition = "
context: {}
loops: { profile: strict }
completion: { clean: {} }
";
    let world = ClientWorld::new(definition);
    let mut steps = vec![bash("echo 'x = 1' > code.py")];
    steps.extend(vec![bash("cat absent"); 3]);
    // Three stops are blocked, and the fourth is allowed.
    steps.extend(vec![ScriptStep::say("I am done."); 4]);
    let full = steps.into_iter().map(|step| step.with_usage(context_usage(82)));
    let seen = world.play(ModelScript::new(full.collect::<Vec<_>>()));
    assert!(world.scratch.has_path(BRIEFING), "{}", describe_outcome(&seen));
    compact(&world);
    let roomy = recorded_call("echo a").with_usage(context_usage(20));
    let seen = world.resume_and_play("go on", ModelScript::new([roomy]));
    let first = seen.requests_of(None).next().unwrap();
    for fragment in [
        "The context was compacted. This is still in force:",
        "k1 (turn): `Bash(cat absent)` returned the same result 3 times",
        "Code was changed, but no tests ran since the last change.",
        "Read `.jackline/MISSION_BRIEFING.md`, then continue.",
    ] {
        assert!(first.has_text(fragment), "{fragment}: {}", shown_messages(first));
    }
    // The usage after the compaction was unknown, and is known now.
    assert!(!first.has_text("82 %"), "{}", shown_messages(first));
    let row = |field: &str| world.status().pointer(&format!("/summary/context/0/{field}")).cloned();
    assert_eq!((row("level"), row("ineffective")), (Some(json!("ok")), Some(json!(0))));
    world.verify_and_replay();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn two_useless_compactions_end_the_session() {
    let world = ClientWorld::new("context: {}\n");
    let fills = |pct, name: &str| {
        let touch = recorded_call(&format!("touch {name}"));
        ModelScript::new(
            [touch, ScriptStep::say("I am done.")].map(|step| step.with_usage(context_usage(pct))),
        )
    };
    world.play(fills(90, "a"));
    compact(&world);
    let seen = world.resume_and_play("go on", fills(89, "b"));
    assert!(world.scratch.has_path("b") && !was_halted(&seen), "{}", describe_outcome(&seen));
    compact(&world);
    let seen = world.resume_and_play("go on", fills(88, "c"));
    assert!(
        was_halted(&seen) && seen.requests_of(None).count() == 1,
        "{}",
        describe_outcome(&seen)
    );
    assert!(seen.showed_person("SYSTEM_ERROR{compaction}"), "{}", describe_outcome(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "compaction" });
    assert_eq!(world.stop_code(), code, "{}", describe_outcome(&seen));
    world.verify_and_replay();
}
