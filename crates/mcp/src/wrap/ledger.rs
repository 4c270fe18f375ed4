//! Which requests of the client are open, and for how long they may be.

use std::collections::BTreeMap;

use super::message::Id;

/// A request that the server has and has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) id: Id,
    pub(super) what: What,
    /// Whether the client speaks the protocol without a handshake.
    pub(super) stateless: bool,
    /// What the server reports progress under.
    pub(super) progress: Option<Id>,
    /// When the client is told that there is no answer; never, where it only listens.
    pub(super) until_ms: Option<u64>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A tool, let run by the guard under this number.
    Call { call: u64, tool: String },
    /// The tools.
    List,
    /// How the two get to know each other.
    Initialize,
    /// Anything else, by its method.
    Other(String),
}

/// What becomes of a request that is about to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It is open.
    Open,
    /// Another open one has the same id.
    Twice,
    /// There is no server any more.
    Gone(Gone),
}

/// Why there is no server any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    /// How it ended.
    pub(super) how: String,
    /// What it said last, where it can say something to people.
    pub(super) stderr: Option<String>,
}

/// The open requests.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: BTreeMap<Id, Open>,
    /// The ids in the order in which they were opened.
    order: Vec<Id>,
    gone: Option<Gone>,
}

impl Ledger {
    /// Enters a request, unless it can't be answered.
    pub(super) fn enter(&mut self, open: Open) -> Entered {
        if let Some(gone) = &self.gone {
            return Entered::Gone(gone.clone());
        }
        if self.open.contains_key(&open.id) {
            return Entered::Twice;
        }
        self.order.push(open.id.clone());
        self.open.insert(open.id.clone(), open);
        Entered::Open
    }

    /// Takes out a request that is over; none where there is none, or no more.
    pub(super) fn take(&mut self, id: &Id) -> Option<Open> {
        let open = self.open.remove(id)?;
        self.order.retain(|other| other != id);
        Some(open)
    }

    /// Takes out the one that has waited longest.
    pub(super) fn take_oldest(&mut self) -> Option<Open> {
        let oldest = self.order.first()?.clone();
        self.take(&oldest)
    }

    /// A request made progress, and has its time again.
    pub(super) fn progress(&mut self, token: &Id, until_ms: u64) {
        let moved = self.open.values_mut().filter(|open| open.progress.as_ref() == Some(token));
        moved.for_each(|open| open.until_ms = open.until_ms.map(|_| until_ms));
    }

    /// When the next request runs out of time.
    pub(super) fn next_until_ms(&self) -> Option<u64> {
        self.open.values().filter_map(|open| open.until_ms).min()
    }

    /// Takes out what has run out of time.
    pub(super) fn take_late(&mut self, now_ms: u64) -> Vec<Open> {
        let late = |open: &&Open| open.until_ms.is_some_and(|until| until <= now_ms);
        let ids: Vec<Id> = self.open.values().filter(late).map(|open| open.id.clone()).collect();
        ids.iter().filter_map(|id| self.take(id)).collect()
    }

    /// The server is gone; takes out everything, oldest first.
    pub(super) fn close(&mut self, gone: Gone) -> Vec<Open> {
        self.gone = Some(gone);
        std::iter::from_fn(|| self.take_oldest()).collect()
    }

    /// Why there is no server any more, if there is none.
    pub(super) fn gone(&self) -> Option<&Gone> {
        self.gone.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(number: u64, until_ms: Option<u64>) -> Open {
        let id = Id::of(&number.into()).unwrap();
        let progress = Some(id.clone());
        Open { id, what: What::List, stateless: false, progress, until_ms }
    }

    #[test]
    fn a_request_is_answered_once() {
        let mut ledger = Ledger::default();
        let one = open(1, Some(10));
        assert_eq!(ledger.enter(one.clone()), Entered::Open);
        assert_eq!(ledger.enter(one.clone()), Entered::Twice);
        assert_eq!(ledger.take(&one.id), Some(one.clone()));
        assert_eq!(ledger.take(&one.id), None);
    }

    #[test]
    fn progress_gives_time_and_what_only_listens_has_all_of_it() {
        let mut ledger = Ledger::default();
        for open in [open(3, None), open(1, Some(10)), open(2, Some(12))] {
            assert_eq!(ledger.enter(open), Entered::Open);
        }
        ledger.progress(&Id::of(&1.into()).unwrap(), 30);
        ledger.progress(&Id::of(&3.into()).unwrap(), 30);
        assert_eq!(ledger.next_until_ms(), Some(12));
        assert_eq!(ledger.take_late(12), [open(2, Some(12))]);
        assert_eq!(ledger.take_late(100), [open(1, Some(30))]);
        let gone = Gone { how: "it ended".to_owned(), stderr: None };
        assert_eq!(ledger.close(gone.clone()), [open(3, None)]);
        assert_eq!(ledger.enter(open(4, None)), Entered::Gone(gone));
    }
}
