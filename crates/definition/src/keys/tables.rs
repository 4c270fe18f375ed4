//! The tables themselves, in the order of the reference page.

use super::Takes::{
    Count, Flag, Form, List, Map, Names, Nothing, OneOf, Path, Pointer, Schema, Text, Word,
};
use super::attempts::{ATTEMPTS, HEALTH};
use super::budgets::{CONTEXT, COST_LIMIT, LIMIT, LIMITS, PRICE};
use super::identity::IDENTITY;
use super::io::{IO, IO_OUTPUT, IO_READ_FILE, IO_SHELL};
use super::loops::{LOOPS, LOOPS_CYCLE, LOOPS_ERRORS, LOOPS_GRADED, LOOPS_STRICT, POLL};
use super::models::{ADVISOR, MODEL};
use super::progress::{CLEAN, DIRTY_BITS, PROGRESS};
use super::rules::{EXAMPLE_RUN, EXAMPLES, GIVEN, PACKS, RULE};
use super::schemas::{OUTPUT, PLAN, SCHEMA};
use super::{Key, Keys, Needs, Takes};

/// The largest numbers that the types behind the keys hold.
pub(super) const U32: u64 = u32::MAX as u64;
pub(super) const I64: u64 = i64::MAX as u64;

pub(crate) const MODES: &[&str] = &["enforce", "observe"];
pub(crate) const KINDS: &[&str] = &[
    "read", "write", "edit", "delete", "exec", "search", "fetch", "think", "spawn", "effect",
    "other",
];

pub(super) const TEXTS: Takes = List(1, &Text);

pub(super) const fn key(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, takes, default, doc }
}

pub(crate) static ROOT: Keys = Keys {
    id: "definition",
    of: "the definition",
    doc: "",
    known: &[
        key("version", Count(1, 1), "1", "The version of this format."),
        key(
            "name",
            Form("^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}$", "`namespace/key`"),
            "`local/agent`",
            "What the definition is called in verdicts and journals.",
        ),
        key(
            "extends",
            OneOf(&[Text, List(0, &Text)]),
            "none",
            "What this file builds on: presets, packs (`pack/git`) and files (`./base.yaml`); see below.",
        ),
        key(
            "mode",
            Word(MODES),
            "`enforce`",
            "Whether verdicts hold. `observe` decides the same, writes it down and holds up no call; protected files, pauses and a person's word hold all the same.",
        ),
        key(
            "modes",
            Names(0, "rule or pack", &Word(MODES)),
            "none",
            "Modes of single rules and of packs (`pack/git`) by name, over `mode`. What names a rule itself goes before what names its pack.",
        ),
        key(
            "tools",
            Names(0, "tool", &Map(&TOOL)),
            "none",
            "The tools of the agent. Where it is given, policies and rules may only name tools that are declared.",
        ),
        key(
            "unknown_tools",
            Word(&["allow", "deny"]),
            "`deny` if a file gives `tools`, `commands` aside; else `allow`",
            "What happens to tools that are not declared.",
        ),
        key(
            "sections",
            List(0, &Map(&SECTION)),
            "none",
            "Groups of tools with policies of their own.",
        ),
        key(
            "policies",
            List(0, &Map(&POLICY)),
            "none",
            "Policies that see all tools, consulted after those of the sections.",
        ),
        key(
            "read_before_write",
            Map(&READ_BEFORE_WRITE),
            "",
            "What `read_before_write` policies do where they say nothing else.",
        ),
        key("rules", List(0, &Map(&RULE)), "none", "Conditions over single calls."),
        key("packs", Map(&PACKS), "", "Which rules of the packs hold."),
        key("shell", Map(&SHELL), "", "How command lines are dealt with."),
        key(
            "protected",
            List(0, &Path),
            "none",
            "Paths the agent can't write, besides the guard's own. A slash at the end means a directory, `*` anything but a slash; `~/` and absolute paths are accepted.",
        ),
        key(
            "completion",
            OneOf(&[Map(&CHECKER), Nothing]),
            "none: the agent may stop",
            "What must be true before the agent may stop.",
        ),
        key("completion_cap", Map(&CAP), "", "How often a stop may be blocked."),
        key("limits", Map(&LIMITS), "none", "Allowances that only go down."),
        key("loops", Map(&LOOPS), "", "What is done about repetition."),
        key(
            "progress",
            Map(&PROGRESS),
            "none: nothing is paused",
            "When iterations that bring nothing pause the session. `progress: {}` has the defaults below.",
        ),
        key(
            "dirty_bits",
            Map(&DIRTY_BITS),
            "",
            "What counts as a test, a build and documentation, besides what is known everywhere.",
        ),
        key(
            "iterations_extension",
            Count(1, I64),
            "25",
            "How many more iterations there are each time a person acknowledges a checkpoint.",
        ),
        key(
            "prices",
            Names(0, "model", &Map(&PRICE)),
            "a built-in table with a date",
            "What models cost, for `limits.cost_usd`, over the built-in table.",
        ),
        key(
            "context",
            OneOf(&[Map(&CONTEXT), Nothing]),
            "none: nobody looks; on in `autonomous` and `strict`",
            "What is done about a context that fills up.",
        ),
        key(
            "schema",
            Map(&SCHEMA),
            "",
            "How often the agent may write something again that is not valid.",
        ),
        key("plan", Map(&PLAN), "", "What plans have to look like."),
        key(
            "outputs",
            Names(0, "output", &Map(&OUTPUT)),
            "none",
            "What the agent hands over (`output_proposed`), by name.",
        ),
        key("io", Map(&IO), "", "How much of what tools answer is shown."),
        key(
            "attempts",
            Map(&ATTEMPTS),
            "",
            "How often what a model wrote, a program or a plan, is tried again.",
        ),
        key("health", Map(&HEALTH), "", "When a tool that an attempt forged is good."),
        key(
            "models",
            List(0, &Map(&MODEL)),
            "none",
            "Who does the work of a supervised run, in the order in which they are tried. Those of a file that extends another go in the place of the other's.",
        ),
        key(
            "advisor",
            OneOf(&[Map(&ADVISOR), Nothing]),
            "none: nobody is asked",
            "Who is asked, out of band, where a supervised run is stuck.",
        ),
        key("identity", Map(&IDENTITY), "none: everybody may work", "Who may work under it."),
        key("feedback", List(0, &Map(&PROVIDER)), "none", "Soft guidance for the agent."),
        key("feedback_bytes_max", Count(0, U32), "4096", "How much feedback one round may bring."),
        key("deadline", Map(&DEADLINE), "", "For `deadline` providers that say nothing else."),
        key("notify", Map(&NOTIFY), "", "How a person is told that they are needed."),
        key("journal", Map(&JOURNAL), "", "How the journal is kept."),
    ],
    needs: &[],
};

pub(crate) static TOOL: Keys = Keys {
    id: "tool",
    of: "a tool",
    doc: "A tool named like a kind has that kind. Finished calls of kind `write`, `edit` and `delete` change the \
          workspace, so that what was earned before is no longer `fresh`.",
    known: &[
        key(
            "kind",
            Word(KINDS),
            "by its name where that is well known, else `other`",
            "What the tool does.",
        ),
        key("aliases", List(0, &Text), "none", "What clients call it."),
        key(
            "idempotent",
            Flag,
            "`true`",
            "`false`: an identical second call is refused until a person has spoken.",
        ),
        key(
            "path",
            Pointer,
            "the usual names",
            "Short for `paths`: reading or writing by kind. `path: file` is the same as `path: /file`.",
        ),
        key("paths", Map(&PATHS), "the usual names", "Where its arguments name files."),
        key("offset", Pointer, "none", "Where its arguments say from which line on it reads."),
        key("limit", Pointer, "none", "Where its arguments say how many lines it reads."),
        key(
            "command",
            Pointer,
            "`/command` for kind `exec`",
            "Where its arguments hold a command line.",
        ),
        key(
            "commands",
            TEXTS,
            "none",
            "Commands by which it is recognised in command lines, such as `make deploy`.",
        ),
        key(
            "transparent",
            Flag,
            "`false`",
            "Whether the loop guard passes it over, as it does notes and plans.",
        ),
        key(
            "read_only",
            Flag,
            "`true` for kind `read`, `search` and `fetch`",
            "Whether it changes nothing, so that the same result again is nothing new.",
        ),
        key("schema", Schema, "none", "What its arguments have to look like."),
        key(
            "output_schema",
            Schema,
            "none",
            "What it gives back has to look like, where that is JSON. The tool has run, so what does not is told to the agent and never refused.",
        ),
        key("poll", Map(&POLL), "none", "How long it may be asked whether something has happened."),
        key(
            "roles",
            TEXTS,
            "none: all may",
            "The roles that may call it. Such a tool is privileged: before each call it is looked at whether the agent is one that a person has approved.",
        ),
    ],
    needs: &[],
};

pub(crate) static PATHS: Keys = Keys {
    id: "paths",
    of: "`paths`",
    doc: "Each pointer leads to a text or a list of texts.",
    known: &[
        key("read", List(1, &Pointer), "none", "To files that are read."),
        key("write", List(1, &Pointer), "none", "To files that are written, changed or removed."),
    ],
    needs: &[Needs::Some(&["read", "write"])],
};

pub(crate) static SECTION: Keys = Keys {
    id: "section",
    of: "a section",
    doc: "A section's policies see the section's tools only. Sections of an extended file come first.",
    known: &[
        key("name", Text, "required", "What the section is called."),
        key("tools", List(0, &Text), "none", "Names or aliases of its tools."),
        key("policies", List(0, &Map(&POLICY)), "none", "What governs them."),
    ],
    needs: &[Needs::All(&["name"])],
};

pub(crate) static POLICY: Keys = Keys {
    id: "policy",
    of: "a policy",
    doc: "What can never be satisfied, a cycle or a tool the policy never sees, is an error.",
    known: &[
        key(
            "sequential_dependency",
            Names(1, "tool", &List(1, &OneOf(&[Text, Map(&NEED)]))),
            "",
            "Maps a tool to what must have succeeded before it.",
        ),
        key(
            "read_before_write",
            Map(&READ_BEFORE_WRITE),
            "",
            "An existing file must be read before it is overwritten.",
        ),
    ],
    needs: &[Needs::Single],
};

pub(crate) static NEED: Keys = Keys {
    id: "need",
    of: "a prerequisite",
    doc: "A name alone is `{tool: name}`.",
    known: &[
        key("tool", Text, "required", "The tool that must have succeeded."),
        key("fresh", Flag, "`false`", "Whether it must have done so since the files last changed."),
    ],
    needs: &[Needs::All(&["tool"])],
};

pub(crate) static READ_BEFORE_WRITE: Keys = Keys {
    id: "read_before_write",
    of: "`read_before_write`",
    doc: "",
    known: &[key(
        "deletes",
        Flag,
        "`false`, or what the top level says",
        "Whether a file must be read before it is removed, too.",
    )],
    needs: &[],
};

pub(crate) static SHELL: Keys = Keys {
    id: "shell",
    of: "`shell`",
    doc: "",
    known: &[key(
        "opaque",
        Word(&["allow", "ask", "deny"]),
        "`allow`",
        "What happens to a command line that can't be understood as a whole.",
    )],
    needs: &[],
};

pub(crate) static CHECKER: Keys = Keys {
    id: "check",
    of: "a completion check",
    doc: "",
    known: &[
        key("files", List(1, &OneOf(&[Path, Map(&FILE)])), "", "Files that must be there."),
        key("command", OneOf(&[Text, Map(&COMMAND)]), "", "A command line that must succeed."),
        key("all", List(1, &Map(&CHECKER)), "", "Every one of these checks."),
        key("any", List(1, &Map(&CHECKER)), "", "At least one of these checks."),
        key(
            "clean",
            Map(&CLEAN),
            "",
            "No code was changed since the tests passed. It is the code that calls were seen to change, and tests that were seen to be run.",
        ),
    ],
    needs: &[Needs::Single],
};

pub(crate) static FILE: Keys = Keys {
    id: "file",
    of: "a required file",
    doc: "A path alone is `{path: …}`. Paths lie in the workspace.",
    known: &[
        key("path", Path, "required", "The path."),
        key("non_empty", Flag, "`false`", "Whether it must hold something."),
        key("min_bytes", Count(0, I64), "0", "Its least size."),
        key("json", Flag, "`false`", "Whether it must be one valid JSON document."),
        key(
            "newer_than_start",
            Flag,
            "`false`",
            "Whether it must have been written since the session began.",
        ),
    ],
    needs: &[Needs::All(&["path"])],
};

pub(crate) static COMMAND: Keys = Keys {
    id: "command",
    of: "a command",
    doc: "It runs beside the session; while it does, a stop is answered that verification is running. Exit status 0 is success.",
    known: &[
        key("run", Text, "required", "The command line."),
        key("timeout_seconds", Count(1, U32), "600", "How long it may take."),
    ],
    needs: &[Needs::All(&["run"])],
};

pub(crate) static CAP: Keys = Keys {
    id: "completion_cap",
    of: "`completion_cap`",
    doc: "The next stop after that is `capped`, which is never \"done\".",
    known: &[
        key("blocks", Count(1, U32), "5", "In one turn."),
        key("same", Count(1, U32), "3", "With the same text and no change of the files."),
    ],
    needs: &[],
};

pub(crate) static PROVIDER: Keys = Keys {
    id: "provider",
    of: "a feedback provider",
    doc: "It says one thing, `deadline` or `static`, when any of its triggers says so.",
    known: &[
        key("deadline", Map(&DEADLINE), "", "How much time is left."),
        key("static", Text, "", "Always the same text."),
        key("every_n_calls", Count(1, I64), "", "After this many calls since it last spoke."),
        key(
            "every_n_seconds",
            Count(1, I64),
            "",
            "At the first result, then after this much time since it last spoke.",
        ),
        key(
            "on_file_created",
            OneOf(&[Path, Map(&FILE_CREATED)]),
            "",
            "Once, when this file is there.",
        ),
    ],
    needs: &[
        Needs::One(&["deadline", "static"]),
        Needs::Some(&["every_n_calls", "every_n_seconds", "on_file_created"]),
    ],
};

pub(crate) static DEADLINE: Keys = Keys {
    id: "deadline",
    of: "`deadline`",
    doc: "",
    known: &[key(
        "warning_threshold_seconds",
        Count(0, I64),
        "120, or what the top level says",
        "From how much time left on it warns.",
    )],
    needs: &[],
};

pub(crate) static FILE_CREATED: Keys = Keys {
    id: "file_created",
    of: "`on_file_created`",
    doc: "A path alone is `{path: …}`.",
    known: &[
        key("path", Path, "required", "The file."),
        key(
            "since",
            Word(&["session_start", "ever"]),
            "`ever`",
            "Whether a file that was there before the session does not count.",
        ),
    ],
    needs: &[Needs::All(&["path"])],
};

/// What a person can be told of.
pub(crate) const OCCASIONS: &[&str] = &["ask", "pause", "stop", "done", "guard_broken"];

pub(crate) static NOTIFY: Keys = Keys {
    id: "notify",
    of: "`notify`",
    doc: "A notice is sent after the agent has its answer, by a process of its own. In the definition of a repository, \
          `command` and `webhook` do nothing until a person says `jackline trust`.",
    known: &[
        key(
            "command",
            OneOf(&[Text, Nothing]),
            "none",
            "A command line that is run with the notice as JSON on its standard input, and `JACKLINE_EVENT`, `JACKLINE_TEXT` and `JACKLINE_SESSION` in its environment. It may take 30 seconds.",
        ),
        key(
            "webhook",
            OneOf(&[
                Form("^https?://[^/?#:\\s\"'\\\\][^\\s\"'\\\\]*$", "an address (`https://…`)"),
                Nothing,
            ]),
            "none",
            "An address that the notice is posted to as JSON, by `curl`.",
        ),
        key(
            "desktop",
            Flag,
            "`false`",
            "Whether the client shows it on the desktop, where it can.",
        ),
        key("on", List(0, &Word(OCCASIONS)), "all of them", "What a person is told of."),
    ],
    needs: &[],
};

pub(crate) static JOURNAL: Keys = Keys {
    id: "journal",
    of: "`journal`",
    doc: "",
    known: &[
        key(
            "redact",
            Word(&["built-in", "off"]),
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

/// Every mapping with known keys, in the order of the reference page.
pub(crate) static ALL: &[&Keys] = &[
    &ROOT,
    &TOOL,
    &SCHEMA,
    &PLAN,
    &OUTPUT,
    &PATHS,
    &POLL,
    &SECTION,
    &POLICY,
    &NEED,
    &READ_BEFORE_WRITE,
    &RULE,
    &EXAMPLES,
    &EXAMPLE_RUN,
    &GIVEN,
    &PACKS,
    &SHELL,
    &CHECKER,
    &FILE,
    &COMMAND,
    &CLEAN,
    &CAP,
    &LIMITS,
    &LIMIT,
    &LOOPS,
    &LOOPS_STRICT,
    &LOOPS_GRADED,
    &LOOPS_CYCLE,
    &LOOPS_ERRORS,
    &PROGRESS,
    &DIRTY_BITS,
    &COST_LIMIT,
    &PRICE,
    &CONTEXT,
    &IO,
    &IO_READ_FILE,
    &IO_OUTPUT,
    &IO_SHELL,
    &ATTEMPTS,
    &HEALTH,
    &MODEL,
    &ADVISOR,
    &IDENTITY,
    &PROVIDER,
    &FILE_CREATED,
    &DEADLINE,
    &NOTIFY,
    &JOURNAL,
];
