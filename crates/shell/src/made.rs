//! What a line makes and then uses itself: links, and scripts in files.
//!
//! No file is looked at here, so only what the same line did is known.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::NAMES_MAX;
use crate::line::{Access, Dir, Effect, Known, Span, Word};
use crate::scene::Scene;
use crate::walk::{Status, Stdin, Walk};

/// A link made by the line: its name, and what it leads to.
#[derive(Debug)]
pub(crate) struct Renamed {
    link: String,
    target: Word<'static>,
    /// Where the line was when it made it.
    dir: Dir,
    /// The command that made it, by its number.
    maker: u32,
}

impl<'a> Walk<'a> {
    /// Remembers what a command has printed into a file, which may be a script.
    pub(crate) fn remember_written(&mut self, index: usize) {
        let Some(Stdin::Text(text) | Stdin::Partly(text)) = &self.output else { return };
        let Some(command) = self.commands.get(index) else { return };
        for effect in &command.effects {
            if matches!(effect.access, Access::Write | Access::Append)
                && effect.path.known == Known::Literal
                && self.shared.written.len() < NAMES_MAX
            {
                let path = flat(&effect.path.text);
                self.shared.written.push((path, String::from(&**text)));
            }
        }
    }

    /// What this line has put into a file.
    pub(crate) fn written_into(&self, path: &str) -> Option<String> {
        let path = flat(path);
        let texts = self.shared.written.iter().filter(|(other, _)| *other == path);
        let texts: Vec<&str> = texts.map(|(_, text)| text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// Runs a program that the line itself has made: a script, or a link.
    pub(crate) fn run_made(&mut self, index: usize, path: &str, exit: Status, span: Span) {
        let script = self.written_into(path);
        let flat = flat(path);
        let link = self.shared.links.iter().find(|link| link.link == flat);
        let target = link.map(|link| link.target.clone());
        let Some(command) = self.commands.get(index) else { return };
        let words = command.words.clone();
        let mut scene = Scene { walk: self, words: &words, index, exit, options: "", span };
        if let Some(script) = script {
            scene.child_text(&Word::literal(script), words.get(1..));
        }
        if let Some(target) = target.filter(|target| *target.text != *path) {
            let mut words = words.clone();
            if let Some(program) = words.first_mut() {
                *program = target;
            }
            scene.run(words, exit);
        }
    }

    /// Notes that two names now stand for one file.
    pub(crate) fn shared_link(&mut self, maker: usize, link: &Word<'a>, target: &Word<'a>) {
        if self.shared.links.len() >= NAMES_MAX {
            self.give_up();
            return;
        }
        let maker = self.number_of(maker);
        let link = flat(&link.text);
        let target = target.clone().into_owned();
        // A symbolic link leads on from where it lies, a hard one does not.
        let lies = link.rsplit_once('/').filter(|_| !target.text.starts_with(['/', '~', '$', '`']));
        if let Some((above, _)) = lies {
            let text = Cow::Owned(flat(&[above, "/", &target.text].concat()));
            let target = Word { text, known: target.known };
            let dir = self.dir();
            self.shared.links.push(Renamed { link: link.clone(), target, dir, maker });
        }
        let dir = self.dir();
        self.shared.links.push(Renamed { link, target, dir, maker });
    }

    /// Writing through a link made by the same line is writing what it leads to.
    pub(crate) fn follow_links(&mut self) {
        let links = core::mem::take(&mut self.shared.links);
        for (number, command) in (0..).zip(&mut self.commands) {
            if links.is_empty() {
                return;
            }
            // One link may lead to another.
            let mut hops: Vec<Effect<'a>> = command.effects.clone();
            while let Some(effect) = hops.pop() {
                for link in links.iter().filter(|link| link.maker != number) {
                    let through = link.leads(&effect, &command.dir);
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

impl Renamed {
    /// What an effect on this link does to what it leads to, and whether it is
    /// sure that it is this link.
    fn leads<'a>(&self, effect: &Effect<'a>, dir: &Dir) -> Option<(Effect<'a>, bool)> {
        let path = flat(&effect.path.text);
        let here = *dir == self.dir && effect.path.known == Known::Literal;
        let rest = path.strip_prefix(self.link.as_str()).filter(|_| here);
        let (rest, sure) = match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => (rest, true),
            None if here && !path.starts_with(['/', '.']) => return None,
            // From elsewhere it is written in another way.
            None => (behind(&path, self.link.trim_start_matches(['.', '/']))?, false),
        };
        // The link itself may go; what it leads to stays.
        let changes = match effect.access {
            Access::Read(_) => false,
            Access::Delete => !rest.is_empty(),
            _ => true,
        };
        let text = [&self.target.text, rest].concat();
        let path = if sure {
            Word { text: Cow::Owned(text), known: self.target.known }
        } else {
            Word::unknown(["$OLDPWD/", &text].concat())
        };
        let effect = Effect { access: effect.access, path, recursive: effect.recursive };
        changes.then_some((effect, sure))
    }
}

/// What stands in a path behind a name that is not its first.
fn behind<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let (_, rest) = path.split_once(&["/", name].concat())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// A path without the segments that say nothing.
fn flat(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if segment == ".." && kept.last().is_some_and(|last| *last != "..") {
            kept.pop();
        } else {
            kept.push(segment);
        }
    }
    let flat = [root, &kept.join("/")].concat();
    if flat.is_empty() { String::from(".") } else { flat }
}
