//! Checks that the benchmarks fill exactly the rows of `docs/benchmarks.md`.

use std::collections::BTreeSet;

use super::{read, show, sources};
use crate::limits;
use crate::shell::root;

/// The text before the name of a row in the code. It is split in halves, so that this file does not
/// contain it.
const MARK: [&str; 2] = ["Row", "(\""];

pub(super) fn check(problems: &mut Vec<String>) {
    let mut rows = BTreeSet::new();
    for (name, limit, _) in limits::rows() {
        if !rows.insert(name.to_owned()) {
            problems.push(format!("docs/benchmarks.md has the row `{name}` twice"));
        }
        if limit.is_none() {
            problems.push(format!("docs/benchmarks.md: can't read the limit of `{name}`"));
        }
    }
    let mut filled = BTreeSet::new();
    for directory in ["crates/bench/src", "xtask/src"] {
        for file in sources(&root().join(directory)) {
            for rest in read(&file).split(&MARK.concat()).skip(1) {
                let name = rest.split('"').next().unwrap_or_default().to_owned();
                // A comment that describes the literal.
                if name == "…" {
                    continue;
                }
                if !rows.contains(&name) {
                    let file = show(&file);
                    problems.push(format!("{file}: docs/benchmarks.md has no row `{name}`"));
                }
                filled.insert(name);
            }
        }
    }
    for name in rows.difference(&filled) {
        problems.push(format!("docs/benchmarks.md: no benchmark fills the row `{name}`"));
    }
}
