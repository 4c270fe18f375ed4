//! What a model wrote in an event, decoded before anybody decides on it.

use std::collections::BTreeMap;

use jackline_engine::definition::{Definition, SchemaText};
use jackline_engine::event::{OutputProposed, PlanProposed};
use jackline_engine::facts::DecodedFact;
use jackline_engine::json::{kind_of, parse_strict};
use jackline_engine::verdict::Mismatch;
use jackline_engine::{Arguments, Event, EventKind, Payload, Status, ToolFinished, ToolProposed};
use serde_json::Value;

use crate::limits::TEXT_BYTES_MAX;
use crate::{Decoded, Ending, Repair, Schema, check, check_as_is, decode, plan_schema};

/// How many schemas are kept compiled; a definition has rarely more.
const KEPT_MAX: usize = 64;

/// Decodes events, and keeps the schemas it needs compiled.
#[derive(Debug, Default)]
pub struct Decoder {
    compiled: BTreeMap<String, Option<Schema>>,
    keeps_arguments: bool,
    /// What the tools of the adapter take, by name.
    own: BTreeMap<String, SchemaText>,
}

impl Decoder {
    /// For whoever runs a call with its arguments as they were written: those that would
    /// have to be mended are wrong.
    #[must_use]
    pub fn keeping_arguments(mut self) -> Self {
        self.keeps_arguments = true;
        self
    }

    /// Knows what tools take that the definition says nothing about.
    #[must_use]
    pub fn with_tools(mut self, own: BTreeMap<String, SchemaText>) -> Self {
        self.own = own;
        self
    }

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
            EventKind::ToolFinished(ToolFinished {
                status: Status::Ok,
                result: Some(Payload::Inline(text)),
                background: false,
                ..
            }) => {
                let schema = definition.declared(of?)?.output_schema.as_ref()?;
                self.result(text, schema)
            }
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                let declared = definition.declared(tool.as_str());
                let schema = declared.and_then(|tool| tool.schema.as_ref());
                let schema = schema.or_else(|| self.own.get(tool.as_str())).cloned();
                self.arguments(args, schema.as_ref())
            }
            EventKind::PlanProposed(PlanProposed { plan, plan_text }) => {
                let schema = definition.schemas.plan.as_ref();
                let schema = schema.map_or_else(|| plan_schema().to_string(), |own| own.0.clone());
                self.plan(plan, plan_text, &schema)
            }
            EventKind::OutputProposed(OutputProposed {
                name,
                text: Some(Payload::Inline(text)),
                truncated,
            }) => {
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
        let keeps = self.keeps_arguments;
        let schema = schema.and_then(|schema| self.schema(&schema.0));
        match args {
            Arguments::Parsed(value) if keeps => schema.and_then(|schema| as_is(schema, value)),
            Arguments::Parsed(value) => schema.and_then(|schema| mended(schema, value)),
            Arguments::Text(Payload::Elided { .. }) => None,
            Arguments::Text(Payload::Inline(text)) => {
                let (value, fact) = take(decode(text, schema, Ending::Finished));
                match value {
                    Some(value) if value.is_object() => {
                        if keeps && let Some(fact) = fact.as_ref().and_then(unmended) {
                            return Some(fact);
                        }
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
        let fact = as_is(self.schema(&schema.0)?, &value)?;
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
        match (&mut *plan, &*text) {
            (Some(plan), _) => schema.and_then(|schema| mended(schema, plan)),
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

/// What there is to say about a value that is JSON already. A document that came as a
/// text takes the place of that text.
fn mended(schema: &Schema, value: &mut Value) -> Option<DecodedFact> {
    let (understood, fact) = take(check(value.clone(), schema));
    if let (Some(understood), Some(fact)) = (understood, &fact)
        && !fact.cleaned.is_empty()
    {
        *value = understood;
    }
    fact
}

/// The same where nothing can take its place.
fn as_is(schema: &Schema, value: &Value) -> Option<DecodedFact> {
    take(check_as_is(value.clone(), schema)).1
}

/// What is wrong with a text that can't stay as it is, and has to.
fn unmended(fact: &DecodedFact) -> Option<DecodedFact> {
    let slips = Some(fact.cleaned.join(", ")).filter(|slips| !slips.is_empty())?;
    let errors = vec![mismatch("a JSON object as it stands", &format!("a text to mend ({slips})"))];
    Some(DecodedFact { errors, ..DecodedFact::default() })
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
