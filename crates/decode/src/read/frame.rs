//! An open object or array, and other readings of inserted brackets.

use serde_json::{Map, Value};

/// One open object or array.
#[derive(Default)]
pub(super) struct ReadFrame {
    pub(super) object: bool,
    members: Map<String, Value>,
    items: Vec<Value>,
    /// The keys in their order in the text, because a map may sort them.
    keys: Vec<String>,
    key: Option<String>,
    /// The column of the first member, if it starts a line.
    column: Option<usize>,
    /// Whether each member starts a line, in the column of the first one.
    is_aligned: bool,
    members_started: usize,
    /// Whether this is certainly a document and not only a bracket in prose.
    pub(super) is_document: bool,
    /// The layout of the last member, if that is an object or array.
    pub(super) last_closed: Option<Box<ClosedFrame>>,
}

/// The layout of a closed frame, stored until another member follows it.
pub(super) struct ClosedFrame {
    object: bool,
    /// Whether we inserted its closing bracket.
    is_inserted: bool,
    is_aligned: bool,
    column: Option<usize>,
    keys: Vec<String>,
    count: usize,
    inner: Option<Box<ClosedFrame>>,
}

/// Another possible reading of the text: the members of the inner value, starting with
/// number `from`, may belong to the outer value. Both values contain the last value read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BracketAlternative {
    /// The path from the root to the inner value: keys, or `None` for the last item.
    steps: Vec<Option<String>>,
    /// How many of the steps lead to the outer value.
    outer_steps: usize,
    /// How many members stay in the inner value.
    members_kept: usize,
    /// The keys of the inner value in order, if it is an object.
    keys: Vec<String>,
}

impl ReadFrame {
    pub(super) fn object() -> Self {
        Self { object: true, is_aligned: true, ..Self::default() }
    }

    pub(super) fn array() -> Self {
        Self { is_aligned: true, ..Self::default() }
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// Stores a key whose value follows.
    pub(super) fn set_key(&mut self, key: String) {
        self.key = Some(key);
    }

    pub(super) fn add_value(&mut self, value: Value) {
        self.last_closed = None;
        if !self.object {
            self.is_document |= !(value.is_number() || value.is_boolean() || value.is_null());
            self.items.push(value);
        } else if let Some(key) = self.key.take() {
            self.keys.push(key.clone());
            self.members.insert(key, value);
        }
    }

    /// Records that a member starts in this column of its line.
    pub(super) fn record_member_start(&mut self, column: Option<usize>) {
        if self.members_started == 0 {
            self.column = column;
        }
        self.members_started += 1;
        self.is_aligned &= column.is_some() && column == self.column;
    }

    pub(super) fn count(&self) -> usize {
        if self.object { self.keys.len() } else { self.items.len() }
    }

    pub(super) fn is_committed(&self) -> bool {
        self.is_document || (self.object && self.key.is_some())
    }

    /// The JSON pointer token of the value that is being read.
    pub(super) fn pointer_token(&self) -> Option<String> {
        if self.object {
            let key: String = self.key.as_ref()?.chars().take(64).collect();
            return Some(key.replace('~', "~0").replace('/', "~1"));
        }
        Some(self.items.len().to_string())
    }

    pub(super) fn take_closed(&mut self, implicit: bool) -> ClosedFrame {
        ClosedFrame {
            object: self.object,
            is_inserted: implicit,
            is_aligned: self.is_aligned,
            column: self.column,
            count: self.count(),
            keys: std::mem::take(&mut self.keys),
            inner: self.last_closed.take(),
        }
    }

    pub(super) fn into_value(self) -> Value {
        if self.object { Value::Object(self.members) } else { Value::Array(self.items) }
    }
}

/// How many other readings are listed. A text with more of them is ambiguous.
const ALTERNATIVES_MAX: usize = 32;

/// Other positions where inserted brackets could be.
///
/// If the bracket behind the last member of an inner object is missing, it may be missing
/// behind any of the earlier members. The members behind it would then belong to the outer
/// object. Consistent indentation makes the position clear. If an array is between the two
/// objects (or an object between two arrays), all brackets in between must be missing too.
pub(super) fn find_alternatives<'f>(
    last: &ReadFrame,
    implicit: bool,
    around: impl Iterator<Item = &'f ReadFrame>,
) -> Vec<BracketAlternative> {
    let mut levels: Vec<NestingLevel> = around.map(NestingLevel::of_frame).collect();
    levels.reverse();
    levels.push(NestingLevel {
        is_inserted: implicit,
        step: last.keys.last().cloned(),
        ..NestingLevel::of_frame(last)
    });
    let mut found = Vec::new();
    let mut tail = last.last_closed.as_deref();
    while let Some(inner) = tail {
        if let Some(outer) = NestingLevel::outer_for(&levels, inner)
            && !levels.get(outer).is_some_and(|level| inner.is_indented(level))
        {
            let steps: Vec<_> = levels.iter().map(|level| level.step.clone()).collect();
            let split = |from| BracketAlternative {
                steps: steps.clone(),
                outer_steps: outer,
                members_kept: from,
                keys: inner.keys.clone(),
            };
            found.extend((1..inner.count).take(ALTERNATIVES_MAX + 1).map(split));
        }
        if BracketAlternative::are_too_many(&found) {
            break;
        }
        levels.push(NestingLevel {
            object: inner.object,
            is_inserted: inner.is_inserted,
            column: inner.column,
            step: inner.keys.last().cloned(),
        });
        tail = inner.inner.as_deref();
    }
    found
}

/// One level on the path to the last value read.
struct NestingLevel {
    object: bool,
    is_inserted: bool,
    column: Option<usize>,
    /// The key of its last member, if it is an object.
    step: Option<String>,
}

impl ClosedFrame {
    /// Whether the indentation shows that all members belong to this value and not to the
    /// outer one.
    fn is_indented(&self, outer: &NestingLevel) -> bool {
        self.is_aligned && self.column > outer.column
    }
}

impl NestingLevel {
    fn of_frame(frame: &ReadFrame) -> Self {
        Self {
            object: frame.object,
            is_inserted: false,
            column: frame.column,
            step: frame.key.clone(),
        }
    }

    /// The index of the outer level to which members of `inner` could belong.
    fn outer_for(levels: &[Self], inner: &ClosedFrame) -> Option<usize> {
        let outer = levels.iter().rposition(|level| level.object == inner.object)?;
        let between = levels.get(outer + 1..)?;
        let open = inner.is_inserted && between.iter().all(|level| level.is_inserted);
        (between.is_empty() || open).then_some(outer)
    }
}

impl BracketAlternative {
    /// Whether there are too many readings to check each one.
    pub(crate) fn are_too_many(splits: &[Self]) -> bool {
        splits.len() > ALTERNATIVES_MAX
    }

    /// The value in this other reading. `None` if the reading is not possible.
    pub(crate) fn other_reading(&self, value: &Value) -> Option<Value> {
        let mut other = value.clone();
        let moved = self.take_members(last_value_at(&mut other, &self.steps)?);
        match (last_value_at(&mut other, self.steps.get(..self.outer_steps)?)?, moved) {
            (Value::Object(map), Value::Object(moved)) => {
                if moved.keys().any(|key| map.contains_key(key)) {
                    return None;
                }
                map.extend(moved);
            }
            (Value::Array(items), Value::Array(moved)) => items.extend(moved),
            _ => return None,
        }
        Some(other)
    }

    fn take_members(&self, value: &mut Value) -> Value {
        match value {
            Value::Object(map) => {
                let keys = self.keys.iter().skip(self.members_kept);
                let moved = keys.filter_map(|key| Some((key.clone(), map.remove(key)?)));
                Value::Object(moved.collect())
            }
            Value::Array(items) => {
                Value::Array(items.split_off(self.members_kept.min(items.len())))
            }
            _ => Value::Null,
        }
    }
}

fn last_value_at<'v>(value: &'v mut Value, steps: &[Option<String>]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Some(key) => value.get_mut(key),
        None => value.as_array_mut()?.last_mut(),
    })
}
