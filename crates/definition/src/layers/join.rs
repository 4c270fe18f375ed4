//! The work that all sections share when two layers are joined.

use super::{Demand, EffectiveLine, Layer, Layered, Standing, Subject};
use crate::values::Numbers;

/// What the lower of two layers may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinRule {
    /// Demand more.
    Tighten,
    /// Demand less, too.
    Override,
}

/// Two layers while they are joined: their names, the rule, and the demands that are ignored.
pub(crate) struct LayerJoin {
    sources: Vec<(Layer, String)>,
    /// What the lower of the two layers may do.
    pub(crate) rule: JoinRule,
    pub(super) ignored: Vec<EffectiveLine>,
    /// Modes by name with which one layer tightens the rules of another.
    pub(crate) named: Vec<EffectiveLine>,
}

impl LayerJoin {
    pub(super) fn new(layers: &[Layered]) -> Self {
        let sources = layers.iter().map(|layered| (layered.layer, layered.file.clone())).collect();
        Self { sources, rule: JoinRule::Tighten, ignored: Vec::new(), named: Vec::new() }
    }

    /// Whether the lower layer may also demand less.
    pub(crate) fn overrides(&self) -> bool {
        self.rule == JoinRule::Override
    }

    /// The layer with a number.
    pub(crate) fn layer(&self, number: usize) -> Layer {
        self.sources.get(number).map_or(Layer::Repository, |(layer, _)| *layer)
    }

    /// A line about a demand of a layer.
    pub(crate) fn line(&self, subject: Subject, text: String, layer: usize) -> EffectiveLine {
        let (layer, file) =
            self.sources.get(layer).cloned().unwrap_or((Layer::Repository, String::new()));
        EffectiveLine { subject, text, layer, file, origin: None, standing: Standing::InForce }
    }

    /// Reports that the demand of one layer is ignored because of another layer, `to`.
    pub(crate) fn ignore(
        &mut self,
        subject: Subject,
        text: String,
        layer: usize,
        to: usize,
        why: &str,
    ) {
        // A person's trust outweighs the person's own demands, and those of no other layer.
        let until_trusted = self.layer(layer) == Layer::Repository && self.layer(to) == Layer::User;
        let why = format!("the {} layer {why}", self.layer(to).word());
        self.ignore_line(self.line(subject, text, layer), why, until_trusted);
    }

    /// Reports that a demand is ignored, with the whole reason.
    pub(crate) fn ignore_line(&mut self, line: EffectiveLine, why: String, until_trusted: bool) {
        let standing = Standing::Ignored { why, until_trusted };
        self.ignored.push(EffectiveLine { standing, ..line });
    }

    /// Reports that a trusted repository, `to`, replaces the demand of a layer.
    pub(crate) fn replace(&mut self, subject: Subject, text: String, layer: usize, to: usize) {
        self.ignore(subject, text, layer, to, "says otherwise, and its file is trusted");
    }

    /// Joins a key that every layer has: the value of the higher layer where it `demands` at
    /// least as much, else that of the lower one.
    pub(crate) fn setting<T: Copy + PartialEq>(
        &mut self,
        high: &Demand<T>,
        low: &Demand<T>,
        demands: impl FnOnce(T, T) -> bool,
        text: impl Fn(T) -> String,
        why: &str,
    ) -> Demand<T> {
        let text = |demand: &Demand<T>| format!("`{}`", text(demand.value));
        if high.value == low.value {
            return high.clone();
        }
        if self.overrides() {
            self.replace(Subject::Setting, text(high), high.layer, low.layer);
            return low.clone();
        }
        if !demands(high.value, low.value) {
            return low.clone();
        }
        self.ignore(Subject::Setting, text(low), low.layer, high.layer, why);
        high.clone()
    }

    /// Joins a key that a layer may leave out. Where both layers have it and differ, and the
    /// lower one may not override, `tighten` says what is in force.
    pub(crate) fn option<T: Clone + PartialEq>(
        &mut self,
        high: Option<&Demand<T>>,
        low: Option<&Demand<T>>,
        subject: Subject,
        text: impl Fn(&T) -> String,
        tighten: impl FnOnce(&mut Self, &Demand<T>, &Demand<T>) -> Demand<T>,
    ) -> Option<Demand<T>> {
        match (high, low) {
            (Some(high), Some(low)) if high.value != low.value => {
                if self.overrides() {
                    self.replace(subject, text(&high.value), high.layer, low.layer);
                    return Some(low.clone());
                }
                Some(tighten(self, high, low))
            }
            (high, low) => high.or(low).cloned(),
        }
    }

    /// Reports what a section of numbers loses once they are joined to `both`. A layer that has
    /// the default demands nothing, so nothing of it is lost.
    pub(crate) fn numbers<T: Clone + Default + PartialEq>(
        &mut self,
        high: &Demand<T>,
        low: &Demand<T>,
        both: T,
        text: impl Fn(&T) -> String,
        why: &str,
    ) -> Demand<T> {
        let default = T::default();
        if self.overrides() && both != high.value && high.value != default {
            self.replace(Subject::Setting, text(&high.value), high.layer, low.layer);
        }
        if !self.overrides() && both != low.value && low.value != default {
            self.ignore(Subject::Setting, text(&low.value), low.layer, high.layer, why);
        }
        let layer = if both == high.value { high.layer } else { low.layer };
        Demand { value: both, layer }
    }

    /// Joins a key of which no value is stricter than another: the higher layer's value holds.
    pub(crate) fn unordered<T: Copy + PartialEq>(
        &mut self,
        high: Option<&Demand<T>>,
        low: Option<&Demand<T>>,
        text: impl Fn(T) -> String,
    ) -> Option<Demand<T>> {
        let text = |value: &T| format!("`{}`", text(*value));
        self.option(high, low, Subject::Setting, text, |join, high, low| {
            let why = "has one of its own";
            join.ignore(Subject::Setting, text(&low.value), low.layer, high.layer, why);
            high.clone()
        })
    }
}

/// Joins numbers of which the smaller one is stricter, into those of the higher layer. A layer
/// that has the default demands nothing.
pub(crate) fn join_smaller<const N: usize>(
    rule: JoinRule,
    high: Numbers<'_, N>,
    low: Numbers<'_, N>,
    defaults: Numbers<'_, N>,
) {
    for (((_, high), (_, low)), (_, default)) in high.into_iter().zip(low).zip(defaults) {
        *high = match rule {
            _ if low == default => *high,
            JoinRule::Override => *low,
            JoinRule::Tighten => (*high).min(*low),
        };
    }
}
