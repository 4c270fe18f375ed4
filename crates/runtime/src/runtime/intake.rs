//! Prepares an event before the decision: redacts secrets, decodes texts of models, observes
//! results, and moves long texts into blobs.

use jackline_decode::EventDecoder;
use jackline_engine::definition::Redact;
use jackline_engine::observe::{Blob, elide};
use jackline_engine::{Event, EventKind, Facts, Session, ToolProposed, observe};

use crate::adapter_tools::AdapterTools;
use crate::redact::redact;
use jackline_host::clock;

/// How events are prepared.
#[derive(Default)]
pub(super) struct Intake {
    decoder: EventDecoder,
    /// The tools that the adapter knows.
    tools: AdapterTools,
}

impl Intake {
    pub(super) fn keep_arguments(&mut self) {
        self.decoder = std::mem::take(&mut self.decoder).requiring_exact_arguments();
    }

    pub(super) fn set_tools(&mut self, mut tools: AdapterTools) {
        self.decoder = std::mem::take(&mut self.decoder).with_tool_schemas(tools.take_schemas());
        self.tools = tools;
    }

    /// Prepares an event of a session. Returns the first facts, and the texts that do not fit into
    /// a record.
    pub(super) fn prepare(&mut self, session: &Session, event: &mut Event) -> (Facts, Vec<Blob>) {
        let definition = session.definition();
        if definition.journal.redact == Redact::BuiltIn {
            redact(event, definition);
        }
        let of = session.finished_tool(event).map(ToOwned::to_owned);
        let decoded = self.decoder.decode(event, definition, of.as_deref());
        let observed = observe(event);
        let blobs = elide(event, definition);
        let mut facts = Facts::at(clock::now());
        facts.observed = observed;
        facts.decoded = decoded;
        if let EventKind::ToolProposed(ToolProposed { tool, .. }) = &event.kind {
            facts.tools = self.tools.facts_about(tool.as_str(), definition);
        }
        (facts, blobs)
    }
}
