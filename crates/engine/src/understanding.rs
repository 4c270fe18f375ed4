//! A proposed call as the guards see it, put into words for people.
//!
//! Guards look at the proposal itself; this is a copy of what they find
//! there, so that nobody has to understand a command line a second time.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, Command, Dir, Exit, Line, Word};

use crate::event::Event;
use crate::guards::{excerpt, opaque, shortened};
use crate::place::Target;
use crate::proposal::{Heard, Proposal, Run, Touch};
use crate::session::Session;
use crate::tool::Kind;

/// What a proposed call does, as far as that can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understanding {
    /// The tool by its declared name.
    pub tool: String,
    /// What it does.
    pub kind: Kind,
    /// The directory it works in: relative to the workspace, or absolute outside.
    pub cwd: String,
    /// What it runs.
    pub runs: Runs,
    /// What its arguments do to files, where it runs no command line.
    pub touches: Vec<Touched>,
}

/// What a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    /// No command line.
    Nothing,
    /// A command line that is missing, or too long to be seen.
    Unseen,
    /// A command line.
    Line {
        /// Every simple command that it may run; one that runs others comes first.
        commands: Vec<SimpleCommand>,
        /// What can't be seen into.
        hidden: Vec<Hidden>,
    },
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The base name of its program; empty where there is none, or it is not known.
    pub program: String,
    /// The program and its arguments.
    pub words: Vec<Argument>,
    /// The directory it works in, where that can be told.
    pub dir: Option<String>,
    /// Whether it works there for certain; not where a `cd` may have failed.
    pub dir_certain: bool,
    /// What it does to files.
    pub touches: Vec<Touched>,
    /// What the line's exit status says about its own: `decides`, `needed`,
    /// `enough` or `lost`.
    pub exit: &'static str,
    /// Whether it runs whenever the line runs.
    pub certain: bool,
    /// The number of the command that runs it.
    pub parent: Option<u32>,
    /// The tools it is recognised as.
    pub tools: Vec<String>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What it says, quotes removed and expanded as far as that is known.
    pub text: String,
    /// Whether the program sees exactly that: it is no pattern, and holds
    /// nothing that is not known.
    pub exact: bool,
}

/// What is done to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// What is done.
    pub how: How,
    /// The path, as conditions see it: relative to the workspace, or absolute outside.
    pub path: String,
    /// What the path is.
    pub points: Points,
    /// Whether everything below it is meant too.
    pub recursive: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is read.
    Reads,
    /// It is written, changed, or created.
    Writes,
    /// It is removed or moved away.
    Deletes,
}

/// What a path points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// One place.
    Path,
    /// Every place that a pattern matches.
    Pattern,
    /// The repository that holds the directory.
    Repository,
    /// It can't be told; this is what is written.
    Unknown,
}

/// A part that can't be seen into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Why not, in the word that conditions see in `opaque`.
    pub reason: &'static str,
    /// Why not, for people.
    pub why: &'static str,
    /// The part: an inline script, the name of a script file, or what is written there.
    pub text: String,
    /// The number of the command it belongs to; none for the line as a whole.
    pub command: Option<u32>,
}

impl Session {
    /// What a proposed call does; nothing for other events.
    pub fn understand(&self, event: &Event) -> Option<Understanding> {
        let heard = Heard::of(self.definition(), event)?;
        let proposal = Proposal::of(self.definition(), self.place(), &heard);
        let runs = match &proposal.run {
            Run::Nothing => Runs::Nothing,
            Run::Unseen => Runs::Unseen,
            Run::Line(line) => Runs::Line {
                commands: (0..)
                    .zip(&line.commands)
                    .map(|(number, command)| self.simple(&proposal, number, command))
                    .collect(),
                hidden: line.opaque.iter().map(|part| hidden(line, part)).collect(),
            },
        };
        let own = proposal.touches.iter().filter(|touch| touch.command.is_none());
        Some(Understanding {
            tool: proposal.tool.name.to_string(),
            kind: proposal.tool.kind,
            cwd: proposal.cwd.clone(),
            runs,
            touches: own.map(touched).collect(),
        })
    }

    fn simple(&self, proposal: &Proposal<'_>, number: u32, command: &Command<'_>) -> SimpleCommand {
        let own = proposal.touches.iter().filter(|touch| touch.command == Some(number));
        let known = proposal.recognised.iter().filter(|known| known.command == number);
        SimpleCommand {
            program: command.program().to_string(),
            words: command.words.iter().map(argument).collect(),
            dir: self.place().directory(&command.dir, &proposal.cwd),
            dir_certain: !matches!(command.dir, Dir::Either(_)),
            touches: own.map(touched).collect(),
            exit: match command.exit {
                Exit::Decides => "decides",
                Exit::Needed => "needed",
                Exit::Enough => "enough",
                Exit::Lost => "lost",
            },
            certain: command.certain,
            parent: command.parent,
            tools: known.map(|known| known.tool.name.clone()).collect(),
        }
    }
}

fn argument(word: &Word<'_>) -> Argument {
    Argument { text: word.text.to_string(), exact: word.exact().is_some() }
}

fn touched(touch: &Touch) -> Touched {
    let (points, path) = match &touch.target {
        Target::At(path) => (Points::Path, path),
        Target::Pattern(path) => (Points::Pattern, path),
        Target::Repository(dir) => (Points::Repository, dir),
        Target::Unknown(text) => (Points::Unknown, text),
    };
    let how = match touch.access {
        Access::Read(_) => How::Reads,
        Access::Write | Access::Append | Access::Edit | Access::Touch => How::Writes,
        Access::Delete => How::Deletes,
    };
    Touched { how, path: path.clone(), points, recursive: touch.recursive }
}

fn hidden(line: &Line<'_>, part: &jackline_shell::Opaque<'_>) -> Hidden {
    let command = part.command.and_then(|at| line.commands.get(at as usize));
    let written = || command.and_then(|command| excerpt(line, command));
    let text = if part.text.trim().is_empty() {
        written().unwrap_or_else(|| shortened(line.text))
    } else {
        part.text.to_string()
    };
    Hidden {
        reason: opaque::word(part.reason),
        why: opaque::describe(part.reason),
        text,
        command: part.command,
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::definition::{Definition, Tool};
    use crate::id::SessionId;
    use crate::place::Place;
    use crate::wire::parse_line;

    fn understand(tool: &str, args: &serde_json::Value) -> Understanding {
        let deploy =
            Tool { commands: Vec::from(["make deploy".to_string()]), ..Tool::named("deploy") };
        let definition = Definition { tools: Vec::from([deploy]), ..Definition::default() };
        let place = Place { workspace: Some("/w".to_string()), ..Place::default() };
        let session = Session::new(Arc::new(definition), Arc::new(place));
        let event = serde_json::json!({"event":"tool_proposed","call":"c","tool":tool,"args":args});
        let id = SessionId::parse("s").unwrap();
        let event = parse_line(event.to_string().as_bytes(), Some(&id)).unwrap();
        session.understand(&event).unwrap()
    }

    fn line(text: &str) -> (Vec<SimpleCommand>, Vec<Hidden>) {
        let understood = understand("Bash", &serde_json::json!({ "command": text }));
        let Runs::Line { commands, hidden } = understood.runs else { panic!("a line") };
        (commands, hidden)
    }

    #[test]
    fn a_line_is_shown_command_by_command_as_conditions_see_it() {
        let (commands, hidden) = line("cd sub && rm -r 'old dir' > log; ls *.c | wc -l");
        let shown = |command: &SimpleCommand| {
            let texts = command.words.iter().map(|word| word.text.as_str());
            texts.collect::<Vec<_>>().join("|")
        };
        let words: Vec<String> = commands.iter().map(shown).collect();
        assert_eq!(words, ["cd|sub", "rm|-r|old dir", "ls|*.c", "wc|-l"]);
        assert_eq!(commands[2].words.iter().map(|w| w.exact).collect::<Vec<_>>(), [true, false]);
        assert_eq!(hidden, []);
        let rm = &commands[1];
        assert_eq!((rm.dir.as_deref(), rm.exit, rm.certain), (Some("sub"), "lost", false));
        let touched = |how, path: &str, recursive| Touched {
            how,
            path: path.to_string(),
            points: Points::Path,
            recursive,
        };
        let log = touched(How::Writes, "sub/log", false);
        assert!(rm.touches.contains(&touched(How::Deletes, "sub/old dir", true)), "{rm:?}");
        assert!(rm.touches.contains(&log), "{rm:?}");
        // Nobody checked whether the `cd` succeeded.
        assert!(!commands[2].dir_certain);
    }

    #[test]
    fn what_hides_something_says_what_and_why() {
        let (commands, parts) = line("./setup.sh && make deploy && frobnicate --all");
        let shown: Vec<(&str, &str)> =
            parts.iter().map(|part| (part.reason, part.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("script_file", "./setup.sh"),
                ("runner", "make deploy"),
                ("no_row", "frobnicate --all")
            ]
        );
        assert_eq!(commands[1].tools, ["deploy"]);
    }

    #[test]
    fn the_paths_of_a_tool_are_those_of_its_arguments() {
        let understood = understand("Write", &serde_json::json!({"file_path": "/w/a/../b"}));
        assert_eq!((understood.kind, understood.runs), (Kind::Write, Runs::Nothing));
        let path = Touched {
            how: How::Writes,
            path: "b".to_string(),
            points: Points::Path,
            recursive: false,
        };
        assert_eq!(understood.touches, [path]);
        let unseen = understand("Bash", &serde_json::json!({"command": 1}));
        assert_eq!(unseen.runs, Runs::Unseen);
    }
}
