//! Remembers how a server described its tools in the first session.
//!
//! A model follows tool descriptions like instructions. If a server changes one after people have
//! reviewed it, Jackline reports that in the journal and on standard error. It refuses nothing,
//! because most changes are updates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::digest::Digest128;
use jackline_engine::json::canonical_digest;
use jackline_journal::{FileError, write_private};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many tools of a server are remembered.
const TOOLS_MAX: usize = 4096;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The fields of a tool that the model sees or that decide how the tool is called.
const PINNED_FIELDS: [&str; 5] =
    ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// The descriptions of one server. The file is named by a digest of its command or address, because
/// these may contain a token.
#[derive(Debug)]
pub(super) struct ToolPins {
    path: PathBuf,
    stored: StoredPins,
    changed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredPins {
    /// The command or address itself, in a file of an older version. It is no longer written.
    #[serde(default, skip_serializing)]
    server: Option<IgnoredAny>,
    /// The digests of its tools, by name.
    tools: BTreeMap<String, Digest128>,
}

impl ToolPins {
    /// Loads the descriptions of a server from the state home. An unreadable file counts as empty.
    pub(super) fn load(state_home: &Path, server: &[String]) -> Self {
        let name = Digest::of(json!(server).to_string().as_bytes());
        let path = state_home.join("pins").join(format!("{name}.json"));
        let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= FILE_BYTES_MAX);
        let read = || serde_json::from_slice::<StoredPins>(&fs::read(&path).ok()?).ok();
        let kept = is_small.then(read).flatten().unwrap_or_default();
        Self { changed: kept.server.is_some(), stored: kept, path }
    }

    /// Remembers the description of a tool. Returns whether it differs from the remembered one.
    pub(super) fn pin(&mut self, name: &str, tool: &Value) -> bool {
        let parts: Vec<&Value> =
            PINNED_FIELDS.iter().map(|key| tool.get(*key).unwrap_or(&Value::Null)).collect();
        let now = canonical_digest(&json!(parts));
        let before = self.stored.tools.get(name).copied();
        if before == Some(now) || (before.is_none() && self.stored.tools.len() >= TOOLS_MAX) {
            return false;
        }
        self.stored.tools.insert(name.to_owned(), now);
        self.changed = true;
        before.is_some()
    }

    /// Saves new descriptions for the next session.
    pub(super) fn save(&mut self) -> Result<(), FileError> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        write_private(&self.path, json!(self.stored).to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_description_is_reported_in_the_next_session_too() {
        let home = tempfile::tempdir().unwrap();
        let server = ["srv".to_owned(), "-x".to_owned()];
        let tool = |text: &str| json!({"name": "t", "description": text, "_meta": {"n": text}});
        let mut pins = ToolPins::load(home.path(), &server);
        assert!(!pins.pin("t", &tool("a")));
        assert!(!pins.pin("t", &tool("a")));
        pins.save().unwrap();
        let mut pins = ToolPins::load(home.path(), &server);
        assert!(!pins.pin("t", &json!({"description": "a"})));
        assert!(pins.pin("t", &tool("b")));
        assert!(!pins.pin("t", &tool("b")), "it is reported once");
        pins.save().unwrap();
        assert!(!fs::read_to_string(&pins.path).unwrap().contains("srv"), "words may be secret");
        let mut other = ToolPins::load(home.path(), &server[..1]);
        assert!(!other.pin("t", &tool("c")), "another command is another server");
    }

    #[test]
    fn the_file_of_an_older_version_is_used_and_loses_its_words() {
        let home = tempfile::tempdir().unwrap();
        let server = ["srv".to_owned(), "t0ken".to_owned()];
        let tool = |text: &str| json!({"description": text});
        let mut pins = ToolPins::load(home.path(), &server);
        pins.pin("t", &tool("a"));
        let mut old = json!(pins.stored);
        old["server"] = json!(server);
        write_private(&pins.path, old.to_string().as_bytes()).unwrap();
        let mut pins = ToolPins::load(home.path(), &server);
        assert!(!pins.pin("t", &tool("a")), "the description is unchanged");
        pins.save().unwrap();
        assert!(!fs::read_to_string(&pins.path).unwrap().contains("t0ken"));
        assert!(
            ToolPins::load(home.path(), &server).pin("t", &tool("b")),
            "the change is reported"
        );
    }
}
