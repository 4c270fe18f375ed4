//! The open requests of the client, with their deadlines.

use std::collections::BTreeMap;

use super::rpc_message::RpcId;

/// A request that was sent to the server and is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenRequest {
    pub(super) id: RpcId,
    pub(super) kind: OpenRequestKind,
    /// Whether the client uses the protocol version without a handshake.
    pub(super) stateless: bool,
    /// The token of the server's progress messages.
    pub(super) progress: Option<RpcId>,
    /// The deadline of the answer; `None` for a request that only listens.
    pub(super) deadline_ms: Option<u64>,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenRequestKind {
    /// A tool call, with its number in the guards' session.
    Call { call: u64, tool: String },
    /// A list of tools.
    List,
    /// The handshake.
    Initialize,
    /// Any other method.
    Other(String),
}

/// The result of adding a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddResult {
    /// The request is open.
    Open,
    /// Another open request has the same id.
    DuplicateId,
    /// The server is gone.
    Gone(ServerGone),
}

/// Why the server is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerGone {
    /// How it ended.
    pub(super) how: String,
    /// Its last output on standard error, if it has a standard error.
    pub(super) stderr: Option<String>,
}

/// The open requests.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    open: BTreeMap<RpcId, OpenRequest>,
    /// The ids in the order of opening.
    order: Vec<RpcId>,
    gone: Option<ServerGone>,
}

impl OpenRequests {
    /// Adds a request, unless it can't be answered.
    pub(super) fn add(&mut self, open: OpenRequest) -> AddResult {
        if let Some(gone) = &self.gone {
            return AddResult::Gone(gone.clone());
        }
        if self.open.contains_key(&open.id) {
            return AddResult::DuplicateId;
        }
        self.order.push(open.id.clone());
        self.open.insert(open.id.clone(), open);
        AddResult::Open
    }

    /// Removes an ended request. Returns `None` if it is not open.
    pub(super) fn remove(&mut self, id: &RpcId) -> Option<OpenRequest> {
        let open = self.open.remove(id)?;
        self.order.retain(|other| other != id);
        Some(open)
    }

    /// Removes the oldest request.
    pub(super) fn remove_oldest(&mut self) -> Option<OpenRequest> {
        let oldest = self.order.first()?.clone();
        self.remove(&oldest)
    }

    /// Extends the deadline of the request that made progress.
    pub(super) fn extend_deadline(&mut self, token: &RpcId, until_ms: u64) {
        let matching = self.open.values_mut().filter(|open| open.progress.as_ref() == Some(token));
        matching.for_each(|open| open.deadline_ms = open.deadline_ms.map(|_| until_ms));
    }

    /// The next deadline.
    pub(super) fn next_deadline_ms(&self) -> Option<u64> {
        self.open.values().filter_map(|open| open.deadline_ms).min()
    }

    /// Removes the requests whose deadline has passed.
    pub(super) fn remove_late(&mut self, now_ms: u64) -> Vec<OpenRequest> {
        let late = |open: &&OpenRequest| open.deadline_ms.is_some_and(|until| until <= now_ms);
        let ids: Vec<RpcId> = self.open.values().filter(late).map(|open| open.id.clone()).collect();
        ids.iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Marks the server as gone and removes all requests, the oldest first.
    pub(super) fn close_all(&mut self, gone: ServerGone) -> Vec<OpenRequest> {
        self.gone = Some(gone);
        std::iter::from_fn(|| self.remove_oldest()).collect()
    }

    /// Why the server is gone, if it is gone.
    pub(super) fn gone(&self) -> Option<&ServerGone> {
        self.gone.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(number: u64, until_ms: Option<u64>) -> OpenRequest {
        let id = RpcId::from_value(&number.into()).unwrap();
        let progress = Some(id.clone());
        OpenRequest {
            id,
            kind: OpenRequestKind::List,
            stateless: false,
            progress,
            deadline_ms: until_ms,
        }
    }

    #[test]
    fn a_request_is_answered_once() {
        let mut ledger = OpenRequests::default();
        let one = open(1, Some(10));
        assert_eq!(ledger.add(one.clone()), AddResult::Open);
        assert_eq!(ledger.add(one.clone()), AddResult::DuplicateId);
        assert_eq!(ledger.remove(&one.id), Some(one.clone()));
        assert_eq!(ledger.remove(&one.id), None);
    }

    #[test]
    fn progress_extends_a_deadline_and_a_listening_request_has_none() {
        let mut ledger = OpenRequests::default();
        for open in [open(3, None), open(1, Some(10)), open(2, Some(12))] {
            assert_eq!(ledger.add(open), AddResult::Open);
        }
        ledger.extend_deadline(&RpcId::from_value(&1.into()).unwrap(), 30);
        ledger.extend_deadline(&RpcId::from_value(&3.into()).unwrap(), 30);
        assert_eq!(ledger.next_deadline_ms(), Some(12));
        assert_eq!(ledger.remove_late(12), [open(2, Some(12))]);
        assert_eq!(ledger.remove_late(100), [open(1, Some(30))]);
        let gone = ServerGone { how: "it ended".to_owned(), stderr: None };
        assert_eq!(ledger.close_all(gone.clone()), [open(3, None)]);
        assert_eq!(ledger.add(open(4, None)), AddResult::Gone(gone));
    }
}
