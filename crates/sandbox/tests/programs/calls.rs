//! Calls of programs: each asks the host, and may be refused.

use jackline_attempt::Fault;
use serde_json::json;

use crate::world::{World, show};

#[test]
fn a_tool_is_called_by_its_name_with_named_arguments() {
    let world = World::new();
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
    let world = World::new();
    let source = "x = 1\ntool('denied')(a=1)\nok(1)";
    let Err(Fault::Refused(violations)) = world.run(source) else { panic!("it was done") };
    assert_eq!(violations.iter().map(show).collect::<Vec<_>>(), ["tool_denied 2:1"]);
    assert_eq!(violations[0].message, "not on a Sunday");

    let source = "try:\n    tool('denied')(a=1)\nexcept PermissionError as no:\n    ok(str(no))";
    let said = world.answer(source);
    assert!(said.as_str().unwrap().starts_with("tool_denied: not on a Sunday"), "{said}");

    // An exception of the program's own is no refusal.
    let own =
        "try:\n    tool('denied')(a=1)\nexcept PermissionError:\n    raise PermissionError('mine')";
    assert_eq!(world.fault(own).0, "execution");
}

#[test]
fn a_tool_that_nobody_knows_is_refused_before_the_host_hears_of_it() {
    let world = World::new();
    let Err(Fault::Refused(violations)) = world.run("tool('no' + 'pe')(a=1)") else { panic!() };
    assert_eq!(violations.iter().map(show).collect::<Vec<_>>(), ["unknown_tool 1:1"]);
    let Err(Fault::Refused(violations)) = world.run("delegate('echo', a=1)") else { panic!() };
    assert_eq!(violations.iter().map(show).collect::<Vec<_>>(), ["unknown_tool 1:1"]);
    assert!(world.called().is_empty());
    // No tool can pass for a function of the host.
    let Err(Fault::Refused(_)) = world.run("tool('ok')(value=1)") else { panic!() };
}

#[test]
fn a_tool_that_fails_raises_and_its_error_is_what_the_program_failed_of() {
    let world = World::new();
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
fn a_host_that_panics_takes_its_worker_along_and_no_other() {
    let world = World::new();
    let run = || world.run("tool('panics')()");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    assert_eq!(world.answer("ok(tool('add')(a=1, b=2))"), json!(3));
}

#[test]
fn functions_of_the_host_say_how_they_are_called() {
    let world = World::new();
    for (source, says) in [
        ("tool(5)", "tool() wants a name first, which is a string"),
        ("tool()", "tool() wants a name first"),
        ("tool('add')(1, 2)", "`add` takes named arguments only"),
        ("tool('add', 1, 2)", "`add` takes named arguments only"),
        ("tool('echo')(a={1})", "an argument of `echo`, [\"a\"] is a set; use a list"),
        ("tool('echo')(a=tool)", "is a function"),
        ("delegate('helper', 'do it')", "`helper` takes named arguments only"),
        ("error('only a type')", "error() wants a string for `message`"),
        ("error('a', 'b', retriable=1)", "True or False"),
        ("error('a', 'b', why='c')", "error() takes type, message, retriable, not `why`"),
        ("ok(1, 2, 3)", "ok() takes value, sources and no more"),
        ("ok(1, value=2)", "ok() is given `value` twice"),
        ("ok(1, sources='here')", "ok() wants a list of sources"),
        ("forge('x')", "forge() wants a string for `source`"),
    ] {
        let (error_type, message) = world.fault(source);
        assert_eq!(error_type, "execution", "{source}");
        assert!(message.contains(says), "{source}: {message}");
        assert!(message.starts_with("TypeError") && message.contains("(at 1:1)"), "{message}");
    }
    assert!(world.fault("forge('a b', 'ok(1)')").1.starts_with("ValueError"));
    // Wrong types that only the tool itself can know.
    assert_eq!(world.fault("tool('add')(a='1', b=2)").0, "invalid_arguments");
}

#[test]
fn a_forged_tool_is_looked_at_and_then_called_as_any_tool() {
    let world = World::new();
    let source = "forge('double', \"ok(arguments['n'] * 2)\", description='twice')\n\
                  ok(tool('double')(n=21))";
    assert_eq!(world.validate(source), [""; 0]);
    assert_eq!(world.answer(source), json!(42));
    assert_eq!(world.state.borrow().forged["double"].description, "twice");
    // It stays for the next program.
    assert_eq!(world.answer("ok(tool('double')(n=1))"), json!(2));

    for (inner, subtype) in [
        ("import os", "forbidden_construct"),
        ("tool('nope')()", "unknown_tool"),
        ("tool.x = 1", "singleton_method_mutation"),
        ("ok(", "syntax_error"),
    ] {
        let source = format!("x = 1\nforge('bad', {inner:?})");
        let Err(Fault::Refused(violations)) = world.run(&source) else { panic!("{inner}") };
        assert_eq!(show(&violations[0]), format!("{subtype} 2:1"));
        assert!(violations[0].message.starts_with("in `bad`, 1:"), "{}", violations[0].message);
    }
    let long = format!("forge('bad', 'x = 1\\n' * {})", 20_000);
    let Err(Fault::Refused(violations)) = world.run(&long) else { panic!() };
    assert_eq!(violations[0].subtype.word(), "program_too_long");
    assert!(!world.state.borrow().forged.contains_key("bad"));
}
