//! The keys of what a model writes: how it has to look, and how often it may try.

use super::Keys;
use super::Takes::{Count, Schema};
use super::tables::{U32, key};

pub(crate) static SCHEMA: Keys = Keys {
    id: "schema",
    of: "`schema`",
    doc: "Arguments, plans and outputs that are not valid are cleaned up where nothing has to be guessed: fences, prose around \
          them, trailing commas and the like. What still can't be used is refused with what was expected where.",
    known: &[
        key(
            "repair_max_attempts",
            Count(0, U32),
            "2",
            "How often one payload may be written again; then the session ends with `SYSTEM_ERROR{schema}`.",
        ),
        key(
            "repairs_per_run",
            Count(0, U32),
            "20",
            "The same for all payloads of a session together.",
        ),
        key(
            "correction_max_attempts",
            Count(0, U32),
            "2",
            "How often a tool may be called that does not exist, without a call in between that runs, where unknown tools are denied.",
        ),
    ],
    needs: &[],
};

pub(crate) static PLAN: Keys = Keys {
    id: "plan",
    of: "`plan`",
    doc: "",
    known: &[key(
        "schema",
        Schema,
        "the built-in one",
        "What plans (`plan_proposed`) have to look like.",
    )],
    needs: &[],
};

pub(crate) static OUTPUT: Keys = Keys {
    id: "output",
    of: "an output",
    doc: "",
    known: &[key("schema", Schema, "required", "What it has to look like.")],
    needs: &[super::Needs::All(&["schema"])],
};
