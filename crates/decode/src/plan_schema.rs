//! The default schema of a plan, for definitions without their own.

use serde_json::{Value, json};

/// The built-in schema of a plan.
///
/// ```
/// let schema = jackline_decode::Schema::compile(&jackline_decode::plan_schema())?;
/// assert!(schema.example().is_some());
/// # Ok::<(), jackline_decode::SchemaError>(())
/// ```
pub fn plan_schema() -> Value {
    json!({
        "type": "object",
        "required": ["action_type", "tool_calls"],
        "additionalProperties": false,
        "properties": {
            "action_type": { "enum": ["SEARCH", "FETCH_SLICE", "SYNTHESIZE", "ASK_HUMAN", "STOP"] },
            "rationale": { "type": "string" },
            "tool_calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "arguments"],
                    "additionalProperties": false,
                    "properties": {
                        "name": { "type": "string", "minLength": 1 },
                        "arguments": { "type": "object" }
                    }
                }
            },
            "expected_output_artifacts": { "type": "array" },
            "stop_condition": { "type": "string" }
        }
    })
}
