//! What a call comes back with: text for the model, fields for programs, and what
//! the guards are told of it.

use jackline_engine::event::Seen;
use jackline_engine::{Status, nearest};
use jackline_runtime::spill::PageError;
use jackline_runtime::{CallRefusal, CallResult};
use jackline_workspace::{Shows, ToolError, ToolOutput, ToolSpec};
use serde_json::{Value, json};

/// The answer to a call.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    structured: Value,
    pub(super) status: Status,
    pub(super) exit_code: Option<i64>,
    pub(super) seen: Vec<Seen>,
}

impl Answer {
    /// What a tool returned.
    pub(super) fn of(shows: Shows, output: ToolOutput) -> Self {
        let seen = output.seen(shows);
        let status = output.status();
        let ToolOutput { text, structured } = output;
        Self {
            text,
            status,
            exit_code: structured.get("exit_code").and_then(Value::as_i64),
            seen,
            structured,
        }
    }

    /// Why it returned nothing.
    pub(super) fn failed(error: &ToolError) -> Self {
        Self::error(error.text(), json!(error))
    }

    /// It for the guards.
    pub(super) fn came_back(&self, call: u64) -> CallResult {
        CallResult {
            text: Some(self.text.clone()),
            exit_code: self.exit_code,
            seen: self.seen.clone(),
            ..CallResult::new(call, self.status)
        }
    }

    /// What becomes of a call that the guards do not let run.
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
        if let Some(code) = &refusal.ended {
            text = format!(
                "{text}\n-> this session is over now: {code}; a person can open it anew with \
                 `jackline reset`"
            );
            if let Some(fields) = error.as_object_mut() {
                fields.insert("message".to_owned(), json!(text));
            }
        }
        Self::error(text, error)
    }

    /// A call of a tool that is not there, and which there are.
    pub(super) fn unknown(tool: &str, tools: &[ToolSpec]) -> Self {
        let message = format!("there is no tool `{}`", shortened(tool));
        let error = json!({ "code": "unknown_tool", "message": message });
        Self::error(format!("unknown_tool: {message}"), error).leading_on(tool, tools)
    }

    /// Says which tools there are, and which of them may be meant.
    pub(super) fn leading_on(mut self, tool: &str, tools: &[ToolSpec]) -> Self {
        let names: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
        let near = nearest(tool, names.iter().copied());
        let all = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = near.map_or_else(String::new, |near| format!("Did you mean `{near}`? "));
        let guidance = format!("{meant}There are {all}.");
        self.text = format!("{}\n{guidance}", self.text);
        if let Some(error) = self.structured.get_mut("error").and_then(Value::as_object_mut) {
            error.insert("guidance".to_owned(), json!({ "text": guidance }));
        }
        self.naming(tool, tools)
    }

    /// The same for programs only, where the text says it already.
    pub(super) fn naming(mut self, tool: &str, tools: &[ToolSpec]) -> Self {
        let names: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
        if let Some(error) = self.structured.get_mut("error").and_then(Value::as_object_mut) {
            error.insert("nearest".to_owned(), json!(nearest(tool, names.iter().copied())));
            error.insert("tools".to_owned(), json!(names));
        }
        self
    }

    /// A page that is not there.
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

    /// Arguments that are wrong, where no guard has said so.
    pub(super) fn invalid(message: &str) -> Self {
        Self::error(
            format!("invalid_arguments: {message}"),
            json!({ "code": "invalid_arguments", "message": message }),
        )
    }

    /// More calls at once than are run.
    pub(super) fn busy(most: usize) -> Self {
        let message = format!("{most} calls are running already; wait for an answer first");
        Self::error(
            format!("too_many_calls: {message}"),
            json!({ "code": "too_many_calls", "message": message }),
        )
    }

    /// A tool that broke, which is our own fault.
    pub(super) fn broken() -> Self {
        let message = "the tool is broken, not the call; what it did is unknown";
        let error = json!({ "code": "fault", "message": message });
        Self { status: Status::Crashed, ..Self::error(format!("fault: {message}"), error) }
    }

    fn error(text: String, error: impl Into<Value>) -> Self {
        let error = error.into();
        Self {
            text,
            structured: json!({ "error": error }),
            status: Status::Error,
            exit_code: None,
            seen: Vec::new(),
        }
    }

    /// The result of the call. Feedback is said twice: some clients show the model
    /// the text, some the fields.
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

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_in_the_text_and_in_the_fields() {
        let output = ToolOutput { text: "done".to_owned(), structured: json!({ "a": 1 }) };
        let result = Answer::of(Shows::Nothing, output).render(Some("slow down"));
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
