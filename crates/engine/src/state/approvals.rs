//! Calls that wait for a person's approval, and the answers of people about single calls.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{WaitingCall, clip_text, short_hash};
use crate::digest::Digest128;
use crate::id::CallId;
use crate::time::Timestamp;
use crate::verdict::{Constraint, ConstraintKind, ConstraintScope};

/// How many calls wait at a time. If there are more, the oldest is removed.
const PENDING_MAX: usize = 16;

/// How many constraints are in force at a time. If there are more, the oldest is removed.
const CONSTRAINTS_MAX: usize = 32;

/// How many bytes of a reason are stored.
const REASON_BYTES_MAX: usize = 200;

/// How many records with the same question are remembered. A person may have noted the number of an
/// earlier one.
const RECORDS_PER_QUESTION_MAX: usize = 8;

/// The identity of one call: the tool, its arguments and its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallSignature {
    tool: u64,
    args: Digest128,
    cwd: u64,
}

impl CallSignature {
    pub(crate) fn new(tool: &str, args: Digest128, cwd: &str) -> Self {
        Self { tool: short_hash(tool), args, cwd: short_hash(cwd) }
    }
}

/// The questions to a person and the answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Approvals {
    pending: Vec<PendingApproval>,
    answered: Vec<ApprovalAnswer>,
    /// How many constraints there have been in the session.
    count: u32,
}

/// A call that waits for a person's approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingApproval {
    call: Option<u64>,
    pub(crate) signature: CallSignature,
    /// The records in which the person was asked, the latest last.
    seqs: Vec<u64>,
    /// When the person was last asked.
    at: Timestamp,
    question: ApprovalQuestion,
}

/// The question that a person sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApprovalQuestion {
    /// The tool.
    pub(crate) tool: String,
    /// The exact action: the command line, or the file.
    pub(crate) does: String,
    /// Why approval is needed.
    pub(crate) why: String,
    /// Whether the client itself asks the person.
    pub(crate) in_client: bool,
}

impl ApprovalQuestion {
    fn clip(self) -> Self {
        let short = |text: String| clip_text(text, REASON_BYTES_MAX);
        Self { tool: short(self.tool), does: short(self.does), why: short(self.why), ..self }
    }

    /// The tool and the reason.
    fn as_reason(&self) -> String {
        if self.why.is_empty() {
            return self.tool.clone();
        }
        format!("{}: {}", self.tool, self.why)
    }
}

/// The answer of a person about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApprovalAnswer {
    number: u32,
    signature: CallSignature,
    kind: ConstraintKind,
    reason: String,
    once: bool,
    expires_at: Option<Timestamp>,
}

impl ApprovalAnswer {
    /// The constraint in the form of verdicts.
    pub(crate) fn to_constraint(&self) -> Constraint {
        Constraint {
            id: format!("k{}", self.number),
            kind: self.kind,
            reason: self.reason.clone(),
            scope: if self.once { ConstraintScope::Once } else { ConstraintScope::Session },
            expires_at: self.expires_at,
            enforced: true,
        }
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expiry| now >= expiry)
    }
}

impl Approvals {
    /// Adds the question of this record about a call. A question that is already pending is not
    /// added a second time, and stays reachable by its earlier records.
    pub(crate) fn add_question(
        &mut self,
        call: Option<&CallId>,
        signature: CallSignature,
        (seq, at): (u64, Timestamp),
        question: ApprovalQuestion,
    ) {
        let existing = self.pending.iter().position(|existing| existing.signature == signature);
        let existing = existing.map(|at| self.pending.remove(at));
        let (mut seqs, was_in_client) = existing
            .map_or((Vec::new(), false), |existing| (existing.seqs, existing.question.in_client));
        if seqs.len() >= RECORDS_PER_QUESTION_MAX {
            seqs.remove(0);
        }
        seqs.push(seq);
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        let call = call.map(|call| short_hash(call.as_str()));
        let in_client = question.in_client || was_in_client;
        let question = ApprovalQuestion { in_client, ..question.clip() };
        self.pending.push(PendingApproval { call, signature, seqs, at, question });
    }

    /// The pending question that a person answers: the one of a record, the one about a call, or
    /// the latest.
    pub(crate) fn pending(
        &self,
        call: Option<&CallId>,
        ask: Option<u64>,
    ) -> Option<&PendingApproval> {
        let call = call.map(|call| short_hash(call.as_str()));
        self.pending.iter().rev().find(|pending| {
            ask.is_none_or(|ask| pending.seqs.contains(&ask))
                && call.is_none_or(|call| pending.call == Some(call))
        })
    }

    /// The constraint for a person's answer.
    pub(crate) fn constraint_for(
        &self,
        pending: &PendingApproval,
        kind: ConstraintKind,
        why: Option<&str>,
        expires_at: Option<Timestamp>,
    ) -> ApprovalAnswer {
        let reason = why.map_or_else(|| pending.question.as_reason(), ToString::to_string);
        let reason = clip_text(reason, REASON_BYTES_MAX);
        let once = kind == ConstraintKind::PermitSignature && expires_at.is_none();
        let number = self.next_number();
        ApprovalAnswer { number, signature: pending.signature, kind, reason, once, expires_at }
    }

    /// Puts an answer in force.
    pub(crate) fn record_answer(&mut self, answered: ApprovalAnswer) {
        self.pending.retain(|it| it.signature != answered.signature);
        self.answered.retain(|it| it.signature != answered.signature);
        if self.answered.len() >= CONSTRAINTS_MAX {
            self.answered.remove(0);
        }
        self.count = answered.number;
        self.answered.push(answered);
    }

    /// The answer of a person about a call, if it is in force.
    pub(crate) fn answer_for(
        &self,
        signature: CallSignature,
        now: Timestamp,
    ) -> Option<&ApprovalAnswer> {
        self.answered.iter().find(|it| it.signature == signature && !it.has_expired(now))
    }

    /// Whether a person has permitted a call that would otherwise need approval.
    pub(crate) fn is_permitted(&self, signature: CallSignature, now: Timestamp) -> bool {
        let answer = self.answer_for(signature, now);
        answer.is_some_and(|answer| answer.kind == ConstraintKind::PermitSignature)
    }

    /// The refusal of a call by a person, if it is in force.
    pub(crate) fn refusal_of(
        &self,
        signature: CallSignature,
        now: Timestamp,
    ) -> Option<&ApprovalAnswer> {
        self.answer_for(signature, now)
            .filter(|answer| answer.kind == ConstraintKind::ForbidSignature)
    }

    /// Removes the answer for a call that ran, if it was valid for one call only.
    pub(crate) fn use_up(&mut self, signature: CallSignature) {
        self.answered.retain(|it| !(it.once && it.signature == signature));
    }

    /// Ends the question about a call that ran, and a permission for one call.
    pub(crate) fn settle(&mut self, signature: CallSignature) {
        self.pending.retain(|it| it.signature != signature);
        self.use_up(signature);
    }

    /// Ends the question about a call and every permission for it. A refusal stays in force.
    pub(crate) fn withdraw(&mut self, signature: CallSignature) {
        self.pending.retain(|it| it.signature != signature);
        self.answered
            .retain(|it| it.signature != signature || it.kind != ConstraintKind::PermitSignature);
    }

    /// Whether a constraint is in force.
    pub(crate) fn is_in_force(&self, id: &str, now: Timestamp) -> bool {
        self.answered.iter().any(|it| it.to_constraint().id == id && !it.has_expired(now))
    }

    /// Ends a constraint.
    pub(crate) fn end_constraint(&mut self, id: &str) {
        self.answered.retain(|it| it.to_constraint().id != id);
    }

    /// Removes expired answers.
    pub(crate) fn remove_expired(&mut self, now: Timestamp) {
        self.answered.retain(|it| !it.has_expired(now));
    }

    /// The calls that wait for a person, in the form for people.
    pub(crate) fn waiting_calls(&self) -> impl Iterator<Item = WaitingCall> {
        self.pending.iter().map(|pending| {
            let (seq, earlier) = match pending.seqs.split_last() {
                Some((seq, earlier)) => (*seq, earlier.to_vec()),
                None => (0, Vec::new()),
            };
            let ApprovalQuestion { tool, does, why, in_client } = pending.question.clone();
            WaitingCall { seq, earlier, asked_at: pending.at, tool, does, why, in_client }
        })
    }

    /// The number of the next constraint. The numbers are shared with the overrides of guards.
    pub(crate) fn next_number(&self) -> u32 {
        self.count.saturating_add(1)
    }

    /// Reserves the next number.
    pub(crate) fn reserve_number(&mut self) {
        self.count = self.next_number();
    }

    /// Every constraint in force.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = Constraint> {
        self.answered.iter().map(ApprovalAnswer::to_constraint)
    }
}
