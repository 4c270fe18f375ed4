//! The loader through its one door: every mistake at once, each at its place,
//! and no file, however odd, that breaks it. What loads also passes the JSON
//! Schema, and what has the wrong shape does not.

mod attempts;
mod extends;
mod file;
mod full;
mod generated;
mod idle;
mod loops;
mod models;
mod modes;
mod notify;
mod progress;
mod rules;
mod size;

use std::sync::LazyLock;

use jackline_definition::{Diagnostics, load, schema, yaml};
use jsonschema::Validator;

/// Everything there is to say about a file, one problem a line, or `ok`.
fn complaints(source: &str) -> String {
    complaints_of_bytes(source.as_bytes())
}

fn complaints_of_bytes(source: &[u8]) -> String {
    match load(source, "f") {
        Ok(_) => {
            assert_eq!(fits(source), Some(true), "{}", String::from_utf8_lossy(source));
            "ok".to_owned()
        }
        Err(problems) => problems.to_string(),
    }
}

/// Whether the schema accepts a file, if it is YAML at all.
fn fits(source: &[u8]) -> Option<bool> {
    static SCHEMA: LazyLock<Option<Validator>> =
        LazyLock::new(|| jsonschema::draft202012::new(&schema()).ok());
    let mut diagnostics = Diagnostics::new("f");
    let tree = yaml::parse(source, &mut diagnostics).filter(|_| diagnostics.is_empty())?;
    Some(SCHEMA.as_ref()?.is_valid(&tree.to_json()))
}

/// Compares a table of files with what is wrong with them, and reports every
/// row that differs.
fn check(rows: &[(&str, &str)]) {
    let differing: Vec<String> = rows
        .iter()
        .map(|(source, expected)| (source, expected, complaints(source)))
        .filter(|(_, expected, found)| *expected != found)
        .map(|(source, expected, found)| {
            format!("of\n{source}\nexpected\n{expected}\nfound\n{found}\n")
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The same for files of the wrong shape: a schema sees that too, apart from
/// what it can't know.
fn check_shapes(rows: &[(&str, &str)]) {
    check(rows);
    for (source, _) in rows {
        let unseen = UNSEEN.iter().any(|(known, _)| known == source);
        assert_eq!(fits(source.as_bytes()), Some(unseen), "the schema about\n{source}");
    }
}

/// Wrong files that a schema can't tell from good ones, and why not.
const UNSEEN: &[(&str, &str)] = &[
    ("sections: [ { name: s }, { name: s } ]", "names across items"),
    ("policies: [ sequential_dependency: { a: [b, b] } ]", "an item may be text or a mapping"),
];
