//! Claude Code as a worker: with our hooks for this run only, and for its session.

use jackline_clients::claude::RUN;
use jackline_clients::claude::settings::{hooks_for, install, shell_word};
use jackline_clients::live::Installed;
use jackline_engine::SessionId;
use jackline_journal::{FileStore, write_private};
use jackline_supervisor::ClaudeCode;

/// The file with the hooks, in the directory of the session.
const SETTINGS: &str = "claude-settings.json";

/// The client's own tries take minutes; who is next is the supervisor's matter.
const RETRIES: &str = "CLAUDE_CODE_MAX_RETRIES=2";

/// Tools that the client lets run without asking; the guards decide on each call.
const TOOLS: &str = "Bash,Read,Write,Edit,MultiEdit,NotebookEdit,Glob,Grep,LS,TodoWrite,Task,Agent";

/// Whether the client is there, and the command line with which it works in a session.
pub(super) fn hooked(store: &FileStore) -> ClaudeCode {
    let store = store.clone();
    ClaudeCode {
        find: Box::new(|| Installed::find(None).map(drop).map_err(|error| error.to_string())),
        words: Box::new(move |session, model| words(&store, session, model)),
    }
}

fn words(
    store: &FileStore,
    session: &SessionId,
    model: Option<&str>,
) -> Result<Vec<String>, String> {
    let client = Installed::find(None).map_err(|error| error.to_string())?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let own = own.to_str().ok_or("the path of this program is not UTF-8")?;
    let hooks = hooks_for(client.version, &shell_word(own));
    let settings = install("", &hooks).map_err(|error| error.to_string())?;
    let file = store.directory(session).join(SETTINGS);
    write_private(&file, settings.as_bytes()).map_err(|error| error.to_string())?;
    let text = |path: &std::path::Path| path.display().to_string();
    let mut words = vec![
        "env".to_owned(),
        format!("{RUN}={session}"),
        RETRIES.to_owned(),
        text(&client.program),
        "--print".to_owned(),
        "--settings".to_owned(),
        text(&file),
        "--output-format".to_owned(),
        "json".to_owned(),
        "--allowedTools".to_owned(),
        TOOLS.to_owned(),
    ];
    if let Some(model) = model {
        words.extend(["--model".to_owned(), model.to_owned()]);
    }
    Ok(words)
}
