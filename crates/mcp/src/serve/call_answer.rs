//! The result of a tool call: text for the model, fields for programs, and a report for the guards.

use jackline_engine::event::ShownLines;
use jackline_engine::{CallStatus, nearest_name};
use jackline_runtime::spill::PageError;
use jackline_runtime::{CallRefusal, CallResult};
use jackline_workspace::{ShownContent, ToolAnswer, ToolError, ToolSpec};
use serde_json::{Value, json};

/// The answer to a tool call.
#[derive(Debug)]
pub(super) struct McpCallAnswer {
    pub(super) text: String,
    structured: Value,
    pub(super) status: CallStatus,
    pub(super) exit_code: Option<i64>,
    pub(super) seen: Vec<ShownLines>,
}

impl McpCallAnswer {
    /// The answer of a tool that succeeded.
    pub(super) fn of_output(shows: ShownContent, output: ToolAnswer) -> Self {
        let seen = output.shown_lines(shows);
        let status = output.status();
        let ToolAnswer { text, structured } = output;
        Self {
            text,
            status,
            exit_code: structured.get("exit_code").and_then(Value::as_i64),
            seen,
            structured,
        }
    }

    /// The answer of a tool that failed.
    pub(super) fn failed(error: &ToolError) -> Self {
        Self::error(error.render_text(), json!(error))
    }

    /// The report for the guards.
    pub(super) fn to_call_result(&self, call: u64) -> CallResult {
        CallResult {
            text: Some(self.text.clone()),
            exit_code: self.exit_code,
            seen: self.seen.clone(),
            ..CallResult::new(call, self.status)
        }
    }

    /// The answer to a call that the guards refused.
    pub(super) fn refused(refusal: &CallRefusal) -> Self {
        let mut error = json!({
            "code": refusal.code,
            "message": refusal.text(),
            "violations": refusal.violations,
        });
        if let (Some(repair), Some(fields)) = (&refusal.repair, error.as_object_mut()) {
            fields.insert("errors".to_owned(), json!(repair.errors));
            fields.insert("attempts_remaining".to_owned(), json!(repair.remaining));
        }
        let mut text = refusal.text();
        if let Some(code) = &refusal.stop_code {
            text = format!(
                "{text}\n-> this session has ended: {code}; a person can reopen it with \
                `jackline reset`"
            );
            if let Some(fields) = error.as_object_mut() {
                fields.insert("message".to_owned(), json!(text));
            }
        }
        Self::error(text, error)
    }

    /// The answer to a call of an unknown tool; it lists the existing tools.
    pub(super) fn unknown_tool(tool: &str, tools: &[ToolSpec]) -> Self {
        let message = format!("there is no tool `{}`", short_name(tool));
        let error = json!({ "code": "unknown_tool", "message": message });
        Self::error(format!("unknown_tool: {message}"), error).with_tool_list(tool, tools)
    }

    /// Adds the list of tools, and the tool that the model most likely meant.
    pub(super) fn with_tool_list(mut self, tool: &str, tools: &[ToolSpec]) -> Self {
        let names: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
        let near = nearest_name(tool, names.iter().copied());
        let all = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = near.map_or_else(String::new, |near| format!("Did you mean `{near}`? "));
        let guidance = format!("{meant}The tools are {all}.");
        self.text = format!("{}\n{guidance}", self.text);
        if let Some(error) = self.structured.get_mut("error").and_then(Value::as_object_mut) {
            error.insert("guidance".to_owned(), json!({ "text": guidance }));
        }
        self.with_tool_fields(tool, tools)
    }

    /// Adds the list of tools only to the fields, because the text already contains it.
    pub(super) fn with_tool_fields(mut self, tool: &str, tools: &[ToolSpec]) -> Self {
        let names: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
        if let Some(error) = self.structured.get_mut("error").and_then(Value::as_object_mut) {
            error.insert("nearest".to_owned(), json!(nearest_name(tool, names.iter().copied())));
            error.insert("tools".to_owned(), json!(names));
        }
        self
    }

    /// The answer for a page that does not exist.
    pub(super) fn no_page(error: &PageError) -> Self {
        let code = match error {
            PageError::Unknown(_) => "no_such_page",
            PageError::Expired(_) => "page_expired",
            PageError::Io(_) => "io",
        };
        Self::error(
            format!("{code}: {error}"),
            json!({ "code": code, "message": error.to_string() }),
        )
    }

    /// The answer for invalid arguments that no guard refused.
    pub(super) fn invalid_arguments(message: &str) -> Self {
        Self::error(
            format!("invalid_arguments: {message}"),
            json!({ "code": "invalid_arguments", "message": message }),
        )
    }

    /// The answer if too many calls are running.
    pub(super) fn too_many_calls(most: usize) -> Self {
        let message = format!("{most} calls are already running; wait for an answer first");
        Self::error(
            format!("too_many_calls: {message}"),
            json!({ "code": "too_many_calls", "message": message }),
        )
    }

    /// The answer for a tool that panicked, which is a fault of Jackline.
    pub(super) fn tool_fault() -> Self {
        let message = "the tool failed because of a bug, not because of the call; it is unknown \
                       what the tool did";
        let error = json!({ "code": "fault", "message": message });
        Self { status: CallStatus::Crashed, ..Self::error(format!("fault: {message}"), error) }
    }

    fn error(text: String, error: impl Into<Value>) -> Self {
        let error = error.into();
        Self {
            text,
            structured: json!({ "error": error }),
            status: CallStatus::Error,
            exit_code: None,
            seen: Vec::new(),
        }
    }

    /// The result of the call. It contains the feedback twice, because some clients show the model
    /// only the text and others only the fields.
    pub(super) fn render(&self, feedback: Option<&str>) -> Value {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let mut content = vec![text(&self.text)];
        content.extend(feedback.map(text));
        let mut structured = self.structured.clone();
        if let (Some(feedback), Some(fields)) = (feedback, structured.as_object_mut()) {
            fields.insert("feedback".to_owned(), json!(feedback));
        }
        let is_error = structured.get("error").is_some();
        json!({ "content": content, "structuredContent": structured, "isError": is_error })
    }
}

fn short_name(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_in_the_text_and_in_the_fields() {
        let output = ToolAnswer { text: "done".to_owned(), structured: json!({ "a": 1 }) };
        let result =
            McpCallAnswer::of_output(ShownContent::Nothing, output).render(Some("slow down"));
        assert_eq!(
            result,
            json!({
                "content": [
                    { "type": "text", "text": "done" },
                    { "type": "text", "text": "slow down" },
                ],
                "structuredContent": { "a": 1, "feedback": "slow down" },
                "isError": false,
            })
        );
    }
}
