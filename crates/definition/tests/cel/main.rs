//! Conditions of rules, from their text to their answer.

mod language;
mod limits;
mod mistakes;
mod patterns;
mod reference;

use jackline_definition::cel::lower;
use jackline_engine::expr::{Question, Scope, Trouble, Value, Variable};
use serde_json::json;

/// Steps that no ordinary condition uses up.
const STEPS: u32 = 100_000;

/// A call that conditions are asked about.
struct Call {
    args: serde_json::Value,
    argv: Vec<String>,
    path: String,
}

impl Call {
    fn new(args: serde_json::Value, argv: &[&str]) -> Self {
        let argv = argv.iter().map(ToString::to_string).collect();
        Self { args, argv, path: "src/main.rs".to_owned() }
    }

    /// `git push --force origin main`, with arguments of every kind.
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

    fn holds(&self, condition: &str) -> Result<bool, Trouble> {
        lower(condition)
            .map_err(|wrong| Trouble::Broken(format!("refused: {wrong:?}")))?
            .holds(&Seen(self), &mut { STEPS })
    }
}

/// The call as a condition sees it.
struct Seen<'c>(&'c Call);

impl<'c> Scope<'c> for Seen<'c> {
    fn value(&self, variable: Variable) -> Result<Value<'c>, Trouble> {
        Ok(match variable {
            Variable::Args => Value::from(&self.0.args),
            Variable::Argv => Value::from(self.0.argv.as_slice()),
            Variable::Path => Value::from(self.0.path.as_str()),
            Variable::Program => Value::from("git"),
            Variable::Tool => Value::from("bash"),
            Variable::Kind => Value::from("exec"),
            Variable::Paths | Variable::Writes => Value::texts(["src/main.rs", "a/b"]),
            Variable::SessionSteps => Value::from(7),
            Variable::GitDirty => return Err(Trouble::Missing),
            Variable::GitProtected => Value::from(true),
            other => return Err(Trouble::Broken(format!("no {}", other.name()))),
        })
    }

    fn ask(&self, question: Question, path: &str) -> Result<bool, Trouble> {
        match (question, path) {
            (Question::Exists, path) => Ok(path == "src/main.rs"),
            (Question::Ignored, _) => Err(Trouble::Missing),
        }
    }
}
