//! Tokens and what they cost, counted once however often they are reported.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Phase, State};
use crate::event::{Event, EventKind, UsageReported};
use crate::id::{ActorId, RequestId};
use crate::time::Timestamp;

/// How many of the latest requests can be replaced by a later report.
const REPLACEABLE_MAX: usize = 64;

/// How many requests are known to have been counted. Beyond that many, a
/// request that is reported again counts again.
const COUNTED_MAX: usize = 1984;

/// How many models without a price are remembered by name, and how much of it.
const UNPRICED_MAX: usize = 8;
const MODEL_BYTES_MAX: usize = 48;

/// Token counts of a session and of its turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) session: UsageTotals,
    pub(crate) turn: UsageTotals,
    requests: VecDeque<Reported>,
    /// Requests that were counted and can no longer be replaced.
    counted: VecDeque<[u8; 6]>,
    /// The turn since which the session counts.
    since_turn: u64,
    /// Models without a price, in the order in which they were met.
    unpriced: Vec<String>,
}

/// What was last reported on a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Reported {
    request: u64,
    /// The turn in which it was reported first: it counts there and nowhere else.
    turn: u64,
    used: UsageTotals,
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
    /// What they cost, in millionths of a dollar, as far as that is known.
    pub cost_micros: u64,
    /// How many requests have a cost that nobody knows.
    pub unpriced: u64,
    /// How many requests used what nobody could read: at least the counts above were used.
    pub unknown: u64,
}

/// What one report says.
pub(crate) struct Report<'a> {
    pub(crate) actor: &'a ActorId,
    pub(crate) request: Option<&'a RequestId>,
    pub(crate) model: Option<&'a str>,
    pub(crate) used: UsageTotals,
    pub(crate) window: Option<u64>,
    /// What it cost, where the reporter knows.
    pub(crate) cost_micros: Option<u64>,
}

impl<'a> Report<'a> {
    /// The report that an event is.
    pub(crate) fn of(event: &'a Event) -> Option<Self> {
        let EventKind::UsageReported(UsageReported {
            request,
            model,
            input,
            cache_read,
            cache_creation,
            output,
            window,
            cost_micros,
            unknown,
        }) = &event.kind
        else {
            return None;
        };
        let used = UsageTotals {
            input: *input,
            output: *output,
            cache_read: *cache_read,
            cache_creation: *cache_creation,
            unknown: u64::from(*unknown),
            ..UsageTotals::default()
        };
        let (actor, request, model) = (&event.actor, request.as_ref(), model.as_deref());
        Some(Self { actor, request, model, used, window: *window, cost_micros: *cost_micros })
    }

    /// The request in short. Two actors may call theirs the same.
    fn key(&self) -> Option<u64> {
        let request = self.request?.as_str();
        Some(if self.actor.is_main() {
            super::short(request)
        } else {
            super::short(&format!("{}\0{request}", self.actor))
        })
    }
}

impl UsageTotals {
    /// What was read and written; what came from a cache is not counted again.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What one request took up of the model's window.
    pub(crate) fn in_context(&self) -> u64 {
        self.total().saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }

    fn combine(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: f(self.input, other.input),
            output: f(self.output, other.output),
            cache_read: f(self.cache_read, other.cache_read),
            cache_creation: f(self.cache_creation, other.cache_creation),
            cost_micros: f(self.cost_micros, other.cost_micros),
            unpriced: f(self.unpriced, other.unpriced),
            unknown: f(self.unknown, other.unknown),
        }
    }

    /// What two reports on one request come to. Allowances only go down, so the
    /// larger counts stand; what one of them knows is known.
    fn joined(self, other: Self) -> Self {
        Self {
            unpriced: self.unpriced.min(other.unpriced),
            unknown: self.unknown.min(other.unknown),
            ..self.combine(other, u64::max)
        }
    }
}

impl State {
    /// Whether counting a report would change nothing.
    pub(crate) fn has_counted(&self, report: &Event, said: Option<Timestamp>) -> bool {
        let is_over = matches!(self.phase, Phase::Stopped(_) | Phase::Ended(_));
        let is_anothers = said.is_some_and(|said| said < self.clock.started());
        let is_known = || Report::of(report).is_some_and(|report| self.usage.has(&report));
        is_over || is_anothers || is_known()
    }
}

impl Usage {
    /// Counts a report, with its cost; a later one on the same request adds what it
    /// says beyond the earlier one.
    pub(crate) fn report(&mut self, report: &Report<'_>, used: UsageTotals, turn: u64) {
        let known = report.key();
        if known.is_some_and(|request| self.counted.contains(&shorter(request))) {
            return;
        }
        let earlier = known.and_then(|request| self.replace(Reported { request, turn, used }));
        let (before, used, reported_in) = match earlier {
            Some(earlier) => (earlier.used, earlier.used.joined(used), earlier.turn),
            None => (UsageTotals::default(), used, turn),
        };
        let counts = |totals: &mut UsageTotals| {
            let without = totals.combine(before, u64::saturating_sub);
            *totals = without.combine(used, u64::saturating_add);
        };
        if reported_in >= self.since_turn {
            counts(&mut self.session);
        }
        if reported_in == turn {
            counts(&mut self.turn);
        }
    }

    /// Whether a request was reported before.
    pub(crate) fn knows(&self, report: &Report<'_>) -> bool {
        let Some(request) = report.key() else { return false };
        self.requests.iter().any(|known| known.request == request)
            || self.counted.contains(&shorter(request))
    }

    /// Whether a report says nothing new: its request was counted with no fewer
    /// tokens, or so long ago that nothing replaces it any more.
    pub(crate) fn has(&self, report: &Report<'_>) -> bool {
        let Some(request) = report.key() else { return false };
        let tokens = |used: UsageTotals| {
            [used.input, used.output, used.cache_read, used.cache_creation, used.unknown]
        };
        let covers = |known: &Reported| {
            known.request == request && tokens(known.used) == tokens(known.used.joined(report.used))
        };
        self.requests.iter().any(covers) || self.counted.contains(&shorter(request))
    }

    /// Remembers a model without a price.
    pub(crate) fn remember_unpriced(&mut self, model: &str) {
        let name = String::from(super::beginning(model, MODEL_BYTES_MAX));
        if self.unpriced.len() < UNPRICED_MAX && !self.unpriced.contains(&name) {
            self.unpriced.push(name);
        }
    }

    /// The models whose cost is missing in these totals.
    pub(crate) fn unpriced(&self, totals: &UsageTotals) -> &[String] {
        if totals.unpriced > 0 { &self.unpriced } else { &[] }
    }

    /// Starts to count anew, with turn `turn`.
    pub(crate) fn reset(&mut self, turn: u64) {
        self.session = UsageTotals::default();
        self.turn = UsageTotals::default();
        self.since_turn = turn;
        self.unpriced.clear();
    }

    /// Remembers a report, and gives the earlier one on the same request.
    fn replace(&mut self, report: Reported) -> Option<Reported> {
        let known = self.requests.iter_mut().rev().find(|known| known.request == report.request);
        if let Some(known) = known {
            let earlier = known.clone();
            known.used = known.used.joined(report.used);
            return Some(earlier);
        }
        if self.requests.len() >= REPLACEABLE_MAX
            && let Some(oldest) = self.requests.pop_front()
        {
            if self.counted.len() >= COUNTED_MAX {
                self.counted.pop_front();
            }
            self.counted.push_back(shorter(oldest.request));
        }
        self.requests.push_back(report);
        None
    }
}

/// Six bytes of a hash: two requests out of thousands don't share them.
fn shorter(request: u64) -> [u8; 6] {
    request.to_le_bytes().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64) -> UsageTotals {
        UsageTotals { input, output, ..UsageTotals::default() }
    }

    fn said<'a>(
        actor: &'a ActorId,
        request: Option<&'a RequestId>,
        used: UsageTotals,
    ) -> Report<'a> {
        Report { actor, request, model: None, used, window: None, cost_micros: None }
    }

    impl Usage {
        /// A report of the main agent.
        fn hears(&mut self, request: Option<&RequestId>, used: UsageTotals, turn: u64) {
            self.report(&said(&ActorId::main(), request, used), used, turn);
        }
    }

    #[test]
    fn requests_of_two_actors_that_share_a_name_both_count() {
        let mut usage = Usage::default();
        let request = RequestId::parse("r1").unwrap();
        for actor in ["main", "a", "b", "a"] {
            let actor = ActorId::parse(actor).unwrap();
            usage.report(&said(&actor, Some(&request), used(600, 0)), used(600, 0), 1);
        }
        assert_eq!(usage.session.total(), 1800);
    }

    #[test]
    fn what_was_counted_is_not_taken_back() {
        let mut usage = Usage::default();
        let request = RequestId::parse("r1").unwrap();
        usage.hears(Some(&request), used(900, 0), 1);
        usage.hears(Some(&request), used(1, 5), 1);
        assert_eq!((usage.session, usage.turn), (used(900, 5), used(900, 5)));
    }

    #[test]
    fn what_is_unknown_is_counted_until_it_is_known() {
        let mut usage = Usage::default();
        let (request, unknown) =
            (RequestId::parse("r1").unwrap(), UsageTotals { unknown: 1, ..used(0, 0) });
        let main = ActorId::main();
        assert!(!usage.has(&said(&main, Some(&request), unknown)));
        usage.hears(Some(&request), unknown, 1);
        assert!(usage.has(&said(&main, Some(&request), unknown)));
        assert_eq!(usage.session.unknown, 1);
        assert!(!usage.has(&said(&main, Some(&request), used(7, 0))));
        usage.hears(Some(&request), used(7, 0), 1);
        assert_eq!(usage.session, used(7, 0));
        usage.hears(Some(&request), unknown, 1);
        assert_eq!(usage.session, used(7, 0));
    }

    #[test]
    fn reading_a_transcript_twice_counts_once() {
        let mut usage = Usage::default();
        let request = RequestId::parse("r1").unwrap();
        usage.hears(Some(&request), used(10, 1), 1);
        usage.hears(Some(&request), used(10, 5), 1);
        usage.hears(None, used(1, 1), 1);
        usage.hears(None, used(1, 1), 1);
        assert_eq!(usage.session.total(), 19);
    }

    #[test]
    fn a_long_transcript_read_again_counts_once() {
        let mut usage = Usage::default();
        for _ in 0..2 {
            for n in 0..2000 {
                let request = RequestId::parse(alloc::format!("r{n}")).unwrap();
                usage.hears(Some(&request), used(1, 0), 1);
            }
        }
        assert_eq!(usage.session.total(), 2000);
    }

    #[test]
    fn a_report_is_news_until_it_is_counted_as_it_is() {
        let mut usage = Usage::default();
        let has = |usage: &Usage, request: Option<&str>, used| {
            let request = request.map(|request| RequestId::parse(request).unwrap());
            usage.has(&said(&ActorId::main(), request.as_ref(), used))
        };
        assert!(!has(&usage, Some("r1"), used(10, 1)));
        let priced = UsageTotals { cost_micros: 7, ..used(10, 1) };
        usage.hears(Some(&RequestId::parse("r1").unwrap()), priced, 1);
        assert!(has(&usage, Some("r1"), used(10, 1)));
        assert!(!has(&usage, Some("r1"), used(10, 5)), "more of it was written");
        assert!(!has(&usage, None, used(10, 1)), "nobody knows which one it is");
        for n in 0..REPLACEABLE_MAX {
            let request = RequestId::parse(alloc::format!("n{n}")).unwrap();
            usage.hears(Some(&request), used(1, 0), 1);
        }
        assert!(has(&usage, Some("r1"), used(10, 5)), "it is too late for that");
    }

    #[test]
    fn a_request_counts_in_its_own_turn_only() {
        let mut usage = Usage::default();
        let request = RequestId::parse("r1").unwrap();
        usage.hears(Some(&request), used(90, 0), 1);
        usage.turn = UsageTotals::default();
        usage.hears(None, used(5, 0), 2);
        usage.hears(Some(&request), used(95, 0), 2);
        assert_eq!((usage.session.total(), usage.turn.total()), (100, 5));
        usage.reset(3);
        usage.hears(Some(&request), used(99, 0), 3);
        assert_eq!((usage.session.total(), usage.turn.total()), (0, 0));
    }

    #[test]
    fn huge_counts_saturate() {
        let mut usage = Usage::default();
        usage.hears(None, used(u64::MAX, u64::MAX), 1);
        usage.hears(None, used(1, 1), 1);
        assert_eq!(usage.session.total(), u64::MAX);
    }
}
