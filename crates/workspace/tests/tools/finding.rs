//! `search` and `find_files`: what ripgrep would find, in a stable order, bounded.

use std::fs;

use jackline_workspace::{Code, Limits};
use serde_json::{Value, json};

use crate::Trial;

fn paths(found: &Value) -> Vec<String> {
    let matches = found["matches"].as_array().unwrap().iter();
    matches.map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"])).collect()
}

fn repository(files: &[(&str, &str)]) -> Trial {
    let trial = Trial::new(files);
    fs::create_dir(trial.root().join(".git")).unwrap();
    trial
}

#[test]
fn matches_come_by_path_and_line_with_what_they_match() {
    let trial = Trial::new(&[("b.txt", "no\n  needle here\n"), ("a/z.txt", "needle\nneedle\r\n")]);
    let found = trial.call("search", &json!({ "pattern": "needle" })).unwrap();
    assert_eq!(found.text, "a/z.txt:1:needle\na/z.txt:2:needle\r\nb.txt:2:  needle here\n");
    let found = found.structured;
    assert_eq!(paths(&found), ["a/z.txt:1", "a/z.txt:2", "b.txt:2"]);
    assert_eq!(found["matches"][2]["column"], 3);
    assert_eq!((&found["total_matches"], &found["files_matched"]), (&json!(3), &json!(2)));
    let one = trial.ok("search", &json!({ "pattern": "needle", "path": "b.txt" }));
    assert_eq!(paths(&one), ["b.txt:2"]);
}

#[test]
fn what_git_ignores_and_hides_is_left_out() {
    let files = [
        ("src/a.rs", "x"),
        ("target/b.rs", "x"),
        (".hidden/c.rs", "x"),
        ("log/keep.log", "x"),
        ("log/drop.log", "x"),
        ("plain/d.rs", "x"),
        ("nested/build/e.rs", "x"),
        ("nested/sub/build/f.rs", "x"),
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        (".ignore", "plain\n"),
        ("nested/.gitignore", "/build\n"),
    ];
    let trial = repository(&files);
    let found = trial.ok("search", &json!({ "pattern": "x" }));
    assert_eq!(paths(&found), ["log/keep.log:1", "nested/sub/build/f.rs:1", "src/a.rs:1"]);
    let named = trial.ok("search", &json!({ "pattern": "x", "path": "target" }));
    assert_eq!(paths(&named), ["target/b.rs:1"]);
    let hidden = trial.ok("find_files", &json!({ "glob": "*", "path": ".hidden" }));
    assert_eq!(hidden["files"], json!([".hidden/c.rs"]));
    // Outside of a repository, `.gitignore` is a file like any other, and `.ignore` is not.
    let trial = Trial::new(&files);
    let found = trial.ok("find_files", &json!({ "glob": "*.rs" }));
    assert_eq!(found["total_files"], 4);
}

#[test]
fn ignore_files_above_the_workspace_count_too() {
    let trial = Trial::new(&[("a.txt", "x"), ("b.tmp", "x")]);
    fs::create_dir(trial.outside().join(".git")).unwrap();
    fs::write(trial.outside().join(".gitignore"), "work/*.tmp\n").unwrap();
    assert_eq!(paths(&trial.ok("search", &json!({ "pattern": "x" }))), ["a.txt:1"]);
}

#[test]
fn globs_are_of_names_or_of_paths() {
    let trial =
        Trial::new(&[("src/a.rs", "x"), ("src/deep/b.rs", "x"), ("c.ts", "x"), ("d.TS", "x")]);
    for (glob, files) in [
        ("*.rs", vec!["src/a.rs", "src/deep/b.rs"]),
        ("src/*.rs", vec!["src/a.rs"]),
        ("./src/**/*.rs", vec!["src/a.rs", "src/deep/b.rs"]),
        ("**/*.{ts,TS}", vec!["c.ts", "d.TS"]),
        ("!*.rs", vec!["c.ts", "d.TS"]),
        ("[ab].rs", vec!["src/a.rs", "src/deep/b.rs"]),
    ] {
        assert_eq!(
            trial.ok("find_files", &json!({ "glob": glob }))["files"],
            json!(files),
            "{glob}"
        );
        let found = trial.ok("search", &json!({ "pattern": "x", "glob": glob }));
        assert_eq!(found["files_matched"], files.len(), "{glob}");
    }
    for glob in ["", "!", "[", "{a", "../*", "/etc/*", "a/../b"] {
        assert_eq!(trial.code("find_files", &json!({ "glob": glob })), Code::InvalidGlob, "{glob}");
    }
    let long = "{a,b}".repeat(500);
    assert_eq!(trial.code("find_files", &json!({ "glob": long })), Code::InvalidGlob);
}

#[test]
fn the_first_results_are_the_same_however_many_threads_look() {
    let trial = Trial::new(&[]);
    for number in 0..300 {
        trial.put(&format!("d{}/f{number}.txt", number % 17), b"hit\nhit\nmiss\n");
    }
    let mut answers = Vec::new();
    for threads in [1, 2, 4, 9] {
        let limits = Limits { threads, results_max: 50, entries_max: 40, ..Limits::default() };
        let other = jackline_workspace::Workspace::open(trial.root(), limits).unwrap();
        for _ in 0..3 {
            let found = other.call("search", &json!({ "pattern": "hit" })).unwrap();
            assert_eq!(found.structured["matches_shown"], 50);
            assert_eq!(found.structured["total_matches"], 600);
            assert_eq!(found.structured["has_more"], true);
            let files = other.call("find_files", &json!({ "glob": "*" })).unwrap();
            assert_eq!(files.structured["files_shown"], 40);
            assert_eq!(files.structured["total_files"], 300);
            answers.push((found, files));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let trial = Trial::new(&[]);
    let line = format!("{}needle{}\n", "é".repeat(10_000), "x".repeat(10_000));
    trial.put("wide.txt", line.as_bytes());
    let found = trial.ok("search", &json!({ "pattern": "needle" }));
    let hit = &found["matches"][0];
    let text = hit["text"].as_str().unwrap();
    assert!(text.contains("needle") && text.len() <= 503 && !text.contains('\u{fffd}'), "{text}");
    assert_eq!((&hit["cut"], &hit["column"]), (&json!(true), &json!(20_001)));
}

#[test]
fn answers_have_a_size_and_say_when_it_is_reached() {
    let limits = Limits { output_bytes_max: 1000, ..Limits::default() };
    let trial = Trial::with(limits, &[("a.txt", &"a line that matches\n".repeat(200))]);
    let found = trial.call("search", &json!({ "pattern": "matches" })).unwrap();
    assert!(found.text.len() < 1200);
    assert_eq!(found.structured["total_matches"], 200);
    assert_eq!(found.structured["has_more"], true);
    assert!(found.text.contains("of 200 matching lines in 1 files"), "{}", found.text);
}

#[test]
fn what_is_no_text_is_passed_by() {
    let trial = Trial::new(&[("text", "needle\n")]);
    trial.put("binary", b"needle\n\0needle\n");
    trial.put("latin", b"caf\xe9 needle\n");
    let found = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(paths(&found), ["latin:1", "text:1"]);
    let named = trial.ok("search", &json!({ "pattern": "needle", "path": "binary" }));
    assert_eq!(named["unsearched"], json!([{ "path": "binary", "reason": "binary" }]));
}

#[test]
fn a_line_longer_than_memory_is_named_and_not_searched() {
    let limits = Limits { search_heap_bytes_max: 100_000, ..Limits::default() };
    let trial = Trial::with(limits, &[("ok.txt", "needle\n")]);
    trial.put("line.txt", &vec![b'x'; 1_000_000]);
    let found = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(paths(&found), ["ok.txt:1"]);
    assert_eq!(
        found["unsearched"],
        json!([{ "path": "line.txt", "reason": "a line is too long" }])
    );
}

#[test]
fn patterns_that_make_no_sense_are_explained() {
    let trial = Trial::new(&[("a", "fn f(\n")]);
    let error = trial.refused("search", &json!({ "pattern": "f(" }));
    assert_eq!(error.code, Code::InvalidPattern);
    assert!(error.message.contains("unclosed group") && error.message.contains('^'), "{error}");
    let next = error.guidance.unwrap().next.unwrap();
    assert_eq!(next.args, json!({ "pattern": "f\\(" }));
    assert_eq!(trial.ok(next.tool, &next.args)["total_matches"], 1);
    for pattern in
        ["", "a\\nb", "(a{1000}){1000}", &"(".repeat(5000), &"x".repeat(10_000), "\\w{500}{9}"]
    {
        let code = trial.code("search", &json!({ "pattern": pattern }));
        assert_eq!(code, Code::InvalidPattern, "{pattern:.20}");
    }
}

#[test]
fn a_catastrophic_pattern_takes_no_longer_than_any() {
    let trial = Trial::new(&[("a", &"a".repeat(200_000))]);
    for pattern in ["(a+)+b", "(a|aa)+$b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y"] {
        assert_eq!(trial.ok("search", &json!({ "pattern": pattern }))["total_matches"], 0);
    }
}

#[test]
fn a_walk_has_an_end_and_says_so() {
    let limits = Limits { walk_entries_max: 10, ..Limits::default() };
    let trial = Trial::with(limits, &[]);
    (0..50).for_each(|number| trial.put(&format!("f{number}"), b"x"));
    assert_eq!(trial.ok("find_files", &json!({ "glob": "*" }))["complete"], false);
}

#[test]
fn a_deep_tree_is_walked() {
    let trial = Trial::new(&[]);
    let deep = "d/".repeat(300) + "file.txt";
    trial.put(&deep, b"needle\n");
    assert_eq!(paths(&trial.ok("search", &json!({ "pattern": "needle" }))), [format!("{deep}:1")]);
    assert_eq!(trial.ok("read_file", &json!({ "path": deep }))["content"], "needle\n");
}

#[test]
fn what_is_looked_for_is_looked_for_in_time_and_the_answer_says_so() {
    let limits = Limits { search_ms_max: 0, ..Limits::default() };
    let trial = Trial::with(limits, &[("a.txt", "needle\n"), ("b/c.txt", "needle\n")]);
    for (tool, args, found) in [
        ("search", json!({ "pattern": "needle" }), "total_matches"),
        ("search", json!({ "pattern": "needle", "path": "a.txt" }), "total_matches"),
        ("find_files", json!({ "glob": "*.txt" }), "total_files"),
    ] {
        let output = trial.call(tool, &args).unwrap();
        let fields = &output.structured;
        assert_eq!((&fields["timed_out"], &fields["complete"]), (&json!(true), &json!(false)));
        assert_eq!(fields[found], 0, "{fields}");
        assert!(output.text.contains("so far"), "{}", output.text);
        assert!(output.text.contains("the time was up after 0 ms"), "{}", output.text);
    }
    let trial = Trial::new(&[("a.txt", "needle\n")]);
    let fields = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!((&fields["timed_out"], &fields["complete"]), (&json!(false), &json!(true)));
}
