//! The files that a definition is made of, and the origin of each.

use std::fmt;

use crate::diagnostic::SourcePosition;
use crate::yaml::{YamlNode, YamlValue};

/// The origin of one part of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file. The path is relative to the directory of the definition, so that the same
    /// definition means the same on every machine.
    File(String),
    /// A preset that comes with the product.
    Preset(&'static str),
    /// A pack of rules that comes with the product.
    Pack(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "file {name}"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::Pack(name) => write!(f, "pack {name}"),
        }
    }
}

/// The files in the order in which they were read, the definition itself first.
#[derive(Debug, Default)]
pub(crate) struct SourceFiles(Vec<(Origin, Vec<u8>)>);

impl SourceFiles {
    pub(crate) fn add(&mut self, origin: Origin, source: Vec<u8>) {
        self.0.push((origin, source));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the origin of the text at a position.
    pub(crate) fn origin(&self, at: SourcePosition) -> &Origin {
        const NOWHERE: &Origin = &Origin::File(String::new());
        self.0.get(usize::from(at.file)).map_or(NOWHERE, |(origin, _)| origin)
    }

    /// Returns the position of a character inside a text, given its offset in bytes. The position
    /// is exact if the file contains the text unchanged on one line; otherwise it is the start of
    /// the text.
    pub(crate) fn position_in_text(&self, node: &YamlNode, offset: usize) -> SourcePosition {
        let YamlValue::Text(text) = &node.value else { return node.position };
        self.columns_before(node.position, text, offset)
            .and_then(|columns| node.position.column.checked_add(u32::try_from(columns).ok()?))
            .map_or(node.position, |column| SourcePosition { column, ..node.position })
    }

    fn columns_before(&self, at: SourcePosition, text: &str, offset: usize) -> Option<usize> {
        let (_, source) = self.0.get(usize::from(at.file))?;
        let source = source.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source);
        let line = source.split(|byte| *byte == b'\n').nth((at.line as usize).checked_sub(1)?)?;
        let line = std::str::from_utf8(line).ok()?;
        let column = (at.column as usize).checked_sub(1)?;
        let (start, _) = line.char_indices().nth(column)?;
        let here = line.get(start..)?;
        let quote = usize::from(!here.starts_with(text));
        here.get(quote..)?.starts_with(text).then_some(())?;
        Some(quote + text.get(..offset)?.chars().count())
    }
}
