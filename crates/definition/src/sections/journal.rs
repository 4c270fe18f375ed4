//! `journal`: redaction and retention of the journal.

use jackline_engine::definition::{JournalSettings, Redact};

use super::prelude::*;
use crate::layers::JoinRule;

static KEYS: [KeySpec; 1] =
    [key("journal", Map(&JOURNAL), "", "Redaction and retention of the journal.")];

const REDACT: [(&str, Redact); 2] = [("built-in", Redact::BuiltIn), ("off", Redact::Off)];

static JOURNAL: MappingSpec = MappingSpec {
    id: "journal",
    label: "`journal`",
    doc: "",
    entries: &[
        key(
            "redact",
            Word(&words_of::<_, 2>(&REDACT)),
            "`built-in`",
            "Whether Jackline removes secrets before it writes a record.",
        ),
        key(
            "retain_days",
            Count(1, U32_MAX),
            "30",
            "Jackline removes sessions that are older than this many days.",
        ),
        key(
            "retain_bytes",
            Count(0, I64_MAX),
            "1 GiB",
            "If the sessions of a workspace are larger than this, Jackline removes the oldest ones.",
        ),
    ],
    required: &[],
};

/// The demands of one layer on the journal.
#[derive(Clone)]
pub(crate) struct JournalDemands {
    redact: Demand<Redact>,
    retain_days: Demand<u32>,
    retain_bytes: Demand<u64>,
}

pub(crate) struct JournalSection;

impl Section for JournalSection {
    type Part = JournalDemands;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&JOURNAL];

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let journal = &mut lowering.definition.journal;
        for (key, node) in reader.fields(node, &JOURNAL) {
            match key {
                "redact" => {
                    if let Some(redact) = reader.word(node, "`journal.redact`", &REDACT) {
                        journal.redact = redact;
                    }
                }
                "retain_days" => {
                    if let Some(days) = reader.positive(node, "`journal.retain_days`") {
                        journal.retain_days = days;
                    }
                }
                _ => {
                    if let Some(bytes) = reader.count(node, "`journal.retain_bytes`") {
                        journal.retain_bytes = bytes;
                    }
                }
            }
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let JournalSettings { redact, retain_days, retain_bytes } = source.definition.journal;
        JournalDemands {
            redact: source.demand(redact),
            retain_days: source.demand(retain_days),
            retain_bytes: source.demand(retain_bytes),
        }
    }

    /// Secrets are removed if one layer demands it, even if the lower layer may override. The
    /// longer retention wins, because it satisfies both layers.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.journal, &low.journal);
        let rule = std::mem::replace(&mut join.rule, JoinRule::Tighten);
        let demands = |high: Redact, low: Redact| high == Redact::BuiltIn || low == Redact::Off;
        let why = "demands the removal of secrets";
        let redact = join.join_setting(&high.redact, &low.redact, demands, redact_text, why);
        join.rule = rule;
        JournalDemands {
            redact,
            retain_days: greater(&high.retain_days, &low.retain_days),
            retain_bytes: greater(&high.retain_bytes, &low.retain_bytes),
        }
    }

    fn describe(part: &Self::Part, lines: &mut DemandLines<'_>) {
        let JournalSettings { redact, retain_days, retain_bytes } = JournalSettings::default();
        lines.add_general_unless_default(redact, &part.redact, redact_text);
        let days = |days: u32| format!("journal.retain_days: {days}");
        lines.add_general_unless_default(retain_days, &part.retain_days, days);
        let bytes = |bytes: u64| format!("journal.retain_bytes: {bytes}");
        lines.add_general_unless_default(retain_bytes, &part.retain_bytes, bytes);
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.journal = JournalSettings {
            redact: part.redact.value,
            retain_days: part.retain_days.value,
            retain_bytes: part.retain_bytes.value,
        };
    }
}

fn greater<T: Clone + PartialOrd>(high: &Demand<T>, low: &Demand<T>) -> Demand<T> {
    if low.value > high.value { low.clone() } else { high.clone() }
}

fn redact_text(redact: Redact) -> String {
    let word = match redact {
        Redact::BuiltIn => "built-in",
        Redact::Off => "off",
    };
    format!("journal.redact: {word}")
}
