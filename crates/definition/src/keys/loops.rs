//! The keys of the loop guard.

use jackline_engine::definition::LOOPS_WINDOW_MAX;

use super::Keys;
use super::Takes::{Count, Flag, List, Map, Pointer, Word};
use super::tables::{KINDS, MODES, U32, key};

const U16: u64 = u16::MAX as u64;
const WINDOW: u64 = LOOPS_WINDOW_MAX as u64;

pub(crate) static LOOPS: Keys = Keys {
    id: "loops",
    of: "`loops`",
    doc: "An agent that does the same again and learns nothing from it. The same call with another result is no repetition. \
          `graded` tells the agent, then pauses, then stops. `strict` puts a typed override in force, and the call that \
          disregards it stops the session before it runs. Only a person's message starts the counters anew.",
    known: &[
        key(
            "mode",
            Word(MODES),
            "`mode` where a file gives `loops` or extends `autonomous`; else `observe`",
            "Whether its answers hold.",
        ),
        key("profile", Word(&["strict", "graded"]), "`graded`", "How the answers rise."),
        key("history", Count(8, 64), "64", "How many calls of an actor are remembered."),
        key("strict", Map(&LOOPS_STRICT), "", "The levels of the strict profile."),
        key("graded", Map(&LOOPS_GRADED), "", "The levels of the graded profile."),
        key("cycle", Map(&LOOPS_CYCLE), "", "When several calls that go round count."),
        key(
            "errors",
            Map(&LOOPS_ERRORS),
            "",
            "When the same error counts, whatever the arguments.",
        ),
        key(
            "volatile",
            List(0, &Pointer),
            "none",
            "Where arguments hold what changes from call to call and says nothing.",
        ),
        key(
            "transparent",
            List(0, &Word(KINDS)),
            "`think`",
            "Kinds of tools that are passed over.",
        ),
    ],
    needs: &[],
};

pub(crate) static LOOPS_STRICT: Keys = Keys {
    id: "loops_strict",
    of: "`loops.strict`",
    doc: "",
    known: &[
        key("window", Count(2, WINDOW), "3", "Among how many of the latest calls."),
        key(
            "threshold",
            Count(2, WINDOW),
            "3",
            "So many that are the same put an override in force.",
        ),
        key(
            "override_retries",
            Count(1, 100),
            "1",
            "The repeat after the override that stops. Those before it are denied.",
        ),
    ],
    needs: &[],
};

pub(crate) static LOOPS_GRADED: Keys = Keys {
    id: "loops_graded",
    of: "`loops.graded`",
    doc: "So many of the same in a row. Calls that are denied for the same reason count alike.",
    known: &[
        key("soft", Count(2, U16), "3", "The agent is told."),
        key("hard", Count(2, U16), "5", "The session pauses."),
        key("infinite", Count(2, U16), "10", "The session stops."),
    ],
    needs: &[],
};

pub(crate) static LOOPS_CYCLE: Keys = Keys {
    id: "loops_cycle",
    of: "`loops.cycle`",
    doc: "",
    known: &[
        key("period_max", Count(2, 8), "8", "Of how many calls at most."),
        key("repeats", Count(2, 16), "3", "How often it was gone through."),
    ],
    needs: &[],
};

pub(crate) static LOOPS_ERRORS: Keys = Keys {
    id: "loops_errors",
    of: "`loops.errors`",
    doc: "",
    known: &[
        key("soft", Count(2, U16), "5", "So many in a row, and the agent is told."),
        key("hard", Count(2, U16), "8", "So many in a row, and the session pauses."),
    ],
    needs: &[],
};

pub(crate) static POLL: Keys = Keys {
    id: "poll",
    of: "`poll`",
    doc: "A tool that is asked again and again whether something has happened is not in a loop, up to here.",
    known: &[
        key("until_changed", Flag, "`true`", "Whether another result starts the count anew."),
        key("max_calls", Count(1, U32), "60", "So many calls with the same result."),
        key("within_seconds", Count(1, U32), "1800", "For so long."),
    ],
    needs: &[],
};
