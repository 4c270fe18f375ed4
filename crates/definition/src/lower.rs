//! Lowers the YAML tree of a definition to the `Definition` that the engine runs on.

use std::collections::BTreeMap;

use jackline_engine::definition::UnknownTools;
use jackline_engine::{Definition, Mode};

use crate::diagnostic::{Diagnostics, SourcePosition};
use crate::reader::NodeReader;
use crate::sections::modes::NamedMode;
use crate::sections::rules::LoweredRule;
use crate::sections::tools::DeclaredTools;
use crate::sections::{self, ROOT, feedback, limits, loops, policies, rules, tools};
use crate::source::SourceFiles;
use crate::yaml::YamlNode;

/// A lowered definition, with the details that only the loader needs.
pub(crate) struct LoweredDefinition {
    pub(crate) definition: Definition,
    pub(crate) tools: DeclaredTools,
    /// The rules in force, in the order of the definition.
    pub(crate) rules: Vec<LoweredRule>,
    /// Rules of packs that the file names although it does not extend the pack.
    pub(crate) unused_pack_rules: Vec<(String, SourcePosition)>,
    /// The subtypes in `attempts.terminal`.
    pub(crate) terminal_subtypes: Vec<(String, SourcePosition)>,
    /// The modes that the file gives to rules and packs by name.
    pub(crate) modes: Vec<(String, Mode)>,
    /// The position of `unknown_tools`, if a file has it.
    pub(crate) unknown_tools_position: Option<SourcePosition>,
}

/// A definition while the loader lowers its file.
pub(crate) struct LoweringState<'n> {
    pub(crate) definition: Definition,
    pub(crate) tools: DeclaredTools,
    pub(crate) rules: Vec<LoweredRule>,
    pub(crate) unused_pack_rules: Vec<(String, SourcePosition)>,
    pub(crate) terminal_subtypes: Vec<(String, SourcePosition)>,
    pub(crate) modes: Vec<NamedMode>,
    /// The value of `unknown_tools` and its position, if the file has one.
    pub(crate) unknown_tools: Option<(UnknownTools, SourcePosition)>,
    /// The values of the top-level keys.
    nodes: BTreeMap<&'n str, &'n YamlNode>,
}

impl<'n> LoweringState<'n> {
    /// The value of a top-level key.
    pub(crate) fn node(&self, key: &str) -> Option<&'n YamlNode> {
        self.nodes.get(key).copied()
    }
}

/// The sections that need the result of other sections, in the order in which they are lowered.
/// Loops need the mode. Policies need all declared tools. Limits and rules also need the tools
/// that only policies name.
const DEPENDENT_SECTIONS: [fn(&mut LoweringState<'_>, &mut NodeReader<'_>); 6] =
    [loops::lower, feedback::lower, policies::lower, tools::lower, limits::lower, rules::lower];

/// Lowers a tree and adds every error to `diagnostics`. `closed` is true when a file, not only a
/// preset, declares the tools.
pub(crate) fn lower(
    root: &YamlNode,
    closed: bool,
    sources: &SourceFiles,
    diagnostics: &mut Diagnostics,
) -> LoweredDefinition {
    let reader = &mut NodeReader::new(sources, diagnostics);
    let mut lowering = LoweringState {
        definition: Definition::default(),
        tools: DeclaredTools::new(closed),
        rules: Vec::new(),
        unused_pack_rules: Vec::new(),
        terminal_subtypes: Vec::new(),
        modes: Vec::new(),
        unknown_tools: None,
        nodes: BTreeMap::new(),
    };
    for (key, node) in reader.fields(root, &ROOT) {
        lowering.nodes.insert(key, node);
        sections::lower(key, node, &mut lowering, reader);
    }
    for section in DEPENDENT_SECTIONS {
        section(&mut lowering, reader);
    }
    let modes = lowering.modes.into_iter().map(|named| (named.name, named.mode)).collect();
    LoweredDefinition {
        definition: lowering.definition,
        tools: lowering.tools,
        rules: lowering.rules,
        unused_pack_rules: lowering.unused_pack_rules,
        terminal_subtypes: lowering.terminal_subtypes,
        modes,
        unknown_tools_position: lowering.unknown_tools.map(|(_, at)| at),
    }
}
