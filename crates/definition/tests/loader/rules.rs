//! Tests rules and the keys that they depend on: tools, paths, commands and examples.

use jackline_definition::load;
use jackline_engine::definition::{CompletionRequirement, RuleScope, UnknownTools};
use jackline_engine::{Definition, ToolKind};

use crate::{check, check_shapes, problems_in};

/// Loads a valid definition.
fn loaded(source: &str) -> Definition {
    assert_eq!(problems_in(source), "ok");
    load(source.as_bytes(), "f").unwrap_or_default()
}

#[test]
fn a_tool_of_another_shape_is_refused_where_it_stands() {
    check_shapes(&[
        ("tools: { t: { kind: read, path: 7 } }", "f:1:33: `path` must be text, not a number"),
        ("tools: { t: { paths: [/a] } }", "f:1:22: `paths` must be a mapping, not a list"),
        ("tools: { t: { paths: {} } }", "f:1:22: `paths` is empty; give it `read` or `write`"),
        ("tools: { t: { paths: { read: [] } } }", "f:1:30: `paths.read` is empty"),
        (
            "tools: { t: { paths: { reed: [/a] } } }",
            "f:1:22: `paths` is empty; give it `read` or `write`\nf:1:24: unknown key `reed` in `paths`; did you mean `read`?",
        ),
        ("tools: { t: { commands: make } }", "f:1:25: `commands` must be a list, not text"),
        ("tools: { t: { commands: [] } }", "f:1:25: `commands` is empty"),
        ("tools: { t: { offset: [] } }", "f:1:23: `offset` must be text, not a list"),
        (
            "unknown_tools: ask",
            "f:1:16: `unknown_tools` can't be `ask`; use one of `allow`, `client`, `deny`",
        ),
        (
            "shell: { opaque: warn }",
            "f:1:18: `shell.opaque` can't be `warn`; use one of `allow`, `ask`, `deny`",
        ),
        (
            "shell: { opague: ask }",
            "f:1:10: unknown key `opague` in `shell`; did you mean `opaque`?",
        ),
        ("protected: .env", "f:1:12: `protected` must be a list, not text"),
        ("protected: [3]", "f:1:13: a protected path must be text, not a number"),
        (
            "read_before_write: { deletes: sometimes }",
            "f:1:31: `deletes` must be true or false, not text",
        ),
        (
            "policies: [ read_before_write: { delete: true } ]",
            "f:1:34: unknown key `delete` in `read_before_write`; did you mean `deletes`?",
        ),
        ("completion: { command: [make] }", "f:1:24: `command` must be text, not a list"),
        ("completion: { command: { timeout_seconds: 3 } }", "f:1:24: a command needs `run`"),
        (
            "completion: { command: { run: make, timeout_seconds: 0 } }",
            "f:1:54: `timeout_seconds` can't be 0",
        ),
        ("packs: { of: [git/x] }", "f:1:10: unknown key `of` in `packs`; did you mean `off`?"),
        ("packs: { off: git/x }", "f:1:15: `packs.off` must be a list, not text"),
        ("sections: [ ~ ]", "f:1:13: a section needs a `name`"),
    ]);
}

#[test]
fn contradictory_declarations_of_tools_are_refused() {
    check(&[
        (
            "tools: { t: { path: file } }",
            "f:1:21: with only `path`, Jackline can't tell whether this tool reads or writes; give it a `kind`, or `paths` with `read` or `write`",
        ),
        (
            "tools: { t: { kind: read, path: a, paths: { read: [/b] } } }",
            "f:1:33: a tool can't have both `path` and `paths`",
        ),
        (
            "tools: { t: { kind: read, path: a~b } }",
            "f:1:33: `a~b` is not a JSON pointer; write `~0` for `~` and `~1` for `/` in a name",
        ),
        ("tools: { t: { kind: read, path: a~1b } }", "ok"),
        (
            "tools: { t: { command: /line } }",
            "f:1:24: only a tool of kind `exec` can have a `command`; add `kind: exec`",
        ),
        ("tools: { bash: { command: /line } }", "ok"),
        (
            "tools: { a: { commands: [make x] }, b: { commands: [make  x] } }",
            "f:1:53: `make x` is a command of two tools",
        ),
        (
            "tools: { a: { commands: ['make x | tee', 'cargo --quiet test'] } }",
            "f:1:26: `make x | tee` is not a program with its subcommands; write it as words, such as `git push`\n\
             f:1:42: `--quiet` is an option; options are not matched here; to match options, write a condition on `argv` in `when`",
        ),
    ]);
}

#[test]
fn only_tools_of_the_client_stay_known_if_a_file_declares_tools() {
    let of = |source: &str| loaded(source).unknown_tools;
    assert_eq!(of(""), UnknownTools::Allow);
    assert_eq!(of("tools: {}"), UnknownTools::Allow);
    assert_eq!(of("tools: { a: {} }"), UnknownTools::Client);
    assert_eq!(of("tools: { a: {} }\nunknown_tools: allow"), UnknownTools::Allow);
    // A tool that is only a name for commands does not count as declared.
    assert_eq!(of("tools: { a: { commands: [make] } }"), UnknownTools::Allow);
    assert_eq!(of("tools: { a: { kind: effect, commands: [make] } }"), UnknownTools::Allow);
    assert_eq!(of("tools: { a: { commands: [make], aliases: [A] } }"), UnknownTools::Client);
    assert_eq!(of("tools: { a: { commands: [make] }, b: {} }"), UnknownTools::Client);
    assert_eq!(of("extends: strict"), UnknownTools::Client);
    assert_eq!(of("tools: { a: {} }\nunknown_tools: deny"), UnknownTools::Deny);
}

#[test]
fn a_protected_path_is_canonical() {
    let source = "protected: [./a//b, c/../d/, '~/.x/*', '/etc/./*.d/', 'k*.pem']";
    assert_eq!(loaded(source).protected, ["a/b", "d/", "~/.x/*", "/etc/*.d/", "k*.pem"]);
    check(&[
        (
            "protected: [../x]",
            "f:1:13: `../x` leads out of the workspace; outside the workspace, write an absolute path or start with `~/`",
        ),
        ("protected: [.]", "f:1:13: `.` would protect everything"),
        ("protected: [/]", "f:1:13: `/` would protect everything"),
        ("protected: [~/]", "f:1:13: `~/` would protect everything"),
        (
            "protected: ['~x/y']",
            "f:1:13: `~x/y`: `~user` paths are not supported; use `~/…` or an absolute path",
        ),
        (
            "protected: ['a/**/b']",
            "f:1:13: `a/**/b` contains `**`, which is not supported; `*` matches anything but a slash; to match everything in a directory, end the path with a slash",
        ),
    ]);
}

/// Collects the commands of a check with their numbers.
fn numbers(checker: &CompletionRequirement, found: &mut Vec<(u16, String)>) {
    match checker {
        CompletionRequirement::Command { number, line, .. } => found.push((*number, line.clone())),
        CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
            parts.iter().for_each(|part| numbers(part, found));
        }
        CompletionRequirement::Files(_)
        | CompletionRequirement::Custom { .. }
        | CompletionRequirement::Clean
        | CompletionRequirement::DocsUpdated => {}
    }
}

#[test]
fn commands_of_a_completion_are_numbered_in_the_order_of_the_file() {
    let definition =
        loaded("completion: { all: [ command: a, any: [ command: b, command: c ], command: d ] }");
    let mut found = Vec::new();
    definition.completion.iter().for_each(|checker| numbers(checker, &mut found));
    let expected: Vec<_> = (0..).zip(["a", "b", "c", "d"].map(ToOwned::to_owned)).collect();
    assert_eq!(found, expected);
}

/// Returns a definition with one rule named `x` and these other keys.
fn rule(rest: &str) -> String {
    format!("rules:\n  - {{ name: x, {rest} }}")
}

#[test]
fn a_rule_of_another_shape_is_refused_where_it_stands() {
    let examples = "examples: { deny: [git x] }";
    check_shapes(&[
        ("rules: {}", "f:1:8: `rules` must be a list, not a mapping"),
        ("rules: [x]", "f:1:9: a rule must be a mapping, not text"),
        (
            "rules: [ ~ ]",
            "f:1:10: a rule must have exactly one effect, not 0; give it `deny`, `ask`, `warn` or `observe`\n\
             f:1:10: a rule needs `examples`; show at least one call that it matches\n\
             f:1:10: a rule needs a `name`",
        ),
        (
            &rule("dney: No., examples: { deny: [git x] }"),
            "f:2:5: a rule must have exactly one effect, not 0; give it `deny`, `ask`, `warn` or `observe`\n\
             f:2:16: unknown key `dney` in a rule; did you mean `deny`?",
        ),
        (&rule(&format!("deny: 1, {examples}")), "f:2:22: `deny` must be text, not a number"),
        (
            &rule(&format!("deny: No., warn: Hm., {examples}")),
            "f:2:5: a rule must have exactly one effect, not 2; give it `deny`, `ask`, `warn` or `observe`",
        ),
        (
            &rule(&format!("deny: No., mode: warn, {examples}")),
            "f:2:33: `mode` can't be `warn`; use one of `enforce`, `observe`",
        ),
        (&rule(&format!("deny: No., command: [], {examples}")), "f:2:36: `command` is empty"),
        (
            &rule(&format!("deny: No., command: {{}}, {examples}")),
            "f:2:36: `command` must be text, not a mapping",
        ),
        (
            &rule(&format!("deny: No., when: true, {examples}")),
            "f:2:33: `when` must be text, not a boolean",
        ),
        (
            &rule("deny: No."),
            "f:2:5: a rule needs `examples`; show at least one call that it matches",
        ),
        (
            &rule("deny: No., examples: {}"),
            "f:2:37: no example shows the effect of this rule; add one under `deny`",
        ),
        (
            &rule("command: hg, deny: No., examples: { allow: [git x] }"),
            "f:2:50: no example shows the effect of this rule; add one under `deny`",
        ),
        (
            &rule("deny: No., examples: { deny: git x }"),
            "f:2:37: no example shows the effect of this rule; add one under `deny`\nf:2:45: the examples for `deny` must be a list, not text",
        ),
        (
            &rule("deny: No., examples: { deny: [git x, 3] }"),
            "f:2:53: an example must be text, not a number",
        ),
        (
            &rule("deny: No., examples: { dany: [git x] }"),
            "f:2:37: no example shows the effect of this rule; add one under `deny`\n\
             f:2:39: unknown key `dany` in `examples`; did you mean `deny`?",
        ),
        (
            "rules: [ { name: a b, deny: No., examples: { deny: [x] } } ]",
            "f:1:18: `a b` can't be the name of a rule; use letters, digits, `.`, `_`, `/` and `-`, at most 100 characters",
        ),
    ]);
}

#[test]
fn rules_have_unique_names() {
    check(&[(
        "rules:\n  - { name: a, deny: No., examples: { deny: [x] } }\n  - { name: a, ask: Hm., examples: { ask: [x] } }\n",
        "f:3:5: two rules are named `a`",
    )]);
    let long = "x".repeat(101);
    assert!(
        problems_in(&format!(
            "rules: [ {{ name: {long}, deny: No., examples: {{ deny: [x] }} }} ]"
        ))
        .contains("at most 100")
    );
}

#[test]
fn a_rule_has_the_scope_of_its_tool_and_command() {
    let of = |tools: &str, rest: &str| {
        let source = format!("{tools}\n{}", rule(&format!("{rest}, deny: No.")));
        loaded(&source).rules.iter().next().map(|rule| rule.scope.clone())
    };
    let line = "examples: { deny: [git x] }";
    let args = "examples: { deny: [{ a: 1 }] }";
    let tool = |name: &str| Some(RuleScope::Tool(name.to_owned()));
    assert_eq!(of("", line), Some(RuleScope::Any));
    assert_eq!(of("", &format!("command: git, {line}")), Some(RuleScope::Kind(ToolKind::Exec)));
    assert_eq!(of("", &format!("tool: write, {args}")), Some(RuleScope::Kind(ToolKind::Write)));
    assert_eq!(of("", &format!("tool: Bash, command: git, {line}")), tool("Bash"));
    assert_eq!(
        of("tools: { pay: { aliases: [Pay] } }", &format!("tool: Pay, {args}")),
        tool("pay")
    );
    assert_eq!(of("tools: { pay: {} }", &format!("tool: Bash, {line}")), tool("Bash"));
    assert_eq!(
        of("sections: [ { name: s, tools: [pay] } ]", &format!("tool: pay, {args}")),
        tool("pay")
    );
    assert_eq!(of("", &format!("tool: strange, {args}")), tool("strange"));
    assert_eq!(
        of(
            "tools: { go: { kind: exec, command: /a } }",
            &format!("tool: go, command: git, {line}")
        ),
        tool("go")
    );
}

#[test]
fn a_rule_that_can_never_see_a_call_is_refused() {
    check(&[
        (
            "tools: { send_money: {} }\nrules: [ { name: x, tool: send_mony, deny: No., examples: { deny: [{ a: 1 }] } } ]",
            "f:2:27: this rule can never see `send_mony`: no such tool is declared; did you mean `send_money`?",
        ),
        (
            "tools: { a: {} }\nrules: [ { name: x, tool: bsh, deny: No., examples: { deny: [{ a: 1 }] } } ]",
            "f:2:27: this rule can never see `bsh`: no such tool is declared; did you mean `Bash`?",
        ),
        (
            &rule("tool: write, command: git, deny: No., examples: { deny: [git] }"),
            "f:2:22: `write` runs no command lines, so `command` would never match; leave out `tool`, or name one of kind `exec`",
        ),
        (
            &rule("tool: stranger, command: git, deny: No., examples: { deny: [git] }"),
            "f:2:22: `stranger` runs no command lines, so `command` would never match; leave out `tool`, or name one of kind `exec`",
        ),
        (
            &rule("command: git push --force, deny: No., examples: { deny: [git] }"),
            "f:2:25: `--force` is an option; options are not matched here; to match options, write a condition on `argv` in `when`",
        ),
    ]);
}

#[test]
fn an_example_has_the_form_of_a_call() {
    let exec = |examples: &str| rule(&format!("command: git, deny: No., examples: {examples}"));
    let write = |examples: &str| rule(&format!("tool: write, deny: No., examples: {examples}"));
    check(&[
        (&exec("{ deny: [git x, { command: git x }, { run: git x }], allow: [ls] }"), "ok"),
        (
            &exec(
                "{ deny: [{ run: { command: git }, given: { git.branch: main, exists: [a, /b/], cwd: src } }] }",
            ),
            "ok",
        ),
        (&write("{ deny: [{ path: a }, { run: { path: a }, given: { ignored: [a] } }] }"), "ok"),
        // Arguments that only look similar to the full form are arguments.
        (&write("{ deny: [{ run: x, path: a }] }"), "ok"),
        (
            &write("{ deny: [rm a] }"),
            "f:2:50: no example shows the effect of this rule; add one under `deny`\n\
             f:2:59: an example of this rule must be a mapping, not text; write the arguments of the call",
        ),
        (
            &exec("{ deny: [git], ask: [git] }"),
            "f:2:71: a `deny` rule can't have examples for `ask`; list them under `deny` or `allow`",
        ),
        (
            &exec(
                "{ deny: [{ run: git, given: { git.drity: true, git.untracked: 1, exists: [../a] } }] }",
            ),
            "f:2:81: unknown key `git.drity` in `given`; did you mean `git.dirty`?\n\
             f:2:113: `git.untracked` must be true or false, not a number\n\
             f:2:125: `../a` leads out of the workspace",
        ),
    ]);
}

#[test]
fn an_example_must_show_what_the_rule_does() {
    let exec = |rest: &str| rule(&format!("command: git push, deny: No., {rest}"));
    check(&[
        (
            &exec("examples: { deny: [git push, git pull], allow: [sudo git push, ls] }"),
            "f:2:75: `x` does not match this example\nf:2:94: `x` matches this example",
        ),
        (
            &exec("when: '1 > 2', examples: { deny: [git push] }"),
            "f:2:80: `x` does not match this example; its condition is always false",
        ),
        (
            &exec("instead: git -C x push, examples: { deny: [git push] }"),
            "f:2:55: `x` also matches its own `instead`",
        ),
        // Other mistakes do not hide these.
        (
            &format!("mode: x\n{}", exec("examples: { deny: [git pull] }")),
            "f:1:7: `mode` can't be `x`; use one of `enforce`, `observe`\n\
             f:3:65: `x` does not match this example",
        ),
    ]);
}

/// The position of a mistake is exact if the file contains the condition unchanged.
#[test]
fn a_mistake_in_a_condition_is_reported_at_its_character() {
    let place = |condition: &str| {
        let source = format!(
            "rules:\n  - name: x\n    when: {condition}\n    deny: No.\n    examples: {{ deny: [a] }}\n"
        );
        let problems = problems_in(&source);
        problems.split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(place("true && @"), "f:3:19:");
    assert_eq!(place("'true && @'"), "f:3:20:");
    assert_eq!(place("\"true && @\""), "f:3:20:");
    assert_eq!(place("'\"ä\" == @'"), "f:3:19:");
    // If the file does not contain the text unchanged, the start of the text is reported.
    assert_eq!(place("'a == ''b'' && @'"), "f:3:11:");
    assert_eq!(place(">-\n      true &&\n      @"), "f:4:7:");
    assert_eq!(place("true &&\n      @"), "f:3:11:");
}
