//! Within which form a model of this machine writes, and how a call is read from it.

use serde_json::{Value, json};

use crate::ask::{Request, Tool};
use crate::schema::closed;

/// Within which form an answer is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// A document of this schema.
    Document(Value),
    /// A grammar: a call, or a text.
    Grammar(String),
}

/// How exactly a schema is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// No object has keys that its schema does not name: a small model never ends where it
    /// may go on with any key.
    Closed,
    /// As it is.
    Plain,
    /// What the decoder has no words for is left out.
    Lenient,
}

/// The forms to try, in this order: which of them a decoder can follow hangs on the schema.
/// None where the answer is free.
///
/// Where an answer has a schema nothing can be called: two forms that begin alike would leave
/// open which one is meant. An output is never looser than its schema; arguments may be,
/// because one tool with an unusual schema must not take all others with it, and whoever
/// makes the call validates them anyway.
pub(super) fn forms(request: &Request) -> Vec<Form> {
    if let Some(output) = &request.output {
        let document = |manner| Form::Document(guided(&output.schema, manner));
        return vec![document(Manner::Closed), document(Manner::Plain)];
    }
    if request.tools.is_empty() {
        return Vec::new();
    }
    let grammar = |manner| Form::Grammar(calls_or_text(&request.tools, manner));
    vec![grammar(Manner::Closed), grammar(Manner::Plain), grammar(Manner::Lenient)]
}

/// A schema with what tells the decoder how to write. White space is fixed: where it is free,
/// some models write nothing else.
fn guided(schema: &Value, manner: Manner) -> Value {
    let mut schema = match (manner, schema) {
        (Manner::Closed, schema) => closed(schema),
        (_, schema) => schema.clone(),
    };
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    if let Value::Object(fields) = &mut schema {
        let lenient = manner == Manner::Lenient;
        let guidance = json!({
            "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": ",
            "lenient": lenient, "coerce_one_of": lenient,
        });
        fields.insert("x-guidance".to_owned(), guidance);
    }
    schema
}

/// One call of one of the tools, or a text, which begins with something else than a brace.
fn calls_or_text(tools: &[Tool], manner: Manner) -> String {
    let names: Vec<String> = (0..tools.len()).map(|n| format!("call_{n}")).collect();
    let mut lines =
        vec![format!("start: TEXT | {}", names.join(" | ")), r"TEXT: /[^{\s](?s:.*)/".to_owned()];
    for (name, tool) in names.iter().zip(tools) {
        let (opens, closes) = (json!(opening(&tool.name)), json!(CLOSING));
        let arguments = guided(&tool.schema, manner);
        lines.push(format!("{name}: {opens} {name}_arguments {closes}"));
        lines.push(format!("{name}_arguments: %json {arguments}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What a call of a tool begins with, to the letter, and what it ends with.
fn opening(tool: &str) -> String {
    format!("{{\"name\": {}, \"arguments\": ", json!(tool))
}

const CLOSING: &str = "}";

/// A call as a model of this machine writes it.
pub(super) fn written(tool: &str, arguments: &str) -> String {
    format!("{}{arguments}{CLOSING}", opening(tool))
}

/// The tool and the arguments of a call that was written, as far as it came.
pub(super) fn read_call<'a, 't>(text: &'a str, tools: &'t [Tool]) -> Option<(&'t str, &'a str)> {
    tools.iter().find_map(|tool| {
        let rest = text.strip_prefix(&opening(&tool.name))?;
        // The end may be the arguments' own where the call was cut off.
        let whole = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let arguments = if whole { rest.strip_suffix(CLOSING).unwrap_or(rest) } else { rest };
        Some((tool.name.as_str(), arguments))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::OutputSchema;

    fn tool(name: &str) -> Tool {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        Tool { name: name.to_owned(), description: String::new(), schema }
    }

    #[test]
    fn an_answer_without_tools_and_schema_is_free() {
        assert_eq!(forms(&Request::default()), []);
    }

    #[test]
    fn an_output_is_never_looser_than_its_schema() {
        let schema = json!({ "type": "object" });
        let output = Some(OutputSchema { name: "out".to_owned(), schema });
        let request = Request { output, tools: vec![tool("a")], ..Request::default() };
        let found = forms(&request);
        let lenient = |form: &Form| match form {
            Form::Document(schema) => schema.pointer("/x-guidance/lenient") != Some(&json!(false)),
            Form::Grammar(_) => true,
        };
        assert!(found.len() == 2 && !found.iter().any(lenient), "{found:?}");
        let Some(Form::Document(first)) = found.first() else { panic!("{found:?}") };
        assert_eq!(first.get("additionalProperties"), Some(&json!(false)));
    }

    #[test]
    fn each_tool_has_its_own_arguments() {
        let request = Request { tools: vec![tool("a"), tool("b")], ..Request::default() };
        let found = forms(&request);
        let Some(Form::Grammar(grammar)) = found.first() else { panic!("{found:?}") };
        assert!(grammar.starts_with("start: TEXT | call_0 | call_1\n"), "{grammar}");
        let second = r#"call_1: "{\"name\": \"b\", \"arguments\": " call_1_arguments "}""#;
        assert!(grammar.contains(second), "{grammar}");
    }

    #[test]
    fn what_is_written_is_read_as_far_as_it_came() {
        let tools = [tool("a"), tool("ab")];
        let call = written("ab", r#"{"path": "x}"}"#);
        assert_eq!(read_call(&call, &tools), Some(("ab", r#"{"path": "x}"}"#)));
        let half = call.strip_suffix('}').unwrap();
        assert_eq!(read_call(half, &tools), Some(("ab", r#"{"path": "x}"}"#)));
        let less = half.strip_suffix("\"}").unwrap();
        assert_eq!(read_call(less, &tools), Some(("ab", r#"{"path": "x}"#)));
        assert_eq!(read_call("{\"name\": ", &tools), None);
        assert_eq!(read_call("Done.", &tools), None);
    }
}
