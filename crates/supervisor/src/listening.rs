//! Listens to what a model writes, and leaves where a call can't become a valid one.
//!
//! The decoding layer would refuse such a call at its end. That is known at a byte, and what
//! is written after it is paid for and thrown away. So the stream is cut there, what came is
//! proposed and refused as ever, within the same budget of repairs, and the model is told the
//! byte besides. What the layer would accept, cleaned up or not, is never cut; see
//! `jackline_decode::stream::Cutter`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jackline_decode::stream::{Cutter, Refusal, StreamSchema};
use jackline_engine::Definition;
use jackline_engine::definition::Mode;
use jackline_model::{Delta, Heard, Said, Tool};

/// What the arguments of tools have to look like, made ready once.
#[derive(Debug, Default)]
pub(crate) struct Schemas(BTreeMap<String, StreamSchema>);

impl Schemas {
    /// Those of a definition, for the tools that a model is shown. One that only observes
    /// refuses nothing, so nothing is cut. The schemas that tools have by themselves are not
    /// taken: the tools are more patient than these, with numbers in quotes for instance.
    pub(crate) fn of(definition: &Definition, tools: &[Tool]) -> Self {
        if definition.mode != Mode::Enforce {
            return Self::default();
        }
        let ready = |tool: &Tool| {
            let text = definition.declared(&tool.name)?.schema.as_ref()?;
            let schema = serde_json::from_str(&text.0).ok()?;
            // One that is too large for this is left to the decoding layer.
            Some((tool.name.clone(), StreamSchema::compile(&schema).ok()?))
        };
        Self(tools.iter().filter_map(ready).collect())
    }
}

/// An answer while it comes.
pub(crate) struct Listening<'s> {
    schemas: &'s Schemas,
    heard: Heard,
    /// Listen to the calls, each to its own, where there is a schema.
    cutters: Vec<Option<Cutter<'s>>>,
    /// Whether calls came by turns, so that nobody knows which of them are whole.
    by_turns: bool,
    /// Which call was cut, and why.
    refusal: Option<(usize, Refusal)>,
}

/// An answer that was cut: its last call can't be valid.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) said: Said,
    pub(crate) refusal: Refusal,
}

impl<'s> Listening<'s> {
    pub(crate) fn new(schemas: &'s Schemas) -> Self {
        let (heard, cutters) = (Heard::default(), Vec::new());
        Self { schemas, heard, cutters, by_turns: false, refusal: None }
    }

    /// One piece more; whether to go on.
    pub(crate) fn hear(&mut self, delta: Delta<'_>) -> ControlFlow<()> {
        if self.schemas.0.is_empty() {
            return ControlFlow::Continue(());
        }
        self.heard.hear(delta);
        match delta {
            Delta::Call(tool) => self.cutters.push(self.schemas.0.get(tool).map(Cutter::new)),
            Delta::Arguments(number, more) => {
                self.by_turns |= number + 1 < self.cutters.len();
                let cutter = self.cutters.get_mut(number).and_then(Option::as_mut);
                if let Some(Err(refusal)) = cutter.map(|cutter| cutter.feed(more)) {
                    self.refusal = Some((number, refusal));
                    return ControlFlow::Break(());
                }
            }
            Delta::Again => {
                self.cutters.clear();
                self.by_turns = false;
            }
            Delta::Text(_) | Delta::Waiting => {}
        }
        ControlFlow::Continue(())
    }

    /// What there is, if it was cut. What may be half of a call is left out.
    pub(crate) fn cut(self) -> Option<Cut> {
        let (number, refusal) = self.refusal?;
        let mut said = self.heard.into_said();
        if self.by_turns {
            said.calls = said.calls.into_iter().skip(number).take(1).collect();
        }
        Some(Cut { said, refusal })
    }
}

/// What a model is told of its call that was cut.
pub(crate) fn told(tool: &str, refusal: &Refusal) -> String {
    let Refusal { position, pointer, expected, .. } = refusal;
    let place = if pointer.is_empty() { String::new() } else { format!(", in `{pointer}`") };
    format!(
        "Your answer was cut at byte {position} of the arguments of `{tool}`{place}, because no \
         valid ones go on like that: expected {expected}. Nothing of this call was run."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemas() -> Schemas {
        let schema = json!({ "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": { "path": { "type": "string" }, "content": { "type": "string" } } });
        Schemas(BTreeMap::from([("write".to_owned(), StreamSchema::compile(&schema).unwrap())]))
    }

    /// How many pieces are heard of a call that comes character by character.
    fn heard(listening: &mut Listening<'_>, tool: &str, arguments: &str) -> usize {
        let number = listening.cutters.len();
        assert!(listening.hear(Delta::Call(tool)).is_continue());
        let mut hear = |piece: &&str| listening.hear(Delta::Arguments(number, piece)).is_continue();
        arguments.split_inclusive(|_: char| true).take_while(|piece| hear(piece)).count()
    }

    #[test]
    fn what_comes_after_the_byte_is_not_heard() {
        let schemas = schemas();
        let mut listening = Listening::new(&schemas);
        let valid = r#"{"content": "x", "path": "a"}"#;
        assert_eq!(heard(&mut listening, "write", valid), valid.len());
        let long = format!(r#"{{"path": "b", "text": "{}"}}"#, "x".repeat(10_000));
        assert_eq!(heard(&mut listening, "write", &long), r#"{"path": "b", "text""#.len());
        let Cut { said, refusal } = listening.cut().unwrap();
        assert_eq!(said.calls[0].arguments, valid);
        assert_eq!(said.calls[1].arguments, r#"{"path": "b", "text":"#);
        let text = told("write", &refusal);
        assert!(text.contains("byte 15 of the arguments of `write`"), "{text}");
        assert!(text.contains("expected a key, one of `content`"), "{text}");
    }

    #[test]
    fn what_nobody_has_a_schema_for_or_what_can_be_mended_is_heard_to_its_end() {
        let schemas = schemas();
        let mut listening = Listening::new(&schemas);
        for (tool, arguments) in [
            ("read", r#"{"x": 1}"#),
            ("write", r#"{"path": "a",}"#),
            ("write", "```json\n{'path': 'a'}\n```"),
            ("write", r#""{\"path\": 3}""#),
        ] {
            assert_eq!(heard(&mut listening, tool, arguments), arguments.len(), "{arguments}");
        }
        assert!(listening.cut().is_none());
        // An answer that broke and is asked for again begins anew.
        let mut listening = Listening::new(&schemas);
        assert!(listening.hear(Delta::Call("write")).is_continue());
        assert!(listening.hear(Delta::Arguments(0, "{\"path\": ")).is_continue());
        assert!(listening.hear(Delta::Again).is_continue());
        assert!(listening.hear(Delta::Arguments(0, "3")).is_continue());
    }

    #[test]
    fn calls_that_come_by_turns_are_each_heard_on_their_own() {
        let schemas = schemas();
        let mut listening = Listening::new(&schemas);
        let mut hear = |delta: Delta<'_>| listening.hear(delta).is_continue();
        assert!(hear(Delta::Call("write")) && hear(Delta::Call("write")));
        assert!(hear(Delta::Arguments(0, r#"{"path""#)) && hear(Delta::Arguments(1, r#"{"path""#)));
        assert!(hear(Delta::Arguments(1, r#": "a"}"#)));
        assert!(!hear(Delta::Arguments(0, ": 3")));
        // Whether the other one is whole nobody says, so nothing is made of it.
        let Cut { said, .. } = listening.cut().unwrap();
        let arguments: Vec<&str> = said.calls.iter().map(|it| it.arguments.as_str()).collect();
        assert_eq!(arguments, [r#"{"path": 3"#]);
    }
}
