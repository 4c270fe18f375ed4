//! The records of a process that makes the events itself, matched to the events of a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use jackline_engine::{Event, SessionId, Verdict};
use serde_json::Value;

use crate::call_ids::CallIds;
use crate::client_scene::ClientScene;
use crate::journals::text_at;

/// How often the journals are read while waiting for a record, once per millisecond.
const JOURNAL_READS_MAX: usize = 30_000;

/// The records since the last event.
#[derive(Default)]
pub(crate) struct RecordedEvents {
    unread: Vec<Value>,
    pub(crate) ids: CallIds,
    /// The name of a session in the records, if the process made the name itself.
    sessions: BTreeMap<SessionId, String>,
}

impl RecordedEvents {
    /// Waits for the record of an event, and returns its verdict.
    pub(crate) fn verdict(
        &mut self,
        scene: &mut ClientScene,
        event: &Event,
    ) -> Result<Verdict, String> {
        let session = self.sessions.get(&event.session).map_or(event.session.as_str(), |it| it);
        let session = session.to_owned();
        for _ in 0..JOURNAL_READS_MAX {
            self.unread.extend(scene.journals.recorded(&scene.directories)?);
            let is_event = |record: &Value| {
                text_at(record, "/event/event") == event.kind.name()
                    && text_at(record, "/event/session") == session
            };
            if let Some(at) = self.unread.iter().position(is_event) {
                let record = self.unread.remove(at);
                scene.clock.learn_start(&record);
                return self.verdict_of(event, &record);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(format!("no event `{}` was recorded", event.kind.name()))
    }

    /// Waits for the start of a session whose name the process makes itself, and learns the name.
    pub(crate) fn learn_session(
        &mut self,
        scene: &mut ClientScene,
        session: &SessionId,
    ) -> Result<(), String> {
        for _ in 0..JOURNAL_READS_MAX {
            self.unread.extend(scene.journals.recorded(&scene.directories)?);
            let is_start = |record: &Value| text_at(record, "/event/event") == "session_started";
            if let Some(at) = self.unread.iter().position(is_start) {
                let name = text_at(&self.unread.remove(at), "/event/session").to_owned();
                self.sessions.insert(session.clone(), name);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("no session was started".to_owned())
    }

    fn verdict_of(&mut self, event: &Event, record: &Value) -> Result<Verdict, String> {
        let sent = serde_json::to_value(event).map_err(|error| error.to_string())?;
        let recorded = record.get("event").unwrap_or(&Value::Null);
        for field in ["actor", "tool", "status", "background"] {
            if sent.get(field) != recorded.get(field)
                && !(field == "status" && has_failed(recorded))
            {
                return Err(format!("`{field}` of the recorded event differs: {recorded}"));
            }
        }
        self.ids.learn(event, record);
        let verdict = record.get("verdict").cloned().unwrap_or_default();
        serde_json::from_value(verdict).map_err(|error| error.to_string())
    }
}

/// Whether a command has failed. The tool itself succeeded, so the status of the call is `ok`; the
/// guards treat this like the status `error`.
fn has_failed(recorded: &Value) -> bool {
    let code = recorded.get("exit_code").and_then(Value::as_i64);
    recorded.get("status").is_some_and(|status| status == "ok") && code.is_some_and(|it| it != 0)
}
