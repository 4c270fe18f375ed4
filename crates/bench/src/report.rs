//! The measured values and their limits.

use serde::Serialize;

use crate::limits::{Limit, Row};

/// One measured value.
#[derive(Serialize)]
struct BenchFigure {
    name: &'static str,
    /// None if it could not be measured.
    value: Option<f64>,
    unit: &'static str,
    limit: Option<f64>,
    within: bool,
    context: String,
}

/// All values of one benchmark run.
#[derive(Default, Serialize)]
pub(crate) struct BenchReport {
    rows: Vec<BenchFigure>,
}

impl BenchReport {
    /// Adds a value, which must be within the limit of its row.
    pub(crate) fn add(&mut self, row: Row, value: f64, context: String) {
        let name = row.0;
        let Some((limit, unit)) = row.limit() else {
            let context = "docs/benchmarks.md has no such row".to_owned();
            let value = Some(value);
            self.rows.push(BenchFigure {
                name,
                value,
                unit: "",
                limit: None,
                within: false,
                context,
            });
            return;
        };
        let (limit, within) = match limit {
            Limit::AtMost(most) => (Some(most), value <= most),
            Limit::AtLeast(least) => (Some(least), value >= least),
            Limit::Holds => (Some(1.0), value >= 1.0),
            Limit::None => (None, true),
        };
        self.rows.push(BenchFigure { name, value: Some(value), unit, limit, within, context });
    }

    /// Adds a claim, which must be true.
    pub(crate) fn add_claim(&mut self, row: Row, holds: bool, context: String) {
        self.add(row, f64::from(u8::from(holds)), context);
    }

    /// Adds a row that can't be measured on this machine, and why.
    pub(crate) fn add_missing(&mut self, row: Row, why: &str) {
        let (name, context) = (row.0, format!("not measured: {why}"));
        self.rows.push(BenchFigure {
            name,
            value: None,
            unit: "",
            limit: None,
            within: true,
            context,
        });
    }

    pub(crate) fn is_within(&self) -> bool {
        self.rows.iter().all(|row| row.within)
    }

    /// Prints a table for people, then one line of JSON.
    pub(crate) fn print(&self) {
        println!("{:<50} {:>10} {:<8} {:>9}  ", "row", "measured", "", "limit");
        for row in &self.rows {
            let limit = row.limit.map_or_else(String::new, |limit| format!("{limit}"));
            let value = row.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
            let mark = match row.value {
                None => "-  ",
                Some(_) if row.within => "ok ",
                Some(_) => "OUT",
            };
            println!(
                "{:<50} {value:>10} {:<8} {limit:>9}  {mark}  {}",
                row.name, row.unit, row.context
            );
        }
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}

/// The median.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
