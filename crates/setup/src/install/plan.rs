//! What installing would change.

use std::path::{Path, PathBuf};
use std::process::Command;

use jackline_host::LayerFiles;
use jackline_host::environment::find_program;
use jackline_runtime::definitions::find_file;

use super::{
    Change, DEFINITION, Direction, FoundClient, InstallError, Plan, Purpose, Wish, exclude,
};
use jackline_clients::hook_line::shell_word;
use jackline_clients::installation::{LocationError, Scope};
use jackline_clients::program;
use jackline_clients::settings_file::{
    SettingsFile, SettingsFileError, is_same, look, read, settings_files, switched_off,
};
use jackline_clients::version::Version;
use jackline_clients::{CLIENTS, Client};

/// What a definition is called.
const DEFINITION_NAME: &str = "jackline.yaml";

/// What this program is called where it is found by its name.
const PROGRAM: &str = "jackline";

/// Works out what a person's wish means here.
pub fn plan(wish: &Wish) -> Result<Plan, InstallError> {
    let site = Site::of(&wish.here);
    let mut plan = Plan { found: site.clients(wish)?, ..Plan::empty(&site) };
    // The settings come last: with them the guard is asked, and then all that
    // it needs has to be there.
    site.plan_definition(wish, &mut plan)?;
    site.plan_exclude(wish, &mut plan)?;
    let program = program_word(&wish.jackline)?;
    for found in plan.found.clone() {
        site.plan_settings(wish, &found, &program, &mut plan)?;
    }
    Ok(plan)
}

/// The settings that the installer writes for a directory, which may be one above.
pub fn settings_of_project(here: &Path, client: &Client) -> Vec<PathBuf> {
    Site::of(here).all_settings(client)
}

/// The place that is guarded.
pub(crate) struct Site {
    pub(crate) project: PathBuf,
    pub(crate) definition: Option<PathBuf>,
    pub(crate) exclude: Option<PathBuf>,
}

impl Site {
    /// The directory of the definition, else the repository's, else this one.
    pub(crate) fn of(here: &Path) -> Self {
        let definition = find_file(here);
        let project = definition
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned)
            .or_else(|| git(here, &["rev-parse", "--show-toplevel"]))
            .unwrap_or_else(|| here.to_owned());
        let exclude = git(&project, &["rev-parse", "--git-path", "info/exclude"]);
        let exclude = exclude.map(|path| project.join(path));
        Self { project, definition, exclude }
    }

    /// Those that are named, else those whose program or settings are there.
    fn clients(&self, wish: &Wish) -> Result<Vec<FoundClient>, InstallError> {
        let found = |client: &'static Client| {
            let named = wish.client_program.clone();
            let named = named.map(|named| program::locate(&named).unwrap_or(named));
            let program = named.or_else(|| find_program(client.id.as_str()));
            let said = program.as_deref().and_then(program::version);
            FoundClient { client, version: said.as_deref().and_then(Version::parse), program }
        };
        if !wish.clients.is_empty() {
            return Ok(wish.clients.iter().copied().map(found).collect());
        }
        let here = |found: &FoundClient| {
            let has_settings = || self.all_settings(found.client).iter().any(|path| path.exists());
            found.program.is_some() || has_settings()
        };
        let found: Vec<FoundClient> = CLIENTS.into_iter().map(found).filter(here).collect();
        if found.is_empty() { Err(InstallError::NoClient) } else { Ok(found) }
    }

    /// All settings of a client that apply here.
    pub(crate) fn all_settings(&self, client: &Client) -> Vec<PathBuf> {
        settings_files(&self.project, client)
    }

    fn plan_settings(
        &self,
        wish: &Wish,
        found: &FoundClient,
        program: &str,
        plan: &mut Plan,
    ) -> Result<(), InstallError> {
        let (client, installation) = (found.client, found.client.installation);
        let path = installation.settings_file(&self.project, wish.scope)?;
        let held = look(&path)?;
        let wrong = |source| SettingsFileError::Settings { path: path.clone(), source };
        let text = held.text(&path)?;
        let version = found.version.unwrap_or_else(|| installation.tried_version());
        let hooks = installation.hooks_for(version, program);
        let edited = installation.add(text, &hooks).map_err(wrong)?;
        let without = match &held.bytes {
            Some(_) if !installation.own_hooks(text).is_empty() => {
                Some(installation.remove(text, None).map_err(wrong)?.into_bytes())
            }
            bytes => bytes.clone(),
        };
        say_about_version(found, plan);
        plan.silenced.extend(installation.ignored_for(found.version, &path, &edited));
        if wish.scope == Scope::Project && self.exclude.is_some() {
            let happens = "with others every call would be denied";
            say_only_here(&path, program, happens, "--local", plan);
        }
        plan.silenced.extend(switched_off(client, self.all_settings(client)));
        self.say_where_else(client, &path, plan);
        self.say_where_to_start(client, wish, plan);
        push(plan, Purpose::Settings(client), path, held, edited, without);
        Ok(())
    }

    /// Says where else the guard is installed: it would be asked twice.
    fn say_where_else(&self, client: &Client, own: &Path, plan: &mut Plan) {
        for path in self.all_settings(client) {
            if !is_same(&path, own) && holds_ours(client, &path) {
                plan.warnings.push(format!(
                    "the guard is in `{}` too and would be asked twice; take one of them out with `--uninstall`",
                    path.display()
                ));
            }
        }
    }

    /// Says where the client has to be started, where that is not here.
    fn say_where_to_start(&self, client: &Client, wish: &Wish, plan: &mut Plan) {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_here = real(&self.project) == real(&wish.here);
        let mut read_here = settings_files(&wish.here, client).into_iter();
        let holds = |path: PathBuf| holds_ours(client, &path);
        if wish.scope == Scope::User || is_here || read_here.any(holds) {
            return;
        }
        plan.warnings.push(format!(
            "start `{}` in `{}`: it reads settings only of the directory it is started in, and in \
             `{}` nothing would guard it; or install with `--user`",
            client.id,
            self.project.display(),
            wish.here.display()
        ));
    }

    fn plan_exclude(&self, wish: &Wish, plan: &mut Plan) -> Result<(), InstallError> {
        let Some(path) = self.exclude.clone().filter(|_| wish.scope != Scope::User) else {
            return Ok(());
        };
        let held = look(&path)?;
        let Ok(text) = held.text(&path) else {
            plan.notes.push(format!("`{}` is not UTF-8 and is left as it is", path.display()));
            return Ok(());
        };
        if let Some(edited) = exclude::with_line(text) {
            let without = held.bytes.clone();
            push(plan, Purpose::Exclude, path, held, edited, without);
        }
        Ok(())
    }

    fn plan_definition(&self, wish: &Wish, plan: &mut Plan) -> Result<(), InstallError> {
        let path = match wish.scope {
            Scope::Project | Scope::Local => Some(self.project.join(DEFINITION_NAME)),
            Scope::User => LayerFiles::of_machine().user,
        };
        let user = path.clone().filter(|path| path.is_file());
        if let Some(known) = self.definition.clone().or(user) {
            plan.notes.push(format!("the definition is `{}`", known.display()));
        } else if let Some(path) = path {
            let held = look(&path)?;
            push(plan, Purpose::Definition, path, held, DEFINITION.to_owned(), None);
        }
        Ok(())
    }
}

/// Whether a settings file holds our hooks.
pub(crate) fn holds_ours(client: &Client, path: &Path) -> bool {
    read(path).is_ok_and(|text| !client.installation.own_hooks(&text).is_empty())
}

fn push(
    plan: &mut Plan,
    purpose: Purpose,
    path: PathBuf,
    held: SettingsFile,
    edited: String,
    without: Option<Vec<u8>>,
) {
    let after = Some(edited.into_bytes());
    if held.bytes == after {
        return;
    }
    let SettingsFile { target, bytes: before } = held;
    let direction = Direction::In;
    let servers = None;
    plan.changes.push(Change { purpose, path, target, before, after, without, direction, servers });
}

fn say_about_version(found: &FoundClient, plan: &mut Plan) {
    let Client { id, title, installation, .. } = found.client;
    let tried = installation.tried_version();
    let lets_through =
        |version: &Version| installation.shuts_since().filter(|since| version < since);
    match (&found.program, found.version) {
        (None, _) => plan.notes.push(format!(
            "the program `{id}` was not found; the hooks are those of {title} {tried}"
        )),
        (Some(program), None) => plan.warnings.push(format!(
            "`{} --version` does not say which version it is; the hooks are those of {title} {tried}",
            program.display()
        )),
        (Some(_), Some(version)) => {
            if let Some(since) = lets_through(&version) {
                plan.warnings.push(format!(
                    "{title} {version} lets calls through when the guard is killed or hangs; \
                     since {since} it does not: update it"
                ));
            }
        }
    }
}

/// Says that others who share a file don't have what it names.
pub(crate) fn say_only_here(
    path: &Path,
    program: &str,
    happens: &str,
    instead: &str,
    plan: &mut Plan,
) {
    if program != PROGRAM {
        plan.warnings.push(format!(
            "`{}` is for everybody who works here, and would name {program}, which only this \
             machine has: {happens}; put `{PROGRAM}` on PATH, or install with `{instead}`",
            path.display()
        ));
    }
}

/// This program as a word of a shell line.
pub fn program_word(jackline: &Path) -> Result<String, InstallError> {
    program_name(jackline).map(|name| shell_word(&name))
}

/// How this program is started: by its name where that is enough.
pub(crate) fn program_name(jackline: &Path) -> Result<String, InstallError> {
    let real = |path: &Path| path.canonicalize().ok();
    let named = find_program(PROGRAM);
    if named.as_deref().and_then(real).is_some_and(|named| Some(named) == real(jackline)) {
        return Ok(PROGRAM.to_owned());
    }
    let path = jackline.to_str();
    let path = path.ok_or_else(|| LocationError::NotUtf8 { path: jackline.to_owned() })?;
    Ok(path.to_owned())
}

/// A path that git knows.
fn git(directory: &Path, question: &[&str]) -> Option<PathBuf> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(question);
    for misleading in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        command.env_remove(misleading);
    }
    let answer = program::ask(command)?;
    let line = answer.strip_suffix('\n').unwrap_or(&answer);
    (!line.is_empty()).then(|| PathBuf::from(line))
}
