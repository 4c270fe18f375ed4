//! Tests the meaning of conditions.

use jackline_definition::cel::parse_condition;
use jackline_engine::expr::{EvaluationError, Expr, PathQuestion, Variable};

use crate::{CallScope, ConditionCall, STEPS};

#[test]
fn conditions_hold() {
    let call = ConditionCall::push();
    for condition in [
        r#"argv.exists(a, a == "--force" || a == "-f")"#,
        r#"program == "git" && argv[0] == "push""#,
        "argv.size() == 4 && size(args.tags) == 3",
        r#"path.startsWith("src/") && path.endsWith(".rs") && path.contains("main")"#,
        r#"args.nested.deep.er == "x" && args["nested"]["deep"].er == 'x'"#,
        "has(args.count) && !has(args.missing) && has(args.nested.empty)",
        r#""count" in args && !("missing" in args) && "a" in args.tags"#,
        "args.count in [1, 2, 3] && !(4 in [1, 2, 3])",
        r#"args.tags.all(t, t.size() == 1) && args.tags.exists_one(t, t == "b")"#,
        r#"args.tags.filter(t, t != "b") == ["a", "c"]"#,
        r#"args.tags.map(t, t + t) == ["aa", "bb", "cc"]"#,
        r#"args.tags + ["d"] == ["a", "b", "c", "d"]"#,
        r#"args.nested.exists(k, k == "deep")"#,
        r#"args.mixed == [1, "a", null, args.mixed[3], [1], {"k": 1}]"#,
        r#"{"b": 2, "a": [1]} == {"a": [1], "b": 2}"#,
        "args.none == null && args.count != null",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 3 == 1 && -7 / 2 == -3 && -7 % 2 == -1",
        "10 - 3 - 2 == 5 && 2 - -3 == 5 && 0x1F == 31",
        "args.count > 2 ? true : false",
        "false ? false : true ? true : false",
        r#""b" > "a" && "é" > "z" && "" < "a" && false < true"#,
        r#"size("grüße") == 5"#,
        r#"int("42") == 42 && int(args.ratio) == 1 && string(42) == "42" && string(true) == "true""#,
        r#"string(args.ratio) == "1.5" && "HEAD".lowerAscii() == "head""#,
        "session.steps >= 7 && git.protected",
        r#"exists(path) && !exists("nowhere")"#,
        r#"writes.exists(w, w.startsWith("a/"))"#,
        "[[1, 2], [3]].exists(l, l.exists(x, x == 3 && size(l) == 1))",
        r#"argv.exists(argv, argv == "main")"#,
        r#"'a\'b' == "a'b" && r"\n" == "\\n" && """a"b""" == 'a"b' && "\u00e9\x41\101" == "éAA""#,
        "true // a comment",
        "true ||\n  false",
    ] {
        assert_eq!(call.holds(condition), Ok(true), "{condition}");
    }
}

#[test]
fn decimals_are_compared_exactly_and_not_computed_with() {
    let call = ConditionCall::push();
    for condition in [
        "args.ratio > 1 && args.ratio < 2",
        "args.two == 2 && 2 == args.two && args.two in [1, 2]",
        "args.huge > 9223372036854775807",
        "args.ratio != args.two && args.ratio < args.two",
    ] {
        assert_eq!(call.holds(condition), Ok(true), "{condition}");
    }
    for condition in ["args.ratio + 1 > 0", "-args.ratio < 0", "args.tags[args.two] == \"c\""] {
        assert!(matches!(call.holds(condition), Err(EvaluationError::Failed(_))), "{condition}");
    }
}

#[test]
fn a_failed_evaluation_has_a_reason() {
    let call = ConditionCall::push();
    for (condition, why) in [
        ("args.missing == 1", "there is no key `missing`"),
        ("args.count.x == 1", "a number has no key `x`"),
        ("has(args.missing.x)", "there is no key `missing`"),
        ("argv[9] == \"\"", "there is no item 9 in a list of 4"),
        ("argv[-1] == \"\"", "there is no item -1 in a list of 4"),
        ("args.count < args.command", "a number can't be compared with a text"),
        ("args.count + args.command == 1", "`+` can't be used on a number and a text"),
        ("args.count / 0 == 1", "3 is divided by 0"),
        ("9223372036854775807 + args.count > 0", "`9223372036854775807 + 3` is too large a number"),
        ("-(-9223372036854775808) > 0", "`-(-9223372036854775808)` is too large a number"),
        ("args.command", "expected true or false, but got a text"),
        ("args.count.startsWith(\"a\")", "expected a text, but got a number"),
        ("args.count in args.count", "`in` looks into a list or a map, not a number"),
        ("int(args.command) == 1", "`git push --force origin main` is not a whole number"),
        ("args.on.exists(x, true)", "true or false has no items"),
        ("args.missing in []", "there is no key `missing`"),
        ("args.none in args", "null can't be a key of a map"),
        ("{\"a\": 1, \"a\": 2} == {\"a\": 1}", "duplicate key `a`"),
        ("cwd == \"\"", "no cwd"),
    ] {
        assert_eq!(
            call.holds(condition),
            Err(EvaluationError::Failed(why.to_owned())),
            "{condition}"
        );
    }
}

#[test]
fn an_error_does_not_matter_if_another_part_decides() {
    let call = ConditionCall::push();
    let (broken, missing) = ("args.missing == 1", "git.dirty");
    for trouble in [broken, missing] {
        for (condition, answer) in [
            (format!("{trouble} && false"), false),
            (format!("false && {trouble}"), false),
            (format!("{trouble} || true"), true),
            (format!("true || {trouble}"), true),
            (format!("[1, 2].exists(x, x == 2 || {trouble})"), true),
            (format!("[1, 2].all(x, x == 1 && {trouble})"), false),
        ] {
            assert_eq!(call.holds(&condition), Ok(answer), "{condition}");
        }
    }
    // With the missing fact the failed part may not matter, so the engine must ask for the fact.
    for condition in [
        format!("{broken} && {missing}"),
        format!("{missing} || {broken}"),
        "true && git.dirty".to_owned(),
        "ignored(path) || false".to_owned(),
        "[git.dirty] == [true]".to_owned(),
    ] {
        assert_eq!(call.holds(&condition), Err(EvaluationError::MissingFact), "{condition}");
    }
}

#[test]
fn a_condition_lists_its_variables_and_questions() {
    let lowered =
        parse_condition("git.dirty && ignored(path) && argv.exists(a, a == path)").unwrap();
    let used = [Variable::GitDirty, Variable::Path, Variable::Argv, Variable::Path];
    assert!(lowered.variables().eq(used));
    assert!(lowered.questions().eq([PathQuestion::Ignored]));
}

#[test]
fn a_constant_condition_is_detected() {
    for (condition, answer) in [
        ("true || argv[0] == \"x\"", Some(true)),
        ("git.dirty && 1 > 2", Some(false)),
        ("program == \"x\"", None),
        ("1 / 0 == 1", None),
    ] {
        assert_eq!(parse_condition(condition).unwrap().constant_value(), answer, "{condition}");
    }
    assert_eq!(Expr::constant_condition(true).constant_value(), Some(true));
}

#[test]
fn a_condition_survives_serialisation() {
    let call = ConditionCall::push();
    let text = r#"argv.exists(a, a.matches("^--f[a-z]*$")) && {"a": [1, null]}["a"] == [1, null]
        && !has(args.x) && (args.count > -1 ? path.startsWith("s") : ignored(path))"#;
    let lowered = parse_condition(text).unwrap();
    let bytes = postcard::to_allocvec(&lowered).unwrap();
    let from_bytes: Expr = postcard::from_bytes(&bytes).unwrap();
    let json = serde_json::to_value(&lowered).unwrap();
    let from_json: Expr = serde_json::from_value(json).unwrap();
    for expr in [&lowered, &from_bytes, &from_json] {
        assert_eq!(expr, &lowered);
        assert_eq!(expr.evaluate(&CallScope(&call), &mut { STEPS }), Ok(true));
    }
    assert!(bytes.len() < text.len(), "{} bytes", bytes.len());
}
