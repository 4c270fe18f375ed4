//! What keeps hooks that are installed from running.

use std::path::{Path, PathBuf};

use super::Client;
use super::plan::read;
use crate::claude::settings::{self, PINNED, Version};

/// Where the owner of a machine puts settings of Claude Code.
const CLAUDE_MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Which of these settings, or the owner's, switch all hooks off.
pub(crate) fn switched_off(files: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let says = |path: PathBuf| {
        let key = settings::silencer(&read(&path).ok()?)?;
        Some(format!("`{key}` is true in `{}`", path.display()))
    };
    files.into_iter().chain([PathBuf::from(CLAUDE_MANAGED)]).filter_map(says).collect()
}

/// Why the client would ignore settings for what else is in them.
pub(crate) fn ignored(
    client: Client,
    version: Option<Version>,
    path: &Path,
    text: &str,
) -> Vec<String> {
    let (title, place) = (client.title(), path.display());
    let mut reasons = Vec::new();
    if let Some(line) = settings::loose_line(text) {
        // The file of the other scope is read for itself.
        let other = if path.ends_with("settings.local.json") { "--user" } else { "--local" };
        reasons.push(format!(
            "{title} takes no comments and no commas at the end of a list, and ignores all of \
             `{place}` for them, as in line {line}; take them out, or keep them, take the guard \
             out of that file with `--uninstall` and install with `{other}`"
        ));
    }
    let misfit = settings::misfit(text).filter(|_| version.is_some_and(|own| own < PINNED));
    reasons.extend(misfit.map(|misfit| {
        format!(
            "{misfit} in `{place}`: older versions of {title} ignore the whole file for that; \
             mend it, or update the client"
        )
    }));
    reasons
}
