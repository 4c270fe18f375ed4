//! The analysis takes linear time: a megabyte of any text takes little time.

use std::time::{Duration, Instant};

use jackline_shell::{LINE_BYTES_MAX, understand};

#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn a_megabyte_is_analysed_or_refused_quickly() {
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
        // Debug builds are ten times slower, and machines may be busy. An analysis that
        // is not linear takes minutes.
        let most = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 3 });
        assert!(took < most, "{unit:?} took {took:?}");
    }
    let text = "a ".repeat(LINE_BYTES_MAX);
    assert_eq!(understand(&text).opaque_parts.len(), 1);
}

/// Each `((` may be arithmetic or two parentheses. The parser tries each only once.
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
