//! The request to a model: fixed instructions first, then the task, then what went wrong.

use jackline_attempt::GenerationRequest;
use jackline_decode::plan_schema;
use jackline_sandbox_host::Callables;
use serde_json::{Map, Value, json};

use crate::author::ArtifactRequest;
use crate::task_spec::ArtifactKind;

const PROGRAM_INSTRUCTIONS: &str = "\
You write one Python program that does a task by calling tools. Answer only with the program, in \
one ```python block.

What a program has:
- tool(\"name\")(key=value) calls a tool with named arguments and returns its answer, a dictionary.
- delegate(\"name\", key=value) runs a delegate and returns its outcome, a dictionary \
with status \"ok\" (value, sources) or \"error\" (error_type, error_message, retriable).
- forge(\"name\", source, description=\"...\") makes a new tool from a program, given as text. That \
program reads its arguments from `arguments`; call the tool with tool(\"name\").
- context is a dictionary that later programs can read. context[\"tools\"] and \
context[\"delegates\"] map names to descriptions.
- ok(value, sources=[...]) answers and ends the program. error(type, message, retriable=False) \
ends the program without an answer, and gives the reason.

Prohibitions:
- No files, network, environment or clock except through tools; no import of modules that reach \
outside, no eval, no exec.
- Never assign to an attribute of a tool, an agent or a module, and never redefine tool, delegate, \
forge, ok, error or context.
- context[\"tools\"] is a mapping from names to descriptions, not a list, and its values can't be called.
- If a source fails, never answer ok with a value that is written into the program.
- External data needs sources: uri, fetched_at, retrieval_tool and retrieval_mode (live, \
cached or fixture).
- Never put the message of a delegate's error into an answer.

Recovery:
- A call that is refused raises PermissionError, one that fails raises RuntimeError. Catch what you \
can handle; otherwise end with error(type, message, retriable=...).
- If the program fails, all of its changes are undone, and you are asked again with the reason. \
Then write the whole program again, and follow every correction that you got before.
";

const PLAN_INSTRUCTIONS: &str = "\
You write one plan that does a task by calling tools. Answer only with one JSON object: \
{\"action_type\": \"FETCH_SLICE\", \"tool_calls\": [{\"name\": \"...\", \"arguments\": {...}}]}, \
with action_type one of SEARCH, FETCH_SLICE, SYNTHESIZE, ASK_HUMAN, STOP.

Prohibitions:
- Only tools that are listed, with the arguments that they accept.
- The whole plan is checked before its first step runs. If the guards would refuse one step, the \
whole plan is refused.

Recovery:
- If a step fails, all changes of the plan are undone, and you are asked again with the reason. \
Then write the whole plan again, and follow every correction that you got before.
";

/// The parts of a request to the model of a task.
pub(crate) struct PromptParts<'a> {
    pub(crate) artifact: ArtifactKind,
    pub(crate) prompt: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) context: &'a Map<String, Value>,
    pub(crate) known: &'a Callables,
    /// The texts of the guards for the model.
    pub(crate) texts: Option<&'a str>,
    pub(crate) ask: &'a GenerationRequest,
}

/// The keys that a model is asked for in a plan.
const PLAN_KEYS: [&str; 3] = ["action_type", "rationale", "tool_calls"];

/// How many characters of a context value are shown.
const VALUE_CHARS_MAX: usize = 200;

impl ArtifactKind {
    /// The instructions for every model that writes this kind of artifact.
    pub fn instructions(self) -> &'static str {
        match self {
            Self::Program => PROGRAM_INSTRUCTIONS,
            Self::Plan => PLAN_INSTRUCTIONS,
        }
    }
}

pub(crate) fn render_request(says: &PromptParts<'_>) -> ArtifactRequest {
    let mut task = vec![format!("# Task\n\n{}", says.prompt.trim())];
    if !says.arguments.is_empty() {
        task.push(format!("# Arguments\n\nIn `arguments`: {}", json!(says.arguments)));
    }
    ArtifactRequest {
        system: says.artifact.instructions().to_owned(),
        task: task.join("\n\n"),
        resources: resource_sections(says).join("\n\n"),
        updates: update_sections(says).join("\n\n"),
        output: (says.artifact == ArtifactKind::Plan).then(|| plan_schema_for(says.known)),
    }
}

/// The schema of a plan that calls only these tools. It is never looser than the schema that
/// validates plans later, so a model that follows it writes a valid plan.
fn plan_schema_for(known: &Callables) -> Value {
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

/// The schema of the arguments of a workspace tool.
fn input_schema(name: &str) -> Option<Value> {
    let spec = jackline_workspace::tools().iter().find(|spec| spec.name == name);
    spec.map(|spec| spec.input_schema.clone())
}

/// The tools, delegates and context.
fn resource_sections(says: &PromptParts<'_>) -> Vec<String> {
    let mut parts = vec![format!("# Tools\n\n{}", tool_list(says.known))];
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

/// The texts of the guards, and what went wrong before.
fn update_sections(says: &PromptParts<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(texts) = says.texts {
        parts.push(format!("# From the guards\n\n{texts}"));
    }
    if let Some(feedback) = &says.ask.feedback {
        let feedback = serde_json::to_string_pretty(feedback).unwrap_or_default();
        let attempt = says.ask.attempt;
        parts.push(format!(
            "# Why you are asked again\n\nThis is for attempt {attempt}. The changes of the attempt before it \
             are undone.\n\n{feedback}"
        ));
    }
    if !says.ask.corrections.is_empty() {
        let each = says.ask.corrections.iter().map(|it| format!("- {it}"));
        let each = each.collect::<Vec<_>>().join("\n");
        parts.push(format!("# Corrections so far, all of which apply\n\n{each}"));
    }
    parts
}

fn tool_list(known: &Callables) -> String {
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
    use jackline_attempt::{AttemptViolation, GenerationFeedback, Subtype};
    use jackline_decode::{DecodeOutcome, Schema, TextEnding, decode};
    use jackline_sandbox_host::CallableSpec;

    use super::*;

    #[test]
    fn the_schema_of_a_plan_lists_the_tools_and_their_arguments() {
        let named = |name: &str| {
            let (name, description) = (name.to_owned(), String::new());
            CallableSpec { name, description, external: false }
        };
        let known = Callables { tools: vec![named("read_file"), named("own")], delegates: vec![] };
        let schema = Schema::compile(&plan_schema_for(&known)).unwrap();
        let fits = |name: &str, arguments: Value| {
            let calls = json!([{ "name": name, "arguments": arguments }]);
            let plan = json!({ "action_type": "SEARCH", "tool_calls": calls }).to_string();
            let decoded = decode(&plan, Some(&schema), TextEnding::Finished);
            matches!(decoded, DecodeOutcome::Accepted(_))
        };
        assert!(fits("read_file", json!({ "path": "a" })));
        assert!(!fits("read_file", json!({ "path": 5 })));
        assert!(fits("own", json!({ "anything": 5 })));
        assert!(!fits("shell", json!({ "command": "ls" })));
        let program = PromptParts {
            artifact: ArtifactKind::Program,
            prompt: "",
            arguments: &Map::new(),
            context: &Map::new(),
            known: &known,
            texts: None,
            ask: &GenerationRequest { attempt: 1, feedback: None, corrections: Vec::new() },
        };
        assert_eq!(render_request(&program).output, None);
        let plan = PromptParts { artifact: ArtifactKind::Plan, ..program };
        assert_eq!(render_request(&plan).output, Some(plan_schema_for(&known)));
    }

    #[test]
    fn the_prompt_contains_the_feedback_and_every_correction() {
        let named = |name: &str| CallableSpec {
            name: name.to_owned(),
            description: "does it".to_owned(),
            external: false,
        };
        let known = Callables {
            tools: vec![named("read_file"), named("own")],
            delegates: vec![named("scout")],
        };
        let violation = AttemptViolation::new(Subtype::SingletonMethodMutation, "no");
        let corrections = vec!["one".to_owned(), "two".to_owned()];
        let feedback = GenerationFeedback::Guardrail {
            violations: vec![violation],
            remaining_guardrail_budget: 1,
        };
        let ask = GenerationRequest { attempt: 2, feedback: Some(feedback), corrections };
        let request = render_request(&PromptParts {
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
            assert!(request.user_message().contains(part), "{part} in {}", request.user_message());
        }
        // In the order of a request to a model that keeps no conversation.
        let heads: Vec<String> = request
            .user_message()
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
            "# Corrections so far, all of which apply",
        ];
        assert_eq!(heads, expected);
    }
}
