//! Reads, checks and lowers `jackline.yaml` to the definition that the engine runs on.
//!
//! The loader reports every mistake at once, each with its file, line and column. For a misspelt
//! name it suggests the nearest known name.

mod builtin;
#[doc(hidden)]
pub mod cel;
mod closed_tool_list;
mod compiled;
mod diagnostic;
mod edit;
mod examples;
mod extends;
mod keys;
mod layers;
mod lower;
mod manifest_keys;
mod merge;
mod reader;
mod reference;
mod schema;
mod sections;
mod source;
mod unused_entries;
mod values;
pub mod yaml;
pub mod yaml_file_reader;

/// Describes the demands of a lowered definition in words for people, one line each.
pub mod words {
    pub use crate::sections::advisor::text as advisor;
    pub use crate::sections::attempts::text as attempts;
    pub use crate::sections::completion::{cap, text as checker};
    pub use crate::sections::context::text as context;
    pub use crate::sections::feedback::text as feedback;
    pub use crate::sections::health::text as health;
    pub use crate::sections::identity::text as identity;
    pub use crate::sections::io::text as io;
    pub use crate::sections::limits::{limit, limits, tool_limit};
    pub use crate::sections::loops::text as loops;
    pub use crate::sections::mode::as_str as mode;
    pub use crate::sections::models::text as models;
    pub use crate::sections::notify::{host, text as notifier};
    pub use crate::sections::policies::text as policy;
    pub use crate::sections::progress::text as progress;
    pub use crate::sections::rules::text as rule;
    pub use crate::sections::run::text as run_limits;
    pub use crate::sections::schemas::text as schemas;
    pub use crate::sections::shell::as_str as opaque;
    pub use crate::sections::tools::{text as tool, unknown_tools_as_str as unknown_tools};
}

pub use compiled::{decode, encode};
pub use diagnostic::{Diagnostic, Diagnostics, SourcePosition};
pub use edit::{EditError, set_mode};
pub use extends::ExtendedFileReader;
pub use layers::{
    CombinedDefinition, DemandLine, DemandStatus, DemandSubject, Layer, LayerDefinition, combine,
};
pub use reference::reference;
pub use schema::schema;

use std::path::{Path, PathBuf};

use jackline_engine::{Definition, Mode};

use crate::reader::NodeReader;

/// The name of a definition file.
pub const FILE_NAME: &str = "jackline.yaml";

/// A loaded definition, with the files and modes that it was made of.
#[derive(Debug, Clone)]
pub struct LoadedDefinition {
    /// The definition that the engine runs on.
    pub definition: Definition,
    /// The modes that the file gives to rules and packs by name.
    pub modes: Vec<(String, Mode)>,
    /// The files that the definition extends, with their contents, in the order they were read.
    pub extended: Vec<(PathBuf, Vec<u8>)>,
    /// Problems that do not make the definition invalid.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a definition, or returns all its errors. The definition may extend presets and packs;
/// to extend files, use [`load_with`].
pub fn load(source: &[u8], file: &str) -> Result<Definition, Diagnostics> {
    load_from(source, Path::new(file), None).map(|loaded| loaded.definition)
}

/// Reads a definition and the files that it extends, or returns all errors in them.
pub fn load_with(
    source: &[u8],
    file: &Path,
    files: &mut dyn ExtendedFileReader,
) -> Result<LoadedDefinition, Diagnostics> {
    load_from(source, file, Some(files))
}

fn load_from(
    source: &[u8],
    file: &Path,
    files: Option<&mut dyn ExtendedFileReader>,
) -> Result<LoadedDefinition, Diagnostics> {
    let mut diagnostics = Diagnostics::new(&file.display().to_string());
    let gathered = extends::resolve_extends(source, file, files, &mut diagnostics);
    let lowered = gathered
        .root
        .map(|root| lower::lower(&root, gathered.closed, &gathered.sources, &mut diagnostics));
    if let Some(lowered) = &lowered {
        examples::check_examples(
            lowered,
            &mut NodeReader::new(&gathered.sources, &mut diagnostics),
        );
    }
    match lowered {
        Some(lowered) if diagnostics.is_empty() => {
            let reader = &mut NodeReader::new(&gathered.sources, &mut diagnostics);
            unused_entries::warn_about_unused(&lowered, reader);
            closed_tool_list::warn_about_denied(&lowered, reader);
            Ok(LoadedDefinition {
                definition: lowered.definition,
                modes: lowered.modes,
                extended: gathered.extended,
                warnings: diagnostics.into_list(),
            })
        }
        _ => Err(diagnostics.sorted()),
    }
}
