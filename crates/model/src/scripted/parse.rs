//! A script as people write it, with everything that is wrong with it at once.

use std::time::Duration;

use serde_json::{Map, Value};

use super::script::{Broken, Script, Step, ToolUse, Usage};

/// How long a step may wait.
const DELAY_MS_MAX: u64 = 600_000;

/// How long a step may want to be left alone.
const RETRY_AFTER_MS_MAX: u64 = 7 * 24 * 3_600_000;

const SCRIPT: [&str; 3] = ["steps", "parts", "repeat"];
const STEP: [&str; 7] =
    ["text", "calls", "usage", "delay_ms", "status", "retry_after_ms", "broken"];
const CALL: [&str; 3] = ["tool", "args", "args_text"];
const USAGE: [&str; 4] = ["input", "output", "cache_read", "cache_creation"];

/// Something that is wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ScriptError {
    /// Where it is: `steps[2].calls[0].args`; `script` is all of it.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Script {
    /// Reads a script, or says everything that is wrong with it.
    pub fn parse(value: &Value) -> Result<Self, Vec<ScriptError>> {
        let mut reader = Reader::default();
        let script = reader.script(value);
        if reader.errors.is_empty() { Ok(script) } else { Err(reader.errors) }
    }
}

#[derive(Default)]
struct Reader {
    errors: Vec<ScriptError>,
}

impl Reader {
    fn complain(&mut self, path: &str, message: impl Into<String>) {
        let path = if path.is_empty() { "script" } else { path };
        self.errors.push(ScriptError { path: path.to_owned(), message: message.into() });
    }

    fn script(&mut self, value: &Value) -> Script {
        let Some(fields) = self.object(value, "", &SCRIPT) else { return Script::default() };
        if !fields.contains_key("steps") {
            self.complain("", "has no `steps`");
        }
        let steps = fields.get("steps").map(|steps| self.steps(steps, "steps"));
        let mut script = Script::new(steps.unwrap_or_default());
        match fields.get("parts") {
            None => {}
            Some(Value::Object(parts)) => {
                for (marker, steps) in parts {
                    let path = format!("parts.{marker}");
                    if marker.is_empty() {
                        self.complain("parts", "a part needs a marker that is not empty");
                    }
                    let steps = self.steps(steps, &path);
                    script = script.part(marker.as_str(), steps);
                }
            }
            Some(_) => self.complain("parts", "is no object of markers, each with its steps"),
        }
        match fields.get("repeat") {
            None | Some(Value::Bool(false)) => script,
            Some(Value::Bool(true)) => script.repeating(),
            Some(_) => {
                self.complain("repeat", "is neither true nor false");
                script
            }
        }
    }

    fn steps(&mut self, value: &Value, path: &str) -> Vec<Step> {
        let Value::Array(steps) = value else {
            self.complain(path, "is no list of steps");
            return Vec::new();
        };
        if steps.is_empty() {
            self.complain(path, "has no step");
        }
        let steps = steps.iter().enumerate();
        steps.map(|(n, step)| self.step(step, &format!("{path}[{n}]"))).collect()
    }

    fn step(&mut self, value: &Value, path: &str) -> Step {
        let mut step = Step::default();
        let Some(fields) = self.object(value, path, &STEP) else { return step };
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
            Some(_) => self.complain(&format!("{path}.calls"), "is no list of calls"),
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
                self.complain(path, "has `retry_after_ms` without a `status`");
            }
        }
        if let Some(broken) = fields.get("broken") {
            step.broken = self.broken(broken, &format!("{path}.broken"));
        }
        if fields.contains_key("status") && fields.contains_key("broken") {
            self.complain(path, "has both `status` and `broken`; an answer fails in one way");
        }
        step
    }

    fn call(&mut self, value: &Value, path: &str) -> Option<ToolUse> {
        let fields = self.object(value, path, &CALL)?;
        let name = match fields.get("tool") {
            Some(name) => self.text(name, &format!("{path}.tool")),
            None => {
                self.complain(path, "has no `tool`");
                String::new()
            }
        };
        let mut tool = ToolUse { name, input: Value::Object(Map::new()), text: None };
        match (fields.get("args"), fields.get("args_text")) {
            (Some(_), Some(_)) => self.complain(path, "has both `args` and `args_text`"),
            (Some(args @ Value::Object(_)), None) => tool.input = args.clone(),
            (Some(_), None) => {
                let message = "is no object; text that is none goes into `args_text`";
                self.complain(&format!("{path}.args"), message);
            }
            (None, Some(text)) => tool.text = Some(self.text(text, &format!("{path}.args_text"))),
            (None, None) => {}
        }
        Some(tool)
    }

    fn usage(&mut self, value: &Value, path: &str) -> Usage {
        let mut usage = Usage::default();
        let Some(fields) = self.object(value, path, &USAGE) else { return usage };
        let Usage { input, output, cache_read, cache_creation } = &mut usage;
        for (name, field) in USAGE.iter().zip([input, output, cache_read, cache_creation]) {
            if let Some(number) = fields.get(*name) {
                *field = self.number(number, &format!("{path}.{name}"), 0, u64::from(u32::MAX));
            }
        }
        usage
    }

    fn broken(&mut self, value: &Value, path: &str) -> Option<Broken> {
        match value.as_str() {
            Some("half") => Some(Broken::Half),
            Some("html") => Some(Broken::Html),
            Some("nothing") => Some(Broken::Nothing),
            Some("huge") => Some(Broken::Huge),
            Some("long") => Some(Broken::Long),
            _ => {
                self.complain(path, "is none of `half`, `html`, `nothing`, `huge`, `long`");
                None
            }
        }
    }

    fn text(&mut self, value: &Value, path: &str) -> String {
        let text = value.as_str();
        if text.is_none() {
            self.complain(path, "is no text");
        }
        text.unwrap_or_default().to_owned()
    }

    fn number(&mut self, value: &Value, path: &str, least: u64, most: u64) -> u64 {
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.complain(path, format!("is no whole number from {least} to {most}"));
        }
        number.unwrap_or_default()
    }

    /// An object of which all keys are known.
    fn object<'a>(
        &mut self,
        value: &'a Value,
        path: &str,
        keys: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let Value::Object(fields) = value else {
            self.complain(path, "is no object");
            return None;
        };
        for name in fields.keys().filter(|name| !keys.contains(&name.as_str())) {
            let near = keys.iter().find(|key| is_near(name, key));
            let hint = near.map_or_else(
                || format!("there are `{}`", keys.join("`, `")),
                |key| format!("did you mean `{key}`?"),
            );
            self.complain(path, format!("`{name}` is no key here; {hint}"));
        }
        Some(fields)
    }
}

/// Whether a key is meant by something like it.
fn is_near(name: &str, key: &str) -> bool {
    let name = name.to_lowercase();
    let start = |text: &str| text.chars().take(3).collect::<String>();
    name.len() >= 3 && (start(&name) == start(key) || name.contains(key) || key.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_script_is_read_as_it_would_be_written_in_rust() {
        let parsed = Script::parse(&json!({
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
        let first = Step::say("well").and_call("Bash", json!({ "command": "ls" }));
        let usage = Usage { input: 1, output: 2, cache_read: 3, cache_creation: 4 };
        let steps = [
            first.and_call_with("Read", "{\"file"),
            Step::fail(529).after(Duration::from_millis(5)),
            Step::say("long").broken(Broken::Half),
            Step::default().costing(usage),
        ];
        let expected = Script::new(steps).part("SUB", [Step::say("s")]).repeating();
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let errors = Script::parse(&json!({
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
        let told: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        let expected = [
            "script: `step` is no key here; did you mean `steps`?",
            "steps[0]: `txt` is no key here; there are `text`, `calls`, `usage`, `delay_ms`, `status`, `retry_after_ms`, `broken`",
            "steps[1]: `colour` is no key here; there are `text`, `calls`, `usage`, `delay_ms`, `status`, `retry_after_ms`, `broken`",
            "steps[1].text: is no text",
            "steps[2].calls[0]: has no `tool`",
            "steps[2].calls[0].args: is no object; text that is none goes into `args_text`",
            "steps[2].calls[1]: is no object",
            "steps[2].calls[2]: has both `args` and `args_text`",
            "steps[3].status: is no whole number from 300 to 599",
            "steps[3].broken: is none of `half`, `html`, `nothing`, `huge`, `long`",
            "steps[3]: has both `status` and `broken`; an answer fails in one way",
            "steps[4].usage.input: is no whole number from 0 to 4294967295",
            "steps[5]: is no object",
            "parts: is no object of markers, each with its steps",
            "repeat: is neither true nor false",
        ];
        assert_eq!(told, expected);
        for (nothing, message) in
            [(json!(null), "script: is no object"), (json!({}), "script: has no `steps`")]
        {
            assert_eq!(Script::parse(&nothing).unwrap_err()[0].to_string(), message);
        }
    }
}
