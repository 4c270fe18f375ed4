//! Broken outputs of models, each with the value that a person would read in it.
//!
//! `broken/` has one file per kind. A case is `--- name`, the text, optionally `@@@ ` and a
//! schema, and `==> ` with the expected result: the value, `refuse` for an ambiguous text,
//! or `cut` and the path at which a text that reached a length limit ends.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::Path;

use jackline_decode::{DecodeOutcome, Schema, TextEnding, decode};
use serde_json::Value;

struct BrokenCase {
    name: String,
    text: String,
    schema: Option<Schema>,
    expected: String,
}

#[test]
fn clear_texts_are_decoded_and_no_text_is_decoded_wrongly() {
    let (mut all, mut kinds, mut clear, mut decoded) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for kind in kinds_of_mistakes() {
        kinds += 1;
        let (mut of_kind, mut hits) = (0, 0);
        for case in read_cases(&kind) {
            all += 1;
            let is_cut = kind == "cut";
            let ending = if is_cut { TextEnding::CutOff } else { TextEnding::Finished };
            let expected: Option<Value> = serde_json::from_str(&case.expected).ok();
            of_kind += usize::from(expected.is_some());
            match (decode(&case.text, case.schema.as_ref(), ending), &expected) {
                (DecodeOutcome::Accepted(accepted), Some(value)) if accepted.value == *value => {
                    hits += 1;
                }
                (DecodeOutcome::Accepted(accepted), _) => {
                    wrong.push(format!("{kind}: {}: {}", case.name, accepted.value));
                }
                (DecodeOutcome::CutOff(cut), None) if is_cut => {
                    assert_eq!(format!("cut {}", cut.path).trim(), case.expected, "{}", case.name);
                }
                (DecodeOutcome::Invalid(_), None) if !is_cut => assert_eq!(case.expected, "refuse"),
                (DecodeOutcome::Invalid(invalid), Some(_)) => {
                    eprintln!("not decoded: {kind}: {}: {:?}", case.name, invalid.errors);
                }
                (other, _) => panic!("{kind}: {}: {other:?}", case.name),
            }
        }
        eprintln!("{kind}: {hits} of {of_kind} clear cases decoded");
        clear += of_kind;
        decoded += hits;
    }
    eprintln!("{all} cases of {kinds} kinds; {decoded} of {clear} clear cases decoded");
    assert!(all >= 300 && kinds >= 12, "the corpus is incomplete: {all} cases of {kinds} kinds");
    assert!(wrong.is_empty(), "wrong values: {wrong:#?}");
    assert!(decoded * 100 >= clear * 95, "{decoded} of {clear}");
}

fn kinds_of_mistakes() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let mut kinds: Vec<_> =
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    kinds.sort();
    kinds
}

fn read_cases(kind: &str) -> Vec<BrokenCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let file = fs::read_to_string(directory.join(format!("{kind}.txt"))).unwrap();
    let mut cases = Vec::new();
    let mut open: Option<(String, Vec<&str>, Option<Schema>)> = None;
    for line in file.lines() {
        if let Some(expected) = line.strip_prefix("==> ") {
            let (name, text, schema) = open.take().unwrap();
            cases.push(BrokenCase {
                name,
                text: text.join("\n"),
                schema,
                expected: expected.to_owned(),
            });
        } else if let Some((_, text, schema)) = &mut open {
            match line.strip_prefix("@@@ ") {
                Some(source) => {
                    let source = serde_json::from_str(source).unwrap();
                    *schema = Some(Schema::compile(&source).unwrap());
                }
                None => text.push(line),
            }
        } else {
            open = Some((line.strip_prefix("--- ").unwrap().to_owned(), Vec::new(), None));
        }
    }
    assert!(open.is_none(), "{kind}: the last case has no `==> ` line");
    cases
}
