//! What is done to an event before anything is decided on it: secrets are struck, texts of
//! models are decoded, results are observed, long texts are put into blobs.

use std::collections::BTreeMap;

use jackline_decode::Decoder;
use jackline_engine::definition::{Definition, Redact, SchemaText, UnknownTools};
use jackline_engine::observe::{Blob, elide};
use jackline_engine::tool::PAGE_TURN;
use jackline_engine::{Event, EventKind, Facts, Session, ToolProposed, observe};

use crate::redact::redact;
use jackline_host::clock;

/// How events are taken in.
#[derive(Default)]
pub(super) struct Intake {
    decoder: Decoder,
    /// All tools there are, where the adapter has them.
    tools: Vec<String>,
    /// Tools of the adapter, which are known where the definition lists none.
    known: Vec<String>,
}

impl Intake {
    pub(super) fn keep_arguments(&mut self) {
        self.decoder = std::mem::take(&mut self.decoder).keeping_arguments();
    }

    pub(super) fn set_tools(&mut self, tools: BTreeMap<String, SchemaText>) {
        // A model never calls the turning of a page by this name.
        self.tools = tools.keys().filter(|name| *name != PAGE_TURN).cloned().collect();
        self.decoder = std::mem::take(&mut self.decoder).with_tools(tools);
        self.known.clone_from(&self.tools);
    }

    pub(super) fn set_known(&mut self, tools: Vec<String>) {
        self.known = tools;
    }

    /// Prepares an event of a session. Gives the first facts, and the texts that do not fit
    /// into a record.
    pub(super) fn prepare(&mut self, session: &Session, event: &mut Event) -> (Facts, Vec<Blob>) {
        let definition = session.definition();
        if definition.journal.redact == Redact::BuiltIn {
            redact(event, definition);
        }
        let of = session.tool_of(event).map(ToOwned::to_owned);
        let decoded = self.decoder.decode(event, definition, of.as_deref());
        let observed = observe(event);
        let blobs = elide(event, definition);
        let mut facts = Facts::at(clock::now());
        facts.observed = observed;
        facts.decoded = decoded;
        facts.tools = self.tools_there(event, definition);
        (facts, blobs)
    }

    /// Which tools there are, where that matters: all of them where a call is for another
    /// one, and the one that is called where unknown ones are denied.
    fn tools_there(&self, event: &Event, definition: &Definition) -> Vec<String> {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &event.kind else {
            return Vec::new();
        };
        let is_in = |tools: &[String]| tools.iter().any(|known| known == tool.as_str());
        if tool.as_str() == PAGE_TURN {
            Vec::new()
        } else if !is_in(&self.tools) && !self.tools.is_empty() {
            self.tools.clone()
        } else if definition.unknown_tools == UnknownTools::Deny && is_in(&self.known) {
            vec![tool.as_str().to_owned()]
        } else {
            Vec::new()
        }
    }
}
