//! The ids of the calls of one session.

use jackline_engine::CallId;

use jackline_host::clock;

/// Numbers calls, and makes ids of the numbers.
pub(super) struct CallIds {
    /// The text before each number.
    prefix: String,
    last: u64,
}

impl Default for CallIds {
    fn default() -> Self {
        Self { prefix: "c".to_owned(), last: 0 }
    }
}

impl CallIds {
    /// Ids for a guest in a session that another process has started. That process numbers its own
    /// calls, and so does every other guest.
    pub(super) fn of_guest(client: &str) -> Self {
        let (ms, process) = (clock::now().wall.as_ms(), std::process::id());
        Self { prefix: format!("{client}-{ms}-{process}-"), last: 0 }
    }

    /// Returns a number that no other call of the session has.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Continues with the numbers after this one.
    pub(super) fn continue_after(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// The id of a call by its number.
    pub(super) fn id(&self, number: u64) -> Option<CallId> {
        CallId::parse(format!("{}{number}", self.prefix)).ok()
    }
}
