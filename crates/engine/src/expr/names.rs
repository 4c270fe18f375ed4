//! The names that a condition can use, with the descriptions for the reference page.

use serde::{Deserialize, Serialize};

/// The type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
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

impl ValueShape {
    /// The name of the type, for people.
    pub fn describe(self) -> &'static str {
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
        /// The variables of conditions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Variable {
            $(#[doc = $about] $variant,)*
        }

        impl Variable {
            /// Every variable, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as it is written in a condition.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The type of its value.
            pub fn shape(self) -> ValueShape {
                match self {
                    $(Self::$variant => ValueShape::$shape,)*
                }
            }

            /// A description in one line.
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
    Path = "path", Text, "The first path of the call, `\"\"` if it has none; relative to the workspace, absolute outside it.";
    Paths = "paths", Texts, "Every path of the call, in the form of `path`.";
    Program = "program", Text, "The program that this command of a command line runs, without its directory.";
    Argv = "argv", Texts, "The words after the program.";
    Cwd = "cwd", Text, "The directory the call or command runs in, in the form of `path`.";
    Home = "home", Text, "The home directory, absolute, `\"\"` if it is not known.";
    Actor = "actor", Text, "The agent that calls: `main`, or the name of a sub-agent.";
    SessionSteps = "session.steps", Number, "How many steps the session has used.";
    SessionCalls = "session.calls", Number, "How many calls the session has made.";
    Reads = "reads", Texts, "The paths that this command or call reads.";
    Writes = "writes", Texts, "The paths that this command or call writes.";
    Deletes = "deletes", Texts, "The paths that this command or call removes.";
    Opaque = "opaque", Texts, "Why Jackline cannot tell what parts of the command run, such as `inline_script`.";
    GitDirty = "git.dirty", Bool, "Whether the repository has uncommitted changes.";
    GitUntracked = "git.untracked", Bool, "Whether the repository has files that it does not track.";
    GitBranch = "git.branch", Text, "The branch that is checked out, `\"\"` if there is none.";
    GitProtected = "git.protected", Bool, "Whether that branch is shared with other people.";
}

impl Variable {
    /// The variable with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variable| variable.name() == name)
    }
}

/// The questions about a path that a condition can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathQuestion {
    /// Whether there is a file or directory.
    Exists,
    /// Whether the repository ignores it.
    Ignored,
}

impl PathQuestion {
    /// The question that this function asks.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "exists" => Some(Self::Exists),
            "ignored" => Some(Self::Ignored),
            _ => None,
        }
    }
}

/// The functions and macros as they are written, each with a description.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("has(a.b)", "Whether the map `a` has the key `b`."),
    ("size(a), a.size()", "The number of characters, items or keys."),
    ("a.startsWith(text)", "Whether a text begins with another."),
    ("a.endsWith(text)", "Whether a text ends with another."),
    ("a.contains(text)", "Whether a text contains another."),
    ("a.matches(\"pattern\")", "Whether a regular expression is found in a text, in linear time."),
    ("a.lowerAscii()", "The text with `A` to `Z` in lower case."),
    ("int(a)", "The whole number that a text or a decimal represents."),
    ("string(a)", "A number or a truth value as text."),
    ("exists(path)", "Whether there is a file or directory."),
    ("ignored(path)", "Whether the repository ignores the path."),
    ("a.exists(x, condition)", "Whether the condition is true for at least one item."),
    ("a.all(x, condition)", "Whether the condition is true for every item."),
    ("a.exists_one(x, condition)", "Whether the condition is true for exactly one item."),
    ("a.filter(x, condition)", "The items for which the condition is true."),
    ("a.map(x, value)", "The value for each item."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_found_by_its_name_and_has_a_description() {
        for variable in Variable::ALL {
            assert_eq!(Variable::parse(variable.name()), Some(*variable));
            assert!(variable.about().ends_with(['.', '…']), "{variable:?}");
        }
        assert_eq!(Variable::parse("session"), None);
    }
}
