//! Events in the words of Claude Code.
//!
//! Payloads have the shapes that the client was seen to send. What the client
//! has no words for is an error that says so; a scenario with such an event is
//! not for this surface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jackline_engine::event::{PromptSource, Seen};
use jackline_engine::json::parse_strict;
use jackline_engine::{
    Arguments, Decision, Event, EventKind, Payload, PromptSubmitted, SessionEnded, SessionId,
    SessionStarted, Status, StopProposed, ToolFinished, ToolProposed, Verdict,
};
use serde_json::{Value, json};

use crate::scenario::{Act, PERSON, Scenario};

/// How many lines of a file the client shows where it is not told.
const LINES_SHOWN: usize = 2000;

/// How an event reaches the product.
pub(super) enum Told {
    /// The client's hook is run.
    Hook {
        /// The event of the client.
        hook: &'static str,
        /// What the client sends.
        payload: Value,
    },
    /// The client knows nothing of it: a person does it, or the harness.
    Beside,
}

/// A client in the middle of a scenario.
pub(super) struct Teller {
    workspace: String,
    /// The project of each session, where it is not the workspace.
    projects: BTreeMap<String, String>,
    calls: BTreeMap<(SessionId, String), Call>,
    /// The sessions that have begun.
    begun: BTreeSet<String>,
    /// The sessions whose last stop was blocked.
    blocked: BTreeSet<String>,
    /// More than any file of the scenario holds.
    much: String,
}

struct Call {
    tool: String,
    input: Value,
    directory: String,
}

impl Teller {
    pub(super) fn new(scenario: &Scenario, workspace: String) -> Self {
        let written = scenario.steps.iter().filter_map(|step| match &step.act {
            Act::Write(files) => Some(files),
            _ => None,
        });
        let texts = written.chain([&scenario.files]).flat_map(BTreeMap::values);
        let longest = texts.map(String::len).max().unwrap_or(0);
        Self {
            workspace,
            projects: BTreeMap::new(),
            calls: BTreeMap::new(),
            begun: BTreeSet::new(),
            blocked: BTreeSet::new(),
            much: "printed\n".repeat(longest / 8 + 1),
        }
    }

    /// The directory that the client says a session belongs to.
    pub(super) fn project(&self, session: &str) -> &str {
        self.projects.get(session).unwrap_or(&self.workspace)
    }

    /// Takes note of an answer.
    pub(super) fn answered(&mut self, hook: &str, session: &str, verdict: &Verdict) {
        let blocked = verdict.is_enforced(Decision::Deny);
        match hook {
            "Stop" if blocked => drop(self.blocked.insert(session.to_owned())),
            "Stop" | "UserPromptSubmit" => drop(self.blocked.remove(session)),
            _ => {}
        }
    }

    /// Tells an event.
    pub(super) fn tell(&mut self, event: &Event) -> Result<Told, String> {
        if event.id.is_some() {
            return Err("an event has an id, which the client gives to none".to_owned());
        }
        if event.meta.is_some() {
            return Err("an event carries `meta`, which is the hook's own".to_owned());
        }
        let session = event.session.as_str().to_owned();
        let Some((hook, fields)) = self.fields(event)? else { return Ok(Told::Beside) };
        self.begun.insert(session.clone());
        let mut payload = json!({
            "session_id": session,
            "transcript_path": format!("{PERSON}/.claude/projects/-workspace/{session}.jsonl"),
            "cwd": self.project(&session),
            "permission_mode": "default",
            "hook_event_name": hook,
        });
        if !event.actor.is_main() {
            let agent = json!({"agent_id": event.actor.as_str(), "agent_type": "general-purpose"});
            add(&mut payload, agent);
        }
        add(&mut payload, fields);
        Ok(Told::Hook { hook, payload })
    }

    /// The client's event and what it says beside the usual; none where it says nothing.
    fn fields(&mut self, event: &Event) -> Result<Option<(&'static str, Value)>, String> {
        let session = event.session.as_str();
        let main = event.actor.is_main();
        Ok(Some(match &event.kind {
            EventKind::SessionStarted(SessionStarted {
                deadline,
                parent,
                role,
                prompt_hash,
                tools_hash,
                parameters_hash,
                ..
            }) if deadline.is_some()
                || parent.is_some()
                || [role, prompt_hash, tools_hash, parameters_hash]
                    .iter()
                    .any(|it| it.is_some()) =>
            {
                return Ok(None);
            }
            EventKind::SessionStarted(SessionStarted { client: Some(other), .. })
                if other != "claude" =>
            {
                return Err(format!("the session is run by `{other}`, and not by this client"));
            }
            EventKind::SessionStarted(SessionStarted { workspace, model, .. }) if main => {
                if let Some(workspace) = workspace {
                    self.projects.insert(session.to_owned(), self.absolute(workspace));
                }
                let source = if self.begun.contains(session) { "resume" } else { "startup" };
                ("SessionStart", json!({ "source": source, "model": model }))
            }
            EventKind::PromptSubmitted(_) if !main => ("SubagentStart", json!({})),
            EventKind::PromptSubmitted(PromptSubmitted { source, text }) => {
                let text = text.as_ref().map_or("", Payload::head);
                let prompt = match source {
                    PromptSource::Human => text.to_owned(),
                    PromptSource::Harness => {
                        format!("<task-notification>{text}</task-notification>")
                    }
                };
                ("UserPromptSubmit", json!({ "prompt": prompt }))
            }
            EventKind::ToolProposed(_) => ("PreToolUse", self.proposed(event)?),
            EventKind::ToolFinished(_) => self.finished(event)?,
            EventKind::CompactionFinished(_) if main => {
                ("SessionStart", json!({ "source": "compact" }))
            }
            EventKind::StopProposed(StopProposed { output, background, .. })
                if main || *background == 0 =>
            {
                let said = output.as_ref().map(Payload::head);
                let task = |number| json!({"id": format!("b{number}"), "type": "shell", "status": "running"});
                let fields = json!({
                    "stop_hook_active": self.blocked.contains(session),
                    "last_assistant_message": said,
                    "background_tasks": (0..*background).map(task).collect::<Vec<_>>(),
                    "session_crons": [],
                });
                (if main { "Stop" } else { "SubagentStop" }, fields)
            }
            EventKind::SessionEnded(SessionEnded { failure: None }) if main => {
                ("SessionEnd", json!({ "reason": "other" }))
            }
            EventKind::SessionStarted(_)
            | EventKind::CompactionFinished(_)
            | EventKind::StopProposed(_)
            | EventKind::SessionEnded(_) => {
                let name = event.kind.name();
                return Err(format!("the client has no such `{name}` of a sub-agent"));
            }
            EventKind::PlanProposed(_)
            | EventKind::OutputProposed(_)
            | EventKind::UsageReported(_)
            | EventKind::IterationEnded(_)
            | EventKind::AttemptStarted(_)
            | EventKind::AttemptStage(_)
            | EventKind::AttemptEnded(_)
            | EventKind::AdvisorAnswered(_)
            | EventKind::ModelChanged(_)
            | EventKind::Control(_) => return Ok(None),
        }))
    }

    fn proposed(&mut self, event: &Event) -> Result<Value, String> {
        let EventKind::ToolProposed(ToolProposed { call: Some(call), tool, args, cwd }) =
            &event.kind
        else {
            return Err("a call has no id".to_owned());
        };
        let input = match args {
            Arguments::Parsed(input) => Some(input.clone()),
            // The client itself parses what the model wrote.
            Arguments::Text(text) => parse_strict(text.head().as_bytes()).ok(),
        };
        let Some(input) = input.filter(Value::is_object) else {
            return Err("arguments are no object, and the client sends nothing else".to_owned());
        };
        let project = self.project(event.session.as_str());
        let directory = cwd.as_ref().map_or(project.to_owned(), |cwd| self.absolute(cwd));
        let (tool, id) = (tool.as_str().to_owned(), call.as_str().to_owned());
        let fields = json!({
            "tool_name": tool, "tool_input": input, "tool_use_id": id, "cwd": directory,
        });
        self.calls.insert((event.session.clone(), id), Call { tool, input, directory });
        Ok(fields)
    }

    fn finished(&self, event: &Event) -> Result<(&'static str, Value), String> {
        let EventKind::ToolFinished(ToolFinished {
            call: Some(id), status, result, exit_code, ..
        }) = &event.kind
        else {
            return Err("a call has no id".to_owned());
        };
        let unknown =
            Call { tool: "Bash".to_owned(), input: json!({}), directory: self.workspace.clone() };
        let call = self.calls.get(&(event.session.clone(), id.as_str().to_owned()));
        let call = call.unwrap_or(&unknown);
        let mut fields = json!({
            "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id.as_str(),
            "duration_ms": 1,
        });
        let result = result.as_ref().map(Payload::head);
        let (hook, ended) = match (status, exit_code) {
            (Status::Ok, None) => ("PostToolUse", self.returned(call, event)?),
            (Status::Ok, Some(0)) if call.tool == "Bash" => {
                ("PostToolUse", self.returned(call, event)?)
            }
            (Status::Error, Some(code)) => {
                let said = format!("Exit code {code}\n{}", result.unwrap_or_default());
                ("PostToolUseFailure", json!({"error": said, "is_interrupt": false}))
            }
            (Status::Error, None) => {
                let said = result.unwrap_or("it failed");
                ("PostToolUseFailure", json!({"error": said, "is_interrupt": false}))
            }
            (Status::Cancelled, None) => {
                let said = result.unwrap_or("broken off");
                ("PostToolUseFailure", json!({"error": said, "is_interrupt": true}))
            }
            (Status::Timeout | Status::Crashed, _) => {
                let word = status.word();
                return Err(format!("a call ends as `{word}`, which the client calls an error"));
            }
            (Status::Ok | Status::Cancelled, Some(_)) => {
                return Err("an exit status is told that the client does not tell".to_owned());
            }
        };
        add(&mut fields, ended);
        Ok((hook, fields))
    }

    /// What a call gave back that did what it should.
    fn returned(&self, call: &Call, event: &Event) -> Result<Value, String> {
        let EventKind::ToolFinished(ToolFinished { result, seen, background, .. }) = &event.kind
        else {
            return Err("a result is none".to_owned());
        };
        let result = result.as_ref().map(Payload::head);
        let response = match (seen.as_slice(), background) {
            ([], true) => {
                json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"})
            }
            ([], false) => self.response(call, result),
            ([seen], false) => shown(seen, result.unwrap_or_default()),
            (_, true) => return Err("what goes on in the background is also shown".to_owned()),
            (_, false) => return Err("one call shows parts of several files".to_owned()),
        };
        Ok(json!({ "tool_response": response }))
    }

    /// What a call gave back that the scenario says nothing about. Nobody has
    /// run it, so its output is long enough to be that of any command.
    fn response(&self, call: &Call, result: Option<&str>) -> Value {
        let text = result.unwrap_or(&self.much);
        match call.tool.as_str() {
            "Bash" => json!({
                "stdout": text, "stderr": "", "interrupted": false, "isImage": false,
                "noOutputExpected": false,
            }),
            "Read" if result.is_none() => read(call).unwrap_or_else(|| json!(text)),
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
                json!({"filePath": call.input.get("file_path"), "structuredPatch": []})
            }
            _ => json!([{"type": "text", "text": text}]),
        }
    }

    fn absolute(&self, path: &str) -> String {
        Path::new(&self.workspace).join(path).display().to_string()
    }
}

/// What the client's own tool shows of a file, in its way of counting lines.
fn read(call: &Call) -> Option<Value> {
    let path = Path::new(&call.directory).join(call.input.get("file_path")?.as_str()?);
    let text = std::fs::read_to_string(&path).ok()?;
    let number = |name: &str| call.input.get(name)?.as_u64()?.try_into().ok();
    let from = number("offset").unwrap_or(1).max(1);
    let lines: Vec<&str> = text.split('\n').collect();
    let shown: Vec<&str> =
        lines.iter().skip(from - 1).take(number("limit").unwrap_or(LINES_SHOWN)).copied().collect();
    Some(json!({"type": "text", "file": {
        "filePath": path.to_str()?, "content": shown.join("\n"),
        "startLine": from, "numLines": shown.len(), "totalLines": lines.len(),
    }}))
}

fn shown(seen: &Seen, text: &str) -> Value {
    json!({"type": "text", "file": {
        "filePath": seen.path, "content": text,
        "startLine": seen.from, "numLines": seen.to + 1 - seen.from, "totalLines": seen.of,
    }})
}

fn add(payload: &mut Value, fields: Value) {
    if let (Value::Object(payload), Value::Object(fields)) = (payload, fields) {
        payload.extend(fields);
    }
}
