//! Volatile parts of texts, and parts that must not be removed.

use alloc::format;
use alloc::string::String;

use super::*;

fn same(one: &str, other: &str) {
    let (left, right) = (scrubbed_digest(one), scrubbed_digest(other));
    assert!(left.is_some() && left == right, "{one:.80?} and {other:.80?}: {left:?} {right:?}");
}

/// Checks that two texts have different fingerprints, whether parts were removed or not.
fn differ(one: &str, other: &str) {
    let fingerprint =
        |text: &str| scrubbed_digest(text).unwrap_or_else(|| Digest128::of(text.as_bytes()));
    assert_ne!(fingerprint(one), fingerprint(other), "{one:.80?} and {other:.80?}");
}

#[test]
fn volatile_parts_are_removed() {
    for (one, other) in [
        ("at 2026-11-15T18:38:22Z ok", "at 2026-11-16T09:00:01.123+01:00 ok"),
        ("2026-11-15 18:38:22,123 INFO up", "2026-11-15 18:38:23,001 INFO up"),
        ("Sun Nov 15 18:55:22 UTC 2026", "Sun Nov 15 18:55:59 UTC 2026"),
        ("3 passed in 1.23s", "3 passed in 0.98s"),
        ("real\t0m1.234s", "real\t2m10.001s"),
        ("done (15 ms)", "done (1203 ms)"),
        ("took 2h3m", "took 1h59m"),
        ("4.5 MB/s", "12 MB/s"),
        ("built 3 minutes ago", "built 12 minutes ago"),
        ("id 550e8400-e29b-41d4-a716-446655440000.", "id 67e55044-10b1-426f-9247-bb680e5fe0c8."),
        ("<Foo at 0x7f8a3c2d10>", "<Foo at 0x55d0aa11f0>"),
        ("started, pid 4711", "started, pid 90210"),
        (r#"{"pid": 4711, "ok": true}"#, r#"{"pid": 12, "ok": true}"#),
        ("running with session ID 33921", "running with session ID 1"),
        (r#"{"session_id":"a81b"}"#, r#"{"session_id":"c907"}"#),
        (r#"{"elapsed_ms": 17}"#, r#"{"elapsed_ms": 18}"#),
        ("listening on http://localhost:51234/", "listening on http://localhost:40001/"),
        ("Nov 15 host sshd[812]: bye", "Nov 15 host sshd[90412]: bye"),
        ("[1] 31337\n", "[1] 4\n"),
        ("thread 'a' (4009) panicked at x.rs:5:5:", "thread 'a' (12) panicked at x.rs:5:5:"),
        ("wrote /tmp/tmpab12cd/out.txt", "wrote /tmp/tmpzz99/out.txt"),
        ("in /var/folders/a1/b2c3/T/x9/log", "in /var/folders/zz/00/T/y1/log"),
        ("/tmp/pytest-of-me/pytest-3/a.py", "/tmp/pytest-of-me/pytest-4/a.py"),
    ] {
        same(one, other);
    }
}

#[test]
fn colours_and_titles_are_removed_completely() {
    let plain = scrub_bytes(b"\x1b[1;31mred\x1b[0m and \x1b]0;title\x07back").unwrap();
    assert_eq!(plain, b"red and back");
}

#[test]
fn meaningful_numbers_stay() {
    for (one, other) in [
        ("page 3 of 50", "page 4 of 50"),
        ("42 tests passed", "43 tests passed"),
        ("42 passed in 1.2s", "43 passed in 1.2s"),
        ("session 3 of 12", "session 4 of 12"),
        ("process 3 is done", "process 4 is done"),
        ("line 12", "line 13"),
        ("meeting 2026-11-15 10:00", "meeting 2026-11-15 11:00"),
        ("due 2026-11-15", "due 2026-11-16"),
        ("0x10", "0x11"),
        ("commit 3f5a9c1b2d", "commit 9f5a9c1b2d"),
        ("version 1.2.3", "version 1.2.4"),
        ("error in /tmp/build/a.rs", "error in /tmp/build/b.rs"),
        ("/tmp/tmpab12/a.rs", "/tmp/tmpab12/b.rs"),
        ("width 5m", "width 6m"),
        ("total 12", "total 120"),
        ("port of call 7", "port of call 8"),
        ("30 minutes of cooking", "40 minutes of cooking"),
        ("id 550e8400-e29b-41d4-a716-44665544000", "id 550e8400-e29b-41d4-a716-44665544001"),
    ] {
        differ(one, other);
    }
}

#[test]
fn a_text_without_volatile_parts_has_no_second_fingerprint() {
    for text in ["", "plain", "page 3 of 50", "a-b-c/d", "\u{0}\u{fffd}\u{1}", "12", "-", "/", "0x"]
    {
        assert_eq!(scrubbed_digest(text), None, "{text:?}");
    }
}

#[test]
fn a_long_text_is_identified_by_its_ends_and_its_approximate_length() {
    let log = |pid: u32, body: usize| format!("pid {pid}\n{}\nend\n", "x".repeat(body));
    same(&log(1, 1_000_000), &log(22_222, 1_000_000));
    differ(&log(1, 1_000_000), &log(1, 1_200_000));
    differ(&log(1, 1_000_000), &format!("{}!", log(1, 1_000_000)));
}

#[test]
fn truncated_and_hostile_texts_do_not_panic() {
    for text in [
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x1bé",
        "1.",
        "1:",
        "12:34:",
        "2026-11-15T",
        "/tmp/",
        "/var/folders/",
    ] {
        let _ = scrubbed_digest(text);
    }
    let long: String = "0".repeat(70_000) + &"-".repeat(70_000) + &"\x1b[".repeat(40_000);
    let _ = scrubbed_digest(&long);
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_scrubbed(text in "[0-9a-f:./ TZmspid\\-\u{1b}\\[é]{0,80}") {
        if let Some(scrubbed_text) = scrub_bytes(text.as_bytes()) {
            proptest::prop_assert!(scrubbed_text.len() <= text.len() + 1);
        }
    }
}
