//! Opens the runtime for one hook call.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use jackline_host::clock::boot_number;
use jackline_host::{HostAccess, state_home};
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime};

use crate::hook_environment::HookEnvironment;

/// How the hook server gets its runtime.
pub enum HookRuntime {
    /// Opens the state home and the definitions of this machine.
    OfMachine {
        /// The definition that the command line selects.
        definition: Option<PathBuf>,
    },
    /// A runtime from the caller, for one call.
    Provided(Cell<Option<Box<Runtime>>>),
}

impl HookRuntime {
    /// A runtime from the caller.
    pub fn from_runtime(runtime: Runtime) -> Self {
        Self::Provided(Cell::new(Some(Box::new(runtime))))
    }

    /// The runtime for a hook call with this deadline.
    pub(super) fn open(&self, at: &HookEnvironment, deadline: Duration) -> Result<Runtime, String> {
        let definition = match self {
            Self::OfMachine { definition } => definition.clone(),
            Self::Provided(made) => {
                let used = || "this runtime has already been used for another call".to_owned();
                return made.take().map(|runtime| *runtime).ok_or_else(used);
            }
        };
        let home = state_home().map_err(|error| error.to_string())?;
        let store = FileStore::new(home, boot_number());
        let definitions = Definitions::new(definition, HostAccess::of_machine(Some(store.home())));
        let workspace = at.workspace().clone();
        let mut runtime = Runtime::new(store, definitions, workspace).with_spool();
        // Facts that come after the deadline are useless.
        let limit_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        runtime = runtime.with_fact_deadline_ms(limit_ms);
        if let Ok(jackline) = std::env::current_exe() {
            runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
        }
        Ok(runtime)
    }
}
