//! Plans wrapping and unwrapping the MCP servers of a client.

use super::ledger::{Ledger, ServersAtPath};
use super::mcp_servers::{
    EditedServers, UnchangedReason, WrapHistory, WrapOptions, WrappedServers, unwrap_servers,
    wrap_servers,
};
use super::plan::{ProjectSite, program_name, warn_about_shared_program};
use super::{
    FilePurpose, InstallDirection, InstallError, InstallPlan, InstallRequest, PlannedChange,
    RemoteSelection,
};
use jackline_clients::installation::{InstallScope, McpServerFile};
use jackline_clients::settings_file::{SettingsFile, SettingsFileError, read_file};
use jackline_clients::settings_text::{SettingsError, first_invalid_line};
use jackline_clients::{CLIENTS, Client};

/// Plans which servers to wrap.
pub fn plan_wrapping(wish: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let site = ProjectSite::of(&wish.directory);
    let mut planned = InstallPlan::empty(&site);
    let program = program_name(&wish.guard_program)?;
    let (mut any_servers, mut missing) = (false, None);
    for client in requested_clients(wish) {
        match plan_client(wish, &site, client, &program, &mut planned) {
            Ok(()) => any_servers = true,
            // A client that the person did not name may have no servers.
            Err(error @ InstallError::NoServers { .. }) if wish.clients.is_empty() => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    missing.filter(|_| !any_servers).map_or(Ok(planned), Err)
}

/// Plans which servers of one client to wrap.
fn plan_client(
    wish: &InstallRequest,
    site: &ProjectSite,
    client: &'static Client,
    program: &str,
    planned: &mut InstallPlan,
) -> Result<(), InstallError> {
    let file = client.installation.server_file(&site.project, wish.scope)?;
    let file = file.ok_or_else(|| InstallError::NoServers { path: site.project.clone() })?;
    let settings = read_file(&file.path)?;
    let text = settings.text(&file.path)?;
    let recorded = ServerRecord::of(wish, &settings, &file);
    let history = recorded.history();
    let how = WrapOptions {
        program,
        remote: &wish.remote_servers,
        can_connect: wish.can_connect,
        history,
    };
    let edited = with_path(&file, wrap_servers(text, &file.keys(), how))?;
    let without = if recorded.is_first_wrapping() {
        EditedServers { text: text.to_owned(), ..EditedServers::default() }
    } else {
        with_path(&file, unwrap_servers(text, &file.keys(), history))?
    };
    if edited.changed.is_empty() && edited.unchanged.is_empty() {
        return Err(InstallError::NoServers { path: file.path });
    }
    note_servers(&file, client, &edited, planned);
    warn_about_missing_servers(&file, &wish.remote_servers, &edited, planned);
    if wish.scope == InstallScope::Shared && site.exclude.is_some() {
        let happens = "for other people the servers would not start";
        warn_about_shared_program(&file.path, program, happens, "wrap your own servers", planned);
    }
    let memory = recorded.after_wrapping(&edited.wrapped, &without.changed);
    if edited.changed.is_empty() {
        return Ok(());
    }
    let SettingsFile { real_path: target, bytes: before } = settings;
    planned.changes.push(PlannedChange {
        purpose: FilePurpose::Servers(client),
        path: file.path,
        real_path: target,
        after_removal: before.is_some().then(|| without.text.into_bytes()),
        before,
        after: Some(edited.text.into_bytes()),
        direction: InstallDirection::Install,
        servers: Some(memory),
    });
    Ok(())
}

/// Plans which servers to unwrap: those that we wrapped, if there is a record.
pub fn plan_unwrapping(wish: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let site = ProjectSite::of(&wish.directory);
    let mut planned = InstallPlan::empty(&site);
    for client in requested_clients(wish) {
        let file = match client.installation.server_file(&site.project, wish.scope)? {
            Some(file) => file,
            None if wish.clients.is_empty() => continue,
            None => return Err(InstallError::NoServers { path: site.project.clone() }),
        };
        let settings = read_file(&file.path)?;
        let recorded = ServerRecord::of(wish, &settings, &file);
        let text = settings.text(&file.path)?;
        let edited = with_path(&file, unwrap_servers(text, &file.keys(), recorded.history()))?;
        note_servers(&file, client, &edited, &mut planned);
        if edited.changed.is_empty() {
            continue;
        }
        if *recorded.history() == WrapHistory::NoRecord {
            let names: Vec<String> =
                edited.changed.iter().map(|name| format!("`{name}`")).collect();
            planned.notes.push(format!(
                "no record on this machine shows who wrapped {}, so servers that were wrapped by \
                 hand are unwrapped too",
                names.join(", ")
            ));
        }
        let servers = recorded.after_unwrapping(&edited.unchanged);
        let SettingsFile { real_path: target, bytes: before } = settings;
        planned.changes.push(PlannedChange {
            purpose: FilePurpose::Servers(client),
            path: file.path,
            real_path: target,
            before,
            after: Some(edited.text.into_bytes()),
            after_removal: None,
            direction: InstallDirection::Remove,
            servers,
        });
    }
    Ok(planned)
}

/// The record of a file with servers.
struct ServerRecord {
    key_path: Vec<String>,
    history: WrapHistory,
    /// The servers at other positions in the file.
    others: Vec<ServersAtPath>,
    /// Whether an older version wrote the record, without the names of the servers.
    is_old: bool,
}

impl ServerRecord {
    fn of(wish: &InstallRequest, settings: &SettingsFile, file: &McpServerFile) -> Self {
        let place = file.key_path.clone();
        let entry = Ledger::of(&wish.state_home).read(&settings.real_path);
        let is_old = entry.as_ref().is_some_and(|entry| entry.servers.is_none());
        let Some(all) = entry.and_then(|entry| entry.servers) else {
            return Self {
                key_path: place,
                history: WrapHistory::NoRecord,
                others: Vec::new(),
                is_old,
            };
        };
        let (own, others): (Vec<ServersAtPath>, Vec<ServersAtPath>) =
            all.into_iter().partition(|at| at.place == place);
        let own = own.into_iter().next();
        let known = own.map_or(WrapHistory::NoRecord, |at| WrapHistory::Recorded(at.servers));
        Self { key_path: place, history: known, others, is_old }
    }

    fn history(&self) -> &WrapHistory {
        &self.history
    }

    /// Whether we have wrapped nothing at this position yet, according to the record.
    fn is_first_wrapping(&self) -> bool {
        self.history == WrapHistory::NoRecord && !self.is_old
    }

    /// The record after wrapping these servers too. For a record of an older version, all servers
    /// that look wrapped by us count as ours.
    fn after_wrapping(&self, memory: &WrappedServers, looks_ours: &[String]) -> Vec<ServersAtPath> {
        let mut servers = match &self.history {
            WrapHistory::Recorded(servers) => servers.clone(),
            WrapHistory::NoRecord if self.is_old => {
                looks_ours.iter().map(|name| (name.clone(), None)).collect()
            }
            WrapHistory::NoRecord => WrappedServers::new(),
        };
        servers.extend(memory.clone());
        let own = ServersAtPath { place: self.key_path.clone(), servers };
        self.others.iter().cloned().chain([own]).collect()
    }

    /// The record after unwrapping our servers; nothing if no server stays wrapped.
    fn after_unwrapping(&self, left: &[(String, UnchangedReason)]) -> Option<Vec<ServersAtPath>> {
        let mut servers = match &self.history {
            WrapHistory::Recorded(servers) => servers.clone(),
            WrapHistory::NoRecord => WrappedServers::new(),
        };
        let has_reason =
            |name: &str, why: UnchangedReason| left.iter().any(|it| it.0 == name && it.1 == why);
        servers.retain(|name, _| has_reason(name, UnchangedReason::Changed));
        let some_stay_wrapped = left.iter().any(|(_, why)| {
            matches!(why, UnchangedReason::WrappedByHand | UnchangedReason::Changed)
        });
        let own = ServersAtPath { place: self.key_path.clone(), servers };
        let mut all = self.others.clone();
        all.extend(some_stay_wrapped.then_some(own));
        (!all.is_empty()).then_some(all)
    }
}

fn requested_clients(wish: &InstallRequest) -> Vec<&'static Client> {
    if wish.clients.is_empty() { CLIENTS.to_vec() } else { wish.clients.clone() }
}

/// Adds the path of the file to an error about its content.
fn with_path(
    file: &McpServerFile,
    edited: Result<EditedServers, SettingsError>,
) -> Result<EditedServers, SettingsFileError> {
    edited.map_err(|source| SettingsFileError::Settings { path: file.path.clone(), source })
}

/// Adds notes about unchanged servers, and warnings.
fn note_servers(
    file: &McpServerFile,
    client: &Client,
    edited: &EditedServers,
    plan: &mut InstallPlan,
) {
    for (name, left) in &edited.unchanged {
        let why = match left {
            UnchangedReason::Wrapped => {
                "is wrapped already, or is the server of the guard itself".to_owned()
            }
            UnchangedReason::Remote => format!(
                "is a remote server, so it is not changed; `--remote={name}` wraps it, if the \
                     client does not log in there"
            ),
            UnchangedReason::Invalid(why) => format!("{why}, so it is not changed"),
            UnchangedReason::NotWrapped => continue,
            UnchangedReason::WrappedByHand => {
                "is wrapped, but not by `jackline init` on this machine, so it is not changed"
                    .to_owned()
            }
            UnchangedReason::Changed => {
                plan.still_wrapped.push(name.clone());
                format!(
                    "was changed after `jackline init` wrapped it, so it is still wrapped; \
                         unwrap it by hand in `{}`: set its `command` and `args` to the words \
                         after `--` in its `args`, or restore `\"type\": \"http\"`, the `url` \
                         and the `headers` from its `args` and `env`",
                    file.path.display()
                )
            }
        };
        plan.notes.push(format!("`{name}` {why}"));
    }
    for name in &edited.without_header {
        plan.notes.push(format!(
            "`{name}` gets no header: if the client logs in there, the server will not answer \
                 through the guard"
        ));
    }
    if edited.changed.is_empty() {
        return;
    }
    if file.is_written_by_client {
        plan.warnings.push(format!(
            "{} writes to `{}` while it runs: close it first, or it may undo this change",
            client.title,
            file.path.display()
        ));
    }
    if let Some(line) = first_invalid_line(&edited.text) {
        plan.warnings.push(format!(
            "{} accepts no comments and no trailing commas, as in line {line}, and starts no \
                 server of `{}` because of them; remove them",
            client.title,
            file.path.display()
        ));
    }
}

/// Warns about named servers that do not exist.
fn warn_about_missing_servers(
    file: &McpServerFile,
    remote: &RemoteSelection,
    edited: &EditedServers,
    plan: &mut InstallPlan,
) {
    let RemoteSelection::Named(names) = remote else { return };
    let left = edited.unchanged.iter().map(|(name, _)| name);
    let existing: Vec<&String> = edited.changed.iter().chain(left).collect();
    for name in names.iter().filter(|name| !existing.contains(name)) {
        let path = file.path.display();
        plan.warnings.push(format!("there is no server `{name}` in `{path}`"));
    }
}
