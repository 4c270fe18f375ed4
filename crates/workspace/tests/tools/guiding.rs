//! Suggestions after an empty answer: every suggested path really exists.

use std::fs;

use jackline_workspace::{Guidance, ToolErrorCode, WorkspaceLimits};
use serde_json::{Value, json};

use crate::WorkspaceTrial;

fn tree() -> WorkspaceTrial {
    let trial = WorkspaceTrial::new(&[
        ("src/Parser.rs", "fn parse_all(text: &str) {}\nlet cost = a[0] + b;\n"),
        ("src/lexer.rs", "struct Token;\n"),
        ("docs/guide.md", "Call ParseAll first.\n"),
        ("target/out.rs", "fn generated_only() {}\n"),
        (".env", "HIDDEN_KEY=1\n"),
        (".gitignore", "target/\n"),
        ("README.md", "# Read me\n"),
    ]);
    fs::create_dir(trial.root().join(".git")).unwrap();
    trial
}

fn guidance_of(trial: &WorkspaceTrial, tool: &str, args: &Value) -> Value {
    let output = trial.call(tool, args).unwrap();
    let guidance = output.structured["guidance"].clone();
    assert!(output.text.contains(guidance["text"].as_str().unwrap()), "{}", output.text);
    assert!(guidance["next"]["tool"].is_string(), "{guidance}");
    // The suggested call must work.
    let next = guidance["next"]["tool"].as_str().unwrap();
    trial.ok(next, &guidance["next"]["args"]);
    guidance
}

#[test]
fn matches_in_another_letter_case_are_suggested() {
    let guidance = guidance_of(&tree(), "search", &json!({ "pattern": "PARSE_ALL" }));
    assert_eq!(guidance["other_case"], json!(["src/Parser.rs:1"]));
    assert_eq!(guidance["next"]["args"]["pattern"], "(?i)PARSE_ALL");
    let guidance = guidance_of(&tree(), "find_files", &json!({ "glob": "parser.rs" }));
    assert_eq!(guidance["other_case"], json!(["src/Parser.rs"]));
}

#[test]
fn a_literal_match_is_suggested() {
    let guidance = guidance_of(&tree(), "search", &json!({ "pattern": "a[0] + b" }));
    assert_eq!(guidance["literal"], json!(["src/Parser.rs:2"]));
    assert_eq!(guidance["next"]["args"]["pattern"], "a\\[0\\] \\+ b");
}

#[test]
fn skipped_paths_with_a_match_are_suggested() {
    let guidance = guidance_of(&tree(), "search", &json!({ "pattern": "generated_only" }));
    assert_eq!(guidance["ignored"], json!(["target"]));
    assert_eq!(guidance["next"]["args"], json!({ "pattern": "generated_only", "path": "target" }));
    let guidance = guidance_of(&tree(), "search", &json!({ "pattern": "HIDDEN_KEY" }));
    assert_eq!(guidance["ignored"], json!([".env"]));
    let guidance = guidance_of(&tree(), "find_files", &json!({ "glob": "out.rs" }));
    assert_eq!(guidance["ignored"], json!(["target"]));
}

#[test]
fn matches_outside_of_the_filters_are_suggested() {
    let args = json!({ "pattern": "ParseAll", "path": "src", "glob": "*.rs" });
    let guidance = guidance_of(&tree(), "search", &args);
    assert_eq!(guidance["elsewhere"], json!(["docs/guide.md:1"]));
    let args = json!({ "pattern": "parse_all", "glob": "*.py" });
    let guidance = guidance_of(&tree(), "search", &args);
    assert!(guidance["text"].as_str().unwrap().starts_with("No file was searched"));
    assert_eq!(guidance["elsewhere"], json!(["src/Parser.rs:1"]));
    let guidance = guidance_of(&tree(), "find_files", &json!({ "glob": "*.md", "path": "src" }));
    assert_eq!(guidance["elsewhere"], json!(["README.md", "docs/guide.md"]));
}

#[test]
fn similar_names_are_suggested() {
    let guidance = guidance_of(&tree(), "find_files", &json!({ "glob": "lexr.rs" }));
    assert_eq!(guidance["near"], json!(["src/lexer.rs"]));
    let trial = tree();
    let missing = |path: &str| -> Guidance {
        let error = trial.call_refused("read_file", &json!({ "path": path }));
        assert_eq!(error.code, ToolErrorCode::NotFound);
        assert_eq!(error.path.as_deref(), Some(path));
        *error.guidance.unwrap()
    };
    assert_eq!(missing("src/lexr.rs").near, ["src/lexer.rs"]);
    assert_eq!(missing("scr/lexer.rs").near, ["src"]);
    assert_eq!(missing("lib/lexer.rs").elsewhere, ["src/lexer.rs"]);
    assert_eq!(missing("readme.md").near, ["README.md"]);
    assert!(missing("zzz/yyy/xxx").near.is_empty());
}

#[test]
fn there_is_always_a_suggested_call() {
    let guidance = guidance_of(&tree(), "search", &json!({ "pattern": "qqqqqqqq" }));
    assert_eq!(guidance["next"]["tool"], "list_dir");
    let guidance = guidance_of(&tree(), "find_files", &json!({ "glob": "*.qqq" }));
    assert_eq!(guidance["next"]["tool"], "list_dir");
}

#[test]
fn suggestions_take_bounded_work() {
    let limits = WorkspaceLimits { hint_entries_max: 100, ..WorkspaceLimits::default() };
    let trial = WorkspaceTrial::with(limits, &[]);
    for number in 0..500 {
        trial.put(&format!("d{}/{number}.txt", number % 7), b"nothing\n");
    }
    trial.put("z/last.txt", b"NEEDLE\n");
    let answer = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(answer["guidance"]["other_case"], json!(null));
}

#[test]
fn suggestions_read_a_bounded_number_of_bytes() {
    // The skipped directories have far more data than is read for suggestions; only the last one
    // has a match.
    let filler = "x".repeat(1 << 20);
    let trial =
        WorkspaceTrial::new(&[(".gitignore", "skipped*\n"), (".git/HEAD", ""), ("a", "nothing\n")]);
    for place in 0..3 {
        let directory = trial.root().join(format!("skipped{place}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..30 {
            fs::write(directory.join(format!("{file:02}")), &filler).unwrap();
        }
    }
    fs::write(trial.root().join("skipped0/99"), "needle\n").unwrap();
    fs::write(trial.root().join("skipped2/99"), "needle\n").unwrap();
    let answer = trial.ok("search", &json!({ "pattern": "needle" }));
    assert_eq!(answer["guidance"]["ignored"], json!(["skipped0"]), "{answer}");
}
