//! Policies and checkers written in Rust.

use jackline_engine::Definition;
use jackline_engine::definition::{CompletionRequirement, Policy, PolicyRule};
use jackline_engine::facts::{CallView, PolicyFact};
use jackline_runtime::{CompletionChecker, Extensions, PolicyDecision, Runtime, ToolPolicy};
use serde_json::{Value, json};

use crate::support::{RuntimeTest, call, send};

/// Allows `deploy` after `lint` has succeeded, and remembers every tool that succeeded.
struct LintFirst;

impl ToolPolicy for LintFirst {
    fn name(&self) -> &'static str {
        "lint_first"
    }

    fn check(&self, state: &str, call: &CallView) -> PolicyDecision {
        match call.tool.as_str() {
            "deploy" if !state.contains("lint") => {
                PolicyDecision::deny(format!("lint first; so far: [{state}]"))
            }
            "silent" => PolicyDecision { allowed: false, reason: None },
            "panic" => panic!("a bug in a policy"),
            _ => PolicyDecision::allow(),
        }
    }

    fn on_result(&self, state: &str, call: &CallView) -> String {
        assert_ne!(call.tool, "panic_later", "a bug in a policy");
        format!("{state} {}", call.tool).trim().to_owned()
    }
}

/// Returns the result with which it was created.
struct FixedChecker(Result<(), &'static str>);

impl CompletionChecker for FixedChecker {
    fn name(&self) -> &'static str {
        "says"
    }

    fn check(&self) -> Result<(), String> {
        assert_ne!(self.0, Err("panic"), "a bug in a checker");
        self.0.map_err(str::to_owned)
    }
}

fn guarded_by_policy() -> RuntimeTest {
    let rule = PolicyRule::Custom { name: "lint_first".to_owned() };
    RuntimeTest::with_definition(&Definition {
        policies: vec![Policy { section: None, rule }],
        ..Definition::default()
    })
}

fn with_policy(world: &RuntimeTest) -> Runtime {
    world.runtime().with_extensions(Extensions::default().with_policy(LintFirst))
}

fn guarded_by_checker() -> RuntimeTest {
    RuntimeTest::with_definition(&Definition {
        completion: Some(CompletionRequirement::Custom { name: "says".to_owned() }),
        ..Definition::default()
    })
}

/// The verdict on a stop.
fn stop(extensions: Extensions) -> Value {
    let world = guarded_by_checker();
    let mut runtime = world.runtime().with_extensions(extensions);
    let verdict = send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    world.prove("s");
    verdict
}

#[test]
fn a_policy_denies_with_its_own_text() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    assert_eq!(
        call(&mut runtime, "c1", "deploy"),
        json!({"v": 1, "session": "s", "seq": 1, "step": 1, "call": "c1", "decision": "deny",
            "enforced": true,
            "violations": [{"id": "v1.1", "guard": "custom", "type": "tool_policy_violation",
                "subtype": "custom_policy", "class": "recoverable_guardrail",
                "message": "lint first; so far: []", "location": "lint_first",
                "decision": "deny", "enforced": true}],
            "context": "lint first; so far: []"})
    );
    assert_eq!(
        call(&mut runtime, "c2", "lint"),
        json!({"v": 1, "session": "s", "seq": 2, "step": 2, "call": "c2", "decision": "allow"})
    );
    assert_eq!(call(&mut runtime, "c3", "deploy")["decision"], "allow");
    world.prove("s");
}

#[test]
fn a_denial_without_a_reason_gets_a_default_one() {
    let world = guarded_by_policy();
    let verdict = call(&mut with_policy(&world), "c1", "silent");
    assert_eq!(verdict["decision"], "deny");
    assert_eq!(verdict["context"], "policy `lint_first` does not allow `silent`");
    world.prove("s");
}

#[test]
fn the_memory_of_a_policy_survives_a_restart() {
    let world = guarded_by_policy();
    assert_eq!(call(&mut with_policy(&world), "c1", "lint")["decision"], "allow");
    assert_eq!(call(&mut with_policy(&world), "c2", "deploy")["decision"], "allow");
    // It also survives the loss of the saved state, which is a cache.
    std::fs::remove_file(world.directory("s").join("state")).unwrap();
    assert_eq!(call(&mut with_policy(&world), "c3", "deploy")["decision"], "allow");
    world.prove("s");
}

#[test]
fn a_reset_makes_a_policy_forget() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    call(&mut runtime, "c1", "lint");
    assert_eq!(send(&mut runtime, r#"{"event":"control","action":"reset"}"#)["decision"], "allow");
    assert_eq!(call(&mut runtime, "c2", "deploy")["context"], "lint first; so far: []");
    world.prove("s");
}

#[test]
fn a_policy_forgets_the_successes_of_a_failed_attempt() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    call(&mut runtime, "c1", "build");
    send(&mut runtime, r#"{"event":"attempt_started","attempt":"a"}"#);
    call(&mut runtime, "c2", "lint");
    send(&mut runtime, r#"{"event":"attempt_ended","attempt":"a","result":"rollback"}"#);
    assert_eq!(call(&mut runtime, "c3", "deploy")["context"], "lint first; so far: [build]");
    world.prove("s");
}

#[test]
fn a_failed_result_does_not_change_a_policy() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    send(&mut runtime, r#"{"event":"tool_proposed","call":"c","tool":"lint","args":{}}"#);
    send(&mut runtime, r#"{"event":"tool_finished","call":"c","status":"error"}"#);
    assert_eq!(call(&mut runtime, "c2", "deploy")["context"], "lint first; so far: []");
    world.prove("s");
}

fn broken_policy(reason: &str) -> Value {
    let message = format!("the guard is broken, not the call: policy `lint_first`: {reason}");
    let correction = "tell the person: they can fix it, or turn the guard off for a while with `jackline off --for 30m --why …`";
    json!({"v": 1, "session": "s", "seq": 1, "step": 1, "call": "c1", "decision": "deny",
        "enforced": true,
        "violations": [{"id": "v1.1", "guard": "custom", "type": "guard_fault",
            "subtype": "custom_policy_broken", "class": "terminal_guardrail",
            "message": message, "location": "lint_first", "correction": correction,
            "decision": "deny", "enforced": true}],
        "context": format!("{message}\n-> {correction}")})
}

#[test]
fn a_panicking_policy_denies_as_a_broken_guard() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    assert_eq!(call(&mut runtime, "c1", "panic"), broken_policy("it panicked"));
    assert_eq!(call(&mut runtime, "c2", "lint")["decision"], "allow");
    world.prove("s");
}

#[test]
fn an_unregistered_policy_denies_as_a_broken_guard() {
    let world = guarded_by_policy();
    let verdict = call(&mut world.runtime(), "c1", "lint");
    assert_eq!(verdict, broken_policy("it is not registered with this runtime"));
    world.prove("s");
}

#[test]
fn a_policy_that_panics_on_a_result_keeps_its_state_and_is_recorded() {
    let world = guarded_by_policy();
    let mut runtime = with_policy(&world);
    call(&mut runtime, "c1", "lint");
    call(&mut runtime, "c2", "panic_later");
    assert_eq!(call(&mut runtime, "c3", "deploy")["decision"], "allow");
    let fact = &world.records("s")[3].facts.policies[&0];
    assert_eq!(*fact, PolicyFact::Broken { reason: "it panicked".to_owned() });
    world.prove("s");
}

#[test]
fn a_checker_lets_a_complete_task_stop() {
    let verdict = stop(Extensions::default().with_checker(FixedChecker(Ok(()))));
    assert_eq!(
        verdict,
        json!({"v": 1, "session": "s", "seq": 1, "step": 0, "decision": "allow",
            "completion": {"result": "complete"}})
    );
}

#[test]
fn a_checker_blocks_with_its_own_text_or_a_default_one() {
    for (feedback, text) in
        [("Two tests fail.", "Two tests fail."), ("", "The task is not complete yet.")]
    {
        let verdict = stop(Extensions::default().with_checker(FixedChecker(Err(feedback))));
        assert_eq!(verdict["decision"], "deny");
        assert_eq!(verdict["context"], format!("{text}\n-> finish the task, then stop"));
        assert_eq!(verdict["completion"], json!({"result": "incomplete", "feedback": text}));
    }
}

#[test]
fn a_broken_checker_blocks_as_a_broken_guard() {
    let broken = [
        (Extensions::default(), "it is not registered with this runtime"),
        (Extensions::default().with_checker(FixedChecker(Err("panic"))), "it panicked"),
    ];
    for (extensions, reason) in broken {
        let verdict = stop(extensions);
        let text = format!("The guard is broken, not the work: checker `says`: {reason}.");
        assert_eq!(verdict["decision"], "deny");
        assert_eq!(verdict["completion"]["feedback"], text);
        assert_eq!(verdict["violations"][0]["message"], text);
        assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    }
}

/// Allows writing a file after it was read, by the path that its calls carry.
struct ReadFirst;

impl ToolPolicy for ReadFirst {
    fn name(&self) -> &'static str {
        "lint_first"
    }

    fn check(&self, state: &str, call: &CallView) -> PolicyDecision {
        let path = call.args["path"].as_str().unwrap_or("");
        let is_read = state.split('\n').any(|read| read == path);
        match call.tool.as_str() {
            "write" if !is_read => PolicyDecision::deny(format!("read {path} first")),
            _ => PolicyDecision::allow(),
        }
    }

    fn carry(&self, call: &CallView) -> Option<String> {
        call.args["path"].as_str().map(str::to_owned)
    }

    fn on_result(&self, state: &str, call: &CallView) -> String {
        format!("{state}\n{}", call.carried.as_deref().unwrap_or(""))
    }
}

#[test]
fn a_policy_gets_its_carried_text_back_with_the_result() {
    let world = guarded_by_policy();
    let propose = |call: &str, tool: &str, path: &str| {
        format!(
            r#"{{"event":"tool_proposed","call":"{call}","tool":"{tool}","args":{{"path":"{path}"}}}}"#
        )
    };
    // Every event has its own process, so nothing stays in memory.
    let runtime = || world.runtime().with_extensions(Extensions::default().with_policy(ReadFirst));
    assert_eq!(send(&mut runtime(), &propose("c1", "write", "a.txt"))["decision"], "deny");
    send(&mut runtime(), &propose("c2", "read", "a.txt"));
    send(&mut runtime(), r#"{"event":"tool_finished","call":"c2","status":"ok"}"#);
    assert_eq!(send(&mut runtime(), &propose("c3", "write", "a.txt"))["decision"], "allow");
    assert_eq!(send(&mut runtime(), &propose("c4", "write", "b.txt"))["decision"], "deny");
    let long = "x".repeat(300);
    let broken = send(&mut runtime(), &propose("c5", "read", &long));
    assert_eq!(broken["violations"][0]["type"], "guard_fault");
    world.prove("s");
}
