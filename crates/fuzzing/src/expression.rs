//! Conditions of rules, as people write them and calls meet them.

use std::sync::LazyLock;

use jackline_definition::cel::{Wrong, lower};
use jackline_engine::expr::{Expr, Question, Scope, Shape, Trouble, Value, Variable};
use serde_json::json;

use crate::in_time;

/// More than a rule is given.
const STEPS: u32 = 20_000;

/// A condition is refused with a place, or it is kept as it is and comes to the
/// same each time, in as many steps as it says.
pub fn expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match in_time(|| lower(&text)) {
        Ok(condition) => {
            check_kept(&condition);
            check_evaluated(&condition);
        }
        Err(wrong) => check_mistake(&wrong, &text),
    }
}

fn check_mistake(wrong: &Wrong, text: &str) {
    assert!(text.is_char_boundary(wrong.at), "{wrong:?} is at no letter of the text");
    assert!(!wrong.message.is_empty(), "{wrong:?} says nothing");
}

/// The compiled definition and the first record of a journal keep it.
fn check_kept(condition: &Expr) {
    let compact = postcard::to_allocvec(condition).unwrap();
    assert_eq!(&postcard::from_bytes::<Expr>(&compact).unwrap(), condition, "the compiled form");
    let kept = serde_json::to_string(condition).unwrap();
    assert_eq!(&serde_json::from_str::<Expr>(&kept).unwrap(), condition, "kept as {kept}");
}

fn check_evaluated(condition: &Expr) {
    let (held, used) = in_time(|| evaluate(condition, STEPS));
    assert_eq!(evaluate(condition, STEPS), (held.clone(), used), "the same answer each time");
    if let Some(constant) = condition.constant() {
        assert_eq!(held, Ok(constant), "what holds for every call");
    }
    if held.is_ok() {
        assert_eq!(evaluate(condition, used).0, held, "{used} steps are enough for {used} steps");
        let fewer = used.checked_sub(1).map(|fewer| evaluate(condition, fewer).0);
        assert!(
            fewer.is_none_or(|held| held.is_err()),
            "it takes {used} steps and does with fewer"
        );
    }
}

/// What it comes to, and how many steps that took.
fn evaluate(condition: &Expr, steps: u32) -> (Result<bool, Trouble>, u32) {
    let mut left = steps;
    let held = condition.holds(&Call, &mut left);
    assert!(left <= steps, "steps only go down");
    (held, steps - left)
}

/// A call that has something of everything.
struct Call;

static ARGS: LazyLock<serde_json::Value> = LazyLock::new(|| {
    json!({
        "path": "src/a.rs", "amount": 5000, "ratio": 0.5, "huge": 1e300, "no": null, "yes": true,
        "list": [1, "a", [], {}], "map": {"k": "v", "": -1}, "text": "é \u{0}\n", "max": u64::MAX,
    })
});

static WORDS: LazyLock<[String; 4]> =
    LazyLock::new(|| ["--force", "origin", "", "-f"].map(ToOwned::to_owned));

impl Scope<'static> for Call {
    fn value(&self, variable: Variable) -> Result<Value<'static>, Trouble> {
        Ok(match variable {
            Variable::Argv => Value::Texts(&*WORDS),
            Variable::Writes | Variable::Deletes => Value::texts([]),
            Variable::SessionSteps => Value::Int(i64::MAX),
            Variable::GitProtected => return Err(Trouble::Missing),
            other => match other.shape() {
                Shape::Bool => Value::Bool(true),
                Shape::Number => Value::Int(0),
                Shape::Text => Value::text("main"),
                Shape::Texts => Value::texts(["src/a.rs", "..", ""]),
                Shape::Map => Value::Json(&ARGS),
            },
        })
    }

    fn ask(&self, question: Question, path: &str) -> Result<bool, Trouble> {
        match question {
            Question::Exists => Ok(path.len().is_multiple_of(2)),
            Question::Ignored => Err(Trouble::Missing),
        }
    }
}
