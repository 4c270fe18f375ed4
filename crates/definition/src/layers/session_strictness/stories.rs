//! Values that look stricter, each with a story in which they are looser.

use std::sync::Arc;

use jackline_engine::verdict::CompletionResult;
use jackline_engine::{Decision, Session};
use serde_json::json;

use super::super::combine;
use super::super::tests::{load_definition, repository, user};
use super::{
    StoryMove, UNDECLARED_TOOL, UNIQUE_PER_CALL, check_not_weaker, decide, effective_decision,
    events,
};

/// Parses a story from short words.
fn parse_story(story: &str) -> Vec<StoryMove> {
    let call = |tool, args, exit_code| StoryMove::Call { tool, args, result: "one", exit_code };
    let line = |line: &str, exit_code| call("Bash", json!({ "command": line }), exit_code);
    let edit = |path: &str| call("Edit", json!({ "file_path": path }), 0);
    let strange = |q: &str| call(UNDECLARED_TOOL, json!({ "q": q }), 0);
    let next = |word: &str| match word {
        "edit" => edit("src/a.rs"),
        "note" => edit("notes/a.txt"),
        "think" => call("TodoWrite", json!({ "nonce": UNIQUE_PER_CALL }), 0),
        "a" | "b" => strange(word),
        "fails" => line("pytest", 1),
        "push" => line("git push", 0),
        "sed" => line("sed -i s/a/b/ src/a.rs", 0),
        "eval" => line("eval \"$WHAT\"", 0),
        "half-full" => StoryMove::Usage { used: 50, model: "m", window: Some(100) },
        "stop" => StoryMove::Stop,
        "prompt" => StoryMove::Prompt,
        other => line(other, 0),
    };
    story.split_whitespace().map(next).collect()
}

/// The higher layer, the lower layer, a story, and how often it repeats. In this story the agent
/// would go further if the layers were joined by the number that looks stricter.
const STORIES: [(&str, &str, &str, usize); 15] = [
    // Longer and shorter iterations. In short ones, a change is tested in the next iteration.
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
    // A successful call resets the count of another call that then looks identical.
    (PUSH, "loops: { volatile: [/command] }", "push ls", 6),
    // If `think` calls count, they hide a repeated call between them.
    ("loops: {}", "loops: { transparent: [] }", "ls think", 6),
    // A longer cycle must match exactly and is detected later.
    (
        "loops: { cycle: { period_max: 2, repeats: 9 } }",
        "loops: { cycle: { period_max: 8, repeats: 9 } }",
        "a b edit",
        6,
    ),
    // A full context lets a stop pass if the client compacts by its own rules.
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
    // One warning per session is less than one per turn.
    (
        "limits: { steps: { max: 2, soft: true, per: turn } }",
        "limits: { steps: { max: 1, soft: true } }",
        "prompt ls ls ls",
        2,
    ),
    // Tools that only the lower layer declares.
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
    // Commands that only the lower layer recognises as tools.
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
fn values_that_only_look_stricter_let_no_agent_go_further() {
    for (high, low, story, times) in STORIES {
        let (above, below) = (load_definition(high), load_definition(low));
        let both = combine(vec![user(above.clone()), repository(below)], false).definition;
        let alone = combine(vec![user(above)], false).definition;
        let events = events("claude", &parse_story(&format!("{story} ").repeat(times)));
        assert_eq!(check_not_weaker(&alone, &both, &events), Ok(()), "{high} + {low}");
        // The higher layer must react in this story.
        let mut session = Session::new(Arc::new(alone), Arc::default());
        let reacted = events.iter().any(|event| {
            let verdict = decide(&mut session, event);
            effective_decision(&verdict) > Decision::Allow
                || verdict.feedback.iter().any(|it| it.provider == "Budget")
                || matches!(verdict.completion, Some(CompletionResult::Incomplete { .. }))
        });
        assert!(reacted, "{high}");
    }
}
