//! Lowers rules.

use std::collections::BTreeMap;

use jackline_engine::definition::{Effect, Rule, RuleScope, Rules};
use jackline_engine::expr::Expr;
use jackline_engine::{Kind, Mode};

use super::examples::{ExampleTarget, examples};
use super::{EFFECTS, LoweredRule, RULE, packs};
use crate::cel;
use crate::diagnostic::At;
use crate::lower::Lowering;
use crate::reader::Reader;
use crate::sections::mode::MODES;
use crate::sections::modes;
use crate::sections::tools::Tools;
use crate::source::Origin;
use crate::values::{command_words, tool_name};
use crate::well_known;
use crate::yaml::{Node, NodeValue};

/// The longest name of a rule.
const NAME_BYTES_MAX: usize = 100;

/// Rules name tools, so they are lowered once all tools are known. Then `packs` and `modes` are
/// applied to them.
pub(crate) fn lower(lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
    if let Some(node) = lowering.node("rules") {
        lowering.rules = rules(node, &lowering.tools, reader);
    }
    if let Some(node) = lowering.node("packs") {
        lowering.idle = packs::switch(node, &mut lowering.rules, reader);
    }
    let Lowering { definition, rules, idle, modes, .. } = lowering;
    modes::set(modes, definition.mode, rules, idle, reader);
    definition.rules = Rules::new(rules.iter().map(|lowered| lowered.rule.clone()).collect());
}

fn rules(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Vec<LoweredRule> {
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

/// The keys of one rule.
#[derive(Default)]
struct RuleFields<'n> {
    name: Option<&'n Node>,
    tool: Option<&'n Node>,
    command: Option<&'n Node>,
    when: Option<&'n Node>,
    effects: Vec<(&'n str, Effect, &'n Node)>,
    instead: Option<&'n Node>,
    mode: Option<&'n Node>,
    examples: Option<&'n Node>,
}

fn fields<'n>(node: &'n Node, reader: &mut Reader<'_>) -> RuleFields<'n> {
    let mut fields = RuleFields::default();
    for (key, node) in reader.fields(node, &RULE) {
        match key {
            "name" => fields.name = Some(node),
            "tool" => fields.tool = Some(node),
            "command" => fields.command = Some(node),
            "when" => fields.when = Some(node),
            "instead" => fields.instead = Some(node),
            "mode" => fields.mode = Some(node),
            "examples" => fields.examples = Some(node),
            effect => {
                let known = EFFECTS.iter().find(|(word, _)| *word == effect);
                fields.effects.extend(known.map(|(word, effect)| (*word, *effect, node)));
            }
        }
    }
    fields
}

fn rule(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Option<LoweredRule> {
    let fields = fields(node, reader);
    if !matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        return None;
    }
    let name = match fields.name {
        Some(node) => name(node, reader),
        None => {
            reader.complain(node.at, "a rule has a `name`");
            None
        }
    };
    let commands = fields.command.map(|node| commands(node, reader));
    let scope = scope(fields.tool, commands.is_some(), tools, reader);
    let when = fields.when.map(|node| condition(node, reader));
    let effect = effect(node, &fields.effects, reader);
    let instead = fields.instead.map(|node| reader.text(node, "`instead`"));
    let mode = fields.mode.and_then(|node| reader.word(node, "`mode`", &MODES));
    let target = ExampleTarget { scope: scope.as_ref(), tools };
    let examples = match fields.examples {
        Some(examples) => self::examples(examples, effect.as_ref(), &target, reader),
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
    let tool_at = fields.tool.map(|node| node.at);
    let instead_at = fields.instead.map(|node| node.at);
    Some(LoweredRule { rule, own_mode: mode, at: node.at, tool_at, instead_at, examples })
}

/// The name of a rule. The name of a rule of a pack begins with the name of the pack.
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
        let name = known.unwrap_or_else(|| tool_name(text, node.at, reader));
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

/// The effect of a rule, with its word and its message.
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
