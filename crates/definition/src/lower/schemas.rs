//! Schemas of what a model writes, and how often it may try.

use jackline_engine::definition::{Attempts, Output, SchemaText};

use crate::keys;
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads `schema`.
pub(super) fn lower(node: &Node, attempts: &mut Attempts, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::SCHEMA) {
        let slot = match key {
            "repair_max_attempts" => &mut attempts.repair_max_attempts,
            "repairs_per_run" => &mut attempts.repairs_per_run,
            _ => &mut attempts.correction_max_attempts,
        };
        if let Some(count) = reader.count(node, &format!("`schema.{key}`")) {
            *slot = count;
        }
    }
}

/// Reads `plan`.
pub(super) fn plan(node: &Node, reader: &mut Reader<'_>) -> Option<SchemaText> {
    let fields = reader.fields(node, &keys::PLAN);
    fields.into_iter().find_map(|(_, node)| schema(node, "`plan.schema`", reader))
}

/// Reads `outputs`.
pub(super) fn outputs(node: &Node, reader: &mut Reader<'_>) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (key, node) in reader.map(node, "`outputs`") {
        for (_, node) in reader.fields(node, &keys::OUTPUT) {
            if let Some(schema) = schema(node, "`schema`", reader) {
                outputs.push(Output { name: key.text.clone(), schema });
            }
        }
    }
    outputs
}

/// A JSON Schema, checked.
pub(super) fn schema(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<SchemaText> {
    let schema = node.to_json();
    if let Err(error) = jackline_decode::Schema::compile(&schema) {
        let hint = "a JSON Schema, 2020-12, without references to other files";
        reader.complain_hint(node.at, format!("{what} is no schema: {error}"), hint);
        return None;
    }
    Some(SchemaText(schema.to_string()))
}
