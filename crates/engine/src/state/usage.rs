//! Token counts and costs. A request that is reported several times counts once.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Phase, SessionState};
use crate::event::{Event, EventKind, UsageReported};
use crate::id::{ActorId, RequestId};
use crate::time::Timestamp;

/// How many of the latest requests a later report can still update.
const REPLACEABLE_MAX: usize = 64;

/// How many older requests are remembered as counted. If an even older request is reported again,
/// it counts again.
const COUNTED_MAX: usize = 1984;

/// How many names of models without a price are stored, and how many bytes of each name.
const UNPRICED_MAX: usize = 8;
const MODEL_BYTES_MAX: usize = 48;

/// Token counts of the session and of its current turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsageCounter {
    pub(crate) session: UsageTotals,
    pub(crate) turn: UsageTotals,
    requests: VecDeque<ReportedRequest>,
    /// Requests that were counted and can no longer be updated.
    counted: VecDeque<[u8; 6]>,
    /// The first turn that counts for the session.
    since_turn: u64,
    /// Models without a price, in the order in which they were used.
    unpriced: Vec<String>,
}

/// The last report on a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ReportedRequest {
    request: u64,
    /// The turn in which the request was first reported. It counts only in that turn.
    turn: u64,
    used: UsageTotals,
}

/// Sums of token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that came from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_creation: u64,
    /// The known cost, in millionths of a dollar.
    pub cost_micros: u64,
    /// How many requests have an unknown cost.
    pub unpriced: u64,
    /// How many requests have unreadable counts. The counts above are then a minimum.
    pub unknown: u64,
}

/// The content of one usage report.
pub(crate) struct UsageReport<'a> {
    pub(crate) actor: &'a ActorId,
    pub(crate) request: Option<&'a RequestId>,
    pub(crate) model: Option<&'a str>,
    pub(crate) used: UsageTotals,
    pub(crate) window: Option<u64>,
    /// The cost, if the reporter knows it.
    pub(crate) cost_micros: Option<u64>,
}

impl<'a> UsageReport<'a> {
    /// The usage report in an event.
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

    /// A hash of the request. Two actors may use the same request id.
    fn key(&self) -> Option<u64> {
        let request = self.request?.as_str();
        Some(if self.actor.is_main() {
            super::short_hash(request)
        } else {
            super::short_hash(&format!("{}\0{request}", self.actor))
        })
    }
}

impl UsageTotals {
    /// Input and output tokens, without tokens from the cache.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// How many tokens of the context window one request used.
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

    /// Combines two reports on one request. An allowance only goes down, so the larger counts are
    /// valid. A value that is known in one report is known.
    fn merged_with(self, other: Self) -> Self {
        Self {
            unpriced: self.unpriced.min(other.unpriced),
            unknown: self.unknown.min(other.unknown),
            ..self.combine(other, u64::max)
        }
    }
}

impl SessionState {
    /// Whether counting a report would change nothing.
    pub(crate) fn has_counted(&self, report: &Event, reported_at: Option<Timestamp>) -> bool {
        let has_ended = matches!(self.phase, Phase::Stopped(_) | Phase::Ended(_));
        let is_older = reported_at.is_some_and(|reported_at| reported_at < self.clock.started());
        let is_counted =
            || UsageReport::of(report).is_some_and(|report| self.usage.is_counted(&report));
        has_ended || is_older || is_counted()
    }
}

impl UsageCounter {
    /// Counts a report with its cost. A later report on the same request adds only the difference
    /// to the earlier one.
    pub(crate) fn count_report(&mut self, report: &UsageReport<'_>, used: UsageTotals, turn: u64) {
        let key = report.key();
        if key.is_some_and(|request| self.counted.contains(&short_key(request))) {
            return;
        }
        let earlier = key.and_then(|request| self.replace(ReportedRequest { request, turn, used }));
        let (before, used, reported_in) = match earlier {
            Some(earlier) => (earlier.used, earlier.used.merged_with(used), earlier.turn),
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
    pub(crate) fn has_request(&self, report: &UsageReport<'_>) -> bool {
        let Some(request) = report.key() else { return false };
        self.requests.iter().any(|known| known.request == request)
            || self.counted.contains(&short_key(request))
    }

    /// Whether a report contains nothing new: its request was counted with at least as many tokens,
    /// or is too old to be updated.
    pub(crate) fn is_counted(&self, report: &UsageReport<'_>) -> bool {
        let Some(request) = report.key() else { return false };
        let tokens = |used: UsageTotals| {
            [used.input, used.output, used.cache_read, used.cache_creation, used.unknown]
        };
        let covers = |known: &ReportedRequest| {
            known.request == request
                && tokens(known.used) == tokens(known.used.merged_with(report.used))
        };
        self.requests.iter().any(covers) || self.counted.contains(&short_key(request))
    }

    /// Remembers the name of a model without a price.
    pub(crate) fn remember_unpriced(&mut self, model: &str) {
        let name = String::from(super::text_prefix(model, MODEL_BYTES_MAX));
        if self.unpriced.len() < UNPRICED_MAX && !self.unpriced.contains(&name) {
            self.unpriced.push(name);
        }
    }

    /// The models whose cost is missing in these totals.
    pub(crate) fn unpriced(&self, totals: &UsageTotals) -> &[String] {
        if totals.unpriced > 0 { &self.unpriced } else { &[] }
    }

    /// Starts to count from zero, with turn `turn`.
    pub(crate) fn reset(&mut self, turn: u64) {
        self.session = UsageTotals::default();
        self.turn = UsageTotals::default();
        self.since_turn = turn;
        self.unpriced.clear();
    }

    /// Stores a report, and returns the earlier report on the same request.
    fn replace(&mut self, report: ReportedRequest) -> Option<ReportedRequest> {
        let existing =
            self.requests.iter_mut().rev().find(|existing| existing.request == report.request);
        if let Some(existing) = existing {
            let earlier = existing.clone();
            existing.used = existing.used.merged_with(report.used);
            return Some(earlier);
        }
        if self.requests.len() >= REPLACEABLE_MAX
            && let Some(oldest) = self.requests.pop_front()
        {
            if self.counted.len() >= COUNTED_MAX {
                self.counted.pop_front();
            }
            self.counted.push_back(short_key(oldest.request));
        }
        self.requests.push_back(report);
        None
    }
}

/// Six bytes of a hash. A collision among a few thousand requests is very unlikely.
fn short_key(request: u64) -> [u8; 6] {
    request.to_le_bytes().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64) -> UsageTotals {
        UsageTotals { input, output, ..UsageTotals::default() }
    }

    fn report_of<'a>(
        actor: &'a ActorId,
        request: Option<&'a RequestId>,
        used: UsageTotals,
    ) -> UsageReport<'a> {
        UsageReport { actor, request, model: None, used, window: None, cost_micros: None }
    }

    impl UsageCounter {
        /// A report of the main agent.
        fn count_main(&mut self, request: Option<&RequestId>, used: UsageTotals, turn: u64) {
            self.count_report(&report_of(&ActorId::main(), request, used), used, turn);
        }
    }

    #[test]
    fn requests_of_two_actors_that_share_a_name_both_count() {
        let mut usage = UsageCounter::default();
        let request = RequestId::parse("r1").unwrap();
        for actor in ["main", "a", "b", "a"] {
            let actor = ActorId::parse(actor).unwrap();
            usage.count_report(&report_of(&actor, Some(&request), used(600, 0)), used(600, 0), 1);
        }
        assert_eq!(usage.session.total(), 1800);
    }

    #[test]
    fn counted_tokens_are_never_subtracted() {
        let mut usage = UsageCounter::default();
        let request = RequestId::parse("r1").unwrap();
        usage.count_main(Some(&request), used(900, 0), 1);
        usage.count_main(Some(&request), used(1, 5), 1);
        assert_eq!((usage.session, usage.turn), (used(900, 5), used(900, 5)));
    }

    #[test]
    fn an_unknown_count_is_replaced_when_it_becomes_known() {
        let mut usage = UsageCounter::default();
        let (request, unknown) =
            (RequestId::parse("r1").unwrap(), UsageTotals { unknown: 1, ..used(0, 0) });
        let main = ActorId::main();
        assert!(!usage.is_counted(&report_of(&main, Some(&request), unknown)));
        usage.count_main(Some(&request), unknown, 1);
        assert!(usage.is_counted(&report_of(&main, Some(&request), unknown)));
        assert_eq!(usage.session.unknown, 1);
        assert!(!usage.is_counted(&report_of(&main, Some(&request), used(7, 0))));
        usage.count_main(Some(&request), used(7, 0), 1);
        assert_eq!(usage.session, used(7, 0));
        usage.count_main(Some(&request), unknown, 1);
        assert_eq!(usage.session, used(7, 0));
    }

    #[test]
    fn reading_a_transcript_twice_counts_once() {
        let mut usage = UsageCounter::default();
        let request = RequestId::parse("r1").unwrap();
        usage.count_main(Some(&request), used(10, 1), 1);
        usage.count_main(Some(&request), used(10, 5), 1);
        usage.count_main(None, used(1, 1), 1);
        usage.count_main(None, used(1, 1), 1);
        assert_eq!(usage.session.total(), 19);
    }

    #[test]
    fn a_long_transcript_read_again_counts_once() {
        let mut usage = UsageCounter::default();
        for _ in 0..2 {
            for n in 0..2000 {
                let request = RequestId::parse(alloc::format!("r{n}")).unwrap();
                usage.count_main(Some(&request), used(1, 0), 1);
            }
        }
        assert_eq!(usage.session.total(), 2000);
    }

    #[test]
    fn a_report_is_new_until_the_same_counts_are_counted() {
        let mut usage = UsageCounter::default();
        let has = |usage: &UsageCounter, request: Option<&str>, used| {
            let request = request.map(|request| RequestId::parse(request).unwrap());
            usage.is_counted(&report_of(&ActorId::main(), request.as_ref(), used))
        };
        assert!(!has(&usage, Some("r1"), used(10, 1)));
        let priced = UsageTotals { cost_micros: 7, ..used(10, 1) };
        usage.count_main(Some(&RequestId::parse("r1").unwrap()), priced, 1);
        assert!(has(&usage, Some("r1"), used(10, 1)));
        assert!(!has(&usage, Some("r1"), used(10, 5)), "the request has more output tokens");
        assert!(!has(&usage, None, used(10, 1)), "a request without an id can't be recognised");
        for n in 0..REPLACEABLE_MAX {
            let request = RequestId::parse(alloc::format!("n{n}")).unwrap();
            usage.count_main(Some(&request), used(1, 0), 1);
        }
        assert!(has(&usage, Some("r1"), used(10, 5)), "the request is too old to be updated");
    }

    #[test]
    fn a_request_counts_in_its_own_turn_only() {
        let mut usage = UsageCounter::default();
        let request = RequestId::parse("r1").unwrap();
        usage.count_main(Some(&request), used(90, 0), 1);
        usage.turn = UsageTotals::default();
        usage.count_main(None, used(5, 0), 2);
        usage.count_main(Some(&request), used(95, 0), 2);
        assert_eq!((usage.session.total(), usage.turn.total()), (100, 5));
        usage.reset(3);
        usage.count_main(Some(&request), used(99, 0), 3);
        assert_eq!((usage.session.total(), usage.turn.total()), (0, 0));
    }

    #[test]
    fn huge_counts_saturate() {
        let mut usage = UsageCounter::default();
        usage.count_main(None, used(u64::MAX, u64::MAX), 1);
        usage.count_main(None, used(1, 1), 1);
        assert_eq!(usage.session.total(), u64::MAX);
    }
}
