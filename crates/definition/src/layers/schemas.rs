//! Schemas of two layers: what the higher one demands stays.

use jackline_engine::definition::{Attempts, Output, Schemas};

use super::Subject;
use super::join::{How, Joining};
use super::parts::Said;

impl Joining {
    /// The schemas of both layers.
    pub(super) fn join_schemas(
        &mut self,
        high: &Said<Schemas>,
        low: &Said<Schemas>,
        how: How,
    ) -> Said<Schemas> {
        let by = if low.what == Schemas::default() { high.by } else { low.by };
        let (above, below) = (&high.what, &low.what);
        let mut kept = match how {
            How::Override => Schemas {
                attempts: if below.attempts == Attempts::default() {
                    above.attempts
                } else {
                    below.attempts
                },
                plan: below.plan.clone().or(above.plan.clone()),
                outputs: below.outputs.clone(),
            },
            How::Tighten => Schemas {
                attempts: fewer(above.attempts, below.attempts),
                plan: above.plan.clone().or(below.plan.clone()),
                outputs: above.outputs.clone(),
            },
        };
        let rest = if how == How::Override { &above.outputs } else { &below.outputs };
        let added: Vec<Output> =
            rest.iter().filter(|one| !has(&kept.outputs, one)).cloned().collect();
        kept.outputs.extend(added);
        let text = |what: &str| format!("`{what}`");
        if how == How::Tighten {
            if kept.attempts != below.attempts && below.attempts != Attempts::default() {
                self.ignore(
                    Subject::Setting,
                    text("schema"),
                    low.by,
                    high.by,
                    "allows fewer attempts",
                );
            }
            let differs = |one: &&Output| !kept.outputs.contains(one);
            for output in below.outputs.iter().filter(differs) {
                let named = format!("`outputs.{}`", output.name);
                self.ignore(Subject::Setting, named, low.by, high.by, "says what it looks like");
            }
            if below.plan.is_some() && kept.plan != below.plan {
                self.ignore(
                    Subject::Setting,
                    text("plan.schema"),
                    low.by,
                    high.by,
                    "says what it looks like",
                );
            }
        }
        Said { what: kept, by }
    }
}

fn has(outputs: &[Output], one: &Output) -> bool {
    outputs.iter().any(|known| known.name == one.name)
}

/// The smaller of each.
fn fewer(one: Attempts, other: Attempts) -> Attempts {
    Attempts {
        repair_max_attempts: one.repair_max_attempts.min(other.repair_max_attempts),
        repairs_per_run: one.repairs_per_run.min(other.repairs_per_run),
        correction_max_attempts: one.correction_max_attempts.min(other.correction_max_attempts),
    }
}
