//! Settings in which `init` installed the guard, and which no longer start it.

use std::path::{Path, PathBuf};

use jackline_clients::settings_file::read_file;
use jackline_clients::{CLIENTS, Client};

use super::ledger::Ledger;
use super::plan::{ProjectSite, has_own_hooks};

/// The settings of a directory that have lost the hooks that `init` wrote. A branch from before the
/// installation has none, and a program may have removed them. Nothing if other settings of the same
/// client start the guard.
pub fn lost_hooks(state_home: &Path, directory: &Path) -> Vec<(&'static Client, PathBuf)> {
    let ledger = Ledger::of(state_home);
    let site = ProjectSite::of(directory);
    let lost = |client: &'static Client| {
        let all = site.all_settings(client);
        let is_guarded = all.iter().any(|path| has_own_hooks(client, path));
        let installed = all.into_iter().find(|path| {
            let entry = read_file(path).ok().and_then(|file| ledger.read(&file.real_path));
            !is_guarded && entry.is_some()
        });
        installed.map(|path| (client, path))
    };
    CLIENTS.into_iter().filter_map(lost).collect()
}
