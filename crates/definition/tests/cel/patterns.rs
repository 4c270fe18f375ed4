//! Tests that patterns match the same texts as in the `regex` crate.

use jackline_definition::cel::parse_condition;
use jackline_engine::expr::EvaluationError;
use proptest::prelude::*;
use serde_json::json;

use crate::{CallScope, ConditionCall};

fn found(pattern: &str, text: &str) -> Result<bool, EvaluationError> {
    let call = ConditionCall::new(json!({ "text": text }), &[]);
    call.holds(&format!("args.text.matches({})", literal(pattern)))
}

/// Returns a text as a literal of a condition.
fn literal(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            _ => written.push(c),
        }
    }
    written + "\""
}

#[test]
fn patterns_match_anywhere_in_the_text() {
    for (pattern, text, answer) in [
        ("b", "abc", true),
        ("^b", "abc", false),
        ("c$", "abc", true),
        ("c$", "abc\n", false),
        ("(?m)c$", "abc\nd", true),
        ("", "", true),
        ("a{2,3}b", "aab", true),
        ("a{2,3}b", "ab", false),
        ("^a{2}$", "aaa", false),
        ("(a|b)*c", "ababc", true),
        ("(a*)*$", "aaab", true),
        (r"\bgit\b", "run git now", true),
        (r"\bgit\b", "digital", false),
        (r"^\d+\.\d+$", "1.5", true),
        (r"\d", "٣", false),
        ("(?i)head", "HeAd", true),
        ("(?i:h)ead", "HEAD", false),
        ("(?i)[^a]", "A", false),
        (".", "\n", false),
        ("(?s).", "\n", true),
        ("^.é.$", "xéy", true),
        ("[à-ÿ]", "é", true),
        ("[[:alpha:]_-]+", "-", true),
        ("(?x) a b # comment", "ab", true),
        ("AKIA[0-9A-Z]{16}", "x AKIAIOSFODNN7EXAMPLE y", true),
        ("a.*b.*c", "a-b-", false),
    ] {
        assert_eq!(found(pattern, text), Ok(answer), "{pattern} in {text:?}");
    }
}

#[test]
fn an_unsupported_pattern_is_refused() {
    for (pattern, message) in [
        ("(", "the pattern is not valid: unclosed group"),
        (r"(a)\1", "the pattern is not valid: backreferences are not supported"),
        (
            "(?=a)",
            "the pattern is not valid: look-around, including look-ahead and look-behind, is not supported",
        ),
        (
            "x{1000}{1000}",
            "the pattern has more than 2048 steps after its repetitions are expanded",
        ),
        (
            "(){1000}{1000}{1000}",
            "the pattern has more than 2048 steps after its repetitions are expanded",
        ),
        (r"\pL", "the pattern uses a Unicode class"),
        (r"[\p{Greek}]", "the pattern uses a Unicode class"),
        ("[a&&b]", "the pattern uses an operator on classes"),
        ("[a[b]]", "the pattern has a class inside a class"),
        ("(?-u)a", "the pattern switches off Unicode"),
        ("(?i)É", "`(?i)` does not know the other case of `É`"),
        ("(?i)[à-ÿ]", "`(?i)` does not know the other case of `à`"),
        (r"\b{start}a", "the pattern uses a one-sided word boundary"),
    ] {
        let wrong =
            parse_condition(&format!("path.matches({})", literal(pattern))).expect_err(pattern);
        assert_eq!((wrong.offset, wrong.message.as_str()), (13, message), "{pattern}");
    }
    assert!(parse_condition(&format!("path.matches({})", literal(&"(".repeat(2000)))).is_err());
    assert!(
        parse_condition(&format!("path.matches({})", literal(&("(".repeat(60) + &")".repeat(60)))))
            .is_err()
    );
}

#[test]
fn a_slow_pattern_takes_linear_time() {
    let text = "a".repeat(5_000);
    assert_eq!(found("(a+)+b", &text), Ok(false));
    assert_eq!(found("(a|aa)*$b", &text), Ok(false));
    // Sixteen bytes in which no match can start cost one step.
    let lowered = parse_condition("args.text.matches(\"ghp_[0-9A-Za-z]{36}\")").unwrap();
    let call = ConditionCall::new(json!({ "text": "x".repeat(64 * 1024) }), &[]);
    assert_eq!(lowered.evaluate(&CallScope(&call), &mut 5_000), Ok(false));
}

/// Generates patterns with all supported syntax.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "é",
        ".",
        "\\.",
        "\\n",
        "[ab]",
        "[^a]",
        "[a-cé]",
        "[^\\w]",
        "[\\d_]",
        "\\d",
        "\\W",
        "\\s",
        "^",
        "$",
        "\\b",
        "\\B",
        "\\A",
        "\\z",
        "[[:^alpha:]]",
        "",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 24, 4, |inner| {
        let group = |pattern: String| format!("(?:{pattern})");
        let repeats = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{0}"];
        let flags = ["(?i:", "(?m:", "(?s:", "(?i)(?:", "(?im-s:", "(", "(?P<n>"];
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 1..4)
                .prop_map(move |parts| group(parts.join("|"))),
            2 => (inner.clone(), prop::sample::select(repeats.to_vec()))
                .prop_map(move |(part, repeat)| group(part) + repeat),
            1 => (inner, prop::sample::select(flags.to_vec()))
                .prop_map(|(part, flag)| format!("{flag}{part})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_pattern_finds_what_the_reference_finds(
        pattern in pattern(),
        texts in prop::collection::vec("[abcAéÉ_1.\n ]{0,8}", 1..6),
    ) {
        // `\\d` and similar classes are ASCII here, as in RE2.
        let reference = pattern
            .replace("[^\\w]", "[^0-9A-Za-z_]").replace("[\\d_]", "[0-9_]")
            .replace("\\d", "[0-9]").replace("\\W", "[^0-9A-Za-z_]").replace("\\s", "[\t-\r ]")
            .replace("\\b", "(?-u:\\b)");
        let Ok(reference) = regex::Regex::new(&reference) else { return Ok(()) };
        if let Err(wrong) = parse_condition(&format!("path.matches({})", literal(&pattern))) {
            prop_assert_eq!(wrong.message, "`(?i)` does not know the other case of `é`");
            return Ok(());
        }
        // The reference has no ASCII `\\B` that respects character boundaries.
        for text in texts.iter().filter(|text| text.is_ascii() || !pattern.contains("\\B")) {
            let answer = Ok(reference.is_match(text));
            prop_assert_eq!(found(&pattern, text), answer, "{} in {:?}", pattern, text);
        }
    }

    #[test]
    fn no_text_as_a_pattern_panics(pattern in "[\\[\\](){}|*+?.^$\\\\a-c0-9:,<>=!&~P-]{0,24}") {
        let condition = format!("path.matches({})", literal(&pattern));
        if let Ok(lowered) = parse_condition(&condition) {
            let reference = regex::Regex::new(&pattern);
            prop_assert!(reference.is_ok() || pattern.contains('\\') || pattern.contains('['), "{}", pattern);
            let answer = lowered.evaluate(&CallScope(&ConditionCall::push()), &mut 100_000);
            if let Ok(reference) = reference && !pattern.contains('\\') {
                prop_assert_eq!(answer, Ok(reference.is_match("src/main.rs")));
            }
        }
    }
}
