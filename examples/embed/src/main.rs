//! A guarded agent loop: every call passes the guard before it runs.

use std::{error::Error, path::Path};

use jackline_engine::definition::{Policy, PolicyRule};
use jackline_engine::facts::CallView;
use jackline_engine::{Arguments, CallStatus, SessionId, SessionStarted};
use jackline_host::HostAccess;
use jackline_journal::MemoryStore;
use jackline_runtime::{
    CallResult, CallRuling, Definitions, Extensions, Gate, PolicyDecision, ProposedCall, Runtime,
    ToolPolicy, load_source,
};
use serde_json::{Value, json};

const DEFINITION: &[u8] = b"
rules:
  - name: no-passwords
    tool: read_file
    when: 'args.path == \"passwords.txt\"'
    deny: Passwords stay on this machine.
    examples: { deny: [{ path: passwords.txt }], allow: [{ path: notes.txt }] }
";

/// Lets the agent send at most one e-mail in a session. `state` belongs to the session.
struct OneEmail;

impl ToolPolicy for OneEmail {
    fn name(&self) -> &'static str {
        "one_email"
    }

    fn check(&self, state: &str, call: &CallView) -> PolicyDecision {
        match (call.tool.as_str(), state) {
            ("send_email", "sent") => PolicyDecision::deny("One e-mail was sent already."),
            _ => PolicyDecision::allow(),
        }
    }

    fn on_result(&self, state: &str, call: &CallView) -> String {
        if call.tool == "send_email" { "sent".to_owned() } else { state.to_owned() }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut definition = load_source(DEFINITION, Path::new("jackline.yaml"))?.definition;
    let rule = PolicyRule::Custom { name: OneEmail.name().to_owned() };
    definition.policies.push(Policy { section: None, rule });
    let definitions = Definitions::made(definition, HostAccess::default())?;
    let runtime = Runtime::new(MemoryStore::default(), definitions, std::env::temp_dir())
        .with_extensions(Extensions::default().with_policy(OneEmail));
    let mut gate = Gate::new(runtime, SessionId::parse("example")?);
    gate.start(SessionStarted::default(), None);

    // The calls of a model, one after the other. A real program gets them from its model.
    let email = json!({ "to": "dana@example.com", "text": "Lunch is at 12." });
    let calls = [
        ("read_file", json!({ "path": "notes.txt" }), "ran"),
        ("read_file", json!({ "path": "passwords.txt" }), "denied"),
        ("send_email", email.clone(), "ran"),
        ("send_email", email, "denied"),
    ];
    for (tool, args, expected) in calls {
        let outcome = guarded(&mut gate, tool, &args);
        assert_eq!(outcome, expected, "{tool} {args}");
    }
    Ok(())
}

/// Proposes a call, and runs it if the guard allows it.
fn guarded(gate: &mut Gate, tool: &str, args: &Value) -> &'static str {
    match gate.propose(ProposedCall::new(tool, Arguments::Parsed(args.clone()))) {
        CallRuling::Run(permit) => {
            let text = Some(format!("{tool} returned this"));
            gate.finish(CallResult { text, ..CallResult::new(permit.number, CallStatus::Ok) });
            "ran"
        }
        // The model reads `refusal.text()` as the result of its call.
        CallRuling::Refuse(_refusal)
        | CallRuling::Ask(_refusal, _)
        | CallRuling::Stop(_refusal) => "denied",
    }
}
