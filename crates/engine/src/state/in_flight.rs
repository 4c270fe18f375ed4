//! Calls that were allowed and have not come back.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest128;
use crate::id::{ActorId, CallId};
use crate::tool::Kind;

/// How many calls may be open at once.
const CALLS_MAX: usize = 64;

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
    /// The epoch in which it began.
    pub(crate) epoch: u64,
    /// What custom policies want back with its result, by their number.
    pub(crate) carried: Vec<(u16, String)>,
}

impl InFlight {
    /// Whether a call is open.
    pub(crate) fn contains(&self, id: &CallId) -> bool {
        self.0.iter().any(|call| call.id.as_ref() == Some(id))
    }

    /// Opens a call and gives back the oldest if there are too many.
    pub(crate) fn insert(&mut self, call: Call) -> Option<Call> {
        self.0.push_back(call);
        if self.0.len() > CALLS_MAX { self.0.pop_front() } else { None }
    }

    /// The call that a result belongs to: by its id, or, where the client gives
    /// none, the first of that tool with those arguments.
    pub(crate) fn find(&self, key: Key<'_>) -> Option<&Call> {
        self.0.iter().find(|call| key.opens(call))
    }

    /// Closes a call.
    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Call> {
        let at = self.0.iter().position(|call| key.opens(call))?;
        self.0.remove(at)
    }

    /// Closes calls of which nobody knows how they ended.
    pub(crate) fn take(&mut self, is_lost: impl Fn(&Call) -> bool) -> VecDeque<Call> {
        let (lost, open) = core::mem::take(&mut self.0).into_iter().partition(is_lost);
        self.0 = open;
        lost
    }

    /// An open call that may be changing the workspace just now.
    pub(crate) fn mutating(&self) -> Option<&Call> {
        self.0.iter().find(|call| call.kind.mutates())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
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
    use alloc::format;
    use alloc::string::ToString;

    fn call(id: Option<&str>, args: &[u8]) -> Call {
        Call {
            id: id.map(|id| CallId::parse(id).unwrap()),
            actor: ActorId::main(),
            tool: "t".to_string(),
            kind: Kind::Other,
            args: Some(Digest128::of(args)),
            epoch: 0,
            carried: Vec::new(),
        }
    }

    #[test]
    fn the_table_is_bounded_and_gives_back_the_oldest() {
        let mut table = InFlight::default();
        for n in 0..CALLS_MAX {
            assert_eq!(table.insert(call(Some(&format!("c{n}")), b"")), None);
        }
        let pushed_out = table.insert(call(Some("one more"), b"")).unwrap();
        assert_eq!(pushed_out.id.unwrap().as_str(), "c0");
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
