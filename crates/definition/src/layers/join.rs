//! Two layers as one.

use jackline_engine::Mode;
use jackline_engine::definition::{
    Cap, Checker, Context, Limit, Models, Notifier, Per, Price, Redact, Rule, UnknownTools,
};

use super::modes;
use super::parts::{Parts, Said, with_trust};
use super::progress::rests_on_tests;
use super::{EffectiveLine, Layer, Layered, Standing, Subject};
use crate::words;

/// What the lower of two layers may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Demand more.
    Tighten,
    /// Demand less, too.
    Override,
}

/// The work of putting layers together: who they are, and what was ignored.
pub(super) struct Joining {
    pub(super) sources: Vec<(Layer, String)>,
    pub(super) ignored: Vec<EffectiveLine>,
    /// Modes by which a layer tightens another's rules.
    pub(super) named: Vec<EffectiveLine>,
}

impl Joining {
    pub(super) fn new(layers: &[Layered]) -> Self {
        let sources = layers.iter().map(|layered| (layered.layer, layered.file.clone()));
        Self { sources: sources.collect(), ignored: Vec::new(), named: Vec::new() }
    }

    /// The layer with a number.
    pub(super) fn layer(&self, by: usize) -> Layer {
        self.sources.get(by).map_or(Layer::Repository, |(layer, _)| *layer)
    }

    /// "the user layer".
    pub(super) fn the_layer(&self, by: usize) -> String {
        format!("the {} layer", self.layer(by).word())
    }

    /// A line about what a layer demands.
    pub(super) fn line(&self, subject: Subject, text: String, by: usize) -> EffectiveLine {
        let (layer, file) =
            self.sources.get(by).cloned().unwrap_or((Layer::Repository, String::new()));
        EffectiveLine { subject, text, layer, file, origin: None, standing: Standing::InForce }
    }

    /// Writes down that a demand gives way to another layer's.
    pub(super) fn ignore(
        &mut self,
        subject: Subject,
        text: String,
        by: usize,
        to: usize,
        why: &str,
    ) {
        // A person's trust outweighs their own word, and nobody else's.
        let until_trusted = self.layer(by) == Layer::Repository && self.layer(to) == Layer::User;
        let why = format!("{} {why}", self.the_layer(to));
        let standing = Standing::Ignored { why, until_trusted };
        let line = EffectiveLine { standing, ..self.line(subject, text, by) };
        self.ignored.push(line);
    }

    /// Writes down that a demand gives way to a trusted repository's.
    pub(super) fn replaced(&mut self, subject: Subject, text: String, by: usize, to: usize) {
        self.ignore(subject, text, by, to, "says otherwise, and its file is trusted");
    }

    /// Puts a layer below another.
    pub(super) fn join(&mut self, high: Parts, mut low: Parts, how: How) -> Parts {
        let tools = self.join_tools(&high, &mut low, how);
        let loops = self.join_loops(&high, &low, how);
        let sections = high.sections.saturating_add(low.sections);
        let progress = self.join_progress(&high, &low, how);
        let context = self.join_context(&high, &low, how);
        let choices = self.join_choices(&high, &low, how);
        let advisor = self.join_advisor(&high, &low, how);
        let identity = self.join_identity(&high, &low, how);
        let rests = rests_on_tests(&high);
        let speaks = !high.feedback.is_empty();
        Parts {
            name: if low.name.what.is_some() { low.name.clone() } else { high.name.clone() },
            mode: self.join_mode(&high, &low, how),
            governs: high.governs || low.governs,
            tools,
            sections,
            unknown_tools: self.join_setting(
                high.unknown_tools,
                low.unknown_tools,
                how,
                |high, low| high == UnknownTools::Deny || low == UnknownTools::Allow,
                |value| format!("unknown_tools: {}", words::unknown_tools(value)),
                "denies them",
            ),
            opaque: self.join_setting(
                high.opaque,
                low.opaque,
                how,
                |high, low| high >= low,
                |value| format!("shell.opaque: {}", words::opaque(value)),
                "demands more",
            ),
            protected: union(high.protected, low.protected),
            policies: union_if(high.policies, low.policies, |policy| policy.section.is_none()),
            rules: {
                let mut rules = self.join_rules(high.rules, low.rules, how);
                if how == How::Override && low.mode.what == Mode::Observe {
                    modes::follow(&mut rules, &high.modes, low.mode.by);
                }
                self.join_modes(&mut rules, &low.modes, how);
                rules
            },
            modes: high.modes.into_iter().chain(low.modes).collect(),
            completion: join_checks(high.completion, low.completion),
            cap: self.join_cap(high.cap, low.cap, how),
            limits: high
                .limits
                .into_iter()
                .zip(low.limits)
                .map(|((key, high), (_, low))| {
                    (key, self.join_limit(|it| words::limit(key, it), high, low, how))
                })
                .collect(),
            loops,
            dirty_bits: self.join_bits(high.dirty_bits, low.dirty_bits, rests, how),
            progress,
            iterations_extension: self.join_setting(
                high.iterations_extension,
                low.iterations_extension,
                how,
                |high, low| high <= low,
                |value| format!("iterations_extension: {value}"),
                "has the smaller one",
            ),
            tool_calls: self.join_tool_calls(high.tool_calls, low.tool_calls, how),
            context,
            prices: self.join_prices(high.prices, low.prices, how),
            // Who has a table has all of it.
            long: if high.dated.is_empty() { low.long } else { high.long },
            windows: if high.dated.is_empty() { low.windows } else { high.windows },
            dated: if high.dated.is_empty() { low.dated } else { high.dated },
            schemas: self.join_schemas(&high.schemas, &low.schemas, how),
            io: self.join_io(&high.io, &low.io, how),
            attempts: self.join_attempts(&high.attempts, &low.attempts, how),
            health: self.join_health(high.health, low.health, how),
            choices,
            advisor,
            identity,
            feedback: union(high.feedback, low.feedback),
            feedback_bytes_max: self.join_setting(
                high.feedback_bytes_max,
                low.feedback_bytes_max,
                how,
                // A smaller one cuts short what the higher layer has to say.
                |high, low| speaks || high <= low,
                |value| format!("feedback_bytes_max: {value}"),
                if speaks { "has feedback of its own" } else { "has the smaller one" },
            ),
            notify: join_notifiers(high.notify, low.notify),
            redact: self.join_setting(
                high.redact,
                low.redact,
                How::Tighten,
                |high, low| high == Redact::BuiltIn || low == Redact::Off,
                |value| format!("journal.redact: {}", words::redact(value)),
                "has secrets taken out",
            ),
            // A journal kept for longer takes nothing from anybody.
            retain_days: greater(high.retain_days, low.retain_days),
            retain_bytes: greater(high.retain_bytes, low.retain_bytes),
        }
    }

    /// The mode of what has none of its own: the strictest of the layers that
    /// have such a thing.
    fn join_mode(&mut self, high: &Parts, low: &Parts, how: How) -> Said<Mode> {
        let stricter = |high: Mode, low: Mode| high == Mode::Enforce || low == Mode::Observe;
        match (high.governs, low.governs, how) {
            (false, true, How::Tighten) => return low.mode.clone(),
            (true, false, How::Tighten) if high.mode.what == Mode::Observe => {
                return high.mode.clone();
            }
            _ => {}
        }
        let text = |mode| format!("mode: {}", words::mode(mode));
        self.join_setting(high.mode.clone(), low.mode.clone(), how, stricter, text, "enforces")
    }

    /// A key with one value: the higher layer's where that `demands` at least
    /// as much, or else the lower's.
    pub(super) fn join_setting<T: Copy + PartialEq>(
        &mut self,
        high: Said<T>,
        low: Said<T>,
        how: How,
        demands: impl Fn(T, T) -> bool,
        text: impl Fn(T) -> String,
        why: &str,
    ) -> Said<T> {
        let quoted = |said: &Said<T>| format!("`{}`", text(said.what));
        if high.what == low.what {
            return high;
        }
        if how == How::Override {
            self.replaced(Subject::Setting, quoted(&high), high.by, low.by);
            return low;
        }
        if !demands(high.what, low.what) {
            return low;
        }
        self.ignore(Subject::Setting, quoted(&low), low.by, high.by, why);
        high
    }

    /// None of its numbers is stricter than another, so the higher layer's word holds.
    fn join_cap(
        &mut self,
        high: Option<Said<Cap>>,
        low: Option<Said<Cap>>,
        how: How,
    ) -> Option<Said<Cap>> {
        let (high, low) = match (high, low) {
            (Some(high), Some(low)) => (high, low),
            (high, low) => return high.or(low),
        };
        let text = |cap| format!("completion_cap: {}", words::cap(cap));
        Some(self.join_setting(high, low, how, |_, _| true, text, "has one of its own"))
    }

    fn join_limit(
        &mut self,
        in_words: impl Fn(Limit) -> String,
        high: Option<Said<Limit>>,
        low: Option<Said<Limit>>,
        how: How,
    ) -> Option<Said<Limit>> {
        let (high, low) = match (high, low) {
            (Some(high), Some(low)) if high.what != low.what => (high, low),
            (high, low) => return high.or(low),
        };
        let text = |said: &Said<Limit>| in_words(said.what);
        if how == How::Override {
            self.replaced(Subject::Limit, text(&high), high.by, low.by);
            return Some(low);
        }
        if implies(low.what, high.what) {
            return Some(low);
        }
        self.ignore(
            Subject::Limit,
            text(&low),
            low.by,
            high.by,
            "has one that this does not tighten",
        );
        Some(high)
    }

    /// Every tool once.
    fn join_tool_calls(
        &mut self,
        mut high: Vec<(String, Said<Limit>)>,
        low: Vec<(String, Said<Limit>)>,
        how: How,
    ) -> Vec<(String, Said<Limit>)> {
        for (tool, limit) in low {
            let Some((_, known)) = high.iter_mut().find(|(known, _)| *known == tool) else {
                high.push((tool, limit));
                continue;
            };
            let text = |limit| words::tool_limit(&tool, limit);
            if let Some(joined) = self.join_limit(text, Some(known.clone()), Some(limit), how) {
                *known = joined;
            }
        }
        high
    }

    /// The lower layer's where it is at least as strict in everything. Where a
    /// client compacts itself, a full context lets a stop pass unchecked: so a
    /// layer that has checks says itself when a context is full.
    fn join_context(&mut self, high: &Parts, low: &Parts, how: How) -> Option<Said<Context>> {
        let text = |said: &Said<Context>| format!("`context`: {}", words::context(said.what));
        let checks = high.completion.first().filter(|_| how == How::Tighten);
        let (own, below) = match (high.context.clone(), low.context.clone()) {
            (Some(own), Some(below)) if own.what != below.what => (own, below),
            (None, Some(below)) => {
                let Some(check) = checks else { return Some(below) };
                let why = "has checks that a full context would skip";
                self.ignore(Subject::Setting, text(&below), below.by, check.by, why);
                return None;
            }
            (own, below) => return own.or(below),
        };
        if how == How::Override {
            self.replaced(Subject::Setting, text(&own), own.by, below.by);
            return Some(below);
        }
        let same = (own.what.window, own.what.block) == (below.what.window, below.what.block);
        if is_as_strict(below.what, own.what) && (checks.is_none() || same) {
            return Some(below);
        }
        let why = "has one that this does not tighten";
        self.ignore(Subject::Setting, text(&below), below.by, own.by, why);
        Some(own)
    }

    /// A lower layer can price what has no price, and let things cost more.
    fn join_prices(
        &mut self,
        mut high: Vec<Said<Price>>,
        low: Vec<Said<Price>>,
        how: How,
    ) -> Vec<Said<Price>> {
        let before = high.clone();
        let prices = before.iter().map(|said| said.what.clone()).collect();
        let table = Models { prices, ..Models::default() };
        for price in low {
            let named = high.iter().position(|known| known.what.model == price.what.model);
            let dearer = table
                .prices_of(&price.what.model)
                .find(|known| !price.what.is_at_least(known))
                .and_then(|known| before.iter().find(|said| said.what == *known));
            if let (Some(dearer), How::Tighten) = (dearer, how) {
                let text = words::price(&price.what);
                self.ignore(Subject::Setting, text, price.by, dearer.by, "has a higher price");
                continue;
            }
            match named.and_then(|at| high.get_mut(at)) {
                Some(known) if known.what == price.what => {}
                Some(known) => *known = price,
                None => high.push(price),
            }
        }
        high
    }

    /// Every rule once by its name. A lower layer can't redefine a rule, only
    /// have the same one hold where it is merely observed.
    fn join_rules(
        &mut self,
        mut high: Vec<Said<Rule>>,
        low: Vec<Said<Rule>>,
        how: How,
    ) -> Vec<Said<Rule>> {
        for rule in low {
            let Some(known) = high.iter_mut().find(|known| known.what.name == rule.what.name)
            else {
                high.push(rule);
                continue;
            };
            if same_rule(&known.what, &rule.what) {
                if rule.what.mode == Mode::Enforce && known.what.mode == Mode::Observe {
                    *known = rule;
                }
            } else if how == How::Override {
                let replaced = std::mem::replace(known, rule);
                let to = known.by;
                let text = words::rule(&replaced.what);
                self.replaced(Subject::Rule, text, replaced.by, to);
            } else {
                let to = known.by;
                let text = words::rule(&rule.what);
                self.ignore(Subject::Rule, text, rule.by, to, "has another rule of that name");
            }
        }
        high
    }
}

/// Whether a session that keeps within `one` keeps within `other`, and is held to it as hard.
fn implies(one: Limit, other: Limit) -> bool {
    // A soft one warns once, and once a turn is more often than once a session.
    let as_often = one.per == Per::Session && !one.soft;
    one.max <= other.max && (!one.soft || other.soft) && (one.per == other.per || as_often)
}

/// Whether one demands at least as much of a context as the other.
fn is_as_strict(one: Context, other: Context) -> bool {
    // A window that is told can be too large; one that is found out can't.
    let window = match (one.window, other.window) {
        (None, None) => true,
        (Some(one), Some(other)) => one <= other,
        (Some(_), None) | (None, Some(_)) => false,
    };
    window
        && one.warn <= other.warn
        && one.compact <= other.compact
        && one.block <= other.block
        && one.min_freed_pct >= other.min_freed_pct
        && one.ineffective_max <= other.ineffective_max
}

/// Whether two rules do the same, wherever they come from and whether they hold.
fn same_rule(one: &Rule, other: &Rule) -> bool {
    let plain = |rule: &Rule| Rule { origin: String::new(), mode: Mode::Enforce, ..rule.clone() };
    plain(one) == plain(other)
}

/// All checks of both. One that both demand is the higher layer's, whose
/// commands may run.
fn join_checks(mut high: Vec<Said<Checker>>, low: Vec<Said<Checker>>) -> Vec<Said<Checker>> {
    for check in low {
        let plain = with_trust(check.what.clone(), false);
        if !high.iter().any(|known| with_trust(known.what.clone(), false) == plain) {
            high.push(check);
        }
    }
    high
}

/// Everybody who is told. Where both tell in the same way, that is the higher
/// layer's, which needs no trust.
fn join_notifiers(mut high: Vec<Said<Notifier>>, low: Vec<Said<Notifier>>) -> Vec<Said<Notifier>> {
    for told in low {
        let trusted = Notifier { trusted: true, ..told.what.clone() };
        if !high.iter().any(|known| known.what == told.what || known.what == trusted) {
            high.push(told);
        }
    }
    high
}

/// All of both, the same thing once.
pub(super) fn union<T: PartialEq>(high: Vec<Said<T>>, low: Vec<Said<T>>) -> Vec<Said<T>> {
    union_if(high, low, |_| true)
}

/// All of both; the same thing once where `once` says so.
fn union_if<T: PartialEq>(
    mut high: Vec<Said<T>>,
    low: Vec<Said<T>>,
    once: impl Fn(&T) -> bool,
) -> Vec<Said<T>> {
    for said in low {
        if !(once(&said.what) && high.iter().any(|known| known.what == said.what)) {
            high.push(said);
        }
    }
    high
}

fn greater<T: PartialOrd>(high: Said<T>, low: Said<T>) -> Said<T> {
    if low.what > high.what { low } else { high }
}
