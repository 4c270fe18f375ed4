//! Our parser accepts and rejects exactly the lines that `bash -n` does.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use jackline_shell::is_valid;

use crate::lines::read_cases;

/// Whether the bash of this machine accepts a line.
fn bash_accepts(line: &str) -> bool {
    let mut bash = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash must be installed");
    bash.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    bash.wait().unwrap().success()
}

/// The lines on which our parser and bash differ.
fn disagreements(lines: &[String]) -> Vec<String> {
    let differs = |line: &&String| is_valid(line) != Some(bash_accepts(line));
    thread::scope(|scope| {
        let parts = lines.chunks(lines.len().div_ceil(2).max(1));
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().filter(differs).cloned().collect()))
            .collect();
        parts.into_iter().flat_map(|part| -> Vec<String> { part.join().unwrap() }).collect()
    })
}

#[test]
fn our_parser_agrees_with_bash_on_tricky_lines() {
    let cases = read_cases("grammar");
    assert!(cases.len() >= 200);
    for case in &cases {
        let expected = Some(case.expected.trim() == "ok");
        assert_eq!(is_valid(&case.line), expected, "{} {}", case.location, case.line);
    }
    let lines: Vec<_> = cases.into_iter().map(|case| case.line).collect();
    assert_eq!(disagreements(&lines), Vec::<String>::new());
}

#[test]
fn our_parser_agrees_with_bash_on_the_hand_written_lines() {
    let mut lines: Vec<_> = read_cases("lines").into_iter().map(|case| case.line).collect();
    lines.extend(read_cases("evasions").into_iter().map(|case| case.line));
    assert_eq!(disagreements(&lines), Vec::<String>::new());
}

/// The parser joins a token that is split over two lines if that is simple. Otherwise
/// the line is opaque.
#[test]
fn a_split_token_is_never_accepted_as_another_token() {
    let simple = [
        "a &\\\n& b",
        "i\\\nf a; then b; fi",
        "echo $\\\n(a)",
        "a |\\\n| b",
        "a >\\\n> c; b",
        "{ a; }\\\n; b",
        "cas\\\ne x in x) a;\\\n; y) b;; esac",
        "echo \"$\\\n(a; b)\"",
        "b 'x\\\ny' &\\\n& a",
    ];
    let lines = simple.map(str::to_owned);
    assert_eq!(disagreements(&lines), Vec::<String>::new());
    for line in simple {
        let found = jackline_shell::understand(line);
        let runs = |name: &str| found.commands.iter().any(|command| command.matches_pattern(name));
        assert!(runs("a") && (runs("b") || !line.contains('b')), "{line}");
    }
    for line in ["a &\\\n& b # c", "i\\\nf a; then b \"$c\" 'd'; fi", "echo $\\\n(`a`)"] {
        assert_ne!(is_valid(line), Some(true), "{line}");
        assert!(!jackline_shell::understand(line).opaque_parts.is_empty(), "{line}");
    }
}

/// The corpus is next to the checkout and not part of it.
#[test]
fn our_parser_agrees_with_bash_on_real_command_lines() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/loops/miniswe-dev.jsonl.gz");
    if !path.exists() {
        println!("no corpus at {}", path.display());
        return;
    }
    let mut gzip =
        Command::new("gzip").arg("-dc").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    gzip.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(gzip.wait().unwrap().success());
    let mut lines = Vec::new();
    for run in text.lines() {
        let run: serde_json::Value = serde_json::from_str(run).unwrap();
        for step in run["steps"].as_array().unwrap() {
            lines.push(step["args"]["command"].as_str().unwrap().to_owned());
        }
    }
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    let wrong = disagreements(&lines);
    println!("{all} commands, {} different, {} disagreements", lines.len(), wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
}
