//! What kind of thing a tool does, so that one policy serves every client.

use jackline_shell::Access;
use serde::{Deserialize, Serialize};

/// To turn a page of a result that was too long: a tool of the guard's own, which every
/// definition knows. No server's tool may be called so.
pub const PAGE_TURN: &str = "jackline/page";

/// Where tools commonly name the file they work on, as JSON pointers.
pub(crate) const PATH_KEYS: [&str; 9] = [
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
        /// What a tool does to the world.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
        }

        impl Kind {
            /// Every kind by its name.
            pub const ALL: &'static [(&'static str, Kind)] = &[$(($name, Kind::$variant),)*];

            /// The kind of a tool that agents and clients commonly offer.
            pub fn well_known(tool: &str) -> Option<Kind> {
                match tool {
                    $($name $(| $known)* => Some(Kind::$variant),)*
                    // Nobody declares it, so it is in no list for people.
                    PAGE_TURN => Some(Kind::Read),
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

/// A file that a well-known tool names, and what it does to it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) pointer: &'static str,
    pub(crate) access: Access,
    pub(crate) recursive: bool,
}

fn named(tool: &str) -> Option<&'static [Named]> {
    match tool {
        "create_directory" => {
            Some(&[Named { pointer: "/path", access: Access::Touch, recursive: false }])
        }
        "move_file" => Some(&[
            Named { pointer: "/source", access: Access::Delete, recursive: true },
            Named { pointer: "/destination", access: Access::Write, recursive: false },
        ]),
        "list_allowed_directories" => Some(&[]),
        _ => None,
    }
}

/// Where a tool may name files among its arguments, as JSON pointers.
pub fn path_keys<'k>(tool: &str) -> impl Iterator<Item = &'k str> {
    let own = named(tool).unwrap_or_default().iter().map(|named| named.pointer);
    own.chain(PATH_KEYS)
}

impl Kind {
    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether a well-known tool shows the names of files, and nothing of what is in them.
    pub(crate) fn lists(tool: &str) -> bool {
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

    /// What a well-known tool of this kind does to the files that it names, where that is not
    /// what its kind says.
    pub(crate) fn named_by(self, tool: &str) -> Option<&'static [Named]> {
        Self::well_known(tool).filter(|kind| *kind == self).and_then(|_| named(tool))
    }

    /// Whether a call of this kind changes files of the workspace.
    pub fn mutates(self) -> bool {
        matches!(self, Self::Write | Self::Edit | Self::Delete)
    }
}
