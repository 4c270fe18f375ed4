//! The keys of who does the work of a supervised run, and of who is asked where it is stuck.

use super::Takes::{Count, Form, List, Map, OneOf, Text, Word};
use super::tables::{I64, U32, key};
use super::{Keys, Needs};

/// How a model can be spoken to.
pub(crate) const PROVIDERS: &[&str] =
    &["anthropic", "openai", "openai-chat", "gemini", "scripted", "local"];

/// What a model can be tried for.
pub(crate) const MODEL_OCCASIONS: &[&str] = &["overload", "cost", "offline", "sensitive"];

pub(crate) static MODEL: Keys = Keys {
    id: "model",
    of: "`models`",
    doc: "A `provider` with its `model`, or a `worker`: an agent with a loop of its own. Two can't go by the same name, which is \
          `provider/model`, or the worker's with the model it is told to use. In the definition of a repository, a worker, `provider: local`, \
          `url` and `key_env` count only once a person has said `jackline trust`.",
    known: &[
        key(
            "provider",
            Word(PROVIDERS),
            "",
            "How it is spoken to. `openai-chat` is what most other servers speak, too; `local` is a GGUF file that runs in the same process.",
        ),
        key(
            "worker",
            OneOf(&[Text, List(1, &Text)]),
            "",
            "The word of an agent client, as `jackline init` takes it, or the program and arguments of another agent.",
        ),
        key(
            "model",
            Text,
            "required with `provider`; what the worker uses by itself",
            "The name of the model; the path of the file where it is `local`.",
        ),
        key(
            "url",
            Form("^https?://[^/?#:\\s\"'\\\\][^\\s\"'\\\\]*$", "an address (`https://…`)"),
            "the provider's",
            "Where it is.",
        ),
        key(
            "key_env",
            Form("^[A-Za-z_][A-Za-z0-9_]{0,127}$", "the name of an environment variable"),
            "the provider's usual one",
            "The environment variable that holds the key. A key itself is never written here.",
        ),
        key(
            "window",
            Count(1, I64),
            "what is known of the model",
            "How many tokens its context holds.",
        ),
        key(
            "when",
            List(1, &Word(MODEL_OCCASIONS)),
            "whenever the one before can't go on",
            "What it is tried for.",
        ),
        key(
            "budget",
            Count(1, U32),
            "no limit of its own",
            "How many requests, or iterations of a worker, it may be given in a session.",
        ),
        key(
            "timeout_seconds",
            Count(1, 86_400),
            "as the provider has it",
            "How long one answer may take.",
        ),
    ],
    needs: &[Needs::One(&["provider", "worker"])],
};

pub(crate) static ADVISOR: Keys = Keys {
    id: "advisor",
    of: "`advisor`",
    doc: "What it says is given to the agent as feedback, and the session goes on; with the budget used up, the next model is \
          tried, then a person has to clear the blocker.",
    known: &[
        key(
            "models",
            List(1, &Map(&MODEL)),
            "required",
            "Who is asked, in this order; no workers.",
        ),
        key(
            "transcript_lines",
            Count(1, 100_000),
            "500",
            "How many of the last lines of the transcript it is shown.",
        ),
        key("budget", Count(0, 1000), "2", "How often it is asked in a session."),
    ],
    needs: &[Needs::All(&["models"])],
};
