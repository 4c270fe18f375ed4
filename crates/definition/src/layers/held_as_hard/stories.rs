//! Values that look stricter, with a story in which they are not.

use std::sync::Arc;

use jackline_engine::verdict::Completion;
use jackline_engine::{Decision, Session};
use serde_json::json;

use super::super::combine;
use super::super::tests::{of_file, repository, user};
use super::{Move, NEW, STRANGE, decide, events, held_less, holds};

/// A story in short words.
fn told(story: &str) -> Vec<Move> {
    let call = |tool, args, exit_code| Move::Call { tool, args, result: "one", exit_code };
    let line = |line: &str, exit_code| call("Bash", json!({ "command": line }), exit_code);
    let edit = |path: &str| call("Edit", json!({ "file_path": path }), 0);
    let strange = |q: &str| call(STRANGE, json!({ "q": q }), 0);
    let next = |word: &str| match word {
        "edit" => edit("src/a.rs"),
        "note" => edit("notes/a.txt"),
        "think" => call("TodoWrite", json!({ "nonce": NEW }), 0),
        "a" | "b" => strange(word),
        "fails" => line("pytest", 1),
        "push" => line("git push", 0),
        "sed" => line("sed -i s/a/b/ src/a.rs", 0),
        "eval" => line("eval \"$WHAT\"", 0),
        "half-full" => Move::Usage { used: 50, model: "m", window: Some(100) },
        "stop" => Move::Stop,
        "prompt" => Move::Prompt,
        other => line(other, 0),
    };
    story.split_whitespace().map(next).collect()
}

/// What the higher layer says, what the lower one says, and a story in which the
/// agent would go further with both if these were joined as they look.
const STORIES: [(&str, &str, &str, usize); 15] = [
    // Longer iterations, and shorter ones: what is changed in one is tested in the next.
    (
        "limits: { iterations: 1 }",
        "progress: { max_consecutive_failures: 99, steps_per_iteration: 80 }",
        "ls",
        60,
    ),
    (
        "progress: { max_consecutive_failures: 2, steps_per_iteration: 4 }",
        "progress: { max_consecutive_failures: 2, steps_per_iteration: 1 }",
        "edit fails",
        9,
    ),
    // An override instead of a pause.
    ("loops: {}", "loops: { profile: strict }", "ls make", 4),
    // A call that runs forgives another that looks the same.
    (PUSH, "loops: { volatile: [/command] }", "push ls", 6),
    // Thoughts in between hide a repeated call, once they are looked at.
    ("loops: {}", "loops: { transparent: [] }", "ls think", 6),
    // A longer cycle is exact, and has more time.
    (
        "loops: { cycle: { period_max: 2, repeats: 9 } }",
        "loops: { cycle: { period_max: 8, repeats: 9 } }",
        "a b edit",
        6,
    ),
    // A full context lets a stop pass where the client compacts itself.
    (
        "completion: { clean: {} }",
        "context: { warn: 1, compact: 1, block: 1 }",
        "half-full edit stop",
        1,
    ),
    (
        "completion: { clean: {} }\ncontext: {}",
        "context: { warn: 1, compact: 1, block: 1 }",
        "half-full edit stop",
        1,
    ),
    // Once a session is less often than once a turn.
    (
        "limits: { steps: { max: 2, soft: true, per: turn } }",
        "limits: { steps: { max: 1, soft: true } }",
        "prompt ls ls ls",
        2,
    ),
    // Tools that only the lower layer knows.
    ("loops: {}", "tools: { mcp_x: { kind: think } }\nunknown_tools: allow", "a", 12),
    (
        "loops: {}",
        "tools: { mcp_x: { kind: read } }\nunknown_tools: allow",
        "a b edit note edit note a edit b",
        1,
    ),
    ("loops: {}", "tools: { TodoWrite: { commands: [ls] } }\nunknown_tools: allow", "ls", 12),
    (
        "completion: { clean: {} }\ndirty_bits: { tests: [ci] }",
        "tools: { ci: { commands: ['true'] } }\nunknown_tools: allow",
        "edit true stop",
        1,
    ),
    // Commands that only the lower layer takes for tools.
    (
        "completion: { clean: {} }",
        "tools: { x: { commands: [sed] } }\nunknown_tools: allow",
        "sed stop",
        1,
    ),
    (
        "shell: { opaque: deny }",
        "tools: { x: { commands: [eval] } }\nunknown_tools: allow",
        "eval",
        1,
    ),
];

const PUSH: &str = "loops: {}\nrules: [ { name: r, command: git push, deny: No., examples: { deny: [git push] } } ]";

#[test]
fn nobody_goes_further_with_what_only_looks_stricter() {
    for (high, low, story, times) in STORIES {
        let (above, below) = (of_file(high), of_file(low));
        let both = combine(vec![user(above.clone()), repository(below)], false).definition;
        let alone = combine(vec![user(above)], false).definition;
        let events = events("claude", &told(&format!("{story} ").repeat(times)));
        assert_eq!(held_less(&alone, &both, &events), Ok(()), "{high} + {low}");
        // The higher layer has something to say in this story.
        let mut session = Session::new(Arc::new(alone), Arc::default());
        let spoke = events.iter().any(|event| {
            let verdict = decide(&mut session, event);
            holds(&verdict) > Decision::Allow
                || verdict.feedback.iter().any(|said| said.provider == "Budget")
                || matches!(verdict.completion, Some(Completion::Incomplete { .. }))
        });
        assert!(spoke, "{high}");
    }
}
