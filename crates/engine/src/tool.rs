//! The kinds of tools, so that one policy fits every client.

use jackline_shell::Access;
use serde::{Deserialize, Serialize};

/// Jackline's own tool that shows a page of a result that was too long. It exists under every
/// definition, and no server may offer a tool with this name.
pub const PAGE_TURN_TOOL: &str = "jackline/page";

/// The arguments in which tools commonly name files, as JSON pointers.
pub(crate) const PATH_POINTERS: [&str; 9] = [
    "/file_path",
    "/path",
    "/notebook_path",
    "/absolute_path",
    "/filePath",
    "/filename",
    "/target_file",
    "/paths",
    "/file_paths",
];

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: [$($known:literal),* $(,)?],)*) => {
        /// The effect of a tool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ToolKind {
            $($(#[$doc])* $variant,)*
        }

        impl ToolKind {
            /// Every kind with its name.
            pub const ALL: &'static [(&'static str, ToolKind)] = &[$(($name, ToolKind::$variant),)*];

            /// Every kind with the names of its well-known tools. The name of a kind is also the
            /// name of a well-known tool.
            pub const WELL_KNOWN: &'static [(ToolKind, &'static [&'static str])] =
                &[$((ToolKind::$variant, &[$($known),*]),)*];

            /// The kind of a tool that is common among agents and clients.
            pub fn well_known(tool: &str) -> Option<ToolKind> {
                match tool {
                    $($name $(| $known)* => Some(ToolKind::$variant),)*
                    // No definition declares it, so it is not among the well-known names.
                    PAGE_TURN_TOOL => Some(ToolKind::Read),
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Shows the contents of files.
    Read = "read": [
        "read_file", "read_many_files", "Read", "view", "open_file", "NotebookRead",
        "read_text_file", "read_media_file", "read_multiple_files",
    ],
    /// Replaces or creates whole files.
    Write = "write": [
        "write_file", "Write", "create", "create_file", "save_file", "create_directory", "move_file",
    ],
    /// Changes parts of files.
    Edit = "edit": [
        "edit_file", "Edit", "MultiEdit", "NotebookEdit", "replace", "apply_patch", "str_replace",
        "str_replace_editor", "str_replace_based_edit_tool", "patch",
    ],
    /// Removes files.
    Delete = "delete": ["delete_file", "remove_file", "rm"],
    /// Runs a command line.
    Exec = "exec": [
        "bash", "Bash", "shell", "sh", "run_shell_command", "exec_command", "local_shell",
        "execute_command", "run_command", "Monitor", "powershell", "PowerShell", "terminal",
    ],
    /// Finds files or text.
    Search = "search": [
        "grep", "Grep", "glob", "Glob", "search_file_content", "find_files", "list_dir",
        "list_directory", "list", "ls", "LS", "rg", "list_directory_with_sizes", "directory_tree",
        "search_files", "get_file_info", "list_allowed_directories",
    ],
    /// Reads from outside the workspace.
    Fetch = "fetch": ["WebFetch", "WebSearch", "web_fetch", "web_search", "webfetch", "google_web_search"],
    /// Changes nothing but the agent's own notes.
    Think = "think": ["TodoWrite", "todo_write", "todowrite", "update_plan", "plan", "save_memory"],
    /// Starts another agent.
    Spawn = "spawn": ["Agent", "Task", "task", "spawn_agent", "delegate"],
    /// Acts on the world outside the workspace.
    Effect = "effect": [],
    /// Anything else.
    Other = "other": [],
}

/// A file argument of a well-known tool, and what the tool does to the file.
#[derive(Debug)]
pub(crate) struct NamedPath {
    pub(crate) pointer: &'static str,
    pub(crate) access: Access,
    pub(crate) recursive: bool,
}

fn named_paths(tool: &str) -> Option<&'static [NamedPath]> {
    match tool {
        "create_directory" => {
            Some(&[NamedPath { pointer: "/path", access: Access::Touch, recursive: false }])
        }
        "move_file" => Some(&[
            NamedPath { pointer: "/source", access: Access::Delete, recursive: true },
            NamedPath { pointer: "/destination", access: Access::Write, recursive: false },
        ]),
        "list_allowed_directories" => Some(&[]),
        _ => None,
    }
}

/// The arguments in which a tool may name files, as JSON pointers.
pub fn path_pointers<'k>(tool: &str) -> impl Iterator<Item = &'k str> {
    let own = named_paths(tool).unwrap_or_default().iter().map(|named| named.pointer);
    own.chain(PATH_POINTERS)
}

impl ToolKind {
    /// Every well-known name, including the names of kinds.
    pub fn well_known_names<'n>() -> impl Iterator<Item = &'n str> {
        let kinds = Self::ALL.iter().map(|(name, _)| *name);
        kinds.chain(Self::WELL_KNOWN.iter().flat_map(|(_, names)| names.iter().copied()))
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether a well-known tool shows only the names of files and not their content.
    pub(crate) fn only_lists_names(tool: &str) -> bool {
        matches!(
            tool,
            "list_dir"
                | "list_directory"
                | "list"
                | "ls"
                | "LS"
                | "find_files"
                | "glob"
                | "Glob"
                | "list_directory_with_sizes"
                | "directory_tree"
                | "search_files"
                | "get_file_info"
        )
    }

    /// The file arguments of a well-known tool of this kind, if they differ from the usual ones of
    /// the kind.
    pub(crate) fn named_paths_of(self, tool: &str) -> Option<&'static [NamedPath]> {
        Self::well_known(tool).filter(|kind| *kind == self).and_then(|_| named_paths(tool))
    }

    /// Whether a call of this kind changes files of the workspace.
    pub fn mutates(self) -> bool {
        matches!(self, Self::Write | Self::Edit | Self::Delete)
    }
}
