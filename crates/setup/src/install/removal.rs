//! What taking the guard out would change.

use std::path::PathBuf;

use super::ledger::{Entry, Ledger, Original};
use super::plan::{Site, holds_ours};
use super::write::{differs, is_as_left};
use super::{Change, DEFINITION, Direction, InstallError, Plan, Purpose, Wish, exclude};
use jackline_clients::installation::Scope;
use jackline_clients::settings_file::is_same;
use jackline_clients::settings_file::{SettingsFile, SettingsFileError, look};
use jackline_clients::{CLIENTS, Client};

/// Works out what is to be given back.
pub fn plan_removal(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut removal = Removal { ledger: Ledger::of(&wish.state_home), plan: Plan::empty(&site) };
    let clients = if wish.clients.is_empty() { &CLIENTS[..] } else { &wish.clients };
    for client in clients {
        removal.settings(client, client.installation.settings_file(&site.project, wish.scope)?)?;
    }
    if is_last(&site, wish) {
        removal.exclude(&site, wish)?;
        removal.definition(&site, wish)?;
    }
    Ok(removal.plan)
}

/// Whether no other settings here need what is shared.
fn is_last(site: &Site, wish: &Wish) -> bool {
    let needs = |client: &Client, scope: Scope| {
        let file = |scope| client.installation.settings_file(&site.project, scope);
        let (Ok(path), Ok(own)) = (file(scope), file(wish.scope)) else { return false };
        !is_same(&path, &own) && holds_ours(client, &path)
    };
    let needs = |client: &'static Client| {
        [Scope::Project, Scope::Local].into_iter().any(|scope| needs(client, scope))
    };
    !CLIENTS.into_iter().any(needs)
}

struct Removal {
    ledger: Ledger,
    plan: Plan,
}

impl Removal {
    fn settings(&mut self, client: &'static Client, path: PathBuf) -> Result<(), InstallError> {
        let held = look(&path)?;
        if held.bytes.is_none() {
            return Ok(());
        }
        let entry = self.ledger.read(&held.target);
        let original = entry.as_ref().and_then(|entry| self.ledger.original(entry));
        if let Some(original) = self.untouched(entry.as_ref(), &held) {
            self.push(Purpose::Settings(client), path, held, original.bytes().map(<[u8]>::to_vec));
            return Ok(());
        }
        let wrong = |source| SettingsFileError::Settings { path: path.clone(), source };
        let text = held.text(&path)?;
        let was = original.as_ref().and_then(Original::bytes);
        let was = was.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let edited = client.installation.remove(text, was).map_err(wrong)?;
        let ours_alone =
            original == Some(Original::Absent) && client.installation.is_blank(&edited);
        self.push(
            Purpose::Settings(client),
            path,
            held,
            (!ours_alone).then(|| edited.into_bytes()),
        );
        Ok(())
    }

    fn exclude(&mut self, site: &Site, wish: &Wish) -> Result<(), InstallError> {
        let Some(path) = site.exclude.clone().filter(|_| wish.scope != Scope::User) else {
            return Ok(());
        };
        let held = look(&path)?;
        // A line that nobody remembers is somebody's own.
        let Some(entry) = self.ledger.read(&held.target) else { return Ok(()) };
        if let Some(original) = self.untouched(Some(&entry), &held) {
            self.push(Purpose::Exclude, path, held, original.bytes().map(<[u8]>::to_vec));
        } else if let Some(text) = held.text(&path).ok().and_then(exclude::without_line) {
            self.push(Purpose::Exclude, path, held, Some(text.into_bytes()));
        }
        Ok(())
    }

    fn definition(&mut self, site: &Site, wish: &Wish) -> Result<(), InstallError> {
        let user = jackline_host::LayerFiles::of_machine().user;
        let known = match wish.scope {
            Scope::User => user.filter(|user| user.is_file()),
            Scope::Project | Scope::Local => site.definition.clone(),
        };
        let Some(path) = known else { return Ok(()) };
        let held = look(&path)?;
        let entry = self.ledger.read(&held.target);
        let is_ours = held.bytes.as_deref() == Some(DEFINITION.as_bytes());
        if is_ours || self.untouched(entry.as_ref(), &held) == Some(Original::Absent) {
            self.push(Purpose::Definition, path, held, None);
        } else {
            let text = format!("`{}` is not what `jackline init` wrote, and stays", path.display());
            self.plan.notes.push(text);
        }
        Ok(())
    }

    /// What comes back, where a file is as we left it.
    fn untouched(&self, entry: Option<&Entry>, held: &SettingsFile) -> Option<Original> {
        let entry = entry.filter(|entry| is_as_left(entry, held.bytes.as_deref()))?;
        self.ledger.original(entry)
    }

    fn push(
        &mut self,
        purpose: Purpose,
        path: PathBuf,
        held: SettingsFile,
        after: Option<Vec<u8>>,
    ) {
        if !differs(&held, after.as_deref()) {
            return;
        }
        let SettingsFile { target, bytes: before } = held;
        self.plan.changes.push(Change {
            purpose,
            path,
            target,
            before,
            after,
            without: None,
            direction: Direction::Out,
            servers: None,
        });
    }
}
