//! Tests of the chat: the messages that a person types to the agent, and the texts that the person
//! sees there.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::hook_support::{
    RULES, SESSION, all_payloads, bash_finished, bash_proposed, command_in_hook_environment,
    hook_answer, hook_command, last_fault_reasons, parse_answer, payload, permission_decision,
    session_summary,
};
use crate::support::{CliWorld, JACKLINE, run_with_input};

const FORGED_EVENT: &str = "a process of the agent sent this event, not its client";

fn send_prompt(world: &CliWorld, text: &str) -> Value {
    hook_answer(world, &payload(world, "UserPromptSubmit", json!({ "prompt": text })))
}

/// Returns the approval code that the person sees.
fn approval_code(answer: &Value) -> String {
    let message = answer["systemMessage"].as_str().unwrap();
    let rest = message.split_once("`jackline allow ").unwrap().1;
    rest.split('`').next().unwrap().to_owned()
}

#[test]
fn a_code_typed_as_a_prompt_allows_exactly_this_call_once() {
    let world = CliWorld::new(RULES);
    let asked = hook_answer(&world, &bash_proposed(&world, "c1", "make deploy"));
    assert_eq!(permission_decision(&asked), Some("deny"));
    let answer = send_prompt(&world, &format!(" {}\n", approval_code(&asked).to_uppercase()));
    let context = "A person allowed exactly this call once: Bash `make deploy`. Make it again.";
    let specific = json!({ "hookEventName": "UserPromptSubmit", "additionalContext": context });
    assert_eq!(answer, json!({ "hookSpecificOutput": specific }));
    // Other arguments make it another call.
    assert_eq!(
        permission_decision(&hook_answer(
            &world,
            &bash_proposed(&world, "c2", "make deploy FORCE=1")
        )),
        Some("deny")
    );
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c3", "make deploy")), Value::Null);
    assert_eq!(
        permission_decision(&hook_answer(&world, &bash_proposed(&world, "c4", "make deploy"))),
        Some("deny")
    );
    world.verify_and_replay(SESSION);
}

#[test]
fn status_counts_a_question_apart_from_a_denial() {
    let world = CliWorld::new(RULES);
    hook_answer(&world, &bash_proposed(&world, "c1", "git push -f"));
    hook_answer(&world, &bash_proposed(&world, "c2", "make deploy"));
    hook_answer(&world, &payload(&world, "SessionEnd", json!({"reason": "other"})));
    let status = world.jackline(&["status", SESSION]).stdout;
    assert!(status.contains("  calls       2: 1 denied, 1 not approved\n"), "{status}");
    let counts = session_summary(&world)["invocations"].clone();
    assert_eq!((&counts["denied"], &counts["not_approved"]), (&json!(1), &json!(1)));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_typed_code_can_refuse_the_call() {
    let world = CliWorld::new(RULES);
    let asked = hook_answer(&world, &bash_proposed(&world, "c1", "make deploy"));
    let answer = send_prompt(&world, &format!("refuse {}", approval_code(&asked)));
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(
        context,
        "A person refused exactly this call: Bash `make deploy`. Find another way."
    );
    let again = hook_answer(&world, &bash_proposed(&world, "c2", "make deploy"));
    let reason = again["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("a person refused this exact call"), "{again}");
    world.verify_and_replay(SESSION);
}

#[test]
fn a_text_that_only_contains_a_code_is_a_normal_prompt() {
    let world = CliWorld::new(RULES);
    let asked = hook_answer(&world, &bash_proposed(&world, "c1", "make deploy"));
    let code = approval_code(&asked);
    for text in [format!("what is {code}?"), format!("{code} please"), "jl-".to_owned()] {
        assert_eq!(send_prompt(&world, &text), Value::Null, "{text}");
    }
    let answer = send_prompt(&world, "jl-000000");
    let message = "jackline: no call in this session waits for the code jl-000000";
    assert_eq!(answer, json!({ "systemMessage": message }));
    assert_eq!(
        permission_decision(&hook_answer(&world, &bash_proposed(&world, "c2", "make deploy"))),
        Some("deny")
    );
    world.verify_and_replay(SESSION);
}

#[test]
fn a_desktop_notification_goes_through_the_terminal_of_the_client() {
    let world = CliWorld::new(&format!("notify: {{ desktop: true }}\n{RULES}"));
    let asked = hook_answer(&world, &bash_proposed(&world, "c1", "make deploy"));
    let sequence = asked["terminalSequence"].as_str().unwrap();
    assert!(sequence.starts_with("\u{1b}]9;jackline: "), "{sequence:?}");
    assert!(sequence.ends_with('\u{7}'), "{sequence:?}");
    let inside = &sequence[4..sequence.len() - 1];
    assert!(!inside.contains(char::is_control) && inside.contains("make deploy"), "{sequence:?}");
    // An allowed call causes no notification.
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c2", "make test")), Value::Null);
}

#[test]
fn an_event_from_a_tool_of_the_agent_is_refused() {
    let world = CliWorld::new(RULES);
    let asked = hook_answer(&world, &bash_proposed(&world, "c1", "make deploy"));
    let prompt = payload(&world, "UserPromptSubmit", json!({ "prompt": approval_code(&asked) }));
    let records = world.records(SESSION).len();
    let message = format!("jackline: {FORGED_EVENT}; it is ignored");
    for payload in [&prompt, &bash_finished(&world, "c1", "make deploy")] {
        let mut command = hook_command(&world);
        let run =
            run_with_input(command.env("AI_AGENT", "x_agent"), payload.to_string().as_bytes());
        assert_eq!(parse_answer(&run), json!({ "systemMessage": message }));
    }
    assert_eq!(world.records(SESSION).len(), records, "nothing may be recorded");
    assert_eq!(
        permission_decision(&hook_answer(&world, &bash_proposed(&world, "c2", "make deploy"))),
        Some("deny")
    );
    assert_eq!(last_fault_reasons(&world), [FORGED_EVENT, FORGED_EVENT]);
    // A process that the client starts has another marker.
    let mut command = hook_command(&world);
    let run = run_with_input(command.env("AI_AGENT", "x_harness"), prompt.to_string().as_bytes());
    assert!(run.stdout.contains("A person allowed exactly this call once"), "{run:?}");
    world.verify_and_replay(SESSION);
}

/// A shell with the name of the client, which runs a command line with the payload.
fn run_below_client(world: &CliWorld, line: &str, payload: &Value) -> String {
    let client = world.root().join("claude");
    fs::copy("/bin/sh", &client).unwrap();
    fs::write(world.root().join("payload"), payload.to_string()).unwrap();
    let script = format!("{line}; exit $?");
    let mut command =
        command_in_hook_environment(world, client.to_str().unwrap(), &["-c", &script]);
    let run = run_with_input(command.env("SENT", world.root().join("payload")), b"");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}: {run:?}");
    run.stdout
}

#[test]
fn a_script_cannot_hide_that_an_agent_started_it() {
    let world = CliWorld::new(RULES);
    let prompt = payload(&world, "UserPromptSubmit", json!({ "prompt": "go on" }));
    let hook = format!("{JACKLINE} hook claude < $SENT");
    let tool = format!("AI_AGENT=x_agent sh -c 'env -u AI_AGENT {hook}; exit $?'");
    // The first process of a namespace adopts orphans, so the script waits for the output file
    // instead.
    let out = world.root().join("out");
    let home = world.home();
    let orphan = format!(
        "(setsid env -i JACKLINE_HOME={home} sh -c 'sleep 0.3; {JACKLINE} hook claude < '$SENT' \
         > {out}.new; mv {out}.new {out}' &); while ! test -e {out}; do sleep 0.05; done; cat {out}",
        home = home.display(),
        out = out.display(),
    );
    for line in [&tool, &orphan] {
        let output = run_below_client(&world, line, &prompt);
        assert!(output.contains(FORGED_EVENT), "{line}: {output}");
    }
    assert!(!world.journal_path(SESSION).exists(), "no session may exist");
    for line in [format!("sh -c '{hook}; exit $?'"), format!("AI_AGENT=x_harness {hook}")] {
        assert_eq!(run_below_client(&world, &line, &prompt), "", "{line}");
    }
    assert!(world.journal_path(SESSION).exists());
}

#[test]
fn only_a_proposal_is_accepted_from_a_process_of_the_agent() {
    let world = CliWorld::new(RULES);
    for payload in all_payloads(&world).iter().filter(|it| it["hook_event_name"] != "PreToolUse") {
        let mut command = hook_command(&world);
        let run =
            run_with_input(command.env("AI_AGENT", "x_agent"), payload.to_string().as_bytes());
        let silent = payload["hook_event_name"] == "SessionEnd";
        assert_eq!((run.code, run.stdout.contains(FORGED_EVENT)), (Some(0), !silent), "{run:?}");
    }
    assert!(!world.journal_path(SESSION).exists());
}

#[test]
fn an_agent_sees_waiting_calls_but_not_the_code() {
    let world = CliWorld::new(RULES);
    let code = approval_code(&hook_answer(&world, &bash_proposed(&world, "c1", "make deploy")));
    for args in [&["pending"][..], &["pending", "--json"], &["status"], &["status", "--json"]] {
        let run = run_with_input(world.command(JACKLINE).env("CLAUDECODE", "1").args(args), b"");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(run.stdout.contains("make deploy"), "{args:?}: {run:?}");
        assert!(!run.stdout.contains(&code), "{args:?}: {run:?}");
        let has_hint = run.stdout.contains("only the person sees the code");
        assert_eq!(has_hint, args.len() == 1, "{args:?}: {run:?}");
    }
    for args in [&["pending"][..], &["pending", "--json"], &["status"]] {
        let run = world.jackline(args);
        assert!(run.stdout.contains(&code), "{args:?}: {run:?}");
    }
}

#[test]
fn off_works_for_a_broken_guard_below_a_symbolic_link() {
    let world = CliWorld::new(RULES);
    let link = world.root().join("link");
    symlink(world.workspace(), &link).unwrap();
    let broken = || {
        let mut command = hook_command(&world);
        run_with_input(command.env("CLAUDE_PROJECT_DIR", &link), b"no JSON")
    };
    assert_eq!(broken().code, Some(2));
    let mut person = world.person_command();
    person.env("XDG_RUNTIME_DIR", world.root());
    let run = run_with_input(person.args(["off", "--here", "--why", "it is broken"]), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = broken();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}
