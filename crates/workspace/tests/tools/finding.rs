//! `search` and `find_files`: the results of ripgrep, in a stable order, with limits.

use std::fs;

use jackline_workspace::{ToolErrorCode, WorkspaceLimits};
use serde_json::{Value, json};

use crate::WorkspaceTrial;

fn paths(answer: &Value) -> Vec<String> {
    let matches = answer["matches"].as_array().unwrap().iter();
    matches.map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"])).collect()
}

fn repository(files: &[(&str, &str)]) -> WorkspaceTrial {
    let trial = WorkspaceTrial::new(files);
    fs::create_dir(trial.root().join(".git")).unwrap();
    trial
}

#[test]
fn matches_are_sorted_by_path_and_line() {
    let trial =
        WorkspaceTrial::new(&[("b.txt", "no\n  needle here\n"), ("a/z.txt", "needle\nneedle\r\n")]);
    let answer = trial.call("search", &json!({ "pattern": "needle" })).unwrap();
    assert_eq!(answer.text, "a/z.txt:1:needle\na/z.txt:2:needle\r\nb.txt:2:  needle here\n");
    let answer = answer.structured;
    assert_eq!(paths(&answer), ["a/z.txt:1", "a/z.txt:2", "b.txt:2"]);
    assert_eq!(answer["matches"][2]["column"], 3);
    assert_eq!((&answer["total_matches"], &answer["files_matched"]), (&json!(3), &json!(2)));
    let one = trial.ok("search", &json!({ "pattern": "needle", "path": "b.txt" }));
    assert_eq!(paths(&one), ["b.txt:2"]);
}

#[test]
fn ignored_and_hidden_files_are_left_out() {
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
    let answer = trial.ok("search", &json!({ "pattern": "x" }));
    assert_eq!(paths(&answer), ["log/keep.log:1", "nested/sub/build/f.rs:1", "src/a.rs:1"]);
    let named = trial.ok("search", &json!({ "pattern": "x", "path": "target" }));
    assert_eq!(paths(&named), ["target/b.rs:1"]);
    let hidden = trial.ok("find_files", &json!({ "glob": "*", "path": ".hidden" }));
    assert_eq!(hidden["files"], json!([".hidden/c.rs"]));
    // Outside of a repository, `.gitignore` has no effect, but `.ignore` has.
    let trial = WorkspaceTrial::new(&files);
    let answer = trial.ok("find_files", &json!({ "glob": "*.rs" }));
    assert_eq!(answer["total_files"], 4);
}

#[test]
fn ignore_files_above_the_workspace_apply_too() {
    let trial = WorkspaceTrial::new(&[("a.txt", "x"), ("b.tmp", "x")]);
    fs::create_dir(trial.outside().join(".git")).unwrap();
    fs::write(trial.outside().join(".gitignore"), "work/*.tmp\n").unwrap();
    assert_eq!(paths(&trial.ok("search", &json!({ "pattern": "x" }))), ["a.txt:1"]);
}

#[test]
fn a_glob_matches_names_or_paths() {
    let trial = WorkspaceTrial::new(&[
        ("src/a.rs", "x"),
        ("src/deep/b.rs", "x"),
        ("c.ts", "x"),
        ("d.TS", "x"),
    ]);
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
        let answer = trial.ok("search", &json!({ "pattern": "x", "glob": glob }));
        assert_eq!(answer["files_matched"], files.len(), "{glob}");
    }
    for glob in ["", "!", "[", "{a", "../*", "/etc/*", "a/../b"] {
        assert_eq!(
            trial.code("find_files", &json!({ "glob": glob })),
            ToolErrorCode::InvalidGlob,
            "{glob}"
        );
    }
    let long = "{a,b}".repeat(500);
    assert_eq!(trial.code("find_files", &json!({ "glob": long })), ToolErrorCode::InvalidGlob);
}

#[test]
fn the_first_results_do_not_depend_on_the_number_of_threads() {
    let trial = WorkspaceTrial::new(&[]);
    for number in 0..300 {
        trial.put(&format!("d{}/f{number}.txt", number % 17), b"hit\nhit\nmiss\n");
    }
    let mut answers = Vec::new();
    for threads in [1, 2, 4, 9] {
        let limits = WorkspaceLimits {
            threads,
            results_max: 50,
            entries_max: 40,
            ..WorkspaceLimits::default()
        };
        let other = jackline_workspace::Workspace::open(trial.root(), limits).unwrap();
        for _ in 0..3 {
            let answer = other.call("search", &json!({ "pattern": "hit" })).unwrap();
            assert_eq!(answer.structured["matches_shown"], 50);
            assert_eq!(answer.structured["total_matches"], 600);
            assert_eq!(answer.structured["has_more"], true);
            let files = other.call("find_files", &json!({ "glob": "*" })).unwrap();
            assert_eq!(files.structured["files_shown"], 40);
            assert_eq!(files.structured["total_files"], 300);
            answers.push((answer, files));
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let trial = WorkspaceTrial::new(&[]);
    let line = format!("{}needle{}\n", "é".repeat(10_000), "x".repeat(10_000));
    trial.put("wide.txt", line.as_bytes());
    let answer = trial.ok("search", &json!({ "pattern": "needle" }));
    let hit = &answer["matches"][0];
    let text = hit["text"].as_str().unwrap();
    assert!(text.contains("needle") && text.len() <= 503 && !text.contains('\u{fffd}'), "{text}");
    assert_eq!((&hit["cut"], &hit["column"]), (&json!(true), &json!(20_001)));
}

#[test]
fn an_answer_at_its_size_limit_says_so() {
    let limits = WorkspaceLimits { output_bytes_max: 1000, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[("a.txt", &"a line that matches\n".repeat(200))]);
    let answer = trial.call("search", &json!({ "pattern": "matches" })).unwrap();
    assert!(answer.text.len() < 1200);
    assert_eq!(answer.structured["total_matches"], 200);
    assert_eq!(answer.structured["has_more"], true);
    assert!(answer.text.contains("of 200 matching lines in 1 files"), "{}", answer.text);
}

#[test]
fn binary_files_are_skipped() {
    let trial = WorkspaceTrial::new(&[("text", "needle\n")]);
    trial.put("binary", b"needle\n\0needle\n");
    trial.put("latin", b"caf\xe9 needle\n");
    let answer = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(paths(&answer), ["latin:1", "text:1"]);
    let named = trial.ok("search", &json!({ "pattern": "needle", "path": "binary" }));
    assert_eq!(named["unsearched"], json!([{ "path": "binary", "reason": "binary" }]));
}

#[test]
fn a_file_with_a_line_that_is_too_long_is_reported() {
    let limits = WorkspaceLimits { search_heap_bytes_max: 100_000, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[("ok.txt", "needle\n")]);
    trial.put("line.txt", &vec![b'x'; 1_000_000]);
    let answer = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(paths(&answer), ["ok.txt:1"]);
    assert_eq!(
        answer["unsearched"],
        json!([{ "path": "line.txt", "reason": "a line is too long" }])
    );
}

#[test]
fn invalid_patterns_are_explained() {
    let trial = WorkspaceTrial::new(&[("a", "fn f(\n")]);
    let error = trial.call_refused("search", &json!({ "pattern": "f(" }));
    assert_eq!(error.code, ToolErrorCode::InvalidPattern);
    assert!(error.message.contains("unclosed group") && error.message.contains('^'), "{error}");
    let next = error.guidance.unwrap().next.unwrap();
    assert_eq!(next.args, json!({ "pattern": "f\\(" }));
    assert_eq!(trial.ok(next.tool, &next.args)["total_matches"], 1);
    for pattern in
        ["", "a\\nb", "(a{1000}){1000}", &"(".repeat(5000), &"x".repeat(10_000), "\\w{500}{9}"]
    {
        let code = trial.code("search", &json!({ "pattern": pattern }));
        assert_eq!(code, ToolErrorCode::InvalidPattern, "{pattern:.20}");
    }
}

#[test]
fn a_catastrophic_pattern_is_not_slower() {
    let trial = WorkspaceTrial::new(&[("a", &"a".repeat(200_000))]);
    for pattern in ["(a+)+b", "(a|aa)+$b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y"] {
        assert_eq!(trial.ok("search", &json!({ "pattern": pattern }))["total_matches"], 0);
    }
}

#[test]
fn a_walk_stops_at_its_limit_and_says_so() {
    let limits = WorkspaceLimits { walk_entries_max: 10, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[]);
    (0..50).for_each(|number| trial.put(&format!("f{number}"), b"x"));
    assert_eq!(trial.ok("find_files", &json!({ "glob": "*" }))["complete"], false);
}

#[test]
fn a_deep_tree_is_walked() {
    let trial = WorkspaceTrial::new(&[]);
    let deep = "d/".repeat(300) + "file.txt";
    trial.put(&deep, b"needle\n");
    assert_eq!(paths(&trial.ok("search", &json!({ "pattern": "needle" }))), [format!("{deep}:1")]);
    assert_eq!(trial.ok("read_file", &json!({ "path": deep }))["content"], "needle\n");
}

#[test]
fn a_search_stops_at_its_deadline_and_says_so() {
    let limits = WorkspaceLimits { search_ms_max: 0, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[("a.txt", "needle\n"), ("b/c.txt", "needle\n")]);
    for (tool, args, count_field) in [
        ("search", json!({ "pattern": "needle" }), "total_matches"),
        ("search", json!({ "pattern": "needle", "path": "a.txt" }), "total_matches"),
        ("find_files", json!({ "glob": "*.txt" }), "total_files"),
    ] {
        let output = trial.call(tool, &args).unwrap();
        let fields = &output.structured;
        assert_eq!((&fields["timed_out"], &fields["complete"]), (&json!(true), &json!(false)));
        assert_eq!(fields[count_field], 0, "{fields}");
        assert!(output.text.contains("so far"), "{}", output.text);
        assert!(output.text.contains("the search stopped after 0 ms"), "{}", output.text);
    }
    let trial = WorkspaceTrial::new(&[("a.txt", "needle\n")]);
    let fields = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!((&fields["timed_out"], &fields["complete"]), (&json!(false), &json!(true)));
}
