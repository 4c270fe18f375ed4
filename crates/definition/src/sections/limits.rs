//! `limits` and `iterations_extension`: budgets that only go down.

use jackline_engine::definition::LimitDimension;
use jackline_engine::definition::{BudgetLimit, LimitPeriod, SessionLimits};
use jackline_engine::models::format_usd;

use super::prelude::*;
use super::prices;
use crate::sections::tools::DeclaredTools;
use crate::values::read_tool_name;

static LIMITS_KEYS: [KeySpec; 1] =
    [key("limits", Map(&LIMITS), "none", "Budgets that only go down.")];

static COUNTS_KEYS: [KeySpec; 1] = [key(
    "iterations_extension",
    Count(1, I64_MAX),
    "25",
    "How many more iterations a person allows with each `jackline ack` of a checkpoint.",
)];

const LIMIT_VALUE: ValueType = OneOf(&[Count(0, I64_MAX), Map(&LIMIT), Nothing]);

const PER: [(&str, LimitPeriod); 2] =
    [("session", LimitPeriod::Session), ("turn", LimitPeriod::Turn)];
const PER_VALUE: ValueType = Word(&words_of::<_, 2>(&PER));

static LIMITS: MappingSpec = MappingSpec {
    id: "limits",
    label: "`limits`",
    doc: "A number alone is `{max: number}`. A limit is reached when `used >= max`. A hard limit ends the session, or the \
          calls of the turn; a soft limit warns once. Hard `iterations` pause the session until a person acknowledges with \
          `jackline ack`, and hard `tool_calls` only refuse that tool. The usage of sub-agents counts.",
    entries: &[
        key(
            "steps",
            LIMIT_VALUE,
            "none",
            "Everything that an agent can repeat: proposed calls, including denied ones; blocked stops; compactions; started attempts; \
             plans and outputs that need a correction; enforced overrides of the loop guard; advice of an advisor; changes of the model.",
        ),
        key("wall_seconds", LIMIT_VALUE, "none", "Time since the start of the session."),
        key(
            "cost_usd",
            OneOf(&[Usd, Map(&COST_LIMIT), Nothing]),
            "none",
            "Cost in dollars: as reported, else computed from `prices`. A model without a price is reported and not counted.",
        ),
        key(
            "input_tokens",
            LIMIT_VALUE,
            "none",
            "Tokens read (`input`). Tokens that were read from or written to a cache (`cache_read`, `cache_creation`) do not count here; \
             they count in `cost_usd` and in the context gate.",
        ),
        key("output_tokens", LIMIT_VALUE, "none", "Tokens written."),
        key(
            "total_tokens",
            LIMIT_VALUE,
            "none",
            "`input` and `output`. Tokens that were read from or written to a cache do not count here; they count in `cost_usd` and in \
             the context gate.",
        ),
        key(
            "iterations",
            LIMIT_VALUE,
            "none; 100 in `jackline run`, `autonomous` and `strict`",
            "Iterations of an autonomous run.",
        ),
        key(
            "tool_calls",
            Names(0, "tool", &LIMIT_VALUE),
            "none",
            "Calls of single tools, including calls within command lines. Denied calls do not count.",
        ),
    ],
    required: &[],
};

static LIMIT: MappingSpec = MappingSpec {
    id: "limit",
    label: "a limit",
    doc: "",
    entries: &[
        key("max", Count(0, I64_MAX), "required", "The limit."),
        key("soft", Flag, "`false`", "Whether reaching the limit only warns."),
        key("per", PER_VALUE, "`session`", "The period after which the count restarts."),
    ],
    required: &[RequiredKeys::All(&["max"])],
};

static COST_LIMIT: MappingSpec = MappingSpec {
    id: "cost_limit",
    label: "a limit on cost",
    doc: "",
    entries: &[
        key("max", Usd, "required", "The limit in dollars."),
        key("soft", Flag, "`false`", "Whether reaching the limit only warns."),
        key("per", PER_VALUE, "`session`", "The period after which the count restarts."),
    ],
    required: &[RequiredKeys::All(&["max"])],
};

/// The maximum number of tools with a limit. Each one has counters in the session state.
const TOOL_LIMITS_MAX: usize = 32;

/// The limits of one layer, by dimension.
#[derive(Clone)]
pub(crate) struct DimensionLimits(Vec<(LimitDimension, Option<Demand<BudgetLimit>>)>);

impl DimensionLimits {
    /// Returns the limit of a dimension.
    pub(crate) fn get(&self, dimension: LimitDimension) -> Option<&Demand<BudgetLimit>> {
        let found = self.0.iter().find(|(known, _)| *known == dimension);
        found.and_then(|(_, limit)| limit.as_ref())
    }
}

/// The limits of a session as a whole.
pub(crate) struct LimitsSection;

impl Section for LimitsSection {
    type Part = DimensionLimits;

    const KEYS: &'static [KeySpec] = &LIMITS_KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&LIMITS, &LIMIT];

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
            let text = |value: &BudgetLimit| limit(*dimension, *value);
            let below = low.limits.get(*dimension);
            (*dimension, join_limit(above.as_ref(), below, text, join))
        });
        DimensionLimits(joined.collect())
    }

    fn describe(limits: &Self::Part, lines: &mut DemandLines<'_>) {
        for (dimension, demand) in &limits.0 {
            lines.add_option(DemandSubject::Limit, demand.as_ref(), |value| {
                limit(*dimension, *value)
            });
        }
    }

    fn put(limits: Self::Part, definition: &mut Definition) {
        for (dimension, demand) in limits.0 {
            let slots = limit_slots(&mut definition.limits);
            for (_, slot) in slots.into_iter().filter(|(known, _)| *known == dimension) {
                *slot = demand.as_ref().map(|demand| demand.value);
            }
        }
    }
}

/// The limits that are listed after the guards of a session: the calls of single tools, and the
/// iterations that an acknowledgement adds.
#[derive(Clone)]
pub(crate) struct CountDemands {
    iterations_extension: Demand<u64>,
    tool_calls: Vec<(String, Demand<BudgetLimit>)>,
}

pub(crate) struct CountsSection;

impl Section for CountsSection {
    type Part = CountDemands;

    const KEYS: &'static [KeySpec] = &COUNTS_KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&COST_LIMIT];

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let SessionLimits { iterations_extension, tool_calls, .. } = &source.definition.limits;
        let each = |(tool, limit): &(String, BudgetLimit)| (tool.clone(), source.demand(*limit));
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
        let iterations_extension = join.join_setting(
            above,
            below,
            |high, low| high <= low,
            extension,
            "has a smaller one",
        );
        let mut tool_calls = high.tool_calls.clone();
        for (tool, limit) in &low.tool_calls {
            let Some((_, known)) = tool_calls.iter_mut().find(|(known, _)| known == tool) else {
                tool_calls.push((tool.clone(), limit.clone()));
                continue;
            };
            let text = |value: &BudgetLimit| tool_limit(tool, *value);
            if let Some(joined) = join_limit(Some(known), Some(limit), text, join) {
                *known = joined;
            }
        }
        CountDemands { iterations_extension, tool_calls }
    }

    fn describe(counts: &Self::Part, lines: &mut DemandLines<'_>) {
        for (tool, limit) in &counts.tool_calls {
            lines.add(DemandSubject::Limit, tool_limit(tool, limit.value), limit.layer);
        }
        let Demand { value, layer } = counts.iterations_extension;
        if value != SessionLimits::default().iterations_extension {
            lines.add(DemandSubject::Setting, extension(value), layer);
        }
    }

    fn put(counts: Self::Part, definition: &mut Definition) {
        definition.limits.iterations_extension = counts.iterations_extension.value;
        let plain = |(tool, limit): (String, Demand<BudgetLimit>)| (tool, limit.value);
        definition.limits.tool_calls = counts.tool_calls.into_iter().map(plain).collect();
    }
}

/// Lowers the limits after all tools are known, because limits name tools. Lowers the prices last,
/// because they depend on the limits.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
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

fn read(node: &YamlNode, tools: &DeclaredTools, reader: &mut NodeReader<'_>) -> SessionLimits {
    let mut limits = SessionLimits::default();
    for (key, node) in reader.fields(node, &LIMITS) {
        if key == "tool_calls" {
            limits.tool_calls = read_tool_calls(node, tools, reader);
        }
        for (dimension, slot) in
            limit_slots(&mut limits).into_iter().filter(|(it, _)| it.as_str() == key)
        {
            let unit = if dimension == LimitDimension::CostUsd {
                LimitUnit::Usd
            } else {
                LimitUnit::Count
            };
            *slot = read_limit(key, node, unit, reader);
        }
    }
    limits
}

fn read_tool_calls(
    node: &YamlNode,
    tools: &DeclaredTools,
    reader: &mut NodeReader<'_>,
) -> Vec<(String, BudgetLimit)> {
    let mut limited: Vec<(String, BudgetLimit)> = Vec::new();
    for (key, value) in reader.map(node, "`limits.tool_calls`") {
        let known = tools.declared_name(&key.text).map(ToOwned::to_owned);
        if known.is_none() && tools.is_closed() {
            let message =
                format!("this limit can never see `{}`: no such tool is declared", key.text);
            let hint = reader.suggest(&key.text, tools.names(), || "add it to `tools`".to_owned());
            reader.report_with_hint(key.position, message, hint);
            continue;
        }
        let name = known.unwrap_or_else(|| read_tool_name(&key.text, key.position, reader));
        let what = format!("tool_calls.{}", key.text);
        let Some(limit) = read_limit(&what, value, LimitUnit::Count, reader) else {
            continue;
        };
        if limited.iter().any(|(known, _)| *known == name) {
            reader.report(key.position, format!("`{name}` has two limits under different names"));
        }
        limited.push((name, limit));
    }
    if limited.len() > TOOL_LIMITS_MAX {
        let message =
            format!("{} tools have limits; at most {TOOL_LIMITS_MAX} are supported", limited.len());
        reader.report(node.position, message);
    }
    limited
}

/// The unit of a limit.
#[derive(Clone, Copy)]
enum LimitUnit {
    Count,
    Usd,
}

impl LimitUnit {
    fn keys(self) -> &'static MappingSpec {
        match self {
            Self::Count => &LIMIT,
            Self::Usd => &COST_LIMIT,
        }
    }

    fn read(self, node: &YamlNode, what: &str, reader: &mut NodeReader<'_>) -> Option<u64> {
        match self {
            Self::Count => reader.count(node, what),
            Self::Usd => reader.usd(node, what),
        }
    }
}

fn read_limit(
    key: &str,
    node: &YamlNode,
    unit: LimitUnit,
    reader: &mut NodeReader<'_>,
) -> Option<BudgetLimit> {
    if node.value == YamlValue::Null {
        return None;
    }
    if let YamlValue::Map(_) = node.value {
        let (mut max, mut soft, mut per) = (None, false, LimitPeriod::Session);
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
            reader.report(node.position, format!("`limits.{key}` needs a `max`"));
        }
        return max.map(|max| BudgetLimit { max, soft, per });
    }
    let max = unit.read(node, &format!("`limits.{key}`"), reader)?;
    Some(BudgetLimit { max, soft: false, per: LimitPeriod::Session })
}

fn join_limit(
    high: Option<&Demand<BudgetLimit>>,
    low: Option<&Demand<BudgetLimit>>,
    text: impl Fn(&BudgetLimit) -> String,
    join: &mut LayerJoin,
) -> Option<Demand<BudgetLimit>> {
    join.join_option(high, low, DemandSubject::Limit, &text, |join, high, low| {
        if is_within(low.value, high.value) {
            return low.clone();
        }
        let why = "already has one, and this one is not stricter";
        join.report_ignored(DemandSubject::Limit, text(&low.value), low.layer, high.layer, why);
        high.clone()
    })
}

/// Whether a session within the limit `one` is also within `other`, and `one` is as hard.
fn is_within(one: BudgetLimit, other: BudgetLimit) -> bool {
    // A soft limit warns once per period, and a warning in each turn is more than one per session.
    let as_often = one.per == LimitPeriod::Session && !one.soft;
    one.max <= other.max && (!one.soft || other.soft) && (one.per == other.per || as_often)
}

/// Returns mutable access to the limit of each dimension.
fn limit_slots(limits: &mut SessionLimits) -> [(LimitDimension, &mut Option<BudgetLimit>); 7] {
    let SessionLimits {
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
        (LimitDimension::Steps, steps),
        (LimitDimension::WallSeconds, wall_seconds),
        (LimitDimension::CostUsd, cost_usd),
        (LimitDimension::InputTokens, input_tokens),
        (LimitDimension::OutputTokens, output_tokens),
        (LimitDimension::TotalTokens, total_tokens),
        (LimitDimension::Iterations, iterations),
    ]
}

/// Returns the limit of each dimension.
pub fn limits(limits: &SessionLimits) -> [(LimitDimension, Option<BudgetLimit>); 7] {
    limit_slots(&mut limits.clone()).map(|(dimension, limit)| (dimension, *limit))
}

/// Describes one limit.
pub fn limit(dimension: LimitDimension, limit: BudgetLimit) -> String {
    match dimension {
        LimitDimension::CostUsd => allowance(&format!("{} USD", format_usd(limit.max)), limit),
        _ => allowance(&format!("{} {}", limit.max, dimension.in_words()), limit),
    }
}

/// Describes the limit on the calls of a tool.
pub fn tool_limit(tool: &str, limit: BudgetLimit) -> String {
    allowance(&format!("{} calls of `{tool}`", limit.max), limit)
}

fn allowance(amount: &str, limit: BudgetLimit) -> String {
    let soft = if limit.soft { ", soft" } else { "" };
    let per = match limit.per {
        LimitPeriod::Session => "session",
        LimitPeriod::Turn => "turn",
    };
    format!("at most {amount} per {per}{soft}")
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
