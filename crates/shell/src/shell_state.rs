//! The state of a shell between two commands, as far as it is certain.
//!
//! The walk follows every branch, so two states often meet: after `if`, after
//! `a && b`, after a loop. [`ShellState::join`] keeps the values on which both
//! agree. All other values become unknown; the walk never guesses.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits::VARIABLES_MAX;
use crate::shell_line::{ShellWord, WordKind, WorkingDir};

/// What is known about the shell at one point of the walk.
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent fact")]
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ShellState {
    /// Variables that this line assigns; `None` where the value is not known. All
    /// others come from the environment, so their values are not known either.
    variables: Vec<(String, Option<Arc<str>>)>,
    pub(crate) functions: Vec<ShellFunction>,
    pub(crate) aliases: Vec<String>,
    pub(crate) dir: WorkingDir,
    /// The directory of the shell if the last `cd` failed.
    pub(crate) dir_after_failure: Option<WorkingDir>,
    /// `$1` and so on; `None` where they come from outside the line.
    pub(crate) positional: Option<Arc<[ShellWord<'static>]>>,
    /// `$0`, where the command line of a shell sets it.
    pub(crate) script_name: Option<Arc<str>>,
    /// Arrays that this line assigns, word by word.
    arrays: Vec<(String, Arc<[ShellWord<'static>]>)>,
    /// Variables of loops over the names that a pattern matches.
    patterns: Vec<(String, Arc<str>)>,
    pub(crate) pipefail: bool,
    pub(crate) errexit: bool,
    /// `IFS` was changed, so bash may split an unquoted value at other characters.
    pub(crate) ifs_changed: bool,
    /// `HOME` was changed, so `~` may be any directory.
    pub(crate) home_changed: bool,
    /// `CDPATH` was changed, so `cd dir` may go to any directory.
    cdpath_changed: bool,
    /// No command runs after this point: `exit`, `return`, `break`.
    pub(crate) is_unreachable: bool,
}

/// A function the line defines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShellFunction {
    pub(crate) name: Arc<str>,
    pub(crate) body: Arc<str>,
    /// Where the body starts in the line, if it is a literal part of the line.
    pub(crate) body_start: Option<u32>,
    /// Every branch that leads to this point defines the function.
    pub(crate) is_certain: bool,
}

/// A call of a function, whose body is being walked.
#[derive(Debug, Clone)]
pub(crate) struct FunctionCall {
    pub(crate) function: ShellFunction,
    /// How many conditions and loops decide whether it is called.
    pub(crate) condition_depth: u32,
    /// How many processes are between the line and the call.
    pub(crate) process_depth: u32,
}

impl ShellState {
    /// A state that no branch reaches. Joining it with another state gives the other one.
    pub(crate) fn unreachable() -> Self {
        Self { is_unreachable: true, ..Self::default() }
    }

    /// The value of a variable, if this line assigns it a known value.
    pub(crate) fn value(&self, name: &str) -> Option<&Arc<str>> {
        self.variables.iter().rev().find(|(other, _)| other == name)?.1.as_ref()
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.variables.iter().any(|(other, _)| other == name)
    }

    pub(crate) fn assign(&mut self, name: &str, value: Option<Arc<str>>) {
        self.ifs_changed |= name == "IFS";
        self.home_changed |= name == "HOME";
        self.cdpath_changed |= name == "CDPATH";
        self.patterns.retain(|(other, _)| other != name);
        self.arrays.retain(|(other, _)| other != name);
        match self.variables.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => *old = value,
            // A variable that was never set is already unknown.
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
    pub(crate) fn assign_array(&mut self, name: &str, words: Vec<ShellWord<'static>>) {
        self.assign(name, None);
        self.arrays.push((String::from(name), words.into()));
    }

    /// The words of an array.
    pub(crate) fn array(&self, name: &str) -> Option<&[ShellWord<'static>]> {
        self.arrays.iter().find(|(other, _)| other == name).map(|(_, words)| &**words)
    }

    /// Assigns a variable one of the names that a pattern matches.
    pub(crate) fn assign_pattern(&mut self, name: &str, pattern: &str) {
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

    /// A copy of the variables, for [`ShellState::restore_variables`].
    pub(crate) fn save_variables(&self) -> Vec<(String, Option<Arc<str>>)> {
        self.variables.clone()
    }

    /// Gives the named variables their saved values.
    pub(crate) fn restore_variables<'n>(
        &mut self,
        saved: &[(String, Option<Arc<str>>)],
        names: impl Iterator<Item = &'n str>,
    ) {
        for name in names {
            let old = saved.iter().find(|(other, _)| other == name);
            self.assign(name, old.and_then(|(_, value)| value.clone()));
        }
    }

    /// The state in which a child process starts: our directory, none of our variables.
    pub(crate) fn child_state(&self) -> Self {
        let (home, cdpath) = (self.home_changed, self.cdpath_changed);
        Self {
            dir: self.dir.clone(),
            home_changed: home,
            cdpath_changed: cdpath,
            ..Self::default()
        }
    }

    /// The state after a command that succeeded.
    pub(crate) fn after_success(mut self) -> Self {
        self.dir_after_failure = None;
        self
    }

    /// The state after a command that failed.
    pub(crate) fn after_failure(mut self) -> Self {
        if let Some(dir) = self.dir_after_failure.take() {
            self.dir = dir;
        }
        self
    }

    /// Merges both outcomes of a `cd` whose exit status the line does not check.
    pub(crate) fn merge_dir_outcomes(&mut self) {
        if let Some(other) = self.dir_after_failure.take()
            && !self.errexit
        {
            self.dir = join_dirs(&self.dir, &other);
        }
    }

    /// The state that is true after either of two branches.
    pub(crate) fn join(mut self, mut other: Self) -> Self {
        if self.is_unreachable {
            return other;
        }
        if other.is_unreachable {
            return self;
        }
        self.merge_dir_outcomes();
        other.merge_dir_outcomes();
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
            function.is_certain &= other.functions.contains(function);
        }
        for function in &other.functions {
            if !self.functions.contains(function) {
                self.functions.insert(0, ShellFunction { is_certain: false, ..function.clone() });
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
        if self.script_name != other.script_name {
            self.script_name = None;
        }
        self.patterns.retain(|pattern| other.patterns.contains(pattern));
        self.arrays.retain(|array| other.arrays.contains(array));
        self.pipefail &= other.pipefail;
        self.errexit &= other.errexit;
        self.ifs_changed |= other.ifs_changed;
        self.home_changed |= other.home_changed;
        self.cdpath_changed |= other.cdpath_changed;
        self
    }

    /// Forgets every variable whose value differs from the value in `after`. The
    /// result is the state in which any round of a loop may start.
    pub(crate) fn forget_changed(&mut self, after: &Self) {
        let changed = self.clone().join(after.clone());
        *self = changed;
    }

    /// Changes the directory.
    pub(crate) fn change_dir(&mut self, target: Option<&ShellWord<'_>>) {
        let old = self.dir.clone();
        self.dir = match target {
            Some(word) if self.cdpath_changed && !word.text.starts_with(['/', '.']) => {
                WorkingDir::Unknown
            }
            Some(word) => dir_after_cd(&old, word),
            None if self.home_changed => WorkingDir::Unknown,
            None => WorkingDir::Path(Arc::from("~")),
        };
        self.dir_after_failure = Some(old);
    }
}

/// The directory after `cd word`.
pub(crate) fn dir_after_cd(from: &WorkingDir, word: &ShellWord<'_>) -> WorkingDir {
    let text: &str = &word.text;
    match word.kind {
        WordKind::Home => WorkingDir::Path(Arc::from(text)),
        WordKind::Literal if text.starts_with('/') => WorkingDir::Path(Arc::from(text)),
        WordKind::Literal if text.is_empty() || text == "." => from.clone(),
        // `cd -` depends on the previous directory, which we do not store.
        WordKind::Literal if text != "-" && !text.starts_with('+') => match from {
            WorkingDir::Start => WorkingDir::Path(Arc::from(text)),
            WorkingDir::Path(base) => {
                WorkingDir::Path(Arc::from(format!("{}/{text}", base.trim_end_matches('/'))))
            }
            WorkingDir::PathOrStart(_) | WorkingDir::Unknown => WorkingDir::Unknown,
        },
        _ => WorkingDir::Unknown,
    }
}

fn join_dirs(left: &WorkingDir, right: &WorkingDir) -> WorkingDir {
    match (left, right) {
        (left, right) if left == right => left.clone(),
        (
            WorkingDir::Start | WorkingDir::Path(_) | WorkingDir::PathOrStart(_),
            WorkingDir::PathOrStart(path),
        )
        | (WorkingDir::PathOrStart(path), WorkingDir::Start | WorkingDir::Path(_))
        | (WorkingDir::Start, WorkingDir::Path(path))
        | (WorkingDir::Path(path), WorkingDir::Start) => match (left, right) {
            (
                WorkingDir::Path(one) | WorkingDir::PathOrStart(one),
                WorkingDir::Path(two) | WorkingDir::PathOrStart(two),
            ) if one != two => WorkingDir::Unknown,
            _ => WorkingDir::PathOrStart(path.clone()),
        },
        _ => WorkingDir::Unknown,
    }
}
