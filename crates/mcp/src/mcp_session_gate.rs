//! The gate of a proxy or server. It starts its session with the first tool call.

use jackline_engine::event::ShownLines;
use jackline_engine::output_page::PageLimits;
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_engine::{Arguments, SessionEnded, SessionId, SessionStarted};
use jackline_journal::JournalNote;
use jackline_runtime::{
    AdapterTools, CallPermit, CallRefusal, CallResult, Gate, ProposedCall, Runtime, SessionRole,
};
use serde_json::{Value, json};

use crate::page_tool::PAGE_TOOL;

/// The client name with which sessions are started.
pub const CLIENT_NAME: &str = "mcp";

/// The session to start.
#[derive(Debug, Clone)]
pub struct McpSessionOpening {
    /// The id of the session.
    pub session: SessionId,
    /// The session of the client that started the server, if it is known.
    pub parent: Option<SessionId>,
    /// The working directory of the tools.
    pub workspace: String,
}

/// The session gate of a proxy or server.
pub(crate) struct McpSessionGate {
    gate: Gate,
    opening: McpSessionOpening,
    /// `None` before the first call: a server that is never called writes no journal.
    role: Option<SessionRole>,
}

impl McpSessionGate {
    pub(crate) fn new(runtime: Runtime, opening: McpSessionOpening) -> Self {
        let gate = Gate::new(runtime, opening.session.clone()).with_deferred_saving();
        Self { gate, opening, role: None }
    }

    /// Replaces the tools that the guards know.
    pub(crate) fn set_tools(&mut self, tools: AdapterTools) {
        self.gate.set_tools(tools);
    }

    /// Asks the guards whether a call may run. `request` is the id of the client's request.
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
            if tool == PAGE_TURN_TOOL {
                // The agent knows this tool by another name.
                refusal.reason = refusal.reason.replace(PAGE_TURN_TOOL, PAGE_TOOL);
            }
            refusal
        })
    }

    /// The file contents that a running call shows, if its complete result is shown.
    pub(crate) fn file_contents_shown(&mut self, call: u64) -> Vec<ShownLines> {
        self.gate.shown_file_parts(call)
    }

    /// How much of the result of a running call is shown at once, and the first line that it shows.
    pub(crate) fn page_limits(&mut self, call: u64) -> (PageLimits, u64) {
        self.gate.page_limits(call)
    }

    /// Reports the result of a call. Returns text to add to the result.
    pub(crate) fn finish(&mut self, result: CallResult) -> Option<String> {
        self.gate.finish(result);
        self.gate.take_texts()
    }

    /// Stores a text for the next result, if this one can't contain it.
    pub(crate) fn add_text(&mut self, text: String) {
        self.gate.add_text(text);
    }

    /// Records that the server's tool descriptions differ from those of the last session.
    pub(crate) fn report_changed_tools(&mut self, tools: Vec<String>) {
        let names = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        self.gate.add_person_text(format!(
            "tool descriptions changed since the last session: {names}; review them before you \
             use these tools"
        ));
        self.gate.add_journal_note(JournalNote::ToolsChanged { tools });
        self.start();
    }

    /// Runs work that can wait until an answer is sent. Returns notifications for people.
    pub(crate) fn run_deferred(&mut self) -> Vec<String> {
        self.gate.run_deferred();
        self.gate.take_person_texts()
    }

    /// Notifications for people that must not wait for the end of a call.
    pub(crate) fn urgent_notes(&mut self) -> Vec<String> {
        self.gate.send_notifications();
        self.gate.take_person_texts()
    }

    /// Ends the session, if this process started it.
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
        let McpSessionOpening { parent, workspace, .. } = self.opening.clone();
        self.role = Some(self.gate.start_or_join(SessionStarted {
            workspace: Some(workspace),
            client: Some(CLIENT_NAME.to_owned()),
            parent,
            ..SessionStarted::default()
        }));
    }
}
