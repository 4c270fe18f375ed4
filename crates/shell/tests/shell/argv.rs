//! Compares the words that we expect a program to get with those that bash gives it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use jackline_shell::{WordKind, understand};

use crate::mutations::MutationDice;

const PIECES: [&str; 44] = [
    "a",
    "b",
    "-x",
    "'c d'",
    "\"e f\"",
    "\\ ",
    "\\\\",
    "\\'",
    "\\\"",
    "\"\\$x\"",
    "\"\\q\"",
    "'\\n'",
    "$'\\n'",
    "$'\\t\\x41'",
    "$'\\u00e9'",
    "$'\\101'",
    "$'it\\'s'",
    "$\"g\"",
    "$x",
    "\"$x\"",
    "${x}",
    "\"${x}\"",
    "$y",
    "\"$y\"",
    "${z}",
    "$z$z",
    "{a,b}",
    "{1..3}",
    "{a,'b c'}",
    "{}",
    "{a",
    "a}",
    "\"\"",
    "''",
    "\\\n",
    "é",
    "=",
    "#",
    "{a,{b,c}}",
    "x=$x",
    "\"*\"",
    "\\*",
    "~x",
    ":",
];

/// Random words built from the pieces.
fn random_words(dice: &mut MutationDice) -> String {
    let mut text = String::new();
    for _ in 0..=dice.roll(4) {
        text.push(' ');
        for _ in 0..=dice.roll(3) {
            text.push_str(PIECES[dice.roll(PIECES.len())]);
        }
    }
    text
}

/// The arguments that bash passes to the program, for each line, in one process.
fn words_from_bash(lines: &[String]) -> Vec<Vec<String>> {
    let mut script = String::from("show() { printf '%s\\0' \"$@\"; printf '\\1\\0'; }\n");
    for line in lines {
        script.push_str(line);
        script.push('\n');
    }
    let mut bash = Command::new("bash")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash must be installed");
    let mut stdin = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).unwrap());
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all = vec![Vec::new()];
    for word in text.split_terminator('\0') {
        if word == "\u{1}" {
            all.push(Vec::new());
        } else {
            all.last_mut().unwrap().push(word.to_owned());
        }
    }
    all.pop();
    all
}

#[test]
fn our_words_equal_the_words_of_bash() {
    let mut dice = MutationDice(0x0a46_11b0_77ed_0001);
    let lines: Vec<_> =
        (0..4_000).map(|_| format!("x='a b' y= z=c; show{}", random_words(&mut dice))).collect();
    let given = words_from_bash(&lines);
    assert_eq!(given.len(), lines.len());
    let mut compared = 0;
    for (line, mut given) in lines.iter().zip(given) {
        let found = understand(line);
        let Some(command) = found.commands.iter().find(|command| command.matches_pattern("show"))
        else {
            continue;
        };
        if command.arguments().iter().any(|word| word.kind != WordKind::Literal) {
            continue;
        }
        let words: Vec<_> = command.arguments().iter().map(|word| word.text.to_string()).collect();
        if words.is_empty() {
            // `printf` with no argument still prints one empty string.
            given.retain(|word| !word.is_empty());
        }
        assert_eq!(words, given, "{line}");
        compared += 1;
    }
    println!("{compared} of {} lines compared", lines.len());
    assert!(compared > 2_000);
}
