//! `schema`, `plan` and `outputs`: the JSON that a model writes, and how often it may retry.

use jackline_engine::definition::{NamedOutput, RepairLimits, SchemaSettings, SchemaText};

use super::prelude::*;
use crate::values::{NumberFields, changed_numbers, find_number, read_json_schema};

static KEYS: [KeySpec; 3] = [
    key("schema", Map(&SCHEMA), "", "How often the agent may correct something that is not valid."),
    key("plan", Map(&PLAN), "", "The form of plans."),
    key(
        "outputs",
        Names(0, "output", &Map(&OUTPUT)),
        "none",
        "The outputs that the agent delivers (`output_proposed`), by name.",
    ),
];

pub(super) static SCHEMA: MappingSpec = MappingSpec {
    id: "schema",
    label: "`schema`",
    doc: "Jackline repairs arguments, plans and outputs that are not valid if it does not have to guess: it removes code \
          fences, text around the JSON, trailing commas and the like. If the result is still not valid, Jackline refuses it and \
          names what it expected and where.",
    entries: &[
        key(
            "repair_max_attempts",
            Count(0, U32_MAX),
            "2",
            "How often the agent may correct one payload. After that the session ends with `SYSTEM_ERROR{schema}`.",
        ),
        key(
            "repairs_per_run",
            Count(0, U32_MAX),
            "20",
            "The same limit for all payloads of a session together.",
        ),
        key(
            "correction_max_attempts",
            Count(0, U32_MAX),
            "2",
            "If unknown tools are denied: how often in a row the agent may call a tool that does not exist. A call that runs resets the count.",
        ),
    ],
    required: &[],
};

pub(super) static PLAN: MappingSpec = MappingSpec {
    id: "plan",
    label: "`plan`",
    doc: "",
    entries: &[key(
        "schema",
        Schema,
        "the built-in one",
        "The JSON Schema of plans (`plan_proposed`).",
    )],
    required: &[],
};

pub(super) static OUTPUT: MappingSpec = MappingSpec {
    id: "output",
    label: "an output",
    doc: "",
    entries: &[key("schema", Schema, "required", "The JSON Schema of the output.")],
    required: &[RequiredKeys::All(&["schema"])],
};

pub(crate) struct SchemasSection;

impl Section for SchemasSection {
    type Part = Demand<SchemaSettings>;

    const KEYS: &'static [KeySpec] = &KEYS;
    // The reference page shows the mappings next to those of a tool, which also has schemas.
    const MAPPINGS: &'static [&'static MappingSpec] = &[];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        key: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let schemas = &mut lowering.definition.schemas;
        match key {
            "schema" => attempts(node, &mut schemas.attempts, reader),
            "plan" => schemas.plan = plan(node, reader),
            _ => schemas.outputs = outputs(node, reader),
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.schemas.clone())
    }

    /// The schemas of the higher layer win. A lower layer can add schemas that are missing there.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.schemas, &low.schemas);
        let (above, below) = (&high.value, &low.value);
        let (first, second) = if join.overrides() { (below, above) } else { (above, below) };
        let attempts = match below.attempts == RepairLimits::default() {
            true if join.overrides() => above.attempts,
            false if join.overrides() => below.attempts,
            _ => smaller_numbers(above.attempts, below.attempts),
        };
        let mut outputs = first.outputs.clone();
        let missing =
            |one: &&NamedOutput| !first.outputs.iter().any(|known| known.name == one.name);
        outputs.extend(second.outputs.iter().filter(missing).cloned());
        let both =
            SchemaSettings { attempts, plan: first.plan.clone().or(second.plan.clone()), outputs };
        if !join.overrides() {
            let mut ignore = |text: &str, why: &str| {
                join.report_ignored(
                    DemandSubject::Setting,
                    format!("`{text}`"),
                    low.layer,
                    high.layer,
                    why,
                );
            };
            if both.attempts != below.attempts && below.attempts != RepairLimits::default() {
                ignore("schema", "allows fewer attempts");
            }
            let why = "has its own schema for it";
            for output in below.outputs.iter().filter(|one| !both.outputs.contains(one)) {
                ignore(&format!("outputs.{}", output.name), why);
            }
            if below.plan.is_some() && both.plan != below.plan {
                ignore("plan.schema", why);
            }
        }
        let layer = if *below == SchemaSettings::default() { high.layer } else { low.layer };
        Demand { value: both, layer }
    }

    fn put(schemas: Self::Part, definition: &mut Definition) {
        definition.schemas = schemas.value;
    }
}

fn attempts(node: &YamlNode, attempts: &mut RepairLimits, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &SCHEMA) {
        if let Some(slot) = find_number(key, numbers(attempts))
            && let Some(count) = reader.count(node, &format!("`schema.{key}`"))
        {
            *slot = count;
        }
    }
}

fn plan(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<SchemaText> {
    let fields = reader.fields(node, &PLAN);
    fields.into_iter().find_map(|(_, node)| read_json_schema(node, "`plan.schema`", reader))
}

fn outputs(node: &YamlNode, reader: &mut NodeReader<'_>) -> Vec<NamedOutput> {
    let mut outputs = Vec::new();
    for (key, node) in reader.map(node, "`outputs`") {
        for (_, node) in reader.fields(node, &OUTPUT) {
            if let Some(schema) = read_json_schema(node, "`schema`", reader) {
                outputs.push(NamedOutput { name: key.text.clone(), schema });
            }
        }
    }
    outputs
}

/// The number fields. A smaller number is stricter.
fn numbers(attempts: &mut RepairLimits) -> NumberFields<'_, 3> {
    let RepairLimits { repair_max_attempts, repairs_per_run, correction_max_attempts } = attempts;
    [
        ("repair_max_attempts", repair_max_attempts),
        ("repairs_per_run", repairs_per_run),
        ("correction_max_attempts", correction_max_attempts),
    ]
}

/// Takes the smaller value of each number.
fn smaller_numbers(mut one: RepairLimits, mut other: RepairLimits) -> RepairLimits {
    for ((_, one), (_, other)) in numbers(&mut one).into_iter().zip(numbers(&mut other)) {
        *one = (*one).min(*other);
    }
    one
}

/// Describes the schemas and the allowed corrections that differ from the default.
pub fn text(schemas: &SchemaSettings) -> Vec<String> {
    let SchemaSettings { attempts, plan, outputs } = schemas;
    let (mut own, mut default) = (*attempts, RepairLimits::default());
    let counts = changed_numbers(numbers(&mut own), numbers(&mut default));
    let mut lines = Vec::new();
    if !counts.is_empty() {
        lines.push(format!("schema: {}", counts.join(", ")));
    }
    lines.extend(plan.iter().map(|_| "plan: checked by its own schema".to_owned()));
    if !outputs.is_empty() {
        let names: Vec<String> = outputs.iter().map(|it| format!("`{}`", it.name)).collect();
        lines.push(format!("outputs: {}, checked by schemas", names.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "schema.repair_max_attempts",
            "schema: { repair_max_attempts: 1 }",
            "schema: { repair_max_attempts: 3 }",
        ),
        looser(
            "schema.repairs_per_run",
            "schema: { repairs_per_run: 4 }",
            "schema: { repairs_per_run: 5 }",
        ),
        looser(
            "schema.correction_max_attempts",
            "schema: { correction_max_attempts: 0 }",
            "schema: { correction_max_attempts: 1 }",
        ),
        looser("plan.schema", "plan: { schema: { type: object } }", "plan: { schema: {} }"),
        looser(
            "output.schema",
            "outputs: { report: { schema: { type: object } } }",
            "outputs: { report: { schema: {} } }",
        ),
    ];
}
