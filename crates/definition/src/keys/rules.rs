//! The keys of rules, their examples, and the packs they come in.

use super::Takes::{Arguments, Flag, Form, List, Map, OneOf, Path, Text, Word};
use super::tables::{MODES, TEXTS, key};
use super::{Keys, Needs, Takes};

/// What a rule can say.
pub(crate) const EFFECTS: &[&str] = &["deny", "ask", "warn", "observe"];

/// The form of a rule's name, for the schema.
const RULE_NAME: Takes = Form("^[A-Za-z0-9._/-]{1,100}$", "a rule's name");
const RULE_NAMES: Takes = List(0, &RULE_NAME);

pub(crate) static RULE: Keys = Keys {
    id: "rule",
    of: "a rule",
    doc: "A rule looks at every call of its tool that runs its command and fulfils its condition. It says exactly one of \
          `deny`, `ask`, `warn` and `observe`, with what the agent is told.",
    known: &[
        key("name", RULE_NAME, "required", "Unique; letters, digits, `.`, `_`, `-` and `/`."),
        key(
            "tool",
            Text,
            "every tool; kind `exec` where there is a `command`",
            "A declared tool, a well-known one, or a kind.",
        ),
        key(
            "command",
            OneOf(&[Text, TEXTS]),
            "any",
            "The program and subcommand words it looks for in command lines, such as `git push`. Options before them are skipped.",
        ),
        key("when", Text, "always", "A [condition](#conditions) in CEL."),
        key("deny", Text, "", "The call does not run."),
        key("ask", Text, "", "A person has to say."),
        key("warn", Text, "", "The call runs, and the agent is told."),
        key("observe", Text, "", "It is written down."),
        key(
            "instead",
            Text,
            "none",
            "What passes instead; a command line where the rule looks at those.",
        ),
        key(
            "mode",
            Word(MODES),
            "the definition's",
            "`observe` writes down what it would have done. `modes` has the last word.",
        ),
        key(
            "examples",
            Map(&EXAMPLES),
            "required",
            "Calls that show what it does; they are played when the file is loaded.",
        ),
    ],
    needs: &[Needs::All(&["name", "examples"]), Needs::One(EFFECTS)],
};

/// An example: a command line, arguments, or one of these with what is given.
const EXAMPLE: Takes = OneOf(&[Text, Map(&EXAMPLE_RUN), Arguments]);
const SHOWN: Takes = List(0, &EXAMPLE);

pub(crate) static EXAMPLES: Keys = Keys {
    id: "examples",
    of: "`examples`",
    doc: "At least one example of what the rule does. An example is a command line, or the arguments of the tool; in a \
          rule on a kind, `path` stands for the first path. Each starts from a clean repository on branch `work` in which \
          no file exists and nothing is ignored, unless it is written as `{run, given}`.",
    known: &[
        key("deny", SHOWN, "none", "Calls that a `deny` rule refuses."),
        key("ask", SHOWN, "none", "Calls that an `ask` rule asks about."),
        key("warn", SHOWN, "none", "Calls that a `warn` rule warns about."),
        key("observe", SHOWN, "none", "Calls that an `observe` rule writes down."),
        key("allow", SHOWN, "none", "Calls that it leaves alone."),
    ],
    needs: &[Needs::Some(EFFECTS)],
};

pub(crate) static EXAMPLE_RUN: Keys = Keys {
    id: "example",
    of: "an example",
    doc: "",
    known: &[
        key("run", OneOf(&[Text, Arguments]), "required", "The command line or the arguments."),
        key(
            "tool",
            Text,
            "the rule's",
            "The tool that is called, where the rule looks at several.",
        ),
        key("given", Map(&GIVEN), "", "How the world looks."),
    ],
    needs: &[Needs::All(&["run"])],
};

pub(crate) static GIVEN: Keys = Keys {
    id: "given",
    of: "`given`",
    doc: "",
    known: &[
        key(
            "git.dirty",
            Flag,
            "`false`",
            "Whether tracked files have changes that are not committed.",
        ),
        key(
            "git.untracked",
            Flag,
            "`false`",
            "Whether there are files that are neither tracked nor ignored.",
        ),
        key("git.branch", Text, "`work`", "The branch that is checked out."),
        key(
            "exists",
            List(0, &Path),
            "none",
            "Files that are there; a slash at the end means a directory.",
        ),
        key("ignored", List(0, &Path), "none", "Paths that the repository ignores."),
        key("cwd", Path, "the workspace", "The directory the call works in."),
    ],
    needs: &[],
};

pub(crate) static PACKS: Keys = Keys {
    id: "packs",
    of: "`packs`",
    doc: "",
    known: &[
        key("off", RULE_NAMES, "none", "Rules of packs that do not hold."),
        key("observe", RULE_NAMES, "none", "Rules of packs that are only written down."),
    ],
    needs: &[],
};
