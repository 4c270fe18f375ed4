//! Converts events to MCP messages.
//!
//! Between a client and a server there are only calls and their results. The proxy, or our own
//! server, gets these, and all other events are sent beside it. An event that MCP can't express is
//! an error, and a scenario with such an event can't be played on this surface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_engine::{
    Arguments, CallStatus, Event, EventKind, Payload, SessionEnded, SessionId, SessionStarted,
    ToolFinished, ToolProposed,
};
use jackline_runtime::surfaces::{SurfaceCapability as Capability, SurfaceProfile};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::clock::depends_on_time;
use crate::scenario::Scenario;
use crate::unplayable::Unplayable;

/// How an event is delivered to the product.
#[derive(Debug, PartialEq)]
pub(crate) enum ProxyDelivery {
    /// The client sends this line with a call.
    Call { call: String, line: String },
    /// The server returns a result.
    Result { call: String, result: Value },
    /// The client cancels a call.
    Cancel { call: String },
    /// The server does not answer before the timeout.
    Timeout { call: String },
    /// The server ends.
    Crash { call: String },
    /// The client disconnects.
    Leave,
    /// Beside the proxy, by a person or the harness.
    Beside,
}

/// The state of a client and a server in the middle of a scenario.
pub(crate) struct ScriptedPeers {
    surface: &'static SurfaceProfile,
    workspace: String,
    /// The directory of each session, if it is not the workspace.
    projects: BTreeMap<SessionId, String>,
    /// Calls that the server is working on.
    open: BTreeSet<(SessionId, String)>,
    /// Sessions with at least one event.
    started: BTreeSet<SessionId>,
    /// Sessions that have ended.
    ended: BTreeSet<SessionId>,
    /// Sessions that a proxy has started and must end.
    owned: BTreeSet<SessionId>,
    time: TimeSource,
    /// The text of a result that is not in the scenario. No tool ran, so it is longer than any file.
    long_text: String,
}

/// How the time of a session is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeSource {
    /// The real clock is used.
    RealClock,
    /// The harness sets the time before each event.
    Harness,
}

impl TimeSource {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        if depends_on_time(scenario) { Self::Harness } else { Self::RealClock }
    }
}

/// Whether a call is expected not to run.
pub(crate) fn is_refusal(expect: &Value) -> bool {
    let decision = expect.get("decision").and_then(Value::as_str);
    let is_enforced = expect.get("enforced").and_then(Value::as_bool) != Some(false);
    is_enforced && matches!(decision, Some("deny" | "ask" | "pause" | "stop"))
}

impl ScriptedPeers {
    pub(crate) fn new(
        surface: &'static SurfaceProfile,
        scenario: &Scenario,
        workspace: String,
        time: TimeSource,
    ) -> Self {
        Self {
            surface,
            long_text: scenario.long_text(),
            workspace,
            projects: BTreeMap::new(),
            open: BTreeSet::new(),
            started: BTreeSet::new(),
            ended: BTreeSet::new(),
            owned: BTreeSet::new(),
            time,
        }
    }

    /// The directory in which the proxy of a session is started.
    pub(crate) fn project(&self, session: &SessionId) -> &str {
        self.projects.get(session).unwrap_or(&self.workspace)
    }

    /// Removes a call that did not reach the server.
    pub(crate) fn refused(&mut self, session: &SessionId, call: &str) {
        self.open.remove(&(session.clone(), call.to_owned()));
    }

    /// Whether the server works on a call of a session.
    pub(crate) fn has_open_calls(&self, session: &SessionId) -> bool {
        self.open.iter().any(|(of, _)| of == session)
    }

    /// Forgets the proxies and their open calls.
    pub(crate) fn restarted(&mut self) {
        self.open.clear();
        self.owned.clear();
    }

    /// Converts an event.
    pub(crate) fn deliver(&mut self, event: &Event) -> Result<ProxyDelivery, Unplayable> {
        if event.id.is_some() {
            return Err(Capability::EventIds.into());
        }
        if event.session.as_str().contains('\0') {
            return Err(Capability::AnySessionId.into());
        }
        let delivery = self.delivery(event)?;
        self.started.insert(event.session.clone());
        Ok(delivery)
    }

    fn delivery(&mut self, event: &Event) -> Result<ProxyDelivery, Unplayable> {
        match &event.kind {
            EventKind::ToolProposed(_) => self.proposed(event),
            EventKind::ToolFinished(_) => self.finished(event),
            EventKind::SessionStarted(SessionStarted { workspace, .. }) => {
                self.ended.remove(&event.session);
                if let Some(workspace) = workspace {
                    let path = Path::new(&self.workspace).join(workspace).display().to_string();
                    self.projects.insert(event.session.clone(), path);
                }
                Ok(ProxyDelivery::Beside)
            }
            EventKind::SessionEnded(_) if !event.actor.is_main() => Ok(ProxyDelivery::Beside),
            EventKind::SessionEnded(SessionEnded { failure }) => {
                self.ended.insert(event.session.clone());
                let owned = self.owned.remove(&event.session) && failure.is_none();
                if owned && self.has_open_calls(&event.session) {
                    return Err(Capability::OverlappingEnds.into());
                }
                Ok(if owned { ProxyDelivery::Leave } else { ProxyDelivery::Beside })
            }
            // A server gets only calls.
            _ => Ok(ProxyDelivery::Beside),
        }
    }

    fn proposed(&mut self, event: &Event) -> Result<ProxyDelivery, Unplayable> {
        let EventKind::ToolProposed(ToolProposed {
            call: Some(call),
            tool,
            args,
            cwd,
            asks_person,
        }) = &event.kind
        else {
            return Err(Capability::CallsWithoutIds.into());
        };
        if !event.actor.is_main() {
            return Err(Capability::SeeSubAgents.into());
        }
        if event.meta.is_some() {
            return Err(Capability::EventMeta.into());
        }
        if *asks_person {
            return Err(Capability::AskPerson.into());
        }
        if cwd.is_some() {
            return Err(Capability::SeeDirectory.into());
        }
        if tool.as_str() == PAGE_TURN_TOOL {
            let limited = self.surface.limit(Capability::PageResult).is_some();
            let needed = if limited { Capability::PageResult } else { Capability::AnyTool };
            return Err(needed.into());
        }
        let arguments = match args {
            Arguments::Parsed(value) => value.to_string(),
            Arguments::Text(text) => text.head().replace('\n', " "),
        };
        if serde_json::from_str::<IgnoredAny>(&arguments).is_err() {
            return Err(Capability::AnyArguments.into());
        }
        if self.ended.contains(&event.session) {
            return Err(Capability::OverlappingEnds.into());
        }
        if self.time == TimeSource::RealClock && !self.started.contains(&event.session) {
            self.owned.insert(event.session.clone());
        }
        let (id, name) = (json!(call.as_str()), json!(tool.as_str()));
        if !self.open.insert((event.session.clone(), call.as_str().to_owned())) {
            return Err(Capability::RepeatedCallIds.into());
        }
        Ok(ProxyDelivery::Call {
            call: call.as_str().to_owned(),
            // The arguments are not parsed here, so that the guard gets exactly the text of the
            // client.
            line: format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#
            ),
        })
    }

    fn finished(&mut self, event: &Event) -> Result<ProxyDelivery, Unplayable> {
        let EventKind::ToolFinished(ToolFinished {
            call,
            status,
            result,
            exit_code,
            seen,
            background,
            ..
        }) = &event.kind
        else {
            return Err(Capability::SeeResult.into());
        };
        let call = call.as_ref().ok_or(Capability::CallsWithoutIds)?.as_str().to_owned();
        if !self.open.remove(&(event.session.clone(), call.clone())) {
            return Err(Capability::StrayResults.into());
        }
        // A server before which we stand reports no exit status, only that a command has failed.
        match (status, exit_code) {
            _ if self.surface.supports(Capability::SeeExitStatus) => {}
            (_, None) | (CallStatus::Ok, Some(0)) => {}
            (CallStatus::Error, Some(code)) if *code != 0 => {}
            _ => return Err(Capability::SeeExitStatus.into()),
        }
        if !seen.is_empty() && !self.surface.supports(Capability::SeeShownLines) {
            return Err(Capability::SeeShownLines.into());
        }
        let text = result.as_ref().map(Payload::head);
        match status {
            CallStatus::Ok | CallStatus::Error => {
                let is_unstated = *status == CallStatus::Ok && !background;
                let text = text.or_else(|| is_unstated.then_some(&*self.long_text));
                let content: Vec<Value> = text.into_iter().map(text_item).collect();
                let mut result = json!({ "content": content });
                if *status == CallStatus::Error {
                    set(&mut result, "isError", json!(true));
                }
                if *background {
                    set(&mut result, "task", json!({ "taskId": call, "status": "working" }));
                }
                Ok(ProxyDelivery::Result { call, result })
            }
            _ if text.is_some() => Err(Capability::SeeCallStatus.into()),
            CallStatus::Cancelled => Ok(ProxyDelivery::Cancel { call }),
            CallStatus::Timeout => Ok(ProxyDelivery::Timeout { call }),
            CallStatus::Crashed if self.open.is_empty() => {
                self.owned.remove(&event.session);
                Ok(ProxyDelivery::Crash { call })
            }
            CallStatus::Crashed => Err(Capability::OverlappingEnds.into()),
        }
    }
}

/// A text item in a result.
pub(crate) fn text_item(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn set(result: &mut Value, key: &str, value: Value) {
    if let Some(fields) = result.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}
