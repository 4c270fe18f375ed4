//! Checks conditions of rules, and evaluates them for a call.

use std::sync::LazyLock;

use jackline_definition::cel::{ConditionError, parse_condition};
use jackline_engine::expr::{
    ConditionScope, EvaluationError, Expr, ExprValue, PathQuestion, ValueShape, Variable,
};
use serde_json::json;

use crate::run_in_time;

/// More steps than a rule gets.
const STEPS_MAX: u32 = 20_000;

/// Either the condition is rejected with a position, or it can be stored unchanged and gives the
/// same result each time, with the reported number of steps.
pub fn expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match run_in_time(|| parse_condition(&text)) {
        Ok(condition) => {
            check_stored(&condition);
            check_evaluated(&condition);
        }
        Err(wrong) => check_mistake(&wrong, &text),
    }
}

fn check_mistake(wrong: &ConditionError, text: &str) {
    assert!(text.is_char_boundary(wrong.offset), "{wrong:?} has a position inside of a character");
    assert!(!wrong.message.is_empty(), "{wrong:?} has no message");
}

/// The compiled definition and the first record of a journal store the condition.
fn check_stored(condition: &Expr) {
    let compact = postcard::to_allocvec(condition).unwrap();
    assert_eq!(&postcard::from_bytes::<Expr>(&compact).unwrap(), condition, "the compiled form");
    let json_text = serde_json::to_string(condition).unwrap();
    assert_eq!(
        &serde_json::from_str::<Expr>(&json_text).unwrap(),
        condition,
        "stored as {json_text}"
    );
}

fn check_evaluated(condition: &Expr) {
    let (result, used) = run_in_time(|| evaluate(condition, STEPS_MAX));
    assert_eq!(evaluate(condition, STEPS_MAX), (result.clone(), used), "the same result each time");
    if let Some(constant) = condition.constant_value() {
        assert_eq!(result, Ok(constant), "the constant result");
    }
    if result.is_ok() {
        assert_eq!(evaluate(condition, used).0, result, "{used} steps are enough for {used} steps");
        let fewer = used.checked_sub(1).map(|fewer| evaluate(condition, fewer).0);
        assert!(
            fewer.is_none_or(|result| result.is_err()),
            "it reports {used} steps but needs fewer"
        );
    }
}

/// The result, and the number of steps.
fn evaluate(condition: &Expr, steps: u32) -> (Result<bool, EvaluationError>, u32) {
    let mut left = steps;
    let result = condition.evaluate(&SampleCall, &mut left);
    assert!(left <= steps, "the number of remaining steps only decreases");
    (result, steps - left)
}

/// A call with a value for every variable.
struct SampleCall;

static ARGS: LazyLock<serde_json::Value> = LazyLock::new(|| {
    json!({
        "path": "src/a.rs", "amount": 5000, "ratio": 0.5, "huge": 1e300, "no": null, "yes": true,
        "list": [1, "a", [], {}], "map": {"k": "v", "": -1}, "text": "é \u{0}\n", "max": u64::MAX,
    })
});

static WORDS: LazyLock<[String; 4]> =
    LazyLock::new(|| ["--force", "origin", "", "-f"].map(ToOwned::to_owned));

impl ConditionScope<'static> for SampleCall {
    fn value(&self, variable: Variable) -> Result<ExprValue<'static>, EvaluationError> {
        Ok(match variable {
            Variable::Argv => ExprValue::Texts(&*WORDS),
            Variable::Writes | Variable::Deletes => ExprValue::texts([]),
            Variable::SessionSteps => ExprValue::Int(i64::MAX),
            Variable::GitProtected => return Err(EvaluationError::MissingFact),
            other => match other.shape() {
                ValueShape::Bool => ExprValue::Bool(true),
                ValueShape::Number => ExprValue::Int(0),
                ValueShape::Text => ExprValue::text("main"),
                ValueShape::Texts => ExprValue::texts(["src/a.rs", "..", ""]),
                ValueShape::Map => ExprValue::Json(&ARGS),
            },
        })
    }

    fn answer(&self, question: PathQuestion, path: &str) -> Result<bool, EvaluationError> {
        match question {
            PathQuestion::Exists => Ok(path.len().is_multiple_of(2)),
            PathQuestion::Ignored => Err(EvaluationError::MissingFact),
        }
    }
}
