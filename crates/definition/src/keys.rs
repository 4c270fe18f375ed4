//! What a key of a definition file is: its name, its type, its default and its sentence.
//!
//! Each section lists its keys in tables of this form (`sections/`). The check for unknown keys,
//! the JSON Schema and the reference page are made from these tables.

/// The keys of one mapping.
pub(crate) struct Keys {
    /// The name of the mapping in the JSON Schema.
    pub(crate) id: &'static str,
    /// How messages name the mapping.
    pub(crate) of: &'static str,
    /// What the mapping is for. Its part of the reference page begins with this text.
    pub(crate) doc: &'static str,
    /// The keys, in the order of the reference page.
    pub(crate) known: &'static [Key],
    /// Which keys are required.
    pub(crate) needs: &'static [Needs],
}

/// One key.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// The default, in words.
    pub(crate) default: &'static str,
    /// What the key does, in one sentence or a few.
    pub(crate) doc: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// Text that is not empty.
    Text,
    /// Text that matches a pattern, and the name of that form.
    Form(&'static str, &'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number from the first number to the second.
    Count(u64, u64),
    /// An amount of dollars, with up to six decimals.
    Usd,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list with at least this many items of this type.
    List(usize, &'static Takes),
    /// A mapping with known keys.
    Map(&'static Keys),
    /// A mapping from names to values: the least number of entries, what a name names, the type
    /// of a value.
    Names(usize, &'static str, &'static Takes),
    /// Any of these types.
    OneOf(&'static [Takes]),
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

/// Which keys are required.
pub(crate) enum Needs {
    /// All of these.
    All(&'static [&'static str]),
    /// Exactly one of these.
    One(&'static [&'static str]),
    /// At least one of these.
    Some(&'static [&'static str]),
    /// One key and no other.
    Single,
}

/// The largest numbers that the fields of the engine hold.
pub(crate) const U16: u64 = u16::MAX as u64;
pub(crate) const U32: u64 = u32::MAX as u64;
pub(crate) const I64: u64 = i64::MAX as u64;

/// A list of texts with at least one item.
pub(crate) const TEXTS: Takes = Takes::List(1, &Takes::Text);

/// An address of a web server.
pub(crate) const ADDRESS: Takes =
    Takes::Form("^https?://[^/?#:\\s\"'\\\\][^\\s\"'\\\\]*$", "an address (`https://…`)");

/// A row of a table of keys.
pub(crate) const fn key(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, takes, default, doc }
}

impl Keys {
    /// The names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().map(|key| key.name)
    }

    /// The range of a key that takes a number.
    pub(crate) fn range(&self, name: &str) -> Option<(u64, u64)> {
        let row = self.known.iter().find(|row| row.name == name)?;
        match row.takes {
            Takes::Count(least, most) => Some((least, most)),
            _ => None,
        }
    }
}

/// The words of a list of words with their values, for [`Takes::Word`].
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it, and reports a bad index")]
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

/// Several lists as one. The first list is not empty.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it, and reports a bad index")]
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
