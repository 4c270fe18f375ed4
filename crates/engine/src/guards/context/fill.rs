//! How full one actor's context is, and how much its compactions freed.

use serde::{Deserialize, Serialize};

use super::ContextThresholds;
use crate::event::Payload;
use crate::id::RequestId;
use crate::state::short_hash;
use crate::verdict::{ContextLevel, Severity};

/// Without usage records, `estimate_lines` lines of output fill a context by this many percent.
const ESTIMATE_PCT: u64 = 70;

/// The assumed length of a line in a text that is too long to count.
const LINE_BYTES: u64 = 80;

/// The fill of one actor's context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContextFill {
    /// The tokens that the latest usage record reported.
    used: Option<u64>,
    /// The window from that record, or from the table of models.
    window: Option<u64>,
    /// The hash of that record's request id. `None` after a compaction.
    request: Option<u64>,
    /// Lines of output, counted while there is no usage record.
    lines: u64,
    /// The highest level that the agent was told about since the level last fell.
    told: Option<ContextLevel>,
    /// Whether the agent was told that the window is unknown.
    pub(super) told_unknown: bool,
    /// Whether the briefing for this rise was written.
    pub(super) briefed: bool,
    /// Whether a call was blocked since the context became full.
    pub(super) held: bool,
    /// The tokens before a compaction, until the next record shows what it freed.
    before: Option<u64>,
    /// Ineffective compactions in a row.
    pub(crate) ineffective: u32,
}

/// What one event tells about a context.
#[derive(Clone, Copy)]
pub(super) enum ContextEvent<'a> {
    /// A request used this many tokens.
    Usage {
        request: Option<&'a RequestId>,
        /// Whether the request was reported before.
        known: bool,
        used: u64,
        window: Option<u64>,
    },
    /// The context was compacted.
    Compaction {
        freed: Option<u64>,
    },
    /// A tool returned output.
    Output(&'a Payload),
    Nothing,
}

/// The state of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextStatus {
    pub(crate) used: Option<u64>,
    pub(crate) window: Option<u64>,
    pub(crate) pct: Option<u64>,
    pub(crate) level: ContextLevel,
    pub(crate) estimated: bool,
    /// Whether the block level is reached, also where the client cannot compact.
    pub(crate) full: bool,
    /// Whether the context was compacted and no record shows yet what that freed.
    pub(crate) outdated: bool,
}

impl ContextFill {
    /// Returns the fill after an event.
    pub(super) fn after(mut self, seen: ContextEvent<'_>, settings: ContextThresholds) -> Self {
        match seen {
            ContextEvent::Usage { request, known, used, window } => {
                let request = request.map(|request| short_hash(request.as_str()));
                // A repeated report of an older request is not the latest record.
                if known && request != self.request {
                    return self;
                }
                if let Some(before) = self.before.take() {
                    self.count_compaction(before, before.saturating_sub(used), settings);
                }
                self.used = Some(used);
                self.window = window.or(self.window);
                self.request = request;
                self.lines = 0;
            }
            ContextEvent::Compaction { freed } => {
                self.lines = 0;
                self.request = None;
                let Some(before) = self.used else { return self };
                match freed {
                    // A client that reports a small effect is believed. A large one is only a claim
                    // until the next record confirms it.
                    Some(freed) if !is_enough(before, freed, settings) => {
                        self.count_compaction(before, freed, settings);
                    }
                    _ => self.before = Some(before),
                }
                self.used = Some(before.saturating_sub(freed.unwrap_or(0)));
            }
            ContextEvent::Output(result) => {
                if self.used.is_none() {
                    self.lines = self.lines.saturating_add(count_lines(result));
                }
            }
            ContextEvent::Nothing => {}
        }
        self
    }

    /// Counts a compaction by what it freed. A compaction below the warning level need not free
    /// much; an effective one resets the counter.
    fn count_compaction(&mut self, before: u64, freed: u64, settings: ContextThresholds) {
        if is_enough(before, freed, settings) {
            self.ineffective = 0;
        } else if self
            .percent_of_window(before, settings)
            .is_some_and(|pct| pct >= settings.warn.into())
        {
            self.ineffective = self.ineffective.saturating_add(1);
        }
    }

    /// Converts tokens to percent of the window.
    fn percent_of_window(&self, used: u64, settings: ContextThresholds) -> Option<u64> {
        let window = settings.window.or(self.window).filter(|window| *window > 0);
        window.map(|window| percent(used, window))
    }

    /// Returns the state of the context. The level is never `Block` where the client cannot
    /// compact, or while the effect of a compaction is unknown.
    pub(crate) fn status(&self, settings: ContextThresholds, compacts: bool) -> ContextStatus {
        let Some(used) = self.used else { return self.estimate(settings) };
        let window = settings.window.or(self.window);
        let pct = self.percent_of_window(used, settings);
        let at = |threshold: u8| pct.is_some_and(|pct| pct >= u64::from(threshold));
        // A claimed figure is better than one that is surely outdated.
        let outdated = self.before.is_some() && self.before == self.used;
        let can_block = compacts && !outdated;
        let level = match pct {
            None => ContextLevel::Unknown,
            Some(_) if at(settings.block) && can_block => ContextLevel::Block,
            Some(_) if at(settings.compact) => ContextLevel::Compact,
            Some(_) if at(settings.warn) => ContextLevel::Warn,
            Some(_) => ContextLevel::Ok,
        };
        let full = at(settings.block) && !outdated;
        ContextStatus { used: Some(used), window, pct, level, estimated: false, full, outdated }
    }

    /// Estimates the fill from lines of output. An estimate only warns.
    fn estimate(&self, settings: ContextThresholds) -> ContextStatus {
        let pct =
            self.lines.saturating_mul(ESTIMATE_PCT) / u64::from(settings.estimate_lines.max(1));
        let warns = pct >= u64::from(settings.warn);
        let level = if warns { ContextLevel::Warn } else { ContextLevel::Ok };
        let (used, window) = (None, settings.window.or(self.window));
        let pct = Some(pct.min(100));
        ContextStatus { used, window, pct, level, estimated: true, full: false, outdated: false }
    }

    /// Returns whether the agent has not been told about this level yet.
    pub(super) fn should_report(&self, level: ContextLevel) -> bool {
        match level {
            ContextLevel::Unknown => !self.told_unknown,
            level => self.told.is_none_or(|told| told < level),
        }
    }

    /// Forgets what was told about levels that the context has left.
    pub(super) fn update_level(&mut self, level: ContextLevel) {
        self.briefed = level >= ContextLevel::Compact;
        self.held &= level == ContextLevel::Block;
        self.told = self.told.map(|told| told.min(level));
    }

    /// Records what the agent was told.
    pub(super) fn record_warning(&mut self, level: ContextLevel, severity: Severity) {
        match severity {
            Severity::Warning => self.told = Some(level),
            Severity::Info | Severity::Caution => self.told_unknown = true,
        }
    }

    /// Clears the compaction counters of a reset session; the fill stays.
    pub(crate) fn reset(&mut self) {
        self.ineffective = 0;
        self.before = None;
    }
}

/// Returns whether a compaction freed enough of `before` tokens.
fn is_enough(before: u64, freed: u64, settings: ContextThresholds) -> bool {
    let least = u128::from(settings.min_freed_pct) * u128::from(before);
    u128::from(freed) * 100 >= least
}

/// Returns used tokens as percent of the window, rounded down.
fn percent(used: u64, window: u64) -> u64 {
    let pct = u128::from(used) * 100 / u128::from(window.max(1));
    u64::try_from(pct).unwrap_or(u64::MAX)
}

fn count_lines(result: &Payload) -> u64 {
    match result {
        Payload::Inline(text) => text.lines().count() as u64,
        Payload::Elided { elided } => elided.bytes / LINE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(used: u64) -> ContextEvent<'static> {
        ContextEvent::Usage { request: None, known: false, used, window: Some(100_000) }
    }

    fn level(fill: &ContextFill, compacts: bool) -> ContextLevel {
        fill.status(ContextThresholds::default(), compacts).level
    }

    #[test]
    fn levels_are_reached_at_equality() {
        for (used, expected) in [
            (1, ContextLevel::Ok),
            (74_999, ContextLevel::Ok),
            (75_000, ContextLevel::Warn),
            (80_000, ContextLevel::Compact),
            (85_000, ContextLevel::Block),
            (u64::MAX, ContextLevel::Block),
        ] {
            let fill = ContextFill::default().after(usage(used), ContextThresholds::default());
            assert_eq!(level(&fill, true), expected, "{used}");
            assert_eq!(level(&fill, false), expected.min(ContextLevel::Compact), "{used}");
        }
    }

    #[test]
    fn an_estimate_only_warns() {
        let settings = ContextThresholds::default();
        let text = Payload::Inline("line\n".repeat(536));
        let fill = ContextFill::default().after(ContextEvent::Output(&text), settings);
        let status = fill.status(settings, true);
        assert_eq!((status.level, status.pct), (ContextLevel::Warn, Some(75)));
        assert!(status.estimated);
        let much = Payload::Inline("line\n".repeat(5_000));
        assert_eq!(
            level(&fill.after(ContextEvent::Output(&much), settings), true),
            ContextLevel::Warn
        );
    }

    #[test]
    fn a_compaction_is_judged_by_the_next_record_or_by_a_small_reported_effect() {
        let settings = ContextThresholds::default();
        let full = ContextFill::default().after(usage(90_000), settings);
        for (freed, next, ineffective) in [
            (Some(18_000), None, 0),
            (Some(17_999), None, 1),
            (Some(17_999), Some(90_000), 1),
            (Some(60_000), Some(72_000), 0),
            (Some(60_000), Some(90_000), 1),
            (None, None, 0),
            (None, Some(72_000), 0),
            (None, Some(72_001), 1),
            (None, Some(99_000), 1),
        ] {
            let mut fill = full.clone().after(ContextEvent::Compaction { freed }, settings);
            if let Some(used) = next {
                fill = fill.after(usage(used), settings);
            }
            assert_eq!(fill.ineffective, ineffective, "{freed:?} {next:?}");
        }
        // Below the warning level a compaction may free little; an effective one resets the
        // counter.
        let useless = full.after(ContextEvent::Compaction { freed: Some(1) }, settings);
        let roomy = useless.after(usage(30_000), settings);
        for (freed, ineffective) in [(Some(1), 1), (Some(6_000), 0), (None, 0)] {
            let after = roomy.clone().after(ContextEvent::Compaction { freed }, settings);
            assert_eq!(after.after(usage(24_000), settings).ineffective, ineffective, "{freed:?}");
        }
    }

    #[test]
    fn a_record_from_before_a_compaction_is_not_the_latest() {
        let settings = ContextThresholds::default();
        let request = RequestId::parse("r1").unwrap();
        let of_r1 = |known| ContextEvent::Usage {
            request: Some(&request),
            known,
            used: 90_000,
            window: Some(100_000),
        };
        let fill =
            ContextFill::default().after(of_r1(false), settings).after(of_r1(true), settings);
        let fill = fill.after(ContextEvent::Compaction { freed: Some(60_000) }, settings);
        let fill = fill.after(of_r1(true), settings);
        assert_eq!((fill.used, fill.ineffective), (Some(30_000), 0));
    }
}
