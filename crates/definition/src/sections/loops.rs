//! `loops`: how Jackline detects repetition and reacts to it.

use jackline_engine::definition::{
    ChainLevels, CycleLevels, ErrorLevels, GradedLevels, LOOP_PERIOD_MAX, LOOPS_WINDOW_MAX,
    LoopProfile, LoopSettings, LoopToolBudget, PollAllowance, SimilarCallLevels, StrictLevels,
};
use jackline_engine::{Mode, ToolKind};

use super::mode::{self, MODE_VALUE, MODES};
use super::prelude::*;
use super::tools::KIND_VALUE;
use crate::values::read_pointer;

static KEYS: [KeySpec; 1] = [key("loops", Map(&LOOPS), "", "How Jackline reacts to repetition.")];

const WINDOW: u64 = LOOPS_WINDOW_MAX as u64;

const PERIOD: u64 = LOOP_PERIOD_MAX as u64;

const PROFILES: [(&str, LoopProfile); 2] =
    [("strict", LoopProfile::Strict), ("graded", LoopProfile::Graded)];

static LOOPS: MappingSpec = MappingSpec {
    id: "loops",
    label: "`loops`",
    doc: "The loop guard detects an agent that repeats calls without learning anything new. The same call with another result \
          is no repetition. `graded` warns the agent, then pauses the session, then stops it. `strict` puts a typed override in \
          force; a call that ignores the override does not run and stops the session. Only a message of a person resets the \
          counters.",
    entries: &[
        key(
            "mode",
            MODE_VALUE,
            "`mode` if a file has `loops` or extends `autonomous`; else `observe`",
            "Whether the reactions are enforced.",
        ),
        key(
            "profile",
            Word(&words_of::<_, 2>(&PROFILES)),
            "`graded`",
            "How the reactions escalate.",
        ),
        key("history", Count(8, 64), "64", "How many calls of an actor the loop guard remembers."),
        key("strict", Map(&LOOPS_STRICT), "", "The levels of the strict profile."),
        key("graded", Map(&LOOPS_GRADED), "", "The levels of the graded profile."),
        key("cycle", Map(&LOOPS_CYCLE), "", "When a repeated cycle of several calls counts."),
        key("chain", Map(&LOOPS_CHAIN), "", "When a repeated chain of calls counts."),
        key("errors", Map(&LOOPS_ERRORS), "", "When the same error with any arguments counts."),
        key("similar", Map(&LOOPS_SIMILAR), "", "When similar calls cause a warning."),
        key("wait", Map(&LOOPS_WAIT), "", "How long an agent may only wait."),
        key(
            "tool_budget",
            Map(&LOOPS_TOOL_BUDGET),
            "",
            "What `strict` leaves to a tool that fails again and again.",
        ),
        key(
            "volatile",
            List(0, &Pointer),
            "none",
            "Arguments that change with each call and carry no meaning.",
        ),
        key(
            "transparent",
            List(0, &KIND_VALUE),
            "`think`",
            "Kinds of tools that the loop guard ignores.",
        ),
    ],
    required: &[],
};

static LOOPS_STRICT: MappingSpec = MappingSpec {
    id: "loops_strict",
    label: "`loops.strict`",
    doc: "",
    entries: &[
        key("window", Count(2, WINDOW), "3", "How many of the latest calls are compared."),
        key(
            "threshold",
            Count(2, WINDOW),
            "3",
            "This many identical calls among them put an override in force.",
        ),
        key(
            "override_retries",
            Count(1, 100),
            "1",
            "The number of the repeat after the override that stops the session. Repeats before it are denied.",
        ),
    ],
    required: &[],
};

static LOOPS_GRADED: MappingSpec = MappingSpec {
    id: "loops_graded",
    label: "`loops.graded`",
    doc: "The numbers of identical calls in a row. Calls that are denied for the same reason count as identical.",
    entries: &[
        key("soft", Count(2, U16_MAX), "3", "The agent gets a warning."),
        key("hard", Count(2, U16_MAX), "5", "The session pauses."),
        key("infinite", Count(2, U16_MAX), "10", "The session stops."),
    ],
    required: &[],
};

static LOOPS_CYCLE: MappingSpec = MappingSpec {
    id: "loops_cycle",
    label: "`loops.cycle`",
    doc: "",
    entries: &[
        key("period_max", Count(2, 8), "8", "The maximum length of a cycle in calls."),
        key("repeats", Count(2, 16), "3", "How often a cycle must repeat to count."),
    ],
    required: &[],
};

static LOOPS_ERRORS: MappingSpec = MappingSpec {
    id: "loops_errors",
    label: "`loops.errors`",
    doc: "",
    entries: &[
        key("soft", Count(2, U16_MAX), "5", "This many in a row: the agent gets a warning."),
        key("hard", Count(2, U16_MAX), "8", "This many in a row: the session pauses."),
    ],
    required: &[],
};

static LOOPS_CHAIN: MappingSpec = MappingSpec {
    id: "loops_chain",
    label: "`loops.chain`",
    doc: "A chain is a sequence of calls with the same results. Its second pass causes a warning. A chain that is longer than \
          `cycle.period_max` pauses the session when it was repeated `cycle.repeats` times.",
    entries: &[
        key(
            "calls_min",
            Count(2, PERIOD),
            "5",
            "The second pass of a shorter chain causes no warning.",
        ),
        key("calls_max", Count(2, PERIOD), "21", "The maximum length of a chain in calls."),
    ],
    required: &[],
};

static LOOPS_SIMILAR: MappingSpec = MappingSpec {
    id: "loops_similar",
    label: "`loops.similar`",
    doc: "Calls that are similar, or equal with others in between, cause a warning and nothing more.",
    entries: &[
        key(
            "changing_results",
            Count(2, U16_MAX),
            "8",
            "This many calls in a row with the same arguments, each with a different result.",
        ),
        key(
            "same_subject",
            Count(2, U16_MAX),
            "12",
            "This many successful calls in a row about the same file or program with the same result.",
        ),
        key(
            "same_subject_failing",
            Count(2, U16_MAX),
            "4",
            "This many calls in a row about the same file or program that fail with the same error.",
        ),
        key(
            "same_result",
            Count(2, U16_MAX),
            "5",
            "The same call with the same result this many times among the latest `among` calls.",
        ),
        key("among", Count(2, 64), "10", "How many of the latest calls `same_result` looks at."),
    ],
    required: &[],
};

static LOOPS_WAIT: MappingSpec = MappingSpec {
    id: "loops_wait",
    label: "`loops.wait`",
    doc: "Commands that only wait, such as `sleep 60`, and the waiting tools of known clients do not count as a loop, up to these limits.",
    entries: &[
        key("max_calls", Count(1, U32_MAX), "60", "The maximum number of waiting calls in a row."),
        key("within_seconds", Count(1, U32_MAX), "3600", "The maximum time in seconds."),
    ],
    required: &[],
};

static LOOPS_TOOL_BUDGET: MappingSpec = MappingSpec {
    id: "loops_tool_budget",
    label: "`loops.tool_budget`",
    doc: "",
    entries: &[
        key("calls", Count(0, U32_MAX), "1", "How many more calls the tool may make."),
        key("seconds", Count(1, U32_MAX), "600", "How long this limit is in force, in seconds."),
    ],
    required: &[],
};

pub(super) static POLL: MappingSpec = MappingSpec {
    id: "poll",
    label: "`poll`",
    doc: "Repeated calls of a polling tool do not count as a loop, up to these limits.",
    entries: &[
        key("until_changed", Flag, "`true`", "Whether another result resets the count."),
        key(
            "max_calls",
            Count(1, U32_MAX),
            "60",
            "The maximum number of calls with the same result.",
        ),
        key("within_seconds", Count(1, U32_MAX), "1800", "The maximum time in seconds."),
    ],
    required: &[],
};

pub(crate) struct LoopsSection;

impl Section for LoopsSection {
    /// None if the layer has the default.
    type Part = Option<Demand<LoopSettings>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[
        &LOOPS,
        &LOOPS_STRICT,
        &LOOPS_GRADED,
        &LOOPS_CYCLE,
        &LOOPS_CHAIN,
        &LOOPS_ERRORS,
        &LOOPS_SIMILAR,
        &LOOPS_WAIT,
        &LOOPS_TOOL_BUDGET,
    ];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.non_default(&source.definition.loops)
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let mut above = high.loops.clone();
        if let (Some(above), None) = (&mut above, &low.loops)
            && join.overrides()
            && low.mode.demand.value == Mode::Observe
        {
            // A lower layer that may override also switches the loop guard to mode `observe`.
            above.value.mode = Mode::Observe;
        }
        let (above, below) = (above.as_ref(), low.loops.as_ref());
        join.join_option(above, below, DemandSubject::Setting, text, |join, high, low| {
            let both = join_stricter(&high.value, &low.value);
            if both == low.value {
                return low.clone();
            }
            let why =
                if both == high.value { "demands more" } else { "demands more in some values" };
            join.report_ignored_setting(text(&low.value), (low.layer, high.layer), why);
            Demand { value: both, layer: high.layer }
        })
    }

    fn describe(loops: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_option(DemandSubject::Setting, loops.as_ref(), text);
    }

    fn put(loops: Self::Part, definition: &mut Definition) {
        if let Some(loops) = loops {
            definition.loops = loops.value;
        }
    }
}

/// Lowers `loops` after `mode`, because the loop guard has the mode of the file by default.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
    if let Some(node) = lowering.node("loops") {
        lowering.definition.loops = read(node, lowering.definition.mode, reader);
    }
}

fn read(node: &YamlNode, mode: Mode, reader: &mut NodeReader<'_>) -> LoopSettings {
    let mut loops = LoopSettings { mode, ..LoopSettings::default() };
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
                    let CycleLevels { period_max, repeats } = &mut loops.cycle;
                    let slot = if key == "period_max" { period_max } else { repeats };
                    number(key, node, &LOOPS_CYCLE, slot, reader);
                }
            }
            "chain" => chain(node, &mut loops.chain, reader),
            "errors" => errors(node, &mut loops.errors, reader),
            "similar" => {
                for (key, node) in reader.fields(node, &LOOPS_SIMILAR) {
                    let similar = &mut loops.similar;
                    let slot = match key {
                        "changing_results" => &mut similar.changing_results,
                        "same_subject" => &mut similar.same_subject,
                        "same_subject_failing" => &mut similar.same_subject_failing,
                        "same_result" => &mut similar.same_result,
                        _ => &mut similar.among,
                    };
                    number(key, node, &LOOPS_SIMILAR, slot, reader);
                }
            }
            "wait" => {
                for (key, node) in reader.fields(node, &LOOPS_WAIT) {
                    let PollAllowance { max_calls, within_seconds, .. } = &mut loops.wait;
                    let slot = if key == "max_calls" { max_calls } else { within_seconds };
                    number(key, node, &LOOPS_WAIT, slot, reader);
                }
            }
            "tool_budget" => {
                for (key, node) in reader.fields(node, &LOOPS_TOOL_BUDGET) {
                    let LoopToolBudget { calls, seconds } = &mut loops.tool_budget;
                    let slot = if key == "calls" { calls } else { seconds };
                    number(key, node, &LOOPS_TOOL_BUDGET, slot, reader);
                }
            }
            "volatile" => {
                let items = reader.list(node, "`loops.volatile`");
                let each = |item| read_pointer(item, "a pointer", reader);
                loops.volatile = items.iter().filter_map(each).collect();
            }
            _ => {
                let items = reader.list(node, "`loops.transparent`");
                let each = |item| reader.word(item, "a kind", ToolKind::ALL);
                loops.transparent = items.iter().filter_map(each).collect();
            }
        }
    }
    loops
}

fn strict(node: &YamlNode, strict: &mut StrictLevels, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_STRICT) {
        let slot = match key {
            "window" => &mut strict.window,
            "threshold" => &mut strict.threshold,
            _ => &mut strict.override_retries,
        };
        number(key, node, &LOOPS_STRICT, slot, reader);
    }
    let StrictLevels { window, threshold, .. } = strict;
    if threshold > window {
        let message =
            format!("`loops.strict` needs {threshold} identical calls, but compares only {window}");
        reader.report_with_hint(node.position, message, "`window` must be at least `threshold`");
    }
}

fn graded(node: &YamlNode, graded: &mut GradedLevels, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_GRADED) {
        let slot = match key {
            "soft" => &mut graded.soft,
            "hard" => &mut graded.hard,
            _ => &mut graded.infinite,
        };
        number(key, node, &LOOPS_GRADED, slot, reader);
    }
    let GradedLevels { soft, hard, infinite } = *graded;
    if !(soft < hard && hard < infinite) {
        let message = format!(
            "`loops.graded` is not in rising order: soft {soft}, hard {hard}, infinite {infinite}"
        );
        reader.report_with_hint(
            node.position,
            message,
            "each number must be greater than the previous one",
        );
    }
}

fn errors(node: &YamlNode, errors: &mut ErrorLevels, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_ERRORS) {
        let slot = if key == "soft" { &mut errors.soft } else { &mut errors.hard };
        number(key, node, &LOOPS_ERRORS, slot, reader);
    }
    let ErrorLevels { soft, hard } = *errors;
    if soft >= hard {
        let message = format!("`loops.errors` is not in rising order: soft {soft}, hard {hard}");
        reader.report_with_hint(node.position, message, "`hard` must be greater than `soft`");
    }
}

fn chain(node: &YamlNode, chain: &mut ChainLevels, reader: &mut NodeReader<'_>) {
    for (key, node) in reader.fields(node, &LOOPS_CHAIN) {
        let slot = if key == "calls_min" { &mut chain.calls_min } else { &mut chain.calls_max };
        number(key, node, &LOOPS_CHAIN, slot, reader);
    }
    let ChainLevels { calls_min, calls_max } = *chain;
    if calls_min > calls_max {
        let message = format!(
            "`loops.chain` is not in rising order: calls_min {calls_min}, calls_max {calls_max}"
        );
        let hint = "`calls_max` must be at least `calls_min`";
        reader.report_with_hint(node.position, message, hint);
    }
}

/// Reads a number in the range of its key.
fn number<T: TryFrom<u64>>(
    key: &str,
    node: &YamlNode,
    keys: &MappingSpec,
    slot: &mut T,
    reader: &mut NodeReader<'_>,
) {
    let hint = |from, to| format!("use a whole number from {from} to {to}");
    reader.bounded_with_hint(key, node, keys, slot, hint);
}

/// Reads how long the agent may poll a tool.
pub(crate) fn read_poll(node: &YamlNode, reader: &mut NodeReader<'_>) -> PollAllowance {
    let mut poll = PollAllowance { until_changed: true, max_calls: 60, within_seconds: 1800 };
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

/// Joins two loop guards so that the result reacts as early as both layers. Of two numbers one is
/// stricter. Some settings can't be compared, so the higher layer decides them: which calls are
/// identical, which calls are ignored, and how the reactions escalate.
fn join_stricter(above: &LoopSettings, below: &LoopSettings) -> LoopSettings {
    // A layer in mode `observe` restricts no agent, so its values are not used as the base.
    let base =
        if above.mode == Mode::Observe && below.mode == Mode::Enforce { below } else { above };
    if base.profile == LoopProfile::Strict {
        // While an override restricts one call, other loops are not reported. An earlier override
        // can therefore let a later loop run longer.
        return base.clone();
    }
    let less = |of: fn(&LoopSettings) -> u16| of(above).min(of(below));
    LoopSettings {
        history: above.history.max(below.history),
        graded: GradedLevels {
            soft: less(|loops| loops.graded.soft),
            hard: less(|loops| loops.graded.hard),
            infinite: less(|loops| loops.graded.infinite),
        },
        cycle: CycleLevels { repeats: less(|loops| loops.cycle.repeats), ..base.cycle },
        chain: ChainLevels {
            calls_min: less(|loops| loops.chain.calls_min),
            calls_max: above.chain.calls_max.max(below.chain.calls_max),
        },
        errors: ErrorLevels {
            soft: less(|loops| loops.errors.soft),
            hard: less(|loops| loops.errors.hard),
        },
        similar: SimilarCallLevels {
            changing_results: less(|loops| loops.similar.changing_results),
            same_subject: less(|loops| loops.similar.same_subject),
            same_subject_failing: less(|loops| loops.similar.same_subject_failing),
            same_result: less(|loops| loops.similar.same_result),
            among: above.similar.among.max(below.similar.among),
        },
        wait: PollAllowance {
            max_calls: above.wait.max_calls.min(below.wait.max_calls),
            within_seconds: above.wait.within_seconds.min(below.wait.within_seconds),
            ..base.wait
        },
        ..base.clone()
    }
}

/// Describes the reactions to repetition.
pub fn text(loops: &LoopSettings) -> String {
    let mode = mode::as_str(loops.mode);
    match loops.profile {
        LoopProfile::Graded => {
            let GradedLevels { soft, hard, infinite } = loops.graded;
            format!("loops: {mode}, warns at {soft}, pauses at {hard}, stops at {infinite}")
        }
        LoopProfile::Strict => {
            let StrictLevels { window, threshold, .. } = loops.strict;
            format!("loops: {mode}, strict, {threshold} identical calls among {window}")
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
        // Neither fewer nor more volatile arguments or transparent tools are stricter.
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
        looser("loops.chain", "loops: { chain: { calls_min: 3 } }", "loops: {}"),
        looser("loops_chain.calls_min", "loops: {}", "loops: { chain: { calls_min: 6 } }"),
        looser("loops_chain.calls_max", "loops: {}", "loops: { chain: { calls_max: 20 } }"),
        looser("loops.similar", "loops: { similar: { same_subject: 9 } }", "loops: {}"),
        looser(
            "loops_similar.changing_results",
            "loops: {}",
            "loops: { similar: { changing_results: 9 } }",
        ),
        looser(
            "loops_similar.same_subject",
            "loops: {}",
            "loops: { similar: { same_subject: 13 } }",
        ),
        looser(
            "loops_similar.same_subject_failing",
            "loops: {}",
            "loops: { similar: { same_subject_failing: 5 } }",
        ),
        looser("loops_similar.same_result", "loops: {}", "loops: { similar: { same_result: 6 } }"),
        looser("loops_similar.among", "loops: {}", "loops: { similar: { among: 9 } }"),
        looser("loops.wait", "loops: { wait: { max_calls: 9 } }", "loops: {}"),
        looser("loops_wait.max_calls", "loops: {}", "loops: { wait: { max_calls: 61 } }"),
        looser(
            "loops_wait.within_seconds",
            "loops: {}",
            "loops: { wait: { within_seconds: 3601 } }",
        ),
        // Only the strict profile has a tool budget, and the higher layer decides it.
        looser(
            "loops.tool_budget",
            "loops: { profile: strict }",
            "loops: { profile: strict, tool_budget: { calls: 2 } }",
        ),
        looser(
            "loops_tool_budget.calls",
            "loops: { profile: strict }",
            "loops: { profile: strict, tool_budget: { calls: 2 } }",
        ),
        looser(
            "loops_tool_budget.seconds",
            "loops: { profile: strict }",
            "loops: { profile: strict, tool_budget: { seconds: 1 } }",
        ),
        // A tool that only the lower layer declares, and that the loop guard would ignore.
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
