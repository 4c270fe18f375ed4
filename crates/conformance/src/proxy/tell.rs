//! Events in the words of MCP.
//!
//! Between a client and a server only calls and their results pass by; that is what
//! the proxy tells, and everything else is told beside it. What MCP has no words for
//! is an error that says so; a scenario with such an event is not for this surface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jackline_engine::tool::PAGE_TURN;
use jackline_engine::{
    Arguments, Event, EventKind, Payload, SessionEnded, SessionId, SessionStarted, Status,
    ToolFinished, ToolProposed,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// How an event reaches the product.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// The client calls a tool; the line it sends.
    Call { call: String, line: String },
    /// The server gives a result back.
    Result { call: String, result: Value },
    /// The client takes a call back.
    Cancel { call: String },
    /// The server says nothing until the time is up.
    Silence { call: String },
    /// The server ends.
    Crash { call: String },
    /// The client leaves.
    Leave,
    /// A person does it, or the harness.
    Beside,
}

/// A client and a server in the middle of a scenario.
pub(super) struct Teller {
    workspace: String,
    /// The directory of each session, where it is not the workspace.
    projects: BTreeMap<SessionId, String>,
    /// Calls that the server has.
    open: BTreeSet<(SessionId, String)>,
    /// Sessions in which something has happened.
    begun: BTreeSet<SessionId>,
    /// Those that have ended since.
    ended: BTreeSet<SessionId>,
    /// Those that a proxy has begun, and ends.
    owned: BTreeSet<SessionId>,
    time: Time,
}

/// Who says what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Nobody has to.
    Passes,
    /// The harness, before anything happens.
    IsTold,
}

impl Teller {
    pub(super) fn new(workspace: String, time: Time) -> Self {
        Self {
            workspace,
            projects: BTreeMap::new(),
            open: BTreeSet::new(),
            begun: BTreeSet::new(),
            ended: BTreeSet::new(),
            owned: BTreeSet::new(),
            time,
        }
    }

    /// The directory that the proxy of a session is started in.
    pub(super) fn project(&self, session: &SessionId) -> &str {
        self.projects.get(session).unwrap_or(&self.workspace)
    }

    /// A call never reached the server.
    pub(super) fn refused(&mut self, session: &SessionId, call: &str) {
        self.open.remove(&(session.clone(), call.to_owned()));
    }

    /// Every proxy is gone, and with it what was open.
    pub(super) fn restarted(&mut self) {
        self.open.clear();
        self.owned.clear();
    }

    /// Tells an event.
    pub(super) fn tell(&mut self, event: &Event) -> Result<Told, String> {
        if event.id.is_some() {
            return Err("an event has an id, which the proxy gives to none".to_owned());
        }
        if event.session.as_str().contains('\0') {
            return Err("a session is called what no command line can hold".to_owned());
        }
        let told = self.told(event)?;
        self.begun.insert(event.session.clone());
        Ok(told)
    }

    fn told(&mut self, event: &Event) -> Result<Told, String> {
        match &event.kind {
            EventKind::ToolProposed(_) => self.proposed(event),
            EventKind::ToolFinished(_) => self.finished(event),
            EventKind::SessionStarted(SessionStarted { workspace, .. }) => {
                self.ended.remove(&event.session);
                if let Some(workspace) = workspace {
                    let path = Path::new(&self.workspace).join(workspace).display().to_string();
                    self.projects.insert(event.session.clone(), path);
                }
                Ok(Told::Beside)
            }
            EventKind::SessionEnded(_) if !event.actor.is_main() => Ok(Told::Beside),
            EventKind::SessionEnded(SessionEnded { failure }) => {
                self.ended.insert(event.session.clone());
                let owned = self.owned.remove(&event.session) && failure.is_none();
                if owned && self.open.iter().any(|(session, _)| *session == event.session) {
                    return Err("a session ends with an open call, which is then over".to_owned());
                }
                Ok(if owned { Told::Leave } else { Told::Beside })
            }
            // A server hears of calls only.
            _ => Ok(Told::Beside),
        }
    }

    fn proposed(&mut self, event: &Event) -> Result<Told, String> {
        let EventKind::ToolProposed(ToolProposed { call: Some(call), tool, args, cwd }) =
            &event.kind
        else {
            return Err("a call has no id".to_owned());
        };
        if !event.actor.is_main() {
            return Err("a sub-agent calls, and a server is not told who does".to_owned());
        }
        if event.meta.is_some() {
            return Err("a call carries `meta`, which is the proxy's own".to_owned());
        }
        if cwd.is_some() {
            return Err("a call has a directory, and one of MCP has none".to_owned());
        }
        if tool.as_str() == PAGE_TURN {
            return Err("a page is turned of what the server never said".to_owned());
        }
        let arguments = match args {
            Arguments::Parsed(value) => value.to_string(),
            Arguments::Text(text) => text.head().replace('\n', " "),
        };
        if serde_json::from_str::<IgnoredAny>(&arguments).is_err() {
            return Err("arguments are no JSON, and a message has nothing else".to_owned());
        }
        if self.ended.contains(&event.session) {
            return Err(
                "a call comes after the end, and a proxy begins its session anew".to_owned()
            );
        }
        if self.time == Time::Passes && !self.begun.contains(&event.session) {
            self.owned.insert(event.session.clone());
        }
        let (id, name) = (json!(call.as_str()), json!(tool.as_str()));
        if !self.open.insert((event.session.clone(), call.as_str().to_owned())) {
            return Err("a call is made again while it is open".to_owned());
        }
        Ok(Told::Call {
            call: call.as_str().to_owned(),
            // Not by way of a value: what the client wrote is what is judged.
            line: format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments}}}}}"#
            ),
        })
    }

    fn finished(&mut self, event: &Event) -> Result<Told, String> {
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
            return Err("a result is none".to_owned());
        };
        let call = call.as_ref().ok_or("a call has no id")?.as_str().to_owned();
        if !self.open.remove(&(event.session.clone(), call.clone())) {
            return Err("a result belongs to no call that runs".to_owned());
        }
        // A server has no exit status; that a command has failed it says.
        match (status, exit_code) {
            (_, None) | (Status::Ok, Some(0)) => {}
            (Status::Error, Some(code)) if *code != 0 => {}
            _ => return Err("an exit status is told, and a server has none".to_owned()),
        }
        if !seen.is_empty() {
            return Err("parts of files are shown, and a server does not say which".to_owned());
        }
        let text = result.as_ref().map(Payload::head);
        match status {
            Status::Ok | Status::Error => {
                let content: Vec<Value> = text.into_iter().map(text_item).collect();
                let mut result = json!({ "content": content });
                if *status == Status::Error {
                    set(&mut result, "isError", json!(true));
                }
                if *background {
                    set(&mut result, "task", json!({ "taskId": call, "status": "working" }));
                }
                Ok(Told::Result { call, result })
            }
            _ if text.is_some() => {
                Err(format!("a call says something and ends as `{}`", status.word()))
            }
            Status::Cancelled => Ok(Told::Cancel { call }),
            Status::Timeout => Ok(Told::Silence { call }),
            Status::Crashed if self.open.is_empty() => {
                self.owned.remove(&event.session);
                Ok(Told::Crash { call })
            }
            Status::Crashed => Err("a server ends with several calls".to_owned()),
        }
    }
}

/// An item of text in a result.
pub(super) fn text_item(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn set(result: &mut Value, key: &str, value: Value) {
    if let Some(fields) = result.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}
