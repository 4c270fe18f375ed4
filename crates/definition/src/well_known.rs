//! Tools that agents and clients commonly offer, for hints and the reference.
//!
//! What they do is the engine's to say; a test keeps the two lists one.

use jackline_engine::Kind;

/// Well-known names by kind; a kind is itself the name of such a tool.
pub(crate) const TOOLS: &[(Kind, &[&str])] = &[
    (
        Kind::Read,
        &[
            "read_file",
            "read_many_files",
            "Read",
            "view",
            "open_file",
            "NotebookRead",
            "read_text_file",
            "read_media_file",
            "read_multiple_files",
        ],
    ),
    (
        Kind::Write,
        &[
            "write_file",
            "Write",
            "create",
            "create_file",
            "save_file",
            "create_directory",
            "move_file",
        ],
    ),
    (
        Kind::Edit,
        &[
            "edit_file",
            "Edit",
            "MultiEdit",
            "NotebookEdit",
            "replace",
            "apply_patch",
            "str_replace",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "patch",
        ],
    ),
    (Kind::Delete, &["delete_file", "remove_file", "rm"]),
    (
        Kind::Exec,
        &[
            "bash",
            "Bash",
            "shell",
            "sh",
            "run_shell_command",
            "exec_command",
            "local_shell",
            "execute_command",
            "run_command",
            "Monitor",
            "powershell",
            "PowerShell",
            "terminal",
        ],
    ),
    (
        Kind::Search,
        &[
            "grep",
            "Grep",
            "glob",
            "Glob",
            "search_file_content",
            "find_files",
            "list_dir",
            "list_directory",
            "list",
            "ls",
            "LS",
            "rg",
            "list_directory_with_sizes",
            "directory_tree",
            "search_files",
            "get_file_info",
            "list_allowed_directories",
        ],
    ),
    (
        Kind::Fetch,
        &["WebFetch", "WebSearch", "web_fetch", "web_search", "webfetch", "google_web_search"],
    ),
    (Kind::Think, &["TodoWrite", "todo_write", "todowrite", "update_plan", "plan", "save_memory"]),
    (Kind::Spawn, &["Agent", "Task", "task", "spawn_agent", "delegate"]),
    (Kind::Effect, &[]),
    (Kind::Other, &[]),
];

/// Every well-known name, kinds included.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let kinds = Kind::ALL.iter().map(|(name, _)| *name);
    kinds.chain(TOOLS.iter().flat_map(|(_, names)| names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_knows_the_same_tools() {
        for (kind, names) in TOOLS {
            for name in *names {
                assert_eq!(Kind::well_known(name), Some(*kind), "{name}");
            }
        }
        // The engine tells about one name at a time, so its source is asked.
        let engine = include_str!("../../engine/src/tool.rs");
        let (_, table) = engine.split_once("\nkinds! {").unwrap();
        let (table, _) = table.split_once("\n}").unwrap();
        let mut listed: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
        let mut known: Vec<&str> = names().collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, listed);
    }
}
