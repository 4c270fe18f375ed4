//! `loops`: how repetition is found and answered.

use jackline_engine::definition::{
    Cycle, Errors, Graded, LOOPS_WINDOW_MAX, Loops, Poll, Profile, Strict,
};
use jackline_engine::{Kind, Mode};

use super::mode::{self, MODES, TAKES_MODE};
use super::prelude::*;
use super::tools::TAKES_KIND;
use crate::values::pointer;

static KEYS: [Key; 1] = [key("loops", Map(&LOOPS), "", "What is done about repetition.")];

const WINDOW: u64 = LOOPS_WINDOW_MAX as u64;

const PROFILES: [(&str, Profile); 2] = [("strict", Profile::Strict), ("graded", Profile::Graded)];

static LOOPS: Keys = Keys {
    id: "loops",
    of: "`loops`",
    doc: "An agent that does the same again and learns nothing from it. The same call with another result is no repetition. \
          `graded` tells the agent, then pauses, then stops. `strict` puts a typed override in force, and the call that \
          disregards it stops the session before it runs. Only a person's message starts the counters anew.",
    known: &[
        key(
            "mode",
            TAKES_MODE,
            "`mode` where a file gives `loops` or extends `autonomous`; else `observe`",
            "Whether its answers hold.",
        ),
        key("profile", Word(&words_of::<_, 2>(&PROFILES)), "`graded`", "How the answers rise."),
        key("history", Count(8, 64), "64", "How many calls of an actor are remembered."),
        key("strict", Map(&LOOPS_STRICT), "", "The levels of the strict profile."),
        key("graded", Map(&LOOPS_GRADED), "", "The levels of the graded profile."),
        key("cycle", Map(&LOOPS_CYCLE), "", "When several calls that go round count."),
        key(
            "errors",
            Map(&LOOPS_ERRORS),
            "",
            "When the same error counts, whatever the arguments.",
        ),
        key(
            "volatile",
            List(0, &Pointer),
            "none",
            "Where arguments hold what changes from call to call and says nothing.",
        ),
        key("transparent", List(0, &TAKES_KIND), "`think`", "Kinds of tools that are passed over."),
    ],
    needs: &[],
};

static LOOPS_STRICT: Keys = Keys {
    id: "loops_strict",
    of: "`loops.strict`",
    doc: "",
    known: &[
        key("window", Count(2, WINDOW), "3", "Among how many of the latest calls."),
        key(
            "threshold",
            Count(2, WINDOW),
            "3",
            "So many that are the same put an override in force.",
        ),
        key(
            "override_retries",
            Count(1, 100),
            "1",
            "The repeat after the override that stops. Those before it are denied.",
        ),
    ],
    needs: &[],
};

static LOOPS_GRADED: Keys = Keys {
    id: "loops_graded",
    of: "`loops.graded`",
    doc: "So many of the same in a row. Calls that are denied for the same reason count alike.",
    known: &[
        key("soft", Count(2, U16), "3", "The agent is told."),
        key("hard", Count(2, U16), "5", "The session pauses."),
        key("infinite", Count(2, U16), "10", "The session stops."),
    ],
    needs: &[],
};

static LOOPS_CYCLE: Keys = Keys {
    id: "loops_cycle",
    of: "`loops.cycle`",
    doc: "",
    known: &[
        key("period_max", Count(2, 8), "8", "Of how many calls at most."),
        key("repeats", Count(2, 16), "3", "How often it was gone through."),
    ],
    needs: &[],
};

static LOOPS_ERRORS: Keys = Keys {
    id: "loops_errors",
    of: "`loops.errors`",
    doc: "",
    known: &[
        key("soft", Count(2, U16), "5", "So many in a row, and the agent is told."),
        key("hard", Count(2, U16), "8", "So many in a row, and the session pauses."),
    ],
    needs: &[],
};

pub(super) static POLL: Keys = Keys {
    id: "poll",
    of: "`poll`",
    doc: "A tool that is asked again and again whether something has happened is not in a loop, up to here.",
    known: &[
        key("until_changed", Flag, "`true`", "Whether another result starts the count anew."),
        key("max_calls", Count(1, U32), "60", "So many calls with the same result."),
        key("within_seconds", Count(1, U32), "1800", "For so long."),
    ],
    needs: &[],
};

pub(crate) struct LoopsSection;

impl Section for LoopsSection {
    /// None where the layer has the default.
    type Part = Option<Demand<Loops>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] =
        &[&LOOPS, &LOOPS_STRICT, &LOOPS_GRADED, &LOOPS_CYCLE, &LOOPS_ERRORS];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.unusual(&source.definition.loops)
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let mut above = high.loops.clone();
        if let (Some(above), None) = (&mut above, &low.loops)
            && join.overrides()
            && low.mode.demand.value == Mode::Observe
        {
            // A lower layer that may override also switches the loop guard to observing.
            above.value.mode = Mode::Observe;
        }
        let (above, below) = (above.as_ref(), low.loops.as_ref());
        join.option(above, below, Subject::Setting, text, |join, high, low| {
            let both = stricter(&high.value, &low.value);
            if both == low.value {
                return low.clone();
            }
            let why = if both == high.value { "demands more" } else { "demands more in part" };
            join.ignore(Subject::Setting, text(&low.value), low.layer, high.layer, why);
            Demand { value: both, layer: high.layer }
        })
    }

    fn describe(loops: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.option(Subject::Setting, loops.as_ref(), text);
    }

    fn put(loops: Self::Part, definition: &mut Definition) {
        if let Some(loops) = loops {
            definition.loops = loops.value;
        }
    }
}

/// The loop guard has the mode of the file, unless it names its own. So it waits for `mode`.
pub(crate) fn lower(lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
    if let Some(node) = lowering.node("loops") {
        lowering.definition.loops = read(node, lowering.definition.mode, reader);
    }
}

fn read(node: &Node, mode: Mode, reader: &mut Reader<'_>) -> Loops {
    let mut loops = Loops { mode, ..Loops::default() };
    for (key, node) in reader.fields(node, &LOOPS) {
        match key {
            "mode" => loops.mode = reader.word(node, "`loops.mode`", &MODES).unwrap_or(mode),
            "profile" => {
                let profile = reader.word(node, "`loops.profile`", &PROFILES);
                loops.profile = profile.unwrap_or(loops.profile);
            }
            "history" => number(key, node, &LOOPS, &mut loops.history, reader),
            "strict" => strict(node, &mut loops.strict, reader),
            "graded" => graded(node, &mut loops.graded, reader),
            "cycle" => {
                for (key, node) in reader.fields(node, &LOOPS_CYCLE) {
                    let Cycle { period_max, repeats } = &mut loops.cycle;
                    let slot = if key == "period_max" { period_max } else { repeats };
                    number(key, node, &LOOPS_CYCLE, slot, reader);
                }
            }
            "errors" => errors(node, &mut loops.errors, reader),
            "volatile" => {
                let items = reader.list(node, "`loops.volatile`");
                let each = |item| pointer(item, "a pointer", reader);
                loops.volatile = items.iter().filter_map(each).collect();
            }
            _ => {
                let items = reader.list(node, "`loops.transparent`");
                let each = |item| reader.word(item, "a kind", Kind::ALL);
                loops.transparent = items.iter().filter_map(each).collect();
            }
        }
    }
    loops
}

fn strict(node: &Node, strict: &mut Strict, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_STRICT) {
        let slot = match key {
            "window" => &mut strict.window,
            "threshold" => &mut strict.threshold,
            _ => &mut strict.override_retries,
        };
        number(key, node, &LOOPS_STRICT, slot, reader);
    }
    let Strict { window, threshold, .. } = strict;
    if threshold > window {
        let message = format!(
            "`loops.strict` looks for {threshold} among {window} calls, which there never are"
        );
        reader.complain_hint(node.at, message, "`window` is at least `threshold`");
    }
}

fn graded(node: &Node, graded: &mut Graded, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_GRADED) {
        let slot = match key {
            "soft" => &mut graded.soft,
            "hard" => &mut graded.hard,
            _ => &mut graded.infinite,
        };
        number(key, node, &LOOPS_GRADED, slot, reader);
    }
    let Graded { soft, hard, infinite } = *graded;
    if !(soft < hard && hard < infinite) {
        let message =
            format!("`loops.graded` does not rise: soft {soft}, hard {hard}, infinite {infinite}");
        reader.complain_hint(node.at, message, "each is more than the one before");
    }
}

fn errors(node: &Node, errors: &mut Errors, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_ERRORS) {
        let slot = if key == "soft" { &mut errors.soft } else { &mut errors.hard };
        number(key, node, &LOOPS_ERRORS, slot, reader);
    }
    let Errors { soft, hard } = *errors;
    if soft >= hard {
        let message = format!("`loops.errors` does not rise: soft {soft}, hard {hard}");
        reader.complain_hint(node.at, message, "`hard` is more than `soft`");
    }
}

/// A number in the range that its key takes.
fn number(key: &str, node: &Node, keys: &Keys, slot: &mut u16, reader: &mut Reader<'_>) {
    let hint = |from, to| format!("whole numbers from {from} to {to} are accepted");
    reader.bounded_with_hint(key, node, keys, slot, hint);
}

/// How long a tool may be asked whether something has happened.
pub(crate) fn read_poll(node: &Node, reader: &mut Reader<'_>) -> Poll {
    let mut poll = Poll { until_changed: true, max_calls: 60, within_seconds: 1800 };
    for (key, node) in reader.fields(node, &POLL) {
        let what = format!("`poll.{key}`");
        let slot = match key {
            "until_changed" => {
                poll.until_changed = reader.flag(node, &what).unwrap_or(poll.until_changed);
                continue;
            }
            "max_calls" => &mut poll.max_calls,
            _ => &mut poll.within_seconds,
        };
        *slot = reader.positive(node, &what).unwrap_or(*slot);
    }
    poll
}

/// The loop guard that holds an agent as early as both layers would. Of two numbers one is
/// stricter. What counts as the same call, which calls are passed over and how the answers rise
/// can't be compared, so the higher layer decides these.
fn stricter(above: &Loops, below: &Loops) -> Loops {
    // A layer that only observes holds no agent, so nothing is taken from it.
    let holds =
        if above.mode == Mode::Observe && below.mode == Mode::Enforce { below } else { above };
    if holds.profile == Profile::Strict {
        // While an override holds one call, other loops are not reported. An earlier override
        // can therefore let a later loop go on for longer.
        return holds.clone();
    }
    let less = |of: fn(&Loops) -> u16| of(above).min(of(below));
    Loops {
        history: above.history.max(below.history),
        graded: Graded {
            soft: less(|loops| loops.graded.soft),
            hard: less(|loops| loops.graded.hard),
            infinite: less(|loops| loops.graded.infinite),
        },
        cycle: Cycle { repeats: less(|loops| loops.cycle.repeats), ..holds.cycle },
        errors: Errors {
            soft: less(|loops| loops.errors.soft),
            hard: less(|loops| loops.errors.hard),
        },
        ..holds.clone()
    }
}

/// How repetition is answered.
pub fn text(loops: &Loops) -> String {
    let mode = mode::word(loops.mode);
    match loops.profile {
        Profile::Graded => {
            let Graded { soft, hard, infinite } = loops.graded;
            format!("loops: {mode}, told at {soft}, paused at {hard}, stopped at {infinite}")
        }
        Profile::Strict => {
            let Strict { window, threshold, .. } = loops.strict;
            format!("loops: {mode}, strict, {threshold} among {window}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser("loops.mode", "loops: { mode: enforce }", "loops: { mode: observe, history: 63 }"),
        looser("loops.profile", "loops: { profile: graded }", "loops: { profile: strict }"),
        looser("loops.profile", "loops: { profile: strict }", "loops: { profile: graded }"),
        looser("loops.history", "loops: { history: 64 }", "loops: { history: 8 }"),
        looser(
            "loops.strict",
            "loops: { profile: strict }",
            "loops: { profile: strict, strict: { window: 4 } }",
        ),
        looser("loops.graded", "loops: { graded: { soft: 2 } }", "loops: {}"),
        looser("loops.cycle", "loops: { cycle: { repeats: 2 } }", "loops: {}"),
        looser("loops.errors", "loops: { errors: { soft: 2 } }", "loops: {}"),
        // Of volatile arguments and transparent tools, neither fewer nor more.
        looser("loops.volatile", "loops: { volatile: [/nonce] }", "loops: {}"),
        looser("loops.volatile", "loops: {}", "loops: { volatile: [/command] }"),
        looser("loops.transparent", "loops: {}", "loops: { transparent: [think, read] }"),
        looser("loops.transparent", "loops: {}", "loops: { transparent: [] }"),
        looser(
            "loops_strict.window",
            "loops: { profile: strict, strict: { window: 5 } }",
            "loops: { profile: strict, strict: { window: 3 } }",
        ),
        looser(
            "loops_strict.window",
            "loops: { profile: strict }",
            "loops: { profile: strict, strict: { window: 9 } }",
        ),
        looser(
            "loops_strict.threshold",
            "loops: { profile: strict }",
            "loops: { profile: strict, strict: { window: 9, threshold: 9 } }",
        ),
        looser(
            "loops_strict.threshold",
            "loops: { profile: strict }",
            "loops: { profile: strict, strict: { threshold: 2 } }",
        ),
        looser(
            "loops_strict.override_retries",
            "loops: { profile: strict }",
            "loops: { profile: strict, strict: { override_retries: 9 } }",
        ),
        looser("loops_graded.soft", "loops: {}", "loops: { graded: { soft: 4 } }"),
        looser("loops_graded.hard", "loops: {}", "loops: { graded: { hard: 9 } }"),
        looser("loops_graded.infinite", "loops: {}", "loops: { graded: { infinite: 99 } }"),
        looser(
            "loops_graded.hard",
            "loops: { profile: strict }",
            "loops: { profile: strict, graded: { hard: 4 } }",
        ),
        looser("loops_cycle.period_max", "loops: {}", "loops: { cycle: { period_max: 2 } }"),
        looser("loops_cycle.period_max", "loops: { cycle: { period_max: 2 } }", "loops: {}"),
        looser("loops_cycle.repeats", "loops: {}", "loops: { cycle: { repeats: 9 } }"),
        looser("loops_errors.soft", "loops: {}", "loops: { errors: { soft: 7 } }"),
        looser("loops_errors.hard", "loops: {}", "loops: { errors: { hard: 9 } }"),
        // A tool that only the lower layer knows, and that the loop guard would pass over.
        looser(
            "loops.transparent",
            "loops: {}\ntools: { a: {} }\nunknown_tools: allow",
            "tools: { a: { kind: think } }\nunknown_tools: allow",
        ),
        looser(
            "loops.transparent",
            "loops: {}\ntools: { a: {} }\nunknown_tools: allow",
            "tools: { a: { transparent: true } }\nunknown_tools: allow",
        ),
    ];
}
