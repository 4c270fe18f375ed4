//! Files of a size that nobody writes. Nothing here looks at a clock: what
//! takes time that grows with the square would not come to an end.

use std::fmt::Write as _;

use jackline_definition::load;

use crate::complaints;

const MANY: usize = 10_000;

/// Rules of every sort, each with its examples.
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
    let said = complaints(&source);
    assert_eq!(said.lines().count(), 201);
    assert!(said.ends_with("more problems"), "{}", said.lines().last().unwrap_or_default());
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
fn a_long_chain_of_needs_is_refused_for_its_length_alone() {
    let mut source = "policies:\n  - sequential_dependency:\n".to_owned();
    for n in 0..MANY {
        let _ = writeln!(source, "      t{n}: [t{}]", n + 1);
    }
    assert_eq!(complaints(&source), "f:3:7: 10000 prerequisites; at most 256 are kept");
}

#[test]
fn very_many_keys_of_one_mapping_are_read() {
    let mut source = String::new();
    for n in 0..100_000 {
        let _ = writeln!(source, "k{n}: 1");
    }
    assert!(complaints(&source).ends_with("f: and 99800 more problems"));
    let twice = "mode: observe\n".repeat(50_000);
    assert!(complaints(&twice).ends_with("more problems"));
}

#[test]
fn what_would_grow_when_it_is_read_is_refused() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n";
    assert_eq!(complaints(bomb), "f:1:4: anchors are not accepted; write the value out");
    let merge = "tools: &t { a: {} }\nlimits: { <<: *t }\n";
    assert_eq!(complaints(merge), "f:1:8: anchors are not accepted; write the value out");
}
