//! `health`: when a tool that an attempt made is good.

use jackline_engine::definition::HealthLimits;

use super::prelude::*;

static KEYS: [Key; 1] =
    [key("health", Map(&HEALTH), "", "When a tool that an attempt forged is good.")];

static HEALTH: Keys = Keys {
    id: "health",
    of: "`health`",
    doc: "Failures that are the world's fault, such as `timeout` and `rate_limited`, do not count. Between the two \
          percentages a tool stays what it was.",
    known: &[
        key("window", Count(1, 200), "20", "How many of its last uses count."),
        key("min_samples", Count(1, 200), "5", "With fewer uses nothing is said of it."),
        key(
            "degrade_above_pct",
            Count(0, 100),
            "60",
            "It is degraded where more of its uses fail, in percent.",
        ),
        key(
            "recover_below_pct",
            Count(0, 100),
            "30",
            "It is durable, also again, where fewer of its uses fail, in percent.",
        ),
    ],
    needs: &[],
};

pub(crate) struct HealthSection;

impl Section for HealthSection {
    /// None where the layer has the default.
    type Part = Option<Demand<HealthLimits>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&HEALTH];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut health = HealthLimits::default();
        for (key, node) in reader.fields(node, &HEALTH) {
            let slot = match key {
                "window" => &mut health.window,
                "min_samples" => &mut health.min_samples,
                "degrade_above_pct" => &mut health.degrade_above_pct,
                _ => &mut health.recover_below_pct,
            };
            reader.bounded(key, node, &HEALTH, slot);
        }
        if health.min_samples > health.window {
            let message = "`health.min_samples` is more than `health.window`, so nothing would ever be said of a tool";
            reader.complain(node.at, message);
        }
        if health.recover_below_pct > health.degrade_above_pct {
            let message = "`health.recover_below_pct` is above `health.degrade_above_pct`, so a tool could be both";
            reader.complain(node.at, message);
        }
        lowering.definition.health = health;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.unusual(&source.definition.health)
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        join.unordered(high.health.as_ref(), low.health.as_ref(), text)
    }

    fn describe(health: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.option(Subject::Setting, health.as_ref(), |health| text(*health));
    }

    fn put(health: Self::Part, definition: &mut Definition) {
        if let Some(health) = health {
            definition.health = health.value;
        }
    }
}

/// When a tool that an attempt made is good.
pub fn text(health: HealthLimits) -> String {
    let HealthLimits { window, min_samples, degrade_above_pct, recover_below_pct } = health;
    format!(
        "health: degraded above {degrade_above_pct} % of {window} uses, recovered below {recover_below_pct} %, from {min_samples} uses on"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither value of these is stricter than the other, so the higher layer's holds.
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
    ];
}
