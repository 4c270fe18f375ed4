//! Tests of the registry through its public interface.

mod crash;
mod stories;

use std::path::PathBuf;

use jackline_engine::Timestamp;
use jackline_task::registry::{Registry, ToolSource};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

struct RegistryHome {
    home: TempDir,
    registry: Registry,
}

impl RegistryHome {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let registry = Registry::of_home(home.path());
        Self { home, registry }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("registry").join(name)
    }

    /// An attempt that generates one tool and succeeds.
    fn store_tool(&self, name: &str, source: &str) {
        let mut overlay = self.registry.begin();
        overlay.add_tool(name, tool_source(source)).unwrap();
        assert_eq!(overlay.commit(NOW).unwrap().stored, [name]);
    }

    /// The name, source and use count of each tool.
    fn tools(&self) -> Vec<(String, String, u64)> {
        let listing = self.registry.list().unwrap();
        listing.tools.into_iter().map(|tool| (tool.name, tool.source, tool.uses)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.tools().into_iter().map(|(name, ..)| name).collect()
    }
}

fn tool_source(source: &str) -> ToolSource {
    ToolSource { description: "does something".to_owned(), source: source.to_owned() }
}
