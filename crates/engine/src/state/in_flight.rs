//! Calls that may run and have no result yet.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest128;
use crate::guards::dirty::CallBits;
use crate::guards::loops::OpenCallSignature;
use crate::id::{ActorId, CallId};
use crate::state::{CallSignature, FilePart};
use crate::tool::ToolKind;

/// How many calls may be open at once.
const CALLS_MAX: usize = 64;

/// The maximum number of bytes of the table. Only extremely long names exceed it.
const TABLE_BYTES_MAX: usize = 20 * 1024;

/// The bytes of a call without its names and files.
const CALL_BYTES: usize = 88;

/// The bytes of an awaited approval.
const APPROVAL_BYTES: usize = 40;

/// The maximum number of bytes of the file names in open calls.
const FILES_BYTES_MAX: usize = 8 * 1024;

/// The open calls, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InFlight(VecDeque<InFlightCall>);

/// An open call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InFlightCall {
    pub(crate) id: Option<CallId>,
    pub(crate) actor: ActorId,
    /// The declared name of the tool.
    pub(crate) tool: String,
    pub(crate) kind: ToolKind,
    pub(crate) args: Option<Digest128>,
    /// The approval that it waits for, if it runs only after a person's approval.
    pub(crate) approval: Option<AwaitedApproval>,
    /// Whether it may change the workspace.
    pub(crate) changes: ChangeCertainty,
    /// Whether remembered files changed during the call.
    pub(crate) saw_change: bool,
    /// The files to update when the result arrives.
    pub(crate) files: Vec<CallFile>,
    /// The tools that count as run successfully if this call succeeds.
    pub(crate) proofs: Vec<ToolProof>,
    /// The epoch in which it began.
    pub(crate) epoch: u64,
    /// The data that custom policies want to receive with its result, by the number of the policy.
    pub(crate) carried: Vec<(u16, String)>,
    /// The data with which its result will be compared.
    pub(crate) opened: OpenCallSignature,
    /// Which code it changes, and which checks it runs.
    pub(crate) bits: CallBits,
    /// The first line that it reads, if it is a tool that reads one file.
    pub(crate) first_line: Option<u32>,
}

/// The approval that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedApproval {
    /// The identity of the call, if its arguments are known.
    pub(crate) signature: Option<CallSignature>,
    /// Whether the client itself asks the person. The call can then run only now, and when it is
    /// over, so is the question.
    pub(crate) in_client: bool,
}

/// A tool that a call runs. It succeeds if the call succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolProof {
    /// The index of the tool in the definition.
    pub(crate) tool: u16,
    /// Whether it runs after all other changes of the call.
    pub(crate) is_after_changes: bool,
}

/// Whether a call may change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChangeCertainty {
    /// It changes nothing.
    Nothing,
    /// It may change something, but it is declared as a check, so the change is ignored.
    Ignored,
    /// It may change something. Comparing the remembered files shows whether it did.
    Perhaps,
    /// It changes something.
    Surely,
}

/// A file that a call names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallFile {
    /// The canonical path.
    pub(crate) path: String,
    pub(crate) access: FileAccess,
}

/// What a call does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum FileAccess {
    /// It shows a part of the file. `sure` tells whether that counts even if the call fails; `None`
    /// means that it never counts.
    Showed {
        part: FilePart,
        sure: Option<bool>,
    },
    /// It searches the file, or everything below the directory.
    Searched {
        sure: Option<bool>,
    },
    Wrote,
    /// It replaces the file with another version.
    Changed,
    Appended,
    Removed,
    /// It gives an existing file this name.
    Named,
}

impl InFlightCall {
    /// Whether it runs only after a person's approval.
    pub(crate) fn needs_approval(&self) -> bool {
        self.approval.is_some()
    }

    /// Whether the client asks a person about it now.
    fn is_asked_in_client(&self) -> bool {
        self.approval.is_some_and(|approval| approval.in_client)
    }

    /// Whether it changed the workspace.
    pub(crate) fn mutates(&self) -> bool {
        self.changes == ChangeCertainty::Surely
            || (self.changes == ChangeCertainty::Perhaps && self.saw_change)
    }

    /// Whether it changed code, or may have changed code.
    pub(crate) fn changes_code(&self) -> bool {
        (self.mutates() && self.bits.code) || self.bits.may_change_code_unseen()
    }

    /// The approximate number of bytes of the entry.
    fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, |id| id.as_str().len());
        let names = id + self.actor.as_str().len() + self.tool.len() + self.opened.shown.len();
        let carried: usize = self.carried.iter().map(|(_, text)| text.len() + 4).sum();
        let approval = if self.needs_approval() { APPROVAL_BYTES } else { 0 };
        names + carried + self.files_bytes() + 4 * self.proofs.len() + approval + CALL_BYTES
    }

    /// The approximate number of bytes of its files.
    fn files_bytes(&self) -> usize {
        self.files.iter().map(|noted| noted.path.len() + 16).sum()
    }
}

impl InFlight {
    /// Whether a call is open.
    pub(crate) fn contains(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| call.id.as_ref() == Some(id))
    }

    /// Whether a call is open and does not wait for approval.
    pub(crate) fn is_running(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| !call.needs_approval() && call.id.as_ref() == Some(id))
    }

    /// Adds a call. The oldest calls are removed and returned if there are too many.
    pub(crate) fn insert(&mut self, mut call: InFlightCall) -> Vec<InFlightCall> {
        let open: usize = self.0.iter().map(InFlightCall::files_bytes).sum();
        if open + call.files_bytes() > FILES_BYTES_MAX {
            // If the files do not fit, they are dropped, and the agent has to read them again.
            call.files.clear();
        }
        self.0.push_back(call);
        let mut bytes: usize = self.0.iter().map(InFlightCall::bytes).sum();
        let mut oldest = Vec::new();
        while self.0.len() > CALLS_MAX || (bytes > TABLE_BYTES_MAX && self.0.len() > 1) {
            let Some(call) = self.0.pop_front() else { break };
            bytes = bytes.saturating_sub(call.bytes());
            oldest.push(call);
        }
        oldest
    }

    /// The call to which a result belongs: by its id. For clients without ids, it is the first call
    /// of this tool with these arguments.
    pub(crate) fn find(&self, key: CallKey<'_>) -> Option<&InFlightCall> {
        self.0.iter().find(|call| key.identifies(call))
    }

    /// The same, mutable.
    pub(crate) fn find_mut(&mut self, key: CallKey<'_>) -> Option<&mut InFlightCall> {
        self.0.iter_mut().find(|call| key.identifies(call))
    }

    /// Removes a call.
    pub(crate) fn remove(&mut self, key: CallKey<'_>) -> Option<InFlightCall> {
        let at = self.0.iter().position(|call| key.identifies(call))?;
        self.0.remove(at)
    }

    /// Removes the calls whose result can no longer arrive.
    pub(crate) fn remove_lost(
        &mut self,
        is_lost: impl Fn(&InFlightCall) -> bool,
    ) -> VecDeque<InFlightCall> {
        // Usually there are none, and nothing is moved.
        if !self.0.iter().any(&is_lost) {
            return VecDeque::new();
        }
        let (lost, open) = core::mem::take(&mut self.0).into_iter().partition(is_lost);
        self.0 = open;
        lost
    }

    /// Whether the client asks a person about this call now.
    pub(crate) fn is_asked_in_client(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| call.is_asked_in_client() && call.id.as_ref() == Some(id))
    }

    /// Whether the client asks a person now about a call with this signature, except under this id.
    pub(crate) fn is_asked_elsewhere(&self, signature: CallSignature, id: Option<&CallId>) -> bool {
        let is_same = |call: &InFlightCall| {
            call.approval.and_then(|approval| approval.signature) == Some(signature)
        };
        self.0.iter().any(|call| {
            call.is_asked_in_client() && is_same(call) && (id.is_none() || call.id.as_ref() != id)
        })
    }

    /// An open call that may currently change the workspace.
    pub(crate) fn find_mutating(&self) -> Option<&InFlightCall> {
        self.0.iter().find(|call| !call.needs_approval() && call.mutates())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &InFlightCall> {
        self.0.iter()
    }

    /// The same, mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut InFlightCall> {
        self.0.iter_mut()
    }
}

/// The identification of a call in its result.
#[derive(Clone, Copy)]
pub(crate) enum CallKey<'a> {
    Id(&'a CallId),
    /// The declared name of the tool, and the arguments.
    ToolAndArgs(&'a str, Digest128),
    Unknown,
}

impl CallKey<'_> {
    fn identifies(self, call: &InFlightCall) -> bool {
        match self {
            Self::Id(id) => call.id.as_ref() == Some(id),
            Self::ToolAndArgs(tool, args) => {
                call.id.is_none() && call.tool == tool && call.args == Some(args)
            }
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guards::loops::CallClass;
    use alloc::format;
    use alloc::string::ToString;

    fn call(id: Option<&str>, args: &[u8]) -> InFlightCall {
        InFlightCall {
            id: id.map(|id| CallId::parse(id).unwrap()),
            actor: ActorId::main(),
            tool: "t".to_string(),
            kind: ToolKind::Other,
            args: Some(Digest128::of(args)),
            approval: None,
            changes: ChangeCertainty::Nothing,
            saw_change: false,
            files: Vec::new(),
            proofs: Vec::new(),
            epoch: 0,
            carried: Vec::new(),
            opened: OpenCallSignature {
                call: Digest128::of(args),
                coarse: None,
                class: CallClass::Other,
                batch: 0,
                shown: String::new(),
            },
            bits: CallBits::default(),
            first_line: None,
        }
    }

    #[test]
    fn the_table_is_bounded_and_returns_the_oldest() {
        let mut table = InFlight::default();
        for n in 0..CALLS_MAX {
            assert_eq!(table.insert(call(Some(&format!("c{n}")), b"")), []);
        }
        let removed = table.insert(call(Some("one more"), b"")).remove(0);
        assert_eq!(removed.id.unwrap().as_str(), "c0");
    }

    #[test]
    fn very_large_calls_remove_older_calls() {
        let mut table = InFlight::default();
        let long = "x".repeat(128);
        let large = InFlightCall { tool: long.clone(), ..call(Some(&long), b"") };
        let fitting = (0..CALLS_MAX).take_while(|_| table.insert(large.clone()).is_empty()).count();
        assert!((40..CALLS_MAX).contains(&fitting), "{fitting}");
        let size = postcard::to_allocvec(&table).unwrap().len();
        assert!(size <= TABLE_BYTES_MAX, "{size}");
    }

    #[test]
    fn without_ids_a_result_belongs_to_the_first_of_equal_calls() {
        let mut table = InFlight::default();
        for (epoch, args) in [b"a", b"b", b"a"].into_iter().enumerate() {
            table.insert(InFlightCall { epoch: epoch as u64, ..call(None, args) });
        }
        let mut close = |args: &[u8]| {
            table.remove(CallKey::ToolAndArgs("t", Digest128::of(args))).map(|call| call.epoch)
        };
        assert_eq!(
            [close(b"a"), close(b"a"), close(b"a"), close(b"b")],
            [Some(0), Some(2), None, Some(1)]
        );
    }
}
