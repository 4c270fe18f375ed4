//! Other paths that a write may reach: the directory that a failed `cd` did not leave, a link that
//! `..` resolves through, and links below `/proc`.

use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{ShellCommand, ShellWord, WordKind, WorkingDir};
use serde_json::Value;

use super::super::GuardInput;
use super::opaque_names;
use crate::facts::FileKind;
use crate::path::resolve_path;
use crate::proposal::{FileTouch, Proposal, ProposedRun};
use crate::session_location::PathTarget;

/// One target that a call changes.
pub(super) struct WriteTarget<'p> {
    pub(super) touch: &'p FileTouch,
    pub(super) status: TargetStatus,
}

/// Where a write leads.
pub(super) enum TargetStatus {
    Resolved(PathTarget),
    /// Unknown until this path is checked.
    Unchecked(String),
}

impl WriteTarget<'_> {
    /// Returns the path that must be checked.
    pub(super) fn unchecked_path(self) -> Option<String> {
        match self.status {
            TargetStatus::Resolved(PathTarget::At(path)) | TargetStatus::Unchecked(path) => {
                Some(path)
            }
            TargetStatus::Resolved(_) => None,
        }
    }
}

/// Returns every target that a call changes. An unchecked target leads nowhere yet.
pub(super) fn write_targets<'p>(
    input: GuardInput<'_>,
    proposal: &'p Proposal<'_>,
) -> Vec<WriteTarget<'p>> {
    let line = match &proposal.run {
        ProposedRun::Line(line) => line.text,
        ProposedRun::Nothing | ProposedRun::Unseen => "",
    };
    let mut collector = TargetCollector { input, line, targets: Vec::new() };
    let commands = proposal.commands().iter();
    // INVARIANT: the touches of a command line are the effects of its commands, in their order.
    let mut effects =
        commands.flat_map(|command| command.effects.iter().map(move |effect| (command, effect)));
    for touch in &proposal.touches {
        let effect = effects.next();
        if !touch.changes() {
            continue;
        }
        collector.add_target(touch, touch.target.clone());
        if let Some((command, effect)) = effect {
            collector.add_detours(touch, command, &effect.path, &proposal.cwd);
        }
    }
    let changed = proposal.touches.iter().find(|touch| touch.changes() && touch.command.is_none());
    if let (Some(touch), Some(args)) = (changed, proposal.args) {
        collector.add_arguments(touch, args, &proposal.cwd);
    }
    collector.targets
}

struct TargetCollector<'a, 'p> {
    input: GuardInput<'a>,
    /// The command line, or an empty text.
    line: &'p str,
    targets: Vec<WriteTarget<'p>>,
}

impl<'p> TargetCollector<'_, 'p> {
    fn add_target(&mut self, touch: &'p FileTouch, target: PathTarget) {
        let unseen = match &target {
            PathTarget::At(path) => !self.input.facts.files.contains_key(path),
            _ => false,
        };
        let leads = match target {
            PathTarget::At(path) if unseen => TargetStatus::Unchecked(path),
            target => TargetStatus::Resolved(target),
        };
        self.targets.push(WriteTarget { touch, status: leads });
    }

    fn add_detours(
        &mut self,
        touch: &'p FileTouch,
        command: &ShellCommand<'_>,
        word: &ShellWord<'_>,
        cwd: &str,
    ) {
        let place = self.input.place;
        let base = place.command_directory(&command.dir, cwd);
        self.add_relative_to(touch, word, base.as_deref());
        if let (WorkingDir::PathOrStart(_), Some(destination)) = (&command.dir, &base) {
            // If the directory does not exist, `cd` failed and the command runs in the old
            // directory.
            match self.input.facts.files.get(destination) {
                None => self.targets.push(WriteTarget {
                    touch,
                    status: TargetStatus::Unchecked(destination.clone()),
                }),
                Some(fact) if fact.kind == FileKind::Directory => {}
                Some(_) => {
                    self.add_target(touch, place.resolve_word(word, Some(cwd)));
                    self.add_relative_to(touch, word, Some(cwd));
                }
            }
        }
    }

    fn add_relative_to(&mut self, touch: &'p FileTouch, word: &ShellWord<'_>, base: Option<&str>) {
        let place = self.input.place;
        let base = base.unwrap_or(".");
        let text = &*word.text;
        if word.kind == WordKind::Literal {
            self.add_parent_path(touch, text, base);
        }
        if let Some(inside) = resolve_proc_path(text).filter(|inside| !inside.contains(['$', '`']))
        {
            self.add_target(touch, PathTarget::At(place.resolve_path(&inside, base)));
        }
        // Other names of the current directory in a shell and in git.
        let here = ["~+", "$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`"];
        let rest = here.into_iter().find_map(|name| text.strip_prefix(name));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            let base = if text.starts_with('~') { base } else { "." };
            self.add_target(touch, PathTarget::At(place.resolve_path(&[".", rest].concat(), base)));
        }
        // If the command line assigns the variable, it no longer means the person's directory.
        let variable = ["$HOME", "${HOME}", "$PWD", "${PWD}"]
            .into_iter()
            .find(|name| word.kind == WordKind::Unknown && text.starts_with(name));
        let name = variable.map(|name| name.trim_matches(['$', '{', '}']));
        if name.is_some_and(|name| self.line.contains(&[name, "="].concat())) {
            self.add_target(touch, PathTarget::Unknown(String::from(text)));
        }
    }

    /// Adds the target of a path with `..` after a directory. If the directory is a link, `..`
    /// starts from the target of the link.
    fn add_parent_path(&mut self, touch: &'p FileTouch, text: &str, base: &str) {
        if !text.split('/').any(|segment| segment == "..") {
            return;
        }
        let root = self.input.place.workspace.as_deref();
        let mut at = String::from(if text.starts_with('/') { "/" } else { base });
        for segment in text.split('/') {
            if segment == ".." && !matches!(at.as_str(), "." | "/") {
                let Some(fact) = self.input.facts.files.get(&at) else {
                    self.targets.push(WriteTarget { touch, status: TargetStatus::Unchecked(at) });
                    return;
                };
                at = fact.real.clone().unwrap_or(at);
            }
            at = resolve_path(segment, &at, root).into_owned();
        }
        self.add_target(touch, PathTarget::At(at));
    }

    /// Does the same for the paths in arguments.
    fn add_arguments(&mut self, touch: &'p FileTouch, value: &Value, cwd: &str) {
        match value {
            Value::String(text) if opaque_names::may_be_path(text) => {
                self.add_parent_path(touch, text, cwd);
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.add_arguments(touch, item, cwd));
            }
            Value::Object(fields) => {
                fields.values().for_each(|field| self.add_arguments(touch, field, cwd));
            }
            _ => {}
        }
    }
}

/// Resolves a path through a process's own links: `/proc/self/cwd/x` is `x` in the directory of the
/// command, not of this process.
fn resolve_proc_path(path: &str) -> Option<String> {
    let mut segments = path.split('/').filter(|segment| !matches!(*segment, "" | "."));
    let process = path.starts_with('/') && segments.next() == Some("proc");
    segments.next().filter(|_| process)?;
    let mut link = segments.next()?;
    if link == "task" {
        segments.next()?;
        link = segments.next()?;
    }
    let rest = segments.collect::<Vec<_>>().join("/");
    match link {
        "cwd" if rest.is_empty() => Some(String::from(".")),
        "cwd" => Some(rest),
        "root" => Some(String::from("/") + &rest),
        _ => None,
    }
}
