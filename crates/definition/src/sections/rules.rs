//! `rules` and `packs`: conditions over single calls, and which rules of the packs hold.

mod examples;
mod lower;
mod packs;

use std::path::Path as FilePath;

use jackline_engine::definition::{Effect, Rule, RuleScope, Rules};
use jackline_engine::{Kind, Mode};

use super::mode::TAKES_MODE;
use super::modes;
use super::prelude::*;
use crate::diagnostic::At;

pub(crate) use examples::{Example, ExampleCall, ExampleWorld};
pub(crate) use lower::lower;
pub(crate) use packs::is_of_pack;

static KEYS: [Key; 2] = [
    key("rules", List(0, &Map(&RULE)), "none", "Conditions over single calls."),
    key("packs", Map(&PACKS), "", "Which rules of the packs hold."),
];

/// What a rule can do about a call.
const EFFECTS: [(&str, Effect); 4] = [
    ("deny", Effect::Deny),
    ("ask", Effect::Ask),
    ("warn", Effect::Warn),
    ("observe", Effect::Observe),
];
pub(crate) const EFFECT_WORDS: &[&str] = &words_of::<_, 4>(&EFFECTS);

/// The form of a rule's name, for the schema.
const RULE_NAME: Takes = Form("^[A-Za-z0-9._/-]{1,100}$", "a rule's name");
const RULE_NAMES: Takes = List(0, &RULE_NAME);

static RULE: Keys = Keys {
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
            TAKES_MODE,
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
    needs: &[Needs::All(&["name", "examples"]), Needs::One(EFFECT_WORDS)],
};

/// An example: a command line, arguments, or one of these with the state of the world.
const EXAMPLE: Takes = OneOf(&[Text, Map(&EXAMPLE_RUN), Arguments]);
const SHOWN: Takes = List(0, &EXAMPLE);

static EXAMPLES: Keys = Keys {
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
    needs: &[Needs::Some(EFFECT_WORDS)],
};

static EXAMPLE_RUN: Keys = Keys {
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

static GIVEN: Keys = Keys {
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

static PACKS: Keys = Keys {
    id: "packs",
    of: "`packs`",
    doc: "",
    known: &[
        key("off", RULE_NAMES, "none", "Rules of packs that do not hold."),
        key("observe", RULE_NAMES, "none", "Rules of packs that are only written down."),
    ],
    needs: &[],
};

/// A rule with its place in the file and its examples.
pub(crate) struct LoweredRule {
    pub(crate) rule: Rule,
    /// The mode that the rule itself names.
    pub(crate) own_mode: Option<Mode>,
    pub(crate) at: At,
    /// The place of its `tool`, if it has one.
    pub(crate) tool_at: Option<At>,
    /// The place of its `instead`.
    pub(crate) instead_at: Option<At>,
    pub(crate) examples: Vec<Example>,
}

pub(crate) struct RulesSection;

impl Section for RulesSection {
    type Part = Vec<Demand<Rule>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&RULE, &EXAMPLES, &EXAMPLE_RUN, &GIVEN, &PACKS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.list(source.definition.rules.iter().cloned())
    }

    /// Every rule once by its name. A lower layer can't change a rule. It can only enforce the
    /// same rule where the higher layer observes it.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let mut rules = high.rules.clone();
        for rule in &low.rules {
            let Some(known) = rules.iter_mut().find(|known| known.value.name == rule.value.name)
            else {
                rules.push(rule.clone());
                continue;
            };
            if is_same(&known.value, &rule.value) {
                if rule.value.mode == Mode::Enforce && known.value.mode == Mode::Observe {
                    *known = rule.clone();
                }
            } else if join.overrides() {
                join.replace(Subject::Rule, text(&known.value), known.layer, rule.layer);
                *known = rule.clone();
            } else {
                let why = "has another rule of that name";
                join.ignore(Subject::Rule, text(&rule.value), rule.layer, known.layer, why);
            }
        }
        modes::join_into(&mut rules, high, low, join);
        rules
    }

    fn describe(rules: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for rule in rules {
            let Demand { value, layer } = rule;
            let origin = |file: &str| foreign_origin(&value.origin, file);
            lines.add_with_origin(Subject::Rule, text(value), *layer, origin);
        }
    }

    fn put(rules: Self::Part, definition: &mut Definition) {
        definition.rules = Rules::new(values(rules));
    }
}

/// Whether two rules do the same, apart from their origins and modes.
fn is_same(one: &Rule, other: &Rule) -> bool {
    let plain = |rule: &Rule| Rule { origin: String::new(), mode: Mode::Enforce, ..rule.clone() };
    plain(one) == plain(other)
}

/// The origin of a rule, where that is not the file of its layer.
fn foreign_origin(origin: &str, file: &str) -> Option<String> {
    let name = FilePath::new(file).file_name().map(|name| name.to_string_lossy());
    let own = name.is_some_and(|name| origin.strip_prefix("file ") == Some(&*name));
    (!origin.is_empty() && !own).then(|| origin.to_owned())
}

/// Which calls a rule matches and what it does about them.
pub fn text(rule: &Rule) -> String {
    let does = match rule.effect {
        Effect::Observe => "writes down",
        Effect::Warn => "warns of",
        Effect::Ask => "asks a person about",
        Effect::Deny => "denies",
    };
    let calls = match &rule.scope {
        RuleScope::Any => "calls".to_owned(),
        RuleScope::Tool(tool) => format!("calls of `{tool}`"),
        RuleScope::Kind(kind) => format!("calls of kind `{}`", kind_word(*kind)),
    };
    let commands: Vec<String> = rule.commands.iter().map(|line| format!("`{line}`")).collect();
    let what = if commands.is_empty() { calls } else { commands.join(", ") };
    let when = if rule.when.is_some() { " under a condition" } else { "" };
    let observed = if rule.mode == Mode::Observe { " (observed only)" } else { "" };
    format!("`{}` {does} {what}{when}{observed}", rule.name)
}

/// The word of a kind of tools.
pub(crate) fn kind_word(kind: Kind) -> &'static str {
    Kind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, rule, rules, trusted, untrusted};

    /// A rule that denies `git push`, or another one in its place.
    macro_rules! push {
        ($($fields:literal),*) => {
            concat!("rules: [ { name: r, ", $($fields,)* " } ]")
        };
    }

    const DENIES: &str = push!("command: git push, deny: No., examples: { deny: [git push] }");

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "rule.deny",
            DENIES,
            push!("command: git push, warn: No., examples: { warn: [git push] }"),
        ),
        looser(
            "rule.deny",
            DENIES,
            push!("command: git push, ask: No., examples: { ask: [git push] }"),
        ),
        looser(
            "rule.ask",
            push!("command: git push, ask: No., examples: { ask: [git push] }"),
            push!("command: git push, warn: No., examples: { warn: [git push] }"),
        ),
        looser(
            "rule.warn",
            push!("command: git push, warn: No., examples: { warn: [git push] }"),
            push!("command: git push, observe: No., examples: { observe: [git push] }"),
        ),
        looser(
            "rule.command",
            DENIES,
            push!("command: git pull, deny: No., examples: { deny: [git pull] }"),
        ),
        looser(
            "rule.tool",
            DENIES,
            push!("tool: read, deny: No., examples: { deny: [{ path: a }] }"),
        ),
        looser(
            "rule.when",
            DENIES,
            push!(
                "command: git push, when: '\"-n\" in argv', deny: No., examples: { deny: [git push -n] }"
            ),
        ),
    ];

    #[test]
    fn a_rule_is_there_once_and_is_the_higher_layers() {
        let theirs = rule("pack/a", Effect::Deny);
        let same = Rule { origin: "elsewhere".to_owned(), ..theirs.clone() };
        let high = rules(Mode::Enforce, std::slice::from_ref(&theirs));
        assert_eq!(untrusted(&high, &rules(Mode::Observe, &[same])).definition.rules, high.rules);
        // A layer without the rule does not remove it from the others.
        assert_eq!(untrusted(&high, &rules(Mode::Enforce, &[])).definition.rules, high.rules);

        let weaker = rules(Mode::Enforce, &[rule("pack/a", Effect::Warn)]);
        let combined = untrusted(&high, &weaker);
        assert_eq!(combined.definition.rules, high.rules);
        assert_eq!(
            ignored(&combined),
            [
                "`pack/a` warns of `git push` ignored: the user layer has another rule of that name; trust would let it"
            ]
        );
        let combined = trusted(&high, &weaker);
        assert_eq!(combined.definition.rules, weaker.rules);
        assert_eq!(
            ignored(&combined),
            [
                "`pack/a` denies `git push` ignored: the repository layer says otherwise, and its file is trusted"
            ]
        );
    }

    #[test]
    fn the_same_rule_holds_where_either_layer_has_it_hold() {
        let one = rule("a", Effect::Deny);
        let combined = untrusted(
            &rules(Mode::Observe, std::slice::from_ref(&one)),
            &rules(Mode::Enforce, std::slice::from_ref(&one)),
        );
        assert_eq!(combined.definition.rules, Rules::new(vec![one]));
    }
}
