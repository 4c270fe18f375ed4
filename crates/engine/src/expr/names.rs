//! What a condition can name, with the words that the reference page shows.

use serde::{Deserialize, Serialize};

/// What kind of value a variable has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// True or false.
    Bool,
    /// A whole number.
    Number,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A map.
    Map,
}

impl Shape {
    /// The shape in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "number",
            Self::Text => "text",
            Self::Texts => "list of texts",
            Self::Map => "map",
        }
    }
}

macro_rules! variables {
    ($($variant:ident = $name:literal, $shape:ident, $about:literal;)*) => {
        /// What a condition can look at.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Variable {
            $(#[doc = $about] $variant,)*
        }

        impl Variable {
            /// Every variable, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as written.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What kind of value it has.
            pub fn shape(self) -> Shape {
                match self {
                    $(Self::$variant => Shape::$shape,)*
                }
            }

            /// What it is, in one line.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)*
                }
            }
        }
    };
}

variables! {
    Tool = "tool", Text, "The tool that is called, by its name.";
    Kind = "kind", Text, "What the tool does: `read`, `write`, `edit`, `delete`, `exec`, …";
    Args = "args", Map, "The arguments of the call.";
    Path = "path", Text, "The first path of the call, `\"\"` where there is none: relative to the workspace, absolute outside it.";
    Paths = "paths", Texts, "Every path of the call, in the form of `path`.";
    Program = "program", Text, "The program that this command of a command line runs, without its directory.";
    Argv = "argv", Texts, "The words after the program.";
    Cwd = "cwd", Text, "The directory the call or command runs in, in the form of `path`.";
    Home = "home", Text, "The home directory, absolute, `\"\"` where it is not known.";
    Actor = "actor", Text, "The agent that calls: `main`, or the name of a sub-agent.";
    SessionSteps = "session.steps", Number, "How many steps the session has used.";
    SessionCalls = "session.calls", Number, "How many calls the session has made.";
    Reads = "reads", Texts, "The paths that this command or call reads.";
    Writes = "writes", Texts, "The paths that this command or call writes.";
    Deletes = "deletes", Texts, "The paths that this command or call removes.";
    Opaque = "opaque", Texts, "Words for what can't be seen into, such as `inline_script`.";
    GitDirty = "git.dirty", Bool, "Whether the repository has uncommitted changes.";
    GitUntracked = "git.untracked", Bool, "Whether the repository has files that it does not track.";
    GitBranch = "git.branch", Text, "The branch that is checked out, `\"\"` where there is none.";
    GitProtected = "git.protected", Bool, "Whether that branch is one that people share.";
}

impl Variable {
    /// The variable with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variable| variable.name() == name)
    }
}

/// What a condition can ask about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether there is a file or directory.
    Exists,
    /// Whether the repository ignores it.
    Ignored,
}

impl Question {
    /// The question that this function asks.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "exists" => Some(Self::Exists),
            "ignored" => Some(Self::Ignored),
            _ => None,
        }
    }
}

/// The functions and macros as written, each with what it does.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("has(a.b)", "Whether the map `a` has the key `b`."),
    ("size(a), a.size()", "How many characters, items or keys."),
    ("a.startsWith(text)", "Whether a text begins with another."),
    ("a.endsWith(text)", "Whether a text ends with another."),
    ("a.contains(text)", "Whether a text holds another."),
    ("a.matches(\"pattern\")", "Whether a regular expression is found in a text, in linear time."),
    ("a.lowerAscii()", "The text with `A` to `Z` in lower case."),
    ("int(a)", "The whole number a text or a decimal stands for."),
    ("string(a)", "A number or a truth value as text."),
    ("exists(path)", "Whether there is a file or directory."),
    ("ignored(path)", "Whether the repository ignores the path."),
    ("a.exists(x, condition)", "Whether the condition is true of an item at least."),
    ("a.all(x, condition)", "Whether the condition is true of every item."),
    ("a.exists_one(x, condition)", "Whether the condition is true of exactly one item."),
    ("a.filter(x, condition)", "The items of which the condition is true."),
    ("a.map(x, value)", "What becomes of each item."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_found_by_its_name_and_has_its_line() {
        for variable in Variable::ALL {
            assert_eq!(Variable::parse(variable.name()), Some(*variable));
            assert!(variable.about().ends_with(['.', '…']), "{variable:?}");
        }
        assert_eq!(Variable::parse("session"), None);
    }
}
