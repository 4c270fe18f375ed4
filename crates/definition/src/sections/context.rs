//! `context`: how Jackline reacts when the context of a model fills up.

use jackline_engine::definition::ContextThresholds;

use super::prelude::*;

static KEYS: [KeySpec; 1] = [key(
    "context",
    OneOf(&[Map(&CONTEXT), Nothing]),
    "none: no check; on in `autonomous` and `strict`",
    "How Jackline reacts when the context of a model fills up.",
)];

static CONTEXT: MappingSpec = MappingSpec {
    id: "context",
    label: "`context`",
    doc: "The fill of a context comes from the latest usage record of each agent: the tokens that it read (also from caches) \
          and wrote, in percent of the window. If the client reports no usage, Jackline estimates the fill from the lines of \
          output, and such an estimate only leads to a warning. Calls are blocked only if the client can compact on request (a \
          `session_started` without a `client`, or with `stdio` or `run`). Any other client compacts by its own rules; there \
          Jackline writes the briefing, warns the agent, and its stop is `bypassed`.",
    entries: &[
        key(
            "window",
            OneOf(&[Count(1, I64_MAX), Nothing]),
            "the window that the client reports, else a built-in table by model, else unknown",
            "The size of the context in tokens.",
        ),
        key(
            "warn",
            Count(1, 100),
            "75",
            "At this fill the agent is warned, once each time the fill rises to it.",
        ),
        key(
            "compact",
            Count(1, 100),
            "80",
            "At this fill Jackline writes `.jackline/MISSION_BRIEFING.md`, and the agent must compact.",
        ),
        key(
            "block",
            Count(1, 100),
            "85",
            "At this fill only a compaction and calls that read the briefing may run. Jackline writes the briefing.",
        ),
        key(
            "min_freed_pct",
            Count(1, 100),
            "20",
            "A compaction that frees less than this part of the used tokens is useless. The next usage record shows the result; a reported `freed` that is too small counts at once.",
        ),
        key(
            "ineffective_max",
            Count(1, U32_MAX),
            "2",
            "This many useless compactions in a row end the session.",
        ),
        key(
            "estimate_lines",
            Count(1, U32_MAX),
            "500",
            "Without usage records, this many lines of output count as 70 % of the context.",
        ),
        key(
            "restarts_max",
            Count(0, U32_MAX),
            "2",
            "How often in a row `jackline run` restarts a full conversation without new work. Then the next engine takes over.",
        ),
    ],
    required: &[],
};

pub(crate) struct ContextSection;

impl Section for ContextSection {
    type Part = Option<Demand<ContextThresholds>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&CONTEXT];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let is_off = node.value == YamlValue::Null;
        lowering.definition.context = (!is_off).then(|| read(node, reader));
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.option(source.definition.context.as_ref())
    }

    fn follows_mode(context: &Self::Part) -> bool {
        context.is_some()
    }

    /// Takes the context of the lower layer if every value is at least as strict. With a client
    /// that compacts by its own rules, a full context lets a stop pass without checks. So a layer
    /// with checks also decides when a context is full.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let text = |context: &ContextThresholds| format!("`context`: {}", text(*context));
        let check = high.completion.checks.first().filter(|_| !join.overrides());
        let (above, below) = (high.context.as_ref(), low.context.as_ref());
        if let (None, Some(below), Some(check)) = (above, below, check) {
            let why = "has checks that a full context would skip";
            join.report_ignored(
                DemandSubject::Setting,
                text(&below.value),
                below.layer,
                check.layer,
                why,
            );
            return None;
        }
        join.join_option(above, below, DemandSubject::Setting, text, |join, high, low| {
            let same = (high.value.window, high.value.block) == (low.value.window, low.value.block);
            if is_as_strict(low.value, high.value) && (check.is_none() || same) {
                return low.clone();
            }
            let why = "already has one, and this one is not stricter";
            join.report_ignored_setting(text(&low.value), (low.layer, high.layer), why);
            high.clone()
        })
    }

    fn describe(context: &Self::Part, lines: &mut DemandLines<'_>) {
        let text = |context: &ContextThresholds| format!("context: {}", text(*context));
        lines.add_option(DemandSubject::Setting, context.as_ref(), text);
    }

    fn put(context: Self::Part, definition: &mut Definition) {
        definition.context = context.map(|context| context.value);
    }
}

fn read(node: &YamlNode, reader: &mut NodeReader<'_>) -> ContextThresholds {
    let mut context = ContextThresholds::default();
    for (key, node) in reader.fields(node, &CONTEXT) {
        let slot = match key {
            "window" if node.value == YamlValue::Null => continue,
            "window" => {
                context.window = reader.positive(node, "`context.window`");
                continue;
            }
            "ineffective_max" => {
                let slot = &mut context.ineffective_max;
                *slot = reader.positive(node, "`context.ineffective_max`").unwrap_or(*slot);
                continue;
            }
            "estimate_lines" => {
                let slot = &mut context.estimate_lines;
                *slot = reader.positive(node, "`context.estimate_lines`").unwrap_or(*slot);
                continue;
            }
            "restarts_max" => {
                let slot = &mut context.restarts_max;
                *slot = reader.count(node, "`context.restarts_max`").unwrap_or(*slot);
                continue;
            }
            "warn" => &mut context.warn,
            "compact" => &mut context.compact,
            "block" => &mut context.block,
            _ => &mut context.min_freed_pct,
        };
        let hint = |least, most| format!("use a percentage from {least} to {most}");
        reader.bounded_with_hint(key, node, &CONTEXT, slot, hint);
    }
    let ContextThresholds { warn, compact, block, .. } = context;
    if !(warn <= compact && compact <= block) {
        let message = format!(
            "`context` is not in rising order: warn {warn}, compact {compact}, block {block}"
        );
        let hint = "give `warn`, `compact` and `block` in rising order";
        reader.report_with_hint(node.position, message, hint);
    }
    context
}

/// Whether `one` is at least as strict as `other` in every value.
fn is_as_strict(one: ContextThresholds, other: ContextThresholds) -> bool {
    // A window in a file can be larger than the real one; a window that a client reports can't.
    let window = match (one.window, other.window) {
        (None, None) => true,
        (Some(one), Some(other)) => one <= other,
        (Some(_), None) | (None, Some(_)) => false,
    };
    window
        && one.warn <= other.warn
        && one.compact <= other.compact
        && one.block <= other.block
        && one.min_freed_pct >= other.min_freed_pct
        && one.ineffective_max <= other.ineffective_max
        && one.estimate_lines <= other.estimate_lines
        && one.restarts_max <= other.restarts_max
}

/// Describes the levels of the context gate.
pub fn text(context: ContextThresholds) -> String {
    let ContextThresholds { window, warn, compact, block, .. } = context;
    let window = window.map_or_else(String::new, |window| format!(" of {window} tokens"));
    format!("warn at {warn} %, compact at {compact} %, block at {block} %{window}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, load_definition, trusted, untrusted};

    pub(super) const LOOSER: &[Looser] = &[
        looser("context.window", "context: { window: 100 }", "context: { window: 200 }"),
        looser("context.window", "context: {}", "context: { window: 100 }"),
        looser("context.window", "context: { window: 100 }", "context: { warn: 70 }"),
        looser("context.warn", "context: {}", "context: { warn: 76 }"),
        looser("context.compact", "context: {}", "context: { compact: 84 }"),
        looser("context.block", "context: {}", "context: { block: 90 }"),
        // A full context lets a stop pass if the client compacts by its own rules.
        looser("context.block", "context: {}\ncompletion: { clean: {} }", "context: { block: 81 }"),
        looser("context.min_freed_pct", "context: {}", "context: { min_freed_pct: 10 }"),
        looser("context.ineffective_max", "context: {}", "context: { ineffective_max: 3 }"),
        looser("context.estimate_lines", "context: {}", "context: { estimate_lines: 501 }"),
        looser("context.restarts_max", "context: {}", "context: { restarts_max: 3 }"),
    ];

    #[test]
    fn a_repositorys_full_context_skips_no_check() {
        let high = load_definition("completion: { clean: {} }");
        let low = load_definition("context: { warn: 1, compact: 1, block: 1 }");
        let combined = untrusted(&high, &low);
        assert_eq!(combined.definition.context, None);
        assert_eq!(
            ignored(&combined),
            [
                "`context`: warn at 1 %, compact at 1 %, block at 1 % ignored: the user layer has checks that a full context would skip; trust would allow it"
            ]
        );
        assert_eq!(trusted(&high, &low).definition.context, low.context);
        // An earlier warning is accepted, and the check is skipped as before.
        let high = load_definition("completion: { clean: {} }\ncontext: {}");
        let low = load_definition("context: { warn: 50, compact: 60, ineffective_max: 1 }");
        assert_eq!(untrusted(&high, &low).definition.context, low.context);
    }
}
