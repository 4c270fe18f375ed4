//! The keys of a definition, each with what it takes, its default and a line
//! of documentation.
//!
//! This is the one place where keys are listed. The check for unknown keys,
//! the JSON Schema of the file and its reference page are made from it.

mod attempts;
mod budgets;
mod identity;
mod io;
mod loops;
mod models;
mod progress;
mod rules;
mod schemas;
mod tables;

pub(crate) use attempts::*;
pub(crate) use budgets::*;
pub(crate) use identity::*;
pub(crate) use io::*;
pub(crate) use loops::*;
pub(crate) use models::*;
pub(crate) use progress::*;
pub(crate) use rules::*;
pub(crate) use schemas::*;
pub(crate) use tables::*;

/// The keys one mapping takes.
pub(crate) struct Keys {
    /// Its name in the schema.
    pub(crate) id: &'static str,
    /// What the mapping is called in messages.
    pub(crate) of: &'static str,
    /// What it is for; the beginning of its part of the reference.
    pub(crate) doc: &'static str,
    /// Keys that work.
    pub(crate) known: &'static [Key],
    /// Which of them have to be there.
    pub(crate) needs: &'static [Needs],
}

/// One key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// What holds where it is left out, in words.
    pub(crate) default: &'static str,
    /// What it does.
    pub(crate) doc: &'static str,
}

/// What a key takes.
pub(crate) enum Takes {
    /// Text with at least one letter.
    Text,
    /// Text of a form that a pattern describes, and what it is called.
    Form(&'static str, &'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number in a range.
    Count(u64, u64),
    /// An amount of dollars, with up to six decimals.
    Usd,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list with at least so many items, each of this kind.
    List(usize, &'static Takes),
    /// A mapping with known keys.
    Map(&'static Keys),
    /// A mapping from names of one sort to values, with at least so many.
    Names(usize, &'static str, &'static Takes),
    /// Any of these.
    OneOf(&'static [Takes]),
    /// A JSON pointer into the arguments of a call.
    Pointer,
    /// A path.
    Path,
    /// The arguments of a call.
    Arguments,
    /// A JSON Schema.
    Schema,
    /// Explicitly nothing.
    Nothing,
}

/// Which keys have to be there.
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

impl Keys {
    /// The names of the keys that work.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().map(|key| key.name)
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::Kind;
    use jackline_engine::definition::{ModelOccasion, ModelProvider, Occasion};

    use super::*;

    #[test]
    fn kinds_and_occasions_are_the_engines() {
        let kinds: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(KINDS, kinds);
        let occasions: Vec<&str> = Occasion::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(OCCASIONS, occasions);
        assert_eq!(PROVIDERS, ModelProvider::ALL.map(|(name, _)| name));
        assert_eq!(MODEL_OCCASIONS, ModelOccasion::ALL.map(|(name, _)| name));
    }

    #[test]
    fn every_mapping_is_listed_once_and_every_key_is_documented() {
        let mut ids: Vec<&str> = ALL.iter().map(|keys| keys.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
        for keys in ALL {
            let mut names: Vec<&str> = keys.names().collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}", keys.id);
            assert!(keys.known.iter().all(|key| key.doc.ends_with('.')), "{}", keys.id);
        }
    }
}
