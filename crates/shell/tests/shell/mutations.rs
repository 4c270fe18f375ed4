//! Lines of the tables with random damage: the analysis never panics.

use std::fmt::Write as _;

use jackline_shell::{COMMANDS_MAX, OpaqueReason, understand};

use crate::lines::read_cases;

/// A small random generator with a fixed seed, so that a failure can be repeated.
pub(crate) struct MutationDice(pub(crate) u64);

impl MutationDice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).unwrap()
    }
}

const SIGNS: [&str; 32] = [
    "$(",
    ")",
    "'",
    "\"",
    "`",
    "\\",
    "\n",
    ";",
    "&&",
    "|",
    "{",
    "}",
    "<<EOF\n",
    "EOF\n",
    "${",
    "((",
    "))",
    "[[",
    "]]",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "case x in ",
    "esac",
    "f() ",
    "$'",
    ">",
    "<(",
    "é",
    "\0",
];

fn damage_line(line: &str, other: &str, dice: &mut MutationDice) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(chars.len() + 1);
        match dice.roll(5) {
            0 => {
                chars.truncate(at);
            }
            1 if at < chars.len() => {
                chars.remove(at);
            }
            2 => {
                let tail = other.chars().skip(dice.roll(other.len()));
                chars.splice(at.., tail);
            }
            3 => {
                let part: Vec<char> = chars[..at].to_vec();
                chars.splice(at..at, part);
            }
            _ => {
                chars.splice(at..at, SIGNS[dice.roll(SIGNS.len())].chars());
            }
        }
        chars.truncate(400);
    }
    chars.into_iter().collect()
}

#[test]
fn two_hundred_thousand_damaged_lines_cause_no_panic() {
    let mut lines: Vec<_> = read_cases("lines").into_iter().map(|case| case.line).collect();
    lines.extend(read_cases("evasions").into_iter().map(|case| case.line));
    lines.extend(read_cases("grammar").into_iter().map(|case| case.line));
    let mut dice = MutationDice(0x005e_ed0f_7ac1_e11e);
    for _ in 0..200_000 {
        let line =
            damage_line(&lines[dice.roll(lines.len())], &lines[dice.roll(lines.len())], &mut dice);
        let found = understand(&line);
        for command in &found.commands {
            assert!(line.get(command.span.start as usize..command.span.end as usize).is_some());
        }
    }
}

#[test]
fn a_line_beyond_a_limit_is_reported_as_opaque() {
    for text in [
        "$(".repeat(1_000),
        format!("{}a{}", "$(".repeat(1_000), ")".repeat(1_000)),
        format!("{}a{}", "( ".repeat(1_000), ")".repeat(1_000)),
        format!("{}a{}", "{ ".repeat(1_000), "; }".repeat(1_000)),
        format!("{}a{}", "\"$(".repeat(1_000), ")\"".repeat(1_000)),
        format!("{}a{}", "${x:-".repeat(1_000), "}".repeat(1_000)),
        format!("{}a{}", "$((".repeat(1_000), "))".repeat(1_000)),
        format!("{}a{}", "if a; then ".repeat(1_000), "; fi".repeat(1_000)),
        format!("{}a{}", "a <(".repeat(1_000), ")".repeat(1_000)),
        "`\\".repeat(1_000),
        "f() { f; g; }; f; ".repeat(500),
        "a && ".repeat(5_000) + "a",
        "a | ".repeat(5_000) + "a",
        "sudo ".repeat(1_000),
        "eval ".repeat(1_000),
        "while a; do ".repeat(90) + &"; done".repeat(90),
        "x=1; for i in 1 2 3 4 5 6 7 8; do ".repeat(30) + "a" + &"; done".repeat(30),
        "case a in b) ".repeat(1_000),
        "x\0y".to_owned(),
    ] {
        let line = understand(&text);
        assert!(!line.opaque_parts.is_empty(), "{}", text.chars().take(80).collect::<String>());
    }
}

#[test]
fn the_analysis_of_recursive_functions_ends() {
    understand("a() { b; b; }; b() { a; a; }; a");
    understand("a() { eval a; }; a");
    understand("a() { bash -c a; a | a; }; a; a; a");
    let mut doubling = String::new();
    for n in 0..40 {
        write!(doubling, "f{}() {{ f{n}; f{n}; }}; ", n + 1).unwrap();
    }
    doubling.push_str("f40");
    let line = understand(&doubling);
    assert!(line.commands.len() <= COMMANDS_MAX && !line.opaque_parts.is_empty());
}

#[test]
fn no_line_has_more_commands_than_the_limit() {
    let full = "a;".repeat(COMMANDS_MAX);
    let line = understand(&full);
    assert_eq!(line.commands.len(), COMMANDS_MAX);
    assert!(line.opaque_parts.iter().all(|opaque| opaque.reason == OpaqueReason::NoRow));
    for text in [
        "a;".repeat(COMMANDS_MAX + 1),
        format!("find . {}", "-exec a \\; ".repeat(COMMANDS_MAX)),
        "sudo env nice a;".repeat(COMMANDS_MAX),
        format!("{}git -C d push > f", "a;".repeat(COMMANDS_MAX - 1)),
        "f() { a; g() { f; }; f; }; g() { f; }; f".to_owned(),
    ] {
        let line = understand(&text);
        assert_eq!(line.commands.len(), COMMANDS_MAX);
        assert!(line.opaque_parts.iter().any(|opaque| opaque.reason == OpaqueReason::TooMany));
    }
}
