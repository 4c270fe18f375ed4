//! A guarded agent loop: every call passes the guard before it runs.
#![expect(clippy::print_stdout, reason = "the example shows what happens")]

use std::{collections::BTreeMap, error::Error, path::Path};

use jackline_engine::definition::{Policy, PolicyRule};
use jackline_engine::{Arguments, CallView, SessionId, SessionStarted, Status, StopProposed};
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

    let files = BTreeMap::from([("notes.txt", "Lunch is at 12."), ("passwords.txt", "hunter2")]);
    for (tool, args) in agent() {
        let shown = format!("{tool} {args}");
        match gate.propose(ProposedCall::new(tool, Arguments::Parsed(args.clone()))) {
            CallRuling::Run(permit) => {
                let args = permit.args.unwrap_or(args);
                let text = match args.get("path").and_then(Value::as_str) {
                    Some(path) => files.get(path).map_or("no such file", |text| text).to_owned(),
                    None => "sent".to_owned(),
                };
                println!("{shown}\n  -> {text}");
                gate.finish(CallResult {
                    text: Some(text),
                    ..CallResult::new(permit.number, Status::Ok)
                });
            }
            // A model would read this text as the result of its call.
            CallRuling::Refuse(refusal)
            | CallRuling::Ask(refusal, _)
            | CallRuling::Stop(refusal) => println!("{shown}\n  -> {}", refusal.text()),
        }
    }
    let stop = gate.propose_stop(StopProposed::default());
    println!("the agent may stop: {}", stop.objection().is_none());
    Ok(())
}

/// Stands in for a model: the calls that it makes, one after the other.
fn agent() -> [(&'static str, Value); 4] {
    let email = json!({ "to": "dana@example.com", "text": "Lunch is at 12." });
    [
        ("read_file", json!({ "path": "notes.txt" })),
        ("read_file", json!({ "path": "passwords.txt" })),
        ("send_email", email.clone()),
        ("send_email", email),
    ]
}
