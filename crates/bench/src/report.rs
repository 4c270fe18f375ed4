//! What was measured, beside what must be reached.

use serde::Serialize;

/// One figure.
#[derive(Serialize)]
struct Row {
    name: String,
    /// None where it could not be measured.
    value: Option<f64>,
    unit: &'static str,
    limit: Option<f64>,
    within: bool,
    context: String,
}

/// All figures of a run.
#[derive(Default, Serialize)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// A figure that must not be above a limit.
    pub(crate) fn at_most(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        limit: f64,
        context: String,
    ) {
        let (within, value) = (value <= limit, Some(value));
        self.rows.push(Row { name: name.into(), value, unit, limit: Some(limit), within, context });
    }

    /// A figure that must not be below a limit.
    pub(crate) fn at_least(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        limit: f64,
        context: String,
    ) {
        let (within, value) = (value >= limit, Some(value));
        self.rows.push(Row { name: name.into(), value, unit, limit: Some(limit), within, context });
    }

    /// A figure that is only told.
    pub(crate) fn plain(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        context: String,
    ) {
        let (name, value) = (name.into(), Some(value));
        self.rows.push(Row { name, value, unit, limit: None, within: true, context });
    }

    /// Something that must hold.
    pub(crate) fn holds(&mut self, name: impl Into<String>, within: bool, context: String) {
        let value = Some(if within { 1.0 } else { 0.0 });
        let row = Row { name: name.into(), value, unit: "", limit: Some(1.0), within, context };
        self.rows.push(row);
    }

    /// A figure that this machine can't give, and why.
    pub(crate) fn missing(&mut self, name: impl Into<String>, why: &str) {
        let (name, context) = (name.into(), format!("not measured: {why}"));
        self.rows.push(Row { name, value: None, unit: "", limit: None, within: true, context });
    }

    pub(crate) fn is_within(&self) -> bool {
        self.rows.iter().all(|row| row.within)
    }

    /// A table for people, then one line of JSON.
    pub(crate) fn print(&self) {
        println!("{:<46} {:>10} {:<8} {:>9}  ", "what", "measured", "", "limit");
        for row in &self.rows {
            let limit = row.limit.map_or_else(String::new, |limit| format!("{limit}"));
            let value = row.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
            let mark = match row.value {
                None => "-  ",
                Some(_) if row.within => "ok ",
                Some(_) => "OUT",
            };
            println!(
                "{:<46} {value:>10} {:<8} {limit:>9}  {mark}  {}",
                row.name, row.unit, row.context
            );
        }
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}

/// The middle of some measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
