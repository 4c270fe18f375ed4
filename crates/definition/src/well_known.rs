//! The tools that agents and clients commonly offer, for hints and the reference page.
//!
//! The engine defines their kinds; a test checks that both lists are equal.

use jackline_engine::ToolKind;

/// Well-known names by kind. The name of a kind is also a well-known name.
pub(crate) const TOOLS: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Read,
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
        ToolKind::Write,
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
        ToolKind::Edit,
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
    (ToolKind::Delete, &["delete_file", "remove_file", "rm"]),
    (
        ToolKind::Exec,
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
        ToolKind::Search,
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
        ToolKind::Fetch,
        &["WebFetch", "WebSearch", "web_fetch", "web_search", "webfetch", "google_web_search"],
    ),
    (
        ToolKind::Think,
        &["TodoWrite", "todo_write", "todowrite", "update_plan", "plan", "save_memory"],
    ),
    (ToolKind::Spawn, &["Agent", "Task", "task", "spawn_agent", "delegate"]),
    (ToolKind::Effect, &[]),
    (ToolKind::Other, &[]),
];

/// Returns every well-known name, including the names of kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let kinds = ToolKind::ALL.iter().map(|(name, _)| *name);
    kinds.chain(TOOLS.iter().flat_map(|(_, names)| names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_knows_the_same_tools() {
        for (kind, names) in TOOLS {
            for name in *names {
                assert_eq!(ToolKind::well_known(name), Some(*kind), "{name}");
            }
        }
        // The engine only answers for one name at a time, so the test reads its source.
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
