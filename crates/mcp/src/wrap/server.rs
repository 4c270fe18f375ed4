//! What is behind the proxy, wherever it runs: all that the guard has to know of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::ledger::Open;
use super::outlet::Backlog;
use super::shared::Shared;

/// A server at work. Nothing here waits for it, but for `end`, which has an end of its own.
pub(super) trait Server: Send + Sync {
    /// Gives it a line of the client, without its newline.
    fn send(&self, shared: &Shared, line: Vec<u8>);

    /// What it did not take of what it was given, if anything.
    fn backlog(&self) -> Option<Backlog> {
        None
    }

    /// Gives it that, as far as it takes it; one that takes nothing for too long is lost.
    fn flush(&self, _: &Shared) {}

    /// Nobody waits for an answer any more. The notice is a message that says so, where
    /// the protocol has one.
    fn take_back(&self, open: &Open, notice: Option<&str>);

    /// Says that nothing more will come.
    fn close(&self);

    /// Ends what is left of it, and says how it ended.
    fn end(&self, shared: &Shared) -> String;

    /// The last it said to people, where it can.
    fn last_words(&self) -> Option<String>;

    /// Looks at its tools, where how they are called hangs on that.
    fn listed(&self, _: &Shared, _: &[Value]) {}
}

/// What hears something of a server, in a thread of its own.
pub(super) type Ear = Box<dyn FnOnce(&Arc<Shared>) + Send>;

/// A lock whose holder has panicked is taken all the same: what it guards is whole
/// after every step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
