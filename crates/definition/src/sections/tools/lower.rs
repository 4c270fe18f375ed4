//! Collects the tools of a definition: declared tools, and tools that only a section or a policy
//! names.

use std::collections::BTreeMap;

use jackline_engine::ToolKind;
use jackline_engine::definition::{DeclaredTool, ToolPaths};

use super::{PATHS, TOOL};
use crate::diagnostic::SourcePosition;
use crate::reader::NodeReader;
use crate::sections::identity::read_roles;
use crate::sections::loops::read_poll;
use crate::source::Origin;
use crate::values::{read_command_words, read_json_schema, read_pointer, read_tool_name};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The tools of a definition while the loader lowers it.
#[derive(Default)]
pub(crate) struct DeclaredTools {
    list: Vec<DeclaredTool>,
    /// The position of each declaration; none for a tool that is only named.
    positions: Vec<Option<SourcePosition>>,
    /// The index of the tool with each name and alias.
    numbers: BTreeMap<String, usize>,
    /// Whether a file declares the tools.
    closed: bool,
    /// Whether a file declares a tool that is more than a name for commands.
    has_callable_tools: bool,
}

impl DeclaredTools {
    /// Creates an empty list. `closed` is true if a file declares the tools.
    pub(crate) fn new(closed: bool) -> Self {
        Self { closed, ..Self::default() }
    }

    /// Reads the `tools` mapping.
    pub(crate) fn declare(&mut self, node: &YamlNode, reader: &mut NodeReader<'_>) {
        let mut names: Vec<(String, SourcePosition)> = Vec::new();
        let mut commands: BTreeMap<String, SourcePosition> = BTreeMap::new();
        for (key, node) in reader.map(node, "`tools`") {
            let tool = tool(key, node, reader, &mut names, &mut commands);
            names.push((tool.name.clone(), key.position));
            let in_file = matches!(reader.origin(key.position), Origin::File(_));
            self.has_callable_tools |= in_file && !is_only_recognised(&tool);
            self.add(tool, Some(key.position));
        }
        names.sort();
        for pair in names.windows(2) {
            if let [(first, _), (second, at)] = pair
                && first == second
            {
                reader.report(*at, format!("two tools are named `{second}`"));
            }
        }
    }

    fn add(&mut self, tool: DeclaredTool, at: Option<SourcePosition>) {
        let number = self.list.len();
        for name in std::iter::once(&tool.name).chain(&tool.aliases) {
            self.numbers.entry(name.clone()).or_insert(number);
        }
        self.list.push(tool);
        self.positions.push(at);
    }

    /// Returns the tool with this name or alias.
    pub(crate) fn get(&self, name: &str) -> Option<&DeclaredTool> {
        self.numbers.get(name).and_then(|number| self.list.get(*number))
    }

    /// Returns the declared name of the tool with this name or alias.
    pub(crate) fn declared_name(&self, name: &str) -> Option<&str> {
        self.get(name).map(|tool| tool.name.as_str())
    }

    /// Returns the kind of a tool, by its declaration or else by its well-known name.
    pub(crate) fn kind(&self, name: &str) -> ToolKind {
        self.get(name)
            .map_or_else(|| ToolKind::well_known(name).unwrap_or(ToolKind::Other), |tool| tool.kind)
    }

    /// Returns every declared name, for hints.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|tool| tool.name.as_str())
    }

    /// Returns every tool with the position of its declaration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&DeclaredTool, Option<SourcePosition>)> {
        self.list.iter().zip(self.positions.iter().copied())
    }

    /// Whether a file declares the tools.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a file declares a tool that is more than a name for commands.
    pub(crate) fn has_callable_tools(&self) -> bool {
        self.has_callable_tools
    }

    /// Adds a tool to a section, and declares the tool if it is new.
    pub(crate) fn add_to_section(&mut self, name: &str, section: u16) -> String {
        let name = self.declare_implicitly(name);
        if let Some(tool) = self.numbers.get(&name).and_then(|number| self.list.get_mut(*number))
            && !tool.sections.contains(&section)
        {
            tool.sections.push(section);
        }
        name
    }

    /// Returns the declared name of a tool, and declares the tool if it is new.
    pub(crate) fn declare_implicitly(&mut self, name: &str) -> String {
        if let Some(known) = self.declared_name(name) {
            return known.to_owned();
        }
        self.add(DeclaredTool::with_name(name), None);
        name.to_owned()
    }

    pub(crate) fn to_list(&self) -> Vec<DeclaredTool> {
        self.list.clone()
    }
}

/// Whether a tool is only a name for commands, and no agent could call it.
fn is_only_recognised(tool: &DeclaredTool) -> bool {
    !tool.commands.is_empty()
        && tool.aliases.is_empty()
        && tool.paths == ToolPaths::default()
        && tool.offset.is_none()
        && tool.limit.is_none()
        && tool.command.is_none()
}

fn tool(
    key: &YamlKey,
    node: &YamlNode,
    reader: &mut NodeReader<'_>,
    names: &mut Vec<(String, SourcePosition)>,
    commands: &mut BTreeMap<String, SourcePosition>,
) -> DeclaredTool {
    let mut tool = DeclaredTool::with_name(&read_tool_name(&key.text, key.position, reader));
    // The meaning of `path` and `command` depends on `kind`, which may come after them.
    let (mut path, mut command) = (None, None);
    let mut paths_given = false;
    for (key, node) in reader.fields(node, &TOOL) {
        match key {
            "kind" => kind(node, &mut tool, reader),
            "aliases" => {
                for node in reader.list(node, "`aliases`") {
                    if let Some(alias) = reader.text(node, "an alias") {
                        let alias = read_tool_name(alias, node.position, reader);
                        names.push((alias.clone(), node.position));
                        tool.aliases.push(alias);
                    }
                }
            }
            "idempotent" => {
                tool.idempotent = reader.flag(node, "`idempotent`").unwrap_or(tool.idempotent);
            }
            "path" => {
                path = read_pointer(node, "`path`", reader).map(|pointer| (pointer, node.position));
            }
            "paths" => {
                paths_given = true;
                tool.paths = paths(node, reader);
            }
            "offset" => tool.offset = read_pointer(node, "`offset`", reader),
            "limit" => tool.limit = read_pointer(node, "`limit`", reader),
            "command" => {
                command = Some(node.position);
                tool.command = read_pointer(node, "`command`", reader);
            }
            "transparent" => {
                tool.transparent = reader.flag(node, "`transparent`").unwrap_or(false);
            }
            "read_only" => tool.read_only = reader.flag(node, "`read_only`").unwrap_or(false),
            "schema" => tool.schema = read_json_schema(node, "`schema`", reader),
            "output_schema" => {
                tool.output_schema = read_json_schema(node, "`output_schema`", reader);
            }
            "poll" => tool.poll = Some(read_poll(node, reader)),
            "roles" => tool.roles = read_roles(node, "`roles`", reader),
            _ => tool.commands = read_commands(node, commands, reader),
        }
    }
    if let Some((pointer, at)) = path {
        if paths_given {
            reader.report(at, "a tool can't have both `path` and `paths`");
        } else {
            tool.paths = paths_by_kind(pointer, at, tool.kind, reader);
        }
    }
    if let Some(at) = command
        && tool.kind != ToolKind::Exec
    {
        reader.report_with_hint(
            at,
            "only a tool of kind `exec` can have a `command`",
            "add `kind: exec`",
        );
    }
    tool
}

fn kind(node: &YamlNode, tool: &mut DeclaredTool, reader: &mut NodeReader<'_>) {
    let declared = reader.word(node, "`kind`", ToolKind::ALL);
    match (declared, ToolKind::parse(&tool.name)) {
        (Some(declared), Some(own)) if declared != own => {
            let name = &tool.name;
            let message = format!("a tool named `{name}` must have kind `{name}`");
            reader.report(node.position, message);
        }
        (Some(declared), _) => tool.kind = declared,
        (None, _) => {}
    }
}

/// Returns the paths that `path` is short for.
fn paths_by_kind(
    pointer: String,
    at: SourcePosition,
    kind: ToolKind,
    reader: &mut NodeReader<'_>,
) -> ToolPaths {
    let pointers = vec![pointer];
    match kind {
        ToolKind::Read | ToolKind::Search => ToolPaths { read: pointers, write: Vec::new() },
        ToolKind::Write | ToolKind::Edit | ToolKind::Delete => {
            ToolPaths { read: Vec::new(), write: pointers }
        }
        _ => {
            let message = "with only `path`, Jackline can't tell whether this tool reads or writes";
            reader.report_with_hint(
                at,
                message,
                "give it a `kind`, or `paths` with `read` or `write`",
            );
            ToolPaths::default()
        }
    }
}

fn paths(node: &YamlNode, reader: &mut NodeReader<'_>) -> ToolPaths {
    let mut paths = ToolPaths::default();
    let mut given = false;
    for (key, node) in reader.fields(node, &PATHS) {
        given = true;
        let items = reader.list(node, &format!("`paths.{key}`"));
        if items.is_empty() && matches!(node.value, YamlValue::List(_) | YamlValue::Null) {
            reader.report(node.position, format!("`paths.{key}` is empty"));
        }
        let pointers =
            items.iter().filter_map(|node| read_pointer(node, "a pointer", reader)).collect();
        if key == "read" {
            paths.read = pointers;
        } else {
            paths.write = pointers;
        }
    }
    if !given && matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        reader.report_with_hint(node.position, "`paths` is empty", "give it `read` or `write`");
    }
    paths
}

/// Reads the commands that count as calls of a tool.
fn read_commands(
    node: &YamlNode,
    taken: &mut BTreeMap<String, SourcePosition>,
    reader: &mut NodeReader<'_>,
) -> Vec<String> {
    let items = reader.list(node, "`commands`");
    if items.is_empty() && matches!(node.value, YamlValue::List(_) | YamlValue::Null) {
        reader.report(node.position, "`commands` is empty");
    }
    let mut commands = Vec::with_capacity(items.len());
    for node in items {
        let Some(command) = read_command_words(node, "a command", reader) else { continue };
        match taken.insert(command.clone(), node.position) {
            Some(_) => {
                reader.report(node.position, format!("`{command}` is a command of two tools"));
            }
            None => commands.push(command),
        }
    }
    commands
}
