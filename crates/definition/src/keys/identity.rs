//! The keys of who an agent may be.

use super::Keys;
use super::Takes::{List, Nothing, OneOf, Text};
use super::tables::key;

pub(crate) static IDENTITY: Keys = Keys {
    id: "identity",
    of: "`identity`",
    doc: "Which agents may work is no key: a person approves them with `jackline identity approve`, and that lies in the state home.",
    known: &[
        key(
            "roles",
            List(1, &Text),
            "`developer`",
            "The roles in which an agent may call anything. One whose session names no role has none.",
        ),
        key(
            "workflow",
            OneOf(&[Text, Nothing]),
            "none",
            "The workflow that this runs in. An agent that was approved for another one is not approved here.",
        ),
    ],
    needs: &[],
};
