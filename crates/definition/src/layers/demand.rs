//! A demand, together with the layer that makes it.

use jackline_engine::{Definition, Mode};

/// A value, and the number of the layer that demands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demand<T> {
    pub(crate) value: T,
    pub(crate) layer: usize,
}

/// The definition of one layer, from which each section takes its demands.
pub(crate) struct LayerSource<'a> {
    pub(crate) definition: &'a Definition,
    /// The modes that the layer gives to rules and packs by name.
    pub(crate) modes: &'a [(String, Mode)],
    /// The number of the layer.
    pub(crate) layer: usize,
    /// Whether the commands and addresses of the layer may be used.
    pub(crate) trusted: bool,
}

impl LayerSource<'_> {
    /// Creates a demand of this layer.
    pub(crate) fn demand<T>(&self, value: T) -> Demand<T> {
        Demand { value, layer: self.layer }
    }

    /// Creates a demand that the layer may leave out.
    pub(crate) fn option<T: Clone>(&self, value: Option<&T>) -> Option<Demand<T>> {
        value.map(|value| self.demand(value.clone()))
    }

    /// Creates a demand if the value differs from the default. A default demands nothing.
    pub(crate) fn non_default<T: Clone + Default + PartialEq>(
        &self,
        value: &T,
    ) -> Option<Demand<T>> {
        self.option(Some(value).filter(|value| **value != T::default()))
    }

    /// Creates several demands of this layer.
    pub(crate) fn list<T>(&self, values: impl IntoIterator<Item = T>) -> Vec<Demand<T>> {
        values.into_iter().map(|value| self.demand(value)).collect()
    }
}

/// Returns the values without their layers.
pub(crate) fn values<T>(demands: Vec<Demand<T>>) -> Vec<T> {
    demands.into_iter().map(|demand| demand.value).collect()
}

/// Returns the demands of both layers without duplicates.
pub(crate) fn union<T: Clone + PartialEq>(high: &[Demand<T>], low: &[Demand<T>]) -> Vec<Demand<T>> {
    let mut all = high.to_vec();
    for demand in low {
        if !all.iter().any(|known| known.value == demand.value) {
            all.push(demand.clone());
        }
    }
    all
}
