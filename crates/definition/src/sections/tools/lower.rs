//! The tools of a definition: those in `tools`, and those that only a section or a policy names.

use std::collections::BTreeMap;

use jackline_engine::Kind;
use jackline_engine::definition::{Paths, Tool};

use super::{PATHS, TOOL};
use crate::diagnostic::At;
use crate::reader::Reader;
use crate::sections::identity::read_roles;
use crate::sections::loops::read_poll;
use crate::source::Origin;
use crate::values::{command_words, json_schema, pointer, tool_name};
use crate::yaml::{Key, Node, NodeValue};

/// The tools while a file is read.
#[derive(Default)]
pub(crate) struct Tools {
    list: Vec<Tool>,
    /// Where each tool is declared; none for a tool that is only named.
    places: Vec<Option<At>>,
    /// The index of the tool with each name and alias.
    numbers: BTreeMap<String, usize>,
    /// Whether a file declares which tools there are.
    closed: bool,
    /// Whether a file declares a tool that is more than a name for commands.
    given: bool,
}

impl Tools {
    /// No tools yet; `closed` says whether a file declares which tools there are.
    pub(crate) fn new(closed: bool) -> Self {
        Self { closed, ..Self::default() }
    }

    /// Reads the `tools` mapping.
    pub(crate) fn declare(&mut self, node: &Node, reader: &mut Reader<'_>) {
        let mut names: Vec<(String, At)> = Vec::new();
        let mut commands: BTreeMap<String, At> = BTreeMap::new();
        for (key, node) in reader.map(node, "`tools`") {
            let tool = tool(key, node, reader, &mut names, &mut commands);
            names.push((tool.name.clone(), key.at));
            let in_file = matches!(reader.origin(key.at), Origin::File(_));
            self.given |= in_file && !is_merely_recognised(&tool);
            self.add(tool, Some(key.at));
        }
        names.sort();
        for pair in names.windows(2) {
            if let [(first, _), (second, at)] = pair
                && first == second
            {
                reader.complain(*at, format!("`{second}` names two tools"));
            }
        }
    }

    fn add(&mut self, tool: Tool, at: Option<At>) {
        let number = self.list.len();
        for name in std::iter::once(&tool.name).chain(&tool.aliases) {
            self.numbers.entry(name.clone()).or_insert(number);
        }
        self.list.push(tool);
        self.places.push(at);
    }

    /// The tool with a name or an alias.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.numbers.get(name).and_then(|number| self.list.get(*number))
    }

    /// The declared name of the tool with a name or an alias.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.get(name).map(|tool| tool.name.as_str())
    }

    /// The kind of a tool, by its declaration or else by its well-known name.
    pub(crate) fn kind(&self, name: &str) -> Kind {
        self.get(name)
            .map_or_else(|| Kind::well_known(name).unwrap_or(Kind::Other), |tool| tool.kind)
    }

    /// Every declared name, for hints.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|tool| tool.name.as_str())
    }

    /// Every tool, with the place of its declaration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Tool, Option<At>)> {
        self.list.iter().zip(self.places.iter().copied())
    }

    /// Whether a file declares which tools there are.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a file declares a tool that is more than a name for commands.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Puts a tool into a section, and declares it if it is new.
    pub(crate) fn add_to_section(&mut self, name: &str, section: u16) -> String {
        let name = self.declare_implicitly(name);
        if let Some(tool) = self.numbers.get(&name).and_then(|number| self.list.get_mut(*number))
            && !tool.sections.contains(&section)
        {
            tool.sections.push(section);
        }
        name
    }

    /// The declared name of a tool; a new tool is declared now.
    pub(crate) fn declare_implicitly(&mut self, name: &str) -> String {
        if let Some(known) = self.find(name) {
            return known.to_owned();
        }
        self.add(Tool::named(name), None);
        name.to_owned()
    }

    pub(crate) fn to_list(&self) -> Vec<Tool> {
        self.list.clone()
    }
}

/// Whether a tool is only a name for commands, and no agent could call it.
fn is_merely_recognised(tool: &Tool) -> bool {
    !tool.commands.is_empty()
        && tool.aliases.is_empty()
        && tool.paths == Paths::default()
        && tool.offset.is_none()
        && tool.limit.is_none()
        && tool.command.is_none()
}

fn tool(
    key: &Key,
    node: &Node,
    reader: &mut Reader<'_>,
    names: &mut Vec<(String, At)>,
    commands: &mut BTreeMap<String, At>,
) -> Tool {
    let mut tool = Tool::named(&tool_name(&key.text, key.at, reader));
    // What `path` and `command` mean depends on `kind`, which may come after them.
    let (mut path, mut command) = (None, None);
    let mut paths_given = false;
    for (key, node) in reader.fields(node, &TOOL) {
        match key {
            "kind" => kind(node, &mut tool, reader),
            "aliases" => {
                for node in reader.list(node, "`aliases`") {
                    if let Some(alias) = reader.text(node, "an alias") {
                        let alias = tool_name(alias, node.at, reader);
                        names.push((alias.clone(), node.at));
                        tool.aliases.push(alias);
                    }
                }
            }
            "idempotent" => {
                tool.idempotent = reader.flag(node, "`idempotent`").unwrap_or(tool.idempotent);
            }
            "path" => path = pointer(node, "`path`", reader).map(|pointer| (pointer, node.at)),
            "paths" => {
                paths_given = true;
                tool.paths = paths(node, reader);
            }
            "offset" => tool.offset = pointer(node, "`offset`", reader),
            "limit" => tool.limit = pointer(node, "`limit`", reader),
            "command" => {
                command = Some(node.at);
                tool.command = pointer(node, "`command`", reader);
            }
            "transparent" => {
                tool.transparent = reader.flag(node, "`transparent`").unwrap_or(false);
            }
            "read_only" => tool.read_only = reader.flag(node, "`read_only`").unwrap_or(false),
            "schema" => tool.schema = json_schema(node, "`schema`", reader),
            "output_schema" => {
                tool.output_schema = json_schema(node, "`output_schema`", reader);
            }
            "poll" => tool.poll = Some(read_poll(node, reader)),
            "roles" => tool.roles = read_roles(node, "`roles`", reader),
            _ => tool.commands = recognised(node, commands, reader),
        }
    }
    if let Some((pointer, at)) = path {
        if paths_given {
            reader.complain(at, "a tool has `path` or `paths`, not both");
        } else {
            tool.paths = by_kind(pointer, at, tool.kind, reader);
        }
    }
    if let Some(at) = command
        && tool.kind != Kind::Exec
    {
        reader.complain_hint(at, "only a tool of kind `exec` has a `command`", "add `kind: exec`");
    }
    tool
}

fn kind(node: &Node, tool: &mut Tool, reader: &mut Reader<'_>) {
    let declared = reader.word(node, "`kind`", Kind::ALL);
    match (declared, Kind::parse(&tool.name)) {
        (Some(declared), Some(own)) if declared != own => {
            let name = &tool.name;
            let message = format!("a tool named `{name}` has that kind and can't have another");
            reader.complain(node.at, message);
        }
        (Some(declared), _) => tool.kind = declared,
        (None, _) => {}
    }
}

/// The paths that `path` stands for.
fn by_kind(pointer: String, at: At, kind: Kind, reader: &mut Reader<'_>) -> Paths {
    let pointers = vec![pointer];
    match kind {
        Kind::Read | Kind::Search => Paths { read: pointers, write: Vec::new() },
        Kind::Write | Kind::Edit | Kind::Delete => Paths { read: Vec::new(), write: pointers },
        _ => {
            let message = "`path` does not tell whether this tool reads or writes";
            reader.complain_hint(
                at,
                message,
                "give it a `kind`, or `paths` with `read` or `write`",
            );
            Paths::default()
        }
    }
}

fn paths(node: &Node, reader: &mut Reader<'_>) -> Paths {
    let mut paths = Paths::default();
    let mut given = false;
    for (key, node) in reader.fields(node, &PATHS) {
        given = true;
        let items = reader.list(node, &format!("`paths.{key}`"));
        if items.is_empty() && matches!(node.value, NodeValue::List(_) | NodeValue::Null) {
            reader.complain(node.at, format!("`paths.{key}` is empty"));
        }
        let pointers = items.iter().filter_map(|node| pointer(node, "a pointer", reader)).collect();
        if key == "read" {
            paths.read = pointers;
        } else {
            paths.write = pointers;
        }
    }
    if !given && matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        reader.complain_hint(node.at, "`paths` is empty", "give it `read` or `write`");
    }
    paths
}

/// The commands by which a tool is recognised.
fn recognised(
    node: &Node,
    taken: &mut BTreeMap<String, At>,
    reader: &mut Reader<'_>,
) -> Vec<String> {
    let items = reader.list(node, "`commands`");
    if items.is_empty() && matches!(node.value, NodeValue::List(_) | NodeValue::Null) {
        reader.complain(node.at, "`commands` is empty");
    }
    let mut commands = Vec::with_capacity(items.len());
    for node in items {
        let Some(command) = command_words(node, "a command", reader) else { continue };
        match taken.insert(command.clone(), node.at) {
            Some(_) => reader.complain(node.at, format!("`{command}` stands for two tools")),
            None => commands.push(command),
        }
    }
    commands
}
