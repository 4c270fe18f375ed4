//! Reads fields of a server's answer. A missing field, or one of another type, reads as empty,
//! because providers add and remove fields without notice.

use serde_json::Value;

/// A string field.
pub(crate) fn text_field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A non-empty string at a JSON pointer.
pub(crate) fn text_at(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number at a JSON pointer.
pub(crate) fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// The elements of a list field.
pub(crate) fn list_field<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Sets a field of an object.
pub(crate) fn set_field(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value);
    }
}
