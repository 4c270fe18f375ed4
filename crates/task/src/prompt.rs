//! What a model is asked: what holds always first, then the task, then what was wrong.

use jackline_attempt::Ask;
use jackline_decode::plan_schema;
use jackline_sandbox_host::Known;
use serde_json::{Map, Value, json};

use crate::author::ArtifactRequest;
use crate::spec::ArtifactKind;

const PROGRAM: &str = "\
You write one Python program that does a task by calling tools. Answer with the program alone, in \
one ```python block.

What a program has:
- tool(\"name\")(key=value) calls a tool with named arguments and returns its answer, a dictionary.
- delegate(\"name\", key=value) has somebody else do something; returns their outcome, a dictionary \
with status \"ok\" (value, sources) or \"error\" (error_type, error_message, retriable).
- forge(\"name\", source, description=\"...\") makes a tool of a program, given as text, which finds \
what it is called with in `arguments`; call it with tool(\"name\").
- context is a dictionary that later programs find again. context[\"tools\"] and \
context[\"delegates\"] map names to descriptions.
- ok(value, sources=[...]) answers and ends the program. error(type, message, retriable=False) \
says that there is no answer, and why.

Prohibitions:
- No files, network, environment or clock but through tools; no import of modules that reach \
outside, no eval, no exec.
- Never assign to an attribute of a tool, an agent or a module, and never redefine tool, delegate, \
forge, ok, error or context.
- context[\"tools\"] is a mapping from names to descriptions, not a list, and holds nothing to call.
- Where a source fails, never answer ok with a value that is written into the program.
- What came from outside needs sources: uri, fetched_at, retrieval_tool and retrieval_mode (live, \
cached or fixture).
- Never put the message of a delegate's error into an answer.

Recovery:
- A call that is refused raises PermissionError, one that fails raises RuntimeError. Catch what you \
can do something about; otherwise end with error(type, message, retriable=...).
- If the program fails, everything that it did is undone, and you are asked again with the reason. \
Then write the whole program anew, and keep to every correction that was given before.
";

const PLAN: &str = "\
You write one plan that does a task by calling tools. Answer with one JSON object alone: \
{\"action_type\": \"FETCH_SLICE\", \"tool_calls\": [{\"name\": \"...\", \"arguments\": {...}}]}, \
with action_type one of SEARCH, FETCH_SLICE, SYNTHESIZE, ASK_HUMAN, STOP.

Prohibitions:
- Only tools that are listed, with the arguments that they take.
- The whole plan is checked before its first step runs: a step that the guards would refuse is \
refused then.

Recovery:
- If a step fails, everything that the plan did is undone, and you are asked again with the reason. \
Then write the whole plan anew, and keep to every correction that was given before.
";

/// What a task says to its model.
pub(crate) struct Says<'a> {
    pub(crate) artifact: ArtifactKind,
    pub(crate) prompt: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) context: &'a Map<String, Value>,
    pub(crate) known: &'a Known,
    /// What the guards want the model to know.
    pub(crate) texts: Option<&'a str>,
    pub(crate) ask: &'a Ask,
}

/// What a model is asked for in a plan.
const PLAN_KEYS: [&str; 3] = ["action_type", "rationale", "tool_calls"];

/// How much of a value of the context is shown.
const VALUE_CHARS_MAX: usize = 200;

impl ArtifactKind {
    /// What every model is told that writes such a thing.
    pub fn instructions(self) -> &'static str {
        match self {
            Self::Program => PROGRAM,
            Self::Plan => PLAN,
        }
    }
}

pub(crate) fn render(says: &Says<'_>) -> ArtifactRequest {
    let mut task = vec![format!("# Task\n\n{}", says.prompt.trim())];
    if !says.arguments.is_empty() {
        task.push(format!("# Arguments\n\nIn `arguments`: {}", json!(says.arguments)));
    }
    ArtifactRequest {
        system: says.artifact.instructions().to_owned(),
        task: task.join("\n\n"),
        means: means(says).join("\n\n"),
        news: news(says).join("\n\n"),
        output: (says.artifact == ArtifactKind::Plan).then(|| plan_of(says.known)),
    }
}

/// What a plan looks like that calls nothing but these tools. It is never looser than what
/// is demanded of a plan later, so that a model held to it writes one that can be read.
fn plan_of(known: &Known) -> Value {
    let step = |name: &str| {
        let arguments = input_schema(name).unwrap_or_else(|| json!({ "type": "object" }));
        json!({
            "type": "object",
            "required": ["name", "arguments"],
            "additionalProperties": false,
            "properties": { "name": { "enum": [name] }, "arguments": arguments },
        })
    };
    let steps: Vec<Value> = known.tools.iter().map(|tool| step(&tool.name)).collect();
    let calls = match steps.as_slice() {
        [] => json!({ "type": "array", "maxItems": 0, "items": { "type": "object" } }),
        steps => json!({ "type": "array", "items": { "anyOf": steps } }),
    };
    let mut schema = plan_schema();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| PLAN_KEYS.contains(&name.as_str()));
        properties.insert("tool_calls".to_owned(), calls);
    }
    schema
}

/// What a tool of the workspace takes.
fn input_schema(name: &str) -> Option<Value> {
    let spec = jackline_workspace::tools().iter().find(|spec| spec.name == name);
    spec.map(|spec| spec.input_schema.clone())
}

/// What there is to do it with.
fn means(says: &Says<'_>) -> Vec<String> {
    let mut parts = vec![format!("# Tools\n\n{}", tools(says.known))];
    if !says.known.delegates.is_empty() {
        let each =
            says.known.delegates.iter().map(|it| format!("- {}: {}", it.name, it.description));
        parts.push(format!("# Delegates\n\n{}", each.collect::<Vec<_>>().join("\n")));
    }
    if !says.context.is_empty() {
        let each = says.context.iter().map(|(key, value)| {
            let text: String = value.to_string().chars().take(VALUE_CHARS_MAX).collect();
            format!("- {key}: {text}")
        });
        parts.push(format!("# Context\n\n{}", each.collect::<Vec<_>>().join("\n")));
    }
    parts
}

/// What the guards have to say, and what was wrong before.
fn news(says: &Says<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(texts) = says.texts {
        parts.push(format!("# From the guards\n\n{texts}"));
    }
    if let Some(feedback) = &says.ask.feedback {
        let feedback = serde_json::to_string_pretty(feedback).unwrap_or_default();
        let attempt = says.ask.attempt;
        parts.push(format!(
            "# Why you are asked again\n\nThis is for attempt {attempt}. What was done before is \
             undone.\n\n{feedback}"
        ));
    }
    if !says.ask.corrections.is_empty() {
        let each = says.ask.corrections.iter().map(|it| format!("- {it}"));
        let each = each.collect::<Vec<_>>().join("\n");
        parts.push(format!("# Corrections so far, all of which hold\n\n{each}"));
    }
    parts
}

fn tools(known: &Known) -> String {
    let line = |name: &str, description: &str| match input_schema(name) {
        Some(schema) => format!("- {name}: {description} Arguments: {schema}"),
        None => format!("- {name}: {description}"),
    };
    let lines = known.tools.iter().map(|it| line(&it.name, &it.description));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "There are none.".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use jackline_attempt::{Feedback, Subtype, Violation};
    use jackline_decode::{Decoded, Ending, Schema, decode};
    use jackline_sandbox_host::Named;

    use super::*;

    #[test]
    fn the_schema_of_a_plan_knows_the_tools_and_what_they_take() {
        let named = |name: &str| {
            let (name, description) = (name.to_owned(), String::new());
            Named { name, description, external: false }
        };
        let known = Known { tools: vec![named("read_file"), named("own")], delegates: vec![] };
        let schema = Schema::compile(&plan_of(&known)).unwrap();
        let fits = |name: &str, arguments: Value| {
            let calls = json!([{ "name": name, "arguments": arguments }]);
            let plan = json!({ "action_type": "SEARCH", "tool_calls": calls }).to_string();
            let decoded = decode(&plan, Some(&schema), Ending::Finished);
            matches!(decoded, Decoded::Accepted(_))
        };
        assert!(fits("read_file", json!({ "path": "a" })));
        assert!(!fits("read_file", json!({ "path": 5 })));
        assert!(fits("own", json!({ "anything": 5 })));
        assert!(!fits("shell", json!({ "command": "ls" })));
        let program = Says {
            artifact: ArtifactKind::Program,
            prompt: "",
            arguments: &Map::new(),
            context: &Map::new(),
            known: &known,
            texts: None,
            ask: &Ask { attempt: 1, feedback: None, corrections: Vec::new() },
        };
        assert_eq!(render(&program).output, None);
        let plan = Says { artifact: ArtifactKind::Plan, ..program };
        assert_eq!(render(&plan).output, Some(plan_of(&known)));
    }

    #[test]
    fn the_prompt_says_what_was_wrong_and_keeps_every_correction() {
        let named = |name: &str| Named {
            name: name.to_owned(),
            description: "does it".to_owned(),
            external: false,
        };
        let known = Known {
            tools: vec![named("read_file"), named("own")],
            delegates: vec![named("scout")],
        };
        let violation = Violation::new(Subtype::SingletonMethodMutation, "no");
        let corrections = vec!["one".to_owned(), "two".to_owned()];
        let feedback =
            Feedback::Guardrail { violations: vec![violation], remaining_guardrail_budget: 1 };
        let ask = Ask { attempt: 2, feedback: Some(feedback), corrections };
        let request = render(&Says {
            artifact: ArtifactKind::Program,
            prompt: "find films",
            arguments: &Map::new(),
            context: &Map::from_iter([("n".to_owned(), json!(1))]),
            known: &known,
            texts: Some("slow down"),
            ask: &ask,
        });
        for part in ["Prohibitions", "Recovery", "never redefine"] {
            assert!(request.system.contains(part), "{part}");
        }
        for part in [
            "find films",
            "- read_file: does it Arguments: {",
            "- own: does it",
            "- scout: does it",
            "- n: 1",
            "slow down",
            "attempt 2",
            "singleton_method_mutation",
            "remaining_guardrail_budget",
            "- one\n- two",
        ] {
            assert!(request.user().contains(part), "{part} in {}", request.user());
        }
        // In the order in which a model reads it that is asked once.
        let heads: Vec<String> = request
            .user()
            .lines()
            .filter(|line| line.starts_with("# "))
            .map(str::to_owned)
            .collect();
        let expected = [
            "# Task",
            "# Tools",
            "# Delegates",
            "# Context",
            "# From the guards",
            "# Why you are asked again",
            "# Corrections so far, all of which hold",
        ];
        assert_eq!(heads, expected);
    }
}
