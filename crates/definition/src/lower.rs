//! From the tree of a file to the definition that the engine runs on.

use std::collections::BTreeMap;

use jackline_engine::definition::UnknownTools;
use jackline_engine::{Definition, Mode};

use crate::diagnostic::{At, Diagnostics};
use crate::reader::Reader;
use crate::sections::modes::NamedMode;
use crate::sections::rules::LoweredRule;
use crate::sections::tools::Tools;
use crate::sections::{self, ROOT, feedback, limits, loops, policies, rules, tools};
use crate::source::Sources;
use crate::yaml::Node;

/// A definition, and what only the loader needs to know about it.
pub(crate) struct Lowered {
    pub(crate) definition: Definition,
    pub(crate) tools: Tools,
    /// The rules in force, in the order of the definition.
    pub(crate) rules: Vec<LoweredRule>,
    /// Rules of packs that the file names and does not extend.
    pub(crate) idle: Vec<(String, At)>,
    /// The modes that the file gives to rules and packs by name.
    pub(crate) modes: Vec<(String, Mode)>,
}

/// A definition while its file is read.
pub(crate) struct Lowering<'n> {
    pub(crate) definition: Definition,
    pub(crate) tools: Tools,
    pub(crate) rules: Vec<LoweredRule>,
    pub(crate) idle: Vec<(String, At)>,
    pub(crate) modes: Vec<NamedMode>,
    /// The value of `unknown_tools`, if the file has one.
    pub(crate) unknown_tools: Option<UnknownTools>,
    /// The values of the top-level keys.
    nodes: BTreeMap<&'n str, &'n Node>,
}

impl<'n> Lowering<'n> {
    /// The value of a top-level key.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        self.nodes.get(key).copied()
    }
}

/// The sections that need the result of others, in the order in which they are lowered: loops
/// need the mode, policies need all declared tools, limits and rules also the tools that only
/// policies name.
const DEPENDENT: [fn(&mut Lowering<'_>, &mut Reader<'_>); 6] =
    [loops::lower, feedback::lower, policies::lower, tools::lower, limits::lower, rules::lower];

/// Lowers a tree; `diagnostics` receives what is wrong with it. `closed` says whether a file
/// declares which tools there are.
pub(crate) fn lower(
    root: &Node,
    closed: bool,
    sources: &Sources,
    diagnostics: &mut Diagnostics,
) -> Lowered {
    let reader = &mut Reader::new(sources, diagnostics);
    let mut lowering = Lowering {
        definition: Definition::default(),
        tools: Tools::new(closed),
        rules: Vec::new(),
        idle: Vec::new(),
        modes: Vec::new(),
        unknown_tools: None,
        nodes: BTreeMap::new(),
    };
    for (key, node) in reader.fields(root, &ROOT) {
        lowering.nodes.insert(key, node);
        sections::lower(key, node, &mut lowering, reader);
    }
    for section in DEPENDENT {
        section(&mut lowering, reader);
    }
    let Lowering { definition, tools, rules, idle, modes, .. } = lowering;
    let modes = modes.into_iter().map(|named| (named.name, named.mode)).collect();
    Lowered { definition, tools, rules, idle, modes }
}
