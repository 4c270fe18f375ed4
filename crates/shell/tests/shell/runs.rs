//! Every command that bash runs is in our result, with a matching directory.
//!
//! The test builds random lines from assignments, conditions, loops, functions and
//! `cd`. bash runs them with a program that reports its arguments and its directory.
//! This tests the shell state that the walk carries from command to command.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jackline_shell::{OpaqueReason, ShellWord, WordKind, WorkingDir, understand};

use crate::mutations::MutationDice;

fn pick<'t>(dice: &mut MutationDice, texts: &[&'t str]) -> &'t str {
    texts[dice.roll(texts.len())]
}

/// A command that reports, or one that changes the shell state.
fn random_command(dice: &mut MutationDice) -> String {
    match dice.roll(8) {
        0..=2 => {
            let mut text = "show".to_owned();
            for _ in 0..=dice.roll(2) {
                text.push(' ');
                text.push_str(pick(
                    dice,
                    &[
                        "a", "$x", "\"$x\"", "$y", "$1", "\"$@\"", "b$x", "${x}c", "{p,q}",
                        "$((1+1))",
                    ],
                ));
            }
            text
        }
        3 => format!("x={}", pick(dice, &["1", "$y", "'2 3'", "$x$x", "", "$(echo 4)", "$1"])),
        4 => format!("y={}", pick(dice, &["5", "$x", "6$y", "\"$@\""])),
        5 => format!("cd {}", pick(dice, &["d", "nosuch", "..", ".", "$x", "d/e", "\"$ROOT\""])),
        6 => pick(
            dice,
            &[
                "f",
                "f 7",
                "g \"$x\" 8",
                "set -- 9 10",
                "shift",
                "unset x",
                "set -e",
                "set +e",
                "f $y",
            ],
        )
        .to_owned(),
        _ => pick(
            dice,
            &["true", "false", "x+=z", "read x <<< r", "export x=8", "x=e y=$x", "return", "exit"],
        )
        .to_owned(),
    }
}

fn random_line(dice: &mut MutationDice, depth: usize) -> String {
    if depth == 0 {
        return random_command(dice);
    }
    let one = random_line(dice, depth - 1);
    let two = random_line(dice, depth - 1);
    match dice.roll(20) {
        0..=3 => format!("{one}; {two}"),
        4 | 5 => format!("{one} && {two}"),
        6 | 7 => format!("{one} || {two}"),
        8 => format!("if {one}; then {two}; fi"),
        9 => format!("if {one}; then {two}; else {}; fi", random_command(dice)),
        10 => format!("for x in 1 {}; do {one}; done", pick(dice, &["2", "$y", "*", "'3 4'"])),
        11 => format!("for y in $(echo 1 2); do {one}; done"),
        12 => format!("{{ {one}; {two}; }}"),
        13 => format!("({one}; {two})"),
        14 => format!("case $x in 1) {one};; *) {two};; esac"),
        15 => format!("f() {{ {one}; }}; {two}"),
        16 => format!("g() {{ {one}; }}; {two}; g $x"),
        17 => format!("! {one}; {two}"),
        18 => format!("i=0; while [ $((i++)) -lt 2 ]; do {one}; done; {two}"),
        _ => match dice.roll(4) {
            0 => format!("{one} | {two}"),
            1 => format!("x=t eval '{}'; {one}", random_command(dice).replace('\'', "\"")),
            2 => format!("bash -c '{}' n m; {one}", random_command(dice).replace('\'', "\"")),
            _ => format!("echo \"$({one})\"; {two}"),
        },
    }
}

/// The reports of each line: a directory and the words.
fn run_in_bash(root: &Path, lines: &[String]) -> Vec<Vec<Vec<String>>> {
    let mut script = String::from(
        "exec 3>&1 >/dev/null 2>&1\n\
         show() { printf '%s\\0' \"$PWD\" \"$@\" $'\\1' >&3; }; export -f show\n\
         f() { :; }; g() { :; }; unset x y\n",
    );
    for line in lines {
        script.push_str("IFS= read -r -d '' line <<'_END_'\n");
        script.push_str(line);
        script.push_str("\n_END_\n( set --; eval \"$line\" ) < /dev/null\nprintf '\\2\\0' >&3\n");
    }
    let mut bash = Command::new("bash")
        .current_dir(root)
        .env("ROOT", root)
        .env("FUNCNEST", "8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash must be installed");
    let mut stdin = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).unwrap());
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all = vec![Vec::new()];
    let mut words = Vec::new();
    for word in text.split_terminator('\0') {
        match word {
            "\u{1}" => all.last_mut().unwrap().push(std::mem::take(&mut words)),
            "\u{2}" => all.push(Vec::new()),
            _ => words.push(word.to_owned()),
        }
    }
    all.pop();
    all
}

/// Whether our words can expand to the given ones. A word that is not literal matches
/// any number of words.
fn can_expand_to(words: &[ShellWord<'_>], given: &[String]) -> bool {
    match (words.split_first(), given.split_first()) {
        (None, None) => true,
        (Some((word, rest)), _) if word.kind != WordKind::Literal => {
            can_expand_to(rest, given)
                || given.split_first().is_some_and(|(_, more)| can_expand_to(words, more))
        }
        (Some((word, rest)), Some((first, more))) => {
            word.text == *first && can_expand_to(rest, more)
        }
        _ => false,
    }
}

fn can_work_in(dir: &WorkingDir, root: &Path, given: &str) -> bool {
    let same = |path: &str| {
        let mut at = root.to_path_buf();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    at.pop();
                }
                part => at.push(part),
            }
        }
        // The analysis does not know the home directory.
        at == Path::new(given) || path.starts_with('~')
    };
    match dir {
        WorkingDir::Start => same(""),
        WorkingDir::Path(path) => same(path),
        WorkingDir::PathOrStart(path) => same("") || same(path),
        WorkingDir::Unknown => true,
    }
}

#[test]
fn every_command_that_bash_runs_is_in_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("r");
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    let mut dice = MutationDice(0x0bad_5eed_cafe_0003);
    let lines: Vec<_> = (0..3_000)
        .map(|_| {
            let depth = 1 + dice.roll(4);
            random_line(&mut dice, depth)
        })
        .collect();
    let reports = run_in_bash(&root, &lines);
    assert_eq!(reports.len(), lines.len());
    let mut checked = 0;
    for (line, reports) in lines.iter().zip(reports) {
        let found = understand(line);
        let excused = found
            .opaque_parts
            .iter()
            .any(|opaque| !matches!(opaque.reason, OpaqueReason::NoRow | OpaqueReason::Runner));
        if excused {
            continue;
        }
        for report in reports {
            let (dir, words) = report.split_first().unwrap();
            let listed = found.commands.iter().any(|command| {
                command.matches_pattern("show")
                    && can_expand_to(command.arguments(), words)
                    && can_work_in(&command.dir, &root, dir)
            });
            assert!(listed, "{line}\nran {words:?} in {dir}\n{}", crate::render::render(&found));
            checked += 1;
        }
    }
    println!("{checked} commands checked");
    assert!(checked > 1_000);
}
