//! The rows of `docs/benchmarks.md`. The document is the only place of a limit: a benchmark names a
//! row and gives a value, and the limit comes from the document. `cargo xtask tidy` compares the
//! rows of both, so `xtask` compiles this file as well; it uses the standard library only.

const DOCUMENT: &str = include_str!("../../../docs/benchmarks.md");

/// The name of a row. `cargo xtask tidy` finds each by its literal, `Row("…")`.
#[derive(Clone, Copy)]
pub(crate) struct Row(pub(crate) &'static str);

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// A claim that is true or false.
    Holds,
    /// The value is only shown.
    None,
}

impl Row {
    /// The limit of the row and its unit; `None` where the document has no such row.
    pub(crate) fn limit(self) -> Option<(Limit, &'static str)> {
        rows().find(|(name, ..)| *name == self.0).and_then(|(_, limit, unit)| Some((limit?, unit)))
    }
}

/// Every row of the document: its name, its limit, which is `None` where it can't be read, and its
/// unit.
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
