//! The interface of the server behind the proxy, wherever it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::open_requests::OpenRequest;
use super::output_pipe::Backlog;
use super::proxy_shared::ProxyShared;

/// A running server. No method blocks, except `end`, which has its own timeout.
pub(super) trait ProxiedServer: Send + Sync {
    /// Sends a line of the client, without its newline.
    fn send(&self, shared: &ProxyShared, line: Vec<u8>);

    /// The bytes that the server has not accepted yet, if there are any.
    fn backlog(&self) -> Option<Backlog> {
        None
    }

    /// Sends as much of these bytes as the server accepts. A server that accepts nothing for too
    /// long counts as lost.
    fn flush(&self, _: &ProxyShared) {}

    /// Cancels a request. The notice is the cancel message, if the protocol has one.
    fn cancel_request(&self, open: &OpenRequest, notice: Option<&str>);

    /// Tells the server that no more messages follow.
    fn close(&self);

    /// Ends the server. Returns a description of how it ended.
    fn end(&self, shared: &ProxyShared) -> String;

    /// The last output on standard error, if the server has one.
    fn last_stderr(&self) -> Option<String>;

    /// Passes on the list of tools, for servers that need headers for some calls.
    fn note_tools(&self, _: &ProxyShared, _: &[Value]) {}
}

/// The work of a thread that watches a server.
pub(super) type Watcher = Box<dyn FnOnce(&Arc<ProxyShared>) + Send>;

/// Locks a mutex even if a thread panicked while holding it. The guarded values are consistent
/// after every step.
pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
