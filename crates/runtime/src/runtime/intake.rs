//! Prepares an event before the decision: redacts secrets, decodes texts of models, observes
//! results, and moves long texts into blobs.

use std::collections::BTreeMap;

use jackline_decode::EventDecoder;
use jackline_engine::definition::{Definition, Redact, SchemaText, UnknownTools};
use jackline_engine::observe::{Blob, elide};
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_engine::{Event, EventKind, Facts, Session, ToolProposed, observe};

use crate::redact::redact;
use jackline_host::clock;

/// How events are prepared.
#[derive(Default)]
pub(super) struct Intake {
    decoder: EventDecoder,
    /// All existing tools, if the adapter knows them.
    tools: Vec<String>,
    /// Tools of the adapter, which are allowed if the definition lists none.
    known_tools: Vec<String>,
}

impl Intake {
    pub(super) fn keep_arguments(&mut self) {
        self.decoder = std::mem::take(&mut self.decoder).requiring_exact_arguments();
    }

    pub(super) fn set_tools(&mut self, tools: BTreeMap<String, SchemaText>) {
        // A model never calls the page turning tool by this name.
        self.tools = tools.keys().filter(|name| *name != PAGE_TURN_TOOL).cloned().collect();
        self.decoder = std::mem::take(&mut self.decoder).with_tool_schemas(tools);
        self.known_tools.clone_from(&self.tools);
    }

    pub(super) fn set_known_tools(&mut self, tools: Vec<String>) {
        self.known_tools = tools;
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
        facts.tools = self.existing_tools(event, definition);
        (facts, blobs)
    }

    /// The tools to report as existing, if this matters. If a call names another tool, these are
    /// all tools. If unknown tools are denied, this is the called tool itself.
    fn existing_tools(&self, event: &Event, definition: &Definition) -> Vec<String> {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &event.kind else {
            return Vec::new();
        };
        let is_in = |tools: &[String]| tools.iter().any(|known| known == tool.as_str());
        if tool.as_str() == PAGE_TURN_TOOL {
            Vec::new()
        } else if !is_in(&self.tools) && !self.tools.is_empty() {
            self.tools.clone()
        } else if definition.unknown_tools == UnknownTools::Deny && is_in(&self.known_tools) {
            vec![tool.as_str().to_owned()]
        } else {
            Vec::new()
        }
    }
}
