//! The other work trees of a repository. They share git's local ignore list.

use std::path::{Path, PathBuf};
use std::process::Command;

use jackline_clients::{CLIENTS, installation::InstallScope, program};

use super::plan::{ProjectSite, has_own_hooks};

/// The settings in another work tree that start the guard, and so need the ignore list.
pub(super) fn settings_in_other_work_tree(site: &ProjectSite) -> Option<PathBuf> {
    let own = real_path(&git_line(&site.project, "--show-toplevel")?);
    let project = real_path(&site.project);
    let inside = project.strip_prefix(&own).ok()?;
    let mut others = work_trees(&site.project).into_iter().filter(|root| real_path(root) != own);
    others.find_map(|root| {
        let project = root.join(inside);
        let scopes = [InstallScope::Local, InstallScope::Shared];
        let settings = CLIENTS.into_iter().flat_map(|client| {
            scopes.map(|scope| (client, client.installation.settings_file(&project, scope)))
        });
        let mut settings = settings.filter_map(|(client, path)| Some((client, path.ok()?)));
        settings.find(|(client, path)| has_own_hooks(client, path)).map(|(_, path)| path)
    })
}

fn work_trees(directory: &Path) -> Vec<PathBuf> {
    let answer = git(directory, &["worktree", "list", "--porcelain"]).unwrap_or_default();
    answer.lines().filter_map(|line| line.strip_prefix("worktree ").map(PathBuf::from)).collect()
}

fn git_line(directory: &Path, question: &str) -> Option<PathBuf> {
    let answer = git(directory, &["rev-parse", question])?;
    Some(PathBuf::from(answer.trim_end_matches('\n')))
}

fn git(directory: &Path, question: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(question);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        command.env_remove(variable);
    }
    program::read_output(command)
}

fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
