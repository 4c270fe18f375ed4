//! A context that fills up: the client compacts itself, so the agent is briefed, and
//! told again afterwards what holds.

use jackline_model::scripted::{Request, Script, Step, Usage};
use serde_json::{Value, json};

use crate::world::{World, bash, story, told_call, was_halted};

const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

/// What is said to have been in the context, of 200,000.
fn filled(pct: u64) -> Usage {
    Usage { input: pct * 2000, output: 0, ..Usage::default() }
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_context_that_fills_up_is_briefed_and_the_agent_is_told() {
    let world = World::new("context: {}\ncompletion: { files: [report.md] }\n");
    let seen = world.play(Script::new([
        told_call("echo a").costing(filled(74)),
        told_call("touch meanwhile").costing(filled(86)),
        told_call("touch after").costing(filled(86)),
        Step::say("I am done.").costing(filled(86)),
    ]));
    let when = |text: &str| seen.of(None).position(|request| request.shows(text));
    // The usage of an answer is known when its call is over, and told with the next.
    let words = "The context is 86 % full (172000 of 200000 tokens). A briefing was written to";
    assert_eq!(when(words), Some(3), "{}", story(&seen));
    assert_eq!(when("The context is 74"), None, "{}", story(&seen));
    // Nobody but the client can compact, so nothing is held; its stop is let pass.
    assert!(world.scratch.has("meanwhile") && world.scratch.has("after"), "{}", story(&seen));
    let code = json!({ "code": "BUDGET_EXCEEDED", "detail": "context" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    let briefing = world.scratch.read(BRIEFING).unwrap();
    for words in ["- do the scripted work", "used: 172000", "## Next step"] {
        assert!(briefing.contains(words), "{briefing}");
    }
    assert_eq!(world.safety(), ["COMPACTION_GATE: briefed"]);
    world.prove();
}

/// All that the model was shown.
fn shown(request: &Request) -> String {
    request.body.get("messages").map(|messages| format!("{messages:#}")).unwrap_or_default()
}

/// What a person types; the summary is the model's.
fn compact(world: &World) {
    let seen = world.play_on("/compact", Script::new([Step::say("The summary.")]));
    let done = |line: &Value| line.get("subtype") == Some(&"compact_boundary".into());
    assert!(seen.said.iter().any(done), "{}", story(&seen));
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_compacted_agent_is_told_again_what_holds() {
    let definition = "
context: {}
loops: { profile: strict }
completion: { clean: {} }
";
    let world = World::new(definition);
    let mut steps = vec![bash("echo 'x = 1' > code.py")];
    steps.extend(vec![bash("cat absent"); 3]);
    // A stop is blocked three times, and then let pass.
    steps.extend(vec![Step::say("I am done."); 4]);
    let full = steps.into_iter().map(|step| step.costing(filled(82)));
    let seen = world.play(Script::new(full.collect::<Vec<_>>()));
    assert!(world.scratch.has(BRIEFING), "{}", story(&seen));
    compact(&world);
    let roomy = told_call("echo a").costing(filled(20));
    let seen = world.play_on("go on", Script::new([roomy]));
    let first = seen.of(None).next().unwrap();
    for words in [
        "The context was compacted. This still holds:",
        "k1 (turn): `Bash(cat absent)` brought the same result 3 times",
        "Code was changed, and no tests were run since.",
        "Read `.jackline/MISSION_BRIEFING.md`, then go on.",
    ] {
        assert!(first.shows(words), "{words}: {}", shown(first));
    }
    // Nobody knew how full it was then, and now they do.
    assert!(!first.shows("82 %"), "{}", shown(first));
    let row = |field: &str| world.status().pointer(&format!("/summary/context/0/{field}")).cloned();
    assert_eq!((row("level"), row("ineffective")), (Some(json!("ok")), Some(json!(0))));
    world.prove();
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn two_useless_compactions_end_the_session() {
    let world = World::new("context: {}\n");
    let fills = |pct, name: &str| {
        let touch = told_call(&format!("touch {name}"));
        Script::new([touch, Step::say("I am done.")].map(|step| step.costing(filled(pct))))
    };
    world.play(fills(90, "a"));
    compact(&world);
    let seen = world.play_on("go on", fills(89, "b"));
    assert!(world.scratch.has("b") && !was_halted(&seen), "{}", story(&seen));
    compact(&world);
    let seen = world.play_on("go on", fills(88, "c"));
    assert!(was_halted(&seen) && seen.of(None).count() == 1, "{}", story(&seen));
    assert!(seen.told_person("SYSTEM_ERROR{compaction}"), "{}", story(&seen));
    let code = json!({ "code": "SYSTEM_ERROR", "detail": "compaction" });
    assert_eq!(world.stop_code(), code, "{}", story(&seen));
    world.prove();
}
