//! `jackline.yaml`: read, checked and lowered to what the engine runs on.
//!
//! Everything that is wrong is reported at once, each with line, column and,
//! where a name was misspelt, the one that was probably meant.

mod compiled;
mod diagnostic;
mod keys;
mod lower;
mod reader;
pub mod yaml;

pub use compiled::{decode, encode};
pub use diagnostic::{At, Diagnostic, Diagnostics};

use jackline_engine::Definition;

/// The name of a definition file.
pub const FILE_NAME: &str = "jackline.yaml";

/// Reads a definition, or says everything that is wrong with it.
pub fn load(source: &[u8], file: &str) -> Result<Definition, Diagnostics> {
    let mut diagnostics = Diagnostics::new(file);
    let lowered =
        yaml::parse(source, &mut diagnostics).map(|root| lower::lower(&root, &mut diagnostics));
    match lowered {
        Some(definition) if diagnostics.is_empty() => Ok(definition),
        _ => Err(diagnostics.sorted()),
    }
}
