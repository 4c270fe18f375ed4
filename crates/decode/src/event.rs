//! What a model wrote in an event, decoded before anybody decides on it.

use std::collections::BTreeMap;

use jackline_engine::definition::{Definition, SchemaText};
use jackline_engine::json::{kind_of, parse_strict};
use jackline_engine::{Arguments, DecodedFact, Event, EventKind, Mismatch, Payload, Status};
use serde_json::Value;

use crate::limits::TEXT_BYTES_MAX;
use crate::{Decoded, Ending, Repair, Schema, check, decode, plan_schema};

/// How many schemas are kept compiled; a definition has rarely more.
const KEPT_MAX: usize = 64;

/// Decodes events, and keeps the schemas it needs compiled.
#[derive(Debug, Default)]
pub struct Decoder {
    compiled: BTreeMap<String, Option<Schema>>,
}

impl Decoder {
    /// Decodes what a model wrote. What had to be cleaned up stands in the event
    /// as it was understood afterwards; nothing is said about what was right.
    /// `of` is the tool whose result the event tells, where it tells one.
    pub fn decode(
        &mut self,
        event: &mut Event,
        definition: &Definition,
        of: Option<&str>,
    ) -> Option<DecodedFact> {
        match &mut event.kind {
            EventKind::ToolFinished {
                status: Status::Ok,
                result: Some(Payload::Inline(text)),
                background: false,
                ..
            } => {
                let schema = definition.declared(of?)?.output_schema.as_ref()?;
                self.result(text, schema)
            }
            EventKind::ToolProposed { tool, args, .. } => {
                let schema =
                    definition.declared(tool.as_str()).and_then(|tool| tool.schema.as_ref());
                self.arguments(args, schema)
            }
            EventKind::PlanProposed { plan, plan_text } => {
                let schema = definition.schemas.plan.as_ref();
                let schema = schema.map_or_else(|| plan_schema().to_string(), |own| own.0.clone());
                self.plan(plan, plan_text, &schema)
            }
            EventKind::OutputProposed { name, text: Some(Payload::Inline(text)), truncated } => {
                let named =
                    |name: &String| definition.schemas.outputs.iter().find(|o| o.name == *name);
                let output = name.as_ref().and_then(named)?;
                let schema = self.schema(&output.schema.0)?;
                let ending = if *truncated { Ending::CutOff } else { Ending::Finished };
                let (value, fact) = take(decode(text, Some(schema), ending));
                fact.map(|fact| DecodedFact { value, ..fact })
            }
            _ => None,
        }
    }

    fn arguments(
        &mut self,
        args: &mut Arguments,
        schema: Option<&SchemaText>,
    ) -> Option<DecodedFact> {
        let schema = schema.and_then(|schema| self.schema(&schema.0));
        match args {
            Arguments::Parsed(value) => schema.and_then(|schema| wrong(schema, value)),
            Arguments::Text(Payload::Elided { .. }) => None,
            Arguments::Text(Payload::Inline(text)) => {
                let (value, fact) = take(decode(text, schema, Ending::Finished));
                match value {
                    Some(value) if value.is_object() => {
                        // What is JSON as it stands stays as it was written.
                        if fact.is_some() {
                            *args = Arguments::Parsed(value);
                        }
                        fact
                    }
                    Some(value) => Some(DecodedFact {
                        errors: vec![mismatch("a JSON object", kind_of(&value))],
                        ..DecodedFact::default()
                    }),
                    None => fact,
                }
            }
        }
    }

    /// What a tool gave back is nobody's to write again: it is looked at as it is, and
    /// what is no JSON promises nothing.
    fn result(&mut self, text: &str, schema: &SchemaText) -> Option<DecodedFact> {
        let text = Some(text.trim()).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        let value = parse_strict(text.as_bytes()).ok()?;
        let fact = wrong(self.schema(&schema.0)?, &value)?;
        (!fact.errors.is_empty()).then_some(DecodedFact {
            example: None,
            placeholders: false,
            ..fact
        })
    }

    fn plan(
        &mut self,
        plan: &mut Option<Value>,
        text: &mut Option<Payload>,
        schema: &str,
    ) -> Option<DecodedFact> {
        let schema = self.schema(schema);
        match (&*plan, &*text) {
            (Some(plan), _) => schema.and_then(|schema| wrong(schema, plan)),
            (None, Some(Payload::Inline(written))) => {
                let (value, fact) = take(decode(written, schema, Ending::Finished));
                if value.is_some() {
                    (*plan, *text) = (value, None);
                }
                fact
            }
            _ => None,
        }
    }

    /// A schema, compiled once. Definitions hold none that can't be.
    fn schema(&mut self, text: &str) -> Option<&Schema> {
        if !self.compiled.contains_key(text) {
            if self.compiled.len() >= KEPT_MAX {
                self.compiled.clear();
            }
            let schema = serde_json::from_str(text).ok();
            let schema = schema.and_then(|schema: Value| Schema::compile(&schema).ok());
            self.compiled.insert(text.to_owned(), schema);
        }
        self.compiled.get(text).and_then(Option::as_ref)
    }
}

/// What is wrong with a value that is JSON already.
fn wrong(schema: &Schema, value: &Value) -> Option<DecodedFact> {
    let (_, fact) = take(check(value.clone(), schema));
    fact.filter(|fact| !fact.errors.is_empty() || fact.placeholders)
}

/// The value, and what there is to say about how it was come by.
fn take(decoded: Decoded) -> (Option<Value>, Option<DecodedFact>) {
    match decoded {
        Decoded::Accepted(accepted) => {
            let cleaned = accepted.repairs.iter().filter_map(|repair| word(*repair)).collect();
            let fact = DecodedFact {
                cleaned,
                placeholders: accepted.placeholders,
                ..DecodedFact::default()
            };
            let says = fact != DecodedFact::default();
            (Some(accepted.value), says.then_some(fact))
        }
        Decoded::Invalid(invalid) => {
            let errors = invalid.errors.into_iter().map(|error| Mismatch {
                path: error.path,
                expected: error.expected,
                got: error.got,
            });
            let fact = DecodedFact {
                errors: errors.collect(),
                example: invalid.example,
                ..DecodedFact::default()
            };
            (None, Some(fact))
        }
        Decoded::CutOff(cut) => {
            let got = format!("the end of the text, after {} bytes", cut.bytes);
            let error = Mismatch { path: cut.path, expected: "the rest of it".to_owned(), got };
            let errors = vec![error];
            (None, Some(DecodedFact { cut: true, errors, ..DecodedFact::default() }))
        }
    }
}

/// A repair in a word.
fn word(repair: Repair) -> Option<String> {
    serde_json::to_value(repair).ok()?.as_str().map(ToOwned::to_owned)
}

fn mismatch(expected: &str, got: &str) -> Mismatch {
    Mismatch { path: String::new(), expected: expected.to_owned(), got: got.to_owned() }
}
