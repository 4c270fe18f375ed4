//! The user's machine, as far as a program lets the library use it.
//!
//! Without a [`HostAccess`], the library reads only the workspace of a session. It then has no
//! state home, no definitions above the workspace, no home directory and no off switch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::{LayerFiles, client_settings, home};
use crate::off_switch::OffSwitch;
use crate::state_home::{FileStateHome, StateHome};

/// What a program lets the library use of the machine that it runs on.
#[derive(Debug, Clone, Default)]
pub struct HostAccess {
    /// The store for small documents that outlast the process. Without it, nothing outlasts the
    /// process.
    pub state: Option<Arc<dyn StateHome>>,
    /// The definition files of the machine and its user, above those of repositories.
    pub layers: LayerFiles,
    /// The home directory of the user, for `~` in paths.
    pub home: Option<PathBuf>,
    /// Files of the guard outside the state home. No agent may write them.
    pub own_files: Vec<PathBuf>,
    /// The switch by which a person turns the guard off for a while.
    pub off_switch: OffSwitch,
}

impl HostAccess {
    /// Access to this machine and its user. `state_home` is the directory of the state home;
    /// without it, nothing outlasts the process.
    pub fn of_machine(state_home: Option<&Path>) -> Self {
        let switch = OffSwitch::for_state_home(state_home);
        let mut own_files: Vec<PathBuf> =
            switch.fallback_directories().map(Path::to_owned).collect();
        own_files.extend(std::env::current_exe());
        own_files.extend(client_settings());
        let state = state_home.map(|home| Arc::new(FileStateHome::new(home)) as Arc<dyn StateHome>);
        Self {
            state,
            layers: LayerFiles::of_machine(),
            home: home(),
            own_files,
            off_switch: switch,
        }
    }

    /// Access to a state home only.
    pub fn with_state_home(state: Arc<dyn StateHome>) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Replaces the home directory of the user.
    #[must_use]
    pub fn with_home(self, home: PathBuf) -> Self {
        Self { home: Some(home), ..self }
    }

    /// Replaces the definition files above those of repositories.
    #[must_use]
    pub fn with_layers(self, layers: LayerFiles) -> Self {
        Self { layers, ..self }
    }
}
