//! The keys of allowances and of the context gate.

use super::Takes::{Count, Flag, Map, Names, Nothing, OneOf, Usd, Word};
use super::tables::{I64, U32, key};
use super::{Keys, Needs, Takes};

const LIMIT_TAKES: Takes = OneOf(&[Count(0, I64), Map(&LIMIT), Nothing]);

pub(crate) static LIMITS: Keys = Keys {
    id: "limits",
    of: "`limits`",
    doc: "A number alone is `{max: number}`. A limit is reached when `used >= max`. A hard one ends the session, or the \
          turn's calls; a soft one warns once. Hard `iterations` pause the session until a person acknowledges with \
          `jackline ack`, and hard `tool_calls` refuse that tool and nothing else. Sub-agents count.",
    known: &[
        key(
            "steps",
            LIMIT_TAKES,
            "none",
            "Everything an agent can repeat: proposed calls, also those that are denied; blocked stops; compactions; attempts that begin; \
             plans and outputs that have to be written again; overrides of the loop guard that hold; answers of an advisor; changes of the model.",
        ),
        key("wall_seconds", LIMIT_TAKES, "none", "Time since the start."),
        key(
            "cost_usd",
            OneOf(&[Usd, Map(&COST_LIMIT), Nothing]),
            "none",
            "Dollars: as reported, else by `prices`. A model without a price is named and not counted.",
        ),
        key(
            "input_tokens",
            LIMIT_TAKES,
            "none",
            "Tokens read (`input`). What came from a cache or went into one (`cache_read`, `cache_creation`) is not counted here; it is \
             in `cost_usd` and in the context gate.",
        ),
        key("output_tokens", LIMIT_TAKES, "none", "Tokens written."),
        key(
            "total_tokens",
            LIMIT_TAKES,
            "none",
            "`input` and `output`. What came from a cache or went into one is not counted here either; it is in `cost_usd` and in the \
             context gate.",
        ),
        key(
            "iterations",
            LIMIT_TAKES,
            "none; 100 in `jackline run`, `autonomous` and `strict`",
            "Iterations of an autonomous run.",
        ),
        key(
            "tool_calls",
            Names(0, "tool", &LIMIT_TAKES),
            "none",
            "Calls of single tools, also where a command line calls them. What was denied does not count.",
        ),
    ],
    needs: &[],
};

pub(crate) static COST_LIMIT: Keys = Keys {
    id: "cost_limit",
    of: "a limit on cost",
    doc: "",
    known: &[
        key("max", Usd, "required", "The allowance, in dollars."),
        key("soft", Flag, "`false`", "Whether reaching it only warns."),
        key("per", Word(&["session", "turn"]), "`session`", "When it starts anew."),
    ],
    needs: &[Needs::All(&["max"])],
};

pub(crate) static PRICE: Keys = Keys {
    id: "price",
    of: "a price",
    doc: "In dollars for a million tokens. A name fits a model if nothing but a date, a version of three digits or with a `v`, \
          `latest`, `default` or a mark such as `[1m]` follows it; of several that fit, the longest counts. Who serves it, as in \
          `anthropic/…` or `us.anthropic.…`, may stand before it. A price of your own holds for prompts of any length; some of \
          the built-in ones are higher for long prompts.",
    known: &[
        key("input", Usd, "required", "Tokens read."),
        key("output", Usd, "required", "Tokens written."),
        key("cache_read", Usd, "as `input`", "Tokens read from the provider's cache."),
        key("cache_creation", Usd, "as `input`", "Tokens written to the provider's cache."),
    ],
    needs: &[Needs::All(&["input", "output"])],
};

pub(crate) static CONTEXT: Keys = Keys {
    id: "context",
    of: "`context`",
    doc: "How full a context is comes from the latest usage record of each agent: what it read, from caches too, and wrote, \
          in percent of the window. Where nobody reports usage, lines of output are counted, and from such a guess the \
          agent is only warned. Calls are only held where the events come from whoever can compact (a \
          `session_started` without a `client`, or with `stdio` or `run`); any other client compacts itself, so there it is \
          briefed and told, and its stop is `bypassed`.",
    known: &[
        key(
            "window",
            OneOf(&[Count(1, I64), Nothing]),
            "what the client reports, else a built-in table by model, else unknown",
            "How many tokens the context holds.",
        ),
        key("warn", Count(1, 100), "75", "From here on the agent is told, once per rise."),
        key(
            "compact",
            Count(1, 100),
            "80",
            "From here on `.jackline/MISSION_BRIEFING.md` is written and the agent has to compact.",
        ),
        key(
            "block",
            Count(1, 100),
            "85",
            "From here on nothing runs but a compaction and what only reads the briefing; the guard writes it.",
        ),
        key(
            "min_freed_pct",
            Count(1, 100),
            "20",
            "A compaction that frees less of what was used is useless. What it brought is seen in the next usage record; a `freed` that is too little counts at once.",
        ),
        key(
            "ineffective_max",
            Count(1, U32),
            "2",
            "So many useless compactions in a row end the session.",
        ),
    ],
    needs: &[],
};

pub(crate) static LIMIT: Keys = Keys {
    id: "limit",
    of: "a limit",
    doc: "",
    known: &[
        key("max", Count(0, I64), "required", "The allowance."),
        key("soft", Flag, "`false`", "Whether reaching it only warns."),
        key("per", Word(&["session", "turn"]), "`session`", "When it starts anew."),
    ],
    needs: &[Needs::All(&["max"])],
};
