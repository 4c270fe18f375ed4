//! How long the reader looks out for an answer before it sleeps: to be woken takes longer
//! than some servers take to answer. Where that does not help it is tried less and less.

use super::clock::now_us;

/// How long is looked out for an answer.
const SPAN_US: u64 = 100;

/// After this many answers in a row that took longer, one in so many is still looked out for.
const MISSES_MAX: u32 = 10;

/// Whether it is worth to look out, by how it was before.
#[derive(Debug, Default)]
pub(super) struct Attention {
    until_us: Option<u64>,
    /// How often in a row no answer came in time.
    misses: u32,
    /// For how many calls nobody looks out.
    rests: u32,
}

impl Attention {
    /// A call was sent.
    pub(super) fn asked(&mut self) {
        self.asked_at(now_us());
    }

    /// The server has said something.
    pub(super) fn heard(&mut self) {
        if self.until_us.take().is_some() {
            self.misses = 0;
        }
    }

    /// Whether to go on looking out.
    pub(super) fn lasts(&mut self) -> bool {
        self.until_us.is_some() && self.lasts_at(now_us())
    }

    fn asked_at(&mut self, now_us: u64) {
        if self.rests > 0 {
            self.rests -= 1;
        } else {
            self.until_us = Some(now_us + SPAN_US);
        }
    }

    fn lasts_at(&mut self, now_us: u64) -> bool {
        let Some(until_us) = self.until_us else { return false };
        if now_us < until_us {
            return true;
        }
        self.until_us = None;
        self.misses = (self.misses + 1).min(MISSES_MAX);
        self.rests = 1 << self.misses;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_quick_is_looked_out_for() {
        let mut attention = Attention::default();
        for call in 0..100 {
            attention.asked_at(call * 1000);
            assert!(attention.lasts_at(call * 1000 + SPAN_US - 1));
            attention.heard();
            assert!(!attention.lasts_at(call * 1000 + SPAN_US));
        }
    }

    #[test]
    fn a_server_that_is_slow_costs_next_to_nothing() {
        let mut attention = Attention::default();
        let mut waited = 0;
        for call in 0..100_000 {
            attention.asked_at(call * 1000);
            if attention.lasts_at(call * 1000) {
                waited += 1;
                assert!(!attention.lasts_at(call * 1000 + SPAN_US));
            }
            attention.heard();
        }
        assert!((50..200).contains(&waited), "{waited}");
        // One quick answer, and it is worth it again.
        while !attention.lasts_at(0) {
            attention.asked_at(0);
        }
        attention.heard();
        attention.asked_at(0);
        assert!(attention.lasts_at(0));
    }
}
