//! The files that a definition is made of, and where each comes from.

use std::fmt;

use crate::diagnostic::At;
use crate::yaml::{Node, NodeValue};

/// Where a part of a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file, named from the directory of the definition: the same definition
    /// means the same on every machine.
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

/// The files in the order in which they were read; the definition's own is the first.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<(Origin, Vec<u8>)>);

impl Sources {
    pub(crate) fn add(&mut self, origin: Origin, source: Vec<u8>) {
        self.0.push((origin, source));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Where what stands at a place comes from.
    pub(crate) fn origin(&self, at: At) -> &Origin {
        const NOWHERE: &Origin = &Origin::File(String::new());
        self.0.get(usize::from(at.file)).map_or(NOWHERE, |(origin, _)| origin)
    }

    /// The place of a letter inside a text, by its offset in bytes. That is
    /// exact where the text stands in the file as it is, on one line; else it
    /// is where the text begins.
    pub(crate) fn inside(&self, node: &Node, offset: usize) -> At {
        let NodeValue::Text(text) = &node.value else { return node.at };
        self.columns_before(node.at, text, offset)
            .and_then(|columns| node.at.column.checked_add(u32::try_from(columns).ok()?))
            .map_or(node.at, |column| At { column, ..node.at })
    }

    fn columns_before(&self, at: At, text: &str, offset: usize) -> Option<usize> {
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
