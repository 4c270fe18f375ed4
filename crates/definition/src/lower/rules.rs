//! Rules: what each looks at, what it says, and the examples that show it.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{Effect, Rule, RuleScope};
use jackline_engine::expr::Expr;
use jackline_engine::{Kind, Mode, canonical};
use serde_json::Value;

use super::tools::{Tools, check_name};
use super::{MODES, command_words};
use crate::builtin;
use crate::cel;
use crate::diagnostic::At;
use crate::keys;
use crate::reader::Reader;
use crate::source::Origin;
use crate::well_known;
use crate::yaml::{Node, NodeValue};

/// The longest name of a rule.
const NAME_BYTES_MAX: usize = 100;

const EFFECTS: [(&str, Effect); 4] = [
    ("deny", Effect::Deny),
    ("ask", Effect::Ask),
    ("warn", Effect::Warn),
    ("observe", Effect::Observe),
];

/// A rule with where it stands and what shows that it works.
pub(crate) struct LoweredRule {
    pub(crate) rule: Rule,
    /// The mode that it has by itself.
    pub(crate) own_mode: Option<Mode>,
    pub(crate) at: At,
    /// Where it names a tool, if it does.
    pub(crate) tool_at: Option<At>,
    /// Where its `instead` stands.
    pub(crate) instead_at: Option<At>,
    pub(crate) examples: Vec<Example>,
}

/// A call that shows what a rule does.
pub(crate) struct Example {
    pub(crate) at: At,
    /// Whether the rule must have something to say about it.
    pub(crate) matches: bool,
    /// The tool that is called, where that is not plain from the rule.
    pub(crate) tool: Option<String>,
    pub(crate) run: Run,
    pub(crate) given: Given,
}

/// What is called.
pub(crate) enum Run {
    /// A command line.
    Line(String),
    /// The arguments of a tool.
    Args(Value),
}

/// How the world looks in an example.
pub(crate) struct Given {
    pub(crate) dirty: bool,
    pub(crate) untracked: bool,
    pub(crate) branch: String,
    /// Canonical; a directory with a slash at its end.
    pub(crate) exists: Vec<String>,
    pub(crate) ignored: Vec<String>,
    pub(crate) cwd: Option<String>,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            dirty: false,
            untracked: false,
            branch: "work".to_owned(),
            exists: Vec::new(),
            ignored: Vec::new(),
            cwd: None,
        }
    }
}

/// The rules in their order.
pub(crate) fn lower(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Vec<LoweredRule> {
    let mut names: BTreeMap<String, At> = BTreeMap::new();
    let mut rules = Vec::new();
    for item in reader.list(node, "`rules`") {
        let Some(lowered) = rule(item, tools, reader) else { continue };
        let name = lowered.rule.name.clone();
        match names.insert(name, lowered.at) {
            Some(_) => {
                let message = format!("two rules are named `{}`", lowered.rule.name);
                reader.complain(lowered.at, message);
            }
            None => rules.push(lowered),
        }
    }
    rules
}

/// A rule as it stands in the file.
#[derive(Default)]
struct Parts<'n> {
    name: Option<&'n Node>,
    tool: Option<&'n Node>,
    command: Option<&'n Node>,
    when: Option<&'n Node>,
    effects: Vec<(&'n str, Effect, &'n Node)>,
    instead: Option<&'n Node>,
    mode: Option<&'n Node>,
    examples: Option<&'n Node>,
}

fn parts<'n>(node: &'n Node, reader: &mut Reader<'_>) -> Parts<'n> {
    let mut parts = Parts::default();
    for (key, node) in reader.fields(node, &keys::RULE) {
        match key {
            "name" => parts.name = Some(node),
            "tool" => parts.tool = Some(node),
            "command" => parts.command = Some(node),
            "when" => parts.when = Some(node),
            "instead" => parts.instead = Some(node),
            "mode" => parts.mode = Some(node),
            "examples" => parts.examples = Some(node),
            effect => {
                let known = EFFECTS.iter().find(|(word, _)| *word == effect);
                parts.effects.extend(known.map(|(word, effect)| (*word, *effect, node)));
            }
        }
    }
    parts
}

fn rule(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Option<LoweredRule> {
    let parts = parts(node, reader);
    if !matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        return None;
    }
    let name = match parts.name {
        Some(node) => name(node, reader),
        None => {
            reader.complain(node.at, "a rule has a `name`");
            None
        }
    };
    let commands = parts.command.map(|node| commands(node, reader));
    let scope = scope(parts.tool, commands.is_some(), tools, reader);
    let when = parts.when.map(|node| condition(node, reader));
    let effect = effect(node, &parts.effects, reader);
    let instead = parts.instead.map(|node| reader.text(node, "`instead`"));
    let mode = parts.mode.and_then(|node| reader.word(node, "`mode`", &MODES));
    let called = Called { scope: scope.as_ref(), tools };
    let examples = match parts.examples {
        Some(examples) => self::examples(examples, effect.as_ref(), &called, reader),
        None => {
            let hint = "show at least one call that it is about";
            reader.complain_hint(node.at, "a rule has `examples`", hint);
            Vec::new()
        }
    };
    let (_, effect, message) = effect?;
    let rule = Rule {
        name: name?,
        origin: reader.origin(node.at).to_string(),
        scope: scope?,
        commands: commands.map_or(Some(Vec::new()), |commands| commands)?,
        when: when.map_or(Some(None), |when| when.map(Some))?,
        effect,
        mode: Mode::Enforce,
        message,
        instead: instead.flatten().map(ToOwned::to_owned),
    };
    let tool_at = parts.tool.map(|node| node.at);
    let instead_at = parts.instead.map(|node| node.at);
    Some(LoweredRule { rule, own_mode: mode, at: node.at, tool_at, instead_at, examples })
}

/// The name of a rule; one of a pack begins with the pack's.
fn name(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "the name of a rule")?;
    let fits = text.len() <= NAME_BYTES_MAX
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c));
    if !fits {
        let shown: String = text.chars().take(40).collect();
        let hint = format!("letters, digits, `.`, `_`, `/` and `-`, at most {NAME_BYTES_MAX}");
        reader.complain_hint(node.at, format!("`{shown}` can't be the name of a rule"), hint);
        return None;
    }
    Some(match reader.origin(node.at) {
        Origin::Pack(pack) => format!("{pack}/{text}"),
        Origin::File(_) | Origin::Preset(_) => text.to_owned(),
    })
}

fn commands(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let NodeValue::List(items) = &node.value else {
        return command_words(node, "`command`", reader).map(|command| vec![command]);
    };
    if items.is_empty() {
        reader.complain(node.at, "`command` is empty");
        return None;
    }
    let lowered: Vec<_> =
        items.iter().map(|item| command_words(item, "a command", reader)).collect();
    lowered.into_iter().collect()
}

fn scope(
    node: Option<&Node>,
    has_command: bool,
    tools: &Tools,
    reader: &mut Reader<'_>,
) -> Option<RuleScope> {
    let Some(node) = node else {
        return Some(if has_command { RuleScope::Kind(Kind::Exec) } else { RuleScope::Any });
    };
    let text = reader.text(node, "`tool`")?;
    let (scope, kind) = if let Some(kind) = Kind::parse(text) {
        (RuleScope::Kind(kind), kind)
    } else {
        let known = tools.find(text).map(ToOwned::to_owned);
        if known.is_none() && tools.is_closed() && Kind::well_known(text).is_none() {
            let common: Vec<&str> = well_known::names().collect();
            let all = tools.names().chain(common);
            let message = format!("this rule can never see `{text}`: no such tool is declared");
            let hint = reader
                .meant(text, all, || "name a tool or a kind, or add it to `tools`".to_owned());
            reader.complain_hint(node.at, message, hint);
            return None;
        }
        let name = known.unwrap_or_else(|| check_name(text, node.at, reader));
        let kind = tools.kind(&name);
        (RuleScope::Tool(name), kind)
    };
    if has_command && kind != Kind::Exec {
        let message = format!("`{text}` runs no command lines, so `command` would never match");
        reader.complain_hint(node.at, message, "leave out `tool`, or name one of kind `exec`");
        return None;
    }
    Some(scope)
}

fn condition(node: &Node, reader: &mut Reader<'_>) -> Option<Expr> {
    let text = reader.text(node, "`when`")?;
    match cel::lower(text) {
        Ok(condition) => Some(condition),
        Err(wrong) => {
            let at = reader.inside(node, wrong.at);
            match wrong.hint {
                Some(hint) => reader.complain_hint(at, wrong.message, hint),
                None => reader.complain(at, wrong.message),
            }
            None
        }
    }
}

/// The one thing a rule says, with the word for it.
fn effect<'n>(
    node: &Node,
    given: &[(&'n str, Effect, &Node)],
    reader: &mut Reader<'_>,
) -> Option<(&'n str, Effect, String)> {
    if given.len() != 1 {
        let message = format!("a rule says exactly one thing, not {}", given.len());
        reader.complain_hint(node.at, message, "give it `deny`, `ask`, `warn` or `observe`");
    }
    let messages: Vec<_> = given
        .iter()
        .map(|(word, effect, node)| {
            let text = reader.text(node, &format!("`{word}`"))?;
            Some((*word, *effect, text.to_owned()))
        })
        .collect();
    messages.into_iter().next().flatten().filter(|_| given.len() == 1)
}

/// What the examples of a rule call.
struct Called<'a> {
    scope: Option<&'a RuleScope>,
    tools: &'a Tools,
}

impl Called<'_> {
    /// Whether a command line can be an example.
    fn takes_lines(&self) -> bool {
        match self.scope {
            Some(RuleScope::Kind(kind)) => *kind == Kind::Exec,
            Some(RuleScope::Tool(tool)) => runs_lines(self.tools, tool),
            Some(RuleScope::Any) | None => true,
        }
    }
}

/// Whether a tool takes command lines, or is recognised in them.
fn runs_lines(tools: &Tools, name: &str) -> bool {
    let recognised = tools.get(name).is_some_and(|tool| !tool.commands.is_empty());
    recognised || tools.kind(name) == Kind::Exec
}

fn examples(
    node: &Node,
    effect: Option<&(&str, Effect, String)>,
    called: &Called<'_>,
    reader: &mut Reader<'_>,
) -> Vec<Example> {
    let mut examples = Vec::new();
    for (key, body) in reader.fields(node, &keys::EXAMPLES) {
        let own = effect.map(|(word, ..)| *word);
        if key != "allow" && own.is_some_and(|own| own != key) {
            let own = own.unwrap_or_default();
            let message = format!("a rule that says `{own}` has no examples for `{key}`");
            reader.complain_hint(body.at, message, format!("list them under `{own}` or `allow`"));
        }
        for item in reader.list(body, &format!("the examples for `{key}`")) {
            examples.extend(example(item, key != "allow", called, reader));
        }
    }
    let missing = !examples.iter().any(|example| example.matches);
    if missing && matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        let word = effect.map_or("deny", |(word, ..)| word);
        let message = format!("no example shows what this rule is for; list one under `{word}`");
        reader.complain(node.at, message);
    }
    examples
}

fn example(
    node: &Node,
    matches: bool,
    called: &Called<'_>,
    reader: &mut Reader<'_>,
) -> Option<Example> {
    let mut example = Example {
        at: node.at,
        matches,
        tool: None,
        run: Run::Args(Value::Null),
        given: Given::default(),
    };
    if !is_written_out(node) {
        example.run = run(node, called.takes_lines(), reader)?;
        return Some(example);
    }
    let mut calls = None;
    let mut lines = called.takes_lines();
    for (key, node) in reader.fields(node, &keys::EXAMPLE_RUN) {
        match key {
            "run" => calls = Some(node),
            "tool" => {
                let name = reader.text(node, "`tool`")?;
                lines = runs_lines(called.tools, name);
                example.tool = Some(check_name(name, node.at, reader));
            }
            _ => example.given = given(node, reader),
        }
    }
    example.run = run(calls?, lines, reader)?;
    Some(example)
}

/// Whether an example is `{run, tool, given}` and not the arguments of a tool.
fn is_written_out(node: &Node) -> bool {
    let NodeValue::Map(entries) = &node.value else { return false };
    let known = |name: &str| keys::EXAMPLE_RUN.names().any(|known| known == name);
    entries.iter().any(|(key, _)| key.text == "run")
        && entries.iter().all(|(key, _)| known(&key.text))
}

fn run(node: &Node, lines: bool, reader: &mut Reader<'_>) -> Option<Run> {
    if lines && !matches!(node.value, NodeValue::Map(_)) {
        return reader.text(node, "an example").map(|line| Run::Line(line.to_owned()));
    }
    arguments(node, reader).map(Run::Args)
}

fn arguments(node: &Node, reader: &mut Reader<'_>) -> Option<Value> {
    if !matches!(node.value, NodeValue::Map(_)) {
        let message = format!("an example of this rule is a mapping, not {}", node.describe());
        reader.complain_hint(node.at, message, "write the arguments of the call");
        return None;
    }
    Some(node.to_json())
}

fn given(node: &Node, reader: &mut Reader<'_>) -> Given {
    let mut given = Given::default();
    for (key, node) in reader.fields(node, &keys::GIVEN) {
        match key {
            "git.dirty" => given.dirty = reader.flag(node, "`git.dirty`").unwrap_or_default(),
            "git.untracked" => {
                given.untracked = reader.flag(node, "`git.untracked`").unwrap_or_default();
            }
            "git.branch" => {
                if let Some(branch) = reader.text(node, "`git.branch`") {
                    branch.clone_into(&mut given.branch);
                }
            }
            "exists" => given.exists = paths(node, "`exists`", reader),
            "ignored" => given.ignored = paths(node, "`ignored`", reader),
            _ => given.cwd = reader.text(node, "`cwd`").map(ToOwned::to_owned),
        }
    }
    given
}

/// Canonical paths, in the workspace or absolute.
fn paths(node: &Node, what: &str, reader: &mut Reader<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for node in reader.list(node, what) {
        let Some(text) = reader.text(node, "a path") else { continue };
        let root = text.starts_with('/').then_some("/");
        match canonical(text, root) {
            Ok(path) => {
                let (start, end) =
                    (root.unwrap_or_default(), if text.ends_with('/') { "/" } else { "" });
                paths.push(format!("{start}{path}{end}"));
            }
            Err(error) => reader.complain(node.at, error.to_string()),
        }
    }
    paths
}

/// Switches rules of packs off, or to observe. Gives those that no pack in
/// force has.
pub(crate) fn switch(
    node: &Node,
    rules: &mut Vec<LoweredRule>,
    reader: &mut Reader<'_>,
) -> Vec<(String, At)> {
    let mut idle = Vec::new();
    for (key, node) in reader.fields(node, &keys::PACKS) {
        let mut named = BTreeMap::new();
        for node in reader.list(node, &format!("`packs.{key}`")) {
            if let Some(name) = reader.text(node, "the name of a rule") {
                named.insert(name, node.at);
            }
        }
        let in_force: BTreeMap<&str, usize> = rules
            .iter()
            .enumerate()
            .filter(|(_, lowered)| is_of_pack(lowered, reader))
            .map(|(number, lowered)| (lowered.rule.name.as_str(), number))
            .collect();
        let own: BTreeSet<&str> = rules.iter().map(|lowered| lowered.rule.name.as_str()).collect();
        let mut hit = Vec::new();
        for (name, at) in named {
            match in_force.get(name) {
                Some(number) => hit.push(*number),
                None if builtin::pack_rules().iter().any(|known| known == name) => {
                    idle.push((name.to_owned(), at));
                }
                None => unknown_rule(name, at, own.contains(name), reader),
            }
        }
        apply(key, &hit, rules);
    }
    idle
}

/// Whether a rule came with the product.
pub(crate) fn is_of_pack(lowered: &LoweredRule, reader: &Reader<'_>) -> bool {
    matches!(reader.origin(lowered.at), Origin::Pack(_))
}

fn unknown_rule(name: &str, at: At, own: bool, reader: &mut Reader<'_>) {
    let (message, hint) = if own {
        (
            format!("`{name}` is no rule of a pack"),
            "remove the rule, or give it `mode: observe`".to_owned(),
        )
    } else {
        let known = builtin::pack_rules();
        let hint = reader.meant(name, known.iter().map(String::as_str), || {
            "rules of packs are named pack/rule, such as `git/push-force`".to_owned()
        });
        (format!("no pack has a rule `{name}`"), hint)
    };
    reader.complain_hint(at, message, hint);
}

fn apply(key: &str, numbers: &[usize], rules: &mut Vec<LoweredRule>) {
    if key == "observe" {
        for number in numbers {
            if let Some(lowered) = rules.get_mut(*number) {
                lowered.own_mode = Some(Mode::Observe);
            }
        }
        return;
    }
    let mut number = 0;
    let off: BTreeSet<usize> = numbers.iter().copied().collect();
    rules.retain(|_| {
        number += 1;
        !off.contains(&(number - 1))
    });
}
