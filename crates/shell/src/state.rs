//! What a shell remembers from one command to the next, as far as it is sure.
//!
//! The walk follows every branch, so two states often meet again: after `if`,
//! after `a && b`, after a loop. [`State::join`] keeps what both agree on and
//! forgets the rest; a value that is forgotten is unknown, never guessed.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits::VARIABLES_MAX;
use crate::line::{Dir, Known, Word};

/// What is known of the shell at one moment.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate thing to know")]
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// Variables this line assigned; `None` where the value is not known. All
    /// others come from outside and are unknown too.
    variables: Vec<(String, Option<Arc<str>>)>,
    pub(crate) functions: Vec<Function>,
    pub(crate) aliases: Vec<String>,
    pub(crate) dir: Dir,
    /// Where the shell still is if the `cd` just run has failed.
    pub(crate) fallback: Option<Dir>,
    /// `$1` and so on; `None` where they come from outside.
    pub(crate) positional: Option<Arc<[Word<'static>]>>,
    /// `$0`, where a shell was given one.
    pub(crate) zero: Option<Arc<str>>,
    /// Arrays this line made, word by word.
    arrays: Vec<(String, Arc<[Word<'static>]>)>,
    /// Variables of loops that run over the names a pattern matches.
    patterns: Vec<(String, Arc<str>)>,
    pub(crate) pipefail: bool,
    pub(crate) errexit: bool,
    /// `IFS` was changed, so an unquoted value may fall apart in other places.
    pub(crate) ifs: bool,
    /// `HOME` was changed, so `~` may be anywhere.
    pub(crate) home: bool,
    /// `CDPATH` was changed, so `cd dir` may lead anywhere.
    cdpath: bool,
    /// Nothing runs from here on: `exit`, `return`, `break`.
    pub(crate) dead: bool,
}

/// A function the line defines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) body: Arc<str>,
    /// Where the body stands in the line, if it stands there as written.
    pub(crate) base: Option<u32>,
    /// Defined on every way that leads here.
    pub(crate) sure: bool,
}

impl State {
    /// A state nothing leads to; joined with another it leaves the other.
    pub(crate) fn unreachable() -> Self {
        Self { dead: true, ..Self::default() }
    }

    /// The value of a variable, where this line set it and it is known.
    pub(crate) fn value(&self, name: &str) -> Option<&Arc<str>> {
        self.variables.iter().rev().find(|(other, _)| other == name)?.1.as_ref()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.variables.iter().any(|(other, _)| other == name)
    }

    pub(crate) fn assign(&mut self, name: &str, value: Option<Arc<str>>) {
        self.ifs |= name == "IFS";
        self.home |= name == "HOME";
        self.cdpath |= name == "CDPATH";
        self.patterns.retain(|(other, _)| other != name);
        self.arrays.retain(|(other, _)| other != name);
        match self.variables.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => *old = value,
            // What was never set is unknown already.
            None if value.is_none() => {}
            None => {
                if self.variables.len() >= VARIABLES_MAX {
                    self.variables.clear();
                }
                self.variables.push((String::from(name), value));
            }
        }
    }

    /// Assigns the words of an array.
    pub(crate) fn assign_array(&mut self, name: &str, words: Vec<Word<'static>>) {
        self.assign(name, None);
        self.arrays.push((String::from(name), words.into()));
    }

    /// The words of an array.
    pub(crate) fn array(&self, name: &str) -> Option<&[Word<'static>]> {
        self.arrays.iter().find(|(other, _)| other == name).map(|(_, words)| &**words)
    }

    /// Assigns one of the names that a pattern matches.
    pub(crate) fn assign_matching(&mut self, name: &str, pattern: &str) {
        self.assign(name, None);
        self.patterns.push((String::from(name), Arc::from(pattern)));
    }

    /// The pattern that the value of a variable matches.
    pub(crate) fn pattern(&self, name: &str) -> Option<&str> {
        self.patterns.iter().find(|(other, _)| other == name).map(|(_, pattern)| &**pattern)
    }

    pub(crate) fn forget_variables(&mut self) {
        self.variables.clear();
        self.patterns.clear();
        self.arrays.clear();
    }

    /// The variables for a while, to be put back with [`State::restore`].
    pub(crate) fn saved(&self) -> Vec<(String, Option<Arc<str>>)> {
        self.variables.clone()
    }

    /// Gives the named variables back the values they had.
    pub(crate) fn restore<'n>(
        &mut self,
        saved: &[(String, Option<Arc<str>>)],
        names: impl Iterator<Item = &'n str>,
    ) {
        for name in names {
            let old = saved.iter().find(|(other, _)| other == name);
            self.assign(name, old.and_then(|(_, value)| value.clone()));
        }
    }

    /// What a child process starts with: the directory, and no variable of ours.
    pub(crate) fn child(&self) -> Self {
        let (home, cdpath) = (self.home, self.cdpath);
        Self { dir: self.dir.clone(), home, cdpath, ..Self::default() }
    }

    /// After a command that succeeded.
    pub(crate) fn succeeded(mut self) -> Self {
        self.fallback = None;
        self
    }

    /// After a command that failed.
    pub(crate) fn failed(mut self) -> Self {
        if let Some(dir) = self.fallback.take() {
            self.dir = dir;
        }
        self
    }

    /// After a command whose outcome nobody looked at.
    pub(crate) fn settle(&mut self) {
        if let Some(other) = self.fallback.take()
            && !self.errexit
        {
            self.dir = join_dirs(&self.dir, &other);
        }
    }

    /// What holds whichever of two ways was taken.
    pub(crate) fn join(mut self, mut other: Self) -> Self {
        if self.dead {
            return other;
        }
        if other.dead {
            return self;
        }
        self.settle();
        other.settle();
        if self == other {
            return self;
        }
        for (name, value) in &mut self.variables {
            if other.value(name) != value.as_ref() {
                *value = None;
            }
        }
        for (name, _) in &other.variables {
            if !self.is_set(name) {
                self.variables.push((name.clone(), None));
            }
        }
        for function in &mut self.functions {
            function.sure &= other.functions.contains(function);
        }
        for function in &other.functions {
            if !self.functions.contains(function) {
                self.functions.insert(0, Function { sure: false, ..function.clone() });
            }
        }
        for alias in other.aliases {
            if !self.aliases.contains(&alias) {
                self.aliases.push(alias);
            }
        }
        self.dir = join_dirs(&self.dir, &other.dir);
        if self.positional != other.positional {
            self.positional = None;
        }
        if self.zero != other.zero {
            self.zero = None;
        }
        self.patterns.retain(|pattern| other.patterns.contains(pattern));
        self.arrays.retain(|array| other.arrays.contains(array));
        self.pipefail &= other.pipefail;
        self.errexit &= other.errexit;
        self.ifs |= other.ifs;
        self.home |= other.home;
        self.cdpath |= other.cdpath;
        self
    }

    /// Forgets every variable whose value differs from the one in `after`: the
    /// state a loop's body may start with.
    pub(crate) fn forget_changed(&mut self, after: &Self) {
        let changed = self.clone().join(after.clone());
        *self = changed;
    }

    /// Changes the directory.
    pub(crate) fn change_dir(&mut self, target: Option<&Word<'_>>) {
        let old = self.dir.clone();
        self.dir = match target {
            Some(word) if self.cdpath && !word.text.starts_with(['/', '.']) => Dir::Unknown,
            Some(word) => moved(&old, word),
            None if self.home => Dir::Unknown,
            None => Dir::In(Arc::from("~")),
        };
        self.fallback = Some(old);
    }
}

/// Where `cd word` leads from a directory.
pub(crate) fn moved(from: &Dir, word: &Word<'_>) -> Dir {
    let text: &str = &word.text;
    match word.known {
        Known::Home => Dir::In(Arc::from(text)),
        Known::Literal if text.starts_with('/') => Dir::In(Arc::from(text)),
        Known::Literal if text.is_empty() || text == "." => from.clone(),
        // `cd -` and `CDPATH` depend on what was before.
        Known::Literal if text != "-" && !text.starts_with('+') => match from {
            Dir::Start => Dir::In(Arc::from(text)),
            Dir::In(base) => Dir::In(Arc::from(format!("{}/{text}", base.trim_end_matches('/')))),
            Dir::Either(_) | Dir::Unknown => Dir::Unknown,
        },
        _ => Dir::Unknown,
    }
}

fn join_dirs(left: &Dir, right: &Dir) -> Dir {
    match (left, right) {
        (left, right) if left == right => left.clone(),
        (Dir::Start | Dir::In(_) | Dir::Either(_), Dir::Either(path))
        | (Dir::Either(path), Dir::Start | Dir::In(_))
        | (Dir::Start, Dir::In(path))
        | (Dir::In(path), Dir::Start) => match (left, right) {
            (Dir::In(one) | Dir::Either(one), Dir::In(two) | Dir::Either(two)) if one != two => {
                Dir::Unknown
            }
            _ => Dir::Either(path.clone()),
        },
        _ => Dir::Unknown,
    }
}
