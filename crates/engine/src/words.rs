//! Enums of fixed words.
//!
//! Each value has one word, which journals, the wire and `--json` show. Code compares values;
//! only the serialised form contains the word.

/// Makes enums of fixed words. A word that is not in the set is an error when it is read.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value by its word on the wire.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// The word on the wire.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.word())
            }
        }
    )*};
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::string::String;
    use std::vec::Vec;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::{PauseCause, SessionPhase, TurnStatus};

    /// Checks that every value reads back from its word, and lists the words.
    fn round_trip<T>(all: &[(&'static str, T)]) -> String
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned,
    {
        for (word, value) in all {
            assert_eq!(serde_json::to_value(value).unwrap(), *word);
            assert_eq!(&serde_json::from_value::<T>((*word).into()).unwrap(), value);
        }
        all.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_words_of_a_session_are_pinned() {
        assert_eq!(round_trip(SessionPhase::ALL), "new running paused stopped ended");
        assert_eq!(round_trip(PauseCause::ALL), "person protected loop no_progress checkpoint");
        assert_eq!(
            round_trip(TurnStatus::ALL),
            "complete unchecked incomplete bypassed capped unverified"
        );
    }
}
