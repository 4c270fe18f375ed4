//! Helpers that all sections use to join two layers.

use super::{Demand, DemandLine, DemandStatus, DemandSubject, Layer, LayerDefinition};
use crate::values::NumberFields;

/// Whether the lower of two layers may loosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinRule {
    /// The lower layer may only demand more.
    Tighten,
    /// The lower layer may also demand less.
    Override,
}

/// The state of a join: the layers, the rule, and the demands that are ignored.
pub(crate) struct LayerJoin {
    sources: Vec<(Layer, String)>,
    /// Whether the lower layer may loosen.
    pub(crate) rule: JoinRule,
    pub(super) ignored: Vec<DemandLine>,
    /// Modes by name with which one layer tightens the rules of another layer.
    pub(crate) named_modes: Vec<DemandLine>,
}

impl LayerJoin {
    pub(super) fn new(layers: &[LayerDefinition]) -> Self {
        let sources = layers.iter().map(|layered| (layered.layer, layered.file.clone())).collect();
        Self { sources, rule: JoinRule::Tighten, ignored: Vec::new(), named_modes: Vec::new() }
    }

    /// Whether the lower layer may demand less than the higher one.
    pub(crate) fn overrides(&self) -> bool {
        self.rule == JoinRule::Override
    }

    /// Returns the layer with this number.
    pub(crate) fn layer(&self, number: usize) -> Layer {
        self.sources.get(number).map_or(Layer::Repository, |(layer, _)| *layer)
    }

    /// Creates a line about a demand of a layer.
    pub(crate) fn line(&self, subject: DemandSubject, text: String, layer: usize) -> DemandLine {
        let (layer, file) =
            self.sources.get(layer).cloned().unwrap_or((Layer::Repository, String::new()));
        DemandLine { subject, text, layer, file, origin: None, status: DemandStatus::InForce }
    }

    /// Reports that the demand of one layer is ignored because of another layer, `to`.
    pub(crate) fn report_ignored(
        &mut self,
        subject: DemandSubject,
        text: String,
        layer: usize,
        to: usize,
        why: &str,
    ) {
        // Trust overrides the demands of the person who gives it, and of no other layer.
        let until_trusted = self.layer(layer) == Layer::Repository && self.layer(to) == Layer::User;
        let why = format!("the {} layer {why}", self.layer(to).as_str());
        self.report_ignored_line(self.line(subject, text, layer), why, until_trusted);
    }

    /// Reports that the setting of one layer is ignored because of another layer, `to`.
    pub(crate) fn report_ignored_setting(
        &mut self,
        text: String,
        (layer, to): (usize, usize),
        why: &str,
    ) {
        self.report_ignored(DemandSubject::Setting, text, layer, to, why);
    }

    /// Reports that a demand is ignored, with the complete reason.
    pub(crate) fn report_ignored_line(
        &mut self,
        line: DemandLine,
        why: String,
        until_trusted: bool,
    ) {
        let standing = DemandStatus::Ignored { why, until_trusted };
        self.ignored.push(DemandLine { status: standing, ..line });
    }

    /// Reports that a trusted repository, `to`, replaces the demand of a layer.
    pub(crate) fn report_replaced(
        &mut self,
        subject: DemandSubject,
        text: String,
        layer: usize,
        to: usize,
    ) {
        self.report_ignored(subject, text, layer, to, "overrides it, and its file is trusted");
    }

    /// Joins a key that every layer has. The value of the higher layer wins if it `demands` at
    /// least as much; otherwise the value of the lower layer wins.
    pub(crate) fn join_setting<T: Copy + PartialEq>(
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
            self.report_replaced(DemandSubject::Setting, text(high), high.layer, low.layer);
            return low.clone();
        }
        if !demands(high.value, low.value) {
            return low.clone();
        }
        self.report_ignored(DemandSubject::Setting, text(low), low.layer, high.layer, why);
        high.clone()
    }

    /// Joins a key that a layer may leave out. If the values of both layers differ and the lower
    /// layer may not override, `tighten` computes the value in force.
    pub(crate) fn join_option<T: Clone + PartialEq>(
        &mut self,
        high: Option<&Demand<T>>,
        low: Option<&Demand<T>>,
        subject: DemandSubject,
        text: impl Fn(&T) -> String,
        tighten: impl FnOnce(&mut Self, &Demand<T>, &Demand<T>) -> Demand<T>,
    ) -> Option<Demand<T>> {
        match (high, low) {
            (Some(high), Some(low)) if high.value != low.value => {
                if self.overrides() {
                    self.report_replaced(subject, text(&high.value), high.layer, low.layer);
                    return Some(low.clone());
                }
                Some(tighten(self, high, low))
            }
            (high, low) => high.or(low).cloned(),
        }
    }

    /// Reports the layer whose numbers were not used completely in the joined value `both`. A
    /// layer with default numbers demands nothing, so it is never reported.
    pub(crate) fn report_joined_numbers<T: Clone + Default + PartialEq>(
        &mut self,
        high: &Demand<T>,
        low: &Demand<T>,
        both: T,
        text: impl Fn(&T) -> String,
        why: &str,
    ) -> Demand<T> {
        let default = T::default();
        if self.overrides() && both != high.value && high.value != default {
            self.report_replaced(DemandSubject::Setting, text(&high.value), high.layer, low.layer);
        }
        if !self.overrides() && both != low.value && low.value != default {
            self.report_ignored_setting(text(&low.value), (low.layer, high.layer), why);
        }
        let layer = if both == high.value { high.layer } else { low.layer };
        Demand { value: both, layer }
    }

    /// Joins a key whose values can't be compared. The value of the higher layer wins.
    pub(crate) fn join_unordered<T: Copy + PartialEq>(
        &mut self,
        high: Option<&Demand<T>>,
        low: Option<&Demand<T>>,
        text: impl Fn(T) -> String,
    ) -> Option<Demand<T>> {
        let text = |value: &T| format!("`{}`", text(*value));
        self.join_option(high, low, DemandSubject::Setting, text, |join, high, low| {
            let why = "has its own value";
            join.report_ignored_setting(text(&low.value), (low.layer, high.layer), why);
            high.clone()
        })
    }
}

/// Joins numbers into those of the higher layer. A smaller number is stricter, and a layer with
/// the default demands nothing.
pub(crate) fn join_smaller_numbers<const N: usize>(
    rule: JoinRule,
    high: NumberFields<'_, N>,
    low: NumberFields<'_, N>,
    defaults: NumberFields<'_, N>,
) {
    for (((_, high), (_, low)), (_, default)) in high.into_iter().zip(low).zip(defaults) {
        *high = match rule {
            _ if low == default => *high,
            JoinRule::Override => *low,
            JoinRule::Tighten => (*high).min(*low),
        };
    }
}
