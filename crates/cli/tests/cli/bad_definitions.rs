//! Definitions that are wrong, huge or hostile: `check` names every mistake with its position, and
//! a gate that uses them answers in time.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::session_events::{
    event_lines, send_event, shell_proposed, tool_proposed, verdict_summary, violation_message,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// Runs a command that must end within the given time.
fn run_within(world: &CliWorld, seconds: u32, args: &[&str], input: &str) -> CliOutput {
    let mut command = world.command("timeout");
    command.arg(seconds.to_string()).arg(JACKLINE).args(args);
    let run = run_with_input(&mut command, input.as_bytes());
    assert_ne!(run.code, Some(124), "timed out after {seconds} s");
    run
}

/// Returns the problems that `check` reports, without the file name.
fn check_problems(source: &[u8]) -> Vec<String> {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("jackline.yaml"), source).unwrap();
    let run = run_within(&world, 60, &["check"], "");
    assert_eq!(run.code, Some(1), "{run:?}");
    let problems = run.stdout.lines().map(|line| line.trim_start_matches("jackline.yaml:"));
    problems.map(ToOwned::to_owned).collect()
}

#[test]
fn ten_thousand_rules_load_within_seconds() {
    let mut source = "rules:\n".to_owned();
    for n in 0..10_000 {
        writeln!(
            source,
            "  - name: r{n}\n    tool: exec\n    command: tool{n}\n    when: '\"--now\" in argv'\n    \
             deny: no\n    examples: {{ deny: [tool{n} --now], allow: [tool{n}] }}"
        )
        .unwrap();
    }
    let world = CliWorld::new(&source);
    let run = run_within(&world, 90, &["check"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // Once the rules are compiled, even that is faster.
    let event = |call: &str, line: &str| {
        event_lines("s", &[crate::session_events::shell_proposed(call, line)])
    };
    run_within(&world, 90, &["stdio"], &event("a", "ls"));
    let run = run_within(&world, 10, &["stdio"], &event("b", "ls; tool7777 --now"));
    assert_eq!(verdict_summary(&run.json_lines()[0]), "deny r7777");
    world.verify_and_replay("s");
}

#[test]
fn an_input_that_expands_without_bound_is_refused_at_its_start() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, previous) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip('a'..) {
        writeln!(bomb, "{name}: &{name} [*{previous}, *{previous}, *{previous}, *{previous}, *{previous}, *{previous}, *{previous}]")
            .unwrap();
    }
    let anchors = "1:4: anchors are not supported; write the value itself";
    assert_eq!(check_problems(bomb.as_bytes()), [anchors]);
    assert_eq!(check_problems(b"x: &x { mode: observe }\n<<: *x\n"), [anchors]);
    assert_eq!(
        check_problems(b"mode: !!str observe\n"),
        ["1:7: tags are not supported; write the value itself"]
    );
    assert_eq!(
        check_problems(b"mode: enforce\n---\nmode: observe\n"),
        ["2:1: a second document starts here; put one document in each file"]
    );
    let deep = check_problems("[".repeat(100_000).as_bytes());
    assert!(deep[0].contains("recursion limit exceeded"), "{deep:?}");
    let nested = format!("a: {}1{}", "{a: ".repeat(50), "}".repeat(50));
    assert_eq!(
        check_problems(nested.as_bytes()),
        ["1:128: lists and mappings are nested deeper than 32 levels"]
    );
}

#[test]
fn invalid_text_and_oversized_files_are_reported() {
    assert_eq!(check_problems(b"mode: enforce\0\n"), ["1:14: the file contains a NUL character"]);
    assert_eq!(check_problems(b"name: a/b\nmode: \xff\n"), ["2:7: invalid UTF-8"]);
    let large = format!("# {}\n", "x".repeat(5_000_000));
    assert_eq!(
        check_problems(large.as_bytes()),
        ["1:1: the file has 5000003 bytes; the maximum is 4194304"]
    );
    let huge = CliWorld::new("");
    fs::File::create(huge.workspace().join("jackline.yaml")).unwrap().set_len(1 << 40).unwrap();
    let start = r#"{"session":"s","event":"session_started"}"#;
    let run = run_within(&huge, 60, &["stdio"], start);
    assert_eq!(run.decisions(), ["deny definition"]);
    assert!(run.stdout.contains("it has more than 16777216 bytes"), "{}", run.stdout);
    // A byte order mark and CRLF line ends are accepted.
    let world = CliWorld::new("\u{feff}mode: enforce\r\n");
    assert_eq!(world.jackline(&["check"]).code, Some(0));
}

#[test]
fn a_duplicate_key_is_reported() {
    assert_eq!(
        check_problems(b"mode: enforce\nlimits: { steps: 1, steps: 2 }\nmode: observe\n"),
        [
            "2:21: duplicate key `steps`; it is first used at line 2",
            "3:1: duplicate key `mode`; it is first used at line 1",
        ]
    );
}

#[test]
fn every_wrong_type_is_reported_at_once() {
    let source = b"version: x
name: [1]
extends: 3
mode: 7
tools: 5
sections: 5
rules: 5
feedback: 5
completion: 5
limits: 5
policies: 5
protected: 5
packs: 5
shell: 5
unknown_tools: 5
journal: 5
completion_cap: 5
feedback_bytes_max: x
";
    assert_eq!(
        check_problems(source),
        [
            "1:10: `version` must be a whole number, not `x`",
            "2:7: `name` must be text, not a list",
            "3:10: `extends` must be a list, not a number",
            "4:7: `mode` must be text, not a number",
            "5:8: `tools` must be a mapping, not a number",
            "6:11: `sections` must be a list, not a number",
            "7:8: `rules` must be a list, not a number",
            "8:11: `feedback` must be a list, not a number",
            "9:13: a completion check must be a mapping, not a number",
            "10:9: `limits` must be a mapping, not a number",
            "11:11: `policies` must be a list, not a number",
            "12:12: `protected` must be a list, not a number",
            "13:8: `packs` must be a mapping, not a number",
            "14:8: `shell` must be a mapping, not a number",
            "15:16: `unknown_tools` must be text, not a number",
            "16:10: `journal` must be a mapping, not a number",
            "17:17: `completion_cap` must be a mapping, not a number",
            "18:21: `feedback_bytes_max` must be a whole number, not `x`",
        ]
    );
}

#[test]
fn wrong_types_inside_values_are_reported_too() {
    let source = b"tools: { a: 1, b: { kind: nix }, c: { paths: 3 } }
sections: [4, { name: s, tools: 5 }]
feedback: [1, { static: 3, every_n_calls: 1 }]
completion: { files: 3 }
limits: { steps: x, wall_seconds: -1 }
policies: [3, { what: {} }]
protected: [1, {}]
packs: { off: 3 }
shell: { opaque: 3 }
";
    let places: Vec<String> = check_problems(source)
        .iter()
        .map(|problem| problem.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"))
        .collect();
    assert_eq!(
        places,
        [
            "1:13", "1:27", "1:46", "2:12", "2:33", "3:12", "3:25", "4:22", "5:18", "5:35", "6:12",
            "6:17", "7:13", "7:16", "8:15", "9:18"
        ]
    );
}

#[test]
fn a_mistake_in_a_condition_is_reported_at_its_exact_column() {
    let rule = |name: &str, when: &str| {
        format!(
            "  - name: {name}\n    tool: exec\n    when: '{when}'\n    deny: no\n    \
             examples: {{ deny: [git push x] }}\n"
        )
    };
    let source = [
        "rules:\n".to_owned(),
        rule("a", r#"argv.exists(a, a == "x") && argss.amount > 3"#),
        rule("b", r#"argv.exists(a, a == "x" && (true"#),
        rule("c", r#"program.matches("(a")"#),
        rule("d", "session.steps > 3.5"),
        rule("e", r#"program.mtches("a")"#),
    ];
    assert_eq!(
        check_problems(source.concat().as_bytes()),
        [
            "4:40: there is no variable `argss`; did you mean `args`?",
            "9:44: expected `)`, found the end",
            "14:28: the pattern is not valid: unclosed group",
            "19:28: decimal numbers are not supported; compare with whole numbers",
            "24:20: there is no method `mtches`; did you mean `matches`?",
        ]
    );
}

#[test]
fn misspelled_presets_packs_and_rules_get_suggestions() {
    let problems = check_problems(
        b"extends: [coding-agnt, pack/gti, base]\npacks: { off: [git/reset-hrd, git/clean, nope] }\n",
    );
    assert_eq!(
        problems[..2],
        [
            "1:11: unknown preset, pack or file `coding-agnt`; did you mean `coding-agent`?",
            "1:24: unknown preset, pack or file `pack/gti`; did you mean `pack/git`?",
        ]
    );
    assert!(problems[2].starts_with("1:34: unknown preset, pack or file `base`; available: "));
    assert_eq!(
        problems[3],
        "2:16: no pack has a rule `git/reset-hrd`; did you mean `git/reset-hard`?"
    );
    assert!(problems[4].starts_with("2:42: no pack has a rule `nope`; "), "{problems:?}");
    // A rule that a suggestion names exists.
    let suggested = problems[4].rsplit('`').nth(1).unwrap();
    let rules = CliWorld::new("extends: [coding-agent]\n").jackline(&["check", "--details"]).stdout;
    assert!(rules.contains(&format!("rule `{suggested}` ")), "{suggested}");
}

const REPEAT_PATTERN_RULE: &str = "\
rules:
  - name: repeats
    tool: exec
    command: echo
    when: 'argv.exists(a, a.matches(\"^(a+)+$\"))'
    deny: no
    examples: { deny: [echo aaa], allow: [echo ab] }
";

/// A backtracking engine would not finish this pattern in time.
#[test]
fn matching_time_grows_only_with_the_text_length() {
    let world = CliWorld::new(REPEAT_PATTERN_RULE);
    let line = |length: usize| format!("echo {}!", "a".repeat(length));
    let input = event_lines(
        "s",
        &[shell_proposed("short", &line(1000)), shell_proposed("long", &line(1_000_000))],
    );
    let run = run_within(&world, 30, &["stdio"], &input);
    let verdicts = run.json_lines();
    assert_eq!(verdict_summary(&verdicts[0]), "allow");
    // The work of a condition is limited too. A condition without a result counts as a denial.
    assert_eq!(verdict_summary(&verdicts[1]), "deny repeats");
    assert_eq!(verdicts[1]["violations"][0]["type"], "rule_broken");
    world.verify_and_replay("s");
}

const SLOW_CONDITION_RULE: &str = "\
rules:
  - name: loops
    tool: batch
    when: 'args.names.exists(a, args.names.exists(b, a != b && a == \"never\"))'
    deny: no
    examples: { deny: [{ names: [never, x] }], allow: [{ names: [x] }] }
tools: { batch: { kind: other } }
";

#[test]
fn a_condition_that_takes_too_long_denies_and_names_the_broken_rule() {
    let world = CliWorld::new(SLOW_CONDITION_RULE);
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("name-{n}")).collect();
        json!({"names": names})
    };
    assert_eq!(
        verdict_summary(&send_event(&world, "s", tool_proposed("a", "batch", &names(10)))),
        "allow"
    );
    let input = event_lines("s", &[tool_proposed("b", "batch", &names(3000))]);
    let verdict = run_within(&world, 30, &["stdio"], &input).json_lines().remove(0);
    assert_eq!(verdict_summary(&verdict), "deny loops");
    assert_eq!(verdict["violations"][0]["type"], "rule_broken");
    assert_eq!(
        violation_message(&verdict),
        "the guard is broken, not the call: the condition of rule `loops` can't be evaluated: it \
         takes more than 250000 steps"
    );
    world.verify_and_replay("s");
}
