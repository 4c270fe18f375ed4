//! The location of a session: the directories to which the paths of its calls refer.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{ShellWord, WordKind, WorkingDir};
use serde::{Deserialize, Serialize};

use crate::guards::protected::paths::compared_files;
use crate::path::resolve_path;

/// The directories of a session. They are fixed when the session is opened and stored in the first
/// record, so that paths have the same meaning in a replay. Only the files of the definition change
/// when a person reloads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLocation {
    /// The workspace: absolute, with symbolic links resolved.
    pub workspace: Option<String>,
    /// The home directory, which replaces `~`.
    pub home: Option<String>,
    /// The directory in which Jackline stores its state.
    pub state_home: Option<String>,
    /// Other paths that belong to Jackline: the file with which a person switches it off, its
    /// program, and the client's settings in the person's home.
    #[serde(default)]
    pub own: Vec<String>,
    /// The links among the files of the guard when the session was opened, with their targets. All
    /// paths are absolute, and the targets and links to the definition are also in `own`.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// The files of the definition in force, absolute: first the file that was found first, then
    /// the files it extends and the other layers.
    pub definition: Vec<String>,
}

/// The file or files to which a word of a command or an argument of a call refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// One path: relative to the workspace, or absolute outside of it.
    At(String),
    /// All paths that match a pattern, in the same form.
    Pattern(String),
    /// The repository that contains this directory.
    Repository(String),
    /// Unknown; this is the text as written.
    Unknown(String),
}

impl PathTarget {
    /// The path or the pattern, if it is known.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::At(path) | Self::Pattern(path) => Some(path),
            Self::Repository(_) | Self::Unknown(_) => None,
        }
    }
}

impl SessionLocation {
    /// The files in a workspace that are compared at every gate, if they exist: the definition and
    /// settings of clients.
    pub fn compared_files() -> impl Iterator<Item = &'static str> {
        compared_files()
    }

    /// Resolves a path from a directory.
    pub(crate) fn resolve_path(&self, path: &str, base: &str) -> String {
        self.resolve_path_cow(path, base).into_owned()
    }

    /// The same, but a plain name is not copied.
    pub(crate) fn resolve_path_cow<'p>(&self, path: &'p str, base: &str) -> Cow<'p, str> {
        if let Some(home) = &self.home
            && let Some(below) = path.strip_prefix('~')
            && (below.is_empty() || below.starts_with('/'))
        {
            let mut absolute = home.clone();
            absolute.push_str(below);
            let path = resolve_path(&absolute, base, self.workspace.as_deref());
            return Cow::Owned(path.into_owned());
        }
        resolve_path(path, base, self.workspace.as_deref())
    }

    /// The same path as an absolute path.
    pub(crate) fn absolute(&self, path: &str) -> String {
        match &self.workspace {
            Some(root) if !path.starts_with('/') => {
                let mut absolute = root.clone();
                if path != "." {
                    absolute.push('/');
                    absolute.push_str(path);
                }
                absolute
            }
            _ => String::from(path),
        }
    }

    /// The directory in which a command runs, if it is known. If a `cd` before it may have failed,
    /// its target counts.
    pub(crate) fn command_directory(&self, dir: &WorkingDir, cwd: &str) -> Option<String> {
        match dir {
            WorkingDir::Start => Some(String::from(cwd)),
            WorkingDir::Path(path) | WorkingDir::PathOrStart(path) => {
                Some(self.resolve_path(path, cwd))
            }
            WorkingDir::Unknown => None,
        }
    }

    /// Resolves a word from a directory.
    pub(crate) fn resolve_word(&self, word: &ShellWord<'_>, base: Option<&str>) -> PathTarget {
        let text = &*word.text;
        let anchored = text.starts_with('/') || text.starts_with('~');
        match (word.kind, base) {
            (WordKind::Repository, base) => {
                PathTarget::Repository(String::from(base.unwrap_or(".")))
            }
            (WordKind::Home, _) if self.home.is_none() || is_other_users_home(text) => {
                PathTarget::Unknown(String::from(text))
            }
            (WordKind::Literal, base) if text.starts_with('~') => base.map_or_else(
                || PathTarget::Unknown(String::from(text)),
                |base| {
                    PathTarget::At(resolve_path(text, base, self.workspace.as_deref()).into_owned())
                },
            ),
            (WordKind::Unknown, base) => self
                .expand_known_variable(text, base)
                .unwrap_or_else(|| PathTarget::Unknown(String::from(text))),
            (_, None) if !anchored => PathTarget::Unknown(String::from(text)),
            (WordKind::Literal | WordKind::Home, base) => {
                PathTarget::At(self.resolve_path(text, base.unwrap_or(".")))
            }
            (WordKind::Glob, base) => {
                PathTarget::Pattern(self.resolve_path(text, base.unwrap_or(".")))
            }
        }
    }
}

/// The notations for the working directory and for the home directory.
const WORKING_DIRECTORY_FORMS: [&str; 4] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"];
const HOME_FORMS: [&str; 2] = ["$HOME", "${HOME}"];

impl SessionLocation {
    /// Resolves a word that begins with one of these notations.
    fn expand_known_variable(&self, text: &str, base: Option<&str>) -> Option<PathTarget> {
        let after = |names: &[&str]| {
            let rest = names.iter().find_map(|name| text.strip_prefix(name))?;
            let plain = !rest.contains(['$', '`']) && (rest.is_empty() || rest.starts_with('/'));
            plain.then_some(rest)
        };
        let (root, rest) = match (after(&WORKING_DIRECTORY_FORMS), after(&HOME_FORMS)) {
            (Some(rest), _) => (self.absolute(base?), rest),
            (None, Some(rest)) => (self.home.clone()?, rest),
            (None, None) => return None,
        };
        let path = self.resolve_path(&(root + rest), ".");
        let pattern = rest.contains(['*', '?', '[']);
        Some(if pattern { PathTarget::Pattern(path) } else { PathTarget::At(path) })
    }
}

/// Whether a text is `~user`: the home of another user, whose path is not known.
fn is_other_users_home(text: &str) -> bool {
    !(text == "~" || text.starts_with("~/"))
}
