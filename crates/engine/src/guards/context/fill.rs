//! How full one actor's context is, and what its compactions brought.

use serde::{Deserialize, Serialize};

use super::Context;
use crate::event::Payload;
use crate::id::RequestId;
use crate::state::short;
use crate::verdict::{ContextLevel, Severity};

/// So many lines of output fill a context by so many percent, where nothing
/// better is known.
const LINES: u64 = 500;
const LINES_PCT: u64 = 70;

/// How many bytes a line has where a text is too long to be counted.
const LINE_BYTES: u64 = 80;

/// One actor's context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fill {
    /// What the latest usage record took up.
    used: Option<u64>,
    /// The window that came with it, or that the table knows.
    window: Option<u64>,
    /// The request of that record; none once the context was compacted.
    request: Option<u64>,
    /// Lines of output, while there is no usage record.
    lines: u64,
    /// The highest level the agent was told of since it last fell.
    told: Option<ContextLevel>,
    /// Whether it was told that the window is unknown.
    pub(super) told_unknown: bool,
    /// Whether the briefing for this rise was written.
    pub(super) briefed: bool,
    /// Whether a call was held since it was full last.
    pub(super) held: bool,
    /// What was used before a compaction, until a record says what it brought.
    before: Option<u64>,
    /// Compactions in a row that freed next to nothing.
    pub(crate) ineffective: u32,
}

/// What an event says about a context.
#[derive(Clone, Copy)]
pub(super) enum Seen<'a> {
    /// How much a request took up.
    Usage {
        request: Option<&'a RequestId>,
        /// Whether the request was reported before.
        known: bool,
        used: u64,
        window: Option<u64>,
    },
    /// It was compacted.
    Compaction {
        freed: Option<u64>,
    },
    /// A tool gave something back.
    Output(&'a Payload),
    Nothing,
}

/// Where a context stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) used: Option<u64>,
    pub(crate) window: Option<u64>,
    pub(crate) pct: Option<u64>,
    pub(crate) level: ContextLevel,
    pub(crate) estimated: bool,
    /// Whether it is as full as can be, whoever could do something about it.
    pub(crate) full: bool,
    /// Whether it was compacted since, and nobody knows yet what that brought.
    pub(crate) outdated: bool,
}

impl Fill {
    /// The context after an event.
    pub(super) fn after(mut self, seen: Seen<'_>, settings: Context) -> Self {
        match seen {
            Seen::Usage { request, known, used, window } => {
                let request = request.map(|request| short(request.as_str()));
                // An old record that is told again is not the latest one.
                if known && request != self.request {
                    return self;
                }
                if let Some(before) = self.before.take() {
                    self.judge(before, before.saturating_sub(used), settings);
                }
                self.used = Some(used);
                self.window = window.or(self.window);
                self.request = request;
                self.lines = 0;
            }
            Seen::Compaction { freed } => {
                self.lines = 0;
                self.request = None;
                let Some(before) = self.used else { return self };
                match freed {
                    // Who says that it freed little is believed. What else it says
                    // is a claim, which the next record bears out or not.
                    Some(freed) if !is_enough(before, freed, settings) => {
                        self.judge(before, freed, settings);
                    }
                    _ => self.before = Some(before),
                }
                self.used = Some(before.saturating_sub(freed.unwrap_or(0)));
            }
            Seen::Output(result) => {
                if self.used.is_none() {
                    self.lines = self.lines.saturating_add(lines(result));
                }
            }
            Seen::Nothing => {}
        }
        self
    }

    /// Counts a compaction by what it freed. Whoever compacts a context with room
    /// in it need not free much; who does has broken a row of useless ones.
    fn judge(&mut self, before: u64, freed: u64, settings: Context) {
        if is_enough(before, freed, settings) {
            self.ineffective = 0;
        } else if self.fills(before, settings).is_some_and(|pct| pct >= settings.warn.into()) {
            self.ineffective = self.ineffective.saturating_add(1);
        }
    }

    /// How much of the window so much is, in percent.
    fn fills(&self, used: u64, settings: Context) -> Option<u64> {
        let window = settings.window.or(self.window).filter(|window| *window > 0);
        window.map(|window| percent(used, window))
    }

    /// Where it stands. Nothing is blocked where nobody could compact, nor
    /// after a compaction of which nobody knows yet what it brought.
    pub(crate) fn standing(&self, settings: Context, compacts: bool) -> Standing {
        let Some(used) = self.used else { return self.estimate(settings) };
        let window = settings.window.or(self.window);
        let pct = self.fills(used, settings);
        let at = |threshold: u8| pct.is_some_and(|pct| pct >= u64::from(threshold));
        // A claim is better than a figure of which one knows that it is old.
        let outdated = self.before.is_some() && self.before == self.used;
        let holds = compacts && !outdated;
        let level = match pct {
            None => ContextLevel::Unknown,
            Some(_) if at(settings.block) && holds => ContextLevel::Block,
            Some(_) if at(settings.compact) => ContextLevel::Compact,
            Some(_) if at(settings.warn) => ContextLevel::Warn,
            Some(_) => ContextLevel::Ok,
        };
        let full = at(settings.block) && !outdated;
        Standing { used: Some(used), window, pct, level, estimated: false, full, outdated }
    }

    /// A guess from the lines of output, which only ever warns.
    fn estimate(&self, settings: Context) -> Standing {
        let pct = self.lines.saturating_mul(LINES_PCT) / LINES;
        let warns = pct >= u64::from(settings.warn);
        let level = if warns { ContextLevel::Warn } else { ContextLevel::Ok };
        let (used, window) = (None, settings.window.or(self.window));
        let pct = Some(pct.min(100));
        Standing { used, window, pct, level, estimated: true, full: false, outdated: false }
    }

    /// Whether the agent has not been told of a level yet.
    pub(super) fn is_news(&self, level: ContextLevel) -> bool {
        match level {
            ContextLevel::Unknown => !self.told_unknown,
            level => self.told.is_none_or(|told| told < level),
        }
    }

    /// Forgets what was told of a level that has been left.
    pub(super) fn settle(&mut self, level: ContextLevel) {
        self.briefed = level >= ContextLevel::Compact;
        self.held &= level == ContextLevel::Block;
        self.told = self.told.map(|told| told.min(level));
    }

    /// Remembers what the agent was told.
    pub(super) fn was_told(&mut self, level: ContextLevel, severity: Severity) {
        match severity {
            Severity::Warning => self.told = Some(level),
            Severity::Info | Severity::Caution => self.told_unknown = true,
        }
    }

    /// Forgets what held the session, not how full the context is.
    pub(crate) fn reset(&mut self) {
        self.ineffective = 0;
        self.before = None;
    }
}

/// Whether a compaction of so much freed enough of it.
fn is_enough(before: u64, freed: u64, settings: Context) -> bool {
    let least = u128::from(settings.min_freed_pct) * u128::from(before);
    u128::from(freed) * 100 >= least
}

/// How much of a window is used, in percent: 85 only where 85 is reached.
fn percent(used: u64, window: u64) -> u64 {
    let pct = u128::from(used) * 100 / u128::from(window.max(1));
    u64::try_from(pct).unwrap_or(u64::MAX)
}

fn lines(result: &Payload) -> u64 {
    match result {
        Payload::Inline(text) => text.lines().count() as u64,
        Payload::Elided { elided } => elided.bytes / LINE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(used: u64) -> Seen<'static> {
        Seen::Usage { request: None, known: false, used, window: Some(100_000) }
    }

    fn level(fill: &Fill, compacts: bool) -> ContextLevel {
        fill.standing(Context::default(), compacts).level
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
            let fill = Fill::default().after(usage(used), Context::default());
            assert_eq!(level(&fill, true), expected, "{used}");
            assert_eq!(level(&fill, false), expected.min(ContextLevel::Compact), "{used}");
        }
    }

    #[test]
    fn a_guess_only_warns() {
        let settings = Context::default();
        let text = Payload::Inline("line\n".repeat(536));
        let fill = Fill::default().after(Seen::Output(&text), settings);
        let standing = fill.standing(settings, true);
        assert_eq!((standing.level, standing.pct), (ContextLevel::Warn, Some(75)));
        assert!(standing.estimated);
        let much = Payload::Inline("line\n".repeat(5_000));
        assert_eq!(level(&fill.after(Seen::Output(&much), settings), true), ContextLevel::Warn);
    }

    #[test]
    fn a_compaction_is_judged_by_the_next_record_or_by_what_it_admits() {
        let settings = Context::default();
        let full = Fill::default().after(usage(90_000), settings);
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
            let mut fill = full.clone().after(Seen::Compaction { freed }, settings);
            if let Some(used) = next {
                fill = fill.after(usage(used), settings);
            }
            assert_eq!(fill.ineffective, ineffective, "{freed:?} {next:?}");
        }
        // One that nobody needed may free little; one that frees much breaks the row.
        let useless = full.after(Seen::Compaction { freed: Some(1) }, settings);
        let roomy = useless.after(usage(30_000), settings);
        for (freed, ineffective) in [(Some(1), 1), (Some(6_000), 0), (None, 0)] {
            let after = roomy.clone().after(Seen::Compaction { freed }, settings);
            assert_eq!(after.after(usage(24_000), settings).ineffective, ineffective, "{freed:?}");
        }
    }

    #[test]
    fn the_record_of_before_a_compaction_is_not_the_latest() {
        let settings = Context::default();
        let request = RequestId::parse("r1").unwrap();
        let of_r1 = |known| Seen::Usage {
            request: Some(&request),
            known,
            used: 90_000,
            window: Some(100_000),
        };
        let fill = Fill::default().after(of_r1(false), settings).after(of_r1(true), settings);
        let fill = fill.after(Seen::Compaction { freed: Some(60_000) }, settings);
        let fill = fill.after(of_r1(true), settings);
        assert_eq!((fill.used, fill.ineffective), (Some(30_000), 0));
    }
}
