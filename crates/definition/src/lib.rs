//! `jackline.yaml`: read, checked and lowered to what the engine runs on.
//!
//! Everything that is wrong is reported at once, each with file, line, column
//! and, where a name was misspelt, the one that was probably meant.

mod builtin;
#[doc(hidden)]
pub mod cel;
mod compiled;
mod diagnostic;
mod edit;
mod examples;
mod extends;
pub mod form;
mod keys;
mod layers;
mod liveness;
mod lower;
mod merge;
mod reader;
mod reference;
mod schema;
mod sections;
mod source;
mod values;
mod well_known;
pub mod yaml;

/// The demands of a lowered definition in words for people, one line each.
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
    pub use crate::sections::mode::word as mode;
    pub use crate::sections::models::text as models;
    pub use crate::sections::notify::{host, text as notifier};
    pub use crate::sections::policies::text as policy;
    pub use crate::sections::progress::text as progress;
    pub use crate::sections::rules::text as rule;
    pub use crate::sections::schemas::text as schemas;
    pub use crate::sections::shell::word as opaque;
    pub use crate::sections::tools::{text as tool, unknown_word as unknown_tools};
}

pub use compiled::{decode, encode};
pub use diagnostic::{At, Diagnostic, Diagnostics};
pub use edit::{EditError, set_mode};
pub use extends::Files;
pub use layers::{Combined, EffectiveLine, Layer, Layered, Standing, Subject, combine};
pub use reference::reference;
pub use schema::schema;

use std::path::{Path, PathBuf};

use jackline_engine::{Definition, Mode};

use crate::reader::Reader;

/// The name of a definition file.
pub const FILE_NAME: &str = "jackline.yaml";

/// A definition and what it was made of.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the engine runs on.
    pub definition: Definition,
    /// The modes it gives to rules and packs by name.
    pub modes: Vec<(String, Mode)>,
    /// The files it extends, with their contents, in the order they were read.
    pub extended: Vec<(PathBuf, Vec<u8>)>,
    /// What is not wrong and yet worth knowing.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a definition, or says everything that is wrong with it. It may extend
/// presets and packs; files need [`load_with`].
pub fn load(source: &[u8], file: &str) -> Result<Definition, Diagnostics> {
    load_from(source, Path::new(file), None).map(|loaded| loaded.definition)
}

/// Reads a definition and the files it extends, or says everything that is
/// wrong with them.
pub fn load_with(source: &[u8], file: &Path, files: &mut dyn Files) -> Result<Loaded, Diagnostics> {
    load_from(source, file, Some(files))
}

fn load_from(
    source: &[u8],
    file: &Path,
    files: Option<&mut dyn Files>,
) -> Result<Loaded, Diagnostics> {
    let mut diagnostics = Diagnostics::new(&file.display().to_string());
    let gathered = extends::gather(source, file, files, &mut diagnostics);
    let lowered = gathered
        .root
        .map(|root| lower::lower(&root, gathered.closed, &gathered.sources, &mut diagnostics));
    if let Some(lowered) = &lowered {
        examples::check(lowered, &mut Reader::new(&gathered.sources, &mut diagnostics));
    }
    match lowered {
        Some(lowered) if diagnostics.is_empty() => {
            liveness::liveness(&lowered, &mut Reader::new(&gathered.sources, &mut diagnostics));
            Ok(Loaded {
                definition: lowered.definition,
                modes: lowered.modes,
                extended: gathered.extended,
                warnings: diagnostics.into_list(),
            })
        }
        _ => Err(diagnostics.sorted()),
    }
}
