//! Tests the conditions of rules, from the text to the result.

mod language;
mod limits;
mod mistakes;
mod patterns;
mod reference;

use jackline_definition::cel::parse_condition;
use jackline_engine::expr::{ConditionScope, EvaluationError, ExprValue, PathQuestion, Variable};
use serde_json::json;

/// A budget of steps that an ordinary condition never uses up.
const STEPS: u32 = 100_000;

/// A call that conditions are evaluated for.
struct ConditionCall {
    args: serde_json::Value,
    argv: Vec<String>,
    path: String,
}

impl ConditionCall {
    fn new(args: serde_json::Value, argv: &[&str]) -> Self {
        let argv = argv.iter().map(ToString::to_string).collect();
        Self { args, argv, path: "src/main.rs".to_owned() }
    }

    /// Returns `git push --force origin main`, with arguments of every type.
    fn push() -> Self {
        let args = json!({
            "command": "git push --force origin main",
            "count": 3,
            "ratio": 1.5,
            "two": 2.0,
            "huge": u64::MAX,
            "none": null,
            "on": true,
            "tags": ["a", "b", "c"],
            "mixed": [1, "a", null, 2.5, [1], {"k": 1}],
            "nested": {"deep": {"er": "x"}, "empty": {}},
        });
        Self::new(args, &["push", "--force", "origin", "main"])
    }

    fn holds(&self, condition: &str) -> Result<bool, EvaluationError> {
        parse_condition(condition)
            .map_err(|wrong| EvaluationError::Failed(format!("refused: {wrong:?}")))?
            .evaluate(&CallScope(self), &mut { STEPS })
    }
}

/// The call as a condition sees it.
struct CallScope<'c>(&'c ConditionCall);

impl<'c> ConditionScope<'c> for CallScope<'c> {
    fn value(&self, variable: Variable) -> Result<ExprValue<'c>, EvaluationError> {
        Ok(match variable {
            Variable::Args => ExprValue::from(&self.0.args),
            Variable::Argv => ExprValue::from(self.0.argv.as_slice()),
            Variable::Path => ExprValue::from(self.0.path.as_str()),
            Variable::Program => ExprValue::from("git"),
            Variable::Tool => ExprValue::from("bash"),
            Variable::Kind => ExprValue::from("exec"),
            Variable::Paths | Variable::Writes => ExprValue::texts(["src/main.rs", "a/b"]),
            Variable::SessionSteps => ExprValue::from(7),
            Variable::GitDirty => return Err(EvaluationError::MissingFact),
            Variable::GitProtected => ExprValue::from(true),
            other => return Err(EvaluationError::Failed(format!("no {}", other.name()))),
        })
    }

    fn answer(&self, question: PathQuestion, path: &str) -> Result<bool, EvaluationError> {
        match (question, path) {
            (PathQuestion::Exists, path) => Ok(path == "src/main.rs"),
            (PathQuestion::Ignored, _) => Err(EvaluationError::MissingFact),
        }
    }
}
