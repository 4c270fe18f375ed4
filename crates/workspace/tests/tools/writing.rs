//! `write_file` and `edit_file`: complete or not at all, with errors that help.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use jackline_workspace::{ToolErrorCode, WorkspaceLimits};
use serde_json::json;

use crate::WorkspaceTrial;

fn read(trial: &WorkspaceTrial, path: &str) -> String {
    fs::read_to_string(trial.root().join(path)).unwrap()
}

#[test]
fn a_file_is_created_with_its_directories() {
    let trial = WorkspaceTrial::new(&[]);
    let args = json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" });
    let made = trial.ok("write_file", &args);
    assert_eq!(made, json!({ "path": "a/b/c.txt", "created": true, "bytes": 8, "lines": 2 }));
    assert_eq!(read(&trial, "a/b/c.txt"), "one\ntwo\n");
    let again = trial.ok("write_file", &json!({ "path": "a/b/c.txt", "content": "" }));
    assert_eq!(again["created"], false);
    assert_eq!(read(&trial, "a/b/c.txt"), "");
    // No temporary file is left.
    assert_eq!(fs::read_dir(trial.root().join("a/b")).unwrap().count(), 1);
    let through = json!({ "path": "a/b/c.txt/d", "content": "" });
    assert_eq!(trial.code("write_file", &through), ToolErrorCode::NotDirectory);
}

#[test]
fn the_mode_of_a_file_is_kept() {
    let trial = WorkspaceTrial::new(&[("run.sh", "#!/bin/sh\n")]);
    let path = trial.root().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    trial.ok("write_file", &json!({ "path": "run.sh", "content": "#!/bin/sh\ntrue\n" }));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    trial.ok("edit_file", &json!({ "path": "run.sh", "old": "true", "new": "false" }));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(read(&trial, "run.sh"), "#!/bin/sh\nfalse\n");
}

#[test]
fn content_that_is_too_large_is_not_written() {
    let limits = WorkspaceLimits { write_bytes_max: 10, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[("full", "0123456789"), ("over", "0123456789x")]);
    let write = json!({ "path": "new", "content": "01234567890" });
    assert_eq!(trial.code("write_file", &write), ToolErrorCode::TooLarge);
    assert!(!trial.root().join("new").exists());
    let edit = json!({ "path": "full", "old": "9", "new": "99" });
    assert_eq!(trial.code("edit_file", &edit), ToolErrorCode::TooLarge);
    let edit = json!({ "path": "over", "old": "9", "new": "" });
    assert_eq!(trial.code("edit_file", &edit), ToolErrorCode::TooLarge);
}

#[test]
fn an_edit_replaces_one_exact_text() {
    let trial = WorkspaceTrial::new(&[("a.rs", "fn a() {}\r\nfn b() {}\r\n")]);
    let edit = json!({ "path": "a.rs", "old": "fn b", "new": "fn c" });
    let edited = trial.ok("edit_file", &edit);
    assert_eq!(edited["line"], 2);
    assert_eq!(read(&trial, "a.rs"), "fn a() {}\r\nfn c() {}\r\n");
    for (old, new, code) in [
        ("", "x", ToolErrorCode::InvalidArguments),
        ("fn c", "fn c", ToolErrorCode::NoChange),
        ("zzzz", "", ToolErrorCode::NoMatch),
    ] {
        assert_eq!(
            trial.code("edit_file", &json!({ "path": "a.rs", "old": old, "new": new })),
            code
        );
    }
    trial.put("latin.txt", b"caf\xe9");
    let edit = json!({ "path": "latin.txt", "old": "caf", "new": "x" });
    assert_eq!(trial.code("edit_file", &edit), ToolErrorCode::NotUtf8);
}

#[test]
fn a_text_with_several_occurrences_is_refused_with_their_number() {
    let trial = WorkspaceTrial::new(&[("a", "x = 1\ny = 2\nx = 1\n"), ("b", "aaa")]);
    let error = trial.call_refused("edit_file", &json!({ "path": "a", "old": "x = 1", "new": "" }));
    assert_eq!(error.code, ToolErrorCode::AmbiguousMatch);
    assert_eq!(error.message, "`old` occurs 2 times in `a`, on lines 1, 3");
    // Overlapping occurrences count as two, because it is unclear which one is meant.
    let error = trial.call_refused("edit_file", &json!({ "path": "b", "old": "aa", "new": "" }));
    assert_eq!(error.code, ToolErrorCode::AmbiguousMatch);
}

#[test]
fn a_missing_text_is_answered_with_the_most_similar_one() {
    let file = "fn main() {\n    let total = compute(1, 2);\n    print(total);\n}\n";
    let trial = WorkspaceTrial::new(&[("m.rs", file), ("dos.txt", "one\r\ntwo\r\n")]);
    let near = |path: &str, old: &str| {
        let error =
            trial.call_refused("edit_file", &json!({ "path": path, "old": old, "new": "" }));
        assert_eq!(error.code, ToolErrorCode::NoMatch);
        *error.guidance.unwrap()
    };
    let space = near("m.rs", "let total = compute(1,  2);\nprint(total);");
    assert_eq!(space.near, ["    let total = compute(1, 2);\n    print(total);\n"]);
    assert!(
        space.text.starts_with("Ignoring white space, the text is at line 2:"),
        "{}",
        space.text
    );
    let slip = near("m.rs", "    let totl = compute(1, 3);");
    assert_eq!(slip.elsewhere, ["m.rs:2"]);
    assert!(slip.text.starts_with("The most similar text is at line 2:"), "{}", slip.text);
    let ends = near("dos.txt", "one\ntwo\n");
    assert!(ends.text.contains("The file has CRLF line ends."), "{}", ends.text);
    let nothing = near("m.rs", "something else entirely, far away");
    assert!(nothing.near.is_empty());
    assert_eq!(nothing.next.unwrap().tool, "read_file");
}

#[test]
fn a_text_with_many_occurrences_is_refused_quickly() {
    let content = "a".repeat(8 << 20);
    let trial = WorkspaceTrial::new(&[("a", &content)]);
    let old = "a".repeat(4 << 20);
    let error = trial.call_refused("edit_file", &json!({ "path": "a", "old": old, "new": "b" }));
    assert_eq!(error.code, ToolErrorCode::AmbiguousMatch);
    assert!(
        error.message.starts_with("`old` occurs more than 20 times in `a`"),
        "{}",
        error.message
    );
}
