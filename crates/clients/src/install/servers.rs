//! What putting the guard before a client's MCP servers would change, and taking it out.

use std::path::{Path, PathBuf};

use jackline_runtime::claude_file;

use super::file::{Held, look};
use super::plan::{Site, program_name, push, say_only_here, text_of};
use super::{Change, Client, Direction, InstallError, Plan, Purpose, Scope, Wish};
use crate::claude::servers::{Edited, Left, unwrap, wrap};
use crate::claude::settings::{self, SettingsError};

/// The key under which Claude Code keeps servers.
const SERVERS: &str = "mcpServers";

/// Works out which servers get the guard before them.
pub fn plan_wrapping(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut planned = Plan::empty(&site);
    let program = program_name(&wish.jackline)?;
    for client in clients(wish) {
        let file = ServerFile::of(&site.project, client, wish.scope)?;
        let held = look(&file.path)?;
        let text = text_of(&held, &file.path)?;
        let edited = file.edited(wrap(text, &file.keys(), &program))?;
        let without = file.edited(unwrap(text, &file.keys()))?.text;
        if edited.changed.is_empty() && edited.left.is_empty() {
            return Err(InstallError::NoServers { path: file.path });
        }
        file.say(&edited, &mut planned);
        if wish.scope == Scope::Project && site.exclude.is_some() {
            let happens = "with others the servers would not start";
            say_only_here(&file.path, &program, happens, "--user", &mut planned);
        }
        let without = held.bytes.is_some().then(|| without.into_bytes());
        push(&mut planned, Purpose::Servers(client), file.path, held, edited.text, without);
    }
    Ok(planned)
}

/// Works out which servers lose it again.
pub fn plan_unwrapping(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut planned = Plan::empty(&site);
    for client in clients(wish) {
        let file = ServerFile::of(&site.project, client, wish.scope)?;
        let held = look(&file.path)?;
        let edited = file.edited(unwrap(text_of(&held, &file.path)?, &file.keys()))?;
        if edited.changed.is_empty() {
            continue;
        }
        file.say(&Edited { left: Vec::new(), ..edited.clone() }, &mut planned);
        let Held { target, bytes: before } = held;
        planned.changes.push(Change {
            purpose: Purpose::Servers(client),
            path: file.path,
            target,
            before,
            after: Some(edited.text.into_bytes()),
            without: None,
            direction: Direction::Out,
        });
    }
    Ok(planned)
}

fn clients(wish: &Wish) -> Vec<Client> {
    if wish.clients.is_empty() { Client::ALL.to_vec() } else { wish.clients.clone() }
}

/// A file with servers in it, and the way to them.
struct ServerFile {
    path: PathBuf,
    place: Vec<String>,
    /// Whether the client writes to it whenever it runs.
    is_clients: bool,
}

impl ServerFile {
    fn of(project: &Path, client: Client, scope: Scope) -> Result<Self, InstallError> {
        let Client::Claude = client;
        let servers = SERVERS.to_owned();
        if scope == Scope::Project {
            let path = project.join(".mcp.json");
            return Ok(Self { path, place: vec![servers], is_clients: false });
        }
        let path = claude_file().ok_or(InstallError::NoHome)?;
        let place = if scope == Scope::User {
            vec![servers]
        } else {
            let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
            let name = real.to_str().ok_or(InstallError::NotUtf8 { path: real.clone() })?;
            vec!["projects".to_owned(), name.to_owned(), servers]
        };
        Ok(Self { path, place, is_clients: true })
    }

    fn keys(&self) -> Vec<&str> {
        self.place.iter().map(String::as_str).collect()
    }

    fn edited(&self, edited: Result<Edited, SettingsError>) -> Result<Edited, InstallError> {
        edited.map_err(|source| InstallError::Settings { path: self.path.clone(), source })
    }

    /// Says what happens to which server, and why nothing to the others.
    fn say(&self, edited: &Edited, plan: &mut Plan) {
        for (name, left) in &edited.left {
            let why = match left {
                Left::Guarded => "has the guard before it, or is its own".to_owned(),
                Left::Remote => {
                    "is no program that the client starts, so it stays as it is".to_owned()
                }
                Left::Odd(how) => format!("{how}, so it stays as it is"),
                Left::NotOurs => continue,
            };
            plan.notes.push(format!("`{name}` {why}"));
        }
        if edited.changed.is_empty() {
            return;
        }
        if self.is_clients {
            plan.warnings.push(format!(
                "{} writes to `{}` while it runs: close it first, or it may undo this",
                Client::Claude.title(),
                self.path.display()
            ));
        }
        if !settings::is_strict(&edited.text) {
            plan.warnings.push(format!(
                "{} takes no comments and no commas at the end of a list, and starts no server of \
                 `{}` for them; take them out",
                Client::Claude.title(),
                self.path.display()
            ));
        }
    }
}
