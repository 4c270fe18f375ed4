//! The tools of a definition: declared, or named by a section or policy.

use std::collections::BTreeMap;

use jackline_engine::Kind;
use jackline_engine::definition::{Paths, Tool};

use super::{command_words, identity, loops, schemas};
use crate::diagnostic::At;
use crate::keys;
use crate::reader::Reader;
use crate::source::Origin;
use crate::yaml::{Key, Node, NodeValue};

/// The tools so far.
#[derive(Default)]
pub(crate) struct Tools {
    list: Vec<Tool>,
    /// Where each is declared; nowhere if it is only named.
    places: Vec<Option<At>>,
    /// The number of the tool behind each name and alias.
    numbers: BTreeMap<String, usize>,
    /// Whether the file says which tools there are.
    closed: bool,
    /// Whether a file gives a tool that is more than a name for commands.
    given: bool,
}

impl Tools {
    /// Tools of a definition in which a file says, or none does, which there are.
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

    /// The tool behind a name or an alias.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.numbers.get(name).and_then(|number| self.list.get(*number))
    }

    /// The declared name behind a name or an alias.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.get(name).map(|tool| tool.name.as_str())
    }

    /// What a tool does, as far as its name or its declaration tells.
    pub(crate) fn kind(&self, name: &str) -> Kind {
        self.get(name)
            .map_or_else(|| Kind::well_known(name).unwrap_or(Kind::Other), |tool| tool.kind)
    }

    /// Every declared name, for hints.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|tool| tool.name.as_str())
    }

    /// Every tool, with where it is declared.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Tool, Option<At>)> {
        self.list.iter().zip(self.places.iter().copied())
    }

    /// Whether the file says which tools there are.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a file gives a tool that is more than a name for commands.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Puts a tool into a section, and declares it if nobody has.
    pub(crate) fn add_to_section(&mut self, name: &str, section: u16) -> String {
        let name = self.declare_implicitly(name);
        if let Some(tool) = self.numbers.get(&name).and_then(|number| self.list.get_mut(*number))
            && !tool.sections.contains(&section)
        {
            tool.sections.push(section);
        }
        name
    }

    /// The declared name of a tool, declared now if it was not.
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

/// Whether a tool is a name for commands and nothing an agent could call.
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
    let mut tool = Tool::named(&check_name(&key.text, key.at, reader));
    // They mean something by kind, which may come after them.
    let (mut path, mut command) = (None, None);
    let mut paths_given = false;
    for (key, node) in reader.fields(node, &keys::TOOL) {
        match key {
            "kind" => kind(node, &mut tool, reader),
            "aliases" => {
                for node in reader.list(node, "`aliases`") {
                    if let Some(alias) = reader.text(node, "an alias") {
                        let alias = check_name(alias, node.at, reader);
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
            "schema" => tool.schema = schemas::schema(node, "`schema`", reader),
            "output_schema" => {
                tool.output_schema = schemas::schema(node, "`output_schema`", reader);
            }
            "poll" => tool.poll = Some(loops::poll(node, reader)),
            "roles" => tool.roles = identity::roles(node, "`roles`", reader),
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

/// What `path` is short for.
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
    for (key, node) in reader.fields(node, &keys::PATHS) {
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

/// A JSON pointer; the slash at its beginning may be left out.
pub(super) fn pointer(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, what)?;
    let escaped = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    if !escaped {
        let message = format!("`{text}` is not a JSON pointer");
        reader.complain_hint(node.at, message, "write `~0` for `~` and `~1` for `/` in a name");
        return None;
    }
    Some(if text.starts_with('/') { text.to_owned() } else { format!("/{text}") })
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

/// A tool that no event can name would never be seen.
pub(crate) fn check_name(name: &str, at: At, reader: &mut Reader<'_>) -> String {
    if let Err(error) = jackline_engine::ToolName::parse(name) {
        reader.complain(at, format!("the name of a tool {error}"));
    }
    name.to_owned()
}
