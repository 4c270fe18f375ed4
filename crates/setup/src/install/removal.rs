//! Plans the changes that remove the guard.

use std::path::PathBuf;

use super::apply_plan::{differs, is_unchanged};
use super::ledger::{FileBackup, Ledger, LedgerEntry};
use super::plan::{ProjectSite, has_own_hooks};
use super::{
    DEFINITION, FilePurpose, InstallDirection, InstallError, InstallPlan, InstallRequest,
    PlannedChange, exclude,
};
use jackline_clients::installation::InstallScope;
use jackline_clients::settings_file::is_same_file;
use jackline_clients::settings_file::{SettingsFile, SettingsFileError, read_file};
use jackline_clients::{CLIENTS, Client};

/// Plans what to restore.
pub fn plan_removal(wish: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let site = ProjectSite::of(&wish.directory);
    let mut removal =
        RemovalPlanner { ledger: Ledger::of(&wish.state_home), plan: InstallPlan::empty(&site) };
    let clients = if wish.clients.is_empty() { &CLIENTS[..] } else { &wish.clients };
    for client in clients {
        removal
            .plan_settings(client, client.installation.settings_file(&site.project, wish.scope)?)?;
    }
    if is_last_installation(&site, wish) {
        removal.plan_exclude(&site, wish)?;
        removal.plan_definition(&site, wish)?;
    }
    Ok(removal.plan)
}

/// Whether no other settings of this project need the definition and the ignore list.
fn is_last_installation(site: &ProjectSite, wish: &InstallRequest) -> bool {
    let needs = |client: &Client, scope: InstallScope| {
        let file = |scope| client.installation.settings_file(&site.project, scope);
        let (Ok(path), Ok(own)) = (file(scope), file(wish.scope)) else { return false };
        !is_same_file(&path, &own) && has_own_hooks(client, &path)
    };
    let needs = |client: &'static Client| {
        [InstallScope::Project, InstallScope::Local].into_iter().any(|scope| needs(client, scope))
    };
    !CLIENTS.into_iter().any(needs)
}

struct RemovalPlanner {
    ledger: Ledger,
    plan: InstallPlan,
}

impl RemovalPlanner {
    fn plan_settings(
        &mut self,
        client: &'static Client,
        path: PathBuf,
    ) -> Result<(), InstallError> {
        let file = read_file(&path)?;
        if file.bytes.is_none() {
            return Ok(());
        }
        let entry = self.ledger.read(&file.real_path);
        let original = entry.as_ref().and_then(|entry| self.ledger.original(entry));
        if let Some(original) = self.unchanged_original(entry.as_ref(), &file) {
            self.push(
                FilePurpose::Settings(client),
                path,
                file,
                original.bytes().map(<[u8]>::to_vec),
            );
            return Ok(());
        }
        let wrong = |source| SettingsFileError::Settings { path: path.clone(), source };
        let text = file.text(&path)?;
        let original_text = original.as_ref().and_then(FileBackup::bytes);
        let original_text = original_text.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let edited = client.installation.remove_hooks(text, original_text).map_err(wrong)?;
        let only_ours =
            original == Some(FileBackup::NoFile) && client.installation.is_blank(&edited);
        self.push(
            FilePurpose::Settings(client),
            path,
            file,
            (!only_ours).then(|| edited.into_bytes()),
        );
        Ok(())
    }

    fn plan_exclude(
        &mut self,
        site: &ProjectSite,
        wish: &InstallRequest,
    ) -> Result<(), InstallError> {
        let Some(path) = site.exclude.clone().filter(|_| wish.scope != InstallScope::User) else {
            return Ok(());
        };
        let file = read_file(&path)?;
        // Without a record, a person wrote the line.
        let Some(entry) = self.ledger.read(&file.real_path) else { return Ok(()) };
        if let Some(original) = self.unchanged_original(Some(&entry), &file) {
            self.push(FilePurpose::Exclude, path, file, original.bytes().map(<[u8]>::to_vec));
        } else if let Some(text) = file.text(&path).ok().and_then(exclude::remove_line) {
            self.push(FilePurpose::Exclude, path, file, Some(text.into_bytes()));
        }
        Ok(())
    }

    fn plan_definition(
        &mut self,
        site: &ProjectSite,
        wish: &InstallRequest,
    ) -> Result<(), InstallError> {
        let user = jackline_host::LayerFiles::of_machine().user;
        let definition = match wish.scope {
            InstallScope::User => user.filter(|user| user.is_file()),
            InstallScope::Project | InstallScope::Local => site.definition.clone(),
        };
        let Some(path) = definition else { return Ok(()) };
        let file = read_file(&path)?;
        let entry = self.ledger.read(&file.real_path);
        let is_ours = file.bytes.as_deref() == Some(DEFINITION.as_bytes());
        if is_ours || self.unchanged_original(entry.as_ref(), &file) == Some(FileBackup::NoFile) {
            self.push(FilePurpose::Definition, path, file, None);
        } else {
            let text = format!(
                "`{}` is not the file that `jackline init` wrote, so it stays",
                path.display()
            );
            self.plan.notes.push(text);
        }
        Ok(())
    }

    /// The original of a file that we wrote and that was not changed since.
    fn unchanged_original(
        &self,
        entry: Option<&LedgerEntry>,
        file: &SettingsFile,
    ) -> Option<FileBackup> {
        let entry = entry.filter(|entry| is_unchanged(entry, file.bytes.as_deref()))?;
        self.ledger.original(entry)
    }

    fn push(
        &mut self,
        purpose: FilePurpose,
        path: PathBuf,
        file: SettingsFile,
        after: Option<Vec<u8>>,
    ) {
        if !differs(&file, after.as_deref()) {
            return;
        }
        let SettingsFile { real_path: target, bytes: before } = file;
        self.plan.changes.push(PlannedChange {
            purpose,
            path,
            real_path: target,
            before,
            after,
            after_removal: None,
            direction: InstallDirection::Remove,
            servers: None,
        });
    }
}
