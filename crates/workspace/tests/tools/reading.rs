//! `read_file` and `list_dir`: limits, and unusual files.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use jackline_workspace::{ToolErrorCode, Workspace, WorkspaceLimits};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::WorkspaceTrial;

#[test]
fn a_file_over_500_lines_is_cut_and_says_so() {
    let lines: Vec<String> = (1..=1200).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    let trial = WorkspaceTrial::new(&[("long.txt", &text)]);
    let page = trial.ok("read_file", &json!({ "path": "long.txt" }));
    assert_eq!(page["lines_shown"], 500);
    assert_eq!(page["lines_remaining"], 700);
    assert_eq!(page["has_more"], true);
    assert_eq!(page["next_offset"], 501);
    assert_eq!(page["total_lines"], 1200);
    let last = trial.call("read_file", &json!({ "path": "long.txt", "offset": 1001 })).unwrap();
    assert_eq!(last.structured["lines_shown"], 200);
    assert_eq!(last.structured["next_offset"], json!(null));
    assert!(last.text.ends_with("line 1200\n[lines 1001 to 1200 of 1200; end of file]\n"));
    let few = trial.ok("read_file", &json!({ "path": "long.txt", "offset": 3, "limit": 2 }));
    assert_eq!(few["content"], "line 3\nline 4\n");
}

#[test]
fn a_page_has_256_kib_at_most() {
    let line = "x".repeat(1999) + "\n";
    let trial = WorkspaceTrial::new(&[("wide.txt", &line.repeat(300))]);
    let page = trial.ok("read_file", &json!({ "path": "wide.txt" }));
    assert_eq!(page["lines_shown"], 131);
    assert_eq!(page["lines_remaining"], 169);
    assert_eq!(page["cut_lines"], json!([]));
}

#[test]
fn a_long_line_is_cut_and_can_be_continued() {
    let text = format!("short\n{}\nend\n", "é".repeat(3000));
    let trial = WorkspaceTrial::new(&[("long.txt", &text)]);
    let page = trial.ok("read_file", &json!({ "path": "long.txt" }));
    assert_eq!(page["cut_lines"], json!([{ "line": 2, "shown_bytes": 2000, "bytes": 6000 }]));
    assert_eq!(page["content"], format!("short\n{}\nend\n", "é".repeat(1000)));
    let rest = json!({ "path": "long.txt", "offset": 2, "line_offset": 2000 });
    let rest = trial.ok("read_file", &rest);
    assert_eq!(rest["content"], format!("{}\n", "é".repeat(2000)));
    assert_eq!(rest["next_offset"], 3);
    assert_eq!(rest["lines_remaining"], 1);
    let beyond = json!({ "path": "long.txt", "offset": 1, "line_offset": 6 });
    assert_eq!(trial.code("read_file", &beyond), ToolErrorCode::InvalidArguments);
}

#[test]
fn the_rest_of_a_huge_file_is_not_counted() {
    let limits = WorkspaceLimits { count_bytes_max: 10_000, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[]);
    trial.put("huge.txt", "0123456789\n".repeat(100_000).as_bytes());
    let page = trial.ok("read_file", &json!({ "path": "huge.txt" }));
    assert_eq!(page["total_lines"], json!(null));
    assert_eq!(page["lines_remaining"], json!(null));
    assert_eq!(page["bytes_remaining"], 11 * 100_000 - 11 * 500);
    assert_eq!(page["next_offset"], 501);
    let end = trial.ok("read_file", &json!({ "path": "huge.txt", "offset": 99_900 }));
    assert_eq!(end["total_lines"], 100_000);
}

#[test]
fn a_page_continues_within_a_line_without_an_end() {
    let limits = WorkspaceLimits { count_bytes_max: 100_000, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[]);
    trial.put("line.txt", &vec![b'x'; 3_000_000]);
    let page = trial.ok("read_file", &json!({ "path": "line.txt" }));
    assert_eq!(page["lines_shown"], 1);
    assert_eq!(page["cut_lines"], json!([{ "line": 1, "shown_bytes": 2000, "bytes": null }]));
    assert_eq!((&page["next_offset"], &page["next_line_offset"]), (&json!(1), &json!(2000)));
    assert_eq!(page["bytes_remaining"], 2_998_000);
    let next =
        trial.ok("read_file", &json!({ "path": "line.txt", "offset": 1, "line_offset": 2000 }));
    assert_eq!(next["content"].as_str().unwrap().len(), 262_143);
    assert_eq!(next["next_line_offset"], 264_143);
}

#[test]
fn a_last_page_with_a_cut_line_has_more() {
    let trial = WorkspaceTrial::new(&[]);
    trial.put("line.txt", &vec![b'x'; 260_000]);
    let page = trial.ok("read_file", &json!({ "path": "line.txt" }));
    assert_eq!((&page["lines_shown"], &page["lines_remaining"]), (&json!(1), &json!(0)));
    assert_eq!(page["has_more"], true);
    assert_eq!((&page["next_offset"], &page["next_line_offset"]), (&json!(1), &json!(2000)));
    let rest = json!({ "path": "line.txt", "offset": 1, "line_offset": 2000 });
    let rest = trial.ok("read_file", &rest);
    assert_eq!((&rest["has_more"], &rest["next_offset"]), (&json!(false), &json!(null)));
}

#[test]
fn the_start_of_a_page_is_bounded() {
    let limits = WorkspaceLimits { skip_bytes_max: 100_000, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[]);
    trial.put("huge.txt", "0123456789\n".repeat(100_000).as_bytes());
    let error = trial.call_refused("read_file", &json!({ "path": "huge.txt", "offset": 90_000 }));
    assert_eq!(error.code, ToolErrorCode::OffsetTooFar);
    let far = json!({ "path": "huge.txt", "line_offset": 1_000_000 });
    let error = trial.call_refused("read_file", &far);
    assert_eq!(error.code, ToolErrorCode::InvalidArguments);
    assert_eq!(error.message, "line 1 of `huge.txt` has 10 bytes, not 1000000");
    trial.put("line.txt", &vec![b'x'; 300_000]);
    let error =
        trial.call_refused("read_file", &json!({ "path": "line.txt", "line_offset": 200_000 }));
    assert_eq!(error.code, ToolErrorCode::OffsetTooFar);
    assert_eq!(error.message, "byte 200000 is too far into line 1 of `line.txt` to be read");
    for huge in [json!(1e30), json!("99999999999999999999999")] {
        let error =
            trial.call_refused("read_file", &json!({ "path": "line.txt", "line_offset": huge }));
        assert!(error.message.contains("must be at most 18446744073709551615"), "{error}");
    }
}

#[test]
fn contents_are_not_changed() {
    let trial = WorkspaceTrial::new(&[("dos.txt", "\u{feff}one\r\ntwo\r\n\r\nthree")]);
    let page = trial.ok("read_file", &json!({ "path": "dos.txt" }));
    assert_eq!(page["content"], "\u{feff}one\r\ntwo\r\n\r\nthree");
    assert_eq!(page["total_lines"], 4);
    assert_eq!(page["lossy"], false);
    trial.put("latin.txt", b"caf\xe9\n");
    let page = trial.ok("read_file", &json!({ "path": "latin.txt" }));
    assert_eq!(page["content"], "caf\u{fffd}\n");
    assert_eq!(page["lossy"], true);
}

#[test]
fn a_binary_file_has_its_own_error_code() {
    let trial = WorkspaceTrial::new(&[]);
    trial.put("program", b"\x7fELF\0\0\0\n");
    trial.put("wide.txt", b"\xff\xfea\0b\0\n\0");
    trial.put("late.txt", &[b"text\n".repeat(100_000), b"\0\n".to_vec()].concat());
    assert_eq!(trial.code("read_file", &json!({ "path": "program" })), ToolErrorCode::Binary);
    let wide = trial.call_refused("read_file", &json!({ "path": "wide.txt" }));
    assert!(wide.render_text().contains("UTF-16"), "{}", wide.render_text());
    trial.ok("read_file", &json!({ "path": "late.txt" }));
    let late = json!({ "path": "late.txt", "offset": 99_999 });
    assert_eq!(trial.code("read_file", &late), ToolErrorCode::Binary);
}

#[test]
fn an_empty_page_is_explained() {
    let trial = WorkspaceTrial::new(&[("empty", ""), ("three", "1\n2\n3")]);
    let empty = trial.ok("read_file", &json!({ "path": "empty" }));
    assert_eq!((&empty["total_lines"], &empty["has_more"]), (&json!(0), &json!(false)));
    assert_eq!(empty["guidance"]["text"], "`empty` is empty.");
    for offset in [4, 1000] {
        let page = trial.ok("read_file", &json!({ "path": "three", "offset": offset }));
        assert_eq!(page["total_lines"], 3);
        assert_eq!(page["guidance"]["next"]["args"]["offset"], 1);
    }
}

#[test]
fn invalid_numbers_are_refused_and_zero_means_the_start() {
    let trial = WorkspaceTrial::new(&[("a", "1\n2\n")]);
    for offset in [json!(-1), json!(1.5), json!("x"), json!([]), json!(1e30)] {
        let args = json!({ "path": "a", "offset": offset });
        assert_eq!(trial.code("read_file", &args), ToolErrorCode::InvalidArguments, "{args}");
    }
    assert_eq!(
        trial.code("read_file", &json!({ "path": "a", "limit": 0 })),
        ToolErrorCode::InvalidArguments
    );
    let page = trial.ok("read_file", &json!({ "path": "a", "offset": 0, "limit": "1" }));
    assert_eq!(page["content"], "1\n");
    let far = trial.ok("read_file", &json!({ "path": "a", "offset": u64::MAX, "limit": u64::MAX }));
    assert_eq!(far["lines_shown"], 0);
}

#[test]
fn special_files_are_refused_without_blocking() {
    let trial = WorkspaceTrial::new(&[("dir/file", "")]);
    let fifo = trial.root().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(trial.root().join("socket")).unwrap();
    for (path, code) in [
        ("fifo", ToolErrorCode::NotRegular),
        ("socket", ToolErrorCode::NotRegular),
        ("dir", ToolErrorCode::IsDirectory),
    ] {
        assert_eq!(trial.code("read_file", &json!({ "path": path })), code, "{path}");
        let write = json!({ "path": path, "content": "x" });
        assert_eq!(trial.code("write_file", &write), code, "{path}");
        let edit = json!({ "path": path, "old": "x", "new": "y" });
        assert_eq!(trial.code("edit_file", &edit), code, "{path}");
    }
    assert_eq!(
        trial.code("search", &json!({ "pattern": "x", "path": "fifo" })),
        ToolErrorCode::NotRegular
    );
    assert_eq!(trial.code("list_dir", &json!({ "path": "fifo" })), ToolErrorCode::NotDirectory);
    let all = trial.ok("search", &json!({ "pattern": "x" }));
    assert_eq!(all["total_matches"], 0);
    let device = Workspace::open("/dev", WorkspaceLimits::default()).unwrap();
    let error = device.call("read_file", &json!({ "path": "zero" })).unwrap_err();
    assert_eq!(error.code, ToolErrorCode::NotRegular);
}

#[test]
fn an_ignore_file_that_is_a_pipe_does_not_block() {
    let trial = WorkspaceTrial::new(&[("a.txt", "here\n")]);
    fs::create_dir(trial.root().join(".git")).unwrap();
    for name in [".gitignore", ".ignore"] {
        let path = trial.root().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    }
    assert_eq!(trial.ok("search", &json!({ "pattern": "here" }))["total_matches"], 1);
}

#[test]
fn a_changing_file_is_read_consistently() {
    let trial = WorkspaceTrial::new(&[("log", "start\n")]);
    let path = trial.root().join("log");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // This also sets the flag if an assertion fails; otherwise, the other thread would write
        // forever.
        let _ended = DoneOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut file = OpenOptions::new().append(true).open(&path).unwrap();
                for _ in 0..200 {
                    file.write_all(b"a line that is appended\n").unwrap();
                }
                file.set_len(6).unwrap();
            }
        });
        for offset in (1..300).cycle().take(2000) {
            let args = json!({ "path": "log", "offset": offset });
            let page = match trial.workspace.call("read_file", &args) {
                Ok(output) => output.structured,
                // While the file is truncated, its end may read as zeros.
                Err(error) if error.code == ToolErrorCode::Binary => continue,
                Err(error) => panic!("{error:?}"),
            };
            let shown = page["lines_shown"].as_u64().unwrap();
            assert_eq!(page["content"].as_str().unwrap().lines().count() as u64, shown, "{page}");
        }
    });
}

struct DoneOnDrop<'a>(&'a AtomicBool);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_denied_access_has_its_own_code() {
    // Not even the superuser may create files there.
    let sys = Workspace::open("/sys/kernel", WorkspaceLimits::default()).unwrap();
    let error = sys.call("write_file", &json!({ "path": "note", "content": "x" })).unwrap_err();
    assert!(
        matches!(error.code, ToolErrorCode::PermissionDenied | ToolErrorCode::NoSpace),
        "{error:?}"
    );
}

#[test]
fn directories_are_listed_sorted_with_kinds_and_sizes() {
    let trial = WorkspaceTrial::new(&[("b.txt", "12345"), ("a/x", ""), (".hidden", "")]);
    trial.link("b.txt", "c");
    trial.link("../../secret", "out");
    trial.link("gone", "dangling");
    let listed = trial.ok("list_dir", &json!({}));
    assert_eq!(
        listed["entries"],
        json!([
            { "name": ".hidden", "kind": "file", "size": 0 },
            { "name": "a", "kind": "directory" },
            { "name": "b.txt", "kind": "file", "size": 5 },
            { "name": "c", "kind": "symlink", "leads_to": "file" },
            { "name": "dangling", "kind": "symlink", "leads_to": "nothing" },
            { "name": "out", "kind": "symlink", "leads_to": "outside" },
        ])
    );
    assert_eq!(listed["path"], ".");
    let error = trial.call_refused("list_dir", &json!({ "path": "b.txt" }));
    assert_eq!(error.code, ToolErrorCode::NotDirectory);
}

#[test]
fn a_directory_of_100_000_entries_is_listed_in_pages() {
    let trial = WorkspaceTrial::new(&[]);
    let many = trial.root().join("many");
    fs::create_dir(&many).unwrap();
    let first = many.join("000000");
    fs::write(&first, "").unwrap();
    // Hard links are created faster than files.
    for number in 1..100_000 {
        if number % 50_000 == 0 {
            fs::write(many.join(format!("{number:06}")), "").unwrap();
        } else {
            fs::hard_link(&first, many.join(format!("{number:06}")))
                .or_else(|_| fs::write(many.join(format!("{number:06}")), ""))
                .unwrap();
        }
    }
    let page = trial.ok("list_dir", &json!({ "path": "many" }));
    assert_eq!(page["entries_shown"], 1000);
    assert_eq!(page["total_entries"], 100_000);
    assert_eq!(page["next_offset"], 1001);
    let last = trial.ok("list_dir", &json!({ "path": "many", "offset": 99_991 }));
    assert_eq!(last["entries_shown"], 10);
    assert_eq!(last["entries"][9]["name"], "099999");
    assert_eq!(last["has_more"], false);
}

#[test]
fn a_huge_line_number_is_not_a_fault() {
    let trial = WorkspaceTrial::new(&[("a", "one\n")]);
    for offset in [u64::MAX, u64::MAX - 1, 2] {
        let page = trial.ok("read_file", &json!({ "path": "a", "offset": offset }));
        assert_eq!((&page["lines_shown"], &page["total_lines"]), (&json!(0), &json!(1)));
    }
}
