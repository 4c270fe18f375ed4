//! Tests that the work of a condition is limited and that nothing panics.

use jackline_definition::cel::parse_condition;
use jackline_engine::expr::{EvaluationError, Expr};
use proptest::prelude::*;
use serde_json::json;

use crate::{CallScope, ConditionCall};

fn broken_by_steps(steps: u32) -> Result<bool, EvaluationError> {
    Err(EvaluationError::Failed(format!("it takes more than {steps} steps")))
}

#[test]
fn nested_macros_end_at_the_limit() {
    let list: Vec<i64> = (0..1_000).collect();
    let call = ConditionCall::new(json!({ "l": list, "t": "x".repeat(100_000) }), &[]);
    for condition in [
        "args.l.all(a, args.l.all(b, args.l.all(c, args.l.all(d, a + b + c + d >= 0))))",
        "args.l.map(a, args.l.map(b, args.l.map(c, c))).size() == 0",
        "args.l.filter(a, args.l.exists(b, b < 0 || args.l.exists(c, c < 0))).size() == 0",
        "args.l.all(a, args.l == args.l)",
        "args.l.all(a, args.l + args.l != args.l)",
        "args.l.all(a, -1 in args.l || true)",
        "args.l.all(a, args.t + args.t != \"\")",
        "args.l.all(a, args.t.size() > 0)",
        "args.l.all(a, !args.t.contains(\"y\"))",
        "args.l.all(a, !args.t.matches(\"y\"))",
        "args.l.all(a, !args.t.matches(\"x*y\"))",
        "args.l.all(a, args.t.lowerAscii() == args.t)",
        "args.l.exists(a, args.l.exists(b, args.l.exists(c, c.x)))",
    ] {
        let mut steps = 100_000;
        let answer = parse_condition(condition).unwrap().evaluate(&CallScope(&call), &mut steps);
        assert_eq!(answer, broken_by_steps(100_000), "{condition}");
        assert_eq!(steps, 0, "{condition}");
    }
}

#[test]
fn an_exhausted_budget_is_an_error_even_beside_a_deciding_part() {
    let call = ConditionCall::new(json!({ "l": [1, 2, 3, 4, 5, 6, 7, 8] }), &[]);
    let condition = "args.l.all(a, a > 0) || true";
    let lowered = parse_condition(condition).unwrap();
    assert_eq!(lowered.evaluate(&CallScope(&call), &mut 10), broken_by_steps(10));
    assert_eq!(lowered.evaluate(&CallScope(&call), &mut 0), broken_by_steps(0));
    let mut steps = 1_000;
    assert_eq!(lowered.evaluate(&CallScope(&call), &mut steps), Ok(true));
    assert!((950..1_000).contains(&steps), "{steps}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        let _ = parse_condition(&text);
    }

    #[test]
    fn no_mix_of_words_makes_it_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "argv", "args", "git", "session", ".", "dirty", "exists", "(", ")", "[", "]", "{", "}",
            "a", ",", "&&", "||", "!", "-", "==", "<", "in", "?", ":", "1", "9223372036854775808",
            "\"x\"", "'", "\\", "r\"", "has", "size", "matches", "true", "null", "+", "%", "é", "//",
        ]), 0..24),
    ) {
        let text = words.join(" ");
        match parse_condition(&text) {
            Ok(lowered) => drop(lowered.evaluate(&CallScope(&ConditionCall::push()), &mut 10_000)),
            Err(wrong) => prop_assert!(text.is_char_boundary(wrong.offset), "{} {:?}", text, wrong),
        }
    }

    #[test]
    fn a_damaged_condition_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let call = ConditionCall::push();
        let answer = |expr: &Expr| {
            let _ = expr.evaluate(&CallScope(&call), &mut 10_000);
            let _ = expr.constant_value();
        };
        if let Ok(expr) = postcard::from_bytes::<Expr>(&bytes) {
            answer(&expr);
        }
        let text = r#"argv.exists(a, a.matches("^-(-force|f)") || a in ["x", path]) && args.a.b[0] == {"k": 1}"#;
        let mut saved = postcard::to_allocvec(&parse_condition(text).unwrap()).unwrap();
        for (at, byte) in flips {
            let at = at.index(saved.len());
            saved[at] = byte;
        }
        if let Ok(expr) = postcard::from_bytes::<Expr>(&saved) {
            answer(&expr);
        }
    }
}
