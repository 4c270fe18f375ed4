//! Tests very large files. The tests read no clock: with a quadratic algorithm they would not
//! finish within the time limit of the test run.

use std::fmt::Write as _;

use jackline_definition::load;

use crate::problems_in;

const MANY: usize = 10_000;

/// Returns rules of every kind, each with examples.
pub(crate) fn many_rules(count: usize) -> String {
    let mut source = "tools:\n  pay: { kind: effect }\nrules:\n".to_owned();
    for n in 0..count {
        let _ = match n % 3 {
            0 => writeln!(
                source,
                "  - {{ name: r{n}, command: program{n} push, deny: No., examples: {{ deny: [program{n} push], allow: [ls] }} }}"
            ),
            1 => writeln!(
                source,
                "  - {{ name: r{n}, tool: pay, when: 'args.n == {n}', ask: Hm., examples: {{ ask: [{{ n: {n} }}], allow: [{{ n: 0 }}] }} }}"
            ),
            _ => writeln!(
                source,
                "  - {{ name: r{n}, command: [git x{n}, hg x{n}], warn: Hm., examples: {{ warn: [git x{n}], allow: [git] }} }}"
            ),
        };
    }
    source
}

#[test]
fn ten_thousand_rules_load() {
    let loaded = load(many_rules(MANY).as_bytes(), "f");
    assert_eq!(loaded.map(|definition| definition.rules.iter().count()), Ok(MANY));
}

#[test]
fn ten_thousand_mistakes_are_found_and_counted() {
    let source = many_rules(MANY).replace("pay,", "pya,").replace("No.,", "[],");
    let problems = problems_in(&source);
    assert_eq!(problems.lines().count(), 201);
    assert!(problems.ends_with("more problems"), "{}", problems.lines().last().unwrap_or_default());
}

#[test]
fn ten_thousand_tools_load() {
    let mut source = "tools:\n".to_owned();
    for n in 0..MANY {
        let _ = writeln!(source, "  t{n}: {{ aliases: [a{n}, b{n}], commands: [make x{n}] }}");
    }
    source.push_str("sections:\n  - name: s\n    tools:\n");
    for n in 0..MANY {
        let _ = writeln!(source, "      - a{n}");
    }
    assert_eq!(load(source.as_bytes(), "f").map(|d| d.tools.len()), Ok(MANY));
}

#[test]
fn a_long_chain_of_prerequisites_is_refused_quickly() {
    let mut source = "policies:\n  - sequential_dependency:\n".to_owned();
    for n in 0..MANY {
        let _ = writeln!(source, "      t{n}: [t{}]", n + 1);
    }
    assert_eq!(problems_in(&source), "f:3:7: 10000 prerequisites; at most 256 are supported");
}

#[test]
fn a_mapping_with_very_many_keys_is_read() {
    let mut source = String::new();
    for n in 0..100_000 {
        let _ = writeln!(source, "k{n}: 1");
    }
    assert!(problems_in(&source).ends_with("f: and 99800 more problems"));
    let twice = "mode: observe\n".repeat(50_000);
    assert!(problems_in(&twice).ends_with("more problems"));
}

#[test]
fn anchors_and_merge_keys_are_refused() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n";
    assert_eq!(problems_in(bomb), "f:1:4: anchors are not supported; write the value itself");
    let merge = "tools: &t { a: {} }\nlimits: { <<: *t }\n";
    assert_eq!(problems_in(merge), "f:1:8: anchors are not supported; write the value itself");
}
