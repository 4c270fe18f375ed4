//! Plans the changes that remove the guard.

use std::path::{Path, PathBuf};

use super::apply_plan::{differs, is_unchanged};
use super::ledger::{FileBackup, Ledger, LedgerEntry};
use super::plan::ProjectSite;
use super::work_trees::settings_in_other_work_tree;
use super::{
    FilePurpose, InstallDirection, InstallError, InstallPlan, InstallRequest, PlannedChange,
    exclude,
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
    if is_last_installation(&site, wish.scope) {
        removal.plan_exclude(&site, wish)?;
        removal.plan_definition(&site, wish)?;
    }
    note_other_installations(&site, wish, &mut removal.plan);
    Ok(removal.plan)
}

/// Whether no other settings need the definition and the ignore list.
pub(crate) fn is_last_installation(site: &ProjectSite, scope: InstallScope) -> bool {
    // The definition of a user is for the settings of that user only.
    if scope == InstallScope::User {
        return true;
    }
    let needs = |client: &'static Client| {
        let own = client.installation.settings_file(&site.project, scope);
        let is_own = |path: &Path| own.as_ref().is_ok_and(|own| is_same_file(path, own));
        let is_of_project = |scope: InstallScope| scope != InstallScope::User;
        let mut installed = site.installations(client).into_iter();
        installed.any(|(other, path)| is_of_project(other) && !is_own(&path))
    };
    !CLIENTS.into_iter().any(needs)
}

/// Names the installations that stay.
fn note_other_installations(site: &ProjectSite, wish: &InstallRequest, plan: &mut InstallPlan) {
    for client in CLIENTS.into_iter().filter(|client| wish.covers(client)) {
        for (scope, path) in site.installations(client) {
            if plan.changes.iter().any(|change| is_same_file(&change.path, &path)) {
                continue;
            }
            plan.notes.push(format!(
                "the guard is installed in `{}`; `jackline init {} --uninstall{}` removes it there",
                path.display(),
                client.id,
                scope.flag()
            ));
        }
    }
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
        if let Some(settings) = settings_in_other_work_tree(site) {
            self.plan.notes.push(format!(
                "`{}` keeps its lines, because `{}` starts the guard in another work tree",
                path.display(),
                settings.display()
            ));
            return Ok(());
        }
        // Without a record, a person wrote the line.
        let Some(entry) = self.ledger.read(&file.real_path) else { return Ok(()) };
        if let Some(original) = self.unchanged_original(Some(&entry), &file) {
            self.push(FilePurpose::Exclude, path, file, original.bytes().map(<[u8]>::to_vec));
            return Ok(());
        }
        let original = self.ledger.original(&entry);
        let original = original.as_ref().and_then(FileBackup::bytes).unwrap_or_default();
        let original = String::from_utf8_lossy(original);
        let text = file.text(&path).ok();
        if let Some(text) = text.and_then(|text| exclude::remove_lines(text, &original)) {
            self.push(FilePurpose::Exclude, path, file, Some(text.into_bytes()));
        }
        Ok(())
    }

    fn plan_definition(
        &mut self,
        site: &ProjectSite,
        wish: &InstallRequest,
    ) -> Result<(), InstallError> {
        let definition = site.definition_of(wish.scope).filter(|path| path.is_file());
        let Some(path) = definition else { return Ok(()) };
        let file = read_file(&path)?;
        let entry = self.ledger.read(&file.real_path);
        let text = site.definition_text(wish.scope);
        let is_ours = file.bytes.as_deref() == Some(text.as_bytes());
        if is_ours || self.unchanged_original(entry.as_ref(), &file) == Some(FileBackup::NoFile) {
            self.push(FilePurpose::Definition, path, file, None);
        } else if entry.is_none() {
            let text =
                format!("`{}` stays, because `jackline init` did not write it", path.display());
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
