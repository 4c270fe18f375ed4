//! The registry from outside: what stays, what does not, and what a crash leaves.

mod crash;
mod stories;

use std::path::PathBuf;

use jackline_engine::Timestamp;
use jackline_task::registry::{Forged, Registry};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

struct Home {
    home: TempDir,
    registry: Registry,
}

impl Home {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        let registry = Registry::of_home(home.path());
        Self { home, registry }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("registry").join(name)
    }

    /// An attempt that forges one tool and succeeds.
    fn keep(&self, name: &str, source: &str) {
        let mut overlay = self.registry.begin();
        overlay.forge(name, forged(source)).unwrap();
        assert_eq!(overlay.commit(NOW).unwrap().kept, [name]);
    }

    /// What is there: name, source, uses.
    fn tools(&self) -> Vec<(String, String, u64)> {
        let listing = self.registry.list().unwrap();
        listing.tools.into_iter().map(|tool| (tool.name, tool.source, tool.uses)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.tools().into_iter().map(|(name, ..)| name).collect()
    }
}

fn forged(source: &str) -> Forged {
    Forged { description: "does something".to_owned(), source: source.to_owned() }
}
