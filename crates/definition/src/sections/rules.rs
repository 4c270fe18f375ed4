//! `rules` and `packs`: conditions on single calls, and the switches for rules of packs.

mod examples;
mod lower;
mod packs;

use std::path::Path as FilePath;

use jackline_engine::definition::{Rule, RuleEffect, RuleScope, Rules};
use jackline_engine::{Mode, ToolKind};

use super::mode::MODE_VALUE;
use super::modes;
use super::prelude::*;
use crate::diagnostic::SourcePosition;

pub(crate) use examples::{Example, ExampleCall, ExampleWorld};
pub(crate) use lower::lower;
pub(crate) use packs::is_pack_rule;

static KEYS: [KeySpec; 2] = [
    key("rules", List(0, &Map(&RULE)), "none", "Conditions on single calls."),
    key("packs", Map(&PACKS), "", "Rules of packs to switch off or to observe."),
];

/// The words for the effects of a rule.
const EFFECTS: [(&str, RuleEffect); 4] = [
    ("deny", RuleEffect::Deny),
    ("ask", RuleEffect::Ask),
    ("warn", RuleEffect::Warn),
    ("observe", RuleEffect::Observe),
];
pub(crate) const EFFECT_WORDS: &[&str] = &words_of::<_, 4>(&EFFECTS);

/// The form of the name of a rule, for the schema.
const RULE_NAME: ValueType = Form("^[A-Za-z0-9._/-]{1,100}$", "a rule's name");
const RULE_NAMES: ValueType = List(0, &RULE_NAME);

static RULE: MappingSpec = MappingSpec {
    id: "rule",
    label: "a rule",
    doc: "A rule applies to every call of its tool that runs its command and fulfils its condition. It has exactly one of \
          `deny`, `ask`, `warn` and `observe`; the value is the message for the agent.",
    entries: &[
        key("name", RULE_NAME, "required", "Unique; letters, digits, `.`, `_`, `-` and `/`."),
        key(
            "tool",
            Text,
            "every tool; kind `exec` if there is a `command`",
            "A declared tool, a well-known one, or a kind.",
        ),
        key(
            "command",
            OneOf(&[Text, TEXT_LIST]),
            "any",
            "The program and its subcommands to match in command lines, such as `git push`. Options between these words are skipped.",
        ),
        key("when", Text, "always", "A [condition](#conditions) in CEL."),
        key("deny", Text, "", "Refuses the call."),
        key("ask", Text, "", "Asks a person for approval."),
        key("warn", Text, "", "Lets the call run and warns the agent."),
        key("observe", Text, "", "Lets the call run and records it."),
        key(
            "instead",
            Text,
            "none",
            "A call that the rule allows instead; a command line if the rule is about command lines.",
        ),
        key(
            "mode",
            MODE_VALUE,
            "the definition's",
            "With `observe` the rule only records its effect. `modes` overrides this key.",
        ),
        key(
            "examples",
            Map(&EXAMPLES),
            "required",
            "Calls that show what the rule does. Jackline tests the rule with them when it loads the file.",
        ),
    ],
    required: &[RequiredKeys::All(&["name", "examples"]), RequiredKeys::One(EFFECT_WORDS)],
};

/// An example: a command line, arguments, or one of these with a state of the workspace.
const EXAMPLE: ValueType = OneOf(&[Text, Map(&EXAMPLE_RUN), Arguments]);
const SHOWN: ValueType = List(0, &EXAMPLE);

static EXAMPLES: MappingSpec = MappingSpec {
    id: "examples",
    label: "`examples`",
    doc: "At least one example of the effect of the rule. An example is a command line, or the arguments of the tool; in a \
          rule for a kind, `path` is the first path. Each example assumes a clean repository on branch `work` in which no \
          file exists and nothing is ignored; write `{run, given}` to change that.",
    entries: &[
        key("deny", SHOWN, "none", "Calls that a `deny` rule refuses."),
        key("ask", SHOWN, "none", "Calls that an `ask` rule asks a person about."),
        key("warn", SHOWN, "none", "Calls that a `warn` rule warns about."),
        key("observe", SHOWN, "none", "Calls that an `observe` rule records."),
        key("allow", SHOWN, "none", "Calls that the rule does not match."),
    ],
    required: &[RequiredKeys::Some(EFFECT_WORDS)],
};

static EXAMPLE_RUN: MappingSpec = MappingSpec {
    id: "example",
    label: "an example",
    doc: "",
    entries: &[
        key("run", OneOf(&[Text, Arguments]), "required", "The command line or the arguments."),
        key(
            "tool",
            Text,
            "the rule's",
            "The tool of the call, if the rule is about several tools.",
        ),
        key("given", Map(&GIVEN), "", "The state of the workspace."),
    ],
    required: &[RequiredKeys::All(&["run"])],
};

static GIVEN: MappingSpec = MappingSpec {
    id: "given",
    label: "`given`",
    doc: "",
    entries: &[
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
            "Whether files exist that are neither tracked nor ignored.",
        ),
        key("git.branch", Text, "`work`", "The branch that is checked out."),
        key(
            "exists",
            List(0, &Path),
            "none",
            "Files that exist; a slash at the end means a directory.",
        ),
        key("ignored", List(0, &Path), "none", "Paths that the repository ignores."),
        key("cwd", Path, "the workspace", "The working directory of the call."),
    ],
    required: &[],
};

static PACKS: MappingSpec = MappingSpec {
    id: "packs",
    label: "`packs`",
    doc: "",
    entries: &[
        key("off", RULE_NAMES, "none", "Rules of packs to switch off."),
        key("observe", RULE_NAMES, "none", "Rules of packs that only record their effect."),
    ],
    required: &[],
};

/// A rule with its position in the file and its examples.
pub(crate) struct LoweredRule {
    pub(crate) rule: Rule,
    /// The `mode` of the rule itself, if it has one.
    pub(crate) own_mode: Option<Mode>,
    pub(crate) position: SourcePosition,
    /// The position of its `tool`, if it has one.
    pub(crate) tool_position: Option<SourcePosition>,
    /// The position of its `instead`, if it has one.
    pub(crate) instead_position: Option<SourcePosition>,
    pub(crate) examples: Vec<Example>,
}

pub(crate) struct RulesSection;

impl Section for RulesSection {
    type Part = Vec<Demand<Rule>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] =
        &[&RULE, &EXAMPLES, &EXAMPLE_RUN, &GIVEN, &PACKS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.list(source.definition.rules.iter().cloned())
    }

    /// Takes the rules of both layers, each name once. A lower layer can't change a rule. It can
    /// only enforce a rule that the higher layer observes.
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
                join.report_replaced(
                    DemandSubject::Rule,
                    text(&known.value),
                    known.layer,
                    rule.layer,
                );
                *known = rule.clone();
            } else {
                let why = "has another rule with this name";
                join.report_ignored(
                    DemandSubject::Rule,
                    text(&rule.value),
                    rule.layer,
                    known.layer,
                    why,
                );
            }
        }
        modes::join_into(&mut rules, high, low, join);
        rules
    }

    fn describe(rules: &Self::Part, lines: &mut DemandLines<'_>) {
        for rule in rules {
            let Demand { value, layer } = rule;
            let origin = |file: &str| foreign_origin(&value.origin, file);
            lines.add_with_origin(DemandSubject::Rule, text(value), *layer, origin);
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

/// Returns the origin of a rule, unless that is the file of its layer.
fn foreign_origin(origin: &str, file: &str) -> Option<String> {
    let name = FilePath::new(file).file_name().map(|name| name.to_string_lossy());
    let own = name.is_some_and(|name| origin.strip_prefix("file ") == Some(&*name));
    (!origin.is_empty() && !own).then(|| origin.to_owned())
}

/// Describes the calls that a rule matches and its effect.
pub fn text(rule: &Rule) -> String {
    let does = match rule.effect {
        RuleEffect::Observe => "records",
        RuleEffect::Warn => "warns about",
        RuleEffect::Ask => "asks a person about",
        RuleEffect::Deny => "denies",
    };
    let calls = match &rule.scope {
        RuleScope::Any => "calls".to_owned(),
        RuleScope::Tool(tool) => format!("calls of `{tool}`"),
        RuleScope::Kind(kind) => format!("calls of kind `{}`", kind_as_str(*kind)),
    };
    let commands: Vec<String> = rule.commands.iter().map(|line| format!("`{line}`")).collect();
    let what = if commands.is_empty() { calls } else { commands.join(", ") };
    let when = if rule.when.is_some() { " under a condition" } else { "" };
    let observed = if rule.mode == Mode::Observe { " (observed only)" } else { "" };
    format!("`{}` {does} {what}{when}{observed}", rule.name)
}

/// Returns the word for a kind of tool.
pub(crate) fn kind_as_str(kind: ToolKind) -> &'static str {
    ToolKind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, rule, rules, trusted, untrusted};

    /// A rule named `r` with these fields.
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
    fn a_rule_of_both_layers_occurs_once_and_the_higher_layer_wins() {
        let theirs = rule("pack/a", RuleEffect::Deny);
        let same = Rule { origin: "elsewhere".to_owned(), ..theirs.clone() };
        let high = rules(Mode::Enforce, std::slice::from_ref(&theirs));
        assert_eq!(untrusted(&high, &rules(Mode::Observe, &[same])).definition.rules, high.rules);
        // A layer without the rule does not remove it from the others.
        assert_eq!(untrusted(&high, &rules(Mode::Enforce, &[])).definition.rules, high.rules);

        let weaker = rules(Mode::Enforce, &[rule("pack/a", RuleEffect::Warn)]);
        let combined = untrusted(&high, &weaker);
        assert_eq!(combined.definition.rules, high.rules);
        assert_eq!(
            ignored(&combined),
            [
                "`pack/a` warns about `git push` ignored: the user layer has another rule with this name; trust would allow it"
            ]
        );
        let combined = trusted(&high, &weaker);
        assert_eq!(combined.definition.rules, weaker.rules);
        assert_eq!(
            ignored(&combined),
            [
                "`pack/a` denies `git push` ignored: the repository layer overrides it, and its file is trusted"
            ]
        );
    }

    #[test]
    fn a_rule_is_enforced_if_one_layer_enforces_it() {
        let one = rule("a", RuleEffect::Deny);
        let combined = untrusted(
            &rules(Mode::Observe, std::slice::from_ref(&one)),
            &rules(Mode::Enforce, std::slice::from_ref(&one)),
        );
        assert_eq!(combined.definition.rules, Rules::new(vec![one]));
    }
}
