//! The counters of the guards for reports. Each guard adds its part to the summary, and each part
//! is shown as lines.

use jackline_engine::SessionSummary;
use serde_json::Value;

use super::text::one_line;

/// The largest number of lines for one guard.
const LINES_MAX: usize = 12;

/// The longest value that is shown.
const VALUE_CHARS_MAX: usize = 160;

/// The lines of one part of a summary, as `name: value`; empty if there is no such part.
pub(super) fn lines(summary: &SessionSummary, part: &str) -> Vec<String> {
    let summary = serde_json::to_value(summary).unwrap_or_default();
    let mut lines = Vec::new();
    flatten("", summary.get(part).unwrap_or(&Value::Null), &mut lines);
    lines.truncate(LINES_MAX);
    lines
}

fn flatten(name: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('_', " ");
                let name = if name.is_empty() { key } else { format!("{name}, {key}") };
                flatten(&name, value, lines);
            }
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            for item in items {
                let mut parts = Vec::new();
                // Inside a line, a nested object needs no name.
                for (key, value) in item.as_object().into_iter().flatten() {
                    let key = key.replace('_', " ");
                    flatten(if value.is_object() { "" } else { &key }, value, &mut parts);
                }
                lines.push(one_line(&parts.join(", "), VALUE_CHARS_MAX));
            }
        }
        Value::String(text) => lines.push(format!("{name}: {}", one_line(text, VALUE_CHARS_MAX))),
        Value::Bool(is) => lines.push(format!("{name}: {}", if *is { "yes" } else { "no" })),
        other => lines.push(format!("{name}: {}", one_line(&other.to_string(), VALUE_CHARS_MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_lines() {
        let mut lines = Vec::new();
        let value = json!({
            "code_modified": true, "tests_passing": null, "list": [], "last": ["a", 1],
            "limits": {"max_steps": 5, "soft": false},
            "budgets": [{"dimension": "steps", "used": 3}, {"dimension": "tokens", "used": 9}],
            "loops": [{"actor": "main", "at": {"count": 5}}],
        });
        flatten("", &value, &mut lines);
        lines.sort();
        assert_eq!(
            lines,
            [
                "actor: main, count: 5",
                "code modified: yes",
                "dimension: steps, used: 3",
                "dimension: tokens, used: 9",
                "last: [\"a\",1]",
                "limits, max steps: 5",
                "limits, soft: no"
            ]
        );
    }
}
