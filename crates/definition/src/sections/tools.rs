//! `tools` and `unknown_tools`: the tools of the agent, and calls of any other tool.

mod join;
mod lower;

use jackline_engine::Kind;
use jackline_engine::definition::{Tool, UnknownTools};

use super::loops::POLL;
use super::prelude::*;
use super::rules::kind_word;
use super::schemas::{OUTPUT, PLAN, SCHEMA};

pub(crate) use lower::Tools;

static TOOLS_KEYS: [Key; 1] = [key(
    "tools",
    Names(0, "tool", &Map(&TOOL)),
    "none",
    "The tools of the agent. Where it is given, policies and rules may only name tools that are declared.",
)];

static UNKNOWN_TOOLS_KEYS: [Key; 1] = [key(
    "unknown_tools",
    Word(&words_of::<_, 2>(&UNKNOWN_TOOLS)),
    "`deny` if a file gives `tools`, `commands` aside; else `allow`",
    "What happens to tools that are not declared.",
)];

const UNKNOWN_TOOLS: [(&str, UnknownTools); 2] =
    [("allow", UnknownTools::Allow), ("deny", UnknownTools::Deny)];

/// The kind of a tool.
pub(crate) const TAKES_KIND: Takes = Word(&words_of::<_, { Kind::ALL.len() }>(Kind::ALL));

static TOOL: Keys = Keys {
    id: "tool",
    of: "a tool",
    doc: "A tool named like a kind has that kind. Finished calls of kind `write`, `edit` and `delete` change the \
          workspace, so that what was earned before is no longer `fresh`.",
    known: &[
        key(
            "kind",
            TAKES_KIND,
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

static PATHS: Keys = Keys {
    id: "paths",
    of: "`paths`",
    doc: "Each pointer leads to a text or a list of texts.",
    known: &[
        key("read", List(1, &Pointer), "none", "To files that are read."),
        key("write", List(1, &Pointer), "none", "To files that are written, changed or removed."),
    ],
    needs: &[Needs::Some(&["read", "write"])],
};

pub(crate) struct ToolsSection;

impl Section for ToolsSection {
    type Part = Vec<Demand<Tool>>;

    const KEYS: &'static [Key] = &TOOLS_KEYS;
    // The reference page shows the schemas of plans and outputs beside those of tools.
    const MAPPINGS: &'static [&'static Keys] = &[&TOOL, &SCHEMA, &PLAN, &OUTPUT, &PATHS, &POLL];
    const JOIN_STEP: JoinStep = JoinStep::First;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        lowering.tools.declare(node, reader);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.list(source.definition.tools.iter().cloned())
    }

    fn follows_mode(tools: &Self::Part) -> bool {
        tools.iter().any(|tool| tool.value.roles.is_some() || !tool.value.idempotent)
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        join::join_tools(high, low, join)
    }

    fn describe(tools: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for tool in tools {
            lines.add(Subject::Tool, text(&tool.value), tool.layer);
        }
    }

    fn put(tools: Self::Part, definition: &mut Definition) {
        definition.tools = values(tools);
    }
}

pub(crate) struct UnknownToolsSection;

impl Section for UnknownToolsSection {
    type Part = Demand<UnknownTools>;

    const KEYS: &'static [Key] = &UNKNOWN_TOOLS_KEYS;
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        lowering.unknown_tools = reader.word(node, "`unknown_tools`", &UNKNOWN_TOOLS);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.unknown_tools)
    }

    fn follows_mode(unknown: &Self::Part) -> bool {
        unknown.value == UnknownTools::Deny
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let demands = |high, low| high == UnknownTools::Deny || low == UnknownTools::Allow;
        join.setting(&high.unknown_tools, &low.unknown_tools, demands, unknown_text, "denies them")
    }

    fn describe(unknown: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.general_unless(Definition::default().unknown_tools, unknown, unknown_text);
    }

    fn put(unknown: Self::Part, definition: &mut Definition) {
        definition.unknown_tools = unknown.value;
    }
}

/// Finishes the tools once policies have added the tools that only they name. Unknown tools are
/// denied by default where a file declares tools.
pub(crate) fn lower(lowering: &mut Lowering<'_>, _reader: &mut Reader<'_>) {
    let default = if lowering.tools.is_given() { UnknownTools::Deny } else { UnknownTools::Allow };
    lowering.definition.unknown_tools = lowering.unknown_tools.unwrap_or(default);
    lowering.definition.tools = lowering.tools.to_list();
}

fn unknown_text(unknown: UnknownTools) -> String {
    format!("unknown_tools: {}", unknown_word(unknown))
}

/// `allow` or `deny`.
pub fn unknown_word(unknown: UnknownTools) -> &'static str {
    match unknown {
        UnknownTools::Allow => "allow",
        UnknownTools::Deny => "deny",
    }
}

/// How a tool is understood.
pub fn text(tool: &Tool) -> String {
    let aliases: Vec<String> = tool.aliases.iter().map(|alias| format!("`{alias}`")).collect();
    let aliases =
        if aliases.is_empty() { String::new() } else { format!(", also {}", aliases.join(", ")) };
    let once = if tool.idempotent { "" } else { ", not twice alike" };
    let repeated = match (tool.transparent, tool.poll, tool.read_only) {
        (true, ..) => ", passed over by the loop guard",
        (_, Some(_), _) => ", may be asked again and again",
        (_, _, true) => ", changes nothing",
        _ => "",
    };
    let only = match &tool.roles {
        Some(roles) => format!(", only for roles {}", roles.join(", ")),
        None => String::new(),
    };
    let checked = match (&tool.schema, &tool.output_schema) {
        (Some(_), Some(_)) => ", arguments and results checked by schemas",
        (Some(_), None) => ", arguments checked by a schema",
        (None, Some(_)) => ", results checked by a schema",
        (None, None) => "",
    };
    let kind = kind_word(tool.kind);
    format!("`{}` of kind {kind}{aliases}{once}{repeated}{only}{checked}", tool.name)
}

#[cfg(test)]
mod tests;
