//! Tests the conditions that the loader refuses.

use jackline_definition::cel::parse_condition;

/// A condition, the offset of the error, the message and the hint.
type ConditionMistake = (&'static str, usize, &'static str, Option<&'static str>);

fn refuses(mistakes: &[ConditionMistake]) {
    for (condition, at, message, hint) in mistakes {
        let found =
            parse_condition(condition).err().map(|wrong| (wrong.offset, wrong.message, wrong.hint));
        let expected = (*at, (*message).to_owned(), hint.map(str::to_owned));
        assert_eq!(found, Some(expected), "{condition}");
    }
}

#[test]
fn a_mistake_is_reported_with_its_position_and_a_hint() {
    refuses(&[
        ("", 0, "the condition is empty", None),
        (
            "argv",
            0,
            "the condition is a list of texts, not true or false",
            Some("add a comparison, such as `== 1`"),
        ),
        (
            "1 + 1",
            0,
            "the condition is a number, not true or false",
            Some("add a comparison, such as `== 1`"),
        ),
        ("pth == \"\"", 0, "there is no variable `pth`", Some("did you mean `path`?")),
        (
            "true && git.dirt",
            8,
            "there is no variable `git.dirt`",
            Some("did you mean `git.dirty`?"),
        ),
        (
            "git",
            0,
            "`git` alone is not a value",
            Some("use one of `git.dirty`, `git.untracked`, `git.branch`, `git.protected`"),
        ),
        ("argv.exist(a, true)", 5, "there is no method `exist`", Some("did you mean `exists`?")),
        (
            "matches(path, \"a\")",
            0,
            "there is no function `matches`",
            Some("write it as `a.matches(…)`"),
        ),
        ("path.has(x)", 5, "there is no method `has`", Some("write it as `has(a)`")),
        ("path = \"a\"", 5, "unexpected `=`", Some("write `==` to compare")),
        ("git.dirty and true", 10, "expected the end, found `and`", Some("write `&&`")),
        ("not git.dirty", 0, "expected a value, found `not`", Some("write `!`")),
        (
            "args.x > 1.5",
            9,
            "decimal numbers are not supported",
            Some("compare with whole numbers"),
        ),
        (
            "args.x > 1e3",
            9,
            "decimal numbers are not supported",
            Some("compare with whole numbers"),
        ),
        ("args.x > .5", 9, "decimal numbers are not supported", Some("compare with whole numbers")),
        ("args.x == 1u", 10, "the suffix in `1u` is not supported", Some("write `1`")),
        ("args.x == 9223372036854775808", 10, "the number is too large", None),
        ("path == b\"x\"", 8, "bytes are not supported", Some("write a text, without the `b`")),
        ("path == \"x", 8, "the text has no closing `\"`", None),
        (
            "path == \"\\d\"",
            9,
            "`\\d` is not an escape",
            Some("write `\\\\` for a backslash, or r\"…\" for a text without escapes"),
        ),
    ]);
}

#[test]
fn a_condition_that_would_fail_at_every_call_is_refused() {
    refuses(&[
        ("argv == \"-f\"", 5, "a list of texts is never equal to a text", None),
        ("path < 1", 5, "a text can't be compared with a number", None),
        (
            "argv < paths",
            5,
            "a list of texts can't be compared with a list of texts",
            Some("compare with `==` or `!=`"),
        ),
        ("1 in argv", 2, "a number is never in a list of texts", None),
        ("\"a\" in path", 4, "`in` can't be used on a text", Some("write `a.contains(b)`")),
        ("argv.contains(\"-f\")", 5, "a list of texts has no `contains`", Some("write `a in b`")),
        (
            "argv.startsWith(\"-\")",
            5,
            "a list of texts has no `startsWith`",
            Some("write `.exists(a, a.startsWith(…))`"),
        ),
        ("path.size > 1", 5, "a text has no key `size`", Some("write `.size(…)`")),
        (
            "path + 1 == \"a1\"",
            5,
            "`+` can't be used on a text and a number",
            Some("convert to a text with `string(…)`"),
        ),
        ("!path", 1, "this is a text, not true or false", None),
        ("path && true", 0, "this is a text, not true or false", None),
        ("argv.all(a, a)", 12, "this is a text, not true or false", None),
        (
            "argv.all(1, true)",
            9,
            "expected a name for the item, found `1`",
            Some("write it as argv.all(a, a == \"-f\")"),
        ),
        ("has(path)", 4, "`has` needs a key of a map", Some("write it as has(args.content)")),
        ("size(1) == 1", 5, "`size` can't be used on a number", None),
        ("{1: 2} == {}", 1, "this is a number, not a text", None),
        (
            "path.matches(args.x)",
            13,
            "the pattern of `matches` must be a literal text",
            Some("write it as matches(r\"^v[0-9]+$\")"),
        ),
        ("(true", 5, "expected `)`, found the end", None),
        ("exists(path, 1)", 11, "`exists` has too many arguments", None),
        ("path == \"é\" && x", 16, "there is no variable `x`", None),
    ]);
}

#[test]
fn length_and_nesting_are_bounded() {
    let nested = |depth: usize| "(".repeat(depth) + "true" + &")".repeat(depth);
    assert!(parse_condition(&nested(31)).is_ok());
    let wrong = parse_condition(&nested(32)).unwrap_err();
    assert_eq!(wrong.message, "the condition is nested deeper than 32 levels");
    for deep in [
        "(".repeat(4000),
        "[".repeat(4000),
        "!".repeat(4000) + "true",
        "-".repeat(4000) + "1 == 1",
        format!("args{} == 1", ".a".repeat(1000)),
        format!("1{} == 1", "+1".repeat(1000)),
        "true ? ".repeat(500) + "true" + &" : true".repeat(500),
        "true ? true : ".repeat(200) + "true",
    ] {
        assert!(parse_condition(&deep).is_err(), "{deep}");
    }
    let many = vec!["path == \"a\""; 250].join(" || ");
    assert!(parse_condition(&many).is_ok(), "a long chain must not count as nesting");
    let wrong = parse_condition(&many.repeat(2)).unwrap_err();
    assert_eq!(wrong.message, "the condition is longer than 4096 bytes");
}
