//! Tokens, counted once however often they are reported.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::RequestId;

/// How many of the latest requests can be replaced by a later report.
const REQUESTS_MAX: usize = 512;

/// Token counts of a session and of its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) session: UsageTotals,
    pub(crate) turn: UsageTotals,
    requests: VecDeque<(u64, UsageTotals)>,
}

/// Sums of token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    pub cache_creation: u64,
}

impl UsageTotals {
    /// What was read and written; what came from a cache is not counted again.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    fn combine(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: f(self.input, other.input),
            output: f(self.output, other.output),
            cache_read: f(self.cache_read, other.cache_read),
            cache_creation: f(self.cache_creation, other.cache_creation),
        }
    }
}

impl Usage {
    /// Counts a report; a report on the same request replaces the earlier one.
    pub(crate) fn report(&mut self, request: Option<&RequestId>, used: UsageTotals) {
        let earlier =
            request.and_then(|request| self.replace(super::short(request.as_str()), used));
        for totals in [&mut self.session, &mut self.turn] {
            let without = totals.combine(earlier.unwrap_or_default(), u64::saturating_sub);
            *totals = without.combine(used, u64::saturating_add);
        }
    }

    fn replace(&mut self, request: u64, used: UsageTotals) -> Option<UsageTotals> {
        if let Some((_, known)) = self.requests.iter_mut().rev().find(|(id, _)| *id == request) {
            return Some(core::mem::replace(known, used));
        }
        if self.requests.len() >= REQUESTS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back((request, used));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64) -> UsageTotals {
        UsageTotals { input, output, ..UsageTotals::default() }
    }

    #[test]
    fn reading_a_transcript_twice_counts_once() {
        let mut usage = Usage::default();
        let request = RequestId::parse("r1").unwrap();
        usage.report(Some(&request), used(10, 1));
        usage.report(Some(&request), used(10, 5));
        usage.report(None, used(1, 1));
        usage.report(None, used(1, 1));
        assert_eq!(usage.session.total(), 19);
    }

    #[test]
    fn huge_counts_saturate() {
        let mut usage = Usage::default();
        usage.report(None, used(u64::MAX, u64::MAX));
        usage.report(None, used(1, 1));
        assert_eq!(usage.session.total(), u64::MAX);
    }
}
