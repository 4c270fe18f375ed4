//! `shell`: what happens to command lines that can't be understood.

use jackline_engine::definition::{Opaque, Shell};

use super::prelude::*;

static KEYS: [Key; 1] = [key("shell", Map(&SHELL), "", "How command lines are dealt with.")];

const OPAQUE: [(&str, Opaque); 3] =
    [("allow", Opaque::Allow), ("ask", Opaque::Ask), ("deny", Opaque::Deny)];

static SHELL: Keys = Keys {
    id: "shell",
    of: "`shell`",
    doc: "",
    known: &[key(
        "opaque",
        Word(&words_of::<_, 3>(&OPAQUE)),
        "`allow`",
        "What happens to a command line that can't be understood as a whole.",
    )],
    needs: &[],
};

pub(crate) struct ShellSection;

impl Section for ShellSection {
    /// `shell.opaque`.
    type Part = Demand<Opaque>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&SHELL];
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        for (_, node) in reader.fields(node, &SHELL) {
            if let Some(opaque) = reader.word(node, "`shell.opaque`", &OPAQUE) {
                lowering.definition.shell.opaque = opaque;
            }
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Shell { opaque } = source.definition.shell;
        source.demand(opaque)
    }

    fn follows_mode(opaque: &Self::Part) -> bool {
        opaque.value != Opaque::Allow
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        join.setting(&high.shell, &low.shell, |high, low| high >= low, text, "demands more")
    }

    fn describe(opaque: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.general_unless(Shell::default().opaque, opaque, text);
    }

    fn put(opaque: Self::Part, definition: &mut Definition) {
        definition.shell = Shell { opaque: opaque.value };
    }
}

fn text(opaque: Opaque) -> String {
    format!("shell.opaque: {}", word(opaque))
}

/// `allow`, `ask` or `deny`.
pub fn word(opaque: Opaque) -> &'static str {
    match opaque {
        Opaque::Allow => "allow",
        Opaque::Ask => "ask",
        Opaque::Deny => "deny",
    }
}
