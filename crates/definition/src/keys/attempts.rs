//! The keys of what a model wrote and is run as a transaction.

use super::Keys;
use super::Takes::{Count, List, Text};
use super::tables::key;

/// How often one reason may have something tried again.
const RETRIES_MAX: u64 = 100;

pub(crate) static ATTEMPTS: Keys = Keys {
    id: "attempts",
    of: "`attempts`",
    doc: "Numbers are retries: 1 is two tries, 0 switches them off, and what happened is the answer.",
    known: &[
        key(
            "provider",
            Count(0, RETRIES_MAX),
            "1",
            "After an answer of the model that can't be used.",
        ),
        key("guardrail", Count(0, RETRIES_MAX), "1", "After an objection."),
        key("execution", Count(0, RETRIES_MAX), "1", "After a fault of the run."),
        key(
            "outcome",
            Count(0, RETRIES_MAX),
            "1",
            "After an error outcome that may be tried again and is not the world's fault.",
        ),
        key(
            "ceiling",
            Count(1, RETRIES_MAX),
            "6",
            "How often the model is asked in all, whatever the others have left.",
        ),
        key(
            "terminal",
            List(0, &Text),
            "`missing_credentials`, `dependency_unavailable`, `unsupported_capability`",
            "Subtypes of violations that end a call at once.",
        ),
    ],
    needs: &[],
};

pub(crate) static HEALTH: Keys = Keys {
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
