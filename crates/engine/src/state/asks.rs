//! What waits for a person, and what a person has said about exactly one call.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::short;
use crate::digest::Digest128;
use crate::id::CallId;
use crate::time::Timestamp;
use crate::verdict::{Constraint, ConstraintKind};

/// How many questions wait at a time; the oldest gives way.
const PENDING_MAX: usize = 16;

/// How many constraints are in force at a time; the oldest gives way.
const CONSTRAINTS_MAX: usize = 32;

/// How long a reason is kept.
const REASON_CHARS_MAX: usize = 200;

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
    /// The tool and what asks, for people.
    pub(crate) what: String,
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
            scope: if self.once { "once" } else { "session" }.to_string(),
            expires_at: self.expires_at,
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expiry| now >= expiry)
    }
}

impl Asks {
    /// A person is asked about a call. The same question is asked once.
    pub(crate) fn ask(&mut self, call: Option<&CallId>, signature: Signature, what: &str) {
        self.pending.retain(|known| known.signature != signature);
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        let call = call.map(|call| short(call.as_str()));
        let what = what.chars().take(REASON_CHARS_MAX).collect();
        self.pending.push(Pending { call, signature, what });
    }

    /// The question that a person answers: about this call, or the latest.
    pub(crate) fn pending(&self, call: Option<&CallId>) -> Option<&Pending> {
        match call.map(|call| short(call.as_str())) {
            Some(call) => self.pending.iter().rev().find(|known| known.call == Some(call)),
            None => self.pending.last(),
        }
    }

    /// What a person's answer puts in force.
    pub(crate) fn answer(
        &self,
        pending: &Pending,
        kind: ConstraintKind,
        why: Option<&str>,
        expires_at: Option<Timestamp>,
    ) -> Answered {
        let reason: String = why.unwrap_or(&pending.what).chars().take(REASON_CHARS_MAX).collect();
        let once = kind == ConstraintKind::PermitSignature && expires_at.is_none();
        let number = self.count.saturating_add(1);
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
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.pending.iter().map(|pending| pending.what.as_str())
    }

    /// Every constraint in force.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = Constraint> {
        self.answered.iter().map(Answered::show)
    }
}
