//! `shell`: how Jackline treats command lines that it cannot analyse completely.

use jackline_engine::definition::{OpaquePolicy, ShellSettings};

use super::prelude::*;

static KEYS: [KeySpec; 1] = [key("shell", Map(&SHELL), "", "How Jackline treats command lines.")];

const OPAQUE: [(&str, OpaquePolicy); 3] =
    [("allow", OpaquePolicy::Allow), ("ask", OpaquePolicy::Ask), ("deny", OpaquePolicy::Deny)];

static SHELL: MappingSpec = MappingSpec {
    id: "shell",
    label: "`shell`",
    doc: "",
    entries: &[key(
        "opaque",
        Word(&words_of::<_, 3>(&OPAQUE)),
        "`allow`",
        "What happens to an opaque command line: Jackline cannot tell what a part of it runs.",
    )],
    required: &[],
};

pub(crate) struct ShellSection;

impl Section for ShellSection {
    /// `shell.opaque`.
    type Part = Demand<OpaquePolicy>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&SHELL];
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        for (_, node) in reader.fields(node, &SHELL) {
            if let Some(opaque) = reader.word(node, "`shell.opaque`", &OPAQUE) {
                lowering.definition.shell.opaque = opaque;
            }
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let ShellSettings { opaque } = source.definition.shell;
        source.demand(opaque)
    }

    fn follows_mode(opaque: &Self::Part) -> bool {
        opaque.value != OpaquePolicy::Allow
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        join.join_setting(&high.shell, &low.shell, |high, low| high >= low, text, "demands more")
    }

    fn describe(opaque: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_general_unless_default(ShellSettings::default().opaque, opaque, text);
    }

    fn put(opaque: Self::Part, definition: &mut Definition) {
        definition.shell = ShellSettings { opaque: opaque.value };
    }
}

fn text(opaque: OpaquePolicy) -> String {
    format!("shell.opaque: {}", as_str(opaque))
}

/// Returns `allow`, `ask` or `deny`.
pub fn as_str(opaque: OpaquePolicy) -> &'static str {
    match opaque {
        OpaquePolicy::Allow => "allow",
        OpaquePolicy::Ask => "ask",
        OpaquePolicy::Deny => "deny",
    }
}
