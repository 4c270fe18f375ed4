//! The rows of `docs/benchmarks.md`. Only the document has the limits: a benchmark names a row and
//! gives a value. `cargo xtask tidy` compares the rows of both, so `xtask` compiles this file too.
//! The file uses only the standard library.

const DOCUMENT: &str = include_str!("../../../docs/benchmarks.md");

/// The name of a row. `cargo xtask tidy` finds each one by its literal, `Row("…")`.
#[derive(Clone, Copy)]
pub(crate) struct Row(pub(crate) &'static str);

/// The limit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// The value is a claim, which must be true.
    Holds,
    /// There is no limit. The value is only shown.
    None,
}

impl Row {
    /// The limit of the row and its unit; `None` if the document has no such row.
    pub(crate) fn limit(self) -> Option<(Limit, &'static str)> {
        rows().find(|(name, ..)| *name == self.0).and_then(|(_, limit, unit)| Some((limit?, unit)))
    }
}

/// Every row of the document: its name, its limit (`None` if it can't be parsed) and its unit.
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, Option<Limit>, &'static str)> {
    DOCUMENT.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split('|').map(str::trim);
        let (name, limit, unit) = (cells.next()?, cells.next()?, cells.next()?);
        let is_head = name == "row" || name.starts_with("---");
        (!is_head).then(|| (name, parse_limit(limit), unit))
    })
}

fn parse_limit(cell: &str) -> Option<Limit> {
    match cell.split_once(' ') {
        Some(("≤", number)) => number.parse().ok().map(Limit::AtMost),
        Some(("≥", number)) => number.parse().ok().map(Limit::AtLeast),
        None if cell == "holds" => Some(Limit::Holds),
        None if cell == "none" => Some(Limit::None),
        _ => None,
    }
}
