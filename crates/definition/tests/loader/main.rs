//! Tests the loader through its public functions: it reports every mistake at once, each with its
//! position, and no file makes it panic. A file that loads also passes the JSON Schema, and a file
//! with the wrong shape does not.

mod attempts;
mod extends;
mod file;
mod full;
mod generated;
mod loops;
mod models;
mod modes;
mod notify;
mod progress;
mod rules;
mod size;
mod warnings;

use std::sync::LazyLock;

use jackline_definition::{Diagnostics, load, schema, yaml};
use jsonschema::Validator;

/// Returns all problems of a file, one per line, or `ok`.
fn problems_in(source: &str) -> String {
    problems_in_bytes(source.as_bytes())
}

fn problems_in_bytes(source: &[u8]) -> String {
    match load(source, "f") {
        Ok(_) => {
            assert_eq!(schema_accepts(source), Some(true), "{}", String::from_utf8_lossy(source));
            "ok".to_owned()
        }
        Err(problems) => problems.to_string(),
    }
}

/// Whether the schema accepts a file, if it is YAML at all.
fn schema_accepts(source: &[u8]) -> Option<bool> {
    static SCHEMA: LazyLock<Option<Validator>> =
        LazyLock::new(|| jsonschema::draft202012::new(&schema()).ok());
    let mut diagnostics = Diagnostics::new("f");
    let tree = yaml::parse(source, &mut diagnostics).filter(|_| diagnostics.is_empty())?;
    Some(SCHEMA.as_ref()?.is_valid(&tree.to_json()))
}

/// Compares the problems of several files with the expected problems, and reports every difference.
fn check(rows: &[(&str, &str)]) {
    let differing: Vec<String> = rows
        .iter()
        .map(|(source, expected)| (source, expected, problems_in(source)))
        .filter(|(_, expected, found)| *expected != found)
        .map(|(source, expected, found)| {
            format!("of\n{source}\nexpected\n{expected}\nfound\n{found}\n")
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Like `check`, for files of the wrong shape. The JSON Schema must also refuse them, except the
/// files that a schema can't detect.
fn check_shapes(rows: &[(&str, &str)]) {
    check(rows);
    for (source, _) in rows {
        let is_undetected = NOT_IN_SCHEMA.iter().any(|(known, _)| known == source);
        assert_eq!(
            schema_accepts(source.as_bytes()),
            Some(is_undetected),
            "the result of the schema for\n{source}"
        );
    }
}

/// Invalid files that a schema can't detect, with the reason.
const NOT_IN_SCHEMA: &[(&str, &str)] = &[
    ("sections: [ { name: s }, { name: s } ]", "names across items"),
    ("policies: [ sequential_dependency: { a: [b, b] } ]", "an item may be text or a mapping"),
];
