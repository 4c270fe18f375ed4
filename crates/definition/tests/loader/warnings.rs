//! Tests the warnings about entries without effect.

use std::io;
use std::path::Path;

use jackline_definition::{ExtendedFileReader, load_with};

struct NoFiles;

impl ExtendedFileReader for NoFiles {
    fn read(&mut self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Returns the warnings about a valid file, one per line.
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
fn a_rule_without_its_own_effect_is_reported() {
    let deny = "deny: No., examples: { deny: [git push] }";
    let warn = "warn: No., examples: { warn: [git push] }";
    let pair = |first: &str, second: &str| warnings(&rules(&[first, second]));
    let shadowed = |at: usize, by: &str, name: &str| {
        format!(
            "f:{at}:5: `{by}` already has the effect of `{name}`; remove one of them, or make one stricter"
        )
    };
    let a = |rest: &str| format!("name: a, {rest}");
    let b = |rest: &str| format!("name: b, {rest}");
    // Two equal rules: the later one is reported.
    assert_eq!(
        pair(&a(&format!("command: git push, {deny}")), &b(&format!("command: git push, {deny}"))),
        shadowed(3, "a", "b")
    );
    // A wider command, in any order.
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
    // All commands of a rule, by different rules.
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
fn a_rule_with_its_own_effect_is_not_reported() {
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
        // The wider rule may shadow the narrower one, but not the reverse.
        let found = warnings(&source);
        assert!(!found.contains("the effect of `b`"), "{source}\n{found}");
    }
}

#[test]
fn a_rule_that_can_never_match_is_reported() {
    let deny = "deny: No., examples: { deny: [x] }";
    let args = "deny: No., examples: { deny: [{ x: 1 }] }";
    let last = |source: &str| warnings(source).lines().last().unwrap_or_default().to_owned();
    let closed = "tools: { t: {} }\nunknown_tools: deny\n";
    let on_write = rules(&[&format!("name: a, tool: Write, {args}")]);
    assert_eq!(
        last(&format!("{closed}{on_write}")),
        "f:4:22: `a` can never match: `Write` is not declared, so it is denied; add it to `tools`"
    );
    let on_command = "rules: [ { name: a, command: x, deny: No., examples: { deny: [x] } } ]";
    assert_eq!(
        last(&format!("{closed}{on_command}")),
        "f:3:10: `a` can never match: no tool of its kind is declared; add one to `tools`"
    );
    // Where the tools of the client stay known, such rules match.
    let open = "tools: { t: {} }\n";
    assert_eq!(warnings(&format!("{open}{on_write}")), "");
    assert_eq!(warnings(&format!("{open}{on_command}")), "");
    // If commands are recognised, tools that run command lines are allowed.
    let tools = "unknown_tools: deny\ntools: { t: {}, d: { commands: [make d] } }\npolicies: [ sequential_dependency: { d: [t] } ]";
    let on_bash = rules(&[&format!("name: a, tool: Bash, {deny}")]);
    assert!(!warnings(&format!("{tools}\n{on_bash}")).contains("can never match"));
}

#[test]
fn a_closed_list_without_the_tools_of_agents_is_reported() {
    let denied = |names: &str| {
        format!(
            "f:1:16: `unknown_tools: deny` denies every tool that `tools` does not declare, also \
             those of the agent's client: {names}; declare the tools that the agent needs, or use \
             `unknown_tools: client`"
        )
    };
    assert_eq!(
        warnings("unknown_tools: deny\ntools: { buy_ads: { kind: effect } }"),
        denied("`Read`, `Edit`, `Write`, `Bash`, `Glob`, `Grep`, `Agent`, `Task`")
    );
    let most = "tools: { Read: {}, Edit: {}, Write: {}, Bash: {}, Glob: {}, Grep: {} }";
    assert_eq!(warnings(&format!("unknown_tools: deny\n{most}")), denied("`Agent`, `Task`"));
    assert_eq!(warnings("tools: { buy_ads: { kind: effect } }"), "");
    assert_eq!(warnings("unknown_tools: client\ntools: { buy_ads: { kind: effect } }"), "");
}

#[test]
fn a_terminal_subtype_that_no_violation_has_is_reported() {
    let one = |name: &str| warnings(&format!("attempts: {{ terminal: [{name}] }}"));
    assert_eq!(
        one("singleton_method_mutaton"),
        "f:1:24: no violation has the subtype `singleton_method_mutaton`; did you mean \
         `singleton_method_mutation`?"
    );
    assert!(one("no_such_subtype").starts_with("f:1:24: no violation has the subtype"));
    assert_eq!(one("unknown_tool, missing_credentials"), "");
    let rule = rules(&["name: no_pay, tool: Bash, deny: No., examples: { deny: [ls] }"]);
    let named = warnings(&format!("attempts: {{ terminal: [no_pay] }}\n{rule}"));
    assert!(!named.contains("no violation"), "{named}");
}

#[test]
fn an_undeclared_tool_in_a_rule_is_reported() {
    let args = "deny: No., examples: { deny: [{ x: 1 }] }";
    let one = |tool: &str| warnings(&rules(&[&format!("name: a, tool: {tool}, {args}")]));
    assert_eq!(
        one("pay"),
        "f:2:22: no tool `pay` is declared; add it to `tools` if the agent has it"
    );
    assert_eq!(one("Wriet"), "f:2:22: no tool `Wriet` is declared; did you mean `Write`?");
    assert_eq!(one("Write"), "");
    assert_eq!(one("write"), "");
}

#[test]
fn a_recognised_tool_without_use_is_reported() {
    let tool = "tools: { d: { commands: [make d] } }\n";
    assert_eq!(
        warnings(tool),
        "f:1:10: `d` is recognised in command lines, but no policy or rule uses it; name it in a policy or a rule"
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
