//! The rules of a definition, with an index to find the few that may match a call.
//!
//! A process that decides one call and exits loads the definition each time. So rules are stored in
//! serialised form with an index, and a rule is deserialised only when it may match.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use jackline_shell::{Access, ShellCommand};
use once_cell::race::OnceBox;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Rule, RuleEffect, RuleScope, rule_call_scope};
use crate::definition::Mode;
use crate::proposal::Proposal;
use crate::tool::ToolKind;

/// The usual maximum number of candidate rules of a call.
const CANDIDATES_USUAL: usize = 64;

/// The rules of a definition, in their order.
#[derive(Default)]
pub struct Rules {
    packed: PackedRules,
    /// The deserialised rules.
    read: Vec<OnceBox<Rule>>,
}

/// Serialised rules. Their bytes are stored separately, because they are the largest part of a
/// definition and need not be copied; see [`Rules::packed`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PackedRules {
    #[serde(skip)]
    bytes: FileTail,
    /// Where each rule ends in the bytes.
    ends: Vec<u32>,
    /// The numbers of the rules that apply to a program, sorted by program.
    by_program: Vec<(String, Vec<u32>)>,
    /// The numbers of the rules that apply to every call.
    others: Vec<u32>,
    wants: Vec<RuleNeeds>,
}

/// The conditions that a rule needs to match: a kind of tool, or files that are read, written or
/// removed. Most calls touch no files, so most rules are skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RuleNeeds {
    pub(super) kind: Option<ToolKind>,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) deletes: bool,
}

impl RuleNeeds {
    /// Returns which of these conditions a call, or one simple command of it, meets.
    pub(super) fn met_by(proposal: &Proposal<'_>, command: Option<u32>) -> Self {
        let mut met = Self { kind: Some(proposal.tool.kind), ..Self::default() };
        for touch in &proposal.touches {
            if command.is_none() || touch.command == command {
                met.reads |= !touch.changes();
                met.deletes |= touch.access == Access::Delete;
                met.writes |= touch.changes() && touch.access != Access::Delete;
            }
        }
        met
    }

    /// Returns whether a rule with these conditions can match a call that meets `had`.
    pub(super) fn is_met_by(self, had: Self) -> bool {
        self.kind.is_none_or(|kind| had.kind == Some(kind))
            && (had.reads || !self.reads)
            && (had.writes || !self.writes)
            && (had.deletes || !self.deletes)
    }
}

/// The end of a file that was read in one piece.
#[derive(Debug, Clone, Default)]
struct FileTail {
    file: Vec<u8>,
    start: usize,
}

impl FileTail {
    fn bytes(&self) -> &[u8] {
        self.file.get(self.start..).unwrap_or_default()
    }
}

impl PartialEq for FileTail {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for FileTail {}

impl Rules {
    /// Builds the index of a list of rules.
    pub fn new(list: Vec<Rule>) -> Self {
        let mut packed = PackedRules::default();
        for (number, rule) in (0..).zip(&list) {
            packed.index(number, rule);
            // Serialising plain data into memory cannot fail.
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

    /// Takes the bytes of the rules from the end of a file. Returns whether their length is
    /// correct.
    #[must_use]
    pub fn unpack(&mut self, file: Vec<u8>, start: usize) -> bool {
        let expected_length = self.packed.ends.last().map_or(0, |end| *end as usize);
        self.packed.bytes = FileTail { file, start };
        self.packed().len() == expected_length
    }

    /// The rules in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        (0..self.packed.ends.len()).filter_map(|number| self.get(u32::try_from(number).ok()?))
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.packed.ends.is_empty()
    }

    /// Returns the numbers of the rules that may match a call, in order.
    pub(super) fn candidate_rules(&self, proposal: &Proposal<'_>) -> Vec<u32> {
        let met = RuleNeeds::met_by(proposal, None);
        let can_match = |number: &u32| self.wants(*number).is_met_by(met);
        let mut numbers = Vec::with_capacity(CANDIDATES_USUAL);
        numbers.extend(self.packed.others.iter().copied().filter(can_match));
        for program in proposal.commands().iter().map(ShellCommand::program) {
            let by_program = &self.packed.by_program;
            let position = by_program.binary_search_by(|(name, _)| name.as_str().cmp(program));
            if let Ok(at) = position
                && let Some((_, rules)) = by_program.get(at)
            {
                numbers.extend(rules.iter().copied().filter(can_match));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Returns the conditions that a rule needs to match.
    pub(super) fn wants(&self, number: u32) -> RuleNeeds {
        self.packed.wants.get(number as usize).copied().unwrap_or_default()
    }

    /// Returns a rule. It is deserialised at the first use.
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

impl PackedRules {
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
        self.wants.push(RuleNeeds { kind, ..rule_call_scope::needed_paths(rule.when.as_ref()) });
    }
}

/// Returns the replacement of a rule that cannot be deserialised: it denies.
pub(super) fn unreadable_rule(number: u32) -> Rule {
    Rule {
        name: alloc::format!("{number}"),
        origin: "the compiled definition".to_string(),
        scope: RuleScope::Any,
        commands: Vec::new(),
        when: None,
        effect: RuleEffect::Deny,
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
        let packed = PackedRules::deserialize(deserializer)?;
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
