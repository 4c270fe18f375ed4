//! The ids that a process gives to the calls of a scenario.

use std::collections::BTreeMap;

use jackline_engine::{Event, EventKind, SessionId, ToolProposed};
use serde_json::Value;

use crate::journals::text_at;

/// The id of each call of a scenario in the records.
#[derive(Default)]
pub(crate) struct CallIds(BTreeMap<(SessionId, String), String>);

impl CallIds {
    /// Learns the id of a call from its record.
    pub(crate) fn learn(&mut self, event: &Event, record: &Value) {
        if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind {
            let key = (event.session.clone(), call.as_str().to_owned());
            self.0.insert(key, text_at(record, "/event/call").to_owned());
        }
    }

    /// A line in which the call has the id of the process.
    pub(crate) fn with_own_ids(&self, event: &Event, line: &str) -> Result<String, String> {
        let mut line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if let Some(call) = line.get_mut("call") {
            let key = (event.session.clone(), call.as_str().unwrap_or_default().to_owned());
            if let Some(number) = self.0.get(&key) {
                *call = Value::from(number.as_str());
            }
        }
        Ok(line.to_string())
    }

    /// A verdict in which calls have the ids of the scenario.
    pub(crate) fn with_scenario_ids(
        &self,
        session: &SessionId,
        verdict: &Value,
    ) -> Result<Value, String> {
        let mut text = verdict.to_string();
        // In a joined session, the ids of the process differ from all other text.
        let own = |((of, _), name): &(&(SessionId, String), &String)| {
            of == session && name.starts_with("mcp-")
        };
        for ((_, call), name) in self.0.iter().filter(own) {
            text = text.replace(&format!("`{name}`"), &format!("`{call}`"));
        }
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}
