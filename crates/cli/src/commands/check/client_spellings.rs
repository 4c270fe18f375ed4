//! Warnings about tools that a client calls by another name, so that an entry has no effect there.

use std::path::Path;

use jackline_clients::settings_file::read_text;
use jackline_clients::{CLIENTS, Client};
use jackline_engine::definition::{DeclaredTool, PolicyRule, RuleScope};
use jackline_engine::{Definition, ToolKind, nearest_name};
use jackline_setup::install::settings_of_project;

/// The tools by which a client is asked first for a tool of the same kind.
const USUAL_TOOLS: [&str; 8] =
    ["Bash", "Read", "Write", "Edit", "Grep", "WebFetch", "TodoWrite", "Agent"];

/// The warnings for the clients in a directory. A client whose settings have no hook of the guard
/// may be used with the definition too; then names of Jackline's own tools are not reported.
pub(super) fn spelling_warnings(definition: &Definition, directory: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for client in CLIENTS {
        let is_installed = is_installed(client, directory);
        for (place, name, must_exist) in named_tools(definition) {
            let names = NamedTool { definition, client, name };
            if names.is_known() || (!is_installed && is_own_tool(name)) {
                continue;
            }
            let title = client.title;
            if let Some(spelling) = names.spelling() {
                warnings.push(format!(
                    "{place} names `{name}`, but {title} calls this tool `{spelling}`: the entry has \
                     no effect in its sessions; name `{spelling}`, or add it to the `aliases` of \
                     `{name}` in `tools`"
                ));
            } else if let Some(meant) = names.near_miss() {
                warnings.push(format!(
                    "{place} names `{name}`, a tool that {title} does not have; did you mean \
                     `{meant}`?"
                ));
            } else if must_exist {
                warnings.push(format!(
                    "{place} waits for `{name}`, a tool that {title} does not have; declare it in \
                     `tools` if the agent has it"
                ));
            }
        }
    }
    warnings.sort();
    warnings.dedup();
    warnings
}

fn is_installed(client: &'static Client, directory: &Path) -> bool {
    settings_of_project(directory, client).iter().any(|path| {
        read_text(path).is_ok_and(|text| !client.installation.own_hooks(&text).is_empty())
    })
}

/// Whether Jackline itself has a tool of this name, for `jackline run` and `mcp serve`.
fn is_own_tool(name: &str) -> bool {
    jackline_workspace::tools().iter().any(|tool| tool.name == name)
}

/// The tools that entries of a definition name: the entry, the name, and whether calls wait for the
/// tool for ever if it does not exist.
fn named_tools(definition: &Definition) -> Vec<(String, &str, bool)> {
    let mut named = Vec::new();
    for tool in &definition.tools {
        named.push(("`tools`".to_owned(), tool.name.as_str(), false));
    }
    for (tool, _) in &definition.limits.tool_calls {
        named.push(("`limits.tool_calls`".to_owned(), tool.as_str(), false));
    }
    for policy in &definition.policies {
        if let PolicyRule::SequentialDependency(rule) = &policy.rule {
            for dependency in &rule.dependencies {
                let place = || "`sequential_dependency`".to_owned();
                named.push((place(), dependency.tool.as_str(), false));
                let needs = dependency.needs.iter().map(|need| need.tool.as_str());
                named.extend(needs.map(|need| (place(), need, true)));
            }
        }
    }
    // Packs name the tools of several clients.
    for rule in definition.rules.iter().filter(|rule| !rule.origin.starts_with("pack/")) {
        if let RuleScope::Tool(tool) = &rule.scope {
            named.push((format!("rule `{}`", rule.name), tool.as_str(), false));
        }
    }
    named
}

/// A tool as a definition names it.
struct NamedTool<'a> {
    definition: &'a Definition,
    client: &'static Client,
    name: &'a str,
}

impl NamedTool<'_> {
    fn declared(&self) -> Option<&DeclaredTool> {
        let is_it = |tool: &&DeclaredTool| {
            tool.name == self.name || tool.aliases.iter().any(|alias| alias == self.name)
        };
        self.definition.tools.iter().find(is_it)
    }

    /// Whether the client calls the tool by this name or an alias, or it is recognised in command
    /// lines.
    fn is_known(&self) -> bool {
        let tools = self.client.dialect.tools();
        let is_of_client = |name: &str| {
            tools.names.contains(&name)
                || tools.prefixes.iter().any(|start| name.starts_with(start))
        };
        let declared = self.declared();
        is_of_client(self.name)
            || declared.is_some_and(|tool| {
                !tool.commands.is_empty()
                    || is_of_client(&tool.name)
                    || tool.aliases.iter().any(|alias| is_of_client(alias))
            })
    }

    /// The client's name of a tool that other clients call by this name.
    fn spelling(&self) -> Option<&'static str> {
        let names = self.client.dialect.tools().names;
        let same = names.iter().find(|name| letters(name) == letters(self.name));
        let kind = ToolKind::well_known(self.name);
        let is_of_kind = |name: &&&str| kind.is_some() && ToolKind::well_known(name) == kind;
        let usual = USUAL_TOOLS.iter().filter(|name| names.contains(name)).find(is_of_kind);
        same.or(usual).copied()
    }

    /// The tool whose name differs in few letters.
    fn near_miss(&self) -> Option<&str> {
        let declared = self.definition.tools.iter().map(|tool| tool.name.as_str());
        let others = declared.filter(|name| *name != self.name);
        nearest_name(self.name, self.client.dialect.tools().names.iter().copied().chain(others))
    }
}

/// The letters of a name, without their case.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}
