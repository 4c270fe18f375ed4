//! What a person says where they talk to the agent, and what they are shown there.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::hook_support::{
    RULES, SESSION, all, bash, command, hear, heard, last_faults, payload, permission, prepared,
    ran,
};
use crate::support::{JACKLINE, World, feed};

const FORGED: &str = "this event comes from a process of the agent's own, not from its client";

fn prompt(world: &World, text: &str) -> Value {
    hear(world, &payload(world, "UserPromptSubmit", json!({ "prompt": text })))
}

/// The code that the person is shown.
fn code(said: &Value) -> String {
    let message = said["systemMessage"].as_str().unwrap();
    let rest = message.split_once("`jackline allow ").unwrap().1;
    rest.split('`').next().unwrap().to_owned()
}

#[test]
fn a_code_typed_as_a_prompt_lets_exactly_this_call_pass_once() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    assert_eq!(permission(&asked), Some("deny"));
    let said = prompt(&world, &format!(" {}\n", code(&asked).to_uppercase()));
    let told = "A person lets exactly this call pass once: Bash `make deploy`. Make it again.";
    let specific = json!({ "hookEventName": "UserPromptSubmit", "additionalContext": told });
    assert_eq!(said, json!({ "hookSpecificOutput": specific }));
    // Another directory, another line: not this call.
    assert_eq!(permission(&hear(&world, &bash(&world, "c2", "make deploy FORCE=1"))), Some("deny"));
    assert_eq!(hear(&world, &bash(&world, "c3", "make deploy")), Value::Null);
    assert_eq!(permission(&hear(&world, &bash(&world, "c4", "make deploy"))), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_code_may_refuse_too() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let said = prompt(&world, &format!("refuse {}", code(&asked)));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(told, "A person refused exactly this call: Bash `make deploy`. Find another way.");
    let again = hear(&world, &bash(&world, "c2", "make deploy"));
    let reason = again["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("a person refused exactly this call"), "{again}");
    world.prove(SESSION);
}

#[test]
fn what_only_looks_like_a_code_is_a_prompt() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let code = code(&asked);
    for text in [format!("what is {code}?"), format!("{code} please"), "jl-".to_owned()] {
        assert_eq!(prompt(&world, &text), Value::Null, "{text}");
    }
    let said = prompt(&world, "jl-000000");
    let nothing = "jackline: nothing waits under jl-000000 in this session";
    assert_eq!(said, json!({ "systemMessage": nothing }));
    assert_eq!(permission(&hear(&world, &bash(&world, "c2", "make deploy"))), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_desktop_is_told_through_the_clients_terminal() {
    let world = World::new(&format!("notify: {{ desktop: true }}\n{RULES}"));
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let sequence = asked["terminalSequence"].as_str().unwrap();
    assert!(sequence.starts_with("\u{1b}]9;jackline: "), "{sequence:?}");
    assert!(sequence.ends_with('\u{7}'), "{sequence:?}");
    let inside = &sequence[4..sequence.len() - 1];
    assert!(!inside.contains(char::is_control) && inside.contains("make deploy"), "{sequence:?}");
    // A call that passes tells nobody.
    assert_eq!(hear(&world, &bash(&world, "c2", "make test")), Value::Null);
}

#[test]
fn what_a_tool_of_the_agent_sends_is_refused() {
    let world = World::new(RULES);
    let asked = hear(&world, &bash(&world, "c1", "make deploy"));
    let prompt = payload(&world, "UserPromptSubmit", json!({ "prompt": code(&asked) }));
    let records = world.records(SESSION).len();
    let told = format!("jackline: {FORGED}; nothing comes of it");
    for payload in [&prompt, &ran(&world, "c1", "make deploy")] {
        let mut command = command(&world);
        let run = feed(command.env("AI_AGENT", "x_agent"), payload.to_string().as_bytes());
        assert_eq!(heard(&run), json!({ "systemMessage": told }));
    }
    assert_eq!(world.records(SESSION).len(), records, "nothing came of it");
    assert_eq!(permission(&hear(&world, &bash(&world, "c2", "make deploy"))), Some("deny"));
    assert_eq!(last_faults(&world), [FORGED, FORGED]);
    // What the client starts is marked otherwise.
    let mut command = command(&world);
    let run = feed(command.env("AI_AGENT", "x_harness"), prompt.to_string().as_bytes());
    assert!(run.stdout.contains("A person lets exactly this call pass once"), "{run:?}");
    world.prove(SESSION);
}

/// A shell that goes by the name of the client, and runs a line with the payload.
fn below_client(world: &World, line: &str, payload: &Value) -> String {
    let client = world.root().join("claude");
    fs::copy("/bin/sh", &client).unwrap();
    fs::write(world.root().join("payload"), payload.to_string()).unwrap();
    let script = format!("{line}; exit $?");
    let mut command = prepared(world, client.to_str().unwrap(), &["-c", &script]);
    let run = feed(command.env("SENT", world.root().join("payload")), b"");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}: {run:?}");
    run.stdout
}

#[test]
fn a_script_cannot_wash_off_whose_it_is() {
    let world = World::new(RULES);
    let prompt = payload(&world, "UserPromptSubmit", json!({ "prompt": "go on" }));
    let hook = format!("{JACKLINE} hook claude < $SENT");
    let tool = format!("AI_AGENT=x_agent sh -c 'env -u AI_AGENT {hook}; exit $?'");
    // The first process of a name space of its own takes orphans in, so this one
    // is waited for by what it leaves.
    let out = world.root().join("out");
    let home = world.home();
    let orphan = format!(
        "(setsid env -i JACKLINE_HOME={home} sh -c 'sleep 0.3; {JACKLINE} hook claude < '$SENT' \
         > {out}.new; mv {out}.new {out}' &); while ! test -e {out}; do sleep 0.05; done; cat {out}",
        home = home.display(),
        out = out.display(),
    );
    for line in [&tool, &orphan] {
        let said = below_client(&world, line, &prompt);
        assert!(said.contains(FORGED), "{line}: {said}");
    }
    assert!(!world.journal(SESSION).exists(), "nothing came of it");
    for line in [format!("sh -c '{hook}; exit $?'"), format!("AI_AGENT=x_harness {hook}")] {
        assert_eq!(below_client(&world, &line, &prompt), "", "{line}");
    }
    assert!(world.journal(SESSION).exists());
}

#[test]
fn every_event_but_a_proposal_is_refused_to_the_agent() {
    let world = World::new(RULES);
    for payload in all(&world).iter().filter(|it| it["hook_event_name"] != "PreToolUse") {
        let mut command = command(&world);
        let run = feed(command.env("AI_AGENT", "x_agent"), payload.to_string().as_bytes());
        let silent = payload["hook_event_name"] == "SessionEnd";
        assert_eq!((run.code, run.stdout.contains(FORGED)), (Some(0), !silent), "{run:?}");
    }
    assert!(!world.journal(SESSION).exists());
}

#[test]
fn an_agent_sees_what_waits_and_not_the_code() {
    let world = World::new(RULES);
    let code = code(&hear(&world, &bash(&world, "c1", "make deploy")));
    for words in [&["pending"][..], &["pending", "--json"], &["status"], &["status", "--json"]] {
        let run = feed(world.command(JACKLINE).env("CLAUDECODE", "1").args(words), b"");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(run.stdout.contains("make deploy"), "{words:?}: {run:?}");
        assert!(!run.stdout.contains(&code), "{words:?}: {run:?}");
        let says = run.stdout.contains("the code is for the person");
        assert_eq!(says, words.len() == 1, "{words:?}: {run:?}");
    }
    for words in [&["pending"][..], &["pending", "--json"], &["status"]] {
        let run = world.jackline(words);
        assert!(run.stdout.contains(&code), "{words:?}: {run:?}");
    }
}

#[test]
fn off_holds_for_a_broken_guard_below_a_link_too() {
    let world = World::new(RULES);
    let link = world.root().join("link");
    symlink(world.work(), &link).unwrap();
    let broken = || {
        let mut command = command(&world);
        feed(command.env("CLAUDE_PROJECT_DIR", &link), b"no JSON")
    };
    assert_eq!(broken().code, Some(2));
    let mut person = world.person();
    person.env("XDG_RUNTIME_DIR", world.root());
    let run = feed(person.args(["off", "--here", "--why", "it is broken"]), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = broken();
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}
