//! Decides how long the reader polls for an answer before it sleeps. Waking a thread takes longer
//! than some servers take to answer. If polling does not help, the reader polls less and less
//! often.

use super::clock::now_us;

/// How long the reader polls for an answer.
const POLL_US_MAX: u64 = 100;

/// The maximum of counted misses. After `n` misses in a row, the reader skips polling for 2^n
/// calls.
const MISSES_MAX: u32 = 10;

/// Whether polling is worthwhile, based on the last calls.
#[derive(Debug, Default)]
pub(super) struct AnswerPolling {
    until_us: Option<u64>,
    /// How many answers in a row came too late for polling.
    misses: u32,
    /// For how many more calls polling is skipped.
    calls_to_skip: u32,
}

impl AnswerPolling {
    /// Notes that a call was sent.
    pub(super) fn note_call(&mut self) {
        self.note_call_at(now_us());
    }

    /// Notes that the server sent something.
    pub(super) fn note_answer(&mut self) {
        if self.until_us.take().is_some() {
            self.misses = 0;
        }
    }

    /// Whether to continue polling.
    pub(super) fn should_poll(&mut self) -> bool {
        self.until_us.is_some() && self.should_poll_at(now_us())
    }

    fn note_call_at(&mut self, now_us: u64) {
        if self.calls_to_skip > 0 {
            self.calls_to_skip -= 1;
        } else {
            self.until_us = Some(now_us + POLL_US_MAX);
        }
    }

    fn should_poll_at(&mut self, now_us: u64) -> bool {
        let Some(until_us) = self.until_us else { return false };
        if now_us < until_us {
            return true;
        }
        self.until_us = None;
        self.misses = (self.misses + 1).min(MISSES_MAX);
        self.calls_to_skip = 1 << self.misses;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_polls_for_a_quick_server() {
        let mut attention = AnswerPolling::default();
        for call in 0..100 {
            attention.note_call_at(call * 1000);
            assert!(attention.should_poll_at(call * 1000 + POLL_US_MAX - 1));
            attention.note_answer();
            assert!(!attention.should_poll_at(call * 1000 + POLL_US_MAX));
        }
    }

    #[test]
    fn a_slow_server_costs_almost_no_polling() {
        let mut attention = AnswerPolling::default();
        let mut waited = 0;
        for call in 0..100_000 {
            attention.note_call_at(call * 1000);
            if attention.should_poll_at(call * 1000) {
                waited += 1;
                assert!(!attention.should_poll_at(call * 1000 + POLL_US_MAX));
            }
            attention.note_answer();
        }
        assert!((50..200).contains(&waited), "{waited}");
        // After one quick answer, polling is worthwhile again.
        while !attention.should_poll_at(0) {
            attention.note_call_at(0);
        }
        attention.note_answer();
        attention.note_call_at(0);
        assert!(attention.should_poll_at(0));
    }
}
