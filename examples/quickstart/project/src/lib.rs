//! The value in the middle.

/// Half of the values are no larger than this one.
pub fn median(values: &[f64]) -> f64 {
    values[values.len() / 2]
}
