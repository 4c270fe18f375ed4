//! Definitions that are wrong, huge or hostile: `check` names every mistake in
//! its place, and a gate under them answers in time.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::support::{JACKLINE, Run, World, feed};
use crate::words::{message, propose, run, stream, tell_one, words};

/// Runs a command that must end within so many seconds.
fn within(world: &World, seconds: u32, args: &[&str], input: &str) -> Run {
    let mut command = world.command("timeout");
    command.arg(seconds.to_string()).arg(JACKLINE).args(args);
    let run = feed(&mut command, input.as_bytes());
    assert_ne!(run.code, Some(124), "cut off after {seconds} s");
    run
}

/// The problems that `check` finds, without the name of the file.
fn problems(source: &[u8]) -> Vec<String> {
    let world = World::new("");
    fs::write(world.work().join("jackline.yaml"), source).unwrap();
    let run = within(&world, 60, &["check"], "");
    assert_eq!(run.code, Some(1), "{run:?}");
    let problems = run.stdout.lines().map(|line| line.trim_start_matches("jackline.yaml:"));
    problems.map(ToOwned::to_owned).collect()
}

#[test]
fn ten_thousand_rules_take_seconds() {
    let mut source = "rules:\n".to_owned();
    for n in 0..10_000 {
        writeln!(
            source,
            "  - name: r{n}\n    tool: exec\n    command: tool{n}\n    when: '\"--now\" in argv'\n    \
             deny: no\n    examples: {{ deny: [tool{n} --now], allow: [tool{n}] }}"
        )
        .unwrap();
    }
    let world = World::new(&source);
    let run = within(&world, 90, &["check"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // And, once they are compiled, not even that.
    let event = |call: &str, line: &str| stream("s", &[crate::words::run(call, line)]);
    within(&world, 90, &["stdio"], &event("a", "ls"));
    let run = within(&world, 10, &["stdio"], &event("b", "ls; tool7777 --now"));
    assert_eq!(words(&run.verdicts()[0]), "deny r7777");
    world.prove("s");
}

#[test]
fn what_blows_up_is_refused_where_it_begins() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip('a'..) {
        writeln!(bomb, "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]")
            .unwrap();
    }
    let anchors = "1:4: anchors are not accepted; write the value out";
    assert_eq!(problems(bomb.as_bytes()), [anchors]);
    assert_eq!(problems(b"x: &x { mode: observe }\n<<: *x\n"), [anchors]);
    assert_eq!(
        problems(b"mode: !!str observe\n"),
        ["1:7: tags are not accepted; write the value out"]
    );
    assert_eq!(
        problems(b"mode: enforce\n---\nmode: observe\n"),
        ["2:1: a second document begins here; keep one document a file"]
    );
    let deep = problems("[".repeat(100_000).as_bytes());
    assert!(deep[0].contains("recursion limit exceeded"), "{deep:?}");
    let nested = format!("a: {}1{}", "{a: ".repeat(50), "}".repeat(50));
    assert_eq!(problems(nested.as_bytes()), ["1:128: nested deeper than 32"]);
}

#[test]
fn what_is_no_text_or_too_much_of_it_is_said_so() {
    assert_eq!(problems(b"mode: enforce\0\n"), ["1:14: the file holds a NUL"]);
    assert_eq!(problems(b"name: a/b\nmode: \xff\n"), ["2:7: invalid UTF-8"]);
    let large = format!("# {}\n", "x".repeat(5_000_000));
    assert_eq!(
        problems(large.as_bytes()),
        ["1:1: the file has 5000003 bytes; at most 4194304 are read"]
    );
    let huge = World::new("");
    fs::File::create(huge.work().join("jackline.yaml")).unwrap().set_len(1 << 40).unwrap();
    let start = r#"{"session":"s","event":"session_started"}"#;
    let run = within(&huge, 60, &["stdio"], start);
    assert_eq!(run.answers(), ["deny definition"]);
    assert!(run.stdout.contains("it has more than 16777216 bytes"), "{}", run.stdout);
    // What editors on other systems leave is no mistake.
    let world = World::new("\u{feff}mode: enforce\r\n");
    assert_eq!(world.jackline(&["check"]).code, Some(0));
}

#[test]
fn a_key_is_given_once() {
    assert_eq!(
        problems(b"mode: enforce\nlimits: { steps: 1, steps: 2 }\nmode: observe\n"),
        [
            "2:21: duplicate key `steps`; it is given first at line 2",
            "3:1: duplicate key `mode`; it is given first at line 1",
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
        problems(source),
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
fn inside_of_things_every_wrong_type_is_reported_too() {
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
    let places: Vec<String> = problems(source)
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
fn a_mistake_in_a_condition_is_found_to_the_letter() {
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
        problems(source.concat().as_bytes()),
        [
            "4:40: there is no variable `argss`; did you mean `args`?",
            "9:44: expected `)`, found the end",
            "14:28: the pattern can't be read: unclosed group",
            "19:28: decimal numbers can't be written; compare with whole numbers",
            "24:20: there is no method `mtches`; did you mean `matches`?",
        ]
    );
}

#[test]
fn names_of_presets_packs_and_rules_are_completed() {
    let found = problems(
        b"extends: [coding-agnt, pack/gti, base]\npacks: { off: [git/reset-hrd, git/clean, nope] }\n",
    );
    assert_eq!(
        found[..2],
        [
            "1:11: nothing named `coding-agnt` can be extended; did you mean `coding-agent`?",
            "1:24: nothing named `pack/gti` can be extended; did you mean `pack/git`?",
        ]
    );
    assert!(found[2].starts_with("1:34: nothing named `base` can be extended; there are "));
    assert_eq!(
        found[3],
        "2:16: no pack has a rule `git/reset-hrd`; did you mean `git/reset-hard`?"
    );
    assert!(found[4].starts_with("2:42: no pack has a rule `nope`; "), "{found:?}");
    // What a hint shows can be written like that.
    let shown = found[4].rsplit('`').nth(1).unwrap();
    let rules = World::new("extends: [coding-agent]\n").jackline(&["check"]).stdout;
    assert!(rules.contains(&format!("rule `{shown}` ")), "{shown}");
}

const REPEATS: &str = "\
rules:
  - name: repeats
    tool: exec
    command: echo
    when: 'argv.exists(a, a.matches(\"^(a+)+$\"))'
    deny: no
    examples: { deny: [echo aaa], allow: [echo ab] }
";

/// Engines that backtrack need longer for this than there is time.
#[test]
fn a_pattern_costs_what_the_text_is_long() {
    let world = World::new(REPEATS);
    let line = |length: usize| format!("echo {}!", "a".repeat(length));
    let input = stream("s", &[run("short", &line(1000)), run("long", &line(1_000_000))]);
    let run = within(&world, 30, &["stdio"], &input);
    let verdicts = run.verdicts();
    assert_eq!(words(&verdicts[0]), "allow");
    // Work is bounded too, and what could not be answered is no consent.
    assert_eq!(words(&verdicts[1]), "deny repeats");
    assert_eq!(verdicts[1]["violations"][0]["type"], "rule_broken");
    world.prove("s");
}

const LOOPS: &str = "\
rules:
  - name: loops
    tool: batch
    when: 'args.names.exists(a, args.names.exists(b, a != b && a == \"never\"))'
    deny: no
    examples: { deny: [{ names: [never, x] }], allow: [{ names: [x] }] }
tools: { batch: { kind: other } }
";

#[test]
fn a_condition_that_takes_too_long_denies_and_says_that_the_rule_is_broken() {
    let world = World::new(LOOPS);
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("name-{n}")).collect();
        json!({"names": names})
    };
    assert_eq!(words(&tell_one(&world, "s", propose("a", "batch", &names(10)))), "allow");
    let input = stream("s", &[propose("b", "batch", &names(3000))]);
    let verdict = within(&world, 30, &["stdio"], &input).verdicts().remove(0);
    assert_eq!(words(&verdict), "deny loops");
    assert_eq!(verdict["violations"][0]["type"], "rule_broken");
    assert_eq!(
        message(&verdict),
        "the guard is broken, not the call: the condition of rule `loops` can't be answered: it \
         takes more than 250000 steps"
    );
    world.prove("s");
}
