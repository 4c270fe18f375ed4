//! Broken outputs as models write them, each with what it means to a person.
//!
//! One file a kind in `broken/`. A case is `--- name`, the text, perhaps `@@@ ` and a schema,
//! and `==> ` with the value, `refuse` where nobody could tell, or `cut` with the path where a
//! text that ran into a length limit breaks off.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by them"
)]

use std::fs;
use std::path::Path;

use jackline_decode::{Decoded, Ending, Schema, decode};
use serde_json::Value;

struct Case {
    name: String,
    text: String,
    schema: Option<Schema>,
    meant: String,
}

#[test]
fn what_is_clear_is_decoded_and_nothing_is_decoded_wrongly() {
    let (mut all, mut kinds, mut clear, mut decoded) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for kind in kinds_of_slips() {
        kinds += 1;
        let (mut of_kind, mut hits) = (0, 0);
        for case in cases(&kind) {
            all += 1;
            let is_cut = kind == "cut";
            let ending = if is_cut { Ending::CutOff } else { Ending::Finished };
            let meant: Option<Value> = serde_json::from_str(&case.meant).ok();
            of_kind += usize::from(meant.is_some());
            match (decode(&case.text, case.schema.as_ref(), ending), &meant) {
                (Decoded::Accepted(accepted), Some(meant)) if accepted.value == *meant => hits += 1,
                (Decoded::Accepted(accepted), _) => {
                    wrong.push(format!("{kind}: {}: {}", case.name, accepted.value));
                }
                (Decoded::CutOff(cut), None) if is_cut => {
                    assert_eq!(format!("cut {}", cut.path).trim(), case.meant, "{}", case.name);
                }
                (Decoded::Invalid(_), None) if !is_cut => assert_eq!(case.meant, "refuse"),
                (Decoded::Invalid(invalid), Some(_)) => {
                    eprintln!("not decoded: {kind}: {}: {:?}", case.name, invalid.errors);
                }
                (other, _) => panic!("{kind}: {}: {other:?}", case.name),
            }
        }
        eprintln!("{kind}: {hits} of {of_kind} that are clear");
        clear += of_kind;
        decoded += hits;
    }
    eprintln!("{all} cases of {kinds} kinds; {decoded} of {clear} that are clear are decoded");
    assert!(all >= 300 && kinds >= 12, "the corpus is not whole");
    assert!(wrong.is_empty(), "wrong values: {wrong:#?}");
    assert!(decoded * 100 >= clear * 95, "{decoded} of {clear}");
}

fn kinds_of_slips() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let mut kinds: Vec<_> =
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    kinds.sort();
    kinds
}

fn cases(kind: &str) -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let file = fs::read_to_string(directory.join(format!("{kind}.txt"))).unwrap();
    let mut cases = Vec::new();
    let mut open: Option<(String, Vec<&str>, Option<Schema>)> = None;
    for line in file.lines() {
        if let Some(meant) = line.strip_prefix("==> ") {
            let (name, text, schema) = open.take().unwrap();
            cases.push(Case { name, text: text.join("\n"), schema, meant: meant.to_owned() });
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
    assert!(open.is_none(), "{kind}: a case has no end");
    cases
}
