//! `schema`, `plan` and `outputs`: what a model writes, and how often it may try again.

use jackline_engine::definition::{Attempts, Output, SchemaText, Schemas};

use super::prelude::*;
use crate::values::{Numbers, changed_numbers, json_schema, number_of};

static KEYS: [Key; 3] = [
    key(
        "schema",
        Map(&SCHEMA),
        "",
        "How often the agent may write something again that is not valid.",
    ),
    key("plan", Map(&PLAN), "", "What plans have to look like."),
    key(
        "outputs",
        Names(0, "output", &Map(&OUTPUT)),
        "none",
        "What the agent hands over (`output_proposed`), by name.",
    ),
];

pub(super) static SCHEMA: Keys = Keys {
    id: "schema",
    of: "`schema`",
    doc: "Arguments, plans and outputs that are not valid are cleaned up where nothing has to be guessed: fences, prose around \
          them, trailing commas and the like. What still can't be used is refused with what was expected where.",
    known: &[
        key(
            "repair_max_attempts",
            Count(0, U32),
            "2",
            "How often one payload may be written again; then the session ends with `SYSTEM_ERROR{schema}`.",
        ),
        key(
            "repairs_per_run",
            Count(0, U32),
            "20",
            "The same for all payloads of a session together.",
        ),
        key(
            "correction_max_attempts",
            Count(0, U32),
            "2",
            "How often a tool may be called that does not exist, without a call in between that runs, where unknown tools are denied.",
        ),
    ],
    needs: &[],
};

pub(super) static PLAN: Keys = Keys {
    id: "plan",
    of: "`plan`",
    doc: "",
    known: &[key(
        "schema",
        Schema,
        "the built-in one",
        "What plans (`plan_proposed`) have to look like.",
    )],
    needs: &[],
};

pub(super) static OUTPUT: Keys = Keys {
    id: "output",
    of: "an output",
    doc: "",
    known: &[key("schema", Schema, "required", "What it has to look like.")],
    needs: &[Needs::All(&["schema"])],
};

pub(crate) struct SchemasSection;

impl Section for SchemasSection {
    type Part = Demand<Schemas>;

    const KEYS: &'static [Key] = &KEYS;
    // The reference page shows the mappings beside those of a tool, which has schemas, too.
    const MAPPINGS: &'static [&'static Keys] = &[];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(key: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
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

    /// The schemas of the higher layer hold; a lower one can add what the higher one leaves out.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.schemas, &low.schemas);
        let (above, below) = (&high.value, &low.value);
        let (first, second) = if join.overrides() { (below, above) } else { (above, below) };
        let attempts = match below.attempts == Attempts::default() {
            true if join.overrides() => above.attempts,
            false if join.overrides() => below.attempts,
            _ => fewer(above.attempts, below.attempts),
        };
        let mut outputs = first.outputs.clone();
        let missing = |one: &&Output| !first.outputs.iter().any(|known| known.name == one.name);
        outputs.extend(second.outputs.iter().filter(missing).cloned());
        let both = Schemas { attempts, plan: first.plan.clone().or(second.plan.clone()), outputs };
        if !join.overrides() {
            let mut ignore = |text: &str, why: &str| {
                join.ignore(Subject::Setting, format!("`{text}`"), low.layer, high.layer, why);
            };
            if both.attempts != below.attempts && below.attempts != Attempts::default() {
                ignore("schema", "allows fewer attempts");
            }
            let why = "says what it looks like";
            for output in below.outputs.iter().filter(|one| !both.outputs.contains(one)) {
                ignore(&format!("outputs.{}", output.name), why);
            }
            if below.plan.is_some() && both.plan != below.plan {
                ignore("plan.schema", why);
            }
        }
        let layer = if *below == Schemas::default() { high.layer } else { low.layer };
        Demand { value: both, layer }
    }

    fn put(schemas: Self::Part, definition: &mut Definition) {
        definition.schemas = schemas.value;
    }
}

fn attempts(node: &Node, attempts: &mut Attempts, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &SCHEMA) {
        if let Some(slot) = number_of(key, numbers(attempts))
            && let Some(count) = reader.count(node, &format!("`schema.{key}`"))
        {
            *slot = count;
        }
    }
}

fn plan(node: &Node, reader: &mut Reader<'_>) -> Option<SchemaText> {
    let fields = reader.fields(node, &PLAN);
    fields.into_iter().find_map(|(_, node)| json_schema(node, "`plan.schema`", reader))
}

fn outputs(node: &Node, reader: &mut Reader<'_>) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (key, node) in reader.map(node, "`outputs`") {
        for (_, node) in reader.fields(node, &OUTPUT) {
            if let Some(schema) = json_schema(node, "`schema`", reader) {
                outputs.push(Output { name: key.text.clone(), schema });
            }
        }
    }
    outputs
}

/// The numbers, of which the smaller one is stricter.
fn numbers(attempts: &mut Attempts) -> Numbers<'_, 3> {
    let Attempts { repair_max_attempts, repairs_per_run, correction_max_attempts } = attempts;
    [
        ("repair_max_attempts", repair_max_attempts),
        ("repairs_per_run", repairs_per_run),
        ("correction_max_attempts", correction_max_attempts),
    ]
}

/// The smaller of each.
fn fewer(mut one: Attempts, mut other: Attempts) -> Attempts {
    for ((_, one), (_, other)) in numbers(&mut one).into_iter().zip(numbers(&mut other)) {
        *one = (*one).min(*other);
    }
    one
}

/// What plans and outputs have to look like, and how often something may be written again,
/// where it differs from the default.
pub fn text(schemas: &Schemas) -> Vec<String> {
    let Schemas { attempts, plan, outputs } = schemas;
    let (mut own, mut default) = (*attempts, Attempts::default());
    let counts = changed_numbers(numbers(&mut own), numbers(&mut default));
    let mut lines = Vec::new();
    if !counts.is_empty() {
        lines.push(format!("schema: {}", counts.join(", ")));
    }
    lines.extend(plan.iter().map(|_| "plan: checked by a schema of its own".to_owned()));
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
