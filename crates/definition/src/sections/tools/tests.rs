//! What a repository may say of tools.

use jackline_engine::definition::*;
use jackline_engine::{Definition, Kind, Mode};

use crate::layers::tests::*;

fn aliased(name: &str, kind: Kind, aliases: &[&str]) -> Tool {
    let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
    Tool { kind, aliases, ..Tool::named(name) }
}

#[test]
fn a_name_means_what_the_higher_layer_says() {
    let high = tools(&[aliased("run", Kind::Exec, &["runner"])]);
    let low = Definition {
        tools: vec![aliased("runner", Kind::Think, &["go"])],
        rules: Rules::new(vec![Rule {
            scope: RuleScope::Tool("runner".to_owned()),
            ..rule("a", Effect::Deny)
        }]),
        ..Definition::default()
    };
    let combined = untrusted(&high, &low);
    assert_eq!(
        combined.definition.tools,
        [aliased("run", Kind::Exec, &["runner"]), aliased("go", Kind::Think, &[])]
    );
    let scopes: Vec<_> = combined.definition.rules.iter().map(|rule| rule.scope.clone()).collect();
    assert_eq!(scopes, [RuleScope::Tool("run".to_owned())]);
    assert_eq!(
        ignored(&combined),
        [
            "the meaning of `runner` in `tools` ignored: the user layer says what it means; trust would let it"
        ]
    );
    assert_eq!(
        trusted(&high, &low).definition.tools,
        [aliased("run", Kind::Think, &["runner", "go"])]
    );
}

#[test]
fn a_repository_cannot_hide_a_well_known_tool() {
    let high = rules(Mode::Enforce, &[rule("a", Effect::Deny)]);
    let nowhere = Some("/nowhere".to_owned());
    let low = tools(&[
        aliased("Bash", Kind::Think, &[]),
        Tool { command: nowhere, ..aliased("my_shell", Kind::Exec, &["shell"]) },
        aliased("notes", Kind::Think, &["Write", "plan"]),
    ]);
    let combined = untrusted(&high, &low);
    let kinds: Vec<_> =
        combined.definition.tools.iter().map(|tool| (tool.name.as_str(), tool.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("Bash", Kind::Exec),
            ("shell", Kind::Exec),
            ("my_shell", Kind::Exec),
            ("Write", Kind::Write),
            ("notes", Kind::Think)
        ]
    );
    assert_eq!(combined.definition.tools[1].command, None);
    assert_eq!(combined.definition.tools[4].aliases, ["plan"]);
    assert_eq!(ignored(&combined).len(), 3);
    assert_eq!(trusted(&high, &low).definition.tools, low.tools);
}

#[test]
fn a_repository_cannot_rename_what_a_rule_refers_to() {
    let by_scope = Rule { scope: RuleScope::Tool("pay".to_owned()), ..rule("a", Effect::Deny) };
    let by_condition = Rule {
        scope: RuleScope::Any,
        when: Some(condition("tool == 'pay'")),
        ..rule("b", Effect::Deny)
    };
    let low = tools(&[aliased("other", Kind::Other, &["pay"])]);
    for rule in [by_scope, by_condition] {
        let combined = untrusted(&rules(Mode::Enforce, &[rule]), &low);
        let apart = [Tool::named("pay"), aliased("other", Kind::Other, &[])];
        assert_eq!(combined.definition.tools, apart);
    }
    let indifferent = rules(Mode::Enforce, &[rule("c", Effect::Deny)]);
    assert_eq!(untrusted(&indifferent, &low).definition.tools, low.tools);
}

#[test]
fn a_repository_cannot_make_an_unknown_tool_known() {
    let high = Definition { unknown_tools: UnknownTools::Deny, ..tools(&[Tool::named("a")]) };
    let low = tools(&[aliased("b", Kind::Other, &["a", "c"])]);
    let combined = untrusted(&high, &low);
    assert_eq!(combined.definition.tools, high.tools);
    assert_eq!(
        ignored(&combined)[..2],
        [
            "the meaning of `b` in `tools` ignored: the user layer denies unknown tools; trust would let it",
            "the meaning of `c` in `tools` ignored: the user layer denies unknown tools; trust would let it"
        ]
    );
}

#[test]
fn a_repository_cannot_hide_a_tool_from_those_who_watch() {
    let kinds = |high: &Definition, says: &str| {
        let low = of_file(&format!("tools: {{ mcp: {says} }}\nunknown_tools: allow"));
        let combined = untrusted(high, &low);
        let tool = combined.definition.tools.iter().find(|tool| tool.name == "mcp").unwrap();
        let excused = tool.transparent || tool.read_only || tool.poll.is_some();
        let why = ignored(&combined).first().and_then(|line| {
            let (_, why) = line.split_once("the user layer ")?;
            Some(why.trim_end_matches("; trust would let it").to_owned())
        });
        (tool.kind, excused, why.unwrap_or_default())
    };
    let (loops, clean) = (of_file("loops: {}"), of_file("completion: { clean: {} }"));
    let rule = "rules: [ { name: r, tool: other, ask: Hm., examples: { ask: [{ a: 1 }] } } ]";
    let (rule, steps) = (of_file(rule), of_file("limits: { steps: 9 }"));
    let guard = "has a loop guard of its own";
    let changes = "rests on what is changed";
    for (high, says, kind, excused, why) in [
        (&loops, "{ kind: think }", Kind::Other, false, guard),
        (&loops, "{ kind: search }", Kind::Other, false, guard),
        (&loops, "{ kind: exec, command: /line }", Kind::Other, false, guard),
        (&loops, "{ read_only: true }", Kind::Other, false, guard),
        (&loops, "{ poll: {} }", Kind::Other, false, guard),
        (&loops, "{ kind: write }", Kind::Write, false, ""),
        (&clean, "{ kind: read }", Kind::Other, false, changes),
        (&clean, "{ kind: effect }", Kind::Effect, false, ""),
        (&rule, "{ kind: write }", Kind::Other, false, "has rules on kinds of tools"),
        (&steps, "{ kind: read, read_only: true }", Kind::Read, true, ""),
    ] {
        assert_eq!(kinds(high, says), (kind, excused, why.to_owned()), "{says}");
    }
    // Nor by another name for a tool that everybody knows.
    let low = tools(&[aliased("Bash", Kind::Exec, &["mcp"])]);
    let apart = [Tool::named("mcp"), aliased("Bash", Kind::Exec, &[])];
    assert_eq!(untrusted(&loops, &low).definition.tools, apart);
    // Nor by what is passed over.
    let low = tools(&[Tool { commands: vec!["rm".to_owned()], ..Tool::named("TodoWrite") }]);
    assert_eq!(untrusted(&loops, &low).definition.tools, [Tool::named("TodoWrite")]);
}

#[test]
fn a_repository_cannot_say_what_a_test_is_that_another_layer_names() {
    let high = of_file("completion: { clean: {} }\ndirty_bits: { tests: [ci] }");
    for low in [
        tools(&[Tool { commands: vec!["true".to_owned()], ..Tool::named("ci") }]),
        tools(&[Tool { aliases: vec!["ci".to_owned()], ..Tool::named("mcp") }]),
    ] {
        let combined = untrusted(&high, &low);
        let ci = combined.definition.tools.iter().find(|tool| tool.name == "ci").unwrap();
        assert_eq!(*ci, Tool::named("ci"));
        let names = combined.definition.tools.iter().flat_map(|tool| &tool.aliases);
        assert_eq!(names.count(), 0);
        assert_eq!(trusted(&high, &low).definition.tools, low.tools);
    }
}

#[test]
fn a_repositorys_commands_are_looked_at_by_who_looks_into_them() {
    let low = of_file(
        "tools: { ci: { commands: [make ci] }, mcp: {} }\nunknown_tools: allow\n\
         policies: [ sequential_dependency: { mcp: [ci] } ]",
    );
    let fresh = "unknown_tools: allow\n\
         tools: { a: {}, b: {} }\npolicies: [ sequential_dependency: { a: [{ tool: b, fresh: true }] } ]";
    for (high, doubted) in [
        ("completion: { clean: {} }", true),
        ("progress: {}", true),
        ("shell: { opaque: ask }", true),
        (fresh, true),
        ("limits: { steps: 9 }", false),
    ] {
        let combined = untrusted(&of_file(high), &low);
        let ci = combined.definition.tools.iter().find(|tool| tool.name == "ci").unwrap();
        // They are still recognised, and a policy on them holds.
        assert_eq!((&ci.commands, ci.doubted), (&low.tools[0].commands, doubted), "{high}");
        let lines = ignored(&combined);
        let said = lines.iter().filter(|line| line.contains("`ci`")).count();
        assert_eq!(said, usize::from(doubted), "{high}");
        let with_trust = trusted(&of_file(high), &low);
        assert!(!with_trust.definition.tools.iter().any(|tool| tool.doubted), "{high}");
    }
}
