//! What waits for a person, and what a person has said about exactly one call.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Waiting, clipped, short};
use crate::digest::Digest128;
use crate::id::CallId;
use crate::time::Timestamp;
use crate::verdict::{Constraint, ConstraintKind, ConstraintScope};

/// How many questions wait at a time; the oldest gives way.
const PENDING_MAX: usize = 16;

/// How many constraints are in force at a time; the oldest gives way.
const CONSTRAINTS_MAX: usize = 32;

/// How long a reason is kept.
const REASON_BYTES_MAX: usize = 200;

/// How many records in which the same question was asked are remembered: a
/// person may have written down an earlier one.
const EARLIER_MAX: usize = 8;

/// Exactly one call: the tool, its arguments and its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    tool: u64,
    args: Digest128,
    cwd: u64,
}

impl Signature {
    pub(crate) fn new(tool: &str, args: Digest128, cwd: &str) -> Self {
        Self { tool: short(tool), args, cwd: short(cwd) }
    }
}

/// Questions to a person and their answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asks {
    pending: Vec<Pending>,
    answered: Vec<Answered>,
    /// How many constraints there have been.
    count: u32,
}

/// A call that a person was asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    call: Option<u64>,
    pub(crate) signature: Signature,
    /// The records in which the person was asked, the latest last.
    seqs: Vec<u64>,
    /// When they were asked last.
    at: Timestamp,
    question: Question,
}

/// What a person is asked, in their words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The tool.
    pub(crate) tool: String,
    /// What exactly it would do: the command line, or the file.
    pub(crate) does: String,
    /// Why somebody has to be asked.
    pub(crate) why: String,
}

impl Question {
    fn shortened(self) -> Self {
        let short = |text: String| clipped(text, REASON_BYTES_MAX);
        Self { tool: short(self.tool), does: short(self.does), why: short(self.why) }
    }

    /// The tool and what asks.
    fn what(&self) -> String {
        if self.why.is_empty() {
            return self.tool.clone();
        }
        format!("{}: {}", self.tool, self.why)
    }
}

/// What a person said about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    number: u32,
    signature: Signature,
    kind: ConstraintKind,
    reason: String,
    once: bool,
    expires_at: Option<Timestamp>,
}

impl Answered {
    /// The constraint as verdicts show it.
    pub(crate) fn show(&self) -> Constraint {
        Constraint {
            id: format!("k{}", self.number),
            kind: self.kind,
            reason: self.reason.clone(),
            scope: if self.once { ConstraintScope::Once } else { ConstraintScope::Session },
            expires_at: self.expires_at,
            enforced: true,
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expiry| now >= expiry)
    }
}

impl Asks {
    /// A person is asked about a call in this record. The same question is
    /// asked once, and keeps the names it had before.
    pub(crate) fn ask(
        &mut self,
        call: Option<&CallId>,
        signature: Signature,
        (seq, at): (u64, Timestamp),
        question: Question,
    ) {
        let known = self.pending.iter().position(|known| known.signature == signature);
        let mut seqs = known.map(|known| self.pending.remove(known).seqs).unwrap_or_default();
        if seqs.len() >= EARLIER_MAX {
            seqs.remove(0);
        }
        seqs.push(seq);
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        let call = call.map(|call| short(call.as_str()));
        let question = question.shortened();
        self.pending.push(Pending { call, signature, seqs, at, question });
    }

    /// The question that a person answers: the one that was asked in a record,
    /// the one about a call, or the latest.
    pub(crate) fn pending(&self, call: Option<&CallId>, ask: Option<u64>) -> Option<&Pending> {
        let call = call.map(|call| short(call.as_str()));
        self.pending.iter().rev().find(|known| {
            ask.is_none_or(|ask| known.seqs.contains(&ask))
                && call.is_none_or(|call| known.call == Some(call))
        })
    }

    /// What a person's answer puts in force.
    pub(crate) fn answer(
        &self,
        pending: &Pending,
        kind: ConstraintKind,
        why: Option<&str>,
        expires_at: Option<Timestamp>,
    ) -> Answered {
        let reason = why.map_or_else(|| pending.question.what(), ToString::to_string);
        let reason = clipped(reason, REASON_BYTES_MAX);
        let once = kind == ConstraintKind::PermitSignature && expires_at.is_none();
        let number = self.next_number();
        Answered { number, signature: pending.signature, kind, reason, once, expires_at }
    }

    /// Puts an answer in force.
    pub(crate) fn settle(&mut self, answered: Answered) {
        self.pending.retain(|known| known.signature != answered.signature);
        self.answered.retain(|known| known.signature != answered.signature);
        if self.answered.len() >= CONSTRAINTS_MAX {
            self.answered.remove(0);
        }
        self.count = answered.number;
        self.answered.push(answered);
    }

    /// What a person has said about a call.
    pub(crate) fn said(&self, signature: Signature, now: Timestamp) -> Option<&Answered> {
        self.answered.iter().find(|known| known.signature == signature && !known.is_over(now))
    }

    /// Whether a call may pass where it would be asked about.
    pub(crate) fn permits(&self, signature: Signature, now: Timestamp) -> bool {
        let said = self.said(signature, now);
        said.is_some_and(|said| said.kind == ConstraintKind::PermitSignature)
    }

    /// Whether a person has refused a call.
    pub(crate) fn forbids(&self, signature: Signature, now: Timestamp) -> Option<&Answered> {
        self.said(signature, now).filter(|said| said.kind == ConstraintKind::ForbidSignature)
    }

    /// A call was let run: what was said about it once is used up.
    pub(crate) fn used(&mut self, signature: Signature) {
        self.answered.retain(|known| !(known.once && known.signature == signature));
    }

    /// Whether a constraint is in force.
    pub(crate) fn is_in_force(&self, id: &str, now: Timestamp) -> bool {
        self.answered.iter().any(|known| known.show().id == id && !known.is_over(now))
    }

    /// Ends a constraint.
    pub(crate) fn expire(&mut self, id: &str) {
        self.answered.retain(|known| known.show().id != id);
    }

    /// Forgets what is over.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        self.answered.retain(|known| !known.is_over(now));
    }

    /// What waits for a person, for people.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Waiting> {
        self.pending.iter().map(|pending| {
            let (seq, earlier) = match pending.seqs.split_last() {
                Some((seq, earlier)) => (*seq, earlier.to_vec()),
                None => (0, Vec::new()),
            };
            let Question { tool, does, why } = pending.question.clone();
            Waiting { seq, earlier, asked_at: pending.at, tool, does, why }
        })
    }

    /// The number of the next constraint, whoever puts it in force.
    pub(crate) fn next_number(&self) -> u32 {
        self.count.saturating_add(1)
    }

    /// That number is given away.
    pub(crate) fn took_number(&mut self) {
        self.count = self.next_number();
    }

    /// Every constraint in force.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = Constraint> {
        self.answered.iter().map(Answered::show)
    }
}
