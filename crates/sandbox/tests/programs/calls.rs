//! Tests of the calls of programs: each one asks the host and may be refused.

use jackline_attempt::ArtifactFault;
use serde_json::json;

use crate::world::{SandboxWorld, violation_text};

#[test]
fn a_tool_is_called_by_its_name_with_named_arguments() {
    let world = SandboxWorld::new();
    assert_eq!(world.answer("ok(tool('add')(a=1, b=2))"), json!(3));
    assert_eq!(world.answer("ok(tool('add', a=1, b=2))"), json!(3));
    assert_eq!(
        world.answer("add = tool('add')\nok([add(a=n, b=n) for n in range(3)])"),
        json!([0, 2, 4])
    );
    assert_eq!(world.answer("ok(tool('echo')(**{'x': 1}))"), json!({ "x": 1 }));
    assert_eq!(world.answer("ok(sorted(context['tools'])[0])"), json!("add"));
}

#[test]
fn a_refusal_can_be_caught_and_otherwise_ends_the_program() {
    let world = SandboxWorld::new();
    let source = "x = 1\ntool('denied')(a=1)\nok(1)";
    let Err(ArtifactFault::Refused(violations)) = world.run(source) else { panic!("it was done") };
    assert_eq!(violations.iter().map(violation_text).collect::<Vec<_>>(), ["tool_denied 2:1"]);
    assert_eq!(violations[0].message, "not on a Sunday");

    let source = "try:\n    tool('denied')(a=1)\nexcept PermissionError as no:\n    ok(str(no))";
    let said = world.answer(source);
    assert!(said.as_str().unwrap().starts_with("tool_denied: not on a Sunday"), "{said}");

    // An exception that the program raises itself is no refusal.
    let own =
        "try:\n    tool('denied')(a=1)\nexcept PermissionError:\n    raise PermissionError('mine')";
    assert_eq!(world.fault(own).0, "execution");
}

#[test]
fn an_unknown_tool_is_refused_without_a_call_of_the_host() {
    let world = SandboxWorld::new();
    let Err(ArtifactFault::Refused(violations)) = world.run("tool('no' + 'pe')(a=1)") else {
        panic!()
    };
    assert_eq!(violations.iter().map(violation_text).collect::<Vec<_>>(), ["unknown_tool 1:1"]);
    let Err(ArtifactFault::Refused(violations)) = world.run("delegate('echo', a=1)") else {
        panic!()
    };
    assert_eq!(violations.iter().map(violation_text).collect::<Vec<_>>(), ["unknown_tool 1:1"]);
    assert!(world.called().is_empty());
    // A tool name can't reach a function of the host.
    let Err(ArtifactFault::Refused(_)) = world.run("tool('ok')(value=1)") else { panic!() };
}

#[test]
fn a_tool_that_fails_raises_and_its_error_is_the_failure_of_the_program() {
    let world = SandboxWorld::new();
    assert_eq!(
        world.fault("tool('broken')(a=1)"),
        ("network_error".to_owned(), "the line is down".to_owned())
    );
    let source = "try:\n    tool('broken')()\nexcept RuntimeError as why:\n    ok(str(why))";
    assert_eq!(world.answer(source), json!("network_error: the line is down"));
    assert_eq!(world.fault("tool('big')()").0, "result_too_large");
    assert_eq!(world.fault("tool('deep')()").0, "result_too_large");
}

#[test]
fn a_panic_of_the_host_ends_only_its_own_worker() {
    let world = SandboxWorld::new();
    let run = || world.run("tool('panics')()");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    assert_eq!(world.answer("ok(tool('add')(a=1, b=2))"), json!(3));
}

#[test]
fn host_functions_explain_wrong_uses() {
    let world = SandboxWorld::new();
    for (source, says) in [
        ("tool(5)", "tool() needs a name as its first argument, as a string"),
        ("tool()", "tool() needs a name"),
        ("tool('add')(1, 2)", "`add` takes named arguments only"),
        ("tool('add', 1, 2)", "`add` takes named arguments only"),
        ("tool('echo')(a={1})", "an argument of `echo`, [\"a\"] is a set; use a list"),
        ("tool('echo')(a=tool)", "is a function"),
        ("delegate('helper', 'do it')", "`helper` takes named arguments only"),
        ("error('only a type')", "error() needs a string for `message`"),
        ("error('a', 'b', retriable=1)", "True or False"),
        ("error('a', 'b', why='c')", "error() takes type, message, retriable, not `why`"),
        ("ok(1, 2, 3)", "ok() takes only value, sources"),
        ("ok(1, value=2)", "ok() got `value` twice"),
        ("ok(1, sources='here')", "ok() needs a list for `sources`"),
        ("forge('x')", "forge() needs a string for `source`"),
    ] {
        let (error_type, message) = world.fault(source);
        assert_eq!(error_type, "execution", "{source}");
        assert!(message.contains(says), "{source}: {message}");
        assert!(message.starts_with("TypeError") && message.contains("(at 1:1)"), "{message}");
    }
    assert!(world.fault("forge('a b', 'ok(1)')").1.starts_with("ValueError"));
    // Only the tool itself can check these types.
    assert_eq!(world.fault("tool('add')(a='1', b=2)").0, "invalid_arguments");
}

#[test]
fn a_generated_tool_is_checked_and_then_called_like_any_tool() {
    let world = SandboxWorld::new();
    let source = "forge('double', \"ok(arguments['n'] * 2)\", description='twice')\n\
                  ok(tool('double')(n=21))";
    assert_eq!(world.validate(source), [""; 0]);
    assert_eq!(world.answer(source), json!(42));
    assert_eq!(world.state.borrow().forged["double"].description, "twice");
    // The tool is still there for the next program.
    assert_eq!(world.answer("ok(tool('double')(n=1))"), json!(2));

    for (inner, subtype) in [
        ("import os", "forbidden_construct"),
        ("tool('nope')()", "unknown_tool"),
        ("tool.x = 1", "singleton_method_mutation"),
        ("ok(", "syntax_error"),
    ] {
        let source = format!("x = 1\nforge('bad', {inner:?})");
        let Err(ArtifactFault::Refused(violations)) = world.run(&source) else { panic!("{inner}") };
        assert_eq!(violation_text(&violations[0]), format!("{subtype} 2:1"));
        assert!(violations[0].message.starts_with("in `bad`, 1:"), "{}", violations[0].message);
    }
    let long = format!("forge('bad', 'x = 1\\n' * {})", 20_000);
    let Err(ArtifactFault::Refused(violations)) = world.run(&long) else { panic!() };
    assert_eq!(violations[0].subtype.as_str(), "program_too_long");
    assert!(!world.state.borrow().forged.contains_key("bad"));
}
