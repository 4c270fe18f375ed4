//! `write_file` and `edit_file`: all or nothing, and an error that leads on.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use jackline_workspace::{Code, Limits};
use serde_json::json;

use crate::Trial;

fn read(trial: &Trial, path: &str) -> String {
    fs::read_to_string(trial.root().join(path)).unwrap()
}

#[test]
fn a_file_is_made_with_the_directories_it_is_in() {
    let trial = Trial::new(&[]);
    let args = json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" });
    let made = trial.ok("write_file", &args);
    assert_eq!(made, json!({ "path": "a/b/c.txt", "created": true, "bytes": 8, "lines": 2 }));
    assert_eq!(read(&trial, "a/b/c.txt"), "one\ntwo\n");
    let again = trial.ok("write_file", &json!({ "path": "a/b/c.txt", "content": "" }));
    assert_eq!(again["created"], false);
    assert_eq!(read(&trial, "a/b/c.txt"), "");
    // Nothing is left lying around.
    assert_eq!(fs::read_dir(trial.root().join("a/b")).unwrap().count(), 1);
    let through = json!({ "path": "a/b/c.txt/d", "content": "" });
    assert_eq!(trial.code("write_file", &through), Code::NotDirectory);
}

#[test]
fn the_mode_of_a_file_is_kept() {
    let trial = Trial::new(&[("run.sh", "#!/bin/sh\n")]);
    let path = trial.root().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    trial.ok("write_file", &json!({ "path": "run.sh", "content": "#!/bin/sh\ntrue\n" }));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    trial.ok("edit_file", &json!({ "path": "run.sh", "old": "true", "new": "false" }));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(read(&trial, "run.sh"), "#!/bin/sh\nfalse\n");
}

#[test]
fn what_is_too_large_is_not_written() {
    let limits = Limits { write_bytes_max: 10, ..Limits::default() };
    let trial = Trial::with(limits, &[("full", "0123456789"), ("over", "0123456789x")]);
    let write = json!({ "path": "new", "content": "01234567890" });
    assert_eq!(trial.code("write_file", &write), Code::TooLarge);
    assert!(!trial.root().join("new").exists());
    let edit = json!({ "path": "full", "old": "9", "new": "99" });
    assert_eq!(trial.code("edit_file", &edit), Code::TooLarge);
    let edit = json!({ "path": "over", "old": "9", "new": "" });
    assert_eq!(trial.code("edit_file", &edit), Code::TooLarge);
}

#[test]
fn an_edit_replaces_one_exact_text() {
    let trial = Trial::new(&[("a.rs", "fn a() {}\r\nfn b() {}\r\n")]);
    let edit = json!({ "path": "a.rs", "old": "fn b", "new": "fn c" });
    let edited = trial.ok("edit_file", &edit);
    assert_eq!(edited["line"], 2);
    assert_eq!(read(&trial, "a.rs"), "fn a() {}\r\nfn c() {}\r\n");
    for (old, new, code) in [
        ("", "x", Code::InvalidArguments),
        ("fn c", "fn c", Code::NoChange),
        ("zzzz", "", Code::NoMatch),
    ] {
        assert_eq!(
            trial.code("edit_file", &json!({ "path": "a.rs", "old": old, "new": new })),
            code
        );
    }
    trial.put("latin.txt", b"caf\xe9");
    let edit = json!({ "path": "latin.txt", "old": "caf", "new": "x" });
    assert_eq!(trial.code("edit_file", &edit), Code::NotUtf8);
}

#[test]
fn a_text_that_is_there_several_times_is_counted() {
    let trial = Trial::new(&[("a", "x = 1\ny = 2\nx = 1\n"), ("b", "aaa")]);
    let error = trial.refused("edit_file", &json!({ "path": "a", "old": "x = 1", "new": "" }));
    assert_eq!(error.code, Code::AmbiguousMatch);
    assert_eq!(error.message, "`old` is in `a` 2 times, at the lines 1, 3");
    // Overlapping, it is there twice, and nobody knows which is meant.
    let error = trial.refused("edit_file", &json!({ "path": "b", "old": "aa", "new": "" }));
    assert_eq!(error.code, Code::AmbiguousMatch);
}

#[test]
fn a_text_that_is_not_there_is_answered_with_the_nearest() {
    let file = "fn main() {\n    let total = compute(1, 2);\n    print(total);\n}\n";
    let trial = Trial::new(&[("m.rs", file), ("dos.txt", "one\r\ntwo\r\n")]);
    let near = |path: &str, old: &str| {
        let error = trial.refused("edit_file", &json!({ "path": path, "old": old, "new": "" }));
        assert_eq!(error.code, Code::NoMatch);
        *error.guidance.unwrap()
    };
    let space = near("m.rs", "let total = compute(1,  2);\nprint(total);");
    assert_eq!(space.near, ["    let total = compute(1, 2);\n    print(total);\n"]);
    assert!(space.text.starts_with("Apart from white space it is at line 2:"), "{}", space.text);
    let slip = near("m.rs", "    let totl = compute(1, 3);");
    assert_eq!(slip.elsewhere, ["m.rs:2"]);
    assert!(slip.text.starts_with("The nearest is at line 2:"), "{}", slip.text);
    let ends = near("dos.txt", "one\ntwo\n");
    assert!(ends.text.contains("The file has CRLF line ends."), "{}", ends.text);
    let nothing = near("m.rs", "something else entirely, far away");
    assert!(nothing.near.is_empty());
    assert_eq!(nothing.next.unwrap().tool, "read_file");
}

#[test]
fn a_text_that_is_everywhere_is_found_out_soon() {
    let content = "a".repeat(8 << 20);
    let trial = Trial::new(&[("a", &content)]);
    let old = "a".repeat(4 << 20);
    let error = trial.refused("edit_file", &json!({ "path": "a", "old": old, "new": "b" }));
    assert_eq!(error.code, Code::AmbiguousMatch);
    assert!(error.message.starts_with("`old` is in `a` more than 20 times"), "{}", error.message);
}
