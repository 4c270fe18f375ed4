//! Converts events to the hook payloads of Claude Code.
//!
//! The payloads have the form that the real client was observed to send. An event that the client
//! can't express is an error, and a scenario with such an event can't be played on this surface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jackline_definition::{FILE_NAME, load};
use jackline_engine::event::{OutputProposed, PromptSource, ShownLines};
use jackline_engine::json::parse_strict;
use jackline_engine::{
    Arguments, CallStatus, Decision, Event, EventKind, Payload, PromptSubmitted, SessionEnded,
    SessionId, SessionStarted, StopProposed, ToolFinished, ToolProposed, Verdict,
};
use jackline_runtime::surfaces::SurfaceCapability as Capability;
use serde_json::{Value, json};

use crate::scenario::{PERSON, Scenario};
use crate::unplayable::Unplayable;

/// How many lines of a file the client shows by default.
const LINES_SHOWN: usize = 2000;

/// How an event is delivered to the product.
pub(super) enum HookDelivery {
    /// By running the client's hook.
    Hook {
        /// The event of the client.
        hook: &'static str,
        /// The payload.
        payload: Value,
    },
    /// Beside the client, by a person or the harness.
    Beside,
}

/// The state of a client in the middle of a scenario.
pub(super) struct ScriptedClient {
    workspace: String,
    /// The project directory of each session, if it is not the workspace.
    projects: BTreeMap<String, String>,
    calls: BTreeMap<(SessionId, String), HookToolCall>,
    /// The sessions that have started.
    started: BTreeSet<String>,
    /// The sessions whose last stop was blocked.
    blocked: BTreeSet<String>,
    /// The names of the definition's outputs.
    outputs: Vec<String>,
    /// How many outputs were handed over.
    outputs_sent: u32,
    /// A text that is longer than any file of the scenario.
    long_text: String,
}

struct HookToolCall {
    tool: String,
    input: Value,
    directory: String,
}

impl ScriptedClient {
    pub(super) fn new(scenario: &Scenario, workspace: String) -> Self {
        let definition = load(scenario.definition.as_bytes(), FILE_NAME).ok();
        let outputs = definition.map(|it| it.schemas.outputs).unwrap_or_default();
        Self {
            workspace,
            projects: BTreeMap::new(),
            calls: BTreeMap::new(),
            started: BTreeSet::new(),
            blocked: BTreeSet::new(),
            outputs: outputs.into_iter().map(|output| output.name).collect(),
            outputs_sent: 0,
            long_text: scenario.long_text(),
        }
    }

    /// The project directory that the client reports for a session.
    pub(super) fn project(&self, session: &str) -> &str {
        self.projects.get(session).unwrap_or(&self.workspace)
    }

    /// Remembers the answer to an event.
    pub(super) fn note_answer(&mut self, hook: &str, session: &str, verdict: &Verdict) {
        let blocked = verdict.is_enforced(Decision::Deny);
        match hook {
            "Stop" if blocked => drop(self.blocked.insert(session.to_owned())),
            "Stop" | "UserPromptSubmit" => drop(self.blocked.remove(session)),
            _ => {}
        }
    }

    /// Converts an event.
    pub(super) fn deliver(&mut self, event: &Event) -> Result<HookDelivery, Unplayable> {
        if event.id.is_some() {
            return Err(Capability::EventIds.into());
        }
        if event.meta.is_some() {
            return Err(Capability::EventMeta.into());
        }
        let session = event.session.as_str().to_owned();
        let Some((hook, fields)) = self.fields(event)? else { return Ok(HookDelivery::Beside) };
        self.started.insert(session.clone());
        let mut payload = json!({
            "session_id": session,
            "transcript_path": format!("{PERSON}/.claude/projects/-workspace/{session}.jsonl"),
            "cwd": self.project(&session),
            "permission_mode": "default",
            "hook_event_name": hook,
        });
        if !event.actor.is_main() {
            let agent = json!({"agent_id": event.actor.as_str(), "agent_type": "general-purpose"});
            merge_fields(&mut payload, agent);
        }
        merge_fields(&mut payload, fields);
        Ok(HookDelivery::Hook { hook, payload })
    }

    /// The client's event with its specific fields; `None` if the client does not send this event.
    fn fields(&mut self, event: &Event) -> Result<Option<(&'static str, Value)>, Unplayable> {
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
                return Err(Capability::AnyClient.into());
            }
            EventKind::SessionStarted(SessionStarted { workspace, model, .. }) if main => {
                if let Some(workspace) = workspace {
                    self.projects.insert(session.to_owned(), self.absolute(workspace));
                }
                let source = if self.started.contains(session) { "resume" } else { "startup" };
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
                let text = output.as_ref().map(Payload::head);
                let task = |number| json!({"id": format!("b{number}"), "type": "shell", "status": "running"});
                let fields = json!({
                    "stop_hook_active": self.blocked.contains(session),
                    "last_assistant_message": text,
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
                return Err(Capability::SeeSubAgentSessions.into());
            }
            EventKind::OutputProposed(output) => match self.structured_output(output) {
                Some(fields) => ("PreToolUse", fields),
                // Another program hands it over.
                None => return Ok(None),
            },
            EventKind::PlanProposed(_)
            | EventKind::UsageReported(_)
            | EventKind::IterationEnded(_)
            | EventKind::WorkspaceChanged(_)
            | EventKind::AttemptStarted(_)
            | EventKind::AttemptStage(_)
            | EventKind::AttemptEnded(_)
            | EventKind::AdvisorAnswered(_)
            | EventKind::ModelChanged(_)
            | EventKind::Control(_) => return Ok(None),
        }))
    }

    /// The call by which the client hands over an output. It has no name, and is always an object.
    fn structured_output(&mut self, output: &OutputProposed) -> Option<Value> {
        let OutputProposed { name, text, truncated: false } = output else { return None };
        let is_only = match name {
            None => self.outputs.len() != 1,
            Some(name) => self.outputs == [name.clone()],
        };
        let input = parse_strict(text.as_ref()?.head().as_bytes()).ok()?;
        if !is_only || !input.is_object() {
            return None;
        }
        self.outputs_sent += 1;
        let id = format!("output-{}", self.outputs_sent);
        let tool = "StructuredOutput";
        Some(json!({ "tool_name": tool, "tool_input": input, "tool_use_id": id }))
    }

    fn proposed(&mut self, event: &Event) -> Result<Value, Unplayable> {
        let EventKind::ToolProposed(ToolProposed { call: Some(call), tool, args, cwd, .. }) =
            &event.kind
        else {
            return Err(Capability::CallsWithoutIds.into());
        };
        let input = match args {
            Arguments::Parsed(input) => Some(input.clone()),
            // The client parses the text of the model itself.
            Arguments::Text(text) => parse_strict(text.head().as_bytes()).ok(),
        };
        let Some(input) = input.filter(Value::is_object) else {
            return Err(Capability::AnyArguments.into());
        };
        let project = self.project(event.session.as_str());
        let directory = cwd.as_ref().map_or(project.to_owned(), |cwd| self.absolute(cwd));
        let (tool, id) = (tool.as_str().to_owned(), call.as_str().to_owned());
        let fields = json!({
            "tool_name": tool, "tool_input": input, "tool_use_id": id, "cwd": directory,
        });
        self.calls.insert((event.session.clone(), id), HookToolCall { tool, input, directory });
        Ok(fields)
    }

    fn finished(&self, event: &Event) -> Result<(&'static str, Value), Unplayable> {
        let EventKind::ToolFinished(ToolFinished {
            call: Some(id), status, result, exit_code, ..
        }) = &event.kind
        else {
            return Err(Capability::CallsWithoutIds.into());
        };
        let unknown = HookToolCall {
            tool: "Bash".to_owned(),
            input: json!({}),
            directory: self.workspace.clone(),
        };
        let call = self.calls.get(&(event.session.clone(), id.as_str().to_owned()));
        let call = call.unwrap_or(&unknown);
        let mut fields = json!({
            "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id.as_str(),
            "duration_ms": 1,
        });
        let result = result.as_ref().map(Payload::head);
        let (hook, ended) = match (status, exit_code) {
            (CallStatus::Ok, None) => ("PostToolUse", self.success_fields(call, event)?),
            (CallStatus::Ok, Some(0)) if call.tool == "Bash" => {
                ("PostToolUse", self.success_fields(call, event)?)
            }
            (CallStatus::Error, Some(code)) => {
                let text = format!("Exit code {code}\n{}", result.unwrap_or_default());
                ("PostToolUseFailure", json!({"error": text, "is_interrupt": false}))
            }
            (CallStatus::Error, None) => {
                let text = result.unwrap_or("it failed");
                ("PostToolUseFailure", json!({"error": text, "is_interrupt": false}))
            }
            (CallStatus::Cancelled, None) => {
                let text = result.unwrap_or("interrupted");
                ("PostToolUseFailure", json!({"error": text, "is_interrupt": true}))
            }
            (CallStatus::Timeout | CallStatus::Crashed, _) => {
                return Err(Capability::SeeCallStatus.into());
            }
            (CallStatus::Ok | CallStatus::Cancelled, Some(_)) => {
                return Err(Capability::SeeExitStatus.into());
            }
        };
        merge_fields(&mut fields, ended);
        Ok((hook, fields))
    }

    /// The response of a call that succeeded.
    fn success_fields(&self, call: &HookToolCall, event: &Event) -> Result<Value, Unplayable> {
        let EventKind::ToolFinished(ToolFinished { result, seen, background, .. }) = &event.kind
        else {
            return Err(Capability::SeeResult.into());
        };
        let result = result.as_ref().map(Payload::head);
        let response = match (seen.as_slice(), background) {
            ([], true) => {
                json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"})
            }
            ([], false) => self.default_response(call, result),
            ([seen], false) => shown_response(seen, result.unwrap_or_default()),
            _ => return Err(Capability::SeeShownLines.into()),
        };
        Ok(json!({ "tool_response": response }))
    }

    /// The response of a call whose result is not in the scenario. No tool ran, so the output is
    /// long enough for any command.
    fn default_response(&self, call: &HookToolCall, result: Option<&str>) -> Value {
        let text = result.unwrap_or(&self.long_text);
        match call.tool.as_str() {
            "Bash" => json!({
                "stdout": text, "stderr": "", "interrupted": false, "isImage": false,
                "noOutputExpected": false,
            }),
            "Read" if result.is_none() => read_response(call).unwrap_or_else(|| json!(text)),
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

/// The parts of a file that the client's read tool shows, with its way of counting lines.
fn read_response(call: &HookToolCall) -> Option<Value> {
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

fn shown_response(seen: &ShownLines, text: &str) -> Value {
    json!({"type": "text", "file": {
        "filePath": seen.path, "content": text,
        "startLine": seen.from, "numLines": seen.to + 1 - seen.from, "totalLines": seen.of,
    }})
}

fn merge_fields(payload: &mut Value, fields: Value) {
    if let (Value::Object(payload), Value::Object(fields)) = (payload, fields) {
        payload.extend(fields);
    }
}
