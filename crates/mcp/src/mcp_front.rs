//! The session of a proxy or a server: a gate that starts its session with the first call.

use jackline_engine::event::Seen;
use jackline_engine::tool::PAGE_TURN;
use jackline_engine::{Arguments, SessionEnded, SessionId, SessionStarted};
use jackline_journal::Note;
use jackline_runtime::{
    CallPermit, CallRefusal, CallResult, Gate, ProposedCall, Runtime, SessionRole,
};
use serde_json::{Value, json};

use crate::page::PAGE;

/// The name under which sessions are started.
const CLIENT: &str = "mcp";

/// How a session begins.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its id.
    pub session: SessionId,
    /// The session of the client that has the server, where that is known.
    pub parent: Option<SessionId>,
    /// The directory that the tools work in.
    pub workspace: String,
}

/// The gate of a proxy or a server.
pub(crate) struct McpFront {
    gate: Gate,
    opening: Opening,
    /// None before the first call: a server that is never called leaves no journal.
    role: Option<SessionRole>,
}

impl McpFront {
    pub(crate) fn new(runtime: Runtime, opening: Opening) -> Self {
        let gate = Gate::new(runtime, opening.session.clone()).saving_late();
        Self { gate, opening, role: None }
    }

    /// Asks whether a call may run. `request` is the id of the client's request.
    pub(crate) fn propose(
        &mut self,
        request: &Value,
        tool: &str,
        args: Arguments,
    ) -> Result<CallPermit, CallRefusal> {
        self.start();
        let meta = Some(json!({ "request": request }));
        let call = ProposedCall { meta, ..ProposedCall::new(tool, args) };
        let ruling = self.gate.propose(call);
        ruling.permit().map_err(|mut refusal| {
            if tool == PAGE_TURN {
                // The agent calls it by another name.
                refusal.reason = refusal.reason.replace(PAGE_TURN, PAGE);
            }
            refusal
        })
    }

    /// What a call that runs shows of files, if all of its result is shown.
    pub(crate) fn shows(&mut self, call: u64) -> Vec<Seen> {
        self.gate.shows(call)
    }

    /// Reports how a call came back; gives what is to be added to its result.
    pub(crate) fn finish(&mut self, result: CallResult) -> Option<String> {
        self.gate.finish(result);
        self.gate.take_texts()
    }

    /// Keeps a text for the next result, where this one has no place for it.
    pub(crate) fn add_text(&mut self, text: String) {
        self.gate.add_text(text);
    }

    /// Writes down that the server describes tools differently than in the last session.
    pub(crate) fn tools_changed(&mut self, tools: Vec<String>) {
        let names = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        self.gate.add_note(format!(
            "tool descriptions changed since the last session: {names}; look at them before you \
             trust them"
        ));
        self.gate.note(Note::ToolsChanged { tools });
        self.start();
    }

    /// Does what may wait until an answer is out; gives what people are to be told.
    pub(crate) fn run_deferred(&mut self) -> Vec<String> {
        self.gate.run_deferred();
        self.gate.take_notes()
    }

    /// What people are to be told while a call is under way.
    pub(crate) fn urgent_notes(&mut self) -> Vec<String> {
        self.gate.send_notices();
        self.gate.take_notes()
    }

    /// Ends the session, if it was started here.
    pub(crate) fn end(&mut self) {
        if self.role.take() == Some(SessionRole::Owner) {
            self.gate.report(SessionEnded::default());
            self.gate.run_deferred();
        }
    }

    fn start(&mut self) {
        if self.role.is_some() {
            return;
        }
        let Opening { parent, workspace, .. } = self.opening.clone();
        self.role = Some(self.gate.start_or_join(SessionStarted {
            workspace: Some(workspace),
            client: Some(CLIENT.to_owned()),
            parent,
            ..SessionStarted::default()
        }));
    }
}
