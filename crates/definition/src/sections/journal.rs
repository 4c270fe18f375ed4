//! `journal`: how the journal is kept.

use jackline_engine::definition::{Journal, Redact};

use super::prelude::*;
use crate::layers::JoinRule;

static KEYS: [Key; 1] = [key("journal", Map(&JOURNAL), "", "How the journal is kept.")];

const REDACT: [(&str, Redact); 2] = [("built-in", Redact::BuiltIn), ("off", Redact::Off)];

static JOURNAL: Keys = Keys {
    id: "journal",
    of: "`journal`",
    doc: "",
    known: &[
        key(
            "redact",
            Word(&words_of::<_, 2>(&REDACT)),
            "`built-in`",
            "Whether secrets are taken out before a record is made.",
        ),
        key("retain_days", Count(1, U32), "30", "Sessions older than this are removed."),
        key(
            "retain_bytes",
            Count(0, I64),
            "1 GiB",
            "The oldest sessions of a workspace are removed above this size.",
        ),
    ],
    needs: &[],
};

/// What one layer demands of the journal.
#[derive(Clone)]
pub(crate) struct JournalDemands {
    redact: Demand<Redact>,
    retain_days: Demand<u32>,
    retain_bytes: Demand<u64>,
}

pub(crate) struct JournalSection;

impl Section for JournalSection {
    type Part = JournalDemands;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&JOURNAL];

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
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
        let Journal { redact, retain_days, retain_bytes } = source.definition.journal;
        JournalDemands {
            redact: source.demand(redact),
            retain_days: source.demand(retain_days),
            retain_bytes: source.demand(retain_bytes),
        }
    }

    /// Secrets are taken out if one layer wants it, even where the lower one may override. A
    /// journal that is kept for longer takes nothing from any layer.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.journal, &low.journal);
        let rule = std::mem::replace(&mut join.rule, JoinRule::Tighten);
        let demands = |high: Redact, low: Redact| high == Redact::BuiltIn || low == Redact::Off;
        let why = "has secrets taken out";
        let redact = join.setting(&high.redact, &low.redact, demands, redact_text, why);
        join.rule = rule;
        JournalDemands {
            redact,
            retain_days: greater(&high.retain_days, &low.retain_days),
            retain_bytes: greater(&high.retain_bytes, &low.retain_bytes),
        }
    }

    fn describe(part: &Self::Part, lines: &mut EffectiveLines<'_>) {
        let Journal { redact, retain_days, retain_bytes } = Journal::default();
        lines.general_unless(redact, &part.redact, redact_text);
        let days = |days: u32| format!("journal.retain_days: {days}");
        lines.general_unless(retain_days, &part.retain_days, days);
        let bytes = |bytes: u64| format!("journal.retain_bytes: {bytes}");
        lines.general_unless(retain_bytes, &part.retain_bytes, bytes);
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.journal = Journal {
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
