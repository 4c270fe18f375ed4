//! `limits` and `iterations_extension`: allowances that only go down.

use jackline_engine::definition::Dimension;
use jackline_engine::definition::{Limit, Limits, Per};
use jackline_engine::models::usd;

use super::prelude::*;
use super::prices;
use crate::sections::tools::Tools;
use crate::values::tool_name;

static LIMITS_KEYS: [Key; 1] =
    [key("limits", Map(&LIMITS), "none", "Allowances that only go down.")];

static COUNTS_KEYS: [Key; 1] = [key(
    "iterations_extension",
    Count(1, I64),
    "25",
    "How many more iterations there are each time a person acknowledges a checkpoint.",
)];

const LIMIT_TAKES: Takes = OneOf(&[Count(0, I64), Map(&LIMIT), Nothing]);

const PER: [(&str, Per); 2] = [("session", Per::Session), ("turn", Per::Turn)];
const TAKES_PER: Takes = Word(&words_of::<_, 2>(&PER));

static LIMITS: Keys = Keys {
    id: "limits",
    of: "`limits`",
    doc: "A number alone is `{max: number}`. A limit is reached when `used >= max`. A hard one ends the session, or the \
          turn's calls; a soft one warns once. Hard `iterations` pause the session until a person acknowledges with \
          `jackline ack`, and hard `tool_calls` refuse that tool and nothing else. Sub-agents count.",
    known: &[
        key(
            "steps",
            LIMIT_TAKES,
            "none",
            "Everything an agent can repeat: proposed calls, also those that are denied; blocked stops; compactions; attempts that begin; \
             plans and outputs that have to be written again; overrides of the loop guard that hold; answers of an advisor; changes of the model.",
        ),
        key("wall_seconds", LIMIT_TAKES, "none", "Time since the start."),
        key(
            "cost_usd",
            OneOf(&[Usd, Map(&COST_LIMIT), Nothing]),
            "none",
            "Dollars: as reported, else by `prices`. A model without a price is named and not counted.",
        ),
        key(
            "input_tokens",
            LIMIT_TAKES,
            "none",
            "Tokens read (`input`). What came from a cache or went into one (`cache_read`, `cache_creation`) is not counted here; it is \
             in `cost_usd` and in the context gate.",
        ),
        key("output_tokens", LIMIT_TAKES, "none", "Tokens written."),
        key(
            "total_tokens",
            LIMIT_TAKES,
            "none",
            "`input` and `output`. What came from a cache or went into one is not counted here either; it is in `cost_usd` and in the \
             context gate.",
        ),
        key(
            "iterations",
            LIMIT_TAKES,
            "none; 100 in `jackline run`, `autonomous` and `strict`",
            "Iterations of an autonomous run.",
        ),
        key(
            "tool_calls",
            Names(0, "tool", &LIMIT_TAKES),
            "none",
            "Calls of single tools, also where a command line calls them. What was denied does not count.",
        ),
    ],
    needs: &[],
};

static LIMIT: Keys = Keys {
    id: "limit",
    of: "a limit",
    doc: "",
    known: &[
        key("max", Count(0, I64), "required", "The allowance."),
        key("soft", Flag, "`false`", "Whether reaching it only warns."),
        key("per", TAKES_PER, "`session`", "When it starts anew."),
    ],
    needs: &[Needs::All(&["max"])],
};

static COST_LIMIT: Keys = Keys {
    id: "cost_limit",
    of: "a limit on cost",
    doc: "",
    known: &[
        key("max", Usd, "required", "The allowance, in dollars."),
        key("soft", Flag, "`false`", "Whether reaching it only warns."),
        key("per", TAKES_PER, "`session`", "When it starts anew."),
    ],
    needs: &[Needs::All(&["max"])],
};

/// How many tools may have a limit of their own: each has counters in the state.
const TOOL_LIMITS_MAX: usize = 32;

/// The limits of one layer by dimension.
#[derive(Clone)]
pub(crate) struct DimensionLimits(Vec<(Dimension, Option<Demand<Limit>>)>);

impl DimensionLimits {
    /// The limit of a dimension.
    pub(crate) fn get(&self, dimension: Dimension) -> Option<&Demand<Limit>> {
        let found = self.0.iter().find(|(known, _)| *known == dimension);
        found.and_then(|(_, limit)| limit.as_ref())
    }
}

/// The limits of a session as a whole.
pub(crate) struct LimitsSection;

impl Section for LimitsSection {
    type Part = DimensionLimits;

    const KEYS: &'static [Key] = &LIMITS_KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&LIMITS, &LIMIT];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let limits = limits(&source.definition.limits);
        let limits = limits.map(|(dimension, limit)| (dimension, source.option(limit.as_ref())));
        DimensionLimits(limits.into())
    }

    fn follows_mode(limits: &Self::Part) -> bool {
        limits.0.iter().any(|(_, limit)| limit.is_some())
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let joined = high.limits.0.iter().map(|(dimension, above)| {
            let text = |value: &Limit| limit(*dimension, *value);
            let below = low.limits.get(*dimension);
            (*dimension, join_limit(above.as_ref(), below, text, join))
        });
        DimensionLimits(joined.collect())
    }

    fn describe(limits: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for (dimension, demand) in &limits.0 {
            lines.option(Subject::Limit, demand.as_ref(), |value| limit(*dimension, *value));
        }
    }

    fn put(limits: Self::Part, definition: &mut Definition) {
        for (dimension, demand) in limits.0 {
            let slots = slots(&mut definition.limits);
            for (_, slot) in slots.into_iter().filter(|(known, _)| *known == dimension) {
                *slot = demand.as_ref().map(|demand| demand.value);
            }
        }
    }
}

/// The counts that are listed after the guards of a session: the calls of single tools, and
/// how far an acknowledgement extends the iterations.
#[derive(Clone)]
pub(crate) struct CountDemands {
    iterations_extension: Demand<u64>,
    tool_calls: Vec<(String, Demand<Limit>)>,
}

pub(crate) struct CountsSection;

impl Section for CountsSection {
    type Part = CountDemands;

    const KEYS: &'static [Key] = &COUNTS_KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&COST_LIMIT];

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Limits { iterations_extension, tool_calls, .. } = &source.definition.limits;
        let each = |(tool, limit): &(String, Limit)| (tool.clone(), source.demand(*limit));
        CountDemands {
            iterations_extension: source.demand(*iterations_extension),
            tool_calls: tool_calls.iter().map(each).collect(),
        }
    }

    fn follows_mode(counts: &Self::Part) -> bool {
        !counts.tool_calls.is_empty()
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.counts, &low.counts);
        let (above, below) = (&high.iterations_extension, &low.iterations_extension);
        let iterations_extension =
            join.setting(above, below, |high, low| high <= low, extension, "has the smaller one");
        let mut tool_calls = high.tool_calls.clone();
        for (tool, limit) in &low.tool_calls {
            let Some((_, known)) = tool_calls.iter_mut().find(|(known, _)| known == tool) else {
                tool_calls.push((tool.clone(), limit.clone()));
                continue;
            };
            let text = |value: &Limit| tool_limit(tool, *value);
            if let Some(joined) = join_limit(Some(known), Some(limit), text, join) {
                *known = joined;
            }
        }
        CountDemands { iterations_extension, tool_calls }
    }

    fn describe(counts: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for (tool, limit) in &counts.tool_calls {
            lines.add(Subject::Limit, tool_limit(tool, limit.value), limit.layer);
        }
        let Demand { value, layer } = counts.iterations_extension;
        if value != Limits::default().iterations_extension {
            lines.add(Subject::Setting, extension(value), layer);
        }
    }

    fn put(counts: Self::Part, definition: &mut Definition) {
        definition.limits.iterations_extension = counts.iterations_extension.value;
        let plain = |(tool, limit): (String, Demand<Limit>)| (tool, limit.value);
        definition.limits.tool_calls = counts.tool_calls.into_iter().map(plain).collect();
    }
}

/// Limits name tools, so they are lowered once all tools are known. The prices depend on them.
pub(crate) fn lower(lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
    if let Some(node) = lowering.node("limits") {
        lowering.definition.limits = read(node, &lowering.tools, reader);
    }
    if let Some(node) = lowering.node("iterations_extension")
        && let Some(more) = reader.positive(node, "`iterations_extension`")
    {
        lowering.definition.limits.iterations_extension = more;
    }
    prices::lower(lowering, reader);
}

fn read(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Limits {
    let mut limits = Limits::default();
    for (key, node) in reader.fields(node, &LIMITS) {
        if key == "tool_calls" {
            limits.tool_calls = read_tool_calls(node, tools, reader);
        }
        for (dimension, slot) in slots(&mut limits).into_iter().filter(|(it, _)| it.word() == key) {
            let unit = if dimension == Dimension::CostUsd { Unit::Usd } else { Unit::Count };
            *slot = read_limit(key, node, unit, reader);
        }
    }
    limits
}

fn read_tool_calls(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Vec<(String, Limit)> {
    let mut limited: Vec<(String, Limit)> = Vec::new();
    for (key, value) in reader.map(node, "`limits.tool_calls`") {
        let known = tools.find(&key.text).map(ToOwned::to_owned);
        if known.is_none() && tools.is_closed() {
            let message =
                format!("this limit can never see `{}`: no such tool is declared", key.text);
            let hint = reader.meant(&key.text, tools.names(), || "add it to `tools`".to_owned());
            reader.complain_hint(key.at, message, hint);
            continue;
        }
        let name = known.unwrap_or_else(|| tool_name(&key.text, key.at, reader));
        let what = format!("tool_calls.{}", key.text);
        let Some(limit) = read_limit(&what, value, Unit::Count, reader) else {
            continue;
        };
        if limited.iter().any(|(known, _)| *known == name) {
            reader.complain(key.at, format!("`{name}` has two limits, by different names"));
        }
        limited.push((name, limit));
    }
    if limited.len() > TOOL_LIMITS_MAX {
        let message = format!("{} tools have limits; at most {TOOL_LIMITS_MAX} may", limited.len());
        reader.complain(node.at, message);
    }
    limited
}

/// The unit of a limit.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Usd,
}

impl Unit {
    fn keys(self) -> &'static Keys {
        match self {
            Self::Count => &LIMIT,
            Self::Usd => &COST_LIMIT,
        }
    }

    fn read(self, node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<u64> {
        match self {
            Self::Count => reader.count(node, what),
            Self::Usd => reader.usd(node, what),
        }
    }
}

fn read_limit(key: &str, node: &Node, unit: Unit, reader: &mut Reader<'_>) -> Option<Limit> {
    if node.value == NodeValue::Null {
        return None;
    }
    if let NodeValue::Map(_) = node.value {
        let (mut max, mut soft, mut per) = (None, false, Per::Session);
        let mut given = false;
        for (key, node) in reader.fields(node, unit.keys()) {
            match key {
                "max" => {
                    given = true;
                    max = unit.read(node, "`max`", reader);
                }
                "soft" => soft = reader.flag(node, "`soft`").unwrap_or(soft),
                _ => per = reader.word(node, "`per`", &PER).unwrap_or(per),
            }
        }
        if !given {
            reader.complain(node.at, format!("`limits.{key}` has no `max`"));
        }
        return max.map(|max| Limit { max, soft, per });
    }
    let max = unit.read(node, &format!("`limits.{key}`"), reader)?;
    Some(Limit { max, soft: false, per: Per::Session })
}

fn join_limit(
    high: Option<&Demand<Limit>>,
    low: Option<&Demand<Limit>>,
    text: impl Fn(&Limit) -> String,
    join: &mut LayerJoin,
) -> Option<Demand<Limit>> {
    join.option(high, low, Subject::Limit, &text, |join, high, low| {
        if implies(low.value, high.value) {
            return low.clone();
        }
        let why = "has one that this does not tighten";
        join.ignore(Subject::Limit, text(&low.value), low.layer, high.layer, why);
        high.clone()
    })
}

/// Whether a session within the limit `one` is also within `other`, and as hard.
fn implies(one: Limit, other: Limit) -> bool {
    // A soft limit warns once, and once a turn is more often than once a session.
    let as_often = one.per == Per::Session && !one.soft;
    one.max <= other.max && (!one.soft || other.soft) && (one.per == other.per || as_often)
}

/// The limit of each dimension, to be written.
fn slots(limits: &mut Limits) -> [(Dimension, &mut Option<Limit>); 7] {
    let Limits {
        steps,
        wall_seconds,
        cost_usd,
        input_tokens,
        output_tokens,
        total_tokens,
        iterations,
        iterations_extension: _,
        tool_calls: _,
    } = limits;
    [
        (Dimension::Steps, steps),
        (Dimension::WallSeconds, wall_seconds),
        (Dimension::CostUsd, cost_usd),
        (Dimension::InputTokens, input_tokens),
        (Dimension::OutputTokens, output_tokens),
        (Dimension::TotalTokens, total_tokens),
        (Dimension::Iterations, iterations),
    ]
}

/// The limit of each dimension.
pub fn limits(limits: &Limits) -> [(Dimension, Option<Limit>); 7] {
    slots(&mut limits.clone()).map(|(dimension, limit)| (dimension, *limit))
}

/// One limit.
pub fn limit(dimension: Dimension, limit: Limit) -> String {
    match dimension {
        Dimension::CostUsd => allowance(&format!("{} USD", usd(limit.max)), limit),
        _ => allowance(&format!("{} {}", limit.max, dimension.in_words()), limit),
    }
}

/// How often a tool may be called.
pub fn tool_limit(tool: &str, limit: Limit) -> String {
    allowance(&format!("{} calls of `{tool}`", limit.max), limit)
}

fn allowance(amount: &str, limit: Limit) -> String {
    let soft = if limit.soft { ", soft" } else { "" };
    let per = match limit.per {
        Per::Session => "session",
        Per::Turn => "turn",
    };
    format!("at most {amount} a {per}{soft}")
}

fn extension(more: u64) -> String {
    format!("iterations_extension: {more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser("limits.steps", "limits: { steps: 5 }", "limits: { steps: 9 }"),
        looser("limits.wall_seconds", "limits: { wall_seconds: 5 }", "limits: { wall_seconds: 9 }"),
        looser("limits.cost_usd", "limits: { cost_usd: 0.5 }", "limits: { cost_usd: 0.500001 }"),
        looser("limits.input_tokens", "limits: { input_tokens: 5 }", "limits: { input_tokens: 9 }"),
        looser(
            "limits.output_tokens",
            "limits: { output_tokens: 5 }",
            "limits: { output_tokens: 9 }",
        ),
        looser("limits.total_tokens", "limits: { total_tokens: 5 }", "limits: { total_tokens: 9 }"),
        looser("limits.iterations", "limits: { iterations: 5 }", "limits: { iterations: 9 }"),
        looser(
            "limits.tool_calls",
            "limits: { tool_calls: { a: 5 } }",
            "limits: { tool_calls: { a: 9 } }",
        ),
        looser("", "limits: { iterations: 5 }\niterations_extension: 5", "iterations_extension: 9"),
        looser(
            "limit.max",
            "limits: { steps: { max: 5, soft: true } }",
            "limits: { steps: { max: 9, soft: true } }",
        ),
        looser("limit.soft", "limits: { steps: 9 }", "limits: { steps: { max: 5, soft: true } }"),
        looser("limit.per", "limits: { steps: 9 }", "limits: { steps: { max: 5, per: turn } }"),
        looser(
            "limit.per",
            "limits: { steps: { max: 9, soft: true, per: turn } }",
            "limits: { steps: { max: 5, soft: true } }",
        ),
        looser(
            "cost_limit.max",
            "limits: { cost_usd: { max: 5 } }",
            "limits: { cost_usd: { max: 9 } }",
        ),
        looser(
            "cost_limit.soft",
            "limits: { cost_usd: 9 }",
            "limits: { cost_usd: { max: 5, soft: true } }",
        ),
        looser(
            "cost_limit.per",
            "limits: { cost_usd: 9 }",
            "limits: { cost_usd: { max: 5, per: turn } }",
        ),
        looser(
            "limit.max",
            "limits: { tool_calls: { a: { max: 5, per: turn } } }",
            "limits: { tool_calls: { a: { max: 9, per: turn } } }",
        ),
        looser(
            "limit.soft",
            "limits: { iterations: 9 }",
            "limits: { iterations: { max: 5, soft: true } }",
        ),
    ];
}
