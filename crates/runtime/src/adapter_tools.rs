//! The tools that an adapter knows, with which the guards recognise calls of unknown tools and
//! check arguments.

use std::collections::BTreeMap;

use jackline_engine::definition::{Definition, SchemaText, UnknownTools};
use jackline_engine::nearest_name;
use jackline_engine::tool::PAGE_TURN_TOOL;

/// How many tools a record lists for a call of an unknown tool.
const TOOLS_LISTED_MAX: usize = 32;

/// How many bytes the name of a listed tool may have.
const NAME_BYTES_MAX: usize = 128;

/// The tools that an adapter knows.
#[derive(Debug, Clone, Default)]
pub struct AdapterTools {
    /// The names in the order of the adapter.
    names: Vec<String>,
    /// The beginnings of further names.
    prefixes: Vec<&'static str>,
    /// The schemas of the arguments, by name.
    schemas: BTreeMap<String, SchemaText>,
    /// Whether no other tools exist. Only such a list counts for a definition that denies all that
    /// it does not declare.
    is_complete: bool,
}

impl AdapterTools {
    /// The tools of an adapter that has no others.
    pub fn complete(names: impl IntoIterator<Item = String>) -> Self {
        Self { is_complete: true, ..Self::partial(names) }
    }

    /// Tools of an adapter that may have others.
    pub fn partial(names: impl IntoIterator<Item = String>) -> Self {
        // A model never calls the page turning tool by this name.
        let names = names.into_iter().filter(|name| name != PAGE_TURN_TOOL).collect();
        Self { names, ..Self::default() }
    }

    /// The tools of an adapter that proposes only calls of tools that exist.
    pub fn all_proposed() -> Self {
        Self::complete([]).with_prefixes([""])
    }

    /// Adds all tools whose names begin with one of these texts.
    #[must_use]
    pub fn with_prefixes(self, prefixes: impl IntoIterator<Item = &'static str>) -> Self {
        Self { prefixes: prefixes.into_iter().collect(), ..self }
    }

    /// Adds the schemas of the arguments. The definition's own schema of a tool counts more.
    #[must_use]
    pub fn with_schemas(self, schemas: BTreeMap<String, SchemaText>) -> Self {
        Self { schemas, ..self }
    }

    pub(crate) fn take_schemas(&mut self) -> BTreeMap<String, SchemaText> {
        std::mem::take(&mut self.schemas)
    }

    /// Returns the tools to record for a call, if they matter for the decision: only the called one
    /// if it exists, or the existing ones if it does not.
    pub fn facts_about(&self, called: &str, definition: &Definition) -> Vec<String> {
        if called == PAGE_TURN_TOOL {
            return Vec::new();
        }
        if self.has(called) {
            let matters =
                definition.unknown_tools != UnknownTools::Allow && self.counts_for(definition);
            return if matters { vec![called.to_owned()] } else { Vec::new() };
        }
        if !self.is_complete && definition.accepts_tool(called, false) {
            return Vec::new();
        }
        self.list_nearest(called, definition)
    }

    fn counts_for(&self, definition: &Definition) -> bool {
        self.is_complete || definition.unknown_tools != UnknownTools::Deny
    }

    fn has(&self, tool: &str) -> bool {
        self.names.iter().any(|name| name == tool)
            || self.prefixes.iter().any(|prefix| tool.starts_with(prefix))
    }

    /// The existing tools that the definition accepts, limited, and the one that was probably meant
    /// among them.
    fn list_nearest(&self, called: &str, definition: &Definition) -> Vec<String> {
        let declared = definition.callable_tools().filter(|name| !self.has(name));
        let declared = declared.filter(|_| !self.is_complete);
        let offered = self.names.iter().map(String::as_str);
        let counts = self.counts_for(definition);
        let accepted = offered.filter(|name| definition.accepts_tool(name, counts));
        let fits = |name: &&str| name.len() <= NAME_BYTES_MAX;
        let mut known: Vec<&str> = declared.chain(accepted).filter(fits).collect();
        if known.is_empty() && self.is_complete {
            known = self.names.iter().map(String::as_str).filter(fits).collect();
        }
        let meant = nearest_name(called, known.iter().copied());
        let beyond = |name: &&str| !known.iter().take(TOOLS_LISTED_MAX).any(|it| it == name);
        let meant = meant.filter(beyond);
        let listed = TOOLS_LISTED_MAX - usize::from(meant.is_some());
        known.into_iter().take(listed).chain(meant).map(ToOwned::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::DeclaredTool;

    use super::*;

    fn definition(unknown_tools: UnknownTools, tools: &[&str]) -> Definition {
        let tools = tools.iter().map(|name| DeclaredTool::with_name(name)).collect();
        Definition { unknown_tools, tools, ..Definition::default() }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_complete_list_refutes_every_other_tool() {
        let tools = AdapterTools::complete(names(&["read_file", "shell"]));
        for unknown_tools in [UnknownTools::Allow, UnknownTools::Client, UnknownTools::Deny] {
            let definition = definition(unknown_tools, &[]);
            assert_eq!(tools.facts_about("Read", &definition), ["read_file", "shell"]);
        }
        let strict = definition(UnknownTools::Client, &["pay"]);
        assert_eq!(tools.facts_about("pay", &strict), ["read_file", "shell"]);
        assert_eq!(tools.facts_about("shell", &strict), ["shell"]);
        assert!(tools.facts_about("shell", &definition(UnknownTools::Allow, &[])).is_empty());
    }

    #[test]
    fn a_partial_list_adds_to_the_declared_tools() {
        let tools = AdapterTools::partial(names(&["Skill", "Read"])).with_prefixes(["mcp__"]);
        let open = definition(UnknownTools::Client, &["pay"]);
        for known in ["Skill", "mcp__a__b"] {
            assert_eq!(tools.facts_about(known, &open), [known]);
        }
        assert!(tools.facts_about("pay", &open).is_empty());
        assert!(tools.facts_about("bash", &open).is_empty(), "a well-known name");
        assert_eq!(tools.facts_about("teleport", &open), ["pay", "Skill", "Read"]);
        let closed = definition(UnknownTools::Deny, &["pay", "Read"]);
        assert_eq!(tools.facts_about("teleport", &closed), ["pay", "Read"]);
        assert!(tools.facts_about("Skill", &definition(UnknownTools::Deny, &[])).is_empty());
    }

    #[test]
    fn the_list_is_limited_and_contains_the_meant_tool() {
        let all: Vec<String> = (100..400).map(|number| format!("do_{number}")).collect();
        let listed = AdapterTools::complete(all)
            .facts_about("do_the_399", &definition(UnknownTools::Allow, &[]));
        assert_eq!(listed.len(), TOOLS_LISTED_MAX);
        let tools =
            AdapterTools::complete((0..300).map(|it| format!("{it}_tool")).chain(["pay".into()]));
        let listed = tools.facts_about("pya", &definition(UnknownTools::Allow, &[]));
        assert_eq!((listed.len(), listed.last().map(String::as_str)), (32, Some("pay")));
    }
}
