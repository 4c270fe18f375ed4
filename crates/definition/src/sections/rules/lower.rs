//! Lowers rules.

use std::collections::BTreeMap;

use jackline_engine::definition::{Rule, RuleEffect, RuleScope, Rules};
use jackline_engine::expr::Expr;
use jackline_engine::{Mode, ToolKind};

use super::examples::{ExampleTarget, examples};
use super::{EFFECTS, LoweredRule, RULE, packs};
use crate::cel;
use crate::diagnostic::SourcePosition;
use crate::lower::LoweringState;
use crate::reader::NodeReader;
use crate::sections::mode::MODES;
use crate::sections::modes;
use crate::sections::tools::DeclaredTools;
use crate::source::Origin;
use crate::values::{read_command_words, read_tool_name};
use crate::yaml::{YamlNode, YamlValue};

/// The maximum length of the name of a rule in bytes.
const RULE_NAME_BYTES_MAX: usize = 100;

/// Lowers the rules after all tools are known, because rules name tools. Then applies `packs` and
/// `modes` to the rules.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
    if let Some(node) = lowering.node("rules") {
        lowering.rules = rules(node, &lowering.tools, reader);
    }
    if let Some(node) = lowering.node("packs") {
        lowering.unused_pack_rules = packs::apply_packs(node, &mut lowering.rules, reader);
    }
    let LoweringState { definition, rules, unused_pack_rules: idle, modes, .. } = lowering;
    modes::set_rule_modes(modes, definition.mode, rules, idle, reader);
    definition.rules = Rules::new(rules.iter().map(|lowered| lowered.rule.clone()).collect());
}

fn rules(node: &YamlNode, tools: &DeclaredTools, reader: &mut NodeReader<'_>) -> Vec<LoweredRule> {
    let mut names: BTreeMap<String, SourcePosition> = BTreeMap::new();
    let mut rules = Vec::new();
    for item in reader.list(node, "`rules`") {
        let Some(lowered) = rule(item, tools, reader) else { continue };
        let name = lowered.rule.name.clone();
        match names.insert(name, lowered.position) {
            Some(_) => {
                let message = format!("two rules are named `{}`", lowered.rule.name);
                reader.report(lowered.position, message);
            }
            None => rules.push(lowered),
        }
    }
    rules
}

/// The keys of one rule.
#[derive(Default)]
struct RuleFields<'n> {
    name: Option<&'n YamlNode>,
    tool: Option<&'n YamlNode>,
    command: Option<&'n YamlNode>,
    when: Option<&'n YamlNode>,
    effects: Vec<(&'n str, RuleEffect, &'n YamlNode)>,
    instead: Option<&'n YamlNode>,
    mode: Option<&'n YamlNode>,
    examples: Option<&'n YamlNode>,
}

fn fields<'n>(node: &'n YamlNode, reader: &mut NodeReader<'_>) -> RuleFields<'n> {
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

fn rule(
    node: &YamlNode,
    tools: &DeclaredTools,
    reader: &mut NodeReader<'_>,
) -> Option<LoweredRule> {
    let fields = fields(node, reader);
    if !matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        return None;
    }
    let name = match fields.name {
        Some(node) => name(node, reader),
        None => {
            reader.report(node.position, "a rule needs a `name`");
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
            let hint = "show at least one call that it matches";
            reader.report_with_hint(node.position, "a rule needs `examples`", hint);
            Vec::new()
        }
    };
    let (_, effect, message) = effect?;
    let rule = Rule {
        name: name?,
        origin: reader.origin(node.position).to_string(),
        scope: scope?,
        commands: commands.map_or(Some(Vec::new()), |commands| commands)?,
        when: when.map_or(Some(None), |when| when.map(Some))?,
        effect,
        mode: Mode::Enforce,
        message,
        instead: instead.flatten().map(ToOwned::to_owned),
    };
    let tool_at = fields.tool.map(|node| node.position);
    let instead_at = fields.instead.map(|node| node.position);
    Some(LoweredRule {
        rule,
        own_mode: mode,
        position: node.position,
        tool_position: tool_at,
        instead_position: instead_at,
        examples,
    })
}

/// Reads the name of a rule. The name of a pack rule starts with the name of the pack.
fn name(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "the name of a rule")?;
    let fits = text.len() <= RULE_NAME_BYTES_MAX
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c));
    if !fits {
        let shown: String = text.chars().take(40).collect();
        let hint = format!(
            "use letters, digits, `.`, `_`, `/` and `-`, at most {RULE_NAME_BYTES_MAX} characters"
        );
        reader.report_with_hint(
            node.position,
            format!("`{shown}` can't be the name of a rule"),
            hint,
        );
        return None;
    }
    Some(match reader.origin(node.position) {
        Origin::Pack(pack) => format!("{pack}/{text}"),
        Origin::File(_) | Origin::Preset(_) => text.to_owned(),
    })
}

fn commands(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<Vec<String>> {
    let YamlValue::List(items) = &node.value else {
        return read_command_words(node, "`command`", reader).map(|command| vec![command]);
    };
    if items.is_empty() {
        reader.report(node.position, "`command` is empty");
        return None;
    }
    let lowered: Vec<_> =
        items.iter().map(|item| read_command_words(item, "a command", reader)).collect();
    lowered.into_iter().collect()
}

fn scope(
    node: Option<&YamlNode>,
    has_command: bool,
    tools: &DeclaredTools,
    reader: &mut NodeReader<'_>,
) -> Option<RuleScope> {
    let Some(node) = node else {
        return Some(if has_command { RuleScope::Kind(ToolKind::Exec) } else { RuleScope::Any });
    };
    let text = reader.text(node, "`tool`")?;
    let (scope, kind) = if let Some(kind) = ToolKind::parse(text) {
        (RuleScope::Kind(kind), kind)
    } else {
        let known = tools.declared_name(text).map(ToOwned::to_owned);
        if known.is_none() && tools.is_closed() && ToolKind::well_known(text).is_none() {
            let common = ToolKind::well_known_names();
            let all = tools.names().chain(common);
            let message = format!("this rule can never see `{text}`: no such tool is declared");
            let hint = reader
                .suggest(text, all, || "name a tool or a kind, or add it to `tools`".to_owned());
            reader.report_with_hint(node.position, message, hint);
            return None;
        }
        let name = known.unwrap_or_else(|| read_tool_name(text, node.position, reader));
        let kind = tools.kind(&name);
        (RuleScope::Tool(name), kind)
    };
    if has_command && kind != ToolKind::Exec {
        let message = format!("`{text}` runs no command lines, so `command` would never match");
        reader.report_with_hint(
            node.position,
            message,
            "leave out `tool`, or name one of kind `exec`",
        );
        return None;
    }
    Some(scope)
}

fn condition(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<Expr> {
    let text = reader.text(node, "`when`")?;
    match cel::parse_condition(text) {
        Ok(condition) => Some(condition),
        Err(wrong) => {
            let at = reader.position_in_text(node, wrong.offset);
            match wrong.hint {
                Some(hint) => reader.report_with_hint(at, wrong.message, hint),
                None => reader.report(at, wrong.message),
            }
            None
        }
    }
}

/// Reads the effect of a rule, with its word and its message.
fn effect<'n>(
    node: &YamlNode,
    given: &[(&'n str, RuleEffect, &YamlNode)],
    reader: &mut NodeReader<'_>,
) -> Option<(&'n str, RuleEffect, String)> {
    if given.len() != 1 {
        let message = format!("a rule must have exactly one effect, not {}", given.len());
        reader.report_with_hint(
            node.position,
            message,
            "give it `deny`, `ask`, `warn` or `observe`",
        );
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
