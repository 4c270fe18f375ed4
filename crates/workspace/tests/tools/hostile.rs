//! Files that are too large, and files that may not be read.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::process::Command;

use jackline_workspace::ToolErrorCode;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde_json::json;

use crate::WorkspaceTrial;

/// The length of a sparse line: it starts and ends with letters, with a hole in between.
const LINE_BYTES: u64 = 1 << 30;
const ENDS_BYTES: usize = 64 << 10;

/// Set for the child process that runs with limited memory and time.
const BOUNDED: &str = "JACKLINE_TEST_BOUNDED";

#[test]
#[expect(clippy::disallowed_methods, reason = "the test marks its own child process")]
fn a_line_of_a_gigabyte_needs_little_memory_and_time() {
    if std::env::var_os(BOUNDED).is_some() {
        return read_the_line();
    }
    // The limits apply to a child process, because the other tests of this process need more
    // memory.
    let bounded = "ulimit -v 400000; ulimit -t 60; exec \"$0\" \"$@\"";
    let name = "hostile::a_line_of_a_gigabyte_needs_little_memory_and_time";
    let mut command = Command::new("sh");
    command.args(["-c", bounded]).arg(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(BOUNDED, "1");
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{output:?}");
}

fn read_the_line() {
    let trial = WorkspaceTrial::new(&[]);
    let file = OpenOptions::new().write(true).create_new(true).open(trial.root().join("line"));
    let file = file.unwrap();
    let letters = vec![b'x'; ENDS_BYTES];
    file.write_all_at(&letters, 0).unwrap();
    file.write_all_at(&letters, LINE_BYTES - ENDS_BYTES as u64).unwrap();

    let page = trial.ok("read_file", &json!({ "path": "line" }));
    assert_eq!(page["cut_lines"], json!([{ "line": 1, "shown_bytes": 2000, "bytes": null }]));
    assert_eq!((&page["total_lines"], &page["next_line_offset"]), (&json!(null), &json!(2000)));
    let end = json!({ "path": "line", "line_offset": LINE_BYTES - 1000 });
    let page = trial.ok("read_file", &end);
    assert_eq!((&page["has_more"], &page["total_lines"]), (&json!(false), &json!(1)));
    assert_eq!(page["content"].as_str().unwrap().len(), 1000);
    let amid = json!({ "path": "line", "line_offset": 1 << 20 });
    assert_eq!(trial.code("read_file", &amid), ToolErrorCode::Binary);

    let found = trial.ok("search", &json!({ "pattern": "x", "path": "line" }));
    assert_eq!(found["total_matches"], 0);
    assert_eq!(found["unsearched"][0]["path"], "line");
    let edit = json!({ "path": "line", "old": "x", "new": "y" });
    assert_eq!(trial.code("edit_file", &edit), ToolErrorCode::TooLarge);
}

#[test]
fn an_unreadable_file_is_reported_and_does_not_stop_a_search() {
    let trial =
        WorkspaceTrial::new(&[("secret", "needle\n"), ("open", "needle\n"), ("shut/in", "x\n")]);
    for path in ["secret", "shut"] {
        fs::set_permissions(trial.root().join(path), Permissions::from_mode(0o000)).unwrap();
    }
    let looked = std::thread::scope(|scope| {
        let look = || {
            // The superuser can read everything, unless this thread drops that capability.
            let mut mine = capabilities(None).unwrap();
            mine.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, mine).unwrap();
            for (tool, path) in
                [("read_file", "secret"), ("list_dir", "shut"), ("read_file", "shut/in")]
            {
                let error = trial.call_refused(tool, &json!({ "path": path }));
                assert_eq!(error.code, ToolErrorCode::PermissionDenied, "{tool} {path}: {error:?}");
            }
            let edit = json!({ "path": "secret", "old": "needle", "new": "pin" });
            assert_eq!(trial.code("edit_file", &edit), ToolErrorCode::PermissionDenied);
            trial.ok("search", &json!({ "pattern": "needle" }))
        };
        scope.spawn(look).join()
    });
    // Otherwise, the temporary directory could not be removed.
    fs::set_permissions(trial.root().join("shut"), Permissions::from_mode(0o700)).unwrap();
    let answer = looked.unwrap();
    assert_eq!(
        (&answer["total_matches"], &answer["matches"][0]["path"]),
        (&json!(1), &json!("open"))
    );
    let unsearched: Vec<_> =
        answer["unsearched"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert!(unsearched.contains(&&json!("secret")), "{answer}");
}
