//! A description of a proposed call for people and tools.
//!
//! Guards use the proposal itself. This module copies the proposal's content, so that other code
//! need not parse a command line a second time.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, ExitEvidence, ShellCommand, ShellLine, ShellWord, WorkingDir};

use crate::event::Event;
use crate::guards::{command_excerpt, opaque, shorten_for_message};
use crate::proposal::{FileTouch, Proposal, ProposalSource, ProposedRun};
use crate::session::Session;
use crate::session_location::PathTarget;
use crate::tool::ToolKind;

/// What a proposed call does, as far as Jackline can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDescription {
    /// The declared name of the tool.
    pub tool: String,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The directory in which it runs: relative to the workspace, or absolute if it is outside.
    pub cwd: String,
    /// The commands that it runs.
    pub runs: DescribedRun,
    /// The effects of its arguments on files, if it runs no command line.
    pub touches: Vec<TouchedPath>,
}

/// What a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribedRun {
    /// No command line.
    Nothing,
    /// The command line is missing or too long to be parsed.
    Unseen,
    /// A command line.
    Line {
        /// Every simple command that may run. A command comes before the commands it runs.
        commands: Vec<SimpleCommand>,
        /// The opaque parts: Jackline cannot tell what they run.
        hidden: Vec<OpaquePart>,
    },
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The base name of its program; empty if there is none or it is not known.
    pub program: String,
    /// The program and its arguments.
    pub words: Vec<CommandWord>,
    /// The directory in which it runs, if it is known.
    pub dir: Option<String>,
    /// Whether the directory is certain. It is not certain if a `cd` before it may have failed.
    pub dir_certain: bool,
    /// Its effects on files.
    pub touches: Vec<TouchedPath>,
    /// The meaning of the line's exit status for this command: `decides`, `needed`, `enough` or
    /// `lost`.
    pub exit: &'static str,
    /// Whether it always runs when the line runs.
    pub certain: bool,
    /// The number of the command that runs it.
    pub parent: Option<u32>,
    /// The tools as which it is recognised.
    pub tools: Vec<String>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWord {
    /// The text without quotes, expanded as far as the values are known.
    pub text: String,
    /// Whether the program receives exactly this text: it contains no pattern and no unknown value.
    pub exact: bool,
}

/// An effect on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedPath {
    /// The effect.
    pub effect: PathEffect,
    /// The path in the form of conditions: relative to the workspace, or absolute if it is outside.
    pub path: String,
    /// The meaning of the path.
    pub meaning: PathMeaning,
    /// Whether the effect includes everything below the path.
    pub recursive: bool,
}

/// The effects on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEffect {
    /// It is read.
    Reads,
    /// It is written, changed, or created.
    Writes,
    /// It is removed or moved to another path.
    Deletes,
}

/// The meaning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathMeaning {
    /// One path.
    Path,
    /// Every path that a pattern matches.
    Pattern,
    /// The repository that contains the directory.
    Repository,
    /// Unknown; the path is the text as written.
    Unknown,
}

/// An opaque part of a command line: Jackline cannot tell what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpaquePart {
    /// The reason, as the word that the variable `opaque` of conditions contains.
    pub reason: &'static str,
    /// The reason, for people.
    pub why: &'static str,
    /// The part: an inline script, the name of a script file, or the text as written.
    pub text: String,
    /// The number of the command to which it belongs; `None` for the whole line.
    pub command: Option<u32>,
}

impl Session {
    /// Describes a proposed call; `None` for other events.
    pub fn describe_call(&self, event: &Event) -> Option<CallDescription> {
        let heard = ProposalSource::of(self.definition(), event)?;
        let proposal = Proposal::of(self.definition(), self.location(), &heard);
        let runs = match &proposal.run {
            ProposedRun::Nothing => DescribedRun::Nothing,
            ProposedRun::Unseen => DescribedRun::Unseen,
            ProposedRun::Line(line) => DescribedRun::Line {
                commands: (0..)
                    .zip(&line.commands)
                    .map(|(number, command)| self.describe_command(&proposal, number, command))
                    .collect(),
                hidden: line
                    .opaque_parts
                    .iter()
                    .map(|part| describe_opaque_part(line, part))
                    .collect(),
            },
        };
        let own = proposal.touches.iter().filter(|touch| touch.command.is_none());
        Some(CallDescription {
            tool: proposal.tool.name.to_string(),
            kind: proposal.tool.kind,
            cwd: proposal.cwd.clone(),
            runs,
            touches: own.map(describe_touch).collect(),
        })
    }

    fn describe_command(
        &self,
        proposal: &Proposal<'_>,
        number: u32,
        command: &ShellCommand<'_>,
    ) -> SimpleCommand {
        let touches = proposal.touches.iter().filter(|touch| touch.command == Some(number));
        let recognised =
            proposal.recognised.iter().filter(|recognised| recognised.command == number);
        SimpleCommand {
            program: command.program().to_string(),
            words: command.words.iter().map(describe_word).collect(),
            dir: self.location().command_directory(&command.dir, &proposal.cwd),
            dir_certain: !matches!(command.dir, WorkingDir::PathOrStart(_)),
            touches: touches.map(describe_touch).collect(),
            exit: match command.exit_evidence {
                ExitEvidence::Decides => "decides",
                ExitEvidence::Needed => "needed",
                ExitEvidence::Enough => "enough",
                ExitEvidence::Lost => "lost",
            },
            certain: command.always_runs,
            parent: command.parent,
            tools: recognised.map(|it| it.tool.name.clone()).collect(),
        }
    }
}

fn describe_word(word: &ShellWord<'_>) -> CommandWord {
    CommandWord { text: word.text.to_string(), exact: word.exact_text().is_some() }
}

fn describe_touch(touch: &FileTouch) -> TouchedPath {
    let (points, path) = match &touch.target {
        PathTarget::At(path) => (PathMeaning::Path, path),
        PathTarget::Pattern(path) => (PathMeaning::Pattern, path),
        PathTarget::Repository(dir) => (PathMeaning::Repository, dir),
        PathTarget::Unknown(text) => (PathMeaning::Unknown, text),
    };
    let how = match touch.access {
        Access::Read(_) => PathEffect::Reads,
        Access::Write | Access::Append | Access::Edit | Access::Touch => PathEffect::Writes,
        Access::Delete => PathEffect::Deletes,
    };
    TouchedPath { effect: how, path: path.clone(), meaning: points, recursive: touch.recursive }
}

fn describe_opaque_part(
    line: &ShellLine<'_>,
    part: &jackline_shell::ShellOpaquePart<'_>,
) -> OpaquePart {
    let command = part.command.and_then(|at| line.commands.get(at as usize));
    let written = || command.and_then(|command| command_excerpt(line, command));
    let text = if part.text.trim().is_empty() {
        written().unwrap_or_else(|| shorten_for_message(line.text))
    } else {
        part.text.to_string()
    };
    OpaquePart {
        reason: opaque::reason_word(part.reason),
        why: opaque::describe_reason(part.reason),
        text,
        command: part.command,
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::definition::{DeclaredTool, Definition};
    use crate::id::SessionId;
    use crate::session_location::SessionLocation;
    use crate::wire::parse_line;

    fn understand(tool: &str, args: &serde_json::Value) -> CallDescription {
        let deploy = DeclaredTool {
            commands: Vec::from(["make deploy".to_string()]),
            ..DeclaredTool::with_name("deploy")
        };
        let definition = Definition { tools: Vec::from([deploy]), ..Definition::default() };
        let place =
            SessionLocation { workspace: Some("/w".to_string()), ..SessionLocation::default() };
        let session = Session::new(Arc::new(definition), Arc::new(place));
        let event = serde_json::json!({"event":"tool_proposed","call":"c","tool":tool,"args":args});
        let id = SessionId::parse("s").unwrap();
        let event = parse_line(event.to_string().as_bytes(), Some(&id)).unwrap();
        session.describe_call(&event).unwrap()
    }

    fn line(text: &str) -> (Vec<SimpleCommand>, Vec<OpaquePart>) {
        let understood = understand("Bash", &serde_json::json!({ "command": text }));
        let DescribedRun::Line { commands, hidden } = understood.runs else { panic!("a line") };
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
        let touched = |how, path: &str, recursive| TouchedPath {
            effect: how,
            path: path.to_string(),
            meaning: PathMeaning::Path,
            recursive,
        };
        let log = touched(PathEffect::Writes, "sub/log", false);
        assert!(rm.touches.contains(&touched(PathEffect::Deletes, "sub/old dir", true)), "{rm:?}");
        assert!(rm.touches.contains(&log), "{rm:?}");
        // The line does not check whether the `cd` succeeded.
        assert!(!commands[2].dir_certain);
    }

    #[test]
    fn an_opaque_part_is_shown_with_its_reason() {
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
        assert_eq!((understood.kind, understood.runs), (ToolKind::Write, DescribedRun::Nothing));
        let path = TouchedPath {
            effect: PathEffect::Writes,
            path: "b".to_string(),
            meaning: PathMeaning::Path,
            recursive: false,
        };
        assert_eq!(understood.touches, [path]);
        let unseen = understand("Bash", &serde_json::json!({"command": 1}));
        assert_eq!(unseen.runs, DescribedRun::Unseen);
    }
}
