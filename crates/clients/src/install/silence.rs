//! What keeps hooks that are installed from running.

use std::path::PathBuf;

use super::plan::read;
use crate::list::Client;

/// Which of these settings, or the owner's, switch all hooks off.
pub(crate) fn switched_off(
    client: &Client,
    files: impl IntoIterator<Item = PathBuf>,
) -> Vec<String> {
    let says = |path: PathBuf| {
        let key = client.installation.silenced_by(&read(&path).ok()?)?;
        Some(format!("`{key}` is true in `{}`", path.display()))
    };
    files.into_iter().chain(client.installation.owner_settings()).filter_map(says).collect()
}
