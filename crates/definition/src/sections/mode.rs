//! `mode`: whether verdicts are enforced.

use jackline_engine::Mode;

use super::prelude::*;

/// The words for a mode, in every key that takes a mode.
pub(crate) const MODES: [(&str, Mode); 2] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
pub(crate) const MODE_VALUE: ValueType = Word(&words_of::<_, 2>(&MODES));

static KEYS: [KeySpec; 1] = [key(
    "mode",
    MODE_VALUE,
    "`enforce`",
    "Whether verdicts are enforced. In mode `observe` Jackline makes the same decisions and records them, but blocks only a call that would remove the guard itself. The decisions of a person are always enforced.",
)];

/// The mode of one layer.
#[derive(Clone)]
pub(crate) struct ModeDemand {
    pub(crate) demand: Demand<Mode>,
    /// Whether the layer has a demand that has no mode of its own.
    pub(crate) is_used: bool,
}

pub(crate) struct ModeSection;

impl Section for ModeSection {
    type Part = ModeDemand;

    const KEYS: &'static [KeySpec] = &KEYS;
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mode = &mut lowering.definition.mode;
        *mode = reader.word(node, "`mode`", &MODES).unwrap_or(*mode);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        ModeDemand { demand: source.demand(source.definition.mode), is_used: false }
    }

    /// Takes the strictest mode of the layers that have a demand without a mode of its own.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (&high.mode, &low.mode);
        let observes = above.demand.value == Mode::Observe;
        let demand = match (above.is_used, below.is_used) {
            (false, true) if !join.overrides() => below.demand.clone(),
            (true, false) if !join.overrides() && observes => above.demand.clone(),
            _ => {
                let demands = |above, below| above == Mode::Enforce || below == Mode::Observe;
                join.join_setting(&above.demand, &below.demand, demands, text, "enforces")
            }
        };
        ModeDemand { demand, is_used: above.is_used || below.is_used }
    }

    fn describe(mode: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_general(text(mode.demand.value), mode.demand.layer);
    }

    fn put(mode: Self::Part, definition: &mut Definition) {
        definition.mode = mode.demand.value;
    }
}

fn text(mode: Mode) -> String {
    format!("mode: {}", as_str(mode))
}

/// Returns `enforce` or `observe`.
pub fn as_str(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}
