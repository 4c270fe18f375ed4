//! The rules of a definition, of which a call only meets a few.
//!
//! A process that decides on one call and ends reads the definition each time.
//! So rules are kept as they are saved, with an index of what they look for, and
//! one is only read when a call may match it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use jackline_shell::{Access, Command};
use once_cell::race::OnceBox;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Effect, Rule, RuleScope, scope};
use crate::definition::Mode;
use crate::proposal::Proposal;
use crate::tool::Kind;

/// How many rules may match a call, for most calls.
const CANDIDATES_MOSTLY: usize = 64;

/// The rules of a definition, in their order.
#[derive(Default)]
pub struct Rules {
    packed: Packed,
    /// The rules that were read.
    read: Vec<OnceBox<Rule>>,
}

/// Rules as they are saved. Their bytes are saved apart, because they are most of a definition
/// and need not be copied out of what was read; see [`Rules::packed`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Packed {
    #[serde(skip)]
    bytes: Tail,
    /// Where each rule ends in the bytes.
    ends: Vec<u32>,
    /// Numbers of the rules that look for a program, sorted by it.
    by_program: Vec<(String, Vec<u32>)>,
    /// Numbers of the rules that look at every call.
    others: Vec<u32>,
    wants: Vec<Wants>,
}

/// What a rule can't match without: a kind of tool, files that are read, written
/// or removed. Most calls touch none, and most rules need not be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wants {
    pub(super) kind: Option<Kind>,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) deletes: bool,
}

impl Wants {
    /// What a call, or one simple command of it, has of what rules want.
    pub(super) fn had_by(proposal: &Proposal<'_>, command: Option<u32>) -> Self {
        let mut had = Self { kind: Some(proposal.tool.kind), ..Self::default() };
        for touch in &proposal.touches {
            if command.is_none() || touch.command == command {
                had.reads |= !touch.changes();
                had.deletes |= touch.access == Access::Delete;
                had.writes |= touch.changes() && touch.access != Access::Delete;
            }
        }
        had
    }

    /// Whether a rule that wants this can match what has that.
    pub(super) fn are_met(self, had: Self) -> bool {
        self.kind.is_none_or(|kind| had.kind == Some(kind))
            && (had.reads || !self.reads)
            && (had.writes || !self.writes)
            && (had.deletes || !self.deletes)
    }
}

/// The end of a file that was read as one piece.
#[derive(Debug, Clone, Default)]
struct Tail {
    file: Vec<u8>,
    start: usize,
}

impl Tail {
    fn bytes(&self) -> &[u8] {
        self.file.get(self.start..).unwrap_or_default()
    }
}

impl PartialEq for Tail {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Tail {}

impl Rules {
    /// Puts rules together.
    pub fn new(list: Vec<Rule>) -> Self {
        let mut packed = Packed::default();
        for (number, rule) in (0..).zip(&list) {
            packed.index(number, rule);
            // Serialising plain data into memory has no way to fail.
            packed.bytes.file.extend(postcard::to_allocvec(rule).unwrap_or_default());
            packed.ends.push(u32::try_from(packed.bytes.file.len()).unwrap_or(u32::MAX));
        }
        packed.by_program.sort();
        let mut merged: Vec<(String, Vec<u32>)> = Vec::new();
        for (program, numbers) in packed.by_program {
            match merged.last_mut() {
                Some((known, all)) if *known == program => all.extend(numbers),
                _ => merged.push((program, numbers)),
            }
        }
        packed.by_program = merged;
        let read = list.into_iter().map(|rule| OnceBox::with_value(Box::new(rule))).collect();
        Self { packed, read }
    }

    /// The bytes of the rules, which the binary form of the rules does not contain.
    pub fn packed(&self) -> &[u8] {
        self.packed.bytes.bytes()
    }

    /// Takes the bytes of the rules from the end of a file. Gives whether they are as long as these
    /// rules are together.
    #[must_use]
    pub fn unpack(&mut self, file: Vec<u8>, start: usize) -> bool {
        let wanted = self.packed.ends.last().map_or(0, |end| *end as usize);
        self.packed.bytes = Tail { file, start };
        self.packed().len() == wanted
    }

    /// The rules in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        (0..self.packed.ends.len()).filter_map(|number| self.get(u32::try_from(number).ok()?))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packed.ends.is_empty()
    }

    /// The numbers of the rules that may match a call, in order.
    pub(super) fn candidates(&self, proposal: &Proposal<'_>) -> Vec<u32> {
        let had = Wants::had_by(proposal, None);
        let may = |number: &u32| self.wants(*number).are_met(had);
        let mut numbers = Vec::with_capacity(CANDIDATES_MOSTLY);
        numbers.extend(self.packed.others.iter().copied().filter(may));
        for program in proposal.commands().iter().map(Command::program) {
            let known = &self.packed.by_program;
            let found = known.binary_search_by(|(known, _)| known.as_str().cmp(program));
            if let Ok(at) = found
                && let Some((_, looking)) = known.get(at)
            {
                numbers.extend(looking.iter().copied().filter(may));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// What a rule can't match without.
    pub(super) fn wants(&self, number: u32) -> Wants {
        self.packed.wants.get(number as usize).copied().unwrap_or_default()
    }

    /// A rule, read when it is wanted first.
    pub(super) fn get(&self, number: u32) -> Option<&Rule> {
        let at = number as usize;
        let cell = self.read.get(at)?;
        if let Some(rule) = cell.get() {
            return Some(rule);
        }
        let start = at
            .checked_sub(1)
            .map_or(Some(0), |before| self.packed.ends.get(before).map(|end| *end as usize))?;
        let end = *self.packed.ends.get(at)? as usize;
        let rule: Rule = postcard::from_bytes(self.packed().get(start..end)?).ok()?;
        Some(cell.get_or_init(|| Box::new(rule)))
    }
}

impl Packed {
    fn index(&mut self, number: u32, rule: &Rule) {
        if rule.commands.is_empty() {
            self.others.push(number);
        }
        for command in &rule.commands {
            let program = command.split_whitespace().next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or_default();
            self.by_program.push((program.to_string(), Vec::from([number])));
        }
        let kind = match rule.scope {
            RuleScope::Kind(kind) => Some(kind),
            RuleScope::Any | RuleScope::Tool(_) => None,
        };
        self.wants.push(Wants { kind, ..scope::wants(rule.when.as_ref()) });
    }
}

/// What stands for a rule that can't be read: a gate that stays shut.
pub(super) fn unreadable(number: u32) -> Rule {
    Rule {
        name: alloc::format!("{number}"),
        origin: "the compiled definition".to_string(),
        scope: RuleScope::Any,
        commands: Vec::new(),
        when: None,
        effect: Effect::Deny,
        mode: Mode::Enforce,
        message: String::new(),
        instead: None,
    }
}

impl Clone for Rules {
    fn clone(&self) -> Self {
        let read = self.packed.ends.iter().map(|_| OnceBox::new()).collect();
        Self { packed: self.packed.clone(), read }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.packed == other.packed
    }
}

impl Eq for Rules {}

impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_seq(self.iter())
        } else {
            self.packed.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(Self::new);
        }
        let packed = Packed::deserialize(deserializer)?;
        let read = packed.ends.iter().map(|_| OnceBox::new()).collect();
        Ok(Self { packed, read })
    }
}

impl<'a> IntoIterator for &'a Rules {
    type Item = &'a Rule;
    type IntoIter = Box<dyn Iterator<Item = &'a Rule> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
