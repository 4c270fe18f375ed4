//! Plans the changes of an installation.

use std::path::{Path, PathBuf};
use std::process::Command;

use jackline_host::LayerFiles;
use jackline_host::environment::find_program;
use jackline_runtime::definitions::find_file;

use super::template::definition_text;
use super::{
    DetectedClient, FilePurpose, InstallDirection, InstallError, InstallPlan, InstallRequest,
    PlannedChange, exclude,
};
use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::installation::{HookEntry, InstallScope, LocationError};
use jackline_clients::program;
use jackline_clients::settings_file::{
    SettingsFile, SettingsFileError, disabled_hooks, is_same_file, read_file, read_text,
    settings_files,
};
use jackline_clients::version::ClientVersion;
use jackline_clients::{CLIENTS, Client};

/// The file name of a definition.
const DEFINITION_NAME: &str = "jackline.yaml";

/// The name of this program in PATH.
const PROGRAM_NAME: &str = "jackline";

/// Plans the changes for a request.
pub fn plan(wish: &InstallRequest) -> Result<InstallPlan, InstallError> {
    let site = ProjectSite::of(&wish.directory);
    let mut plan = InstallPlan { clients: site.clients(wish)?, ..InstallPlan::empty(&site) };
    // The settings come last, because from then on the client calls the guard. Everything that the
    // guard needs must exist by then.
    site.plan_definition(wish, &mut plan)?;
    site.plan_exclude(wish, &mut plan)?;
    let program = quoted_program(&wish.guard_program)?;
    for found in plan.clients.clone() {
        site.plan_settings(wish, &found, &program, &mut plan)?;
    }
    Ok(plan)
}

/// The settings that the installer writes for a directory. They may be in a parent directory.
pub fn settings_of_project(here: &Path, client: &Client) -> Vec<PathBuf> {
    ProjectSite::of(here).all_settings(client)
}

/// The project to guard.
pub(crate) struct ProjectSite {
    pub(crate) project: PathBuf,
    pub(crate) definition: Option<PathBuf>,
    pub(crate) exclude: Option<PathBuf>,
}

impl ProjectSite {
    /// Finds the project: the directory of the definition, else of the repository, else this one.
    pub(crate) fn of(here: &Path) -> Self {
        let definition = find_file(here);
        let project = definition
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned)
            .or_else(|| ask_git(here, &["rev-parse", "--show-toplevel"]))
            .unwrap_or_else(|| here.to_owned());
        let exclude = ask_git(&project, &["rev-parse", "--git-path", "info/exclude"]);
        let exclude = exclude.map(|path| project.join(path));
        Self { project, definition, exclude }
    }

    /// The named clients, else those whose program or settings exist.
    fn clients(&self, wish: &InstallRequest) -> Result<Vec<DetectedClient>, InstallError> {
        let found = |client: &'static Client| {
            let given = wish.client_program.clone();
            let given = given.map(|path| program::find_program_path(&path).unwrap_or(path));
            let program = given.or_else(|| find_program(client.id.as_str()));
            let output = program.as_deref().and_then(program::read_version);
            DetectedClient {
                client,
                version: output.as_deref().and_then(ClientVersion::parse),
                program,
            }
        };
        if !wish.clients.is_empty() {
            return Ok(wish.clients.iter().copied().map(found).collect());
        }
        let here = |found: &DetectedClient| {
            let has_settings = || self.all_settings(found.client).iter().any(|path| path.exists());
            found.program.is_some() || has_settings()
        };
        let found: Vec<DetectedClient> = CLIENTS.into_iter().map(found).filter(here).collect();
        if found.is_empty() { Err(InstallError::NoClient) } else { Ok(found) }
    }

    /// All settings files of a client that apply in this project.
    pub(crate) fn all_settings(&self, client: &Client) -> Vec<PathBuf> {
        settings_files(&self.project, client)
    }

    fn plan_settings(
        &self,
        wish: &InstallRequest,
        found: &DetectedClient,
        program: &str,
        plan: &mut InstallPlan,
    ) -> Result<(), InstallError> {
        let (client, installation) = (found.client, found.client.installation);
        let path = installation.settings_file(&self.project, wish.scope)?;
        let file = read_file(&path)?;
        let wrong = |source| SettingsFileError::Settings { path: path.clone(), source };
        let text = file.text(&path)?;
        let version = found.version.unwrap_or_else(|| installation.tested_version());
        // A role that the settings have stays until another one is given.
        let own_hooks = installation.own_hooks(text);
        let earlier_role =
            || own_hooks.iter().find_map(|(_, handler)| installation.role_of(handler));
        let role = wish.role.clone().or_else(earlier_role);
        let hooks = installation.hooks_for(version, program).into_iter();
        let hooks: Vec<HookEntry> = hooks.map(|hook| hook.with_role(role.as_deref())).collect();
        let edited = installation.add_hooks(text, &hooks).map_err(wrong)?;
        let without = match &file.bytes {
            Some(_) if !installation.own_hooks(text).is_empty() => {
                Some(installation.remove_hooks(text, None).map_err(wrong)?.into_bytes())
            }
            bytes => bytes.clone(),
        };
        warn_about_version(found, plan);
        plan.disabled_reasons.extend(installation.ignore_reasons(found.version, &path, &edited));
        if wish.scope == InstallScope::Shared {
            self.warn_about_colleagues(client, &path, plan);
        }
        if wish.scope == InstallScope::Shared && self.exclude.is_some() {
            let happens = "for other people every call would be denied";
            warn_about_shared_program(&path, program, happens, "install without `--shared`", plan);
        }
        plan.disabled_reasons.extend(disabled_hooks(client, self.all_settings(client)));
        self.warn_about_second_installation(client, &path, plan);
        self.warn_about_start_directory(client, wish, plan);
        push_change(plan, FilePurpose::Settings(client), path, file, edited, without);
        Ok(())
    }

    /// Warns if the guard is installed in other settings too: the client would call it twice.
    fn warn_about_second_installation(&self, client: &Client, own: &Path, plan: &mut InstallPlan) {
        for (scope, path) in self.installations(client) {
            if !is_same_file(&path, own) {
                plan.warnings.push(format!(
                    "the guard is installed in `{}` too, so the client would call it twice; \
                     `jackline init {} --uninstall{}` removes it there",
                    path.display(),
                    client.id,
                    scope.flag()
                ));
            }
        }
    }

    /// Says what the shared settings do to people who don't have this program.
    fn warn_about_colleagues(&self, client: &Client, path: &Path, plan: &mut InstallPlan) {
        let user = client.installation.settings_file(&self.project, InstallScope::User);
        // In a home directory, the shared settings are those of one user.
        if user.is_ok_and(|user| is_same_file(&user, path)) {
            return;
        }
        plan.warnings.push(format!(
            "`{}` is for everyone who works in this project: where `{PROGRAM_NAME}` is not \
             installed, {} blocks every call; the text of the denial says how to install it, and \
             how to work without it; a branch without this file, such as one from before the \
             installation, is not guarded",
            path.display(),
            client.title
        ));
    }

    /// The settings files that have our hooks, with their scopes. A file with two scopes, in a home
    /// directory, is listed once.
    pub(crate) fn installations(&self, client: &Client) -> Vec<(InstallScope, PathBuf)> {
        let mut installed: Vec<(InstallScope, PathBuf)> = Vec::new();
        for scope in InstallScope::ALL {
            let Ok(path) = client.installation.settings_file(&self.project, scope) else {
                continue;
            };
            let is_listed = installed.iter().any(|(_, other)| is_same_file(other, &path));
            if !is_listed && has_own_hooks(client, &path) {
                installed.push((scope, path));
            }
        }
        installed
    }

    /// Warns if the client must be started in another directory.
    fn warn_about_start_directory(
        &self,
        client: &Client,
        wish: &InstallRequest,
        plan: &mut InstallPlan,
    ) {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_here = real(&self.project) == real(&wish.directory);
        let mut read_here = settings_files(&wish.directory, client).into_iter();
        let holds = |path: PathBuf| has_own_hooks(client, &path);
        if wish.scope == InstallScope::User || is_here || read_here.any(holds) {
            return;
        }
        plan.warnings.push(format!(
            "start `{}` in `{}`: it reads only the settings of the directory in which it starts, \
             so in `{}` it would have no guard; or install with `--user`",
            client.id,
            self.project.display(),
            wish.directory.display()
        ));
    }

    fn plan_exclude(
        &self,
        wish: &InstallRequest,
        plan: &mut InstallPlan,
    ) -> Result<(), InstallError> {
        let Some(path) = self.exclude.clone().filter(|_| wish.scope != InstallScope::User) else {
            return Ok(());
        };
        let file = read_file(&path)?;
        let Ok(text) = file.text(&path) else {
            plan.notes.push(format!("`{}` is not UTF-8, so it is not changed", path.display()));
            return Ok(());
        };
        if let Some(edited) = exclude::add_lines(text, &exclude::needed_lines(wish.scope)) {
            let without = file.bytes.clone();
            push_change(plan, FilePurpose::Exclude, path, file, edited, without);
        }
        Ok(())
    }

    fn plan_definition(
        &self,
        wish: &InstallRequest,
        plan: &mut InstallPlan,
    ) -> Result<(), InstallError> {
        let Some(path) = self.definition_of(wish.scope) else { return Ok(()) };
        if path.is_file() {
            plan.notes.push(format!("the definition is `{}`", path.display()));
        } else {
            let file = read_file(&path)?;
            let text = self.definition_text(wish.scope);
            push_change(plan, FilePurpose::Definition, path, file, text, None);
        }
        Ok(())
    }

    /// The definition of a scope; nothing if the user has no home directory.
    pub(crate) fn definition_of(&self, scope: InstallScope) -> Option<PathBuf> {
        match scope {
            InstallScope::Shared | InstallScope::Local => {
                Some(self.definition.clone().unwrap_or_else(|| self.project.join(DEFINITION_NAME)))
            }
            InstallScope::User => LayerFiles::of_machine().user,
        }
    }

    /// The definition that `init` writes for a scope.
    pub(crate) fn definition_text(&self, scope: InstallScope) -> String {
        definition_text((scope != InstallScope::User).then_some(self.project.as_path()))
    }
}

/// Whether a settings file has our hooks.
pub(crate) fn has_own_hooks(client: &Client, path: &Path) -> bool {
    read_text(path).is_ok_and(|text| !client.installation.own_hooks(&text).is_empty())
}

fn push_change(
    plan: &mut InstallPlan,
    purpose: FilePurpose,
    path: PathBuf,
    file: SettingsFile,
    edited: String,
    without: Option<Vec<u8>>,
) {
    let after = Some(edited.into_bytes());
    if file.bytes == after {
        return;
    }
    let SettingsFile { real_path: target, bytes: before } = file;
    let direction = InstallDirection::Install;
    let servers = None;
    plan.changes.push(PlannedChange {
        purpose,
        path,
        real_path: target,
        before,
        after,
        after_removal: without,
        direction,
        servers,
    });
}

fn warn_about_version(found: &DetectedClient, plan: &mut InstallPlan) {
    let Client { id, title, installation, .. } = found.client;
    let tried = installation.tested_version();
    let lets_through =
        |version: &ClientVersion| installation.fails_closed_since().filter(|since| version < since);
    match (&found.program, found.version) {
        (None, _) => plan.notes.push(format!(
            "the program `{id}` was not found; the hooks are those of {title} {tried}"
        )),
        (Some(program), None) => plan.warnings.push(format!(
            "`{} --version` prints no version; the hooks are those of {title} {tried}",
            program.display()
        )),
        (Some(_), Some(version)) => {
            if let Some(since) = lets_through(&version) {
                plan.warnings.push(format!(
                    "{title} {version} lets calls through when the guard is killed or hangs; \
                     update it to {since} or newer"
                ));
            }
        }
    }
}

/// Warns that a shared file would name a program that exists only on this machine.
pub(crate) fn warn_about_shared_program(
    path: &Path,
    program: &str,
    happens: &str,
    instead: &str,
    plan: &mut InstallPlan,
) {
    if program != PROGRAM_NAME {
        plan.warnings.push(format!(
            "`{}` is shared by everyone who works in this project, but would name {program}, \
             which only this machine has: {happens}; put `{PROGRAM_NAME}` on PATH, or {instead}",
            path.display()
        ));
    }
}

/// The command that starts this program, as one quoted word of a shell command.
pub fn quoted_program(jackline: &Path) -> Result<String, InstallError> {
    program_name(jackline).map(|name| quote_shell_word(&name))
}

/// The command that starts this program: its name if PATH leads to it, else its path.
pub(crate) fn program_name(jackline: &Path) -> Result<String, InstallError> {
    let real = |path: &Path| path.canonicalize().ok();
    let in_path = find_program(PROGRAM_NAME);
    if in_path.as_deref().and_then(real).is_some_and(|in_path| Some(in_path) == real(jackline)) {
        return Ok(PROGRAM_NAME.to_owned());
    }
    let path = jackline.to_str();
    let path = path.ok_or_else(|| LocationError::NotUtf8 { path: jackline.to_owned() })?;
    Ok(path.to_owned())
}

/// Asks git for a path.
fn ask_git(directory: &Path, question: &[&str]) -> Option<PathBuf> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(question);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        command.env_remove(variable);
    }
    let answer = program::read_output(command)?;
    let line = answer.strip_suffix('\n').unwrap_or(&answer);
    (!line.is_empty()).then(|| PathBuf::from(line))
}
