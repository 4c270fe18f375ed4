//! `mode`: whether verdicts are enforced.

use jackline_engine::Mode;

use super::prelude::*;

/// The words of a mode, here and wherever else a mode can be given.
pub(crate) const MODES: [(&str, Mode); 2] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
pub(crate) const TAKES_MODE: Takes = Word(&words_of::<_, 2>(&MODES));

static KEYS: [Key; 1] = [key(
    "mode",
    TAKES_MODE,
    "`enforce`",
    "Whether verdicts hold. `observe` decides the same, writes it down and holds up no call; protected files, pauses and a person's word hold all the same.",
)];

/// The mode of one layer.
#[derive(Clone)]
pub(crate) struct ModeDemand {
    pub(crate) demand: Demand<Mode>,
    /// Whether the layer has a demand without a mode of its own.
    pub(crate) governs: bool,
}

pub(crate) struct ModeSection;

impl Section for ModeSection {
    type Part = ModeDemand;

    const KEYS: &'static [Key] = &KEYS;
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mode = &mut lowering.definition.mode;
        *mode = reader.word(node, "`mode`", &MODES).unwrap_or(*mode);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        ModeDemand { demand: source.demand(source.definition.mode), governs: false }
    }

    /// The strictest mode of the layers that have a demand without a mode of its own.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (&high.mode, &low.mode);
        let observes = above.demand.value == Mode::Observe;
        let demand = match (above.governs, below.governs) {
            (false, true) if !join.overrides() => below.demand.clone(),
            (true, false) if !join.overrides() && observes => above.demand.clone(),
            _ => {
                let demands = |above, below| above == Mode::Enforce || below == Mode::Observe;
                join.setting(&above.demand, &below.demand, demands, text, "enforces")
            }
        };
        ModeDemand { demand, governs: above.governs || below.governs }
    }

    fn describe(mode: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.general(text(mode.demand.value), mode.demand.layer);
    }

    fn put(mode: Self::Part, definition: &mut Definition) {
        definition.mode = mode.demand.value;
    }
}

fn text(mode: Mode) -> String {
    format!("mode: {}", word(mode))
}

/// `enforce` or `observe`.
pub fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}
