//! Watches the arguments of calls while a model writes them, and cuts the answer where a call can
//! no longer become valid.
//!
//! The decoding layer would refuse such a call at its end. The provider would charge for everything
//! that the model writes until then. So the stream is cut at the first wrong byte. The incomplete
//! call is proposed and refused as usual, within the same repair budget, and the model gets the
//! position of the byte. Calls that the layer would accept, repaired or not, are never cut; see
//! `jackline_decode::stream::StreamCutter`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jackline_decode::stream::{Refusal, StreamCutter, StreamSchema};
use jackline_engine::Definition;
use jackline_engine::definition::Mode;
use jackline_model::{AnswerDelta, AssistantMessage, PartialAnswer, ToolDeclaration};

/// The compiled schemas for the arguments of tools, by tool name.
#[derive(Debug, Default)]
pub(crate) struct ToolSchemas(BTreeMap<String, StreamSchema>);

impl ToolSchemas {
    /// The schemas of a definition, for the tools of the model. Without enforcement nothing is
    /// refused, so nothing is cut. The built-in schemas of the tools are not used, because the
    /// tools accept more than their schemas allow, for example numbers in quotes.
    pub(crate) fn for_tools(definition: &Definition, tools: &[ToolDeclaration]) -> Self {
        if definition.mode != Mode::Enforce {
            return Self::default();
        }
        let ready = |tool: &ToolDeclaration| {
            let text = definition.declared_tool(&tool.name)?.schema.as_ref()?;
            let schema = serde_json::from_str(&text.0).ok()?;
            // The decoding layer checks a schema that is too large for this.
            Some((tool.name.clone(), StreamSchema::compile(&schema).ok()?))
        };
        Self(tools.iter().filter_map(ready).collect())
    }
}

/// An answer of a model while it arrives.
pub(crate) struct ReplyListener<'s> {
    schemas: &'s ToolSchemas,
    reply: PartialAnswer,
    /// One cutter for each call that has a schema.
    cutters: Vec<Option<StreamCutter<'s>>>,
    /// Whether the arguments of several calls were mixed, so that any of them may be incomplete.
    is_interleaved: bool,
    /// The number of the call that was cut, and why.
    refusal: Option<(usize, Refusal)>,
}

/// An answer that was cut: its last call can't be valid.
#[derive(Debug)]
pub(crate) struct CutReply {
    pub(crate) reply: AssistantMessage,
    pub(crate) refusal: Refusal,
}

impl<'s> ReplyListener<'s> {
    pub(crate) fn new(schemas: &'s ToolSchemas) -> Self {
        let (heard, cutters) = (PartialAnswer::default(), Vec::new());
        Self { schemas, reply: heard, cutters, is_interleaved: false, refusal: None }
    }

    /// Takes the next piece of the answer. Returns whether to continue.
    pub(crate) fn feed(&mut self, delta: AnswerDelta<'_>) -> ControlFlow<()> {
        if self.schemas.0.is_empty() {
            return ControlFlow::Continue(());
        }
        self.reply.add(delta);
        match delta {
            AnswerDelta::Call(tool) => {
                self.cutters.push(self.schemas.0.get(tool).map(StreamCutter::new));
            }
            AnswerDelta::Arguments(number, more) => {
                self.is_interleaved |= number + 1 < self.cutters.len();
                let cutter = self.cutters.get_mut(number).and_then(Option::as_mut);
                if let Some(Err(refusal)) = cutter.map(|cutter| cutter.feed(more)) {
                    self.refusal = Some((number, refusal));
                    return ControlFlow::Break(());
                }
            }
            AnswerDelta::Again => {
                self.cutters.clear();
                self.is_interleaved = false;
            }
            AnswerDelta::Text(_) | AnswerDelta::Waiting => {}
        }
        ControlFlow::Continue(())
    }

    /// The answer, if it was cut. Calls that may be incomplete are left out.
    pub(crate) fn into_cut(self) -> Option<CutReply> {
        let (number, refusal) = self.refusal?;
        let mut said = self.reply.into_message();
        if self.is_interleaved {
            said.calls = said.calls.into_iter().skip(number).take(1).collect();
        }
        Some(CutReply { reply: said, refusal })
    }
}

/// The text for a model whose call was cut.
pub(crate) fn cut_text(tool: &str, refusal: &Refusal) -> String {
    let Refusal { position, pointer, expected, .. } = refusal;
    let place = if pointer.is_empty() { String::new() } else { format!(", in `{pointer}`") };
    format!(
        "Your answer was cut at byte {position} of the arguments of `{tool}`{place}, because the arguments \
         can't become valid from there: expected {expected}. This call did not run."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> ToolSchemas {
        let schema = json!({ "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": { "path": { "type": "string" }, "content": { "type": "string" } } });
        ToolSchemas(BTreeMap::from([("write".to_owned(), StreamSchema::compile(&schema).unwrap())]))
    }

    /// How many pieces are read of a call that arrives character by character.
    fn pieces_read(listening: &mut ReplyListener<'_>, tool: &str, arguments: &str) -> usize {
        let number = listening.cutters.len();
        assert!(listening.feed(AnswerDelta::Call(tool)).is_continue());
        let mut hear =
            |piece: &&str| listening.feed(AnswerDelta::Arguments(number, piece)).is_continue();
        arguments.split_inclusive(|_: char| true).take_while(|piece| hear(piece)).count()
    }

    #[test]
    fn nothing_is_read_after_the_wrong_byte() {
        let schemas = schemas();
        let mut listening = ReplyListener::new(&schemas);
        let valid = r#"{"content": "x", "path": "a"}"#;
        assert_eq!(pieces_read(&mut listening, "write", valid), valid.len());
        let long = format!(r#"{{"path": "b", "text": "{}"}}"#, "x".repeat(10_000));
        assert_eq!(pieces_read(&mut listening, "write", &long), r#"{"path": "b", "text""#.len());
        let CutReply { reply: said, refusal } = listening.into_cut().unwrap();
        assert_eq!(said.calls[0].arguments, valid);
        assert_eq!(said.calls[1].arguments, r#"{"path": "b", "text":"#);
        let text = cut_text("write", &refusal);
        assert!(text.contains("byte 15 of the arguments of `write`"), "{text}");
        assert!(text.contains("expected a key, one of `content`"), "{text}");
    }

    #[test]
    fn calls_without_a_schema_and_repairable_calls_are_read_to_their_end() {
        let schemas = schemas();
        let mut listening = ReplyListener::new(&schemas);
        for (tool, arguments) in [
            ("read", r#"{"x": 1}"#),
            ("write", r#"{"path": "a",}"#),
            ("write", "```json\n{'path': 'a'}\n```"),
            ("write", r#""{\"path\": 3}""#),
        ] {
            assert_eq!(
                pieces_read(&mut listening, tool, arguments),
                arguments.len(),
                "{arguments}"
            );
        }
        assert!(listening.into_cut().is_none());
        // An answer that broke off and is requested again starts from the beginning.
        let mut listening = ReplyListener::new(&schemas);
        assert!(listening.feed(AnswerDelta::Call("write")).is_continue());
        assert!(listening.feed(AnswerDelta::Arguments(0, "{\"path\": ")).is_continue());
        assert!(listening.feed(AnswerDelta::Again).is_continue());
        assert!(listening.feed(AnswerDelta::Arguments(0, "3")).is_continue());
    }

    #[test]
    fn mixed_calls_are_each_checked_on_their_own() {
        let schemas = schemas();
        let mut listening = ReplyListener::new(&schemas);
        let mut hear = |delta: AnswerDelta<'_>| listening.feed(delta).is_continue();
        assert!(hear(AnswerDelta::Call("write")) && hear(AnswerDelta::Call("write")));
        assert!(
            hear(AnswerDelta::Arguments(0, r#"{"path""#))
                && hear(AnswerDelta::Arguments(1, r#"{"path""#))
        );
        assert!(hear(AnswerDelta::Arguments(1, r#": "a"}"#)));
        assert!(!hear(AnswerDelta::Arguments(0, ": 3")));
        // The other call may be incomplete, so it is left out.
        let CutReply { reply: said, .. } = listening.into_cut().unwrap();
        let arguments: Vec<&str> = said.calls.iter().map(|it| it.arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"path": 3"#]);
    }
}
