//! Where a session works: what the paths of its calls mean.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{Dir, Known, Word};
use serde::{Deserialize, Serialize};

use crate::path::resolve;

/// Where a session works. It is pinned when the session is opened, and the
/// first record holds it, so that paths mean the same when it is replayed. Only
/// the files of the definition are others once a person has reloaded it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The workspace, absolute, symbolic links resolved.
    pub workspace: Option<String>,
    /// The home directory, which `~` stands for.
    pub home: Option<String>,
    /// Where the guard keeps its state.
    pub state_home: Option<String>,
    /// What else is the guard's own: where a person's word that switches it off
    /// may lie, its program, the client's settings in the person's home.
    #[serde(default)]
    pub own: Vec<String>,
    /// The files of the definition in force, absolute: the one that was found
    /// first, then those it extends and the other layers.
    pub definition: Vec<String>,
}

/// What a word of a command or an argument of a call points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// One path: relative to the workspace, or absolute outside of it.
    At(String),
    /// Every path that a pattern matches, in the same form.
    Pattern(String),
    /// The repository that holds this directory.
    Repository(String),
    /// It can't be told; this is what is written.
    Unknown(String),
}

impl Target {
    /// The path or the pattern, where there is one.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::At(path) | Self::Pattern(path) => Some(path),
            Self::Repository(_) | Self::Unknown(_) => None,
        }
    }
}

impl Place {
    /// Where a path leads from a directory.
    pub(crate) fn locate(&self, path: &str, base: &str) -> String {
        self.located(path, base).into_owned()
    }

    /// The same, without a copy of a plain name.
    pub(crate) fn located<'p>(&self, path: &'p str, base: &str) -> Cow<'p, str> {
        if let Some(home) = &self.home
            && let Some(below) = path.strip_prefix('~')
            && (below.is_empty() || below.starts_with('/'))
        {
            let mut absolute = home.clone();
            absolute.push_str(below);
            let path = resolve(&absolute, base, self.workspace.as_deref());
            return Cow::Owned(path.into_owned());
        }
        resolve(path, base, self.workspace.as_deref())
    }

    /// The same path, from the root of the machine.
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

    /// The directory a command works in, as far as it is known. Where it may be
    /// either of two, it is taken to be the one it was sent to.
    pub(crate) fn directory(&self, dir: &Dir, cwd: &str) -> Option<String> {
        match dir {
            Dir::Start => Some(String::from(cwd)),
            Dir::In(path) | Dir::Either(path) => Some(self.locate(path, cwd)),
            Dir::Unknown => None,
        }
    }

    /// What a word stands for, seen from a directory.
    pub(crate) fn target(&self, word: &Word<'_>, base: Option<&str>) -> Target {
        let text = &*word.text;
        let anchored = text.starts_with('/') || text.starts_with('~');
        match (word.known, base) {
            (Known::Repository, base) => Target::Repository(String::from(base.unwrap_or("."))),
            (Known::Home, _) if self.home.is_none() || is_other_home(text) => {
                Target::Unknown(String::from(text))
            }
            (Known::Literal, base) if text.starts_with('~') => base.map_or_else(
                || Target::Unknown(String::from(text)),
                |base| Target::At(resolve(text, base, self.workspace.as_deref()).into_owned()),
            ),
            (Known::Unknown, base) => {
                self.expanded(text, base).unwrap_or_else(|| Target::Unknown(String::from(text)))
            }
            (_, None) if !anchored => Target::Unknown(String::from(text)),
            (Known::Literal | Known::Home, base) => {
                Target::At(self.locate(text, base.unwrap_or(".")))
            }
            (Known::Glob, base) => Target::Pattern(self.locate(text, base.unwrap_or("."))),
        }
    }
}

/// How the directory a command works in is written, and a home.
const WORKING: [&str; 4] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"];
const HOME: [&str; 2] = ["$HOME", "${HOME}"];

impl Place {
    /// What a word stands for that begins with a variable everybody knows.
    fn expanded(&self, text: &str, base: Option<&str>) -> Option<Target> {
        let after = |names: &[&str]| {
            let rest = names.iter().find_map(|name| text.strip_prefix(name))?;
            let plain = !rest.contains(['$', '`']) && (rest.is_empty() || rest.starts_with('/'));
            plain.then_some(rest)
        };
        let (root, rest) = match (after(&WORKING), after(&HOME)) {
            (Some(rest), _) => (self.absolute(base?), rest),
            (None, Some(rest)) => (self.home.clone()?, rest),
            (None, None) => return None,
        };
        let path = self.locate(&(root + rest), ".");
        let pattern = rest.contains(['*', '?', '[']);
        Some(if pattern { Target::Pattern(path) } else { Target::At(path) })
    }
}

/// `~user`: somebody's home, and nobody knows where that is.
fn is_other_home(text: &str) -> bool {
    !(text == "~" || text.starts_with("~/"))
}
