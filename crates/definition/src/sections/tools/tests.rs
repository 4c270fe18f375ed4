//! Tests how a repository may declare tools.

use jackline_engine::definition::*;
use jackline_engine::{Definition, Mode, ToolKind};

use crate::layers::tests::*;

fn aliased(name: &str, kind: ToolKind, aliases: &[&str]) -> DeclaredTool {
    let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
    DeclaredTool { kind, aliases, ..DeclaredTool::with_name(name) }
}

#[test]
fn the_higher_layer_decides_the_meaning_of_a_name() {
    let high = tools(&[aliased("run", ToolKind::Exec, &["runner"])]);
    let low = Definition {
        tools: vec![aliased("runner", ToolKind::Think, &["go"])],
        rules: Rules::new(vec![Rule {
            scope: RuleScope::Tool("runner".to_owned()),
            ..rule("a", RuleEffect::Deny)
        }]),
        ..Definition::default()
    };
    let combined = untrusted(&high, &low);
    assert_eq!(
        combined.definition.tools,
        [aliased("run", ToolKind::Exec, &["runner"]), aliased("go", ToolKind::Think, &[])]
    );
    let scopes: Vec<_> = combined.definition.rules.iter().map(|rule| rule.scope.clone()).collect();
    assert_eq!(scopes, [RuleScope::Tool("run".to_owned())]);
    assert_eq!(
        ignored(&combined),
        [
            "the meaning of `runner` in `tools` ignored: the user layer already declares it; trust would allow it"
        ]
    );
    assert_eq!(
        trusted(&high, &low).definition.tools,
        [aliased("run", ToolKind::Think, &["runner", "go"])]
    );
}

#[test]
fn a_repository_cannot_hide_a_well_known_tool() {
    let high = rules(Mode::Enforce, &[rule("a", RuleEffect::Deny)]);
    let nowhere = Some("/nowhere".to_owned());
    let low = tools(&[
        aliased("Bash", ToolKind::Think, &[]),
        DeclaredTool { command: nowhere, ..aliased("my_shell", ToolKind::Exec, &["shell"]) },
        aliased("notes", ToolKind::Think, &["Write", "plan"]),
    ]);
    let combined = untrusted(&high, &low);
    let kinds: Vec<_> =
        combined.definition.tools.iter().map(|tool| (tool.name.as_str(), tool.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("Bash", ToolKind::Exec),
            ("shell", ToolKind::Exec),
            ("my_shell", ToolKind::Exec),
            ("Write", ToolKind::Write),
            ("notes", ToolKind::Think)
        ]
    );
    assert_eq!(combined.definition.tools[1].command, None);
    assert_eq!(combined.definition.tools[4].aliases, ["plan"]);
    assert_eq!(ignored(&combined).len(), 3);
    assert_eq!(trusted(&high, &low).definition.tools, low.tools);
}

#[test]
fn a_repository_cannot_rename_what_a_rule_refers_to() {
    let by_scope = Rule { scope: RuleScope::Tool("pay".to_owned()), ..rule("a", RuleEffect::Deny) };
    let by_condition = Rule {
        scope: RuleScope::Any,
        when: Some(condition("tool == 'pay'")),
        ..rule("b", RuleEffect::Deny)
    };
    let low = tools(&[aliased("other", ToolKind::Other, &["pay"])]);
    for rule in [by_scope, by_condition] {
        let combined = untrusted(&rules(Mode::Enforce, &[rule]), &low);
        let apart = [DeclaredTool::with_name("pay"), aliased("other", ToolKind::Other, &[])];
        assert_eq!(combined.definition.tools, apart);
    }
    let indifferent = rules(Mode::Enforce, &[rule("c", RuleEffect::Deny)]);
    assert_eq!(untrusted(&indifferent, &low).definition.tools, low.tools);
}

#[test]
fn a_repository_cannot_declare_a_tool_where_unknown_tools_are_denied() {
    let high =
        Definition { unknown_tools: UnknownTools::Deny, ..tools(&[DeclaredTool::with_name("a")]) };
    let low = tools(&[aliased("b", ToolKind::Other, &["a", "c"])]);
    let combined = untrusted(&high, &low);
    assert_eq!(combined.definition.tools, high.tools);
    assert_eq!(
        ignored(&combined)[..2],
        [
            "the meaning of `b` in `tools` ignored: the user layer denies unknown tools; trust would allow it",
            "the meaning of `c` in `tools` ignored: the user layer denies unknown tools; trust would allow it"
        ]
    );
}

#[test]
fn a_repository_declares_only_well_known_tools_where_others_are_denied() {
    let high = tools(&[DeclaredTool::with_name("a")]);
    let high = Definition { unknown_tools: UnknownTools::Client, ..high };
    let low = tools(&[aliased("b", ToolKind::Other, &["Read"]), DeclaredTool::with_name("Bash")]);
    let combined = untrusted(&high, &low);
    let names: Vec<&str> = combined.definition.tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "Read", "Bash"]);
    assert_eq!(
        ignored(&combined)[0],
        "the meaning of `b` in `tools` ignored: the user layer denies unknown tools; trust would allow it"
    );
    assert_eq!(combined.definition.unknown_tools, UnknownTools::Client);
}

#[test]
fn a_repository_cannot_hide_a_tool_from_guards() {
    let kinds = |high: &Definition, declaration: &str| {
        let low =
            load_definition(&format!("tools: {{ mcp: {declaration} }}\nunknown_tools: allow"));
        let combined = untrusted(high, &low);
        let tool = combined.definition.tools.iter().find(|tool| tool.name == "mcp").unwrap();
        let excused = tool.transparent || tool.read_only || tool.poll.is_some();
        let why = ignored(&combined).first().and_then(|line| {
            let (_, why) = line.split_once("the user layer ")?;
            Some(why.trim_end_matches("; trust would allow it").to_owned())
        });
        (tool.kind, excused, why.unwrap_or_default())
    };
    let (loops, clean) =
        (load_definition("loops: {}"), load_definition("completion: { clean: {} }"));
    let rule = "rules: [ { name: r, tool: other, ask: Hm., examples: { ask: [{ a: 1 }] } } ]";
    let (rule, steps) = (load_definition(rule), load_definition("limits: { steps: 9 }"));
    let guard = "has its own loop guard";
    let changes = "relies on what changed";
    for (high, declaration, kind, excused, why) in [
        (&loops, "{ kind: think }", ToolKind::Other, false, guard),
        (&loops, "{ kind: search }", ToolKind::Other, false, guard),
        (&loops, "{ kind: exec, command: /line }", ToolKind::Other, false, guard),
        (&loops, "{ read_only: true }", ToolKind::Other, false, guard),
        (&loops, "{ poll: {} }", ToolKind::Other, false, guard),
        (&loops, "{ kind: write }", ToolKind::Write, false, ""),
        (&clean, "{ kind: read }", ToolKind::Other, false, changes),
        (&clean, "{ kind: effect }", ToolKind::Effect, false, ""),
        (&rule, "{ kind: write }", ToolKind::Other, false, "has rules on kinds of tools"),
        (&steps, "{ kind: read, read_only: true }", ToolKind::Read, true, ""),
    ] {
        assert_eq!(kinds(high, declaration), (kind, excused, why.to_owned()), "{declaration}");
    }
    // It also cannot hide a tool with an alias of a well-known tool.
    let low = tools(&[aliased("Bash", ToolKind::Exec, &["mcp"])]);
    let apart = [DeclaredTool::with_name("mcp"), aliased("Bash", ToolKind::Exec, &[])];
    assert_eq!(untrusted(&loops, &low).definition.tools, apart);
    // It also cannot hide commands in a tool that the loop guard ignores.
    let low = tools(&[DeclaredTool {
        commands: vec!["rm".to_owned()],
        ..DeclaredTool::with_name("TodoWrite")
    }]);
    assert_eq!(untrusted(&loops, &low).definition.tools, [DeclaredTool::with_name("TodoWrite")]);
}

#[test]
fn a_repository_cannot_declare_a_test_that_another_layer_names() {
    let high = load_definition("completion: { clean: {} }\ndirty_bits: { tests: [ci] }");
    for low in [
        tools(&[DeclaredTool {
            commands: vec!["true".to_owned()],
            ..DeclaredTool::with_name("ci")
        }]),
        tools(&[DeclaredTool { aliases: vec!["ci".to_owned()], ..DeclaredTool::with_name("mcp") }]),
    ] {
        let combined = untrusted(&high, &low);
        let ci = combined.definition.tools.iter().find(|tool| tool.name == "ci").unwrap();
        assert_eq!(*ci, DeclaredTool::with_name("ci"));
        let names = combined.definition.tools.iter().flat_map(|tool| &tool.aliases);
        assert_eq!(names.count(), 0);
        assert_eq!(trusted(&high, &low).definition.tools, low.tools);
    }
}

#[test]
fn commands_of_a_repository_are_still_analysed_if_a_higher_layer_needs_it() {
    let low = load_definition(
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
        let combined = untrusted(&load_definition(high), &low);
        let ci = combined.definition.tools.iter().find(|tool| tool.name == "ci").unwrap();
        // The commands are still recognised, and a policy on them is in force.
        assert_eq!((&ci.commands, ci.doubted), (&low.tools[0].commands, doubted), "{high}");
        let lines = ignored(&combined);
        let reports = lines.iter().filter(|line| line.contains("`ci`")).count();
        assert_eq!(reports, usize::from(doubted), "{high}");
        let with_trust = trusted(&load_definition(high), &low);
        assert!(!with_trust.definition.tools.iter().any(|tool| tool.doubted), "{high}");
    }
}
