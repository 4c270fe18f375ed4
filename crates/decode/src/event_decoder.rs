//! Decodes the text of a model in an event, before the engine decides on the event.

use std::collections::BTreeMap;

use jackline_engine::definition::{Definition, SchemaText};
use jackline_engine::event::{OutputProposed, PlanProposed};
use jackline_engine::facts::DecodedFact;
use jackline_engine::json::{describe_type, parse_strict};
use jackline_engine::verdict::SchemaMismatch;
use jackline_engine::{
    Arguments, CallStatus, Event, EventKind, Payload, ToolFinished, ToolProposed,
};
use serde_json::Value;

use crate::limits::TEXT_BYTES_MAX;
use crate::{
    DecodeOutcome, Schema, TextEnding, TextRepair, check_value, check_value_unchanged, decode,
    plan_schema,
};

/// How many compiled schemas are cached. A definition rarely has more.
const COMPILED_SCHEMAS_MAX: usize = 64;

/// Decodes events and caches the compiled schemas.
#[derive(Debug, Default)]
pub struct EventDecoder {
    compiled_schemas: BTreeMap<String, Option<Schema>>,
    requires_exact_arguments: bool,
    /// The argument schemas of the adapter's own tools, by tool name.
    tool_schemas: BTreeMap<String, SchemaText>,
}

impl EventDecoder {
    /// Makes arguments that need a repair an error. For adapters that run a call with its
    /// arguments exactly as the model wrote them.
    #[must_use]
    pub fn requiring_exact_arguments(mut self) -> Self {
        self.requires_exact_arguments = true;
        self
    }

    /// Adds argument schemas for tools that the definition does not describe.
    #[must_use]
    pub fn with_tool_schemas(mut self, schemas: BTreeMap<String, SchemaText>) -> Self {
        self.tool_schemas = schemas;
        self
    }

    /// Decodes the model's text in an event. If the text needed a repair, the event
    /// contains the decoded value afterwards. Returns `None` if there is nothing to report.
    /// `result_tool` is the tool whose result the event reports, if it reports one.
    pub fn decode(
        &mut self,
        event: &mut Event,
        definition: &Definition,
        result_tool: Option<&str>,
    ) -> Option<DecodedFact> {
        match &mut event.kind {
            EventKind::ToolFinished(ToolFinished {
                status: CallStatus::Ok,
                result: Some(Payload::Inline(text)),
                background: false,
                ..
            }) => {
                let schema = definition.declared_tool(result_tool?)?.output_schema.as_ref()?;
                self.check_result(text, schema)
            }
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                let declared = definition.declared_tool(tool.as_str());
                let schema = declared.and_then(|tool| tool.schema.as_ref());
                let schema = schema.or_else(|| self.tool_schemas.get(tool.as_str())).cloned();
                self.decode_arguments(args, schema.as_ref())
            }
            EventKind::PlanProposed(PlanProposed { plan, plan_text }) => {
                let schema = definition.schemas.plan.as_ref();
                let schema = schema.map_or_else(|| plan_schema().to_string(), |own| own.0.clone());
                self.decode_plan(plan, plan_text, &schema)
            }
            EventKind::OutputProposed(OutputProposed {
                name,
                text: Some(Payload::Inline(text)),
                truncated,
            }) => {
                let output = definition.schemas.output(name.as_deref())?;
                let schema = self.compiled_schema(&output.schema.0)?;
                let ending = if *truncated { TextEnding::CutOff } else { TextEnding::Finished };
                let (value, fact) = split_outcome(decode(text, Some(schema), ending));
                fact.map(|fact| DecodedFact { value, ..fact })
            }
            _ => None,
        }
    }

    fn decode_arguments(
        &mut self,
        args: &mut Arguments,
        schema: Option<&SchemaText>,
    ) -> Option<DecodedFact> {
        let keeps = self.requires_exact_arguments;
        let schema = schema.and_then(|schema| self.compiled_schema(&schema.0));
        match args {
            Arguments::Parsed(value) if keeps => {
                schema.and_then(|schema| check_unchanged(schema, value))
            }
            Arguments::Parsed(value) => schema.and_then(|schema| check_and_repair(schema, value)),
            Arguments::Text(Payload::Elided { .. }) => None,
            Arguments::Text(Payload::Inline(text)) => {
                let (value, fact) = split_outcome(decode(text, schema, TextEnding::Finished));
                match value {
                    Some(value) if value.is_object() => {
                        if keeps && let Some(fact) = fact.as_ref().and_then(repair_error) {
                            return Some(fact);
                        }
                        // Valid JSON stays as the model wrote it.
                        if fact.is_some() {
                            *args = Arguments::Parsed(value);
                        }
                        fact
                    }
                    Some(value) => Some(DecodedFact {
                        errors: vec![root_mismatch("a JSON object", describe_type(&value))],
                        ..DecodedFact::default()
                    }),
                    None => fact,
                }
            }
        }
    }

    /// Checks the result of a tool without repairs, because no model can write it again.
    /// A result that is not JSON is not checked.
    fn check_result(&mut self, text: &str, schema: &SchemaText) -> Option<DecodedFact> {
        let text = Some(text.trim()).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        let value = parse_strict(text.as_bytes()).ok()?;
        let fact = check_unchanged(self.compiled_schema(&schema.0)?, &value)?;
        (!fact.errors.is_empty()).then_some(DecodedFact {
            example: None,
            placeholders: false,
            ..fact
        })
    }

    fn decode_plan(
        &mut self,
        plan: &mut Option<Value>,
        text: &mut Option<Payload>,
        schema: &str,
    ) -> Option<DecodedFact> {
        let schema = self.compiled_schema(schema);
        match (&mut *plan, &*text) {
            (Some(plan), _) => schema.and_then(|schema| check_and_repair(schema, plan)),
            (None, Some(Payload::Inline(written))) => {
                let (value, fact) = split_outcome(decode(written, schema, TextEnding::Finished));
                if value.is_some() {
                    (*plan, *text) = (value, None);
                }
                fact
            }
            _ => None,
        }
    }

    /// The compiled form of a schema. The definition loader has already refused schemas
    /// that do not compile.
    fn compiled_schema(&mut self, text: &str) -> Option<&Schema> {
        if !self.compiled_schemas.contains_key(text) {
            if self.compiled_schemas.len() >= COMPILED_SCHEMAS_MAX {
                self.compiled_schemas.clear();
            }
            let schema = serde_json::from_str(text).ok();
            let schema = schema.and_then(|schema: Value| Schema::compile(&schema).ok());
            self.compiled_schemas.insert(text.to_owned(), schema);
        }
        self.compiled_schemas.get(text).and_then(Option::as_ref)
    }
}

/// Checks a value that is already JSON. If the document is inside a string, it replaces
/// the string.
fn check_and_repair(schema: &Schema, value: &mut Value) -> Option<DecodedFact> {
    let (decoded, fact) = split_outcome(check_value(value.clone(), schema));
    if let (Some(decoded), Some(fact)) = (decoded, &fact)
        && !fact.cleaned.is_empty()
    {
        *value = decoded;
    }
    fact
}

/// Checks a value and never replaces it.
fn check_unchanged(schema: &Schema, value: &Value) -> Option<DecodedFact> {
    split_outcome(check_value_unchanged(value.clone(), schema)).1
}

/// The error for a text that needs a repair where no repair is allowed.
fn repair_error(fact: &DecodedFact) -> Option<DecodedFact> {
    let repairs = Some(fact.cleaned.join(", ")).filter(|repairs| !repairs.is_empty())?;
    let errors =
        vec![root_mismatch("a valid JSON object", &format!("text that needs repair ({repairs})"))];
    Some(DecodedFact { errors, ..DecodedFact::default() })
}

/// Splits an outcome into the value and the fact to report about it.
fn split_outcome(decoded: DecodeOutcome) -> (Option<Value>, Option<DecodedFact>) {
    match decoded {
        DecodeOutcome::Accepted(accepted) => {
            let cleaned =
                accepted.repairs.iter().filter_map(|repair| repair_word(*repair)).collect();
            let fact = DecodedFact {
                cleaned,
                placeholders: accepted.is_placeholder,
                ..DecodedFact::default()
            };
            let is_notable = fact != DecodedFact::default();
            (Some(accepted.value), is_notable.then_some(fact))
        }
        DecodeOutcome::Invalid(invalid) => {
            let errors = invalid.errors.into_iter().map(|error| SchemaMismatch {
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
        DecodeOutcome::CutOff(cut) => {
            let got = format!("the end of the text, after {} bytes", cut.bytes);
            let error =
                SchemaMismatch { path: cut.path, expected: "the rest of the text".to_owned(), got };
            let errors = vec![error];
            (None, Some(DecodedFact { cut: true, errors, ..DecodedFact::default() }))
        }
    }
}

/// The JSON word of a repair.
fn repair_word(repair: TextRepair) -> Option<String> {
    serde_json::to_value(repair).ok()?.as_str().map(ToOwned::to_owned)
}

fn root_mismatch(expected: &str, got: &str) -> SchemaMismatch {
    SchemaMismatch { path: String::new(), expected: expected.to_owned(), got: got.to_owned() }
}
