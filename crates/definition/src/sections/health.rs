//! `health`: when a generated tool counts as reliable.

use jackline_engine::definition::HealthLimits;

use super::prelude::*;

static KEYS: [KeySpec; 1] =
    [key("health", Map(&HEALTH), "", "When a generated tool counts as reliable.")];

static HEALTH: MappingSpec = MappingSpec {
    id: "health",
    label: "`health`",
    doc: "A generated tool is a tool that a model wrote during an attempt. Failures with external causes, such as \
          `timeout` and `rate_limited`, do not count. Between the two percentages a tool keeps its state. \
          A degraded tool is no longer offered. If a model generates the same source again, the tool is offered on \
          probation, and only its new uses count.",
    entries: &[
        key("window", Count(1, 200), "20", "How many of the last uses of a tool count."),
        key("min_samples", Count(1, 200), "5", "A tool with fewer uses is not rated."),
        key(
            "degrade_above_pct",
            Count(0, 100),
            "60",
            "A tool becomes degraded if more of its uses fail, in percent.",
        ),
        key(
            "recover_below_pct",
            Count(0, 100),
            "30",
            "A new tool, or a tool on probation, becomes durable if fewer of its uses fail, in percent.",
        ),
        key(
            "pressure_exhausted",
            Count(1, 200),
            "2",
            "This many uses that ended because every retry was used put a tool under pressure. Then it becomes degraded above `recover_below_pct`.",
        ),
    ],
    required: &[],
};

pub(crate) struct HealthSection;

impl Section for HealthSection {
    /// None if the layer has the default.
    type Part = Option<Demand<HealthLimits>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&HEALTH];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut health = HealthLimits::default();
        for (key, node) in reader.fields(node, &HEALTH) {
            let slot = match key {
                "window" => &mut health.window,
                "min_samples" => &mut health.min_samples,
                "degrade_above_pct" => &mut health.degrade_above_pct,
                "pressure_exhausted" => &mut health.pressure_exhausted,
                _ => &mut health.recover_below_pct,
            };
            reader.bounded(key, node, &HEALTH, slot);
        }
        if health.min_samples > health.window {
            let message = "`health.min_samples` is greater than `health.window`, so no tool would ever be rated";
            reader.report(node.position, message);
        }
        if health.recover_below_pct > health.degrade_above_pct {
            let message = "`health.recover_below_pct` is greater than `health.degrade_above_pct`, so a tool could be degraded and durable";
            reader.report(node.position, message);
        }
        lowering.definition.health = health;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.non_default(&source.definition.health)
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        join.join_unordered(high.health.as_ref(), low.health.as_ref(), text)
    }

    fn describe(health: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_option(DemandSubject::Setting, health.as_ref(), |health| text(*health));
    }

    fn put(health: Self::Part, definition: &mut Definition) {
        if let Some(health) = health {
            definition.health = health.value;
        }
    }
}

/// Describes when a generated tool is degraded and when it recovers.
pub fn text(health: HealthLimits) -> String {
    let HealthLimits {
        window,
        min_samples,
        degrade_above_pct,
        recover_below_pct,
        pressure_exhausted,
    } = health;
    format!(
        "health: degraded above {degrade_above_pct} % failures in the last {window} uses, recovered below {recover_below_pct} %, rated after {min_samples} uses, under pressure after {pressure_exhausted} uses without a retry left"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No value of these keys is stricter than another, so the value of the higher layer wins.
    pub(super) const LOOSER: &[Looser] = &[
        looser("health.window", "health: { window: 10 }", "health: { window: 11 }"),
        looser("health.window", "health: { window: 10 }", "health: { window: 9 }"),
        looser("health.min_samples", "health: { min_samples: 3 }", "health: { min_samples: 4 }"),
        looser(
            "health.degrade_above_pct",
            "health: { degrade_above_pct: 50 }",
            "health: { degrade_above_pct: 70 }",
        ),
        looser(
            "health.recover_below_pct",
            "health: { recover_below_pct: 20 }",
            "health: { recover_below_pct: 40 }",
        ),
        looser(
            "health.pressure_exhausted",
            "health: { pressure_exhausted: 3 }",
            "health: { pressure_exhausted: 4 }",
        ),
    ];
}
