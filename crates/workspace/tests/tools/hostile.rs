//! Files that are too much, and files that are nobody's business.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::process::Command;

use jackline_workspace::Code;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde_json::json;

use crate::Trial;

/// A line of a gigabyte. It begins and ends with letters, and is a hole between.
const LINE_BYTES: u64 = 1 << 30;
const ENDS_BYTES: usize = 64 << 10;

/// Set for the process that has no more room and time than it may need.
const BOUNDED: &str = "JACKLINE_TEST_BOUNDED";

#[test]
#[expect(clippy::disallowed_methods, reason = "the test tells itself that it is bounded")]
fn a_line_of_a_gigabyte_takes_neither_its_room_nor_its_time() {
    if std::env::var_os(BOUNDED).is_some() {
        return read_the_line();
    }
    // Kilobytes of addresses and seconds of work, for a process of its own: the other
    // tests of this one need room, too.
    let bounded = "ulimit -v 400000; ulimit -t 60; exec \"$0\" \"$@\"";
    let name = "hostile::a_line_of_a_gigabyte_takes_neither_its_room_nor_its_time";
    let mut command = Command::new("sh");
    command.args(["-c", bounded]).arg(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(BOUNDED, "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

fn read_the_line() {
    let trial = Trial::new(&[]);
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
    assert_eq!(trial.code("read_file", &amid), Code::Binary);

    let found = trial.ok("search", &json!({ "pattern": "x", "path": "line" }));
    assert_eq!(found["total_matches"], 0);
    assert_eq!(found["unsearched"][0]["path"], "line");
    let edit = json!({ "path": "line", "old": "x", "new": "y" });
    assert_eq!(trial.code("edit_file", &edit), Code::TooLarge);
}

#[test]
fn what_may_not_be_read_is_called_so_and_stops_no_search() {
    let trial = Trial::new(&[("secret", "needle\n"), ("open", "needle\n"), ("shut/in", "x\n")]);
    for path in ["secret", "shut"] {
        fs::set_permissions(trial.root().join(path), Permissions::from_mode(0o000)).unwrap();
    }
    let looked = std::thread::scope(|scope| {
        let look = || {
            // The superuser reads what it likes, unless this thread can't.
            let mut mine = capabilities(None).unwrap();
            mine.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, mine).unwrap();
            for (tool, path) in
                [("read_file", "secret"), ("list_dir", "shut"), ("read_file", "shut/in")]
            {
                let error = trial.refused(tool, &json!({ "path": path }));
                assert_eq!(error.code, Code::PermissionDenied, "{tool} {path}: {error:?}");
            }
            let edit = json!({ "path": "secret", "old": "needle", "new": "pin" });
            assert_eq!(trial.code("edit_file", &edit), Code::PermissionDenied);
            trial.ok("search", &json!({ "pattern": "needle" }))
        };
        scope.spawn(look).join()
    });
    // Else nobody could remove it.
    fs::set_permissions(trial.root().join("shut"), Permissions::from_mode(0o700)).unwrap();
    let found = looked.unwrap();
    assert_eq!(
        (&found["total_matches"], &found["matches"][0]["path"]),
        (&json!(1), &json!("open"))
    );
    let unsearched: Vec<_> =
        found["unsearched"].as_array().unwrap().iter().map(|left| &left["path"]).collect();
    assert!(unsearched.contains(&&json!("secret")), "{found}");
}
