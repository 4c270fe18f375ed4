//! The types that describe the keys of a definition file: name, type, default and documentation.
//!
//! Each section lists its keys in tables of these types (`sections/`). The check for unknown keys,
//! the JSON Schema and the reference page are built from these tables.

/// The keys of one mapping.
pub(crate) struct MappingSpec {
    /// The name of the mapping in the JSON Schema.
    pub(crate) id: &'static str,
    /// The name of the mapping in messages.
    pub(crate) label: &'static str,
    /// The purpose of the mapping, shown below its heading on the reference page.
    pub(crate) doc: &'static str,
    /// The keys, in the order of the reference page.
    pub(crate) entries: &'static [KeySpec],
    /// The keys that are required.
    pub(crate) required: &'static [RequiredKeys],
}

/// One key of a mapping.
#[derive(Clone, Copy)]
pub(crate) struct KeySpec {
    pub(crate) name: &'static str,
    pub(crate) value_type: ValueType,
    /// The default, in words.
    pub(crate) default: &'static str,
    /// What the key does, in full sentences.
    pub(crate) doc: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy)]
pub(crate) enum ValueType {
    /// Text that is not empty.
    Text,
    /// Text that matches the pattern; the second string names the form.
    Form(&'static str, &'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number between the two numbers, both included.
    Count(u64, u64),
    /// An amount of dollars, with up to six decimals.
    Usd,
    /// A time in seconds greater than 0, with up to three decimals.
    Seconds,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list with at least this many items of this type.
    List(usize, &'static ValueType),
    /// A mapping with known keys.
    Map(&'static MappingSpec),
    /// A mapping from names to values: the minimum number of entries, what a name refers to, and
    /// the type of a value.
    Names(usize, &'static str, &'static ValueType),
    /// Any of these types.
    OneOf(&'static [ValueType]),
    /// A JSON pointer into the arguments of a call.
    Pointer,
    /// A path.
    Path,
    /// The arguments of a call.
    Arguments,
    /// A JSON Schema.
    Schema,
    /// An explicit `null`.
    Nothing,
}

/// A rule about required keys.
pub(crate) enum RequiredKeys {
    /// All of these.
    All(&'static [&'static str]),
    /// Exactly one of these.
    One(&'static [&'static str]),
    /// At least one of these.
    Some(&'static [&'static str]),
    /// Exactly one key, of all known keys.
    Single,
}

/// The largest values of the number types that the engine uses.
pub(crate) const U16_MAX: u64 = u16::MAX as u64;
pub(crate) const U32_MAX: u64 = u32::MAX as u64;
pub(crate) const I64_MAX: u64 = i64::MAX as u64;

/// A list of texts with at least one item.
pub(crate) const TEXT_LIST: ValueType = ValueType::List(1, &ValueType::Text);

/// An address of a web server.
pub(crate) const WEB_ADDRESS: ValueType =
    ValueType::Form("^https?://[^/?#:\\s\"'\\\\][^\\s\"'\\\\]*$", "an address (`https://…`)");

/// Creates a row of a table of keys.
pub(crate) const fn key(
    name: &'static str,
    takes: ValueType,
    default: &'static str,
    doc: &'static str,
) -> KeySpec {
    KeySpec { name, value_type: takes, default, doc }
}

impl MappingSpec {
    /// Returns the names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|key| key.name)
    }

    /// Returns the range of a key that takes a number.
    pub(crate) fn range(&self, name: &str) -> Option<(u64, u64)> {
        let row = self.entries.iter().find(|row| row.name == name)?;
        match row.value_type {
            ValueType::Count(least, most) => Some((least, most)),
            _ => None,
        }
    }
}

/// Returns the words of a list of words and values, for [`ValueType::Word`].
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, so the compiler reports a bad index"
)]
pub(crate) const fn words_of<T: Copy, const N: usize>(
    pairs: &[(&'static str, T)],
) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = pairs[at].0;
        at += 1;
    }
    words
}

/// Joins several lists. The first list must not be empty.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, so the compiler reports a bad index"
)]
pub(crate) const fn concat<T: Copy, const N: usize>(lists: &[&[T]]) -> [T; N] {
    let mut all = [lists[0][0]; N];
    let (mut next, mut list) = (0, 0);
    while list < lists.len() {
        let mut item = 0;
        while item < lists[list].len() {
            all[next] = lists[list][item];
            next += 1;
            item += 1;
        }
        list += 1;
    }
    all
}
