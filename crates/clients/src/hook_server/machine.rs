//! The runtime of one hook call.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use jackline_host::clock::boot_number;
use jackline_host::{HostAccess, state_home};
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime};

use crate::surroundings::Surroundings;

/// Where the hook server gets its runtime.
pub enum HookRuntime {
    /// From the state home and the definitions of this machine.
    OfMachine {
        /// The definition that the command line names.
        definition: Option<PathBuf>,
    },
    /// One that the caller made, for one call.
    Made(Cell<Option<Box<Runtime>>>),
}

impl HookRuntime {
    /// A runtime that the caller made.
    pub fn made(runtime: Runtime) -> Self {
        Self::Made(Cell::new(Some(Box::new(runtime))))
    }

    /// The runtime for a hook call that has to be answered within a deadline.
    pub(super) fn open(&self, at: &Surroundings, deadline: Duration) -> Result<Runtime, String> {
        let definition = match self {
            Self::OfMachine { definition } => definition.clone(),
            Self::Made(made) => {
                let used = || "the runtime was used before".to_owned();
                return made.take().map(|runtime| *runtime).ok_or_else(used);
            }
        };
        let home = state_home().map_err(|error| error.to_string())?;
        let store = FileStore::new(home, boot_number());
        let definitions = Definitions::new(definition, HostAccess::of_machine(Some(store.home())));
        let workspace = at.workspace().clone();
        let mut runtime = Runtime::new(store, definitions, workspace).with_spool();
        // Facts that come later than the answer are of no use.
        let limit_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        runtime = runtime.with_fact_deadline_ms(limit_ms);
        if let Ok(jackline) = std::env::current_exe() {
            runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
        }
        Ok(runtime)
    }
}
