//! An object or array that is open.

use serde_json::{Map, Value};

/// One level of what is being read.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) object: bool,
    members: Map<String, Value>,
    items: Vec<Value>,
    /// The keys as they came, because a map may sort them.
    keys: Vec<String>,
    key: Option<String>,
    /// The column of the first member, if it begins a line.
    column: Option<usize>,
    /// Whether each member begins a line, in the column of the first.
    aligned: bool,
    began: usize,
    /// Whether this can't be a mere bracket in prose any more.
    pub(super) committed: bool,
    /// The shape of the last member, if that is an object or array.
    pub(super) tail: Option<Box<Tail>>,
}

/// What is left of a frame that was closed, as long as nothing follows it.
pub(super) struct Tail {
    object: bool,
    /// Whether its bracket was put in by us.
    implicit: bool,
    aligned: bool,
    column: Option<usize>,
    keys: Vec<String>,
    count: usize,
    inner: Option<Box<Tail>>,
}

/// Another reading: the members of the inner value, from the one numbered `from`
/// on, may belong to the outer one. Both are on the way to what came last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Split {
    /// From the root to the inner one: a key, or the last item.
    steps: Vec<Option<String>>,
    /// How many of the steps lead to the outer one.
    outer: usize,
    /// How many members stay.
    from: usize,
    /// The keys of the inner one in order, if it is an object.
    keys: Vec<String>,
}

impl Frame {
    pub(super) fn object() -> Self {
        Self { object: true, aligned: true, ..Self::default() }
    }

    pub(super) fn array() -> Self {
        Self { aligned: true, ..Self::default() }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// A key was read; its value follows.
    pub(super) fn begin(&mut self, key: String) {
        self.key = Some(key);
    }

    pub(super) fn place(&mut self, value: Value) {
        self.tail = None;
        if !self.object {
            self.committed |= !(value.is_number() || value.is_boolean() || value.is_null());
            self.items.push(value);
        } else if let Some(key) = self.key.take() {
            self.keys.push(key.clone());
            self.members.insert(key, value);
        }
    }

    /// A member begins, in this column of its line.
    pub(super) fn mark(&mut self, column: Option<usize>) {
        if self.began == 0 {
            self.column = column;
        }
        self.began += 1;
        self.aligned &= column.is_some() && column == self.column;
    }

    pub(super) fn count(&self) -> usize {
        if self.object { self.keys.len() } else { self.items.len() }
    }

    pub(super) fn is_committed(&self) -> bool {
        self.committed || (self.object && self.key.is_some())
    }

    /// The step of a JSON pointer that leads to what is being read.
    pub(super) fn step(&self) -> Option<String> {
        if self.object {
            let key: String = self.key.as_ref()?.chars().take(64).collect();
            return Some(key.replace('~', "~0").replace('/', "~1"));
        }
        Some(self.items.len().to_string())
    }

    pub(super) fn take_tail(&mut self, implicit: bool) -> Tail {
        Tail {
            object: self.object,
            implicit,
            aligned: self.aligned,
            column: self.column,
            count: self.count(),
            keys: std::mem::take(&mut self.keys),
            inner: self.tail.take(),
        }
    }

    pub(super) fn into_value(self) -> Value {
        if self.object { Value::Object(self.members) } else { Value::Array(self.items) }
    }
}

/// Most readings that are named; more than that are as good as too many.
const SPLITS_MAX: usize = 32;

/// Where brackets that were put in could stand as well.
///
/// A bracket that is missing after the last member of the inner of two objects may
/// be missing after any of its members, and those that follow belong to the outer
/// one. Lines that are indented alike leave no doubt. With a level of the other kind
/// in between, all brackets up to the outer one must be missing.
pub(super) fn splits<'f>(
    last: &Frame,
    implicit: bool,
    around: impl Iterator<Item = &'f Frame>,
) -> Vec<Split> {
    let mut levels: Vec<Level> = around.map(Level::around).collect();
    levels.reverse();
    levels.push(Level { implicit, step: last.keys.last().cloned(), ..Level::around(last) });
    let mut found = Vec::new();
    let mut tail = last.tail.as_deref();
    while let Some(inner) = tail {
        if let Some(outer) = Level::taking(&levels, inner)
            && !levels.get(outer).is_some_and(|level| inner.is_indented(level))
        {
            let steps: Vec<_> = levels.iter().map(|level| level.step.clone()).collect();
            let split =
                |from| Split { steps: steps.clone(), outer, from, keys: inner.keys.clone() };
            found.extend((1..inner.count).take(SPLITS_MAX + 1).map(split));
        }
        if Split::too_many(&found) {
            break;
        }
        levels.push(Level {
            object: inner.object,
            implicit: inner.implicit,
            column: inner.column,
            step: inner.keys.last().cloned(),
        });
        tail = inner.inner.as_deref();
    }
    found
}

/// One level on the way to what came last.
struct Level {
    object: bool,
    implicit: bool,
    column: Option<usize>,
    /// The key of what came last in it, if it is an object.
    step: Option<String>,
}

impl Tail {
    /// Whether the layout says that all members are of this one, and not of the outer one.
    fn is_indented(&self, outer: &Level) -> bool {
        self.aligned && self.column > outer.column
    }
}

impl Level {
    fn around(frame: &Frame) -> Self {
        Self {
            object: frame.object,
            implicit: false,
            column: frame.column,
            step: frame.key.clone(),
        }
    }

    /// The level that members of `inner` could belong to.
    fn taking(levels: &[Self], inner: &Tail) -> Option<usize> {
        let outer = levels.iter().rposition(|level| level.object == inner.object)?;
        let between = levels.get(outer + 1..)?;
        let open = inner.implicit && between.iter().all(|level| level.implicit);
        (between.is_empty() || open).then_some(outer)
    }
}

impl Split {
    /// Whether there are so many that nobody looks at each.
    pub(crate) fn too_many(splits: &[Self]) -> bool {
        splits.len() > SPLITS_MAX
    }

    /// The other reading of the same text, if it is one.
    pub(crate) fn apply(&self, value: &Value) -> Option<Value> {
        let mut other = value.clone();
        let moved = self.take(last_at(&mut other, &self.steps)?);
        match (last_at(&mut other, self.steps.get(..self.outer)?)?, moved) {
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

    fn take(&self, value: &mut Value) -> Value {
        match value {
            Value::Object(map) => {
                let keys = self.keys.iter().skip(self.from);
                let moved = keys.filter_map(|key| Some((key.clone(), map.remove(key)?)));
                Value::Object(moved.collect())
            }
            Value::Array(items) => Value::Array(items.split_off(self.from.min(items.len()))),
            _ => Value::Null,
        }
    }
}

fn last_at<'v>(value: &'v mut Value, steps: &[Option<String>]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Some(key) => value.get_mut(key),
        None => value.as_array_mut()?.last_mut(),
    })
}
