//! The forms in which a local model writes its answers, and the parsing of its calls.

use serde_json::{Value, json};

use crate::conversation::{ModelRequest, ToolDeclaration};
use crate::provider_schema::closed_schema;

/// The form of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnswerForm {
    /// A JSON document of this schema.
    Document(Value),
    /// A grammar for a call or a text.
    Grammar(String),
}

/// How strictly a schema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaStrictness {
    /// No object may have keys that its schema does not name: a small model might never stop adding
    /// keys.
    Closed,
    /// The schema unchanged.
    Unchanged,
    /// Keywords that the decoder does not support are ignored.
    Lenient,
}

/// The forms to try, in this order: the schema decides which of them the decoder supports. Empty if
/// the answer is free text.
///
/// With an output schema, no tool can be called, because two forms with the same start would be
/// ambiguous. The output is never looser than its schema. Arguments may be looser, because one tool
/// with an unusual schema must not disable all other tools, and the code that runs the call
/// validates them anyway.
pub(super) fn answer_forms(request: &ModelRequest) -> Vec<AnswerForm> {
    if let Some(output) = &request.output {
        let document = |manner| AnswerForm::Document(with_guidance(&output.schema, manner));
        return vec![document(SchemaStrictness::Closed), document(SchemaStrictness::Unchanged)];
    }
    if request.tools.is_empty() {
        return Vec::new();
    }
    let grammar = |manner| AnswerForm::Grammar(calls_or_text(&request.tools, manner));
    vec![
        grammar(SchemaStrictness::Closed),
        grammar(SchemaStrictness::Unchanged),
        grammar(SchemaStrictness::Lenient),
    ]
}

/// A schema with instructions for the decoder. White space is fixed, because some models would
/// write nothing else.
fn with_guidance(schema: &Value, manner: SchemaStrictness) -> Value {
    let mut schema = match (manner, schema) {
        (SchemaStrictness::Closed, schema) => closed_schema(schema),
        (_, schema) => schema.clone(),
    };
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    if let Value::Object(fields) = &mut schema {
        let lenient = manner == SchemaStrictness::Lenient;
        let guidance = json!({
            "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": ",
            "lenient": lenient, "coerce_one_of": lenient,
        });
        fields.insert("x-guidance".to_owned(), guidance);
    }
    schema
}

/// A grammar for one call of a tool, or a text that does not start with a brace.
fn calls_or_text(tools: &[ToolDeclaration], manner: SchemaStrictness) -> String {
    let names: Vec<String> = (0..tools.len()).map(|n| format!("call_{n}")).collect();
    let mut lines =
        vec![format!("start: TEXT | {}", names.join(" | ")), r"TEXT: /[^{\s](?s:.*)/".to_owned()];
    for (name, tool) in names.iter().zip(tools) {
        let (opens, closes) = (json!(call_opening(&tool.name)), json!(CALL_CLOSING));
        let arguments = with_guidance(&tool.schema, manner);
        lines.push(format!("{name}: {opens} {name}_arguments {closes}"));
        lines.push(format!("{name}_arguments: %json {arguments}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The exact start and end of a call.
fn call_opening(tool: &str) -> String {
    format!("{{\"name\": {}, \"arguments\": ", json!(tool))
}

const CALL_CLOSING: &str = "}";

/// A call in the form that a local model writes.
pub(super) fn render_call(tool: &str, arguments: &str) -> String {
    format!("{}{arguments}{CALL_CLOSING}", call_opening(tool))
}

/// The tool and the arguments of a call, even if the call is incomplete.
pub(super) fn read_call<'a, 't>(
    text: &'a str,
    tools: &'t [ToolDeclaration],
) -> Option<(&'t str, &'a str)> {
    tools.iter().find_map(|tool| {
        let rest = text.strip_prefix(&call_opening(&tool.name))?;
        // If the call was cut off, a brace at its end may belong to the arguments.
        let whole = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let arguments = if whole { rest.strip_suffix(CALL_CLOSING).unwrap_or(rest) } else { rest };
        Some((tool.name.as_str(), arguments))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::OutputSchema;

    fn tool(name: &str) -> ToolDeclaration {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        ToolDeclaration { name: name.to_owned(), description: String::new(), schema }
    }

    #[test]
    fn an_answer_without_tools_and_schema_is_free() {
        assert_eq!(answer_forms(&ModelRequest::default()), []);
    }

    #[test]
    fn an_output_is_never_looser_than_its_schema() {
        let schema = json!({ "type": "object" });
        let output = Some(OutputSchema { name: "out".to_owned(), schema });
        let request = ModelRequest { output, tools: vec![tool("a")], ..ModelRequest::default() };
        let forms_found = answer_forms(&request);
        let lenient = |form: &AnswerForm| match form {
            AnswerForm::Document(schema) => {
                schema.pointer("/x-guidance/lenient") != Some(&json!(false))
            }
            AnswerForm::Grammar(_) => true,
        };
        assert!(forms_found.len() == 2 && !forms_found.iter().any(lenient), "{forms_found:?}");
        let Some(AnswerForm::Document(first)) = forms_found.first() else {
            panic!("{forms_found:?}")
        };
        assert_eq!(first.get("additionalProperties"), Some(&json!(false)));
    }

    #[test]
    fn each_tool_has_its_own_arguments() {
        let request = ModelRequest { tools: vec![tool("a"), tool("b")], ..ModelRequest::default() };
        let forms_found = answer_forms(&request);
        let Some(AnswerForm::Grammar(grammar)) = forms_found.first() else {
            panic!("{forms_found:?}")
        };
        assert!(grammar.starts_with("start: TEXT | call_0 | call_1\n"), "{grammar}");
        let second = r#"call_1: "{\"name\": \"b\", \"arguments\": " call_1_arguments "}""#;
        assert!(grammar.contains(second), "{grammar}");
    }

    #[test]
    fn an_incomplete_call_is_parsed_as_far_as_possible() {
        let tools = [tool("a"), tool("ab")];
        let call = render_call("ab", r#"{"path": "x}"}"#);
        assert_eq!(read_call(&call, &tools), Some(("ab", r#"{"path": "x}"}"#)));
        let half = call.strip_suffix('}').unwrap();
        assert_eq!(read_call(half, &tools), Some(("ab", r#"{"path": "x}"}"#)));
        let less = half.strip_suffix("\"}").unwrap();
        assert_eq!(read_call(less, &tools), Some(("ab", r#"{"path": "x}"#)));
        assert_eq!(read_call("{\"name\": ", &tools), None);
        assert_eq!(read_call("Done.", &tools), None);
    }
}
