//! The tools of a definition: declared, or named by a section or policy.

use jackline_engine::Kind;
use jackline_engine::definition::Tool;

use crate::diagnostic::At;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Key, Node};

/// The tools so far.
#[derive(Default)]
pub(crate) struct Tools {
    list: Vec<Tool>,
    /// Whether the file says which tools there are.
    closed: bool,
}

impl Tools {
    /// Reads the `tools` mapping.
    pub(crate) fn declare(&mut self, node: &Node, reader: &mut Reader<'_>) {
        self.closed = true;
        let mut names: Vec<(String, At)> = Vec::new();
        for (key, node) in reader.map(node, "`tools`") {
            let tool = tool(key, node, reader, &mut names);
            names.push((tool.name.clone(), key.at));
            self.list.push(tool);
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

    /// The declared name behind a name or an alias.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.list
            .iter()
            .find(|tool| tool.name == name || tool.aliases.iter().any(|alias| alias == name))
            .map(|tool| tool.name.as_str())
    }

    /// Every declared name, for hints.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|tool| tool.name.as_str())
    }

    /// Whether the file says which tools there are.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Puts a tool into a section, and declares it if nobody has.
    pub(crate) fn add_to_section(&mut self, name: &str, section: u16) -> String {
        let name = self.declare_implicitly(name);
        if let Some(tool) = self.list.iter_mut().find(|tool| tool.name == name)
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
        self.list.push(Tool::named(name));
        name.to_owned()
    }

    pub(crate) fn finish(self) -> Vec<Tool> {
        self.list
    }
}

fn tool(key: &Key, node: &Node, reader: &mut Reader<'_>, names: &mut Vec<(String, At)>) -> Tool {
    let name = check_name(&key.text, key.at, reader);
    let mut kind = Kind::well_known(&name).unwrap_or(Kind::Other);
    let mut aliases = Vec::new();
    let mut idempotent = true;
    for (key, node) in reader.fields(node, &keys::TOOL) {
        if key == "idempotent" {
            idempotent = reader.flag(node, "`idempotent`").unwrap_or(idempotent);
        } else if key == "kind" {
            let declared = reader.word(node, "`kind`", Kind::ALL);
            match (declared, Kind::parse(&name)) {
                (Some(declared), Some(own)) if declared != own => reader.complain(
                    node.at,
                    format!("a tool named `{name}` has that kind and can't have another"),
                ),
                (Some(declared), _) => kind = declared,
                (None, _) => {}
            }
        } else {
            for node in reader.list(node, "`aliases`") {
                if let Some(alias) = reader.text(node, "an alias") {
                    let alias = check_name(alias, node.at, reader);
                    names.push((alias.clone(), node.at));
                    aliases.push(alias);
                }
            }
        }
    }
    Tool { kind, aliases, idempotent, ..Tool::named(&name) }
}

/// A tool that no event can name would never be seen.
pub(crate) fn check_name(name: &str, at: At, reader: &mut Reader<'_>) -> String {
    if let Err(error) = jackline_engine::ToolName::parse(name) {
        reader.complain(at, format!("the name of a tool {error}"));
    }
    name.to_owned()
}
