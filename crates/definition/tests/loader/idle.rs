//! Warnings: what is not wrong, and can't be meant.

use std::io;
use std::path::Path;

use jackline_definition::{Files, load_with};

struct NoFiles;

impl Files for NoFiles {
    fn read(&mut self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The warnings about a file that loads, one a line.
fn warnings(source: &str) -> String {
    match load_with(source.as_bytes(), Path::new("f"), &mut NoFiles) {
        Ok(loaded) => {
            let lines: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            lines.join("\n")
        }
        Err(problems) => format!("does not load: {problems}"),
    }
}

fn rules(rules: &[&str]) -> String {
    let lines: Vec<String> = rules.iter().map(|rule| format!("  - {{ {rule} }}")).collect();
    format!("rules:\n{}\n", lines.join("\n"))
}

#[test]
fn a_rule_that_another_one_shadows() {
    let deny = "deny: No., examples: { deny: [git push] }";
    let warn = "warn: No., examples: { warn: [git push] }";
    let pair = |first: &str, second: &str| warnings(&rules(&[first, second]));
    let shadowed = |at: usize, by: &str, name: &str| {
        format!(
            "f:{at}:5: `{by}` already says what `{name}` would say; remove one of them, or make it say more"
        )
    };
    let a = |rest: &str| format!("name: a, {rest}");
    let b = |rest: &str| format!("name: b, {rest}");
    // The same, the later one is too much.
    assert_eq!(
        pair(&a(&format!("command: git push, {deny}")), &b(&format!("command: git push, {deny}"))),
        shadowed(3, "a", "b")
    );
    // A wider command, whichever comes first.
    assert_eq!(
        pair(&a(&format!("command: git push, {deny}")), &b(&format!("command: git, {deny}"))),
        shadowed(2, "b", "a")
    );
    // A wider scope.
    assert_eq!(
        pair(&a(&format!("tool: Bash, command: git, {deny}")), &b(&format!("tool: exec, {deny}"))),
        shadowed(2, "b", "a")
    );
    assert_eq!(pair(&a(deny), &b(&format!("command: [git, hg], {warn}"))), shadowed(3, "a", "b"));
    // All its commands, by different rules.
    assert_eq!(
        warnings(&rules(&[
            &a(&format!("command: git, {deny}")),
            &b("command: hg, deny: No., examples: { deny: [hg] }"),
            &format!("name: c, command: [git push, hg], {deny}"),
        ])),
        shadowed(4, "a", "c")
    );
}

#[test]
fn a_rule_that_says_something_of_its_own_is_left_alone() {
    let deny = "deny: No., examples: { deny: [git push] }";
    let warn = "warn: No., examples: { warn: [git push] }";
    for (first, second) in [
        (format!("command: git, {warn}"), format!("command: git push, {deny}")),
        (format!("command: git, mode: observe, {deny}"), format!("command: git push, {deny}")),
        (
            format!("command: git, when: 'argv.size() > 1', {deny}"),
            format!("command: git push, {deny}"),
        ),
        (format!("command: git push, {deny}"), format!("command: [git push, git pull], {deny}")),
        (
            "command: git pus, deny: No., examples: { deny: [git pus] }".to_owned(),
            format!("command: git push, {deny}"),
        ),
        (format!("tool: Bash, {deny}"), format!("tool: exec, {deny}")),
    ] {
        let source = rules(&[&format!("name: a, {first}"), &format!("name: b, {second}")]);
        // The wider one may shadow the narrower, never the other way round.
        let found = warnings(&source);
        assert!(!found.contains("what `b`"), "{source}\n{found}");
    }
}

#[test]
fn a_rule_that_can_never_match() {
    let deny = "deny: No., examples: { deny: [x] }";
    let args = "deny: No., examples: { deny: [{ x: 1 }] }";
    assert_eq!(
        warnings(&format!(
            "tools: {{ t: {{}} }}\n{}",
            rules(&[&format!("name: a, tool: Write, {args}")])
        )),
        "f:3:22: `a` can never match: `Write` is not declared, so it is denied; add it to `tools`"
    );
    assert_eq!(
        warnings(
            "tools: { t: {} }\nrules: [ { name: a, command: x, deny: No., examples: { deny: [x] } } ]"
        ),
        "f:2:10: `a` can never match: no tool of its kind is declared; add one to `tools`"
    );
    // Where commands are recognised, the tools that run them are known.
    let tools = "tools: { t: {}, d: { commands: [make d] } }\npolicies: [ sequential_dependency: { d: [t] } ]";
    assert_eq!(
        warnings(&format!("{tools}\n{}", rules(&[&format!("name: a, tool: Bash, {deny}")]))),
        ""
    );
}

#[test]
fn a_name_that_nothing_answers_to() {
    let args = "deny: No., examples: { deny: [{ x: 1 }] }";
    let one = |tool: &str| warnings(&rules(&[&format!("name: a, tool: {tool}, {args}")]));
    assert_eq!(
        one("pay"),
        "f:2:22: nothing declares a tool `pay`; add it to `tools` if an agent has it"
    );
    assert_eq!(one("Wriet"), "f:2:22: nothing declares a tool `Wriet`; did you mean `Write`?");
    assert_eq!(one("Write"), "");
    assert_eq!(one("write"), "");
}

#[test]
fn a_tool_that_is_recognised_for_nothing() {
    let tool = "tools: { d: { commands: [make d] } }\n";
    assert_eq!(
        warnings(tool),
        "f:1:10: `d` is recognised, and nothing asks for it; name it in a policy or a rule"
    );
    for rest in [
        "policies: [ sequential_dependency: { d: [t] } ]\nsections: [ { name: s, tools: [t] } ]",
        "sections: [ { name: s, tools: [d], policies: [ read_before_write: {} ] } ]",
        "rules: [ { name: a, tool: d, deny: No., examples: { deny: [{}] } } ]",
    ] {
        assert_eq!(warnings(&format!("{tool}{rest}")), "", "{rest}");
    }
    for key in [
        "idempotent: false",
        "roles: [release]",
        "poll: {}",
        "transparent: true",
        "read_only: true",
    ] {
        let tool = format!(
            "tools: {{ d: {{ commands: [make d], {key} }} }}\nidentity: {{ roles: [release] }}"
        );
        assert_eq!(warnings(&tool), "", "{key}");
    }
    for rest in [
        "limits: { tool_calls: { d: 3 } }",
        "dirty_bits: { tests: [d] }",
        "dirty_bits: { builds: [d] }",
    ] {
        assert_eq!(warnings(&format!("{tool}{rest}")), "", "{rest}");
    }
}
