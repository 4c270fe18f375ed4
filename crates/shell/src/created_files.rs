//! Links and scripts that a line creates and then uses itself.
//!
//! This crate reads no files, so it knows only the files of the same line.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::command_context::CommandContext;
use crate::limits::NAMES_MAX;
use crate::shell_line::{Access, FileEffect, LineSpan, ShellWord, WordKind, WorkingDir};
use crate::shell_walk::{ExitProof, ShellWalk, StreamContent};

/// A link that the line creates: its name and its target.
#[derive(Debug)]
pub(crate) struct CreatedLink {
    name: String,
    target: ShellWord<'static>,
    /// The working directory of the command that creates the link.
    dir: WorkingDir,
    /// The number of the command that creates the link.
    creator: u32,
}

impl<'a> ShellWalk<'a> {
    /// Stores the text that a command writes to a file: it may be a script.
    pub(crate) fn record_written_text(&mut self, index: usize) {
        let Some(StreamContent::Text(text) | StreamContent::PartialText(text)) = &self.output
        else {
            return;
        };
        let Some(command) = self.commands.get(index) else { return };
        for effect in &command.effects {
            if matches!(effect.access, Access::Write | Access::Append)
                && effect.path.kind == WordKind::Literal
                && self.shared.written_files.len() < NAMES_MAX
            {
                let path = normalized_path(&effect.path.text);
                self.shared.written_files.push((path, String::from(&**text)));
            }
        }
    }

    /// The text that this line writes to a file.
    pub(crate) fn text_written_to(&self, path: &str) -> Option<String> {
        let path = normalized_path(path);
        let texts = self.shared.written_files.iter().filter(|(other, _)| *other == path);
        let texts: Vec<&str> = texts.map(|(_, text)| text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Walks a program that the line itself creates: a script or a link.
    pub(crate) fn run_created_program(
        &mut self,
        index: usize,
        path: &str,
        exit: ExitProof,
        span: LineSpan,
    ) {
        let script = self.text_written_to(path);
        let flat = normalized_path(path);
        let link = self.shared.links.iter().find(|link| link.name == flat);
        let target = link.map(|link| link.target.clone());
        let Some(command) = self.commands.get(index) else { return };
        let words = command.words.clone();
        let mut context =
            CommandContext { walk: self, words: &words, index, exit, options: "", span };
        if let Some(script) = script {
            context.run_child_text(&ShellWord::literal(script), words.get(1..));
        }
        if let Some(target) = target.filter(|target| *target.text != *path) {
            let mut words = words.clone();
            if let Some(program) = words.first_mut() {
                *program = target;
            }
            context.run_words(words, exit);
        }
    }

    /// Records that two names now refer to one file.
    pub(crate) fn record_link(
        &mut self,
        maker: usize,
        link: &ShellWord<'a>,
        target: &ShellWord<'a>,
    ) {
        if self.shared.links.len() >= NAMES_MAX {
            self.give_up();
            return;
        }
        let maker = self.command_number(maker);
        let link = normalized_path(&link.text);
        let target = target.clone().into_owned();
        // The target of a symbolic link is relative to the directory of the link. The
        // target of a hard link is not.
        let directory =
            link.rsplit_once('/').filter(|_| !target.text.starts_with(['/', '~', '$', '`']));
        if let Some((above, _)) = directory {
            let text = Cow::Owned(normalized_path(&[above, "/", &target.text].concat()));
            let target = ShellWord { text, kind: target.kind };
            let dir = self.working_dir();
            self.shared.links.push(CreatedLink { name: link.clone(), target, dir, creator: maker });
        }
        let dir = self.working_dir();
        self.shared.links.push(CreatedLink { name: link, target, dir, creator: maker });
    }

    /// Adds the effects on link targets: writing to a link writes to its target.
    pub(crate) fn follow_links(&mut self) {
        let links = core::mem::take(&mut self.shared.links);
        for (number, command) in (0..).zip(&mut self.commands) {
            if links.is_empty() {
                return;
            }
            // One link may lead to another.
            let mut hops: Vec<FileEffect<'a>> = command.effects.clone();
            while let Some(effect) = hops.pop() {
                for link in links.iter().filter(|link| link.creator != number) {
                    let through = link.target_effect(&effect, &command.dir);
                    let new = through.filter(|(effect, _)| !command.effects.contains(effect));
                    let Some((effect, sure)) = new else { continue };
                    if sure && command.effects.len() < NAMES_MAX {
                        hops.push(effect.clone());
                    }
                    command.effects.push(effect);
                }
            }
        }
    }
}

impl CreatedLink {
    /// The effect on the target of this link, and whether the path is certain to
    /// be this link.
    fn target_effect<'a>(
        &self,
        effect: &FileEffect<'a>,
        dir: &WorkingDir,
    ) -> Option<(FileEffect<'a>, bool)> {
        let path = normalized_path(&effect.path.text);
        let here = *dir == self.dir && effect.path.kind == WordKind::Literal;
        let rest = path.strip_prefix(self.name.as_str()).filter(|_| here);
        let (rest, sure) = match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => (rest, true),
            None if here && !path.starts_with(['/', '.']) => return None,
            // From another directory the same link has another path.
            None => (path_behind(&path, self.name.trim_start_matches(['.', '/']))?, false),
        };
        // Deleting the link itself does not change its target.
        let changes = match effect.access {
            Access::Read(_) => false,
            Access::Delete => !rest.is_empty(),
            _ => true,
        };
        let text = [&self.target.text, rest].concat();
        let path = if sure {
            ShellWord { text: Cow::Owned(text), kind: self.target.kind }
        } else {
            ShellWord::unknown(["$OLDPWD/", &text].concat())
        };
        let effect = FileEffect { access: effect.access, path, recursive: effect.recursive };
        changes.then_some((effect, sure))
    }
}

/// The part of a path behind `/name`.
fn path_behind<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let (_, rest) = path.split_once(&["/", name].concat())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// A path without empty and `.` segments, and with `..` resolved where possible.
fn normalized_path(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if segment == ".." && segments.last().is_some_and(|last| *last != "..") {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    let flat = [root, &segments.join("/")].concat();
    if flat.is_empty() { String::from(".") } else { flat }
}
