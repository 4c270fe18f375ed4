//! `tools` and `unknown_tools`: the tools of the agent, and calls of undeclared tools.

mod join;
mod lower;

use jackline_engine::ToolKind;
use jackline_engine::definition::{DeclaredTool, UnknownTools};

use super::loops::POLL;
use super::prelude::*;
use super::rules::kind_as_str;
use super::schemas::{OUTPUT, PLAN, SCHEMA};

pub(crate) use lower::DeclaredTools;

static TOOLS_KEYS: [KeySpec; 1] = [key(
    "tools",
    Names(0, "tool", &Map(&TOOL)),
    "none",
    "The tools of the agent. If a file declares tools, policies and rules may only name declared tools.",
)];

static UNKNOWN_TOOLS_KEYS: [KeySpec; 1] = [key(
    "unknown_tools",
    Word(&words_of::<_, 3>(&UNKNOWN_TOOLS)),
    "`client` if a file declares `tools` that are more than names for `commands`; else `allow`",
    "Which undeclared tools run: all (`allow`); those of the agent's client and those with a well-known name (`client`); or none (`deny`).",
)];

const UNKNOWN_TOOLS: [(&str, UnknownTools); 3] = [
    ("allow", UnknownTools::Allow),
    ("client", UnknownTools::Client),
    ("deny", UnknownTools::Deny),
];

/// The type of a key that takes the kind of a tool.
pub(crate) const KIND_VALUE: ValueType =
    Word(&words_of::<_, { ToolKind::ALL.len() }>(ToolKind::ALL));

static TOOL: MappingSpec = MappingSpec {
    id: "tool",
    label: "a tool",
    doc: "A tool whose name is a kind has that kind. Finished calls of kind `write`, `edit` and `delete` change the \
          workspace, so earlier successes are no longer `fresh`.",
    entries: &[
        key(
            "kind",
            KIND_VALUE,
            "the kind of its well-known name, else `other`",
            "What the tool does.",
        ),
        key("aliases", List(0, &Text), "none", "Other names that clients use for it."),
        key(
            "idempotent",
            Flag,
            "`true`",
            "If `false`, an identical second call is refused until a person sends a message.",
        ),
        key(
            "path",
            Pointer,
            "the usual names",
            "Short form of `paths`; the kind decides whether the tool reads or writes the file. `path: file` is the same as `path: /file`.",
        ),
        key("paths", Map(&PATHS), "the usual names", "The arguments that name files."),
        key("offset", Pointer, "none", "The argument with the first line to read."),
        key("limit", Pointer, "none", "The argument with the number of lines to read."),
        key(
            "command",
            Pointer,
            "`/command` for kind `exec`",
            "The argument with the command line.",
        ),
        key(
            "commands",
            TEXT_LIST,
            "none",
            "Commands that count as a call of this tool when they occur in a command line, such as `make deploy`.",
        ),
        key(
            "transparent",
            Flag,
            "`false`",
            "Whether the loop guard ignores it, as it ignores notes and plans.",
        ),
        key(
            "read_only",
            Flag,
            "`true` for kind `read`, `search` and `fetch`",
            "Whether it changes nothing. The same result again is then no progress.",
        ),
        key("schema", Schema, "none", "The JSON Schema of its arguments."),
        key(
            "output_schema",
            Schema,
            "none",
            "The JSON Schema of its results, for results that are JSON. A result that does not match is reported to the agent and never refused, because the tool has already run.",
        ),
        key("poll", Map(&POLL), "none", "How long the agent may poll this tool for a change."),
        key(
            "roles",
            TEXT_LIST,
            "none: every role",
            "The roles that may call it. Such a tool is privileged: before each call Jackline checks that a person has approved the agent.",
        ),
    ],
    required: &[],
};

static PATHS: MappingSpec = MappingSpec {
    id: "paths",
    label: "`paths`",
    doc: "Each pointer names a text or a list of texts.",
    entries: &[
        key("read", List(1, &Pointer), "none", "Files that the tool reads."),
        key("write", List(1, &Pointer), "none", "Files that the tool writes, changes or deletes."),
    ],
    required: &[RequiredKeys::Some(&["read", "write"])],
};

pub(crate) struct ToolsSection;

impl Section for ToolsSection {
    type Part = Vec<Demand<DeclaredTool>>;

    const KEYS: &'static [KeySpec] = &TOOLS_KEYS;
    // The reference page shows the schemas of plans and outputs next to those of tools.
    const MAPPINGS: &'static [&'static MappingSpec] =
        &[&TOOL, &SCHEMA, &PLAN, &OUTPUT, &PATHS, &POLL];
    const JOIN_STEP: JoinStep = JoinStep::First;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
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

    fn describe(tools: &Self::Part, lines: &mut DemandLines<'_>) {
        for tool in tools {
            lines.add(DemandSubject::Tool, text(&tool.value), tool.layer);
        }
    }

    fn put(tools: Self::Part, definition: &mut Definition) {
        definition.tools = values(tools);
    }
}

pub(crate) struct UnknownToolsSection;

impl Section for UnknownToolsSection {
    type Part = Demand<UnknownTools>;

    const KEYS: &'static [KeySpec] = &UNKNOWN_TOOLS_KEYS;
    const JOIN_STEP: JoinStep = JoinStep::Second;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let unknown = reader.word(node, "`unknown_tools`", &UNKNOWN_TOOLS);
        lowering.unknown_tools = unknown.map(|value| (value, node.position));
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.unknown_tools)
    }

    fn follows_mode(unknown: &Self::Part) -> bool {
        unknown.value != UnknownTools::Allow
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let demands = |high, low| high >= low;
        join.join_setting(
            &high.unknown_tools,
            &low.unknown_tools,
            demands,
            unknown_text,
            "denies them",
        )
    }

    fn describe(unknown: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_general_unless_default(
            Definition::default().unknown_tools,
            unknown,
            unknown_text,
        );
    }

    fn put(unknown: Self::Part, definition: &mut Definition) {
        definition.unknown_tools = unknown.value;
    }
}

/// Lowers the tools after policies have added the tools that only they name. If a file declares
/// tools, those of the agent's client stay known by default.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, _reader: &mut NodeReader<'_>) {
    let default = if lowering.tools.has_callable_tools() {
        UnknownTools::Client
    } else {
        UnknownTools::Allow
    };
    let written = lowering.unknown_tools.map(|(value, _)| value);
    lowering.definition.unknown_tools = written.unwrap_or(default);
    lowering.definition.tools = lowering.tools.to_list();
}

fn unknown_text(unknown: UnknownTools) -> String {
    format!("unknown_tools: {}", unknown_tools_as_str(unknown))
}

/// Returns the word of a setting for unknown tools.
pub fn unknown_tools_as_str(unknown: UnknownTools) -> &'static str {
    UNKNOWN_TOOLS.iter().find(|(_, known)| *known == unknown).map_or("", |(word, _)| word)
}

/// Describes a declared tool.
pub fn text(tool: &DeclaredTool) -> String {
    let aliases: Vec<String> = tool.aliases.iter().map(|alias| format!("`{alias}`")).collect();
    let aliases =
        if aliases.is_empty() { String::new() } else { format!(", also {}", aliases.join(", ")) };
    let repeat = if tool.idempotent { "" } else { ", identical second call refused" };
    let repeated = match (tool.transparent, tool.poll, tool.read_only) {
        (true, ..) => ", ignored by the loop guard",
        (_, Some(_), _) => ", may be polled",
        (_, _, true) => ", read-only",
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
    let kind = kind_as_str(tool.kind);
    format!("`{}` of kind {kind}{aliases}{repeat}{repeated}{only}{checked}", tool.name)
}

#[cfg(test)]
mod tests;
