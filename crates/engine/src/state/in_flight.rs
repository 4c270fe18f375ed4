//! Calls that were allowed and have not come back.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest128;
use crate::guards::dirty::Bits;
use crate::guards::loops::Opened;
use crate::id::{ActorId, CallId};
use crate::state::Part;
use crate::tool::Kind;

/// How many calls may be open at once.
const CALLS_MAX: usize = 64;

/// How much room they may take: plenty, unless their names are made to be long.
const BYTES_MAX: usize = 20 * 1024;

/// What a call takes besides its names and files.
const CALL_BYTES: usize = 80;

/// How much room the files that open calls name may take.
const FILES_BYTES_MAX: usize = 8 * 1024;

/// The open calls, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InFlight(VecDeque<Call>);

/// An open call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: Option<CallId>,
    pub(crate) actor: ActorId,
    /// The tool by its declared name.
    pub(crate) tool: String,
    pub(crate) kind: Kind,
    pub(crate) args: Option<Digest128>,
    /// Whether it only runs if a person says so.
    pub(crate) asked: bool,
    /// What it may do to the workspace.
    pub(crate) changes: Changes,
    /// Whether files that are remembered were seen to have changed in it.
    pub(crate) changed: bool,
    /// What to look at when it comes back.
    pub(crate) files: Vec<Noted>,
    /// Tools that its success proves.
    pub(crate) proves: Vec<Proof>,
    /// The epoch in which it began.
    pub(crate) epoch: u64,
    /// What custom policies want back with its result, by their number.
    pub(crate) carried: Vec<(u16, String)>,
    /// What its result will be compared by.
    pub(crate) opened: Opened,
    /// What it changes and checks.
    pub(crate) bits: Bits,
}

/// A tool that a call runs, and that succeeded if the call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// Its number in the definition.
    pub(crate) tool: u16,
    /// Whether it runs after everything that the call changes by other means.
    pub(crate) after: bool,
}

/// What a call may do to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Changes {
    /// Nothing.
    Nothing,
    /// Something, but it is declared to be a check.
    Unseen,
    /// Perhaps something: what is remembered of files tells.
    Perhaps,
    /// Something.
    Surely,
}

/// A file that a call names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// Its canonical path.
    pub(crate) path: String,
    pub(crate) did: Did,
}

/// What a call does to a file that it names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Did {
    /// Shows a part of it. `sure` says whether that counts even if the call
    /// fails; none where it does not count at all.
    Saw {
        part: Part,
        sure: Option<bool>,
    },
    /// Searches it with everything below it.
    Searched {
        sure: Option<bool>,
    },
    Wrote,
    /// Brings another version of it.
    Changed,
    Appended,
    Removed,
    /// Is another name for something that was there.
    Named,
}

impl Call {
    /// Whether the workspace is another after it.
    pub(crate) fn mutates(&self) -> bool {
        self.changes == Changes::Surely || (self.changes == Changes::Perhaps && self.changed)
    }

    /// Whether code is another after it, or may be.
    pub(crate) fn changes_code(&self) -> bool {
        (self.mutates() && self.bits.code) || self.bits.hides_code()
    }

    /// About how much room it takes.
    fn bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, |id| id.as_str().len());
        let names = id + self.actor.as_str().len() + self.tool.len() + self.opened.shown.len();
        let carried: usize = self.carried.iter().map(|(_, text)| text.len() + 4).sum();
        names + carried + self.files_bytes() + 4 * self.proves.len() + CALL_BYTES
    }

    /// How much room its files take.
    fn files_bytes(&self) -> usize {
        self.files.iter().map(|noted| noted.path.len() + 16).sum()
    }
}

impl InFlight {
    /// Whether a call is open.
    pub(crate) fn contains(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| call.id.as_ref() == Some(id))
    }

    /// Whether a call is open and runs, whatever a person says.
    pub(crate) fn is_open(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| !call.asked && call.id.as_ref() == Some(id))
    }

    /// Opens a call and gives back the oldest where there are too many.
    pub(crate) fn insert(&mut self, mut call: Call) -> Vec<Call> {
        let open: usize = self.0.iter().map(Call::files_bytes).sum();
        if open + call.files_bytes() > FILES_BYTES_MAX {
            // What does not fit is not learnt: those files have to be read again.
            call.files.clear();
        }
        self.0.push_back(call);
        let mut bytes: usize = self.0.iter().map(Call::bytes).sum();
        let mut oldest = Vec::new();
        while self.0.len() > CALLS_MAX || (bytes > BYTES_MAX && self.0.len() > 1) {
            let Some(call) = self.0.pop_front() else { break };
            bytes = bytes.saturating_sub(call.bytes());
            oldest.push(call);
        }
        oldest
    }

    /// The call that a result belongs to: by its id, or, where the client gives
    /// none, the first of that tool with those arguments.
    pub(crate) fn find(&self, key: Key<'_>) -> Option<&Call> {
        self.0.iter().find(|call| key.opens(call))
    }

    /// The same, to add to it.
    pub(crate) fn find_mut(&mut self, key: Key<'_>) -> Option<&mut Call> {
        self.0.iter_mut().find(|call| key.opens(call))
    }

    /// Closes a call.
    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Call> {
        let at = self.0.iter().position(|call| key.opens(call))?;
        self.0.remove(at)
    }

    /// Closes calls of which nobody knows how they ended.
    pub(crate) fn take(&mut self, is_lost: impl Fn(&Call) -> bool) -> VecDeque<Call> {
        // Mostly there are none, and nothing has to be moved.
        if !self.0.iter().any(&is_lost) {
            return VecDeque::new();
        }
        let (lost, open) = core::mem::take(&mut self.0).into_iter().partition(is_lost);
        self.0 = open;
        lost
    }

    /// An open call that may be changing the workspace just now.
    pub(crate) fn mutating(&self) -> Option<&Call> {
        self.0.iter().find(|call| !call.asked && call.mutates())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.0.iter_mut()
    }
}

/// What a result says about the call it belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    Id(&'a CallId),
    /// A tool by its declared name, and its arguments.
    Called(&'a str, Digest128),
    Nothing,
}

impl Key<'_> {
    fn opens(self, call: &Call) -> bool {
        match self {
            Self::Id(id) => call.id.as_ref() == Some(id),
            Self::Called(tool, args) => {
                call.id.is_none() && call.tool == tool && call.args == Some(args)
            }
            Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guards::loops::Class;
    use alloc::format;
    use alloc::string::ToString;

    fn call(id: Option<&str>, args: &[u8]) -> Call {
        Call {
            id: id.map(|id| CallId::parse(id).unwrap()),
            actor: ActorId::main(),
            tool: "t".to_string(),
            kind: Kind::Other,
            args: Some(Digest128::of(args)),
            asked: false,
            changes: Changes::Nothing,
            changed: false,
            files: Vec::new(),
            proves: Vec::new(),
            epoch: 0,
            carried: Vec::new(),
            opened: Opened {
                call: Digest128::of(args),
                coarse: None,
                class: Class::Other,
                batch: 0,
                shown: String::new(),
            },
            bits: Bits::default(),
        }
    }

    #[test]
    fn the_table_is_bounded_and_gives_back_the_oldest() {
        let mut table = InFlight::default();
        for n in 0..CALLS_MAX {
            assert_eq!(table.insert(call(Some(&format!("c{n}")), b"")), []);
        }
        let pushed_out = table.insert(call(Some("one more"), b"")).remove(0);
        assert_eq!(pushed_out.id.unwrap().as_str(), "c0");
    }

    #[test]
    fn calls_that_are_made_to_be_large_push_out_others() {
        let mut table = InFlight::default();
        let long = "x".repeat(128);
        let large = Call { tool: long.clone(), ..call(Some(&long), b"") };
        let kept = (0..CALLS_MAX).take_while(|_| table.insert(large.clone()).is_empty()).count();
        assert!((40..CALLS_MAX).contains(&kept), "{kept}");
        let size = postcard::to_allocvec(&table).unwrap().len();
        assert!(size <= BYTES_MAX, "{size}");
    }

    #[test]
    fn without_ids_the_first_of_the_same_call_comes_back_first() {
        let mut table = InFlight::default();
        for (epoch, args) in [b"a", b"b", b"a"].into_iter().enumerate() {
            table.insert(Call { epoch: epoch as u64, ..call(None, args) });
        }
        let mut close = |args: &[u8]| {
            table.remove(Key::Called("t", Digest128::of(args))).map(|call| call.epoch)
        };
        assert_eq!(
            [close(b"a"), close(b"a"), close(b"a"), close(b"b")],
            [Some(0), Some(2), None, Some(1)]
        );
    }
}
