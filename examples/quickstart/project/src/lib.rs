//! Computes the median.

/// The middle of the sorted values.
pub fn median(values: &[f64]) -> f64 {
    values[values.len() / 2]
}
