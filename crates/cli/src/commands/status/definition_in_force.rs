//! What `status` says about a definition: which one is in force where no session has worked yet,
//! and which of its checks wait for a person's trust.

use std::path::{Path, PathBuf};

use jackline_definition::words;
use jackline_engine::{Definition, Session};
use jackline_host::state_home;
use jackline_journal::{FileStore, OpeningRecord};
use jackline_runtime::definitions::EffectiveDefinition;
use jackline_setup::install::lost_hooks;

use crate::commands::trust_demands::{offer_trust, untrusted_checks};
use crate::terminal::{
    bold, current_directory, dim, machine_definitions, print_line, print_table, sanitize,
};

/// The maximum length of a shown path or command.
const TEXT_MAX: usize = 160;

/// The definition that a new session in a directory would have.
fn definition_for_new_session(store: &FileStore, directory: &Path) -> Option<EffectiveDefinition> {
    machine_definitions(None, store).read_only().effective(None, directory).ok()
}

/// The definition of a session as its file is now: what a reload would give the session.
pub(super) fn current_definition(store: &FileStore, session: &Session) -> Option<Definition> {
    let location = session.location();
    let file = Path::new(location.definition.first()?);
    let workspace = location.workspace.as_deref().map_or_else(current_directory, PathBuf::from);
    let definitions = machine_definitions(None, store).read_only();
    Some(definitions.effective(Some(file), &workspace).ok()?.combined.definition)
}

/// Shows the definition for the first session of this directory.
pub(super) fn show_definition_without_session(store: &FileStore) {
    let Some(effective) = definition_for_new_session(store, &current_directory()) else {
        print_line("no definition is in force here; `jackline init` installs the guard");
        return;
    };
    let definition = &effective.combined.definition;
    print_line(format!(
        "{} {}",
        bold(&definition.name),
        dim(format!("({})", words::mode(definition.mode)))
    ));
    let layers = effective.layers.iter().map(|(layer, file, _)| {
        let file = sanitize(&file.display().to_string(), TEXT_MAX);
        vec![format!("  {}", dim(format!("{} layer", layer.as_str()))), file]
    });
    print_table(&layers.collect::<Vec<_>>());
    if let Some(lost) = describe_lost_hooks(&current_directory()) {
        print_line(lost);
    }
    offer_trust(store, &effective, false);
}

/// Says that settings in which `init` installed the guard no longer start it, so that the definition
/// is not in force for new sessions.
pub(super) fn describe_lost_hooks(directory: &Path) -> Option<String> {
    let (client, path) = lost_hooks(&state_home().ok()?, directory).into_iter().next()?;
    Some(format!(
        "`{}` no longer starts the guard, so new sessions of {} are not guarded here; check out a \
         branch that has these settings, or run `jackline init {}`",
        sanitize(&path.display().to_string(), TEXT_MAX),
        client.title,
        client.id
    ))
}

/// The checks of a session that a person has not trusted, and what to do; nothing if there are
/// none.
pub(super) fn describe_missing_trust(
    opened: &OpeningRecord,
    definition: &Definition,
) -> Option<String> {
    let commands: Vec<String> = untrusted_checks(definition)
        .into_iter()
        .map(|line| format!("`{}`", sanitize(line, TEXT_MAX)))
        .collect();
    if commands.is_empty() {
        return None;
    }
    let session = sanitize(opened.session.as_str(), 60);
    Some(format!(
        "to run {}: `jackline trust`, then `jackline reload {session}`",
        commands.join(", ")
    ))
}
