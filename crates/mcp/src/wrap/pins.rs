//! How the tools of a server were described when they were seen first.
//!
//! A description is text that the model obeys. A server that changes one after people
//! have looked at it is reported, in the journal and on standard error; nothing is
//! refused, because most changes are updates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::digest::Digest128;
use jackline_engine::json::digest;
use jackline_journal::{FileError, write_private};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many tools of a server are remembered.
const TOOLS_MAX: usize = 4096;

/// The longest file of pins that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What of a tool is shown to the model, or decides how it is called.
const PINNED: [&str; 5] = ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// The descriptions of one server, by a digest of what starts it or where it is: the words
/// themselves may hold a token.
#[derive(Debug)]
pub(super) struct Pins {
    path: PathBuf,
    kept: Kept,
    changed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// The words themselves, in a file of an older version. They are written no more.
    #[serde(default, skip_serializing)]
    server: Option<IgnoredAny>,
    /// Its tools, by name.
    tools: BTreeMap<String, Digest128>,
}

impl Pins {
    /// The pins of a server below the state home. What can't be read is begun anew.
    pub(super) fn load(state_home: &Path, server: &[String]) -> Self {
        let name = Digest::of(json!(server).to_string().as_bytes());
        let path = state_home.join("pins").join(format!("{name}.json"));
        let short = fs::metadata(&path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
        let read = || serde_json::from_slice::<Kept>(&fs::read(&path).ok()?).ok();
        let kept = short.then(read).flatten().unwrap_or_default();
        Self { changed: kept.server.is_some(), kept, path }
    }

    /// Remembers how a tool is described; says whether it was another tool before.
    pub(super) fn pin(&mut self, name: &str, tool: &Value) -> bool {
        let parts: Vec<&Value> =
            PINNED.iter().map(|key| tool.get(*key).unwrap_or(&Value::Null)).collect();
        let now = digest(&json!(parts));
        let before = self.kept.tools.get(name).copied();
        if before == Some(now) || (before.is_none() && self.kept.tools.len() >= TOOLS_MAX) {
            return false;
        }
        self.kept.tools.insert(name.to_owned(), now);
        self.changed = true;
        before.is_some()
    }

    /// Keeps what is new for the next run.
    pub(super) fn save(&mut self) -> Result<(), FileError> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        write_private(&self.path, json!(self.kept).to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_described_otherwise_is_noticed_in_the_next_run_too() {
        let home = tempfile::tempdir().unwrap();
        let server = ["srv".to_owned(), "-x".to_owned()];
        let tool = |text: &str| json!({"name": "t", "description": text, "_meta": {"n": text}});
        let mut pins = Pins::load(home.path(), &server);
        assert!(!pins.pin("t", &tool("a")));
        assert!(!pins.pin("t", &tool("a")));
        pins.save().unwrap();
        let mut pins = Pins::load(home.path(), &server);
        assert!(!pins.pin("t", &json!({"description": "a"})));
        assert!(pins.pin("t", &tool("b")));
        assert!(!pins.pin("t", &tool("b")), "it is told once");
        pins.save().unwrap();
        assert!(!fs::read_to_string(&pins.path).unwrap().contains("srv"), "words may be secret");
        let mut other = Pins::load(home.path(), &server[..1]);
        assert!(!other.pin("t", &tool("c")), "another command is another server");
    }

    #[test]
    fn what_an_older_version_kept_still_counts_and_loses_its_words() {
        let home = tempfile::tempdir().unwrap();
        let server = ["srv".to_owned(), "t0ken".to_owned()];
        let tool = |text: &str| json!({"description": text});
        let mut pins = Pins::load(home.path(), &server);
        pins.pin("t", &tool("a"));
        let mut old = json!(pins.kept);
        old["server"] = json!(server);
        write_private(&pins.path, old.to_string().as_bytes()).unwrap();
        let mut pins = Pins::load(home.path(), &server);
        assert!(!pins.pin("t", &tool("a")), "it is known");
        pins.save().unwrap();
        assert!(!fs::read_to_string(&pins.path).unwrap().contains("t0ken"));
        assert!(Pins::load(home.path(), &server).pin("t", &tool("b")), "and noticed");
    }
}
