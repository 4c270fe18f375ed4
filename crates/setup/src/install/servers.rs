//! What putting the guard before a client's MCP servers would change, and taking it out.

use super::ledger::{Ledger, ServersAt};
use super::mcp_servers::{Edited, Known, Left, Memory, Wrapping, unwrap, wrap};
use super::plan::{Site, program_name, say_only_here};
use super::{Change, Direction, InstallError, Plan, Purpose, Remote, Wish};
use jackline_clients::installation::{Scope, ServerFile};
use jackline_clients::settings_file::{SettingsFile, SettingsFileError, look};
use jackline_clients::settings_text::{SettingsError, loose_line};
use jackline_clients::{CLIENTS, Client};

/// Works out which servers get the guard before them.
pub fn plan_wrapping(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut planned = Plan::empty(&site);
    let program = program_name(&wish.jackline)?;
    let (mut some_have, mut missing) = (false, None);
    for client in clients(wish) {
        match plan_client(wish, &site, client, &program, &mut planned) {
            Ok(()) => some_have = true,
            // A client that was not named may have none.
            Err(error @ InstallError::NoServers { .. }) if wish.clients.is_empty() => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    missing.filter(|_| !some_have).map_or(Ok(planned), Err)
}

/// Works out which servers of one client get the guard before them.
fn plan_client(
    wish: &Wish,
    site: &Site,
    client: &'static Client,
    program: &str,
    planned: &mut Plan,
) -> Result<(), InstallError> {
    let file = client.installation.server_file(&site.project, wish.scope)?;
    let file = file.ok_or_else(|| InstallError::NoServers { path: site.project.clone() })?;
    let held = look(&file.path)?;
    let text = held.text(&file.path)?;
    let recorded = Recorded::of(wish, &held, &file);
    let known = recorded.known();
    let how = Wrapping { program, remote: &wish.remote, reaches: wish.reaches, known };
    let edited = in_file(&file, wrap(text, &file.keys(), how))?;
    let without = if recorded.is_first() {
        Edited { text: text.to_owned(), ..Edited::default() }
    } else {
        in_file(&file, unwrap(text, &file.keys(), known))?
    };
    if edited.changed.is_empty() && edited.left.is_empty() {
        return Err(InstallError::NoServers { path: file.path });
    }
    note_servers(&file, client, &edited, planned);
    warn_of_missing(&file, &wish.remote, &edited, planned);
    if wish.scope == Scope::Project && site.exclude.is_some() {
        let happens = "with others the servers would not start";
        say_only_here(&file.path, program, happens, "--user", planned);
    }
    let memory = recorded.with(&edited.memory, &without.changed);
    if edited.changed.is_empty() {
        return Ok(());
    }
    let SettingsFile { target, bytes: before } = held;
    planned.changes.push(Change {
        purpose: Purpose::Servers(client),
        path: file.path,
        target,
        without: before.is_some().then(|| without.text.into_bytes()),
        before,
        after: Some(edited.text.into_bytes()),
        direction: Direction::In,
        servers: Some(memory),
    });
    Ok(())
}

/// Works out which servers lose it again: those that were given it, as far as that is remembered.
pub fn plan_unwrapping(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut planned = Plan::empty(&site);
    for client in clients(wish) {
        let file = match client.installation.server_file(&site.project, wish.scope)? {
            Some(file) => file,
            None if wish.clients.is_empty() => continue,
            None => return Err(InstallError::NoServers { path: site.project.clone() }),
        };
        let held = look(&file.path)?;
        let recorded = Recorded::of(wish, &held, &file);
        let text = held.text(&file.path)?;
        let edited = in_file(&file, unwrap(text, &file.keys(), recorded.known()))?;
        note_servers(&file, client, &edited, &mut planned);
        if edited.changed.is_empty() {
            continue;
        }
        if *recorded.known() == Known::Nothing {
            let names: Vec<String> =
                edited.changed.iter().map(|name| format!("`{name}`")).collect();
            planned.notes.push(format!(
                "nothing on this machine says who put the guard before {}, so what was written by \
                 hand is taken out as well",
                names.join(", ")
            ));
        }
        let servers = recorded.without(&edited.left);
        let SettingsFile { target, bytes: before } = held;
        planned.changes.push(Change {
            purpose: Purpose::Servers(client),
            path: file.path,
            target,
            before,
            after: Some(edited.text.into_bytes()),
            without: None,
            direction: Direction::Out,
            servers,
        });
    }
    Ok(planned)
}

/// What is remembered of a file with servers.
struct Recorded {
    place: Vec<String>,
    known: Known,
    /// The servers at other places of the file.
    others: Vec<ServersAt>,
    /// Whether there is a record that does not say which servers it is about.
    is_old: bool,
}

impl Recorded {
    fn of(wish: &Wish, held: &SettingsFile, file: &ServerFile) -> Self {
        let place = file.place.clone();
        let entry = Ledger::of(&wish.state_home).read(&held.target);
        let is_old = entry.as_ref().is_some_and(|entry| entry.servers.is_none());
        let Some(all) = entry.and_then(|entry| entry.servers) else {
            return Self { place, known: Known::Nothing, others: Vec::new(), is_old };
        };
        let (own, others): (Vec<ServersAt>, Vec<ServersAt>) =
            all.into_iter().partition(|at| at.place == place);
        let own = own.into_iter().next();
        let known = own.map_or(Known::Nothing, |at| Known::These(at.servers));
        Self { place, known, others, is_old }
    }

    fn known(&self) -> &Known {
        &self.known
    }

    /// Whether nothing here can be our work yet, as far as anybody remembers.
    fn is_first(&self) -> bool {
        self.known == Known::Nothing && !self.is_old
    }

    /// What is to be remembered once these have the guard before them, too. What an older record
    /// is about is all that looks like ours.
    fn with(&self, memory: &Memory, looks_ours: &[String]) -> Vec<ServersAt> {
        let mut servers = match &self.known {
            Known::These(servers) => servers.clone(),
            Known::Nothing if self.is_old => {
                looks_ours.iter().map(|name| (name.clone(), None)).collect()
            }
            Known::Nothing => Memory::new(),
        };
        servers.extend(memory.clone());
        let own = ServersAt { place: self.place.clone(), servers };
        self.others.iter().cloned().chain([own]).collect()
    }

    /// What is to be remembered once ours have lost it; nothing where no other server has it.
    fn without(&self, left: &[(String, Left)]) -> Option<Vec<ServersAt>> {
        let mut servers = match &self.known {
            Known::These(servers) => servers.clone(),
            Known::Nothing => Memory::new(),
        };
        let is = |name: &str, why: Left| left.iter().any(|it| it.0 == name && it.1 == why);
        servers.retain(|name, _| is(name, Left::Changed));
        let some_stay = left.iter().any(|(_, why)| matches!(why, Left::ByHand | Left::Changed));
        let own = ServersAt { place: self.place.clone(), servers };
        let mut all = self.others.clone();
        all.extend(some_stay.then_some(own));
        (!all.is_empty()).then_some(all)
    }
}

fn clients(wish: &Wish) -> Vec<&'static Client> {
    if wish.clients.is_empty() { CLIENTS.to_vec() } else { wish.clients.clone() }
}

/// Names the file in an error about its contents.
fn in_file(
    file: &ServerFile,
    edited: Result<Edited, SettingsError>,
) -> Result<Edited, SettingsFileError> {
    edited.map_err(|source| SettingsFileError::Settings { path: file.path.clone(), source })
}

/// Says why nothing happens to which server, and what else one should know.
fn note_servers(file: &ServerFile, client: &Client, edited: &Edited, plan: &mut Plan) {
    for (name, left) in &edited.left {
        let why = match left {
            Left::Guarded => "has the guard before it, or is its own".to_owned(),
            Left::Remote => format!(
                "is no program that the client starts, so it stays as it is; `--remote={name}` \
                     puts the guard before it, if the client does not log in there"
            ),
            Left::Kept(why) => format!("{why}, so it stays as it is"),
            Left::NotOurs => continue,
            Left::ByHand => {
                "has the guard before it, which was not put there by `jackline init` on this \
                     machine, and stays as it is"
                    .to_owned()
            }
            Left::Changed => {
                plan.still_guarded.push(name.clone());
                format!(
                    "was changed since the guard was put before it, so the guard is still \
                         there; take it out by hand, in `{}`: give it back the `command` and \
                         `args` that stand behind `--` in its `args`, or `\"type\": \"http\"`, \
                         the `url` and the `headers` that its `args` and `env` name",
                    file.path.display()
                )
            }
        };
        plan.notes.push(format!("`{name}` {why}"));
    }
    for name in &edited.bare {
        plan.notes.push(format!(
            "`{name}` is sent no header: if the client logs in there, it will not answer \
                 behind the guard"
        ));
    }
    if edited.changed.is_empty() {
        return;
    }
    if file.is_clients {
        plan.warnings.push(format!(
            "{} writes to `{}` while it runs: close it first, or it may undo this",
            client.title,
            file.path.display()
        ));
    }
    if let Some(line) = loose_line(&edited.text) {
        plan.warnings.push(format!(
            "{} takes no comments and no commas at the end of a list, as in line {line}, and \
                 starts no server of `{}` for them; take them out",
            client.title,
            file.path.display()
        ));
    }
}

/// Says which servers were named, and are not there.
fn warn_of_missing(file: &ServerFile, remote: &Remote, edited: &Edited, plan: &mut Plan) {
    let Remote::Named(names) = remote else { return };
    let left = edited.left.iter().map(|(name, _)| name);
    let there: Vec<&String> = edited.changed.iter().chain(left).collect();
    for name in names.iter().filter(|name| !there.contains(name)) {
        let path = file.path.display();
        plan.warnings.push(format!("there is no server `{name}` in `{path}`"));
    }
}
