//! Compares a verdict with the expectation of a scenario.
//!
//! A scenario lists only the fields that matter for it, so an object matches by subset. A list must
//! match completely, because an additional violation is also wrong. `null` means that the field
//! must be missing.

use std::fmt;

use serde_json::Value;

/// One difference between a verdict and the expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectationMismatch {
    /// The path of the field, such as `violations[0].guard`; empty for the whole verdict.
    pub path: String,
    /// The expected value.
    pub expected: Value,
    /// The actual value; `None` if it is missing.
    pub actual: Option<Value>,
}

impl fmt::Display for ExpectationMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.path.is_empty() { "the verdict" } else { &self.path };
        match &self.expected {
            Value::Null => write!(f, "`{field}` must be absent")?,
            expected => write!(f, "`{field}` must be {expected}")?,
        }
        match &self.actual {
            Some(actual) => write!(f, ", but is {actual}"),
            None => write!(f, ", but is absent"),
        }
    }
}

/// Every difference between `actual` and `expected`, in order.
pub fn find_mismatches(expected: &Value, actual: &Value) -> Vec<ExpectationMismatch> {
    let mut found = Vec::new();
    compare(String::new(), expected, Some(actual), &mut found);
    found
}

fn compare(
    path: String,
    expected: &Value,
    actual: Option<&Value>,
    found: &mut Vec<ExpectationMismatch>,
) {
    match (expected, actual) {
        (Value::Null, None | Some(Value::Null)) => {}
        (Value::Object(wanted), Some(Value::Object(given))) => {
            for (key, value) in wanted {
                let dot = if path.is_empty() { "" } else { "." };
                compare(format!("{path}{dot}{key}"), value, given.get(key), found);
            }
        }
        (Value::Array(wanted), Some(Value::Array(given))) if wanted.len() == given.len() => {
            for (number, (value, item)) in wanted.iter().zip(given).enumerate() {
                compare(format!("{path}[{number}]"), value, Some(item), found);
            }
        }
        (expected, Some(actual)) if expected == actual => {}
        (expected, actual) => {
            found.push(ExpectationMismatch {
                path,
                expected: expected.clone(),
                actual: actual.cloned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(expected: &Value, actual: &Value) -> Vec<String> {
        find_mismatches(expected, actual).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_object_matches_by_subset_at_every_depth() {
        let verdict =
            json!({"decision": "allow", "seq": 1, "stop": {"code": "CAPPED", "detail": "x"}});
        assert_eq!(texts(&json!({}), &verdict), [""; 0]);
        assert_eq!(texts(&json!({"stop": {"code": "CAPPED"}}), &verdict), [""; 0]);
        assert_eq!(
            texts(&json!({"decision": "deny", "stop": {"detail": "y"}}), &verdict),
            [
                r#"`decision` must be "deny", but is "allow""#,
                r#"`stop.detail` must be "y", but is "x""#
            ]
        );
    }

    #[test]
    fn a_list_matches_whole_and_its_elements_by_subset() {
        let verdict = json!({"violations": [{"guard": "a", "id": 1}, {"guard": "b", "id": 2}]});
        let expect = |guards: &[&str]| {
            let list: Vec<Value> = guards.iter().map(|guard| json!({"guard": guard})).collect();
            find_mismatches(&json!({"violations": list}), &verdict).len()
        };
        assert_eq!(expect(&["a", "b"]), 0);
        assert_eq!(expect(&["b", "a"]), 2, "the order matters");
        assert_eq!(expect(&["a"]), 1, "an additional item is wrong");
        assert_eq!(expect(&["a", "b", "c"]), 1, "a missing item is wrong");
    }

    #[test]
    fn null_means_absent() {
        assert_eq!(texts(&json!({"stop": null}), &json!({"decision": "allow"})), [""; 0]);
        assert_eq!(
            texts(&json!({"stop": null}), &json!({"stop": {"code": "CAPPED"}})),
            [r#"`stop` must be absent, but is {"code":"CAPPED"}"#]
        );
        assert_eq!(
            texts(&json!({"stop": {}}), &json!({"decision": "allow"})),
            ["`stop` must be {}, but is absent"]
        );
    }

    #[test]
    fn values_of_other_types_never_match() {
        for (expected, actual) in [
            (json!("1"), json!(1)),
            (json!({}), json!([])),
            (json!([]), json!({})),
            (json!(false), json!(null)),
        ] {
            assert_eq!(find_mismatches(&expected, &actual).len(), 1, "{expected} and {actual}");
        }
    }
}
