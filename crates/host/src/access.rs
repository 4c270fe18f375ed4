//! The user's machine, as far as a program lets the library use it.
//!
//! Without a host nothing of the machine is read but the workspace of a session: no state home, no
//! definitions above the workspace, no home directory, no switch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::{LayerFiles, client_settings, home};
use crate::off::Switch;
use crate::state_home::{FileStateHome, StateHome};

/// What a program lets the library use of the machine that it runs on.
#[derive(Debug, Clone, Default)]
pub struct HostAccess {
    /// What outlasts the process; without it nothing does.
    pub state: Option<Arc<dyn StateHome>>,
    /// Definitions above those of repositories.
    pub layers: LayerFiles,
    /// The home directory of the person, which `~` stands for in paths.
    pub home: Option<PathBuf>,
    /// Files of the guard outside the state home, which no agent may write.
    pub own_files: Vec<PathBuf>,
    /// Where a person switches the guard off.
    pub switch: Switch,
}

impl HostAccess {
    /// This machine and its person, with the state home in a directory; without one nothing
    /// outlasts the process.
    pub fn of_machine(state_home: Option<&Path>) -> Self {
        let switch = Switch::of(state_home);
        let mut own_files: Vec<PathBuf> = switch.elsewhere().map(Path::to_owned).collect();
        own_files.extend(std::env::current_exe());
        own_files.extend(client_settings());
        let state = state_home.map(|home| Arc::new(FileStateHome::new(home)) as Arc<dyn StateHome>);
        Self { state, layers: LayerFiles::of_machine(), home: home(), own_files, switch }
    }

    /// Nothing but a state home.
    pub fn with_state_home(state: Arc<dyn StateHome>) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Takes another home directory of the person.
    #[must_use]
    pub fn with_home(self, home: PathBuf) -> Self {
        Self { home: Some(home), ..self }
    }

    /// Takes other layers than those of this machine.
    #[must_use]
    pub fn with_layers(self, layers: LayerFiles) -> Self {
        Self { layers, ..self }
    }
}
