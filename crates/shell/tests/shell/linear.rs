//! A megabyte of anything takes time in proportion, and not much.

use std::time::{Duration, Instant};

use jackline_shell::{LINE_BYTES_MAX, understand};

#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn a_megabyte_is_understood_or_refused_at_once() {
    for unit in [
        "a ",
        "a; ",
        "a && ",
        "a | ",
        "'a' ",
        "\"a\" ",
        "$a ",
        "${a} ",
        "$(a) ",
        "`a` ",
        "\\a ",
        "a\n",
        "a=b ",
        "> a ",
        "{a,b} ",
        "{",
        "{{,},",
        "*",
        "~",
        "#\n",
        "$((a)) ",
        "$((a) ) ",
        "<(a) ",
        "(a); ",
        "a() { b; }; ",
        "[[ a ]]; ",
        "x<<E\nE\n",
        "x<<E\n",
        "x=$(",
        "é",
        "((",
        "a=(b) ",
        "a=($(b) $(c)) ",
        "$'\\n' ",
        "if a; then b; fi; ",
        "a & ",
        "\\\n",
        "! ",
        "time ",
        "x=a; $x ",
        "eval 'a'; ",
        "bash -c 'a'; ",
        "'",
        "\"",
        "`",
        "$",
        "\\",
        "<",
        "[",
        "]",
        "=",
    ] {
        let text = unit.repeat(LINE_BYTES_MAX / unit.len());
        let start = Instant::now();
        understand(&text);
        let took = start.elapsed();
        // Debug builds are an order of magnitude slower, and machines are busy;
        // what is not linear takes minutes.
        let most = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 3 });
        assert!(took < most, "{unit:?} took {took:?}");
    }
    let text = "a ".repeat(LINE_BYTES_MAX);
    assert_eq!(understand(&text).opaque.len(), 1);
}

/// Each of them may be arithmetic or two parentheses, and is only tried once.
#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn parentheses_that_may_be_arithmetic_do_not_double_the_work() {
    for unit in ["$((", "((", "<((", "((x $((", "$((((((-C*e3$(((((fo<?E", "$((a) "] {
        let text = unit.repeat(6);
        let start = Instant::now();
        understand(&text);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(1), "{text:?} took {took:?}");
    }
}
