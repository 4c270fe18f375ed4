//! Writes the reference of the definition file: its page and its JSON Schema.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference"));
    let schema = format!("{:#}\n", jackline_definition::schema());
    std::fs::write(directory.join("jackline.schema.json"), schema)?;
    std::fs::write(directory.join("definition.md"), jackline_definition::reference())
}
