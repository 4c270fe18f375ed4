//! `context`: what is done about a context that fills up.

use jackline_engine::definition::Context;

use super::prelude::*;

static KEYS: [Key; 1] = [key(
    "context",
    OneOf(&[Map(&CONTEXT), Nothing]),
    "none: nobody looks; on in `autonomous` and `strict`",
    "What is done about a context that fills up.",
)];

static CONTEXT: Keys = Keys {
    id: "context",
    of: "`context`",
    doc: "How full a context is comes from the latest usage record of each agent: what it read, from caches too, and wrote, \
          in percent of the window. Where nobody reports usage, lines of output are counted, and from such a guess the \
          agent is only warned. Calls are only held where the events come from whoever can compact (a \
          `session_started` without a `client`, or with `stdio` or `run`); any other client compacts itself, so there it is \
          briefed and told, and its stop is `bypassed`.",
    known: &[
        key(
            "window",
            OneOf(&[Count(1, I64), Nothing]),
            "what the client reports, else a built-in table by model, else unknown",
            "How many tokens the context holds.",
        ),
        key("warn", Count(1, 100), "75", "From here on the agent is told, once per rise."),
        key(
            "compact",
            Count(1, 100),
            "80",
            "From here on `.jackline/MISSION_BRIEFING.md` is written and the agent has to compact.",
        ),
        key(
            "block",
            Count(1, 100),
            "85",
            "From here on nothing runs but a compaction and what only reads the briefing; the guard writes it.",
        ),
        key(
            "min_freed_pct",
            Count(1, 100),
            "20",
            "A compaction that frees less of what was used is useless. What it brought is seen in the next usage record; a `freed` that is too little counts at once.",
        ),
        key(
            "ineffective_max",
            Count(1, U32),
            "2",
            "So many useless compactions in a row end the session.",
        ),
    ],
    needs: &[],
};

pub(crate) struct ContextSection;

impl Section for ContextSection {
    type Part = Option<Demand<Context>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&CONTEXT];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let is_off = node.value == NodeValue::Null;
        lowering.definition.context = (!is_off).then(|| read(node, reader));
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.option(source.definition.context.as_ref())
    }

    fn follows_mode(context: &Self::Part) -> bool {
        context.is_some()
    }

    /// The lower layer's context, where it is at least as strict in everything. A full context
    /// lets a stop pass unchecked where the client compacts itself. So a layer with checks also
    /// decides when a context is full.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let text = |context: &Context| format!("`context`: {}", text(*context));
        let check = high.completion.checks.first().filter(|_| !join.overrides());
        let (above, below) = (high.context.as_ref(), low.context.as_ref());
        if let (None, Some(below), Some(check)) = (above, below, check) {
            let why = "has checks that a full context would skip";
            join.ignore(Subject::Setting, text(&below.value), below.layer, check.layer, why);
            return None;
        }
        join.option(above, below, Subject::Setting, text, |join, high, low| {
            let same = (high.value.window, high.value.block) == (low.value.window, low.value.block);
            if is_as_strict(low.value, high.value) && (check.is_none() || same) {
                return low.clone();
            }
            let why = "has one that this does not tighten";
            join.ignore(Subject::Setting, text(&low.value), low.layer, high.layer, why);
            high.clone()
        })
    }

    fn describe(context: &Self::Part, lines: &mut EffectiveLines<'_>) {
        let text = |context: &Context| format!("context: {}", text(*context));
        lines.option(Subject::Setting, context.as_ref(), text);
    }

    fn put(context: Self::Part, definition: &mut Definition) {
        definition.context = context.map(|context| context.value);
    }
}

fn read(node: &Node, reader: &mut Reader<'_>) -> Context {
    let mut context = Context::default();
    for (key, node) in reader.fields(node, &CONTEXT) {
        let slot = match key {
            "window" if node.value == NodeValue::Null => continue,
            "window" => {
                context.window = reader.positive(node, "`context.window`");
                continue;
            }
            "ineffective_max" => {
                let slot = &mut context.ineffective_max;
                *slot = reader.positive(node, "`context.ineffective_max`").unwrap_or(*slot);
                continue;
            }
            "warn" => &mut context.warn,
            "compact" => &mut context.compact,
            "block" => &mut context.block,
            _ => &mut context.min_freed_pct,
        };
        let hint = |least, most| format!("percent, from {least} to {most}");
        reader.bounded_with_hint(key, node, &CONTEXT, slot, hint);
    }
    let Context { warn, compact, block, .. } = context;
    if !(warn <= compact && compact <= block) {
        let message = format!("`context` rises from {warn} over {compact} to {block}");
        let hint = "give `warn`, `compact` and `block` in rising order";
        reader.complain_hint(node.at, message, hint);
    }
    context
}

/// Whether one demands at least as much of a context as the other.
fn is_as_strict(one: Context, other: Context) -> bool {
    // A window that a file names can be too large; the window that a client reports can't.
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
}

/// From which fill of the context on something is done.
pub fn text(context: Context) -> String {
    let Context { window, warn, compact, block, .. } = context;
    let window = window.map_or_else(String::new, |window| format!(" of {window} tokens"));
    format!("warn at {warn} %, compact at {compact} %, block at {block} %{window}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, of_file, trusted, untrusted};

    pub(super) const LOOSER: &[Looser] = &[
        looser("context.window", "context: { window: 100 }", "context: { window: 200 }"),
        looser("context.window", "context: {}", "context: { window: 100 }"),
        looser("context.window", "context: { window: 100 }", "context: { warn: 70 }"),
        looser("context.warn", "context: {}", "context: { warn: 76 }"),
        looser("context.compact", "context: {}", "context: { compact: 84 }"),
        looser("context.block", "context: {}", "context: { block: 90 }"),
        // A full context lets a stop pass where the client compacts itself.
        looser("context.block", "context: {}\ncompletion: { clean: {} }", "context: { block: 81 }"),
        looser("context.min_freed_pct", "context: {}", "context: { min_freed_pct: 10 }"),
        looser("context.ineffective_max", "context: {}", "context: { ineffective_max: 3 }"),
    ];

    #[test]
    fn a_repositorys_full_context_skips_no_check() {
        let high = of_file("completion: { clean: {} }");
        let low = of_file("context: { warn: 1, compact: 1, block: 1 }");
        let combined = untrusted(&high, &low);
        assert_eq!(combined.definition.context, None);
        assert_eq!(
            ignored(&combined),
            [
                "`context`: warn at 1 %, compact at 1 %, block at 1 % ignored: the user layer has checks that a full context would skip; trust would let it"
            ]
        );
        assert_eq!(trusted(&high, &low).definition.context, low.context);
        // An earlier warning is accepted, and the check is skipped as before.
        let high = of_file("completion: { clean: {} }\ncontext: {}");
        let low = of_file("context: { warn: 50, compact: 60, ineffective_max: 1 }");
        assert_eq!(untrusted(&high, &low).definition.context, low.context);
    }
}
