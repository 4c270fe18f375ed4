//! Where a touch leads besides where it says: to the directory a `cd` may have
//! failed to leave, behind a link that `..` climbs out of, through `/proc`.

use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{Command, Dir, Known, Word};
use serde_json::Value;

use super::super::Look;
use super::names;
use crate::facts::FileKind;
use crate::path::resolve;
use crate::place::Target;
use crate::proposal::{Proposal, Run, Touch};

/// One place that a call changes.
pub(super) struct Way<'p> {
    pub(super) touch: &'p Touch,
    pub(super) leads: Leads,
}

/// Where it is.
pub(super) enum Leads {
    To(Target),
    /// Nobody can say before this path was looked at.
    Nowhere(String),
}

impl Way<'_> {
    /// The path that has to be looked at.
    pub(super) fn unseen(self) -> Option<String> {
        match self.leads {
            Leads::To(Target::At(path)) | Leads::Nowhere(path) => Some(path),
            Leads::To(_) => None,
        }
    }
}

/// Every place that a call changes. Those that were not looked at are nowhere.
pub(super) fn ways<'p>(look: Look<'_>, proposal: &'p Proposal<'_>) -> Vec<Way<'p>> {
    let line = match &proposal.run {
        Run::Line(line) => line.text,
        Run::Nothing | Run::Unseen => "",
    };
    let mut found = Found { look, line, ways: Vec::new() };
    let commands = proposal.commands().iter();
    // INVARIANT: a command line touches what its commands say, in their order.
    let mut effects =
        commands.flat_map(|command| command.effects.iter().map(move |effect| (command, effect)));
    for touch in &proposal.touches {
        let effect = effects.next();
        if !touch.changes() {
            continue;
        }
        found.lead(touch, touch.target.clone());
        if let Some((command, effect)) = effect {
            found.detours(touch, command, &effect.path, &proposal.cwd);
        }
    }
    let changed = proposal.touches.iter().find(|touch| touch.changes() && touch.command.is_none());
    if let (Some(touch), Some(args)) = (changed, proposal.args) {
        found.arguments(touch, args, &proposal.cwd);
    }
    found.ways
}

struct Found<'a, 'p> {
    look: Look<'a>,
    /// The command line; empty where there is none.
    line: &'p str,
    ways: Vec<Way<'p>>,
}

impl<'p> Found<'_, 'p> {
    fn lead(&mut self, touch: &'p Touch, target: Target) {
        let unseen = match &target {
            Target::At(path) => !self.look.facts.files.contains_key(path),
            _ => false,
        };
        let leads = match target {
            Target::At(path) if unseen => Leads::Nowhere(path),
            target => Leads::To(target),
        };
        self.ways.push(Way { touch, leads });
    }

    fn detours(&mut self, touch: &'p Touch, command: &Command<'_>, word: &Word<'_>, cwd: &str) {
        let place = self.look.place;
        let base = place.directory(&command.dir, cwd);
        self.from(touch, word, base.as_deref());
        if let (Dir::Either(_), Some(sent)) = (&command.dir, &base) {
            // Where there is no such directory, it stayed where it was.
            match self.look.facts.files.get(sent) {
                None => self.ways.push(Way { touch, leads: Leads::Nowhere(sent.clone()) }),
                Some(fact) if fact.kind == FileKind::Directory => {}
                Some(_) => {
                    self.lead(touch, place.target(word, Some(cwd)));
                    self.from(touch, word, Some(cwd));
                }
            }
        }
    }

    fn from(&mut self, touch: &'p Touch, word: &Word<'_>, base: Option<&str>) {
        let place = self.look.place;
        let base = base.unwrap_or(".");
        let text = &*word.text;
        if word.known == Known::Literal {
            self.climb(touch, text, base);
        }
        if let Some(inside) = through_proc(text).filter(|inside| !inside.contains(['$', '`'])) {
            self.lead(touch, Target::At(place.locate(&inside, base)));
        }
        // The same place, in the words of a shell and of git.
        let here = ["~+", "$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`"];
        let rest = here.into_iter().find_map(|name| text.strip_prefix(name));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            let base = if text.starts_with('~') { base } else { "." };
            self.lead(touch, Target::At(place.locate(&[".", rest].concat(), base)));
        }
        // A line that says where home is does not mean the person's.
        let variable = ["$HOME", "${HOME}", "$PWD", "${PWD}"]
            .into_iter()
            .find(|name| word.known == Known::Unknown && text.starts_with(name));
        let name = variable.map(|name| name.trim_matches(['$', '{', '}']));
        if name.is_some_and(|name| self.line.contains(&[name, "="].concat())) {
            self.lead(touch, Target::Unknown(String::from(text)));
        }
    }

    /// A path that goes up again behind a directory, which may be a link: then
    /// it goes up from where the link leads.
    fn climb(&mut self, touch: &'p Touch, text: &str, base: &str) {
        if !text.split('/').any(|segment| segment == "..") {
            return;
        }
        let root = self.look.place.workspace.as_deref();
        let mut at = String::from(if text.starts_with('/') { "/" } else { base });
        for segment in text.split('/') {
            if segment == ".." && !matches!(at.as_str(), "." | "/") {
                let Some(fact) = self.look.facts.files.get(&at) else {
                    self.ways.push(Way { touch, leads: Leads::Nowhere(at) });
                    return;
                };
                at = fact.real.clone().unwrap_or(at);
            }
            at = resolve(segment, &at, root).into_owned();
        }
        self.lead(touch, Target::At(at));
    }

    /// The same for the paths among arguments.
    fn arguments(&mut self, touch: &'p Touch, value: &Value, cwd: &str) {
        match value {
            Value::String(text) if names::may_be_path(text) => self.climb(touch, text, cwd),
            Value::Array(items) => items.iter().for_each(|item| self.arguments(touch, item, cwd)),
            Value::Object(fields) => {
                fields.values().for_each(|field| self.arguments(touch, field, cwd));
            }
            _ => {}
        }
    }
}

/// What a path below a process's own links stands for: `/proc/self/cwd/x` is `x`
/// where the command works, and not where this process does.
fn through_proc(path: &str) -> Option<String> {
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
