//! Parses a script that a person wrote, and reports all errors at once.

use std::time::Duration;

use serde_json::{Map, Value};

use super::script::{AnswerDefect, ModelScript, ScriptStep, ScriptUsage, ScriptedToolCall};

/// The longest delay of a step.
const DELAY_MS_MAX: u64 = 600_000;

/// The longest retry delay of a step.
const RETRY_AFTER_MS_MAX: u64 = 7 * 24 * 3_600_000;

const SCRIPT_KEYS: [&str; 3] = ["steps", "parts", "repeat"];
const STEP_KEYS: [&str; 7] =
    ["text", "calls", "usage", "delay_ms", "status", "retry_after_ms", "broken"];
const CALL_KEYS: [&str; 3] = ["tool", "args", "args_text"];
const USAGE_KEYS: [&str; 4] = ["input", "output", "cache_read", "cache_creation"];

/// An error in a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ScriptError {
    /// The position: `steps[2].calls[0].args`; `script` means the whole script.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl ModelScript {
    /// Parses a script, or returns all errors in it.
    pub fn parse(value: &Value) -> Result<Self, Vec<ScriptError>> {
        let mut reader = ScriptParser::default();
        let script = reader.script(value);
        if reader.errors.is_empty() { Ok(script) } else { Err(reader.errors) }
    }
}

#[derive(Default)]
struct ScriptParser {
    errors: Vec<ScriptError>,
}

impl ScriptParser {
    fn add_error(&mut self, path: &str, message: impl Into<String>) {
        let path = if path.is_empty() { "script" } else { path };
        self.errors.push(ScriptError { path: path.to_owned(), message: message.into() });
    }

    fn script(&mut self, value: &Value) -> ModelScript {
        let Some(fields) = self.object(value, "", &SCRIPT_KEYS) else {
            return ModelScript::default();
        };
        if !fields.contains_key("steps") {
            self.add_error("", "`steps` is missing");
        }
        let steps = fields.get("steps").map(|steps| self.steps(steps, "steps"));
        let mut script = ModelScript::new(steps.unwrap_or_default());
        match fields.get("parts") {
            None => {}
            Some(Value::Object(parts)) => {
                for (marker, steps) in parts {
                    let path = format!("parts.{marker}");
                    if marker.is_empty() {
                        self.add_error("parts", "a part needs a non-empty marker");
                    }
                    let steps = self.steps(steps, &path);
                    script = script.part(marker.as_str(), steps);
                }
            }
            Some(_) => self.add_error("parts", "must be an object that maps markers to steps"),
        }
        match fields.get("repeat") {
            None | Some(Value::Bool(false)) => script,
            Some(Value::Bool(true)) => script.repeating(),
            Some(_) => {
                self.add_error("repeat", "must be true or false");
                script
            }
        }
    }

    fn steps(&mut self, value: &Value, path: &str) -> Vec<ScriptStep> {
        let Value::Array(steps) = value else {
            self.add_error(path, "must be a list of steps");
            return Vec::new();
        };
        if steps.is_empty() {
            self.add_error(path, "must contain at least one step");
        }
        let steps = steps.iter().enumerate();
        steps.map(|(n, step)| self.step(step, &format!("{path}[{n}]"))).collect()
    }

    fn step(&mut self, value: &Value, path: &str) -> ScriptStep {
        let mut step = ScriptStep::default();
        let Some(fields) = self.object(value, path, &STEP_KEYS) else { return step };
        if let Some(text) = fields.get("text") {
            step.text = self.text(text, &format!("{path}.text"));
        }
        match fields.get("calls") {
            None => {}
            Some(Value::Array(calls)) => {
                let calls = calls.iter().enumerate();
                step.tools = calls
                    .filter_map(|(n, call)| self.call(call, &format!("{path}.calls[{n}]")))
                    .collect();
            }
            Some(_) => self.add_error(&format!("{path}.calls"), "must be a list of calls"),
        }
        if let Some(usage) = fields.get("usage") {
            step.usage = self.usage(usage, &format!("{path}.usage"));
        }
        if let Some(delay) = fields.get("delay_ms") {
            let ms = self.number(delay, &format!("{path}.delay_ms"), 0, DELAY_MS_MAX);
            step.delay = Duration::from_millis(ms);
        }
        if let Some(status) = fields.get("status") {
            let status = self.number(status, &format!("{path}.status"), 300, 599);
            step.status = u16::try_from(status).ok();
        }
        if let Some(ms) = fields.get("retry_after_ms") {
            let ms = self.number(ms, &format!("{path}.retry_after_ms"), 0, RETRY_AFTER_MS_MAX);
            step.retry_after = Some(Duration::from_millis(ms));
            if !fields.contains_key("status") {
                self.add_error(path, "has `retry_after_ms` without a `status`");
            }
        }
        if let Some(broken) = fields.get("broken") {
            step.broken = self.broken(broken, &format!("{path}.broken"));
        }
        if fields.contains_key("status") && fields.contains_key("broken") {
            self.add_error(path, "has both `status` and `broken`; use only one of them");
        }
        step
    }

    fn call(&mut self, value: &Value, path: &str) -> Option<ScriptedToolCall> {
        let fields = self.object(value, path, &CALL_KEYS)?;
        let name = match fields.get("tool") {
            Some(name) => self.text(name, &format!("{path}.tool")),
            None => {
                self.add_error(path, "`tool` is missing");
                String::new()
            }
        };
        let mut tool = ScriptedToolCall { name, input: Value::Object(Map::new()), text: None };
        match (fields.get("args"), fields.get("args_text")) {
            (Some(_), Some(_)) => {
                self.add_error(path, "has both `args` and `args_text`; use only one of them");
            }
            (Some(args @ Value::Object(_)), None) => tool.input = args.clone(),
            (Some(_), None) => {
                let message = "must be an object; use `args_text` for other text";
                self.add_error(&format!("{path}.args"), message);
            }
            (None, Some(text)) => tool.text = Some(self.text(text, &format!("{path}.args_text"))),
            (None, None) => {}
        }
        Some(tool)
    }

    fn usage(&mut self, value: &Value, path: &str) -> ScriptUsage {
        let mut usage = ScriptUsage::default();
        let Some(fields) = self.object(value, path, &USAGE_KEYS) else { return usage };
        let ScriptUsage { input, output, cache_read, cache_creation } = &mut usage;
        for (name, field) in USAGE_KEYS.iter().zip([input, output, cache_read, cache_creation]) {
            if let Some(number) = fields.get(*name) {
                *field = self.number(number, &format!("{path}.{name}"), 0, u64::from(u32::MAX));
            }
        }
        usage
    }

    fn broken(&mut self, value: &Value, path: &str) -> Option<AnswerDefect> {
        match value.as_str() {
            Some("half") => Some(AnswerDefect::Incomplete),
            Some("html") => Some(AnswerDefect::Html),
            Some("nothing") => Some(AnswerDefect::Nothing),
            Some("huge") => Some(AnswerDefect::Huge),
            Some("long") => Some(AnswerDefect::LengthLimit),
            _ => {
                self.add_error(path, "must be `half`, `html`, `nothing`, `huge` or `long`");
                None
            }
        }
    }

    fn text(&mut self, value: &Value, path: &str) -> String {
        let text = value.as_str();
        if text.is_none() {
            self.add_error(path, "must be a string");
        }
        text.unwrap_or_default().to_owned()
    }

    fn number(&mut self, value: &Value, path: &str, least: u64, most: u64) -> u64 {
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.add_error(path, format!("must be a whole number from {least} to {most}"));
        }
        number.unwrap_or_default()
    }

    /// Reads an object that may contain only these keys.
    fn object<'a>(
        &mut self,
        value: &'a Value,
        path: &str,
        keys: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let Value::Object(fields) = value else {
            self.add_error(path, "must be an object");
            return None;
        };
        for name in fields.keys().filter(|name| !keys.contains(&name.as_str())) {
            let near = keys.iter().find(|key| is_similar(name, key));
            let hint = near.map_or_else(
                || format!("the keys are `{}`", keys.join("`, `")),
                |key| format!("did you mean `{key}`?"),
            );
            self.add_error(path, format!("unknown key `{name}`; {hint}"));
        }
        Some(fields)
    }
}

/// Whether a key is similar to a name.
fn is_similar(name: &str, key: &str) -> bool {
    let name = name.to_lowercase();
    let start = |text: &str| text.chars().take(3).collect::<String>();
    name.len() >= 3 && (start(&name) == start(key) || name.contains(key) || key.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parsed_script_equals_one_built_in_rust() {
        let parsed = ModelScript::parse(&json!({
            "steps": [
                { "text": "well", "calls": [
                    { "tool": "Bash", "args": { "command": "ls" } },
                    { "tool": "Read", "args_text": "{\"file" },
                ] },
                { "status": 529, "delay_ms": 5 },
                { "broken": "half", "text": "long" },
                { "usage": { "input": 1, "output": 2, "cache_read": 3, "cache_creation": 4 } },
            ],
            "parts": { "SUB": [{ "text": "s" }] },
            "repeat": true,
        }));
        let first = ScriptStep::say("well").and_call("Bash", json!({ "command": "ls" }));
        let usage = ScriptUsage { input: 1, output: 2, cache_read: 3, cache_creation: 4 };
        let steps = [
            first.and_call_with("Read", "{\"file"),
            ScriptStep::fail(529).with_delay(Duration::from_millis(5)),
            ScriptStep::say("long").broken(AnswerDefect::Incomplete),
            ScriptStep::default().with_usage(usage),
        ];
        let expected = ModelScript::new(steps).part("SUB", [ScriptStep::say("s")]).repeating();
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let errors = ModelScript::parse(&json!({
            "steps": [
                { "txt": "a" },
                { "text": 1, "colour": 2 },
                { "calls": [{ "args": [] }, 7, { "tool": "x", "args": {}, "args_text": "" }] },
                { "status": 200, "broken": "quarter" },
                { "usage": { "input": -1 } },
                "say",
            ],
            "parts": [],
            "repeat": "yes",
            "step": [],
        }));
        let messages: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        let expected = [
            "script: unknown key `step`; did you mean `steps`?",
            "steps[0]: unknown key `txt`; the keys are `text`, `calls`, `usage`, `delay_ms`, `status`, `retry_after_ms`, `broken`",
            "steps[1]: unknown key `colour`; the keys are `text`, `calls`, `usage`, `delay_ms`, `status`, `retry_after_ms`, `broken`",
            "steps[1].text: must be a string",
            "steps[2].calls[0]: `tool` is missing",
            "steps[2].calls[0].args: must be an object; use `args_text` for other text",
            "steps[2].calls[1]: must be an object",
            "steps[2].calls[2]: has both `args` and `args_text`; use only one of them",
            "steps[3].status: must be a whole number from 300 to 599",
            "steps[3].broken: must be `half`, `html`, `nothing`, `huge` or `long`",
            "steps[3]: has both `status` and `broken`; use only one of them",
            "steps[4].usage.input: must be a whole number from 0 to 4294967295",
            "steps[5]: must be an object",
            "parts: must be an object that maps markers to steps",
            "repeat: must be true or false",
        ];
        assert_eq!(messages, expected);
        for (nothing, message) in
            [(json!(null), "script: must be an object"), (json!({}), "script: `steps` is missing")]
        {
            assert_eq!(ModelScript::parse(&nothing).unwrap_err()[0].to_string(), message);
        }
    }
}
