//! Documents of a state home with one JSON object per line, which people's commands change.

use std::io;
use std::sync::Arc;

use jackline_journal::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state_home::{StateDocument, StateHome};

/// One document of this form.
#[derive(Debug, Clone)]
pub(crate) struct DocumentLines {
    home: Arc<dyn StateHome>,
    document: StateDocument,
}

impl DocumentLines {
    pub(crate) fn new(home: Arc<dyn StateHome>, document: StateDocument) -> Self {
        Self { home, document }
    }

    /// Parses every line; a line that is not valid gives an error. A missing document has no lines.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> io::Result<Vec<serde_json::Result<T>>> {
        let bytes = self.home.read(&self.document)?.unwrap_or_default();
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(text.lines().map(serde_json::from_str).collect())
    }

    /// The valid lines.
    pub(crate) fn list<T: DeserializeOwned>(&self) -> Vec<T> {
        self.read().unwrap_or_default().into_iter().flatten().collect()
    }

    /// Changes the list of valid lines, and writes the document if the list is different then.
    pub(crate) fn change<T: Clone + PartialEq + Serialize + DeserializeOwned>(
        &self,
        mut change: impl FnMut(&mut Vec<T>),
    ) -> Result<(), StoreError> {
        self.home.change(&self.document, &mut |bytes| {
            let text = std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
            let mut lines: Vec<T> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let before = lines.clone();
            change(&mut lines);
            if lines == before {
                return None;
            }
            let line = |one: &T| {
                serde_json::to_string(one).map(|line| format!("{line}\n")).unwrap_or_default()
            };
            Some(lines.iter().map(line).collect::<String>().into_bytes())
        })
    }
}
